//! Nobody writes what somebody may still read, or reads what may not be written yet, where ranks read each other's buffers.

use super::broken;
use crate::error::Result;
use crate::plan::{Form, Group, Plan, Range, Step, StepKind};

/// What one rank does at one point of its plan: it waits, and then reads and writes fused buffers.
#[derive(Default)]
struct Point {
    step: String,
    barrier: Option<Group>,
    /// Whose buffer, and which part of it.
    reads: Vec<(u32, Range)>,
    writes: Vec<(u32, Range)>,
}

/// One access to a buffer.
struct Access {
    rank: u32,
    /// The number of the point.
    at: usize,
    range: Range,
    is_write: bool,
}

/// Follows all ranks through their plans: tensors are copied in, each step is taken, results are copied out, and the next
/// reduction copies in. Once as results are written by the ranks that own them, and once as they are read from these.
pub(super) fn check(plans: &[Plan]) -> Result<()> {
    for written in [true, false] {
        let ranks: Vec<Vec<Point>> = plans.iter().map(|plan| points(plan, written)).collect();
        barriers_meet(&ranks)?;
        for buffer in 0..plans.len() {
            in_order(&ranks, u32::try_from(buffer).unwrap_or(u32::MAX))?;
        }
    }
    Ok(())
}

/// Whether all accesses to the buffer of rank `buffer` are in order.
///
/// Two of different ranks, of which one writes, are if a barrier of both ranks stands between them. Those of one step have none
/// between them, so they must not meet.
fn in_order(ranks: &[Vec<Point>], buffer: u32) -> Result<()> {
    let mut accesses = Vec::new();
    for (rank, points) in (0..).zip(ranks) {
        for (at, point) in points.iter().enumerate() {
            for (of, is_write) in [(&point.reads, false), (&point.writes, true)] {
                let here = of
                    .iter()
                    .filter(|(owner, range)| *owner == buffer && !range.is_empty());
                accesses.extend(here.map(|&(_, range)| Access {
                    rank,
                    at,
                    range,
                    is_write,
                }));
            }
        }
    }
    accesses.sort_by_key(|access| access.range.start());
    for (index, one) in accesses.iter().enumerate() {
        let later = accesses[index + 1..].iter();
        for other in later.take_while(|other| other.range.start() < one.range.end()) {
            if one.rank == other.rank || !(one.is_write || other.is_write) {
                continue;
            }
            let (first, last) = (one.at.min(other.at), one.at.max(other.at));
            // An access is behind the barrier of its own step.
            let between = |rank: u32| &ranks[rank as usize][first + 1..last + 1];
            if separated(between(one.rank), other.rank) && separated(between(other.rank), one.rank)
            {
                continue;
            }
            // What is written is what the other access is in the way of.
            let (write, other) = if one.is_write {
                (one, other)
            } else {
                (other, one)
            };
            let step = |access: &Access| &ranks[access.rank as usize][access.at].step;
            return Err(broken(format!(
                "{}: rank {} writes {} of rank {buffer}'s buffer, and rank {} {} {} of it ({}) without a barrier of both in \
                 between",
                step(write),
                write.rank,
                write.range,
                other.rank,
                if other.is_write { "writes" } else { "reads" },
                other.range,
                step(other),
            )));
        }
    }
    Ok(())
}

/// Whether one of these points waits for `peer`.
fn separated(points: &[Point], peer: u32) -> bool {
    let waits = |group: Group| group.index_of(peer).is_some();
    points.iter().any(|point| point.barrier.is_some_and(waits))
}

/// All ranks of a barrier come to the same one.
fn barriers_meet(ranks: &[Vec<Point>]) -> Result<()> {
    for (rank, points) in (0..).zip(ranks) {
        for (at, point) in points.iter().enumerate() {
            let Some(group) = point.barrier else { continue };
            let comes = |other: u32| {
                let theirs = ranks.get(other as usize).and_then(|theirs| theirs.get(at));
                theirs.is_some_and(|theirs| theirs.barrier == Some(group))
            };
            if group.index_of(rank).is_none() || !group.ranks().all(comes) {
                return Err(broken(format!(
                    "{}: rank {rank} waits for {group:?}, which do not all wait for it",
                    point.step
                )));
            }
        }
    }
    Ok(())
}

fn points(plan: &Plan, written: bool) -> Vec<Point> {
    let own = vec![(plan.rank, Range::new(0, plan.elements))];
    let copy_in = |step: &str| Point {
        step: step.to_owned(),
        writes: own.clone(),
        ..Point::default()
    };
    let mut points = vec![copy_in("copy in")];
    // All ranks have as many points, also where a plan has none of a step.
    points.extend(plan.steps().map(|step| point(plan, step, written)));
    points.push(Point {
        step: "copy out".to_owned(),
        reads: own.clone(),
        ..Point::default()
    });
    points.push(Point {
        step: "release".to_owned(),
        barrier: plan.release(written),
        ..Point::default()
    });
    points.push(copy_in("copy in of the next reduction"));
    points
}

fn point(plan: &Plan, step: Step<'_>, written: bool) -> Point {
    let exchange = step.exchange();
    let to_own = |range: Range| (plan.rank, range);
    let received = || {
        exchange
            .receives()
            .map(|receive| to_own(receive.part.range))
    };
    let is_shared = step.form(plan.forms) == Form::Shared;
    let by_others = written && is_shared && matches!(step.kind(), StepKind::Return(_));
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    if is_shared && !by_others {
        let read = exchange.receives();
        reads.extend(read.map(|receive| (receive.peer, receive.part.range)));
    }
    match step.kind() {
        StepKind::Mean | StepKind::Round(_) => {
            let combine = step.combine().filter(|combine| combine.operands > 1);
            let slice = combine.map(|combine| to_own(combine.slice));
            reads.extend(slice);
            writes.extend(slice);
        }
        StepKind::Share | StepKind::Return(_) | StepKind::Gather if by_others => {}
        StepKind::Share | StepKind::Return(_) | StepKind::Gather => writes.extend(received()),
    }
    if written && step.kind() == StepKind::Round(plan.rounds.len().wrapping_sub(1)) {
        let sends = plan
            .written()
            .into_iter()
            .flat_map(|written| written.sends());
        writes.extend(sends.map(|send| (send.peer, send.part.range)));
    }
    Point {
        step: step.to_string(),
        barrier: exchange.barrier,
        reads,
        writes,
    }
}
