//! Runs the ranks of one job and sees to it that none outlives it.
//!
//! Starts processes, passes their lines on, notices the first that fails, and stops the rest. Must not know what
//! the processes are or what their lines mean, but for reports of failures: an [`Observer`] does.

mod children;
mod signals;
mod telling;

use std::hash::{BuildHasher, Hasher};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::failure::{self, Tail};
use super::guard::{self, Guard};
use super::verdict::Presence;
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::{Failure, Progress, Report, Waiting};
use crate::sys::process;

/// Events that may wait for the main thread before the ranks' pipes have to.
const QUEUE: usize = 1024;
/// How long to wait for last lines while a process that left its group keeps the pipe open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long killed processes may take to end before they are given up.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// One process to start.
pub(crate) struct Rank {
    pub(crate) rank: u32,
    /// Where it runs, for messages: server and device.
    pub(crate) place: String,
    pub(crate) command: Command,
}

/// Limits of a job.
pub(crate) struct Limits {
    /// The whole job may take this long.
    pub(crate) timeout: Option<Duration>,
    /// What a rank is given between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// How long ranks that report failures may take to end by themselves once one has failed.
    pub(crate) linger: Duration,
}

/// Which stream of a rank a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Where the engine's news goes. All calls come from the thread that called [`run`].
pub(crate) trait Observer {
    /// A line of a rank, without its line break.
    fn line(&mut self, rank: u32, stream: Stream, line: &[u8]) -> std::io::Result<()>;
    /// A sentence of the engine for the user.
    fn notice(&mut self, text: &str);
    /// A rank has ended, however.
    fn ended(&mut self, _rank: u32) {}
    /// A rank tells how far it has come.
    fn progress(&mut self, _progress: &Progress) {}
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

/// Starts `ranks`, some or all of a world of `world` ranks, waits for them and returns how the job ended. When it returns, no process that a rank has started is
/// left. Call it from a thread that lives as long as the job: ranks die with the thread that starts them.
///
/// # Errors
/// If this machine refuses what the engine needs (threads, signals); never for what a rank does.
pub(crate) fn run(
    ranks: Vec<Rank>,
    world: u32,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<End> {
    let (sender, events) = sync_channel(QUEUE);
    process::keep_ended_children();
    signals::watch(&sender)?;
    let deadline = limits
        .timeout
        .and_then(|limit| Instant::now().checked_add(limit));
    let id = job_id();
    let guard = Guard::start(&id)
        .inspect_err(|error| log::warn!("no guard against a killed launcher: {error}"));
    let mut job = Job {
        world,
        running: Vec::with_capacity(ranks.len()),
        events,
        observer,
        verdict: None,
        output: Ok(()),
        guard: guard.ok(),
        id,
    };
    job.start(ranks, &sender);
    drop(sender);
    job.watch(deadline);
    let end = job.conclude(limits);
    job.stop(end, limits.grace);
    job.reap();
    match job.output {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::new(
            ErrorKind::Io,
            format!("cannot write the output: {error}"),
        )),
        _ => Ok(end),
    }
}

/// A name that no other job of this machine has.
fn job_id() -> String {
    // The standard library seeds this from the system's source of randomness.
    let hash = std::hash::RandomState::new().build_hasher().finish();
    format!("{}-{hash:016x}", std::process::id())
}

enum Event {
    Line(usize, Stream, Vec<u8>),
    /// A pipe of the rank has no writer any more.
    Closed(usize),
    Ended(usize, ExitStatus),
    Signal(i32),
}

/// Why the job does not go on.
enum Verdict {
    /// Index of the first failing rank.
    Failed(usize, ExitStatus),
    End(End),
}

struct Running {
    rank: u32,
    place: String,
    child: Child,
    open_pipes: u32,
    status: Option<ExitStatus>,
    tail: Tail,
    presence: Presence,
    /// What it said that it waits for.
    waiting: Option<Waiting>,
    /// The first of what it said so in its last step.
    waited: Option<Waiting>,
    /// Its first failure.
    failure: Option<Failure>,
}

impl Running {
    /// Takes in a report; progress is handed back.
    fn take(&mut self, report: Report) -> Option<Progress> {
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
}

struct Job<'a> {
    /// How many ranks there are with those of other launchers.
    world: u32,
    running: Vec<Running>,
    events: Receiver<Event>,
    observer: &'a mut dyn Observer,
    verdict: Option<Verdict>,
    output: std::io::Result<()>,
    guard: Option<Guard>,
    /// The mark of its processes.
    id: String,
}

impl Job<'_> {
    fn start(&mut self, ranks: Vec<Rank>, sender: &SyncSender<Event>) {
        for mut rank in ranks {
            let index = self.running.len();
            rank.command.env(guard::MARK, &self.id);
            match children::spawn(&mut rank.command, index, sender) {
                Ok(child) => {
                    // A guard that has died guards no more; the job does not depend on it.
                    self.guard = self.guard.take().and_then(|mut guard| {
                        guard.watch(child.id()).ok()?;
                        Some(guard)
                    });
                    self.running.push(Running {
                        rank: rank.rank,
                        place: rank.place,
                        child,
                        open_pipes: 2,
                        status: None,
                        tail: Tail::default(),
                        presence: Presence::default(),
                        waiting: None,
                        waited: None,
                        failure: None,
                    });
                }
                Err(error) => {
                    let program = rank.command.get_program().to_string_lossy();
                    let text = format!("rank {}: cannot start {program}: {error}", rank.rank);
                    self.observer.notice(&text);
                    self.verdict = Some(Verdict::End(End::NotStarted(error.kind())));
                    return;
                }
            }
        }
    }

    /// Handles events until all ranks have ended or there is a verdict.
    fn watch(&mut self, deadline: Option<Instant>) {
        while self.verdict.is_none() && self.running.iter().any(|r| r.status.is_none()) {
            if !self.step(deadline) {
                self.verdict = Some(Verdict::End(End::TimedOut));
            }
        }
    }

    /// Handles one event; `false` if the deadline came first.
    fn step(&mut self, deadline: Option<Instant>) -> bool {
        // Without a deadline, the engine still has nothing to wait for but events.
        let wait = deadline.map_or(Duration::from_secs(3600), |at| {
            at.saturating_duration_since(Instant::now())
        });
        match self.events.recv_timeout(wait) {
            Ok(event) => self.handle(event),
            Err(RecvTimeoutError::Timeout) => return deadline.is_none(),
            // The listener for signals holds a sender for ever.
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        // A stream of events must not hide the deadline.
        deadline.is_none_or(|at| Instant::now() < at)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Line(index, stream, line) => {
                let running = &mut self.running[index];
                if stream == Stream::Err
                    && let Some(report) = Report::parse(&line)
                {
                    if let Some(progress) = running.take(report) {
                        self.observer.progress(&progress);
                    }
                    return;
                }
                running.tail.push(&line);
                if self.output.is_ok() {
                    self.output = self.observer.line(running.rank, stream, &line);
                    if self.output.is_err() {
                        self.decide(Verdict::End(End::OutputClosed));
                    }
                }
            }
            Event::Closed(index) => self.running[index].open_pipes -= 1,
            Event::Ended(index, status) => {
                self.running[index].status = Some(status);
                self.observer.ended(self.running[index].rank);
                if !status.success() {
                    self.decide(Verdict::Failed(index, status));
                }
            }
            Event::Signal(signal) => self.decide(Verdict::End(End::Interrupted(signal))),
        }
    }

    /// The first verdict stands.
    fn decide(&mut self, verdict: Verdict) {
        if self.verdict.is_none() {
            self.verdict = Some(verdict);
        }
    }

    /// Tells the user why the job ends, if it is not by success.
    fn conclude(&mut self, limits: &Limits) -> End {
        match self.verdict {
            None => End::Success,
            Some(Verdict::Failed(index, status)) => {
                self.drain(index);
                self.linger(limits.linger);
                self.report_graph();
                self.report_first(index, status);
                End::Failed(status)
            }
            Some(Verdict::End(end)) => {
                match end {
                    End::TimedOut => {
                        let seconds = limits.timeout.unwrap_or_default().as_secs_f64();
                        let alive = self.alive();
                        let text = format!("timeout after {seconds} s, still running: {alive}");
                        self.observer.notice(&text);
                        self.report_graph();
                    }
                    End::Interrupted(signal) => {
                        let name = failure::signal_name(signal);
                        self.observer.notice(&format!("{name}: stopping all ranks"));
                    }
                    _ => {}
                }
                end
            }
        }
    }

    /// Waits a moment for the last lines of a rank that has failed.
    fn drain(&mut self, index: usize) {
        // What it left behind is of no use without it, and holds its pipes open.
        let _ = process::signal_group(self.running[index].child.id(), libc::SIGKILL);
        let deadline = Instant::now() + DRAIN;
        while self.running[index].open_pipes > 0 && self.step(Some(deadline)) {}
    }

    /// Gives ranks that report failures the time to find out and to end.
    fn linger(&mut self, limit: Duration) {
        let verdict = self.verdict.take();
        let deadline = Instant::now() + limit;
        let reporting = |r: &Running| r.presence != Presence::Absent && r.status.is_none();
        while self.running.iter().any(reporting) {
            if !self.step(Some(deadline)) || self.interrupted() {
                break;
            }
            self.verdict = None;
        }
        self.verdict = verdict;
    }

    /// Ends what still runs: the signal that ended the job (else SIGTERM), grace, SIGKILL.
    fn stop(&mut self, end: End, grace: Duration) {
        let signal = match end {
            End::Interrupted(signal) => signal,
            _ => libc::SIGTERM,
        };
        self.signal_alive(signal);
        // A stopped process would not see the signal before it goes on.
        self.signal_alive(libc::SIGCONT);
        // A second signal means now.
        self.verdict = None;
        self.wait_until(Instant::now() + grace);
        self.signal_alive(libc::SIGKILL);
        self.verdict = Some(Verdict::End(end));
        let deadline = Instant::now() + AFTER_KILL;
        while self.running.iter().any(|r| r.status.is_none()) {
            if !self.step(Some(deadline)) {
                let text = format!("cannot be killed, left behind: {}", self.alive());
                self.observer.notice(&text);
                return;
            }
        }
    }

    fn wait_until(&mut self, deadline: Instant) {
        while self.running.iter().any(|r| r.status.is_none()) {
            if !self.step(Some(deadline)) || self.interrupted() {
                return;
            }
            self.verdict = None;
        }
    }

    fn interrupted(&self) -> bool {
        matches!(self.verdict, Some(Verdict::End(End::Interrupted(_))))
    }

    fn signal_alive(&mut self, signal: i32) {
        for running in self.running.iter().filter(|r| r.status.is_none()) {
            if let Err(error) = process::signal_group(running.child.id(), signal) {
                let rank = running.rank;
                let name = failure::signal_name(signal);
                self.observer
                    .notice(&format!("cannot send {name} to rank {rank}: {error}"));
            }
        }
    }

    /// Kills what the ranks left behind, in their groups and elsewhere, passes on their last lines and frees their numbers.
    fn reap(&mut self) {
        for running in &self.running {
            // The zombie keeps the number of the group from being given to somebody else.
            let _ = process::signal_group(running.child.id(), libc::SIGKILL);
        }
        process::kill_started_with(guard::MARK, &self.id);
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        self.verdict = None;
        while self.running.iter().any(|r| r.open_pipes > 0) && !self.interrupted() {
            // However slowly the lines are read from us, none is lost; only silence ends the wait.
            if !self.step(Some(Instant::now() + DRAIN)) {
                break;
            }
        }
        for running in &mut self.running {
            if running.status.is_some() {
                let _ = running.child.wait();
            }
        }
    }
}
