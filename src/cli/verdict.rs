//! Joins what the ranks of a failed job say into a wait-for graph and finds its root.
//!
//! Pure: it is given reports and ends, and returns sentences.

use std::collections::{BTreeMap, BTreeSet};

use super::failure;
use crate::reduce::Failure;

/// What is known of one rank.
pub(crate) struct Witness<'a> {
    pub(crate) rank: u32,
    /// How it ended, if not by success.
    pub(crate) end: Option<String>,
    /// Whether a signal ended it.
    pub(crate) killed: bool,
    pub(crate) failure: Option<&'a Failure>,
}

/// How many ranks are listed with what they wait for.
const LISTED: usize = 16;

/// Sentences that name the root of the failure and who waited for whom; none if no rank has reported anything.
pub(crate) fn judge(witnesses: &[Witness<'_>]) -> Vec<String> {
    if witnesses.iter().all(|witness| witness.failure.is_none()) {
        return Vec::new();
    }
    let (roots, why) = roots(witnesses);
    let mut lines = Vec::new();
    let of = |rank: u32| witnesses.iter().find(|witness| witness.rank == rank);
    lines.push(format!(
        "cause: {} {why}",
        failure::ranks(roots.iter().copied())
    ));
    for &rank in roots.iter().take(LISTED) {
        let Some(witness) = of(rank) else { continue };
        match (witness.failure, &witness.end) {
            (Some(failure), _) => lines.push(format!("  rank {rank}: {}", failure.message)),
            (None, Some(end)) => lines.push(format!("  rank {rank}: {end}")),
            (None, None) => lines.push(format!("  rank {rank}: no report")),
        }
    }
    let elsewhere = roots.iter().copied().filter(|&rank| of(rank).is_none());
    if elsewhere.clone().next().is_some() {
        let ranks = failure::ranks(elsewhere);
        lines.push(format!(
            "  {ranks}: started by another launcher, which knows more"
        ));
    }
    let waiting = witnesses.iter().filter(|w| !roots.contains(&w.rank));
    let waiting = waiting.filter_map(|witness| Some((witness.rank, targets(witness.failure?))));
    for (rank, targets) in waiting.take(LISTED) {
        if !targets.is_empty() {
            let targets = failure::ranks(targets.into_iter());
            lines.push(format!("  rank {rank} waited for {targets}"));
        }
    }
    lines
}

fn roots(witnesses: &[Witness<'_>]) -> (Vec<u32>, &'static str) {
    let killed = pick(witnesses, |witness| {
        witness.killed && witness.failure.is_none()
    });
    if !killed.is_empty() {
        return (killed, "died");
    }
    let own = pick(witnesses, |witness| {
        witness
            .failure
            .is_some_and(|failure| !failure.stalled && blamed(&failure.message).is_empty())
    });
    if !own.is_empty() {
        return (own, "failed by itself");
    }
    let ended = pick(witnesses, |witness| {
        witness.end.is_some() && witness.failure.is_none()
    });
    if !ended.is_empty() {
        return (ended, "ended without a report");
    }
    let accused: BTreeMap<u32, BTreeSet<u32>> = witnesses
        .iter()
        .filter_map(|witness| Some((witness.rank, accused(witnesses, witness.failure?))))
        .filter(|(_, targets)| !targets.is_empty())
        .collect();
    if !accused.is_empty() {
        let targets: BTreeSet<u32> = accused.values().flatten().copied().collect();
        let ends: Vec<u32> = targets
            .iter()
            .copied()
            .filter(|target| !accused.contains_key(target))
            .collect();
        return match ends.is_empty() {
            true => (targets.into_iter().collect(), "blame each other"),
            false => (ends, "kept the others waiting"),
        };
    }
    stalled(witnesses)
}

/// Whom a rank blames, but for those that only gave up waiting before it did: that they are gone is no cause.
fn accused(witnesses: &[Witness<'_>], failure: &Failure) -> BTreeSet<u32> {
    const ABORTED: &str = "was aborted";
    let mut targets = blamed(&failure.message);
    if failure.message.contains(ABORTED) {
        let gave_up = |rank: &u32| {
            let mut of = witnesses.iter().filter(|witness| witness.rank == *rank);
            of.any(|witness| {
                let failure = witness.failure;
                failure.is_some_and(|own| own.stalled || own.message.contains(ABORTED))
            })
        };
        targets.retain(|rank| !gave_up(rank));
    }
    targets
}

/// Without anything that failed: who waits for nobody, or stopped earliest.
fn stalled(witnesses: &[Witness<'_>]) -> (Vec<u32>, &'static str) {
    let alone = pick(witnesses, |witness| {
        let stalled = witness.failure.filter(|failure| failure.stalled);
        let waiting = stalled.and_then(|failure| failure.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.peers.is_empty())
    });
    if !alone.is_empty() {
        return (alone, "did not end work of its own");
    }
    let awaited: BTreeSet<u32> = witnesses
        .iter()
        .filter_map(|witness| witness.failure)
        .flat_map(targets)
        .collect();
    let silent = pick(witnesses, |witness| {
        witness.failure.is_none() && awaited.contains(&witness.rank)
    });
    if !silent.is_empty() {
        return (silent, "did not take part, and has no report");
    }
    let place = |witness: &Witness<'_>| {
        let waiting = witness.failure?.waiting.as_ref()?;
        Some((waiting.step, waiting.position))
    };
    let earliest = witnesses.iter().filter_map(place).min();
    let first = pick(witnesses, |witness| {
        earliest.is_some() && place(witness) == earliest
    });
    // Whoever has a peer that went on was served by it: the trouble is with the others.
    let stuck = |rank: u32| {
        let of = witnesses.iter().find(|witness| witness.rank == rank);
        // By the plan: whom messages blame here only gave up waiting.
        let waiting = of.and_then(|witness| witness.failure?.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.peers.iter().all(|peer| first.contains(peer)))
    };
    let cut_off: Vec<u32> = first.iter().copied().filter(|&rank| stuck(rank)).collect();
    let first = if cut_off.is_empty() { first } else { cut_off };
    match first.is_empty() {
        true => (
            pick(witnesses, |witness| witness.failure.is_some()),
            "gave up",
        ),
        false => (
            first,
            "wait for each other: one of them, or a link between them, has stopped",
        ),
    }
}

fn pick(witnesses: &[Witness<'_>], chosen: impl Fn(&Witness<'_>) -> bool) -> Vec<u32> {
    let chosen = witnesses.iter().filter(|witness| chosen(witness));
    chosen.map(|witness| witness.rank).collect()
}

/// Whom a rank waited for, by what the library said or else by its plan.
fn targets(failure: &Failure) -> BTreeSet<u32> {
    let blamed = blamed(&failure.message);
    if !blamed.is_empty() {
        return blamed;
    }
    let waiting = failure.waiting.iter();
    waiting.flat_map(|waiting| waiting.peers.clone()).collect()
}

/// The ranks that a message of HCCL holds responsible; the innermost cause stands last.
fn blamed(message: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut at = 0;
    while let Some(next) = message[at..].find("rank ") {
        let start = at + next;
        at = start + "rank ".len();
        let Some((rank, rest)) = name(&message[start..]) else {
            continue;
        };
        let before = &message[..start];
        let accused = rest.starts_with(" failed: ")
            || rest.starts_with(" destroyed the communicator")
            || before.ends_with("the process of ")
            || before.ends_with("the connection to ");
        let late = is_waited_for(before, rest);
        if accused || (late && !before.ends_with(", ")) {
            found.clear();
        }
        if accused || late {
            found.insert(rank);
        }
    }
    found
}

/// Whether a name stands in a list "waited 1.0 s for rank 3, rank 5 to start it".
fn is_waited_for(before: &str, rest: &str) -> bool {
    let Some(from) = before.rfind(" s for ") else {
        return false;
    };
    let list = &before[from + " s for ".len()..];
    let list = list.split(", ").filter(|part| !part.is_empty());
    let names = |part: &str| name(part).is_some_and(|(_, rest)| rest.is_empty());
    let ends = ["to start it", "to take part to the end", "to send its data"];
    list.into_iter().all(names) && ends.iter().any(|end| rest.contains(end))
}

/// A rank at the start of `text`, as the world counts it, and what follows.
fn name(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = number(text.strip_prefix("rank ")?)?;
    if let Some(world) = rest.strip_prefix(" (world rank ")
        && let Some((world, rest)) = self::number(world)
        && let Some(rest) = rest.strip_prefix(')')
    {
        return Some((world, rest));
    }
    Some((number, rest))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::Waiting;

    fn failure(rank: u32, message: &str, waits: Option<(usize, &[u32])>) -> Failure {
        Failure {
            rank,
            message: message.to_owned(),
            stalled: message.is_empty(),
            waiting: waits.map(|(position, peers)| Waiting {
                step: 2,
                position,
                operation: "bucket 0, round 0".to_owned(),
                peers: peers.to_vec(),
                bytes: 8,
            }),
        }
    }

    fn judged(failures: &[Failure], killed: &[u32], ranks: u32) -> Vec<u32> {
        let witnesses: Vec<Witness<'_>> = (0..ranks)
            .map(|rank| Witness {
                rank,
                end: killed.contains(&rank).then(|| "killed".to_owned()),
                killed: killed.contains(&rank),
                failure: failures.iter().find(|failure| failure.rank == rank),
            })
            .collect();
        roots(&witnesses).0
    }

    #[test]
    fn a_message_names_the_innermost_culprit() {
        let set = |ranks: &[u32]| ranks.iter().copied().collect::<BTreeSet<u32>>();
        assert_eq!(blamed("rank 1: step 2: ACL failed with code 7"), set(&[]));
        assert_eq!(
            blamed("communicator x, rank 1 of 4: rank 3 failed: EI: boom"),
            set(&[3])
        );
        assert_eq!(
            blamed(
                "x, rank 1 of 4: rank 0 (world rank 6) failed: c, rank 0 of 2: the process of rank 1 (world rank 9) (pid 3) has ended"
            ),
            set(&[9])
        );
        assert_eq!(
            blamed(
                "rank 1 of 4: operation 3, HcclAllGather, waited 1.0 s for rank 2, rank 3 (world rank 7) to start it; rank 2 runs nothing"
            ),
            set(&[2, 7])
        );
        assert_eq!(
            blamed("rank 2 failed: rank 2 of 4: waited 1.0 s for rank 0 to take part to the end"),
            set(&[0])
        );
    }

    #[test]
    fn the_dead_come_first_then_those_that_failed_by_themselves() {
        let gone = failure(0, "the process of rank 2 (pid 9) has ended", None);
        assert_eq!(judged(std::slice::from_ref(&gone), &[2], 3), [2]);
        let own = failure(1, "kernel gram: code 507015", None);
        assert_eq!(judged(&[gone, own], &[], 3), [1]);
    }

    #[test]
    fn of_those_that_wait_the_last_in_the_chain_is_the_root() {
        let late = |rank, of: u32| {
            let text = format!("waited 1.0 s for rank {of} to start it; rank {of} is busy");
            failure(rank, &text, None)
        };
        let silent = failure(3, "", Some((1, &[1, 2])));
        assert_eq!(judged(&[late(0, 1), late(1, 3), silent], &[], 4), [3]);
    }

    #[test]
    fn a_stall_without_an_error_is_where_the_queue_stopped_first() {
        let own = [
            failure(0, "", Some((3, &[1]))),
            failure(1, "", Some((2, &[]))),
        ];
        assert_eq!(judged(&own, &[], 2), [1]);
        let silent = [failure(0, "", Some((3, &[1])))];
        assert_eq!(judged(&silent, &[], 2), [1]);
        let pair = [
            failure(0, "", Some((3, &[1]))),
            failure(1, "", Some((3, &[0]))),
            failure(2, "", Some((5, &[0, 1]))),
        ];
        assert_eq!(judged(&pair, &[], 3), [0, 1]);
    }
    /// The first watchdog to give up takes its communicators along, and others fail for that: the cause lies elsewhere.
    #[test]
    fn who_gave_up_first_is_not_the_cause() {
        let gone = |rank, of: u32, waits| Failure {
            stalled: false,
            ..failure(
                rank,
                &format!(
                    "rank {of} failed: communicator x: HcclAllGather never ran, because its stream was aborted (507049)"
                ),
                waits,
            )
        };
        let failures = [
            failure(0, "", Some((4, &[1, 2, 3]))),
            gone(1, 0, Some((4, &[0, 2, 3]))),
            failure(2, "", Some((1, &[3]))),
            gone(3, 0, Some((1, &[2]))),
        ];
        assert_eq!(judged(&failures, &[], 4), [2, 3]);
    }
}
