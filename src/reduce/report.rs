//! What a rank tells whoever started it about its failure, as a line that a program reads.

use std::io::Write;

use serde::{Deserialize, Serialize};

/// Asks for reports: `stderr` has them written as lines of standard error.
pub const REPORT_VARIABLE: &str = "ADASUM_REPORT";

/// How a line with a report starts; JSON follows.
pub const REPORT_MARK: &str = "adasum-report: ";

/// What a rank has to say of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// It has joined a world and will report if it fails.
    Joined {
        /// Its rank.
        rank: u32,
    },
    /// Its world has failed.
    Failed(Failure),
    /// How far it has come.
    Progress(Progress),
}

/// How far a rank has come in its program; shown by the launcher, with the time that is left.
///
/// A program that does not use this library can write the line itself:
/// `adasum-report: {"report":"progress","rank":0,"done":3,"total":90,"unit":"epochs","bytes":0}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The rank.
    pub rank: u32,
    /// How much is done, in `unit`.
    pub done: u64,
    /// How much there is to do in all.
    pub total: u64,
    /// What is counted, such as `steps`.
    pub unit: String,
    /// Bytes that were reduced until now; 0 if nobody counts.
    #[serde(default)]
    pub bytes: u64,
}

impl Progress {
    /// Tells the launcher, if there is one that listens.
    pub fn send(self) {
        Report::Progress(self).send();
    }
}

/// Why a rank's world failed, and what the rank waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The rank.
    pub rank: u32,
    /// The error that its calls return.
    pub message: String,
    /// Whether nothing moved for too long; otherwise something failed.
    pub stalled: bool,
    /// What has not ended, `None` if all that was queued has.
    pub waiting: Option<Waiting>,
}

/// The first operation, in the order of the queue, that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Number of the step, from 1 for the warm-up of the reducer.
    pub step: u64,
    /// Position in the order of the step, which is the same on all ranks.
    pub position: usize,
    /// Bucket, round and operation.
    pub operation: String,
    /// Ranks that it exchanges data with; empty for this rank's own kernels.
    pub peers: Vec<u32>,
    /// Bytes that this rank sends and receives in it.
    pub bytes: u64,
}

impl Report {
    /// Writes it to standard error, if that is asked for.
    pub(super) fn send(&self) {
        if std::env::var_os(REPORT_VARIABLE).is_none_or(|value| value != "stderr") {
            return;
        }
        match serde_json::to_string(self) {
            // One call, so that lines of other threads do not get in between.
            Ok(json) => {
                let line = format!("{REPORT_MARK}{json}\n");
                if let Err(error) = std::io::stderr().lock().write_all(line.as_bytes()) {
                    log::warn!("no report: {error}");
                }
            }
            Err(error) => log::warn!("no report: {error}"),
        }
    }

    /// The report in a line, without its line break, if there is one.
    pub fn parse(line: &[u8]) -> Option<Report> {
        serde_json::from_slice(line.strip_prefix(REPORT_MARK.as_bytes())?).ok()
    }
}
