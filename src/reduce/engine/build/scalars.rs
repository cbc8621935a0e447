//! How the scalars of one round come together: everyone gathers them and solves for the tensors of its slice, or owners sum
//! and solve.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ascend::Span;
use crate::error::Result;
use crate::kernel::Rule;
use crate::kernel::layout::{coefficient_words, record_words};
use crate::plan::{self, Layout, Planner, Range, RecordPart};
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::bucket::bytes;
use crate::reduce::engine::device_tables::{FoldList, in_order, index};
use crate::reduce::engine::place::WORD;
use crate::reduce::engine::stage::{GatherTask, Merge, RecordsTask, SolveTask, Task};
use crate::reduce::world::{Purpose, World};
use crate::transfer::Direction;

/// What the exchange of one round's scalars is made from.
pub(super) struct ScalarsBuilder<'a> {
    pub(super) world: &'a World,
    pub(super) tables: &'a TableAllocator<'a>,
    pub(super) planner: &'a Planner,
    /// Number of the round.
    pub(super) index: usize,
    pub(super) plan: &'a plan::Scalars,
    pub(super) radix: usize,
    /// Units of this rank's slice.
    pub(super) units: u64,
    /// What the round puts together.
    pub(super) merge: &'a Arc<Merge>,
    /// How many parts of a tensor the ranks of a server hold; only gathered scalars are summed over them.
    pub(super) shards: u32,
    pub(super) rule: Rule,
}

/// The exchange of one round's scalars.
pub(super) struct Exchanged {
    /// All that a step writes, here and on other ranks, before it reads it.
    pub(super) written: Span,
    /// Where the records of this rank's units are to be written, and those of its tensors.
    pub(super) partials: Span,
    pub(super) records: Span,
    /// Records to owners, and the owner's weights.
    pub(super) owners: [Task; 2],
    pub(super) gather: GatherTask,
    /// Computes the weights of the tensors of this rank's slice, unless they are gathered.
    pub(super) solve: Option<SolveTask>,
    /// The weights of all tensors.
    pub(super) weights: Span,
}

impl ScalarsBuilder<'_> {
    /// Prepares it; makes its communicator.
    pub(super) fn exchange(&self) -> Result<Exchanged> {
        match &self.plan.owned {
            None => self.gathered(),
            Some(owned) => self.owned(owned),
        }
    }

    /// Everyone gathers all records and computes the weights that it needs.
    fn gathered(&self) -> Result<Exchanged> {
        // The parts of a tensor are cut alike.
        let slices: Vec<Range> = self
            .planner
            .slices(self.plan.group, self.index + 1)
            .into_iter()
            .flat_map(|slice| std::iter::repeat_n(slice, self.shards as usize))
            .collect();
        let stride = bytes(self.plan.stride, self.record() as u64)?;
        let tensors = self.layout().tensors().len();
        let (written, [partials, records, gathered, weights]) = self.tables.zeroed_parts([
            self.partials()?,
            stride,
            stride * slices.len(),
            tensors * coefficient_words(self.radix) * WORD,
        ])?;
        let list = FoldList::gathered(self.tables, self.layout(), &slices, self.plan.stride)?;
        Ok(Exchanged {
            written,
            partials,
            owners: [Task::Nothing, Task::Nothing],
            gather: self.gather(&records, &gathered)?,
            solve: Some(SolveTask {
                records: gathered,
                list,
                radix: self.radix,
                rule: self.rule,
                coefficients: weights.clone(),
                tensors,
                needed: index(self.plan.tensors.start())..index(self.plan.tensors.end()),
                weights_only: true,
                merge: Arc::clone(self.merge),
                first: 0,
            }),
            records,
            weights,
        })
    }

    /// Owners get the records of their tensors and compute their weights; everyone gathers the weights.
    fn owned(&self, owned: &plan::OwnedScalars) -> Result<Exchanged> {
        let own = self.plan.tensors.intersection(owned.tensors);
        // The records of this rank's slice, and behind them those of others for its own tensors.
        let mut place = self.plan.stride;
        let mut parts = HashMap::from([(self.world.rank(), (own, self.first_record(own)))]);
        for receive in owned.exchange.receives() {
            parts.insert(receive.peer, (receive.part.tensors, place));
            place += receive.part.records;
        }
        let group = self.plan.group;
        let ranks: Vec<u32> = group.ranks().collect();
        let run = bytes(owned.run, (coefficient_words(self.radix) * WORD) as u64)?;
        let (written, [partials, records, mine, weights]) = self.tables.zeroed_parts([
            self.partials()?,
            bytes(place, self.record() as u64)?,
            run,
            run * ranks.len(),
        ])?;
        let exchange = self.records(owned, &records, &parts)?;

        let slices = self.planner.slices(group, self.index + 1);
        let parts: Vec<(Range, u64)> = in_order(&slices)
            .into_iter()
            .filter_map(|member| parts.get(&ranks[member]).copied())
            .collect();
        let tensors = index(owned.tensors.len());
        let solve = SolveTask {
            records: records.clone(),
            list: FoldList::owned(self.tables, self.layout(), owned.tensors, &parts)?,
            radix: self.radix,
            rule: self.rule,
            coefficients: mine.clone(),
            tensors,
            needed: 0..tensors,
            // Nobody gathers them again.
            weights_only: false,
            merge: Arc::clone(self.merge),
            first: index(owned.tensors.start()),
        };
        Ok(Exchanged {
            written,
            partials,
            owners: [
                match exchange.transfers.len() {
                    0 => Task::Nothing,
                    _ => Task::Records(exchange),
                },
                match solve.tensors {
                    0 => Task::Nothing,
                    _ => Task::Solve(solve),
                },
            ],
            gather: self.gather(&mine, &weights)?,
            solve: None,
            records,
            weights,
        })
    }

    /// The records on their way to their owners. `parts` has the number of the first record of each rank.
    fn records(
        &self,
        owned: &plan::OwnedScalars,
        records: &Span,
        parts: &HashMap<u32, (Range, u64)>,
    ) -> Result<RecordsTask> {
        let group = self.plan.group;
        let span = |part: RecordPart, first: u64| {
            let start = bytes(first, self.record() as u64)?;
            records.slice(start..start + bytes(part.records, self.record() as u64)?)
        };
        let transfers = owned.exchange.transfers.iter().map(|transfer| {
            let first = match transfer.direction {
                Direction::Send => self.first_record(transfer.part.tensors),
                Direction::Receive => parts.get(&transfer.peer).map_or(0, |part| part.1),
            };
            let peer = group.index_of(transfer.peer).unwrap_or(u32::MAX);
            Ok(transfer.with(peer, span(transfer.part, first)?))
        });
        Ok(RecordsTask {
            comm: self.world.group(group, Purpose::Scalars)?,
            group,
            transfers: transfers.collect::<Result<_>>()?,
            form: self.planner.choices().forms.records,
        })
    }

    fn gather(&self, own: &Span, gathered: &Span) -> Result<GatherTask> {
        let group = self.plan.group.of_parts(self.shards);
        let others = group.ranks().filter(|&rank| rank != self.world.rank());
        Ok(GatherTask {
            comm: self.world.group(group, Purpose::Scalars)?,
            peers: others.collect(),
            own: own.clone(),
            gathered: gathered.clone(),
        })
    }

    /// Number of the first record of these tensors among those of this rank's slice.
    fn first_record(&self, tensors: Range) -> u64 {
        let start = self.plan.tensors.start();
        let before = Range::new(start, tensors.start());
        self.layout().records_of(before)
    }

    /// Bytes of a record.
    fn record(&self) -> usize {
        record_words(self.radix) * WORD
    }

    /// Bytes of the records of units.
    fn partials(&self) -> Result<usize> {
        bytes(self.units, self.record() as u64)
    }

    fn layout(&self) -> &Layout {
        self.planner.layout()
    }
}
