//! Reducers.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::arguments::{
    adasum_tensor, invalid, not_null, required, slice, slice_mut, spans, tensors, timeout,
};
use super::guard::{destroy, guard};
use super::options::adasum_options;
use super::status::{Fault, adasum_status};
use super::world::adasum_world;
use crate::ascend::{Device, Stream};
use crate::plan::TensorSpec;
use crate::reduce::GradientReducer;

/// Reduces the gradients of a fixed list of tensors. One thread at a time: a call while another is inside is
/// ADASUM_INVALID_STATE.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_reducer(Mutex<Inner>);

struct Inner {
    reducer: GradientReducer,
    device: Device,
    specs: Vec<TensorSpec>,
    /// The caller's streams by address: they keep what queued work uses until it is known to be done.
    streams: HashMap<usize, Stream>,
    /// Tells the world's handle that there is a reducer.
    _share: Arc<()>,
}

impl adasum_reducer {
    fn enter(&self) -> Result<MutexGuard<'_, Inner>, Fault> {
        match self.0.try_lock() {
            Ok(inner) => Ok(inner),
            Err(TryLockError::WouldBlock) => Err(Fault::new(
                adasum_status::ADASUM_INVALID_STATE,
                "another thread is using this reducer",
            )),
            Err(TryLockError::Poisoned(_)) => Err(Fault::new(
                adasum_status::ADASUM_POISONED,
                "an internal error in an earlier call made this reducer unusable",
            )),
        }
    }
}

impl Inner {
    /// The caller's stream.
    ///
    /// # Safety
    /// `stream` is a live stream of the device.
    unsafe fn stream(&mut self, stream: *mut c_void) -> &Stream {
        let device = &self.device;
        self.streams
            .entry(stream.addr())
            // SAFETY: as promised by the caller.
            .or_insert_with(|| unsafe { Stream::borrow(device, stream) })
    }
}

fn lost() -> Fault {
    Fault::new(adasum_status::ADASUM_PANIC, "the stream was lost")
}

/// Plans the reduction of `count` tensors, allocates its buffers and warms up every link.
///
/// Collective: all ranks call it with the same tensors and options (NULL: the defaults) and in the same order if they make
/// several. Waits for the others, at most the creation timeout. The reducer holds a share of the world. End it with
/// adasum_reducer_destroy.
///
/// Errors: ADASUM_MISMATCH on all ranks if they do not agree.
///
/// # Safety
/// `world` and `options` are live or NULL; `tensors` points to `count` tensors with valid names; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_create(
    world: *const adasum_world,
    tensors: *const adasum_tensor,
    count: usize,
    options: *const adasum_options,
    out: *mut *mut adasum_reducer,
) -> adasum_status {
    guard("adasum_reducer_create", || {
        // SAFETY: as promised by the caller.
        let handle = unsafe { required(world, "world") }?;
        let world = handle.get()?;
        // SAFETY: as promised by the caller.
        let specs = unsafe { self::tensors(tensors, count) }?;
        // SAFETY: as promised by the caller.
        let options = unsafe { options.as_ref() }
            .map(adasum_options::get)
            .unwrap_or_default();
        let out = not_null(out, "out")?;
        let reducer = GradientReducer::new(&world, &specs, &options)?;
        let inner = Inner {
            reducer,
            device: world.device().clone(),
            specs,
            streams: HashMap::new(),
            _share: handle.share(),
        };
        let handle = Box::into_raw(Box::new(adasum_reducer(Mutex::new(inner))));
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(handle) };
        Ok(())
    })
}

/// Replaces every tensor by its reduction over all ranks. `inout_gradients` has the device address of each tensor, in the
/// order of creation.
///
/// Collective and stream-ordered: enqueues behind what `stream` holds and returns; what `stream` is given next sees the results. Results are good once a synchronisation of the stream has succeeded.
///
/// Ownership: the memory belongs to the caller, must be memory of the world's device, and must not be freed or used on other
/// streams before the work is done.
/// Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the
/// world.
///
/// # Safety
/// `reducer` is NULL or live; `inout_gradients` points to `count` addresses as described; `stream` is live and outlives the
/// reducer, or adasum_reducer_forget_stream is called before it is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce(
    reducer: *mut adasum_reducer,
    inout_gradients: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_reduce", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { required(reducer, "reducer") }?.enter()?;
        // SAFETY: as promised by the caller.
        let addresses = unsafe { slice(inout_gradients, count, "inout_gradients") }?;
        let stream = not_null(stream, "stream")?;
        // SAFETY: as promised by the caller.
        let gradients =
            unsafe { spans(&inner.device, &inner.specs, addresses, "inout_gradients") }?;
        // SAFETY: as promised by the caller.
        unsafe { inner.stream(stream) };
        let Inner {
            reducer, streams, ..
        } = &mut *inner;
        let Some(stream) = streams.get(&stream.addr()) else {
            return Err(lost());
        };
        Ok(reducer.reduce(&gradients, stream)?)
    })
}

/// Waits until what `stream` holds is done, at most `timeout_ms`, and looks at the reducer's own streams as well: the call to
/// make before results are used.
///
/// Errors: the first failure of that work, or ADASUM_TIMEOUT. Either poisons the world of the reducer.
///
/// # Safety
/// `reducer` is NULL or live; `stream` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_synchronize(
    reducer: *mut adasum_reducer,
    stream: *mut c_void,
    timeout_ms: u64,
) -> adasum_status {
    guard("adasum_reducer_synchronize", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { required(reducer, "reducer") }?.enter()?;
        let stream = not_null(stream, "stream")?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        // SAFETY: as promised by the caller.
        unsafe { inner.stream(stream) };
        let Inner {
            reducer, streams, ..
        } = &*inner;
        let Some(stream) = streams.get(&stream.addr()) else {
            return Err(lost());
        };
        Ok(reducer.synchronize(stream, limit)?)
    })
}

/// Lets go of `stream`, which has no work of this reducer left in it, so that its owner may destroy it. Unknown streams
/// are fine.
///
/// # Safety
/// `reducer` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_forget_stream(
    reducer: *mut adasum_reducer,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_forget_stream", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { required(reducer, "reducer") }?.enter()?;
        inner.streams.remove(&stream.addr());
        Ok(())
    })
}

/// Whether each tensor was non-finite on any rank in the last reduction (1 or 0, in the order of creation); the same on all
/// ranks. Waits for the reduction.
///
/// # Safety
/// `reducer` is NULL or live; `out_flags` points to `count` bytes that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_nonfinite(
    reducer: *mut adasum_reducer,
    out_flags: *mut u8,
    count: usize,
) -> adasum_status {
    guard("adasum_reducer_nonfinite", || {
        // SAFETY: as promised by the caller.
        let inner = unsafe { required(reducer, "reducer") }?.enter()?;
        if count != inner.specs.len() {
            return Err(invalid(format!(
                "count is {count}, the reducer has {} tensors",
                inner.specs.len()
            )));
        }
        // SAFETY: as promised by the caller.
        let out = unsafe { slice_mut(out_flags, count, "out_flags") }?;
        for (place, flag) in out.iter_mut().zip(inner.reducer.nonfinite()?) {
            *place = u8::from(flag);
        }
        Ok(())
    })
}

/// Ends a reducer and frees its buffers; its work must be done (synchronise the stream first). NULL does nothing.
///
/// # Safety
/// `reducer` is NULL or came from adasum_reducer_create, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_destroy(reducer: *mut adasum_reducer) {
    destroy("adasum_reducer_destroy", || {
        if !reducer.is_null() {
            // SAFETY: made by adasum_reducer_create and given back once, as promised.
            drop(unsafe { Box::from_raw(reducer) });
        }
    });
}
