//! When steps and their stages ran, on the device and on the host, in files for whoever draws them.
//!
//! With [`TRACE_VARIABLE`] a rank writes steps, stages and waiting calls of the host, with [`STATISTICS_VARIABLE`] steps only;
//! without either nothing of this is made. Times of the device are those of events; an event on a stream that has nothing
//! else to do ties them to the clock of the host. A thread writes what has ended, a line of JSON each, so that a rank that is
//! killed loses what was under way and little more.

mod clock;
mod span;

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::ascend::{Device, Event, Stream};
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::world::streams::StreamRole;
use crate::reduce::world::trace::clock::{Anchor, HostClock, nanoseconds};
use crate::reduce::world::watch::WatchedStage;

pub use span::{StageId, TraceLine, TraceSpan, Track};

/// Names the folder for traces; a launcher that makes a timeline sets it for its ranks.
pub const TRACE_VARIABLE: &str = "ADASUM_TRACE_DIR";
/// Names the folder for records; a launcher that makes a report sets it for its ranks.
pub const STATISTICS_VARIABLE: &str = "ADASUM_STATISTICS_DIR";

/// What steps that reduce are called.
pub const REDUCTION: &str = "reduction";
/// What steps are called that collect results which were scattered.
pub const COLLECTION: &str = "collection";

/// Steps and stages whose end has not been seen, at most: each has two events.
const MOST: usize = 8192;
/// How often ends are looked for; the longer the less happens.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];
/// What has not ended after so long is written as begun.
const LONG: Duration = Duration::from_millis(50);
/// The clocks are compared again after so long: times between events are given as `float`.
const FRESH: Duration = Duration::from_secs(1);
/// How long an event on an empty stream may take: the first one, and later ones, without which it goes on.
const FIRST_LIMIT: Duration = Duration::from_secs(60);
const LATER_LIMIT: Duration = Duration::from_millis(200);

/// The tracks of the device.
const DEVICE: [Track; 4] = [Track::Step, Track::Payload, Track::Kernels, Track::Scalars];

/// Writes the spans of one world, as long as it lives.
pub(super) struct Trace {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A stage that is being enqueued: its begin is recorded.
pub(super) struct Begun(Option<Event>);

struct Shared {
    device: Device,
    clock: HostClock,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    outputs: Vec<Output>,
    /// The stream for [`Anchor`]s, which has no other work.
    stream: Stream,
    anchor: Arc<Anchor>,
    /// Events that nothing uses.
    free: Vec<Event>,
    /// The step that is being enqueued, unless it is left out.
    step: Option<OpenStep>,
    /// Number of the last step that was begun.
    number: u64,
    /// Of each of [`DEVICE`], in the order of its stream.
    pending: [VecDeque<Pending>; DEVICE.len()],
    /// Where each of them has come to.
    ends: [u64; DEVICE.len()],
    over: bool,
}

/// One file.
struct Output {
    path: PathBuf,
    file: File,
    /// Whether it has more than steps.
    all: bool,
}

struct OpenStep {
    name: String,
    world: String,
    call: u64,
    begin: Event,
    host: u64,
}

/// What was enqueued and has not been seen to end.
struct Pending {
    span: TraceSpan,
    begin: Event,
    end: Event,
    anchor: Arc<Anchor>,
    /// Whether it was written as begun.
    told: bool,
}

impl Trace {
    /// What the environment asks for, of the world of `size` ranks that `rank` is to join; `None` if nothing.
    ///
    /// # Errors
    /// If a file cannot be made; the text names the variable. If the device has no events with times.
    pub(super) fn from_env(device: &Device, rank: u32, size: u32) -> Result<Option<Trace>> {
        static WORLDS: AtomicU64 = AtomicU64::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let mut outputs = Vec::new();
        for (variable, name, all) in [
            (TRACE_VARIABLE, "trace", true),
            (STATISTICS_VARIABLE, "steps", false),
        ] {
            if let Some(folder) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
                let file = format!("{name}_{rank}.{}.{number}.jsonl", std::process::id());
                let opened = Output::open(Path::new(&folder).join(file), all);
                outputs.push(opened.map_err(|error| error.context(variable))?);
            }
        }
        if outputs.is_empty() {
            return Ok(None);
        }
        let clock = HostClock::new();
        let stream = Stream::new(device)?;
        let mut state = State {
            outputs,
            anchor: Arc::new(Anchor::new(device, &stream, &clock, FIRST_LIMIT)?),
            stream,
            free: Vec::new(),
            step: None,
            number: 0,
            pending: Default::default(),
            ends: Default::default(),
            over: false,
        };
        state.write(&[TraceLine::World { rank, size, number }]);
        let shared = Arc::new(Shared {
            device: device.clone(),
            clock,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("adasum-trace".to_owned())
            .spawn(move || of_thread.run())
            .map_err(|error| Error::new(ErrorKind::Io, format!("no thread for traces: {error}")))?;
        Ok(Some(Trace {
            shared,
            thread: Some(thread),
        }))
    }

    /// Step `number` begins to be enqueued on `stream`: call `call` of `world`.
    pub(super) fn begin(
        &self,
        number: u64,
        name: &str,
        (world, call): (&str, u64),
        stream: &Stream,
    ) -> Result<()> {
        let shared = &self.shared;
        let host = shared.clock.now();
        let begin = {
            let mut state = shared.state();
            state.number = number;
            state.step = None;
            if state.pending.iter().map(VecDeque::len).sum::<usize>() >= MOST {
                state.write(&[TraceLine::LeftOut { step: number }]);
                return Ok(());
            }
            if state.anchor.age(shared.clock.now()) >= nanoseconds(FRESH)
                && let Ok(anchor) =
                    Anchor::new(&shared.device, &state.stream, &shared.clock, LATER_LIMIT)
            {
                // Streams are moved alike: what ended before stays before what begins now on any other.
                state.collect(shared.clock.now());
                let ended = state.ends.into_iter().max().unwrap_or(0);
                state.anchor = Arc::new(anchor.after(&state.anchor).not_before(ended));
            }
            state.event(&shared.device)?
        };
        stream.record(&begin)?;
        shared.state().step = Some(OpenStep {
            name: name.to_owned(),
            world: world.to_owned(),
            call,
            begin,
            host,
        });
        Ok(())
    }

    /// A stage is about to be enqueued on `stream`.
    pub(super) fn before(&self, stream: &Stream) -> Result<Begun> {
        let begin = {
            let mut state = self.shared.state();
            let wanted = state.step.is_some() && state.outputs.iter().any(|output| output.all);
            wanted
                .then(|| state.event(&self.shared.device))
                .transpose()?
        };
        if let Some(begin) = &begin {
            stream.record(begin)?;
        }
        Ok(Begun(begin))
    }

    /// That stage, `watched` at `position` of the step, has been enqueued.
    pub(super) fn after(
        &self,
        begun: Begun,
        watched: &WatchedStage,
        position: usize,
        role: StreamRole,
        stream: &Stream,
    ) -> Result<()> {
        let Some(begin) = begun.0 else {
            return Ok(());
        };
        let enqueued_ns = self.shared.clock.now();
        let end = self.shared.state().event(&self.shared.device)?;
        stream.record(&end)?;
        let mut state = self.shared.state();
        let Some(step) = &state.step else {
            return Ok(());
        };
        let part = watched.part.as_ref();
        let span = TraceSpan {
            track: match role {
                StreamRole::Payload => Track::Payload,
                StreamRole::Kernels => Track::Kernels,
                StreamRole::Scalars => Track::Scalars,
            },
            name: part.map_or_else(|| watched.operation.clone(), |part| part.name.clone()),
            bucket: part.map(|part| part.bucket),
            phase: part.map(|part| part.phase),
            enqueued_ns,
            peers: watched.peers.clone(),
            bytes: watched.bytes,
            id: Some(StageId {
                world: step.world.clone(),
                call: step.call,
                position,
            }),
            ..state.span(Track::Payload, "")
        };
        self.shared.push(&mut state, span, begin, end);
        Ok(())
    }

    /// The step that began last has been enqueued; `stream` waits for all of it.
    pub(super) fn end(&self, stream: &Stream) -> Result<()> {
        let shared = &self.shared;
        let Some((step, end)) = ({
            let mut state = shared.state();
            match state.step.take() {
                None => None,
                Some(step) => Some((step, state.event(&shared.device)?)),
            }
        }) else {
            return Ok(());
        };
        stream.record(&end)?;
        let mut state = shared.state();
        let enqueued = TraceSpan {
            start_ns: step.host,
            ns: Some(shared.clock.now().saturating_sub(step.host)),
            ..state.span(Track::Host, &format!("enqueue {}", step.name))
        };
        state.write(&[TraceLine::Span(enqueued)]);
        let span = state.span(Track::Step, &step.name);
        shared.push(&mut state, span, step.begin, end);
        Ok(())
    }

    /// Runs `wait`, in which the host waits for what it calls `name`, and writes what has ended then.
    pub(super) fn waiting<T>(&self, name: &str, wait: impl FnOnce() -> T) -> T {
        let start = self.shared.clock.now();
        let waited = wait();
        let mut state = self.shared.state();
        let span = TraceSpan {
            start_ns: start,
            ns: Some(self.shared.clock.now().saturating_sub(start)),
            ..state.span(Track::Host, name)
        };
        state.write(&[TraceLine::Span(span)]);
        state.collect(self.shared.clock.now());
        waited
    }
}

/// Writes what has ended and ends the thread.
impl Drop for Trace {
    fn drop(&mut self) {
        self.shared.state().over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there is a bug there; the world ends all the same.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let [shortest, longest] = PAUSES;
        let mut pause = shortest;
        let mut state = self.state();
        loop {
            while !state.over && state.pending.iter().all(VecDeque::is_empty) {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let moved = state.collect(self.clock.now());
            if state.over {
                return;
            }
            pause = match moved {
                true => shortest,
                false => (pause * 2).min(longest),
            };
            state = self
                .changed
                .wait_timeout_while(state, pause, |state| !state.over)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn push(&self, state: &mut State, span: TraceSpan, begin: Event, end: Event) {
        let idle = state.pending.iter().all(VecDeque::is_empty);
        let pending = Pending {
            begin,
            end,
            anchor: Arc::clone(&state.anchor),
            told: false,
            span,
        };
        if let Some(track) = DEVICE.iter().position(|&track| track == pending.span.track) {
            state.pending[track].push_back(pending);
        }
        if idle {
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whatever is in there is whole: each change is one call of a collection, or one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A span of the last step, with no time yet.
    fn span(&self, track: Track, name: &str) -> TraceSpan {
        TraceSpan {
            track,
            name: name.to_owned(),
            start_ns: 0,
            ns: None,
            enqueued_ns: 0,
            error_ns: 0,
            step: self.number,
            bucket: None,
            phase: None,
            peers: Vec::new(),
            bytes: 0,
            id: None,
        }
    }

    fn event(&mut self, device: &Device) -> Result<Event> {
        self.free.pop().map_or_else(|| Event::timed(device), Ok)
    }

    /// Writes what has ended, and what has gone on for long at `now`; whether something has ended.
    fn collect(&mut self, now: u64) -> bool {
        let mut lines = Vec::new();
        let mut moved = false;
        for (pending, before) in self.pending.iter_mut().zip(&mut self.ends) {
            while let Some(first) = pending.front_mut() {
                match first.end.is_complete() {
                    Ok(true) => {}
                    Ok(false) => {
                        lines.extend(first.begun(*before, now).map(TraceLine::Span));
                        break;
                    }
                    Err(_) => break,
                }
                let Some(ended) = pending.pop_front() else {
                    break;
                };
                moved = true;
                // An event of work that was dropped has no time.
                if let Some(span) = ended.times(*before, true) {
                    *before = span.start_ns + span.ns.unwrap_or(0);
                    lines.push(TraceLine::Span(span));
                }
                self.free.extend([ended.begin, ended.end]);
            }
        }
        self.write(&lines);
        moved
    }

    /// Appends lines to all files that want them, each in one call.
    fn write(&mut self, lines: &[TraceLine]) {
        self.outputs.retain_mut(|output| {
            let wanted = lines.iter().filter(|line| output.wants(line));
            let texts = wanted.filter_map(|line| serde_json::to_string(line).ok());
            let text: String = texts.map(|line| line + "\n").collect();
            let written = output.file.write_all(text.as_bytes());
            if let Err(error) = &written {
                let path = output.path.display();
                log::warn!("{path}: {error}: nothing more is written there");
            }
            written.is_ok()
        });
    }
}

impl Pending {
    /// The span with its times, begun where the one before on its stream, or later, has ended; `None` if the device has none.
    fn times(&self, before: u64, ended: bool) -> Option<TraceSpan> {
        let anchor = &self.anchor;
        let mut start = anchor.time_of(&self.begin)?;
        let end = match ended {
            false => None,
            true => Some(anchor.time_of(&self.end)?),
        };
        // Two anchors differ by their errors, but a stream does one thing after the other.
        if start < before && before - start <= 2 * anchor.error + 1000 {
            start = before;
        }
        Some(TraceSpan {
            start_ns: start,
            ns: end.map(|end| end.saturating_sub(start)),
            error_ns: anchor.error,
            ..self.span.clone()
        })
    }

    /// The span as begun, once, if that is long ago at `now`.
    fn begun(&mut self, before: u64, now: u64) -> Option<TraceSpan> {
        if self.told || !self.begin.is_complete().unwrap_or(false) {
            return None;
        }
        let span = self.times(before, false)?;
        self.told = now.saturating_sub(span.start_ns) >= nanoseconds(LONG);
        self.told.then_some(span)
    }
}

impl Output {
    fn open(path: PathBuf, all: bool) -> Result<Output> {
        let opened = File::options().create_new(true).append(true).open(&path);
        match opened {
            Ok(file) => Ok(Output { path, file, all }),
            Err(error) => {
                let message = format!("{}: {error}", path.display());
                Err(Error::new(ErrorKind::Io, message))
            }
        }
    }

    fn wants(&self, line: &TraceLine) -> bool {
        let of_steps = match line {
            TraceLine::World { .. } | TraceLine::LeftOut { .. } => true,
            TraceLine::Span(span) => span.track == Track::Step && span.ns.is_some(),
        };
        self.all || of_steps
    }
}
