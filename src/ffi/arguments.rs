//! Arguments from C: each is checked here, once.

use std::ffi::{CStr, c_char, c_void};
use std::time::Duration;

use super::status::{CallError, adasum_status};
use crate::ascend::{Device, Span};
use crate::plan::{DType, TensorSpec};
use crate::reduce::MeanTensor;

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
    /// 0, or for mean reducers ADASUM_TENSOR_LAYERWISE, ADASUM_TENSOR_FUSION or both; the other bits are kept for later versions
    /// and are 0.
    pub flags: u32,
}

/// The tensor is another one on each rank (MindSpore's layerwise_parallel): a mean reducer leaves its gradient as it is.
pub const ADASUM_TENSOR_LAYERWISE: u32 = 1;
/// The tensor has a fusion id of its own (MindSpore's comm_fusion), of 24 bits, which the flags hold from bit
/// ADASUM_TENSOR_FUSION_SHIFT on: `ADASUM_TENSOR_FUSION | id << ADASUM_TENSOR_FUSION_SHIFT`. Where the tensors of a mean
/// reducer have different ones, tensors with equal ids travel together and 0 travels alone (1 for a tensor without);
/// else the option fusion decides.
pub const ADASUM_TENSOR_FUSION: u32 = 2;
/// First bit of a fusion id in flags.
pub const ADASUM_TENSOR_FUSION_SHIFT: u32 = 8;

const _: () = assert!(size_of::<adasum_tensor>() == 24 && align_of::<adasum_tensor>() == 8);

/// IEEE 754 single precision (the number that aclDataType gives it).
pub const ADASUM_F32: i32 = 0;
/// IEEE 754 half precision (the number that aclDataType gives it).
pub const ADASUM_F16: i32 = 1;
/// bfloat16 (the number that aclDataType gives it).
pub const ADASUM_BF16: i32 = 27;

/// The value at `pointer`.
///
/// # Safety
/// `pointer` is NULL or points to a live `T` that nobody changes meanwhile.
pub(super) unsafe fn required<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, CallError> {
    // SAFETY: as promised by the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| CallError::null(name))
}

/// Checks a place for an output, before any work is done.
pub(super) fn not_null<T>(pointer: *mut T, name: &str) -> Result<*mut T, CallError> {
    check_place(pointer, name)?;
    Ok(pointer)
}

/// Checks that `pointer` is not NULL and aligned.
fn check_place<T>(pointer: *const T, name: &str) -> Result<(), CallError> {
    if pointer.is_null() {
        return Err(CallError::null(name));
    }
    if !pointer.is_aligned() {
        return Err(invalid(format!(
            "{name}: {pointer:p} is not a multiple of {}",
            align_of::<T>()
        )));
    }
    Ok(())
}

/// `count` values from `pointer` on; NULL is fine for none.
///
/// # Safety
/// `pointer` is NULL or points to `count` live values that nobody changes meanwhile.
pub(super) unsafe fn slice<'a, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], CallError> {
    if count == 0 {
        return Ok(&[]);
    }
    check_place(pointer, name)?;
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
) -> Result<&'a mut [T], CallError> {
    // SAFETY: as promised by the caller.
    let checked = unsafe { slice(pointer.cast_const(), count, name) }?;
    if checked.is_empty() {
        return Ok(&mut []);
    }
    // SAFETY: the same memory, which the caller lets us write to.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// The text at `pointer`.
///
/// # Safety
/// `pointer` is NULL or points to a string with a zero at its end that nobody changes meanwhile.
pub(super) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, CallError> {
    if pointer.is_null() {
        return Err(CallError::null(name));
    }
    // SAFETY: not null, so a C string as promised by the caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| invalid(format!("{name}: {:?} is not UTF-8", text.to_string_lossy())))
}

/// A limit of time: at least a millisecond.
pub(super) fn timeout(milliseconds: u64, name: &str) -> Result<Duration, CallError> {
    if milliseconds == 0 {
        return Err(invalid(format!(
            "{name} is 0: every wait needs a limit above"
        )));
    }
    Ok(Duration::from_millis(milliseconds))
}

/// A flag: 0 or 1.
pub(super) fn flag(value: i32, name: &str) -> Result<bool, CallError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(format!("{name} is {other}, must be 0 or 1"))),
    }
}

/// The choice among named constants that `value` stands for.
pub(super) fn choice<T: Clone>(
    value: i32,
    name: &str,
    known: &[(&str, i32, T)],
) -> Result<T, CallError> {
    match known.iter().find(|(_, code, _)| *code == value) {
        Some((_, _, meant)) => Ok(meant.clone()),
        None => {
            let known: Vec<String> = known
                .iter()
                .map(|(name, code, _)| format!("{name} ({code})"))
                .collect();
            Err(invalid(format!(
                "{name} is {value}, must be one of {}",
                known.join(", ")
            )))
        }
    }
}

pub(super) fn invalid(message: String) -> CallError {
    CallError::new(adasum_status::ADASUM_INVALID_ARGUMENT, message)
}

/// The tensors of a call of C, each with its flags.
#[derive(Debug)]
pub(super) struct TensorList(Vec<(TensorSpec, u32)>);

impl TensorList {
    /// The tensors, for reducers that have no flags.
    pub(super) fn specs(self) -> Result<Vec<TensorSpec>, CallError> {
        let specs = self
            .0
            .into_iter()
            .enumerate()
            .map(|(index, (spec, flags))| match flags {
                0 => Ok(spec),
                _ => Err(wrong_flags(
                    index,
                    &spec,
                    flags,
                    "must be 0 for this reducer",
                )),
            });
        specs.collect()
    }

    /// The tensors for a mean reducer, and their specifications.
    pub(super) fn for_mean(self) -> (Vec<MeanTensor>, Vec<TensorSpec>) {
        let tensors = self.0.into_iter().map(|(spec, flags)| {
            let tensor = MeanTensor {
                layerwise_parallel: flags & ADASUM_TENSOR_LAYERWISE != 0,
                fusion: (flags & ADASUM_TENSOR_FUSION != 0)
                    .then_some(flags >> ADASUM_TENSOR_FUSION_SHIFT),
                spec: spec.clone(),
            };
            (tensor, spec)
        });
        tensors.unzip()
    }
}

fn wrong_flags(index: usize, spec: &TensorSpec, flags: u32, rule: &str) -> CallError {
    invalid(format!(
        "tensors[{index}].flags ({}) is {flags:#x}, {rule}",
        spec.name
    ))
}

/// The tensors that `pointer` describes.
///
/// # Safety
/// As for [`slice()`], and each name as for [`text`].
pub(super) unsafe fn tensors(
    pointer: *const adasum_tensor,
    count: usize,
) -> Result<TensorList, CallError> {
    // SAFETY: as promised by the caller.
    let list = unsafe { slice(pointer, count, "tensors") }?;
    let mut tensors = Vec::with_capacity(list.len());
    for (index, tensor) in list.iter().enumerate() {
        // SAFETY: as promised by the caller.
        let name = unsafe { text(tensor.name, &format!("tensors[{index}].name")) }?;
        let dtype = dtype(tensor.dtype, &format!("tensors[{index}].dtype ({name})"))?;
        let spec = TensorSpec::new(name, tensor.count, dtype);
        let fusion = match tensor.flags & ADASUM_TENSOR_FUSION {
            0 => 0,
            bit => bit | u32::MAX << ADASUM_TENSOR_FUSION_SHIFT,
        };
        if tensor.flags & !(ADASUM_TENSOR_LAYERWISE | fusion) != 0 {
            return Err(wrong_flags(
                index,
                &spec,
                tensor.flags,
                "which has bits that are not known",
            ));
        }
        tensors.push((spec, tensor.flags));
    }
    Ok(TensorList(tensors))
}

/// The element type with a number of C.
pub(super) fn dtype(code: i32, name: &str) -> Result<DType, CallError> {
    let known = [
        ("ADASUM_F32", ADASUM_F32, DType::F32),
        ("ADASUM_F16", ADASUM_F16, DType::F16),
        ("ADASUM_BF16", ADASUM_BF16, DType::BF16),
    ];
    choice(code, name, &known)
}

/// Device memory of the tensors `specs` at `addresses`; NULL is fine for a tensor without elements.
///
/// # Safety
/// Each address is device memory of the whole tensor until the queued work is done.
pub(super) unsafe fn spans<'a>(
    device: &Device,
    specs: impl ExactSizeIterator<Item = &'a TensorSpec>,
    addresses: &[*mut c_void],
    name: &str,
) -> Result<Vec<Span>, CallError> {
    if addresses.len() != specs.len() {
        return Err(invalid(format!(
            "count: {} {name} were given for {} tensors",
            addresses.len(),
            specs.len()
        )));
    }
    let mut spans = Vec::with_capacity(specs.len());
    for (index, (spec, &address)) in specs.zip(addresses).enumerate() {
        let bytes = spec.count.saturating_mul(spec.dtype.size());
        // SAFETY: as promised by the caller.
        spans.push(unsafe {
            span(
                device,
                address,
                bytes,
                &format!("{name}[{index}] ({})", spec.name),
            )
        }?);
    }
    Ok(spans)
}

/// Device memory of `bytes` bytes; NULL is fine for none.
///
/// # Safety
/// `address` is device memory of that size until the queued work is done.
pub(super) unsafe fn span(
    device: &Device,
    address: *mut c_void,
    bytes: u64,
    name: &str,
) -> Result<Span, CallError> {
    let length = span_length(address, bytes, name)?;
    // SAFETY: as promised by the caller.
    Ok(unsafe { Span::borrow(device, address, length) })
}

/// Checks that device memory starts where elements of `size` bytes may.
pub(super) fn aligned(span: Span, size: u64, name: &str) -> Result<Span, CallError> {
    if span.address().is_multiple_of(size) {
        return Ok(span);
    }
    Err(invalid(format!(
        "{name}: {:#x} is not a multiple of {size}",
        span.address()
    )))
}

/// Checks an address in device memory as far as that can be done, and returns the bytes behind it.
pub(super) fn span_length(
    address: *mut c_void,
    bytes: u64,
    name: &str,
) -> Result<usize, CallError> {
    if address.is_null() && bytes > 0 {
        return Err(CallError::null(name));
    }
    let length = usize::try_from(bytes).ok();
    let length = length.filter(|&bytes| address.addr().checked_add(bytes).is_some());
    length.ok_or_else(|| {
        invalid(format!(
            "{name}: {bytes} bytes are more than memory can hold"
        ))
    })
}
