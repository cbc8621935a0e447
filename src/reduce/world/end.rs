//! Waiting for the work of a world, its end, and what is freed of a world that has failed.

use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::ascend::{Comm, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::kernel::Culprit;
use crate::reduce::world::report::Trouble;
use crate::reduce::world::watch::Watch;
use crate::reduce::world::{Inner, World, lock};

const NEVER_CAME: &str = "what other ranks were to send never came";

impl World {
    /// Waits until what was enqueued through this world is done, at most `timeout`.
    ///
    /// A failure on the stream that it was given shows there, not here.
    pub(crate) fn drain(&self, timeout: Duration) -> Result<()> {
        self.check()?;
        let start = Instant::now();
        let stream = Stream::new(self.device())?;
        let noted = {
            let order = self.order_within(timeout)?;
            stream.wait(&order.last)?;
            self.inner.work.queued.noted()
        };
        self.synchronize(&stream, timeout.saturating_sub(start.elapsed()))?;
        noted.let_go();
        Ok(())
    }

    /// Waits until nothing that was enqueued runs any more, at most `timeout`; whether it failed does not matter. Calls of other
    /// threads wait meanwhile: what they enqueued would be taken for ended, too.
    pub(super) fn settle(&self, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        let stream = Stream::new(self.device())?;
        let order = self.order_within(timeout)?;
        stream.wait(&order.last)?;
        for stream in [
            &stream,
            &self.inner.work.kernel_stream,
            &self.inner.work.scalar_stream,
        ] {
            match stream.synchronize_timeout(timeout.saturating_sub(start.elapsed())) {
                Err(error) if error.kind() == ErrorKind::Timeout => {
                    return Err(self.watch().stall(start.elapsed()));
                }
                Err(error) => log::warn!("rank {}: {error}", self.own_in_root()),
                Ok(()) => {}
            }
        }
        self.inner.settled();
        Ok(())
    }

    /// Waits until what `stream` holds is done, at most `timeout`. The first failure of that work or of the world's own
    /// streams, or a timeout, poisons the world and frees what it holds, as far as the library allows.
    pub(crate) fn synchronize(&self, stream: &Stream, timeout: Duration) -> Result<()> {
        self.check()?;
        let inner = &self.inner;
        let start = Instant::now();
        let own = [&inner.work.kernel_stream, &inner.work.scalar_stream];
        let wait = || {
            inner.wait_for(stream, start, timeout)?;
            // The caller's stream waits for its work on the world's. What still runs there is somebody else's.
            own.into_iter().try_for_each(|own| match own.query()? {
                true => inner.wait_for(own, start, timeout),
                false => Ok(()),
            })
        };
        let result = match self.trace() {
            Some(trace) => trace.waiting("synchronize", wait),
            None => wait(),
        };
        let result =
            result.context(|| format!("rank {}: waiting for its work to end", self.own_in_root()));
        let (error, trouble) = match result {
            Err(error) => inner.cause(error),
            Ok(()) => match inner.missing()? {
                // An abort from another thread drops the work, so that streams end as if it were done.
                None => return self.check(),
                Some(missing) => missing,
            },
        };
        inner.work.watch.poison(&error, trouble);
        inner.release();
        // What the watchdog found says more than that work was dropped.
        Err(inner.work.watch.failure().unwrap_or(error))
    }

    /// Gives the world up: every later call fails; streams that hold work of it are aborted, those of the caller with
    /// all that is on them, and the communicators end, as far as the library can do that. Other ranks wait for this one
    /// until their timeouts. Local; waits for no other rank. Of a part of a world it gives up all.
    pub fn abort(&self) {
        let message = format!("rank {}: the world was aborted", self.own_in_root());
        self.fail(&Error::new(ErrorKind::Poisoned, message));
    }

    /// Lets the first task that fails stop all streams of this world's context, the caller's and every library's, for
    /// good: see [`Stream::stop_on_failure`]. Without it they go on, results that a failure touched are NaN, and
    /// the failure shows at the next wait for the caller's stream. A process that asked for this cannot join
    /// a new world on the device after a failure of a task. On A3 HCCL asks for it with its first operation (hcomm,
    /// hccl_communicator_host.cc:7529), unless `HCCL_OP_EXPANSION_MODE` is HOST.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the library has no choice.
    pub fn stop_on_failure(&self) -> Result<()> {
        match self.inner.work.kernel_stream.stop_on_failure()? {
            true => Ok(()),
            false => Err(Error::unsupported(
                "this library has no aclrtSetStreamFailureMode",
            )),
        }
    }

    /// What made this world fail first, if something did.
    pub fn failure(&self) -> Option<Error> {
        self.watch().failure()
    }

    /// The first failure, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        self.inner.work.watch.check()
    }

    /// The health of the world.
    pub(in crate::reduce) fn watch(&self) -> &Watch {
        &self.inner.work.watch
    }

    /// As [`World::fail`] for `error`, which says that something of other ranks is gone; what to return in its place.
    pub(in crate::reduce) fn fail_for_others(&self, error: &Error) -> Error {
        // The code of a call would say that the call is to blame.
        let error = Error::new(error.kind(), error.to_string()).context("other ranks have left");
        self.inner.work.watch.poison(&error, Trouble::MissedOthers);
        self.inner.release();
        error
    }

    /// Makes every later call fail with `error` and frees what the world holds.
    pub(in crate::reduce) fn fail(&self, error: &Error) {
        self.inner.work.watch.poison(error, Trouble::Failed);
        self.inner.release();
    }
}

impl Inner {
    /// Waits for a stream. Whoever finds meanwhile that nothing will come aborts it, which ends the wait.
    fn wait_for(&self, stream: &Stream, start: Instant, timeout: Duration) -> Result<()> {
        self.work.waited.begin(stream);
        // Whoever failed before may have looked already what to abort.
        let waited = match self.work.watch.failure() {
            Some(found) => Err(found),
            None => self.await_stream(stream, start, timeout),
        };
        self.work.waited.note(stream);
        waited
    }

    fn await_stream(&self, stream: &Stream, start: Instant, timeout: Duration) -> Result<()> {
        if !self.work.kernels.chip().aborts_streams() || !stream.can_abort()? {
            self.await_end(stream, start, timeout)?;
        }
        // A wait whose limit is over is an incident for the runtime: it logs errors, asks the device without a limit what it runs,
        // and does that once in a process (CANN runtime, src/runtime/api/impl/api_impl.cc, StreamSynchronize and
        // GetStreamTimeoutSnapshotMsg). So none is made in pieces.
        let waited = stream.synchronize_timeout(timeout.saturating_sub(start.elapsed()));
        waited.map_err(|error| match self.work.watch.failure() {
            Some(found) => found,
            None if error.kind() == ErrorKind::Timeout => self.work.watch.stall(start.elapsed()),
            None => error,
        })
    }

    /// Asks again and again whether a stream that nobody can abort has ended.
    fn await_end(&self, stream: &Stream, start: Instant, timeout: Duration) -> Result<()> {
        let mut pause = Duration::from_micros(50);
        while !stream.query()? {
            if let Some(found) = self.work.watch.failure() {
                return Err(found);
            }
            if start.elapsed() >= timeout {
                return Err(self.work.watch.stall(start.elapsed()));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        Ok(())
    }

    /// What is behind an error that a wait has found: a guard fails the caller's stream for failures elsewhere.
    fn cause(&self, error: Error) -> (Error, Trouble) {
        // A stall has lasted long enough; other streams may still be on their way to their failure.
        const MOMENT: Duration = Duration::from_millis(500);
        if error.kind() == ErrorKind::Timeout {
            return (error, Trouble::Stalled);
        }
        let streams = [
            ("kernels", &self.work.kernel_stream),
            ("exchange of scalars", &self.work.scalar_stream),
        ];
        let own = streams.into_iter().find_map(|(name, stream)| {
            let failed = stream.synchronize_timeout(MOMENT).err()?;
            let failed = failed.context(format!("rank {}: {name}", self.work.watch.rank()));
            (failed.kind() != ErrorKind::Timeout).then_some(failed)
        });
        if let Some(own) = own {
            return (own, Trouble::Failed);
        }
        match self.work.reason.read() {
            Ok(Some(Culprit::Others)) => (error.context(NEVER_CAME), Trouble::MissedOthers),
            _ => (error, Trouble::Failed),
        }
    }

    /// What a guard found missing that let its stream go on.
    fn missing(&self) -> Result<Option<(Error, Trouble)>> {
        if !self.work.reason.is_needed() {
            return Ok(None);
        }
        let (what, trouble) = match self.work.reason.read()? {
            None => return Ok(None),
            Some(Culprit::Own) => ("work of its kernels never ran", Trouble::Failed),
            Some(Culprit::Others) => (NEVER_CAME, Trouble::MissedOthers),
        };
        let message = format!("rank {}: {what}", self.work.watch.rank());
        Ok(Some((Error::new(ErrorKind::Acl, message), trouble)))
    }

    /// Gives up what a failed world holds: its work, wherever it is queued, and its communicators. Also frees threads
    /// that wait in a call of HCCL.
    ///
    /// A stream of the caller's that waits for an event of an aborted one would wait for ever, so it is aborted too.
    pub(super) fn release(&self) {
        if let Some(origin) = &self.origin {
            return origin.root.inner.release();
        }
        let work = &self.work;
        // Then the caller's streams hold nothing of this world, whatever else they hold.
        if let Ok(order) = work.order.try_lock()
            && order.has_ended()
        {
            self.settled();
        }
        let own = [&work.kernel_stream, &work.scalar_stream].map(Stream::abort);
        let others = work.queued.abort().into_iter().chain(work.waited.abort());
        let mut remains = Vec::new();
        for aborted in own.into_iter().chain(others) {
            match aborted {
                Ok(of_stream) => remains.extend(of_stream),
                Err(error) => log::warn!("rank {}: {error}", self.rank),
            }
        }
        let (comms, remains) = (self.all_comms(), Arc::new(remains));
        comms.iter().for_each(|comm| comm.hold(&remains));
        for comm in comms {
            if let Err(error) = comm.abort() {
                log::info!("rank {}: not yet: {error}", self.rank);
            }
        }
    }

    /// All that was enqueued has ended.
    fn settled(&self) {
        if let Some(origin) = &self.origin {
            return origin.root.inner.settled();
        }
        self.work.queued.end();
        for comm in self.all_comms() {
            comm.settled();
        }
    }

    /// The communicators of this world and of its parts, sub-communicators first.
    fn all_comms(&self) -> Vec<Arc<Comm>> {
        let parts: Vec<Arc<Inner>> = lock(&self.parts)
            .live
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let parts = parts.iter().flat_map(|part| part.own_comms());
        parts.chain(self.own_comms()).collect()
    }

    fn own_comms(&self) -> Vec<Arc<Comm>> {
        let groups = lock(&self.groups);
        let groups = groups.values().cloned();
        groups.chain([Arc::clone(&self.comm)]).collect()
    }

    pub(super) fn stop_watchdog(&self) {
        if self.origin.is_some() {
            return;
        }
        self.work.watch.stop();
        let thread = lock(&self.watchdog).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there is a bug there; the world ends all the same.
            let _ = thread.join();
        }
    }

    /// Destroys the communicators, those of groups first.
    pub(super) fn end(mut self) -> Result<()> {
        let groups = std::mem::take(
            self.groups
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for comm in groups.into_values() {
            comm.abort()?;
        }
        self.comm.abort()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop_watchdog();
        // Another thread may be in a call of the world that this is a part of, for as long as other ranks like.
        let ended = || (self.work.order.try_lock()).is_ok_and(|order| order.has_ended());
        // Queued work reads it, here and on other ranks.
        if self.work.watch.failure().is_some() || !ended() {
            lock(&self.shared).keep_for_ever();
        }
    }
}
