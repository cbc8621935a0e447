//! Log records for a callback of C.

use std::ffi::{CString, c_char, c_void};
use std::sync::{OnceLock, PoisonError, RwLock};

use super::arguments::invalid;
use super::catch::catch;
use super::status::{CallError, adasum_status};

/// Takes a log record: level (1 error, 2 warning, 3 info, 4 debug, 5 trace), text without line break, and the `user_data`
/// of the callback. May be called from any thread, several at once; must not call this library, throw, or jump out.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub type adasum_log_callback =
    Option<unsafe extern "C" fn(level: i32, message: *const c_char, user_data: *mut c_void)>;

#[derive(Clone, Copy)]
struct Receiver {
    function: unsafe extern "C" fn(i32, *const c_char, *mut c_void),
    user_data: *mut c_void,
}

// SAFETY: the caller of adasum_set_log_callback promises that both may be used from any thread.
unsafe impl Send for Receiver {}
// SAFETY: as above.
unsafe impl Sync for Receiver {}

struct Forward;

static RECEIVER: RwLock<Option<Receiver>> = RwLock::new(None);

impl log::Log for Forward {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        // The lock is held during the call: once a callback was replaced, it is not called any more.
        let receiver = RECEIVER.read().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = *receiver else { return };
        let text = record.args().to_string().replace('\0', "\\0");
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: the callback and its data are valid as promised when they were given.
        unsafe { (receiver.function)(record.level() as i32, text.as_ptr(), receiver.user_data) };
    }

    fn flush(&self) {}
}

/// Sends log records up to `level` (1 error .. 5 trace) to `callback`; NULL ends that. Records of this process's other
/// Rust parts that use the same logger come, too.
///
/// Threads: may be called at any time; when it returns, the former callback is not called any more.
/// Errors: ADASUM_INVALID_ARGUMENT for a level that is none; ADASUM_INVALID_STATE if the process has another logger.
///
/// # Safety
/// `callback` and `user_data` stay valid until another callback is set, and may be used from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_set_log_callback(
    callback: adasum_log_callback,
    user_data: *mut c_void,
    level: i32,
) -> adasum_status {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    catch("adasum_set_log_callback", || {
        let filter = match level {
            1 => log::LevelFilter::Error,
            2 => log::LevelFilter::Warn,
            3 => log::LevelFilter::Info,
            4 => log::LevelFilter::Debug,
            5 => log::LevelFilter::Trace,
            other => return Err(invalid(format!("level is {other}, must be 1 to 5"))),
        };
        if !INSTALLED.get_or_init(|| log::set_logger(&Forward).is_ok()) {
            return Err(CallError::new(
                adasum_status::ADASUM_INVALID_STATE,
                "this process has another logger already",
            ));
        }
        let mut receiver = RECEIVER.write().unwrap_or_else(PoisonError::into_inner);
        *receiver = callback.map(|function| Receiver {
            function,
            user_data,
        });
        log::set_max_level(if receiver.is_some() {
            filter
        } else {
            log::LevelFilter::Off
        });
        Ok(())
    })
}
