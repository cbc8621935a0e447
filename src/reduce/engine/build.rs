//! Turns a plan into stages: device tables, places of vectors, communicators.

use std::ops;
use std::sync::Arc;

use crate::ascend::Event;
use crate::error::Result;
use crate::kernel::Rule;
use crate::kernel::layout::{FLAG_WORDS, MAX_RADIX};
use crate::plan::{self, DType, Exchange, Form, Layout, Plan, Planner, Range, Step};
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::bucket::{Bucket, Entry, bytes, data_type, owned};
use crate::reduce::engine::build_scalars::ScalarsBuilder;
use crate::reduce::engine::device_tables::{index, segments_in_buffer, uniform_weights};
use crate::reduce::engine::place::{Base, Place, WORD};
use crate::reduce::engine::stage::{
    CheckTask, CombineTask, CopyTask, ExchangeTask, GramTask, Merge, Places, Stage, Sum, Task,
};
use crate::reduce::options::Options;
use crate::reduce::world::World;
use crate::reduce::world::watch::{Phase, ReductionPart, WatchedStage};
use crate::transfer::Direction;

/// Prepares the stages of the tensors `members`, of which all have type `dtype`, for bucket `number`; `of` says in messages
/// of which tensors it is one. Its part of the address table begins with entry `first_entry`.
pub(in crate::reduce) fn bucket(
    world: &World,
    tables: &TableAllocator<'_>,
    planner: &Planner,
    dtype: DType,
    members: Vec<usize>,
    (number, of, first_entry): (usize, &str, usize),
    options: &Options,
) -> Result<Bucket> {
    let shards = options.shards(world);
    let plan = planner.plan(world.rank() / shards)?;
    let layout = planner.layout();
    let mut builder = StageBuilder {
        world,
        tables,
        planner,
        layout,
        dtype,
        options,
        number,
        of,
        size: layout.dtype().size(),
        entries: Vec::new(),
        first_entry,
    };
    let stages = builder.stages(&plan, &members)?;
    let collection = match options.scattered {
        true => builder.collection(&plan, &members)?,
        false => Vec::new(),
    };
    let scratch_bytes = builder.scratch_bytes(&plan)?;
    Ok(Bucket {
        layout: layout.clone(),
        stages,
        collection,
        owned: owned(&plan, layout),
        entries: builder.into_entries(),
        scratch_bytes,
        receipt: tables.receipt()?,
        in_place: layout.dtype() == dtype && options.scale == 1.0 && options.result_scale == 1.0,
        padded: options.padded,
        members,
    })
}

/// What the stages of one bucket are made from.
pub(super) struct StageBuilder<'a> {
    world: &'a World,
    tables: &'a TableAllocator<'a>,
    planner: &'a Planner,
    layout: &'a Layout,
    /// Type of the caller's tensors.
    dtype: DType,
    options: &'a Options,
    number: usize,
    /// Of which tensors it is a bucket.
    of: &'a str,
    /// Bytes of an element of the fused buffer.
    size: u64,
    entries: Vec<Entry>,
    first_entry: usize,
}

impl<'a> StageBuilder<'a> {
    /// What the stages read from the address table.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// All stages; their number is the same on all ranks.
    pub(in crate::reduce) fn stages(
        &mut self,
        plan: &Plan,
        members: &[usize],
    ) -> Result<Vec<Stage>> {
        let mut stages = Vec::new();
        let whole = self.layout.whole();
        let places = self.places(whole)?;
        let copy = self.copy(members, whole, self.options.scale, places)?;
        self.push(&mut stages, "copy in", Task::CopyIn(copy.clone()))?;
        for step in plan.steps() {
            let form = step.form(plan.forms);
            match step {
                // Gradients that are the same in a server, or parts of tensors, are not combined there.
                Step::Mean(mean) => {
                    if let Some(weight) = self.options.weight_in_server(mean.operands) {
                        let weights = vec![weight; mean.operands as usize];
                        self.constant(&mut stages, "in the server", mean, &weights, form)?;
                    }
                }
                Step::Share(exchange) => {
                    if self.options.weight_in_server(1).is_some() {
                        let task = self.exchange_in_place(exchange, form)?;
                        self.push(&mut stages, &step.to_string(), task)?;
                    }
                }
                Step::Round(index, round) => self.round(&mut stages, index, round, form)?,
                Step::Return(..) | Step::Gather(_) => {}
            }
        }
        if !self.options.merges_servers(self.world) {
            let task = self.check(owned(plan, self.layout))?;
            self.push(&mut stages, "check of results", task)?;
        }
        let factor = self.options.result_scale;
        let back = if self.options.scattered {
            let part = owned(plan, self.layout);
            let places = self.places_in_tensors(members, part);
            self.copy(members, part, factor, places)?
        } else {
            self.ways_back(&mut stages, plan)?;
            let places = self.places_in_tensors(members, whole);
            CopyTask {
                factor,
                places,
                ..copy
            }
        };
        self.push(&mut stages, "copy out", Task::CopyOut(back))?;
        Ok(stages)
    }

    /// The stages that bring parts which are scattered as results are to all ranks.
    pub(super) fn collection(&mut self, plan: &Plan, members: &[usize]) -> Result<Vec<Stage>> {
        let mut stages = Vec::new();
        let (part, whole) = (owned(plan, self.layout), self.layout.whole());
        let places = self.places(part)?;
        let copy = self.copy(members, part, 1.0, places)?;
        self.push(&mut stages, "copy in", Task::CopyIn(copy))?;
        self.ways_back(&mut stages, plan)?;
        let places = self.places_in_tensors(members, whole);
        let back = self.copy(members, whole, 1.0, places)?;
        self.push(&mut stages, "copy out", Task::CopyOut(back))?;
        Ok(stages)
    }

    fn ways_back(&mut self, stages: &mut Vec<Stage>, plan: &Plan) -> Result<()> {
        for step in plan.steps().filter(|step| step.is_way_back()) {
            let task = self.exchange_in_place(step.exchange(), step.form(plan.forms))?;
            self.push_as(stages, &step.to_string(), Phase::Return, task)?;
        }
        Ok(())
    }

    /// The look for what is not finite in a part of the buffer.
    fn check(&mut self, part: Range) -> Result<Task> {
        let segments = self.tables.segments(&self.layout.segments(part))?;
        if segments.count == 0 {
            return Ok(Task::Nothing);
        }
        let words = self.layout.tensors().len() * FLAG_WORDS;
        Ok(Task::Check(CheckTask {
            place: self.part(part)?,
            segments: Arc::new(segments),
            flags: self.tables.zeroed(words * WORD)?,
            places: self.places(part)?,
        }))
    }

    /// The copy of a part of the buffer, which leaves `places`.
    fn copy(
        &mut self,
        members: &[usize],
        part: Range,
        factor: f32,
        places: Places,
    ) -> Result<CopyTask> {
        let size = self.dtype.size();
        let tensors = members.iter().zip(self.layout.tensors());
        let entries: Vec<Entry> = tensors
            .map(|(&index, tensor)| {
                // Kernels want the address of the first element that they copy.
                let skipped = part
                    .start()
                    .saturating_sub(tensor.start())
                    .min(tensor.len());
                Entry::Tensor(index, skipped * size)
            })
            .collect();
        let segments = self
            .tables
            .segments(&segments_in_buffer(self.layout, part))?;
        Ok(CopyTask {
            tensors: self.enter(entries),
            tensor_type: data_type(self.dtype),
            factor,
            segments: Arc::new(segments),
            places,
        })
    }

    /// Where the tensors themselves begin, of which a part of the buffer is copied.
    fn places_in_tensors(&mut self, members: &[usize], part: Range) -> Places {
        let size = self.dtype.size();
        let first = |segment: &plan::Segment| {
            let tensor = index(segment.tensor);
            let start = self.layout.tensors()[tensor].start();
            let skipped = part.start().saturating_sub(start);
            Entry::Tensor(members[tensor], skipped * size)
        };
        let entries: Vec<Entry> = self.layout.segments(part).iter().map(first).collect();
        Places {
            entries: self.enter(entries),
            dtype: data_type(self.dtype),
        }
    }

    /// Bytes of the receive buffer: all other operands of the largest combine.
    pub(super) fn scratch_bytes(&self, plan: &Plan) -> Result<usize> {
        let combines = plan.steps().filter_map(Step::combine);
        let elements = combines
            .map(|combine| u64::from(combine.operands - 1) * combine.slice.len())
            .max()
            .unwrap_or(0);
        bytes(elements, self.size)
    }

    /// Where the tensors begin in a part of the buffer.
    fn places(&mut self, part: Range) -> Result<Places> {
        let entries = self
            .layout
            .segments(part)
            .iter()
            .map(|segment| {
                Ok(Entry::Place(Place {
                    base: Base::Fused,
                    start: bytes(part.start() + segment.offset, self.size)?,
                    len: bytes(segment.len, self.size)?,
                }))
            })
            .collect::<Result<Vec<Entry>>>()?;
        Ok(Places {
            entries: self.enter(entries),
            dtype: data_type(self.layout.dtype()),
        })
    }

    fn push(&self, stages: &mut Vec<Stage>, name: &str, task: Task) -> Result<()> {
        self.push_as(stages, name, task.phase(), task)
    }

    fn push_as(&self, stages: &mut Vec<Stage>, name: &str, phase: Phase, task: Task) -> Result<()> {
        let (peers, bytes) = task.traffic();
        let watched = Arc::new(WatchedStage {
            operation: format!("bucket {}{}, {name}", self.number, self.of),
            peers: peers
                .into_iter()
                .map(|rank| self.world.rank_in_root(rank))
                .collect(),
            bytes,
            part: Some(ReductionPart {
                bucket: self.number,
                name: name.to_owned(),
                phase,
            }),
            done: Event::new(self.world.device())?,
        });
        stages.push(Stage { task, watched });
        Ok(())
    }

    /// Reserves consecutive entries of the address table.
    fn enter(&mut self, entries: impl IntoIterator<Item = Entry>) -> ops::Range<usize> {
        let start = self.first_entry + self.entries.len();
        self.entries.extend(entries);
        start..self.first_entry + self.entries.len()
    }

    /// An exchange and a sum with constant weights.
    fn constant(
        &mut self,
        stages: &mut Vec<Stage>,
        name: &str,
        combine: &plan::Combine,
        weights: &[f32],
        form: Form,
    ) -> Result<()> {
        let exchange = self.exchange(combine, form)?;
        self.push(stages, name, exchange)?;
        let combine = CombineTask {
            solve: None,
            merge: None,
            segments: Arc::new(self.tables.segments(&self.layout.segments(combine.slice))?),
            sums: self.constant_sums(combine, weights)?,
            places: self.places(combine.slice)?,
        };
        self.push(stages, &format!("{name}: sum"), Task::Combine(combine))
    }

    /// The launches of a constant sum of any number of vectors, at most `MAX_RADIX` a launch.
    ///
    /// Partial sums go over the first vector, and only the last launch writes the own slice: the own
    /// vector is somewhere among the operands and must last until it is read. Each launch rounds to the
    /// element type once.
    fn constant_sums(&mut self, combine: &plan::Combine, weights: &[f32]) -> Result<Vec<Sum>> {
        let operands = self.operands(combine)?;
        let own = self.part(combine.slice)?;
        let mut sums: Vec<Sum> = Vec::new();
        let mut rest = &operands[..];
        let mut weights = weights;
        while !rest.is_empty() {
            let carried = sums.last().map(|sum| sum.out);
            let take = (MAX_RADIX - usize::from(carried.is_some())).min(rest.len());
            let inputs: Vec<Place> = carried
                .into_iter()
                .chain(rest[..take].iter().copied())
                .collect();
            let mut factors = weights[..take].to_vec();
            if carried.is_some() {
                factors.insert(0, 1.0);
            }
            rest = &rest[take..];
            weights = &weights[take..];
            let out = if rest.is_empty() { own } else { inputs[0] };
            sums.push(Sum {
                vectors: self.enter(inputs.into_iter().map(Entry::Place)),
                weights: uniform_weights(self.tables, &factors, self.layout.tensors().len())?,
                out,
            });
        }
        Ok(sums)
    }

    fn round(
        &mut self,
        stages: &mut Vec<Stage>,
        index: usize,
        round: &plan::Round,
        form: Form,
    ) -> Result<()> {
        let name = format!("round {index}");
        let combine = &round.combine;
        let total = round.members.iter().map(|subtree| subtree.count).sum();
        let weights = round.members.iter();
        let weights = weights.map(|subtree| self.options.reduction.weight(subtree.count, total));
        if let Some(weights) = weights.collect::<Option<Vec<f32>>>() {
            if combine.operands > 1 {
                return self.constant(stages, &name, combine, &weights, form);
            }
            // Others merge here; the stages stay in step.
            self.push(stages, &name, Task::Nothing)?;
            return self.push(stages, &name, Task::Nothing);
        }
        let exchange = match combine.operands {
            0 | 1 => Task::Nothing,
            _ => self.exchange(combine, form)?,
        };
        self.push(stages, &name, exchange)?;
        let tasks = self.adasum(index, round)?;
        for (what, task) in ["products", "records", "weights", "scalars", "sum"]
            .into_iter()
            .zip(tasks)
        {
            // Where no group has owners, nobody has these two.
            let of_owners = matches!(what, "records" | "weights");
            if !of_owners || self.planner.owners_in(index) {
                self.push(stages, &format!("{name}: {what}"), task)?;
            }
        }
        Ok(())
    }

    /// Products, their way to owners and the owners' weights, what is gathered, and the sum.
    fn adasum(&mut self, index: usize, round: &plan::Round) -> Result<[Task; 5]> {
        let combine = &round.combine;
        let scalars = &round.scalars;
        if combine.operands < 2 || scalars.stride == 0 {
            // Nothing to merge, or no tensor has an element.
            return Ok([const { Task::Nothing }; 5]);
        }
        let segments = Arc::new(self.tables.segments(&self.layout.segments(combine.slice))?);
        let operands = self.operands(combine)?;
        let radix = operands.len();
        let vectors = self.enter(operands.into_iter().map(Entry::Place));
        let servers = |subtree: &plan::Group| {
            let first = self.world.shape().server(subtree.first);
            first..first + subtree.count
        };
        let merge = Arc::new(Merge {
            subtrees: round.members.iter().map(servers).collect(),
            own: combine.own as usize,
        });
        let exchange = ScalarsBuilder {
            world: self.world,
            tables: self.tables,
            planner: self.planner,
            index,
            plan: scalars,
            radix,
            units: segments.units,
            merge: &merge,
            shards: self.options.shards(self.world),
            rule: Rule {
                zero_tol: self.options.zero_tol,
                ..Rule::default()
            },
        }
        .exchange()?;
        let sum = CombineTask {
            solve: exchange.solve,
            merge: Some(Arc::clone(&merge)),
            sums: vec![Sum {
                vectors: vectors.clone(),
                weights: exchange.weights,
                out: self.part(combine.slice)?,
            }],
            segments: Arc::clone(&segments),
            places: self.places(combine.slice)?,
        };
        // Also where this rank has no part of a tensor: it fills what comes from others.
        let products = Task::Gram(GramTask {
            vectors,
            partials: exchange.partials,
            segments,
            records: exchange.records,
            written: exchange.written,
        });
        let [records, weights] = exchange.owners;
        Ok([
            products,
            records,
            weights,
            Task::Gather(exchange.gather),
            Task::Combine(sum),
        ])
    }

    /// The part of the fused buffer.
    fn part(&self, range: Range) -> Result<Place> {
        Ok(Place {
            base: Base::Fused,
            start: bytes(range.start(), self.size)?,
            len: bytes(range.len(), self.size)?,
        })
    }

    /// Where operand `number` of a combine lies: the own one in place, the others one after the other in
    /// the receive buffer.
    fn operand(&self, combine: &plan::Combine, number: u32) -> Result<Place> {
        if number == combine.own {
            return self.part(combine.slice);
        }
        let slot = number - u32::from(number > combine.own);
        let len = bytes(combine.slice.len(), self.size)?;
        Ok(Place {
            base: Base::Scratch,
            start: len * slot as usize,
            len,
        })
    }

    fn operands(&self, combine: &plan::Combine) -> Result<Vec<Place>> {
        (0..combine.operands)
            .map(|number| self.operand(combine, number))
            .collect()
    }

    fn exchange(&mut self, combine: &plan::Combine, form: Form) -> Result<Task> {
        self.exchange_into(&combine.exchange, form, |builder, receive| {
            let operand = builder.operand(combine, receive.operand)?;
            let start = bytes(receive.range.start() - combine.slice.start(), builder.size)?;
            Ok(operand.part(start, bytes(receive.range.len(), builder.size)?))
        })
    }

    fn exchange_in_place(&mut self, exchange: &Exchange, form: Form) -> Result<Task> {
        self.exchange_into(exchange, form, |builder, receive| {
            builder.part(receive.range)
        })
    }

    /// The last block of a segment of `place`. HCCL moves long parts in pieces, the first elements first.
    fn last_block(&self, place: Place, segment: &plan::Segment) -> Result<Place> {
        // What the oldest chips write at once; segments start at multiples of it there.
        const BLOCK: usize = 32;
        let (start, len) = (
            bytes(segment.offset, self.size)?,
            bytes(segment.len, self.size)?,
        );
        let before = (len - 1) / BLOCK * BLOCK;
        Ok(place.part(start + before, len - before))
    }

    fn exchange_into(
        &mut self,
        exchange: &Exchange,
        form: Form,
        place: impl Fn(&Self, &plan::VectorPart) -> Result<Place>,
    ) -> Result<Task> {
        // All ranks of a server come to its all-to-all.
        if exchange.is_empty() && form != Form::AllToAll {
            return Ok(Task::Nothing);
        }
        let shards = self.options.shards(self.world);
        let rank = self.world.rank();
        let rank_of = |peer: u32| peer * shards + rank % shards;
        let mut transfers = Vec::with_capacity(exchange.transfers.len());
        let mut awaited = Vec::new();
        for transfer in &exchange.transfers {
            let range = transfer.part.range;
            let place = match transfer.direction {
                Direction::Send => self.part(range)?,
                Direction::Receive => place(self, &transfer.part)?,
            };
            if !transfer.is_send() {
                for segment in self.layout.segments(range) {
                    awaited.push(Entry::Place(self.last_block(place, &segment)?));
                }
            }
            transfers.push(transfer.with(rank_of(transfer.peer), place));
        }
        let awaited = Places {
            entries: self.enter(awaited),
            dtype: data_type(self.layout.dtype()),
        };
        let (comm, first) = match form {
            Form::AllToAll => self.world.server()?,
            Form::Batch | Form::Group | Form::Pairwise => (self.world.shared_comm(), 0),
        };
        Ok(Task::Exchange(ExchangeTask {
            comm,
            first,
            form,
            transfers,
            awaited,
        }))
    }
}
