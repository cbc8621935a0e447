//! What results do not depend on, and what they are without AdaSum, for bad values and for nothing.

use super::{COUNTS, KINDS, gradients};
use crate::support::oracle;
use crate::support::{get_as, in_world, noise, put_as, reduce, reducer, specs};
use adasum::ascend::Stream;
use adasum::reduce::{DType, GradientReducer, Options, Reduction, TensorSpec, World};

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
