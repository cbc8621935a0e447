//! How much device memory a reducer takes, from its plans.

use std::ops::Add;

use crate::error::Result;
use crate::kernel::Receipt;
use crate::kernel::layout::{COEFFICIENT_WORDS, FLAG_WORDS, MAX_RADIX, record_words};
use crate::plan::{self, Exchange, Layout, Plan, Planner, Round, Step};
use crate::reduce::options::Options;

/// Device memory of a [`GradientReducer`](crate::reduce::GradientReducer) in bytes: all that it takes from its creation on.
/// Plans of subsets of its tensors have tables of their own, and share its buffers, which grow if a subset has a larger bucket.
///
/// With `depth` buckets under way, bucket i uses the buffers of slot i modulo `depth`:
///
/// - `fused`: for each slot the bytes of its largest bucket, gaps between tensors included;
/// - `received`: for each slot the most that a step receives before it combines: with m vectors on a slice, m - 1 slices;
/// - `tables`, of each bucket: 64 bytes for a receipt; for each tensor with elements 32 bytes (of scattered results four
///   tables, of the whole and of the own part); for each step that combines m vectors with constant weights 32 bytes a
///   segment and 160 a tensor for each of its ceil((m - 1) / 7) launches; for each round of AdaSum 32 t + R (u + s (1 + g)) +
///   176 T + 8 n, where this rank's slice has t segments and u units of 4096 elements, R is the size of a record, the g
///   ranks of the group bring at most s records each, T is the number of tensors and n that of all records; the records of
///   units, of this rank and of the group, and the weights each begin at a multiple of 64 bytes. A round whose tensors have
///   owners has tables for its own tensors in the place of g s R + 176 T + 8 n. Without AdaSum 32 bytes a segment of the
///   results on this rank and 32 a tensor for flags. And 8 bytes for each address that kernels look up: of each tensor and
///   vector, and of each segment that a step leaves or an exchange brings.
///
/// Each of `allocations` is at least 64 bytes; a library may round each up. Communicators have buffers of their own: two of
/// `HCCL_BUFFSIZE` MB for that of all ranks and for that of a server, if there are several of several ranks, two of 1 MB for
/// each group that exchanges scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceMemory {
    /// Fused buffers.
    pub fused: u64,
    /// Buffers for what other ranks send.
    pub received: u64,
    /// Tables and scalars.
    pub tables: u64,
    /// Number of allocations.
    pub allocations: u64,
}

impl DeviceMemory {
    /// All of it.
    pub fn bytes(self) -> u64 {
        self.fused + self.received + self.tables
    }

    fn table(&mut self, bytes: u64) {
        self.tables += bytes.max(SMALLEST);
        self.allocations += 1;
    }
}

impl Add for DeviceMemory {
    type Output = DeviceMemory;

    fn add(self, other: DeviceMemory) -> DeviceMemory {
        DeviceMemory {
            fused: self.fused + other.fused,
            received: self.received + other.received,
            tables: self.tables + other.tables,
            allocations: self.allocations + other.allocations,
        }
    }
}

const SMALLEST: u64 = 64;
/// Where parts of a table may begin.
const LINE: u64 = 64;
/// Bytes of a segment, of the weights of a tensor, of its reference to records, of a number of a record.
const SEGMENT: u64 = 32;
const WEIGHTS: u64 = 4 * COEFFICIENT_WORDS as u64;
const FLAGS: u64 = 4 * FLAG_WORDS as u64;
const REFERENCE: u64 = 16;
const NUMBER: u64 = 8;
/// Bytes of an address.
const ADDRESS: u64 = 8;

/// The memory of a list of buckets on this rank.
pub(super) struct Budget<'a> {
    pub(in crate::reduce) options: &'a Options,
    /// How many parts of a tensor the ranks of a server hold.
    pub(in crate::reduce) shards: u64,
    /// Whether servers are merged by AdaSum; else results are looked through.
    pub(in crate::reduce) merges: bool,
}

impl Budget<'_> {
    /// The tables of buckets with these planners, on `rank` of their plans.
    pub(in crate::reduce) fn of(&self, planners: &[Planner], rank: u32) -> Result<DeviceMemory> {
        let mut memory = DeviceMemory::default();
        let mut addresses = 0;
        for planner in planners {
            addresses += self.bucket(planner, &planner.plan(rank)?, &mut memory);
        }
        memory.tables += ADDRESS * addresses;
        memory.allocations += 1;
        Ok(memory)
    }

    /// The tables of a bucket; how many addresses they need.
    fn bucket(&self, planner: &Planner, plan: &Plan, memory: &mut DeviceMemory) -> u64 {
        let layout = planner.layout();
        let owned = crate::reduce::engine::bucket::owned(plan, layout);
        let copies = if self.options.scattered {
            vec![layout.whole(), owned, owned, layout.whole()]
        } else {
            vec![layout.whole()]
        };
        memory.table(Receipt::BYTES as u64);
        let mut addresses = 0;
        if !self.merges && layout.records_in(owned) > 0 {
            memory.table(SEGMENT * layout.records_in(owned));
            memory.table(FLAGS * plan.tensors);
            addresses += layout.records_in(owned);
        }
        for &part in &copies {
            memory.table(SEGMENT * layout.records_in(part));
            addresses += plan.tensors + layout.records_in(part);
        }
        if !self.options.scattered {
            // What the copy back leaves; the rest it shares with the copy in.
            addresses += layout.records_in(layout.whole());
        }
        let combined_in_server = self.options.weight_in_server(1).is_some();
        for step in plan.steps() {
            if matches!(step, Step::Mean(_) | Step::Share(_)) && !combined_in_server {
                continue;
            }
            addresses += awaited(layout, step.exchange());
            if let Step::Mean(mean) = step {
                addresses += constant(planner, mean, memory);
            }
            let Step::Round(index, round) = step else {
                continue;
            };
            let operands = round.combine.operands;
            if self.options.reduction.weight(1, 1).is_some() {
                if operands > 1 {
                    addresses += constant(planner, &round.combine, memory);
                }
            } else if operands > 1 && round.scalars.stride > 0 {
                self.round(planner, index, round, memory);
                addresses += u64::from(operands) + layout.records_in(round.combine.slice);
            }
        }
        addresses
    }

    fn round(&self, planner: &Planner, index: usize, round: &Round, memory: &mut DeviceMemory) {
        let layout = planner.layout();
        let scalars = &round.scalars;
        let record = 4 * record_words(round.combine.operands as usize) as u64;
        let units: u64 = layout
            .segments(round.combine.slice)
            .iter()
            .map(plan::Segment::units)
            .sum();
        memory.table(SEGMENT * layout.records_in(round.combine.slice));
        let mut tables = |bytes: [u64; 4]| {
            memory.table(bytes.map(|bytes| bytes.next_multiple_of(LINE)).iter().sum());
        };
        let tensors = layout.tensors().len() as u64;
        let group = u64::from(scalars.group.count);
        let Some(owned) = &scalars.owned else {
            let slices = planner.slices(scalars.group, index + 1);
            let records: u64 = slices.iter().map(|&slice| layout.records_in(slice)).sum();
            tables([
                units * record,
                scalars.stride * record,
                group * self.shards * scalars.stride * record,
                WEIGHTS * tensors,
            ]);
            memory.table(REFERENCE * tensors);
            memory.table(NUMBER * records * self.shards);
            return;
        };
        let received: u64 = owned
            .exchange
            .receives
            .iter()
            .map(|t| u64::from(t.operand))
            .sum();
        tables([
            units * record,
            (scalars.stride + received) * record,
            WEIGHTS * owned.run,
            WEIGHTS * owned.run * group,
        ]);
        memory.table(REFERENCE * owned.tensors.len());
        memory.table(NUMBER * (owned.kept + received));
    }
}

/// Addresses of what is marked before an exchange.
fn awaited(layout: &Layout, exchange: &Exchange) -> u64 {
    let parts = exchange.receives.iter();
    parts.map(|part| layout.records_in(part.range)).sum()
}

/// The tables of a step with constant weights; how many addresses it needs.
fn constant(planner: &Planner, combine: &plan::Combine, memory: &mut DeviceMemory) -> u64 {
    let layout = planner.layout();
    memory.table(SEGMENT * layout.records_in(combine.slice));
    // Each launch but the first takes the sum so far along.
    let more = u64::from(combine.operands - 1).div_ceil(MAX_RADIX as u64 - 1);
    let launches = more.max(1);
    for _ in 0..launches {
        memory.table(WEIGHTS * layout.tensors().len() as u64);
    }
    u64::from(combine.operands) + launches - 1 + layout.records_in(combine.slice)
}
