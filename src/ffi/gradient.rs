//! The gradient reducer: all tensors, some of them, or one buffer, and the results that a rank owns.

use std::ffi::c_void;

use super::arguments::{
    adasum_tensor, invalid, not_null, slice, slice_mut, span, tensors, timeout,
};
use super::catch::catch;
use super::options::adasum_options;
use super::reducer::{AnyReducer, adasum_reducer, create, vote};
use super::status::adasum_status;
use super::world::adasum_world;
use crate::plan::TensorSpec;
use crate::reduce::{GradientReducer, World};

/// Plans the reduction of the gradients of `count` tensors, allocates its buffers and warms up every link.
///
/// Collective: all ranks call it with the same tensors and options (NULL: the defaults) and in the same order if they make
/// several. Waits for the others, at most the creation timeout. The reducer holds a share of the world. End it with
/// adasum_reducer_destroy.
///
/// Errors: ADASUM_MISMATCH on all ranks if they do not agree, and on the others if one has no memory for it.
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
    catch("adasum_reducer_create", || {
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        // SAFETY: as promised by the caller.
        let specs = unsafe { self::tensors(tensors, count) }?.specs()?;
        let make = |world: &World, specs: &[TensorSpec]| {
            let reducer = GradientReducer::new(world, specs, &settings.options(world)?)?;
            let vote = vote(world, specs, &settings)?;
            Ok(AnyReducer::Gradient(reducer, vote))
        };
        // SAFETY: as promised by the caller.
        unsafe { create(world, specs, out, make) }
    })
}

/// Replaces every tensor by its reduction over all ranks. `inout_gradients` has the device address of each tensor, in the
/// order of creation; it may be another one in each call, and NULL for a tensor without elements. Gradient and mean
/// reducers.
///
/// Collective (of a mean reducer: in its group) and stream-ordered: enqueues behind what `stream` holds and returns, and
/// waits only where the stream's queue is full; what `stream` is given next sees the results. On the host they are good
/// once adasum_reducer_synchronize has succeeded.
///
/// Ownership: the memory belongs to the caller, must be memory of the world's device, aligned to its elements, and must
/// not be freed or used on other streams before the work is done; with the option checksum not freed or changed before
/// adasum_reducer_synchronize has returned, which reads results.
/// Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the world.
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
    catch("adasum_reducer_reduce", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe { inner.tensors(inout_gradients, count, "inout_gradients") }?;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        match reducer {
            AnyReducer::Gradient(reducer, _) => reducer.reduce(&gradients, stream)?,
            AnyReducer::Mean(reducer) => reducer.reduce(&gradients, stream)?,
            other => return Err(other.wrong()),
        }
        Ok(())
    })
}

/// As adasum_reducer_reduce, for all tensors one right behind the other, in the order of creation and without gaps, in the
/// `bytes` bytes from `inout_buffer` on. Gradient reducers.
///
/// # Safety
/// As for adasum_reducer_reduce, the buffer instead of the addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce_flat(
    reducer: *mut adasum_reducer,
    inout_buffer: *mut c_void,
    bytes: u64,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_reducer_reduce_flat", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let buffer = unsafe { span(&inner.streams.device, inout_buffer, bytes, "inout_buffer") }?;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        Ok(reducer.gradient()?.reduce_flat(&buffer, stream)?)
    })
}

/// As adasum_reducer_reduce, for `count` of the tensors: `tensors` has their indices in the list of creation, in any order,
/// each at most once, and `inout_gradients` the address of each. For frameworks that hand over gradients in buckets. Gradient
/// reducers.
///
/// Collective: all ranks call it with the same indices in the same order. The first call for a subset plans it and waits
/// for all ranks (adasum_reducer_prepare_some does so in advance); later ones are stream-ordered. Ranks that then take two subsets of equal
/// sizes in different orders mix them up; only the option checksum tells.
///
/// # Safety
/// As for adasum_reducer_reduce; `tensors` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce_some(
    reducer: *mut adasum_reducer,
    tensors: *const usize,
    inout_gradients: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_reducer_reduce_some", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice(tensors, count, "tensors") }?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe { inner.subset(tensors, inout_gradients, "inout_gradients") }?;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        Ok(reducer
            .gradient()?
            .reduce_some(tensors, &gradients, stream)?)
    })
}

/// As adasum_reducer_reduce_some, for gradients that lie one right behind the other, in the order of `tensors` and without
/// gaps, in the `bytes` bytes from `inout_buffer` on, as in the buckets of PyTorch's DDP. Gradient reducers.
///
/// # Safety
/// As for adasum_reducer_reduce_some, the buffer instead of the addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce_some_flat(
    reducer: *mut adasum_reducer,
    tensors: *const usize,
    count: usize,
    inout_buffer: *mut c_void,
    bytes: u64,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_reducer_reduce_some_flat", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice(tensors, count, "tensors") }?;
        // SAFETY: as promised by the caller.
        let buffer = unsafe { span(&inner.streams.device, inout_buffer, bytes, "inout_buffer") }?;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        Ok(reducer
            .gradient()?
            .reduce_some_flat(tensors, &buffer, stream)?)
    })
}

/// Plans the reduction of the tensors at these indices, so that the first adasum_reducer_reduce_some of them does not wait.
/// Does nothing for a subset that is planned already. Gradient reducers.
///
/// Collective: all ranks call it with the same indices. Waits for them, at most the creation timeout.
/// Errors: ADASUM_MISMATCH on all ranks if they do not agree.
///
/// # Safety
/// `reducer` is NULL or live; `tensors` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_prepare_some(
    reducer: *mut adasum_reducer,
    tensors: *const usize,
    count: usize,
) -> adasum_status {
    catch("adasum_reducer_prepare_some", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice(tensors, count, "tensors") }?;
        Ok(inner.object.gradient()?.prepare_some(tensors)?)
    })
}

/// Lets all ranks decide whether any of them has a NaN or an infinity in `gradients`, which are not changed: 1 or 0 in
/// `out_overflowed`, the same on all ranks. For loss scaling: skip reduction and optimizer if so. Gradient and delta
/// reducers that were created with overflow = vote.
///
/// Collective. Waits for the vote, and so for what `stream` holds, at most `timeout_ms`.
///
/// # Safety
/// As for adasum_reducer_reduce; `out_overflowed` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_overflow(
    reducer: *mut adasum_reducer,
    gradients: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
    timeout_ms: u64,
    out_overflowed: *mut i32,
) -> adasum_status {
    catch("adasum_reducer_overflow", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe { inner.tensors(gradients, count, "gradients") }?;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        let out = not_null(out_overflowed, "out_overflowed")?;
        let vote = reducer.vote()?;
        vote.cast(&gradients, stream)?;
        let overflowed = vote.overflowed(stream, limit)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(i32::from(overflowed)) };
        Ok(())
    })
}

/// Device addresses of places for gradients, in the order of creation, in the reducer's own buffers (option
/// gradient_buffers): gradients that lie there are reduced where they are. They are the reducer's, and stay the same until it
/// is destroyed; what lies between tensors may be overwritten, and all of it by a reduction of other memory. NULL for a tensor
/// that is sent as another type (option wire). Gradient reducers. Local.
///
/// Errors: ADASUM_INVALID_STATE without the option gradient_buffers, or with scale or result_scale other than 1.
///
/// # Safety
/// `reducer` is NULL or live; `out_gradients` points to `count` addresses that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_gradient_buffers(
    reducer: *mut adasum_reducer,
    out_gradients: *mut *mut c_void,
    count: usize,
) -> adasum_status {
    catch("adasum_reducer_gradient_buffers", || {
        // SAFETY: as promised by the caller.
        let inner = unsafe { adasum_reducer::enter(reducer) }?;
        inner.count_is(count)?;
        // SAFETY: as promised by the caller.
        let out = unsafe { slice_mut(out_gradients, count, "out_gradients") }?;
        let places = match &inner.object {
            AnyReducer::Gradient(reducer, _) => reducer.gradient_buffers()?,
            other => return Err(other.wrong()),
        };
        for (out, place) in out.iter_mut().zip(places) {
            let address = place.map_or(0, |place| place.address());
            let address = usize::try_from(address).unwrap_or(usize::MAX);
            *out = std::ptr::with_exposed_provenance_mut(address);
        }
        Ok(())
    })
}

/// How many parts of tensors this rank owns after a scattered reduction. Gradient reducers. Local.
///
/// # Safety
/// `reducer` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_owned_count(
    reducer: *mut adasum_reducer,
    out: *mut usize,
) -> adasum_status {
    catch("adasum_reducer_owned_count", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let out = not_null(out, "out")?;
        let count = inner.object.gradient()?.owned().len();
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(count) };
        Ok(())
    })
}

/// The parts of tensors that this rank owns, adasum_reducer_owned_count of them: index of the tensor, first element, number of
/// elements. With the option scattered these are the results of a reduction on this rank, and what its sharded optimizer
/// steps; the parts of all ranks tile all tensors. Gradient reducers. Local.
///
/// # Safety
/// `reducer` is NULL or live; the others point to `count` numbers that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_owned(
    reducer: *mut adasum_reducer,
    out_tensors: *mut usize,
    out_starts: *mut u64,
    out_lengths: *mut u64,
    count: usize,
) -> adasum_status {
    catch("adasum_reducer_owned", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let owned = inner.object.gradient()?.owned();
        if count != owned.len() {
            return Err(invalid(format!(
                "count is {count}, this rank owns {} parts",
                owned.len()
            )));
        }
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice_mut(out_tensors, count, "out_tensors") }?;
        // SAFETY: as promised by the caller.
        let starts = unsafe { slice_mut(out_starts, count, "out_starts") }?;
        // SAFETY: as promised by the caller.
        let lengths = unsafe { slice_mut(out_lengths, count, "out_lengths") }?;
        for (index, part) in owned.iter().enumerate() {
            (tensors[index], starts[index], lengths[index]) = (part.tensor, part.start, part.len);
        }
        Ok(())
    })
}

/// Brings the owned parts of tensors to all ranks: of weights, say, that a sharded optimizer has stepped. Sizes and types are
/// those of the gradients. Gradient reducers with the option scattered.
///
/// Collective and stream-ordered. Ownership and errors as adasum_reducer_reduce.
///
/// # Safety
/// As for adasum_reducer_reduce.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_collect(
    reducer: *mut adasum_reducer,
    inout_tensors: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_reducer_collect", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { inner.tensors(inout_tensors, count, "inout_tensors") }?;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        Ok(reducer.gradient()?.collect(&tensors, stream)?)
    })
}
