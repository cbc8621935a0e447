//! `adasum-run table check`.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::io::print;
use crate::cli::text::count;
use crate::error::Result;
use crate::topo::{Product, RankTable, TableReport};

const LONG_HELP: &str = "\
Exit code: 0 if the table is right, 1 if it has faults, 2 if the file cannot be read.
What needs the hardware (whether devices and their addresses exist) is left to HCCL.";

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// The rank table
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// Hold the table to the rules of this chip, too (Ascend910A is the one with rules of its own)
    #[arg(long, value_name = "NAME")]
    soc: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Prints the verdict; the exit code says it, too.
pub(crate) fn run(args: &Args) -> Result<u8> {
    let product = args.soc.as_deref().map_or(Product::Any, Product::of_soc);
    let report = RankTable::check_file(&args.table, product)?;
    if args.json {
        print(&format!("{}\n", as_json(&report)))?;
    } else {
        print(&as_text(&report))?;
    }
    Ok(u8::from(report.table().is_none()))
}

/// Every fault and remark in a line of its own, then the verdict.
pub(crate) fn as_text(report: &TableReport) -> String {
    let mut text = String::new();
    for fault in report.faults() {
        let _ = writeln!(text, "{}", report.line(fault));
    }
    if report.unlisted() > 0 {
        let more = count(report.unlisted() as u64, "more fault");
        let _ = writeln!(text, "and {more}");
    }
    for warning in report.warnings() {
        let line = report.line(warning);
        let _ = writeln!(text, "warning: {line}");
    }
    let _ = writeln!(text, "{}", verdict(report));
    text
}

/// The verdict as a sentence.
pub(crate) fn verdict(report: &TableReport) -> String {
    match report.table() {
        Some(table) => format!(
            "right: version {}, {}, {}",
            table.version(),
            count(table.servers().len() as u64, "server"),
            count(table.size(), "rank")
        ),
        None => count((report.faults().len() + report.unlisted()) as u64, "fault"),
    }
}

/// The report as JSON.
pub(crate) fn as_json(report: &TableReport) -> Value {
    json!({
        "right": report.table().is_some(),
        "version": report.table().map(|table| table.version().to_string()),
        "servers": report.table().map(|table| table.servers().len()),
        "ranks": report.table().map(RankTable::size),
        "faults": report.faults(),
        "unlisted": report.unlisted(),
        "warnings": report.warnings(),
    })
}
