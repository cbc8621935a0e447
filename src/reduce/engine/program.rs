//! A list of tensors that is reduced together, with all that takes, made ready once.

use std::sync::Arc;
use std::time::Duration;

use crate::ascend::{Span, Stream};
use crate::error::{Context, Result};
use crate::plan::{Choices, DType, Form, Layout, Planner, TensorSpec, buckets};
use crate::reduce::engine::address_table::AddressTable;
use crate::reduce::engine::allocator::{DeviceMemory, TableAllocator};
use crate::reduce::engine::bucket::{Bucket, Pass, data_type};
use crate::reduce::engine::build::{Which, bucket};
use crate::reduce::engine::clock::Clock;
use crate::reduce::engine::issue::BucketProgress;
use crate::reduce::engine::message_log::MessageLog;
use crate::reduce::engine::place::Memory;
use crate::reduce::engine::rendezvous::CommonBarriers;
use crate::reduce::engine::schedule::Schedule;
use crate::reduce::engine::slots::Slots;
use crate::reduce::engine::stage::StageContext;
use crate::reduce::engine::tensor_copies::{Store, TensorCopies};
use crate::reduce::options::Options;
use crate::reduce::world::World;
use crate::reduce::world::streams::StreamRole;
use crate::reduce::world::trace::{COLLECTION, REDUCTION};
use crate::reduce::world::watch::WatchedStage;

/// All tensors of a reducer, or some of them.
pub(in crate::reduce) struct Program {
    /// Their indices in the reducer's list, in the order in which callers give them.
    pub(in crate::reduce) tensors: Vec<usize>,
    pub(in crate::reduce) buckets: Vec<Bucket>,
    /// The device memory of all tables.
    pub(in crate::reduce) tables: DeviceMemory,
    addresses: AddressTable,
    /// Where the tensors and buffers lie that these addresses are of.
    origins: Vec<u64>,
    pub(in crate::reduce) reduction: Schedule,
    collection: Schedule,
    barrier: Option<Arc<WatchedStage>>,
    /// The gradients of the last reduction, where it was observed.
    saved: Option<TensorCopies>,
}

/// What is enqueued.
pub(in crate::reduce) struct Run<'a> {
    pub(in crate::reduce) pass: Pass,
    /// Without them, on whatever the fused buffers hold.
    pub(in crate::reduce) tensors: Option<&'a [Span]>,
    pub(in crate::reduce) timeout: Duration,
    /// Times the stages, which follow each other then.
    pub(in crate::reduce) clock: Option<&'a Clock>,
    /// Notes what messages left, and waits for each.
    pub(in crate::reduce) messages: Option<&'a MessageLog>,
}

impl Run<'_> {
    /// What others call it.
    fn name(&self) -> &'static str {
        match (self.tensors, self.pass) {
            (None, _) => "warm-up",
            (Some(_), Pass::Reduction) => REDUCTION,
            (Some(_), Pass::Collection) => COLLECTION,
        }
    }
}

impl Program {
    /// Prepares the tensors at `tensors` of the reducer's list `specs`; `of` says in messages which these are.
    pub(in crate::reduce) fn new(
        world: &World,
        specs: &[TensorSpec],
        tensors: Vec<usize>,
        options: &Options,
        choices: Choices,
        of: &str,
    ) -> Result<Self> {
        let chosen: Vec<&TensorSpec> = tensors.iter().map(|&index| &specs[index]).collect();
        let tables = TableAllocator::new(world.device());
        // A reduction in which each bucket has a buffer of its own, and ranks read all of them, needs two barriers for all buckets:
        // before anything is read, and behind all that is written.
        let in_common = options.gradient_buffers
            && !options.scattered
            && choices.forms.across == Form::Shared
            && options.shape(world).locals == 1;
        let common = CommonBarriers::default();
        let common = in_common.then_some(&common);
        let buckets = make_buckets(world, &tables, &chosen, options, choices, (of, common))?;
        let entries = buckets.iter().map(|bucket| bucket.entries.len()).sum();
        let barrier = match options.barrier {
            true => Some(world.watched("barrier", 0)?),
            false => None,
        };
        let schedule = |pass, in_common| {
            let depth = options.pipeline_depth;
            Schedule::new(&buckets, pass, depth, barrier.as_ref(), in_common)
        };
        Ok(Program {
            tensors,
            reduction: schedule(Pass::Reduction, in_common),
            collection: schedule(Pass::Collection, false),
            addresses: AddressTable::new(&tables, entries)?,
            origins: Vec::new(),
            barrier,
            tables: tables.taken(),
            saved: None,
            buckets,
        })
    }

    /// The stages of a reduction, in the order in which they are issued.
    pub(in crate::reduce) fn stages(&self) -> &[Arc<WatchedStage>] {
        &self.reduction.watched
    }

    /// Enqueues a copy of `gradients`, whose tensors are `specs` of the reducer, and keeps it.
    pub(in crate::reduce) fn save(
        &mut self,
        world: &World,
        specs: &[TensorSpec],
        gradients: &[Span],
        stream: &Stream,
    ) -> Result<()> {
        let saved = match &mut self.saved {
            Some(saved) => saved,
            none => {
                let tensors = self.tensors.iter().map(|&tensor| specs[tensor].clone());
                let tensors: Vec<TensorSpec> = tensors.collect();
                none.insert(TensorCopies::new(world.device(), &tensors, Store::Native)?)
            }
        };
        world
            .enqueue(stream, |s| saved.pack(world.kernels(), s, gradients, 1.0))
            .context(|| format!("rank {}: saving gradients", world.own_in_root()))
    }

    /// The gradients that were saved last.
    pub(in crate::reduce) fn saved(&self) -> Option<&TensorCopies> {
        self.saved.as_ref()
    }

    /// Frees what was saved; work that is queued keeps the memory that it uses.
    pub(in crate::reduce) fn forget(&mut self) {
        self.saved = None;
    }

    /// Enqueues all stages of all buckets.
    pub(in crate::reduce) fn enqueue(
        &mut self,
        world: &World,
        slots: &Slots,
        run: &Run<'_>,
        stream: &Stream,
    ) -> Result<()> {
        let gradients = run.tensors;
        let mut flat = Vec::with_capacity(self.buckets.len());
        let mut memories = Vec::with_capacity(self.buckets.len());
        let tensors = gradients.unwrap_or_default();
        let mut origins: Vec<u64> = tensors.iter().map(Span::address).collect();
        for (index, bucket) in self.buckets.iter().enumerate() {
            let mut memory = slots.memory(index, bucket)?;
            let in_place = match gradients {
                Some(gradients) => bucket.in_place(gradients, &mut memory)?,
                None => false,
            };
            origins.extend(memory.addresses());
            flat.push(in_place);
            memories.push(memory);
        }
        let moved = origins != self.origins;
        let addresses = moved.then(|| self.addresses_in(gradients, &memories));
        let addresses = addresses.transpose()?;
        let schedule = match run.pass {
            Pass::Reduction => &self.reduction,
            Pass::Collection => &self.collection,
        };
        // A bucket's own stages follow each other: without others under way there is nothing to overlap.
        let overlap = slots.under_way.min(self.buckets.len()) > 1 && run.clock.is_none();
        world.enqueue_on(stream, overlap, |streams| {
            world.begin(run.name(), &schedule.watched, run.timeout, streams.payload)?;
            if let Some(addresses) = addresses {
                if let Some(changed) = self.addresses.update(addresses, streams.kernels)? {
                    streams.payload.wait(changed)?;
                }
                self.origins = origins;
            }
            let mut progress: Vec<BucketProgress<'_>> = (0..)
                .zip(self.buckets.iter().zip(&memories))
                .map(|(index, (bucket, memory))| {
                    let context = StageContext {
                        world,
                        addresses: &self.addresses,
                        receipt: None,
                        memory,
                        dtype: data_type(bucket.layout.dtype()),
                        copies: gradients.is_some() && !flat[index],
                    };
                    let before = index.checked_sub(slots.count);
                    let before = before.map(|before| &self.buckets[before]);
                    BucketProgress::new(bucket, before, run.pass, context, streams)
                })
                .collect();
            run.clock
                .map_or(Ok(()), |clock| clock.start(streams.payload))?;
            if let Some(messages) = run.messages {
                messages.begin(&schedule.watched);
            }
            for (position, &(bucket, stage)) in schedule.stages.iter().enumerate() {
                if schedule.pauses.contains(&position) {
                    progress
                        .iter_mut()
                        .try_for_each(|bucket| bucket.enter(StreamRole::Payload, streams))?;
                }
                progress[bucket].issue(stage, position, streams)?;
                if let Some(messages) = run.messages {
                    let stage = &self.buckets[bucket].stages(run.pass)[stage];
                    messages.note(world, position, stage, &memories[bucket])?;
                }
                run.clock
                    .map_or(Ok(()), |clock| clock.end(position, streams.payload))?;
            }
            if let Some(barrier) = &self.barrier {
                let (role, stream) = (StreamRole::Payload, streams.payload);
                let work = || world.comm().barrier(stream);
                world.issue(barrier, schedule.stages.len(), role, stream, work)?;
            }
            world.end(streams.payload)
        })
    }

    /// The addresses of all entries.
    fn addresses_in(&self, gradients: Option<&[Span]>, memories: &[Memory]) -> Result<Vec<u64>> {
        let mut addresses = Vec::with_capacity(self.addresses.len());
        for (bucket, memory) in self.buckets.iter().zip(memories) {
            for entry in &bucket.entries {
                addresses.push(entry.address(gradients, memory)?);
            }
        }
        Ok(addresses)
    }
}

/// Types of tensors, and on the wire.
const TYPES: [(DType, DType); 5] = [
    (DType::F32, DType::F32),
    (DType::F16, DType::F16),
    (DType::F16, DType::F32),
    (DType::BF16, DType::BF16),
    (DType::BF16, DType::F32),
];

/// Tensors of one type, in themselves and on the wire, share buckets, in the order of the list.
fn make_buckets(
    world: &World,
    tables: &TableAllocator<'_>,
    tensors: &[&TensorSpec],
    options: &Options,
    choices: Choices,
    (of, common): (&str, Option<&CommonBarriers>),
) -> Result<Vec<Bucket>> {
    let mut lists = Vec::new();
    for (dtype, wire) in TYPES {
        let members: Vec<usize> = (0..tensors.len())
            .filter(|&index| {
                (tensors[index].dtype, options.wire.of(tensors[index])) == (dtype, wire)
            })
            .collect();
        let counts = members.iter().map(|&index| tensors[index].count);
        let counts: Vec<u64> = counts.collect();
        for part in buckets(wire, &counts, options.bucket_bytes) {
            lists.push((dtype, wire, members[part].to_vec()));
        }
    }
    let shape = options.shape(world);
    let last = lists.len().saturating_sub(1);
    let mut made: Vec<Bucket> = Vec::with_capacity(lists.len());
    let mut entries = 0;
    for (number, (dtype, wire, members)) in lists.into_iter().enumerate() {
        let counts: Vec<u64> = members.iter().map(|&index| tensors[index].count).collect();
        let layout = Layout::new(wire, &counts)?;
        let planner = Planner::with(shape, layout, choices)?;
        let which = Which {
            number,
            of,
            first_entry: entries,
            is_kept: options.gradient_buffers && number < last,
            common,
        };
        let bucket = bucket(world, tables, &planner, dtype, members, which, options)?;
        entries += bucket.entries.len();
        made.push(bucket);
    }
    Ok(made)
}
