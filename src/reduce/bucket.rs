//! One fused buffer and the stages of its reduction, made ready once.

use super::lanes::{Lane, Lanes};
use super::maker::Maker;
use super::memory::{Memory, Place};
use super::stage::{self, Combine, Merge, Places, Solve, Stage, Task};
use super::{Options, World};
use crate::ascend::{DataType, Event, Span};
use crate::error::{Context, Error, Result};
use crate::kernel::layout::{COEFFICIENT_FLAGS, COEFFICIENT_WORDS, FLAG_WORDS};
use crate::kernel::{Guard, Receipt, Then};
use crate::plan::{DType, Layout, Plan, Planner, Range};

/// Whose address stands in an entry of the book.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry {
    /// A tensor of the caller's, by its index in the list that is prepared, from a byte of it on.
    Tensor(usize, u64),
    /// A part of a bucket's buffers.
    Place(Place),
}

/// What all stages of a call are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    Reduction,
    /// Scattered parts to all ranks.
    Collection,
}

/// The prepared stages of one fused buffer.
pub(super) struct Bucket {
    /// Indices of the tensors in the list that is prepared, in the order of the buffer.
    pub(super) members: Vec<usize>,
    pub(super) layout: Layout,
    /// The stages of a reduction.
    pub(super) stages: Vec<Stage>,
    /// Those that bring scattered parts together again; none where results are not scattered.
    pub(super) collection: Vec<Stage>,
    /// What this rank holds at the end of the rounds.
    pub(super) owned: Range,
    /// What its stages read from the book, from entry `first_entry` on.
    pub(super) entries: Vec<Entry>,
    /// Bytes of the buffer for what other ranks send.
    pub(super) scratch_bytes: usize,
    /// What its kernels sign on the internal stream.
    pub(super) receipt: Receipt,
    /// Whether the caller's memory can serve as the fused buffer.
    pub(super) in_place: bool,
    /// Whether gaps between tensors may be overwritten.
    pub(super) padded: bool,
}

impl Bucket {
    /// Prepares the stages of the tensors `members`, of which all have type `dtype`, for the bucket that messages call
    /// `name`. Its part of the book begins with entry `first_entry`.
    pub(super) fn new(
        world: &World,
        planner: &Planner,
        dtype: DType,
        members: Vec<usize>,
        (name, first_entry): (String, usize),
        options: &Options,
    ) -> Result<Self> {
        let shards = options.shards(world);
        let plan = planner.plan(world.rank() / shards)?;
        let mut maker = Maker::new(world, planner, dtype, options, name, first_entry);
        let stages = maker.stages(&plan, &members)?;
        let collection = match options.scattered {
            true => maker.collection(&plan, &members)?,
            false => Vec::new(),
        };
        let scratch_bytes = maker.scratch_bytes(&plan)?;
        Ok(Bucket {
            layout: planner.layout().clone(),
            stages,
            collection,
            owned: owned(&plan, planner.layout()),
            entries: maker.into_entries(),
            scratch_bytes,
            receipt: Receipt::new(world.device())?,
            in_place: planner.layout().dtype() == dtype
                && options.scale == 1.0
                && options.result_scale == 1.0,
            padded: options.padded,
            members,
        })
    }

    /// The stages of a pass.
    pub(super) fn stages(&self, pass: Pass) -> &[Stage] {
        match pass {
            Pass::Reduction => &self.stages,
            Pass::Collection => &self.collection,
        }
    }

    /// Bytes of the fused buffer.
    pub(super) fn fused_bytes(&self) -> Result<usize> {
        bytes(self.layout.elements(), self.layout.dtype().size())
    }

    /// The caller's memory, if its tensors lie there just as in the fused buffer.
    pub(super) fn flat(&self, tensors: &[Span]) -> Result<Option<Span>> {
        if !self.in_place {
            return Ok(None);
        }
        let length = self.fused_bytes()?;
        let members = self.members.iter().map(|&index| &tensors[index]);
        let whole = if self.padded {
            let starts = self.layout.tensors().iter().map(|tensor| {
                bytes(tensor.start(), self.layout.dtype().size()).unwrap_or(usize::MAX)
            });
            Span::spread(members.zip(starts))
        } else {
            Span::joined(members)
        };
        // Without padding, this length says that there are no gaps between the tensors of the layout either.
        Ok(whole.filter(|whole| whole.len() == length))
    }

    /// The rounds of AdaSum that this rank takes part in, in their order, with the coefficients of all tensors.
    pub(super) fn rounds(&self) -> impl Iterator<Item = (&Merge, &Span)> {
        self.stages.iter().filter_map(|stage| match &stage.task {
            Task::Combine(Combine {
                merge: Some(merge),
                sums,
                ..
            }) => sums.first().map(|sum| (&**merge, &sum.weights)),
            _ => None,
        })
    }

    /// What this rank solves for itself.
    pub(super) fn solves(&self) -> impl Iterator<Item = &Solve> {
        self.stages.iter().filter_map(|stage| match &stage.task {
            Task::Combine(combine) => combine.solve.as_ref(),
            Task::Solve(solve) => Some(solve),
            _ => None,
        })
    }

    /// Whether no tensor has an element.
    pub(super) fn is_empty(&self) -> bool {
        self.layout.elements() == 0
    }

    /// Flags of the last round, in which every rank sees every tensor; without rounds, of what this rank holds. The
    /// streams must be drained.
    pub(super) fn nonfinite(&self) -> Result<Vec<bool>> {
        if self.is_empty() {
            return Ok(vec![false; self.layout.tensors().len()]);
        }
        let checks = self.stages.iter().filter_map(|stage| match &stage.task {
            Task::Check(check) => Some(&check.flags),
            _ => None,
        });
        let flags = checks.map(|flags| (flags, FLAG_WORDS, 0));
        let rounds = self.rounds();
        let rounds = rounds.map(|(_, weights)| (weights, COEFFICIENT_WORDS, COEFFICIENT_FLAGS));
        let tensors = self.layout.tensors().len();
        let Some((words, step, flag)) = rounds.chain(flags).last() else {
            return Ok(vec![false; tensors]);
        };
        let mut read = vec![0.0_f32; tensors * step];
        words.slice(0..size_of_val(&read[..]))?.read(&mut read)?;
        let records = read.chunks_exact(step);
        Ok(records.map(|record| record[flag] != 0.0).collect())
    }
}

/// How far a bucket has been issued in one reduction.
pub(super) struct Progress<'a> {
    bucket: &'a Bucket,
    stages: &'a [Stage],
    context: stage::Context<'a>,
    /// Whether the tensors have to be copied to the fused buffer and back.
    copies: bool,
    /// Stream and end of the stage before.
    last: Option<(Lane, &'a Event)>,
    /// Where leftovers of the stage before would stand.
    places: Option<&'a Places>,
    /// So many of the first stages are followed by a guard.
    guarded: usize,
}

impl<'a> Progress<'a> {
    pub(super) fn new(
        bucket: &'a Bucket,
        pass: Pass,
        context: stage::Context<'a>,
        copies: bool,
        lanes: &Lanes<'_>,
    ) -> Self {
        let stages = bucket.stages(pass);
        // On one stream the caller sees by itself that the last stages failed; others only get what is sent.
        let sends = |stage: &Stage| matches!(stage.task, Task::Exchange(_));
        let guarded = match lanes.are_one(Lane::Kernels, Lane::Payload) {
            true => stages.iter().rposition(sends).unwrap_or(0),
            false => stages.len(),
        };
        Progress {
            stages,
            guarded,
            bucket,
            context,
            copies,
            last: None,
            places: None,
        }
    }

    /// Enqueues stage `index`, behind the stage before it.
    pub(super) fn issue(&mut self, index: usize, lanes: &Lanes<'_>) -> Result<()> {
        let stage = &self.stages[index];
        let copy = matches!(stage.task, Task::CopyIn(_) | Task::CopyOut(_));
        if !matches!(stage.task, Task::Nothing) && (self.copies || !copy) {
            self.enter(stage.task.lane(), lanes)
                .and_then(|()| self.run(stage, index, lanes))
                .context(|| stage.mark.operation.clone())?;
        }
        if index + 1 == self.stages.len() && self.guarded > index {
            return self.enter(Lane::Payload, lanes);
        }
        Ok(())
    }

    fn run(&mut self, stage: &'a Stage, index: usize, lanes: &Lanes<'_>) -> Result<()> {
        let lane = stage.task.lane();
        self.context.receipt = (index < self.guarded).then_some(&self.bucket.receipt);
        let (context, mark) = (&self.context, &stage.mark);
        context
            .watch
            .call(mark, index, || stage.task.issue(context, lanes))?;
        self.places = stage.task.places().or(self.places);
        self.last = Some((lane, &stage.mark.done));
        lanes.get(lane).record(&stage.mark.done)
    }

    /// Enqueues what must come between the stage before and one of `lane`.
    fn enter(&mut self, lane: Lane, lanes: &Lanes<'_>) -> Result<()> {
        let Some((from, done)) = self.last else {
            return Ok(());
        };
        if !lanes.are_one(from, lane) {
            lanes.get(lane).wait(done)?;
        }
        if lane == Lane::Payload && from != Lane::Payload {
            // Whoever gave the world up has dropped work of its streams, perhaps in the middle of a stage.
            self.context.watch.check()?;
            self.guard(lanes)?;
            self.last = None;
        }
        Ok(())
    }

    /// Enqueues on the caller's stream that leftovers are spoilt unless all kernels have signed, and that it fails then, if what
    /// failed is not on it.
    fn guard(&self, lanes: &Lanes<'_>) -> Result<()> {
        let Some(places) = self.places else {
            return Ok(());
        };
        let then = match lanes.are_one(Lane::Kernels, Lane::Payload) {
            true => Then::GoOn,
            false => Then::Fail,
        };
        self.context.kernels.guard(
            lanes.payload,
            &Guard {
                receipt: &self.bucket.receipt,
                places: &self.context.book.tensors(&places.entries)?,
                dtype: places.dtype,
                reason: self.context.reason,
                then,
            },
        )
    }
}

/// What a rank holds when the rounds are done.
pub(super) fn owned(plan: &Plan, layout: &Layout) -> Range {
    let last = plan.rounds.last().map(|round| &round.combine);
    last.or(plan.mean.as_ref())
        .map_or(layout.whole(), |combine| combine.slice)
}

/// The vendor's name of an element type.
pub(super) fn data_type(dtype: DType) -> DataType {
    match dtype {
        DType::F32 => DataType::F32,
        DType::F16 => DataType::F16,
        DType::BF16 => DataType::Bf16,
    }
}

pub(super) fn bytes(count: u64, size: u64) -> Result<usize> {
    count
        .checked_mul(size)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| Error::invalid(format!("{count} elements of {size} bytes are too many")))
}

impl Entry {
    pub(super) fn address(self, tensors: Option<&[Span]>, memory: &Memory) -> u64 {
        match self {
            Entry::Tensor(index, start) => {
                tensors.map_or(0, |tensors| tensors[index].address() + start)
            }
            Entry::Place(place) => place.address(memory),
        }
    }
}
