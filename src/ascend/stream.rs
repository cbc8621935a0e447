//! Queues of work on a device.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Debug;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::buffer::Span;
use super::check::{self, check};
use super::device::Device;
use super::event::Event;
use super::handle::Handle;
use super::host::HostBuffer;
use crate::error::{Error, Result};
use crate::sys::Backend;
use crate::sys::acl::{ACL_STOP_ON_FAILURE, aclrtMemcpyKind, aclrtStream, aclrtStreamStatus};

/// Anything that queued work may still use.
pub(super) trait Keep: Debug + Send + Sync {}
impl<T: Debug + Send + Sync> Keep for T {}

/// What the queued work uses, by address: the same thing is kept once however often it is used.
type Kept = HashMap<usize, Arc<dyn Keep>>;

/// A queue of work on a device: what is enqueued runs in order, while the host goes on.
///
/// Memory, events and kernels that queued work uses are kept alive until the stream is next synchronised. Wraps
/// `aclrtCreateStream` and `aclrtDestroyStream`; a stream that is dropped with work in it is ended by
/// `aclrtDestroyStreamForce`, and what that work used is never freed.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    stream: Handle<aclrtStream>,
    /// Whether it is destroyed with this object.
    owned: bool,
    kept: Mutex<Kept>,
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
        Ok(Stream {
            device: device.clone(),
            stream: Handle(stream),
            owned: true,
            kept: Mutex::default(),
        })
    }

    /// A stream that somebody else made and destroys, for example a framework.
    ///
    /// What queued work uses is kept until the stream is synchronised through this object, or until this object is
    /// dropped when the stream has no work in it.
    ///
    /// # Safety
    /// `stream` must be a live `aclrtStream` of `device` and stay so until this object is dropped.
    pub unsafe fn borrow(device: &Device, stream: *mut c_void) -> Stream {
        Stream {
            device: device.clone(),
            stream: Handle(aclrtStream(stream.cast())),
            owned: false,
            kept: Mutex::default(),
        }
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits for all work that is in the stream now. Wraps `aclrtSynchronizeStream`.
    ///
    /// # Errors
    /// If a task failed.
    pub fn synchronize(&self) -> Result<()> {
        self.wait_with(|backend, stream| {
            // SAFETY: the stream lives as long as `self`.
            unsafe { check!(backend.acl.aclrtSynchronizeStream(stream)) }
        })
    }

    /// As [`Stream::synchronize`], but waits no longer than `timeout`. Wraps `aclrtSynchronizeStreamWithTimeout`.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if work is left then; it goes on.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
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

    /// Lets go of what was kept before the wait began, if the wait succeeds: all of that work is done.
    fn wait_with(&self, wait: impl FnOnce(&Backend, aclrtStream) -> Result<()>) -> Result<()> {
        let backend = self.device.ready()?;
        let before = std::mem::take(&mut *self.kept());
        let waited = wait(backend, self.raw());
        if waited.is_err() {
            self.kept().extend(before);
        }
        waited
    }

    /// Lets go of what the stream keeps if all work is done, without a wait. Nobody may enqueue meanwhile.
    pub fn release_if_done(&self) {
        let before = std::mem::take(&mut *self.kept());
        if !matches!(self.query(), Ok(true)) {
            self.kept().extend(before);
        }
    }

    /// Whether all work is done. Wraps `aclrtStreamQuery`.
    ///
    /// # Errors
    /// If a task failed.
    pub fn query(&self) -> Result<bool> {
        let backend = self.device.ready()?;
        let mut status = aclrtStreamStatus::ACL_STREAM_STATUS_NOT_READY;
        // SAFETY: the stream lives as long as `self`; one status is written to a live local.
        unsafe { check!(backend.acl.aclrtStreamQuery(self.raw(), &mut status)) }?;
        Ok(status == aclrtStreamStatus::ACL_STREAM_STATUS_COMPLETE)
    }

    /// Makes `event` stand for the work that is in the stream now. Wraps `aclrtRecordEvent`.
    ///
    /// # Errors
    /// If the event is another device's or the call fails.
    pub fn record(&self, event: &Event) -> Result<()> {
        self.device.require_same(event.device(), "the event")?;
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
        self.device.require_same(event.device(), "the event")?;
        self.enqueue([event.shared() as Arc<dyn Keep>], |backend, stream| {
            // SAFETY: both handles live; the stream keeps the event while it may use it.
            unsafe { check!(backend.acl.aclrtStreamWaitEvent(stream, event.raw())) }
        })
    }

    /// Copies `src` to `dst` within the device. Wraps `aclrtMemcpyAsync`, which on real devices wants both addresses
    /// aligned to 64 bytes.
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
        let kind = aclrtMemcpyKind::ACL_MEMCPY_DEVICE_TO_DEVICE;
        self.enqueue([dst, src].map(keep), |backend, stream| {
            // SAFETY: both spans have `len` bytes and are kept until the stream is synchronised.
            unsafe {
                check!(
                    backend
                        .acl
                        .aclrtMemcpyAsync(to, len, from, len, kind, stream)
                )
            }
        })
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
        self.enqueue([keep(dst), src.shared()], |backend, stream| {
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

    /// Keeps `spans` alive until the stream is next synchronised: for work of other streams that this one waits for.
    pub fn keep(&self, spans: &[Span]) {
        let mut kept = self.kept();
        let mut last = None;
        for span in spans {
            let used = keep(span);
            let address = Arc::as_ptr(&used).addr();
            // Tensors of one buffer follow each other.
            if last.replace(address) != Some(address) {
                kept.insert(address, used);
            }
        }
    }

    /// Drops what is queued behind a task that fails, where the library has a choice. Wraps
    /// `aclrtSetStreamFailureMode`; without it nothing happens.
    ///
    /// # Errors
    /// If the call fails.
    pub fn stop_on_failure(&self) -> Result<()> {
        let backend = self.device.ready()?;
        let Ok(set) = backend.acl.aclrtSetStreamFailureMode else {
            return Ok(());
        };
        let mode = u64::from(ACL_STOP_ON_FAILURE);
        // SAFETY: the stream lives as long as `self`.
        let code = unsafe { set(self.raw(), mode) };
        check::acl(backend, "aclrtSetStreamFailureMode", code)
    }

    /// Ends the task that runs, drops those behind it, and lets go of what they used; the stream can be used again, and
    /// its failures are forgotten. `false` where the library cannot do that. Wraps `aclrtStreamAbort`.
    ///
    /// # Errors
    /// If the call fails.
    pub fn abort(&self) -> Result<bool> {
        let Ok(abort) = self.device.ready()?.acl.aclrtStreamAbort else {
            return Ok(false);
        };
        self.wait_with(|backend, stream| {
            // SAFETY: the stream lives as long as `self`.
            check::acl(backend, "aclrtStreamAbort", unsafe { abort(stream) })
        })?;
        Ok(true)
    }

    /// Sets all bytes of `span` to zero. Wraps `aclrtMemsetAsync`.
    ///
    /// # Errors
    /// If the span is another device's or the call fails.
    pub fn zero(&self, span: &Span) -> Result<()> {
        self.require_spans([span])?;
        if span.is_empty() {
            return Ok(());
        }
        let (address, len) = (span.pointer(), span.len());
        self.enqueue([keep(span)], |backend, stream| {
            // SAFETY: the span has `len` bytes and is kept until the stream is synchronised.
            unsafe { check!(backend.acl.aclrtMemsetAsync(address, len, 0, len, stream)) }
        })
    }

    /// Runs `call`, which enqueues work that uses `used`, and keeps those until the stream is synchronised.
    pub(super) fn enqueue(
        &self,
        used: impl IntoIterator<Item = Arc<dyn Keep>>,
        call: impl FnOnce(&Backend, aclrtStream) -> Result<()>,
    ) -> Result<()> {
        let backend = self.device.ready()?;
        let called = call(backend, self.raw());
        // Also after a failure: part of the work may be queued. And only now: a wait of another thread that began
        // before the call must not let go of them.
        let used = used
            .into_iter()
            .map(|used| (Arc::as_ptr(&used).addr(), used));
        self.kept().extend(used);
        called
    }

    /// An error if a span is another device's.
    pub(super) fn require_spans<'a>(
        &self,
        spans: impl IntoIterator<Item = &'a Span>,
    ) -> Result<()> {
        let mut spans = spans.into_iter();
        spans.try_for_each(|span| self.device.require_same(span.device(), "a span"))
    }

    fn raw(&self) -> aclrtStream {
        self.stream.0
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic cannot leave the map half changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a stream keeps of a span.
pub(super) fn keep(span: &Span) -> Arc<dyn Keep> {
    span.allocation()
}

/// Rounded up, so that a short timeout does not become a poll; forever is out of reach on purpose.
fn milliseconds(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

impl Drop for Stream {
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
        let destroyed = self.device.ready().and_then(|backend| {
            if complete {
                // SAFETY: created by this object and used nowhere else.
                unsafe { check!(backend.acl.aclrtDestroyStream(self.raw())) }
            } else {
                // SAFETY: as above; what its work may still use is never freed.
                unsafe { check!(backend.acl.aclrtDestroyStreamForce(self.raw())) }
            }
        });
        if let Err(error) = destroyed {
            log::warn!("stream on {:?}: {error}", self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_round_up_and_never_mean_forever() {
        assert_eq!(milliseconds(Duration::ZERO), 0);
        assert_eq!(milliseconds(Duration::from_micros(1)), 1);
        assert_eq!(milliseconds(Duration::from_millis(1500)), 1500);
        assert_eq!(milliseconds(Duration::MAX), i32::MAX);
    }
}
