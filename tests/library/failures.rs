//! What failures leave behind: reducers that are of no more use, and reports that name ranks of the whole world.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adasum::ErrorKind;
use adasum::ascend::{Event, Stream};
use adasum::reduce::{
    DeltaForm, DeltaWeightReducer, Form, GradientReducer, InServer, Options, Placement,
    ScalarExchange, World,
};

use crate::library::execution::ranks;
use crate::support::{Tally, download, in_world, noise, specs, upload};

const PATIENCE: Duration = Duration::from_secs(60);

fn values(rank: u32) -> Vec<Vec<f32>> {
    vec![(0..3000).map(|i| noise(&[rank.into(), i])).collect()]
}

/// Whatever the messages are, those that arrive well pass, and the result is the same as without a look at them.
#[test]
fn good_messages_pass_their_checksums() {
    let plain = Options::default;
    let choices = [
        plain(),
        Options {
            scalars: ScalarExchange::Owned,
            exchange: Some(Form::Pairwise),
            ..plain()
        },
        Options {
            radix: 3,
            placement: Placement::Columns,
            ..plain()
        },
        Options {
            scattered: true,
            ..plain()
        },
        Options {
            in_server: InServer::Shards,
            ..plain()
        },
        Options {
            bucket_bytes: 4000,
            pipeline_depth: 3,
            ..plain()
        },
    ];
    in_world(3, 2, |world| {
        let counts = [700, 3000, 1, 0, 900];
        let stream = Stream::new(world.device()).unwrap();
        let inputs = |step: u64| -> Vec<Vec<f32>> {
            let rank = u64::from(world.rank());
            let value = |tensor, index| noise(&[rank, step, tensor, index]);
            let tensor = |(tensor, &count): (u64, &usize)| {
                (0..count as u64).map(|i| value(tensor, i)).collect()
            };
            (0..).zip(&counts).map(tensor).collect()
        };
        for options in &choices {
            let mut results = [false, true].map(|checksum| {
                let options = Options {
                    checksum,
                    ..options.clone()
                };
                let mut reducer = GradientReducer::new(world, &specs(&counts), &options).unwrap();
                // Two calls are compared at once, then a third.
                let spans = [0, 1, 2].map(|step| upload(world.device(), &inputs(step)));
                reducer.reduce(&spans[0], &stream).unwrap();
                reducer.reduce(&spans[1], &stream).unwrap();
                reducer.synchronize(&stream, PATIENCE).unwrap();
                reducer.reduce(&spans[2], &stream).unwrap();
                reducer.synchronize(&stream, PATIENCE).unwrap();
                spans.map(|spans| download(&spans))
            });
            let [without, with] = &mut results;
            assert!(without == with, "{options:?}");
        }
    });
}

/// A step that a rank does not end: the others' reducers are of no more use, and say why.
#[test]
fn a_delta_reducer_is_poisoned_by_a_failure() {
    for form in [DeltaForm::ServerMean, DeltaForm::Local] {
        let failed = Tally::default();
        let errors = ranks(4, |rank, device, root| {
            let world = World::from_root_info(device.clone(), root, 4, rank, 2).unwrap();
            let options = Options {
                stall_timeout: Duration::from_millis(400),
                ..Options::default()
            };
            let mut reducer =
                DeltaWeightReducer::new(&world, &specs(&[3000]), form, &options).unwrap();
            let stream = Stream::new(&device).unwrap();
            let weights = upload(&device, &values(9));
            let gradients = upload(&device, &values(rank));
            reducer.begin(&gradients, &weights, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            let mut errors = Vec::new();
            if rank != 3 {
                let step = |reducer: &mut DeltaWeightReducer| {
                    reducer.end(&weights, &stream)?;
                    reducer.synchronize(&stream, PATIENCE)
                };
                errors.push(step(&mut reducer).unwrap_err());
                // Neither the next step nor giving this one up makes it good again.
                reducer.reset();
                errors.push(reducer.begin(&gradients, &weights, &stream).unwrap_err());
                reducer.reset();
                errors.push(reducer.begin(&gradients, &weights, &stream).unwrap_err());
                errors.push(reducer.end(&weights, &stream).unwrap_err());
                errors.push(reducer.nonfinite().unwrap_err());
                failed.come();
            } else {
                failed.wait_for(3);
            }
            drop(reducer);
            world.finish(PATIENCE).unwrap();
            errors
        });
        for (rank, errors) in errors.iter().enumerate().take(3) {
            for error in &errors[1..] {
                assert_eq!(error.kind(), ErrorKind::Poisoned, "rank {rank}: {error}");
            }
        }
    }
}

/// Also in its first half, in which only the ranks of a server meet.
#[test]
fn a_delta_step_that_a_neighbour_does_not_begin_is_a_stall() {
    let done = Tally::default();
    let waited = ranks(4, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 4, rank, 2).unwrap();
        let options = Options {
            stall_timeout: Duration::from_millis(400),
            ..Options::default()
        };
        let form = DeltaForm::ServerMean;
        let mut reducer = DeltaWeightReducer::new(&world, &specs(&[3000]), form, &options).unwrap();
        let stream = Stream::new(&device).unwrap();
        let weights = upload(&device, &values(9));
        let gradients = upload(&device, &values(rank));
        let mut waited = None;
        if rank != 3 {
            let start = Instant::now();
            let begun = reducer
                .begin(&gradients, &weights, &stream)
                .and_then(|()| reducer.synchronize(&stream, PATIENCE));
            assert_eq!(begun.is_err(), rank == 2, "rank {rank}: {begun:?}");
            waited = begun.err().map(|_| start.elapsed());
            done.come();
        } else {
            done.wait_for(3);
        }
        drop(reducer);
        world.finish(PATIENCE).unwrap();
        waited
    });
    assert!(waited[2].unwrap() < PATIENCE / 2, "{waited:?}");
}

/// The forms make different parts of the world, so they are compared before anything is made.
#[test]
fn ranks_must_agree_on_the_form_of_deltas() {
    in_world(2, 2, |world| {
        let form = match world.rank() {
            3 => DeltaForm::Local,
            _ => DeltaForm::ServerMean,
        };
        let tensors = specs(&[300]);
        let made = DeltaWeightReducer::new(world, &tensors, form, &Options::default());
        let error = made.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
        assert!(error.to_string().contains("ServerMean"), "{error}");
        let form = DeltaForm::ServerMean;
        DeltaWeightReducer::new(world, &tensors, form, &Options::default()).unwrap();
    });
}

/// The stream that a host waits for need not be one that has work of the world: here it waits for one.
#[test]
fn a_stall_ends_the_wait_for_any_stream() {
    let failed = Tally::default();
    let waited = ranks(2, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 2, rank, 1).unwrap();
        let options = Options {
            stall_timeout: Duration::from_millis(400),
            ..Options::default()
        };
        let mut reducer = GradientReducer::new(&world, &specs(&[3000]), &options).unwrap();
        let [stream, behind] = [(); 2].map(|()| Stream::new(&device).unwrap());
        let event = Event::new(&device).unwrap();
        let gradients = upload(&device, &values(rank));
        let mut waited = Duration::ZERO;
        if rank == 0 {
            reducer.reduce(&gradients, &stream).unwrap();
            stream.record(&event).unwrap();
            behind.wait(&event).unwrap();
            let start = Instant::now();
            let error = reducer.synchronize(&behind, PATIENCE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            waited = start.elapsed();
            failed.come();
        } else {
            failed.wait_for(1);
        }
        drop(reducer);
        world.finish(PATIENCE).unwrap();
        waited
    });
    assert!(waited[0] < PATIENCE / 2, "{waited:?}");
}

/// A call waits where a stream's queue is full. If nothing moves there, it ends with what the watchdog has found.
#[test]
fn a_stall_ends_a_call_that_waits_for_a_place_in_the_queue() {
    const PLACES: usize = 2047;
    let failed = Tally::default();
    let calls = ranks(2, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 2, rank, 1).unwrap();
        let options = Options {
            stall_timeout: Duration::from_millis(1500),
            ..Options::default()
        };
        let mut reducer = GradientReducer::new(&world, &specs(&[3000]), &options).unwrap();
        let stream = Stream::new(&device).unwrap();
        let gradients = upload(&device, &values(rank));
        let mut calls = 0;
        if rank == 0 {
            let error = loop {
                match reducer.reduce(&gradients, &stream) {
                    Ok(()) => calls += 1,
                    Err(error) => break error,
                }
                assert!(calls < PLACES, "each call queues several tasks");
            };
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            assert!(error.to_string().contains("nothing moved"), "{error}");
            failed.come();
        } else {
            failed.wait_for(1);
        }
        drop(reducer);
        world.finish(PATIENCE).unwrap();
        calls
    });
    assert!(calls[0] > 1, "{calls:?}");
}

/// What begins while something else waits has its own limit, from its own begin.
#[test]
fn each_limit_counts_from_its_own_begin() {
    const LIMIT: Duration = Duration::from_secs(4);
    ranks(2, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 2, rank, 1).unwrap();
        let stream = Stream::new(&device).unwrap();
        let options = Options {
            create_timeout: LIMIT,
            ..Options::default()
        };
        let make = || GradientReducer::new(&world, &specs(&[3000]), &options);
        // Links are there, so that only the ranks are waited for.
        drop(make().unwrap());
        world.barrier(&stream).unwrap();
        stream.synchronize_timeout(PATIENCE).unwrap();
        // Rank 0 has waited at the barrier for longer than that limit when it comes to the reducer.
        if rank == 0 {
            world.barrier(&stream).unwrap();
            std::thread::sleep(LIMIT + LIMIT / 8);
        } else {
            std::thread::sleep(LIMIT + LIMIT / 2);
            world.barrier(&stream).unwrap();
        }
        drop(make().unwrap());
        stream.synchronize_timeout(PATIENCE).unwrap();
        world.finish(PATIENCE).unwrap();
    });
}

/// A rank finds out what it lacks before it joins the others, and can join them when it has it.
#[test]
fn a_rank_that_cannot_go_on_does_not_join() {
    ranks(2, |rank, device, root| {
        // All but one of the streams of a device: a world needs more.
        let join = || World::from_root_info(device.clone(), root, 2, rank, 1);
        if rank == 1 {
            let mut taken: Vec<_> = std::iter::from_fn(|| Stream::new(&device).ok()).collect();
            taken.pop();
            let error = join().map(drop).unwrap_err().to_string();
            assert!(error.contains("aclrtCreateStream"), "{error}");
        }
        join().unwrap().finish(PATIENCE).unwrap();
    });
}

/// The end of a part has its limit, also while another thread waits in a call for a place in a stream's queue.
#[test]
fn a_part_ends_in_time_while_a_call_waits() {
    let (told, calls, ended) = (Barrier::new(2), AtomicU64::new(0), AtomicBool::new(false));
    ranks(2, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 2, rank, 1).unwrap();
        let part = world.part(&[0, 1], 1).unwrap();
        let mut reducer =
            GradientReducer::new(&world, &specs(&[3000]), &Options::default()).unwrap();
        let stream = Stream::new(&device).unwrap();
        let gradients = upload(&device, &values(rank));
        if rank == 0 {
            std::thread::scope(|scope| {
                let queue = || {
                    while !ended.load(Ordering::SeqCst) {
                        calls.fetch_add(1, Ordering::SeqCst);
                        reducer.reduce(&gradients, &stream).unwrap();
                    }
                };
                let queue = scope.spawn(queue);
                let mut before = 0;
                while calls.load(Ordering::SeqCst) > before || before == 0 {
                    before = calls.load(Ordering::SeqCst);
                    std::thread::sleep(Duration::from_secs(1));
                }
                let start = Instant::now();
                let error = part.finish(Duration::from_secs(1)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
                assert!(error.to_string().contains("another thread"), "{error}");
                assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
                ended.store(true, Ordering::SeqCst);
                told.wait();
                queue.join().unwrap();
            });
        } else {
            told.wait();
            // The last call of the other rank was counted before it began.
            for _ in 0..calls.load(Ordering::SeqCst) {
                reducer.reduce(&gradients, &stream).unwrap();
            }
            part.finish(PATIENCE).unwrap();
        }
        reducer.synchronize(&stream, PATIENCE).unwrap();
        drop(reducer);
        world.finish(PATIENCE).unwrap();
    });
}

/// What all ranks ask together waits for one of them as long as a reduction does, not as long as a creation.
#[test]
fn figures_wait_for_a_rank_as_long_as_a_stall_takes() {
    let figures: [fn(&GradientReducer) -> adasum::Result<()>; 2] = [
        |reducer| reducer.statistics().map(drop),
        |reducer| reducer.nonfinite().map(drop),
    ];
    // Single servers have statistics; ranks of one server learn of each other's elements.
    for (locals, ask) in (1..).zip(figures) {
        let failed = Tally::default();
        let waited = ranks(2, |rank, device, root| {
            let world = World::from_root_info(device.clone(), root, 2, rank, locals).unwrap();
            let options = Options {
                stall_timeout: Duration::from_secs(2),
                create_timeout: PATIENCE,
                allow_plain_mean: true,
                ..Options::default()
            };
            let mut reducer = GradientReducer::new(&world, &specs(&[3000]), &options).unwrap();
            let stream = Stream::new(&device).unwrap();
            let gradients = upload(&device, &values(rank));
            reducer.reduce(&gradients, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            let start = Instant::now();
            let mut waited = Duration::ZERO;
            if rank == 0 {
                let error = ask(&reducer).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
                waited = start.elapsed();
                failed.come();
            } else {
                failed.wait_for(1);
            }
            drop(reducer);
            world.finish(PATIENCE).unwrap();
            waited
        });
        assert!(waited[0] < PATIENCE / 2, "{waited:?}");
    }
}

/// In a part of a world, too, ranks are called what they are in the whole.
#[test]
fn a_stall_in_a_part_names_ranks_of_the_world() {
    let done = Tally::default();
    let errors = ranks(6, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 6, rank, 1).unwrap();
        // The odd ranks: 1, 3 and 5, which are 0, 1 and 2 of their part.
        let members: Vec<u32> = (0..6).filter(|other| other % 2 == rank % 2).collect();
        let part = world.part(&members, 1).unwrap();
        let options = Options {
            stall_timeout: Duration::from_millis(400),
            ..Options::default()
        };
        let mut reducer = GradientReducer::new(&part, &specs(&[3000]), &options).unwrap();
        let stream = Stream::new(&device).unwrap();
        let spans = upload(&device, &values(rank));
        let mut step = || {
            reducer.reduce(&spans, &stream)?;
            reducer.synchronize(&stream, PATIENCE)
        };
        let error = match rank {
            5 => {
                done.wait_for(5);
                None
            }
            _ => {
                let error = step().err();
                done.come();
                error
            }
        };
        drop(reducer);
        drop(part);
        world.finish(PATIENCE).unwrap();
        error.map(|error| error.to_string())
    });
    for rank in [0, 2, 4, 5] {
        assert_eq!(errors[rank], None, "nobody was missing there");
    }
    let texts: Vec<&String> = [1, 3]
        .iter()
        .filter_map(|&rank| errors[rank].as_ref())
        .collect();
    assert_eq!(texts.len(), 2, "{errors:?}");
    let waits = texts.iter().find(|text| text.contains("nothing moved"));
    let waits = waits.unwrap_or_else(|| panic!("{texts:?}"));
    let list = waits
        .split("with ranks [")
        .nth(1)
        .unwrap()
        .split(']')
        .next()
        .unwrap();
    let named: Vec<u32> = list.split(", ").map(|rank| rank.parse().unwrap()).collect();
    assert!(named.iter().all(|rank| rank % 2 == 1), "{waits}");
    assert!(named.contains(&5) || waits.contains("rank 1:"), "{waits}");
}

/// Checksums and figures of a delta-weight reducer are those of its deltas; parts of results are of no use to it.
#[test]
fn a_delta_reducer_compares_checksums_and_has_figures() {
    in_world(3, 2, |world| {
        let options = Options {
            checksum: true,
            ..Options::default()
        };
        let tensors = specs(&[3000]);
        let form = DeltaForm::Local;
        let mut reducer = DeltaWeightReducer::new(world, &tensors, form, &options).unwrap();
        reducer.observe(true);
        let stream = Stream::new(world.device()).unwrap();
        let weights = upload(world.device(), &values(9));
        reducer.begin(&[], &weights, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        // Servers step along one line, by 1, 2 and 3 times the weights.
        let times = 1.0 - (1 + world.rank() / 2) as f32;
        let new: Vec<f32> = values(9)[0].iter().map(|x| times * x).collect();
        weights[0].write(&new).unwrap();
        reducer.end(&weights, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        let figures = reducer.statistics().unwrap().remove(0);
        assert!((figures.cosine - 1.0).abs() < 1e-6, "{figures:?}");
        assert!(
            (figures.norms[2] / figures.norms[0] - 3.0).abs() < 1e-5,
            "{figures:?}"
        );
        // ((1 + 2) / 2 + 3) / 2 against a mean of 2.
        assert!((figures.gain - 1.125).abs() < 1e-5, "{figures:?}");

        let options = Options {
            scattered: true,
            ..Options::default()
        };
        let made = DeltaWeightReducer::new(world, &tensors, form, &options).map(|_| ());
        assert!(made.unwrap_err().to_string().contains("scattered"));
    });
}
