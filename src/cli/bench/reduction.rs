//! A gradient reduction, timed as the peers time theirs.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::operands;
use super::rank::tell;
use super::request::Reduced;
use super::sizes;
use super::timing::Times;
use crate::ascend::{Buffer, Span, Stream};
use crate::error::Result;
use crate::reduce::{GradientReducer, Options, Reduction, TensorSpec, World};
use crate::topo::Cluster;

/// How long a repetition may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Repetitions that are not timed.
const WARM: usize = 2;
/// Tensors start at multiples of this many bytes.
const ALIGNMENT: u64 = 64;

#[derive(Serialize)]
struct Line {
    peer: &'static str,
    ranks: u32,
    dtype: &'static str,
    bytes: u64,
    layers: u32,
    reps: usize,
    min_s: f64,
    median_s: f64,
    max_s: f64,
    devices_per_server: u32,
    radix: u32,
    /// Bytes of gradients over the shortest time.
    algorithm_gb_per_s: f64,
    /// Bytes that a rank must send over the shortest time: 2 (1 - 1 / ranks) of the gradients.
    bus_gb_per_s: f64,
}

/// Times the reduction that `what` describes.
///
/// # Errors
/// Whatever fails on this rank.
pub(super) fn run(what: &Reduced) -> Result<()> {
    let cluster = Cluster::from_env()?;
    let world = World::from_cluster(&cluster)?;
    let times = Bench::new(&world, what)?.measure(what.reps as usize)?;
    if world.rank() == 0 {
        tell(&line(what, &times))?;
    }
    world.finish(PATIENCE)
}

fn line(what: &Reduced, times: &Times) -> Line {
    let rate = what.bytes as f64 / times.min() * 1e-9;
    Line {
        peer: if what.mean { "adasum-mean" } else { "adasum" },
        ranks: what.ranks,
        dtype: what.dtype.name(),
        bytes: what.bytes,
        layers: what.tensors,
        reps: times.count(),
        min_s: times.min(),
        median_s: times.median(),
        max_s: times.max(),
        devices_per_server: what.locals,
        radix: what.radix,
        algorithm_gb_per_s: rate,
        bus_gb_per_s: rate * 2.0 * (1.0 - 1.0 / f64::from(what.ranks)),
    }
}

/// The gradients of one rank and what reduces them.
struct Bench<'a> {
    world: &'a World,
    reducer: GradientReducer,
    stream: Stream,
    /// What all gradients lie in, and a copy of it.
    whole: Span,
    original: Span,
    gradients: Vec<Span>,
}

impl<'a> Bench<'a> {
    fn new(world: &'a World, what: &Reduced) -> Result<Self> {
        let device = world.device();
        let counts = sizes::split(what.bytes / what.dtype.size(), what.tensors);
        let specs: Vec<TensorSpec> = counts
            .iter()
            .enumerate()
            .map(|(index, &count)| TensorSpec::new(format!("t{index}"), count, what.dtype.into()))
            .collect();
        let options = Options {
            reduction: match what.mean {
                true => Reduction::Mean,
                false => Reduction::Adasum,
            },
            radix: what.radix,
            ..Options::default()
        };
        let places = places(&counts, what.dtype.size());
        let bytes = places
            .last()
            .map_or(0, |place| place.end.next_multiple_of(64));
        let values = operands::random(what.dtype, bytes, 1 + u64::from(world.rank()));
        let whole = Buffer::from_slice(device, &values)?.span();
        let original = Buffer::from_slice(device, &values)?.span();
        let gradients: Result<Vec<Span>> =
            places.into_iter().map(|place| whole.slice(place)).collect();
        Ok(Bench {
            world,
            reducer: GradientReducer::new(world, &specs, &options)?,
            stream: Stream::new(device)?,
            whole,
            original,
            gradients: gradients?,
        })
    }

    /// The time of the slowest rank in each of `reps` repetitions.
    fn measure(mut self, reps: usize) -> Result<Times> {
        let mut times = Vec::with_capacity(reps);
        for round in 0..WARM + reps {
            self.stream.copy(&self.whole, &self.original)?;
            self.world.barrier(&self.stream)?;
            self.stream.synchronize_timeout(PATIENCE)?;
            let begin = Instant::now();
            self.reducer.reduce(&self.gradients, &self.stream)?;
            self.reducer.synchronize(&self.stream, PATIENCE)?;
            if round >= WARM {
                times.push(begin.elapsed().as_secs_f32());
            }
        }
        self.slowest(&times)
    }

    fn slowest(&self, own: &[f32]) -> Result<Times> {
        // Each rank fills in its own part and the rest is zero: the sum is the table of all. fp32 is enough here.
        let mut table = vec![0.0_f32; own.len() * self.world.size() as usize];
        let mine = own.len() * self.world.rank() as usize;
        table[mine..mine + own.len()].copy_from_slice(own);
        let span = Buffer::from_slice(self.world.device(), &table)?.span();
        self.world.all_reduce_sum(&span, &self.stream)?;
        self.stream.synchronize_timeout(PATIENCE)?;
        span.read(&mut table)?;
        let slowest = |rep: usize| {
            let ranks = table.iter().skip(rep).step_by(own.len());
            f64::from(ranks.copied().fold(0.0, f32::max))
        };
        Ok(Times::new((0..own.len()).map(slowest).collect()))
    }
}

/// Where the tensors lie, in bytes.
fn places(counts: &[u64], size: u64) -> Vec<std::ops::Range<usize>> {
    let place = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut next = 0;
    counts
        .iter()
        .map(|count| {
            let range = place(next)..place(next + count * size);
            next = (next + count * size).next_multiple_of(ALIGNMENT);
            range
        })
        .collect()
}
