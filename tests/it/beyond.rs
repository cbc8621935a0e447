//! What goes beyond one reduction of all ranks: parts of a world, votes, clipping, accumulation, rows, options.

use std::time::Duration;

use adasum::ErrorKind;
use adasum::ascend::{Buffer, Device, Span, Stream};
use adasum::reduce::{
    DType, DeltaForm, DeltaWeightReducer, GradientAccumulator, GradientReducer, InServer,
    IndexType, MeanOptions, MeanReducer, MeanTensor, NormClip, Options, OverflowVote, Reduction,
    Rows, SparseReducer, SparseSpec, TensorSpec, Wire, World,
};

use crate::engine::counter;
use crate::oracle;
use crate::support::{get_as, in_world, noise, put_as, rounded};

const PATIENCE: Duration = Duration::from_secs(60);
const COUNTS: [usize; 3] = [5000, 7, 300];

fn specs(dtype: DType) -> Vec<TensorSpec> {
    let counts = COUNTS.iter().enumerate();
    counts
        .map(|(t, &count)| TensorSpec::new(format!("t{t}"), count as u64, dtype))
        .collect()
}

fn gradient(rank: u32, tensor: usize) -> Vec<f32> {
    (0..COUNTS[tensor] as u64)
        .map(|i| {
            let (rank, tensor) = (u64::from(rank), tensor as u64);
            noise(&[tensor, i]) + noise(&[rank, tensor, i])
        })
        .collect()
}

fn gradients(rank: u32) -> Vec<Vec<f32>> {
    (0..COUNTS.len()).map(|t| gradient(rank, t)).collect()
}

fn upload(device: &Device, tensors: &[Vec<f32>], dtype: DType) -> Vec<Span> {
    tensors.iter().map(|x| put_as(device, x, dtype)).collect()
}

fn download(spans: &[Span], dtype: DType) -> Vec<Vec<f32>> {
    spans.iter().map(|span| get_as(span, dtype)).collect()
}

/// One reduction of `tensors` on this rank.
fn reduced(world: &World, tensors: &[Vec<f32>], options: &Options) -> Vec<Vec<f32>> {
    let mut reducer = GradientReducer::new(world, &specs(DType::F32), options).unwrap();
    let stream = Stream::new(world.device()).unwrap();
    let spans = upload(world.device(), tensors, DType::F32);
    reducer.reduce(&spans, &stream).unwrap();
    reducer.synchronize(&stream, PATIENCE).unwrap();
    download(&spans, DType::F32)
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// Holds a result against the AdaSum in fp64 of the means of consecutive `locals` of `inputs`.
fn assert_adasum(out: &[Vec<f32>], inputs: &[Vec<Vec<f32>>], locals: usize, what: &str) {
    for (t, out) in out.iter().enumerate() {
        let means: Vec<Vec<f64>> = inputs
            .chunks(locals)
            .map(|server| {
                let ranks: Vec<&[f32]> = server.iter().map(|rank| rank[t].as_slice()).collect();
                oracle::mean(&ranks)
            })
            .collect();
        let error = oracle::error_fp32(out, &oracle::adasum(&means), &means);
        assert!(error <= 1.0, "{what}, tensor {t}: {error}");
    }
}

#[test]
fn stages_of_a_pipeline_reduce_side_by_side() {
    let stages = [(vec![0, 1, 2, 3], 2), (vec![4, 5, 6, 7], 1)];
    let outs = in_world(2, 4, |world| {
        let (ranks, locals) = stages
            .iter()
            .find(|(ranks, _)| ranks.contains(&world.rank()))
            .unwrap();
        let stage = world.part(ranks, *locals).unwrap();
        assert_eq!(stage.size(), 4);
        assert_eq!(stage.locals(), *locals);
        assert_eq!(ranks[stage.rank() as usize], world.rank());
        let own = gradients(world.rank());
        let out = reduced(&stage, &own, &Options::default());
        // The same ranks once more, and a part of a part.
        let again = world.part(ranks, *locals).unwrap();
        assert_eq!(out, reduced(&again, &own, &Options::default()));
        let pair = [stage.rank() / 2 * 2, stage.rank() / 2 * 2 + 1];
        let half = stage.part(&pair, 1).unwrap();
        let small = reduced(&half, &own, &Options::default());
        // The world that they are parts of still works.
        reduced(world, &own, &Options::default());
        (out, small)
    });
    for (ranks, locals) in &stages {
        let inputs: Vec<_> = ranks.iter().map(|&rank| gradients(rank)).collect();
        for (index, &rank) in ranks.iter().enumerate() {
            let (out, small) = &outs[rank as usize];
            assert_eq!(*out, outs[ranks[0] as usize].0, "rank {rank}");
            assert_adasum(out, &inputs, *locals as usize, &format!("{ranks:?}"));
            let first = index / 2 * 2;
            assert_adasum(small, &inputs[first..first + 2], 1, "half a stage");
        }
    }
}

#[test]
fn wrong_parts_are_refused_by_name() {
    in_world(2, 2, |world| {
        let refused = |ranks: &[u32], locals| {
            let error = world.part(ranks, locals).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(&format!("{ranks:?}")), "{error}");
        };
        refused(&[], 1);
        refused(&[1, 0, 2, 3], 1);
        refused(&[0, 1, 2, 4], 1);
        refused(&[(world.rank() + 1) % 4], 1);
        refused(&[0, 1, 2, 3], 3);
        refused(&[0, 1, 2, 3], 0);
    });
}

#[test]
fn a_nan_or_infinity_of_one_rank_is_the_decision_of_all() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let decisions = in_world(2, 2, |world| {
            let mut vote = OverflowVote::new(world, &specs(dtype), PATIENCE).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let mut decide = |bad: Option<(u32, f32)>| {
                let mut tensors = gradients(world.rank());
                if let Some((rank, value)) = bad
                    && rank == world.rank()
                {
                    tensors[2][299] = value;
                }
                let spans = upload(world.device(), &tensors, dtype);
                vote.cast(&spans, &stream).unwrap();
                vote.overflowed(PATIENCE).unwrap()
            };
            let huge = if dtype == DType::F16 { 6.5e4 } else { 3e38 };
            [
                decide(None),
                decide(Some((3, f32::NAN))),
                decide(Some((0, f32::INFINITY))),
                decide(Some((1, huge))),
                decide(Some((2, f32::NEG_INFINITY))),
                decide(None),
            ]
        });
        for decision in decisions {
            assert_eq!(
                decision,
                [false, true, true, false, true, false],
                "{dtype:?}"
            );
        }
    }
}

#[test]
fn clipping_takes_the_norm_of_all_tensors_to_the_limit() {
    in_world(1, 1, |world| {
        let types = [DType::F32, DType::F16, DType::BF16];
        let specs: Vec<TensorSpec> = types
            .iter()
            .zip(COUNTS)
            .map(|(&dtype, count)| TensorSpec::new("t", count as u64, dtype))
            .collect();
        let stream = Stream::new(world.device()).unwrap();
        let before: Vec<Vec<f32>> = gradients(0)
            .iter()
            .zip(types)
            .map(|(x, dtype)| x.iter().map(|&x| rounded(x, dtype)).collect())
            .collect();
        let all: Vec<f64> = before.iter().flat_map(|x| wide(x)).collect();
        let norm = oracle::norm(&all);
        for factor in [0.01, 0.5, 1.01] {
            let limit = (norm * factor) as f32;
            let mut clip = NormClip::new(world, &specs, limit).unwrap();
            let spans: Vec<Span> = (0..3)
                .map(|t| put_as(world.device(), &before[t], types[t]))
                .collect();
            clip.clip(&spans, &stream).unwrap();
            stream.synchronize().unwrap();
            let found = f64::from(clip.last_norm().unwrap());
            assert!((found - norm).abs() < 1e-6 * norm, "{found} {norm}");
            for t in 0..3 {
                let out = get_as(&spans[t], types[t]);
                if factor > 1.0 {
                    assert_eq!(out, before[t]);
                    continue;
                }
                let truth: Vec<f64> = wide(&before[t]).iter().map(|x| x * factor).collect();
                let bounds = [oracle::FP32, oracle::FP16, oracle::BF16][t];
                let error = oracle::error(&out, &truth, std::slice::from_ref(&truth), bounds);
                assert!(error <= 1.0, "{factor}, tensor {t}: {error}");
            }
        }
        let mut clip = NormClip::new(world, &specs, 1.0).unwrap();
        let spans: Vec<Span> = (0..3)
            .map(|t| {
                let mut values = before[t].clone();
                if t == 1 {
                    values[3] = f32::INFINITY;
                }
                put_as(world.device(), &values, types[t])
            })
            .collect();
        clip.clip(&spans, &stream).unwrap();
        stream.synchronize().unwrap();
        assert!(clip.last_norm().unwrap().is_nan());
        for t in 0..3 {
            assert!(get_as(&spans[t], types[t]).iter().all(|x| x.is_nan()));
        }
        for wrong in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let error = NormClip::new(world, &specs, wrong).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("max_norm"), "{error}");
        }
    });
}

#[test]
fn micro_steps_add_up_in_fp32() {
    in_world(1, 1, |world| {
        let stream = Stream::new(world.device()).unwrap();
        for dtype in [DType::F32, DType::F16] {
            let mut sum = GradientAccumulator::new(world, &specs(dtype)).unwrap();
            let spans = upload(world.device(), &gradients(0), dtype);
            let error = sum.take(&spans, 1.0, &stream).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidState);
            // Twice: taking the sum empties it.
            for _ in 0..2 {
                let mut truth: Vec<Vec<f32>> = COUNTS.iter().map(|&n| vec![0.0; n]).collect();
                for step in 0..5 {
                    let micro = gradients(step);
                    for (total, x) in truth.iter_mut().zip(&micro) {
                        for (total, &x) in total.iter_mut().zip(x) {
                            *total += rounded(x, dtype);
                        }
                    }
                    let spans = upload(world.device(), &micro, dtype);
                    sum.add(&spans, &stream).unwrap();
                    stream.synchronize().unwrap();
                }
                assert_eq!(sum.steps(), 5);
                sum.take(&spans, 0.25, &stream).unwrap();
                stream.synchronize().unwrap();
                let expected: Vec<Vec<f32>> = truth
                    .iter()
                    .map(|x| x.iter().map(|&x| rounded(x * 0.25, dtype)).collect())
                    .collect();
                assert_eq!(download(&spans, dtype), expected, "{dtype:?}");
            }
        }
    });
}

/// Row numbers and rows of a rank: each says where it comes from.
fn rows_of(rank: u32, rows: u64, width: u64) -> (Vec<i32>, Vec<f32>) {
    let numbers = (0..rows).map(|row| (1000 * rank + row as u32) as i32);
    let values = (0..rows * width).map(|i| noise(&[u64::from(rank), i]));
    (numbers.collect(), values.collect())
}

fn put_rows(device: &Device, index: IndexType, numbers: &[i32]) -> Span {
    let words: Vec<u32> = match index {
        IndexType::I32 => numbers.iter().map(|&x| x as u32).collect(),
        IndexType::I64 => numbers.iter().flat_map(|&x| [x as u32, 0]).collect(),
    };
    let buffer = Buffer::new(device, (4 * words.len()).max(64)).unwrap();
    let span = buffer.span().slice(0..4 * words.len()).unwrap();
    span.write(&words).unwrap();
    span
}

fn get_rows(span: &Span, index: IndexType) -> Vec<i32> {
    let mut words = vec![0_u32; span.len() / 4];
    span.read(&mut words).unwrap();
    let step = match index {
        IndexType::I32 => 1,
        IndexType::I64 => 2,
    };
    words.iter().step_by(step).map(|&x| x as i32).collect()
}

#[test]
fn rows_of_all_ranks_come_one_after_the_other() {
    // The numbers of rows of four ranks in each call; the first only for ranks that agreed on 3.
    let calls: [(Rows, &[[u64; 4]]); 2] = [
        (Rows::Exactly(3), &[[3; 4], [3; 4]]),
        (
            Rows::UpTo(2000),
            &[[0, 1, 2000, 7], [0; 4], [5; 4], [1, 0, 0, 0]],
        ),
    ];
    for (rows, calls) in calls {
        for (dtype, index, width) in [
            (DType::F32, IndexType::I32, 5),
            (DType::F16, IndexType::I64, 3),
        ] {
            let what = format!("{rows:?} {dtype:?}");
            in_world(2, 2, |world| {
                let spec = SparseSpec {
                    name: "embedding".to_owned(),
                    width,
                    dtype,
                    index,
                    rows,
                };
                let mut reducer =
                    SparseReducer::new(world, &spec, &MeanOptions::default()).unwrap();
                let stream = Stream::new(world.device()).unwrap();
                for counts in calls {
                    let (numbers, values) =
                        rows_of(world.rank(), counts[world.rank() as usize], width);
                    let indices = put_rows(world.device(), index, &numbers);
                    let values = put_as(world.device(), &values, dtype);
                    let all = reducer.reduce(&indices, &values, &stream).unwrap();
                    stream.synchronize().unwrap();
                    let mut expected = (Vec::new(), Vec::new());
                    for (rank, &count) in (0..).zip(counts) {
                        let (numbers, values) = rows_of(rank, count, width);
                        expected.0.extend(numbers);
                        let quarter = |x: f32| rounded(rounded(x, dtype) * 0.25, dtype);
                        expected.1.extend(values.into_iter().map(quarter));
                    }
                    assert_eq!(all.rows, counts.iter().sum::<u64>(), "{what}");
                    assert_eq!(get_rows(&all.indices, index), expected.0, "{what}");
                    assert_eq!(get_as(&all.values, dtype), expected.1, "{what}");
                }
                let (numbers, values) = rows_of(0, 2001, width);
                let indices = put_rows(world.device(), index, &numbers);
                let values = put_as(world.device(), &values, dtype);
                let error = reducer.reduce(&indices, &values, &stream).unwrap_err();
                assert!(error.to_string().contains("2001 rows"), "{error}");
                let error = reducer
                    .reduce(&indices, &values.slice(0..4).unwrap(), &stream)
                    .unwrap_err();
                assert!(error.to_string().contains("same number of rows"), "{error}");
            });
        }
    }
}

#[test]
fn servers_may_be_reduced_before_or_summed() {
    let outs = in_world(2, 4, |world| {
        let plain = reduced(world, &gradients(world.rank()), &Options::default());
        let summed = reduced(
            world,
            &gradients(world.rank()),
            &Options {
                in_server: InServer::Sum,
                ..Options::default()
            },
        );
        // What all ranks of a server have in common.
        let same = gradients(100 + world.rank() / 4);
        let with = |in_server, reduction| {
            let options = Options {
                in_server,
                reduction,
                ..Options::default()
            };
            reduced(world, &same, &options)
        };
        let before = with(InServer::Reduced, Reduction::Adasum);
        let mean = with(InServer::Reduced, Reduction::Mean);
        (plain, summed, before, mean)
    });
    let inputs: Vec<_> = (0..8).map(gradients).collect();
    let servers = [gradients(100), gradients(101)];
    for (plain, summed, before, mean) in &outs {
        assert_eq!(*before, outs[0].2);
        assert_adasum(plain, &inputs, 4, "mean");
        assert_adasum(before, &servers, 1, "reduced before");
        // A sum of four is four times the mean.
        let quarter: Vec<Vec<f32>> = summed
            .iter()
            .map(|x| x.iter().map(|x| x / 4.0).collect())
            .collect();
        assert_adasum(&quarter, &inputs, 4, "sum");
        for t in 0..COUNTS.len() {
            let both: Vec<&[f32]> = servers.iter().map(|s| s[t].as_slice()).collect();
            let wide: Vec<Vec<f64>> = both.iter().map(|x| wide(x)).collect();
            let error = oracle::error_fp32(&mean[t], &oracle::mean(&both), &wide);
            assert!(error <= 1.0, "mean of servers, tensor {t}: {error}");
        }
    }
}

#[test]
fn a_tolerance_lets_vanishing_gradients_count_as_zero() {
    let input = |rank: u32| -> Vec<Vec<f32>> {
        let mut tensors = gradients(rank);
        if rank == 2 {
            tensors[1].iter_mut().for_each(|x| *x *= 1e-12);
        }
        tensors
    };
    let zeroed = |rank: u32| -> Vec<Vec<f32>> {
        let mut tensors = gradients(rank);
        if rank == 2 {
            tensors[1].fill(0.0);
        }
        tensors
    };
    for radix in [2, 4] {
        let outs = in_world(4, 1, |world| {
            let with = |zero_tol, tensors: &[Vec<f32>]| {
                let options = Options {
                    zero_tol,
                    radix,
                    ..Options::default()
                };
                reduced(world, tensors, &options)
            };
            let own = input(world.rank());
            let zero = with(0.0, &zeroed(world.rank()));
            assert_eq!(with(1e-8, &own), zero);
            assert_ne!(with(0.0, &own), zero);
            zero
        });
        let inputs: Vec<_> = (0..4).map(zeroed).collect();
        assert_adasum(&outs[0], &inputs, 1, "zero");
    }
    in_world(2, 1, |world| {
        let options = Options {
            zero_tol: 1.5,
            ..Options::default()
        };
        let error = GradientReducer::new(world, &specs(DType::F32), &options).map(|_| ());
        assert!(error.unwrap_err().to_string().contains("zero_tol 1.5"));
    });
}

#[test]
fn ranks_weigh_their_gradients_and_results_are_scaled() {
    let weight = |rank: u32| 0.25 * (rank + 1) as f32;
    let outs = in_world(4, 1, |world| {
        let options = Options {
            scale: weight(world.rank()),
            result_scale: 2.0,
            wire: Wire::F32,
            ..Options::default()
        };
        reduced(world, &gradients(world.rank()), &options)
    });
    let inputs: Vec<Vec<Vec<f32>>> = (0..4)
        .map(|rank| {
            // AdaSum is homogeneous.
            let factor = 2.0 * weight(rank);
            let scaled = |x: &Vec<f32>| x.iter().map(|x| x * factor).collect();
            gradients(rank).iter().map(scaled).collect()
        })
        .collect();
    for out in &outs {
        assert_eq!(*out, outs[0]);
        assert_adasum(out, &inputs, 1, "weighted");
    }
}

#[test]
fn scattered_results_tile_the_tensors_and_can_be_collected() {
    for (servers, locals, radix) in [(4, 2, 2), (3, 1, 3), (2, 4, 2), (5, 1, 2)] {
        let parts = in_world(servers, locals, |world| {
            let options = Options {
                radix,
                // Several buckets.
                bucket_bytes: 4096,
                ..Options::default()
            };
            let own = gradients(world.rank());
            let whole = reduced(world, &own, &options);
            let options = Options {
                scattered: true,
                ..options
            };
            let mut reducer = GradientReducer::new(world, &specs(DType::F32), &options).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let spans = upload(world.device(), &own, DType::F32);
            reducer.reduce(&spans, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            let out = download(&spans, DType::F32);
            // A sharded optimizer steps what it owns; everything else is to come from the others.
            let mut stepped: Vec<Vec<f32>> = COUNTS.iter().map(|&n| vec![f32::NAN; n]).collect();
            for part in reducer.owned() {
                let range = part.start as usize..(part.start + part.len) as usize;
                let result = &out[part.tensor][range.clone()];
                assert_eq!(result, &whole[part.tensor][range.clone()]);
                stepped[part.tensor][range].copy_from_slice(result);
            }
            let spans = upload(world.device(), &stepped, DType::F32);
            reducer.collect(&spans, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            assert_eq!(download(&spans, DType::F32), whole);
            reducer.owned()
        });
        let mut owners: Vec<Vec<u32>> = COUNTS.iter().map(|&n| vec![0; n]).collect();
        for part in parts.iter().flatten() {
            for element in part.start..part.start + part.len {
                owners[part.tensor][element as usize] += 1;
            }
        }
        assert!(owners.iter().flatten().all(|&owners| owners == 1));
    }
    in_world(2, 1, |world| {
        let mut reducer =
            GradientReducer::new(world, &specs(DType::F32), &Options::default()).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let error = reducer.collect(&[], &stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
    });
}

/// Each tensor lies in parts on the ranks of a server; its coefficients are those of the whole.
#[test]
fn parts_of_a_tensor_are_reduced_as_one() {
    for (servers, locals) in [(2, 2), (3, 4), (4, 2)] {
        let outs = in_world(servers, locals, |world| {
            let options = Options {
                in_server: InServer::Shards,
                ..Options::default()
            };
            reduced(world, &gradients(world.rank()), &options)
        });
        for t in 0..COUNTS.len() {
            let whole = |parts: &[Vec<Vec<f32>>]| -> Vec<f32> {
                parts.iter().flat_map(|part| part[t].clone()).collect()
            };
            let inputs: Vec<Vec<f64>> = (0..servers)
                .map(|server| {
                    let ranks = server * locals..(server + 1) * locals;
                    wide(&whole(&ranks.map(gradients).collect::<Vec<_>>()))
                })
                .collect();
            let truth = oracle::adasum(&inputs);
            for server in outs.chunks(locals as usize) {
                let error = oracle::error_fp32(&whole(server), &truth, &inputs);
                assert!(error <= 1.0, "{servers} x {locals}, tensor {t}: {error}");
            }
        }
    }
}

/// Counters are those of a process, so this test has one of its own.
#[test]
fn steps_of_all_reducers_wait_for_nothing_and_allocate_nothing() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "beyond::counted_steps",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "in a process of its own, started by another test"]
fn counted_steps() {
    const NAMES: [&str; 3] = [
        "host_synchronizations",
        "device_allocations",
        "host_allocations",
    ];
    let barrier = std::sync::Barrier::new(4);
    let results = in_world(2, 2, |world| {
        let stream = Stream::new(world.device()).unwrap();
        let weights = upload(world.device(), &gradients(9), DType::F32);
        let spans = upload(world.device(), &gradients(world.rank()), DType::F32);
        let specs = specs(DType::F32);
        let tensors: Vec<MeanTensor> = specs.iter().cloned().map(Into::into).collect();
        let options = Options::default();
        let mut mean = MeanReducer::new(world, &tensors, &MeanOptions::default()).unwrap();
        let form = DeltaForm::ServerMean;
        let mut delta = DeltaWeightReducer::new(world, &specs, form, &options).unwrap();
        let mut vote = OverflowVote::new(world, &specs, PATIENCE).unwrap();
        let mut clip = NormClip::new(world, &specs, 1.0).unwrap();
        let mut sum = GradientAccumulator::new(world, &specs).unwrap();
        let mut reducer = GradientReducer::new(world, &specs, &options).unwrap();
        let mut step = || {
            sum.add(&spans, &stream).unwrap();
            sum.add(&spans, &stream).unwrap();
            sum.take(&spans, 0.5, &stream).unwrap();
            vote.cast(&spans, &stream).unwrap();
            mean.reduce(&spans, &stream).unwrap();
            clip.clip(&spans, &stream).unwrap();
            delta.begin(&spans, &weights, &stream).unwrap();
            delta.end(&weights, &stream).unwrap();
            reducer.reduce_some(&[1], &spans[1..2], &stream).unwrap();
        };
        step();
        stream.synchronize().unwrap();
        barrier.wait();
        let before = NAMES.map(counter);
        barrier.wait();
        step();
        step();
        barrier.wait();
        let after = NAMES.map(counter);
        barrier.wait();
        stream.synchronize().unwrap();
        (before, after)
    });
    for (before, after) in results {
        assert_eq!(before, after, "{NAMES:?}");
    }
}
