//! `adasum-run bench`: how fast reductions, kernels and messages are on this machine.
//!
//! This side starts the ranks (each is this program again, see `rank.rs`) and shows the lines of rank 0. Every figure
//! that is a ratio was taken beside what it is compared with, in one run.

mod compare;
mod job;
pub(crate) mod kernels;
mod line;
mod operands;
pub(crate) mod rank;
mod reduction;
mod request;
mod timing;
mod transport;

use std::path::PathBuf;

use crate::cli::lab::bench::compare::Peers;
use crate::cli::lab::bench::request::{Reduced, Request};
use crate::cli::lab::element_type::ElementType;
use crate::cli::lab::{sizes, workload};
use crate::cli::launch::job::End;
use crate::cli::report::trace::Trace;
use crate::cli::text;
use crate::error::{Error, Result};
use crate::plan::Form;

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// Time the mean over all ranks instead of AdaSum
    #[arg(long, conflicts_with_all = ["kernels", "transport"])]
    mean: bool,
    /// Time the kernels on one core
    #[arg(long, conflicts_with = "transport")]
    kernels: bool,
    /// Time messages between two ranks
    #[arg(long)]
    transport: bool,
    /// Number of ranks, each a process
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ranks: u32,
    /// Ranks of each simulated server
    #[arg(long, value_name = "D", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    devices_per_server: u32,
    /// Bytes of gradients on each rank [default: 102228128, ResNet-50 in fp32]; with --kernels of all vectors together
    /// [default: 134217728]; with --transport of the largest message [default: 67108864]
    #[arg(long, value_name = "B", value_parser = text::size(64..=1 << 40))]
    bytes: Option<u64>,
    /// Type of the elements
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: ElementType,
    /// Number of tensors; their sizes follow a log-normal law
    #[arg(long, value_name = "T", default_value_t = 161, value_parser = clap::value_parser!(u32).range(1..=sizes::MOST))]
    tensors: u32,
    /// Repetitions that are timed, after two that are not
    #[arg(long, value_name = "R", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    reps: u32,
    /// The most subtrees that a round of AdaSum merges
    #[arg(long, value_name = "R", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=8))]
    radix: u32,
    /// How exchanges are given to HCCL: auto, alltoall, batch, group or pairwise
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = workload::exchange)]
    exchange: std::option::Option<Form>,
    /// Bytes of tensors that share a fused buffer [default: the library's; over the mock 4 MiB]
    #[arg(long, value_name = "B", value_parser = text::size(1..=u64::MAX))]
    bucket_bytes: Option<u64>,
    /// Fused buffers that are under way at a time [default: the library's; over the mock 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pipeline_depth: Option<u32>,
    /// Print the ratio to lines of other programs: a file with one JSON object a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernels", "transport"])]
    compare: Option<PathBuf>,
    /// Write a timeline of all steps of all ranks here, for chrome://tracing and Perfetto
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernels", "transport"])]
    trace: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const LONG_HELP: &str = "\
A repetition of a reduction is: barrier, reduce and synchronise; its time is that of the slowest rank. Gradients are
restored outside the clock. Keys of a line: peer, ranks, dtype, bytes (of a rank), layers, reps, min_s, median_s, max_s;
then our own. Tensors lie in one buffer, each at a multiple of 64 bytes. phases are the shortest seconds of the slowest rank
in repetitions of their own, in which one step follows the other and nothing overlaps.

--kernels: copy_fraction is the rate of the bytes that a kernel must read and write, over that of a copy (read and written
bytes) by one thread, taken in turn. Vectors come from memory, or stay in cache with 32768 elements each.
--transport: ratio is the rate of a message, over that of memcpy for the same bytes, taken in turn.";

/// Runs the benchmark that `args` describe.
///
/// # Errors
/// If the ranks cannot be started or an argument is wrong. A rank that fails is reported at once and is in the `End`.
pub(crate) fn run(args: &Args) -> Result<End> {
    let peers = args.compare.as_deref().map(Peers::read).transpose()?;
    let request = request(args)?;
    let trace = args.trace.as_deref().map(Trace::prepare).transpose()?;
    let end = job::run(&request, trace.as_ref(), &mut |line| {
        line::show(line, args.json, peers.as_ref())
    });
    trace.map_or(Ok(()), |trace| trace.write())?;
    end
}

fn request(args: &Args) -> Result<Request> {
    if args.kernels {
        return Ok(Request::Kernels {
            bytes: args.bytes.unwrap_or(128 << 20),
            reps: args.reps,
        });
    }
    if args.transport {
        return Ok(Request::Transport {
            bytes: args.bytes.unwrap_or(64 << 20),
            reps: args.reps,
        });
    }
    let bytes = args.bytes.unwrap_or(workload::RESNET_50);
    let (ranks, locals) = (args.ranks, args.devices_per_server);
    if !ranks.is_multiple_of(locals) {
        return Err(Error::invalid(format!(
            "--ranks {ranks} is not a multiple of --devices-per-server {locals}"
        )));
    }
    if bytes / args.dtype.size() < u64::from(args.tensors) {
        return Err(Error::invalid(format!(
            "--bytes {bytes} are fewer elements than --tensors {}",
            args.tensors
        )));
    }
    Ok(Request::Reduction(Reduced {
        mean: args.mean,
        ranks,
        locals,
        bytes,
        dtype: args.dtype,
        tensors: args.tensors,
        reps: args.reps,
        radix: args.radix,
        exchange: args.exchange,
        bucket_bytes: args.bucket_bytes,
        pipeline_depth: args.pipeline_depth,
    }))
}
