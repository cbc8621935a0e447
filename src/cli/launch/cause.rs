//! The cause of a failed job: the root of the wait-for graph of its ranks.
//!
//! Pure: from facts (ends of processes, steps, peers, codes) to sentences. What a message says is shown, never read.

use std::collections::BTreeSet;

use crate::cli::text;
use crate::reduce::{Failure, Waiting};
use crate::sys::acl;
use crate::sys::hccl::HcclResult;

/// Facts of one rank.
#[derive(Default)]
pub(crate) struct RankFacts<'a> {
    pub(crate) rank: u32,
    /// How its process ended, if not by success.
    pub(crate) end: Option<String>,
    /// Whether a signal ended it.
    pub(crate) killed: bool,
    /// Whether its process has ended with success.
    pub(crate) done: bool,
    /// Whether its process is stopped (SIGSTOP, a debugger).
    pub(crate) stopped: bool,
    pub(crate) presence: Presence,
    /// The wait that it reports, if it has not given up.
    pub(crate) waiting: Option<&'a Waiting>,
    /// The first wait that it reported in its last step, whatever became of it.
    pub(crate) waited: Option<&'a Waiting>,
    pub(crate) failure: Option<&'a Failure>,
}

/// How far a rank has come with joining a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Presence {
    #[default]
    Absent,
    Joining,
    Joined,
}

/// The beginning of the sentence that names ranks.
pub(crate) const CAUSE: &str = "cause: ";

/// How many sentences about ranks there are; equal ones are one.
const LISTED: usize = 16;

/// Sentences that name the root of the failure and who waited for whom; none if no rank has reported anything.
///
/// The world has `world` ranks; those that are not in `all` were started by other launchers.
pub(crate) fn explain(all: &[RankFacts<'_>], world: u32) -> Vec<String> {
    if all
        .iter()
        .all(|facts| facts.wait().is_none() && facts.failure.is_none())
    {
        return Vec::new();
    }
    let (roots, why) = roots(all, world);
    let mut lines = Vec::new();
    let of = |rank: u32| all.iter().find(|facts| facts.rank == rank);
    lines.push(format!(
        "{CAUSE}{} {}",
        text::ranks(roots.iter().copied()),
        why.words(roots.len())
    ));
    let accounts = roots
        .iter()
        .filter_map(|&rank| Some((rank, of(rank)?.account())));
    for (ranks, account) in text::grouped(accounts).into_iter().take(LISTED) {
        lines.push(format!("  {}: {account}", text::ranks(ranks.into_iter())));
    }
    let elsewhere = roots.iter().copied().filter(|&rank| of(rank).is_none());
    if elsewhere.clone().next().is_some() {
        let ranks = text::ranks(elsewhere);
        lines.push(format!(
            "  {ranks}: started by another launcher, which knows more"
        ));
    }
    let waiting = all.iter().filter(|w| !roots.contains(&w.rank));
    let waiting = waiting.filter_map(|facts| {
        let peers = &facts.wait()?.peers;
        let waited = || (facts.rank, text::ranks(peers.iter().copied()));
        (!peers.is_empty()).then(waited)
    });
    for (ranks, peers) in text::grouped(waiting).into_iter().take(LISTED) {
        let ranks = text::ranks(ranks.into_iter());
        lines.push(format!("  {ranks} waited for {peers}"));
    }
    lines
}

/// Reasons why ranks are the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Died,
    Failed,
    EndedSilently,
    Stopped,
    NeverCame,
    OwnWork,
    LeftEarly,
    StuckJoining,
    Silent,
    Late,
    EachOther,
    Elsewhere,
    GaveUp,
}

impl Cause {
    fn words(self, ranks: usize) -> &'static str {
        let several = ranks != 1;
        match self {
            Cause::Died => "died",
            Cause::Failed if several => "failed by themselves",
            Cause::Failed => "failed by itself",
            Cause::EndedSilently => "ended without a report",
            Cause::Stopped if several => "are stopped (SIGSTOP or a debugger)",
            Cause::Stopped => "is stopped (SIGSTOP or a debugger)",
            Cause::NeverCame => "did not begin to join the world",
            Cause::StuckJoining => "did not finish joining the world",
            Cause::OwnWork if several => "did not end work of their own",
            Cause::OwnWork => "did not end work of its own",
            Cause::LeftEarly => "ended while others waited",
            Cause::Silent if several => "did not take part, and have no report",
            Cause::Silent => "did not take part, and has no report",
            Cause::Late => "kept the others waiting",
            Cause::EachOther => {
                "wait for each other: one of them, or a link between them, has stopped"
            }
            Cause::Elsewhere => "did not send what every rank here waited for",
            Cause::GaveUp => "gave up",
        }
    }
}

impl RankFacts<'_> {
    /// Its wait, or the one in which it failed: streams go on behind a wait that was in vain.
    fn wait(&self) -> Option<&Waiting> {
        let Some(failure) = self.failure else {
            return self.waiting;
        };
        let waited = self.waited.filter(|waited| waited.step == failure.step);
        waited.or(failure.waiting.as_ref())
    }

    fn account(&self) -> String {
        match (self.failure, &self.end) {
            (Some(failure), _) => failure.message.clone(),
            (None, Some(end)) => end.clone(),
            (None, None) if self.done => "exit status 0".to_owned(),
            (None, None) => "no report".to_owned(),
        }
    }

    /// Whether its process runs and it has not given up.
    fn runs(&self) -> bool {
        self.failure.is_none() && self.end.is_none() && !self.done
    }

    /// Whether it failed for a reason of its own.
    fn failed_by_itself(&self) -> bool {
        self.has(Origin::Own)
    }

    /// Whether it failed, did not only stall, and its code says this.
    fn has(&self, origin: Origin) -> bool {
        let failure = self.failure.filter(|failure| !failure.stalled);
        failure.is_some_and(|failure| origin_of(failure) == origin)
    }

    /// Whether work that meets no other rank did not end.
    fn hangs_in_own_work(&self) -> bool {
        let stalled = self.failure.is_none_or(|failure| failure.stalled);
        stalled && self.wait().is_some_and(|wait| wait.peers.is_empty())
    }

    fn place(&self) -> Option<(u64, usize)> {
        let wait = self.wait()?;
        Some((wait.step, wait.position))
    }
}

/// A cause, and whether a rank is one for that reason.
type Rule<'r> = (Cause, &'r dyn Fn(&RankFacts<'_>) -> bool);

fn roots(all: &[RankFacts<'_>], world: u32) -> (Vec<u32>, Cause) {
    let awaited: BTreeSet<u32> = all
        .iter()
        .filter_map(RankFacts::wait)
        .flat_map(|wait| wait.peers.iter().copied())
        .collect();
    let is_awaited = |facts: &RankFacts<'_>| awaited.contains(&facts.rank);
    let rules: [Rule<'_>; 9] = [
        (Cause::Died, &|w| w.killed && w.failure.is_none()),
        (Cause::Failed, &|w| w.failed_by_itself()),
        (Cause::EndedSilently, &|w| {
            w.end.is_some() && w.failure.is_none()
        }),
        (Cause::Stopped, &|w| w.stopped && w.runs()),
        (Cause::NeverCame, &|w| {
            w.runs() && w.presence == Presence::Absent && is_awaited(w)
        }),
        (Cause::OwnWork, &|w| w.hangs_in_own_work()),
        (Cause::LeftEarly, &|w| w.done && is_awaited(w)),
        // After those that a joining rank may be waiting for.
        (Cause::StuckJoining, &|w| {
            w.runs() && w.presence == Presence::Joining && is_awaited(w)
        }),
        (Cause::Silent, &|w| {
            w.runs() && w.wait().is_none() && is_awaited(w)
        }),
    ];
    for (cause, holds) in rules {
        let found = pick(all, holds);
        if !found.is_empty() {
            return (found, cause);
        }
    }
    let late = late(all);
    if let [one] = late[..] {
        return (vec![one], Cause::Late);
    }
    earliest(all, world)
}

/// Ranks that were awaited where HCCL's limit or failures of others ended waits, and did not end so themselves; with them those
/// that they wait for at the same place.
fn late(all: &[RankFacts<'_>]) -> Vec<u32> {
    let ended = |facts: &&RankFacts<'_>| facts.has(Origin::Limit) || facts.has(Origin::Others);
    let awaited: BTreeSet<u32> = all
        .iter()
        .filter(ended)
        .filter_map(RankFacts::wait)
        .flat_map(|wait| wait.peers.iter().copied())
        .collect();
    let suspects = || {
        let suspects = all.iter().filter(move |facts| !ended(facts));
        suspects.filter(|facts| awaited.contains(&facts.rank))
    };
    let earliest = suspects().filter_map(RankFacts::place).min();
    let first: Vec<&RankFacts<'_>> = suspects()
        .filter(|facts| facts.place() == earliest)
        .collect();
    // Of a pair that stands still together, the others may have waited for one only.
    let partner = |facts: &&RankFacts<'_>| {
        let waits = first.iter().filter_map(|suspect| suspect.wait());
        let awaits = |wait: &Waiting| wait.peers.contains(&facts.rank);
        earliest.is_some() && facts.place() == earliest && waits.into_iter().any(awaits)
    };
    let partners = all.iter().filter(|facts| !ended(facts)).filter(partner);
    let late: BTreeSet<u32> = first
        .iter()
        .copied()
        .chain(partners)
        .map(|facts| facts.rank)
        .collect();
    late.into_iter().collect()
}

/// Ranks that stopped earliest in the order of the steps, which is the same on all ranks.
fn earliest(all: &[RankFacts<'_>], world: u32) -> (Vec<u32>, Cause) {
    let earliest = all.iter().filter_map(RankFacts::place).min();
    let first = pick(all, |facts| earliest.is_some() && facts.place() == earliest);
    let of = |rank: u32| all.iter().find(|facts| facts.rank == rank);
    let peers = |rank: u32| {
        of(rank)
            .and_then(RankFacts::wait)
            .map_or(&[][..], |w| &w.peers)
    };
    let elsewhere: BTreeSet<u32> = first
        .iter()
        .flat_map(|&rank| peers(rank))
        .copied()
        .filter(|&peer| of(peer).is_none())
        .collect();
    if !elsewhere.is_empty() {
        return (elsewhere.into_iter().collect(), Cause::Late);
    }
    // Whoever has a peer that went on was served by it: the trouble is with the others.
    let is_cut_off = |rank: &u32| peers(*rank).iter().all(|peer| first.contains(peer));
    let cut_off: Vec<u32> = first.iter().copied().filter(is_cut_off).collect();
    let mut first = if cut_off.is_empty() { first } else { cut_off };
    // Those that it waited for went on, or failed by themselves and a later failure has hidden that code.
    if let [one] = first[..] {
        let others = peers(one).iter().copied();
        first = others
            .chain([one])
            .collect::<BTreeSet<u32>>()
            .into_iter()
            .collect();
    }
    if !first.is_empty() {
        return (first, Cause::EachOther);
    }
    // Streams that went on behind a failed exchange no longer say whom they waited for.
    let elsewhere: Vec<u32> = (0..world).filter(|&rank| of(rank).is_none()).collect();
    if !elsewhere.is_empty() {
        return (elsewhere, Cause::Elsewhere);
    }
    let left = pick(all, |facts| facts.done);
    let misses_others = |facts: &RankFacts<'_>| facts.has(Origin::Others);
    match all.iter().any(misses_others) && !left.is_empty() {
        true => (left, Cause::LeftEarly),
        false => (pick(all, |facts| facts.failure.is_some()), Cause::GaveUp),
    }
}

fn pick(all: &[RankFacts<'_>], chosen: impl Fn(&RankFacts<'_>) -> bool) -> Vec<u32> {
    let chosen = all.iter().filter(|facts| chosen(facts));
    chosen.map(|facts| facts.rank).collect()
}

/// The origin of a failure by the vendor's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Something of this rank failed.
    Own,
    /// A limit of the vendor's ended a wait for other ranks.
    Limit,
    /// Another rank or a link to it is gone, or did not send, or the work was aborted from outside.
    Others,
}

fn origin_of(failure: &Failure) -> Origin {
    const RUNTIME_LIMITS: [u32; 4] = [
        acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        acl::ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
        acl::ACL_ERROR_RT_FFTS_PLUS_TIMEOUT,
        acl::ACL_ERROR_RT_WAIT_TIMEOUT,
    ];
    const RUNTIME_OTHERS: [u32; 4] = [
        acl::ACL_ERROR_RT_LINK_ERROR,
        acl::ACL_ERROR_RT_SUSPECT_REMOTE_ERROR,
        acl::ACL_ERROR_RT_STREAM_ABORT,
        acl::ACL_ERROR_RT_DEVICE_TASK_ABORT,
    ];
    // The first operation with a peer that makes no link ends with one of these.
    const HCCL_LIMITS: [HcclResult; 2] = [HcclResult::HCCL_E_TIMEOUT, HcclResult::HCCL_E_NOT_FOUND];
    const HCCL_OTHERS: [HcclResult; 6] = [
        HcclResult::HCCL_E_TCP_CONNECT,
        HcclResult::HCCL_E_ROCE_CONNECT,
        HcclResult::HCCL_E_TCP_TRANSFER,
        HcclResult::HCCL_E_ROCE_TRANSFER,
        HcclResult::HCCL_E_NETWORK,
        HcclResult::HCCL_E_REMOTE,
    ];
    // With these a guard fails its stream, for what others were to send among other things.
    const STOPPED: [u32; 2] = [
        acl::ACL_ERROR_RT_AICORE_EXCEPTION,
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
    ];
    let call = failure.call.as_ref();
    let code = call.and_then(|call| Some((call, u32::try_from(call.code).ok()?)));
    let (limit, others, stopped) = match code {
        None => (false, false, true),
        Some((call, code)) if call.function.starts_with("Hccl") => {
            let code = HcclResult(code);
            let (limit, others) = (HCCL_LIMITS.contains(&code), HCCL_OTHERS.contains(&code));
            (limit, others, false)
        }
        Some((_, code)) => (
            RUNTIME_LIMITS.contains(&code),
            RUNTIME_OTHERS.contains(&code),
            STOPPED.contains(&code),
        ),
    };
    match () {
        () if limit => Origin::Limit,
        () if others || stopped && failure.missed_others => Origin::Others,
        () => Origin::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::FailedCall;

    fn waiting(position: usize, peers: &[u32]) -> Waiting {
        Waiting {
            step: 2,
            position,
            operation: "bucket 0, round 0".to_owned(),
            peers: peers.to_vec(),
            bytes: 8,
        }
    }

    fn stalled(rank: u32, position: usize, peers: &[u32]) -> Failure {
        Failure {
            rank,
            message: format!("rank {rank}: nothing moved"),
            step: 2,
            stalled: true,
            missed_others: false,
            call: None,
            waiting: Some(waiting(position, peers)),
        }
    }

    fn failed(rank: u32, function: &str, code: i32, peers: &[u32]) -> Failure {
        Failure {
            stalled: false,
            call: Some(FailedCall {
                function: function.to_owned(),
                code,
            }),
            ..stalled(rank, 1, peers)
        }
    }

    const LIMIT: i32 = 507048;

    /// A job of `ranks` ranks that have all joined, with these failures.
    fn job(ranks: u32, failures: &[Failure]) -> Vec<RankFacts<'_>> {
        let facts = |rank| RankFacts {
            rank,
            presence: Presence::Joined,
            failure: failures.iter().find(|failure| failure.rank == rank),
            ..RankFacts::default()
        };
        (0..ranks).map(facts).collect()
    }

    #[test]
    fn the_dead_come_first_then_those_that_failed_by_themselves() {
        let failures = [
            failed(0, "aclrtSynchronizeStreamWithTimeout", LIMIT, &[2]),
            failed(1, "aclrtSynchronizeStreamWithTimeout", 507015, &[]),
        ];
        let mut all = job(3, &failures);
        assert_eq!(roots(&all, 4), (vec![1], Cause::Failed));
        all[2].end = Some("killed by signal 9 (SIGKILL)".to_owned());
        all[2].killed = true;
        assert_eq!(roots(&all, 4), (vec![2], Cause::Died));
        assert_eq!(
            explain(&all, 3),
            [
                "cause: rank 2 died",
                "  rank 2: killed by signal 9 (SIGKILL)",
                "  rank 0 waited for rank 2",
            ]
        );
    }

    /// A guard traps for what others did not send with the code of a kernel that fails.
    #[test]
    fn who_missed_others_is_not_the_cause() {
        let mut failures = [
            failed(0, "aclrtSynchronizeStreamWithTimeout", 507015, &[]),
            failed(1, "aclrtSynchronizeStreamWithTimeout", 507015, &[]),
        ];
        failures[0].missed_others = true;
        assert_eq!(roots(&job(2, &failures), 2), (vec![1], Cause::Failed));
        // Another code says what failed here before.
        failures[0] = failed(0, "aclrtSynchronizeStreamWithTimeout", 507049, &[]);
        failures[1].missed_others = true;
        failures[0].missed_others = true;
        assert_eq!(roots(&job(2, &failures), 2), (vec![0], Cause::Failed));
    }

    /// The words are the vendor's and may be anything.
    #[test]
    fn codes_decide_and_not_words() {
        for (function, code, own) in [
            ("HcclAllGather", 9, false),
            ("HcclBatchSendRecv", 6, false),
            ("HcclSend", 21, false),
            ("HcclSend", 4, true),
            ("HcclCommInitClusterInfoConfig", 7, true),
            ("aclrtSynchronizeStreamWithTimeout", 507048, false),
            ("aclrtSynchronizeStreamWithTimeout", 107023, false),
            ("aclrtSynchronizeStreamWithTimeout", 507049, true),
            ("aclrtMalloc", 207018, true),
        ] {
            let mut failures = [failed(0, function, code, &[1])];
            for message in ["rank 1 failed: waited 1.0 s for rank 1 to start it", "?"] {
                failures[0].message = message.to_owned();
                let expected = if own {
                    (vec![0], Cause::Failed)
                } else {
                    (vec![1], Cause::Silent)
                };
                assert_eq!(roots(&job(2, &failures), 2), expected, "{function} {code}");
            }
        }
    }

    #[test]
    fn who_never_came_or_is_stopped_is_named() {
        let failures: Vec<Failure> = [0, 1, 3]
            .map(|rank| {
                let peers: Vec<u32> = (0..4).filter(|&peer| peer != rank).collect();
                failed(rank, "HcclAllGather", 9, &peers)
            })
            .into();
        let mut all = job(4, &failures);
        assert_eq!(roots(&all, 4), (vec![2], Cause::Silent));
        all[2].presence = Presence::Joining;
        assert_eq!(roots(&all, 4), (vec![2], Cause::StuckJoining));
        all[2].presence = Presence::Absent;
        assert_eq!(roots(&all, 4), (vec![2], Cause::NeverCame));
        all[2].stopped = true;
        assert_eq!(roots(&all, 4), (vec![2], Cause::Stopped));
        all[2].stopped = false;
        all[2].done = true;
        assert_eq!(roots(&all, 4), (vec![2], Cause::LeftEarly));
        // Who joins waits there for the one that has left.
        let failures = [0, 3].map(|rank| failed(rank, "HcclAllGather", 9, &[1, 2]));
        let mut all = job(4, &failures);
        all[1].presence = Presence::Joining;
        assert_eq!(roots(&all, 4), (vec![1], Cause::StuckJoining));
        all[2].done = true;
        assert_eq!(roots(&all, 4), (vec![2], Cause::LeftEarly));
    }

    /// A rank that waits but has not given up is no culprit, whoever waits for it.
    #[test]
    fn who_says_that_it_waits_is_not_silent() {
        let failures = [stalled(0, 3, &[1, 2])];
        let wait = waiting(4, &[2]);
        let mut all = job(3, &failures);
        all[1].waiting = Some(&wait);
        assert_eq!(roots(&all, 4), (vec![2], Cause::Silent));
    }

    #[test]
    fn whom_hccl_missed_in_vain_is_late() {
        // Ranks 0 and 1 reach HCCL's limit at the exchange that rank 2 stands in; later its watchdog gives up.
        let mut failures = vec![
            failed(0, "aclrtSynchronizeStreamWithTimeout", LIMIT, &[1, 2]),
            failed(1, "aclrtSynchronizeStreamWithTimeout", LIMIT, &[0, 2]),
        ];
        let wait = waiting(1, &[0, 1]);
        let mut all = job(3, &failures);
        all[2].waiting = Some(&wait);
        assert_eq!(roots(&all, 4), (vec![2], Cause::Late));
        failures.push(stalled(2, 1, &[0, 1]));
        assert_eq!(roots(&job(3, &failures), 3), (vec![2], Cause::Late));
        // Behind the wait the streams went on to their end: what the ranks said meanwhile tells.
        let waits = [waiting(1, &[1, 2]), waiting(1, &[0, 2])];
        for rank in [0, 1] {
            failures[rank].waiting = None;
        }
        failures.push(failed(3, "aclrtSynchronizeStreamWithTimeout", 507057, &[]));
        let mut all = job(4, &failures);
        for (facts, wait) in all.iter_mut().zip(&waits) {
            facts.waited = Some(wait);
        }
        assert_eq!(roots(&all, 4), (vec![2], Cause::Late));
    }

    /// The first watchdog to give up takes its communicators along, and others fail for that: the cause lies elsewhere.
    #[test]
    fn who_gave_up_first_is_not_the_cause() {
        let mut failures = vec![
            stalled(0, 4, &[1, 2, 3]),
            failed(1, "aclrtSynchronizeStreamWithTimeout", 507057, &[0, 2, 3]),
            stalled(2, 1, &[3]),
            stalled(3, 1, &[2]),
        ];
        failures[1].waiting = Some(waiting(4, &[0, 2, 3]));
        assert_eq!(roots(&job(4, &failures), 4), (vec![2, 3], Cause::EachOther));
    }

    /// Only one of a pair that stands still was awaited by those whose waits ended for others' failures.
    #[test]
    fn who_waits_for_its_partner_is_not_late() {
        let mut failures = [
            stalled(0, 1, &[1]),
            stalled(1, 1, &[0]),
            failed(2, "aclrtSynchronizeStreamWithTimeout", 507057, &[0]),
            stalled(3, 9, &[1]),
        ];
        failures[2].waiting = Some(waiting(9, &[0]));
        assert_eq!(roots(&job(4, &failures), 4), (vec![0, 1], Cause::EachOther));
    }

    /// Rank 3 failed by itself, but its code became that of a later operation, which missed rank 0.
    #[test]
    fn where_all_miss_others_it_may_be_whom_the_first_one_waited_for() {
        let missed =
            |rank, peers: &[u32]| failed(rank, "aclrtSynchronizeStreamWithTimeout", 507057, peers);
        let mut failures = [
            failed(0, "HcclAllReduce", 21, &[1, 3]),
            missed(1, &[0]),
            missed(2, &[0]),
            missed(3, &[0]),
        ];
        for failure in &mut failures[1..] {
            failure.waiting = Some(waiting(5, &[0]));
        }
        assert_eq!(
            roots(&job(4, &failures), 4),
            (vec![0, 1, 3], Cause::EachOther)
        );
    }

    #[test]
    fn a_stall_without_an_error_is_where_the_queue_stopped_first() {
        let own = [stalled(0, 3, &[1]), stalled(1, 2, &[])];
        assert_eq!(roots(&job(2, &own), 2), (vec![1], Cause::OwnWork));
        let pair = [
            stalled(0, 3, &[1]),
            stalled(1, 3, &[0]),
            stalled(2, 5, &[0, 1]),
        ];
        assert_eq!(roots(&job(3, &pair), 3), (vec![0, 1], Cause::EachOther));
    }

    #[test]
    fn a_rank_of_another_launcher_is_pointed_at() {
        let failures = [stalled(0, 3, &[8]), stalled(1, 5, &[0])];
        let lines = explain(&job(2, &failures), 16);
        assert_eq!(lines[0], "cause: rank 8 kept the others waiting");
        assert!(lines[1].contains("another launcher"), "{lines:?}");
    }

    #[test]
    fn where_all_here_missed_others_it_began_elsewhere() {
        let missed = |rank| Failure {
            waiting: None,
            ..failed(rank, "aclrtSynchronizeStreamWithTimeout", 507057, &[])
        };
        let failures = [missed(0), missed(1)];
        let lines = explain(&job(2, &failures), 16);
        assert_eq!(
            lines,
            [
                "cause: ranks 2-15 did not send what every rank here waited for",
                "  ranks 2-15: started by another launcher, which knows more",
            ]
        );
        assert_eq!(roots(&job(2, &failures), 2), (vec![0, 1], Cause::GaveUp));
        // Whoever has ended in good order no longer sends.
        let mut all = job(3, &failures);
        all[2].done = true;
        assert_eq!(roots(&all, 3), (vec![2], Cause::LeftEarly));
    }

    #[test]
    fn without_reports_nothing_is_said() {
        assert!(explain(&job(2, &[]), 2).is_empty());
    }
}
