//! What the user is told when a job ends badly: the cause, who failed first and how, who still ran.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::super::failure;
use super::super::verdict::{self, Witness};
use super::{Job, Running};
use crate::sys::process;

impl Running {
    fn witness(&self) -> Witness<'_> {
        let failed = self.status.filter(|status| !status.success());
        Witness {
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

impl Job<'_> {
    /// Who is to blame, by all reports together.
    pub(super) fn report_graph(&mut self) {
        let witnesses: Vec<Witness<'_>> = self.running.iter().map(Running::witness).collect();
        for line in verdict::judge(&witnesses, self.world) {
            self.observer.notice(&line);
        }
    }

    pub(super) fn report_first(&mut self, index: usize, status: ExitStatus) {
        let first = &self.running[index];
        let how = failure::describe(status);
        let mut lines = vec![format!(
            "rank {} failed first: {how} ({})",
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
                    .map(|line| format!("  [r{}] {line}", first.rank)),
            );
        }
        let others = self
            .running
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index);
        let failed: Vec<String> = others
            .filter_map(|(_, running)| {
                let status = running.status.filter(|status| !status.success())?;
                let how = failure::describe(status);
                Some(format!("then rank {} failed: {how}", running.rank))
            })
            .collect();
        lines.extend(failed);
        if self.running.iter().any(|running| running.status.is_none()) {
            lines.push(format!("stopping the others: {}", self.alive()));
        }
        for line in lines {
            self.observer.notice(&line);
        }
    }

    pub(super) fn alive(&self) -> String {
        let alive = self.running.iter().filter(|r| r.status.is_none());
        failure::ranks(alive.map(|running| running.rank))
    }
}
