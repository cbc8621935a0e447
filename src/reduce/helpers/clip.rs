//! Clipping by the global norm, on the device.

use std::sync::Arc;
use std::time::Duration;

use crate::ascend::{Buffer, DataType, Span, Stream};
use crate::error::{Context, Error, Result};
use crate::kernel::layout::{
    COEFFICIENT_FLAGS, COEFFICIENT_RESULT_NORM, coefficient_words, record_words,
};
use crate::kernel::{Coefficients, Fold, Gram, Rule, SegmentTable, Vectors, WeightedSum};
use crate::plan::TensorSpec;
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::arguments::check_tensors;
use crate::reduce::engine::tensor_copies::{Store, TensorCopies};
use crate::reduce::gradient::scattered::OwnedPart;
use crate::reduce::world::World;
use crate::reduce::world::watch::WatchedStage;

/// The AdaSum of a vector and itself is the vector: this many operands make the kernels work for one.
const TWICE: usize = 2;

/// Scales tensors so that the Euclidean norm of all of them together is at most a limit.
///
/// For between reduction and optimizer. Reduced gradients are the same on all ranks, and so is what comes out here,
/// bit for bit, without a collective ([`NormClip::new`]). Where each rank has other parts of them, as after a scattered
/// reduction or in a model whose tensors are sharded, the norm is that of all ranks' parts ([`NormClip::of_parts`]).
/// Everything stays on the device. Tensors within the limit keep their values; a
/// NaN or an infinity makes all tensors NaN, on all ranks that share the norm, because it is none.
pub struct NormClip {
    world: World,
    specs: Vec<TensorSpec>,
    /// What of them is clipped.
    owned: Vec<OwnedPart>,
    copies: TensorCopies,
    parts: Vec<Part>,
    /// A record for each segment of each part, from the own ones to those of all ranks.
    records: Span,
    sharing: Option<Sharing>,
    /// All records are of one tensor: the whole.
    references: Span,
    indices: Span,
    /// Number of all records.
    count: usize,
    coefficients: Span,
    limit: f32,
}

/// How the norm comes together from all ranks.
struct Sharing {
    /// This rank's records, as many as any rank has.
    own: Span,
    watched: Arc<WatchedStage>,
    timeout: Duration,
}

/// The tensors of one element type.
struct Part {
    vectors: Vectors,
    partials: Span,
    records: Span,
    /// All copies as one tensor.
    whole: SegmentTable,
}

impl NormClip {
    /// Prepares the clipping of `tensors` to `max_norm`. Local. Device memory: a copy of all tensors.
    ///
    /// # Errors
    /// `InvalidArgument` if `max_norm` is not finite and above 0.
    pub fn new(world: &World, tensors: &[TensorSpec], max_norm: f32) -> Result<Self> {
        let whole: Vec<OwnedPart> = tensors
            .iter()
            .enumerate()
            .map(|(tensor, spec)| OwnedPart {
                tensor,
                start: 0,
                len: spec.count,
            })
            .collect();
        check_limit(max_norm)?;
        let copies = copies_of(world, tensors, &whole)?;
        let counts = [records_of(&copies)];
        NormClip::make(world, tensors, &whole, max_norm, copies, &counts, None)
    }

    /// Prepares the clipping of `parts` of `tensors` on each rank, so that the norm of all parts of all ranks of `world`
    /// is at most `max_norm`.
    ///
    /// Collective. After a scattered reduction `parts` are those that
    /// [`GradientReducer::owned`](crate::reduce::GradientReducer::owned) names. For tensors that are sharded over the ranks of a
    /// server they are all elements, and `world` is the [part](World::part) of those ranks; what several ranks have counts
    /// once for each. Device memory: a copy of the parts. `timeout` bounds the warm-up, and later how long a rank waits
    /// for the norm.
    ///
    /// # Errors
    /// As [`NormClip::new`]; `InvalidArgument` for a part that is not in its tensor.
    pub fn of_parts(
        world: &World,
        tensors: &[TensorSpec],
        parts: &[OwnedPart],
        max_norm: f32,
        timeout: Duration,
    ) -> Result<Self> {
        for part in parts {
            let spec = tensors.get(part.tensor);
            if spec.is_none_or(|spec| part.start.saturating_add(part.len) > spec.count) {
                return Err(Error::invalid(format!(
                    "{part:?} is not in one of the {} tensors",
                    tensors.len()
                )));
            }
        }
        check_limit(max_norm)?;
        let copies = copies_of(world, tensors, parts);
        let copies = world.all_have(copies, "make a copy of the parts to clip", timeout)?;
        let counts = counts_of_all(world, records_of(&copies), timeout)?;
        let made = NormClip::make(
            world,
            tensors,
            parts,
            max_norm,
            copies,
            &counts,
            Some(timeout),
        );
        let clip = world.all_have(made, "make its part of the norm", timeout)?;
        let stream = Stream::new(world.device())?;
        clip.share(&stream)?;
        world.synchronize(&stream, timeout)?;
        Ok(clip)
    }

    fn make(
        world: &World,
        tensors: &[TensorSpec],
        owned: &[OwnedPart],
        max_norm: f32,
        copies: TensorCopies,
        counts: &[u64],
        timeout: Option<Duration>,
    ) -> Result<Self> {
        let device = world.device();
        let most = counts.iter().copied().max().unwrap_or(0);
        let tables = TableAllocator::new(device);
        let records = |count: u64| tables.zeroed(record_bytes(count));
        let (records, sharing) = match timeout {
            None => (records(most)?, None),
            Some(timeout) => {
                let own = records(most)?;
                let all = records(most * u64::from(world.size()))?;
                let watched = world.watched("sum of the norm", all.len() as u64)?;
                (
                    all,
                    Some(Sharing {
                        own,
                        watched,
                        timeout,
                    }),
                )
            }
        };
        let own = sharing.as_ref().map_or(&records, |sharing| &sharing.own);
        let mut parts = Vec::new();
        let mut first = 0;
        for part in copies.parts() {
            let bytes = record_bytes(part.segments.count);
            parts.push(Part {
                vectors: Vectors::new(device, &[part.copies.clone(), part.copies.clone()])?,
                partials: tables.zeroed(record_bytes(part.segments.units))?,
                records: own.slice(first..first + bytes)?,
                whole: SegmentTable::one(device, part.elements)?,
            });
            first += bytes;
        }
        let indices: Vec<u64> = (0..)
            .zip(counts)
            .flat_map(|(rank, &count)| rank * most..rank * most + count)
            .collect();
        let coefficients =
            Buffer::zeroed(device, coefficient_words(TWICE) * size_of::<f32>())?.span();
        Ok(NormClip {
            world: world.clone(),
            specs: tensors.to_vec(),
            owned: owned.to_vec(),
            parts,
            sharing,
            records,
            references: tables.upload(&[0, indices.len() as u64])?,
            count: indices.len(),
            indices: tables.upload(&indices)?,
            coefficients,
            limit: max_norm,
            copies,
        })
    }

    /// Clips `tensors`, whole tensors in the order of creation, in place.
    ///
    /// Stream-ordered. Local, but of parts collective.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued; else what enqueueing says.
    pub fn clip(&mut self, tensors: &[Span], stream: &Stream) -> Result<()> {
        check_tensors(&self.world, self.specs.iter(), tensors, "tensor")?;
        if self.count == 0 {
            return Ok(());
        }
        let world = self.world.clone();
        let kernels = world.kernels();
        let clipped = self.clipped(tensors)?;
        let mut clip = || {
            world.enqueue(stream, |stream| {
                self.copies.pack(kernels, stream, &clipped, 1.0)?;
                self.measure(stream)
            })?;
            self.share(stream)?;
            world.enqueue(stream, |stream| {
                self.solve(stream)?;
                self.scale(stream)?;
                self.copies.unpack(kernels, stream, &clipped, 1.0)
            })
        };
        clip().context(|| format!("rank {}: clipping", world.own_in_root()))
    }

    /// What of `tensors` is clipped.
    fn clipped(&self, tensors: &[Span]) -> Result<Vec<Span>> {
        let parts = self.owned.iter().map(|part| {
            // Within the tensor, whose bytes are a usize.
            let bytes = |elements: u64| {
                let size = self.specs[part.tensor].dtype.size();
                usize::try_from(elements * size).unwrap_or(usize::MAX)
            };
            tensors[part.tensor].slice(bytes(part.start)..bytes(part.start + part.len))
        });
        parts.collect()
    }

    /// Enqueues that all ranks get all records, where they share the norm.
    fn share(&self, stream: &Stream) -> Result<()> {
        let Some(Sharing {
            own,
            watched,
            timeout,
        }) = &self.sharing
        else {
            return Ok(());
        };
        if own.is_empty() {
            return Ok(());
        }
        self.world
            .enqueue_watched(watched, *timeout, stream, |stream| {
                let comm = self.world.comm();
                comm.all_gather(own, &self.records, DataType::F32, stream)
            })
    }

    /// The norm of all tensors together before they were last clipped; NaN if there was a NaN or an infinity.
    ///
    /// Waits for the host's sake: the stream must be synchronised before.
    ///
    /// # Errors
    /// If the copy from the device fails.
    pub fn last_norm(&self) -> Result<f32> {
        let mut words = [0.0_f32; coefficient_words(TWICE)];
        self.coefficients.read(&mut words)?;
        Ok(if words[COEFFICIENT_FLAGS] != 0.0 {
            f32::NAN
        } else {
            words[COEFFICIENT_RESULT_NORM]
        })
    }

    /// The records of what this rank has.
    fn measure(&self, stream: &Stream) -> Result<()> {
        let kernels = self.world.kernels();
        for (part, copies) in self.parts.iter().zip(self.copies.parts()) {
            kernels.gram(
                stream,
                &Gram {
                    vectors: &part.vectors,
                    dtype: copies.copy_type,
                    segments: &copies.segments,
                    partials: &part.partials,
                },
            )?;
            kernels.fold(
                stream,
                &Fold {
                    partials: &part.partials,
                    segments: &copies.segments,
                    records: &part.records,
                    radix: TWICE,
                },
            )?;
        }
        Ok(())
    }

    /// The coefficients of the whole: two weights that add up to the factor.
    fn solve(&self, stream: &Stream) -> Result<()> {
        let rule = Rule {
            norm_limit: self.limit,
            ..Rule::default()
        };
        self.world.kernels().coefficients_by(
            rule,
            stream,
            &Coefficients {
                records: &self.records,
                refs: &self.references,
                indices: &self.indices,
                out: &self.coefficients,
                radix: TWICE,
                tensor_count: 1,
            },
        )
    }

    fn scale(&self, stream: &Stream) -> Result<()> {
        for (part, copies) in self.parts.iter().zip(self.copies.parts()) {
            self.world.kernels().weighted_sum(
                stream,
                &WeightedSum {
                    vectors: &part.vectors,
                    dtype: copies.copy_type,
                    segments: &part.whole,
                    coefficients: &self.coefficients,
                    out: &copies.copies,
                    copies: None,
                },
            )?;
        }
        Ok(())
    }
}

fn record_bytes(count: u64) -> usize {
    usize::try_from(count)
        .unwrap_or(usize::MAX)
        .saturating_mul(record_words(TWICE) * size_of::<f32>())
}

fn check_limit(max_norm: f32) -> Result<()> {
    match max_norm > 0.0 && max_norm.is_finite() {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "max_norm {max_norm} is not finite and above 0"
        ))),
    }
}

/// Room for a copy of the parts.
fn copies_of(world: &World, tensors: &[TensorSpec], parts: &[OwnedPart]) -> Result<TensorCopies> {
    let clipped = parts.iter().map(|part| TensorSpec {
        count: part.len,
        ..tensors[part.tensor].clone()
    });
    TensorCopies::new(world.device(), &clipped.collect::<Vec<_>>(), Store::Native)
}

fn records_of(copies: &TensorCopies) -> u64 {
    copies.parts().iter().map(|part| part.segments.count).sum()
}

/// How many records each rank has.
fn counts_of_all(world: &World, own: u64, timeout: Duration) -> Result<Vec<u64>> {
    let bytes = world.gather(&own.to_le_bytes(), timeout)?;
    let (words, _) = bytes.as_chunks();
    Ok(words.iter().copied().map(u64::from_le_bytes).collect())
}
