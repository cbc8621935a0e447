//! What a rank tells whoever started it about its failure, as a line that a program reads.

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// Asks for reports: `stderr` has them written as lines of standard error.
pub const REPORT_VARIABLE: &str = "ADASUM_REPORT";

/// How a line with a report starts; JSON follows.
pub const REPORT_MARK: &str = "adasum-report: ";

/// What a rank has to say of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// The rank begins to join a world, and will report if it fails.
    Joining {
        /// The rank that reports.
        rank: u32,
    },
    /// The rank has joined a world.
    Joined {
        /// The rank that reports.
        rank: u32,
    },
    /// Nothing has moved for a quarter of the time after which it gives up.
    Waiting {
        /// The rank that reports.
        rank: u32,
        /// What has not ended.
        waiting: Waiting,
    },
    /// What the rank said that it waits for has moved.
    Moving {
        /// The rank that reports.
        rank: u32,
    },
    /// The rank's world has failed.
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
    /// Number of the last step that was begun, as in [`Waiting`].
    #[serde(default)]
    pub step: u64,
    /// Whether nothing moved for too long; otherwise something failed.
    pub stalled: bool,
    /// Whether all work of this rank ran, and what other ranks were to send never came.
    #[serde(default)]
    pub missed_others: bool,
    /// The call of the vendor's that failed, if it was one.
    #[serde(default)]
    pub call: Option<FailedCall>,
    /// What has not ended, `None` if all that was queued has.
    pub waiting: Option<Waiting>,
}

/// A call of ACL or HCCL that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCall {
    /// Name of the function.
    pub function: String,
    /// `aclError` or `HcclResult`.
    pub code: i32,
}

/// What kind of failure it is, for those who look for its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reduce) enum Trouble {
    /// Something failed; the code of the call says more.
    Failed,
    /// Nothing moved for too long.
    Stalled,
    /// All work of this rank ran, and what other ranks were to send never came.
    MissedOthers,
}

impl Failure {
    /// The failure of a rank in a step.
    pub(in crate::reduce) fn of(
        (rank, step): (u32, u64),
        error: &Error,
        trouble: Trouble,
        waiting: Option<Waiting>,
    ) -> Self {
        Failure {
            rank,
            message: error.to_string(),
            step,
            stalled: trouble == Trouble::Stalled,
            missed_others: trouble == Trouble::MissedOthers,
            call: error.vendor_code().map(|vendor| FailedCall {
                function: vendor.function.to_owned(),
                code: vendor.code,
            }),
            waiting,
        }
    }
}

/// Runs `join`, which makes the world of `size` ranks as `rank`, and reports its beginning and its failure: whoever is
/// stuck in there is missed by all others.
pub(in crate::reduce) fn joining<T>(
    rank: u32,
    size: u32,
    join: impl FnOnce() -> Result<T>,
) -> Result<T> {
    Report::Joining { rank }.send();
    join().inspect_err(|error| {
        let waiting = Waiting {
            step: 0,
            position: 0,
            operation: "creation of the world".to_owned(),
            peers: (0..size).filter(|&peer| peer != rank).collect(),
            bytes: 0,
        };
        let trouble = match (error.kind(), error.vendor_code()) {
            (ErrorKind::Timeout, None) => Trouble::Stalled,
            _ => Trouble::Failed,
        };
        Report::Failed(Failure::of((rank, 0), error, trouble, Some(waiting))).send();
    })
}

/// The first operation, in the order of the queue, that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Number of the step, from 1 for the warm-up of the reducer; 0 for the creation of the world.
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
    pub(in crate::reduce) fn send(&self) {
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
