//! Gradients by formula, and what reductions must make of them.
//!
//! Numbers repeat, so that the result in double precision is known for gradients of any size after some work for a period of them.

use crate::ascend::DataType;
use crate::cli::lab::reference::{adasum_by, bytes, dot, mean, noise, rounded, roundoff};

/// Elements after which the numbers of a rank repeat: a prime, so that no unit or slice in the place of another looks right.
pub(crate) const PERIOD: usize = 8191;
/// Places in a period between the starts of neighbouring tensors, which so differ.
const STRIDE: usize = 1009;
/// Largest relative error of an element from arithmetic in fp32 between two roundings.
const FP32: f64 = 2e-6;

/// The gradients of all ranks.
pub(crate) struct Gradients {
    dtype: DataType,
    /// Ranks of a server.
    locals: usize,
    /// The mean over all ranks instead of AdaSum.
    mean: bool,
    /// Of each rank, twice, so that a period from any place on lies in it.
    numbers: Vec<Vec<f64>>,
}

impl Gradients {
    /// Those of `ranks` ranks on servers of `locals`.
    pub(crate) fn new(dtype: DataType, ranks: u32, locals: u32, mean: bool) -> Gradients {
        Gradients {
            dtype,
            locals: locals as usize,
            mean,
            numbers: (0..ranks)
                .map(|rank| numbers(dtype, rank).repeat(2))
                .collect(),
        }
    }

    /// Writes the bytes of a tensor of `rank` to `place`.
    pub(crate) fn fill(&self, rank: u32, tensor: usize, place: &mut [u8]) {
        let period = bytes(self.dtype, self.period(rank as usize, tensor));
        for part in place.chunks_mut(period.len()) {
            part.copy_from_slice(&period[..part.len()]);
        }
    }

    /// The first period of the result of a tensor of `count` elements, which repeats.
    pub(crate) fn expected(&self, tensor: usize, count: usize) -> Vec<f64> {
        let len = count.min(PERIOD);
        let ranks = 0..self.numbers.len();
        let vectors: Vec<Vec<f64>> = ranks
            .map(|rank| self.period(rank, tensor)[..len].to_vec())
            .collect();
        if self.mean {
            return mean(&vectors);
        }
        // Whole periods, and what is left.
        let (periods, rest) = (count / len, count % len);
        let dot = |a: &[f64], b: &[f64]| periods as f64 * dot(a, b) + dot(&a[..rest], &b[..rest]);
        adasum_by(
            &dot,
            &vectors.chunks(self.locals).map(mean).collect::<Vec<_>>(),
        )
    }

    /// How many of `values`, elements of a result, are not those that are `expected`.
    pub(crate) fn wrong(&self, values: &[f64], expected: &[f64]) -> u64 {
        let tolerance = self.tolerance();
        // What is not finite is not near.
        let near = |(a, b): &(&f64, &f64)| (*a - *b).abs() <= tolerance * b.abs();
        let right = values.iter().zip(expected).filter(near).count();
        (values.len() - right) as u64
    }

    /// The largest relative error of an element. All weights of AdaSum are positive here, so nothing cancels: errors stay those of
    /// the arithmetic and of each rounding to the elements' type, at most one for each level of the tree and for each 8 ranks of a
    /// server.
    fn tolerance(&self) -> f64 {
        let servers = self.numbers.len() / self.locals;
        let roundings = 2 + self.locals.div_ceil(8) + servers.next_power_of_two().ilog2() as usize;
        roundings as f64 * (FP32 + roundoff(self.dtype))
    }

    fn period(&self, rank: usize, tensor: usize) -> &[f64] {
        let start = tensor * STRIDE % PERIOD;
        &self.numbers[rank][start..start + PERIOD]
    }
}

/// A period of a rank's numbers: two thirds are near 1/2, the others near 1, with a sign that is the same on all ranks. So no two
/// vectors cancel, as no number is above twice another's, and an element of the result is about as large as those that it is made of.
/// The cosine of two ranks' gradients is 0.90, and 0.97 after four and four are merged: only short units need exact sums (`separation.h`).
fn numbers(dtype: DataType, rank: u32) -> Vec<f64> {
    let number = |index: u64| {
        let sign = noise(0, index).signum();
        let place = noise(1 + u64::from(rank), index);
        let magnitude = if place < 1.0 / 3.0 {
            0.5 + (1.0 + place) / 128.0
        } else {
            1.0 - (1.0 - place) / 64.0
        };
        rounded(dtype, sign * magnitude)
    };
    (0..PERIOD as u64).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::lab::reference::adasum;

    /// A whole tensor of a rank.
    fn tensor(gradients: &Gradients, rank: usize, tensor: usize, count: usize) -> Vec<f64> {
        let period = gradients.period(rank, tensor).iter().copied();
        period.cycle().take(count).collect()
    }

    #[test]
    fn a_period_tells_the_result_of_whole_tensors() {
        for (ranks, locals, count) in [
            (4, 1, 3 * PERIOD + 77),
            (6, 2, PERIOD),
            (3, 1, 2 * PERIOD),
            (4, 1, 20),
            (2, 1, 1),
        ] {
            let gradients = Gradients::new(DataType::F32, ranks, locals, false);
            let all: Vec<Vec<f64>> = (0..ranks as usize)
                .map(|rank| tensor(&gradients, rank, 5, count))
                .collect();
            let servers: Vec<Vec<f64>> = all.chunks(locals as usize).map(mean).collect();
            let whole = adasum(&servers);
            let period = gradients.expected(5, count);
            assert_eq!(period.len(), count.min(PERIOD));
            for (at, value) in whole.iter().enumerate() {
                let expected = period[at % PERIOD];
                assert!((value - expected).abs() < 1e-12, "{ranks} {count}: {at}");
            }
        }
    }

    #[test]
    fn bytes_are_those_of_the_numbers() {
        let gradients = Gradients::new(DataType::Bf16, 2, 1, false);
        let mut place = vec![0; 2 * (PERIOD + 3)];
        gradients.fill(1, 7, &mut place);
        let expected = bytes(DataType::Bf16, &tensor(&gradients, 1, 7, PERIOD + 3));
        assert_eq!(place, expected);
    }

    /// What is taken for right is no other combination of the gradients, nor another element's value, whatever the type.
    #[test]
    fn what_is_wrong_is_counted() {
        for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
            for ranks in [2, 4, 16] {
                let gradients = Gradients::new(dtype, ranks, 1, false);
                let count = PERIOD as u64;
                let expected = gradients.expected(3, PERIOD);
                let round = |values: &[f64]| -> Vec<f64> {
                    values.iter().map(|&value| rounded(dtype, value)).collect()
                };
                let mut values = round(&expected);
                assert_eq!(gradients.wrong(&values, &expected), 0);
                values[17] = f64::NAN;
                values[4000] *= 1.1;
                values[5000] = -values[5000];
                assert_eq!(gradients.wrong(&values, &expected), 3);
                let means = Gradients::new(dtype, ranks, 1, true).expected(3, PERIOD);
                assert!(
                    gradients.wrong(&round(&means), &expected) > count / 2,
                    "{dtype:?} {ranks}"
                );
                for other in [gradients.expected(4, PERIOD), expected[1..].to_vec()] {
                    let wrong = gradients.wrong(&round(&other), &expected);
                    assert!(wrong > count / 2, "{dtype:?} {ranks}: {wrong}");
                }
            }
        }
    }

    /// Merged with roundings at each level, as reductions of radix 2 do.
    #[test]
    fn roundings_are_no_errors() {
        for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
            for (ranks, count) in [(2, 1), (8, 2), (8, 3), (16, 1000)] {
                let gradients = Gradients::new(dtype, ranks, 1, false);
                for tensor in 0..200 {
                    let expected = gradients.expected(tensor, count);
                    let mut level: Vec<Vec<f64>> = (0..ranks as usize)
                        .map(|rank| gradients.period(rank, tensor)[..count].to_vec())
                        .collect();
                    while level.len() > 1 {
                        let merged = |pair: &[Vec<f64>]| -> Vec<f64> {
                            let merged = adasum(pair);
                            merged.iter().map(|&value| rounded(dtype, value)).collect()
                        };
                        level = level.chunks(2).map(merged).collect();
                    }
                    assert_eq!(
                        gradients.wrong(&level[0], &expected),
                        0,
                        "{dtype:?} {ranks} {count}"
                    );
                }
            }
        }
    }
}
