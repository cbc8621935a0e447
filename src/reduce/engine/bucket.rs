//! One fused buffer and the stages of its reduction, made ready once.

use crate::ascend::{DataType, Span};
use crate::error::{Error, Result};
use crate::kernel::Receipt;
use crate::kernel::layout::{COEFFICIENT_FLAGS, FLAG_WORDS};
use crate::plan::{DType, Group, Layout, Plan, Range, Step};
use crate::reduce::engine::place::{Memory, Place};
use crate::reduce::engine::stage::{CombineTask, Merge, SolveTask, Stage, Task};

/// Whose address stands in an entry of the address table.
#[derive(Debug, Clone, Copy)]
pub(in crate::reduce) enum Entry {
    /// A tensor of the caller's, by its index in the list that is prepared, from a byte of it on.
    Tensor(usize, u64),
    /// A part of a bucket's buffers.
    Place(Place),
    /// A word of a table, by its address.
    Table(u64),
}

/// What all stages of a call are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reduce) enum Pass {
    Reduction,
    /// Scattered parts to all ranks.
    Collection,
}

impl Pass {
    /// What callers give to it, for messages.
    pub(in crate::reduce) fn takes(self) -> &'static str {
        match self {
            Pass::Reduction => "gradient",
            Pass::Collection => "weight",
        }
    }
}

/// The stages of one fused buffer.
pub(in crate::reduce) struct Bucket {
    /// Indices of the tensors in the program's list, in the order of the buffer.
    pub(in crate::reduce) members: Vec<usize>,
    pub(in crate::reduce) layout: Layout,
    /// The stages of a reduction.
    pub(in crate::reduce) stages: Vec<Stage>,
    /// So many of the last ones are behind the rounds.
    pub(super) closing: usize,
    /// The stages that bring scattered parts together again; none where results are not scattered.
    pub(super) collection: Vec<Stage>,
    /// What this rank holds at the end of the rounds.
    pub(in crate::reduce) owned: Range,
    /// What its stages read from the address table, from entry `first_entry` on.
    pub(in crate::reduce) entries: Vec<Entry>,
    /// Bytes of the buffer for what other ranks send.
    pub(super) scratch_bytes: usize,
    /// What its kernels sign on the internal stream.
    pub(super) receipt: Receipt,
    /// Whether tensors are the same in the fused buffer: of the same type, and not scaled.
    pub(in crate::reduce) native: bool,
    /// The ranks of the world that read each other's fused buffers.
    pub(super) shared: Option<Group>,
    /// Whether gaps between tensors may be overwritten.
    pub(in crate::reduce) padded: bool,
}

impl Bucket {
    /// The stages of a pass.
    pub(in crate::reduce) fn stages(&self, pass: Pass) -> &[Stage] {
        match pass {
            Pass::Reduction => &self.stages,
            Pass::Collection => &self.collection,
        }
    }

    /// Bytes of the fused buffer.
    pub(super) fn fused_bytes(&self) -> Result<usize> {
        bytes(self.layout.elements(), self.layout.dtype().size())
    }

    /// Whether the tensors lie in the fused buffer of `memory`, or in one of the caller's that takes its place there.
    pub(super) fn in_place(&self, tensors: &[Span], memory: &mut Memory) -> Result<bool> {
        if !self.native {
            return Ok(false);
        }
        let (own, size) = (memory.fused.address(), self.layout.dtype().size());
        let mut members = self.members.iter().zip(self.layout.tensors());
        let is_there = |(&i, place): (&usize, &Range)| {
            tensors[i].is_empty() || tensors[i].address() == own + place.start() * size
        };
        if members.all(is_there) {
            return Ok(true);
        }
        // Other ranks read the buffers of the reducer only.
        let flat = match self.shared {
            Some(_) => None,
            None => self.flat(tensors)?,
        };
        let found = flat.is_some();
        memory.fused = flat.unwrap_or_else(|| memory.fused.clone());
        Ok(found)
    }

    /// Where the tensors lie in the fused buffer of `memory`.
    pub(super) fn places(&self, memory: &Memory) -> Result<Vec<Span>> {
        let size = self.layout.dtype().size();
        let place = |tensor: &Range| {
            let (start, len) = (bytes(tensor.start(), size)?, bytes(tensor.len(), size)?);
            memory.fused.slice(start..start + len)
        };
        self.layout.tensors().iter().map(place).collect()
    }

    /// The caller's memory, if its tensors lie there just as in the fused buffer.
    fn flat(&self, tensors: &[Span]) -> Result<Option<Span>> {
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
    pub(in crate::reduce) fn rounds(&self) -> impl Iterator<Item = (&Merge, &Span)> {
        self.stages.iter().filter_map(|stage| match &stage.task {
            Task::Combine(CombineTask {
                merge: Some(merge),
                sums,
                ..
            }) => sums.first().map(|sum| (&**merge, &sum.weights)),
            _ => None,
        })
    }

    /// What this rank solves for itself.
    pub(in crate::reduce) fn solves(&self) -> impl Iterator<Item = &SolveTask> {
        self.stages.iter().filter_map(|stage| match &stage.task {
            Task::Combine(combine) => combine.solve.as_ref(),
            Task::Solve(solve) => Some(solve),
            _ => None,
        })
    }

    /// Whether no tensor has an element.
    pub(in crate::reduce) fn is_empty(&self) -> bool {
        self.layout.elements() == 0
    }

    /// Flags of the last round, in which every rank sees every tensor; without rounds, of what this rank holds. The
    /// streams must be drained.
    pub(in crate::reduce) fn nonfinite(&self) -> Result<Vec<bool>> {
        if self.is_empty() {
            return Ok(vec![false; self.layout.tensors().len()]);
        }
        let checks = self.stages.iter().filter_map(|stage| match &stage.task {
            Task::Check(check) => Some(&check.flags),
            _ => None,
        });
        let flags = checks.map(|flags| (flags, FLAG_WORDS, 0));
        let rounds = self.rounds();
        let rounds = rounds.map(|(merge, weights)| (weights, merge.words(), COEFFICIENT_FLAGS));
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

/// What a rank holds when the rounds are done.
pub(in crate::reduce) fn owned(plan: &Plan, layout: &Layout) -> Range {
    let combines = plan.steps().filter_map(Step::combine);
    combines.last().map_or(layout.whole(), |last| last.slice)
}

/// The vendor's name of an element type.
pub(in crate::reduce) fn data_type(dtype: DType) -> DataType {
    match dtype {
        DType::F32 => DataType::F32,
        DType::F16 => DataType::F16,
        DType::BF16 => DataType::Bf16,
    }
}

pub(in crate::reduce) fn bytes(count: u64, size: u64) -> Result<usize> {
    count
        .checked_mul(size)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| Error::invalid(format!("{count} elements of {size} bytes are too many")))
}

impl Entry {
    pub(super) fn address(self, tensors: Option<&[Span]>, memory: &Memory) -> Result<u64> {
        match self {
            Entry::Tensor(index, start) => {
                Ok(tensors.map_or(0, |tensors| tensors[index].address() + start))
            }
            Entry::Place(place) => place.address(memory),
            Entry::Table(address) => Ok(address),
        }
    }
}
