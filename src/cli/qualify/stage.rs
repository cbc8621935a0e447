//! The stages, what each needs, and the processes that run them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::findings::Findings;
use super::stages;
use crate::ascend::{Comm, CommConfig, Device, RootInfo};
use crate::error::{Context, Error, Result};
use crate::reduce::World;
use crate::topo::{Cluster, Meeting, Participant};

/// How many processes a stage has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ranks {
    /// One, on the first device.
    One,
    /// One on every device.
    Each,
    /// One on every device, at least two, and they meet.
    Together,
}

/// Part of the qualification.
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// What it shows, for the report.
    pub(super) about: &'static str,
    /// The stages without which it has no meaning.
    pub(super) needs: &'static [&'static str],
    pub(super) ranks: Ranks,
    run: fn(&Place, &mut Findings) -> Result<()>,
}

/// In the order in which they run.
pub(super) const STAGES: [Stage; 9] = [
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

/// What a process of a stage is told, as JSON on its command line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) stage: String,
    pub(super) rank: u32,
    pub(super) size: u32,
    /// A folder for what ranks tell each other; empty at the start of the stage.
    pub(super) meetings: PathBuf,
    /// Whether the world is that of the rank table in the environment.
    pub(super) table: bool,
}

/// Where a process of a stage stands among the others.
pub(super) struct Place {
    pub(super) rank: u32,
    pub(super) size: u32,
    meetings: PathBuf,
    cluster: Option<Cluster>,
}

/// How long ranks wait for each other before a communicator is made.
const PATIENCE: Duration = Duration::from_secs(120);

impl Place {
    /// Opens the device of this rank.
    pub(super) fn device(&self) -> Result<Device> {
        let id = match &self.cluster {
            Some(cluster) => cluster.device_id(self.rank)?,
            None => i32::try_from(self.rank).map_err(|_| Error::invalid("too many devices"))?,
        };
        Device::open(id)
    }

    /// Ranks of a server, in the larger sense: of the rank table's, else of half of all.
    pub(super) fn locals(&self) -> Result<u32> {
        match &self.cluster {
            Some(cluster) => cluster.locals(),
            None if self.size.is_multiple_of(2) => Ok(self.size / 2),
            None => Ok(1),
        }
    }

    /// The communicator of all ranks: of the rank table if there is one, else by root info from rank 0, who tells it at
    /// the meeting of this name. A name is good for one meeting.
    pub(super) fn communicator(&self, device: &Device, meeting: &str) -> Result<Comm> {
        let config = CommConfig::default();
        match &self.cluster {
            Some(cluster) => {
                Comm::from_rank_table(device, cluster.table_path(), self.rank, &config)
            }
            None => {
                let root = self.root(device, meeting)?;
                Comm::from_root_info(device, &root, self.size, self.rank, &config)
            }
        }
    }

    /// The world of all ranks, `locals` a server: as [`Place::communicator`].
    pub(super) fn world(&self, locals: u32, meeting: &str) -> Result<World> {
        match &self.cluster {
            Some(cluster) => World::from_cluster_with(cluster, locals),
            None => {
                let device = self.device()?;
                let root = self.root(&device, meeting)?;
                World::from_root_info(device, &root, self.size, self.rank, locals)
            }
        }
    }

    fn root(&self, device: &Device, meeting: &str) -> Result<RootInfo> {
        let participant = Participant {
            rank: self.rank,
            size: self.size,
            limit: PATIENCE,
        };
        let bytes = Meeting::File(self.meetings.join(meeting)).meet(participant, &[], |_| {
            Ok(RootInfo::new(device)?.as_bytes().to_vec())
        })?;
        RootInfo::from_bytes(&bytes)
    }
}

/// The process of a stage: finds and tells.
///
/// # Errors
/// If the request is wrong, or what kept the stage from going on; that is told, too.
pub(super) fn run(request: &str) -> Result<()> {
    let request: Request = serde_json::from_str(request)
        .map_err(|error| Error::invalid(format!("the request: {error}")))?;
    let stage = STAGES.iter().find(|stage| stage.name == request.stage);
    let stage = stage.ok_or_else(|| Error::invalid(format!("no stage {}", request.stage)))?;
    let cluster = request.table.then(Cluster::from_env).transpose()?;
    let place = Place {
        rank: request.rank,
        size: request.size,
        meetings: request.meetings,
        cluster,
    };
    let mut findings = Findings::new();
    let result = (stage.run)(&place, &mut findings);
    let result = result.context(|| format!("rank {}", place.rank));
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
