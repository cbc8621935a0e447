//! Whose an open library is and which file it came from.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;

use libloading::os::unix::{Library, Symbol};

use super::choose::Kind;
use crate::error::{Error, ErrorKind, Result};

/// Exported by both libraries of the mock and by nothing else; returns its version.
const MOCK_MARK: &CStr = c"adasum_mock_version";
const MOCK_COUNTER: &CStr = c"adasum_mock_counter";

/// What the mock counts in this process, by name; 0 for an unknown name.
pub(super) type Counter = unsafe extern "C" fn(*const c_char) -> u64;

/// Where a library comes from.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) kind: Kind,
    pub(super) path: PathBuf,
    pub(super) mock_version: Option<String>,
}

impl Origin {
    /// `anchor` is a function that `library`, known as `name`, defines itself.
    pub(super) fn of(library: &Library, name: &str, anchor: &CStr) -> Result<Origin> {
        let path = symbol(library, anchor).and_then(file_of).ok_or_else(|| {
            let anchor = anchor.to_string_lossy();
            Error::new(
                ErrorKind::InvalidState,
                format!("{name} was found, but it has no {anchor}"),
            )
        })?;
        // A lookup also finds the mark in libraries that this one needs: only its own counts.
        let mark = symbol(library, MOCK_MARK).filter(|mark| file_of(*mark).as_ref() == Some(&path));
        let mock_version = mark.map(mock_version);
        let kind = match mock_version {
            Some(_) => Kind::Mock,
            None => Kind::Cann,
        };
        Ok(Origin {
            kind,
            path,
            mock_version,
        })
    }

    /// Refuses a mixture of the mock and CANN, and of two mocks, naming both files.
    pub(super) fn require_match(&self, other: &Origin) -> Result<()> {
        if self.kind == other.kind && self.mock_version == other.mock_version {
            return Ok(());
        }
        let describe = |origin: &Origin| match &origin.mock_version {
            Some(version) => format!(
                "{} is the mock's (version {version})",
                origin.path.display()
            ),
            None => format!("{} is CANN's", origin.path.display()),
        };
        Err(Error::new(
            ErrorKind::InvalidState,
            format!(
                "libraries that do not belong together: {}, {}",
                describe(self),
                describe(other)
            ),
        ))
    }
}

/// Address of a function of `library`.
pub(super) fn symbol(library: &Library, name: &CStr) -> Option<*const c_void> {
    // SAFETY: only the address is taken; the type of what it points to does not matter.
    let found: Symbol<*const c_void> = unsafe { library.get(name.to_bytes_with_nul()) }.ok()?;
    Some(found.into_raw().cast_const())
}

/// The file that the code at `address` was loaded from.
pub(super) fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: dladdr accepts any address and writes one Dl_info to a live local.
    let found: c_int = unsafe { libc::dladdr(address, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: on success dli_fname is a C string that lives as long as the library, which is not closed here.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(name.to_string_lossy().into_owned()))
}

/// The function of the mock that tells what it has counted.
pub(super) fn mock_counter(library: &Library) -> Option<Counter> {
    let address = symbol(library, MOCK_COUNTER)?;
    // SAFETY: the mock declares `uint64_t adasum_mock_counter(const char *name)`, and nothing else uses the name.
    Some(unsafe { std::mem::transmute::<*const c_void, Counter>(address) })
}

/// Calls the mock's mark.
fn mock_version(mark: *const c_void) -> String {
    // SAFETY: the mock declares `const char *adasum_mock_version(void)`, and nothing else uses the name.
    let function = unsafe {
        std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> *const c_char>(mark)
    };
    // SAFETY: it takes nothing and returns a C string.
    let version = unsafe { function() };
    if version.is_null() {
        return String::new();
    }
    // SAFETY: not null, so a C string of static lifetime.
    let version = unsafe { CStr::from_ptr(version) };
    version.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(path: &str, mock_version: Option<&str>) -> Origin {
        Origin {
            kind: mock_version.map_or(Kind::Cann, |_| Kind::Mock),
            path: path.into(),
            mock_version: mock_version.map(str::to_owned),
        }
    }

    #[test]
    fn a_mixture_is_refused_naming_both_files() {
        let cann = origin("/cann/libascendcl.so", None);
        let mock = origin("/mock/libhccl.so", Some("1"));
        let error = cann.require_match(&mock).unwrap_err().to_string();
        assert!(error.contains("/cann/libascendcl.so is CANN's"), "{error}");
        assert!(
            error.contains("/mock/libhccl.so is the mock's (version 1)"),
            "{error}"
        );
        assert!(
            mock.require_match(&origin("/other/libascendcl.so", Some("2")))
                .is_err()
        );
        assert!(
            mock.require_match(&origin("/mock/libascendcl.so", Some("1")))
                .is_ok()
        );
        assert!(
            cann.require_match(&origin("/cann/libhccl.so", None))
                .is_ok()
        );
    }

    #[test]
    fn a_symbol_leads_to_its_file() {
        let this = Library::this();
        let address = symbol(&this, c"malloc").unwrap();
        assert!(file_of(address).unwrap().is_absolute());
        assert!(symbol(&this, c"adasum_no_such_function").is_none());
        assert!(file_of(std::ptr::null()).is_none());
    }
}
