//! What the program writes: data on standard output, sentences on standard error, files.

use std::fmt::Display;
use std::io::{ErrorKind::BrokenPipe, Write};
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

/// A sentence of this program on standard error.
pub(crate) fn notice(text: &str) {
    let line = format!("adasum-run: {text}\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Text on standard output; a reader that has seen enough is no fault.
pub(crate) fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != BrokenPipe => Err(failed("standard output", error)),
        _ => Ok(()),
    }
}

/// A line of JSON on standard output, for the process that started this one.
pub(crate) fn send(value: &impl Serialize) -> Result<()> {
    let line = json(value)? + "\n";
    let sent = std::io::stdout().write_all(line.as_bytes());
    sent.map_err(|error| failed("cannot report a result", error))
}

/// A value as JSON on one line.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| failed("JSON", error))
}

/// A file that the user has named, with this content.
pub(crate) fn save(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| failed(path.display(), error))
}

/// The error of an input or an output: what failed, and why.
pub(crate) fn failed(what: impl Display, error: impl Display) -> Error {
    Error::new(ErrorKind::Io, format!("{what}: {error}"))
}
