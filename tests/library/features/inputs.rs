//! What is reduced: sums of micro-steps, gradients reduced before, weighed or vanishing.

use super::{COUNTS, assert_adasum, download, gradients, reduced, specs, upload, wide};
use crate::support::oracle;
use crate::support::{in_world, rounded};
use adasum::ErrorKind;
use adasum::ascend::Stream;
use adasum::reduce::{
    DType, GradientAccumulator, GradientReducer, InServer, Options, Reduction, Wire,
};

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
