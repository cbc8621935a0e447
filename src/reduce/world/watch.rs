//! The health of a world: its first failure, and a thread that turns a stall into one.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::ascend::{Device, Event, Stream};
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::world::report::{Failure, Report, Trouble, Waiting};
use crate::reduce::world::step_ends::StepEnds;

/// A stage of a reduction as others see it.
pub(in crate::reduce) struct WatchedStage {
    /// Bucket, round and operation.
    pub(in crate::reduce) operation: String,
    /// Ranks of the root that it exchanges data with.
    pub(in crate::reduce) peers: Vec<u32>,
    /// Bytes that this rank sends and receives in it.
    pub(in crate::reduce) bytes: u64,
    /// Which part of a reduction it is, if it is one.
    pub(in crate::reduce) part: Option<ReductionPart>,
    /// Recorded behind it.
    pub(in crate::reduce) done: Event,
}

/// A stage of a bucket.
pub(in crate::reduce) struct ReductionPart {
    pub(in crate::reduce) bucket: usize,
    /// Round and operation.
    pub(in crate::reduce) name: String,
    pub(in crate::reduce) phase: Phase,
}

/// What kind of work a stage of a reduction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Between the caller's tensors and fused buffers.
    Copies,
    /// Exchanges before vectors are combined.
    Exchange,
    /// Products of vectors and their sums.
    Gram,
    /// Exchanges of scalars, and what owners of tensors compute for others.
    Scalars,
    /// Weights and weighted sums, and the look for what is not finite.
    Combine,
    /// Results on their way to all ranks.
    Return,
}

impl Phase {
    /// As in files.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Copies => "copies",
            Phase::Exchange => "exchange",
            Phase::Gram => "gram",
            Phase::Scalars => "scalars",
            Phase::Combine => "combine",
            Phase::Return => "return",
        }
    }
}

/// A reduction whose stages were enqueued, or are being enqueued.
#[derive(Clone)]
struct Flight {
    step: u64,
    /// In the order in which they are issued; the same stages for all steps of a reducer.
    watched: Arc<[Arc<WatchedStage>]>,
    timeout: Duration,
    /// When it began to be enqueued, or the earliest before it whose place it took.
    begun: Instant,
    /// Whether all of them have been enqueued; before, their events are those of an earlier step.
    enqueued: bool,
}

/// Watched by one thread, changed by all that use the world.
pub(in crate::reduce) struct Watch {
    rank: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The first failure.
    failure: Option<Error>,
    /// The newest reduction of each reducer that may not have ended, by the address of its first stage.
    flights: Vec<Flight>,
    steps: u64,
    /// Events behind the steps of the caller's streams.
    ends: StepEnds<Event>,
    /// The position that is being enqueued: a call of the vendor's that has not returned yet.
    call: Option<(Arc<WatchedStage>, usize)>,
    over: bool,
}

/// Whether a recorded event has ended.
fn has_ended(event: &Event) -> bool {
    event.is_complete().unwrap_or(false)
}

/// What moves when a reduction does.
#[derive(PartialEq, Eq)]
struct Seen {
    finished: u64,
    call: Option<usize>,
    complete: usize,
}

impl Watch {
    pub(in crate::reduce) fn new(device: &Device, rank: u32) -> Result<Arc<Self>> {
        let state = State {
            ends: StepEnds::new(|| Event::new(device))?,
            ..State::default()
        };
        Ok(Arc::new(Watch {
            rank,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    /// The rank, of the root.
    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// The first failure, if there was one.
    pub(in crate::reduce) fn check(&self) -> Result<()> {
        match &self.state().failure {
            None => Ok(()),
            Some(first) => Err(Error::new(
                ErrorKind::Poisoned,
                format!("an earlier reduction failed, make a new world and reducer: {first}"),
            )),
        }
    }

    /// The first failure as it was.
    pub(super) fn failure(&self) -> Option<Error> {
        self.state().failure.clone()
    }

    /// Makes every later call fail with `error`, unless there was one before, and reports it. `true` if it is the first.
    pub(super) fn poison(&self, error: &Error, trouble: Trouble) -> bool {
        let waiting = self.waiting();
        let step = {
            let mut state = self.state();
            if state.failure.is_some() {
                return false;
            }
            state.failure = Some(error.clone());
            state.steps
        };
        Report::Failed(Failure::of((self.rank, step), error, trouble, waiting)).send();
        self.changed.notify_all();
        true
    }

    /// A reduction begins to be enqueued; the number of its step.
    pub(super) fn begin(&self, watched: &Arc<[Arc<WatchedStage>]>, timeout: Duration) -> u64 {
        let mut state = self.state();
        state.steps += 1;
        let idle = state.flights.is_empty();
        let first = watched.first().map(Arc::as_ptr);
        let is_older = |flight: &Flight| flight.watched.first().map(Arc::as_ptr) == first;
        // Whoever enqueues one step after the other does not put off the limit of the first.
        let older = state.flights.iter().find(|flight| is_older(flight));
        let begun = older.map_or_else(Instant::now, |older| older.begun);
        state.flights.retain(|flight| !is_older(flight));
        let flight = Flight {
            step: state.steps,
            watched: Arc::clone(watched),
            timeout,
            begun,
            enqueued: false,
        };
        state.flights.push(flight);
        if idle {
            self.changed.notify_all();
        }
        state.steps
    }

    /// The reduction that began last has been enqueued; `stream` waits for all of it.
    pub(super) fn end(&self, stream: &Stream) -> Result<()> {
        let (step, event) = {
            let mut state = self.state();
            if let Some(flight) = state.flights.last_mut() {
                flight.enqueued = true;
            }
            let step = state.steps;
            (step, state.ends.event_for(step))
        };
        // Not under the lock: the vendor's call waits while the stream's queue is full, and the watch must see that.
        if let Some(event) = event {
            stream.record(&event)?;
            self.state().ends.recorded(step, event);
        }
        Ok(())
    }

    /// Runs `call`, a call of the vendor's for the stage at `position` that may wait for other ranks. One that fails is what
    /// this rank waits for, as far as others learn.
    pub(in crate::reduce) fn call<T>(
        &self,
        watched: &Arc<WatchedStage>,
        position: usize,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.state().call = Some((Arc::clone(watched), position));
        let called = call();
        if called.is_ok() {
            self.state().call = None;
        }
        called
    }

    /// The first operation that has not ended.
    pub(in crate::reduce) fn waiting(&self) -> Option<Waiting> {
        let (flights, call, oldest) = {
            let mut state = self.state();
            state.ends.finished(has_ended);
            let oldest = state.ends.oldest();
            (state.flights.clone(), state.call.clone(), oldest)
        };
        let pending = flights.iter().find_map(|flight| {
            let incomplete = |watched: &Arc<WatchedStage>| !has_ended(&watched.done);
            let position = flight.watched.iter().position(incomplete)?;
            Some((flight, position, Arc::clone(&flight.watched[position])))
        });
        if let (Some((flight, ..)), Some(oldest)) = (&pending, oldest)
            && oldest < flight.step
        {
            return Some(somewhere(oldest, flight));
        }
        let pending = pending.map(|(flight, position, watched)| (flight.step, position, watched));
        let calling = call.map(|(watched, position)| {
            let step = flights.last().map_or(0, |flight| flight.step);
            (step, position, watched)
        });
        // What was enqueued before the call ends before it.
        let (step, position, watched) = pending.or(calling)?;
        Some(Waiting {
            step,
            position,
            operation: watched.operation.clone(),
            peers: watched.peers.clone(),
            bytes: watched.bytes,
        })
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Watches until [`Watch::stop`] or the first failure; `true` for a stall.
    pub(in crate::reduce) fn run(&self) -> bool {
        let mut last: Option<(Seen, Instant)> = None;
        let mut reported = false;
        loop {
            let (flights, seen) = {
                let mut state = self.state();
                while state.flights.is_empty() && !state.over && state.failure.is_none() {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                if state.over || state.failure.is_some() {
                    return false;
                }
                let seen = Seen {
                    finished: state.ends.finished(has_ended),
                    call: state.call.as_ref().map(|(_, position)| *position),
                    complete: 0,
                };
                (state.flights.clone(), seen)
            };
            let limits = flights.iter().map(|flight| (flight.begun, flight.timeout));
            let limits: Vec<(Instant, Duration)> = limits.collect();
            let shortest = limits.iter().map(|&(_, timeout)| timeout).min();
            let shortest = shortest.unwrap_or_default();
            match self.look(flights, seen) {
                None => {
                    if std::mem::take(&mut reported) {
                        Report::Moving { rank: self.rank }.send();
                    }
                    last = None;
                }
                Some(seen) => match &last {
                    Some((before, since)) if *before == seen => {
                        // Of each reduction only what it was there for counts.
                        let waited = |begun: &Instant| begun.max(since).elapsed();
                        if limits.iter().any(|(begun, limit)| waited(begun) >= *limit) {
                            return self.poison(&self.stall(since.elapsed()), Trouble::Stalled);
                        }
                        let mut limits = limits.iter();
                        if !reported && limits.any(|(begun, limit)| waited(begun) >= *limit / 4) {
                            reported = self.report_waiting();
                        }
                    }
                    _ => {
                        if std::mem::take(&mut reported) {
                            Report::Moving { rank: self.rank }.send();
                        }
                        last = Some((seen, Instant::now()));
                    }
                },
            }
            self.sleep((shortest / 8).clamp(Duration::from_millis(2), Duration::from_secs(1)));
        }
    }

    /// Tells what this rank waits for, before it gives up: whoever says nothing does not wait.
    fn report_waiting(&self) -> bool {
        let waiting = self.waiting();
        if let Some(waiting) = &waiting {
            let (rank, waiting) = (self.rank, waiting.clone());
            Report::Waiting { rank, waiting }.send();
        }
        waiting.is_some()
    }

    /// Counts what has ended and forgets reductions that have; `None` if nothing is under way.
    fn look(&self, flights: Vec<Flight>, mut seen: Seen) -> Option<Seen> {
        let mut moving = seen.call.is_some();
        for flight in flights {
            let complete = |watched: &&Arc<WatchedStage>| has_ended(&watched.done);
            let count = flight.watched.iter().filter(complete).count();
            seen.complete += count;
            if flight.enqueued && count == flight.watched.len() {
                let mut state = self.state();
                state.flights.retain(|other| other.step != flight.step);
            } else {
                moving = true;
            }
        }
        moving.then_some(seen)
    }

    /// The error for a stall, as it is now.
    pub(super) fn stall(&self, elapsed: Duration) -> Error {
        let seconds = elapsed.as_secs_f64();
        let what = match self.waiting() {
            None => "the caller's own work on the stream has not ended".to_owned(),
            Some(waiting) => describe(&waiting),
        };
        Error::new(
            ErrorKind::Timeout,
            format!(
                "rank {}: nothing moved for {seconds:.3} s: {what}",
                self.rank
            ),
        )
    }

    fn sleep(&self, time: Duration) {
        let go_on = |state: &mut State| !state.over && state.failure.is_none();
        drop(self.changed.wait_timeout_while(self.state(), time, go_on));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment or one call of a collection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step whose events already stand for a later one: all that can be said is whom the reducer meets at all.
fn somewhere(step: u64, later: &Flight) -> Waiting {
    let peers: BTreeSet<u32> = later.watched.iter().flat_map(|m| m.peers.clone()).collect();
    Waiting {
        step,
        position: 0,
        operation: format!(
            "some operation (steps up to {} are queued behind it)",
            later.step
        ),
        peers: peers.into_iter().collect(),
        bytes: later.watched.iter().map(|watched| watched.bytes).sum(),
    }
}

/// "step 3, bucket 0, round 1, 4096 bytes with ranks [5]".
fn describe(waiting: &Waiting) -> String {
    let Waiting {
        step,
        operation,
        peers,
        bytes,
        ..
    } = waiting;
    if peers.is_empty() {
        return format!("step {step}, {operation} of this rank");
    }
    format!("step {step}, {operation}, {bytes} bytes with ranks {peers:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_takes_the_place_of_the_last_one_with_its_stages() {
        let device = Device::open(0).unwrap();
        let watch = Watch::new(&device, 0).unwrap();
        let stage = || {
            Arc::new(WatchedStage {
                operation: "barrier".to_owned(),
                peers: vec![1],
                bytes: 0,
                part: None,
                done: Event::new(&device).unwrap(),
            })
        };
        let (one, other) = (stage(), stage());
        for _ in 0..3 {
            watch.begin(&[Arc::clone(&one)].into(), Duration::from_secs(1));
        }
        assert_eq!(watch.state().flights.len(), 1);
        watch.begin(&[other, one].into(), Duration::from_secs(1));
        assert_eq!(watch.state().flights.len(), 2);
    }
}
