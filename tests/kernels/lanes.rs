//! Weights of tensors that the vector unit solves in lanes, and of those that it leaves to the scalar unit
//! (`csrc/kernels/tree_lanes.h`): both give the same.

use adasum::ascend::Span;
use adasum::kernel::layout::{
    COEFFICIENT_KAPPA, COEFFICIENT_RESULT_NORM, COEFFICIENT_WEIGHT, coefficient_leaf_norm,
    coefficient_weight_low, coefficient_words, entry_index, record_words,
};

use super::machine::Machine;
use super::reference::{dot, random, tree};

/// The record of vectors whose squared norms are `factor` times as large.
fn record(vectors: &[Vec<f32>], factor: f64) -> Vec<f32> {
    let radix = vectors.len();
    let mut record = vec![0.0; record_words(radix)];
    for i in 0..radix {
        for j in i..radix {
            let value = dot(&vectors[i], &vectors[j]) * factor;
            let entry = 2 * entry_index(i, j, radix);
            record[entry] = value as f32;
            record[entry + 1] = (value - f64::from(value as f32)) as f32;
        }
    }
    record
}

/// The coefficients of tensors with a record each.
fn solve(machine: &Machine, radix: usize, records: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let span: Span = machine.upload(&records.concat());
    let lists: Vec<Vec<u64>> = (0..records.len() as u64).map(|i| vec![i]).collect();
    let words = machine.read(&machine.solve_of(radix, &span, &lists));
    words
        .chunks(coefficient_words(radix))
        .map(<[f32]>::to_vec)
        .collect()
}

/// Random vectors, with so many times the first one in all others: 0, 2, -0.5 or -2.
fn vectors(radix: usize, seed: u64) -> Vec<Vec<f32>> {
    let first = random(40, seed, 1.0);
    let share = [0.0, 2.0, -0.5, -2.0][seed as usize % 4];
    (0..radix)
        .map(|i| {
            let own = random(40, 1000 + 10 * seed + i as u64, 1.0);
            let with = |(own, first): (&f32, &f32)| own + first * if i == 0 { 0.0 } else { share };
            own.iter().zip(&first).map(with).collect()
        })
        .collect()
}

#[test]
fn a_power_of_two_changes_norms_only() {
    let machine = Machine::new();
    for radix in 2..=8 {
        let tensors: Vec<_> = (0..70).map(|seed| vectors(radix, seed)).collect();
        let of = |power: i32| {
            let records: Vec<_> = tensors
                .iter()
                .map(|x| record(x, 4.0_f64.powi(power)))
                .collect();
            solve(&machine, radix, &records)
        };
        let plain = of(0);
        for (words, x) in plain.iter().zip(&tensors) {
            let x: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
            let truth = tree(&x);
            for (i, weight) in truth.weights.iter().enumerate() {
                let got = f64::from(words[COEFFICIENT_WEIGHT + i]);
                let low = f64::from(words[coefficient_weight_low(radix) + i]);
                let bound = if low == 0.0 { 1e-7 } else { 1e-11 };
                assert!(
                    (got + low - weight).abs() <= bound * truth.kappa * weight.abs().max(1.0),
                    "radix {radix}, weight {i}: {got:e} and {low:e}, not {weight:e}"
                );
            }
        }
        // Lanes take squared norms from 2^-60 to 2^60.
        for power in [-45, -32, -30, -3, 25, 28, 44] {
            let factor = 2.0_f32.powi(power);
            for (got, plain) in of(power).iter().zip(&plain) {
                let norms = |words: &[f32]| words[coefficient_leaf_norm(radix)..][..radix].to_vec();
                let sum = COEFFICIENT_WEIGHT..coefficient_leaf_norm(radix);
                assert_eq!(got[sum.clone()], plain[sum], "radix {radix}, power {power}");
                for (got, plain) in norms(got).iter().zip(norms(plain)) {
                    let plain = plain * factor;
                    assert!((got - plain).abs() <= 3e-7 * plain, "{got}, not {plain}");
                }
                let close = |word: usize, factor: f32| {
                    let (got, plain) = (got[word], plain[word] * factor);
                    assert!(
                        (got - plain).abs() <= 2e-6 * plain.abs(),
                        "radix {radix}, power {power}, word {word}: {got}, not {plain}"
                    );
                };
                close(COEFFICIENT_RESULT_NORM, factor);
                close(COEFFICIENT_KAPPA, 1.0);
            }
        }
    }
}

/// Vectors of zeros are not divided by.
#[test]
fn zeros_have_the_statistics_of_zeros() {
    let machine = Machine::new();
    let x = [3.0_f32; 4];
    let times = |factor: f32| x.iter().map(|x| x * factor).collect::<Vec<f32>>();
    // x, x and -2 x: their mean is zero, and their AdaSum is not.
    let balanced = [times(1.0), times(1.0), times(-2.0)];
    let zeros = [times(0.0), times(0.0), times(0.0)];
    // In lanes, and where the scalar unit has to do it.
    for factor in [1.0, 2.0_f64.powi(90)] {
        let words = solve(
            &machine,
            3,
            &[record(&balanced, factor), record(&zeros, 1.0)],
        );
        let weights = COEFFICIENT_WEIGHT..COEFFICIENT_WEIGHT + 3;
        assert_eq!(words[0][weights.clone()], [1.0, 1.0, 1.25], "{factor}");
        assert_eq!(words[1][weights], [1.0; 3]);
        assert_eq!(words[1][COEFFICIENT_KAPPA], 1.0);
        assert_eq!(words[1][COEFFICIENT_RESULT_NORM], 0.0);
        assert_eq!(words[1][coefficient_leaf_norm(3)..][..3], [0.0; 3]);
    }
}

/// Up to where one vector is the other with its sign changed.
#[test]
fn weights_of_opposed_pairs_are_right_to_the_end() {
    let machine = Machine::new();
    let matrix = |power: i32, length: f64| {
        let cosine = 2.0_f64.powi(-power) - 1.0;
        [1.0, cosine * length, length * length]
    };
    for length in [1.0, 1.5, 0.001] {
        let records: Vec<Vec<f32>> = (0..40)
            .map(|power| {
                let mut record = vec![0.0; record_words(2)];
                for (entry, value) in matrix(power, length).into_iter().enumerate() {
                    record[2 * entry] = value as f32;
                    record[2 * entry + 1] = (value - f64::from(value as f32)) as f32;
                }
                record
            })
            .collect();
        for (power, words) in (0..).zip(solve(&machine, 2, &records)) {
            let [a, d, b] = matrix(power, length);
            for (i, norm) in [a, b].into_iter().enumerate() {
                let truth = 1.0 - d / norm / 2.0;
                let high = f64::from(words[COEFFICIENT_WEIGHT + i]);
                let low = f64::from(words[coefficient_weight_low(2) + i]);
                // Two vectors nearly cancel from a cosine of -0.7 on, and have weights in two numbers then.
                assert!(low == 0.0 || power > 1, "{length}, {power}");
                let bound = if power > 1 { 1e-13 } else { 1e-7 };
                assert!(
                    (high + low - truth).abs() <= bound * truth,
                    "{length}, {power}: {high:e} and {low:e}, not {truth:e}"
                );
            }
        }
    }
}
