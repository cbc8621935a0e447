//! Clipping by the global norm, on the device.

use super::World;
use super::flat::{Flat, Store};
use super::given::check_tensors;
use super::tables::{Segments, upload};
use crate::ascend::{Buffer, Span, Stream};
use crate::error::{Context, Error, Result};
use crate::kernel::layout::{
    COEFFICIENT_FLAGS, COEFFICIENT_RESULT_NORM, COEFFICIENT_WORDS, record_words,
};
use crate::kernel::{Coefficients, Fold, Gram, Rule, Vectors, WeightedSum};
use crate::plan::TensorSpec;

/// The AdaSum of a vector and itself is the vector: this many operands make the kernels work for one.
const TWICE: usize = 2;

/// Scales tensors so that the Euclidean norm of all of them together is at most a limit.
///
/// For between reduction and optimizer: reduced gradients are the same on all ranks, and so is what comes out here,
/// bit for bit, without a collective. Everything stays on the device. Tensors within the limit keep their values; a
/// NaN or an infinity makes all tensors NaN, because their norm is none.
pub struct NormClip {
    world: World,
    specs: Vec<TensorSpec>,
    copies: Flat,
    parts: Vec<Part>,
    /// A record for each segment of each part.
    records: Span,
    /// All records are of one tensor: the whole.
    references: Span,
    indices: Span,
    count: u64,
    coefficients: Span,
    limit: f32,
}

/// The tensors of one element type.
struct Part {
    vectors: Vectors,
    partials: Span,
    records: Span,
    /// All copies as one tensor.
    whole: Segments,
}

impl NormClip {
    /// Prepares the clipping of `tensors` to `max_norm`. Local. Device memory: a copy of all tensors.
    ///
    /// # Errors
    /// `InvalidArgument` if `max_norm` is not finite and above 0.
    pub fn new(world: &World, tensors: &[TensorSpec], max_norm: f32) -> Result<Self> {
        if !(max_norm > 0.0 && max_norm.is_finite()) {
            return Err(Error::invalid(format!(
                "max_norm {max_norm} is not finite and above 0"
            )));
        }
        let device = world.device();
        let copies = Flat::new(device, tensors, Store::Native)?;
        let record = record_words(TWICE) * size_of::<f32>();
        let table = |entries: u64| -> Result<Span> {
            let bytes = usize::try_from(entries)
                .unwrap_or(usize::MAX)
                .saturating_mul(record);
            Buffer::zeroed(device, bytes.max(64))?
                .span()
                .slice(0..bytes)
        };
        let count: u64 = copies.parts().iter().map(|part| part.segments.count).sum();
        let records = table(count)?;
        let mut parts = Vec::new();
        let mut first = 0;
        for part in copies.parts() {
            let bytes = usize::try_from(part.segments.count).unwrap_or(usize::MAX) * record;
            parts.push(Part {
                vectors: Vectors::new(device, &[part.copies.clone(), part.copies.clone()])?,
                partials: table(part.segments.units)?,
                records: records.slice(first..first + bytes)?,
                whole: Segments::one(device, part.elements)?,
            });
            first += bytes;
        }
        let coefficients = Buffer::zeroed(device, COEFFICIENT_WORDS * size_of::<f32>())?.span();
        Ok(NormClip {
            world: world.clone(),
            specs: tensors.to_vec(),
            parts,
            records,
            references: upload(device, &[0, count])?,
            indices: upload(device, &(0..count).collect::<Vec<u64>>())?,
            count,
            coefficients,
            limit: max_norm,
            copies,
        })
    }

    /// Clips `tensors`, whole tensors in the order of creation, in place.
    ///
    /// Local and stream-ordered.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued; else what enqueueing says.
    pub fn clip(&mut self, tensors: &[Span], stream: &Stream) -> Result<()> {
        check_tensors(&self.world, self.specs.iter(), tensors, "tensor")?;
        if self.count == 0 {
            return Ok(());
        }
        let world = self.world.clone();
        world
            .enqueue(stream, |stream| {
                self.copies.pack(world.kernels(), stream, tensors, 1.0)?;
                self.measure(stream)?;
                self.scale(stream)?;
                self.copies.unpack(world.kernels(), stream, tensors, 1.0)
            })
            .context(|| format!("rank {}: clipping", world.rank()))
    }

    /// The norm of all tensors together before they were last clipped; NaN if there was a NaN or an infinity.
    ///
    /// Waits for the host's sake: the stream must be synchronised before.
    ///
    /// # Errors
    /// If the copy from the device fails.
    pub fn last_norm(&self) -> Result<f32> {
        let mut words = [0.0_f32; COEFFICIENT_WORDS];
        self.coefficients.read(&mut words)?;
        Ok(if words[COEFFICIENT_FLAGS] != 0.0 {
            f32::NAN
        } else {
            words[COEFFICIENT_RESULT_NORM]
        })
    }

    /// The coefficients of the whole: two weights that add up to the factor.
    fn measure(&self, stream: &Stream) -> Result<()> {
        let kernels = self.world.kernels();
        for (part, copies) in self.parts.iter().zip(self.copies.parts()) {
            kernels.gram(
                stream,
                &Gram {
                    vectors: &part.vectors,
                    dtype: copies.copy_type,
                    segments: &copies.segments.table,
                    partials: &part.partials,
                    segment_count: copies.segments.count,
                    unit_count: copies.segments.units,
                },
            )?;
            kernels.fold(
                stream,
                &Fold {
                    partials: &part.partials,
                    segments: &copies.segments.table,
                    records: &part.records,
                    radix: TWICE,
                    segment_count: copies.segments.count,
                },
            )?;
        }
        let rule = Rule {
            norm_limit: self.limit,
            ..Rule::default()
        };
        kernels.coefficients_by(
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
                    segments: &part.whole.table,
                    coefficients: &self.coefficients,
                    out: &copies.copies,
                    segment_count: part.whole.count,
                    unit_count: part.whole.units,
                },
            )?;
        }
        Ok(())
    }
}
