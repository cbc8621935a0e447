//! Gradients by formula and what reductions must make of them, in double precision: the truth of `doctor`, `qualify` and `bench`.

use half::{bf16, f16};

use crate::ascend::{Buffer, DataType, Device, Span};
use crate::cli::lab::tree::Tree;
use crate::error::Result;

/// Element types of gradients.
pub(crate) const TYPES: [DataType; 3] = [DataType::F32, DataType::F16, DataType::Bf16];

pub(crate) fn name(dtype: DataType) -> &'static str {
    match dtype {
        DataType::F16 => "f16",
        DataType::Bf16 => "bf16",
        _ => "f32",
    }
}

/// Half the distance of two numbers next to 1: the largest relative error of one rounding.
pub(crate) fn roundoff(dtype: DataType) -> f64 {
    match dtype {
        DataType::F16 => 2_f64.powi(-11),
        DataType::Bf16 => 2_f64.powi(-8),
        _ => 2_f64.powi(-24),
    }
}

/// A number between -1 and 1 that depends on both arguments only.
pub(crate) fn noise(seed: u64, index: u64) -> f64 {
    // Finaliser of MurmurHash3 (public domain), over a mix of both.
    let mut x =
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93);
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        x = (x ^ (x >> 33)).wrapping_mul(factor);
    }
    (x >> 40) as f64 / f64::from(1 << 23) - 1.0
}

/// `count` numbers that elements of `dtype` can hold, with angles between those of different seeds that are neither 0
/// nor right ones.
pub(crate) fn vector(dtype: DataType, seed: u64, count: usize) -> Vec<f64> {
    let value = |index| 0.5 * noise(seed, index) + 0.3 * noise(0, index);
    (0..count as u64)
        .map(|index| rounded(dtype, value(index)))
        .collect()
}

/// The element of `dtype` next to `value`, which is a number of fp32 or nearly one.
#[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
pub(crate) fn rounded(dtype: DataType, value: f64) -> f64 {
    let value = value as f32;
    match dtype {
        DataType::F16 => f16::from_f32(value).to_f64(),
        DataType::Bf16 => bf16::from_f32(value).to_f64(),
        _ => f64::from(value),
    }
}

/// Bytes of elements of `dtype`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the values are of the type"
)]
pub(crate) fn bytes(dtype: DataType, values: &[f64]) -> Vec<u8> {
    let bytes = |&value: &f64| match dtype {
        DataType::F16 => f16::from_f64(value).to_ne_bytes().to_vec(),
        DataType::Bf16 => bf16::from_f64(value).to_ne_bytes().to_vec(),
        _ => (value as f32).to_ne_bytes().to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

/// Elements of `dtype` in device memory.
pub(crate) fn upload(device: &Device, dtype: DataType, values: &[f64]) -> Result<Span> {
    Ok(Buffer::from_slice(device, &bytes(dtype, values))?.span())
}

/// All elements of a span. Queued work is not waited for.
pub(crate) fn download(dtype: DataType, span: &Span) -> Result<Vec<f64>> {
    let mut bytes = vec![0_u8; span.len()];
    span.read(&mut bytes)?;
    let two = |bytes: &[u8]| [bytes[0], bytes[1]];
    Ok(match dtype {
        DataType::F16 => (bytes.chunks_exact(2))
            .map(|bytes| f16::from_ne_bytes(two(bytes)).to_f64())
            .collect(),
        DataType::Bf16 => (bytes.chunks_exact(2))
            .map(|bytes| bf16::from_ne_bytes(two(bytes)).to_f64())
            .collect(),
        _ => (bytes.chunks_exact(4))
            .map(|bytes| f64::from(f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
            .collect(),
    })
}

/// The dot product, summed in pieces so that its error stays far below that of fp32.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let pieces = a.chunks(1024).zip(b.chunks(1024));
    pieces
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>())
        .sum()
}

/// Norm of the difference over the norm of what is expected; infinite if something is not finite.
pub(crate) fn relative_error(values: &[f64], expected: &[f64]) -> f64 {
    let difference: Vec<f64> = values.iter().zip(expected).map(|(a, b)| a - b).collect();
    let error = (dot(&difference, &difference) / dot(expected, expected)).sqrt();
    if error.is_nan() || values.len() != expected.len() {
        return f64::INFINITY;
    }
    error
}

/// AdaSum of vectors (arXiv 2006.02924).
pub(crate) fn adasum(vectors: &[Vec<f64>]) -> Vec<f64> {
    adasum_by(&dot, vectors)
}

/// AdaSum of vectors with this dot product.
pub(crate) fn adasum_by(dot: &impl Fn(&[f64], &[f64]) -> f64, vectors: &[Vec<f64>]) -> Vec<f64> {
    let mut merge = |a: Vec<f64>, b: Vec<f64>| merged(dot, &a, &b);
    Tree::of(vectors.len()).fold(&|leaf| vectors[leaf].clone(), &mut merge)
}

/// a (1 - ab / 2aa) + b (1 - ab / 2bb).
fn merged(dot: &impl Fn(&[f64], &[f64]) -> f64, a: &[f64], b: &[f64]) -> Vec<f64> {
    let product = dot(a, b);
    let weight = |x: &[f64]| 1.0 - product / (2.0 * dot(x, x));
    let (of_a, of_b) = (weight(a), weight(b));
    a.iter().zip(b).map(|(a, b)| of_a * a + of_b * b).collect()
}

/// The mean of vectors of equal length, at least one.
pub(crate) fn mean(vectors: &[Vec<f64>]) -> Vec<f64> {
    let sum = |at| vectors.iter().map(|vector| vector[at]).sum::<f64>();
    (0..vectors[0].len())
        .map(|at| sum(at) / vectors.len() as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_neither_parallel_nor_orthogonal() {
        let [a, b] = [1, 2].map(|seed| vector(DataType::F32, seed, 5000));
        let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        assert!((0.1..0.6).contains(&cosine), "{cosine}");
    }

    #[test]
    fn a_mean_or_a_sum_is_no_adasum() {
        let vectors = [1, 2].map(|seed| vector(DataType::F32, seed, 5000));
        let expected = adasum(&vectors);
        let sum: Vec<f64> = vectors[0]
            .iter()
            .zip(&vectors[1])
            .map(|(a, b)| a + b)
            .collect();
        let mean: Vec<f64> = sum.iter().map(|x| x / 2.0).collect();
        assert!(relative_error(&sum, &expected) > 0.1);
        assert!(relative_error(&mean, &expected) > 0.1);
    }

    #[test]
    fn what_is_not_finite_is_infinitely_wrong() {
        assert!(relative_error(&[f64::NAN, 1.0], &[1.0, 1.0]).is_infinite());
        assert!(relative_error(&[1.0], &[1.0, 1.0]).is_infinite());
    }
}
