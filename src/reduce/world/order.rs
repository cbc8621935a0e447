//! The one order in which all work of a world is enqueued.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::ascend::{Event, Stream};
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::world::streams::{CallStreams, StreamRole};
use crate::reduce::world::trace::Trace;
use crate::reduce::world::watch::WatchedStage;
use crate::reduce::world::{World, lock};

/// Chains what is enqueued on different streams. Its lock is held while a call enqueues.
pub(super) struct Order {
    /// Recorded behind the last work that was enqueued.
    pub(super) last: Event,
    /// Recorded before work that several streams share.
    pub(super) start: Event,
    /// Whether a call failed half-way: `last` does not stand for what it left.
    pub(super) broken: bool,
}

impl Order {
    /// Whether all that was enqueued is known to have ended.
    pub(super) fn has_ended(&self) -> bool {
        !self.broken && matches!(self.last.is_complete(), Ok(true))
    }
}

impl World {
    /// An operation of all ranks, for those who watch.
    pub(in crate::reduce) fn watched(
        &self,
        operation: &str,
        bytes: u64,
    ) -> Result<Arc<WatchedStage>> {
        let others = (0..self.size()).filter(|&rank| rank != self.rank());
        Ok(Arc::new(WatchedStage {
            operation: operation.to_owned(),
            peers: others.map(|rank| self.rank_in_root(rank)).collect(),
            bytes,
            part: None,
            done: Event::new(self.device())?,
        }))
    }

    /// Lets `work` enqueue one operation on `stream`, behind all that went through this world before. A failure, or no
    /// end within `timeout`, poisons the world.
    pub(in crate::reduce) fn enqueue_watched(
        &self,
        watched: &Arc<WatchedStage>,
        timeout: Duration,
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<()> {
        self.in_order(stream, |_| {
            let stages = [Arc::clone(watched)].into();
            self.begin(&watched.operation, &stages, timeout, stream)?;
            let role = StreamRole::Payload;
            self.issue(watched, 0, role, stream, || work(stream))?;
            self.end(stream)
        })
    }

    /// What others call `name` begins to be enqueued on `stream`, and maybe on streams of the world: `stages`.
    pub(in crate::reduce) fn begin(
        &self,
        name: &str,
        stages: &Arc<[Arc<WatchedStage>]>,
        timeout: Duration,
        stream: &Stream,
    ) -> Result<()> {
        let step = self.watch().begin(stages, timeout);
        let Some(trace) = self.trace() else {
            return Ok(());
        };
        let call = self.inner.calls.fetch_add(1, Ordering::Relaxed);
        trace.begin(step, name, (self.comm().name(), call), stream)
    }

    /// Enqueues the stage at `position` by `work`, which may wait for other ranks, on `stream`, which has `role`.
    pub(in crate::reduce) fn issue(
        &self,
        watched: &Arc<WatchedStage>,
        position: usize,
        role: StreamRole,
        stream: &Stream,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let trace = self.trace();
        let begun = trace.map(|trace| trace.before(stream)).transpose()?;
        self.watch().call(watched, position, work)?;
        stream.record(&watched.done)?;
        match trace.zip(begun) {
            Some((trace, begun)) => trace.after(begun, watched, position, role, stream),
            None => Ok(()),
        }
    }

    /// What began last has been enqueued; `stream` waits for all of it.
    pub(in crate::reduce) fn end(&self, stream: &Stream) -> Result<()> {
        self.watch().end(stream)?;
        self.trace().map_or(Ok(()), |trace| trace.end(stream))
    }

    pub(super) fn trace(&self) -> Option<&Trace> {
        self.inner.work.trace.as_ref()
    }

    /// Lets `work` enqueue what waits for no other rank on `stream`, behind all that went through this world before. A
    /// failure poisons the world.
    pub(in crate::reduce) fn enqueue(
        &self,
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<()> {
        self.in_order(stream, |_| work(stream))
    }

    /// Lets `work` enqueue on the streams of the world and on `stream`, which must wait for all of it in the end; with
    /// `overlap` false on `stream` only. A failure poisons the world.
    pub(crate) fn enqueue_on(
        &self,
        stream: &Stream,
        overlap: bool,
        work: impl FnOnce(&CallStreams<'_>) -> Result<()>,
    ) -> Result<()> {
        if !overlap {
            return self.in_order(stream, |_| work(&CallStreams::one(stream)));
        }
        let streams = CallStreams {
            payload: stream,
            kernels: &self.inner.work.kernel_stream,
            scalars: &self.inner.work.scalar_stream,
        };
        self.in_order(stream, |order| {
            // Nobody else waits for these, and they would keep every buffer that a caller ever gave.
            streams.kernels.release_if_done();
            streams.scalars.release_if_done();
            stream.record(&order.start)?;
            streams.kernels.wait(&order.start)?;
            streams.scalars.wait(&order.start)?;
            work(&streams)
        })
    }

    /// The order of work, when no other thread enqueues any more.
    pub(super) fn order_within(&self, timeout: Duration) -> Result<MutexGuard<'_, Order>> {
        let start = Instant::now();
        loop {
            match self.inner.work.order.try_lock() {
                Ok(order) => return Ok(order),
                Err(TryLockError::Poisoned(order)) => return Ok(order.into_inner()),
                Err(TryLockError::WouldBlock) if start.elapsed() < timeout => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::new(
                        ErrorKind::Timeout,
                        format!(
                            "rank {}: another thread of this rank has not come back from a call that enqueues for {timeout:?}",
                            self.own_in_root()
                        ),
                    ));
                }
            }
        }
    }

    fn in_order(&self, stream: &Stream, work: impl FnOnce(&Order) -> Result<()>) -> Result<()> {
        let mut order = lock(&self.inner.work.order);
        self.check()?;
        let queued = &self.inner.work.queued;
        queued.begin(stream);
        let enqueued = stream
            .wait(&order.last)
            .and_then(|()| work(&order))
            .and_then(|()| stream.record(&order.last));
        queued.note(stream);
        enqueued.map_err(|error| {
            order.broken = true;
            self.fail(&error);
            // Where the watchdog has ended a call that waited, it knows why.
            self.inner.work.watch.failure().unwrap_or(error)
        })
    }
}
