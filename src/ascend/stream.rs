//! Queues of work on a device.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Debug;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::buffer::Span;
use super::check::{self, check};
use super::device::Device;
use super::event::Event;
use super::handle::Handle;
use super::host::HostBuffer;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::Backend;
use crate::sys::acl::{ACL_STOP_ON_FAILURE, aclrtMemcpyKind, aclrtStream, aclrtStreamStatus};

/// Anything that queued work may still use.
pub(super) trait Keep: Debug + Send + Sync {}
impl<T: Debug + Send + Sync> Keep for T {}

/// What the queued work uses, by address, with the position of the last work that does: the same thing is kept once however often it is
/// used.
type Kept = HashMap<usize, (u64, Arc<dyn Keep>)>;

/// What the work used that [`Stream::abort`] has dropped.
///
/// An operation of HCCL on AI CPUs (A3) does not end with its stream: it runs on streams of HCCL until `HcclCommDestroy` (hcomm,
/// hccl_communicator_host.cc:7960). So the communicators of that work [hold](super::Comm::hold) this.
#[derive(Debug)]
#[must_use = "operations of HCCL may still use it"]
pub struct Remains(
    #[expect(dead_code, reason = "it is only dropped")] HashMap<usize, Arc<dyn Keep>>,
);

/// A queue of work on a device: what is enqueued runs in order, while the host goes on.
///
/// Memory (unless it is borrowed), events and kernels that queued work uses are kept alive until the stream is next
/// synchronised. Wraps `aclrtCreateStream` and `aclrtDestroyStream`; a stream that is dropped with work in it is ended by
/// `aclrtDestroyStreamForce`, and what that work used is never freed.
///
/// A stream goes on behind a task that has failed, unless its context is in [stop mode](Stream::stop_on_failure), which HCCL
/// sets on A3. The failure is told once, by the first call that waits for the stream.
#[derive(Debug)]
pub struct Stream(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    device: Device,
    stream: Handle<aclrtStream>,
    /// Whether it is destroyed with this object.
    owned: bool,
    kept: Mutex<Kept>,
    progress: Arc<Progress>,
}

/// How much work a stream was given through its object, and how much of that is known to have ended.
#[derive(Debug, Default)]
pub(super) struct Progress {
    enqueued: AtomicU64,
    ended: AtomicU64,
}

impl Progress {
    pub(super) fn enqueued(&self) -> u64 {
        self.enqueued.load(Ordering::Acquire)
    }

    pub(super) fn has_ended(&self, position: u64) -> bool {
        self.ended.load(Ordering::Acquire) >= position
    }

    fn end(&self, position: u64) {
        self.ended.fetch_max(position, Ordering::AcqRel);
    }
}

impl Stream {
    /// A new, empty stream.
    ///
    /// # Errors
    /// If the device has no more of them.
    pub fn new(device: &Device) -> Result<Stream> {
        let backend = device.ready()?;
        let mut stream = aclrtStream(null_mut());
        // SAFETY: writes one handle to a live local.
        unsafe { check!(backend.acl.aclrtCreateStream(&mut stream)) }?;
        Ok(Stream::of(device, stream, true))
    }

    /// A stream that somebody else made and destroys, for example a framework.
    ///
    /// What queued work uses is kept until the stream is synchronised through this object, or until this object is
    /// dropped when the stream has no work in it.
    ///
    /// # Safety
    /// `stream` must be a live `aclrtStream` of the context of `device` and stay so until this object is dropped.
    pub unsafe fn borrow(device: &Device, stream: *mut c_void) -> Stream {
        Stream::of(device, aclrtStream(stream.cast()), false)
    }

    fn of(device: &Device, stream: aclrtStream, owned: bool) -> Stream {
        Stream(Arc::new(Inner {
            device: device.clone(),
            stream: Handle(stream),
            owned,
            kept: Mutex::default(),
            progress: Arc::default(),
        }))
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Waits for all work that is in the stream now. Wraps `aclrtSynchronizeStream`.
    ///
    /// # Errors
    /// If a task failed since the last wait.
    pub fn synchronize(&self) -> Result<()> {
        self.wait_with(|backend, stream| {
            // SAFETY: the stream lives as long as `self`.
            unsafe { check!(backend.acl.aclrtSynchronizeStream(stream)) }
        })
    }

    /// As [`Stream::synchronize`], but waits no longer than `timeout`; zero only looks. Wraps
    /// `aclrtSynchronizeStreamWithTimeout`.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if work is left then; it goes on.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        // The runtime refuses a limit of 0 ms, whatever its header says. Of a complete stream the shortest one asks for
        // the failure that a query does not tell.
        if timeout.is_zero() && !self.query()? {
            return Err(Error::new(ErrorKind::Timeout, "the stream has work left"));
        }
        let milliseconds = milliseconds(timeout);
        self.wait_with(|backend, stream| {
            // SAFETY: the stream lives as long as `self`.
            unsafe {
                check!(
                    backend
                        .acl
                        .aclrtSynchronizeStreamWithTimeout(stream, milliseconds)
                )
            }
        })
    }

    /// Lets go of what is kept for work that was there when the wait began, if the wait succeeds: all of that is done.
    fn wait_with(&self, wait: impl FnOnce(&Backend, aclrtStream) -> Result<()>) -> Result<()> {
        let backend = self.0.device.ready()?;
        let position = self.0.progress.enqueued();
        wait(&backend, self.raw())?;
        self.let_go(position);
        Ok(())
    }

    /// Takes note that all work up to this position has ended.
    pub(super) fn let_go(&self, position: u64) {
        self.0.progress.end(position);
        let ended = |_: &usize, (last, _): &mut (u64, Arc<dyn Keep>)| *last <= position;
        let done: Kept = self.0.kept().extract_if(ended).collect();
        // Not before the lock is free: memory is freed in it.
        drop(done);
    }

    /// Lets go of what the stream keeps if all work is done, without a wait. Nobody may enqueue meanwhile.
    pub fn release_if_done(&self) {
        if matches!(self.query(), Ok(true)) {
            let done = std::mem::take(&mut *self.0.kept());
            drop(done);
        }
    }

    /// Whether all work has ended; that some of it failed, only a call that waits tells. Wraps `aclrtStreamQuery`.
    ///
    /// # Errors
    /// If the context has stopped for a failure.
    pub fn query(&self) -> Result<bool> {
        self.0.query()
    }

    /// Makes `event` stand for the work that is in the stream now. Wraps `aclrtRecordEvent`.
    ///
    /// # Errors
    /// If the event is another device's or the call fails.
    pub fn record(&self, event: &Event) -> Result<()> {
        self.device().require_same(event.device(), "the event")?;
        self.enqueue([event.shared() as Arc<dyn Keep>], |backend, stream| {
            // SAFETY: both handles live; the stream keeps the event while it may use it.
            unsafe { check!(backend.acl.aclrtRecordEvent(event.raw(), stream)) }
        })
    }

    /// Makes the work that is enqueued next wait for what `event` stands for now. Wraps `aclrtStreamWaitEvent`.
    ///
    /// # Errors
    /// If the event is another device's or the call fails.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.device().require_same(event.device(), "the event")?;
        self.enqueue([event.shared() as Arc<dyn Keep>], |backend, stream| {
            // SAFETY: both handles live; the stream keeps the event while it may use it.
            unsafe { check!(backend.acl.aclrtStreamWaitEvent(stream, event.raw())) }
        })
    }

    /// Copies `src` to `dst` within the device, or between it and memory of another one that was
    /// [imported](Span::import) for it. Wraps `aclrtMemcpyAsync`.
    ///
    /// # Errors
    /// If the lengths differ, a span is another device's, or the call fails.
    pub fn copy(&self, dst: &Span, src: &Span) -> Result<()> {
        if dst.len() != src.len() {
            return Err(Error::invalid(format!(
                "{} bytes cannot be copied to a span of {}",
                src.len(),
                dst.len()
            )));
        }
        self.require_spans([dst, src])?;
        if dst.is_empty() {
            return Ok(());
        }
        let len = dst.len();
        let (to, from) = (dst.pointer(), src.pointer());
        // Never a kind that the library guesses: it cannot for imported memory.
        let kind = aclrtMemcpyKind::ACL_MEMCPY_DEVICE_TO_DEVICE;
        self.enqueue(
            [dst, src].into_iter().filter_map(keep),
            |backend, stream| {
                // SAFETY: both spans have `len` bytes and are kept until the stream is synchronised.
                unsafe {
                    check!(
                        backend
                            .acl
                            .aclrtMemcpyAsync(to, len, from, len, kind, stream)
                    )
                }
            },
        )
    }

    /// Copies all of `src` to `dst`. Wraps `aclrtMemcpyAsync`. Until the stream has come past the copy, `src` must not
    /// be written.
    ///
    /// # Errors
    /// If the lengths differ, `dst` is another device's, or the call fails.
    pub fn upload(&self, dst: &Span, src: &HostBuffer) -> Result<()> {
        if dst.len() != src.len() {
            return Err(Error::invalid(format!(
                "{} bytes cannot be copied to a span of {}",
                src.len(),
                dst.len()
            )));
        }
        self.require_spans([dst])?;
        if dst.is_empty() {
            return Ok(());
        }
        let len = dst.len();
        let (to, from) = (dst.pointer(), src.pointer());
        let kind = aclrtMemcpyKind::ACL_MEMCPY_HOST_TO_DEVICE;
        let used = keep(dst).into_iter().chain([src.shared()]);
        self.enqueue(used, |backend, stream| {
            // SAFETY: both sides have `len` bytes and are kept until the stream is synchronised.
            unsafe {
                check!(
                    backend
                        .acl
                        .aclrtMemcpyAsync(to, len, from, len, kind, stream)
                )
            }
        })
    }

    /// Keeps `spans`, unless they are borrowed, alive until the stream is next synchronised: for work of other streams that this
    /// one waits for.
    pub fn keep(&self, spans: &[Span]) {
        // Tensors of one buffer follow each other.
        let alike = spans.chunk_by(Span::shares_allocation);
        self.0.keep(alike.filter_map(|alike| keep(&alike[0])));
    }

    /// Puts the whole context of this stream into stop mode, for good: behind the first task that fails on any of its
    /// streams, all of them stop, every call that enqueues or waits returns that failure, and nothing but a recovery of
    /// the device, which ends all work of the process there, lets it go on. `false` where the library has no choice. Wraps
    /// `aclrtSetStreamFailureMode`.
    ///
    /// # Errors
    /// If the call fails.
    pub fn stop_on_failure(&self) -> Result<bool> {
        let backend = self.0.device.ready()?;
        let Ok(set) = backend.acl.aclrtSetStreamFailureMode else {
            return Ok(false);
        };
        let mode = u64::from(ACL_STOP_ON_FAILURE);
        // SAFETY: the stream lives as long as `self`.
        let code = unsafe { set(self.raw(), mode) };
        check::acl(&backend, "aclrtSetStreamFailureMode", code)?;
        Ok(true)
    }

    /// Whether the library has [`Stream::abort`]; that of the device is not asked.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn can_abort(&self) -> Result<bool> {
        Ok(self.0.device.ready()?.acl.aclrtStreamAbort.is_ok())
    }

    /// Ends the task that runs and drops those behind it; the stream can be used again. What they used comes back. `None`
    /// where the library or the device (Ascend 910A) cannot do that. Wraps `aclrtStreamAbort`.
    ///
    /// An event whose record was dropped never completes: streams that wait for it have to be aborted as well. Whoever
    /// waits for the stream meanwhile gets the error `ACL_ERROR_RT_STREAM_ABORT`.
    ///
    /// # Errors
    /// If the call fails.
    pub fn abort(&self) -> Result<Option<Remains>> {
        let backend = self.0.device.ready()?;
        let Ok(abort) = backend.acl.aclrtStreamAbort else {
            return Ok(None);
        };
        let position = self.0.progress.enqueued();
        let all = || -> HashMap<usize, Arc<dyn Keep>> {
            let kept = self.0.kept();
            let entry = |(&address, (_, used)): (&usize, &(u64, Arc<dyn Keep>))| {
                (address, Arc::clone(used))
            };
            kept.iter().map(entry).collect()
        };
        // Also before the call: a wait beside it lets go of what it takes for ended.
        let mut dropped = all();
        // SAFETY: the stream lives as long as `self`.
        match check::acl(&backend, "aclrtStreamAbort", unsafe { abort(self.raw()) }) {
            Err(error) if check::is_unsupported(&error) => return Ok(None),
            called => called?,
        }
        dropped.extend(all());
        self.let_go(position);
        Ok(Some(Remains(dropped)))
    }

    /// Sets all bytes of `span` to zero. Wraps `aclrtMemsetAsync`.
    ///
    /// # Errors
    /// If the span is another device's or the call fails.
    pub fn zero(&self, span: &Span) -> Result<()> {
        self.fill(span, 0)
    }

    /// Sets all bytes of `span` to `byte`. Wraps `aclrtMemsetAsync`.
    ///
    /// # Errors
    /// If the span is another device's or the call fails.
    pub fn fill(&self, span: &Span, byte: u8) -> Result<()> {
        self.require_spans([span])?;
        if span.is_empty() {
            return Ok(());
        }
        let (address, len) = (span.pointer(), span.len());
        self.enqueue(keep(span), |backend, stream| {
            // SAFETY: the span has `len` bytes and is kept until the stream is synchronised.
            unsafe {
                check!(
                    backend
                        .acl
                        .aclrtMemsetAsync(address, len, byte.into(), len, stream)
                )
            }
        })
    }

    /// Runs `call`, which enqueues work that uses `used`, and keeps those until the stream is synchronised.
    pub(super) fn enqueue(
        &self,
        used: impl IntoIterator<Item = Arc<dyn Keep>>,
        call: impl FnOnce(&Backend, aclrtStream) -> Result<()>,
    ) -> Result<()> {
        let backend = self.0.device.ready()?;
        let called = call(&backend, self.raw());
        // Also after a failure: part of the work may be queued. And only now: a wait of another thread that began
        // before the call must neither let go of them nor take them for ended.
        self.0.keep(used);
        called
    }

    /// An error if a span is another device's.
    pub(super) fn require_spans<'a>(
        &self,
        spans: impl IntoIterator<Item = &'a Span>,
    ) -> Result<()> {
        let mut spans = spans.into_iter();
        spans.try_for_each(|span| self.device().require_same(span.device(), "a span"))
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.0.progress
    }

    /// Ends this object before the owner of a borrowed stream destroys it: first whoever has upgraded it (of a world that failed, say)
    /// is done with the stream. That has no limit: a stream that its owner destroys meanwhile would be aborted behind its end.
    pub(crate) fn give_back(self) {
        let mut inner = self.0;
        for pause in 1_u64.. {
            match Arc::try_unwrap(inner) {
                Ok(_) => return,
                Err(used) => inner = used,
            }
            std::thread::sleep(Duration::from_millis(1));
            if pause == 5000 {
                log::warn!("a stream is given back when another thread's abort of it ends");
            }
        }
    }

    /// The stream for those who must not keep it alive.
    pub(super) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    pub(super) fn upgrade(stream: &Weak<Inner>) -> Option<Stream> {
        stream.upgrade().map(Stream)
    }

    pub(super) fn raw(&self) -> aclrtStream {
        self.0.stream.0
    }
}

/// What a stream keeps of a span. Of borrowed memory nothing: its owner keeps it, and whoever borrows it anew for each step, as C
/// callers do, would have a stream that nobody synchronises through its object keep more and more.
pub(super) fn keep(span: &Span) -> Option<Arc<dyn Keep>> {
    let used = || span.allocation() as Arc<dyn Keep>;
    (!span.is_borrowed()).then(used)
}

/// At least 1, as no limit is 0, and rounded up; forever is out of reach on purpose.
pub(super) fn milliseconds(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_nanos().div_ceil(1_000_000).max(1)).unwrap_or(i32::MAX)
}

impl Inner {
    fn query(&self) -> Result<bool> {
        let backend = self.device.ready()?;
        let position = self.progress.enqueued();
        let mut status = aclrtStreamStatus::ACL_STREAM_STATUS_NOT_READY;
        // SAFETY: the stream lives as long as `self`; one status is written to a live local.
        unsafe { check!(backend.acl.aclrtStreamQuery(self.stream.0, &mut status)) }?;
        let complete = status == aclrtStreamStatus::ACL_STREAM_STATUS_COMPLETE;
        if complete {
            self.progress.end(position);
        }
        Ok(complete)
    }

    /// Counts one more work, and keeps what it uses.
    fn keep(&self, used: impl IntoIterator<Item = Arc<dyn Keep>>) {
        let mut kept = self.kept();
        let position = self.progress.enqueued.fetch_add(1, Ordering::AcqRel) + 1;
        let entry = |used: Arc<dyn Keep>| (Arc::as_ptr(&used).addr(), (position, used));
        kept.extend(used.into_iter().map(entry));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic cannot leave the map half changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn destroy(&self, complete: bool) -> Result<()> {
        let backend = self.device.ready()?;
        if complete {
            // SAFETY: created by this object and used nowhere else.
            unsafe { check!(backend.acl.aclrtDestroyStream(self.stream.0)) }
        } else {
            // SAFETY: as above; what its work may still use is never freed.
            unsafe { check!(backend.acl.aclrtDestroyStreamForce(self.stream.0)) }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let complete = self.query().unwrap_or_else(|error| {
            log::warn!("stream on {:?}: {error}", self.device);
            false
        });
        if !complete && !self.kept().is_empty() {
            log::warn!("a stream on {:?} is dropped with work in it", self.device);
            let kept = std::mem::take(&mut *self.kept());
            Box::leak(Box::new(kept));
        }
        if !self.owned {
            return;
        }
        match self.destroy(complete) {
            Ok(()) => self.progress.end(u64::MAX),
            Err(error) => log::warn!("stream on {:?}: {error}", self.device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_round_up_and_are_neither_zero_nor_forever() {
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::from_micros(1)), 1);
        assert_eq!(milliseconds(Duration::from_millis(1500)), 1500);
        assert_eq!(milliseconds(Duration::MAX), i32::MAX);
    }
}
