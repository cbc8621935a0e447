//! One rank of the tutorial's training: `README.md` beside this file says how it is started.
//!
//! The network, its gradients and the optimizer are the demo's, on the host; with a framework they are the framework's, and
//! gradients are device memory already. What concerns AdaSum is in `main` and in `Gradients`.

use std::path::PathBuf;
use std::time::Duration;

use adasum::ascend::{Buffer, Span, Stream};
use adasum::cli::lab::digits::images::{CLASSES, PIXELS, batches, load};
use adasum::cli::lab::digits::network::{Momentum, Network};
use adasum::reduce::{
    DType, GradientReducer, Journal, Options, Record, Reduction, Settings, TensorSpec, World,
};
use adasum::{Error, Result};

const PATIENCE: Duration = Duration::from_secs(120);

/// `config.json`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// `adasum` or `mean`, between servers.
    reduction: String,
    epochs: usize,
    /// Images of a rank in a step.
    batch: usize,
    /// The learning rate after the first epoch, from which it falls to 0.
    rate: f32,
    momentum: f32,
}

impl Config {
    fn read() -> Result<Config> {
        let path = PathBuf::from(
            std::env::args()
                .nth(1)
                .unwrap_or_else(|| "config.json".into()),
        );
        let wrong =
            |error: &dyn std::fmt::Display| Error::invalid(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
        serde_json::from_str(&text).map_err(|error| wrong(&error))
    }

    fn reduction(&self) -> Result<Reduction> {
        match self.reduction.as_str() {
            "adasum" => Ok(Reduction::Adasum),
            "mean" => Ok(Reduction::Mean),
            other => Err(Error::invalid(format!(
                "reduction {other:?} is neither adasum nor mean"
            ))),
        }
    }
}

fn main() -> Result<()> {
    let config = Config::read()?;
    let world = World::from_environment(&Settings::default())?;
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let mut network = Network::new(&[PIXELS, 128, 64, CLASSES], 2020);
    let mut optimizer = Momentum::new(&network, config.momentum);
    let options = Options {
        reduction: config.reduction()?,
        ..Options::default()
    };
    let mut gradients = Gradients::new(&world, &network, &options)?;
    let mut journal = Journal::from_env(world.rank())?;
    let (train, test) = load()?;
    if rank == 0 {
        println!("============== Starting Training ==============");
    }
    for epoch in 1..=config.epochs {
        let steps = batches(train.count(), epoch, rank, ranks, config.batch);
        let mut loss = 0.0;
        for (step, batch) in steps.iter().enumerate() {
            let images = train.select(batch);
            loss += network.loss(&images.pixels, &images.labels, &mut gradients.host);
            gradients.reduce()?;
            let passed = (epoch - 1) as f32 + (step + 1) as f32 / steps.len() as f32;
            optimizer.step(&mut network, &gradients.host, rate(&config, passed));
        }
        loss /= steps.len() as f32;
        if let Some(journal) = &mut journal {
            let step = (epoch * steps.len()) as u64;
            let record = Record::new("", step)
                .epoch(epoch as f64)
                .value("loss", loss.into());
            journal.record(&record.tensors(&gradients.statistics(&options)?))?;
        }
        if rank == 0 {
            println!("epoch: {epoch} step: {} loss is {loss}", steps.len());
        }
    }
    if rank == 0 {
        let accuracy = 100.0 * network.accuracy(&test);
        println!("accuracy on held-back digits: {accuracy:.1} %");
    }
    drop(gradients);
    world.finish(PATIENCE)
}

/// The learning rate: up during the first epoch, then down to 0.
fn rate(config: &Config, passed: f32) -> f32 {
    let epochs = config.epochs as f32;
    let down = (epochs - passed) / (epochs - 1.0).max(1.0);
    config.rate * passed.min(down).clamp(0.0, 1.0)
}

/// The gradients of all tensors, here and in device memory, and what reduces them.
struct Gradients {
    host: Vec<Vec<f32>>,
    device: Vec<Span>,
    reducer: GradientReducer,
    stream: Stream,
}

impl Gradients {
    fn new(world: &World, network: &Network, options: &Options) -> Result<Gradients> {
        let tensors: Vec<TensorSpec> = std::iter::zip(network.names(), &network.tensors)
            .map(|(name, tensor)| TensorSpec::new(name, tensor.len() as u64, DType::F32))
            .collect();
        let buffers = network
            .tensors
            .iter()
            .map(|tensor| Ok(Buffer::new(world.device(), size_of_val(&tensor[..]))?.span()));
        Ok(Gradients {
            host: network.zeros(),
            device: buffers.collect::<Result<_>>()?,
            reducer: GradientReducer::new(world, &tensors, options)?,
            stream: Stream::new(world.device())?,
        })
    }

    /// Replaces this rank's gradients by the reduced ones, which are the same on all ranks.
    fn reduce(&mut self) -> Result<()> {
        for (span, values) in self.device.iter().zip(&self.host) {
            span.write(values)?;
        }
        self.reducer.reduce(&self.device, &self.stream)?;
        self.reducer.synchronize(&self.stream, PATIENCE)?;
        for (span, values) in self.device.iter().zip(&mut self.host) {
            span.read(values)?;
        }
        Ok(())
    }

    /// What AdaSum did to each tensor in the last step; the mean has no such figures.
    fn statistics(&self, options: &Options) -> Result<Vec<adasum::reduce::TensorStatistics>> {
        match options.reduction {
            Reduction::Adasum => self.reducer.statistics(),
            _ => Ok(Vec::new()),
        }
    }
}
