//! `adasum-run doctor`: what this machine has for a job, what is wrong with it, and whether two ranks can reduce.

mod device;
mod libraries;
mod memory;
mod report;
mod self_test;
mod table;
mod values;
mod variables;
mod whitelist;

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::io;
use crate::cli::tools::doctor::report::{Check, Verdict};
use crate::error::Result;

const LONG_HELP: &str = "\
Exit code: 0 if nothing failed (remarks are no failures), 1 if something did, 2 wrong usage.
The self-test reduces small tensors of two ranks over the backend that was found, on devices 0 and 1, and compares them with
the exact result. ADASUM_BACKEND=cann|mock chooses the backend.";

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// The rank table of the job [default: that of RANK_TABLE_FILE or MINDSPORE_HCCL_CONFIG_PATH]
    #[arg(long, value_name = "FILE")]
    rank_table: Option<PathBuf>,
    /// Do not use devices: leave out what opens one
    #[arg(long)]
    no_device: bool,
    /// The self-test fails after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=7200))]
    timeout: u64,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of the process of the two ranks.
#[derive(Debug, clap::Args)]
pub(crate) struct RanksArgs {
    /// Seconds until they give up
    timeout: u64,
}

pub(crate) use self_test::COMMAND as RANKS_COMMAND;

/// The process of the two ranks of the self-test.
///
/// # Errors
/// The first failure of a rank.
pub(crate) fn ranks(args: &RanksArgs) -> Result<()> {
    self_test::ranks(Duration::from_secs(args.timeout))
}

/// Looks at everything and prints it; the exit code is the verdict.
///
/// # Errors
/// If the report cannot be printed.
pub(crate) fn run(args: &Args) -> Result<u8> {
    let checks = examine(args);
    let text = if args.json {
        format!("{}\n", report::as_json(&checks))
    } else {
        report::as_text(&checks)
    };
    io::print(&text)?;
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(u8::from(failed))
}

fn examine(args: &Args) -> Vec<Check> {
    let mut checks = Vec::new();
    let found = libraries::check(&mut checks);
    let opened = match &found {
        Some(survey) if !args.no_device => device::check(survey, &mut checks),
        Some(_) => {
            for name in ["device", "kernels"] {
                checks.push(Check::skipped(name, "--no-device"));
            }
            None
        }
        None => {
            for name in ["device", "kernels"] {
                checks.push(Check::skipped(name, "there is no backend"));
            }
            None
        }
    };
    let soc = opened.as_ref().map(|device| device.soc.as_str());
    let backend = found.as_ref().map(|survey| survey.backend.name);
    checks.push(variables::check(backend, soc));
    let (table, verdict) = table::check(args.rank_table.as_deref(), soc);
    checks.push(verdict);
    let free = opened.as_ref().and_then(|device| device.free);
    checks.push(memory::check(table.as_ref(), free, soc));
    checks.push(match &opened {
        Some(device) => self_test::check(device.count, Duration::from_secs(args.timeout)),
        None => Check::skipped("self-test", "no device is open"),
    });
    checks
}
