//! The processes of a stage.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cli::io::{failed, json};
use crate::cli::launch::children::Input;
use crate::cli::launch::event::Pipe;
use crate::cli::launch::job::{self, End, Limits, Observer, Rank, prefixed};
use crate::cli::launch::ranks::this_program;
use crate::cli::tools::qualify::findings::{Finding, FindingStatus};
use crate::cli::tools::qualify::stage::{Ranks, Request, Stage};
use crate::error::Result;

/// Name of the command that is a process of a stage.
pub(crate) const COMMAND: &str = "qualify-stage";
/// Where CANN writes its own logs.
const CANN_LOGS: &str = "ASCEND_PROCESS_LOG_PATH";

/// The ranks of this command and the folder of its results.
pub(crate) struct Job {
    pub(crate) out: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) timeout: Duration,
}

/// The ranks that this command runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope {
    /// One for each of the first devices of this machine.
    Devices(u32),
    /// One of a job that a launcher started, with a rank table.
    Table { rank: u32, size: u32 },
}

/// How a stage ended.
pub(crate) struct StageResult {
    pub(crate) stage: &'static Stage,
    pub(crate) verdict: FindingStatus,
    /// Whether the user wants it.
    pub(crate) is_asked_for: bool,
    /// Findings of each rank.
    pub(crate) findings: Vec<(u32, Finding)>,
    /// Reasons that no finding says.
    pub(crate) notes: Vec<String>,
    pub(crate) seconds: f64,
}

impl StageResult {
    pub(crate) fn skipped(stage: &'static Stage, why: String, is_asked_for: bool) -> StageResult {
        StageResult {
            stage,
            is_asked_for,
            verdict: FindingStatus::Skipped,
            findings: Vec::new(),
            notes: vec![why],
            seconds: 0.0,
        }
    }
}

/// How the run of a stage came out.
pub(crate) enum Ran {
    Ended(StageResult),
    /// This signal told the command to end.
    Interrupted(i32),
}

impl Job {
    /// Runs a stage to its end, or to the limit of time.
    ///
    /// # Errors
    /// If files cannot be written or processes not be started; never for what a stage finds.
    pub(crate) fn run(&self, stage: &'static Stage) -> Result<Ran> {
        let begin = Instant::now();
        let meetings = self.out.join("meetings").join(stage.name);
        std::fs::create_dir_all(&meetings).map_err(|error| failed(meetings.display(), error))?;
        let path = self.out.join(format!("{}.log", stage.name));
        let log = File::create(&path).map_err(|error| failed(path.display(), error))?;
        let mut listener = Listener {
            log: BufWriter::new(log),
            findings: Vec::new(),
            notes: Vec::new(),
        };
        let limits = Limits {
            timeout: Some(self.timeout),
            ..Limits::default()
        };
        let (range, size) = self.shape(stage);
        let ranks = self.ranks(stage, &meetings, range, size)?;
        let end = job::run(ranks, size, &limits, &mut listener)?;
        listener
            .log
            .flush()
            .map_err(|error| failed(path.display(), error))?;
        Ok(match end {
            End::Interrupted(signal) => Ran::Interrupted(signal),
            _ => Ran::Ended(listener.result(stage, end, begin.elapsed())),
        })
    }

    /// The ranks of a stage that run here, and how many there are.
    fn shape(&self, stage: &Stage) -> (Range<u32>, u32) {
        match (self.scope, stage.ranks) {
            (Scope::Devices(_), Ranks::One) => (0..1, 1),
            (Scope::Devices(count), _) => (0..count, count),
            (Scope::Table { rank, size }, _) => (rank..rank + 1, size),
        }
    }

    fn ranks(
        &self,
        stage: &Stage,
        meetings: &Path,
        range: Range<u32>,
        size: u32,
    ) -> Result<Vec<Rank>> {
        let program = this_program()?;
        let table = matches!(self.scope, Scope::Table { .. });
        let rank = |rank| {
            let request = Request {
                stage: stage.name.to_owned(),
                rank,
                size,
                meetings: meetings.to_owned(),
                table,
            };
            let request = json(&request)?;
            let mut command = Command::new(&program);
            command.args([COMMAND, &request]);
            if std::env::var_os(CANN_LOGS).is_none() {
                command.env(CANN_LOGS, self.out.join("ascend-logs"));
            }
            Ok(Rank {
                rank,
                place: match table {
                    true => "its device in the rank table".to_owned(),
                    false => format!("device {rank}"),
                },
                command,
                input: Input::Empty,
            })
        };
        range.map(rank).collect()
    }
}

/// Keeps all lines in the stage's log.
struct Listener {
    log: BufWriter<File>,
    findings: Vec<(u32, Finding)>,
    notes: Vec<String>,
}

impl Observer for Listener {
    fn line(&mut self, rank: u32, pipe: Pipe, line: &[u8]) -> std::io::Result<()> {
        if pipe == Pipe::Out
            && let Some(finding) = Finding::parse(line)
        {
            self.findings.push((rank, finding));
        }
        self.log.write_all(&prefixed(rank, line))
    }

    fn notice(&mut self, text: &str) {
        self.notes.push(text.to_owned());
        // The log says it, too, as far as there is room for it.
        let _ = writeln!(self.log, "{text}");
    }
}

impl Listener {
    fn result(self, stage: &'static Stage, end: End, time: Duration) -> StageResult {
        let has = |verdict| self.findings.iter().any(|(_, f)| f.verdict == verdict);
        let verdict = match end {
            End::Success if has(FindingStatus::Failed) => FindingStatus::Failed,
            End::Success if has(FindingStatus::Passed) => FindingStatus::Passed,
            _ => FindingStatus::Failed,
        };
        StageResult {
            stage,
            verdict,
            is_asked_for: true,
            findings: self.findings,
            notes: self.notes,
            seconds: time.as_secs_f64(),
        }
    }
}
