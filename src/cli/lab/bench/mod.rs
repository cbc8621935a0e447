//! `adasum-run bench`: how fast reductions, kernels and messages are on this machine.
//!
//! This side starts the ranks (each is this program again, see `rank.rs`) and shows the lines of rank 0. Every figure
//! that is a ratio was taken beside what it is compared with, in turn.

mod compare;
mod counted;
mod gradients;
mod job;
pub(crate) mod kernels;
mod line;
mod measured;
mod operands;
mod outcome;
pub(crate) mod rank;
mod reduction;
mod request;
mod spread;
mod sweep;
mod table;
mod timing;
mod transport;

use std::path::PathBuf;

use crate::cli::lab::bench::compare::Against;
use crate::cli::lab::bench::request::{Reduced, Request};
use crate::cli::lab::element_type::ElementType;
use crate::cli::lab::{sizes, workload};
use crate::cli::launch::job::{End, with_written};
use crate::cli::report::trace::Trace;
use crate::cli::text;
use crate::error::{Error, Result};
use crate::plan::Form;

/// What kernels by themselves and messages do not have.
const OF_REDUCTIONS: [&str; 14] = [
    "mean",
    "ranks",
    "devices_per_server",
    "maxbytes",
    "stepfactor",
    "dtype",
    "tensors",
    "radix",
    "exchange",
    "bucket_bytes",
    "pipeline_depth",
    "check",
    "compare",
    "trace",
];

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// Time the mean over all ranks instead of AdaSum
    #[arg(long)]
    mean: bool,
    /// Time the kernels on one core
    #[arg(long, conflicts_with = "transport", conflicts_with_all = OF_REDUCTIONS)]
    kernels: bool,
    /// Time messages between two ranks
    #[arg(long, conflicts_with_all = OF_REDUCTIONS)]
    transport: bool,
    /// Number of ranks, each a process
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ranks: u32,
    /// Ranks of each simulated server
    #[arg(long, value_name = "D", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    devices_per_server: u32,
    /// Bytes of gradients on each rank [default: 102228128, ResNet-50 in fp32]; with --kernels of all vectors together
    /// [default: 134217728]; with --transport of the largest message [default: 67108864]
    #[arg(short, long, visible_alias = "minbytes", value_name = "B", value_parser = text::size(4..=1 << 40))]
    bytes: Option<u64>,
    /// Measure several sizes, from --bytes up to this one
    #[arg(short = 'e', long, value_name = "B", requires = "bytes",
        value_parser = text::size(4..=1 << 40))]
    maxbytes: Option<u64>,
    /// Each size is so many times the one before
    #[arg(short = 'f', long, value_name = "F", default_value_t = 2, requires = "maxbytes",
        value_parser = clap::value_parser!(u64).range(2..=1 << 40))]
    stepfactor: u64,
    /// Type of the elements
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: ElementType,
    /// Number of tensors; their sizes follow a log-normal law [default: 161, or one for each element if there are fewer]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=sizes::MOST))]
    tensors: Option<u32>,
    /// Repetitions that are timed, after two that are not
    #[arg(long, value_name = "R", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    reps: u32,
    /// The most subtrees that a round of AdaSum merges: 2 to 8, or auto for the fastest by the cost model
    #[arg(long, value_name = "R", default_value = "auto", value_parser = workload::radix)]
    radix: std::option::Option<u32>,
    /// How exchanges are made: auto, alltoall, batch, group, pairwise or shared
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = workload::exchange)]
    exchange: std::option::Option<Form>,
    /// Bytes of tensors that share a fused buffer [default: the library's; over the mock 4 to 64 MiB, by ranks and cache]
    #[arg(long, value_name = "B", value_parser = text::size(1..=u64::MAX))]
    bucket_bytes: Option<u64>,
    /// Fused buffers that are under way at a time [default: the library's; over the mock 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pipeline_depth: Option<u32>,
    /// Compare the results of the last repetition with those in double precision: 1, or 0 for not
    #[arg(short, long, value_name = "0|1", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(0..=1))]
    check: u8,
    /// Measure in turn with this command of the shell and print the ratio
    #[arg(long, value_name = "COMMAND")]
    compare: Option<String>,
    /// Rounds of a comparison, in each of which both are measured
    #[arg(long, value_name = "N", default_value_t = 9, requires = "compare", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Write a timeline of all steps of all ranks here, for chrome://tracing and Perfetto
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    trace: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const LONG_HELP: &str = "\
A repetition of a reduction is: barrier, reduce and synchronise; its time is that of the slowest rank. Gradients, of which two
ranks' have a cosine of 0.90, are restored outside the clock. Tensors lie in one buffer, each at a multiple of 64 bytes. Columns
are those of nccl-tests: size is the bytes of a rank's gradients, time the median of the repetitions, algbw size over time, busbw
algbw times 2 (n - 1) / n for n ranks, as for an all-reduce, wrong the elements that are not what double precision gives, on all
ranks together. If there is one, the exit code is 1.

--json: keys of a line: peer, ranks, dtype, bytes (of a rank), layers (tensors), reps, min_s, median_s, max_s, wrong; then our
own. phases are the shortest seconds of the slowest rank in repetitions of their own, in which one step follows the other and
nothing overlaps.
--compare: a line of the command for each size must be a JSON object with bytes and median_s, as those of --json. Both
run in each round, first the one, then the other. ratio is the median over the rounds of our time over the other's, q1
and q3 are the quartiles; other is the median of the other's times.
--kernels: copy_fraction is the rate of the bytes that a kernel must read and write, over that of a copy (read and written
bytes) by one thread, taken in turn. Vectors come from memory, or stay in cache with 32768 elements each.
--transport: ratio is the rate of a message, over that of memcpy for the same bytes, taken in turn.";

/// Runs the benchmark that `args` describe.
///
/// # Errors
/// If the ranks cannot be started, an argument is wrong or a result is. A rank that fails is reported at once and is in the `End`.
pub(crate) fn run(args: &Args) -> Result<End> {
    let trace = args.trace.as_deref().map(Trace::prepare).transpose()?;
    let end = match (request(args)?, args.compare.as_deref()) {
        (Request::Reduction(what), None) => outcome::run(what, trace.as_ref(), args.json),
        (Request::Reduction(what), Some(command)) => {
            let rounds = args.rounds;
            outcome::run_against(&what, &Against { command, rounds }, args.json)
        }
        (other, _) => job::run(&other, None, &mut |line| line::show(line, args.json)),
    };
    with_written(end, trace.map_or(Ok(()), |trace| trace.write()))
}

fn request(args: &Args) -> Result<Request> {
    if (args.kernels || args.transport)
        && let Some(bytes) = args.bytes.filter(|&bytes| bytes < 64)
    {
        return Err(Error::invalid(format!(
            "--bytes {bytes}: --kernels and --transport need at least 64"
        )));
    }
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
    let all = sweep::sweep(bytes, args.maxbytes.unwrap_or(bytes), args.stepfactor)?.into_iter();
    let sizes: Result<_> = all
        .map(|bytes| sweep::size(bytes, args.dtype, args.tensors))
        .collect();
    Ok(Request::Reduction(Reduced {
        mean: args.mean,
        ranks,
        locals,
        sizes: sizes?,
        dtype: args.dtype,
        reps: args.reps,
        radix: args.radix,
        exchange: args.exchange,
        bucket_bytes: args.bucket_bytes,
        pipeline_depth: args.pipeline_depth,
        check: args.check == 1,
        phases: args.json,
    }))
}
