//! AdaSum in double precision with plain loops, written apart from the code under test.
//!
//! Rule and tree: arXiv 2006.02924, adjacent servers first. A zero vector is the identity.

use std::ops::Range;

/// AdaSum of one tensor over servers: for each prime factor of their number, ascending, that many adjacent
/// vectors are merged by pairing neighbours; an odd one waits.
pub(crate) fn adasum(servers: &[Vec<f64>]) -> Vec<f64> {
    adasum_with(servers, |_, _| {})
}

/// The same, where `after` may change the vector of a merged subtree, given the servers in it.
pub(crate) fn adasum_with(
    servers: &[Vec<f64>],
    mut after: impl FnMut(Range<usize>, &mut Vec<f64>),
) -> Vec<f64> {
    let leaf = |(server, vector): (usize, &Vec<f64>)| Subtree {
        servers: server..server + 1,
        vector: vector.clone(),
    };
    let mut level: Vec<Subtree> = servers.iter().enumerate().map(leaf).collect();
    let mut prime = 2;
    while level.len() > 1 {
        while !level.len().is_multiple_of(prime) {
            prime += 1;
        }
        level = level
            .chunks(prime)
            .map(|block| paired(block.to_vec(), &mut after))
            .collect();
    }
    level.remove(0).vector
}

#[derive(Clone)]
struct Subtree {
    servers: Range<usize>,
    vector: Vec<f64>,
}

fn paired(mut block: Vec<Subtree>, after: &mut impl FnMut(Range<usize>, &mut Vec<f64>)) -> Subtree {
    while block.len() > 1 {
        block = block
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => {
                    let servers = a.servers.start..b.servers.end;
                    let mut vector = pair_rule(&a.vector, &b.vector);
                    after(servers.clone(), &mut vector);
                    Subtree { servers, vector }
                }
                _ => pair[0].clone(),
            })
            .collect();
    }
    block.remove(0)
}

fn pair_rule(a: &[f64], b: &[f64]) -> Vec<f64> {
    // Scaled to largest element 1, so that no square leaves the range.
    let (scale_a, scale_b) = (largest(a), largest(b));
    if scale_a == 0.0 || scale_b == 0.0 {
        return a.iter().zip(b).map(|(x, y)| x + y).collect();
    }
    let dot: f64 = a
        .iter()
        .zip(b)
        .map(|(x, y)| (x / scale_a) * (y / scale_b))
        .sum();
    let square_a: f64 = a.iter().map(|x| (x / scale_a) * (x / scale_a)).sum();
    let square_b: f64 = b.iter().map(|y| (y / scale_b) * (y / scale_b)).sum();
    // dot * scale_b / (square_a * scale_a) is (a.b) / |a|^2.
    let weight_a = 1.0 - dot / square_a / 2.0 * (scale_b / scale_a);
    let weight_b = 1.0 - dot / square_b / 2.0 * (scale_a / scale_b);
    a.iter()
        .zip(b)
        .map(|(x, y)| weight_a * x + weight_b * y)
        .collect()
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()))
}

/// The mean of the ranks of one server.
pub(crate) fn mean(ranks: &[&[f32]]) -> Vec<f64> {
    let count = ranks.len() as f64;
    (0..ranks[0].len())
        .map(|i| ranks.iter().map(|rank| f64::from(rank[i])).sum::<f64>() / count)
        .collect()
}

/// Euclidean norm.
pub(crate) fn norm(v: &[f64]) -> f64 {
    let scale = largest(v);
    if scale == 0.0 {
        return 0.0;
    }
    scale
        * v.iter()
            .map(|x| (x / scale) * (x / scale))
            .sum::<f64>()
            .sqrt()
}

/// The acceptance rule: relative to the result, or to the largest input where terms cancel.
///
/// Returns the error as a fraction of what is allowed; infinite if the result is not finite.
pub(crate) fn error(out: &[f32], truth: &[f64], inputs: &[Vec<f64>], bounds: Bounds) -> f64 {
    assert_eq!(out.len(), truth.len(), "elements");
    let difference: Vec<f64> = out
        .iter()
        .zip(truth)
        .map(|(x, t)| f64::from(*x) - t)
        .collect();
    // The norm's maximum skips a NaN.
    if difference.iter().any(|x| !x.is_finite()) {
        return f64::INFINITY;
    }
    let largest_input = inputs.iter().map(|input| norm(input)).fold(0.0, f64::max);
    let allowed = (bounds.0 * norm(truth)).max(bounds.1 * largest_input);
    let error = norm(&difference);
    if error == 0.0 { 0.0 } else { error / allowed }
}

/// [`error`] by the bounds of fp32.
pub(crate) fn error_fp32(out: &[f32], truth: &[f64], inputs: &[Vec<f64>]) -> f64 {
    error(out, truth, inputs, FP32)
}

/// Factors for the norm of the result and for the largest norm of an input.
pub(crate) type Bounds = (f64, f64);

pub(crate) const FP32: Bounds = (1e-6, 4e-6);
pub(crate) const FP16: Bounds = (2e-3, 2e-3);
pub(crate) const BF16: Bounds = (1.2e-2, 1.2e-2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_of_the_pair_rule() {
        let close = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(a, b)| (a - b).abs() < 1e-12);
        let g = vec![3.0, -4.0];
        assert!(close(&adasum(&[g.clone(), g.clone()]), &g), "identical");
        assert!(
            close(&adasum(&[vec![1.0, 0.0], vec![0.0, 2.0]]), &[1.0, 2.0]),
            "orthogonal"
        );
        assert!(
            close(&adasum(&[vec![1.0, 1.0], vec![3.0, 3.0]]), &[2.0, 2.0]),
            "parallel"
        );
        assert!(close(&adasum(&[vec![0.0, 0.0], g.clone()]), &g), "zero");
        assert!(
            close(&adasum(&[g.clone(), vec![-3.0, 4.0]]), &[0.0, 0.0]),
            "opposite"
        );
    }
}
