//! How reductions are executed: what a step costs, that its result does not depend on the pipeline, and how it fails.

use std::path::Path;
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use adasum::ErrorKind;
use adasum::ascend::{Buffer, Device, RootInfo, Span, Stream, mock_counter};
use adasum::plan::{Exchange, Form, Layout, Planner, Shape};
use adasum::reduce::{
    DType, DeltaForm, DeltaWeightReducer, GradientReducer, IndexType, MeanOptions, NormClip,
    Options, OwnedPart, Rows, SparseReducer, SparseSpec, TensorSpec, Wire, World,
};
use adasum::topo::Cluster;

use crate::support::adasum_run::adasum_run;
use crate::support::{
    Tally, download, get_as, in_world, mock_environment, noise, put_as, reduce, run_alone,
    run_alone_with, specs, upload,
};

const COUNTS: [usize; 7] = [100_003, 1, 257, 40_000, 8192, 3, 60_000];

fn inputs(world: &World, counts: &[usize]) -> Vec<Vec<f32>> {
    (0..)
        .zip(counts)
        .map(|(tensor, &count)| {
            let value = |index| {
                0.5 * noise(&[9, tensor, index]) + noise(&[u64::from(world.rank()), tensor, index])
            };
            (0..count as u64).map(value).collect()
        })
        .collect()
}

fn with(world: &World, counts: &[usize], options: &Options) -> GradientReducer {
    GradientReducer::new(world, &specs(counts), options).unwrap()
}

/// What the mock has counted in this process.
pub(crate) fn counter(name: &str) -> u64 {
    let name = std::ffi::CString::new(name).unwrap();
    mock_counter(&name).unwrap().unwrap()
}

const COUNTERS: [&str; 5] = [
    "host_synchronizations",
    "device_allocations",
    "host_allocations",
    "kernel_launches",
    "collective_calls",
];

/// Counters are those of a process, so this test has one of its own.
#[test]
fn a_step_waits_for_nothing_allocates_nothing_and_costs_what_the_plan_says() {
    run_alone("library::execution::counted_steps");
}

/// Launches and operations of all ranks in one step, from the plans alone. Before each exchange what kernels did is checked
/// and what is awaited is marked;
/// a single bucket has all its work on one stream, which needs no check at its end.
fn planned(shape: Shape, groups: &[&[usize]], copies: bool) -> (u64, u64) {
    let (mut launches, mut calls) = (0, 0);
    let check = 1;
    let mark = |exchange: &Exchange| u64::from(exchange.receives().next().is_some());
    let last_check = u64::from(groups.len() > 1);
    for group in groups {
        let counts: Vec<u64> = group.iter().map(|&count| count as u64).collect();
        let layout = Layout::new(DType::F32, &counts).unwrap();
        let planner = Planner::new(shape, layout.clone(), 2).unwrap();
        for rank in 0..shape.size() {
            let plan = planner.plan(rank).unwrap();
            let busy = |range| u64::from(!layout.segments(range).is_empty());
            launches += if copies { 2 + check + last_check } else { 0 };
            if let Some(mean) = &plan.mean {
                calls += 2; // exchange and the way back
                launches += mark(&mean.exchange) + busy(mean.slice) + check; // mark, sum and check
                launches += plan.gather.as_ref().map_or(0, mark);
            }
            for round in &plan.rounds {
                calls += 3; // exchange, scalars, the way back
                launches += mark(&round.combine.exchange);
                launches += 4 * busy(round.combine.slice) + check; // gram, fold, coefficients, sum; check
            }
            launches += plan.returns.iter().map(mark).sum::<u64>();
        }
    }
    (launches, calls)
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_steps() {
    const STEPS: u64 = 5;
    let options = Options {
        bucket_bytes: 500_000,
        pipeline_depth: 2,
        ..Options::default()
    };
    // One after the other, as `buckets` cuts the list: 400,012 + 4 + 1,028; 160,000 + 32,768 + 12 + 240,000 bytes.
    let groups: [&[usize]; 2] = [&COUNTS[..3], &COUNTS[3..]];
    let barrier = Barrier::new(8);
    for (flat, copies) in [(false, true), (true, false)] {
        let counts = if flat { &[8192, 16, 4096][..] } else { &COUNTS };
        let groups = if flat { &[counts][..] } else { &groups };
        let results = in_world(4, 2, |world| {
            let mut reducer = with(world, counts, &options);
            let stream = Stream::new(world.device()).unwrap();
            let spans = match flat {
                false => upload(world.device(), &inputs(world, counts)),
                true => one_buffer(world.device(), &inputs(world, counts), 0),
            };
            reducer.reduce(&spans, &stream).unwrap();
            stream.synchronize().unwrap();
            barrier.wait();
            let before = COUNTERS.map(counter);
            barrier.wait();
            for _ in 0..STEPS {
                reducer.reduce(&spans, &stream).unwrap();
            }
            barrier.wait();
            let after = COUNTERS.map(counter);
            barrier.wait();
            stream.synchronize().unwrap();
            std::array::from_fn::<u64, 5, _>(|i| after[i] - before[i])
        });
        let (launches, calls) = planned(Shape::new(4, 2).unwrap(), groups, copies);
        let expected = [0, 0, 0, launches * STEPS, calls * STEPS];
        for counted in results {
            assert_eq!(counted, expected, "{COUNTERS:?}, flat: {flat}");
        }
    }
}

/// A wait whose limit is over is an incident for the runtime, so a healthy wait is none, however long it takes: with streams
/// that can be aborted, and on a chip that cannot.
#[test]
fn a_long_wait_is_no_incident() {
    for soc in ["Ascend910B3", "Ascend910A"] {
        let test = "library::execution::waits_for_a_late_rank";
        run_alone_with(test, &[("ASCEND_MOCK_SOC", Path::new(soc))]);
    }
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn waits_for_a_late_rank() {
    const LATE: Duration = Duration::from_millis(300);
    let waits = Barrier::new(2);
    in_world(2, 1, |world| {
        let mut reducer = with(world, &[5000], &Options::default());
        let stream = Stream::new(world.device()).unwrap();
        let spans = upload(world.device(), &inputs(world, &[5000]));
        let start = Instant::now();
        if world.rank() == 1 {
            waits.wait();
            std::thread::sleep(LATE);
        }
        reducer.reduce(&spans, &stream).unwrap();
        if world.rank() == 0 {
            waits.wait();
        }
        reducer
            .synchronize(&stream, Duration::from_secs(60))
            .unwrap();
        assert!(start.elapsed() >= LATE);
    });
    assert_eq!(counter("expired_waits"), 0);
}

/// The other rank is told, and both go on in the same world.
#[test]
fn a_rank_without_memory_leaves_nobody_waiting() {
    type Make<'a> = &'a (dyn Fn(&World) -> adasum::Result<()> + Sync);
    // Both take more than the memory that is left.
    let gradients: Make<'_> = &|world| {
        let tensors = specs(&[25_000_000]);
        GradientReducer::new(world, &tensors, &Options::default()).map(drop)
    };
    let rows: Make<'_> = &|world| {
        let spec = SparseSpec {
            name: "rows".to_owned(),
            width: 1000,
            dtype: DType::F32,
            index: IndexType::I64,
            rows: Rows::UpTo(17_000),
        };
        SparseReducer::new(world, &spec, &MeanOptions::default()).map(drop)
    };
    // The reducer of these fits, two copies of the weights do not.
    let weights: Make<'_> = &|world| {
        let (tensors, options) = (specs(&[5_000_000]), Options::default());
        DeltaWeightReducer::new(world, &tensors, DeltaForm::Local, &options).map(drop)
    };
    let norm: Make<'_> = &|world| {
        let tensors = specs(&[15_000_000]);
        let parts = [OwnedPart {
            tensor: 0,
            start: 0,
            len: 15_000_000,
        }];
        let limit = Duration::from_secs(60);
        NormClip::of_parts(world, &tensors, &parts, 1.0, limit).map(drop)
    };
    for make in [gradients, rows, weights, norm] {
        in_world(2, 1, |world| {
            // The communicator has its buffers from its first operation on.
            let stream = Stream::new(world.device()).unwrap();
            world.barrier(&stream).unwrap();
            stream.synchronize().unwrap();
            is_refused_without_memory(world, "rank 1 could not make", || make(world));
        });
    }
}

/// `make` fails on both ranks while rank 1 has 50 MB left, and not afterwards; rank 0 hears what that rank `could_not`.
fn is_refused_without_memory(
    world: &World,
    could_not: &str,
    mut make: impl FnMut() -> adasum::Result<()>,
) {
    let (free, _) = world.device().memory().unwrap().unwrap();
    let take = || Buffer::new(world.device(), free - (50 << 20)).unwrap();
    let held = (world.rank() == 1).then(take);
    let error = make().unwrap_err();
    let (kind, word) = match world.rank() {
        0 => (ErrorKind::Mismatch, could_not),
        _ => (ErrorKind::OutOfMemory, "memory"),
    };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(word), "{error}");
    drop(held);
    make().unwrap();
}

/// A subset that one rank has no memory for is refused on all, and the world goes on.
#[test]
fn a_subset_without_memory_leaves_nobody_waiting() {
    in_world(2, 1, |world| {
        let counts = [25_000_000, 3];
        // What is not in order is reduced in other buffers than those of the whole list.
        let subset = [1, 0];
        for (exchange, could_not) in [
            (None, "rank 1 could not make"),
            (Some(Form::Shared), "rank 1 could not share"),
        ] {
            let options = Options {
                gradient_buffers: true,
                exchange,
                ..Options::default()
            };
            let mut reducer = with(world, &counts, &options);
            // What there is stays as it is.
            reducer.prepare_some(&[1]).unwrap();
            is_refused_without_memory(world, could_not, || reducer.prepare_some(&subset));
            let spans = upload(world.device(), &inputs(world, &counts));
            let stream = Stream::new(world.device()).unwrap();
            for tensors in [&[1][..], &subset] {
                let gradients: Vec<Span> = tensors.iter().map(|&i| spans[i].clone()).collect();
                reducer.reduce_some(tensors, &gradients, &stream).unwrap();
                reducer
                    .synchronize(&stream, Duration::from_secs(60))
                    .unwrap();
            }
        }
    });
}

/// A wait for one stream does not wait for what another one of the caller's still needs of other ranks.
#[test]
fn a_wait_for_a_stream_is_for_that_stream() {
    const LONG: Duration = Duration::from_secs(60);
    let waited = Barrier::new(2);
    in_world(2, 1, |world| {
        let options = Options {
            bucket_bytes: 20_000,
            ..Options::default()
        };
        let counts = [5000, 5000];
        let mut reducer = with(world, &counts, &options);
        let streams = [(); 2].map(|()| Stream::new(world.device()).unwrap());
        let spans = streams
            .each_ref()
            .map(|_| upload(world.device(), &inputs(world, &counts)));
        reducer.reduce(&spans[0], &streams[0]).unwrap();
        if world.rank() == 0 {
            reducer.reduce(&spans[1], &streams[1]).unwrap();
        }
        reducer.synchronize(&streams[0], LONG).unwrap();
        // Only now does the other rank come to the second reduction.
        waited.wait();
        if world.rank() == 1 {
            reducer.reduce(&spans[1], &streams[1]).unwrap();
        }
        reducer.synchronize(&streams[1], LONG).unwrap();
        assert_eq!(download(&spans[0]), download(&spans[1]));
    });
}

/// New addresses in every step are taken up without a wait: the first rank has enqueued all steps before others begin.
#[test]
fn addresses_may_change_from_step_to_step() {
    const STEPS: usize = 40;
    let all_enqueued = OnceLock::new();
    let results = in_world(4, 1, |world| {
        let mut reducer = with(world, &[5000, 3], &Options::default());
        let stream = Stream::new(world.device()).unwrap();
        let tensors: Vec<_> = (0..STEPS)
            .map(|_| upload(world.device(), &inputs(world, &[5000, 3])))
            .collect();
        let start = Instant::now();
        while world.rank() > 0 && all_enqueued.get().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "rank 0 waits");
            std::thread::sleep(Duration::from_millis(1));
        }
        for spans in &tensors {
            reducer.reduce(spans, &stream).unwrap();
        }
        all_enqueued.get_or_init(|| ());
        reducer
            .synchronize(&stream, Duration::from_secs(60))
            .unwrap();
        tensors
            .iter()
            .map(|spans| download(spans))
            .collect::<Vec<_>>()
    });
    for rank in &results {
        assert!(rank.iter().all(|step| *step == results[0][0]));
    }
}

/// All tensors one behind the other in one allocation, from byte `start` on.
fn one_buffer(device: &Device, tensors: &[Vec<f32>], start: usize) -> Vec<Span> {
    let bytes: usize = tensors.iter().map(|tensor| 4 * tensor.len()).sum();
    let buffer = Buffer::zeroed(device, start + bytes).unwrap().span();
    let mut at = start;
    tensors
        .iter()
        .map(|tensor| {
            let span = buffer.slice(at..at + 4 * tensor.len()).unwrap();
            at += span.len();
            span.write(tensor).unwrap();
            span
        })
        .collect()
}

#[test]
fn the_result_does_not_depend_on_pipeline_alignment_or_place() {
    let results = in_world(4, 2, |world| {
        let inputs = inputs(world, &COUNTS);
        let run = |bucket_bytes, pipeline_depth, place: Option<usize>| {
            let options = Options {
                bucket_bytes,
                pipeline_depth,
                barrier: pipeline_depth == 2,
                ..Options::default()
            };
            let mut reducer = with(world, &COUNTS, &options);
            match place {
                None => reduce(&mut reducer, world, &inputs).0,
                Some(start) => {
                    let spans = one_buffer(world.device(), &inputs, start);
                    let stream = Stream::new(world.device()).unwrap();
                    reducer.reduce(&spans, &stream).unwrap();
                    stream.synchronize().unwrap();
                    download(&spans)
                }
            }
        };
        let mut results = Vec::new();
        for bytes in [1, 250_000, 500_000, 25 << 20] {
            let first = run(bytes, 1, None);
            assert_eq!(first, run(bytes, 2, None), "{bytes} bytes, depth 2");
            assert_eq!(
                first,
                run(bytes, 4, Some(4)),
                "{bytes} bytes, depth 4, odd place"
            );
            results.push(first);
        }
        results
    });
    // Between bucket layouts: one unit in the last place of the tensor's largest element.
    for layouts in &results {
        assert_eq!(layouts, &results[0]);
        for layout in &layouts[1..] {
            for (one, other) in layouts[0].iter().zip(layout) {
                let largest = one.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
                let ulp = largest * f32::EPSILON;
                assert!(one.iter().zip(other).all(|(a, b)| (a - b).abs() <= ulp));
            }
        }
    }
}

/// With fp32 on the way a 16-bit tensor is the fp32 result, rounded once.
#[test]
fn fp32_on_the_wire_rounds_once() {
    let results = in_world(4, 2, |world| {
        for dtype in [DType::F16, DType::BF16] {
            let tensor = &inputs(world, &[9000])[0];
            let options = Options {
                wire: Wire::F32,
                scale: 0.5,
                ..Options::default()
            };
            let specs = [TensorSpec::new("t", 9000, dtype)];
            let mut narrow = GradientReducer::new(world, &specs, &options).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let span = put_as(world.device(), tensor, dtype);
            let halved: Vec<f32> = get_as(&span, dtype).iter().map(|x| 0.5 * x).collect();
            narrow.reduce(std::slice::from_ref(&span), &stream).unwrap();
            stream.synchronize().unwrap();
            let mut wide = with(world, &[9000], &Options::default());
            let expected = reduce(&mut wide, world, &[halved]).0;
            let rounded = get_as(&put_as(world.device(), &expected[0], dtype), dtype);
            assert_eq!(get_as(&span, dtype), rounded, "{dtype:?}");
        }
    });
    assert_eq!(results.len(), 8);
}

#[test]
fn several_reducers_and_streams_share_a_world() {
    in_world(2, 2, |world| {
        let mut first = with(world, &COUNTS[..3], &Options::default());
        let mut second = with(world, &COUNTS[3..], &Options::default());
        let (a, b) = (inputs(world, &COUNTS[..3]), inputs(world, &COUNTS[3..]));
        let expected = (
            reduce(&mut first, world, &a).0,
            reduce(&mut second, world, &b).0,
        );
        let streams = [0, 1].map(|_| Stream::new(world.device()).unwrap());
        let spans = (upload(world.device(), &a), upload(world.device(), &b));
        first.reduce(&spans.0, &streams[0]).unwrap();
        second.reduce(&spans.1, &streams[1]).unwrap();
        streams[1].synchronize().unwrap();
        streams[0].synchronize().unwrap();
        assert_eq!((download(&spans.0), download(&spans.1)), expected);
    });
}

/// Waits for all when it is dropped, so that whoever panics keeps nobody waiting.
struct WithAll<'a>(&'a Barrier);

impl Drop for WithAll<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Ranks as threads, each with its device and the root info of all.
pub(crate) fn ranks<T: Send>(
    size: u32,
    body: impl Fn(u32, Device, &RootInfo) -> T + Sync,
) -> Vec<T> {
    // The lock that worlds of other tests take.
    in_world(1, 1, |_| {
        mock_environment();
        let root = OnceLock::new();
        let barrier = Barrier::new(size as usize);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..size)
                .map(|rank| {
                    let (root, body, barrier) = (&root, &body, &barrier);
                    scope.spawn(move || {
                        let _end = WithAll(barrier);
                        let device = Device::open(i32::try_from(rank).unwrap() + 1).unwrap();
                        let root = root.get_or_init(|| RootInfo::new(&device).unwrap());
                        body(rank, device, root)
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        })
    })
    .remove(0)
}

#[test]
fn servers_are_found_by_the_keys_of_hosts() {
    const TIME: Duration = Duration::from_secs(60);
    let shape = |keys: &'static [&'static str]| {
        ranks(keys.len() as u32, |rank, device, root| {
            let size = keys.len() as u32;
            let key = keys[rank as usize];
            World::from_root_info_by_host(device, root, size, rank, key, TIME)
                .map(|world| (world.servers(), world.locals()))
        })
    };
    for found in shape(&["n0", "n0", "n1", "n1"]) {
        assert_eq!(found.unwrap(), (2, 2));
    }
    for found in shape(&["n0", "n1", "n0"]) {
        let error = found.unwrap_err().to_string();
        assert!(error.contains("rank 1 on \"n1\""), "{error}");
    }
}

/// Events that are recorded again and again before they complete must not look like a stall.
#[test]
fn a_host_that_is_far_ahead_is_no_stall() {
    const STEPS: u32 = 300;
    let run = |steps: u32, stall_timeout: Duration| {
        let seconds = in_world(4, 1, |world| {
            let options = Options {
                stall_timeout,
                ..Options::default()
            };
            let mut reducer = with(world, &COUNTS, &options);
            let stream = Stream::new(world.device()).unwrap();
            let spans = upload(world.device(), &inputs(world, &COUNTS));
            let start = Instant::now();
            for _ in 0..steps {
                reducer.reduce(&spans, &stream).unwrap();
            }
            reducer
                .synchronize(&stream, Duration::from_secs(300))
                .unwrap();
            start.elapsed()
        });
        seconds[0]
    };
    // The limit is far above what a step takes on this machine now, and far below what all of them take.
    let time = run(STEPS, Duration::from_secs(100));
    let limit = time.max(Duration::from_secs(3));
    run(
        STEPS * (3 * limit).div_duration_f32(time).ceil() as u32,
        limit,
    );
}

/// A rank that never makes its reducer holds the others in a call of HCCL, which builds links: the watchdog ends it.
#[test]
fn a_call_of_the_host_that_waits_for_a_peer_ends_in_time() {
    let failed = Tally::default();
    let errors = ranks(3, |rank, device, root| {
        let world = World::from_root_info(device, root, 3, rank, 1).unwrap();
        let options = Options {
            create_timeout: Duration::from_millis(500),
            ..Options::default()
        };
        let start = Instant::now();
        let error = match rank {
            1 => None,
            _ => {
                let made = GradientReducer::new(&world, &specs(&[5000]), &options);
                let error = made.map(drop).unwrap_err();
                failed.come();
                Some(error)
            }
        };
        assert!(start.elapsed() < Duration::from_secs(20));
        // Nobody leaves before both have found it out.
        failed.wait_for(2);
        world.finish(Duration::from_secs(20)).unwrap();
        error
    });
    for rank in [0, 2] {
        let text = errors[rank].as_ref().unwrap().to_string();
        let other = 2 - rank;
        let missing = if rank < other { "[1, 2]" } else { "[0, 1]" };
        assert!(
            text.contains("gathering from all ranks") && text.contains(missing),
            "{text}"
        );
    }
}

fn hash(tensors: &[Vec<f32>]) -> u64 {
    let bits = tensors.iter().flatten().map(|x| u64::from(x.to_bits()));
    bits.fold(0, |hash: u64, bits| {
        hash.rotate_left(5)
            .wrapping_add(bits)
            .wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// A rank of a job of processes prints a hash of its results.
#[test]
#[ignore = "in processes of their own, started by another test"]
fn hashed_results_of_a_process() {
    let world = World::from_cluster(&Cluster::from_env().unwrap()).unwrap();
    let options = Options {
        exchange: std::env::var("EXCHANGE_OF_THE_TEST")
            .ok()
            .map(|name| Form::named(&name).unwrap()),
        bucket_bytes: 300_000,
        ..Options::default()
    };
    let mut reducer = with(&world, &COUNTS, &options);
    for _ in 0..2 {
        let result = reduce(&mut reducer, &world, &inputs(&world, &COUNTS)).0;
        println!("\nhash {:016x}", hash(&result));
    }
    drop(reducer);
    world.finish(Duration::from_secs(60)).unwrap();
}

/// Processes on two servers read each other's memory: by handles of the supernode on A3, by keys of the machine on others
/// (`program::bench::ranks_of_a_supernode_share_memory_by_handles`). The result has the bits that messages give.
#[test]
fn memory_that_servers_share_gives_the_bits_of_messages() {
    let hashes = |soc: &str, exchange: Option<&str>| {
        let output = adasum_run(&["launch", "-n", "6", "--servers", "2", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["library::execution::hashed_results_of_a_process", "--exact"])
            .args(["--ignored", "--nocapture"])
            .env("ASCEND_MOCK_SOC", soc)
            .envs(exchange.map(|exchange| ("EXCHANGE_OF_THE_TEST", exchange)))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let hashes = text.lines().filter_map(|line| line.split("hash ").nth(1));
        let hashes: Vec<String> = hashes.map(str::to_owned).collect();
        assert_eq!(hashes.len(), 12, "{text}");
        hashes
    };
    let messages = hashes("Ascend910B1", None);
    assert!(messages.iter().all(|hash| *hash == messages[0]));
    for soc in ["Ascend910_9391", "Ascend910B1"] {
        assert_eq!(hashes(soc, Some("shared")), messages, "{soc}");
    }
}

/// A rank that does not come: the others say whom they wait for, in time; everything after fails with the same; and the
/// processes join a new world.
#[test]
fn a_stall_is_an_error_that_says_what_is_missing_and_a_new_world_works() {
    let second = OnceLock::new();
    let failed = Tally::default();
    let errors = ranks(4, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 4, rank, 1).unwrap();
        let options = Options {
            stall_timeout: Duration::from_millis(400),
            ..Options::default()
        };
        let mut reducer = with(&world, &[5000], &options);
        let stream = Stream::new(&device).unwrap();
        let spans = upload(&device, &inputs(&world, &[5000]));
        let mut errors = Vec::new();
        if rank != 2 {
            let start = Instant::now();
            let mut step = || {
                reducer.reduce(&spans, &stream)?;
                reducer.synchronize(&stream, Duration::from_secs(60))
            };
            errors.push(step().unwrap_err());
            assert!(start.elapsed() < Duration::from_secs(20));
            errors.push(step().unwrap_err());
            errors.push(reducer.nonfinite().unwrap_err());
            failed.come();
        } else {
            failed.wait_for(3);
        }
        drop(reducer);
        world.finish(Duration::from_secs(20)).unwrap();

        let root = second.get_or_init(|| RootInfo::new(&device).unwrap());
        let world = World::from_root_info(device, root, 4, rank, 1).unwrap();
        let mut reducer = with(&world, &[5000], &Options::default());
        let ones = vec![vec![1.0_f32; 5000]];
        assert_eq!(reduce(&mut reducer, &world, &ones).0, ones);
        drop(reducer);
        world.finish(Duration::from_secs(60)).unwrap();
        errors
    });
    for (rank, errors) in errors.iter().enumerate().filter(|(rank, _)| *rank != 2) {
        let text = errors[0].to_string();
        assert!(text.contains(&format!("rank {rank}:")), "{text}");
        for later in &errors[1..] {
            assert_eq!(later.kind(), ErrorKind::Poisoned);
            assert!(later.to_string().contains(&text), "{later}\n{text}");
        }
    }
    // The first to notice says what it waits for; others may hear of that one's failure before their own time is over.
    let first: Vec<String> = errors
        .iter()
        .filter_map(|errors| Some(errors.first()?.to_string()))
        .collect();
    let stalled = |text: &&String| text.contains("nothing moved") && text.contains("round");
    let waits = first.iter().find(stalled);
    assert!(
        waits.is_some_and(|text| text.contains("ranks [")),
        "{first:?}"
    );
}
