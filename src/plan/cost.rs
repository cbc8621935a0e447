//! What a plan costs one rank: bytes, messages, memory accesses; and, on a [`Machine`], time.
//!
//! The time of a step is that of its exchange, its kernels and its scalars one after the other; nothing is taken as
//! overlapped. It is a model for choosing between plans, not a measurement.

use super::{
    Choices, Combine, DType, Exchange, Form, Forms, Layout, Machine, Placement, Plan, Planner,
    RoundOrder, Scalars, Shape, Step, StepKind, coefficient_words, gram_operations, record_words,
    sum_operations,
};
use crate::error::{Error, Result};

/// What crosses one kind of link in a step, seen from one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes that this rank sends.
    pub sent: u64,
    /// Bytes that it receives.
    pub received: u64,
    /// Messages that it sends.
    pub messages: u64,
    /// Peers that it meets.
    pub peers: u64,
    /// The most bytes in one direction with one peer.
    pub largest: u64,
}

/// Traffic of a step, by the kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Links {
    /// With ranks of the same server.
    pub local: Traffic,
    /// With ranks of other servers.
    pub remote: Traffic,
}

impl Links {
    /// Bytes sent over both kinds.
    pub fn sent(&self) -> u64 {
        self.local.sent + self.remote.sent
    }

    /// Messages sent over both kinds.
    pub fn messages(&self) -> u64 {
        self.local.messages + self.remote.messages
    }
}

/// What a step costs one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepCost {
    /// Which step.
    pub step: StepKind,
    /// Traffic of the vectors. What kernels read of other ranks ([`Form::Shared`]) counts each time that they do, without
    /// messages.
    pub payload: Links,
    /// Traffic of the scalars. A gather counts as what reaches each member directly, between servers only once for each
    /// server, in as many messages as a doubling exchange takes.
    pub scalars: Links,
    /// Bytes that kernels read and write in device memory.
    pub accesses: u64,
    /// Time by the model, in seconds: that of the phases, one after the other.
    pub seconds: f64,
    /// The parts of that time.
    pub phases: StepSeconds,
}

/// Seconds of the parts of a step, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepSeconds {
    /// Vectors cross, or ranks wait until they can read each other's.
    pub exchange: f64,
    /// The kernel of inner products.
    pub gram: f64,
    /// Scalars are summed.
    pub scalars: f64,
    /// The kernel of the weighted sum.
    pub combine: f64,
}

impl StepSeconds {
    /// All parts together.
    pub fn sum(&self) -> f64 {
        self.exchange + self.gram + self.scalars + self.combine
    }
}

/// What a plan costs one rank, step by step.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// In the order of execution; steps in which this rank does nothing are left out.
    pub steps: Vec<StepCost>,
}

impl Cost {
    /// The cost of `plan` on `machine`.
    pub fn of(plan: &Plan, machine: &Machine) -> Self {
        let counter = Counter { plan, machine };
        let steps = plan.steps().filter_map(|step| match step {
            Step::Mean(mean) => Some(counter.mean(mean)),
            Step::Round(_, round) if round.combine.operands < 2 => None,
            Step::Round(index, round) => Some(counter.round(index, &round.combine, &round.scalars)),
            Step::Return(_, exchange) if exchange.is_empty() => None,
            Step::Share(exchange) | Step::Return(_, exchange) | Step::Gather(exchange) => {
                Some(counter.moved(step.kind(), exchange))
            }
        });
        Cost {
            steps: steps.collect(),
        }
    }

    /// Bytes that the rank sends in all, scalars counted.
    pub fn sent(&self) -> u64 {
        let bytes = |step: &StepCost| step.payload.sent() + step.scalars.sent();
        self.steps.iter().map(bytes).sum()
    }

    /// Bytes of vectors that the rank sends to other servers.
    pub fn payload_between_servers(&self) -> u64 {
        self.steps.iter().map(|step| step.payload.remote.sent).sum()
    }

    /// Messages that the rank sends in all, scalars counted.
    pub fn messages(&self) -> u64 {
        let messages = |step: &StepCost| step.payload.messages() + step.scalars.messages();
        self.steps.iter().map(messages).sum()
    }

    /// Bytes that kernels read and write.
    pub fn accesses(&self) -> u64 {
        self.steps.iter().map(|step| step.accesses).sum()
    }

    /// Time by the model, in seconds.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.seconds).sum()
    }
}

/// Counts the steps of one plan.
struct Counter<'a> {
    plan: &'a Plan,
    machine: &'a Machine,
}

impl Counter<'_> {
    fn mean(&self, mean: &Combine) -> StepCost {
        let bytes = mean.slice.len() * self.plan.dtype.size();
        // A launch takes up to MAX_RADIX vectors, a further one the sum so far in the place of one of them.
        let most = u64::from(super::MAX_RADIX);
        let further = u64::from(mean.operands)
            .saturating_sub(most)
            .div_ceil(most - 1);
        let accesses = (u64::from(mean.operands) + 1 + 2 * further) * bytes;
        let moved = self.combined(StepKind::Mean, mean, 1);
        let phases = StepSeconds {
            combine: self.reading(accesses as f64 / self.machine.memory, mean),
            ..moved.phases
        };
        StepCost {
            accesses,
            seconds: phases.sum(),
            phases,
            ..moved
        }
    }

    /// A step that moves what `exchange` says.
    fn moved(&self, step: StepKind, exchange: &Exchange) -> StepCost {
        let size = self.plan.dtype.size();
        let payload = self.links(exchange, |part| part.range.len() * size);
        let crossing = self.machine.exchange(&payload, self.plan.forms);
        self.priced(step, payload, crossing + self.barrier(exchange))
    }

    /// A step that brings the operands of `combine`, or lets `reads` kernels read them.
    fn combined(&self, step: StepKind, combine: &Combine, reads: u64) -> StepCost {
        let exchange = &combine.exchange;
        if exchange.barrier.is_none() {
            return self.moved(step, exchange);
        }
        let size = self.plan.dtype.size();
        let payload = self.links(exchange, |part| reads * part.range.len() * size);
        self.priced(step, payload, self.barrier(exchange))
    }

    /// Seconds of a kernel that takes `seconds` where all operands of `combine` lie with this rank.
    fn reading(&self, seconds: f64, combine: &Combine) -> f64 {
        if combine.exchange.barrier.is_none() {
            return seconds;
        }
        let size = self.plan.dtype.size();
        let payload = self.links(&combine.exchange, |part| part.range.len() * size);
        seconds.max(self.machine.exchange(&payload, self.plan.forms))
    }

    /// Seconds of the barrier before an exchange.
    fn barrier(&self, exchange: &Exchange) -> f64 {
        let Some(group) = exchange.barrier else {
            return 0.0;
        };
        let server = self.plan.shape.server(group.first);
        let near = group.ranks_within(
            self.plan.shape.rank(server, 0),
            self.plan.shape.rank(server + 1, 0),
        );
        self.machine.gather(&gathered(4, near, group.count / near))
    }

    fn priced(&self, step: StepKind, mut payload: Links, exchange: f64) -> StepCost {
        if step.form(self.plan.forms) == Form::Shared {
            payload.local.messages = 0;
            payload.remote.messages = 0;
        }
        let phases = StepSeconds {
            exchange,
            ..StepSeconds::default()
        };
        StepCost {
            step,
            payload,
            scalars: Links::default(),
            accesses: 0,
            seconds: phases.sum(),
            phases,
        }
    }

    fn round(&self, index: usize, combine: &Combine, scalars: &Scalars) -> StepCost {
        let machine = self.machine;
        let radix = u64::from(combine.operands);
        let elements = combine.slice.len();
        let bytes = elements * self.plan.dtype.size();
        let time = |read_and_written: u64, operations: f64| {
            let arithmetic = elements as f64 * operations * machine.operation;
            self.reading(read_and_written as f64 / machine.memory, combine)
                .max(arithmetic)
        };
        let (operands, dtype) = (combine.operands, self.plan.dtype);
        let gram = time(radix * bytes, gram_operations(operands, dtype));
        let sum = time((radix + 1) * bytes, sum_operations(operands, dtype));
        let (links, exchange) = self.scalars(combine.operands, scalars);
        // Products and sum.
        let moved = self.combined(StepKind::Round(index), combine, 2);
        let phases = StepSeconds {
            gram,
            scalars: exchange,
            combine: sum,
            ..moved.phases
        };
        // AdaSum's result is written to other ranks, too, unless it stays scattered; the time of that is the return's.
        let is_last = index + 1 == self.plan.rounds.len();
        let written = self.plan.written().filter(|_| is_last);
        let copies = written.map_or(0, |written| written.sends().count() as u64);
        StepCost {
            scalars: links,
            accesses: (2 * radix + 1 + copies) * bytes,
            seconds: phases.sum(),
            phases,
            ..moved
        }
    }

    /// Traffic and time of summing scalars.
    fn scalars(&self, radix: u32, scalars: &Scalars) -> (Links, f64) {
        let record = 4 * record_words(radix as usize) as u64;
        let group = scalars.group;
        let server = self.plan.shape.server(self.plan.rank);
        let near = group
            .ranks_within(
                self.plan.shape.rank(server, 0),
                self.plan.shape.rank(server + 1, 0),
            )
            .max(1);
        let servers = group.count.div_ceil(near);
        let gather = |bytes: u64| gathered(bytes, near, servers);
        let Some(owned) = &scalars.owned else {
            let links = gather(scalars.stride * record);
            let received = u64::from(group.count) * scalars.stride * record;
            let seconds = self.machine.gather(&links) + received as f64 / self.machine.memory;
            return (links, seconds);
        };
        let records = self.links(&owned.exchange, |part| part.records * record);
        let weights = gather(owned.run * 4 * coefficient_words(radix as usize) as u64);
        let seconds = self
            .machine
            .exchange(&records, Forms::of(self.plan.forms.records))
            + self.machine.gather(&weights);
        (joined(records, weights), seconds)
    }

    fn links<T>(&self, exchange: &Exchange<T>, bytes: impl Fn(&T) -> u64) -> Links {
        let shape = self.plan.shape;
        let here = shape.server(self.plan.rank);
        let mut links = Links::default();
        let mut peers = Vec::new();
        for transfer in &exchange.transfers {
            let traffic = if shape.server(transfer.peer) == here {
                &mut links.local
            } else {
                &mut links.remote
            };
            let bytes = bytes(&transfer.part);
            traffic.largest = traffic.largest.max(bytes);
            if transfer.is_send() {
                traffic.sent += bytes;
                traffic.messages += 1;
            } else {
                traffic.received += bytes;
            }
            peers.push(transfer.peer);
        }
        peers.sort_unstable();
        peers.dedup();
        let near = peers.iter().filter(|&&peer| shape.server(peer) == here);
        links.local.peers = near.count() as u64;
        links.remote.peers = peers.len() as u64 - links.local.peers;
        links
    }
}

/// An all-gather of `bytes` of each member of a group, `near` on each of its servers. As in an all-reduce, what crosses
/// servers first is each member's own; then the members of a server give each other what their columns have.
fn gathered(bytes: u64, near: u32, servers: u32) -> Links {
    let traffic = |others: u32, each: u64, members: u32| Traffic {
        sent: each * u64::from(others),
        received: each * u64::from(others),
        messages: u64::from(doublings(members)),
        peers: u64::from(doublings(members)),
        largest: each,
    };
    Links {
        local: traffic(near - 1, bytes * u64::from(servers), near),
        remote: traffic(servers - 1, bytes, servers),
    }
}

fn joined(a: Links, b: Links) -> Links {
    let add = |a: Traffic, b: Traffic| Traffic {
        sent: a.sent + b.sent,
        received: a.received + b.received,
        messages: a.messages + b.messages,
        peers: a.peers.max(b.peers),
        largest: a.largest.max(b.largest),
    };
    Links {
        local: add(a.local, b.local),
        remote: add(a.remote, b.remote),
    }
}

/// Steps of an exchange that doubles what is known: log2 rounded up.
fn doublings(members: u32) -> u32 {
    members.max(1).next_power_of_two().ilog2()
}

/// What a caller asks for; what is left open is chosen by the cost model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// The most subtrees that a round merges; `None` for the fastest.
    pub radix: Option<u32>,
    /// Where vectors lie while servers are merged.
    pub placement: Placement,
    /// How exchanges are given to HCCL; `None` for what [`Machine::forms`] says.
    pub exchange: Option<Form>,
    /// See [`Choices::owned_above`]; `None` for the size from which owners are faster.
    pub owned_above: Option<u64>,
}

/// Ranks of a plan that are looked at to find its slowest one.
const SAMPLE: u32 = 32;

/// Settles what `request` leaves open, for buffers of these layouts on `machine`.
///
/// The result depends on nothing but the arguments: all ranks that agree on them choose the same. One radix serves
/// all layouts, because it is part of the result; give whole lists of tensors here, not buckets of them.
///
/// # Errors
/// As [`Planner::with`].
pub fn choose(
    shape: Shape,
    layouts: &[Layout],
    machine: &Machine,
    request: &Request,
) -> Result<Choices> {
    let radices = request
        .radix
        .map_or(2..=super::MAX_RADIX, |radix| radix..=radix);
    let mut candidates = Vec::new();
    for (radix, order) in radices.flat_map(|radix| RoundOrder::of(shape.servers, radix)) {
        let candidate = Choices {
            radix,
            order,
            placement: request.placement,
            forms: machine.forms(request.exchange, shape, radix),
            owned_above: request
                .owned_above
                .unwrap_or_else(|| machine.owned_above(shape)),
        };
        // An empty layout is enough to have the radix checked.
        Planner::with(shape, Layout::new(DType::F32, &[])?, candidate)?;
        candidates.push(candidate);
    }
    // What there is no choice about has no need of a price.
    let mut choices = candidates[0];
    if candidates.len() > 1 {
        let mut least = f64::INFINITY;
        for candidate in candidates {
            let seconds = seconds(shape, layouts, machine, candidate)?;
            if seconds < least {
                (least, choices) = (seconds, candidate);
            }
        }
    }
    in_server(shape, layouts, machine, request, choices)
}

/// Takes back all-to-alls in a server where what they take before data moves is more than they save.
fn in_server(
    shape: Shape,
    layouts: &[Layout],
    machine: &Machine,
    request: &Request,
    choices: Choices,
) -> Result<Choices> {
    let at_once = machine.all_to_all.is_none_or(|wait| wait == 0.0);
    if at_once || request.exchange.is_some() || shape.locals == 1 {
        return Ok(choices);
    }
    let without = Machine {
        all_to_all: None,
        ..machine.clone()
    };
    let other = Choices {
        forms: without.forms(None, shape, choices.radix),
        ..choices
    };
    let time = |choices| seconds(shape, layouts, machine, choices);
    Ok(match time(other)? < time(choices)? {
        true => other,
        false => choices,
    })
}

/// Time of the slowest of some ranks, spread over all, for one reduction of all layouts.
pub fn seconds(
    shape: Shape,
    layouts: &[Layout],
    machine: &Machine,
    choices: Choices,
) -> Result<f64> {
    let mut total = 0.0;
    for layout in layouts {
        let planner = Planner::with(shape, layout.clone(), choices)?;
        let mut slowest = 0.0_f64;
        for sample in 0..SAMPLE.min(shape.size()) {
            let rank =
                u64::from(sample) * u64::from(shape.size()) / u64::from(SAMPLE.min(shape.size()));
            let rank = u32::try_from(rank).map_err(|_| Error::invalid("rank out of range"))?;
            slowest = slowest.max(Cost::of(&planner.plan(rank)?, machine).seconds());
        }
        total += slowest;
    }
    Ok(total)
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
