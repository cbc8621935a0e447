//! What the interface does without any library: all of it also runs under miri.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};

use super::arguments::{slice, slice_mut, span_length, tensors, text};
use super::*;

fn last() -> String {
    // SAFETY: the library returns a C string that lives until the next call of this thread.
    let text = unsafe { CStr::from_ptr(adasum_last_error()) };
    text.to_str().unwrap().to_owned()
}

/// What C callers branch on.
#[test]
fn each_kind_of_error_has_a_status_of_its_own() {
    use crate::error::ErrorKind;
    use adasum_status::*;
    for (kind, status, number) in [
        (ErrorKind::InvalidArgument, ADASUM_INVALID_ARGUMENT, 1),
        (ErrorKind::InvalidState, ADASUM_INVALID_STATE, 3),
        (ErrorKind::Unsupported, ADASUM_UNSUPPORTED, 4),
        (ErrorKind::OutOfMemory, ADASUM_OUT_OF_MEMORY, 5),
        (ErrorKind::Acl, ADASUM_ACL, 6),
        (ErrorKind::Hccl, ADASUM_HCCL, 7),
        (ErrorKind::Mismatch, ADASUM_MISMATCH, 8),
        (ErrorKind::Timeout, ADASUM_TIMEOUT, 9),
        (ErrorKind::Poisoned, ADASUM_POISONED, 10),
        (ErrorKind::Io, ADASUM_IO, 12),
    ] {
        assert_eq!(adasum_status::from(kind), status);
        assert_eq!(status as i32, number, "{kind:?}");
    }
}

#[test]
fn options_are_set_refused_and_ended() {
    let mut options = null_mut();
    // SAFETY: a place to write to.
    let created = unsafe { adasum_options_create(&mut options) };
    assert_eq!(created, adasum_status::ADASUM_OK);
    let ok = adasum_status::ADASUM_OK;
    let set = |name: &CStr, value: &CStr| {
        // SAFETY: live options and C strings.
        unsafe { adasum_options_set(options, name.as_ptr(), value.as_ptr()) }
    };
    assert_eq!(set(c"radix", c"8"), ok);
    assert_eq!(set(c"group", c"0,1"), ok);
    let refused = adasum_status::ADASUM_INVALID_ARGUMENT;
    assert_eq!(set(c"radix", c"9"), refused);
    assert_eq!(
        last(),
        "adasum_options_set: radix is \"9\", must be auto or 2 to 8"
    );
    assert_eq!(set(c"rad", c"8"), refused);
    assert!(last().starts_with("adasum_options_set: \"rad\" is no option; there are profile, "));
    assert_eq!(set(c"radix", c"\xff"), refused);
    assert!(
        last().starts_with("adasum_options_set: value: "),
        "{}",
        last()
    );
    // SAFETY: as above.
    let settings = unsafe { adasum_options::get(options) };
    assert_eq!(
        (settings.options.radix, settings.group),
        (8, Some(vec![0, 1]))
    );
    // SAFETY: given back once.
    unsafe { adasum_options_destroy(options) };
    // SAFETY: NULL is allowed.
    unsafe { adasum_options_destroy(null_mut()) };
}

#[test]
fn nulls_are_refused_by_name() {
    let null_argument = adasum_status::ADASUM_NULL_ARGUMENT;
    // SAFETY: NULL is refused, here and below.
    assert_eq!(unsafe { adasum_options_create(null_mut()) }, null_argument);
    assert_eq!(last(), "adasum_options_create: out is NULL");
    // SAFETY: as above.
    let set = unsafe { adasum_options_set(null_mut(), c"radix".as_ptr(), null()) };
    assert_eq!(set, null_argument);
    // SAFETY: as above.
    let world = unsafe { adasum_world_rank(null(), null_mut()) };
    assert_eq!(
        (world, last().as_str()),
        (null_argument, "adasum_world_rank: world is NULL")
    );
    // SAFETY: as above.
    let reduced = unsafe { adasum_reducer_reduce(null_mut(), null(), 0, null_mut()) };
    assert_eq!(reduced, null_argument);
    // SAFETY: as above.
    let created = unsafe { adasum_reducer_create(null(), null(), 0, null(), null_mut()) };
    assert_eq!(
        (created, last().as_str()),
        (null_argument, "adasum_reducer_create: world is NULL")
    );
}

#[test]
fn each_thread_has_its_own_last_error() {
    // SAFETY: NULL is refused.
    let _ = unsafe { adasum_options_create(null_mut()) };
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(last(), ""));
    });
    assert_eq!(last(), "adasum_options_create: out is NULL");
    assert_eq!(adasum_last_vendor_code(), 0);
}

#[test]
fn statuses_have_words_and_numbers_that_are_none_too() {
    for (status, words) in [
        (0, "ok"),
        (10, "poisoned by an earlier failure"),
        (12, "input/output error"),
    ] {
        // SAFETY: a string that lives as long as the program.
        let text = unsafe { CStr::from_ptr(adasum_status_string(status)) };
        assert_eq!(text.to_str(), Ok(words));
    }
    for status in [-1, 13, i32::MAX, i32::MIN] {
        // SAFETY: as above.
        let text = unsafe { CStr::from_ptr(adasum_status_string(status)) };
        assert_eq!(text.to_str(), Ok("unknown status"));
    }
    // SAFETY: as above.
    let version = unsafe { CStr::from_ptr(adasum_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn arrays_are_empty_null_too_long_or_as_they_are() {
    let values = [1_u32, 2, 3];
    // SAFETY: arrays of the lengths that are said, or none; here and below.
    assert_eq!(unsafe { slice(values.as_ptr(), 3, "x") }.unwrap(), values);
    // SAFETY: as above.
    assert!(unsafe { slice::<u32>(null(), 0, "x") }.unwrap().is_empty());
    // SAFETY: NULL is refused.
    let fault = unsafe { slice::<u32>(null(), 1, "x") }.unwrap_err();
    assert_eq!(
        (fault.status, fault.message.as_str()),
        (adasum_status::ADASUM_NULL_ARGUMENT, "x is NULL")
    );
    // SAFETY: such a length is refused.
    let fault = unsafe { slice(values.as_ptr(), usize::MAX / 4, "x") }.unwrap_err();
    assert!(fault.message.contains("more than memory can hold"));
    let odd = values.as_ptr().wrapping_byte_add(1);
    // SAFETY: an address that no array can have is refused.
    let fault = unsafe { slice(odd, 1, "x") }.unwrap_err();
    assert!(
        fault.message.contains("not a multiple of 4"),
        "{}",
        fault.message
    );
    let mut place = [0_u8; 2];
    // SAFETY: an array of that length.
    unsafe { slice_mut(place.as_mut_ptr(), 2, "x") }.unwrap()[1] = 7;
    assert_eq!(place, [0, 7]);
}

#[test]
fn tensors_are_described_by_name_type_and_flags() {
    let name = CString::new("w").unwrap();
    let tensor = |dtype, flags| adasum_tensor {
        name: name.as_ptr(),
        count: 3,
        dtype,
        flags,
    };
    // SAFETY: arrays of that length with live names, here and below.
    let right = unsafe { tensors([tensor(ADASUM_BF16, 0)].as_ptr(), 1) };
    assert_eq!(right.unwrap().specs().unwrap()[0].name, "w");
    for (wrong, says) in [
        (tensor(2, 0), "dtype (w) is 2"),
        (tensor(0, 8), "flags (w) is 0x8"),
        (tensor(0, 0x100), "flags (w) is 0x100"),
    ] {
        // SAFETY: as above.
        let fault = unsafe { tensors([wrong].as_ptr(), 1) }.unwrap_err();
        assert!(fault.message.contains(says), "{}", fault.message);
    }
    let flagged = [tensor(0, ADASUM_TENSOR_LAYERWISE)];
    // SAFETY: as above.
    let layerwise = unsafe { tensors(flagged.as_ptr(), 1) }
        .unwrap()
        .for_mean()
        .0;
    assert!(layerwise[0].layerwise_parallel);
    assert_eq!(layerwise[0].fusion, None);
    let id = ADASUM_TENSOR_FUSION | 0xab_cdef << ADASUM_TENSOR_FUSION_SHIFT;
    // SAFETY: as above.
    let fused = unsafe { tensors([tensor(0, id)].as_ptr(), 1) };
    let fused = fused.unwrap().for_mean().0;
    assert!(!fused[0].layerwise_parallel);
    assert_eq!(fused[0].fusion, Some(0xab_cdef));
    // SAFETY: as above.
    let not_for_gradients = unsafe { tensors(flagged.as_ptr(), 1) };
    assert!(not_for_gradients.unwrap().specs().is_err());
    // SAFETY: a C string.
    let fault = unsafe { text(c"\xff".as_ptr(), "path") }.unwrap_err();
    assert!(fault.message.contains("not UTF-8"));
}

#[test]
fn device_memory_ends_within_the_address_space() {
    let at = |address: usize| std::ptr::without_provenance_mut::<c_void>(address);
    assert_eq!(span_length(at(64), 8, "x").unwrap(), 8);
    assert_eq!(span_length(null_mut(), 0, "x").unwrap(), 0);
    assert!(span_length(null_mut(), 8, "x").is_err());
    assert!(span_length(at(usize::MAX - 6), 8, "x").is_err());
    assert!(span_length(at(64), u64::MAX, "x").is_err());
}
