//! A gradient reduction, timed as the peers time theirs.

use std::num::NonZero;
use std::time::{Duration, Instant};

use crate::ascend::{Buffer, Span, Stream, backend};
use crate::cli::io::send;
use crate::cli::lab::bench::counted::{Counted, Counts};
use crate::cli::lab::bench::gradients::{Gradients, PERIOD};
use crate::cli::lab::bench::measured::{Measured, Seconds};
use crate::cli::lab::bench::request::{Reduced, Size};
use crate::cli::lab::bench::timing::Times;
use crate::cli::lab::element_type::ElementType;
use crate::cli::lab::reference::download;
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
const ALIGNMENT: usize = 64;

/// Times the reductions that `what` describes, one size after the other.
///
/// # Errors
/// Whatever fails on this rank.
pub(crate) fn run(what: &Reduced) -> Result<()> {
    let cluster = Cluster::from_env()?;
    let world = World::from_cluster(&cluster)?;
    let numbers = Gradients::new(what.dtype.into(), what.ranks, what.locals, what.mean);
    for &size in &what.sizes {
        let mut bench = Bench::new(&world, what, size, &numbers)?;
        let (times, counted) = bench.measure(what.reps as usize)?;
        let wrong = what.check.then(|| bench.wrong(what.dtype)).transpose()?;
        let phases = what
            .phases
            .then(|| bench.phases((what.reps as usize).min(PHASE_REPS)));
        let phases = phases.transpose()?;
        if world.rank() == 0 {
            send(&bench.line(what, &times, counted, wrong, phases))?;
        }
    }
    world.finish(PATIENCE)
}

/// The gradients of one rank and what reduces them.
struct Bench<'a> {
    world: &'a World,
    numbers: &'a Gradients,
    size: Size,
    reducer: GradientReducer,
    stream: Stream,
    gradients: Vec<Span>,
    /// Where gradients lie, side by side as many as do, and their values before a reduction.
    originals: Vec<(Span, Span)>,
    bucket_bytes: u64,
    pipeline_depth: usize,
}

impl<'a> Bench<'a> {
    fn new(world: &'a World, what: &Reduced, size: Size, numbers: &'a Gradients) -> Result<Self> {
        let device = world.device();
        let counts = sizes::split(size.bytes / what.dtype.size(), size.tensors);
        let specs: Vec<TensorSpec> = counts
            .iter()
            .enumerate()
            .map(|(index, &count)| TensorSpec::new(format!("t{index}"), count, what.dtype.into()))
            .collect();
        let (bucket_bytes, pipeline_depth) = buffers(what, size.bytes)?;
        let options = Options {
            reduction: match what.mean {
                true => Reduction::Mean,
                false => Reduction::Adasum,
            },
            radix: what.radix.unwrap_or(Options::AUTO_RADIX),
            exchange: what.exchange,
            padded: true,
            gradient_buffers: what.exchange == Some(Form::Shared),
            bucket_bytes: what.bucket_bytes.unwrap_or(bucket_bytes),
            pipeline_depth: what
                .pipeline_depth
                .map_or(pipeline_depth, |depth| depth as usize),
            ..Options::default()
        };
        let places = places(&specs);
        let bytes = places.iter().map(|place| place.end).max();
        let bytes = bytes.unwrap_or(0).next_multiple_of(64);
        let mut values = vec![0; bytes];
        for (tensor, place) in places.iter().enumerate() {
            numbers.fill(world.rank(), tensor, &mut values[place.clone()]);
        }
        let within = |whole: Span| -> Result<Vec<Span>> {
            let places = places.iter().cloned();
            places.map(|place| whole.slice(place)).collect()
        };
        let originals = within(Buffer::from_slice(device, &values)?.span())?;
        let reducer = GradientReducer::new(world, &specs, &options)?;
        let mut gradients = within(Buffer::zeroed(device, bytes)?.span())?;
        if options.gradient_buffers {
            for (gradient, place) in gradients.iter_mut().zip(reducer.gradient_buffers()?) {
                *gradient = place.unwrap_or_else(|| gradient.clone());
            }
        }
        Ok(Bench {
            world,
            numbers,
            size,
            reducer,
            stream: Stream::new(device)?,
            originals: side_by_side(&gradients, originals),
            gradients,
            bucket_bytes: options.bucket_bytes,
            pipeline_depth: options.pipeline_depth,
        })
    }

    fn line(
        &self,
        what: &Reduced,
        times: &Times,
        counted: Counted,
        wrong: Option<u64>,
        phases: Option<Seconds>,
    ) -> Measured {
        let line = Measured {
            peer: what.name().to_owned(),
            ranks: what.ranks,
            dtype: what.dtype.name().to_owned(),
            bytes: self.size.bytes,
            layers: self.size.tensors,
            reps: times.count(),
            min_s: times.min(),
            median_s: times.median(),
            max_s: times.max(),
            wrong,
            algorithm_gb_per_s: f64::NAN,
            bus_gb_per_s: f64::NAN,
            devices_per_server: what.locals,
            radix: self.reducer.radix(),
            exchange: what.exchange.map_or("auto", Form::name).to_owned(),
            bucket_bytes: self.bucket_bytes,
            pipeline_depth: self.pipeline_depth,
            device_bytes: self.reducer.device_memory().bytes(),
            counted: Some(counted),
            phases,
        };
        line.at_median(times.median())
    }

    /// The time of the slowest rank in each of `reps` repetitions, and what they took beside.
    fn measure(&mut self, reps: usize) -> Result<(Times, Counted)> {
        let mut times = Vec::with_capacity(reps);
        let mut counts = Counts::default();
        for round in 0..WARM + reps {
            self.restore()?;
            let before = Counts::now()?;
            let begin = Instant::now();
            self.reducer.reduce(&self.gradients, &self.stream)?;
            self.reducer.synchronize(&self.stream, PATIENCE)?;
            let time = begin.elapsed().as_secs_f32();
            if round >= WARM {
                times.push(time);
                counts.add_since(before)?;
            }
        }
        let all = self.world.gather(&counts.to_bytes(), PATIENCE)?;
        let counted = Counts::sum(&all, reps, backend()?.name == "mock");
        Ok((Times::new(self.slowest(&times)?), counted))
    }

    /// How many elements of the last repetition's results are wrong, on all ranks together.
    fn wrong(&self, dtype: ElementType) -> Result<u64> {
        let element = usize::try_from(dtype.size()).unwrap_or(usize::MAX);
        let mut wrong = 0;
        for (tensor, gradient) in self.gradients.iter().enumerate() {
            let expected = self.numbers.expected(tensor, gradient.len() / element);
            for start in (0..gradient.len()).step_by(PERIOD * element) {
                let end = gradient.len().min(start + PERIOD * element);
                let values = download(dtype.into(), &gradient.slice(start..end)?)?;
                wrong += self.numbers.wrong(&values, &expected);
            }
        }
        let all = self.world.gather(&wrong.to_ne_bytes(), PATIENCE)?;
        let (all, _) = all.as_chunks();
        Ok(all.iter().map(|wrong| u64::from_ne_bytes(*wrong)).sum())
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
        for (gradients, originals) in &self.originals {
            self.stream.copy(gradients, originals)?;
        }
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

/// The standard bytes and number of fused buffers under way, for `bytes` of gradients. Over the mock messages and kernels are
/// the work of the same cores: nothing is gained by overlapping them, and something by what stays in the cache from step to step.
fn buffers(what: &Reduced, bytes: u64) -> Result<(u64, usize)> {
    let standard = Options::default();
    if backend()?.name != "mock" {
        return Ok((standard.bucket_bytes, standard.pipeline_depth));
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let bucket = bucket_bytes(what.exchange, what.ranks, cores, largest_cache(), bytes);
    Ok((bucket, 1))
}

/// Bytes of a bucket for ranks that share a cache of `cache` bytes: as large as those of all ranks fit half of it, since other ranks' parts
/// lie there too, and large where even small ones do not fit and nothing is lost.
///
/// Where vectors are read where they lie, and ranks share `cores`, they push each other's data out of the caches; of long steps less
/// time is lost until the last rank has done its part. But there are two buckets, if they are not small: ranks begin the second
/// while others end the first.
fn bucket_bytes(exchange: Option<Form>, ranks: u32, cores: usize, cache: u64, bytes: u64) -> u64 {
    const SMALL: u64 = 4 << 20;
    const LARGE: u64 = 16 << 20;
    const LARGEST: u64 = 64 << 20;
    let shared = exchange == Some(Form::Shared);
    let share = cache / u64::from(ranks.max(1));
    let large = if shared { LARGEST } else { LARGE };
    if shared && ranks as usize > cores {
        (bytes / 2).clamp(SMALL, large)
    } else if share < SMALL {
        large
    } else {
        (share / 2).clamp(SMALL, large)
    }
}

/// Bytes of the largest cache of the first core, as Linux says; 0 if it does not.
fn largest_cache() -> u64 {
    let size = |index: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().strip_suffix('K')?.parse::<u64>().ok()
    };
    (0..8).filter_map(size).max().unwrap_or(0) << 10
}

/// Each gradient with its original, those as one that lie side by side alike: a copy of each tensor would take longer than a
/// reduction of short ones.
fn side_by_side(gradients: &[Span], originals: Vec<Span>) -> Vec<(Span, Span)> {
    let mut pairs: Vec<(Span, Span)> = Vec::new();
    for (gradient, original) in gradients.iter().zip(originals) {
        let wider = pairs.last().and_then(|(gradients, originals)| {
            let start = originals.len().next_multiple_of(ALIGNMENT);
            let both = [(gradients, gradient), (originals, &original)];
            let [gradients, originals] =
                both.map(|(first, next)| Span::spread([(first, 0), (next, start)]));
            gradients.zip(originals)
        });
        match (wider, pairs.last_mut()) {
            (Some(wider), Some(last)) => *last = wider,
            _ => pairs.push((gradient.clone(), original)),
        }
    }
    pairs
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
        next = end.next_multiple_of(ALIGNMENT as u64);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_as_large_as_the_cache_lets_them() {
        let mib = |ranks, cache: u64| bucket_bytes(None, ranks, 2, cache << 20, 100 << 20) >> 20;
        assert_eq!([2, 4, 8].map(|ranks| mib(ranks, 32)), [8, 4, 4]);
        assert_eq!([2, 8, 16].map(|ranks| mib(ranks, 260)), [16, 16, 8]);
        // Nothing fits, or nothing is known.
        assert_eq!([mib(16, 32), mib(2, 0)], [16, 16]);
        // Read where they lie, by ranks with a core each and by more.
        let shared = Some(Form::Shared);
        let mib = |ranks, cache: u64, bytes: u64| {
            bucket_bytes(shared, ranks, 2, cache << 20, bytes << 20) >> 20
        };
        assert_eq!([32, 260, 0].map(|cache| mib(2, cache, 100)), [8, 64, 64]);
        assert_eq!(
            [1, 16, 100, 500].map(|bytes| mib(4, 32, bytes)),
            [4, 8, 50, 64]
        );
    }
}
