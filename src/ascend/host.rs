//! Host memory that devices copy from without help of the processor.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use super::buffer::Pod;
use super::check::check;
use super::device::Device;
use super::stream::Keep;
use crate::error::{Error, Result};

/// Page-locked host memory, for copies that a stream makes. Wraps `aclrtMallocHost` and `aclrtFreeHost`.
#[derive(Debug)]
pub struct HostBuffer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    device: Device,
    address: usize,
    len: usize,
}

impl HostBuffer {
    /// Memory of `bytes` bytes with any content.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is not so much.
    pub fn new(device: &Device, bytes: usize) -> Result<HostBuffer> {
        let backend = device.ready()?;
        let mut address: *mut c_void = null_mut();
        // SAFETY: writes one pointer to a live local.
        unsafe { check!(backend.acl.aclrtMallocHost(&mut address, bytes.max(1))) }
            .map_err(|error| error.context(format!("{bytes} bytes of host memory")))?;
        Ok(HostBuffer(Arc::new(Inner {
            device: device.clone(),
            address: address.expose_provenance(),
            len: bytes,
        })))
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Puts `data`, of exactly this size, into it. A queued copy that has not run yet would take this instead.
    ///
    /// # Errors
    /// If the sizes differ.
    pub fn write<T: Pod>(&mut self, data: &[T]) -> Result<()> {
        let bytes = size_of_val(data);
        if bytes != self.len() {
            return Err(Error::invalid(format!(
                "{bytes} bytes cannot be written to a host buffer of {}",
                self.len()
            )));
        }
        let (from, to) = (data.as_ptr().cast::<u8>(), self.pointer().cast::<u8>());
        // SAFETY: both sides have `bytes` bytes and do not overlap; any bytes are a value.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        Ok(())
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0.address)
    }

    /// What a stream keeps while a queued copy reads it.
    pub(super) fn shared(&self) -> Arc<dyn Keep> {
        Arc::clone(&self.0) as Arc<dyn Keep>
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let freed = self.device.ready().and_then(|backend| {
            let address = std::ptr::with_exposed_provenance_mut(self.address);
            // SAFETY: allocated by aclrtMallocHost; streams keep it alive while queued copies read it.
            unsafe { check!(backend.acl.aclrtFreeHost(address)) }
        });
        if let Err(error) = freed {
            log::warn!("{} bytes of host memory: {error}", self.len);
        }
    }
}
