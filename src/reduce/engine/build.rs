//! Turns a plan into stages: device tables, places of vectors, communicators. `exchanges` has what moves vectors, `reads` what
//! is read where other ranks have it.

mod exchanges;
mod reads;
mod scalars;

use std::ops;
use std::sync::Arc;

use crate::ascend::{DataType, Event};
use crate::error::Result;
use crate::kernel::Rule;
use crate::kernel::layout::{FLAG_WORDS, MAX_RADIX};
use crate::plan::{self, DType, Exchange, Form, Layout, Plan, Planner, Range, Step, record_words};
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::bucket::{Bucket, Entry, bytes, data_type, owned};
use crate::reduce::engine::build::scalars::ScalarsBuilder;
use crate::reduce::engine::device_tables::{index, segments_in_buffer, uniform_weights};
use crate::reduce::engine::pieces::Piece;
use crate::reduce::engine::place::{Base, Place, WORD};
use crate::reduce::engine::rendezvous::{CommonBarriers, Rendezvous, Stand};
use crate::reduce::engine::stage::{
    CheckTask, CombineTask, CopyPart, CopyTask, GramTask, Merge, Places, Products, Stage, Sum, Task,
};
use crate::reduce::options::{Options, Reduction};
use crate::reduce::world::World;
use crate::reduce::world::watch::{Phase, ReductionPart, WatchedStage};

/// From so many other ranks results go to the tensors at once: up to two launches for each, and one, of up to 64 cores (Ascend 950),
/// are less than what [a receipt](crate::kernel::Receipt) counts.
const MOST_OWNERS: usize = 31;

/// Which of a list's buckets it is.
pub(in crate::reduce) struct Which<'a> {
    pub(in crate::reduce) number: usize,
    /// Of which tensors it is one, for messages.
    pub(in crate::reduce) of: &'a str,
    /// Where its part of the address table begins.
    pub(in crate::reduce) first_entry: usize,
    /// Whether others follow, which leave its buffers alone.
    pub(super) is_kept: bool,
    /// The barriers that it has in common with the others, where it is one of several that all do.
    pub(super) common: Option<&'a CommonBarriers>,
}

/// Prepares the stages of the tensors `members`, of which all have type `dtype`, for one bucket.
pub(in crate::reduce) fn bucket(
    world: &World,
    tables: &TableAllocator<'_>,
    planner: &Planner,
    dtype: DType,
    members: Vec<usize>,
    which: Which<'_>,
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
        which,
        size: layout.dtype().size(),
        entries: Vec::new(),
    };
    let (stages, closing) = builder.stages(&plan, &members)?;
    let collection = match options.scattered {
        true => builder.collection(&plan, &members)?,
        false => Vec::new(),
    };
    let scratch_bytes = builder.scratch_bytes(&plan)?;
    Ok(Bucket {
        layout: layout.clone(),
        stages,
        closing,
        collection,
        owned: owned(&plan, layout),
        entries: builder.entries,
        scratch_bytes,
        receipt: tables.receipt()?,
        native: layout.dtype() == dtype && !options.is_scaled(),
        shared: plan.shared.map(|group| group.of_parts(shards)),
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
    which: Which<'a>,
    /// Bytes of an element of the fused buffer.
    size: u64,
    /// What the stages read from the address table.
    entries: Vec<Entry>,
}

impl<'a> StageBuilder<'a> {
    /// All stages, and how many of them are behind the rounds; these numbers are the same on all ranks.
    fn stages(&mut self, plan: &Plan, members: &[usize]) -> Result<(Vec<Stage>, usize)> {
        let mut stages = Vec::new();
        let written = self.writes_results();
        let whole = self.layout.whole();
        let copy = self.copy(members, Base::Fused, whole, self.options.scale)?;
        self.copy_in(&mut stages, copy.clone(), whole)?;
        for step in plan.steps() {
            let form = step.form(plan.forms);
            match step {
                // Gradients that are the same in a server, or parts of tensors, are not combined there.
                Step::Mean(mean) => {
                    if let Some(weight) = self.options.weight_in_server(mean.operands) {
                        let weights = vec![weight; mean.operands as usize];
                        let how = (form, Stand::Between);
                        self.constant(&mut stages, "in the server", mean, &weights, how)?;
                    }
                }
                Step::Share(exchange) => {
                    if self.options.weight_in_server(1).is_some() {
                        let task = self.in_place(exchange, form, Stand::Between)?;
                        self.push(&mut stages, &step.to_string(), task)?;
                    }
                }
                Step::Round(index, round) => {
                    let is_last = index + 1 == plan.rounds.len();
                    let written = plan.written().filter(|_| written && is_last);
                    self.round(&mut stages, (index, round), form, written)?;
                }
                Step::Return(..) | Step::Gather(_) => {}
            }
        }
        if !self.options.merges_servers(self.world) {
            let task = self.check(owned(plan, self.layout))?;
            self.push(&mut stages, "check of results", task)?;
        }
        let before = stages.len();
        let factor = self.options.result_scale;
        if self.options.scattered {
            let part = owned(plan, self.layout);
            let back = CopyTask {
                parts: vec![self.copy(members, Base::Fused, part, factor)?],
                places: self.places_in_tensors(members, part),
                behind: None,
            };
            self.push(&mut stages, "copy out", Task::CopyOut(back))?;
        } else {
            let whole = CopyPart { factor, ..copy };
            self.ways_back(&mut stages, plan, members, whole, written)?;
        }
        self.release(&mut stages, plan, written)?;
        let closing = stages.len() - before;
        Ok((stages, closing))
    }

    /// The stages that bring parts which are scattered as results are to all ranks.
    pub(super) fn collection(&mut self, plan: &Plan, members: &[usize]) -> Result<Vec<Stage>> {
        let mut stages = Vec::new();
        let part = owned(plan, self.layout);
        let copy = self.copy(members, Base::Fused, part, 1.0)?;
        self.copy_in(&mut stages, copy, part)?;
        let whole = self.copy(members, Base::Fused, self.layout.whole(), 1.0)?;
        self.ways_back(&mut stages, plan, members, whole, false)?;
        self.release(&mut stages, plan, false)?;
        Ok(stages)
    }

    fn copy_in(&mut self, stages: &mut Vec<Stage>, copy: CopyPart, part: Range) -> Result<()> {
        let copy = CopyTask {
            parts: vec![copy],
            places: self.places(part)?,
            behind: None,
        };
        self.push(stages, "copy in", Task::CopyIn(copy))
    }

    /// The stages that bring results to all ranks, as far as they are not `written` there, and from the fused buffer to the
    /// tensors by the copy `whole`.
    fn ways_back(
        &mut self,
        stages: &mut Vec<Stage>,
        plan: &Plan,
        members: &[usize],
        whole: CopyPart,
        written: bool,
    ) -> Result<()> {
        let mut steps: Vec<Step<'_>> = plan.steps().filter(|step| step.is_way_back()).collect();
        let is_written = |step: &Step<'_>| written && matches!(step, Step::Return(..));
        // What is read last goes to the tensors at once, by a launch for each owner, as long as a guard can count them; checksums are of
        // what lies in the own buffer.
        let direct = steps.pop_if(|step| {
            let exchange = step.exchange();
            exchange.barrier.is_some()
                && exchange.receives().count() <= MOST_OWNERS
                && !is_written(step)
                && !self.options.checksum
        });
        for step in steps {
            let mut task = self.in_place(step.exchange(), step.form(plan.forms), Stand::Last)?;
            if let Task::Read(read) = &mut task {
                read.written = is_written(&step);
            }
            self.push_as(stages, &step.to_string(), Phase::Return, task)?;
        }
        let factor = whole.factor;
        let mut back = CopyTask {
            parts: vec![whole],
            places: self.places_in_tensors(members, self.layout.whole()),
            behind: None,
        };
        if let Some((step, group)) = direct.and_then(|step| Some((step, step.exchange().barrier?)))
        {
            let exchange = step.exchange();
            let mut task = self.read(exchange, group, Stand::Last)?;
            task.direct = true;
            self.copy_in_place(&mut task, exchange)?;
            back.behind = Some(Arc::clone(&task.barrier));
            self.push_as(stages, &step.to_string(), Phase::Return, Task::Read(task))?;
            back.parts = self.parts(members, exchange, factor)?;
        }
        self.push(stages, "copy out", Task::CopyOut(back))
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

    /// The copy of a part of a buffer.
    fn copy(
        &mut self,
        members: &[usize],
        buffer: Base,
        part: Range,
        factor: f32,
    ) -> Result<CopyPart> {
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
        Ok(CopyPart {
            buffer,
            tensors: self.enter(entries),
            tensor_type: data_type(self.dtype),
            factor,
            segments: Arc::new(segments),
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

    /// Bytes of the receive buffer: all other operands of the largest combine, as far as they are not read where they are.
    pub(super) fn scratch_bytes(&self, plan: &Plan) -> Result<usize> {
        let combines = plan.steps().filter_map(Step::combine);
        let elements = combines
            .map(|combine| {
                let vectors = match combine.exchange.barrier {
                    Some(_) if !self.options.checksum => {
                        u32::from(combine.operands as usize > MAX_RADIX)
                    }
                    _ => combine.operands - 1,
                };
                u64::from(vectors) * combine.slice.len()
            })
            .max()
            .unwrap_or(0);
        bytes(elements, self.size)
    }

    /// Where the tensors begin in a part of the buffer.
    fn places(&mut self, part: Range) -> Result<Places> {
        self.places_in(part, &[Base::Fused])
    }

    /// Where they begin in a result on `slice`, here and with those that `written` names.
    fn places_of_sum(&mut self, slice: Range, written: Option<&Exchange>) -> Result<Places> {
        let mut buffers = self.written_to(written);
        buffers.push(Base::Fused);
        self.places_in(slice, &buffers)
    }

    /// The buffers that a result is written to beside the own one.
    fn written_to(&self, written: Option<&Exchange>) -> Vec<Base> {
        let sends = written.into_iter().flat_map(|written| written.sends());
        sends
            .map(|send| Base::Peer(self.rank_of(send.peer)))
            .collect()
    }

    fn places_in(&mut self, part: Range, buffers: &[Base]) -> Result<Places> {
        let segments = self.layout.segments(part);
        let all = buffers.iter().flat_map(|&base| {
            let size = self.size;
            segments.iter().map(move |segment| {
                Ok(Entry::Place(Place {
                    base,
                    start: bytes(part.start() + segment.offset, size)?,
                    len: bytes(segment.len, size)?,
                }))
            })
        });
        let entries = all.collect::<Result<Vec<Entry>>>()?;
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
            operation: format!("bucket {}{}, {name}", self.which.number, self.which.of),
            peers: peers
                .into_iter()
                .map(|rank| self.world.rank_in_root(rank))
                .collect(),
            bytes,
            part: Some(ReductionPart {
                bucket: self.which.number,
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
        let start = self.which.first_entry + self.entries.len();
        self.entries.extend(entries);
        start..self.which.first_entry + self.entries.len()
    }

    /// An exchange and a sum with constant weights.
    fn constant(
        &mut self,
        stages: &mut Vec<Stage>,
        name: &str,
        combine: &plan::Combine,
        weights: &[f32],
        (form, stand): (Form, Stand),
    ) -> Result<()> {
        let (exchange, behind) = self.exchange(combine, form, stand)?;
        self.push(stages, name, exchange)?;
        let mut sums = Vec::new();
        for piece in self.pieces(combine)? {
            sums.extend(self.constant_sums(combine, &piece, weights)?);
        }
        let combine = CombineTask {
            solve: None,
            merge: None,
            sums,
            places: self.places(combine.slice)?,
            behind,
        };
        self.push(stages, &format!("{name}: sum"), Task::Combine(combine))
    }

    /// The launches of a constant sum of any number of vectors on a piece of the slice, at most `MAX_RADIX` a launch.
    ///
    /// Partial sums go over the first vector that was received, and only the last launch writes the own slice: the own
    /// vector is somewhere among the operands and must last until it is read. Each launch rounds to the
    /// element type once.
    fn constant_sums(
        &mut self,
        combine: &plan::Combine,
        piece: &Piece,
        weights: &[f32],
    ) -> Result<Vec<Sum>> {
        let operands = &piece.vectors;
        let own = self.part(combine.slice)?;
        let partial = Place {
            base: Base::Scratch,
            start: 0,
            len: own.len,
        };
        let segments = Arc::new(self.tables.segments(&piece.segments)?);
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
            let out = match (rest.is_empty(), inputs[0].base) {
                (true, _) => own,
                (false, Base::Peer(_)) => partial,
                (false, Base::Fused | Base::Scratch) => inputs[0],
            };
            sums.push(Sum {
                segments: Arc::clone(&segments),
                vectors: self.enter(inputs.into_iter().map(Entry::Place)),
                weights: uniform_weights(self.tables, &factors, self.layout.tensors().len())?,
                out,
                copies: 0..0,
            });
        }
        Ok(sums)
    }

    /// Whether what the plan calls written is. Scattered results stay where they are. And it takes AdaSum's records: a rank whose
    /// barrier failed goes on, and has no weights before all ranks have come; constant ones it would have.
    fn writes_results(&self) -> bool {
        !self.options.scattered && self.options.reduction == Reduction::Adasum
    }

    /// A round, whose result is also written to other ranks' buffers as `written` says.
    fn round(
        &mut self,
        stages: &mut Vec<Stage>,
        (index, round): (usize, &plan::Round),
        form: Form,
        written: Option<&Exchange>,
    ) -> Result<()> {
        let name = format!("round {index}");
        let stand = match index {
            0 => Stand::First,
            _ => Stand::Between,
        };
        let combine = &round.combine;
        let total = round.members.iter().map(|subtree| subtree.count).sum();
        let weights = round.members.iter();
        let weights = weights.map(|subtree| self.options.reduction.weight(subtree.count, total));
        if let Some(weights) = weights.collect::<Option<Vec<f32>>>() {
            if combine.operands > 1 {
                return self.constant(stages, &name, combine, &weights, (form, stand));
            }
            // Others merge here; the stages stay in step.
            let (exchange, _) = self.exchange(combine, form, stand)?;
            self.push(stages, &name, exchange)?;
            return self.push(stages, &name, Task::Nothing);
        }
        // Nothing on ranks that merge nothing.
        let (exchange, behind) = self.exchange(combine, form, stand)?;
        self.push(stages, &name, exchange)?;
        let tasks = self.adasum((index, round), behind, written)?;
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
    fn adasum(
        &mut self,
        (index, round): (usize, &plan::Round),
        behind: Option<Arc<Rendezvous>>,
        written: Option<&Exchange>,
    ) -> Result<[Task; 5]> {
        let combine = &round.combine;
        let scalars = &round.scalars;
        if combine.operands < 2 || scalars.stride == 0 {
            // Nothing to merge, or no tensor has an element.
            return Ok([const { Task::Nothing }; 5]);
        }
        let segments = Arc::new(self.tables.segments(&self.layout.segments(combine.slice))?);
        let pieces = self.pieces(combine)?;
        let radix = combine.operands as usize;
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
        let mut products = Vec::with_capacity(pieces.len());
        let mut sums = Vec::with_capacity(pieces.len());
        let out = self.part(combine.slice)?;
        let copies = self.copies_of(combine.slice, written)?;
        let record = record_words(radix) * WORD;
        for piece in pieces {
            let vectors = self.enter(piece.vectors.iter().copied().map(Entry::Place));
            let table = Arc::new(self.tables.segments(&piece.segments)?);
            let start = bytes(piece.first_unit, record as u64)?;
            let end = start + bytes(table.units, record as u64)?;
            sums.push(Sum {
                vectors: vectors.clone(),
                segments: Arc::clone(&table),
                weights: exchange.weights.clone(),
                out,
                copies: copies.clone(),
            });
            products.push(Products {
                vectors,
                segments: table,
                partials: exchange.partials.slice(start..end)?,
            });
        }
        let behind = behind.map(|barrier| {
            let first = exchange.records.address();
            let records = (0..segments.count).map(|index| first + index * record as u64);
            let places = Places {
                entries: self.enter(records.map(Entry::Table)),
                dtype: DataType::F32,
            };
            (barrier, places)
        });
        let sum = CombineTask {
            solve: exchange.solve,
            merge: Some(Arc::clone(&merge)),
            sums,
            places: self.places_of_sum(combine.slice, written)?,
            behind: None,
        };
        // Also where this rank has no part of a tensor: it fills what comes from others.
        let products = Task::Gram(GramTask {
            products,
            partials: exchange.partials,
            segments,
            records: exchange.records,
            written: exchange.written,
            behind,
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

    /// Where a result on `slice` stands in the buffers of those that `written` names.
    fn copies_of(&mut self, slice: Range, written: Option<&Exchange>) -> Result<ops::Range<usize>> {
        let own = self.part(slice)?;
        let buffers = self.written_to(written).into_iter();
        let places = buffers.map(|base| Place { base, ..own });
        Ok(self.enter(places.map(Entry::Place)))
    }

    /// The part of the fused buffer.
    fn part(&self, range: Range) -> Result<Place> {
        Ok(Place {
            base: Base::Fused,
            start: bytes(range.start(), self.size)?,
            len: bytes(range.len(), self.size)?,
        })
    }
}
