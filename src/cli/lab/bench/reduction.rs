//! A gradient reduction, timed as the peers time theirs.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::ascend::{Buffer, Span, Stream, backend};
use crate::cli::io::send;
use crate::cli::lab::bench::operands;
use crate::cli::lab::bench::request::Reduced;
use crate::cli::lab::bench::timing::Times;
use crate::cli::lab::sizes;
use crate::error::Result;
use crate::plan::Form;
use crate::reduce::{GradientReducer, Options, Phases, Reduction, TensorSpec, Wire, World};
use crate::topo::Cluster;

/// How long a repetition may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Repetitions that are not timed.
const WARM: usize = 2;
/// The most repetitions for phases.
const PHASE_REPS: usize = 5;
/// Phases of a reduction.
const PHASES: usize = 6;
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
    exchange: &'static str,
    /// Bytes of tensors that share a fused buffer, and how many of those are under way.
    bucket_bytes: u64,
    pipeline_depth: usize,
    /// Bytes of device memory of the reducer.
    device_bytes: u64,
    /// Bytes of gradients over the shortest time.
    algorithm_gb_per_s: f64,
    /// Bytes that a rank must send over the shortest time: 2 (1 - 1 / ranks) of the gradients.
    bus_gb_per_s: f64,
    phases: Seconds,
}

/// Seconds of each phase.
#[derive(Serialize)]
struct Seconds {
    copies: f64,
    exchange: f64,
    gram: f64,
    scalars: f64,
    combine: f64,
    #[serde(rename = "return")]
    back: f64,
}

/// Times the reduction that `what` describes.
///
/// # Errors
/// Whatever fails on this rank.
pub(crate) fn run(what: &Reduced) -> Result<()> {
    let cluster = Cluster::from_env()?;
    let world = World::from_cluster(&cluster)?;
    let mut bench = Bench::new(&world, what)?;
    let times = bench.measure(what.reps as usize)?;
    let phases = bench.phases((what.reps as usize).min(PHASE_REPS))?;
    if world.rank() == 0 {
        send(&bench.line(what, &times, phases))?;
    }
    drop(bench);
    world.finish(PATIENCE)
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
    bucket_bytes: u64,
    pipeline_depth: usize,
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
        let (bucket_bytes, pipeline_depth) = buffers()?;
        let options = Options {
            reduction: match what.mean {
                true => Reduction::Mean,
                false => Reduction::Adasum,
            },
            radix: what.radix,
            exchange: what.exchange,
            padded: true,
            bucket_bytes: what.bucket_bytes.unwrap_or(bucket_bytes),
            pipeline_depth: what
                .pipeline_depth
                .map_or(pipeline_depth, |depth| depth as usize),
            ..Options::default()
        };
        let places = places(&specs);
        let bytes = places.iter().map(|place| place.end).max();
        let bytes = bytes.unwrap_or(0).next_multiple_of(64);
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
            bucket_bytes: options.bucket_bytes,
            pipeline_depth: options.pipeline_depth,
        })
    }

    fn line(&self, what: &Reduced, times: &Times, phases: Seconds) -> Line {
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
            exchange: what.exchange.map_or("auto", Form::name),
            bucket_bytes: self.bucket_bytes,
            pipeline_depth: self.pipeline_depth,
            device_bytes: self.reducer.device_memory().bytes(),
            algorithm_gb_per_s: rate,
            bus_gb_per_s: rate * 2.0 * (1.0 - 1.0 / f64::from(what.ranks)),
            phases,
        }
    }

    /// The time of the slowest rank in each of `reps` repetitions.
    fn measure(&mut self, reps: usize) -> Result<Times> {
        let mut times = Vec::with_capacity(reps);
        for round in 0..WARM + reps {
            self.restore()?;
            let begin = Instant::now();
            self.reducer.reduce(&self.gradients, &self.stream)?;
            self.reducer.synchronize(&self.stream, PATIENCE)?;
            if round >= WARM {
                times.push(begin.elapsed().as_secs_f32());
            }
        }
        Ok(Times::new(self.slowest(&times)?))
    }

    /// The shortest time of each phase on the slowest rank, in `reps` repetitions.
    fn phases(&mut self, reps: usize) -> Result<Seconds> {
        let mut table = Vec::with_capacity(PHASES * reps);
        for _ in 0..reps {
            table.extend(self.timed_phases()?);
        }
        let slowest = self.slowest(&table)?;
        let [copies, exchange, gram, scalars, combine, back] = std::array::from_fn(|phase| {
            let reps = slowest.iter().skip(phase).step_by(PHASES);
            reps.copied().fold(f64::INFINITY, f64::min)
        });
        Ok(Seconds {
            copies,
            exchange,
            gram,
            scalars,
            combine,
            back,
        })
    }

    /// The time of each phase in one reduction on this rank.
    #[allow(clippy::cast_possible_truncation, reason = "fp32 is enough for a time")]
    fn timed_phases(&mut self) -> Result<[f32; PHASES]> {
        self.restore()?;
        let phases = self
            .reducer
            .phases(&self.gradients, &self.stream, PATIENCE)?;
        let Phases {
            copies,
            exchange,
            gram,
            scalars,
            combine,
            back,
        } = phases;
        let seconds = [copies, exchange, gram, scalars, combine, back];
        Ok(seconds.map(|seconds| seconds as f32))
    }

    /// Puts the gradients back and waits for all ranks.
    fn restore(&self) -> Result<()> {
        self.stream.copy(&self.whole, &self.original)?;
        self.world.barrier(&self.stream)?;
        self.stream.synchronize_timeout(PATIENCE)
    }

    /// For each number of `own`, the largest of all ranks.
    fn slowest(&self, own: &[f32]) -> Result<Vec<f64>> {
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
        Ok((0..own.len()).map(slowest).collect())
    }
}

/// The standard bytes and number of fused buffers under way. Over the mock messages and kernels are the work of the same
/// cores: nothing is gained by overlapping them, and much by what stays in the cache from step to step.
fn buffers() -> Result<(u64, usize)> {
    const CACHED: u64 = 4 << 20;
    let standard = Options::default();
    Ok(match backend()?.name {
        "mock" => (CACHED, 1),
        _ => (standard.bucket_bytes, standard.pipeline_depth),
    })
}

/// Where the tensors lie, in bytes. Those that travel as another type are converted and so copied; they lie behind the
/// others, which are reduced in place.
fn places(specs: &[TensorSpec]) -> Vec<std::ops::Range<usize>> {
    let copied = |spec: &TensorSpec| Wire::default().of(spec) != spec.dtype;
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|&tensor| copied(&specs[tensor]));
    let mut places = vec![0..0; specs.len()];
    let mut next = 0_u64;
    for tensor in order {
        let end = next + specs[tensor].count * specs[tensor].dtype.size();
        let place = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        places[tensor] = place(next)..place(end);
        next = end.next_multiple_of(ALIGNMENT);
    }
    places
}
