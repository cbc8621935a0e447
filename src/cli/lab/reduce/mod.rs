//! `adasum-run reduce`: the ranks' tensors come from files, and so does the result.
//!
//! Reading and writing are [`file`], the reduction is [`ranks`], which runs what training runs over the mock;
//! [`mindspore`] is another arithmetic for comparison, [`statistics`] says what the reduction did.

pub(crate) mod file;
#[cfg(test)]
mod malformed;
mod mindspore;
mod npy;
mod npz;
mod ranks;
mod safetensors;
mod statistics;
mod tensor;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli::io;
use crate::cli::lab::reduce::statistics::Statistics;
use crate::cli::lab::reduce::tensor::Tensor;
use crate::cli::lab::workload;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::reduce::{Options, Reduction};

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// The tensors of each rank, in the order of the ranks: .npz or .safetensors
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the result goes: .npz or .safetensors
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// So many consecutive files are one server, whose ranks are averaged before AdaSum
    #[arg(long, value_name = "D", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    devices_per_server: u32,
    /// How the files are combined
    #[arg(long, value_enum, default_value_t = How::Adasum)]
    reduction: How,
    /// The most subtrees that a round merges: 2 to 8, or auto for the fastest by the cost model [default: 2, as in training]
    #[arg(long, value_name = "R", value_parser = workload::radix)]
    radix: Option<std::option::Option<u32>>,
    /// The paper's AdaSum, or as a reference that of MindSpore's wrap cells, computed on the CPU
    #[arg(long, value_enum, default_value_t = Arithmetic::Paper)]
    arithmetic: Arithmetic,
    /// In a pair, a vector with at most X times the squared norm of the other counts as zero
    #[arg(long, value_name = "X", value_parser = zero_tol)]
    zero_tol: Option<f32>,
    /// Give up when nothing has moved for so many seconds [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    stall_timeout: Option<u64>,
    /// Write figures of each tensor into this file
    #[arg(long, value_name = "FILE.json")]
    stats: Option<PathBuf>,
    /// Replace an output that is read-only, and write to the file that a symbolic link leads to
    #[arg(long)]
    force: bool,
}

const LONG_HELP: &str = "\
All files must hold tensors of the same names, shapes and dtypes: float32 and float16, in .safetensors files also bf16.
Each file is a rank on the mock of HCCL in this process, so this is the reduction that training runs.

The figures of --stats, in double precision: {\"tensors\": [{\"name\", \"norms\" (of the files, or of the servers' means),
\"norm\" (of the result), \"cosine\" (mean over all pairs), \"gain\" (norm of the result / norm of the mean), \"kappa\"
(how far weighted vectors cancelled), \"nonfinite\"}]}; null where there is no number.

An output takes its place whole or not at all; it is none of the other files.

The ranks compare checksums of all messages and of their results.

Exit code: 0, also when a tensor is not finite, which is warned about; 2 for wrong arguments or files; 1 for the rest.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum How {
    Adasum,
    Mean,
    Sum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Arithmetic {
    Paper,
    Mindspore,
}

#[derive(Serialize)]
struct Report {
    tensors: Vec<Statistics>,
}

/// Reduces the files that `args` name.
///
/// # Errors
/// If an argument or a file is wrong, or the reduction fails.
pub(crate) fn run(args: &Args) -> Result<()> {
    let locals = check(args)?;
    if args.arithmetic == Arithmetic::Paper {
        ranks::prepare(args.files.len())?;
    }
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    let inputs = Arc::new(read(args, &progress)?);

    progress.set_message("reducing");
    let result = match args.arithmetic {
        Arithmetic::Paper => ranks::reduce(&inputs, args.devices_per_server, &options(args))?,
        Arithmetic::Mindspore => {
            let text = "the result is that of MindSpore's arithmetic, not the paper's AdaSum";
            progress.suspend(|| io::notice(text));
            mindspore::reduce(&inputs, locals)?
        }
    };
    let mut figures = Vec::new();
    for (index, result) in result.iter().enumerate() {
        let ranks: Vec<&Tensor> = inputs.iter().map(|rank| &rank[index]).collect();
        if statistics::nonfinite(&ranks, result) {
            let name = &result.name;
            progress.suspend(|| io::notice(&format!("warning: tensor {name:?} is not finite")));
        }
        if args.stats.is_some() {
            progress.set_message(format!("figures of {}", result.name));
            let tree = args.reduction == How::Adasum;
            figures.push(statistics::of(&ranks, locals, tree, result));
        }
    }

    progress.set_message(format!("writing {}", args.output.display()));
    file::write(&args.output, &result)?;
    if let Some(path) = &args.stats {
        write_statistics(path, figures)?;
    }
    progress.finish_and_clear();
    Ok(())
}

/// Checks the arguments before a file is opened; returns the devices a server.
fn check(args: &Args) -> Result<usize> {
    let files = args.files.len();
    let locals = args.devices_per_server as usize;
    if files > ranks::MAX_RANKS {
        return Err(Error::invalid(format!(
            "{files} files are more than the {} ranks of the mock",
            ranks::MAX_RANKS
        )));
    }
    if !files.is_multiple_of(locals) {
        return Err(Error::invalid(format!(
            "--devices-per-server {locals} does not divide the number of files, {files}"
        )));
    }
    if args.reduction == How::Adasum && files == locals && locals > 1 {
        return Err(Error::invalid(format!(
            "--devices-per-server {locals} makes one server of all files, whose AdaSum is their mean: take \
             --reduction mean, or fewer devices a server"
        )));
    }
    if args.arithmetic == Arithmetic::Mindspore {
        if args.reduction != How::Adasum {
            return Err(Error::invalid(
                "--arithmetic mindspore is for --reduction adasum; mean and sum are the same everywhere",
            ));
        }
        if args.zero_tol.is_some() || args.radix.is_some() || args.stall_timeout.is_some() {
            return Err(Error::invalid(
                "--arithmetic mindspore has none of --radix, --zero-tol and --stall-timeout",
            ));
        }
    }
    for path in args.files.iter().chain([&args.output]) {
        file::Format::of(path)?;
    }
    check_outputs(args)?;
    Ok(locals)
}

/// # Errors
/// If an output is another file of the arguments, or what only `--force` replaces.
fn check_outputs(args: &Args) -> Result<()> {
    let mut others: Vec<(&str, &Path)> = Vec::new();
    others.extend(args.files.iter().map(|path| ("an input", path.as_path())));
    let outputs = [
        ("--output", Some(&args.output)),
        ("--stats", args.stats.as_ref()),
    ];
    for (name, path) in outputs {
        let Some(path) = path else { continue };
        io::refuse_same(name, path, &others)?;
        others.push((name, path));
        let problem = if path.is_symlink() {
            "a symbolic link; --force writes to the file that it leads to"
        } else if io::is_read_only(path) {
            "the file is read-only; --force replaces it"
        } else {
            ""
        };
        if !args.force && !problem.is_empty() {
            let path = path.display();
            return Err(Error::invalid(format!("{name} {path}: {problem}")));
        }
        io::check_replace(path).context(|| name)?;
    }
    Ok(())
}

fn options(args: &Args) -> Options {
    let patience = Duration::from_secs(args.stall_timeout.unwrap_or(300));
    Options {
        reduction: match args.reduction {
            How::Adasum => Reduction::Adasum,
            How::Mean => Reduction::Mean,
            How::Sum => Reduction::Sum,
        },
        radix: match args.radix {
            None => Options::default().radix,
            Some(radix) => radix.unwrap_or(Options::AUTO_RADIX),
        },
        zero_tol: args.zero_tol.unwrap_or_default(),
        create_timeout: patience,
        stall_timeout: patience,
        checksum: true,
        ..Options::default()
    }
}

fn read(args: &Args, progress: &ProgressBar) -> Result<Vec<Vec<Tensor>>> {
    let mut ranks: Vec<Vec<Tensor>> = Vec::with_capacity(args.files.len());
    for path in &args.files {
        progress.set_message(format!("reading {}", path.display()));
        let tensors = file::read(path)?;
        ranks.push(match ranks.first() {
            None => tensors,
            Some(first) => file::in_order(tensors, path, first, &args.files[0])?,
        });
    }
    Ok(ranks)
}

fn write_statistics(path: &Path, tensors: Vec<Statistics>) -> Result<()> {
    io::replace(path, |file| {
        let written = serde_json::to_string_pretty(&Report { tensors })
            .map_err(std::io::Error::from)
            .and_then(|text| writeln!(file, "{text}"));
        written.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
    })
}

fn zero_tol(text: &str) -> std::result::Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (0.0..1.0).contains(&value) => Ok(value),
        _ => Err("must be a number from 0 to below 1".to_owned()),
    }
}
