//! What the reduction did to each tensor, in double precision from the tensors of the files.
//!
//! The vectors g_1 .. g_r are those that are combined: the ranks' tensors, or with several devices a server the means of
//! the servers.

use serde::Serialize;

use super::tensor::Tensor;

/// A node whose squared norm is smaller than this part of its leaves' is what rounding left of zero.
const NOISE: f64 = 1e-28;

/// Figures of one tensor. What has no value (see each) is NaN, which JSON has as `null`.
#[derive(Debug, Serialize)]
pub(super) struct Statistics {
    /// The tensor.
    pub(super) name: String,
    /// |g_i|.
    pub(super) norms: Vec<f64>,
    /// Of the result as it is written.
    pub(super) norm: f64,
    /// The mean of the cosines of all pairs of vectors that are not zero; NaN if there is no such pair.
    pub(super) cosine: f64,
    /// The result's norm divided by that of the mean of g_1 .. g_r; 0 for a result of zero.
    pub(super) gain: f64,
    /// How much cancelled: over the nodes of AdaSum's tree, the largest ratio of the summed squared norms of the
    /// weighted vectors that make up a node to the squared norm of the node, at least 1. For mean and sum the only node is
    /// the sum.
    pub(super) kappa: f64,
    /// Whether the result has a NaN or an infinity, or a rank's tensor has.
    pub(super) nonfinite: bool,
}

/// The figures of one tensor.
///
/// `ranks` are the inputs of all ranks, `locals` of them a server; `tree` says whether the result is AdaSum.
pub(super) fn of(ranks: &[&Tensor], locals: usize, tree: bool, result: &Tensor) -> Statistics {
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
pub(super) fn nonfinite(ranks: &[&Tensor], result: &Tensor) -> bool {
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

/// Summed in blocks, so that the error does not grow with the length.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let block = |(a, b): (&[f64], &[f64])| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    a.chunks(4096).zip(b.chunks(4096)).map(block).sum()
}

/// What cancels exactly does no harm: 1.
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

fn kappa(servers: &[&[&Tensor]]) -> f64 {
    let mut largest = 1.0;
    evaluate(&tree(servers.len()), servers, &mut largest);
    largest
}

/// The order in which vectors are merged.
#[derive(Debug, PartialEq, Eq)]
enum Tree {
    Leaf(usize),
    Pair(Box<Tree>, Box<Tree>),
}

/// For each prime factor of `leaves`, ascending, that many adjacent subtrees are merged by pairing neighbours, an odd
/// one waits: the tree of `plan`.
fn tree(leaves: usize) -> Tree {
    let mut level: Vec<Tree> = (0..leaves).map(Tree::Leaf).collect();
    let mut prime = 2;
    while level.len() > 1 {
        while !level.len().is_multiple_of(prime) {
            prime += 1;
        }
        let mut next = Vec::with_capacity(level.len() / prime);
        let mut rest = level.into_iter().peekable();
        while rest.peek().is_some() {
            next.extend(paired(rest.by_ref().take(prime).collect()));
        }
        level = next;
    }
    level.pop().unwrap_or(Tree::Leaf(0))
}

fn paired(mut block: Vec<Tree>) -> Option<Tree> {
    while block.len() > 1 {
        let mut rest = block.into_iter();
        let mut next = Vec::new();
        while let Some(a) = rest.next() {
            next.push(match rest.next() {
                Some(b) => Tree::Pair(Box::new(a), Box::new(b)),
                None => a,
            });
        }
        block = next;
    }
    block.pop()
}

/// The node that `tree` becomes. Vectors are made when they are needed: as many live as the tree is deep.
fn evaluate(tree: &Tree, servers: &[&[&Tensor]], kappa: &mut f64) -> Node {
    match tree {
        Tree::Leaf(server) => {
            let vector = mean(servers[*server]);
            let spread = square(&vector);
            Node { vector, spread }
        }
        Tree::Pair(a, b) => {
            let (mut a, b) = (evaluate(a, servers, kappa), evaluate(b, servers, kappa));
            let dot = dot(&a.vector, &b.vector);
            let weight_a = weight(dot, square(&a.vector), a.spread);
            let weight_b = weight(dot, square(&b.vector), b.spread);
            a.vector.iter_mut().for_each(|value| *value *= weight_a);
            add(&mut a.vector, &b.vector, weight_b);
            a.spread = weight_a * weight_a * a.spread + weight_b * weight_b * b.spread;
            let ratio = ratio(a.spread, square(&a.vector));
            // A NaN wins and stays.
            if !kappa.is_nan() && (ratio.is_nan() || ratio > *kappa) {
                *kappa = ratio;
            }
            a
        }
    }
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
    use super::super::tensor::Shape;
    use super::*;
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

    #[test]
    fn the_tree_pairs_neighbours_prime_by_prime() {
        fn brackets(tree: &Tree) -> String {
            match tree {
                Tree::Leaf(leaf) => leaf.to_string(),
                Tree::Pair(a, b) => format!("({}{})", brackets(a), brackets(b)),
            }
        }
        let of = |leaves| brackets(&tree(leaves));
        assert_eq!(of(1), "0");
        assert_eq!(of(5), "(((01)(23))4)");
        assert_eq!(of(6), "(((01)(23))(45))");
        assert_eq!(of(9), "((((01)2)((34)5))((67)8))");
    }
}
