//! The steps of a merge of two vectors, timed one by one on the device while this rank goes through its gradients.

use std::sync::Arc;

use super::calibration::{Measured, Steps};
use crate::ascend::{Buffer, Comm, DataType, Event, Pod, Span, Stream, Transfer};
use crate::error::Result;
use crate::kernel::layout::{COEFFICIENT_WORDS, Segment, record_words};
use crate::kernel::{Coefficients, Fold, Gram, Rule, Vectors, WeightedSum};
use crate::plan::Group;
use crate::reduce::{Purpose, World};

/// Steps of a merge.
const STEPS: usize = 6;
const WORD: usize = 4;
/// Bytes of a record of a pair.
pub(super) const RECORD: usize = record_words(2) * WORD;

/// How the gradients are gone through.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stride {
    /// Bytes of a half of a merge, a multiple of 64.
    pub(super) half: usize,
    /// Bytes of each tensor, a multiple of 64.
    pub(super) tensor: usize,
    /// The most merges.
    pub(super) merges: usize,
}

/// Merges one behind the other, from the start of the gradients on.
pub(super) struct Walk<'a> {
    world: &'a World,
    stride: Stride,
    dtype: DataType,
    scalars: Arc<Comm>,
    /// The neighbour, and the neighbour's neighbour where there are so many ranks: to whom, and from whom.
    near: (u32, u32),
    further: (u32, u32),
    merges: Vec<Merge>,
    scratch: Span,
    segments: Span,
    tensors: u64,
    units: u64,
    partials: Span,
    records: Span,
    gathered: Span,
    refs: Span,
    indices: Span,
    coefficients: Span,
    start: Event,
}

/// One merge.
struct Merge {
    own: Span,
    other: Span,
    vectors: Vectors,
    ends: Vec<Event>,
}

impl<'a> Walk<'a> {
    /// Through `whole`, which must hold a merge, with elements of `dtype`.
    ///
    /// Collective: makes the communicator of scalars.
    pub(super) fn new(
        world: &'a World,
        whole: &Span,
        dtype: DataType,
        stride: Stride,
    ) -> Result<Self> {
        let device = world.device();
        let half = stride.half;
        let scratch = Buffer::zeroed(device, half)?.span();
        let merges: Result<Vec<Merge>> = (0..(whole.len() / (2 * half)).min(stride.merges))
            .map(|merge| {
                Merge::new(
                    world,
                    &whole.slice(2 * merge * half..2 * (merge + 1) * half)?,
                    &scratch,
                )
            })
            .collect();
        let segments = segments(stride, dtype.size());
        let tensors = segments.len();
        let units: u64 = segments.iter().map(Segment::units).sum();
        let words: Vec<u64> = segments.iter().flat_map(Segment::words).collect();
        let own = u64::from(world.rank()) * tensors as u64;
        let refs: Vec<u64> = (0..tensors as u64).flat_map(|tensor| [tensor, 1]).collect();
        let indices: Vec<u64> = (0..tensors as u64).map(|tensor| own + tensor).collect();
        let zeroed = |bytes: usize| Ok(Buffer::zeroed(device, bytes)?.span());
        let everyone = Group {
            first: 0,
            count: world.size(),
            stride: 1,
        };
        let (rank, size) = (world.rank(), world.size());
        let ring = |step: u32| ((rank + step) % size, (rank + size - step) % size);
        // Neighbours are pairs, where no rank is left over.
        let near = match size % 2 {
            0 => (rank ^ 1, rank ^ 1),
            _ => ring(1),
        };
        let further = if size < 4 { near } else { ring(2) };
        Ok(Walk {
            dtype,
            stride,
            scalars: world.group(everyone, Purpose::Scalars)?,
            near,
            further,
            merges: merges?,
            scratch,
            segments: upload(world, &words)?,
            tensors: tensors as u64,
            units,
            partials: zeroed(usize::try_from(units).unwrap_or(usize::MAX) * RECORD)?,
            records: zeroed(tensors * RECORD)?,
            gathered: zeroed(world.size() as usize * tensors * RECORD)?,
            refs: upload(world, &refs)?,
            indices: upload(world, &indices)?,
            coefficients: zeroed(tensors * COEFFICIENT_WORDS * WORD)?,
            start: Event::timed(device)?,
            world,
        })
    }

    /// Enqueues all merges on `stream`.
    ///
    /// Collective.
    pub(super) fn enqueue(&self, stream: &Stream) -> Result<()> {
        stream.record(&self.start)?;
        for merge in &self.merges {
            self.exchange(stream, self.near, &merge.other, &self.scratch)?;
            stream.record(&merge.ends[0])?;
            self.gram(stream, &merge.vectors)?;
            stream.record(&merge.ends[1])?;
            self.scalars
                .all_gather(&self.records, &self.gathered, DataType::F32, stream)?;
            stream.record(&merge.ends[2])?;
            self.combine(stream, merge)?;
            stream.record(&merge.ends[3])?;
            for (peer, end) in [self.near, self.further].into_iter().zip(&merge.ends[4..]) {
                self.exchange(stream, peer, &merge.own, &merge.other)?;
                stream.record(end)?;
            }
        }
        Ok(())
    }

    /// Enqueues the products of all merges on `stream`, each twice: the second time they come from where the first one has
    /// left the vectors.
    pub(super) fn enqueue_again(&self, stream: &Stream) -> Result<()> {
        for merge in &self.merges {
            for end in &merge.ends[..2] {
                self.gram(stream, &merge.vectors)?;
                stream.record(end)?;
            }
        }
        Ok(())
    }

    /// Seconds of products of the second time in a merge on the average, once the stream has ended.
    pub(super) fn seconds_again(&self) -> Result<[f64; 1]> {
        let seconds = self.merges.iter();
        let seconds = seconds.map(|merge| merge.ends[1].seconds_since(&merge.ends[0]));
        let sum: f64 = seconds.sum::<Result<f64>>()?;
        Ok([sum / self.merges.len() as f64])
    }

    /// Seconds of each step in a merge on the average, once the stream has ended.
    pub(super) fn seconds(&self) -> Result<[f64; STEPS]> {
        let mut sums = [0.0; STEPS];
        let mut last = &self.start;
        for merge in &self.merges {
            for (sum, end) in sums.iter_mut().zip(&merge.ends) {
                *sum += end.seconds_since(last)?;
                last = end;
            }
        }
        Ok(sums.map(|sum| sum / self.merges.len() as f64))
    }

    /// What these seconds were taken of.
    pub(super) fn measured(&self, seconds: [f64; STEPS]) -> Measured {
        let [exchange, gram, gather, combine, back, back_again] = seconds;
        Measured {
            bytes: self.stride.half as f64,
            tensors: self.tensors as f64,
            steps: Steps {
                exchange,
                gram,
                gather,
                combine,
                back,
                back_again,
            },
        }
    }

    fn exchange(
        &self,
        stream: &Stream,
        (to, from): (u32, u32),
        out: &Span,
        inward: &Span,
    ) -> Result<()> {
        let dtype = self.dtype;
        let send = Transfer::Send {
            peer: to,
            span: out.clone(),
            dtype,
        };
        let recv = Transfer::Recv {
            peer: from,
            span: inward.clone(),
            dtype,
        };
        self.world.comm().batch(&[send, recv], stream)
    }

    fn gram(&self, stream: &Stream, vectors: &Vectors) -> Result<()> {
        let kernels = self.world.kernels();
        kernels.gram(
            stream,
            &Gram {
                vectors,
                dtype: self.dtype,
                segments: &self.segments,
                partials: &self.partials,
                segment_count: self.tensors,
                unit_count: self.units,
            },
        )?;
        kernels.fold(
            stream,
            &Fold {
                partials: &self.partials,
                segments: &self.segments,
                records: &self.records,
                radix: 2,
                segment_count: self.tensors,
            },
        )
    }

    fn combine(&self, stream: &Stream, merge: &Merge) -> Result<()> {
        let kernels = self.world.kernels();
        let rule = Rule {
            weights_only: true,
            ..Rule::default()
        };
        kernels.coefficients_by(
            rule,
            stream,
            &Coefficients {
                records: &self.gathered,
                refs: &self.refs,
                indices: &self.indices,
                out: &self.coefficients,
                radix: 2,
                tensor_count: self.tensors,
            },
        )?;
        kernels.weighted_sum(
            stream,
            &WeightedSum {
                vectors: &merge.vectors,
                dtype: self.dtype,
                segments: &self.segments,
                coefficients: &self.coefficients,
                out: &merge.own,
                segment_count: self.tensors,
                unit_count: self.units,
            },
        )
    }
}

impl Merge {
    /// Of a piece of the gradients, half of it this rank's own.
    fn new(world: &World, piece: &Span, scratch: &Span) -> Result<Self> {
        let half = piece.len() / 2;
        let (low, high) = (piece.slice(0..half)?, piece.slice(half..piece.len())?);
        let (own, other) = match world.rank() % 2 {
            0 => (low, high),
            _ => (high, low),
        };
        let ends: Result<Vec<Event>> = (0..STEPS).map(|_| Event::timed(world.device())).collect();
        Ok(Merge {
            vectors: Vectors::new(world.device(), &[own.clone(), scratch.clone()])?,
            own,
            other,
            ends: ends?,
        })
    }
}

/// A half cut into tensors, with elements of `size` bytes.
fn segments(stride: Stride, size: usize) -> Vec<Segment> {
    let mut first_unit = 0;
    (0..stride.half)
        .step_by(stride.tensor)
        .zip(0..)
        .map(|(start, tensor)| {
            let bytes = stride.tensor.min(stride.half - start);
            let segment = Segment {
                offset: (start / size) as u64,
                len: (bytes / size) as u64,
                first_unit,
                tensor,
            };
            first_unit += segment.units();
            segment
        })
        .collect()
}

fn upload<T: Pod>(world: &World, values: &[T]) -> Result<Span> {
    Ok(Buffer::from_slice(world.device(), values)?.span())
}
