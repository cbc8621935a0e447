//! Points in the work of streams.

use std::ptr::null_mut;
use std::sync::Arc;

use super::check::{self, check};
use super::device::Device;
use super::handle::Handle;
use crate::error::{Error, Result};
use crate::sys::acl::{ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE, aclrtEvent, aclrtEventRecordedStatus};

/// A point in a stream that others wait for; it can be recorded again and again.
///
/// Wraps `aclrtCreateEventExWithFlag` (`aclrtCreateEvent` on devices without it) and `aclrtDestroyEvent`.
#[derive(Debug)]
pub struct Event(Arc<Inner>);

/// What events and the streams that use them share.
#[derive(Debug)]
pub(super) struct Inner {
    device: Device,
    event: Handle<aclrtEvent>,
}

impl Event {
    /// An event that has not been recorded; it counts as complete.
    ///
    /// # Errors
    /// If the device has no more of them.
    pub fn new(device: &Device) -> Result<Event> {
        Event::with_flags(device, ACL_EVENT_SYNC)
    }

    /// As [`Event::new`], and its time can be asked for with [`Event::seconds_since`].
    ///
    /// # Errors
    /// If the device has no more of them.
    pub fn timed(device: &Device) -> Result<Event> {
        Event::with_flags(device, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE)
    }

    fn with_flags(device: &Device, flags: u32) -> Result<Event> {
        let backend = device.ready()?;
        let mut event = aclrtEvent(null_mut());
        // SAFETY: writes one handle to a live local.
        let extended = unsafe { check!(backend.acl.aclrtCreateEventExWithFlag(&mut event, flags)) };
        if let Err(error) = extended {
            if !check::is_unsupported(&error) {
                return Err(error);
            }
            // SAFETY: as above.
            unsafe { check!(backend.acl.aclrtCreateEvent(&mut event)) }?;
        }
        Ok(Event(Arc::new(Inner {
            device: device.clone(),
            event: Handle(event),
        })))
    }

    /// Waits until the work before the last record is done. Wraps `aclrtSynchronizeEvent`.
    ///
    /// # Errors
    /// If a task failed.
    pub fn synchronize(&self) -> Result<()> {
        let backend = self.0.device.ready()?;
        // SAFETY: the event lives as long as `self`.
        unsafe { check!(backend.acl.aclrtSynchronizeEvent(self.raw())) }
    }

    /// Whether the work before the last record is done. Wraps `aclrtQueryEventStatus`.
    ///
    /// # Errors
    /// If a task failed.
    pub fn is_complete(&self) -> Result<bool> {
        let backend = self.0.device.ready()?;
        let mut status = aclrtEventRecordedStatus::ACL_EVENT_RECORDED_STATUS_NOT_READY;
        // SAFETY: the event lives as long as `self`; one status is written to a live local.
        unsafe { check!(backend.acl.aclrtQueryEventStatus(self.raw(), &mut status)) }?;
        Ok(status == aclrtEventRecordedStatus::ACL_EVENT_RECORDED_STATUS_COMPLETE)
    }

    /// The time of the device from the last record of `earlier` to that of this one; both are [timed](Event::timed), and the
    /// host has waited for them or seen them complete. Wraps `aclrtEventElapsedTime`.
    ///
    /// # Errors
    /// `Unsupported` if the library has no such call; if the call fails.
    pub fn seconds_since(&self, earlier: &Event) -> Result<f64> {
        let backend = self.0.device.ready()?;
        let Ok(elapsed) = backend.acl.aclrtEventElapsedTime else {
            return Err(Error::unsupported(
                "this library has no aclrtEventElapsedTime",
            ));
        };
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events live; one number is written to a live local.
        let code = unsafe { elapsed(&mut milliseconds, earlier.raw(), self.raw()) };
        check::acl(&backend, "aclrtEventElapsedTime", code)?;
        Ok(f64::from(milliseconds) * 1e-3)
    }

    pub(super) fn raw(&self) -> aclrtEvent {
        self.0.event.0
    }

    pub(super) fn device(&self) -> &Device {
        &self.0.device
    }

    /// What a stream keeps while queued work uses this event.
    pub(super) fn shared(&self) -> Arc<Inner> {
        Arc::clone(&self.0)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let destroyed = self.device.ready().and_then(|backend| {
            // SAFETY: created by this object; streams keep it alive while queued work uses it.
            unsafe { check!(backend.acl.aclrtDestroyEvent(self.event.0)) }
        });
        if let Err(error) = destroyed {
            log::warn!("event on {:?}: {error}", self.device);
        }
    }
}
