//! What comes from C: checked once, here.

use std::ffi::{CStr, c_char, c_void};
use std::time::Duration;

use super::status::{Fault, adasum_status};
use crate::ascend::{Device, Span};
use crate::plan::{DType, TensorSpec};

/// A tensor to reduce. Frozen: its layout never changes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_tensor {
    /// Name for messages and statistics, UTF-8; copied.
    pub name: *const c_char,
    /// Number of elements; 0 is allowed.
    pub count: u64,
    /// ADASUM_F32, ADASUM_F16 or ADASUM_BF16.
    pub dtype: i32,
    /// 0; the other values are kept for later versions.
    pub flags: u32,
}

const _: () = assert!(size_of::<adasum_tensor>() == 24 && align_of::<adasum_tensor>() == 8);

/// IEEE 754 single precision (the number that aclDataType gives it).
pub const ADASUM_F32: i32 = 0;
/// IEEE 754 half precision (the number that aclDataType gives it).
pub const ADASUM_F16: i32 = 1;
/// bfloat16 (the number that aclDataType gives it).
pub const ADASUM_BF16: i32 = 27;

/// What `pointer` points to.
///
/// # Safety
/// `pointer` is NULL or points to a live `T` that nobody changes meanwhile.
pub(super) unsafe fn required<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Fault> {
    // SAFETY: as promised by the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| Fault::null(name))
}

/// An error if `pointer` is NULL; outputs are checked so before any work is done.
pub(super) fn not_null<T>(pointer: *mut T, name: &str) -> Result<*mut T, Fault> {
    if pointer.is_null() {
        return Err(Fault::null(name));
    }
    Ok(pointer)
}

/// `count` values from `pointer` on; NULL is fine for none.
///
/// # Safety
/// `pointer` is NULL or points to `count` live values that nobody changes meanwhile.
pub(super) unsafe fn slice<'a, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Fault::null(name));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(invalid(format!(
            "{name}: a count of {count} is more than memory can hold"
        )));
    }
    // SAFETY: not null, of a size that exists, and valid as promised by the caller.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// As [`slice()`], to be written to.
///
/// # Safety
/// As for [`slice()`], and nobody else uses the values meanwhile.
pub(super) unsafe fn slice_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [T], Fault> {
    // SAFETY: as promised by the caller.
    let checked = unsafe { slice(pointer.cast_const(), count, name) }?;
    if checked.is_empty() {
        return Ok(&mut []);
    }
    // SAFETY: the same memory, which the caller lets us write to.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// A text.
///
/// # Safety
/// `pointer` is NULL or points to a string with a zero at its end that nobody changes meanwhile.
pub(super) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Fault> {
    if pointer.is_null() {
        return Err(Fault::null(name));
    }
    // SAFETY: not null, so a C string as promised by the caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| invalid(format!("{name}: {:?} is not UTF-8", text.to_string_lossy())))
}

/// A limit of time, at least a millisecond.
pub(super) fn timeout(milliseconds: u64, name: &str) -> Result<Duration, Fault> {
    if milliseconds == 0 {
        return Err(invalid(format!(
            "{name} is 0: every wait needs a limit above"
        )));
    }
    Ok(Duration::from_millis(milliseconds))
}

pub(super) fn invalid(message: String) -> Fault {
    Fault::new(adasum_status::ADASUM_INVALID_ARGUMENT, message)
}

/// The tensors that `pointer` describes.
///
/// # Safety
/// As for [`slice()`], and each name as for [`text`].
pub(super) unsafe fn tensors(
    pointer: *const adasum_tensor,
    count: usize,
) -> Result<Vec<TensorSpec>, Fault> {
    // SAFETY: as promised by the caller.
    let list = unsafe { slice(pointer, count, "tensors") }?;
    let mut specs = Vec::with_capacity(list.len());
    for (index, tensor) in list.iter().enumerate() {
        // SAFETY: as promised by the caller.
        let name = unsafe { text(tensor.name, &format!("tensors[{index}].name")) }?;
        if tensor.flags != 0 {
            return Err(invalid(format!(
                "tensors[{index}].flags ({name}) is {:#x}, must be 0",
                tensor.flags
            )));
        }
        let dtype = dtype(tensor.dtype).ok_or_else(|| {
            invalid(format!(
                "tensors[{index}].dtype ({name}) is {}: not ADASUM_F32 ({ADASUM_F32}), ADASUM_F16 ({ADASUM_F16}) or \
                 ADASUM_BF16 ({ADASUM_BF16})",
                tensor.dtype
            ))
        })?;
        specs.push(TensorSpec::new(name, tensor.count, dtype));
    }
    Ok(specs)
}

fn dtype(code: i32) -> Option<DType> {
    match code {
        ADASUM_F32 => Some(DType::F32),
        ADASUM_F16 => Some(DType::F16),
        ADASUM_BF16 => Some(DType::BF16),
        _ => None,
    }
}

/// Device memory of the tensors `specs` at `addresses`; NULL is fine for a tensor without elements.
///
/// # Safety
/// Each address is device memory of the whole tensor until the queued work is done.
pub(super) unsafe fn spans(
    device: &Device,
    specs: &[TensorSpec],
    addresses: &[*mut c_void],
    name: &str,
) -> Result<Vec<Span>, Fault> {
    if addresses.len() != specs.len() {
        return Err(invalid(format!(
            "count: {} {name} were given for {} tensors",
            addresses.len(),
            specs.len()
        )));
    }
    let mut spans = Vec::with_capacity(specs.len());
    for (index, (spec, &address)) in specs.iter().zip(addresses).enumerate() {
        let bytes = spec
            .count
            .checked_mul(spec.dtype.size())
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| invalid(format!("tensor {:?} is too large", spec.name)))?;
        if address.is_null() && bytes > 0 {
            return Err(Fault::null(&format!("{name}[{index}] ({})", spec.name)));
        }
        // SAFETY: as promised by the caller.
        spans.push(unsafe { Span::borrow(device, address, bytes) });
    }
    Ok(spans)
}
