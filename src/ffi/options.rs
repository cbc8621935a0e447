//! Choices of a reducer, set one by one so that new ones never change a struct.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::arguments::{invalid, not_null, required, timeout};
use super::guard::{destroy, guard};
use super::status::{Fault, adasum_status};
use crate::reduce::{Options, Reduction, Wire};

/// Choices of a reducer; made by adasum_options_create with the defaults, the same on all ranks.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_options(Mutex<Options>);

impl adasum_options {
    pub(super) fn get(&self) -> Options {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Options> {
        // Each setter writes one field, so a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// AdaSum between servers, the mean in each server. The default.
pub const ADASUM_REDUCTION_ADASUM: i32 = 0;
/// The mean over all ranks.
pub const ADASUM_REDUCTION_MEAN: i32 = 1;
/// The sum over all ranks.
pub const ADASUM_REDUCTION_SUM: i32 = 2;

/// Gives options with the defaults; end them with adasum_options_destroy.
///
/// # Safety
/// `out` points to a pointer that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_create(out: *mut *mut adasum_options) -> adasum_status {
    guard("adasum_options_create", || {
        let out = not_null(out, "out")?;
        let options = Box::new(adasum_options(Mutex::new(Options::default())));
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(Box::into_raw(options)) };
        Ok(())
    })
}

/// Ends options. Reducers that were made with them keep what they need. NULL does nothing.
///
/// # Safety
/// `options` is NULL or came from adasum_options_create, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_destroy(options: *mut adasum_options) {
    destroy("adasum_options_destroy", || {
        if !options.is_null() {
            // SAFETY: made by adasum_options_create and given back once, as promised.
            drop(unsafe { Box::from_raw(options) });
        }
    });
}

/// How servers are combined: ADASUM_REDUCTION_ADASUM, ADASUM_REDUCTION_MEAN or ADASUM_REDUCTION_SUM.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_reduction(
    options: *mut adasum_options,
    reduction: i32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_reduction", options, |options| {
            options.reduction = match reduction {
                ADASUM_REDUCTION_ADASUM => Reduction::Adasum,
                ADASUM_REDUCTION_MEAN => Reduction::Mean,
                ADASUM_REDUCTION_SUM => Reduction::Sum,
                other => {
                    return Err(invalid(format!(
                        "reduction is {other}: not ADASUM_REDUCTION_ADASUM (0), _MEAN (1) or _SUM (2)"
                    )));
                }
            };
            Ok(())
        })
    }
}

/// The most subtrees of servers that a round merges, 2 to 8. Default 2.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_radix(
    options: *mut adasum_options,
    radix: u32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_radix", options, |options| {
            if !(2..=crate::plan::MAX_RADIX).contains(&radix) {
                return Err(invalid(format!(
                    "radix is {radix}, must be 2 to {}",
                    crate::plan::MAX_RADIX
                )));
            }
            options.radix = radix;
            Ok(())
        })
    }
}

/// Whether a single server of several ranks, where AdaSum has nothing to combine, may give a plain mean: 1 or 0 (default),
/// which refuses such a world.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_allow_plain_mean(
    options: *mut adasum_options,
    allow: i32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_allow_plain_mean", options, |options| {
            options.allow_plain_mean = flag(allow, "allow")?;
            Ok(())
        })
    }
}

/// Limit of the collective warm-up at creation, in milliseconds. Default 300,000.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_create_timeout(
    options: *mut adasum_options,
    milliseconds: u64,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_create_timeout", options, |options| {
            options.create_timeout = timeout(milliseconds, "milliseconds")?;
            Ok(())
        })
    }
}

/// Element type between ranks: that of the tensor. The default.
pub const ADASUM_WIRE_NATIVE: i32 = 0;
/// Element type between ranks: fp32, rounded to the tensor's type once at the end.
pub const ADASUM_WIRE_F32: i32 = 1;

/// Element type of what ranks send each other: ADASUM_WIRE_NATIVE or ADASUM_WIRE_F32.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_wire(
    options: *mut adasum_options,
    wire: i32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_wire", options, |options| {
            options.wire = match wire {
                ADASUM_WIRE_NATIVE => Wire::Native,
                ADASUM_WIRE_F32 => Wire::F32,
                other => {
                    return Err(invalid(format!(
                        "wire is {other}: not ADASUM_WIRE_NATIVE (0) or ADASUM_WIRE_F32 (1)"
                    )));
                }
            };
            Ok(())
        })
    }
}

/// What this rank's gradients are multiplied by, in fp32, before anything else; the one option that may differ between
/// ranks. Default 1.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_scale(
    options: *mut adasum_options,
    scale: f32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_scale", options, |options| {
            if !scale.is_finite() {
                return Err(invalid(format!("scale is {scale}, not a finite number")));
            }
            options.scale = scale;
            Ok(())
        })
    }
}

/// Bytes of tensors that share a fused buffer, at least 1; a larger tensor has one of its own. Results differ between
/// values by at most a rounding.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_bucket_bytes(
    options: *mut adasum_options,
    bytes: u64,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_bucket_bytes", options, |options| {
            if bytes == 0 {
                return Err(invalid("bytes is 0, must be at least 1".to_owned()));
            }
            options.bucket_bytes = bytes;
            Ok(())
        })
    }
}

/// Fused buffers that are under way at a time, 1 to 64. Device memory grows with it, results do not depend on it.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_pipeline_depth(
    options: *mut adasum_options,
    depth: u32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_pipeline_depth", options, |options| {
            if !(1..=64).contains(&depth) {
                return Err(invalid(format!("depth is {depth}, must be 1 to 64")));
            }
            options.pipeline_depth = depth as usize;
            Ok(())
        })
    }
}

/// Whether each reduction ends with a barrier of all ranks: 1 or 0 (default).
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_barrier(
    options: *mut adasum_options,
    barrier: i32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        set("adasum_options_set_barrier", options, |options| {
            options.barrier = flag(barrier, "barrier")?;
            Ok(())
        })
    }
}

fn flag(value: i32, name: &str) -> Result<bool, Fault> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(format!("{name} is {other}, must be 0 or 1"))),
    }
}

/// Runs a setter.
///
/// # Safety
/// `options` is NULL or live.
unsafe fn set(
    function: &'static str,
    options: *mut adasum_options,
    change: impl FnOnce(&mut Options) -> Result<(), Fault>,
) -> adasum_status {
    guard(function, || {
        // SAFETY: as promised by the caller.
        let options = unsafe { required(options, "options") }?;
        change(&mut options.lock())
    })
}
