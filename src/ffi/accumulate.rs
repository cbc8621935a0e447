//! Gradient accumulators.

use std::ffi::c_void;

use super::arguments::{adasum_tensor, not_null, required, tensors as tensors_of};
use super::catch::catch;
use super::handle::{Entered, Handle, destroy};
use super::status::{CallError, adasum_status};
use super::world::adasum_world;
use crate::plan::TensorSpec;
use crate::reduce::{GradientAccumulator, World};

/// Sums gradients over micro-steps in fp32, before one reduction: AdaSum of sums is not the sum of AdaSums, and one reduction a
/// step is what larger batches ask for. One thread at a time: a call while another is inside is ADASUM_INVALID_STATE.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_gradient_accumulator(Handle<GradientAccumulator>);

impl adasum_gradient_accumulator {
    /// The handle at `accumulator`, for this thread alone.
    ///
    /// # Safety
    /// `accumulator` is NULL or live.
    unsafe fn enter<'a>(
        accumulator: *mut adasum_gradient_accumulator,
    ) -> Result<Entered<'a, GradientAccumulator>, CallError> {
        // SAFETY: as promised by the caller.
        unsafe { required(accumulator, "accumulator") }?
            .0
            .enter("accumulator")
    }
}

/// Gives an empty sum of the gradients of `count` tensors. End it with adasum_gradient_accumulator_destroy.
///
/// Local. Device memory: two fp32 copies of all tensors.
///
/// # Safety
/// `world` is NULL or live; `tensors` points to `count` tensors with valid names; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_gradient_accumulator_create(
    world: *const adasum_world,
    tensors: *const adasum_tensor,
    count: usize,
    out: *mut *mut adasum_gradient_accumulator,
) -> adasum_status {
    catch("adasum_gradient_accumulator_create", || {
        // SAFETY: as promised by the caller.
        let specs = unsafe { tensors_of(tensors, count) }?.specs()?;
        let make =
            |world: &World, specs: &[TensorSpec]| Ok(GradientAccumulator::new(world, specs)?);
        // SAFETY: as promised by the caller.
        unsafe { Handle::create(world, specs, out, adasum_gradient_accumulator, make) }
    })
}

/// Adds `gradients` to the sum: the device address of each whole tensor, in the order of creation. For after each backward pass.
///
/// Local and stream-ordered. Ownership: as adasum_reducer_reduce.
/// Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the world.
///
/// # Safety
/// `accumulator` is NULL or live; `gradients` points to `count` addresses as for adasum_reducer_reduce; `stream` is live and
/// outlives the accumulator, or adasum_gradient_accumulator_forget_stream is called before it is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_gradient_accumulator_add(
    accumulator: *mut adasum_gradient_accumulator,
    gradients: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_gradient_accumulator_add", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_gradient_accumulator::enter(accumulator) }?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe { inner.tensors(gradients, count, "gradients") }?;
        // SAFETY: as promised by the caller.
        let (accumulator, stream) = unsafe { inner.on(stream) }?;
        Ok(accumulator.add(&gradients, stream)?)
    })
}

/// How many gradients the sum has. Local.
///
/// # Safety
/// `accumulator` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_gradient_accumulator_steps(
    accumulator: *mut adasum_gradient_accumulator,
    out: *mut u32,
) -> adasum_status {
    catch("adasum_gradient_accumulator_steps", || {
        // SAFETY: as promised by the caller.
        let inner = unsafe { adasum_gradient_accumulator::enter(accumulator) }?;
        let out = not_null(out, "out")?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(inner.object.steps()) };
        Ok(())
    })
}

/// Replaces the tensors at `out_gradients` by `factor` times the sum, rounded once to their types, and empties the sum; a factor
/// of 1 / steps gives the mean. For before the reducer.
///
/// Local and stream-ordered. Ownership: as adasum_reducer_reduce.
/// Errors: ADASUM_INVALID_STATE if nothing was added. Wrong arguments, such as a factor that is not finite, are refused before
/// anything is enqueued. A later failure of this call poisons the world.
///
/// # Safety
/// As for adasum_gradient_accumulator_add.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_gradient_accumulator_take(
    accumulator: *mut adasum_gradient_accumulator,
    out_gradients: *const *mut c_void,
    count: usize,
    factor: f32,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_gradient_accumulator_take", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_gradient_accumulator::enter(accumulator) }?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe { inner.tensors(out_gradients, count, "out_gradients") }?;
        // SAFETY: as promised by the caller.
        let (accumulator, stream) = unsafe { inner.on(stream) }?;
        Ok(accumulator.take(&gradients, factor, stream)?)
    })
}

/// Lets go of `stream`, as adasum_reducer_forget_stream.
///
/// # Safety
/// `accumulator` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_gradient_accumulator_forget_stream(
    accumulator: *mut adasum_gradient_accumulator,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_gradient_accumulator_forget_stream", || {
        // SAFETY: as promised by the caller.
        unsafe { adasum_gradient_accumulator::enter(accumulator) }?.forget(stream)
    })
}

/// Ends an accumulator; its work must be done (synchronise the stream first). Local. It may outlive the handle of its world.
/// NULL does nothing.
///
/// # Safety
/// `accumulator` is NULL or came from adasum_gradient_accumulator_create, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_gradient_accumulator_destroy(
    accumulator: *mut adasum_gradient_accumulator,
) {
    // SAFETY: as promised by the caller.
    unsafe { destroy("adasum_gradient_accumulator_destroy", accumulator) };
}
