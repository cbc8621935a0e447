//! What results of kernels may be off, for two to eight vectors, and checks of records and results by it.

use adasum::ascend::DataType;
use adasum::kernel::layout::{UNIT, entry_index, record_exponents, record_flags};

use super::machine::{Machine, packed};
use super::reference::{dot, least_eigenvalue, tree};
use crate::support::oracle::norm;

pub(super) const TYPES: [DataType; 3] = [DataType::F32, DataType::F16, DataType::Bf16];
/// Half a unit in the last place, relative.
pub(super) fn roundoff(dtype: DataType) -> f64 {
    match dtype {
        DataType::F32 => 2.0_f64.powi(-24),
        DataType::F16 => 2.0_f64.powi(-11),
        _ => 2.0_f64.powi(-8),
    }
}

/// Half of the smallest positive number.
pub(super) fn smallest_half(dtype: DataType) -> f64 {
    match dtype {
        DataType::F32 => 2.0_f64.powi(-150),
        DataType::F16 => 2.0_f64.powi(-25),
        _ => 2.0_f64.powi(-134),
    }
}

/// What sums of a unit may be off, relative to the norms of the two vectors: in fp32 where roundings go either way, and exact ones.
pub(super) const PLAIN: f64 = 4e-7;
pub(super) const EXACT: f64 = 1.0 / (1_u64 << 43) as f64;

/// The same in fp32 at worst: all roundings of an element, of its product, in its lane and where lanes are joined.
pub(super) fn worst(radix: usize) -> f64 {
    let lanes: usize = if radix == 8 { 256 } else { 512 };
    let in_lane = UNIT as usize / lanes - 1;
    (1 + in_lane + lanes.ilog2() as usize) as f64 * 2.0_f64.powi(-24)
}

/// How the products of a unit have to be summed (`csrc/kernels/separation.h`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sums {
    Plain,
    Exact,
    /// So near the limit that rounding decides.
    Either,
}

pub(super) fn sums_of(unit: &[&[f32]]) -> Sums {
    const LIMIT: f64 = 1.0 / 64.0;
    match least_eigenvalue(unit) {
        _ if unit.len() == 2 => Sums::Plain,
        least if least > LIMIT + 3e-5 => Sums::Plain,
        least if least < LIMIT - 1e-5 => Sums::Exact,
        _ => Sums::Either,
    }
}

pub(super) fn units<'a>(vectors: &'a [&'a [f32]]) -> impl Iterator<Item = Vec<&'a [f32]>> {
    let len = vectors[0].len();
    (0..len).step_by(UNIT as usize).map(move |from| {
        let to = len.min(from + UNIT as usize);
        vectors.iter().map(|x| &x[from..to]).collect()
    })
}

pub(super) fn assert_record(record: &[f32], vectors: &[&[f32]], what: &str) {
    let radix = vectors.len();
    // The error of an entry is at most the sum of those of its units.
    let mut allowed = vec![0.0; radix * radix];
    let mut plain = true;
    for unit in units(vectors) {
        let sums = sums_of(&unit);
        plain &= sums == Sums::Plain;
        let precision = if sums == Sums::Exact { EXACT } else { PLAIN };
        let norms: Vec<f64> = unit.iter().map(|x| dot(x, x).sqrt()).collect();
        for (at, allowed) in allowed.iter_mut().enumerate() {
            *allowed += precision * norms[at / radix] * norms[at % radix];
        }
    }
    for i in 0..radix {
        for j in i..radix {
            let entry = entry_index(i, j, radix);
            let exponent =
                record[record_exponents(radix) + i] + record[record_exponents(radix) + j];
            let got = (f64::from(record[2 * entry]) + f64::from(record[2 * entry + 1]))
                * f64::from(exponent).exp2();
            let truth = dot(vectors[i], vectors[j]);
            let allowed = allowed[i * radix + j] + EXACT * truth.abs();
            assert!(
                (got - truth).abs() <= allowed,
                "{what}, entry {i},{j}: {got:e}, not {truth:e}"
            );
            // A unit that fp32 sums serve is not summed again.
            if plain && vectors[0].len() <= UNIT as usize {
                assert_eq!(record[2 * entry + 1], 0.0, "{what}, entry {i},{j}: exact");
            }
        }
    }
    assert_eq!(record[record_flags(radix)].to_bits(), 0, "{what}: flag");
}

/// Checks a result: errors of the Gram matrix grow with what cancels, weights and products round in fp32, and the
/// result rounds once. Where sums are plain, kappa is at most 64.
pub(super) fn assert_tree(out: &[f32], vectors: &[&[f32]], dtype: DataType, what: &str) {
    let truth = tree(vectors);
    assert_eq!(out.len(), truth.result.len(), "{what}: elements");
    let largest = vectors.iter().map(|x| dot(x, x).sqrt()).fold(0.0, f64::max);
    let terms: f64 = truth
        .weights
        .iter()
        .zip(vectors)
        .map(|(weight, x)| weight.abs() * dot(x, x).sqrt())
        .sum();
    let exact = units(vectors).all(|unit| sums_of(&unit) == Sums::Exact);
    let cancelled = match vectors.len() {
        2 => PLAIN * truth.kappa,
        _ if exact => EXACT * truth.kappa,
        _ => PLAIN * truth.kappa.min(64.0) + EXACT * truth.kappa,
    };
    let scale = norm(&truth.result);
    let allowed = 3.0 * 2.0_f64.powi(-24) * terms
        + 2.0 * cancelled * largest
        + roundoff(dtype) * scale
        + smallest_half(dtype) * (out.len() as f64).sqrt();
    let difference: Vec<f64> = out
        .iter()
        .zip(&truth.result)
        .map(|(&x, t)| f64::from(x) - t)
        .collect();
    assert!(out.iter().all(|x| x.is_finite()), "{what}: not finite");
    let error = norm(&difference);
    assert!(
        error <= allowed,
        "{what}: error {error:e}, allowed {allowed:e}, norm {scale:e}, kappa {:e}",
        truth.kappa
    );
}

/// One tensor: its coefficients and its result, which is checked against the tree.
pub(super) fn checked(
    machine: &Machine,
    vectors: &[Vec<f32>],
    dtype: DataType,
    what: &str,
) -> (Vec<f32>, Vec<f32>) {
    let (coefficients, out) = one(machine, vectors, dtype);
    let x: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    assert_tree(&out, &x, dtype, what);
    (coefficients, out)
}

pub(super) fn one(
    machine: &Machine,
    vectors: &[Vec<f32>],
    dtype: DataType,
) -> (Vec<f32>, Vec<f32>) {
    let spans: Vec<_> = vectors
        .iter()
        .map(|x| machine.upload_as(dtype, x, 0))
        .collect();
    let segments = packed(&[vectors[0].len()], 0);
    let (coefficients, out) = machine.tree(dtype, &spans, &segments);
    (machine.read(&coefficients), machine.read_as(dtype, &out))
}
