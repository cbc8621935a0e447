//! What the reduction did to each tensor, in double precision from the tensors of the files.
//!
//! The vectors g_1 .. g_r are those that are combined: the ranks' tensors, or with several devices a server the means of
//! the servers.

use serde::Serialize;

use crate::cli::lab::reduce::tensor::Tensor;
use crate::cli::lab::reference::dot;
use crate::cli::lab::tree::Tree;

/// A node whose squared norm is smaller than this part of its leaves' is what rounding left of zero.
const NOISE: f64 = 1e-28;

/// Figures of one tensor. What has no value (see each) is NaN, which JSON has as `null`.
#[derive(Debug, Serialize)]
pub(crate) struct Statistics {
    /// The tensor.
    pub(crate) name: String,
    /// |g_i|.
    pub(crate) norms: Vec<f64>,
    /// Norm of the result as it is written.
    pub(crate) norm: f64,
    /// The mean of the cosines of all pairs of vectors that are not zero; NaN if there is no such pair.
    pub(crate) cosine: f64,
    /// The result's norm divided by that of the mean of g_1 .. g_r; 0 for a result of zero.
    pub(crate) gain: f64,
    /// How much cancelled: over the nodes of AdaSum's tree, the largest ratio of the summed squared norms of the
    /// weighted vectors that make up a node to the squared norm of the node, at least 1. For mean and sum the only node is
    /// the sum.
    pub(crate) kappa: f64,
    /// Whether the result has a NaN or an infinity, or a rank's tensor has.
    pub(crate) nonfinite: bool,
}

/// The figures of one tensor.
///
/// `ranks` are the inputs of all ranks, `locals` of them a server; `tree` says whether the result is AdaSum.
pub(crate) fn of(ranks: &[&Tensor], locals: usize, tree: bool, result: &Tensor) -> Statistics {
    let servers: Vec<&[&Tensor]> = ranks.chunks(locals).collect();
    let count = result.values().len();
    let mut sum = vec![0.0; count];
    let mut directions = vec![0.0; count];
    let mut norms = Vec::with_capacity(servers.len());
    for server in &servers {
        let vector = mean(server);
        let norm = square(&vector).sqrt();
        add(&mut sum, &vector, 1.0);
        // A NaN is no zero: it must come through.
        if norm != 0.0 {
            add(&mut directions, &vector, 1.0 / norm);
        }
        norms.push(norm);
    }
    let written: Vec<f64> = result.values().collect();
    let norm = square(&written).sqrt();
    let present = norms.iter().filter(|&&norm| norm != 0.0).count() as f64;
    let mean_norm = square(&sum).sqrt() / servers.len() as f64;
    Statistics {
        name: result.name.clone(),
        // |u_1 + .. + u_m|^2 is m and twice the cosines of all pairs.
        cosine: match present >= 2.0 {
            true => (square(&directions) - present) / (present * (present - 1.0)),
            false => f64::NAN,
        },
        gain: match norm == 0.0 {
            true => 0.0,
            false => norm / mean_norm,
        },
        kappa: match tree {
            true => kappa(&servers),
            false => {
                let squares: f64 = norms.iter().map(|norm| norm * norm).sum();
                ratio(squares, square(&sum))
            }
        },
        nonfinite: nonfinite(ranks, result),
        norm,
        norms,
    }
}

/// Whether the result or a rank's tensor has a NaN or an infinity.
pub(crate) fn nonfinite(ranks: &[&Tensor], result: &Tensor) -> bool {
    let mut tensors = ranks.iter().chain([&result]);
    tensors.any(|tensor| !tensor.values().all(f64::is_finite))
}

/// The mean of the ranks of a server.
fn mean(ranks: &[&Tensor]) -> Vec<f64> {
    let mut sum: Vec<f64> = ranks[0].values().collect();
    for rank in &ranks[1..] {
        for (sum, value) in sum.iter_mut().zip(rank.values()) {
            *sum += value;
        }
    }
    if ranks.len() > 1 {
        let count = ranks.len() as f64;
        sum.iter_mut().for_each(|sum| *sum /= count);
    }
    sum
}

fn add(sum: &mut [f64], vector: &[f64], factor: f64) {
    for (sum, value) in sum.iter_mut().zip(vector) {
        *sum += factor * value;
    }
}

fn square(vector: &[f64]) -> f64 {
    dot(vector, vector)
}

/// `squares` over `square`, at least 1; 1 for what cancels exactly, which does no harm.
fn ratio(squares: f64, square: f64) -> f64 {
    if square <= NOISE * squares {
        return 1.0;
    }
    // NaN stays.
    if squares / square < 1.0 {
        1.0
    } else {
        squares / square
    }
}

/// A subtree: its vector and the sum of the squared norms of the weighted vectors in it.
struct Node {
    vector: Vec<f64>,
    spread: f64,
}

/// Vectors are made when they are needed: as many live as the tree is deep.
fn kappa(servers: &[&[&Tensor]]) -> f64 {
    let mut largest = 1.0_f64;
    let leaf = |server: usize| {
        let vector = mean(servers[server]);
        let spread = square(&vector);
        Node { vector, spread }
    };
    let mut pair = |mut a: Node, b: Node| {
        let dot = dot(&a.vector, &b.vector);
        let weight_a = weight(dot, square(&a.vector), a.spread);
        let weight_b = weight(dot, square(&b.vector), b.spread);
        a.vector.iter_mut().for_each(|value| *value *= weight_a);
        add(&mut a.vector, &b.vector, weight_b);
        a.spread = weight_a * weight_a * a.spread + weight_b * weight_b * b.spread;
        let ratio = ratio(a.spread, square(&a.vector));
        // A NaN wins and stays.
        if !largest.is_nan() && (ratio.is_nan() || ratio > largest) {
            largest = ratio;
        }
        a
    };
    Tree::of(servers.len()).fold(&leaf, &mut pair);
    largest
}

/// The weight of a node; one that cancelled is left out.
fn weight(dot: f64, square: f64, spread: f64) -> f64 {
    match square <= NOISE * spread {
        true => 0.0,
        false => 1.0 - dot / square / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::lab::reduce::tensor::Shape;
    use crate::plan::DType;

    fn tensor(values: &[f32]) -> Tensor {
        Tensor {
            name: "t".to_owned(),
            shape: Shape::new(vec![values.len() as u64]),
            dtype: DType::F32,
            data: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    fn figures(ranks: &[&[f32]], locals: usize, tree: bool, result: &[f32]) -> Statistics {
        let ranks: Vec<Tensor> = ranks.iter().map(|rank| tensor(rank)).collect();
        let ranks: Vec<&Tensor> = ranks.iter().collect();
        of(&ranks, locals, tree, &tensor(result))
    }

    #[test]
    fn figures_of_two_vectors() {
        let s = figures(&[&[3.0, 0.0], &[4.0, 4.0]], 1, true, &[6.0, 8.0]);
        assert_eq!((s.norms[0], s.norm), (3.0, 10.0));
        assert!((s.cosine - 0.5_f64.sqrt()).abs() < 1e-15);
        // The mean is (3.5, 2).
        assert!((s.gain - 10.0 / 16.25_f64.sqrt()).abs() < 1e-15);
        assert!(!s.nonfinite);
    }

    #[test]
    fn the_cosine_is_the_mean_over_pairs_without_zero_vectors() {
        let s = figures(
            &[&[2.0, 0.0], &[0.0, 0.0], &[0.0, 5.0], &[-1.0, 0.0]],
            1,
            true,
            &[1.0, 5.0],
        );
        assert!((s.cosine + 1.0 / 3.0).abs() < 1e-15, "{}", s.cosine);
        let s = figures(&[&[2.0, 0.0], &[0.0, 0.0]], 1, true, &[2.0, 0.0]);
        assert!(s.cosine.is_nan());
        assert_eq!((s.gain, s.kappa), (2.0, 1.0));
    }

    #[test]
    fn servers_are_combined_by_their_means() {
        let s = figures(
            &[&[1.0, 0.0], &[3.0, 0.0], &[0.0, 8.0], &[0.0, 0.0]],
            2,
            true,
            &[2.0, 4.0],
        );
        assert_eq!(s.norms, [2.0, 4.0]);
        assert_eq!(s.cosine, 0.0);
    }

    #[test]
    fn kappa_tells_what_cancelled() {
        // Opposite, of lengths 1 and 2: the mean, half as long as the shorter; weights 2 and 5/4.
        let s = figures(&[&[1.0], &[-2.0]], 1, true, &[-0.5]);
        assert!((s.kappa - (4.0 + 6.25) / 0.25).abs() < 1e-12, "{}", s.kappa);
        // Cancelled exactly, which does no harm.
        let s = figures(
            &[&[1.0, 0.3], &[-1.0, -0.3], &[0.0, 1.0], &[1.0, 0.0]],
            1,
            true,
            &[1.0, 1.0],
        );
        assert_eq!(s.kappa, 1.0);
        let s = figures(&[&[1.0], &[-2.0]], 1, false, &[-1.0]);
        assert_eq!(s.kappa, 5.0);
    }

    #[test]
    fn what_is_not_finite_is_flagged_and_has_no_figures() {
        let s = figures(
            &[&[1.0, f32::NAN], &[1.0, 1.0]],
            1,
            true,
            &[f32::NAN, f32::NAN],
        );
        assert!(s.nonfinite && s.norms[0].is_nan() && s.norm.is_nan());
        assert!(s.cosine.is_nan() && s.gain.is_nan() && s.kappa.is_nan());
        assert_eq!(s.norms[1], 2.0_f64.sqrt());
        let json = serde_json::to_value(&s).unwrap();
        assert!(json["norm"].is_null() && json["norms"][0].is_null());
    }
}
