//! The stages of one bucket, each the work of one stream.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::ascend::{Comm, DataType, Span, Stream, Transfer};
use crate::error::{Error, Result};
use crate::kernel::layout::{MISSING_BYTE, Reference, coefficient_words};
use crate::kernel::{
    Coefficients, FiniteCheck, Fold, Gram, Kernels, Move, Queue, Receipt, Rule, SegmentTable,
    WeightedSum,
};
use crate::plan::{Form, Group};
use crate::reduce::engine::address_table::AddressTable;
use crate::reduce::engine::device_tables::FoldList;
use crate::reduce::engine::place::{Base, Memory, Place, WORD};
use crate::reduce::engine::rendezvous::Rendezvous;
use crate::reduce::world::World;
use crate::reduce::world::streams::{CallStreams, StreamRole};
use crate::reduce::world::watch::{Phase, WatchedStage};

/// A stage and what others see of it.
pub(in crate::reduce) struct Stage {
    pub(in crate::reduce) task: Task,
    pub(in crate::reduce) watched: Arc<WatchedStage>,
}

/// An element of each tensor's part in what a stage leaves: what is spoilt if the stage failed.
#[derive(Clone)]
pub(in crate::reduce) struct Places {
    /// Addresses in the address table.
    pub(in crate::reduce) entries: Range<usize>,
    pub(in crate::reduce) dtype: DataType,
}

/// What a stage does.
pub(in crate::reduce) enum Task {
    /// Nothing on this rank: others have more to do here.
    Nothing,
    /// Brings the tensors into the fused buffer.
    CopyIn(CopyTask),
    /// Sends parts of vectors to other ranks and receives theirs.
    Exchange(ExchangeTask),
    /// Waits until other ranks' buffers can be read, or written again, and reads what is to lie in the own one.
    Read(ReadTask),
    /// The Gram matrices of the vectors on this rank's slice.
    Gram(GramTask),
    /// All-gathers Gram matrices, or weights of tensors, among the ranks that hold slices of the same vectors.
    Gather(GatherTask),
    /// Sends Gram matrices to the owners of their tensors.
    Records(RecordsTask),
    /// The weights of the tensors that this rank owns.
    Solve(SolveTask),
    /// The weights, unless they are known, and the weighted sums.
    Combine(CombineTask),
    /// Flags for what is not finite in the results on this rank, where no round of AdaSum tells.
    Check(CheckTask),
    /// Brings results back to the tensors.
    CopyOut(CopyTask),
}

/// Parts of vectors on their way.
pub(in crate::reduce) struct ExchangeTask {
    pub(in crate::reduce) comm: Arc<Comm>,
    /// The rank of the world that is rank 0 of the communicator, whose ranks follow each other.
    pub(in crate::reduce) first: u32,
    pub(in crate::reduce) form: Form,
    /// With peers as ranks of the world.
    pub(super) transfers: Vec<Transfer<Place>>,
    /// Near the end of each tensor's part in what is received: a NaN stands there until it comes.
    pub(super) awaited: Places,
}

/// Parts of vectors that are read where other ranks have them.
pub(in crate::reduce) struct ReadTask {
    pub(super) barrier: Arc<Rendezvous>,
    /// Whether ranks meet at it here; else they did in the stage of an earlier bucket, for all.
    pub(super) meets: bool,
    /// What is copied behind the barrier, and what others copy: with peers as ranks of the world. What kernels read is not
    /// among it.
    pub(in crate::reduce) copies: Vec<Transfer<Read>>,
    /// Near the end of each tensor's part in what is copied.
    pub(super) places: Option<Places>,
    /// Whether these copies are made already: each rank has written what it has to the others' buffers before.
    pub(super) written: bool,
    /// Whether tensors that lie elsewhere are copied from where the others have the results instead.
    pub(super) direct: bool,
    /// What this rank reads of others and they of it, by kernels or by these copies.
    pub(super) bytes: u64,
}

/// A part of a buffer and where it is to lie; what others read stays where it is.
#[derive(Clone, Copy)]
pub(in crate::reduce) struct Read {
    pub(in crate::reduce) from: Place,
    pub(in crate::reduce) to: Place,
}

/// Between tensors and fused buffers.
pub(in crate::reduce) struct CopyTask {
    /// Each with one rank's buffer.
    pub(in crate::reduce) parts: Vec<CopyPart>,
    pub(in crate::reduce) places: Places,
    /// Behind which buffers of other ranks are read, if they are.
    pub(super) behind: Option<Arc<Rendezvous>>,
}

/// One launch of `pack` or `unpack`.
#[derive(Clone)]
pub(in crate::reduce) struct CopyPart {
    pub(super) buffer: Base,
    /// Addresses of the tensors in the address table.
    pub(in crate::reduce) tensors: Range<usize>,
    pub(in crate::reduce) tensor_type: DataType,
    pub(in crate::reduce) factor: f32,
    pub(in crate::reduce) segments: Arc<SegmentTable>,
}

/// From the vectors on a slice to this rank's contribution to the scalars.
pub(in crate::reduce) struct GramTask {
    pub(super) products: Vec<Products>,
    pub(in crate::reduce) segments: Arc<SegmentTable>,
    /// A record for each unit of the slice.
    pub(in crate::reduce) partials: Span,
    /// A record for each segment.
    pub(in crate::reduce) records: Span,
    /// These records, and all that other ranks write in the round.
    pub(super) written: Span,
    /// Behind which buffers of other ranks are read, if they are, and the first word of each record.
    pub(super) behind: Option<(Arc<Rendezvous>, Places)>,
}

/// One launch of `gram`, on a part of the slice.
pub(super) struct Products {
    /// Addresses of the vectors in the address table.
    pub(super) vectors: Range<usize>,
    pub(super) segments: Arc<SegmentTable>,
    /// A record for each unit of the part.
    pub(super) partials: Span,
}

/// An all-gather of scalars.
pub(in crate::reduce) struct GatherTask {
    pub(in crate::reduce) comm: Arc<Comm>,
    /// The other members of the group, as ranks of the world.
    pub(in crate::reduce) peers: Vec<u32>,
    /// This rank's contribution.
    pub(in crate::reduce) own: Span,
    /// The contributions of all members of the group.
    pub(in crate::reduce) gathered: Span,
}

/// Records on their way to the owners of their tensors.
pub(in crate::reduce) struct RecordsTask {
    pub(in crate::reduce) comm: Arc<Comm>,
    /// The ranks of the world that the communicator joins.
    pub(in crate::reduce) group: Group,
    /// With peers as ranks of the communicator.
    pub(in crate::reduce) transfers: Vec<Transfer<Span>>,
    pub(in crate::reduce) form: Form,
}

/// From vectors and scalars to the combined vector.
pub(in crate::reduce) struct CombineTask {
    pub(in crate::reduce) solve: Option<SolveTask>,
    /// Absent where weights are constant.
    pub(in crate::reduce) merge: Option<Arc<Merge>>,
    pub(super) sums: Vec<Sum>,
    pub(in crate::reduce) places: Places,
    /// Behind which buffers of other ranks are read, if they are and no products were read before.
    pub(super) behind: Option<Arc<Rendezvous>>,
}

/// The coefficients of all tensors, or of those that this rank owns.
pub(in crate::reduce) struct SolveTask {
    /// The records, numbered as in the list.
    pub(in crate::reduce) records: Span,
    pub(in crate::reduce) list: FoldList,
    pub(in crate::reduce) radix: usize,
    pub(in crate::reduce) rule: Rule,
    pub(in crate::reduce) coefficients: Span,
    pub(in crate::reduce) tensors: usize,
    /// Which of them the round needs here: only these are solved in its course.
    pub(super) needed: Range<usize>,
    /// Whether statistics wait until somebody asks.
    pub(super) weights_only: bool,
    pub(in crate::reduce) merge: Arc<Merge>,
    /// Position of the first tensor in the bucket.
    pub(in crate::reduce) first: usize,
}

/// What a round of AdaSum merges.
pub(in crate::reduce) struct Merge {
    /// The servers that each of the vectors stands for.
    pub(in crate::reduce) subtrees: Vec<Range<u32>>,
    /// Number of the vector that this rank brought.
    pub(in crate::reduce) own: usize,
}

impl Merge {
    /// 32-bit words of the coefficients of a tensor.
    pub(in crate::reduce) fn words(&self) -> usize {
        coefficient_words(self.subtrees.len())
    }
}

/// One launch of `weighted_sum`.
pub(in crate::reduce) struct Sum {
    /// Addresses of the vectors in the address table.
    pub(in crate::reduce) vectors: Range<usize>,
    pub(super) segments: Arc<SegmentTable>,
    pub(in crate::reduce) weights: Span,
    pub(in crate::reduce) out: Place,
    /// Addresses of where it stands in other ranks' buffers, in the address table.
    pub(super) copies: Range<usize>,
}

/// A look for NaNs and infinities in a slice.
pub(in crate::reduce) struct CheckTask {
    pub(in crate::reduce) place: Place,
    pub(in crate::reduce) segments: Arc<SegmentTable>,
    /// [`FLAG_WORDS`](crate::kernel::layout::FLAG_WORDS) words for each tensor.
    pub(in crate::reduce) flags: Span,
    pub(in crate::reduce) places: Places,
}

/// What the stages of one bucket are issued with.
pub(in crate::reduce) struct StageContext<'a> {
    pub(in crate::reduce) world: &'a World,
    pub(super) addresses: &'a AddressTable,
    /// What kernels sign, if a guard follows.
    pub(super) receipt: Option<&'a Receipt>,
    pub(super) memory: &'a Memory,
    pub(in crate::reduce) dtype: DataType,
    /// Whether the tensors have to be copied to the fused buffer and back.
    pub(super) copies: bool,
}

impl Task {
    /// The stream that it runs on.
    pub(in crate::reduce) fn role(&self) -> StreamRole {
        match self {
            Task::Nothing | Task::Exchange(_) | Task::Read(_) => StreamRole::Payload,
            Task::Gather(_) | Task::Records(_) => StreamRole::Scalars,
            Task::CopyIn(_)
            | Task::Gram(_)
            | Task::Solve(_)
            | Task::Combine(_)
            | Task::Check(_)
            | Task::CopyOut(_) => StreamRole::Kernels,
        }
    }

    /// What kind of work it is, before vectors are combined for the last time.
    pub(super) fn phase(&self) -> Phase {
        match self {
            Task::CopyIn(_) | Task::CopyOut(_) => Phase::Copies,
            Task::Nothing | Task::Exchange(_) | Task::Read(_) => Phase::Exchange,
            Task::Gram(_) => Phase::Gram,
            Task::Gather(_) | Task::Records(_) | Task::Solve(_) => Phase::Scalars,
            Task::Combine(_) | Task::Check(_) => Phase::Combine,
        }
    }

    /// The ranks that it exchanges data with, and the bytes that this rank sends and receives.
    pub(super) fn traffic(&self) -> (Vec<u32>, u64) {
        match self {
            Task::Exchange(exchange) => {
                let transfers = exchange.transfers.iter();
                let bytes = transfers.map(|transfer| transfer.part.len as u64).sum();
                (exchange.peers(), bytes)
            }
            Task::Read(read) => (read.barrier.peers(), read.bytes),
            Task::Gather(gather) => {
                let bytes = gather.gathered.len() as u64;
                (gather.peers.clone(), bytes)
            }
            Task::Records(records) => {
                let transfers = records.transfers.iter();
                let bytes = transfers.map(|transfer| transfer.part.len() as u64).sum();
                (records.peers(), bytes)
            }
            _ => (Vec::new(), 0),
        }
    }

    /// What its kernels leave to the caller's stream.
    pub(in crate::reduce) fn places(&self) -> Option<&Places> {
        match self {
            Task::CopyIn(copy) | Task::CopyOut(copy) => Some(&copy.places),
            Task::Combine(combine) => Some(&combine.places),
            Task::Check(check) => Some(&check.places),
            _ => None,
        }
    }

    /// Enqueues it on its stream.
    pub(super) fn issue(
        &self,
        context: &StageContext<'_>,
        streams: &CallStreams<'_>,
    ) -> Result<()> {
        let queue = match context.receipt {
            Some(receipt) => receipt.on(streams.kernels),
            None => streams.kernels.into(),
        };
        match self {
            Task::Nothing => Ok(()),
            Task::CopyIn(copy) => copy.issue(context, streams.kernels, |launch| {
                context.world.kernels().pack(queue, launch)
            }),
            Task::CopyOut(copy) => copy.issue(context, streams.kernels, |launch| {
                context.world.kernels().unpack(queue, launch)
            }),
            Task::Exchange(exchange) => exchange.issue(context, streams.payload),
            Task::Read(read) => read.issue(context, streams.payload),
            Task::Gram(products) => {
                // What does not come in this step is not taken from an earlier one.
                streams.kernels.fill(&products.written, MISSING_BYTE)?;
                products.issue(context, queue, streams.kernels)
            }
            Task::Gather(gather) => gather.comm.all_gather(
                &gather.own,
                &gather.gathered,
                DataType::F32,
                streams.scalars,
            ),
            Task::Records(records) => transfer(
                &records.comm,
                &records.transfers,
                DataType::F32,
                records.form,
                streams.scalars,
            ),
            Task::Solve(solve) => solve.issue(context.world.kernels(), queue),
            Task::Combine(combine) => combine.issue(context, queue, streams.kernels),
            Task::Check(check) => {
                streams.kernels.zero(&check.flags)?;
                check.issue(context, queue)
            }
        }
    }
}

/// Enqueues transfers of elements of type `dtype`, which are in the order of [`Exchange`](crate::plan::Exchange).
fn transfer(
    comm: &Comm,
    transfers: &[Transfer<Span>],
    dtype: DataType,
    form: Form,
    stream: &Stream,
) -> Result<()> {
    match form {
        Form::AllToAll => comm.all_to_all(transfers, dtype, stream),
        Form::Batch => comm.batch(transfers, dtype, stream),
        Form::Group => comm.group(transfers, dtype, stream),
        Form::Pairwise => transfers
            .iter()
            .try_for_each(|transfer| comm.transfer(transfer, dtype, stream)),
        Form::Shared => Err(Error::invalid("what is shared is not sent")),
    }
}

impl ExchangeTask {
    /// The ranks of the world that it waits for.
    fn peers(&self) -> Vec<u32> {
        if self.form == Form::AllToAll {
            let ranks = self.first..self.first + self.comm.size();
            let own = self.first + self.comm.rank();
            return ranks.filter(|&rank| rank != own).collect();
        }
        peers(&self.transfers)
    }

    fn issue(&self, context: &StageContext<'_>, stream: &Stream) -> Result<()> {
        let transfers = self.transfers.iter();
        let located = |transfer: &Transfer<Place>| {
            let span = transfer.part.span(context.memory)?;
            Ok(transfer.with(transfer.peer - self.first, span))
        };
        let transfers: Result<Vec<Transfer<Span>>> = transfers.map(located).collect();
        // The stream goes on behind an exchange that failed: what an earlier one left is not taken for its data.
        let awaited = context.addresses.tensors(&self.awaited.entries)?;
        context
            .world
            .kernels()
            .spoil(stream, &awaited, self.awaited.dtype)?;
        transfer(&self.comm, &transfers?, context.dtype, self.form, stream)
    }
}

impl ReadTask {
    fn issue(&self, context: &StageContext<'_>, stream: &Stream) -> Result<()> {
        if self.meets {
            self.barrier.issue(stream)?;
        }
        if self.direct && context.copies {
            return Ok(());
        }
        if !self.written {
            for copy in self.copies.iter().filter(|copy| !copy.is_send()) {
                let Read { from, to } = copy.part;
                let (to, from) = (to.span(context.memory)?, from.span(context.memory)?);
                // Whoever ends takes its memory along.
                stream
                    .copy(&to, &from)
                    .map_err(|error| context.world.fail_for_others(&error))?;
            }
        }
        self.places.as_ref().map_or(Ok(()), |places| {
            context.look_back(&self.barrier, places, stream)
        })
    }
}

/// The peers of transfers, each once, ascending.
fn peers<T>(transfers: &[Transfer<T>]) -> Vec<u32> {
    let peers: BTreeSet<u32> = transfers.iter().map(|transfer| transfer.peer).collect();
    peers.into_iter().collect()
}

impl RecordsTask {
    /// The ranks of the world that it meets.
    fn peers(&self) -> Vec<u32> {
        let peers = peers(&self.transfers);
        peers.into_iter().map(|peer| self.rank(peer)).collect()
    }

    /// The rank of the world that is rank `peer` of the communicator.
    pub(in crate::reduce) fn rank(&self, peer: u32) -> u32 {
        self.group.first + peer * self.group.stride
    }
}

impl CopyTask {
    fn issue(
        &self,
        context: &StageContext<'_>,
        stream: &Stream,
        launch: impl Fn(&Move<'_>) -> Result<()>,
    ) -> Result<()> {
        for part in &self.parts {
            launch(&Move {
                tensors: &context.addresses.tensors(&part.tensors)?,
                tensor_type: part.tensor_type,
                fused: part.buffer.of(context.memory)?,
                fused_type: context.dtype,
                factor: part.factor,
                segments: &part.segments,
            })?;
        }
        self.behind.as_ref().map_or(Ok(()), |barrier| {
            context.look_back(barrier, &self.places, stream)
        })
    }
}

impl StageContext<'_> {
    /// Enqueues that what was read behind `barrier` and left at `places` is spoilt unless all ranks came to it.
    fn look_back(&self, barrier: &Rendezvous, places: &Places, stream: &Stream) -> Result<()> {
        let tensors = self.addresses.tensors(&places.entries)?;
        barrier.look_back(self.world, (&tensors, places.dtype), stream)
    }

    /// What launches keep alive: the vectors lie in it.
    fn behind(&self) -> [Span; 2] {
        [self.memory.fused.clone(), self.memory.scratch.clone()]
    }
}

impl GramTask {
    fn issue(&self, context: &StageContext<'_>, queue: Queue<'_>, stream: &Stream) -> Result<()> {
        let mut radix = 0;
        for products in &self.products {
            let vectors = context
                .addresses
                .vectors(&products.vectors, &context.behind())?;
            radix = vectors.radix();
            context.world.kernels().gram(
                queue,
                &Gram {
                    vectors: &vectors,
                    dtype: context.dtype,
                    segments: &products.segments,
                    partials: &products.partials,
                },
            )?;
        }
        context.world.kernels().fold(
            queue,
            &Fold {
                partials: &self.partials,
                segments: &self.segments,
                records: &self.records,
                radix,
            },
        )?;
        self.behind.as_ref().map_or(Ok(()), |(barrier, places)| {
            context.look_back(barrier, places, stream)
        })
    }
}

impl CheckTask {
    fn issue(&self, context: &StageContext<'_>, queue: Queue<'_>) -> Result<()> {
        context.world.kernels().finite_check(
            queue,
            &FiniteCheck {
                vector: &self.place.span(context.memory)?,
                dtype: context.dtype,
                segments: &self.segments,
                flags: &self.flags,
            },
        )
    }
}

impl SolveTask {
    /// Enqueues what the round needs.
    fn issue(&self, kernels: &Kernels, queue: Queue<'_>) -> Result<()> {
        let rule = Rule {
            weights_only: self.weights_only,
            ..self.rule
        };
        self.launch(rule, self.needed.clone(), kernels, queue)
    }

    /// Enqueues weights and statistics of all tensors, for those who want to know them: the records are those of the last
    /// reduction.
    pub(in crate::reduce) fn issue_all(&self, kernels: &Kernels, stream: &Stream) -> Result<()> {
        self.launch(self.rule, 0..self.tensors, kernels, stream.into())
    }

    fn launch(
        &self,
        rule: Rule,
        tensors: Range<usize>,
        kernels: &Kernels,
        queue: Queue<'_>,
    ) -> Result<()> {
        if tensors.is_empty() {
            return Ok(());
        }
        kernels.coefficients_by(
            rule,
            queue,
            &Coefficients {
                records: &self.records,
                refs: &self.list.refs.slice(of(&tensors, size_of::<Reference>()))?,
                indices: &self.list.indices,
                out: &self
                    .coefficients
                    .slice(of(&tensors, coefficient_words(self.radix) * WORD))?,
                radix: self.radix,
                tensor_count: tensors.len() as u64,
            },
        )
    }
}

/// Where these entries of a table lie, in bytes.
fn of(entries: &Range<usize>, size: usize) -> Range<usize> {
    entries.start * size..entries.end * size
}

impl CombineTask {
    fn issue(&self, context: &StageContext<'_>, queue: Queue<'_>, stream: &Stream) -> Result<()> {
        if let Some(solve) = &self.solve {
            solve.issue(context.world.kernels(), queue)?;
        }
        let queue = queue.for_launches(self.sums.len());
        for sum in &self.sums {
            let copies = context.addresses.tensors(&sum.copies)?;
            context.world.kernels().weighted_sum(
                queue,
                &WeightedSum {
                    vectors: &context.addresses.vectors(&sum.vectors, &context.behind())?,
                    dtype: context.dtype,
                    segments: &sum.segments,
                    coefficients: &sum.weights,
                    out: &sum.out.span(context.memory)?,
                    copies: (!copies.is_empty()).then_some(&copies),
                },
            )?;
        }
        self.behind.as_ref().map_or(Ok(()), |barrier| {
            context.look_back(barrier, &self.places, stream)
        })
    }
}
