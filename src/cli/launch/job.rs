//! Runs the ranks of one job and sees to it that none outlives it.
//!
//! Starts processes, passes their lines on, notices the first that fails, and stops the rest. Must not know what
//! the processes are or what their lines mean, but for reports of failures: an [`Observer`] does.

use std::hash::{BuildHasher, Hasher};
use std::io::ErrorKind::{BrokenPipe, TimedOut};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::cli::io;
use crate::cli::launch::cause::{CAUSE, Presence};
use crate::cli::launch::children::{self, Input};
use crate::cli::launch::event::{Event, Pipe, each};
use crate::cli::launch::reaper::{self, Reaper};
use crate::cli::launch::running::{Running, alive, causes, first_failure};
use crate::cli::launch::{failure, signals};
use crate::cli::text;
use crate::error::Result;
use crate::reduce::{Progress, Report};
use crate::sys::process;

/// Events that may wait for the main thread before the ranks' pipes have to; each may have a block of lines.
const QUEUE: usize = 128;
/// Wait for last lines while a process that left its group keeps the pipe open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long killed processes may take to end before they are given up.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// How long is read, at least, what a process prints that a rank has left behind.
const LAST_LINES: Duration = Duration::from_secs(10);
/// A rank that has ended causes fewer events than this: those of its pipes with their last blocks, and of its end.
const LAST_EVENTS: usize = 16;

/// One process to start.
pub(crate) struct Rank {
    pub(crate) rank: u32,
    /// Where it runs, for messages: server and device.
    pub(crate) place: String,
    pub(crate) command: Command,
    pub(crate) input: Input,
}

/// Limits of a job.
pub(crate) struct Limits {
    /// The whole job may take this long, all attempts together.
    pub(crate) timeout: Option<Duration>,
    /// When the first attempt began.
    pub(crate) begin: Instant,
    /// Time of a rank between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// How long ranks that report failures may take to end by themselves once one has failed.
    pub(crate) linger: Duration,
    /// How long processes may take to end by themselves once their input has ended, before they get a signal.
    pub(crate) after_input: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            timeout: None,
            begin: Instant::now(),
            grace: Duration::from_secs(5),
            linger: Duration::from_secs(2),
            after_input: Duration::ZERO,
        }
    }
}

/// Receiver of a job's news. All calls come from the thread that called [`run`].
pub(crate) trait Observer {
    /// What its processes are in messages.
    fn what(&self) -> &'static str {
        "rank"
    }
    /// A line of a rank, without its line break.
    fn line(&mut self, rank: u32, pipe: Pipe, line: &[u8]) -> std::io::Result<()>;
    /// Whole lines of a rank, each with its line break. Who waits for a reader of them gives up, as
    /// [`TimedOut`](std::io::ErrorKind::TimedOut), where `give_up` says so of the time that nobody has read.
    fn lines(
        &mut self,
        rank: u32,
        pipe: Pipe,
        lines: &[u8],
        _give_up: &dyn Fn(Duration) -> bool,
    ) -> std::io::Result<()> {
        each(lines).try_for_each(|line| self.line(rank, pipe, line))
    }
    /// The same lines for a log, also where nobody reads the output any more.
    fn keep(&mut self, _rank: u32, _lines: &[u8]) {}
    /// A sentence of the job for the user.
    fn notice(&mut self, text: &str);
    /// Why the job does not succeed, in a sentence.
    fn cause(&mut self, _text: &str) {}
    /// A rank has ended, however.
    fn ended(&mut self, _rank: u32) {}
    /// A rank reports how far it has come.
    fn progress(&mut self, _progress: &Progress) {}
}

/// A rank's line with its prefix and line break.
pub(crate) fn prefixed(rank: u32, line: &[u8]) -> Vec<u8> {
    let mut whole = format!("[r{rank}] ").into_bytes();
    whole.extend_from_slice(line);
    whole.push(b'\n');
    whole
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Every rank ended with 0.
    Success,
    /// The first failing rank ended like this.
    Failed(ExitStatus),
    /// The program could not be started.
    NotStarted(std::io::ErrorKind),
    /// The timeout came first.
    TimedOut,
    /// A signal told this process to end.
    Interrupted(i32),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl End {
    /// The exit code that tells a shell how the job ended.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            End::Success | End::OutputClosed => 0,
            End::Failed(status) => failure::exit_code(status),
            End::NotStarted(std::io::ErrorKind::NotFound) => 127,
            End::NotStarted(_) => 126,
            End::TimedOut => 124,
            End::Interrupted(signal) => failure::signal_code(signal),
        }
    }
}

/// Starts `ranks`, some or all of a world of `world` ranks, waits for them and returns how the job ended. When it returns, no
/// process that a rank has started is left. Call it from a thread that lives as long as the job: ranks die with the thread that starts them.
///
/// # Errors
/// If this machine refuses threads or signals; never for what a rank does.
pub(crate) fn run(
    ranks: Vec<Rank>,
    world: u32,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<End> {
    let (sender, events) = sync_channel(QUEUE);
    signals::watch(&sender)?;
    let deadline = limits
        .timeout
        .and_then(|limit| limits.begin.checked_add(limit));
    let id = job_name();
    let reaper = Reaper::start(&id)
        .inspect_err(|error| log::warn!("ranks would outlive a killed launcher: {error}"));
    let mut job = Job {
        world,
        running: Vec::with_capacity(ranks.len()),
        events,
        observer,
        stop: None,
        output: Ok(()),
        output_limit: deadline,
        failed: Arc::default(),
        reaper: reaper.ok(),
        id,
    };
    job.start(ranks, &sender);
    drop(sender);
    job.watch(deadline);
    let end = job.conclude(limits);
    job.stop(end, limits);
    job.reap();
    match job.output {
        Err(error) if !matches!(error.kind(), BrokenPipe | TimedOut) => {
            Err(io::failed("cannot write the output", error))
        }
        _ => Ok(end),
    }
}

/// How a job ended after which something was `written`. That this failed must not hide a failure of the job.
///
/// # Errors
/// That of the job, or of writing if the job succeeded.
pub(crate) fn with_written(end: Result<End>, written: Result<()>) -> Result<End> {
    match (&end, written) {
        (_, Ok(())) => end,
        (Ok(success), Err(error)) if success.exit_code() == 0 => Err(error),
        (_, Err(error)) => {
            io::notice(&error.to_string());
            end
        }
    }
}

/// A name that no other job has.
pub(crate) fn job_name() -> String {
    // The standard library seeds this from the system's source of randomness.
    let hash = || std::hash::RandomState::new().build_hasher().finish();
    format!("{:016x}{:08x}", hash(), std::process::id())
}

/// Why the job does not go on.
enum Stop {
    /// The first failing rank, by its index.
    Failed(usize, ExitStatus),
    End(End),
}

struct Job<'a> {
    /// How many ranks there are with those of other launchers.
    world: u32,
    running: Vec<Running>,
    events: Receiver<Event>,
    observer: &'a mut dyn Observer,
    stop: Option<Stop>,
    output: std::io::Result<()>,
    /// Until when the job waits for a reader of its output.
    output_limit: Option<Instant>,
    /// Whether a rank has ended badly, also while its end waits among the events.
    failed: Arc<AtomicBool>,
    reaper: Option<Reaper>,
    /// Value of [`reaper::MARK`] in its processes.
    id: String,
}

impl Job<'_> {
    fn start(&mut self, ranks: Vec<Rank>, sender: &SyncSender<Event>) {
        for mut rank in ranks {
            self.look_at_signals();
            if self.output_limit.is_some_and(|at| Instant::now() >= at) {
                self.decide(Stop::End(End::TimedOut));
            }
            if self.stop.is_some() {
                return;
            }
            let index = self.running.len();
            rank.command.env(reaper::MARK, &self.id);
            match children::spawn(&mut rank.command, rank.input, index, sender, &self.failed) {
                Ok(child) => {
                    // A job goes on without a reaper.
                    self.reaper = self.reaper.take().and_then(|mut reaper| {
                        reaper.watch(child.id()).ok()?;
                        Some(reaper)
                    });
                    self.running
                        .push(Running::new(rank.rank, rank.place, child));
                }
                Err(error) => {
                    let program = rank.command.get_program().to_string_lossy();
                    let (what, number) = (self.observer.what(), rank.rank);
                    let text = format!("{what} {number}: cannot start {program}: {error}");
                    self.observer.notice(&text);
                    self.stop = Some(Stop::End(End::NotStarted(error.kind())));
                    return;
                }
            }
        }
    }

    /// Handles events until all ranks have ended or there is a reason to stop.
    fn watch(&mut self, deadline: Option<Instant>) {
        while self.stop.is_none() && self.running.iter().any(Running::runs) {
            if !self.step(deadline) {
                self.stop = Some(Stop::End(End::TimedOut));
            }
        }
    }

    /// Handles one event; `false` if the deadline came first.
    fn step(&mut self, deadline: Option<Instant>) -> bool {
        // Without a deadline, there is still nothing to wait for but events.
        let wait = deadline.map_or(Duration::from_secs(3600), |at| {
            at.saturating_duration_since(Instant::now())
        });
        match self.events.recv_timeout(wait) {
            Ok(event) => self.handle(event),
            Err(RecvTimeoutError::Timeout) => return deadline.is_none(),
            // The listener for signals holds a sender for ever.
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        self.look_at_signals();
        // A stream of events must not hide the deadline.
        deadline.is_none_or(|at| Instant::now() < at)
    }

    fn look_at_signals(&mut self) {
        if let Some(signal) = signals::take() {
            self.decide(Stop::End(End::Interrupted(signal)));
        }
    }

    fn handle(&mut self, event: Event) {
        let of = match &event {
            Event::Lines(index, ..) | Event::Closed(index) | Event::Ended(index, _) => Some(*index),
            Event::Signal => None,
        };
        // Of a process that was ended at once, as no thread could follow it.
        if of.is_some_and(|index| index >= self.running.len()) {
            return;
        }
        match event {
            Event::Lines(index, Pipe::Err, lines) => {
                let mut printed = Vec::with_capacity(lines.len());
                for line in each(&lines) {
                    match Report::parse(line) {
                        None => printed.extend([line, b"\n"].concat()),
                        Some(report) => {
                            if let Some(progress) = self.running[index].take(report) {
                                self.observer.progress(&progress);
                            }
                        }
                    }
                }
                self.pass_on(index, Pipe::Err, &printed);
            }
            Event::Lines(index, Pipe::Out, lines) => self.pass_on(index, Pipe::Out, &lines),
            Event::Closed(index) => self.running[index].open_pipes -= 1,
            Event::Ended(index, status) => {
                self.running[index].status = Some(status);
                self.observer.ended(self.running[index].rank);
                if !status.success() {
                    self.decide(Stop::Failed(index, status));
                }
            }
            Event::Signal => {} // it woke this thread
        }
    }

    fn pass_on(&mut self, index: usize, pipe: Pipe, lines: &[u8]) {
        let running = &mut self.running[index];
        running.tail.push(lines);
        self.observer.keep(running.rank, lines);
        if self.output.is_ok() {
            let (limit, failed) = (self.output_limit, &self.failed);
            let give_up = |unread| {
                let over = signals::came() || limit.is_some_and(|at| Instant::now() >= at);
                over || (unread >= io::PATIENCE && failed.load(Ordering::SeqCst))
            };
            self.output = self.observer.lines(running.rank, pipe, lines, &give_up);
            match &self.output {
                Ok(()) => {}
                Err(error) if error.kind() == TimedOut => {
                    self.look_at_signals();
                    if limit.is_some_and(|at| Instant::now() >= at) {
                        self.decide(Stop::End(End::TimedOut));
                    }
                    self.observer
                        .notice("nobody reads the output: the rest of it is lost");
                }
                Err(_) => self.decide(Stop::End(End::OutputClosed)),
            }
        }
    }

    /// The first reason stands.
    fn decide(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }

    /// Tells the user why the job ends, if it is not by success.
    fn conclude(&mut self, limits: &Limits) -> End {
        match self.stop {
            None => End::Success,
            Some(Stop::Failed(index, status)) => {
                // Ranks that report failures find out and end by themselves.
                let reporting = |r: &Running| r.presence != Presence::Absent && r.runs();
                // Of some the end is seen before their last lines are read.
                let _ = self.drain(index)
                    && self.wait_while(limits.linger, reporting)
                    && self.wait_while(limits.linger, Running::may_report);
                let lines = first_failure(self.observer.what(), &self.running, index, status);
                self.explain(&lines[0]);
                self.notices(lines);
                End::Failed(status)
            }
            Some(Stop::End(end)) => {
                match end {
                    End::TimedOut => {
                        let seconds = limits.timeout.unwrap_or_default().as_secs_f64();
                        let alive = alive(self.observer.what(), &self.running);
                        let text = format!("timeout after {seconds} s, still running: {alive}");
                        self.observer.notice(&text);
                        self.explain(&text);
                    }
                    End::Interrupted(signal) => {
                        let name = failure::signal_name(signal);
                        let what = self.observer.what();
                        self.observer
                            .notice(&format!("{name}: stopping all {what}s"));
                    }
                    _ => {}
                }
                end
            }
        }
    }

    /// Says which ranks are to blame, by the reports of all; without reports that is `otherwise`.
    fn explain(&mut self, otherwise: &str) {
        let lines = causes(&self.running, self.world);
        let cause = lines.first().and_then(|line| line.strip_prefix(CAUSE));
        self.observer.cause(cause.unwrap_or(otherwise));
        self.notices(lines);
    }

    fn notices(&mut self, lines: Vec<String>) {
        for line in lines {
            self.observer.notice(&line);
        }
    }

    /// Waits a moment for the last lines of a rank that has failed; `false` if a signal came first.
    fn drain(&mut self, index: usize) -> bool {
        // What it left behind is of no use without it, and holds its pipes open.
        let _ = process::signal_group(self.running[index].child.id(), libc::SIGKILL);
        let rank = self.running[index].rank;
        self.wait_while(DRAIN, |r| r.rank == rank && r.open_pipes > 0)
    }

    /// Handles events as long as `waits` holds for a rank, and no longer than `limit`; `false` if a signal came first.
    fn wait_while(&mut self, limit: Duration, waits: impl Fn(&Running) -> bool) -> bool {
        let stop = self.stop.take();
        let deadline = Instant::now().checked_add(limit);
        while self.running.iter().any(&waits) && self.step(deadline) && !self.interrupted() {
            self.stop = None;
        }
        let interrupted = self.interrupted();
        self.stop = stop;
        !interrupted
    }

    /// Ends what still runs: the end of input, the signal that ended the job (else SIGTERM), grace, SIGKILL.
    fn stop(&mut self, end: End, limits: &Limits) {
        self.stop = None;
        // A second signal means now.
        let patient = self.end_input(limits.after_input);
        let signal = match end {
            End::Interrupted(signal) => signal,
            _ => libc::SIGTERM,
        };
        self.signal_alive(signal);
        // A stopped process would not see the signal before it goes on.
        self.signal_alive(libc::SIGCONT);
        if patient {
            self.wait_while(limits.grace, Running::runs);
        }
        self.signal_alive(libc::SIGKILL);
        self.stop = Some(Stop::End(end));
        let deadline = Instant::now() + AFTER_KILL;
        while self.running.iter().any(Running::runs) {
            if !self.step(Some(deadline)) {
                let alive = alive(self.observer.what(), &self.running);
                self.observer
                    .notice(&format!("cannot be killed, left behind: {alive}"));
                return;
            }
        }
    }

    /// Ends the input of all, and gives those that heed it the time `limit` to end; `false` if a signal came first.
    fn end_input(&mut self, limit: Duration) -> bool {
        for running in &mut self.running {
            drop(running.child.stdin.take());
        }
        if limit.is_zero() {
            return true;
        }
        let patient = self.wait_while(limit, Running::runs);
        if self.running.iter().any(Running::runs) {
            let alive = alive(self.observer.what(), &self.running);
            let text = format!("not waited for any longer, and may leave processes: {alive}");
            self.observer.notice(&text);
        }
        patient
    }

    fn interrupted(&self) -> bool {
        matches!(self.stop, Some(Stop::End(End::Interrupted(_))))
    }

    fn signal_alive(&mut self, signal: i32) {
        for running in self.running.iter().filter(|r| r.runs()) {
            if let Err(error) = process::signal_group(running.child.id(), signal) {
                let (what, number) = (self.observer.what(), running.rank);
                let name = failure::signal_name(signal);
                self.observer
                    .notice(&format!("cannot send {name} to {what} {number}: {error}"));
            }
        }
    }

    /// Passes on what the ranks have printed. However slowly it is read from us, no line of theirs is lost; but a process that was left
    /// behind and cannot be found may print for ever.
    fn take_last_lines(&mut self) {
        let deadline = Instant::now() + LAST_LINES;
        // What the queue and the pipes of the ranks may still hold.
        let theirs = QUEUE + LAST_EVENTS * self.running.len();
        let mut taken = 0;
        while self.running.iter().any(|r| r.open_pipes > 0) && !self.interrupted() {
            if taken >= theirs && Instant::now() >= deadline {
                let what = self.observer.what();
                let open = self.running.iter().filter(|r| r.open_pipes > 0);
                let ranks = text::numbers(what, open.map(|r| r.rank));
                let text = format!("what {ranks} left behind still prints: not read any more");
                self.observer.notice(&text);
                return;
            }
            // Silence ends the wait, too.
            if !self.step(Some(Instant::now() + DRAIN)) {
                return;
            }
            taken += 1;
        }
    }

    /// Kills what the ranks left behind, in their groups and elsewhere, passes on their last lines and frees their numbers.
    fn reap(&mut self) {
        for running in &self.running {
            // The zombie keeps the number of the group from being given to somebody else.
            let _ = process::signal_group(running.child.id(), libc::SIGKILL);
        }
        process::kill_started_with(reaper::MARK, &self.id);
        if let Some(reaper) = self.reaper.take() {
            reaper.dismiss();
        }
        self.stop = None;
        self.output_limit = None;
        self.take_last_lines();
        for running in &mut self.running {
            if running.status.is_some() {
                let _ = running.child.wait();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_does_not_hide_a_failure() {
        let failed = || Err(io::failed("what the test of a full disk writes", "no room"));
        let end = with_written(Ok(End::TimedOut), failed());
        assert_eq!(end.unwrap(), End::TimedOut);
        let end = with_written(Err(io::failed("the job", "no thread")), failed());
        assert!(end.unwrap_err().to_string().contains("no thread"));
        assert!(with_written(Ok(End::Success), failed()).is_err());
        assert!(with_written(Ok(End::Success), Ok(())).is_ok());
    }
}
