//! Turns the return codes of vendor calls into errors that carry function, code and the vendor's own message.

use std::ffi::{CStr, c_char};

use crate::error::{Error, ErrorKind, Result};
use crate::sys::Backend;
use crate::sys::acl;
use crate::sys::hccl::HcclResult;

/// `check!(backend.acl.aclrtFree(address))` calls the function, inside the unsafe block around it, and checks its code.
macro_rules! check {
    ($backend:ident.acl.$function:ident($($argument:expr),* $(,)?)) => {
        $crate::ascend::check::acl(&$backend, stringify!($function), $backend.acl.$function($($argument),*))
    };
    ($backend:ident.hccl.$function:ident($($argument:expr),* $(,)?)) => {
        $crate::ascend::check::hccl(&$backend, stringify!($function), $backend.hccl.$function($($argument),*))
    };
}
pub(super) use check;

/// An error unless `code` is success.
pub(super) fn acl(backend: &Backend, function: &'static str, code: acl::aclError) -> Result<()> {
    if code.0 == acl::ACL_ERROR_NONE {
        return Ok(());
    }
    let message = recent_message(backend);
    let error = Error::vendor(acl_kind(code.0), function, code.0, &message);
    Err(match u32::try_from(code.0) {
        Ok(acl::ACL_ERROR_RT_STREAM_CONTEXT) => error.context(
            "the stream belongs to another context than the device that it is used with was taken from",
        ),
        _ => error,
    })
}

fn acl_kind(code: i32) -> ErrorKind {
    match u32::try_from(code) {
        Ok(acl::ACL_ERROR_RT_MEMORY_ALLOCATION | acl::ACL_ERROR_RT_DEVICE_OOM) => {
            ErrorKind::OutOfMemory
        }
        Ok(acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT | acl::ACL_ERROR_RT_EVENT_SYNC_TIMEOUT) => {
            ErrorKind::Timeout
        }
        _ if code == acl::ACL_ERROR_BAD_ALLOC => ErrorKind::OutOfMemory,
        _ => ErrorKind::Acl,
    }
}

/// Whether a call failed because library or device do not have it.
pub(super) fn is_unsupported(error: &Error) -> bool {
    let Some(code) = error.vendor_code().map(|vendor| vendor.code) else {
        return false;
    };
    code == acl::ACL_ERROR_API_NOT_SUPPORT
        || code == acl::ACL_ERROR_FEATURE_UNSUPPORTED
        || u32::try_from(code) == Ok(acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
}

/// Whether HCCL refused to end a communicator because a call of another thread is in it (hcomm, op_base.cc:3684).
pub(super) fn is_busy(error: &Error) -> bool {
    let code = error.vendor_code().map(|vendor| vendor.code);
    code.is_some_and(|code| u32::try_from(code) == Ok(HcclResult::HCCL_E_AGAIN.0))
}

/// An error unless `code` is success.
pub(super) fn hccl(backend: &Backend, function: &'static str, code: HcclResult) -> Result<()> {
    let kind = match code {
        HcclResult::HCCL_SUCCESS => return Ok(()),
        HcclResult::HCCL_E_MEMORY | HcclResult::HCCL_E_OOM => ErrorKind::OutOfMemory,
        HcclResult::HCCL_E_TIMEOUT => ErrorKind::Timeout,
        _ => ErrorKind::Hccl,
    };
    // SAFETY: takes any code by value.
    let name = text(unsafe { backend.hccl.HcclGetErrorString(code) });
    let message = recent_message(backend);
    let detail = match (name.is_empty(), message.is_empty()) {
        (_, true) => name,
        (true, false) => message,
        (false, false) => format!("{name}: {message}"),
    };
    let code = i32::try_from(code.0).unwrap_or(i32::MAX);
    Err(Error::vendor(kind, function, code, &detail))
}

/// What the vendor has to say about the last failure of this thread.
fn recent_message(backend: &Backend) -> String {
    // SAFETY: takes nothing; the string is valid until the next call on this thread.
    text(unsafe { backend.acl.aclGetRecentErrMsg() })
}

/// A copy of a vendor string; null is empty.
pub(super) fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: not null, so by the vendor's documentation a C string.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_string_lossy().trim().to_owned()
}
