//! Properties of the mean and the delta-weight reducers.

use std::time::Duration;

use proptest::prelude::*;

use super::{Outcome, bits, distance, gradients, holds, tolerance, wide, with_ranks, with_servers};
use crate::support::oracle::{self, norm};
use crate::support::{download, get_as, put_as, rounded, specs, upload};
use adasum::ascend::Stream;
use adasum::reduce::{
    DType, DeltaForm, DeltaWeightReducer, Fusion, MeanOptions, MeanReducer, MeanTensor, Options,
    TensorSpec, World,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The tensors of each rank, from a list of tensors with a vector for each rank.
fn by_rank(tensors: &[Vec<Vec<f32>>]) -> Vec<Outcome> {
    let ranks = tensors.first().map_or(0, Vec::len);
    let of = |rank: usize| tensors.iter().map(|tensor| tensor[rank].clone()).collect();
    (0..ranks).map(of).collect()
}

/// This rank's tensors through a mean reducer; a tensor's own fusion id where there is one.
fn mean(world: &World, inputs: &Outcome, own: &[Option<u32>], options: &MeanOptions) -> Outcome {
    let counts: Vec<usize> = inputs.iter().map(Vec::len).collect();
    let tensors: Vec<MeanTensor> = specs(&counts)
        .into_iter()
        .enumerate()
        .map(|(index, spec)| MeanTensor {
            fusion: own.get(index).copied().flatten(),
            ..spec.into()
        })
        .collect();
    let mut reducer = MeanReducer::new(world, &tensors, options).unwrap();
    let stream = Stream::new(world.device()).unwrap();
    let spans = upload(world.device(), inputs);
    reducer.reduce(&spans, &stream).unwrap();
    reducer.synchronize(&stream, PATIENCE).unwrap();
    download(&spans)
}

#[test]
fn a_mean_is_the_mean_whatever_travels_together() {
    with_servers(3, 2, |world| {
        let tensors = prop::collection::vec(gradients(6), 1..5);
        let fusion = prop_oneof![Just(Fusion::None), Just(Fusion::Split(vec![0]))];
        let own = prop::collection::vec(prop::option::of(0_u32..3), 0..5);
        holds(&(tensors, fusion, own), |(tensors, fusion, own)| {
            let inputs = by_rank(&tensors);
            let run = |fusion: Fusion, own: Vec<Option<u32>>| {
                let (inputs, options) = (
                    inputs.clone(),
                    MeanOptions {
                        fusion,
                        ..MeanOptions::default()
                    },
                );
                world.run(move |world| mean(world, &inputs[world.rank() as usize], &own, &options))
            };
            let out = run(Fusion::All, Vec::new());
            prop_assert_eq!(bits(&run(fusion, own)), bits(&out));
            for (tensor, out) in tensors.iter().zip(&out) {
                let ranks: Vec<&[f32]> = tensor.iter().map(Vec::as_slice).collect();
                let truth = oracle::mean(&ranks);
                let allowed = tolerance(4, norm(&truth), tensor);
                prop_assert!(distance(&wide(out), &truth) <= allowed);
            }
            Ok(())
        });
    });
}

#[test]
fn sums_of_whole_numbers_are_exact_and_scaling_by_powers_of_two_too() {
    with_ranks(5, |world| {
        let whole = (1_usize..300).prop_flat_map(|len| {
            prop::collection::vec(prop::collection::vec(-1000_i16..1000, len), 5)
        });
        holds(
            &(whole, -30_i32..30, 1_i64..40),
            |(tensor, exponent, degree)| {
                let factor = 2.0_f32.powi(exponent);
                let inputs: Vec<Outcome> = tensor
                    .iter()
                    .map(|rank| vec![rank.iter().map(|&x| factor * f32::from(x)).collect()])
                    .collect();
                let sum: Vec<f32> = (0..tensor[0].len())
                    .map(|i| factor * tensor.iter().map(|rank| f32::from(rank[i])).sum::<f32>())
                    .collect();
                for mean_of in [false, true] {
                    let options = MeanOptions {
                        mean: mean_of,
                        degree: Some(degree),
                        ..MeanOptions::default()
                    };
                    let inputs = inputs.clone();
                    let out = world.run(move |world| {
                        mean(world, &inputs[world.rank() as usize], &[], &options)
                    });
                    // Multiplied by fp32(1 / degree), rounded once.
                    let inverse = if mean_of {
                        (1.0 / degree as f64) as f32
                    } else {
                        1.0
                    };
                    let expected: Vec<f32> = sum.iter().map(|x| inverse * x).collect();
                    prop_assert_eq!(&out[0], &expected);
                }
                Ok(())
            },
        );
    });
}

/// One step of an optimizer that takes `steps` from `weights`, by rank, on tensors of `dtype`.
fn delta(world: &World, form: DeltaForm, dtype: DType, weights: &[f32], new: &[f32]) -> Outcome {
    let specs = [TensorSpec::new("w", weights.len() as u64, dtype)];
    let mut reducer = DeltaWeightReducer::new(world, &specs, form, &Options::default()).unwrap();
    let stream = Stream::new(world.device()).unwrap();
    let place = [put_as(world.device(), weights, dtype)];
    let gradients = [put_as(world.device(), &vec![0.0; weights.len()], dtype)];
    reducer.begin(&gradients, &place, &stream).unwrap();
    reducer.synchronize(&stream, PATIENCE).unwrap();
    // The optimizer: what it writes.
    let mut bytes = vec![0_u8; place[0].len()];
    put_as(world.device(), new, dtype).read(&mut bytes).unwrap();
    place[0].write(&bytes).unwrap();
    reducer.end(&place, &stream).unwrap();
    reducer.synchronize(&stream, PATIENCE).unwrap();
    vec![get_as(&place[0], dtype)]
}

/// Weights, and for each of so many ranks a step of up to half their size.
fn weights_and_steps(ranks: usize) -> impl Strategy<Value = (Vec<f32>, Vec<Vec<f32>>)> {
    (1_usize..200).prop_flat_map(move |len| {
        let weights = prop::collection::vec(0.5_f32..1.0, len);
        let steps = prop::collection::vec(prop::collection::vec(-0.25_f32..0.25, len), ranks);
        (weights, steps)
    })
}

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Half a unit in the last place of numbers below 1.
fn unit(dtype: DType) -> f64 {
    2.0_f64.powi(match dtype {
        DType::F32 => -24,
        DType::F16 => -11,
        DType::BF16 => -8,
    })
}

/// Weights end at old - AdaSum of old - new, and are the same on all ranks.
#[test]
fn weights_take_the_adasum_of_steps() {
    with_ranks(3, |world| {
        let cases = (weights_and_steps(3), 0_usize..3);
        holds(&cases, |((weights, steps), kind)| {
            let dtype = TYPES[kind];
            let round = |v: &[f32]| -> Vec<f32> { v.iter().map(|&x| rounded(x, dtype)).collect() };
            let old = round(&weights);
            let new: Vec<Vec<f32>> = steps
                .iter()
                .map(|step| round(&old.iter().zip(step).map(|(w, s)| w - s).collect::<Vec<_>>()))
                .collect();
            let deltas: Vec<Vec<f64>> = new
                .iter()
                .map(|new| {
                    // As the type of the weights holds them.
                    let pairs = old.iter().zip(new);
                    pairs
                        .map(|(w, n)| f64::from(rounded(w - n, dtype)))
                        .collect()
                })
                .collect();
            let truth: Vec<f64> = oracle::adasum(&deltas)
                .iter()
                .zip(&old)
                .map(|(d, &w)| f64::from(w) - d)
                .collect();
            let sent = old.clone();
            let out = world.run(move |world| {
                let own = &new[world.rank() as usize];
                delta(world, DeltaForm::Local, dtype, &sent, own)
            });
            // Two rounds and the new weight are rounded, and the weights that go over 1 by twice as much.
            let length: f64 = deltas.iter().map(|d| norm(d)).sum();
            let root = (old.len() as f64).sqrt();
            let allowed = 4.0 * unit(dtype) * (length + root);
            let error = distance(&wide(&out[0]), &truth);
            prop_assert!(error <= allowed, "{} instead of {}", error, allowed);
            Ok(())
        });
    });
}

#[test]
fn no_step_changes_nothing_and_a_common_one_is_taken() {
    with_servers(2, 2, |world| {
        let cases = (
            weights_and_steps(1),
            0_usize..3,
            any::<bool>(),
            any::<bool>(),
        );
        holds(&cases, |((weights, steps), kind, local, still)| {
            let dtype = TYPES[kind];
            let form = if local {
                DeltaForm::Local
            } else {
                DeltaForm::ServerMean
            };
            let old: Vec<f32> = weights.iter().map(|&x| rounded(x, dtype)).collect();
            let new: Vec<f32> = match still {
                true => old.clone(),
                false => {
                    let pairs = old.iter().zip(&steps[0]);
                    pairs.map(|(w, s)| rounded(w - s, dtype)).collect()
                }
            };
            // Old and new are within a factor of two, so their difference is exact, and so are sums of equal ones.
            let expected = vec![new.clone()];
            let out = world.run(move |world| delta(world, form, dtype, &old, &new));
            prop_assert_eq!(bits(&out), bits(&expected));
            Ok(())
        });
    });
}

/// A server that stands still leaves the other's step as it is.
#[test]
fn the_step_of_one_is_the_step_of_all() {
    with_servers(2, 2, |world| {
        let cases = (weights_and_steps(1), 0_usize..3, 0_u32..2);
        holds(&cases, |((weights, steps), kind, mover)| {
            let dtype = TYPES[kind];
            let old: Vec<f32> = weights.iter().map(|&x| rounded(x, dtype)).collect();
            let pairs = old.iter().zip(&steps[0]);
            let new: Vec<f32> = pairs.map(|(w, s)| rounded(w - s, dtype)).collect();
            let expected = vec![new.clone()];
            let out = world.run(move |world| {
                let moves = world.rank() / world.locals() == mover;
                delta(
                    world,
                    DeltaForm::ServerMean,
                    dtype,
                    &old,
                    if moves { &new } else { &old },
                )
            });
            prop_assert_eq!(bits(&out), bits(&expected));
            Ok(())
        });
    });
}
