//! AdaSum beside mean and sum at growing batch sizes, several seeds each: what `docs/experiment.md` reports.
//!
//! `ASCEND_MOCK_DEVICES=32 cargo run --release -p adasum-examples --example experiment > runs.csv` trains the demo's
//! network on the digits and prints a line for each training; tables for the page go to standard error. Ranks are
//! threads over the mock, each a server of its own. `--quick` trains little, to see that it works.

use std::sync::OnceLock;
use std::time::Duration;

use adasum::ascend::{Buffer, Device, RootInfo, Span};
use adasum::cli::lab::digits::gradients::Gradients;
use adasum::cli::lab::digits::images::{CLASSES, Digits, PIXELS, batches, load};
use adasum::cli::lab::digits::network::{Momentum, Network};
use adasum::reduce::{Options, Reduction, World};
use adasum::{Error, Result};

const LAYERS: [usize; 4] = [PIXELS, 128, 64, CLASSES];
/// Images of a rank in a step.
const BATCH: usize = 16;
const MOMENTUM: f32 = 0.9;
const PATIENCE: Duration = Duration::from_secs(120);

/// What is tried.
struct Extent {
    ranks: &'static [u32],
    rates: &'static [f32],
    seeds: u64,
    epochs: usize,
}

const FULL: Extent = Extent {
    ranks: &[1, 2, 4, 8, 16, 32],
    rates: &[0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8],
    seeds: 5,
    epochs: 10,
};
const QUICK: Extent = Extent {
    ranks: &[1, 3],
    rates: &[0.05, 0.1],
    seeds: 2,
    epochs: 2,
};

/// One training.
#[derive(Clone)]
struct Run {
    ranks: u32,
    reduction: &'static str,
    rate: f32,
    seed: u64,
    /// Mean over the last epoch.
    loss: f32,
    /// Of the images held back.
    accuracy: f64,
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let extent = if quick { &QUICK } else { &FULL };
    println!("ranks,reduction,rate,seed,loss,accuracy");
    let mut runs: Vec<Run> = Vec::new();
    for &ranks in extent.ranks {
        // The rate that is best for one rank; with one rank all are tried.
        let kept = best(&runs, 1, "mean").map(|cell| cell.rate);
        let new = world(ranks, extent, kept)?;
        for run in &new {
            println!(
                "{},{},{},{},{:.4},{:.4}",
                run.ranks, run.reduction, run.rate, run.seed, run.loss, run.accuracy
            );
        }
        runs.extend(new);
    }
    report(&runs, extent);
    Ok(())
}

/// All trainings of a number of ranks, which share one world.
fn world(ranks: u32, extent: &Extent, kept: Option<f32>) -> Result<Vec<Run>> {
    let root = OnceLock::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let root = &root;
                scope.spawn(move || member(rank, ranks, root, extent, kept))
            })
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            all.push(
                thread
                    .join()
                    .map_err(|_| Error::invalid("a rank panicked"))??,
            );
        }
        Ok(all.swap_remove(0))
    })
}

fn member(
    rank: u32,
    ranks: u32,
    root: &OnceLock<Result<RootInfo>>,
    extent: &Extent,
    kept: Option<f32>,
) -> Result<Vec<Run>> {
    let device = Device::open(i32::try_from(rank).unwrap_or(0))?;
    let root = root.get_or_init(|| RootInfo::new(&device)).clone()?;
    let world = World::from_root_info(device, &root, ranks, rank, 1)?;
    let (train, test) = load()?;
    let mut runs = Vec::new();
    for (reduction, name) in [
        (Reduction::Mean, "mean"),
        (Reduction::Adasum, "adasum"),
        (Reduction::Sum, "sum"),
    ] {
        if ranks == 1 && name != "mean" {
            continue;
        }
        let mut device = DeviceSide::new(&world, reduction)?;
        for &rate in extent.rates {
            // The sum at a rate is the mean at that rate times the ranks: only the kept rate says something new.
            if name == "sum" && kept != Some(rate) {
                continue;
            }
            for seed in 0..extent.seeds {
                let mut training = Training {
                    train: &train,
                    test: &test,
                    device: &mut device,
                    epochs: extent.epochs,
                };
                let (loss, accuracy) = training.run(rate, seed)?;
                runs.push(Run {
                    ranks,
                    reduction: name,
                    rate,
                    seed,
                    loss,
                    accuracy,
                });
            }
        }
    }
    world.finish(PATIENCE)?;
    Ok(runs)
}

/// The gradients and the loss of a rank, reduced over the device.
struct DeviceSide<'a> {
    world: &'a World,
    gradients: Gradients,
    loss: Span,
}

impl<'a> DeviceSide<'a> {
    fn new(world: &'a World, reduction: Reduction) -> Result<Self> {
        let options = Options {
            reduction,
            ..Options::default()
        };
        Ok(DeviceSide {
            world,
            gradients: Gradients::new(world, &Network::new(&LAYERS, 0), &options)?,
            loss: Buffer::new(world.device(), size_of::<f32>())?.span(),
        })
    }

    /// The sum of `loss` over the ranks.
    fn sum(&mut self, loss: f32) -> Result<f32> {
        let mut sum = [loss];
        self.loss.write(&sum)?;
        let stream = &self.gradients.stream;
        self.world.all_reduce_sum(&self.loss, stream)?;
        self.gradients.reducer.synchronize(stream, PATIENCE)?;
        self.loss.read(&mut sum)?;
        Ok(sum[0])
    }
}

struct Training<'a, 'w> {
    train: &'a Digits,
    test: &'a Digits,
    device: &'a mut DeviceSide<'w>,
    epochs: usize,
}

impl Training<'_, '_> {
    /// Mean loss of the last epoch over all ranks, and the accuracy. The seed chooses weights and order of images.
    fn run(&mut self, rate: f32, seed: u64) -> Result<(f32, f64)> {
        let (rank, ranks) = (
            self.device.world.rank() as usize,
            self.device.world.size() as usize,
        );
        let mut network = Network::new(&LAYERS, 1000 + seed);
        let mut momentum = Momentum::new(&network, MOMENTUM);
        let mut gradients = network.zeros();
        let mut loss = 0.0;
        for epoch in 0..self.epochs {
            let order = usize::try_from(seed).unwrap_or(0) * 1000 + epoch;
            let steps = batches(self.train.count(), order, rank, ranks, BATCH);
            loss = 0.0;
            for (step, batch) in steps.iter().enumerate() {
                let images = self.train.select(batch);
                loss += network.loss(&images.pixels, &images.labels, &mut gradients);
                if ranks > 1 {
                    self.device.gradients.reduce(&mut gradients, PATIENCE)?;
                }
                let passed = epoch as f32 + (step + 1) as f32 / steps.len() as f32;
                let rate = rate * schedule(passed, self.epochs as f32);
                momentum.step(&mut network, &gradients, rate);
            }
            loss /= steps.len() as f32;
        }
        let accuracy = network.accuracy(self.test);
        let mean = if ranks > 1 {
            self.device.sum(loss)?
        } else {
            loss
        } / ranks as f32;
        Ok((mean, accuracy))
    }
}

/// Up during the first epoch, then down to 0.
fn schedule(passed: f32, epochs: f32) -> f32 {
    if passed < 1.0 {
        passed
    } else {
        ((epochs - passed) / (epochs - 1.0)).max(0.0)
    }
}

/// All seeds of a number of ranks, a reduction and a rate.
struct Cell {
    rate: f32,
    accuracy: (f64, f64),
    loss: (f64, f64),
}

impl Cell {
    fn of(runs: &[Run], ranks: u32, reduction: &str, rate: f32) -> Option<Cell> {
        let seeds: Vec<&Run> = runs
            .iter()
            .filter(|run| run.ranks == ranks && run.reduction == reduction && run.rate == rate)
            .collect();
        (!seeds.is_empty()).then(|| Cell {
            rate,
            accuracy: spread(seeds.iter().map(|run| 100.0 * run.accuracy)),
            loss: spread(seeds.iter().map(|run| f64::from(run.loss))),
        })
    }

    fn text(&self) -> String {
        let ((accuracy, deviation), (loss, _)) = (self.accuracy, self.loss);
        format!("{accuracy:.1} ± {deviation:.1} % ({loss:.3})")
    }
}

/// Mean and standard deviation (of a sample); infinite where something is not a number.
fn spread(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

/// The rate with the best mean accuracy.
fn best(runs: &[Run], ranks: u32, reduction: &str) -> Option<Cell> {
    let mut rates: Vec<f32> = runs.iter().map(|run| run.rate).collect();
    rates.sort_by(f32::total_cmp);
    rates.dedup();
    let cells = rates
        .iter()
        .filter_map(|&rate| Cell::of(runs, ranks, reduction, rate));
    cells.max_by(|a, b| a.accuracy.0.total_cmp(&b.accuracy.0))
}

/// The tables of the page.
fn report(runs: &[Run], extent: &Extent) {
    let Some(alone) = best(runs, 1, "mean") else {
        return;
    };
    let rows = || extent.ranks.iter().filter(|ranks| **ranks > 1);
    let cell = |cell: Option<Cell>| cell.map_or("-".to_owned(), |cell| cell.text());
    eprintln!("One rank: {} at rate {}", alone.text(), alone.rate);
    eprintln!("\nThe rate of one rank, {}:\n", alone.rate);
    eprintln!("| ranks | batch | adasum | mean | sum |\n|---|---|---|---|---|");
    for &ranks in rows() {
        let of = |reduction| cell(Cell::of(runs, ranks, reduction, alone.rate));
        let batch = ranks as usize * BATCH;
        eprintln!(
            "| {ranks} | {batch} | {} | {} | {} |",
            of("adasum"),
            of("mean"),
            of("sum")
        );
    }
    eprintln!("\nThe best rate of each:\n");
    eprintln!("| ranks | batch | adasum | rate | mean | rate |\n|---|---|---|---|---|---|");
    for &ranks in rows() {
        let of = |reduction| {
            best(runs, ranks, reduction).map_or("- | -".to_owned(), |cell| {
                format!("{} | {}", cell.text(), cell.rate)
            })
        };
        let batch = ranks as usize * BATCH;
        eprintln!("| {ranks} | {batch} | {} | {} |", of("adasum"), of("mean"));
    }
}
