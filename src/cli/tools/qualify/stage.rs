//! The stages, what each needs, and the processes that run them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cli::tools::qualify::findings::Findings;
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::cli::tools::qualify::stages;
use crate::error::{Context, Error, Result};
use crate::topo::Cluster;

/// How many processes a stage has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// One, on the first device.
    One,
    /// One on every device.
    Each,
    /// One on every device, at least two, and they meet.
    Together,
}

/// Part of the qualification.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    /// A sentence for the report.
    pub(crate) about: &'static str,
    /// The stages without which it has no meaning.
    pub(crate) needs: &'static [&'static str],
    pub(crate) ranks: Ranks,
    run: fn(&StageRank, &mut Findings) -> Result<()>,
}

/// All stages, in the order in which they run.
pub(crate) const STAGES: [Stage; 9] = [
    Stage {
        name: "libraries",
        about: "which ACL and HCCL are loaded, and what they can do",
        needs: &[],
        ranks: Ranks::One,
        run: stages::libraries::run,
    },
    Stage {
        name: "device",
        about: "processor, cores and memory of every device",
        needs: &["libraries"],
        ranks: Ranks::Each,
        run: stages::device::run,
    },
    Stage {
        name: "memory",
        about: "copies to, from and within the devices keep every byte",
        needs: &["device"],
        ranks: Ranks::Each,
        run: stages::memory::run,
    },
    Stage {
        name: "streams",
        about: "streams, events, limits of time and aborts do what the library relies on",
        needs: &["memory"],
        ranks: Ranks::One,
        run: stages::streams::run,
    },
    Stage {
        name: "kernels",
        about: "a kernel binary for the processor is found, or built, and loaded",
        needs: &["device"],
        ranks: Ranks::One,
        run: stages::kernels::run,
    },
    Stage {
        name: "arithmetic",
        about: "each kernel, element type and radix against double precision, and its speed beside a copy",
        needs: &["memory", "kernels"],
        ranks: Ranks::One,
        run: stages::arithmetic::run,
    },
    Stage {
        name: "communicators",
        about: "worlds, sub-communicators and every operation that reductions use",
        needs: &["memory"],
        ranks: Ranks::Together,
        run: stages::communicators::run,
    },
    Stage {
        name: "reductions",
        about: "whole reductions against double precision, with every form of exchange",
        needs: &["streams", "arithmetic", "communicators"],
        ranks: Ranks::Together,
        run: stages::reductions::run,
    },
    Stage {
        name: "rejoin",
        about: "after a reduction that waited in vain the same processes join a new world",
        needs: &["reductions"],
        ranks: Ranks::Together,
        run: stages::rejoin::run,
    },
];

/// The task of a process of a stage, as JSON on its command line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) stage: String,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// A folder in which ranks meet; empty at the start of the stage.
    pub(crate) meetings: PathBuf,
    /// Whether the world is that of the rank table in the environment.
    pub(crate) table: bool,
}

/// The process of a stage: checks and reports.
///
/// # Errors
/// If the request is wrong, or what kept the stage from going on; that is reported, too.
pub(crate) fn run(request: &str) -> Result<()> {
    let request: Request = serde_json::from_str(request)
        .map_err(|error| Error::invalid(format!("the request: {error}")))?;
    let stage = STAGES.iter().find(|stage| stage.name == request.stage);
    let stage = stage.ok_or_else(|| Error::invalid(format!("no stage {}", request.stage)))?;
    let cluster = request.table.then(Cluster::from_env).transpose()?;
    let own = StageRank {
        rank: request.rank,
        size: request.size,
        meetings: request.meetings,
        cluster,
    };
    let mut findings = Findings::new();
    let result = (stage.run)(&own, &mut findings);
    let result = result.context(|| format!("rank {}", own.rank));
    if let Err(error) = &result {
        let error = error.clone();
        findings.check("the rest of the stage", || Err(error));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_need_earlier_ones() {
        for (index, stage) in STAGES.iter().enumerate() {
            for need in stage.needs {
                let earlier = STAGES[..index].iter().any(|other| other.name == *need);
                assert!(earlier, "{} needs {need}", stage.name);
            }
        }
    }
}
