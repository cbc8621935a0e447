//! The state of a rank that was started, and the sentences about a job that ends badly.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use crate::cli::launch::cause::{self, Presence, RankFacts};
use crate::cli::launch::failure::{self, Tail};
use crate::cli::text;
use crate::reduce::{Failure, Progress, Report, Waiting};
use crate::sys::process;

/// A rank whose process was started.
pub(crate) struct Running {
    pub(crate) rank: u32,
    place: String,
    pub(crate) child: Child,
    pub(crate) open_pipes: u32,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) tail: Tail,
    pub(crate) presence: Presence,
    /// The wait that it reports.
    waiting: Option<Waiting>,
    /// The first wait that it reported in its last step.
    waited: Option<Waiting>,
    /// Its first failure.
    failure: Option<Failure>,
}

impl Running {
    pub(crate) fn new(rank: u32, place: String, child: Child) -> Running {
        Running {
            rank,
            place,
            child,
            open_pipes: 2,
            status: None,
            tail: Tail::default(),
            presence: Presence::default(),
            waiting: None,
            waited: None,
            failure: None,
        }
    }

    /// Whether its end has not been seen.
    pub(crate) fn runs(&self) -> bool {
        self.status.is_none()
    }

    /// Keeps what a report says; returns progress.
    pub(crate) fn take(&mut self, report: Report) -> Option<Progress> {
        match report {
            Report::Joining { .. } => self.presence = Presence::Joining,
            Report::Joined { .. } => self.presence = Presence::Joined,
            Report::Waiting { waiting, .. } => {
                if self
                    .waited
                    .as_ref()
                    .is_none_or(|first| first.step != waiting.step)
                {
                    self.waited = Some(waiting.clone());
                }
                self.waiting = Some(waiting);
            }
            Report::Moving { .. } => self.waiting = None,
            // A rank may make several worlds; the first failure led to the others.
            Report::Failed(failure) => {
                self.failure.get_or_insert(failure);
            }
            Report::Progress(progress) => return Some(progress),
        }
        None
    }

    /// Whether it reports failures, has ended badly, and may have said why in what has not been read.
    pub(crate) fn may_report(&self) -> bool {
        let failed = self.status.is_some_and(|status| !status.success());
        let reports = self.presence != Presence::Absent && self.failure.is_none();
        failed && reports && self.open_pipes > 0
    }

    fn facts(&self) -> RankFacts<'_> {
        let failed = self.status.filter(|status| !status.success());
        RankFacts {
            rank: self.rank,
            end: failed.map(failure::describe),
            killed: failed.is_some_and(|status| status.signal().is_some()),
            done: self.status.is_some_and(|status| status.success()),
            stopped: self.status.is_none() && process::is_stopped(self.child.id()),
            presence: self.presence,
            waiting: self.waiting.as_ref(),
            waited: self.waited.as_ref(),
            failure: self.failure.as_ref(),
        }
    }
}

/// The ranks to blame, by all reports together.
pub(crate) fn causes(running: &[Running], world: u32) -> Vec<String> {
    let facts: Vec<RankFacts<'_>> = running.iter().map(Running::facts).collect();
    cause::explain(&facts, world)
}

/// The rank that failed first, how, its last lines, those that failed then and those that still run.
pub(crate) fn first_failure(
    what: &str,
    running: &[Running],
    index: usize,
    status: ExitStatus,
) -> Vec<String> {
    let first = &running[index];
    let how = failure::describe(status);
    let mut lines = vec![format!(
        "{what} {} failed first: {how} ({})",
        first.rank, first.place
    )];
    if first.tail.is_empty() {
        lines.push("it printed nothing".to_owned());
    } else {
        lines.push("its last lines:".to_owned());
        lines.extend(
            first
                .tail
                .lines()
                .map(|line| format!("  [{}{}] {line}", &what[..1], first.rank)),
        );
    }
    let others = running
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index);
    let failed = others.filter_map(|(_, other)| {
        let status = other.status.filter(|status| !status.success())?;
        Some((other.rank, failure::describe(status)))
    });
    for (ranks, how) in text::grouped(failed) {
        let failed = text::numbers(what, ranks.into_iter());
        lines.push(format!("then {failed} failed: {how}"));
    }
    if running.iter().any(Running::runs) {
        lines.push(format!("stopping the others: {}", alive(what, running)));
    }
    lines
}

/// The ranks (or what they are) that still run.
pub(crate) fn alive(what: &str, running: &[Running]) -> String {
    let alive = running.iter().filter(|rank| rank.runs());
    text::numbers(what, alive.map(|rank| rank.rank))
}
