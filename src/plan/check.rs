//! Proof that the plans of all ranks fit together.
//!
//! The check does not repeat how plans are made. It follows them step by step as the machines would: who
//! holds which range of which vector, who sends what to whom, and whether both sides agree.

mod pairwise;
mod scalars;
mod shared;

use super::{Combine, Exchange, Form, Group, Placement, Plan, Range, Step, StepKind, VectorPart};
use crate::error::{Error, ErrorKind, Result};

/// Checks the plans of all ranks of a world together; `plans[r]` must be rank r's.
///
/// Holds if in every step each send meets exactly one receive of the same range and operand and the sender
/// holds what it sends, if each combine has every operand on its whole slice, if adjacent subtrees are
/// merged in order until all servers are in one, if slices tile the buffer within each scalar group and
/// all members name the same group, if every record of scalars comes to its tensor's owner, if pairwise
/// transfers never wait for each other in a circle, if a barrier stands between every read of a peer's buffer and every
/// write to what is read, and if at the end every rank holds the whole result.
pub fn check(plans: &[Plan]) -> Result<()> {
    let mut state = State::new(plans)?;
    state.surroundings()?;
    for step in plans[0].steps() {
        let kind = step.kind();
        match kind {
            StepKind::Mean => state.mean()?,
            StepKind::Round(round) => state.round(round)?,
            StepKind::Share | StepKind::Return(_) | StepKind::Gather => {
                if step.is_way_back() {
                    state.all_servers_merged()?;
                }
                let form = step.form(plans[0].forms);
                let undone = match (kind, form) {
                    (StepKind::Return(_), Form::Shared) => plans[0].rounds.len(),
                    _ => 1,
                };
                state.gather(&step.to_string(), form, undone, |plan| {
                    let own = plan.steps().find(|step| step.kind() == kind);
                    own.map(Step::exchange)
                })?;
            }
        }
    }
    state.all_servers_merged()?;
    state.whole_result()?;
    shared::check(plans)
}

/// What the ranks hold after the steps so far.
struct State<'a> {
    plans: &'a [Plan],
    whole: Range,
    /// Range of the fused buffer in which each rank's vector is valid.
    held: Vec<Range>,
    /// What was held before each step so far: the way back restores it step by step.
    before: Vec<Vec<Range>>,
    /// Servers `.0..=.1` whose gradients are in the rank's vector.
    servers: Vec<(u32, u32)>,
}

impl<'a> State<'a> {
    fn new(plans: &'a [Plan]) -> Result<Self> {
        let first = plans
            .first()
            .ok_or_else(|| broken("no plans were given".to_owned()))?;
        if plans.len() != first.shape.size() as usize {
            return Err(broken(format!(
                "{} plans for {} ranks",
                plans.len(),
                first.shape.size()
            )));
        }
        // One return may lead back to before the first round.
        let returns = match first.forms.across {
            Form::Shared => first.rounds.len().min(1),
            _ => first.rounds.len(),
        };
        for (rank, plan) in plans.iter().enumerate() {
            let same = plan.rank as usize == rank
                && plan.shape == first.shape
                && plan.dtype == first.dtype
                && plan.elements == first.elements
                && plan.tensors == first.tensors
                && plan.placement == first.placement
                && plan.forms == first.forms
                && plan.share.is_some() == first.share.is_some()
                && plan.mean.is_some() == first.mean.is_some()
                && plan.gather.is_some() == first.gather.is_some()
                && plan.rounds.len() == first.rounds.len()
                && plan.returns.len() == returns;
            if !same {
                return Err(broken(format!(
                    "rank {rank}'s plan has another rank, shape, length or number of steps than rank 0's"
                )));
            }
        }
        let whole = Range::new(0, first.elements);
        Ok(State {
            plans,
            whole,
            held: vec![whole; plans.len()],
            before: Vec::new(),
            servers: plans
                .iter()
                .map(|plan| {
                    let server = plan.shape.server(plan.rank);
                    (server, server)
                })
                .collect(),
        })
    }

    /// Step 1: chunks of the mean of a server.
    fn mean(&mut self) -> Result<()> {
        let step = "in-server mean";
        let combine = |plan: &'a Plan| plan.mean.as_ref();
        let form = self.plans[0].forms.in_server;
        self.exchange(step, form, |plan| combine(plan).map(|c| &c.exchange))?;
        for plan in self.plans {
            let Some(mean) = combine(plan) else { continue };
            let shape = plan.shape;
            operands_cover(step, plan.rank, self.whole, mean, |peer| {
                (shape.server(peer) == shape.server(plan.rank)).then(|| shape.local(peer))
            })?;
            if mean.operands != shape.locals || mean.own != shape.local(plan.rank) {
                return Err(broken(format!(
                    "{step}: rank {} combines {} vectors with its own as number {}, but is local {} of {}",
                    plan.rank,
                    mean.operands,
                    mean.own,
                    shape.local(plan.rank),
                    shape.locals
                )));
            }
        }
        self.before.push(self.held.clone());
        for (held, plan) in self.held.iter_mut().zip(self.plans) {
            *held = plan.mean.as_ref().map_or(*held, |mean| mean.slice);
        }
        for server in 0..self.plans[0].shape.servers {
            let group = Group {
                first: self.plans[0].shape.rank(server, 0),
                count: self.plans[0].shape.locals,
                stride: 1,
            };
            self.tiles(step, group, self.whole)?;
        }
        Ok(())
    }

    /// Which steps there are, beside rounds and returns.
    fn surroundings(&self) -> Result<()> {
        let first = &self.plans[0];
        if first.mean.is_none() && first.shape.locals > 1 {
            return Err(broken(
                "several ranks a server, but no in-server mean".to_owned(),
            ));
        }
        let shared = first.placement == Placement::Columns && first.shape.locals > 1;
        let gathered = first.placement == Placement::Hierarchical && first.shape.locals > 1;
        if first.share.is_some() != shared || first.gather.is_some() != gathered {
            return Err(broken(format!(
                "the mean of a server is shared before the rounds in columns and gathered after them \
                 otherwise, but this plan is {:?} with share {} and gather {}",
                first.placement,
                first.share.is_some(),
                first.gather.is_some()
            )));
        }
        Ok(())
    }

    /// Step 2: one merge of subtrees.
    fn round(&mut self, index: usize) -> Result<()> {
        let step = format!("round {index}");
        self.exchange(&step, self.plans[0].forms.across, |plan| {
            plan.rounds.get(index).map(|r| &r.combine.exchange)
        })?;
        let mut merged = Vec::with_capacity(self.plans.len());
        for plan in self.plans {
            merged.push(self.merge(&step, index, plan)?);
        }
        self.before.push(self.held.clone());
        for (held, plan) in self.held.iter_mut().zip(self.plans) {
            *held = plan.rounds[index].combine.slice;
        }
        self.servers = merged;
        self.scalar_groups(&step, index)
    }

    /// Checks one rank's members and operands; returns the servers in its vector afterwards.
    fn merge(&self, step: &str, index: usize, plan: &Plan) -> Result<(u32, u32)> {
        let round = &plan.rounds[index];
        let rank = plan.rank;
        let shape = plan.shape;
        if round.members.len() != round.combine.operands as usize {
            return Err(broken(format!(
                "{step}: rank {rank} has {} subtrees for radix {}",
                round.members.len(),
                round.combine.operands
            )));
        }
        let mut next = None;
        for (number, subtree) in round.members.iter().enumerate() {
            let Some(&servers) = self.servers.get(subtree.first as usize) else {
                return Err(broken(format!(
                    "{step}: rank {rank}'s subtree {number} is {subtree:?}, but there are {} ranks",
                    self.servers.len()
                )));
            };
            let expected: Vec<u32> = (servers.0..=servers.1)
                .map(|server| shape.rank(server, shape.local(rank)))
                .collect();
            if !subtree.ranks().eq(expected.iter().copied()) {
                return Err(broken(format!(
                    "{step}: rank {rank}'s subtree {number} is {subtree:?}, but the merged servers there are {}..={}",
                    servers.0, servers.1
                )));
            }
            if next.is_some_and(|next| next != servers.0) {
                return Err(broken(format!(
                    "{step}: rank {rank}'s subtree {number} starts at server {}, not next to the one before",
                    servers.0
                )));
            }
            next = Some(servers.1 + 1);
        }
        let own = round
            .members
            .iter()
            .position(|m| m.index_of(rank).is_some());
        if own != Some(round.combine.own as usize) {
            return Err(broken(format!(
                "{step}: rank {rank} takes its vector as number {}, but is not in that subtree",
                round.combine.own
            )));
        }
        operands_cover(
            step,
            rank,
            self.held[rank as usize],
            &round.combine,
            |peer| {
                let number = round
                    .members
                    .iter()
                    .position(|m| m.index_of(peer).is_some());
                number.and_then(|number| u32::try_from(number).ok())
            },
        )?;
        let first = round.members.first().map_or(rank, |m| m.first);
        Ok((
            self.servers[first as usize].0,
            next.map_or(0, |next| next - 1),
        ))
    }

    /// All holders of slices of one merged subtree name the same group, and their slices are the buffer.
    fn scalar_groups(&self, step: &str, index: usize) -> Result<()> {
        for plan in self.plans {
            let group = plan.rounds[index].scalars.group;
            let (low, high) = self.servers[plan.rank as usize];
            let shape = plan.shape;
            let expected = match plan.placement {
                Placement::Hierarchical => Group {
                    first: shape.rank(low, 0),
                    count: (high - low + 1) * shape.locals,
                    stride: 1,
                },
                Placement::Columns => Group {
                    first: shape.rank(low, shape.local(plan.rank)),
                    count: high - low + 1,
                    stride: shape.locals,
                },
            };
            if group != expected {
                return Err(broken(format!(
                    "{step}: rank {} sums scalars over {group:?}, but {expected:?} hold its vectors",
                    plan.rank
                )));
            }
            if group.first == plan.rank {
                self.tiles(step, group, self.whole)?;
                scalars::check(step, self.plans, index, group)?;
            }
        }
        Ok(())
    }

    fn all_servers_merged(&self) -> Result<()> {
        let last = self.plans[0].shape.servers - 1;
        match self
            .servers
            .iter()
            .position(|&servers| servers != (0, last))
        {
            None => Ok(()),
            Some(rank) => Err(broken(format!(
                "after the last round rank {rank} has only servers {}..={}",
                self.servers[rank].0, self.servers[rank].1
            ))),
        }
    }

    /// A step of the way back: each rank holds again what it held before the last `undone` steps.
    fn gather(
        &mut self,
        step: &str,
        form: Form,
        undone: usize,
        exchange: impl Fn(&'a Plan) -> Option<&'a Exchange>,
    ) -> Result<()> {
        self.exchange(step, form, &exchange)?;
        let kept = self.before.len().checked_sub(undone);
        let wanted = kept
            .and_then(|kept| self.before.drain(kept..).next())
            .ok_or_else(|| broken(format!("{step}: there is no step to undo")))?;
        for (rank, plan) in self.plans.iter().enumerate() {
            let mut parts = vec![self.held[rank].intersection(wanted[rank])];
            if let Some(exchange) = exchange(plan) {
                parts.extend(exchange.receives().map(|receive| receive.part.range));
            }
            if joined(&mut parts) != Some(wanted[rank]) && !wanted[rank].is_empty() {
                return Err(broken(format!(
                    "{step}: what rank {rank} holds and receives is not exactly {}",
                    wanted[rank]
                )));
            }
        }
        self.held = wanted;
        Ok(())
    }

    fn whole_result(&self) -> Result<()> {
        match self.held.iter().position(|&held| held != self.whole) {
            None => Ok(()),
            Some(rank) => Err(broken(format!(
                "rank {rank} ends with {} of the result {}",
                self.held[rank], self.whole
            ))),
        }
    }

    /// Every send meets one receive, and senders hold what they send.
    fn exchange(
        &self,
        step: &str,
        form: Form,
        exchange: impl Fn(&'a Plan) -> Option<&'a Exchange>,
    ) -> Result<()> {
        let mut sends = 0;
        let mut receives = 0;
        for (rank, plan) in self.plans.iter().enumerate() {
            let Some(mine) = exchange(plan) else { continue };
            in_order(step, plan.rank, mine, self.plans.len())?;
            if mine.transfers.iter().any(|t| t.part.range.is_empty()) {
                return Err(broken(format!("{step}: rank {rank} moves an empty range")));
            }
            receives += mine.receives().count();
            for send in mine.sends() {
                sends += 1;
                let VectorPart { range, operand } = send.part;
                if !self.held[rank].contains(range) {
                    return Err(broken(format!(
                        "{step}: rank {rank} is to send {range} to rank {}, but holds {}",
                        send.peer, self.held[rank]
                    )));
                }
                let theirs = exchange(&self.plans[send.peer as usize]);
                let received = theirs.and_then(|theirs| theirs.received_from(send.peer, plan.rank));
                if received != Some(&send.part) {
                    return Err(broken(format!(
                        "{step}: rank {rank} sends {range} as operand {operand} to rank {}, which does not receive that",
                        send.peer
                    )));
                }
            }
        }
        // Peers are unique on both sides and every send has its receive: equal numbers leave none over.
        if sends != receives {
            return Err(broken(format!(
                "{step}: {sends} sends, but {receives} receives"
            )));
        }
        match form {
            Form::Pairwise => pairwise::end(step, self.plans, exchange),
            Form::AllToAll => self.stays_in_servers(step, exchange),
            Form::Batch | Form::Group | Form::Shared => Ok(()),
        }
    }

    /// All ranks of a server give their parts of its all-to-all, and no other rank is met.
    fn stays_in_servers(
        &self,
        step: &str,
        exchange: impl Fn(&'a Plan) -> Option<&'a Exchange>,
    ) -> Result<()> {
        for plan in self.plans {
            let Some(mine) = exchange(plan) else {
                return Err(broken(format!(
                    "{step}: rank {} has no part in its server's all-to-all",
                    plan.rank
                )));
            };
            let server = plan.shape.server(plan.rank);
            let mut transfers = mine.transfers.iter();
            if let Some(out) = transfers.find(|t| plan.shape.server(t.peer) != server) {
                return Err(broken(format!(
                    "{step}: rank {} meets rank {} of another server in an all-to-all",
                    plan.rank, out.peer
                )));
            }
        }
        Ok(())
    }

    /// The ranges held by `group` are `whole`, without gap or overlap.
    fn tiles(&self, step: &str, group: Group, whole: Range) -> Result<()> {
        let mut parts: Vec<Range> = group.ranks().map(|rank| self.held[rank as usize]).collect();
        if joined(&mut parts) == Some(whole) {
            Ok(())
        } else {
            Err(broken(format!(
                "{step}: the slices of ranks {group:?} do not tile {whole}"
            )))
        }
    }
}

/// Each operand comes from its subtree, the own one from what is `held`, too, and covers the slice.
fn operands_cover(
    step: &str,
    rank: u32,
    held: Range,
    combine: &Combine,
    operand_of: impl Fn(u32) -> Option<u32>,
) -> Result<()> {
    let mut parts: Vec<Vec<Range>> = vec![Vec::new(); combine.operands as usize];
    for receive in combine.exchange.receives() {
        let VectorPart { range, operand } = receive.part;
        if operand_of(receive.peer) != Some(operand) {
            return Err(broken(format!(
                "{step}: rank {rank} takes data of rank {} for operand {operand}, which that rank does not hold",
                receive.peer
            )));
        }
        let Some(parts) = parts.get_mut(operand as usize) else {
            return Err(broken(format!(
                "{step}: rank {rank} has no operand {operand}"
            )));
        };
        parts.push(range);
    }
    if let Some(own) = parts.get_mut(combine.own as usize) {
        own.push(held.intersection(combine.slice));
    }
    for (operand, parts) in parts.iter_mut().enumerate() {
        let complete = match joined(parts) {
            Some(union) if union.is_empty() => combine.slice.is_empty(),
            union => union == Some(combine.slice),
        };
        if !complete {
            return Err(broken(format!(
                "{step}: operand {operand} of rank {rank} is not complete on {}",
                combine.slice
            )));
        }
    }
    Ok(())
}

/// The transfers of a rank are with other ranks, in the order that all ranks share.
fn in_order<T>(step: &str, rank: u32, exchange: &Exchange<T>, ranks: usize) -> Result<()> {
    let mut peers = exchange.transfers.iter().map(|transfer| transfer.peer);
    let others = peers.all(|peer| (peer as usize) < ranks && peer != rank);
    if others && exchange.is_in_order(rank) {
        return Ok(());
    }
    Err(broken(format!(
        "{step}: the transfers of rank {rank} are not with distinct other ranks, in pairwise order"
    )))
}

/// The union of ranges that meet without gap or overlap; empty ones do not count.
fn joined(parts: &mut Vec<Range>) -> Option<Range> {
    parts.retain(|part| !part.is_empty());
    parts.sort_unstable_by_key(|part| part.start());
    let meet = parts
        .windows(2)
        .all(|pair| pair[0].end() == pair[1].start());
    match (parts.first(), parts.last()) {
        (Some(first), Some(last)) => meet.then(|| Range::new(first.start(), last.end())),
        _ => Some(Range::default()),
    }
}

fn broken(message: String) -> Error {
    Error::new(ErrorKind::Mismatch, format!("plan: {message}"))
}
