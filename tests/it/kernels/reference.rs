//! Inputs by formula, and what the kernels' results must be, by plain loops in double precision.

use adasum::kernel::layout::{Segment, record_exponents, record_flags};

use crate::oracle::{adasum, error_fp32};
use crate::support::noise;

pub(super) fn random(len: usize, seed: u64, scale: f32) -> Vec<f32> {
    (0..len as u64).map(|i| noise(&[seed, i]) * scale).collect()
}

pub(super) fn part<'a>(values: &'a [f32], segment: &Segment) -> &'a [f32] {
    &values[segment.offset as usize..(segment.offset + segment.len) as usize]
}

pub(super) fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(&x, &y)| f64::from(x) * f64::from(y))
        .sum()
}

/// aa, ab, bb of a record.
pub(super) fn values(record: &[f32]) -> [f64; 3] {
    let exponent = |vector: usize| f64::from(record[record_exponents(2) + vector]);
    let entry = |entry: usize, sum: f64| {
        (f64::from(record[2 * entry]) + f64::from(record[2 * entry + 1])) * sum.exp2()
    };
    [
        entry(0, 2.0 * exponent(0)),
        entry(1, exponent(0) + exponent(1)),
        entry(2, 2.0 * exponent(1)),
    ]
}

/// Fails if a record is further from the exact products than fp32 sums of one unit may be.
pub(super) fn assert_record(record: &[f32], a: &[f32], b: &[f32], what: &str) {
    let truth = [dot(a, a), dot(a, b), dot(b, b)];
    let norm = (truth[0] * truth[2]).sqrt();
    for ((got, truth), scale) in values(record)
        .into_iter()
        .zip(truth)
        .zip([truth[0], norm, truth[2]])
    {
        assert!(
            (got - truth).abs() <= 4e-7 * scale,
            "{what}: {got:e}, not {truth:e}"
        );
    }
    assert_eq!(record[record_flags(2)].to_bits(), 0, "{what}: flag");
}

/// Fails if the sum of a tensor is not that of the oracle, up to roundings of the smallest numbers.
pub(super) fn assert_pair(out: &[f32], a: &[f32], b: &[f32], what: &str) {
    let inputs = [doubles(a), doubles(b)];
    let truth = adasum(&inputs);
    let error = error_fp32(out, &truth, &inputs);
    let last_bits = out
        .iter()
        .zip(&truth)
        .all(|(&x, &t)| (f64::from(x) - t).abs() <= 1.5e-45);
    assert!(
        error <= 1.0 || last_bits,
        "{what}: error {error} of what is allowed"
    );
}

/// The sum of the products of a unit as the kernel promises it: in 512 lanes, then halves added to halves down to 64
/// sums, then neighbours; each step rounded to fp32.
pub(super) fn lane_sum(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = vec![0.0_f32; 512];
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        let product = x * y;
        sums[i % 512] += product;
    }
    while sums.len() > 64 {
        let upper = sums.split_off(sums.len() / 2);
        for (sum, addend) in sums.iter_mut().zip(upper) {
            *sum += addend;
        }
    }
    while sums.len() > 1 {
        sums = sums.chunks(2).map(|pair| pair[0] + pair[1]).collect();
    }
    sums[0]
}
