//! The side of the demo that runs in each of the 16 processes.

use std::time::{Duration, Instant};

use crate::ascend::{Buffer, Span};
use crate::cli::io;
use crate::cli::lab::demo::event::{Event, Reduction};
use crate::cli::lab::demo::training::Trainer;
use crate::cli::lab::digits::gradients::Gradients;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::reduce::{Journal, Options, Record, STATISTICS_VARIABLE, World};
use crate::topo::Cluster;

/// How long a step may wait for the other ranks.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of [`Trainer::digest`].
const DIGEST: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    epochs: usize,
    #[arg(long, required = true)]
    reduction: Vec<Reduction>,
}

/// Trains once with each reduction, as the rank that the environment says.
///
/// # Errors
/// Whatever fails on this rank, or ranks that differ in their weights.
pub(crate) fn run(args: &Args) -> Result<()> {
    let cluster = Cluster::from_env()?;
    let world = World::from_cluster(&cluster)?;
    let mut recorder = Recorder::new(world.rank())?;
    for reduction in &args.reduction {
        train(&world, *reduction, args.epochs, &mut recorder).context(|| reduction.name())?;
    }
    world.finish(PATIENCE)
}

/// Records for a report, if one is wanted: all ranks compute figures, rank 0 writes them.
struct Recorder {
    wanted: bool,
    journal: Option<Journal>,
}

impl Recorder {
    fn new(rank: u32) -> Result<Recorder> {
        let wanted = std::env::var_os(STATISTICS_VARIABLE).is_some_and(|folder| !folder.is_empty());
        let journal = if rank == 0 {
            Journal::from_env(rank)?
        } else {
            None
        };
        Ok(Recorder { wanted, journal })
    }

    fn write(&mut self, record: &Record) -> Result<()> {
        match &mut self.journal {
            Some(journal) => journal.record(record),
            None => Ok(()),
        }
    }
}

fn train(
    world: &World,
    reduction: Reduction,
    epochs: usize,
    recorder: &mut Recorder,
) -> Result<()> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let mut trainer = Trainer::new(rank, ranks, epochs)?;
    let mut device = DeviceSide::new(world, reduction, &trainer)?;
    report(rank, &Event::Start { reduction })?;
    let begin = Instant::now();
    for epoch in 1..=epochs {
        let batches = trainer.batches(epoch);
        let mut loss = 0.0;
        for (step, batch) in batches.iter().enumerate() {
            loss += trainer.gradients(batch);
            let gradients = &mut device.gradients;
            gradients
                .reducer
                .observe(recorder.wanted && reduction == Reduction::Adasum);
            gradients
                .reduce(&mut trainer.gradients, PATIENCE)
                .context(|| format!("epoch {epoch} step {}", step + 1))?;
            if recorder.wanted && reduction == Reduction::Adasum {
                let number = (epoch - 1) * batches.len() + step + 1;
                let passed = number as f64 / batches.len() as f64;
                let statistics = gradients.reducer.statistics()?;
                let record = Record::new(reduction.name(), number as u64);
                recorder.write(&record.epoch(passed).tensors(&statistics))?;
            }
            trainer.step(epoch, step);
            report(rank, &Event::Step)?;
        }
        let total = device
            .compare(loss, &trainer.digest())
            .context(|| format!("end of epoch {epoch}"))?;
        let steps = batches.len();
        let loss = total / (ranks * steps) as f32;
        if recorder.journal.is_some() {
            let record = Record::new(reduction.name(), (epoch * steps) as u64);
            let record = record.epoch(epoch as f64).value("loss", decimal(loss));
            recorder.write(&record.value("accuracy", trainer.accuracy()))?;
        }
        report(rank, &Event::Epoch { epoch, steps, loss })?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let accuracy = trainer.accuracy();
    report(rank, &Event::Done { accuracy, seconds })
}

/// The number that the shortest decimal form of `value` is.
fn decimal(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// Sends an event to the command, from rank 0 only.
fn report(rank: usize, event: &Event) -> Result<()> {
    if rank == 0 { io::send(event) } else { Ok(()) }
}

/// The gradients and what the ranks compare after each epoch.
struct DeviceSide<'a> {
    world: &'a World,
    gradients: Gradients,
    /// The loss of the epoch, then the digest of each rank: one number a byte.
    report: Span,
}

impl<'a> DeviceSide<'a> {
    fn new(world: &'a World, reduction: Reduction, trainer: &Trainer) -> Result<Self> {
        let options = Options {
            reduction: reduction.into(),
            ..Options::default()
        };
        let report = size_of::<f32>() * (1 + DIGEST * world.size() as usize);
        Ok(DeviceSide {
            world,
            gradients: Gradients::new(world, &trainer.network, &options)?,
            report: Buffer::new(world.device(), report)?.span(),
        })
    }

    /// The sum of `loss` over the ranks. Fails, naming them, if ranks hold different weights.
    fn compare(&mut self, loss: f32, digest: &[u8; DIGEST]) -> Result<f32> {
        // Every rank fills in its own part and the rest is zero, so that the sum is the table of all.
        let mut report = vec![0.0; self.report.len() / size_of::<f32>()];
        report[0] = loss;
        let mine = &mut report[1 + DIGEST * self.world.rank() as usize..][..DIGEST];
        for (number, byte) in mine.iter_mut().zip(digest) {
            *number = f32::from(*byte);
        }
        self.report.write(&report)?;
        let stream = &self.gradients.stream;
        self.world.all_reduce_sum(&self.report, stream)?;
        self.gradients.reducer.synchronize(stream, PATIENCE)?;
        self.report.read(&mut report)?;
        match odd_ranks(&report[1..]).as_slice() {
            [] => Ok(report[0]),
            odd => Err(Error::new(
                ErrorKind::Mismatch,
                format!("weights of ranks {odd:?} differ from those of the others"),
            )),
        }
    }
}

/// The ranks whose digest is not the most frequent one.
fn odd_ranks(digests: &[f32]) -> Vec<usize> {
    let digests: Vec<&[f32]> = digests.chunks_exact(DIGEST).collect();
    let count = |wanted: &[f32]| digests.iter().filter(|digest| **digest == wanted).count();
    // Of several equally frequent ones that of the lowest rank counts as right.
    let common = digests.iter().rev().max_by_key(|digest| count(digest));
    let odd = digests
        .iter()
        .enumerate()
        .filter(|(_, digest)| Some(*digest) != common);
    odd.map(|(rank, _)| rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_other_weights_are_found() {
        let mut digests = vec![7.0; 16 * DIGEST];
        assert!(odd_ranks(&digests).is_empty());
        digests[3 * DIGEST + 19] = 8.0;
        digests[9 * DIGEST] = 0.0;
        assert_eq!(odd_ranks(&digests), [3, 9]);
        let two = [vec![1.0; DIGEST], vec![2.0; DIGEST]].concat();
        assert_eq!(odd_ranks(&two), [1]);
    }
}
