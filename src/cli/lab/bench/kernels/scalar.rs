//! What the kernels are compared with: one plain loop for ab, aa and bb in fp64, as Horovod computes fp32 gradients.

use std::hint::black_box;

use crate::cli::lab::bench::operands;
use crate::cli::lab::element_type::ElementType;

/// Two fp32 vectors and how often they are gone through.
pub(crate) struct ScalarDot {
    a: Vec<f32>,
    b: Vec<f32>,
    rounds: usize,
}

impl ScalarDot {
    pub(crate) fn new(elements: usize, rounds: usize) -> Self {
        let vector = |seed| {
            operands::random(ElementType::F32, 4 * elements, seed)
                .chunks_exact(4)
                .map(|bytes| f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                .collect()
        };
        ScalarDot {
            a: vector(1),
            b: vector(2),
            rounds,
        }
    }

    pub(crate) fn run(&mut self) {
        for _ in 0..self.rounds {
            black_box(dots(black_box(&self.a), black_box(&self.b)));
        }
    }
}

/// ab, aa, bb, added in order: the compiler must keep the order, so it cannot use vector instructions for the sums.
fn dots(a: &[f32], b: &[f32]) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (f64::from(*a), f64::from(*b));
        sums[0] += a * b;
        sums[1] += a * a;
        sums[2] += b * b;
    }
    sums
}

#[cfg(test)]
mod tests {
    #[test]
    fn sums_are_ab_aa_and_bb() {
        assert_eq!(
            crate::cli::lab::bench::kernels::scalar::dots(&[1.0, 2.0], &[3.0, -1.0]),
            [1.0, 5.0, 10.0]
        );
    }
}
