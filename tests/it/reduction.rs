//! The reduction against a double-precision oracle, over worlds of threads.

use crate::oracle;
use crate::support::{get_as, in_world, noise, put_as, reduce, reducer, rounded, specs, upload};
use adasum::ErrorKind;
use adasum::ascend::Stream;
use adasum::reduce::{DType, GradientReducer, Options, Reduction, TensorSpec, World};

const COUNTS: [usize; 6] = [1, 2, 3, 7, 257, 100_003];

/// A family of gradients: the value of one element on one rank.
struct Kind {
    name: &'static str,
    value: fn(At) -> f32,
}

#[derive(Clone, Copy)]
struct At {
    server: u64,
    servers: u64,
    local: u64,
    tensor: u64,
    index: u64,
}

impl At {
    fn own(self) -> f32 {
        noise(&[self.server, self.local, self.tensor, self.index])
    }

    /// The same on all ranks.
    fn common(self) -> f32 {
        noise(&[77, self.tensor, self.index])
    }
}

const KINDS: [Kind; 14] = [
    Kind {
        name: "random",
        value: |at| at.own(),
    },
    Kind {
        name: "correlated",
        value: |at| at.common() + 0.5 * at.own(),
    },
    Kind {
        name: "all zero",
        value: |_| 0.0,
    },
    Kind {
        name: "one server zero",
        value: |at| if at.server == 1 { 0.0 } else { at.own() },
    },
    Kind {
        name: "one tensor zero",
        value: |at| if at.tensor == 4 { 0.0 } else { at.own() },
    },
    Kind {
        name: "identical",
        value: |at| at.common(),
    },
    Kind {
        name: "orthogonal",
        value: |at| {
            if at.index % at.servers == at.server {
                at.own()
            } else {
                0.0
            }
        },
    },
    Kind {
        name: "parallel of both signs",
        // Of lengths that leave no subtree at zero: there the rule jumps, and rounding decides.
        value: |at| {
            let length = 1.0 + 0.3 * (at.server * at.server) as f32;
            at.common() * if at.server % 3 == 1 { -length } else { length }
        },
    },
    Kind {
        name: "opposite",
        value: |at| at.common() * if at.server % 2 == 1 { -1.0 } else { 1.0 },
    },
    Kind {
        name: "huge",
        value: |at| 1e30 * at.own(),
    },
    Kind {
        name: "tiny",
        value: |at| 1e-30 * at.own(),
    },
    Kind {
        name: "huge and tiny servers",
        value: |at| at.own() * if at.server % 2 == 0 { 1e30 } else { 1e-30 },
    },
    Kind {
        name: "huge and tiny tensors",
        value: |at| at.own() * if at.tensor % 2 == 0 { 1e30 } else { 1e-30 },
    },
    Kind {
        name: "huge and tiny units",
        value: |at| {
            at.own()
                * if at.index / 4096 % 2 == 0 {
                    1e30
                } else {
                    1e-30
                }
        },
    },
];

fn gradients(kind: &Kind, servers: u32, locals: u32, rank: u32) -> Vec<Vec<f32>> {
    (0..)
        .zip(COUNTS)
        .map(|(tensor, count)| {
            (0..count as u64)
                .map(|index| {
                    (kind.value)(At {
                        server: u64::from(rank / locals),
                        servers: u64::from(servers),
                        local: u64::from(rank % locals),
                        tensor,
                        index,
                    })
                })
                .collect()
        })
        .collect()
}

/// Kinds whose values fit fp16 come first.
const KINDS_OF_FP16: usize = 9;

/// One world and how it reduces.
#[derive(Debug, Clone, Copy)]
struct Setup {
    servers: u32,
    locals: u32,
    radix: u32,
    dtype: DType,
}

impl Setup {
    fn kinds(self) -> &'static [Kind] {
        match self.dtype {
            DType::F16 => &KINDS[..KINDS_OF_FP16],
            DType::F32 | DType::BF16 => &KINDS,
        }
    }

    fn bounds(self) -> oracle::Bounds {
        match self.dtype {
            DType::F32 => oracle::FP32,
            DType::F16 => oracle::FP16,
            DType::BF16 => oracle::BF16,
        }
    }

    fn gradients(self, kind: &Kind, rank: u32) -> Vec<Vec<f32>> {
        gradients(kind, self.servers, self.locals, rank)
            .into_iter()
            .map(|tensor| tensor.into_iter().map(|x| rounded(x, self.dtype)).collect())
            .collect()
    }

    /// All kinds on this rank: the result of each, and a hash of its bits.
    fn run(self, world: &World) -> Vec<(u64, Option<Vec<Vec<f32>>>)> {
        let tensors: Vec<TensorSpec> = (0..)
            .zip(COUNTS)
            .map(|(i, count)| TensorSpec::new(format!("t{i}"), count as u64, self.dtype))
            .collect();
        let options = Options {
            radix: self.radix,
            ..Options::default()
        };
        let mut reducer = GradientReducer::new(world, &tensors, &options).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let reduce_kind = |kind: &Kind| {
            let inputs = self.gradients(kind, world.rank());
            let spans: Vec<_> = inputs
                .iter()
                .map(|values| put_as(world.device(), values, self.dtype))
                .collect();
            reducer.reduce(&spans, &stream).unwrap();
            stream.synchronize().unwrap();
            let flags = reducer.nonfinite().unwrap();
            assert_eq!(flags, [false; COUNTS.len()], "{self:?}, {}", kind.name);
            let out: Vec<Vec<f32>> = spans.iter().map(|span| get_as(span, self.dtype)).collect();
            // The ranks are compared by their bits; one copy for the oracle is enough.
            let bits: Vec<u32> = out.iter().flatten().map(|x| x.to_bits()).collect();
            (hash(&bits), (world.rank() == 0).then_some(out))
        };
        self.kinds().iter().map(reduce_kind).collect()
    }
}

/// Runs all kinds on one world and holds every rank's result against the oracle.
fn against_oracle(setup: Setup) {
    let results = in_world(setup.servers, setup.locals, |world| setup.run(world));
    for (number, kind) in setup.kinds().iter().enumerate() {
        let at = format!("{setup:?}, {}", kind.name);
        for (rank, result) in results.iter().enumerate() {
            assert_eq!(
                result[number].0, results[0][number].0,
                "{at}: rank {rank} differs from rank 0"
            );
        }
        let inputs: Vec<_> = (0..setup.servers * setup.locals)
            .map(|rank| setup.gradients(kind, rank))
            .collect();
        let out = results[0][number].1.as_ref().unwrap();
        for tensor in 0..COUNTS.len() {
            let means: Vec<Vec<f64>> = inputs
                .chunks(setup.locals as usize)
                .map(|server| {
                    let ranks: Vec<&[f32]> =
                        server.iter().map(|rank| rank[tensor].as_slice()).collect();
                    oracle::mean(&ranks)
                })
                .collect();
            let truth = oracle::adasum(&means);
            let error = oracle::error(&out[tensor], &truth, &means, setup.bounds());
            assert!(
                error <= 1.0,
                "{at}: tensor {tensor} has {error} times the allowed error"
            );
        }
    }
}

/// fp32 in rounds of two.
fn pairwise(servers: u32, locals: u32) {
    against_oracle(Setup {
        servers,
        locals,
        radix: 2,
        dtype: DType::F32,
    });
}

fn hash(bits: &[u32]) -> u64 {
    bits.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &word| {
        (hash ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[test]
fn two_servers_of_1() {
    pairwise(2, 1);
}

#[test]
fn two_servers_of_2() {
    pairwise(2, 2);
}

#[test]
fn two_servers_of_8() {
    pairwise(2, 8);
}

#[test]
fn four_servers_of_1() {
    pairwise(4, 1);
}

#[test]
fn four_servers_of_2() {
    pairwise(4, 2);
}

#[test]
fn four_servers_of_8() {
    pairwise(4, 8);
}

#[test]
fn eight_servers_of_1() {
    pairwise(8, 1);
}

#[test]
fn eight_servers_of_2() {
    pairwise(8, 2);
}

#[test]
fn eight_servers_of_8() {
    pairwise(8, 8);
}

#[test]
fn sixteen_servers_of_1() {
    pairwise(16, 1);
}

#[test]
fn sixteen_servers_of_2() {
    pairwise(16, 2);
}

#[test]
fn sixteen_servers_of_8() {
    pairwise(16, 8);
}

/// Numbers of servers that are not powers of two: odd subtrees, uneven merges, own data from a neighbour.
#[test]
fn three_servers_of_2() {
    pairwise(3, 2);
}

#[test]
fn five_servers_of_1() {
    pairwise(5, 1);
}

#[test]
fn six_servers_of_2() {
    pairwise(6, 2);
}

#[test]
fn seven_servers_of_1() {
    pairwise(7, 1);
}

#[test]
fn eleven_servers_of_1() {
    pairwise(11, 1);
}

#[test]
fn twelve_servers_of_1() {
    pairwise(12, 1);
}

#[test]
fn every_radix_in_fp32() {
    for (servers, locals, radix) in [
        (3, 1, 3),
        (4, 2, 4),
        (5, 1, 8),
        (6, 1, 6),
        (7, 1, 7),
        (8, 1, 4),
        (8, 2, 8),
        (12, 1, 4),
        (16, 1, 8),
        (11, 1, 4),
        (13, 1, 8),
    ] {
        against_oracle(Setup {
            servers,
            locals,
            radix,
            dtype: DType::F32,
        });
    }
}

#[test]
fn sixteen_bit_types() {
    for dtype in [DType::F16, DType::BF16] {
        for (servers, locals, radix) in [(2, 1, 2), (4, 2, 2), (4, 1, 4), (6, 2, 8), (8, 1, 8)] {
            against_oracle(Setup {
                servers,
                locals,
                radix,
                dtype,
            });
        }
    }
}

/// Tensors of all types in one call, each as if it were alone.
#[test]
fn types_mix_in_one_call() {
    const TYPES: [DType; 5] = [DType::F16, DType::F32, DType::BF16, DType::F32, DType::F16];
    let specs = |indices: &[usize]| -> Vec<TensorSpec> {
        indices
            .iter()
            .map(|&i| TensorSpec::new(format!("t{i}"), 5000, TYPES[i]))
            .collect()
    };
    let reduced = |world: &World, indices: &[usize]| -> Vec<Vec<f32>> {
        let mut reducer =
            GradientReducer::new(world, &specs(indices), &Options::default()).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let spans: Vec<_> = indices
            .iter()
            .map(|&i| {
                let key = |e| [u64::from(world.rank()), i as u64, e];
                let values: Vec<f32> = (0..5000).map(|e| noise(&key(e))).collect();
                put_as(world.device(), &values, TYPES[i])
            })
            .collect();
        reducer.reduce(&spans, &stream).unwrap();
        stream.synchronize().unwrap();
        let outs = indices.iter().zip(&spans);
        outs.map(|(&i, span)| get_as(span, TYPES[i])).collect()
    };
    in_world(4, 1, |world| {
        let together = reduced(world, &[0, 1, 2, 3, 4]);
        for (i, both) in together.iter().enumerate() {
            assert_eq!(*both, reduced(world, &[i])[0], "tensor {i}");
        }
    });
}

/// A mean of more vectors than one launch takes, with the own one in every place.
#[test]
fn two_servers_of_11() {
    pairwise(2, 11);
}

#[test]
fn identical_gradients_come_back_bit_for_bit() {
    let results = in_world(8, 1, |world| {
        let inputs = gradients(&KINDS[5], 8, 1, world.rank());
        let mut reducer = reducer(world, &COUNTS);
        (inputs.clone(), reduce(&mut reducer, world, &inputs).0)
    });
    for (inputs, out) in results {
        assert_eq!(inputs, out);
    }
}

#[test]
fn the_result_is_the_same_from_run_to_run_and_step_to_step() {
    let run = || {
        in_world(4, 2, |world| {
            let inputs = gradients(&KINDS[0], 4, 2, world.rank());
            let mut reducer = reducer(world, &COUNTS);
            let first = reduce(&mut reducer, world, &inputs).0;
            assert_eq!(first, reduce(&mut reducer, world, &inputs).0);
            first
        })
    };
    assert_eq!(run(), run());
}

/// A tensor reduces to the same bits alone and among others: coefficients are its own.
#[test]
fn the_result_does_not_depend_on_the_bucket() {
    let results = in_world(4, 1, |world| {
        let inputs = gradients(&KINDS[1], 4, 1, world.rank());
        let mut together = reducer(world, &COUNTS);
        let all = reduce(&mut together, world, &inputs).0;
        let mut alone = reducer(world, &COUNTS[5..]);
        let one = reduce(&mut alone, world, &inputs[5..]).0;
        (all[5].clone(), one[0].clone())
    });
    for (all, one) in results {
        let ulp = largest(&all) * f32::EPSILON;
        assert!(all.iter().zip(&one).all(|(a, b)| (a - b).abs() <= ulp));
    }
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |largest, x| largest.max(x.abs()))
}

#[test]
fn the_mean_is_the_mean() {
    let options = Options {
        reduction: Reduction::Mean,
        ..Options::default()
    };
    for (servers, locals) in [(4, 2), (1, 3), (5, 2), (7, 1)] {
        let results = in_world(servers, locals, |world| {
            let inputs = gradients(&KINDS[0], servers, locals, world.rank());
            let mut reducer = GradientReducer::new(world, &specs(&COUNTS), &options).unwrap();
            reduce(&mut reducer, world, &inputs).0
        });
        let inputs: Vec<_> = (0..servers * locals)
            .map(|rank| gradients(&KINDS[0], servers, locals, rank))
            .collect();
        for out in &results {
            for tensor in 0..COUNTS.len() {
                let ranks: Vec<&[f32]> =
                    inputs.iter().map(|rank| rank[tensor].as_slice()).collect();
                let inputs: Vec<Vec<f64>> =
                    ranks.iter().map(|rank| oracle::mean(&[rank])).collect();
                let error = oracle::error_fp32(&out[tensor], &oracle::mean(&ranks), &inputs);
                assert!(
                    error <= 1.0,
                    "{servers} x {locals}, tensor {tensor}: {error}"
                );
            }
        }
    }
}

/// Whole numbers, so that every right order of the sum gives the same bits.
#[test]
fn the_sum_is_the_sum() {
    let options = Options {
        reduction: Reduction::Sum,
        ..Options::default()
    };
    for (servers, locals) in [(4, 2), (1, 3), (5, 2), (7, 1), (1, 11)] {
        let inputs = |rank| -> Vec<Vec<f32>> {
            let whole = |tensor: Vec<f32>| tensor.iter().map(|x| (1000.0 * x).round()).collect();
            let tensors = gradients(&KINDS[0], servers, locals, rank);
            tensors.into_iter().map(whole).collect()
        };
        let results = in_world(servers, locals, |world| {
            let mut reducer = GradientReducer::new(world, &specs(&COUNTS), &options).unwrap();
            reduce(&mut reducer, world, &inputs(world.rank())).0
        });
        let mut sum = inputs(0);
        for rank in 1..servers * locals {
            for (x, y) in sum.iter_mut().flatten().zip(inputs(rank).iter().flatten()) {
                *x += y;
            }
        }
        for out in &results {
            assert_eq!(out, &sum, "{servers} x {locals}");
        }
    }
}

#[test]
fn a_nan_or_infinity_on_one_rank_is_seen_by_all_and_stays_in_its_tensor() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let results = in_world(4, 2, |world| {
            let mut inputs = gradients(&KINDS[0], 4, 2, world.rank());
            let clean = inputs.clone();
            if world.rank() == 5 {
                inputs[4][200] = bad;
            }
            let mut reducer = reducer(world, &COUNTS);
            let expected = reduce(&mut reducer, world, &clean).0;
            (expected, reduce(&mut reducer, world, &inputs))
        });
        for (expected, (out, flags)) in results {
            assert_eq!(flags, Some(vec![false, false, false, false, true, false]));
            for tensor in 0..COUNTS.len() {
                if tensor == 4 {
                    assert!(out[4].iter().all(|x| !x.is_finite()), "{bad}");
                } else {
                    assert_eq!(out[tensor], expected[tensor], "{bad}");
                }
            }
        }
    }
}

#[test]
fn no_tensors_and_empty_tensors_are_fine() {
    let results = in_world(4, 2, |world| {
        let mut nothing = reducer(world, &[]);
        reduce(&mut nothing, world, &[]);
        let mut empty = reducer(world, &[0, 5, 0]);
        let five = vec![1.0_f32; 5];
        reduce(&mut empty, world, &[Vec::new(), five, Vec::new()]).0
    });
    for out in results {
        assert_eq!(out, [vec![], vec![1.0; 5], vec![]]);
    }
}

#[test]
fn one_rank_alone_keeps_its_gradient() {
    let results = in_world(1, 1, |world| {
        let inputs = gradients(&KINDS[0], 1, 1, 0);
        let mut reducer = reducer(world, &COUNTS);
        (inputs.clone(), reduce(&mut reducer, world, &inputs).0)
    });
    assert_eq!(results[0].0, results[0].1);
}

fn refusal(
    servers: u32,
    locals: u32,
    tensors: &[TensorSpec],
    options: &Options,
) -> Vec<adasum::Error> {
    in_world(servers, locals, |world| {
        GradientReducer::new(world, tensors, options)
            .map(|_| ())
            .unwrap_err()
    })
}

#[test]
fn wrong_options_are_refused_by_name() {
    let radix_nine = Options {
        radix: 9,
        ..Options::default()
    };
    for error in refusal(2, 1, &specs(&[4]), &radix_nine) {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("radix 9"), "{error}");
    }
    for error in refusal(1, 2, &specs(&[4]), &Options::default()) {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("allow_plain_mean"), "{error}");
    }
}

#[test]
fn wrong_gradients_are_refused_before_anything_is_sent() {
    in_world(2, 1, |world: &World| {
        let stream = Stream::new(world.device()).unwrap();
        let mut reducer = reducer(world, &[16, 32]);
        let spans = upload(world.device(), &[vec![1.0; 16], vec![1.0; 32]]);
        let mut says = |gradients: &[adasum::ascend::Span], what: &str| {
            let error = reducer.reduce(gradients, &stream).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        says(&spans[..1], "1 gradients were given for 2 tensors");
        says(&[spans[1].clone(), spans[0].clone()], "tensor \"t0\"");
        let odd = spans[1].slice(2..66).unwrap();
        says(&[odd, spans[1].clone()], "multiple of 4");
        // The reducer is still good.
        reducer.reduce(&spans, &stream).unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn ranks_that_disagree_are_named_on_all_ranks() {
    let errors = in_world(4, 1, |world| {
        let count = if world.rank() == 2 { 17 } else { 16 };
        GradientReducer::new(world, &specs(&[count]), &Options::default())
            .map(|_| ())
            .unwrap_err()
    });
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains("[2]"), "{error}");
    }
}

/// A rank that leaves: the others' wait fails and says who is missing, it does not succeed with wrong data.
#[test]
fn a_peer_that_leaves_is_an_error_where_the_result_is_awaited() {
    let errors = in_world(2, 1, |world| {
        let mut reducer = reducer(world, &[1000]);
        if world.rank() == 1 {
            return None;
        }
        let stream = Stream::new(world.device()).unwrap();
        let spans = upload(world.device(), &[vec![1.0; 1000]]);
        let enqueued = reducer.reduce(&spans, &stream);
        Some(
            enqueued
                .and_then(|()| stream.synchronize())
                .expect_err("rank 1 is gone"),
        )
    });
    let error = errors[0].as_ref().unwrap();
    assert!(error.vendor_code().is_some(), "{error}");
    assert!(error.to_string().contains("rank 1"), "{error}");
}
