//! One rank of a benchmark.

use std::io::Write;

use serde::Serialize;

use super::request::Request;
use super::{kernels, reduction, transport};
use crate::error::{Error, ErrorKind, Result};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The benchmark, as JSON
    request: String,
}

/// Does this rank's part, as the environment says which rank it is.
///
/// # Errors
/// Whatever fails on this rank.
pub(crate) fn run(args: &Args) -> Result<()> {
    let request = serde_json::from_str(&args.request)
        .map_err(|error| Error::invalid(format!("the request: {error}")))?;
    match request {
        Request::Kernels { bytes, reps } => kernels::run(bytes, reps),
        Request::Transport { bytes, reps } => transport::run(bytes, reps),
        Request::Reduction(reduced) => reduction::run(&reduced),
    }
}

/// Writes a line for the command on standard output.
pub(super) fn tell(line: &impl Serialize) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Io, format!("cannot report a result: {error}"))
    };
    let mut line = serde_json::to_string(line).map_err(|error| failed(&error))?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())
        .map_err(|error| failed(&error))
}
