//! AdaSum in double precision with plain loops, written apart from the code under test.
//!
//! Rule and tree: arXiv 2006.02924, adjacent servers first. A zero vector is the identity.

/// AdaSum of one tensor over servers: for each prime factor of their number, ascending, that many adjacent
/// vectors are merged by pairing neighbours; an odd one waits.
pub(crate) fn adasum(servers: &[Vec<f64>]) -> Vec<f64> {
    let mut level = servers.to_vec();
    let mut prime = 2;
    while level.len() > 1 {
        while !level.len().is_multiple_of(prime) {
            prime += 1;
        }
        level = level
            .chunks(prime)
            .map(|block| paired(block.to_vec()))
            .collect();
    }
    level.remove(0)
}

fn paired(mut block: Vec<Vec<f64>>) -> Vec<f64> {
    while block.len() > 1 {
        block = block
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => pair_rule(a, b),
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

/// The acceptance rule for fp32: relative to the result, or to the largest input where terms cancel.
///
/// Returns the error as a fraction of what is allowed.
pub(crate) fn error_fp32(out: &[f32], truth: &[f64], inputs: &[Vec<f64>]) -> f64 {
    // A maximum skips NaN: without this a NaN would count as no error.
    if !out.iter().all(|x| x.is_finite()) {
        return f64::INFINITY;
    }
    let difference: Vec<f64> = out
        .iter()
        .zip(truth)
        .map(|(x, t)| f64::from(*x) - t)
        .collect();
    let largest_input = inputs.iter().map(|input| norm(input)).fold(0.0, f64::max);
    let allowed = (1e-6 * norm(truth)).max(4e-6 * largest_input);
    let error = norm(&difference);
    if error == 0.0 { 0.0 } else { error / allowed }
}

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
