//! The one error type of the crate.
//!
//! An error says what kind of fault it is (so that a caller can act on it), a sentence that names the
//! argument, field, file or rank, and, where a vendor call failed, the function and its numeric code.
//! It must know nothing of the rest of the crate.

use std::ffi::OsStr;
use std::fmt;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Whose fault an error is, and therefore what a caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, option, environment variable or file from outside is wrong.
    InvalidArgument,
    /// The call is right, but not in this state (order of calls, wrong world).
    InvalidState,
    /// The request is well formed, but not built here; the message names it.
    Unsupported,
    /// No memory on the host or the device.
    OutOfMemory,
    /// A call of the ACL runtime failed.
    Acl,
    /// A call of HCCL failed.
    Hccl,
    /// Ranks disagree on what they run.
    Mismatch,
    /// A wait reached its limit.
    Timeout,
    /// An earlier failure made this object unusable.
    Poisoned,
    /// A file or process operation of the host failed.
    Io,
}

/// What went wrong: kind, sentence and, for a vendor call, its name and code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    vendor: Option<VendorCode>,
}

/// The vendor function that failed and the number it returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorCode {
    /// Name of the C function.
    pub function: &'static str,
    /// `aclError` or `HcclResult`.
    pub code: i32,
}

/// The most characters of a value that are quoted.
const QUOTED: usize = 200;

/// A value from outside in quotes, on one line, cut if it is long.
pub(crate) fn quote(value: impl AsRef<OsStr>) -> String {
    let text = value.as_ref().to_string_lossy();
    let (start, more) = cut(&text);
    format!("{start:?}{more}")
}

/// The start of a text, and what stands for the rest if it is long.
pub(crate) fn cut(text: &str) -> (&str, &'static str) {
    match text.char_indices().nth(QUOTED) {
        None => (text, ""),
        Some((end, _)) => (&text[..end], "..."),
    }
}

impl Error {
    /// An error of `kind` with a sentence in lower case and without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: message.into(),
            vendor: None,
        }
    }

    /// [`ErrorKind::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// A failed vendor call: `detail` is the vendor's recent error message, empty if it gave none.
    pub fn vendor(kind: ErrorKind, function: &'static str, code: i32, detail: &str) -> Self {
        let message = if detail.is_empty() {
            format!("{function} failed with code {code}")
        } else {
            format!("{function} failed with code {code}: {detail}")
        };
        Error {
            kind,
            message,
            vendor: Some(VendorCode { function, code }),
        }
    }

    /// The same error with `context` (rank, round, peer, file) put before its message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// What a caller can branch on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The vendor's function and code, if a vendor call failed.
    pub fn vendor_code(&self) -> Option<VendorCode> {
        self.vendor
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Adds context to the error of a result.
pub trait Context<T> {
    /// Puts what `context` returns before the message of an error; `Ok` passes unchanged.
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.context(context()))
    }
}
