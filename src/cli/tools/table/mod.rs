//! `adasum-run table`: rank tables made, merged, checked and drawn.

mod addresses;
pub(crate) mod check;
mod make;
mod merge;
mod show;

use crate::error::Result;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make the table of this server, as hccl_tools.py does, and print the name of its file
    Make(make::Args),
    /// Join the tables of several servers, as merge_hccl.py does but checked, and print the name of the file
    Merge(merge::Args),
    /// List every fault of a table by line and field
    Check(check::Args),
    /// Draw servers, devices and groups of a table
    Show(show::Args),
}

/// Runs the command; returns the exit code.
///
/// # Errors
/// If an argument or a file is wrong, or the result cannot be written.
pub(crate) fn run(args: &Args) -> Result<u8> {
    match &args.command {
        Command::Make(args) => make::run(args).map(|()| 0),
        Command::Merge(args) => merge::run(args).map(|()| 0),
        Command::Check(args) => check::run(args),
        Command::Show(args) => show::run(args).map(|()| 0),
    }
}
