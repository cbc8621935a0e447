//! Properties that hold within rounding.

use proptest::prelude::*;

use super::{distance, dot, gradients, holds, tolerance, wide, with_ranks};
use crate::support::oracle::{self, norm};

#[test]
fn a_pair_keeps_the_identities() {
    with_ranks(2, |world| {
        holds(&gradients(2), |inputs| {
            let r = wide(&world.reduce(&inputs));
            let (g, h) = (wide(&inputs[0]), wide(&inputs[1]));
            let (a, b) = (norm(&g), norm(&h));
            prop_assume!(a > 1e-3 && b > 1e-3);
            let cosine = dot(&g, &h) / (a * b);
            let size = norm(&r);
            let allowed = tolerance(1, size, &inputs);
            // The norm of the result, its bounds, its products with the inputs.
            let square =
                (a * a + b * b) * (1.0 - 0.75 * cosine * cosine) + a * b * cosine.powi(3) / 2.0;
            prop_assert!((size - square.max(0.0).sqrt()).abs() <= 2.0 * allowed);
            prop_assert!((a - b).abs() / 2.0 - allowed <= size);
            prop_assert!(size <= (a * a + b * b).sqrt() + allowed);
            if cosine >= 0.0 {
                prop_assert!(size + allowed >= (a + b) / 2.0);
            }
            let sum: Vec<f64> = g.iter().zip(&h).map(|(x, y)| x + y).collect();
            let along = (a * a + b * b) * (1.0 - cosine * cosine / 2.0) + a * b * cosine;
            prop_assert!((dot(&r, &sum) - along).abs() <= 2.0 * allowed * norm(&sum) + 1e-9);
            prop_assert!(
                dot(&r, &sum) >= -allowed * norm(&sum),
                "positive with the sum"
            );
            let with_first = a * a * (1.0 - cosine * cosine / 2.0) + a * b * cosine / 2.0;
            prop_assert!((dot(&r, &g) - with_first).abs() <= 2.0 * allowed * a + 1e-9);
            if size > 1e-2 * a.max(b) && norm(&sum) > 1e-2 * a.max(b) {
                let angle = dot(&r, &sum) / (size * norm(&sum));
                prop_assert!(angle >= 0.75_f64.sqrt() - 1e-4, "{}", angle);
            }
            // The two may change places.
            let swapped = wide(&world.reduce(&[inputs[1].clone(), inputs[0].clone()]));
            prop_assert!(distance(&r, &swapped) <= 2.0 * allowed);
            Ok(())
        });
    });
}

#[test]
fn parallel_gives_the_mean_and_orthogonal_the_sum() {
    with_ranks(4, |world| {
        let lengths = prop::collection::vec(0.1_f32..4.0, 4);
        holds(&(gradients(1), lengths), |(one, lengths)| {
            prop_assume!(norm(&wide(&one[0])) > 1e-3);
            let parallel: Vec<Vec<f32>> = lengths
                .iter()
                .map(|length| one[0].iter().map(|x| length * x).collect())
                .collect();
            let views: Vec<&[f32]> = parallel.iter().map(Vec::as_slice).collect();
            let mean = oracle::mean(&views);
            // Rounding makes the inputs only nearly parallel.
            let allowed = tolerance(2, norm(&mean), &parallel);
            for radix in [2, 4] {
                let r = wide(&world.reduce_by(&parallel, radix));
                prop_assert!(distance(&r, &mean) <= allowed);
            }
            // Each rank has elements of its own.
            let disjoint: Vec<Vec<f32>> = (0..4)
                .map(|rank| {
                    let own = |(i, &x): (usize, &f32)| if i % 4 == rank { x } else { 0.0 };
                    one[0].iter().enumerate().map(own).collect()
                })
                .collect();
            for radix in [2, 4] {
                let r = wide(&world.reduce_by(&disjoint, radix));
                prop_assert!(distance(&r, &wide(&one[0])) <= tolerance(2, norm(&r), &disjoint));
            }
            Ok(())
        });
    });
}

/// A reflection of all gradients reflects the result.
#[test]
fn a_rotation_rotates_the_result() {
    with_ranks(2, |world| {
        holds(&gradients(3), |mut inputs| {
            let mirror = wide(&inputs.pop().unwrap());
            prop_assume!(norm(&mirror) > 1e-2);
            let reflect = |v: &[f32]| -> Vec<f64> {
                let v = wide(v);
                let twice = 2.0 * dot(&v, &mirror) / dot(&mirror, &mirror);
                v.iter().zip(&mirror).map(|(x, m)| x - twice * m).collect()
            };
            let reflected: Vec<Vec<f32>> = inputs
                .iter()
                .map(|g| reflect(g).iter().map(|&x| x as f32).collect())
                .collect();
            let expected = reflect(&world.reduce(&inputs));
            let r = wide(&world.reduce(&reflected));
            prop_assert!(distance(&r, &expected) <= 4.0 * tolerance(1, norm(&r), &inputs));
            Ok(())
        });
    });
}

/// One round of the whole Gram matrix, pairs one after the other, and double precision agree.
#[test]
fn all_radices_follow_one_tree() {
    for ranks in [5, 8] {
        with_ranks(ranks, |world| {
            let cases = gradients(ranks as usize);
            holds(&cases, |inputs| {
                let wide_inputs: Vec<Vec<f64>> = inputs.iter().map(|g| wide(g)).collect();
                let truth = oracle::adasum(&wide_inputs);
                for radix in [2, 3, 8] {
                    let out = world.reduce_by(&inputs, radix);
                    let error = oracle::error_fp32(&out, &truth, &wide_inputs);
                    prop_assert!(error <= 1.0, "radix {}: {}", radix, error);
                }
                Ok(())
            });
        });
    }
}

/// Of any number of ranks: the squared norm is at most the sum of theirs, and elements may be reordered, with zeros
/// among them.
#[test]
fn a_tree_adds_no_length_and_knows_no_places() {
    for ranks in [3_u32, 4] {
        with_ranks(ranks, |world| {
            let cases = (gradients(ranks as usize), any::<u64>(), 0_usize..5000);
            holds(&cases, |(inputs, seed, zeros)| {
                let r = world.reduce(&inputs);
                let squares: f64 = inputs.iter().map(|g| norm(&wide(g)).powi(2)).sum();
                let allowed = tolerance(2, norm(&wide(&r)), &inputs);
                prop_assert!(norm(&wide(&r)) <= squares.sqrt() + allowed);
                let len = r.len();
                // An odd factor has an inverse modulo the next power of two: a permutation of longer vectors.
                let longer = (len + zeros).next_power_of_two();
                let place = |i: usize| {
                    let spread = i.wrapping_mul(seed as usize | 1);
                    spread.wrapping_add(seed as usize / 3) & (longer - 1)
                };
                let moved: Vec<Vec<f32>> = inputs
                    .iter()
                    .map(|g| {
                        let mut moved = vec![0.0; longer];
                        g.iter().enumerate().for_each(|(i, &x)| moved[place(i)] = x);
                        moved
                    })
                    .collect();
                let out = world.reduce(&moved);
                let back: Vec<f32> = (0..len).map(|i| out[place(i)]).collect();
                prop_assert!(distance(&wide(&back), &wide(&r)) <= 4.0 * allowed);
                Ok(())
            });
        });
    }
}

/// Orthogonal vectors without a zero in them: their sum.
#[test]
fn dense_orthogonal_vectors_add_up() {
    with_ranks(4, |world| {
        let cases = (gradients(4), prop::collection::vec(0.1_f64..10.0, 4));
        holds(&cases, |(inputs, lengths)| {
            prop_assume!(inputs[0].len() >= 8);
            let mut columns: Vec<Vec<f64>> = Vec::new();
            for input in &inputs {
                let mut column = wide(input);
                // Twice, so that they are orthogonal to the last bit but a few.
                for other in columns.iter().chain(&columns) {
                    let along = dot(&column, other);
                    column
                        .iter_mut()
                        .zip(other)
                        .for_each(|(x, y)| *x -= along * y);
                }
                let size = norm(&column);
                prop_assume!(size > 1e-3 * norm(&wide(input)) && size > 1e-3);
                column.iter_mut().for_each(|x| *x /= size);
                columns.push(column);
            }
            let columns = columns.iter().zip(&lengths);
            let rounded: Vec<Vec<f32>> = columns
                .map(|(column, length)| column.iter().map(|x| (x * length) as f32).collect())
                .collect();
            let sum: Vec<f64> = (0..rounded[0].len())
                .map(|i| rounded.iter().map(|g| f64::from(g[i])).sum())
                .collect();
            for radix in [2, 4] {
                let r = wide(&world.reduce_by(&rounded, radix));
                prop_assert!(distance(&r, &sum) <= 2.0 * tolerance(2, norm(&sum), &rounded));
            }
            Ok(())
        });
    });
}

/// As in Horovod's tests: norms from the smallest normal number to the root of the largest, sizes around multiples of
/// the number of ranks.
#[test]
fn any_spread_of_norms_and_any_size() {
    for ranks in [3_u32, 4] {
        with_ranks(ranks, |world| {
            let p = ranks as usize;
            let sizes = prop_oneof![
                Just(20 * p - 17),
                Just(2 * p + 1),
                Just(p + 2),
                Just(1 << 13)
            ];
            let scales = prop::collection::vec(-126_i32..63, p);
            let cases = (sizes, scales, any::<u64>(), 2_u32..9);
            holds(&cases, |(size, scales, seed, radix)| {
                let inputs: Vec<Vec<f32>> = (0..)
                    .zip(&scales)
                    .map(|(rank, &scale)| {
                        let scale = 2.0_f32.powi(scale);
                        let value = |i| scale * crate::support::noise(&[seed, rank, i]);
                        (0..size as u64).map(value).collect()
                    })
                    .collect();
                let wide_inputs: Vec<Vec<f64>> = inputs.iter().map(|g| wide(g)).collect();
                let truth = oracle::adasum(&wide_inputs);
                let out = world.reduce_by(&inputs, radix);
                // Results below the normal numbers keep an absolute error only.
                let tiny = f64::from(f32::MIN_POSITIVE) * (size as f64).sqrt() * 1e-6;
                let largest = wide_inputs.iter().map(|g| norm(g)).fold(0.0, f64::max);
                let allowed = (1e-6 * norm(&truth)).max(4e-6 * largest) + tiny;
                prop_assert!(distance(&wide(&out), &truth) <= allowed);
                Ok(())
            });
        });
    }
}
