//! The steps of one bucket, each the work of one stream.

use std::ops::Range;
use std::sync::Arc;

use super::book::Book;
use super::lanes::{Lane, Lanes};
use super::memory::{Half, Memory, Place};
use super::tables::{FoldList, Segments};
use super::watch::{Mark, Watch};
use crate::ascend::{Comm, DataType, Span, Transfer};
use crate::error::Result;
use crate::kernel::{Coefficients, Fold, Gram, Kernels, Move, Rule, Tensors, WeightedSum};

/// A step and what others see of it.
pub(super) struct Stage {
    pub(super) task: Task,
    pub(super) mark: Arc<Mark>,
}

/// What a step does.
pub(super) enum Task {
    /// Nothing on this rank: others have more to do here.
    Nothing,
    /// Brings the tensors into the fused buffer.
    CopyIn(Copy),
    /// Sends parts of vectors to other ranks and receives theirs.
    Exchange(Vec<Half>),
    /// The Gram matrices of the vectors on this rank's slice.
    Gram(Products),
    /// Shares them with all ranks that hold other slices of the same vectors.
    Gather(Gather),
    /// The weights, unless they are constant, and the weighted sums.
    Combine(Combine),
    /// Brings the fused buffer back to the tensors.
    CopyOut(Copy),
}

/// Between tensors and fused buffer.
#[derive(Clone)]
pub(super) struct Copy {
    /// Addresses of the tensors in the book.
    pub(super) tensors: Range<usize>,
    pub(super) tensor_type: DataType,
    pub(super) factor: f32,
    pub(super) segments: Arc<Segments>,
}

/// From the vectors on a slice to this rank's contribution to the scalars.
pub(super) struct Products {
    /// Addresses of the vectors in the book.
    pub(super) vectors: Range<usize>,
    pub(super) segments: Arc<Segments>,
    /// A record for each unit of the slice.
    pub(super) partials: Span,
    /// A record for each segment.
    pub(super) records: Span,
}

/// The exchange of scalars.
pub(super) struct Gather {
    pub(super) comm: Arc<Comm>,
    /// The other members of the group, as ranks of the world.
    pub(super) peers: Vec<u32>,
    /// This rank's contribution.
    pub(super) records: Span,
    /// The contributions of all members of the group.
    pub(super) gathered: Span,
}

/// From vectors and scalars to the combined vector.
pub(super) struct Combine {
    pub(super) solve: Option<Solve>,
    pub(super) segments: Arc<Segments>,
    pub(super) sums: Vec<Sum>,
}

/// The coefficients of all tensors.
pub(super) struct Solve {
    pub(super) gathered: Span,
    pub(super) list: FoldList,
    pub(super) radix: usize,
    pub(super) rule: Rule,
    pub(super) coefficients: Span,
    pub(super) tensors: u64,
}

/// One launch of `weighted_sum`.
pub(super) struct Sum {
    /// Addresses of the vectors in the book.
    pub(super) vectors: Range<usize>,
    pub(super) weights: Span,
    pub(super) out: Place,
}

/// What the stages of one bucket are issued with.
pub(super) struct Context<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) comm: &'a Comm,
    pub(super) watch: &'a Watch,
    pub(super) book: &'a Book,
    pub(super) memory: &'a Memory,
    pub(super) dtype: DataType,
}

impl Task {
    /// The stream that it runs on.
    pub(super) fn lane(&self) -> Lane {
        match self {
            Task::Nothing | Task::Exchange(_) => Lane::Payload,
            Task::Gather(_) => Lane::Scalars,
            Task::CopyIn(_) | Task::Gram(_) | Task::Combine(_) | Task::CopyOut(_) => Lane::Kernels,
        }
    }

    /// The ranks that it exchanges data with, and the bytes that this rank sends and receives.
    pub(super) fn traffic(&self) -> (Vec<u32>, u64) {
        match self {
            Task::Exchange(halves) => {
                let mut peers: Vec<u32> = halves.iter().map(|half| half.peer).collect();
                peers.sort_unstable();
                peers.dedup();
                let bytes = halves.iter().map(|half| half.place.len as u64).sum();
                (peers, bytes)
            }
            Task::Gather(gather) => {
                let bytes = gather.gathered.len() as u64;
                (gather.peers.clone(), bytes)
            }
            _ => (Vec::new(), 0),
        }
    }

    /// Whether more of the same stream must follow before another stream may use the outcome: only what comes last may
    /// say that the stream's work is done.
    pub(super) fn is_partial(&self) -> bool {
        matches!(self, Task::Gram(_))
    }

    /// Enqueues it on its stream.
    pub(super) fn issue(&self, context: &Context<'_>, lanes: &Lanes<'_>) -> Result<()> {
        match self {
            Task::Nothing => Ok(()),
            Task::CopyIn(copy) => {
                let tensors = context.book.tensors(&copy.tensors)?;
                let launch = copy.launch(&tensors, context);
                context.kernels.pack(lanes.kernels, &launch)
            }
            Task::CopyOut(copy) => {
                let tensors = context.book.tensors(&copy.tensors)?;
                let launch = copy.launch(&tensors, context);
                context.kernels.unpack(lanes.kernels, &launch)
            }
            Task::Exchange(halves) => {
                let halves = halves.iter();
                let transfers: Result<Vec<Transfer>> = halves
                    .map(|half| half.transfer(context.memory, context.dtype))
                    .collect();
                context.comm.batch(&transfers?, lanes.payload)
            }
            Task::Gram(products) => products.issue(context, lanes),
            Task::Gather(gather) => gather.comm.all_gather(
                &gather.records,
                &gather.gathered,
                DataType::F32,
                lanes.scalars,
            ),
            Task::Combine(combine) => combine.issue(context, lanes),
        }
    }
}

impl Copy {
    fn launch<'a>(&'a self, tensors: &'a Tensors, context: &'a Context<'_>) -> Move<'a> {
        Move {
            tensors,
            tensor_type: self.tensor_type,
            fused: &context.memory.fused,
            fused_type: context.dtype,
            factor: self.factor,
            segments: &self.segments.table,
            segment_count: self.segments.count,
            unit_count: self.segments.units,
        }
    }
}

impl Context<'_> {
    /// What launches keep alive: the vectors lie in it.
    fn behind(&self) -> [Span; 2] {
        [self.memory.fused.clone(), self.memory.scratch.clone()]
    }
}

impl Products {
    fn issue(&self, context: &Context<'_>, lanes: &Lanes<'_>) -> Result<()> {
        let vectors = context.book.vectors(&self.vectors, &context.behind())?;
        context.kernels.gram(
            lanes.kernels,
            &Gram {
                vectors: &vectors,
                dtype: context.dtype,
                segments: &self.segments.table,
                partials: &self.partials,
                segment_count: self.segments.count,
                unit_count: self.segments.units,
            },
        )?;
        context.kernels.fold(
            lanes.kernels,
            &Fold {
                partials: &self.partials,
                segments: &self.segments.table,
                records: &self.records,
                radix: vectors.radix(),
                segment_count: self.segments.count,
            },
        )
    }
}

impl Combine {
    fn issue(&self, context: &Context<'_>, lanes: &Lanes<'_>) -> Result<()> {
        if let Some(solve) = &self.solve {
            context.kernels.coefficients_by(
                solve.rule,
                lanes.kernels,
                &Coefficients {
                    records: &solve.gathered,
                    refs: &solve.list.refs,
                    indices: &solve.list.indices,
                    out: &solve.coefficients,
                    radix: solve.radix,
                    tensor_count: solve.tensors,
                },
            )?;
        }
        for sum in &self.sums {
            context.kernels.weighted_sum(
                lanes.kernels,
                &WeightedSum {
                    vectors: &context.book.vectors(&sum.vectors, &context.behind())?,
                    dtype: context.dtype,
                    segments: &self.segments.table,
                    coefficients: &sum.weights,
                    out: &sum.out.span(context.memory)?,
                    segment_count: self.segments.count,
                    unit_count: self.segments.units,
                },
            )?;
        }
        Ok(())
    }
}
