//! The delta-weight reducer.

use std::ffi::c_void;

use super::arguments::{adasum_tensor, tensors};
use super::catch::catch;
use super::options::adasum_options;
use super::reducer::{AnyReducer, adasum_reducer, create, vote};
use super::status::adasum_status;
use super::world::adasum_world;
use crate::plan::TensorSpec;
use crate::reduce::{DeltaWeightReducer, World};

/// Plans the reduction of what an optimizer does to the weights `tensors`; their gradients have the same sizes and types. A
/// step is adasum_reducer_delta_begin, the caller's optimizer, adasum_reducer_delta_end. The option delta_form says
/// what the optimizer steps on.
///
/// Collective: all ranks call it with the same tensors and options (NULL: the defaults). Waits for the others, at most the
/// creation timeout. End it with adasum_reducer_destroy.
/// Errors: ADASUM_MISMATCH on all ranks if they do not agree; ADASUM_INVALID_ARGUMENT if in_server is not mean, or with
/// scattered: new weights need the deltas of all elements on every rank.
///
/// # Safety
/// `world` and `options` are live or NULL; `tensors` points to `count` tensors with valid names; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_create_delta(
    world: *const adasum_world,
    tensors: *const adasum_tensor,
    count: usize,
    options: *const adasum_options,
    out: *mut *mut adasum_reducer,
) -> adasum_status {
    catch("adasum_reducer_create_delta", || {
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        // SAFETY: as promised by the caller.
        let specs = unsafe { self::tensors(tensors, count) }?.specs()?;
        let make = |world: &World, specs: &[TensorSpec]| {
            let options = settings.options(world)?;
            let reducer = DeltaWeightReducer::new(world, specs, settings.delta_form, &options)?;
            let vote = vote(world, specs, &settings)?;
            Ok(AnyReducer::Delta(reducer, vote))
        };
        // SAFETY: as promised by the caller.
        unsafe { create(world, specs, out, make) }
    })
}

/// Starts a step: saves `weights` and, with delta_form = server_mean and several ranks a server, replaces `inout_gradients` by
/// their mean over the server. Otherwise `inout_gradients` may be NULL and is left alone. Both have `count` device
/// addresses in the order of creation. Delta reducers.
///
/// Collective and stream-ordered: the optimizer, enqueued next on `stream`, sees the means and may change the weights.
/// Ownership: as adasum_reducer_reduce.
/// Errors: ADASUM_INVALID_STATE if a step is open already. Wrong arguments are refused before anything is enqueued; any
/// other failure makes the reducer unusable.
///
/// # Safety
/// As for adasum_reducer_reduce, for both arrays; `inout_gradients` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_delta_begin(
    reducer: *mut adasum_reducer,
    inout_gradients: *const *mut c_void,
    weights: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_reducer_delta_begin", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let weights = unsafe { inner.tensors(weights, count, "weights") }?;
        let gradients = if inout_gradients.is_null() {
            Vec::new()
        } else {
            // SAFETY: as promised by the caller.
            unsafe { inner.tensors(inout_gradients, count, "inout_gradients") }?
        };
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        Ok(reducer.delta()?.begin(&gradients, &weights, stream)?)
    })
}

/// Ends a step: replaces `inout_weights`, which the optimizer has changed, by old - AdaSum of (old - new) over the servers.
/// Weights that were equal on all ranks are equal again. Delta reducers.
///
/// Collective and stream-ordered, behind the optimizer's work on `stream`. Ownership: as adasum_reducer_reduce.
/// Errors: ADASUM_INVALID_STATE if no step is open. Wrong arguments are refused before anything is enqueued; any other
/// failure makes the reducer unusable, and weights may be those of the optimizer or of the step.
///
/// # Safety
/// As for adasum_reducer_reduce.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_delta_end(
    reducer: *mut adasum_reducer,
    inout_weights: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_reducer_delta_end", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let weights = unsafe { inner.tensors(inout_weights, count, "inout_weights") }?;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        Ok(reducer.delta()?.end(&weights, stream)?)
    })
}

/// Gives up an open step, as after weights were loaded from a checkpoint. Between steps it does nothing. Delta reducers.
///
/// Local, but all ranks must do the same.
///
/// # Safety
/// `reducer` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_delta_reset(reducer: *mut adasum_reducer) -> adasum_status {
    catch("adasum_reducer_delta_reset", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        inner.object.delta()?.reset();
        Ok(())
    })
}
