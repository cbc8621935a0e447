//! The boundary around the body of every export: no panic leaves the library.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::status::{CallError, adasum_status, remember};

/// Runs `body` for the export `function`; what it returns or panics with becomes a status and this thread's last error.
///
/// A panic leaves no handle half changed that could be used afterwards: a lock that it held is poisoned, and the next
/// call on that handle says so.
pub(super) fn catch(
    function: &'static str,
    body: impl FnOnce() -> Result<(), CallError>,
) -> adasum_status {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return adasum_status::ADASUM_OK,
        Ok(Err(error)) => error,
        Err(payload) => {
            let error = CallError::new(adasum_status::ADASUM_PANIC, reason(payload.as_ref()));
            // What is thrown away may panic in turn.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            error
        }
    };
    remember(function, &error);
    error.status
}

/// The sentence for what a panic carried.
fn reason(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!(
        "internal error: {}",
        text.unwrap_or("panic without a reason")
    )
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::super::status::adasum_last_error;
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_and_a_sentence() {
        let status = catch("adasum_test", || panic!("the floor is {}", "lava"));
        assert_eq!(status, adasum_status::ADASUM_PANIC);
        // SAFETY: the library returns a C string that lives until the next call of this thread.
        let text = unsafe { CStr::from_ptr(adasum_last_error()) };
        assert_eq!(
            text.to_str().unwrap(),
            "adasum_test: internal error: the floor is lava"
        );
    }
}
