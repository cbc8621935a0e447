//! Properties that hold bit for bit.

use proptest::prelude::*;

use super::{bits, gradients, holds, scaled, with_ranks, with_servers};
use adasum::reduce::{Form, Options, ScalarExchange};

#[test]
fn powers_of_two_and_signs_come_through_exactly() {
    for ranks in [2, 3, 4] {
        with_ranks(ranks, |world| {
            let cases = (gradients(ranks as usize), -40_i32..40, any::<bool>());
            holds(&cases, |(inputs, exponent, negative)| {
                let sign = if negative { -1.0 } else { 1.0 };
                let factor = sign * 2.0_f32.powi(exponent);
                let expected = scaled(&[world.reduce(&inputs)], factor).remove(0);
                // Numerically: a zero may have either sign.
                prop_assert_eq!(world.reduce(&scaled(&inputs, factor)), expected);
                Ok(())
            });
        });
    }
}

#[test]
fn a_zero_is_the_identity_and_runs_repeat() {
    with_ranks(4, |world| {
        let cases = (
            gradients(1),
            0_usize..4,
            prop_oneof![Just(0.0_f32), Just(-0.0)],
        );
        holds(&cases, |(mut one, place, zero)| {
            let g = one.remove(0);
            let mut inputs = vec![vec![zero; g.len()]; 4];
            prop_assert!(world.reduce(&inputs).iter().all(|&x| x == 0.0));
            inputs[place].clone_from(&g);
            prop_assert_eq!(world.reduce(&inputs), g.clone());
            prop_assert_eq!(world.reduce_by(&inputs, 4), g);
            Ok(())
        });
        holds(&gradients(4), |inputs| {
            let first = world.reduce(&inputs);
            let second = world.reduce(&inputs);
            prop_assert_eq!(bits(&vec![first]), bits(&vec![second]));
            Ok(())
        });
        holds(&gradients(1), |one| {
            let inputs = vec![one[0].clone(); 4];
            prop_assert_eq!(bits(&vec![world.reduce(&inputs)]), bits(&one));
            prop_assert_eq!(bits(&vec![world.reduce_by(&inputs, 4)]), bits(&one));
            Ok(())
        });
    });
}

/// Tensors that share a buffer do not see each other: at most one ulp of the largest element.
#[test]
fn tensors_are_reduced_each_for_itself() {
    with_ranks(3, |world| {
        let lists = prop::collection::vec(gradients(3), 1..5);
        holds(&lists, |tensors| {
            let together: Vec<Vec<Vec<f32>>> = (0..3)
                .map(|rank| tensors.iter().map(|tensor| tensor[rank].clone()).collect())
                .collect();
            let all = world.reduce_all(together, &Options::default());
            for (tensor, out) in tensors.iter().zip(&all) {
                let alone = world.reduce(tensor);
                let largest = out.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
                let ulp = largest * f32::EPSILON;
                prop_assert!(out.iter().zip(&alone).all(|(x, y)| (x - y).abs() <= ulp));
            }
            Ok(())
        });
    });
}

#[test]
fn odd_lengths_and_nothing() {
    with_ranks(3, |world| {
        let inputs: Vec<Vec<Vec<f32>>> = (0..3)
            .map(|rank| {
                let value = (rank + 1) as f32;
                vec![vec![], vec![value], vec![], vec![value; 3], vec![0.0; 1]]
            })
            .collect();
        let out = world.reduce_all(inputs, &Options::default());
        // Parallel: ((1 + 2) / 2 + 3) / 2.
        assert_eq!(out, [vec![], vec![2.25], vec![], vec![2.25; 3], vec![0.0]]);
    });
}

#[test]
fn one_rank_keeps_its_gradient() {
    with_ranks(1, |world| {
        let values = prop::collection::vec(any::<f32>(), 0..300);
        holds(&values, |values| {
            prop_assert_eq!(
                bits(&vec![world.reduce(std::slice::from_ref(&values))]),
                bits(&vec![values])
            );
            Ok(())
        });
    });
}

/// Neither how far buckets are under way together, nor how data travels, nor who sums scalars.
#[test]
fn the_way_there_does_not_matter() {
    with_servers(3, 2, |world| {
        let lists = prop::collection::vec(gradients(6), 1..6);
        let forms = prop::sample::select(vec![
            Form::AllToAll,
            Form::Batch,
            Form::Pairwise,
            Form::Shared,
        ]);
        let ways = (1_usize..5, forms, any::<bool>(), 0_u64..2000);
        holds(
            &(lists, ways),
            |(tensors, (depth, form, owned, bucket_bytes))| {
                let inputs: Vec<Vec<Vec<f32>>> = (0..6)
                    .map(|rank| tensors.iter().map(|tensor| tensor[rank].clone()).collect())
                    .collect();
                let plain = Options {
                    bucket_bytes,
                    exchange: Some(Form::Pairwise),
                    ..Options::default()
                };
                let other = Options {
                    pipeline_depth: depth,
                    exchange: Some(form),
                    scalars: match owned {
                        true => ScalarExchange::Owned,
                        false => ScalarExchange::Gathered,
                    },
                    ..plain.clone()
                };
                let expected = world.reduce_all(inputs.clone(), &plain);
                prop_assert_eq!(bits(&world.reduce_all(inputs, &other)), bits(&expected));
                Ok(())
            },
        );
    });
}

/// No multiplication is fused with an addition, so neither of a pair comes first.
#[test]
fn a_pair_may_change_places() {
    with_ranks(2, |world| {
        holds(&gradients(2), |inputs| {
            let there = world.reduce(&inputs);
            let back = world.reduce(&[inputs[1].clone(), inputs[0].clone()]);
            prop_assert_eq!(there, back);
            Ok(())
        });
    });
}

/// One NaN or infinity spoils its tensor on all ranks, and no other.
#[test]
fn a_bad_value_stays_in_its_tensor() {
    with_servers(3, 2, |world| {
        let bad = prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)];
        let lists = prop::collection::vec(gradients(6), 1..4);
        let cases = (
            lists,
            bad,
            any::<prop::sample::Index>(),
            any::<prop::sample::Index>(),
            0_usize..6,
        );
        holds(&cases, |(tensors, bad, tensor, element, rank)| {
            let mut inputs: Vec<Vec<Vec<f32>>> = (0..6)
                .map(|rank| tensors.iter().map(|tensor| tensor[rank].clone()).collect())
                .collect();
            let clean = world.reduce_all(inputs.clone(), &Options::default());
            let tensor = tensor.index(tensors.len());
            let element = element.index(inputs[rank][tensor].len());
            inputs[rank][tensor][element] = bad;
            let out = world.reduce_all(inputs, &Options::default());
            for (number, (out, clean)) in out.iter().zip(&clean).enumerate() {
                match number == tensor {
                    true => prop_assert!(out.iter().all(|x| !x.is_finite())),
                    false => prop_assert_eq!(out, clean),
                }
            }
            Ok(())
        });
    });
}
