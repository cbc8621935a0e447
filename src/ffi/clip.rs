//! Norm clips.

use std::ffi::c_void;

use super::arguments::{adasum_tensor, not_null, required, slice, tensors as tensors_of, timeout};
use super::catch::catch;
use super::handle::{Entered, Handle, destroy};
use super::status::{CallError, adasum_status};
use super::world::adasum_world;
use crate::plan::TensorSpec;
use crate::reduce::{NormClip, OwnedPart, World};

/// Scales tensors so that the Euclidean norm of all of them together is at most a limit; for between reduction and optimizer.
/// Everything stays on the device. Tensors within the limit keep their values; a NaN or an infinity makes all tensors NaN, on
/// all ranks that share the norm. One thread at a time: a call while another is inside is ADASUM_INVALID_STATE.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_norm_clip(Handle<NormClip>);

impl adasum_norm_clip {
    /// The handle at `clip`, for this thread alone.
    ///
    /// # Safety
    /// `clip` is NULL or live.
    unsafe fn enter<'a>(clip: *mut adasum_norm_clip) -> Result<Entered<'a, NormClip>, CallError> {
        // SAFETY: as promised by the caller.
        unsafe { required(clip, "clip") }?.0.enter("clip")
    }
}

/// Prepares the clipping of `count` tensors to `max_norm`. Each rank takes the norm of its own: results of a reduction are the
/// same on all ranks, and so is what comes out, bit for bit. End it with adasum_norm_clip_destroy.
///
/// Local. Device memory: a copy of all tensors.
/// Errors: ADASUM_INVALID_ARGUMENT if `max_norm` is not finite and above 0.
///
/// # Safety
/// `world` is NULL or live; `tensors` points to `count` tensors with valid names; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_norm_clip_create(
    world: *const adasum_world,
    tensors: *const adasum_tensor,
    count: usize,
    max_norm: f32,
    out: *mut *mut adasum_norm_clip,
) -> adasum_status {
    catch("adasum_norm_clip_create", || {
        // SAFETY: as promised by the caller.
        let specs = unsafe { tensors_of(tensors, count) }?.specs()?;
        let make = |world: &World, specs: &[TensorSpec]| Ok(NormClip::new(world, specs, max_norm)?);
        // SAFETY: as promised by the caller.
        unsafe { Handle::create(world, specs, out, adasum_norm_clip, make) }
    })
}

/// As adasum_norm_clip_create, for `parts` parts of the tensors on each rank, so that the norm of all parts of all ranks of
/// `world` is at most `max_norm`: index of the tensor, first element, number of elements, as adasum_reducer_owned gives them
/// after a scattered reduction. For tensors that are sharded over ranks they are whole tensors, and `world` is the part
/// (adasum_world_part) of those ranks; what several ranks have counts once for each.
///
/// Collective: all ranks of `world` call it, each with its own parts, and so is adasum_norm_clip_clip. Waits for them, at most
/// `timeout_ms`, which also bounds how long a rank waits for the norm later. Device memory: a copy of the parts.
/// Errors: also ADASUM_INVALID_ARGUMENT for a part that is not in its tensor.
///
/// # Safety
/// As for adasum_norm_clip_create; the arrays of parts point to `parts` numbers.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "only scalars cross")]
pub unsafe extern "C" fn adasum_norm_clip_create_of_parts(
    world: *const adasum_world,
    tensors: *const adasum_tensor,
    count: usize,
    part_tensors: *const usize,
    part_starts: *const u64,
    part_lengths: *const u64,
    parts: usize,
    max_norm: f32,
    timeout_ms: u64,
    out: *mut *mut adasum_norm_clip,
) -> adasum_status {
    catch("adasum_norm_clip_create_of_parts", || {
        // SAFETY: as promised by the caller.
        let specs = unsafe { tensors_of(tensors, count) }?.specs()?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice(part_tensors, parts, "part_tensors") }?;
        // SAFETY: as promised by the caller.
        let starts = unsafe { slice(part_starts, parts, "part_starts") }?;
        // SAFETY: as promised by the caller.
        let lengths = unsafe { slice(part_lengths, parts, "part_lengths") }?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        let of = |((&tensor, &start), &len)| OwnedPart { tensor, start, len };
        let parts: Vec<_> = tensors.iter().zip(starts).zip(lengths).map(of).collect();
        let make = |world: &World, specs: &[TensorSpec]| {
            Ok(NormClip::of_parts(world, specs, &parts, max_norm, limit)?)
        };
        // SAFETY: as promised by the caller.
        unsafe { Handle::create(world, specs, out, adasum_norm_clip, make) }
    })
}

/// Clips the tensors in place. `inout_tensors` has the device address of each whole tensor, in the order of creation.
///
/// Stream-ordered. Local, but of parts collective. Ownership: as adasum_reducer_reduce.
/// Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the world.
///
/// # Safety
/// `clip` is NULL or live; `inout_tensors` points to `count` addresses as for adasum_reducer_reduce; `stream` is live and
/// outlives the clip, or adasum_norm_clip_forget_stream is called before it is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_norm_clip_clip(
    clip: *mut adasum_norm_clip,
    inout_tensors: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_norm_clip_clip", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_norm_clip::enter(clip) }?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { inner.tensors(inout_tensors, count, "inout_tensors") }?;
        // SAFETY: as promised by the caller.
        let (clip, stream) = unsafe { inner.on(stream) }?;
        Ok(clip.clip(&tensors, stream)?)
    })
}

/// The norm of all tensors together before they were last clipped; NaN if there was a NaN or an infinity, 0 before the first
/// time. Local: the caller synchronises the stream of adasum_norm_clip_clip before.
///
/// # Safety
/// `clip` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_norm_clip_last_norm(
    clip: *mut adasum_norm_clip,
    out: *mut f32,
) -> adasum_status {
    catch("adasum_norm_clip_last_norm", || {
        // SAFETY: as promised by the caller.
        let inner = unsafe { adasum_norm_clip::enter(clip) }?;
        let out = not_null(out, "out")?;
        let norm = inner.object.last_norm()?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(norm) };
        Ok(())
    })
}

/// Lets go of `stream`, as adasum_reducer_forget_stream.
///
/// # Safety
/// `clip` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_norm_clip_forget_stream(
    clip: *mut adasum_norm_clip,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_norm_clip_forget_stream", || {
        // SAFETY: as promised by the caller.
        unsafe { adasum_norm_clip::enter(clip) }?.forget(stream)
    })
}

/// Ends a norm clip; its work must be done (synchronise the stream first). Local. It may outlive the handle of its world. NULL
/// does nothing.
///
/// # Safety
/// `clip` is NULL or came from adasum_norm_clip_create or adasum_norm_clip_create_of_parts, was not destroyed, and no other call
/// uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_norm_clip_destroy(clip: *mut adasum_norm_clip) {
    // SAFETY: as promised by the caller.
    unsafe { destroy("adasum_norm_clip_destroy", clip) };
}
