//! Statuses, and the last failure of a thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use crate::error::{Error, ErrorKind};

/// The outcome of a call. New values may be added at the end; a retired number is never used again.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub enum adasum_status {
    /// Done.
    ADASUM_OK = 0,
    /// An argument, option, environment variable or file is wrong.
    ADASUM_INVALID_ARGUMENT = 1,
    /// A pointer that must not be NULL is.
    ADASUM_NULL_ARGUMENT = 2,
    /// The call is right, but not now: order of calls, another thread inside, a finished world.
    ADASUM_INVALID_STATE = 3,
    /// Well formed, but not built here.
    ADASUM_UNSUPPORTED = 4,
    /// No memory on the host or the device.
    ADASUM_OUT_OF_MEMORY = 5,
    /// A call of ACL failed; see adasum_last_vendor_code.
    ADASUM_ACL = 6,
    /// A call of HCCL failed; see adasum_last_vendor_code.
    ADASUM_HCCL = 7,
    /// Ranks disagree on what they run.
    ADASUM_MISMATCH = 8,
    /// A wait reached its limit.
    ADASUM_TIMEOUT = 9,
    /// An earlier failure made this object unusable.
    ADASUM_POISONED = 10,
    /// A defect of this library: please report it.
    ADASUM_PANIC = 11,
    /// A file or process operation of the host failed.
    ADASUM_IO = 12,
}

impl From<ErrorKind> for adasum_status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidArgument => adasum_status::ADASUM_INVALID_ARGUMENT,
            ErrorKind::InvalidState => adasum_status::ADASUM_INVALID_STATE,
            ErrorKind::Unsupported => adasum_status::ADASUM_UNSUPPORTED,
            ErrorKind::OutOfMemory => adasum_status::ADASUM_OUT_OF_MEMORY,
            ErrorKind::Acl => adasum_status::ADASUM_ACL,
            ErrorKind::Hccl => adasum_status::ADASUM_HCCL,
            ErrorKind::Mismatch => adasum_status::ADASUM_MISMATCH,
            ErrorKind::Timeout => adasum_status::ADASUM_TIMEOUT,
            ErrorKind::Poisoned => adasum_status::ADASUM_POISONED,
            ErrorKind::Io => adasum_status::ADASUM_IO,
        }
    }
}

/// Why an export fails: a status and a sentence, and the vendor's code if there is one.
#[derive(Debug)]
pub(super) struct CallError {
    pub(super) status: adasum_status,
    pub(super) message: String,
    pub(super) vendor_code: i32,
}

impl CallError {
    pub(super) fn null(argument: &str) -> Self {
        CallError::new(
            adasum_status::ADASUM_NULL_ARGUMENT,
            format!("{argument} is NULL"),
        )
    }

    pub(super) fn new(status: adasum_status, message: impl Into<String>) -> Self {
        CallError {
            status,
            message: message.into(),
            vendor_code: 0,
        }
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        CallError {
            status: error.kind().into(),
            message: error.to_string(),
            vendor_code: error.vendor_code().map_or(0, |vendor| vendor.code),
        }
    }
}

/// The last failure of a thread.
struct Last {
    message: CString,
    vendor_code: i32,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last { message: CString::default(), vendor_code: 0 });
}

/// Keeps `fault`, which `function` reports, for the calling thread.
pub(super) fn remember(function: &str, fault: &CallError) {
    // A sentence may quote bytes from outside; C strings end at a zero.
    let text = format!("{function}: {}", fault.message).replace('\0', "\\0");
    let last = Last {
        message: CString::new(text).unwrap_or_default(),
        vendor_code: fault.vendor_code,
    };
    // At the end of a thread its storage is gone, and nobody can ask any more.
    let _ = LAST.try_with(|slot| *slot.borrow_mut() = last);
}

/// The sentence of the last call that failed on this thread: function, argument or rank, and what is wrong. Never NULL;
/// empty if none has failed. Valid until the next call of this library on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn adasum_last_error() -> *const c_char {
    LAST.try_with(|slot| slot.borrow().message.as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// The aclError or HcclResult of the last call that failed on this thread; 0 if it was no call of the vendor's that failed.
#[unsafe(no_mangle)]
pub extern "C" fn adasum_last_vendor_code() -> i32 {
    LAST.try_with(|slot| slot.borrow().vendor_code)
        .unwrap_or_default()
}

/// A few words for any status, also for a number that is none. Never NULL; lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn adasum_status_string(status: i32) -> *const c_char {
    let text: &CStr = match status {
        0 => c"ok",
        1 => c"invalid argument",
        2 => c"null argument",
        3 => c"invalid state",
        4 => c"unsupported",
        5 => c"out of memory",
        6 => c"ACL error",
        7 => c"HCCL error",
        8 => c"ranks disagree",
        9 => c"timeout",
        10 => c"poisoned by an earlier failure",
        11 => c"internal error",
        12 => c"input/output error",
        _ => c"unknown status",
    };
    text.as_ptr()
}
