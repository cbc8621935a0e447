//! Streams that belong to the caller.

use std::collections::HashMap;
use std::ffi::c_void;

use super::arguments::not_null;
use super::status::CallError;
use crate::ascend::{Device, Stream};

/// The caller's streams by address. They keep alive what queued work uses, until the work is known to be done.
pub(super) struct Streams {
    pub(super) device: Device,
    known: HashMap<usize, Stream>,
}

impl Streams {
    pub(super) fn new(device: &Device) -> Self {
        Streams {
            device: device.clone(),
            known: HashMap::new(),
        }
    }

    /// Removes a stream that has no work of ours.
    pub(super) fn forget(&mut self, stream: *mut c_void) {
        if let Some(stream) = self.known.remove(&stream.addr()) {
            stream.give_back();
        }
    }

    /// The caller's stream.
    ///
    /// # Safety
    /// `stream` is NULL or a live stream of the device, until it is forgotten or the reducer is destroyed.
    pub(super) unsafe fn get(&mut self, stream: *mut c_void) -> Result<&Stream, CallError> {
        let stream = not_null(stream, "stream")?;
        let device = &self.device;
        let known = self.known.entry(stream.addr());
        // SAFETY: as promised by the caller.
        Ok(known.or_insert_with(|| unsafe { Stream::borrow(device, stream) }))
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.known
            .drain()
            .for_each(|(_, stream)| stream.give_back());
    }
}
