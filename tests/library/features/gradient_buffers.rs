//! Gradients in the reducer's own buffers, which other ranks read.

use std::sync::Barrier;
use std::time::Duration;

use super::{PATIENCE, download, gradients, specs, upload};
use crate::library::execution::{counter, ranks};
use crate::support::{Tally, get_as, in_world, noise, put_as, rounded, run_alone};
use adasum::ErrorKind;
use adasum::ascend::{Buffer, Span, Stream};
use adasum::reduce::{DType, Form, GradientReducer, Options, Reduction, TensorSpec, Wire, World};

fn options() -> Options {
    Options {
        exchange: Some(Form::Shared),
        gradient_buffers: true,
        bucket_bytes: 4096,
        ..Options::default()
    }
}

#[test]
fn gradients_in_the_buffers_are_reduced_as_elsewhere() {
    in_world(4, 1, |world| {
        let stream = Stream::new(world.device()).unwrap();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let own = upload(world.device(), &gradients(world.rank()), dtype);
            let mut reducer = GradientReducer::new(world, &specs(dtype), &options()).unwrap();
            let places = reducer.gradient_buffers().unwrap();
            // A 16-bit tensor of 7 elements is sent as fp32.
            let found: Vec<bool> = places.iter().map(Option::is_some).collect();
            assert_eq!(found, [true, dtype == DType::F32, true], "{dtype:?}");
            let values = upload(world.device(), &gradients(world.rank()), dtype);
            let placed: Vec<_> = places
                .into_iter()
                .zip(values)
                .map(|(place, value)| match place {
                    Some(place) => {
                        let mut bytes = vec![0_u8; value.len()];
                        value.read(&mut bytes).unwrap();
                        place.write(&bytes).unwrap();
                        place
                    }
                    None => value,
                })
                .collect();
            // A reduction of others overwrites what is in the buffers.
            let results = [&placed, &own].map(|gradients| {
                reducer.reduce(gradients, &stream).unwrap();
                reducer.synchronize(&stream, PATIENCE).unwrap();
                download(gradients, dtype)
            });
            assert_eq!(results[0], results[1], "{dtype:?}");
        }
    });
}

/// Buckets with buffers of their own have their first and last barrier in common. The bits are those of messages, in place or copied,
/// step after step.
#[test]
fn many_buckets_give_the_bits_of_messages() {
    for (ranks, radix, pipeline_depth, reduction) in [
        (2, 2, 1, Reduction::Adasum),
        (3, 2, 4, Reduction::Adasum),
        (5, 4, 2, Reduction::Adasum),
        (8, 8, 1, Reduction::Adasum),
        (6, 2, 4, Reduction::Mean),
    ] {
        let shared = Options {
            radix,
            pipeline_depth,
            reduction,
            ..options()
        };
        let messages = Options {
            exchange: Some(Form::Batch),
            gradient_buffers: false,
            ..shared.clone()
        };
        in_world(ranks, 1, |world| {
            let stream = Stream::new(world.device()).unwrap();
            let specs = specs_of_many();
            let mut shared = GradientReducer::new(world, &specs, &shared).unwrap();
            let mut messages = GradientReducer::new(world, &specs, &messages).unwrap();
            for step in 0..4 {
                let placed: Vec<Span> = (0..)
                    .zip(shared.gradient_buffers().unwrap())
                    .map(|(tensor, place)| {
                        let values = many(world.rank(), step, tensor, &specs);
                        let elsewhere = put_as(world.device(), &values, specs[tensor].dtype);
                        // In some steps some tensors lie elsewhere on some ranks.
                        let moved = step > 1 && (tensor + world.rank() as usize).is_multiple_of(3);
                        let place = place.filter(|_| !moved);
                        place.map_or(elsewhere.clone(), |place| {
                            let mut bytes = vec![0_u8; elsewhere.len()];
                            elsewhere.read(&mut bytes).unwrap();
                            place.write(&bytes).unwrap();
                            place
                        })
                    })
                    .collect();
                let copies: Vec<Span> = (0..specs.len())
                    .map(|tensor| {
                        let values = many(world.rank(), step, tensor, &specs);
                        put_as(world.device(), &values, specs[tensor].dtype)
                    })
                    .collect();
                shared.reduce(&placed, &stream).unwrap();
                shared.synchronize(&stream, PATIENCE).unwrap();
                messages.reduce(&copies, &stream).unwrap();
                messages.synchronize(&stream, PATIENCE).unwrap();
                for (tensor, spec) in specs.iter().enumerate() {
                    let [one, other] =
                        [&placed, &copies].map(|spans| get_as(&spans[tensor], spec.dtype));
                    assert_eq!(one, other, "{ranks} ranks, step {step}, tensor {tensor}");
                }
            }
        });
    }
}

/// Tensors of several types in several buckets each, also one without elements.
fn specs_of_many() -> Vec<TensorSpec> {
    let counts = [900, 70, 1000, 3, 5000, 0, 300, 2000, 800, 64];
    (0..)
        .zip(counts)
        .map(|(tensor, count)| {
            let dtype = match tensor {
                8 | 9 => DType::BF16,
                _ => DType::F32,
            };
            TensorSpec::new(format!("t{tensor}"), count, dtype)
        })
        .collect()
}

fn many(rank: u32, step: u64, tensor: usize, specs: &[TensorSpec]) -> Vec<f32> {
    let count = specs[tensor].count;
    let key = |index| [u64::from(rank), step, tensor as u64, index];
    let values = (0..count).map(|index| noise(&key(index)));
    values
        .map(|value| rounded(value, specs[tensor].dtype))
        .collect()
}

#[test]
fn many_buckets_have_two_barriers() {
    run_alone("library::features::gradient_buffers::counted_barriers");
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_barriers() {
    const STEPS: u64 = 3;
    // Ranks, radix and rounds, in each of which a bucket gathers its records; between rounds it has a barrier.
    for (ranks, radix, rounds) in [(4, 4, 1), (4, 2, 2)] {
        for gradient_buffers in [true, false] {
            let options = Options {
                radix,
                gradient_buffers,
                pipeline_depth: 1,
                ..options()
            };
            let all = Barrier::new(ranks as usize);
            let counted = in_world(ranks, 1, |world| {
                let stream = Stream::new(world.device()).unwrap();
                let mut reducer =
                    GradientReducer::new(world, &specs(DType::F32), &options).unwrap();
                let spans = upload(world.device(), &gradients(world.rank()), DType::F32);
                all.wait();
                let before = counter("collective_calls");
                all.wait();
                for _ in 0..STEPS {
                    reducer.reduce(&spans, &stream).unwrap();
                }
                reducer.synchronize(&stream, PATIENCE).unwrap();
                all.wait();
                let calls = counter("collective_calls") - before;
                all.wait();
                calls
            });
            // 20,000 bytes, and 28 and 1,200 together.
            const BUCKETS: u64 = 2;
            let own = BUCKETS * (2 * rounds - 1);
            let barriers = if gradient_buffers { 2 } else { 2 * BUCKETS };
            assert_eq!(
                counted[0],
                STEPS * u64::from(ranks) * (own + barriers),
                "radix {radix}, {gradient_buffers}"
            );
        }
    }
}

#[test]
fn a_tensor_without_elements_may_lie_anywhere() {
    run_alone("library::features::gradient_buffers::counted_launches");
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_launches() {
    let all = Barrier::new(2);
    let counted = in_world(2, 1, |world| {
        let stream = Stream::new(world.device()).unwrap();
        let specs: Vec<TensorSpec> = [("a", 64), ("empty", 0), ("b", 64)]
            .map(|(name, count)| TensorSpec::new(name, count, DType::F32))
            .into();
        let mut reducer = GradientReducer::new(world, &specs, &options()).unwrap();
        let places: Vec<Span> = (reducer.gradient_buffers().unwrap().into_iter())
            .map(|place| place.unwrap())
            .collect();
        let empty = put_as(world.device(), &[1.0], DType::F32)
            .slice(0..0)
            .unwrap();
        let elsewhere = [places[0].clone(), empty, places[2].clone()];
        [&places[..], &elsewhere].map(|gradients| {
            all.wait();
            let before = counter("kernel_launches");
            all.wait();
            reducer.reduce(gradients, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            all.wait();
            counter("kernel_launches") - before
        })
    });
    assert_eq!(counted[0][0], counted[0][1]);
}

/// Whoever cannot leave a world yet has it as it was.
#[test]
fn a_world_in_use_is_not_left() {
    in_world(3, 1, |world| {
        let stream = Stream::new(world.device()).unwrap();
        let mut reducer = GradientReducer::new(world, &specs(DType::F32), &options()).unwrap();
        let error = world.clone().finish(PATIENCE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        let spans = upload(world.device(), &gradients(world.rank()), DType::F32);
        reducer.reduce(&spans, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        assert!(world.failure().is_none());
    });
}

/// Whoever leaves shared memory waits for all ranks. It hears who does not come, and loses nothing of its own.
#[test]
fn ranks_that_are_late_to_leave_shared_memory_are_named() {
    let left = Tally::default();
    ranks(2, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 2, rank, 1).unwrap();
        let stream = Stream::new(&device).unwrap();
        drop(GradientReducer::new(&world, &specs(DType::F32), &options()).unwrap());
        if rank == 1 {
            // Rank 0 has said that it leaves, and is gone.
            left.wait_for(1);
            world.finish(PATIENCE).ok();
            return;
        }
        let values = put_as(&device, &[1.0; 64], DType::F32);
        stream.zero(&values).unwrap();
        let error = world.finish(Duration::from_secs(1)).unwrap_err();
        left.come();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        let text = error.to_string();
        for part in ["leaving the memory that ranks share", "ranks [1]"] {
            assert!(text.contains(part), "{text}");
        }
        stream.synchronize_timeout(PATIENCE).unwrap();
        assert_eq!(get_as(&values, DType::F32), [0.0; 64]);
    });
    // What is queued behind another rank stays there.
    let late = Barrier::new(2);
    ranks(2, |rank, device, root| {
        let world = World::from_root_info(device.clone(), root, 2, rank, 1).unwrap();
        let stream = Stream::new(&device).unwrap();
        drop(GradientReducer::new(&world, &specs(DType::F32), &options()).unwrap());
        world.barrier(&stream).unwrap();
        stream.synchronize_timeout(PATIENCE).unwrap();
        if rank == 1 {
            late.wait();
            world.barrier(&stream).unwrap();
            stream.synchronize_timeout(PATIENCE).unwrap();
            late.wait();
            return;
        }
        let values = put_as(&device, &[1.0; 64], DType::F32);
        world.barrier(&stream).unwrap();
        stream.zero(&values).unwrap();
        let error = world.finish(Duration::from_millis(500)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("barrier") && text.contains("ranks [1]"),
            "{text}"
        );
        late.wait();
        stream.synchronize_timeout(PATIENCE).unwrap();
        assert_eq!(get_as(&values, DType::F32), [0.0; 64]);
        late.wait();
    });
}

/// Copies to and from the buffers would overwrite it.
#[test]
fn a_gradient_at_the_place_of_another_is_refused() {
    in_world(2, 1, |world| {
        let stream = Stream::new(world.device()).unwrap();
        let specs: Vec<TensorSpec> = ["a", "b"]
            .map(|name| TensorSpec::new(name, 64, DType::F32))
            .into();
        let mut reducer = GradientReducer::new(world, &specs, &options()).unwrap();
        let places: Vec<Span> = reducer
            .gradient_buffers()
            .unwrap()
            .into_iter()
            .flatten()
            .collect();
        let elsewhere = put_as(world.device(), &[1.0; 64], DType::F32);
        for wrong in [
            [places[1].clone(), places[0].clone()],
            [places[1].clone(), elsewhere],
        ] {
            for error in [
                reducer.reduce(&wrong, &stream).unwrap_err(),
                reducer.reduce_some(&[0, 1], &wrong, &stream).unwrap_err(),
                reducer.phases(&wrong, &stream, PATIENCE).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                assert!(error.to_string().contains("tensor \"a\""), "{error}");
            }
        }
        reducer.reduce(&places, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();

        let scattered = Options {
            scattered: true,
            ..options()
        };
        let mut reducer = GradientReducer::new(world, &specs, &scattered).unwrap();
        let places = reducer.gradient_buffers().unwrap();
        let wrong: Vec<Span> = places.into_iter().rev().flatten().collect();
        let error = reducer.collect(&wrong, &stream).unwrap_err();
        assert!(error.to_string().contains("tensor \"a\""), "{error}");
    });
}

#[test]
fn gradients_that_are_changed_on_their_way_have_no_place() {
    in_world(2, 1, |world| {
        let f32_wire = Options {
            wire: Wire::F32,
            ..options()
        };
        let reducer = GradientReducer::new(world, &specs(DType::F16), &f32_wire).unwrap();
        assert!(
            reducer
                .gradient_buffers()
                .unwrap()
                .iter()
                .all(Option::is_none)
        );
        for (scale, result_scale) in [(0.5, 1.0), (1.0, 0.5)] {
            let scaled = Options {
                scale,
                result_scale,
                ..options()
            };
            let reducer = GradientReducer::new(world, &specs(DType::F32), &scaled).unwrap();
            let error = reducer.gradient_buffers().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidState);
            assert!(error.to_string().contains("scale"), "{error}");
        }
    });
}

/// The others learn it at once, and do not wait for that rank until a limit ends them.
#[test]
fn a_rank_that_cannot_share_is_named() {
    in_world(4, 1, |world| {
        let device = world.device();
        // The communicators have their buffers.
        let _first = GradientReducer::new(world, &specs(DType::F32), &options()).unwrap();
        let (free, _) = device.memory().unwrap().unwrap();
        // Less than a page is left.
        let full = (world.rank() == 2).then(|| Buffer::new(device, free - (1 << 20)).unwrap());
        let refused = GradientReducer::new(world, &specs(DType::F32), &options());
        let refused = refused.err().unwrap().to_string();
        let expected = match full {
            Some(_) => "aclrtMalloc",
            None => "rank 2 could not share",
        };
        assert!(refused.contains(expected), "{refused}");
    });
}
