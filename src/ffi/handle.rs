//! Handles: how they are given away and ended, and those of what is made for a list of tensors of a world.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::arguments::{invalid, not_null, required, slice, spans};
use super::catch::catch;
use super::status::{CallError, adasum_status};
use super::streams::Streams;
use super::world::{Share, adasum_world};
use crate::ascend::{Span, Stream};
use crate::plan::TensorSpec;
use crate::reduce::World;

/// Gives a new handle away.
///
/// # Safety
/// `out` may be written to.
pub(super) unsafe fn give<H>(handle: H, out: *mut *mut H) {
    // SAFETY: as promised by the caller.
    unsafe { out.write(Box::into_raw(Box::new(handle))) };
}

/// Ends a handle, for the export `function`; a panic is kept as the thread's last error.
///
/// # Safety
/// `handle` is NULL or came from [`give`], was not ended, and no other call uses it.
pub(super) unsafe fn destroy<H>(function: &'static str, handle: *mut H) {
    let _ = catch(function, || {
        if !handle.is_null() {
            // SAFETY: made by `give` and given back once, as promised.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// What C holds of a `T`; one thread at a time.
pub(super) struct Handle<T> {
    inner: Mutex<Inner<T>>,
    /// Beside the lock, so that an abort frees a thread that waits in a call.
    pub(super) world: World,
    /// Tells the world's handle that it is used; goes last.
    _share: Arc<Share>,
}

/// What is behind the lock of a handle.
pub(super) struct Inner<T> {
    pub(super) object: T,
    pub(super) streams: Streams,
    pub(super) specs: Vec<TensorSpec>,
}

impl<T> Inner<T> {
    /// All tensors of the object, at the `count` addresses that messages call `name`.
    ///
    /// # Safety
    /// `addresses` points to `count` addresses, each of device memory of the whole tensor until the queued work is done.
    pub(super) unsafe fn tensors(
        &self,
        addresses: *const *mut c_void,
        count: usize,
        name: &str,
    ) -> Result<Vec<Span>, CallError> {
        // SAFETY: as promised by the caller.
        let addresses = unsafe { slice(addresses, count, name) }?;
        // SAFETY: as promised by the caller.
        unsafe { spans(&self.streams.device, self.specs.iter(), addresses, name) }
    }

    /// The tensors with the indices `tensors`, at as many addresses that messages call `name`.
    ///
    /// # Safety
    /// As for [`Inner::tensors`].
    pub(super) unsafe fn subset(
        &self,
        tensors: &[usize],
        addresses: *const *mut c_void,
        name: &str,
    ) -> Result<Vec<Span>, CallError> {
        // SAFETY: as promised by the caller.
        let addresses = unsafe { slice(addresses, tensors.len(), name) }?;
        let count = self.specs.len();
        let spec = |&tensor: &usize| {
            let missing = || invalid(format!("tensors: {tensor} is no index of {count} tensors"));
            self.specs.get(tensor).ok_or_else(missing)
        };
        let specs: Vec<_> = tensors.iter().map(spec).collect::<Result<_, _>>()?;
        // SAFETY: as promised by the caller.
        unsafe { spans(&self.streams.device, specs.into_iter(), addresses, name) }
    }

    /// Checks that something is given for each tensor.
    pub(super) fn count_is(&self, count: usize) -> Result<(), CallError> {
        match self.specs.len() {
            all if count == all => Ok(()),
            all => Err(invalid(format!(
                "count is {count}, the reducer has {all} tensors"
            ))),
        }
    }

    /// The object, and the caller's stream to enqueue its work on.
    ///
    /// # Safety
    /// As for [`Streams::get`].
    pub(super) unsafe fn on(
        &mut self,
        stream: *mut c_void,
    ) -> Result<(&mut T, &Stream), CallError> {
        // SAFETY: as promised by the caller.
        let stream = unsafe { self.streams.get(stream) }?;
        Ok((&mut self.object, stream))
    }

    /// Lets go of `stream`.
    pub(super) fn forget(&mut self, stream: *mut c_void) -> Result<(), CallError> {
        self.streams.forget(not_null(stream, "stream")?);
        Ok(())
    }
}

/// A handle that this thread is in. A panic meanwhile gives up the world, because peers may be waiting.
pub(super) struct Entered<'a, T> {
    inner: MutexGuard<'a, Inner<T>>,
    pub(super) world: &'a World,
}

impl<T> Deref for Entered<'_, T> {
    type Target = Inner<T>;

    fn deref(&self) -> &Inner<T> {
        &self.inner
    }
}

impl<T> DerefMut for Entered<'_, T> {
    fn deref_mut(&mut self) -> &mut Inner<T> {
        &mut self.inner
    }
}

impl<T> Drop for Entered<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.world.abort();
        }
    }
}

impl<T> Handle<T> {
    /// Makes an object for `specs` with `make`, which is given the world; its handle is what `wrap` makes of it, and goes to
    /// `out`.
    ///
    /// # Safety
    /// `world` is NULL or live; `out` is NULL or may be written to.
    pub(super) unsafe fn create<H>(
        world: *const adasum_world,
        specs: Vec<TensorSpec>,
        out: *mut *mut H,
        wrap: fn(Handle<T>) -> H,
        make: impl FnOnce(&World, &[TensorSpec]) -> Result<T, CallError>,
    ) -> Result<(), CallError> {
        // SAFETY: as promised by the caller.
        let handle = unsafe { required(world, "world") }?;
        let out = not_null(out, "out")?;
        let (world, share) = handle.shared()?;
        let inner = Inner {
            object: make(&world, &specs)?,
            streams: Streams::new(world.device()),
            specs,
        };
        let handle = Handle {
            inner: Mutex::new(inner),
            world,
            _share: share,
        };
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(wrap(handle), out) };
        Ok(())
    }

    /// The handle, which messages call `name`, for this thread alone.
    pub(super) fn enter(&self, name: &str) -> Result<Entered<'_, T>, CallError> {
        let world = &self.world;
        match self.inner.try_lock() {
            Ok(inner) => Ok(Entered { inner, world }),
            Err(TryLockError::WouldBlock) => Err(CallError::new(
                adasum_status::ADASUM_INVALID_STATE,
                format!("another thread is using this {name}"),
            )),
            Err(TryLockError::Poisoned(_)) => Err(CallError::new(
                adasum_status::ADASUM_POISONED,
                format!("an internal error in an earlier call made this {name} unusable"),
            )),
        }
    }
}
