//! The library as a whole: versions and backend.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use super::arguments::not_null;
use super::catch::catch;
use super::status::adasum_status;
use crate::ascend;

/// Version of this interface. A program compiled with another number must not use the library.
pub const ADASUM_ABI_VERSION: u32 = 2;

/// The ADASUM_ABI_VERSION that the library was built with.
#[unsafe(no_mangle)]
pub extern "C" fn adasum_abi_version() -> u32 {
    ADASUM_ABI_VERSION
}

/// Version of the library, as "0.2.0". Never NULL; lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn adasum_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Loads ACL and HCCL, if that has not happened, and gives the name of what was found: "cann" or "mock". The text lives as
/// long as the program. ADASUM_BACKEND=cann|mock|auto decides before the first call that needs a device.
///
/// Errors: ADASUM_INVALID_STATE and others if nothing can be loaded; adasum_last_error says what was tried.
///
/// # Safety
/// `out_name` points to a pointer that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_backend(out_name: *mut *const c_char) -> adasum_status {
    static NAME: OnceLock<CString> = OnceLock::new();
    catch("adasum_backend", || {
        let out_name = not_null(out_name, "out_name")?;
        let backend = ascend::backend()?;
        let name = NAME.get_or_init(|| CString::new(backend.name).unwrap_or_default());
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out_name.write(name.as_ptr()) };
        Ok(())
    })
}
