//! Nobody writes what somebody may still read, or reads what may not be written yet, where ranks read each other's buffers.

use super::broken;
use crate::error::Result;
use crate::plan::{Form, Group, Plan, Range, Step, StepKind};

/// What one rank does to the fused buffers at one point of its plan: it waits, reads its peers' and then writes to its own.
#[derive(Default)]
struct Point {
    step: String,
    barrier: Option<Group>,
    reads: Vec<(u32, Range)>,
    writes: Vec<Range>,
}

/// Follows all ranks through their plans: tensors are copied in, each step is taken, and the next reduction copies in.
///
/// A read of a peer's buffer and a write to it are in order if a barrier of both ranks stands between them. Those of one step
/// have none between them, so they must not meet.
pub(super) fn check(plans: &[Plan]) -> Result<()> {
    let ranks: Vec<Vec<Point>> = plans.iter().map(points).collect();
    barriers_meet(&ranks)?;
    for (rank, mine) in (0..).zip(&ranks) {
        for (at, point) in mine.iter().enumerate() {
            for &(owner, read) in &point.reads {
                let theirs = &ranks[owner as usize];
                for (when, written) in theirs.iter().enumerate() {
                    let (first, last) = (at.min(when), at.max(when));
                    // A write is behind the barrier of its own step, as a read is.
                    let between = first + 1..last + 1;
                    if separated(&mine[between.clone()], owner) && separated(&theirs[between], rank)
                    {
                        continue;
                    }
                    let meets = |write: &&Range| !write.intersection(read).is_empty();
                    if let Some(write) = written.writes.iter().find(meets) {
                        return Err(broken(format!(
                            "{}: rank {rank} reads {read} of rank {owner}'s buffer, and rank {owner} writes {write} of it \
                             ({}) without a barrier of both in between",
                            point.step, written.step
                        )));
                    }
                }
            }
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

fn points(plan: &Plan) -> Vec<Point> {
    let whole = Range::new(0, plan.elements);
    let copy_in = |step: &str| Point {
        step: step.to_owned(),
        writes: vec![whole],
        ..Point::default()
    };
    let mut points = vec![copy_in("copy in")];
    // All ranks have as many points, also where a plan has none of a step.
    points.extend(plan.steps().map(|step| point(step, step.form(plan.forms))));
    points.push(Point {
        step: "release".to_owned(),
        barrier: plan.release,
        ..Point::default()
    });
    points.push(copy_in("copy in of the next reduction"));
    points
}

fn point(step: Step<'_>, form: Form) -> Point {
    let exchange = step.exchange();
    let received = || exchange.receives().map(|receive| receive.part.range);
    let reads = match form {
        Form::Shared => exchange
            .receives()
            .map(|receive| (receive.peer, receive.part.range))
            .collect(),
        _ => Vec::new(),
    };
    let writes = match step.kind() {
        StepKind::Mean | StepKind::Round(_) => step
            .combine()
            .filter(|combine| combine.operands > 1)
            .map(|combine| combine.slice)
            .into_iter()
            .collect(),
        StepKind::Share | StepKind::Return(_) | StepKind::Gather => received().collect(),
    };
    Point {
        step: step.to_string(),
        barrier: exchange.barrier,
        reads,
        writes,
    }
}
