//! `adasum-run qualify`: what a person with an NPU runs first, in stages, and a folder to attach to a report.
//!
//! ```text
//! stages --job--> processes, one a rank --findings (lines)--> results --report--> report.txt, report.json
//! ```
//!
//! Every stage is processes of its own: what crashes or hangs in it ends with them, and stages that do not need it go on.

mod findings;
mod job;
mod report;
mod stage;
mod stage_rank;
mod stages;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::io::{file_failed, print, save};
use crate::cli::launch::failure::{signal_code, signal_name};
use crate::cli::tools::qualify::findings::FindingStatus;
use crate::cli::tools::qualify::job::{Job, Ran, Scope, StageResult};
use crate::cli::tools::qualify::stage::{Ranks, STAGES, Stage};
use crate::error::{Error, Result};
use crate::topo::{Cluster, RankTable};

pub(crate) use job::COMMAND as STAGE_COMMAND;

/// More local devices tell nothing more, and take longer.
const USUAL_DEVICES: u32 = 8;
/// The most that can be asked for.
const MOST_DEVICES: u32 = 64;

const LONG_HELP: &str = "\
Exit code: 0 if every stage (with --only: each of these) passed, 1 if one failed or was skipped, 2 wrong usage.
The folder then holds report.txt, report.json, a log of each stage, and CANN's own logs of it (ascend-logs).
Several servers, on each of them: adasum-run launch --rank-table T --server-id auto -- adasum-run qualify --rank-table T
--out FOLDER; every rank writes into a folder of its own in it.";

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// The folder for reports and logs; it must not be there yet, or be empty
    #[arg(long, value_name = "FOLDER", default_value = "adasum-qualify")]
    out: PathBuf,
    /// Use the first so many devices [default: all, at most 8]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DEVICES)))]
    devices: Option<u32>,
    /// This process is a rank of the job of this rank table, started by a launcher
    #[arg(
        long,
        visible_alias = "table",
        value_name = "FILE",
        conflicts_with = "devices"
    )]
    rank_table: Option<PathBuf>,
    /// Run this stage and no other but libraries; several may be given
    #[arg(long, value_name = "STAGE", value_parser = STAGES.map(|stage| stage.name))]
    only: Vec<String>,
    /// A stage fails after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=7200))]
    timeout: u64,
}

/// The argument of a process of a stage.
#[derive(Debug, clap::Args)]
pub(crate) struct StageArgs {
    /// What it is to do, as JSON
    request: String,
}

/// A process of a stage.
///
/// # Errors
/// The failure that ended the stage.
pub(crate) fn stage(args: &StageArgs) -> Result<()> {
    stage::run(&args.request)
}

/// Runs all stages; the exit code is the verdict.
///
/// # Errors
/// If the folder cannot be used or processes cannot be started.
pub(crate) fn run(args: &Args) -> Result<u8> {
    let scope = match &args.rank_table {
        Some(path) => of_table(path)?,
        None => Scope::Devices(args.devices.unwrap_or(USUAL_DEVICES)),
    };
    let out = match scope {
        Scope::Devices(_) => args.out.clone(),
        Scope::Table { rank, .. } => args.out.join(format!("rank-{rank}")),
    };
    let mut job = Job {
        out: new_folder(&out)?,
        scope,
        timeout: Duration::from_secs(args.timeout),
    };
    let mut results: Vec<StageResult> = Vec::new();
    for stage in &STAGES {
        let result = match reason_to_skip(stage, args, &job, &results) {
            Some(why) => StageResult::skipped(stage, why, is_asked_for(stage.name, args)),
            None => match job.run(stage)? {
                Ran::Ended(result) => result,
                Ran::Interrupted(signal) => {
                    let why = format!("interrupted by {}", signal_name(signal));
                    results.push(StageResult::skipped(stage, why, true));
                    write(&job.out, &results)?;
                    return Ok(signal_code(signal));
                }
            },
        };
        say(&report::line(&result))?;
        for fault in report::faults(&result) {
            say(&format!("         {fault}"))?;
        }
        if let (Scope::Devices(wanted), Some(found)) = (job.scope, devices(&result)) {
            job.scope = Scope::Devices(wanted.min(found));
        }
        results.push(result);
        // After each stage, so that an interruption leaves a report.
        write(&job.out, &results)?;
    }
    let (summary, passed) = report::summary(&results);
    say(&format!(
        "{summary}; reports and logs: {}",
        job.out.display()
    ))?;
    Ok(u8::from(!passed))
}

fn is_asked_for(stage: &str, args: &Args) -> bool {
    args.only.is_empty() || args.only.iter().any(|only| only == stage)
}

/// Why a stage is not run, if it is not.
fn reason_to_skip(
    stage: &Stage,
    args: &Args,
    job: &Job,
    results: &[StageResult],
) -> Option<String> {
    if !stage.needs.is_empty() && !is_asked_for(stage.name, args) {
        return Some("not asked for".to_owned());
    }
    let passed = |name: &&&str| {
        let mut results = results.iter();
        results.any(|result| result.stage.name == **name && result.verdict == FindingStatus::Passed)
    };
    let mut needs = stage.needs.iter().filter(|name| is_asked_for(name, args));
    if let Some(need) = needs.find(|name| !passed(name)) {
        return Some(format!("{need} did not pass"));
    }
    let alone = matches!(job.scope, Scope::Devices(1) | Scope::Table { size: 1, .. });
    (stage.ranks == Ranks::Together && alone).then(|| "it needs two devices".to_owned())
}

/// The number of devices, if this is the stage that counts them.
fn devices(result: &StageResult) -> Option<u32> {
    let mut findings = result.findings.iter();
    let (_, finding) = findings.find(|(_, finding)| finding.check == stages::libraries::DEVICES)?;
    let figure = finding.figure.as_ref()?;
    (1..=MOST_DEVICES)
        .rev()
        .find(|&n| f64::from(n) <= figure.value)
}

/// This process's place in the job of the table, which the launcher's variables must name.
fn of_table(path: &Path) -> Result<Scope> {
    let table = RankTable::read(path)?;
    let cluster = Cluster::from_env()?;
    if cluster.table().servers() != table.servers() {
        return Err(Error::invalid(format!(
            "{} is not the rank table of this job, {}",
            path.display(),
            cluster.table_path().display()
        )));
    }
    Ok(Scope::Table {
        rank: cluster.rank(),
        size: cluster.size(),
    })
}

/// The folder, new or empty, as an absolute path.
fn new_folder(out: &Path) -> Result<PathBuf> {
    let failed = |error: std::io::Error| file_failed(format!("--out {}", out.display()), &error);
    std::fs::create_dir_all(out).map_err(failed)?;
    if std::fs::read_dir(out).map_err(failed)?.next().is_some() {
        return Err(Error::invalid(format!(
            "--out {}: the folder is not empty",
            out.display()
        )));
    }
    out.canonicalize().map_err(failed)
}

fn write(out: &Path, results: &[StageResult]) -> Result<()> {
    let json = format!("{:#}\n", report::as_json(results));
    for (name, content) in [
        ("report.txt", report::as_text(results)),
        ("report.json", json),
    ] {
        save(&out.join(name), &content)?;
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    print(&format!("{line}\n"))
}
