//! Additions to the AdaSum rule: a tolerance for vanishing vectors and a limit on the norm.

use adasum::ErrorKind;
use adasum::ascend::DataType;
use adasum::kernel::Rule;
use adasum::kernel::layout::{
    COEFFICIENT_KAPPA, COEFFICIENT_RESULT_NORM, COEFFICIENT_WEIGHT, coefficient_leaf_norm,
};

use super::machine::{Machine, packed};
use super::reference::random;
use crate::support::oracle::norm;

const TOLERANCE: f32 = 1e-6;
const LEN: usize = 5000;

/// Coefficients and AdaSum of fp32 vectors.
fn tree(machine: &Machine, rule: Rule, vectors: &[Vec<f32>]) -> (Vec<f32>, Vec<f32>) {
    let spans: Vec<_> = vectors.iter().map(|x| machine.upload(x)).collect();
    let segments = packed(&[LEN], 0);
    let (_, records) = machine.gram_of(DataType::F32, &spans, &segments);
    let coefficients = machine.solve_by(rule, vectors.len(), &records, &[vec![0]]);
    machine.sum_of(DataType::F32, &spans, &segments, &coefficients, &spans[0]);
    (machine.read(&coefficients), machine.read(&spans[0]))
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// A vector along noise with a norm of about `length`.
fn of_length(seed: u64, length: f64) -> Vec<f32> {
    let x = random(LEN, seed, 1.0);
    let factor = length / norm(&wide(&x));
    x.iter().map(|&x| (f64::from(x) * factor) as f32).collect()
}

fn with_tolerance() -> Rule {
    Rule {
        zero_tol: TOLERANCE,
        ..Rule::default()
    }
}

#[test]
fn a_vanishing_vector_counts_as_zero_and_no_other() {
    let machine = Machine::new();
    // The tolerance is one of squared norms.
    let border = f64::from(TOLERANCE).sqrt();
    let large = of_length(1, 3.0);
    for (factor, vanishes) in [(0.0, true), (1e-3, true), (0.999, true), (1.001, false)] {
        let small = of_length(2, 3.0 * border * factor);
        for vectors in [
            [large.clone(), small.clone()],
            [small.clone(), large.clone()],
        ] {
            let (_, plain) = tree(&machine, Rule::default(), &vectors);
            let (_, out) = tree(&machine, with_tolerance(), &vectors);
            let expected = if vanishes { &large } else { &plain };
            assert!(out == *expected, "{factor}");
        }
    }
    // Also where the squares leave the range of fp32.
    for scale in [1e-25_f32, 1e30] {
        let scaled = |x: &[f32], factor: f32| x.iter().map(|x| x * factor).collect::<Vec<_>>();
        let vectors = [scaled(&large, scale), scaled(&large, scale * 1e-4)];
        let (_, out) = tree(&machine, with_tolerance(), &vectors);
        assert!(out == vectors[0], "{scale}");
    }
}

/// In a larger tree: the same as with zeros in place of what vanishes, leaves and whole subtrees.
#[test]
fn vanishing_leaves_of_a_tree_are_zeros() {
    let machine = Machine::new();
    for radix in [3, 4, 5, 8] {
        for small in [vec![0], vec![1], vec![radix - 1], vec![0, 1]] {
            let vectors = |length: f64| -> Vec<Vec<f32>> {
                (0..radix)
                    .map(|i| {
                        let is_small = small.contains(&i);
                        of_length(10 + i as u64, if is_small { length } else { 2.0 })
                    })
                    .collect()
            };
            let (_, zeros) = tree(&machine, Rule::default(), &vectors(0.0));
            let (_, out) = tree(&machine, with_tolerance(), &vectors(1e-5));
            assert!(out == zeros, "radix {radix}, {small:?}");
            let (_, plain) = tree(&machine, Rule::default(), &vectors(1e-5));
            assert!(out != plain, "radix {radix}, {small:?}: nothing vanished");
        }
    }
}

#[test]
fn all_zero_vectors_are_still_zero() {
    let machine = Machine::new();
    let (weights, out) = tree(
        &machine,
        with_tolerance(),
        &[vec![0.0; LEN], vec![0.0; LEN]],
    );
    assert!(out.iter().all(|&x| x == 0.0));
    assert_eq!(
        weights[COEFFICIENT_WEIGHT..COEFFICIENT_WEIGHT + 2],
        [1.0; 2]
    );
}

#[test]
fn a_limit_scales_the_result_down_and_never_up() {
    let machine = Machine::new();
    for scale in [1.0, 1e-25, 1e30] {
        for radix in [2, 3, 8] {
            let vectors: Vec<Vec<f32>> = (0..radix)
                .map(|i| of_length(20 + i as u64, scale * (1.0 + f64::from(i))))
                .collect();
            let (before, plain) = tree(&machine, Rule::default(), &vectors);
            let length = norm(&wide(&plain));
            for factor in [0.1, 0.999, 1.001, 50.0] {
                let rule = Rule {
                    norm_limit: (length * factor) as f32,
                    ..Rule::default()
                };
                let (after, out) = tree(&machine, rule, &vectors);
                // The statistics tell the norm from before.
                assert_eq!(
                    after[COEFFICIENT_RESULT_NORM],
                    before[COEFFICIENT_RESULT_NORM]
                );
                if factor > 1.0 {
                    assert!(out == plain, "{scale}, {radix}, {factor}");
                    continue;
                }
                let error: Vec<f64> = wide(&out)
                    .iter()
                    .zip(wide(&plain))
                    .map(|(x, y)| x - y * factor)
                    .collect();
                let error = norm(&error) / (length * factor);
                assert!(error < 1e-6, "{scale}, {radix}, {factor}: {error}");
            }
        }
    }
}

#[test]
fn without_statistics_the_weights_are_the_same() {
    let machine = Machine::new();
    for radix in [2, 3, 8] {
        let vectors: Vec<Vec<f32>> = (0..radix).map(|i| of_length(30 + i, 2.0)).collect();
        for norm_limit in [0.0, 0.5] {
            let rule = Rule {
                norm_limit,
                ..with_tolerance()
            };
            let (all, out) = tree(&machine, rule, &vectors);
            let rule = Rule {
                weights_only: true,
                ..rule
            };
            let (weights, again) = tree(&machine, rule, &vectors);
            assert!(out == again, "{radix}, {norm_limit}");
            let norms = coefficient_leaf_norm(radix as usize);
            let statistics = [COEFFICIENT_KAPPA, COEFFICIENT_RESULT_NORM].into_iter();
            let statistics: Vec<usize> = statistics.chain(norms..norms + radix as usize).collect();
            for (word, (&one, &other)) in all.iter().zip(&weights).enumerate() {
                let expected = if statistics.contains(&word) { 0.0 } else { one };
                assert_eq!(other.to_bits(), expected.to_bits(), "word {word}, {radix}");
            }
            assert!(all[COEFFICIENT_RESULT_NORM] > 0.0);
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let machine = Machine::new();
    let records = machine.upload(&[0.0_f32; 16]);
    for zero_tol in [-1e-9, 1.0, f32::NAN, f32::INFINITY] {
        let rule = Rule {
            zero_tol,
            ..Rule::default()
        };
        let error = machine.refused_by(rule, &records);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("zero_tol"), "{error}");
    }
    for norm_limit in [-1.0, f32::NAN, f32::INFINITY] {
        let rule = Rule {
            norm_limit,
            ..Rule::default()
        };
        let error = machine.refused_by(rule, &records);
        assert!(error.to_string().contains("norm_limit"), "{error}");
    }
}
