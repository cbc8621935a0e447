//! What a reduction costs, counted over the mock: bytes, messages, operations, launches and device memory are what the
//! plan says, and do not grow with the number of tensors.
//!
//! Counters are those of a process, so each of these tests has one of its own.

use std::path::PathBuf;
use std::sync::Barrier;

use adasum::ascend::{Buffer, Span, Stream};
use adasum::kernel::layout::record_words;
use adasum::plan::{
    Choices, Combine, Cost, Exchange, Form, Forms, Layout, Machine, Plan, Planner, Shape, Step,
};
use adasum::reduce::{DType, GradientReducer, InServer, Options, Reduction, ScalarExchange, World};

use crate::kernels::strict;
use crate::library::execution::counter;
use crate::support::{in_world, noise, run_alone, run_alone_with, specs};

#[test]
fn a_step_moves_what_the_plan_says() {
    run_alone("library::costs::counted_traffic");
}

#[test]
fn a_bucket_costs_the_same_with_one_tensor_and_with_many() {
    run_alone("library::costs::counted_tensors");
}

/// With the strict twin of the kernels, which counts what they copy from and to device memory.
#[test]
fn kernels_read_and_write_what_the_plan_says() {
    run_alone_with(
        "library::costs::counted_accesses",
        &[(KERNELS, strict::binary(2201))],
    );
}

#[test]
fn device_memory_is_what_the_device_gives() {
    run_alone("library::costs::counted_memory");
}

/// Tensors in one buffer, each at a multiple of 64 bytes.
fn padded(world: &World, counts: &[usize]) -> Vec<Span> {
    let wide: Vec<u64> = counts.iter().map(|&count| count as u64).collect();
    let layout = Layout::new(DType::F32, &wide).unwrap();
    let bytes = 4 * usize::try_from(layout.elements()).unwrap();
    let whole = Buffer::zeroed(world.device(), bytes).unwrap().span();
    let place = |range: &adasum::plan::Range| {
        let start = 4 * usize::try_from(range.start()).unwrap();
        whole
            .slice(start..start + 4 * usize::try_from(range.len()).unwrap())
            .unwrap()
    };
    layout.tensors().iter().map(place).collect()
}

/// What `names` count in one step of all ranks together.
fn step<const N: usize>(
    (servers, locals): (u32, u32),
    counts: &[usize],
    options: &Options,
    names: [&str; N],
) -> [u64; N] {
    let barrier = Barrier::new((servers * locals) as usize);
    let counted = in_world(servers, locals, |world| {
        let mut reducer = GradientReducer::new(world, &specs(counts), options).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let spans = padded(world, counts);
        let mut step = || {
            reducer.reduce(&spans, &stream).unwrap();
            // One wait; that of the reducer is one for every 20 ms.
            stream.synchronize().unwrap();
            barrier.wait();
        };
        step();
        let before = names.map(counter);
        barrier.wait();
        step();
        let after = names.map(counter);
        barrier.wait();
        std::array::from_fn(|i| after[i] - before[i])
    });
    counted[0]
}

const COUNTS: [usize; 6] = [70_001, 5, 16_384, 333, 90_000, 1];

/// Bytes and messages that all ranks receive in one step, from the plans alone: of vectors, and of records that everyone
/// gathers.
fn planned(shape: Shape, radix: u32) -> [u64; 2] {
    let counts = COUNTS.map(|count| count as u64);
    let planner = Planner::new(shape, Layout::new(DType::F32, &counts).unwrap(), radix).unwrap();
    let (mut bytes, mut messages) = (0, 0);
    for rank in 0..shape.size() {
        let plan = planner.plan(rank).unwrap();
        let mut receive = |exchange: &Exchange| {
            for receive in exchange.receives() {
                bytes += 4 * receive.part.range.len();
                messages += 1;
            }
        };
        plan.mean.iter().for_each(|mean| receive(&mean.exchange));
        plan.rounds
            .iter()
            .for_each(|round| receive(&round.combine.exchange));
        plan.returns
            .iter()
            .chain(&plan.gather)
            .for_each(&mut receive);
        for round in plan
            .rounds
            .iter()
            .filter(|round| round.combine.operands > 1)
        {
            assert!(round.scalars.owned.is_none());
            let record = 4 * record_words(round.combine.operands as usize) as u64;
            let others = u64::from(round.scalars.group.count) - 1;
            bytes += others * round.scalars.stride * record;
            messages += others;
        }
    }
    [bytes, messages]
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_traffic() {
    for (servers, locals, radix) in [(2, 1, 2), (4, 2, 2), (5, 1, 3), (6, 1, 8)] {
        let options = Options {
            radix,
            padded: true,
            scalars: ScalarExchange::Gathered,
            ..Options::default()
        };
        let names = ["transferred_bytes", "messages"];
        let counted = step((servers, locals), &COUNTS, &options, names);
        let shape = Shape::new(servers, locals).unwrap();
        assert_eq!(
            counted,
            planned(shape, radix),
            "{servers} x {locals}, radix {radix}"
        );
    }
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_tensors() {
    const ELEMENTS: usize = 400_000;
    let many: Vec<usize> = {
        // 397 of odd sizes, and what is left of the same length, gaps included.
        let small: Vec<usize> = (0..397).map(|i| 1 + 16 * (i % 40)).collect();
        let used: usize = small.iter().map(|count| count.next_multiple_of(16)).sum();
        small.into_iter().chain([ELEMENTS - used]).collect()
    };
    let names = [
        "messages",
        "kernel_launches",
        "collective_calls",
        "host_synchronizations",
        "device_allocations",
        "host_allocations",
    ];
    for (servers, locals) in [(2, 1), (2, 2)] {
        let options = Options {
            padded: true,
            ..Options::default()
        };
        let one = step((servers, locals), &[ELEMENTS], &options, names);
        let all = step((servers, locals), &many, &options, names);
        assert_eq!(one, all, "{names:?}, {servers} x {locals}");
        // Each rank waits once: that is the test's own wait.
        let ranks = u64::from(servers * locals);
        assert_eq!(&one[3..], [ranks, 0, 0]);
    }
}

/// Names the kernels to load.
const KERNELS: &str = "ADASUM_KERNELS";

/// Bytes that all ranks' kernels read and write of vectors in one step, by the cost model, without the gaps between tensors: the
/// model takes a slice as a whole, kernels see tensors only.
fn planned_accesses(planner: &Planner, shape: Shape) -> u64 {
    let layout = planner.layout();
    let gaps = |combine: &Combine| {
        let segments = layout.segments(combine.slice);
        let filled: u64 = segments.iter().map(|segment| segment.len).sum();
        combine.slice.len() - filled
    };
    let of = |plan: &Plan| {
        let cost = Cost::of(plan, &Machine::mock());
        let merges = plan.rounds.iter().map(|round| &round.combine);
        let merges = merges.filter(|combine| combine.operands > 1);
        // Each element of a slice is read and written as often as all others.
        let times = |step: u64, combine: &Combine| step / combine.slice.len() * gaps(combine);
        let combines = plan.mean.iter().chain(merges);
        let steps = cost.steps.iter().map(|step| step.accesses);
        let gaps: u64 = steps
            .filter(|&accesses| accesses > 0)
            .zip(combines)
            .map(|(accesses, combine)| times(accesses, combine))
            .sum();
        // An element of each tensor's part in what is received is marked before it comes.
        let exchanges = plan.mean.iter().map(|mean| &mean.exchange);
        let exchanges = exchanges
            .chain(plan.rounds.iter().map(|round| &round.combine.exchange))
            .chain(&plan.returns)
            .chain(&plan.gather)
            .filter(|exchange| exchange.barrier.is_none());
        let parts = exchanges.flat_map(Exchange::receives);
        let marks = parts.map(|receive| layout.segments(receive.part.range).len() as u64);
        cost.accesses() - gaps + 4 * marks.sum::<u64>()
    };
    (0..shape.size())
        .map(|rank| of(&planner.plan(rank).unwrap()))
        .sum()
}

/// A counter of the strict twin.
struct Counted(libloading::Library);

impl Counted {
    /// The kernels that ranks of this process have loaded.
    fn new() -> Self {
        let path = PathBuf::from(std::env::var_os(KERNELS).unwrap());
        // SAFETY: the library is loaded already, so nothing of it runs now.
        Counted(unsafe { libloading::Library::new(path) }.unwrap())
    }

    fn get(&self, name: &str, argument: u64) -> u64 {
        type Count = unsafe extern "C" fn(u64) -> u64;
        // SAFETY: the function has this type.
        let count: libloading::Symbol<'_, Count> = unsafe { self.0.get(name.as_bytes()) }.unwrap();
        // SAFETY: takes a number.
        unsafe { count(argument) }
    }

    fn copied(&self) -> u64 {
        (0..2)
            .map(|what| self.get("adasum_strict_count", what))
            .sum()
    }
}

/// Bytes of vectors and of everything that kernels copy in one step of all ranks together.
fn copied(
    (servers, locals): (u32, u32),
    counts: &[usize],
    radix: u32,
    exchange: Option<Form>,
) -> [u64; 2] {
    // Less than a rank's part of the vectors, more than any table.
    const LARGE: u64 = 24 << 10;
    let barrier = Barrier::new((servers * locals) as usize);
    let options = Options {
        radix,
        exchange,
        padded: true,
        gradient_buffers: exchange == Some(Form::Shared),
        scalars: ScalarExchange::Gathered,
        ..Options::default()
    };
    let counted = in_world(servers, locals, |world| {
        let mut reducer = GradientReducer::new(world, &specs(counts), &options).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let spans = match options.gradient_buffers {
            true => {
                let places = reducer.gradient_buffers().unwrap();
                places.into_iter().map(Option::unwrap).collect()
            }
            false => padded(world, counts),
        };
        // Vectors of zeros are read twice: their products are taken again, scaled.
        for (tensor, span) in (0..).zip(&spans) {
            let value = |index| noise(&[u64::from(world.rank()), tensor, index]);
            let values: Vec<f32> = (0..span.len() as u64 / 4).map(value).collect();
            span.write(&values).unwrap();
        }
        let strict = Counted::new();
        let count = || {
            let large = || strict.get("adasum_strict_bytes_of_large", LARGE);
            barrier.wait();
            let counts = (world.rank() == 0).then(|| [large(), strict.copied()]);
            barrier.wait();
            counts
        };
        let before = count();
        reducer.reduce(&spans, &stream).unwrap();
        stream.synchronize().unwrap();
        let after = count();
        before
            .zip(after)
            .map(|([_, before], [large, after])| [large, after - before])
    });
    counted[0].unwrap()
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_accesses() {
    const FULL: [usize; 4] = [40_000, 16, 25_984, 48_000];
    const GAPS: [usize; 6] = [40_001, 5, 16_384, 333, 50_000, 1];
    // Two rounds of pairs and one of four; eight at once; a mean that takes two launches.
    let cases = [
        ((2, 1), 2, &FULL[..]),
        ((2, 1), 2, &GAPS),
        ((4, 2), 2, &GAPS),
        ((4, 2), 4, &FULL),
        ((8, 1), 8, &FULL),
        ((5, 1), 3, &GAPS),
        ((2, 9), 2, &FULL),
    ];
    // Kernels read as much where other ranks have the vectors, and write results to all of them.
    let ways = cases
        .iter()
        .flat_map(|case| [None, Some(Form::Shared)].map(|exchange| (case, exchange)));
    for (&((servers, locals), radix, counts), exchange) in ways {
        let wide: Vec<u64> = counts.iter().map(|&count| count as u64).collect();
        let shape = Shape::new(servers, locals).unwrap();
        let layout = Layout::new(DType::F32, &wide).unwrap();
        let choices = Choices {
            forms: Forms::of(exchange.unwrap_or(Form::Batch)),
            ..Choices::new(radix)
        };
        let planner = Planner::with(shape, layout, choices).unwrap();
        let planned = planned_accesses(&planner, shape);
        let [vectors, all] = copied((servers, locals), counts, radix, exchange);
        let what = format!("{servers} x {locals}, radix {radix}, {exchange:?}, {counts:?}");
        println!("{what}: {planned} bytes planned, {vectors} of vectors, {all} in all");
        assert_eq!(vectors, planned, "{what}");
        // Segments, records and coefficients.
        let tables = all - vectors;
        assert!(
            tables > 0 && tables < vectors / 100,
            "{what}: {tables} bytes of tables"
        );
    }
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_memory() {
    let standard = Options {
        bucket_bytes: 400_000,
        pipeline_depth: 2,
        ..Options::default()
    };
    let choices = [
        ((4, 2), standard.clone()),
        (
            (4, 2),
            Options {
                scattered: true,
                ..standard.clone()
            },
        ),
        (
            (4, 1),
            Options {
                scalars: ScalarExchange::Owned,
                ..standard.clone()
            },
        ),
        (
            (3, 1),
            Options {
                radix: 4,
                pipeline_depth: 9,
                ..standard.clone()
            },
        ),
        (
            (4, 2),
            Options {
                reduction: Reduction::Mean,
                ..standard.clone()
            },
        ),
        (
            (2, 2),
            Options {
                in_server: InServer::Shards,
                ..standard.clone()
            },
        ),
        (
            (1, 10),
            Options {
                allow_plain_mean: true,
                ..standard.clone()
            },
        ),
        (
            (4, 2),
            Options {
                exchange: Some(Form::Shared),
                ..standard.clone()
            },
        ),
        (
            (1, 10),
            Options {
                exchange: Some(Form::Shared),
                gradient_buffers: true,
                allow_plain_mean: true,
                ..standard
            },
        ),
    ];
    for ((servers, locals), options) in &choices {
        in_world(*servers, *locals, |world| {
            let free = || world.device().memory().unwrap().unwrap().0 as u64;
            let make = || GradientReducer::new(world, &specs(&COUNTS), options).unwrap();
            // The first one also makes the communicators of groups.
            let first = make();
            let before = free();
            let second = make();
            let taken = before - free();
            let memory = second.device_memory();
            assert_eq!(memory, first.device_memory());
            let rounded = memory.bytes()..=memory.bytes() + 511 * memory.allocations;
            assert!(
                rounded.contains(&taken),
                "{taken} bytes, {memory:?}, rank {} of {servers} x {locals}, {options:?}",
                world.rank()
            );
        });
    }
}

/// With one bucket the buffers are the bucket and all vectors but one of the largest combine.
#[test]
fn buffers_are_as_large_as_the_plan_says() {
    let options = Options {
        radix: 4,
        pipeline_depth: 1,
        ..Options::default()
    };
    let shape = Shape::new(5, 2).unwrap();
    let layout = Layout::new(DType::F32, &COUNTS.map(|count| count as u64)).unwrap();
    let planner = Planner::new(shape, layout.clone(), options.radix).unwrap();
    in_world(shape.servers, shape.locals, |world| {
        let reducer = GradientReducer::new(world, &specs(&COUNTS), &options).unwrap();
        let memory = reducer.device_memory();
        let plan = planner.plan(world.rank()).unwrap();
        let combines = plan.steps().filter_map(Step::combine);
        let others = |combine: &Combine| u64::from(combine.operands - 1) * combine.slice.len();
        assert_eq!(memory.fused, 4 * layout.elements());
        assert_eq!(memory.received, 4 * combines.map(others).max().unwrap());
        // Tables are small beside them.
        assert!(memory.tables < memory.fused / 20, "{memory:?}");
    });
}

/// Gradients in the reducer's own buffers, whole pages of all buckets together, and nothing is received.
#[test]
fn shared_buffers_are_the_gradients_and_no_more() {
    let options = Options {
        exchange: Some(Form::Shared),
        gradient_buffers: true,
        bucket_bytes: 100_000,
        ..Options::default()
    };
    in_world(4, 1, |world| {
        let reducer = GradientReducer::new(world, &specs(&COUNTS), &options).unwrap();
        let places = reducer.gradient_buffers().unwrap();
        let gradients: usize = places.iter().flatten().map(Span::len).sum();
        assert_eq!(gradients, 4 * COUNTS.iter().sum::<usize>());
        let memory = reducer.device_memory();
        let pages = gradients.next_multiple_of(Buffer::SHAREABLE_PAGE);
        assert_eq!(memory.fused, pages as u64);
        // An address for each bucket.
        assert!(memory.received <= 64 * memory.allocations, "{memory:?}");
    });
}
