//! A process of a stage among the others.

use std::path::PathBuf;
use std::time::Duration;

use crate::ascend::{Comm, CommConfig, Device, RootInfo};
use crate::error::{Error, Result};
use crate::reduce::World;
use crate::topo::{Cluster, Meeting, Participant};

/// This process among the ranks of a stage.
pub(crate) struct StageRank {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) meetings: PathBuf,
    pub(crate) cluster: Option<Cluster>,
}

/// How long ranks wait for each other before a communicator is made.
const PATIENCE: Duration = Duration::from_secs(120);

impl StageRank {
    /// Opens the device of this rank.
    pub(crate) fn device(&self) -> Result<Device> {
        let id = match &self.cluster {
            Some(cluster) => World::device_of(cluster)?,
            None => i32::try_from(self.rank).map_err(|_| Error::invalid("too many devices"))?,
        };
        Device::open(id)
    }

    /// Ranks of a server, in the larger sense: of the rank table's, else of half of all.
    pub(crate) fn locals(&self) -> Result<u32> {
        match &self.cluster {
            Some(cluster) => cluster.locals(),
            None if self.size.is_multiple_of(2) => Ok(self.size / 2),
            None => Ok(1),
        }
    }

    /// The communicator of all ranks: of the rank table if there is one, else by root info from rank 0, at
    /// the meeting of this name. A name is good for one meeting.
    pub(crate) fn communicator(&self, device: &Device, meeting: &str) -> Result<Comm> {
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

    /// The world of all ranks, `locals` a server, made like [`StageRank::communicator`].
    pub(crate) fn world(&self, locals: u32, meeting: &str) -> Result<World> {
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
