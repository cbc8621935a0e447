//! What a reduction did to each tensor, from the scalars that it left on the device.
//!
//! All ranks have the norms of what a round merged and of its result. Cosines and the mean need the inner products of all
//! servers' vectors. With one round those are its Gram matrix. With several no rank sees two servers' vectors side by
//! side unless they met in the first; then `observed` computes both from saved gradients, if the caller asked for that.

use std::time::Duration;

use crate::ascend::Span;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::layout::{
    COEFFICIENT_FLAGS, COEFFICIENT_KAPPA, COEFFICIENT_RESULT_NORM, coefficient_leaf_norm,
    entry_index, record_exponents, record_words,
};
use crate::reduce::engine::stage::{Merge, SolveTask};
use crate::reduce::gradient::{GradientReducer, LastBucket};
use crate::reduce::world::World;

/// Figures of one tensor in the last reduction; NaN where there is no number, all of them if the tensor is not finite.
///
/// The vectors are those that AdaSum combined: g_s is the vector of server s, by default the mean over its ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorStatistics {
    /// Name of the tensor.
    pub name: String,
    /// |g_s| of each server.
    pub norms: Vec<f64>,
    /// |result|.
    pub norm: f64,
    /// The mean of the cosines of all pairs of servers' vectors that are not zero; NaN if there is no such pair. With
    /// several rounds only of reductions that were [observed](GradientReducer::observe), else NaN.
    pub cosine: f64,
    /// |result| / |mean of all g_s|; 0 for a result of zero. NaN where the cosine is not known.
    pub gain: f64,
    /// How much cancelled: the largest ratio, over the nodes of the tree, of the summed squared norms of the weighted vectors
    /// that a round put together to the squared norm of the node; at least 1. Largest of all rounds.
    pub kappa: f64,
    /// Whether any rank had a NaN or an infinity in it.
    pub nonfinite: bool,
}

/// Figures that need the inner products of all servers' vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Together {
    /// Norm of the mean of all servers' vectors; NaN if it is not known.
    pub(in crate::reduce) mean: f64,
    /// The mean of the cosines of all pairs; NaN if there is none.
    pub(in crate::reduce) cosine: f64,
}

const UNKNOWN: [f64; 2] = [f64::NAN; 2];

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
        let mut figures = vec![Figures::default(); self.specs.len()];
        for (bucket, tensors) in &merging {
            for (merge, weights) in bucket.rounds() {
                let words = coefficients(weights, tensors.len() * merge.words())?;
                for (tensor, words) in tensors.iter().zip(words.chunks_exact(merge.words())) {
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
        let all = exchange(world, &own, self.options.stall_timeout)?;
        let of_tensor = |tensor: usize| -> (Vec<f64>, f64) {
            let servers = all.iter().step_by(world.locals() as usize);
            let kappas = all.iter().map(|rank| rank[tensor][1]);
            (
                servers.map(|rank| rank[tensor][0]).collect(),
                kappas.fold(1.0, f64::max),
            )
        };
        let (norms, kappas): (Vec<Vec<f64>>, Vec<f64>) =
            (0..self.specs.len()).map(of_tensor).unzip();
        let servers = world.servers() as usize;
        // Every rank takes part in the last round, which merges single servers only where it is the first.
        let mut rounds = merging.iter().flat_map(|(bucket, _)| bucket.rounds());
        let is_split = rounds.any(|(merge, _)| merge.subtrees.len() < servers);
        let together = match is_split && self.observation.is_complete() {
            true => self.together_by_gradients(&norms)?,
            false => self.together_by_products(&merging)?,
        };
        let of = |(tensor, figure): (usize, &Figures)| {
            let name = &self.specs[tensor].name;
            figure.joined(name, &norms[tensor], kappas[tensor], together[tensor])
        };
        Ok(figures.iter().enumerate().map(of).collect())
    }

    /// From the Gram matrices of buckets with a single round. Collective.
    fn together_by_products(&self, merging: &[LastBucket<'_>]) -> Result<Vec<Together>> {
        let mut mine = vec![UNKNOWN; self.specs.len()];
        let servers = self.world.servers() as usize;
        for (bucket, tensors) in merging {
            for solve in bucket.solves() {
                if solve.merge.subtrees.len() < servers {
                    continue;
                }
                for (tensor, gram) in tensors[solve.first..].iter().zip(solve.grams()?) {
                    if let &Some(tensor) = tensor {
                        let of_all = together(servers, &gram);
                        mine[tensor] = [of_all.mean, of_all.cosine];
                    }
                }
            }
        }
        let all = exchange(&self.world, &mine, self.options.stall_timeout)?;
        let known = |tensor: usize| {
            let mut ranks = all.iter().map(|rank| rank[tensor]);
            let [mean, cosine] = ranks.find(|known| !known[0].is_nan()).unwrap_or(UNKNOWN);
            Together { mean, cosine }
        };
        Ok((0..self.specs.len()).map(known).collect())
    }
}

/// From the inner products of all servers' vectors.
fn together(servers: usize, gram: &[f64]) -> Together {
    let norm = |server: usize| gram[server * servers + server].max(0.0).sqrt();
    let (mut square, mut cosines, mut pairs) = (0.0, 0.0, 0.0);
    for a in 0..servers {
        square += norm(a).powi(2);
        for b in a + 1..servers {
            let product = gram[a * servers + b];
            square += 2.0 * product;
            let norms = norm(a) * norm(b);
            if norms != 0.0 {
                cosines += (product / norms).clamp(-1.0, 1.0);
                pairs += 1.0;
            }
        }
    }
    Together {
        mean: square.max(0.0).sqrt() / servers as f64,
        // 0 / 0 where there is no pair.
        cosine: cosines / pairs,
    }
}

/// The first words of what the kernels computed.
fn coefficients(weights: &Span, words: usize) -> Result<Vec<f32>> {
    let mut words = vec![0.0; words];
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
            self.own = f64::from(words[coefficient_leaf_norm(merge.subtrees.len()) + merge.own]);
        }
        self.norm = f64::from(words[COEFFICIENT_RESULT_NORM]);
        self.kappa = f64::from(words[COEFFICIENT_KAPPA]).max(self.kappa);
        self.nonfinite = words[COEFFICIENT_FLAGS] != 0.0;
    }

    /// The figures of the tensor `name`, of which all ranks together know `norms`, `kappa` and `of_all`.
    fn joined(&self, name: &str, norms: &[f64], kappa: f64, of_all: Together) -> TensorStatistics {
        let figure = |value: f64| if self.nonfinite { f64::NAN } else { value };
        let gain = match self.norm == 0.0 {
            true => 0.0,
            false => self.norm / of_all.mean,
        };
        TensorStatistics {
            name: name.to_owned(),
            norms: norms.iter().copied().map(figure).collect(),
            norm: figure(self.norm),
            cosine: figure(of_all.cosine),
            gain: figure(gain),
            kappa: figure(kappa),
            nonfinite: self.nonfinite,
        }
    }
}

impl SolveTask {
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
pub(in crate::reduce) fn gram<'a>(
    radix: usize,
    records: impl Iterator<Item = &'a [f32]>,
) -> Vec<f64> {
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
pub(in crate::reduce) fn exchange<const WORDS: usize>(
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
