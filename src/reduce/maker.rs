//! Turns a plan into stages: device tables, places of vectors, communicators.

use std::collections::HashMap;
use std::ops;
use std::sync::Arc;

use super::bucket::{Entry, bytes, data_type};
use super::memory::{Base, Half, Place};
use super::stage::{Combine, Copy, Gather, Products, Records, Solve, Stage, Sum, Task};
use super::tables::{FoldList, Segments, in_order, uniform_weights};
use super::{Options, Reduction, World};
use crate::ascend::{self, Buffer, DataType, Device, Event};
use crate::error::Result;
use crate::kernel::layout::{COEFFICIENT_WORDS, MAX_RADIX, record_words};
use crate::plan::{self, DType, Exchange, Layout, Plan, Planner, Range, Turn, UNIT};

const _: () = assert!(UNIT == crate::kernel::layout::UNIT);

/// Bytes of an fp32 word of records and coefficients.
const WORD: usize = 4;

const _: () = assert!((COEFFICIENT_WORDS * WORD) as u64 == plan::COEFFICIENT_BYTES);

/// How the scalars of one round come together.
struct Exchanged {
    /// Where this rank's records are to be written.
    records: ascend::Span,
    /// Records to owners, and the owner's weights.
    owners: [Task; 2],
    gather: Gather,
    /// Computes the weights of all tensors.
    solve: Option<Solve>,
    /// The weights of all tensors.
    weights: ascend::Span,
}

/// What the stages of one bucket are made from.
pub(super) struct Maker<'a> {
    world: &'a World,
    planner: &'a Planner,
    layout: &'a Layout,
    /// Type of the caller's tensors.
    dtype: DType,
    options: &'a Options,
    /// Bytes of an element of the fused buffer.
    size: u64,
    entries: Vec<Entry>,
    first_entry: usize,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        world: &'a World,
        planner: &'a Planner,
        dtype: DType,
        options: &'a Options,
        first_entry: usize,
    ) -> Self {
        let layout = planner.layout();
        Maker {
            world,
            planner,
            layout,
            dtype,
            options,
            size: layout.dtype().size(),
            entries: Vec::new(),
            first_entry,
        }
    }

    /// What the stages read from the book.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// All stages; their number is the same on all ranks.
    pub(super) fn stages(&mut self, plan: &Plan, members: &[usize]) -> Result<Vec<Stage>> {
        let tensors = self.enter(members.iter().map(|&index| Entry::Tensor(index)));
        let segments = Segments::new(self.device(), self.layout, self.layout.whole())?;
        let copy = Copy {
            tensors,
            tensor_type: data_type(self.dtype),
            factor: self.options.scale,
            segments: Arc::new(segments),
        };
        let mut stages = Vec::new();
        self.push(&mut stages, "copy in", Task::CopyIn(copy.clone()))?;
        if let Some(mean) = &plan.mean {
            let weights = vec![1; mean.operands as usize];
            self.mean(&mut stages, "in-server mean", mean, &weights)?;
        }
        if let Some(exchange) = &plan.share {
            let task = self.exchange_in_place(exchange)?;
            self.push(&mut stages, "share in the server", task)?;
        }
        for (index, round) in plan.rounds.iter().enumerate() {
            self.round(&mut stages, index, round)?;
        }
        for (index, exchange) in plan.returns.iter().enumerate() {
            let round = plan.returns.len() - 1 - index;
            let task = self.exchange_in_place(exchange)?;
            self.push(&mut stages, &format!("return of round {round}"), task)?;
        }
        if let Some(exchange) = &plan.gather {
            let task = self.exchange_in_place(exchange)?;
            self.push(&mut stages, "gather in the server", task)?;
        }
        let back = Copy {
            factor: 1.0,
            ..copy
        };
        self.push(&mut stages, "copy out", Task::CopyOut(back))?;
        Ok(stages)
    }

    /// Bytes of the receive buffer: all other operands of the largest combine.
    pub(super) fn scratch_bytes(&self, plan: &Plan) -> Result<usize> {
        let combines = plan
            .mean
            .iter()
            .chain(plan.rounds.iter().map(|round| &round.combine));
        let elements = combines
            .map(|combine| u64::from(combine.operands - 1) * combine.slice.len())
            .max()
            .unwrap_or(0);
        bytes(elements, self.size)
    }

    fn push(&self, stages: &mut Vec<Stage>, name: &str, task: Task) -> Result<()> {
        stages.push(Stage {
            name: name.to_owned(),
            task,
            done: Event::new(self.device())?,
        });
        Ok(())
    }

    /// Reserves consecutive entries of the book.
    fn enter(&mut self, entries: impl IntoIterator<Item = Entry>) -> ops::Range<usize> {
        let start = self.first_entry + self.entries.len();
        self.entries.extend(entries);
        start..self.first_entry + self.entries.len()
    }

    /// An exchange and the mean of vectors that are themselves means of so many.
    fn mean(
        &mut self,
        stages: &mut Vec<Stage>,
        name: &str,
        combine: &plan::Combine,
        counts: &[u32],
    ) -> Result<()> {
        let total: u32 = counts.iter().sum();
        // Numbers of ranks are exact in f32, so each weight is rounded once.
        let weights: Vec<f32> = counts
            .iter()
            .map(|&count| count as f32 / total as f32)
            .collect();
        let exchange = self.exchange(combine)?;
        self.push(stages, name, exchange)?;
        let combine = Combine {
            solve: None,
            adasum: false,
            segments: Arc::new(Segments::new(self.device(), self.layout, combine.slice)?),
            sums: self.mean_sums(combine, &weights)?,
        };
        self.push(stages, &format!("{name}: sum"), Task::Combine(combine))
    }

    /// The launches of a mean of any number of vectors, at most `MAX_RADIX` a launch.
    ///
    /// Partial sums go over the first vector, and only the last launch writes the own slice: the own
    /// vector is somewhere among the operands and must last until it is read. Each launch rounds to the
    /// element type once.
    fn mean_sums(&mut self, combine: &plan::Combine, weights: &[f32]) -> Result<Vec<Sum>> {
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
                weights: uniform_weights(self.device(), &factors, self.layout.tensors().len())?,
                out,
            });
        }
        Ok(sums)
    }

    fn round(&mut self, stages: &mut Vec<Stage>, index: usize, round: &plan::Round) -> Result<()> {
        let name = format!("round {index}");
        let combine = &round.combine;
        if self.options.reduction != Reduction::Adasum {
            if combine.operands > 1 {
                let servers: Vec<u32> = round.members.iter().map(|member| member.count).collect();
                return self.mean(stages, &name, combine, &servers);
            }
            // Others merge here; the stages stay in step.
            self.push(stages, &name, Task::Nothing)?;
            return self.push(stages, &name, Task::Nothing);
        }
        let exchange = match combine.operands {
            0 | 1 => Task::Nothing,
            _ => self.exchange(combine)?,
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
        let segments = Arc::new(Segments::new(self.device(), self.layout, combine.slice)?);
        let operands = self.operands(combine)?;
        let record = record_words(operands.len()) * WORD;
        let vectors = self.enter(operands.into_iter().map(Entry::Place));
        let exchange = match &scalars.owned {
            None => self.gathered(index, scalars, combine.operands)?,
            Some(owned) => self.owned(index, scalars, owned, combine.operands)?,
        };
        let sum = Combine {
            solve: exchange.solve,
            adasum: true,
            sums: vec![Sum {
                vectors: vectors.clone(),
                weights: exchange.weights,
                out: self.part(combine.slice)?,
            }],
            segments: Arc::clone(&segments),
        };
        let products = Products {
            vectors,
            partials: self.table(bytes(segments.units, record as u64)?)?,
            segments,
            records: exchange.records,
        };
        let products = match products.segments.count {
            0 => Task::Nothing,
            _ => Task::Gram(products),
        };
        let [records, weights] = exchange.owners;
        Ok([
            products,
            records,
            weights,
            Task::Gather(exchange.gather),
            Task::Combine(sum),
        ])
    }

    /// Everyone gathers all records and computes all weights.
    fn gathered(&self, index: usize, scalars: &plan::Scalars, radix: u32) -> Result<Exchanged> {
        let radix = radix as usize;
        let tensors = self.layout.tensors().len();
        let slices = self.planner.slices(scalars.group, index + 1);
        let stride = bytes(scalars.stride, (record_words(radix) * WORD) as u64)?;
        let records = self.table(stride)?;
        let gathered = self.table(stride * slices.len())?;
        let weights = self.table(tensors * COEFFICIENT_WORDS * WORD)?;
        Ok(Exchanged {
            owners: [Task::Nothing, Task::Nothing],
            gather: Gather {
                comm: self.world.group(scalars.group)?,
                own: records.clone(),
                gathered: gathered.clone(),
            },
            solve: Some(Solve {
                records: gathered,
                list: FoldList::gathered(self.device(), self.layout, &slices, scalars.stride)?,
                radix,
                coefficients: weights.clone(),
                tensors: tensors as u64,
            }),
            records,
            weights,
        })
    }

    /// Owners get the records of their tensors and compute their weights; everyone gathers the weights.
    fn owned(
        &self,
        index: usize,
        scalars: &plan::Scalars,
        owned: &plan::Owned,
        radix: u32,
    ) -> Result<Exchanged> {
        let radix = radix as usize;
        let record = record_words(radix) * WORD;
        let entry = COEFFICIENT_WORDS * WORD;
        let group = scalars.group;
        let comm = self.world.group(group)?;
        let own = scalars.tensors.intersection(owned.tensors);
        // Records of this rank's slice, and behind them those of others for its own tensors.
        let mut place = scalars.stride;
        let mut parts =
            HashMap::from([(self.world.rank(), (own, self.first_record(scalars, own)))]);
        for receive in &owned.exchange.receives {
            parts.insert(receive.peer, (receive.range, place));
            place += u64::from(receive.operand);
        }
        let records = self.table(bytes(place, record as u64)?)?;
        let turn = |send: bool, transfer: &plan::Transfer| -> Result<ascend::Transfer> {
            let first = match send {
                true => self.first_record(scalars, transfer.range),
                false => parts.get(&transfer.peer).map_or(0, |part| part.1),
            };
            let start = bytes(first, record as u64)?;
            let span = records.slice(start..start + transfer.operand as usize * record)?;
            let peer = group.index_of(transfer.peer).unwrap_or(u32::MAX);
            let dtype = DataType::F32;
            Ok(match send {
                true => ascend::Transfer::Send { peer, span, dtype },
                false => ascend::Transfer::Recv { peer, span, dtype },
            })
        };
        let transfers: Result<Vec<ascend::Transfer>> = owned
            .exchange
            .pairwise(self.world.rank())
            .iter()
            .map(|step| match step {
                Turn::Send(transfer) => turn(true, transfer),
                Turn::Receive(transfer) => turn(false, transfer),
            })
            .collect();
        let slices = self.planner.slices(group, index + 1);
        let ranks: Vec<u32> = group.ranks().collect();
        let in_order: Vec<(Range, u64)> = in_order(&slices)
            .into_iter()
            .filter_map(|member| parts.get(&ranks[member]).copied())
            .collect();
        let mine = self.table(bytes(owned.run, entry as u64)?)?;
        let weights = self.table(mine.len() * ranks.len())?;
        let solve = Solve {
            records: records.clone(),
            list: FoldList::owned(self.device(), self.layout, owned.tensors, &in_order)?,
            radix,
            coefficients: mine.clone(),
            tensors: owned.tensors.len(),
        };
        let exchange = Records {
            comm: Arc::clone(&comm),
            transfers: transfers?,
            order: self.planner.choices().order,
        };
        Ok(Exchanged {
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
            gather: Gather {
                comm,
                own: mine,
                gathered: weights.clone(),
            },
            solve: None,
            records,
            weights,
        })
    }

    /// Number of the first record of these tensors among those of this rank's slice.
    fn first_record(&self, scalars: &plan::Scalars, tensors: Range) -> u64 {
        let start = scalars.tensors.start();
        self.layout.records_of(Range::new(start, tensors.start()))
    }

    /// Zeroed device memory of so many bytes.
    fn table(&self, bytes: usize) -> Result<ascend::Span> {
        Buffer::zeroed(self.device(), bytes.max(64))?
            .span()
            .slice(0..bytes)
    }

    fn device(&self) -> &'a Device {
        self.world.device()
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

    fn exchange(&self, combine: &plan::Combine) -> Result<Task> {
        self.exchange_into(&combine.exchange, |receive| {
            let operand = self.operand(combine, receive.operand)?;
            let start = bytes(receive.range.start() - combine.slice.start(), self.size)?;
            Ok(operand.part(start, bytes(receive.range.len(), self.size)?))
        })
    }

    fn exchange_in_place(&self, exchange: &Exchange) -> Result<Task> {
        self.exchange_into(exchange, |receive| self.part(receive.range))
    }

    fn exchange_into(
        &self,
        exchange: &Exchange,
        place: impl Fn(&plan::Transfer) -> Result<Place>,
    ) -> Result<Task> {
        if exchange.is_empty() {
            return Ok(Task::Nothing);
        }
        let turns = exchange.pairwise(self.world.rank());
        let halves: Result<Vec<Half>> = turns
            .iter()
            .map(|turn| {
                Ok(match turn {
                    Turn::Send(send) => Half {
                        peer: send.peer,
                        send: true,
                        place: self.part(send.range)?,
                    },
                    Turn::Receive(receive) => Half {
                        peer: receive.peer,
                        send: false,
                        place: place(receive)?,
                    },
                })
            })
            .collect();
        Ok(Task::Exchange(halves?, self.planner.choices().order))
    }
}
