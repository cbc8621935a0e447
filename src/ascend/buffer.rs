//! Device memory and parts of it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use super::check::check;
use super::device::Device;
use super::physical::{self, Physical};
use super::shared::{self, Import, MemoryKey, Sharing};
use crate::error::{Error, Result};
use crate::sys::acl::{aclrtMemMallocPolicy, aclrtMemcpyKind};

/// Types that are plain bits: any pattern is a value and there is no padding.
pub trait Pod: Copy + sealed::Sealed {}

mod sealed {
    /// Not to be implemented outside.
    pub trait Sealed {}
}

macro_rules! pod {
    ($($name:ty)*) => {
        $(impl sealed::Sealed for $name {}
        impl Pod for $name {})*
    };
}
pod!(f32 f64 u8 u16 u32 u64 i32 half::f16 half::bf16);

/// An allocation of device memory. Wraps `aclrtMalloc` and, when nothing uses it any more, `aclrtFree`.
#[derive(Debug, Clone)]
pub struct Buffer(Arc<Allocation>);

/// What buffers, spans and streams share.
#[derive(Debug)]
pub(super) struct Allocation {
    device: Device,
    address: usize,
    len: usize,
    origin: Origin,
}

/// Where memory comes from, and so what is done with it when nothing uses it any more.
#[derive(Debug)]
enum Origin {
    /// Allocated here: it is freed.
    Own,
    /// Allocated here, with a key for other processes: the key is closed, then it is freed.
    Shared(MemoryKey),
    /// Physical memory of this process at addresses of its own, with a key once it is shared: both are given back.
    Physical(Physical, Option<MemoryKey>),
    /// Another process's: the import is ended.
    Imported(Import),
    /// Shared by this process itself: nothing, as that allocation does it.
    Local(#[expect(dead_code, reason = "kept alive")] Arc<Allocation>),
    /// Somebody else's: nothing.
    Borrowed,
}

/// What this process shares. The vendor's library maps a key once per process only, and closes it by its name alone, so an
/// import of one's own key must not reach it.
fn shared_here() -> MutexGuard<'static, HashMap<MemoryKey, Weak<Allocation>>> {
    static SHARED: LazyLock<Mutex<HashMap<MemoryKey, Weak<Allocation>>>> =
        LazyLock::new(Mutex::default);
    // A panic cannot leave the map half changed.
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffer {
    /// Memory that other processes may import begins and ends with a page of the device, in bytes. This is the largest page that the
    /// library takes by itself.
    pub const SHAREABLE_PAGE: usize = 2 << 20;

    /// Memory of `bytes` bytes with any content, aligned to 64.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is not so much.
    pub fn new(device: &Device, bytes: usize) -> Result<Buffer> {
        // Nothing cannot be allocated, but an empty buffer needs an address, too.
        let allocation = Allocation::new(device, bytes.max(1), bytes)?;
        Ok(Buffer(Arc::new(allocation)))
    }

    /// Memory of `bytes` bytes, all zero. Wraps `aclrtMemset`.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn zeroed(device: &Device, bytes: usize) -> Result<Buffer> {
        let buffer = Buffer::new(device, bytes)?;
        if bytes > 0 {
            let backend = device.ready()?;
            let address = buffer.0.pointer(0);
            // SAFETY: the allocation has so many bytes and nothing else uses it yet.
            unsafe { check!(backend.acl.aclrtMemset(address, bytes, 0, bytes)) }?;
        }
        Ok(buffer)
    }

    /// Memory of `bytes` bytes, all zero, that other processes can map, as far as `sharing` says: they
    /// [import](Span::import) its [key](Buffer::key). It takes whole pages of 2 MiB. Wraps, for those of this machine,
    /// `aclrtIpcMemGetExportKey` and, before the memory is freed, `aclrtIpcMemClose`; for those of a supernode,
    /// `aclrtMallocPhysical`, `aclrtMapMem` and `aclrtMemExportToShareableHandleV2`, and what undoes them.
    ///
    /// The importers have to be done with it before the buffer and its spans are dropped: what they enqueue later fails.
    ///
    /// # Errors
    /// As [`Buffer::new`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the library cannot share memory.
    pub fn shareable(device: &Device, bytes: usize, sharing: Sharing) -> Result<Buffer> {
        let size = Self::shareable_size(bytes)?;
        let mut allocation = match sharing {
            Sharing::Machine => Allocation::new(device, size, bytes)?,
            Sharing::Supernode => Allocation::physical(device, size, bytes)?,
        };
        let address = allocation.pointer(0);
        {
            let backend = device.ready()?;
            // SAFETY: the allocation has so many bytes and nothing else uses it yet.
            unsafe { check!(backend.acl.aclrtMemset(address, size, 0, size)) }?;
        }
        let key = match &mut allocation.origin {
            Origin::Physical(memory, shared) => {
                let handle = physical::export(device, memory)?;
                shared
                    .insert(MemoryKey::new(sharing, handle, bytes))
                    .clone()
            }
            own => {
                let key = shared::export(device, address, size, bytes)?;
                *own = Origin::Shared(key.clone());
                key
            }
        };
        let allocation = Arc::new(allocation);
        shared_here().insert(key, Arc::downgrade(&allocation));
        Ok(Buffer(allocation))
    }

    /// What memory for so many bytes takes.
    fn shareable_size(bytes: usize) -> Result<usize> {
        let size = bytes.max(1).checked_next_multiple_of(Self::SHAREABLE_PAGE);
        size.ok_or_else(|| Error::invalid(format!("{bytes} bytes cannot be shared")))
    }

    /// What other processes import it by, if it is [shareable](Buffer::shareable).
    pub fn key(&self) -> Option<&MemoryKey> {
        match &self.0.origin {
            Origin::Shared(key) | Origin::Physical(_, Some(key)) => Some(key),
            _ => None,
        }
    }

    /// Memory that holds `data`.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn from_slice<T: Pod>(device: &Device, data: &[T]) -> Result<Buffer> {
        let buffer = Buffer::new(device, size_of_val(data))?;
        buffer.span().write(data)?;
        Ok(buffer)
    }

    /// The whole buffer.
    pub fn span(&self) -> Span {
        Span {
            allocation: Arc::clone(&self.0),
            offset: 0,
            len: self.0.len,
        }
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The device whose memory it is.
    pub fn device(&self) -> &Device {
        &self.0.device
    }
}

impl Allocation {
    /// `size` bytes, of which a user sees `len`.
    fn new(device: &Device, size: usize, len: usize) -> Result<Allocation> {
        let backend = device.ready()?;
        let mut address: *mut c_void = std::ptr::null_mut();
        let policy = aclrtMemMallocPolicy::ACL_MEM_MALLOC_HUGE_FIRST;
        // SAFETY: writes one pointer to a live local.
        unsafe { check!(backend.acl.aclrtMalloc(&mut address, size, policy)) }
            .map_err(|error| error.context(format!("{len} bytes on {device:?}")))?;
        Ok(Allocation {
            device: device.clone(),
            address: address.expose_provenance(),
            len,
            origin: Origin::Own,
        })
    }

    /// The same as physical memory at addresses of its own.
    fn physical(device: &Device, size: usize, len: usize) -> Result<Allocation> {
        let (address, memory) = physical::allocate(device, size)
            .map_err(|error| error.context(format!("{len} bytes on {device:?}")))?;
        Ok(Allocation {
            device: device.clone(),
            address: address.expose_provenance(),
            len,
            origin: Origin::Physical(memory, None),
        })
    }

    fn pointer(&self, offset: usize) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.address.wrapping_add(offset))
    }

    fn free(&self) -> Result<()> {
        let backend = self.device.ready()?;
        let address = self.pointer(0);
        // SAFETY: allocated by aclrtMalloc; streams keep it alive while queued work uses it.
        unsafe { check!(backend.acl.aclrtFree(address)) }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let done = match &self.origin {
            Origin::Local(_) | Origin::Borrowed => return,
            Origin::Own => self.free(),
            Origin::Imported(import) => shared::end_import(&self.device, import, self.pointer(0)),
            Origin::Physical(memory, key) => {
                if let Some(key) = key {
                    shared_here().remove(key);
                }
                physical::free(&self.device, memory, self.pointer(0))
            }
            Origin::Shared(key) => {
                shared_here().remove(key);
                // Freed all the same: a key that is left over fails for whoever imports it.
                let closed = shared::close(&self.device, key);
                self.free().and(closed)
            }
        };
        if let Err(error) = done {
            log::warn!("{} bytes on {:?}: {error}", self.len, self.device);
        }
    }
}

/// A part of a [`Buffer`], which it keeps alive.
#[derive(Debug, Clone)]
pub struct Span {
    allocation: Arc<Allocation>,
    offset: usize,
    len: usize,
}

impl Span {
    /// Device memory that somebody else owns, for example a tensor of a framework.
    ///
    /// # Safety
    /// `len` bytes from `address` on must be memory of `device`, and stay so until the work that is queued with this
    /// span and its slices is done. Where borrowed spans are put together by [`Span::spread`], so must what lies between
    /// them, in one allocation.
    pub unsafe fn borrow(device: &Device, address: *mut c_void, len: usize) -> Span {
        Span {
            allocation: Arc::new(Allocation {
                device: device.clone(),
                address: address.expose_provenance(),
                len,
                origin: Origin::Borrowed,
            }),
            offset: 0,
            len,
        }
    }

    /// The first `bytes` bytes of the memory that another process shares by `key`, as memory that `device` reaches: streams
    /// of `device` copy to and from it, kernels of `device` read and write it, wherever it lies. Host copies
    /// ([`Span::read`], [`Span::write`]) and HCCL do not take it. Wraps, for memory of this machine,
    /// `aclrtIpcMemImportByKey` and, when nothing uses the result any more, `aclrtIpcMemClose`; for that of a supernode,
    /// `aclrtMemImportFromShareableHandleV2`, `aclrtMapMem` and what undoes them. What this process shares itself is not
    /// mapped again.
    ///
    /// Nothing here waits for the process that shares it, nor keeps that process: as long as work that uses the result is
    /// queued, the owner has to keep its buffer, and both sides have to agree who writes what when. An owner that ends
    /// meanwhile makes the work fail.
    ///
    /// # Errors
    /// If `bytes` are more than are shared; if nobody shares memory by that key any more;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the library cannot share memory.
    pub fn import(device: &Device, key: &MemoryKey, bytes: usize) -> Result<Span> {
        if bytes > key.len() {
            return Err(Error::invalid(format!(
                "{bytes} bytes of shared memory of {} bytes",
                key.len()
            )));
        }
        let local = shared_here().get(key).and_then(Weak::upgrade);
        let (address, origin) = match local {
            Some(shared) => {
                device.enable_access(shared.device.id())?;
                (shared.address, Origin::Local(shared))
            }
            None => {
                let size = Buffer::shareable_size(key.len())?;
                let (address, import) = shared::import(device, key, size)?;
                (address.expose_provenance(), Origin::Imported(import))
            }
        };
        Ok(Span {
            allocation: Arc::new(Allocation {
                device: device.clone(),
                address,
                len: bytes,
                origin,
            }),
            offset: 0,
            len: bytes,
        })
    }

    /// The bytes `bytes` of this span, counted from its start.
    ///
    /// # Errors
    /// If they reach beyond it.
    pub fn slice(&self, bytes: Range<usize>) -> Result<Span> {
        if bytes.start > bytes.end || bytes.end > self.len {
            return Err(Error::invalid(format!(
                "bytes {}..{} are not within a span of {} bytes",
                bytes.start, bytes.end, self.len
            )));
        }
        Ok(Span {
            allocation: Arc::clone(&self.allocation),
            offset: self.offset.saturating_add(bytes.start),
            len: bytes.len(),
        })
    }

    /// One span over all `spans` if they lie in one allocation, one right behind the other; empty ones do not count.
    pub fn joined<'a>(spans: impl IntoIterator<Item = &'a Span>) -> Option<Span> {
        let mut spans = spans.into_iter().filter(|span| !span.is_empty());
        let mut joined = spans.next()?.clone();
        for span in spans {
            if !Arc::ptr_eq(&joined.allocation, &span.allocation)
                || joined.offset.checked_add(joined.len) != Some(span.offset)
            {
                return None;
            }
            joined.len += span.len;
        }
        Some(joined)
    }

    /// One span from the first of `spans` to the end of the last if they lie in one allocation and each starts so many
    /// bytes behind the first of them; empty ones do not count. Borrowed spans of a device lie in one allocation as far as
    /// anyone here can tell: their owner has to know, and keeps it alive.
    pub fn spread<'a>(spans: impl IntoIterator<Item = (&'a Span, usize)>) -> Option<Span> {
        let mut spans = spans.into_iter().filter(|(span, _)| !span.is_empty());
        let (first, origin) = spans.next()?;
        let mut whole = first.clone();
        for (span, start) in spans {
            let place = start.checked_sub(origin)?;
            let address = whole.pointer().addr().checked_add(place)?;
            if !whole.may_reach(span) || span.pointer().addr() != address {
                return None;
            }
            whole.len = place.checked_add(span.len)?;
        }
        Some(whole)
    }

    /// Whether memory from this span to `other` may be one allocation.
    fn may_reach(&self, other: &Span) -> bool {
        let (mine, others) = (&self.allocation, &other.allocation);
        let borrowed =
            self.is_borrowed() && other.is_borrowed() && mine.device.id() == others.device.id();
        borrowed || Arc::ptr_eq(mine, others)
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Device address of the first byte.
    pub fn address(&self) -> u64 {
        self.pointer().addr() as u64
    }

    /// The device whose memory it is, or that it was [imported](Span::import) for.
    pub fn device(&self) -> &Device {
        &self.allocation.device
    }

    /// Copies `data`, of exactly this size, to the device before it returns; queued work is not waited for. Wraps
    /// `aclrtMemcpy`.
    ///
    /// # Errors
    /// If the sizes differ or the copy fails.
    pub fn write<T: Pod>(&self, data: &[T]) -> Result<()> {
        let kind = aclrtMemcpyKind::ACL_MEMCPY_HOST_TO_DEVICE;
        self.require_size(size_of_val(data), "written")?;
        if self.len == 0 {
            return Ok(());
        }
        let backend = self.device().ready()?;
        let (to, from) = (self.pointer(), data.as_ptr().cast());
        // SAFETY: both sides have `len` bytes and outlive the call, which waits for the copy.
        unsafe { check!(backend.acl.aclrtMemcpy(to, self.len, from, self.len, kind)) }
    }

    /// Copies all bytes to `data`, of exactly this size, before it returns; queued work is not waited for. Wraps
    /// `aclrtMemcpy`.
    ///
    /// # Errors
    /// If the sizes differ or the copy fails.
    pub fn read<T: Pod>(&self, data: &mut [T]) -> Result<()> {
        let kind = aclrtMemcpyKind::ACL_MEMCPY_DEVICE_TO_HOST;
        self.require_size(size_of_val(data), "read")?;
        if self.len == 0 {
            return Ok(());
        }
        let backend = self.device().ready()?;
        let (to, from) = (data.as_mut_ptr().cast(), self.pointer());
        // SAFETY: both sides have `len` bytes and outlive the call, which waits for the copy; any bits are a `T`.
        unsafe { check!(backend.acl.aclrtMemcpy(to, self.len, from, self.len, kind)) }
    }

    fn require_size(&self, bytes: usize, verb: &str) -> Result<()> {
        if bytes == self.len {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{bytes} bytes cannot be {verb} through a span of {} bytes",
            self.len
        )))
    }

    /// Device address of the first byte as the vendor takes it.
    pub(super) fn pointer(&self) -> *mut c_void {
        self.allocation.pointer(self.offset)
    }

    /// Whether it is somebody else's memory.
    pub(super) fn is_borrowed(&self) -> bool {
        matches!(self.allocation.origin, Origin::Borrowed)
    }

    /// Whether both are parts of one allocation, by what they hold of it.
    pub(super) fn shares_allocation(&self, other: &Span) -> bool {
        Arc::ptr_eq(&self.allocation, &other.allocation)
    }

    /// What a stream keeps while queued work uses this span.
    pub(super) fn allocation(&self) -> Arc<Allocation> {
        Arc::clone(&self.allocation)
    }
}
