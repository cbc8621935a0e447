//! What a reduction did to each tensor, from the scalars that it left on the device.
//!
//! In each round some ranks of a group have the Gram matrix of the vectors that the group merged, and all have what the
//! kernels made of it. With one round these are the servers' vectors, and every figure follows from the matrix. With
//! several, no rank sees two servers' vectors side by side unless they met in the first. There the mean of a subtree's
//! vectors, whose length is known from the rounds before, is taken to point where the subtree's AdaSum points.

use std::ops::Range;
use std::time::Duration;

use super::gradient::LastBucket;
use super::stage::{Merge, Solve};
use super::{GradientReducer, World};
use crate::ascend::Span;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::layout::{
    COEFFICIENT_FLAGS, COEFFICIENT_KAPPA, COEFFICIENT_LEAF_NORM, COEFFICIENT_RESULT_NORM,
    COEFFICIENT_WORDS, entry_index, record_exponents, record_words,
};

/// Figures of one tensor in the last reduction; NaN where there is no number, all of them if the tensor is not finite.
///
/// The vectors are those that AdaSum combined: g_s is that of server s, the mean over its ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorStatistics {
    /// Name of the tensor.
    pub name: String,
    /// |g_s| of each server.
    pub norms: Vec<f64>,
    /// |result|.
    pub norm: f64,
    /// The mean of the cosines of all pairs of servers' vectors that are not zero; NaN if there is no such pair. Exact
    /// with one round; with several an estimate, which is exact for vectors that are parallel or orthogonal.
    pub cosine: f64,
    /// |result| / |mean of all g_s|; 0 for a result of zero. As exact as the cosine.
    pub gain: f64,
    /// How much cancelled: the largest ratio, over the nodes of the tree, of the summed squared norms of the weighted vectors
    /// that a round put together to the squared norm of the node; at least 1. Largest of all rounds.
    pub kappa: f64,
    /// Whether any rank had a NaN or an infinity in it.
    pub nonfinite: bool,
}

/// What is known of the vectors of a subtree, in words that ranks exchange; all NaN where a rank knows nothing.
type Subtree = [f64; 4];
/// Norm of their mean.
const MEAN: usize = 0;
/// Sum of their norms.
const NORMS: usize = 1;
/// Sum of the cosines of all pairs.
const COSINES: usize = 2;
/// How many are not zero.
const PRESENT: usize = 3;

const UNKNOWN: Subtree = [f64::NAN; 4];

impl GradientReducer {
    /// Figures of all tensors in the last reduction, the same on all ranks.
    ///
    /// Collective: all ranks must call it, after the same reductions. Waits for them, then exchanges a few numbers; it
    /// allocates, so it is not for every step. How exact the figures are is that of the scalars: about 1e-6 relative to the
    /// largest vector.
    ///
    /// # Errors
    /// `Unsupported` where nothing was combined by AdaSum: other reductions, or a single server. A failure of the reduction, or a
    /// timeout.
    pub fn statistics(&self) -> Result<Vec<TensorStatistics>> {
        let world = &self.world;
        let mut merging = self.last_buckets()?;
        self.solve_all(&merging)?;
        merging.retain(|(bucket, _)| !bucket.is_empty());
        if merging
            .iter()
            .any(|(bucket, _)| bucket.rounds().next().is_none())
        {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "only AdaSum over several servers has statistics",
            ));
        }
        let subtrees = self.subtrees(&merging)?;
        let mut figures = vec![Figures::default(); self.specs.len()];
        for (bucket, tensors) in &merging {
            for (merge, weights) in bucket.rounds() {
                let words = coefficients(weights, tensors.len())?;
                for (tensor, words) in tensors.iter().zip(words.chunks_exact(COEFFICIENT_WORDS)) {
                    if let &Some(tensor) = tensor {
                        figures[tensor].add(merge, words);
                    }
                }
            }
        }
        let own: Vec<[f64; 2]> = figures
            .iter()
            .map(|figure| [figure.own, figure.kappa])
            .collect();
        let all = exchange(world, &own, self.options.create_timeout)?;
        let locals = world.locals() as usize;
        let of = |(tensor, figure): (usize, &Figures)| {
            let ranks: Vec<[f64; 2]> = all.iter().map(|rank| rank[tensor]).collect();
            let whole = subtrees.iter().map(|rank| rank[tensor]);
            let whole = whole.into_iter().find(|subtree| !subtree[MEAN].is_nan());
            figure.joined(
                &self.specs[tensor].name,
                &ranks,
                locals,
                whole.unwrap_or([0.0; 4]),
            )
        };
        Ok(figures.iter().enumerate().map(of).collect())
    }

    /// What each rank knows of the whole tree of each tensor. Collective.
    fn subtrees(&self, merging: &[LastBucket<'_>]) -> Result<Vec<Vec<Subtree>>> {
        let rounds = merging.iter().flat_map(|(bucket, _)| bucket.rounds());
        // Every rank takes part in the last round.
        let count = rounds.map(|(merge, _)| merge.round + 1).max().unwrap_or(0);
        let mut all = vec![vec![UNKNOWN; self.specs.len()]; self.world.size() as usize];
        for round in 0..count {
            let mut mine = all[self.world.rank() as usize].clone();
            for (bucket, tensors) in merging {
                if bucket.rounds().any(|(merge, _)| merge.round == round) {
                    let tensors = tensors.iter().flatten();
                    tensors.for_each(|&tensor| mine[tensor] = UNKNOWN);
                }
                for solve in bucket.solves().filter(|solve| solve.merge.round == round) {
                    let tensors = &tensors[solve.first..];
                    for (tensor, gram) in tensors.iter().zip(solve.grams()?) {
                        let &Some(tensor) = tensor else { continue };
                        let known = |servers: &Range<u32>| {
                            let locals = self.world.locals();
                            let ranks = servers.start * locals..servers.end * locals;
                            let mut of_ranks = ranks.map(|rank| all[rank as usize][tensor]);
                            of_ranks.find(|subtree| !subtree[MEAN].is_nan())
                        };
                        mine[tensor] = merged(&solve.merge, &gram, known);
                    }
                }
            }
            all = exchange(&self.world, &mine, self.options.create_timeout)?;
        }
        Ok(all)
    }
}

/// The subtree of one tensor that a round makes: `gram` is of its parts' vectors, `known` tells what is known of a part.
fn merged(merge: &Merge, gram: &[f64], known: impl Fn(&Range<u32>) -> Option<Subtree>) -> Subtree {
    let radix = merge.subtrees.len();
    let norm = |part: usize| gram[part * radix + part].max(0.0).sqrt();
    let part = |(part, servers): (usize, &Range<u32>)| match servers.len() {
        1 => [
            norm(part),
            norm(part),
            0.0,
            f64::from(u8::from(norm(part) > 0.0)),
        ],
        _ => known(servers).unwrap_or(UNKNOWN),
    };
    let parts: Vec<Subtree> = merge.subtrees.iter().enumerate().map(part).collect();
    let servers = |part: usize| merge.subtrees[part].len() as f64;
    let sum = |word: usize| parts.iter().map(|part| part[word]).sum::<f64>();
    let mut cosines = sum(COSINES);
    let mut square_of_sum = 0.0;
    for a in 0..radix {
        square_of_sum += (servers(a) * parts[a][MEAN]).powi(2);
        for b in a + 1..radix {
            let norms = norm(a) * norm(b);
            if norms == 0.0 {
                continue;
            }
            let cosine = (gram[a * radix + b] / norms).clamp(-1.0, 1.0);
            // The inner products of all pairs across, summed.
            let product = servers(a) * parts[a][MEAN] * servers(b) * parts[b][MEAN] * cosine;
            square_of_sum += 2.0 * product;
            let pairs = parts[a][PRESENT] * parts[b][PRESENT];
            cosines += pairs * product / (parts[a][NORMS] * parts[b][NORMS]);
        }
    }
    let merged: f64 = (0..radix).map(servers).sum();
    let mean = square_of_sum.max(0.0).sqrt() / merged;
    [mean, sum(NORMS), cosines, sum(PRESENT)]
}

/// What the kernels computed for `tensors` tensors.
fn coefficients(weights: &Span, tensors: usize) -> Result<Vec<f32>> {
    let mut words = vec![0.0; tensors * COEFFICIENT_WORDS];
    weights
        .slice(0..size_of_val(&words[..]))?
        .read(&mut words)?;
    Ok(words)
}

/// What the kernels tell every rank about a tensor.
#[derive(Clone, Default)]
struct Figures {
    /// Norm of this rank's own vector, before it was merged.
    own: f64,
    norm: f64,
    kappa: f64,
    nonfinite: bool,
}

impl Figures {
    /// Takes in the next round's coefficients.
    fn add(&mut self, merge: &Merge, words: &[f32]) {
        if merge.subtrees[merge.own].len() == 1 {
            self.own = f64::from(words[COEFFICIENT_LEAF_NORM + merge.own]);
        }
        self.norm = f64::from(words[COEFFICIENT_RESULT_NORM]);
        self.kappa = f64::from(words[COEFFICIENT_KAPPA]).max(self.kappa);
        self.nonfinite = words[COEFFICIENT_FLAGS] != 0.0;
    }

    /// Together with norm and kappa of all ranks, and the whole tree.
    fn joined(
        &self,
        name: &str,
        ranks: &[[f64; 2]],
        locals: usize,
        whole: Subtree,
    ) -> TensorStatistics {
        let figure = |value: f64| if self.nonfinite { f64::NAN } else { value };
        let norms = ranks.iter().step_by(locals).map(|rank| figure(rank[0]));
        let kappa = ranks.iter().map(|rank| rank[1]).fold(1.0, f64::max);
        // 0 / 0 where there is no pair.
        let pairs = whole[PRESENT] * (whole[PRESENT] - 1.0) / 2.0;
        let gain = if self.norm == 0.0 {
            0.0
        } else {
            self.norm / whole[MEAN]
        };
        TensorStatistics {
            name: name.to_owned(),
            norms: norms.collect(),
            norm: figure(self.norm),
            cosine: figure(if pairs > 0.0 {
                whole[COSINES] / pairs
            } else {
                f64::NAN
            }),
            gain: figure(gain),
            kappa: figure(kappa),
            nonfinite: self.nonfinite,
        }
    }
}

impl Solve {
    /// The inner products of the vectors that this round merged, row by row, for each tensor that this rank solved for. The
    /// streams must be drained.
    fn grams(&self) -> Result<Vec<Vec<f64>>> {
        let mut references = vec![0_u64; self.list.refs.len() / size_of::<u64>()];
        self.list.refs.read(&mut references)?;
        let mut indices = vec![0_u64; self.list.indices.len() / size_of::<u64>()];
        self.list.indices.read(&mut indices)?;
        let mut records = vec![0.0_f32; self.records.len() / size_of::<f32>()];
        self.records.read(&mut records)?;

        let index = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        let records: Vec<&[f32]> = records.chunks_exact(record_words(self.radix)).collect();
        let grams = references.chunks_exact(2).map(|reference| {
            let (first, count) = (index(reference[0]), index(reference[1]));
            let own = indices[first..first + count].iter();
            gram(self.radix, own.map(|&record| records[index(record)]))
        });
        Ok(grams.collect())
    }
}

/// The sum of records as a full matrix.
fn gram<'a>(radix: usize, records: impl Iterator<Item = &'a [f32]>) -> Vec<f64> {
    let mut sum = vec![0.0; radix * radix];
    for record in records {
        let exponent = |vector: usize| f64::from(record[record_exponents(radix) + vector]);
        for row in 0..radix {
            for column in row..radix {
                let entry = 2 * entry_index(row, column, radix);
                let value = f64::from(record[entry]) + f64::from(record[entry + 1]);
                let value = value * (exponent(row) + exponent(column)).exp2();
                sum[row * radix + column] += value;
                if row != column {
                    sum[column * radix + row] += value;
                }
            }
        }
    }
    sum
}

/// What each rank gives for each tensor, rank by rank.
fn exchange<const WORDS: usize>(
    world: &World,
    mine: &[[f64; WORDS]],
    timeout: Duration,
) -> Result<Vec<Vec<[f64; WORDS]>>> {
    let ranks = world.size() as usize;
    if mine.is_empty() {
        return Ok(vec![Vec::new(); ranks]);
    }
    // As bytes: not every chip moves fp64.
    let bytes: Vec<u8> = mine
        .as_flattened()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let gathered = world.gather(&bytes, timeout)?;
    let (words, _) = gathered.as_chunks();
    let words: Vec<f64> = words.iter().copied().map(f64::from_le_bytes).collect();
    let (all, _) = words.as_chunks::<WORDS>();
    Ok(all.chunks_exact(mine.len()).map(<[_]>::to_vec).collect())
}
