//! The program `adasum-run`.
//!
//! Standard output carries data (the lines of ranks, results), standard error everything else.

mod io;
#[doc(hidden)]
pub mod lab;
mod launch;
mod logger;
mod report;
mod text;
mod tools;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::error::{Error, ErrorKind, Result};
use crate::sys::process;
use lab::{bench, demo, reduce, simulate};
use launch::job::End;
use launch::reaper;
use tools::{build_kernels, config, doctor, plan, qualify, table};

/// AdaSum gradient reduction for Ascend NPUs: launcher, demo, benchmarks, reduction of files.
#[derive(Debug, Parser)]
#[command(name = "adasum-run", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Start the ranks of a rank table, each running PROGRAM
    Launch(Box<launch::Args>),
    /// Train a small network on handwritten digits with 16 ranks, AdaSum beside the mean
    Demo(demo::Args),
    /// Look at backend, variables, rank table and memory, and reduce with two ranks
    Doctor(doctor::Args),
    /// Check everything that reductions rely on, in stages, and write a folder to attach to a report: the first run on an NPU
    Qualify(qualify::Args),
    /// Compile the kernels for an NPU, with the CANN toolkit that is installed here
    BuildKernels(build_kernels::Args),
    /// Print what a C or C++ program needs to be built for ACL and HCCL and run on the mock
    Config(config::Args),
    /// Combine tensors of several files, one a rank, as training would: for checking and for merging weights
    Reduce(reduce::Args),
    /// Make, merge, check and draw rank tables
    Table(table::Args),
    /// Show what every rank sends, receives and computes in a reduction, without running it
    Plan(plan::Args),
    /// Compute how long reductions take on clusters of up to many thousand devices, beside all-reduces
    Simulate(simulate::Args),
    /// Measure reductions, kernels and messages on this machine
    Bench(bench::Args),
    /// One rank of a benchmark
    #[command(hide = true)]
    BenchRank(bench::rank::Args),
    /// One rank of the demo
    #[command(hide = true)]
    DemoRank(demo::rank::Args),
    /// The two ranks of the doctor's self-test
    #[command(hide = true, name = doctor::RANKS_COMMAND)]
    DoctorRanks(doctor::RanksArgs),
    /// One rank of a stage of the qualification
    #[command(hide = true, name = qualify::STAGE_COMMAND)]
    QualifyStage(qualify::StageArgs),
    /// Kill the ranks of a launcher that is killed
    #[command(hide = true, name = reaper::COMMAND)]
    Reaper { job: String },
}

/// Runs the program with the arguments of this process.
pub fn run() -> ExitCode {
    let command = Arguments::parse().command;
    process::keep_ended_children();
    match logger::start().and_then(|()| execute(command)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            io::notice(&error.to_string());
            ExitCode::from(error_code(&error))
        }
    }
}

fn execute(command: Command) -> Result<u8> {
    match command {
        Command::Launch(args) => launch::run(&args).map(End::exit_code),
        Command::Demo(args) => demo::run(&args).map(End::exit_code),
        Command::BuildKernels(args) => build_kernels::run(&args).map(|()| 0),
        Command::Config(args) => config::run(&args).map(|()| 0),
        Command::Doctor(args) => doctor::run(&args),
        Command::Qualify(args) => qualify::run(&args),
        Command::QualifyStage(args) => qualify::stage(&args).map(|()| 0),
        Command::Reduce(args) => reduce::run(&args).map(|()| 0),
        Command::Table(args) => table::run(&args),
        Command::Plan(args) => plan::run(&args).map(|()| 0),
        Command::Simulate(args) => simulate::run(&args).map(|()| 0),
        Command::Bench(args) => bench::run(&args).map(End::exit_code),
        Command::BenchRank(args) => bench::rank::run(&args).map(|()| 0),
        Command::DemoRank(args) => demo::rank::run(&args).map(|()| 0),
        Command::DoctorRanks(args) => doctor::ranks(&args).map(|()| 0),
        Command::Reaper { job } => {
            reaper::run(&job);
            Ok(0)
        }
    }
}

/// Reads a file of tensors as `reduce` does, and returns their number: for tests with damaged files.
///
/// # Errors
/// Names the file and what is wrong with it.
#[doc(hidden)]
pub fn tensors_in(file: &Path) -> Result<usize> {
    reduce::file::read(file).map(|tensors| tensors.len())
}

/// Reads the records in a folder as reports do, and returns the number of charts: for tests with damaged files.
///
/// # Errors
/// If a file cannot be read.
#[doc(hidden)]
pub fn charts_in(folder: &Path) -> Result<usize> {
    report::history::read(folder).map(|history| history.charts.len())
}

/// 2 for what the user can correct on the command line or in a file, 1 for the rest.
fn error_code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::InvalidArgument | ErrorKind::Unsupported => 2,
        _ => 1,
    }
}
