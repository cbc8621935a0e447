//! What the loaded libraries are: for a diagnosis, not for decisions.

use std::ffi::c_char;

use super::{BackendInfo, backend};
use crate::error::Result;
use crate::sys::acl::{ACL_ERROR_NONE, aclCANNPackageName, aclCANNPackageVersion};
use crate::sys::{self, Backend, Symbol};

/// The loaded libraries.
#[derive(Debug)]
pub struct Survey {
    /// Which they are and where they lie.
    pub backend: BackendInfo,
    /// Why they were chosen, as the end of a sentence.
    pub why: &'static str,
    /// Version of the mock, if it is that.
    pub mock_version: Option<&'static str>,
    /// Version of the interface of ACL (major, minor, patch), if it tells.
    pub acl_version: Option<(i32, i32, i32)>,
    /// Release of CANN, if it tells.
    pub cann: Option<String>,
    /// Release of HCCL, if it tells.
    pub hccl: Option<String>,
    /// The functions that need not be there. All others are.
    pub optional: Vec<Symbol>,
}

/// Loads the libraries, if that has not happened yet, and asks them what they are.
///
/// # Errors
/// If they cannot be loaded or lack a function that is needed.
pub fn survey() -> Result<Survey> {
    let libraries = sys::backend()?;
    Ok(Survey {
        backend: backend()?,
        why: &libraries.why,
        mock_version: libraries.mock_version.as_deref(),
        acl_version: acl_version(libraries),
        cann: release(libraries, aclCANNPackageName::ACL_PKG_NAME_CANN),
        hccl: release(libraries, aclCANNPackageName::ACL_PKG_NAME_HCCL),
        optional: libraries.optional_symbols(),
    })
}

fn acl_version(libraries: &Backend) -> Option<(i32, i32, i32)> {
    let get = libraries.acl.aclrtGetVersion.as_ref().ok()?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: writes three numbers to live locals.
    let code = unsafe { get(&mut major, &mut minor, &mut patch) };
    (code.0 == ACL_ERROR_NONE).then_some((major, minor, patch))
}

fn release(libraries: &Backend, package: aclCANNPackageName) -> Option<String> {
    let get = libraries.acl.aclsysGetCANNVersion.as_ref().ok()?;
    let mut version = aclCANNPackageVersion {
        version: [0; 128],
        majorVersion: [0; 64],
        minorVersion: [0; 64],
        releaseVersion: [0; 64],
        patchVersion: [0; 64],
        reserved: [0; 128],
    };
    // SAFETY: writes one structure to a live local.
    let code = unsafe { get(package, &mut version) };
    let text: String = version.version.iter().map_while(character).collect();
    (code.0 == ACL_ERROR_NONE && !text.is_empty()).then_some(text)
}

/// A character of a C string in ASCII, up to its end.
fn character(unit: &c_char) -> Option<char> {
    let [byte] = unit.to_ne_bytes();
    (byte != 0).then_some(char::from(byte))
}
