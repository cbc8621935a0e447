//! Inputs by formula, and what the kernels' results must be, by plain loops in double precision.

use adasum::kernel::layout::{Segment, record_exponents, record_flags};

use crate::support::noise;
use crate::support::oracle::{adasum, error_fp32};

pub(super) fn random(len: usize, seed: u64, scale: f32) -> Vec<f32> {
    (0..len as u64).map(|i| noise(&[seed, i]) * scale).collect()
}

pub(super) fn part<'a>(values: &'a [f32], segment: &Segment) -> &'a [f32] {
    &values[segment.offset as usize..(segment.offset + segment.len) as usize]
}

pub(super) fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Summed in pieces, so that double precision is enough for millions of elements.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let of = |(x, y): (&[f32], &[f32])| -> f64 {
        x.iter()
            .zip(y)
            .map(|(&x, &y)| f64::from(x) * f64::from(y))
            .sum()
    };
    a.chunks(1024).zip(b.chunks(1024)).map(of).sum()
}

/// The AdaSum of some vectors and what led to it.
pub(super) struct Tree {
    pub(super) result: Vec<f64>,
    pub(super) weights: Vec<f64>,
    /// The largest ratio of what goes into a merge to what comes out.
    pub(super) kappa: f64,
}

struct Node {
    vector: Vec<f64>,
    weights: Vec<f64>,
}

/// Merges vector by vector: neighbours first, an odd one waits.
pub(super) fn tree(vectors: &[&[f32]]) -> Tree {
    // A common scale keeps squares in range, all but those of negligible vectors.
    let largest = vectors
        .iter()
        .copied()
        .flatten()
        .fold(0.0_f64, |largest, &x| largest.max(f64::from(x).abs()));
    let scale = if largest == 0.0 { 1.0 } else { largest };
    let leaves: Vec<Vec<f64>> = vectors
        .iter()
        .map(|x| x.iter().map(|&x| f64::from(x) / scale).collect())
        .collect();
    let mut nodes: Vec<Node> = (0..leaves.len())
        .map(|i| Node {
            vector: leaves[i].clone(),
            weights: (0..leaves.len())
                .map(|j| if i == j { 1.0 } else { 0.0 })
                .collect(),
        })
        .collect();
    let mut kappa = 1.0_f64;
    while nodes.len() > 1 {
        let mut merged = Vec::new();
        let mut rest = nodes.into_iter();
        while let Some(a) = rest.next() {
            let Some(b) = rest.next() else {
                merged.push(a);
                break;
            };
            let node = merge(&a, &b);
            let spread: f64 = node
                .weights
                .iter()
                .zip(&leaves)
                .map(|(weight, x)| weight * weight * product(x, x))
                .sum();
            let square = product(&node.vector, &node.vector);
            if square > 0.0 {
                kappa = kappa.max(spread / square);
            }
            merged.push(node);
        }
        nodes = merged;
    }
    let root = nodes.remove(0);
    Tree {
        result: root.vector.iter().map(|x| x * scale).collect(),
        weights: root.weights,
        kappa,
    }
}

fn merge(a: &Node, b: &Node) -> Node {
    let [dot, square_a, square_b] = [
        product(&a.vector, &b.vector),
        product(&a.vector, &a.vector),
        product(&b.vector, &b.vector),
    ];
    let weight = |square: f64| {
        if square == 0.0 {
            1.0
        } else {
            1.0 - dot / square / 2.0
        }
    };
    let join = |x: &[f64], y: &[f64]| -> Vec<f64> {
        let (u, v) = (weight(square_a), weight(square_b));
        x.iter().zip(y).map(|(x, y)| u * x + v * y).collect()
    };
    Node {
        vector: join(&a.vector, &b.vector),
        weights: join(&a.weights, &b.weights),
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
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

/// The sum of the products of a unit as the kernel promises it: in 64 lanes for each of eight strips of 512 elements,
/// then halves of the lanes added to halves down to 8 sums, then neighbours; each step rounded to fp32.
pub(super) fn lane_sum(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = vec![0.0_f32; 512];
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        let product = x * y;
        sums[i / 512 * 64 + i % 64] += product;
    }
    while sums.len() > 8 {
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

/// The least eigenvalue of the Gram matrix of the vectors scaled to norm 1, without those of zeros: by Jacobi's rotations.
pub(super) fn least_eigenvalue(vectors: &[&[f32]]) -> f64 {
    let vectors: Vec<_> = vectors.iter().filter(|x| dot(x, x) > 0.0).collect();
    let n = vectors.len();
    let norms: Vec<f64> = vectors.iter().map(|x| dot(x, x).sqrt()).collect();
    let mut matrix: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let row = (0..n).map(|j| dot(vectors[i], vectors[j]) / (norms[i] * norms[j]));
            row.collect()
        })
        .collect();
    for _ in 0..12 {
        for p in 0..n {
            for q in p + 1..n {
                let angle = 0.5 * (2.0 * matrix[p][q]).atan2(matrix[q][q] - matrix[p][p]);
                let (sin, cos) = angle.sin_cos();
                for row in &mut matrix {
                    let (a, b) = (row[p], row[q]);
                    row[p] = cos * a - sin * b;
                    row[q] = sin * a + cos * b;
                }
                let (above, below) = matrix.split_at_mut(q);
                for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
                    let (a, b) = (*x, *y);
                    *x = cos * a - sin * b;
                    *y = sin * a + cos * b;
                }
            }
        }
    }
    (0..n).map(|i| matrix[i][i]).fold(f64::INFINITY, f64::min)
}
