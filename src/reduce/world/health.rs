//! Waiting for the work of a world, and what becomes of a world that has failed.

use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::super::watch::Watch;
use super::{Inner, World, lock};
use crate::ascend::{Comm, Stream};
use crate::error::{Context, Error, ErrorKind, Result};

impl World {
    /// Waits until what was enqueued through this world is done, at most `timeout`.
    ///
    /// A failure on the stream that it was given shows there, not here.
    pub(crate) fn drain(&self, timeout: Duration) -> Result<()> {
        self.check()?;
        let stream = Stream::new(self.device())?;
        stream.wait(&lock(&self.inner.work.order).last)?;
        self.synchronize(&stream, timeout)
    }

    /// Waits until nothing that was enqueued runs any more, at most `timeout`; whether it failed does not matter.
    pub(super) fn settle(&self, timeout: Duration) -> Result<()> {
        let stream = Stream::new(self.device())?;
        stream.wait(&lock(&self.inner.work.order).last)?;
        for stream in [
            &stream,
            &self.inner.work.kernel_stream,
            &self.inner.work.scalar_stream,
        ] {
            match stream.synchronize_timeout(timeout) {
                Err(error) if error.kind() == ErrorKind::Timeout => return Err(error),
                Err(error) => log::warn!("rank {}: {error}", self.rank()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Waits until what `stream` holds is done, at most `timeout`. The first failure of that work or of the world's own
    /// streams, or a timeout, poisons the world and frees what it holds, as far as the library allows.
    pub(crate) fn synchronize(&self, stream: &Stream, timeout: Duration) -> Result<()> {
        self.check()?;
        let inner = &self.inner;
        let start = Instant::now();
        let streams = [stream, &inner.work.kernel_stream, &inner.work.scalar_stream];
        let result = streams.into_iter().try_for_each(|stream| {
            inner
                .wait_for(stream, start, timeout)
                .context(|| format!("rank {}: waiting for its work to end", inner.rank))
        });
        let Err(error) = result else {
            return Ok(());
        };
        let error = inner.cause(&error).unwrap_or(error);
        inner
            .work
            .watch
            .poison(&error, error.kind() == ErrorKind::Timeout);
        inner.release();
        if !matches!(stream.query(), Ok(true) | Err(_)) {
            // What it holds waits for ranks that never come; a stream that has failed keeps saying so.
            if let Err(error) = stream.abort() {
                log::warn!("rank {}: {error}", inner.rank);
            }
            inner.end_comms();
        }
        // What the watchdog found says more than that work was dropped.
        Err(inner.work.watch.failure().unwrap_or(error))
    }

    /// Gives the world up: every later call fails, work that is queued is dropped where the library can do that, and the
    /// communicators end as far as no work uses them. Other ranks wait for this one until their timeouts. Local; waits
    /// for no other rank. Of a part of a world it gives up all.
    pub fn abort(&self) {
        let message = format!("rank {}: the world was aborted", self.rank());
        self.fail(&Error::new(ErrorKind::Poisoned, message));
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

    /// Makes every later call fail with `error` and frees what the world holds.
    pub(in crate::reduce) fn fail(&self, error: &Error) {
        self.inner.work.watch.poison(error, false);
        self.inner.release();
    }
}

impl Inner {
    /// Waits for a stream, in pieces: the watchdog may find earlier that nothing will come.
    fn wait_for(&self, stream: &Stream, start: Instant, timeout: Duration) -> Result<()> {
        const PIECE: Duration = Duration::from_millis(20);
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            match stream.synchronize_timeout(left.min(PIECE)) {
                Err(error) if error.kind() == ErrorKind::Timeout => {}
                other => return other,
            }
            if let Some(found) = self.work.watch.failure() {
                return Err(found);
            }
            if left.is_zero() {
                return Err(self.work.watch.stall(start.elapsed()));
            }
        }
    }

    /// A failure of the world's own streams: where the caller's stream was stopped for it, this says why.
    fn cause(&self, error: &Error) -> Option<Error> {
        // A failed stream drops what it holds, which takes a moment; a stall has lasted long enough.
        let patience = match error.kind() {
            ErrorKind::Timeout => Duration::ZERO,
            _ => Duration::from_millis(500),
        };
        let streams = [
            ("kernels", &self.work.kernel_stream),
            ("exchange of scalars", &self.work.scalar_stream),
        ];
        streams.into_iter().find_map(|(name, stream)| {
            let failed = stream.synchronize_timeout(patience).err()?;
            let failed = failed.context(format!("rank {}: {name}", self.rank));
            (failed.kind() != ErrorKind::Timeout).then_some(failed)
        })
    }

    /// Gives up what a failed world holds: work on its own streams, and communicators that no queued work uses. Also
    /// frees threads that wait in a call of HCCL.
    pub(super) fn release(&self) {
        if let Some(origin) = &self.origin {
            return origin.root.inner.release();
        }
        for stream in [&self.work.kernel_stream, &self.work.scalar_stream] {
            if let Err(error) = stream.abort() {
                log::warn!("rank {}: {error}", self.rank);
            }
        }
        self.end_comms();
    }

    fn end_comms(&self) {
        if let Some(origin) = &self.origin {
            return origin.root.inner.end_comms();
        }
        let parts: Vec<Arc<Inner>> = lock(&self.parts)
            .live
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for part in parts {
            part.end_own_comms();
        }
        self.end_own_comms();
    }

    fn end_own_comms(&self) {
        let groups: Vec<Arc<Comm>> = lock(&self.groups).values().cloned().collect();
        let groups = groups.iter().map(|comm| comm.abort());
        for ended in groups.chain([self.comm.abort()]) {
            if let Err(error) = ended {
                log::info!("rank {}: not yet: {error}", self.rank);
            }
        }
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
    }
}
