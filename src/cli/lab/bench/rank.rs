//! One rank of a benchmark.

use crate::cli::lab::bench::request::Request;
use crate::cli::lab::bench::{kernels, reduction, transport};
use crate::error::{Error, Result};

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
