//! Who is where: the rank table and this process's place in it.
//!
//! [`RankTable`] is the file, [`Cluster`] is the file seen from one rank, [`Launch`] is what the environment says. These
//! are plain descriptions. Ranks without a table come together in a [`Meeting`], over TCP or a file. Nothing here
//! opens a device.

mod device;
mod environment;
mod fault;
mod field;
mod host;
mod json;
mod launch;
mod legacy;
mod make;
mod meeting;
mod merge;
mod own_file;
mod product;
mod rank_list;
mod secret;
mod server_list;
mod table;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

pub use fault::{Fault, FaultKind, TableReport};
pub use host::host_key;
pub use launch::{Launch, Process};
pub use make::{NewTable, Selection, make, make_without_addresses};
pub use meeting::{Meeting, Participant, free_port};
pub use merge::merge;
pub use product::Product;
pub use secret::JobSecret;

use crate::error::{Error, ErrorKind, Result};

/// The most servers that a message lists.
const LISTED: usize = 16;

/// A device of a server, and its rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDevice {
    /// Number of the device on its server.
    pub device_id: i32,
    /// Addresses on the network between servers; may be empty on a single server.
    pub device_ips: Vec<IpAddr>,
    /// Rank in the job.
    pub rank: u32,
}

/// A server and its devices, whose ranks are one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// 0-based position in the table's `server_list`; without one, the order in which servers come.
    pub index: usize,
    /// The table's `server_id`; in version 2.0 the `net_instance_id` that its ranks share in layer 0.
    pub id: String,
    /// The devices in the order of their ranks; at least one.
    pub devices: Vec<ServerDevice>,
}

impl Server {
    /// The lowest rank on this server.
    pub fn first_rank(&self) -> u32 {
        self.devices.first().map_or(0, |device| device.rank)
    }
}

/// A superpod of a table of version 1.2, or a group of one without a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `super_pod_id` or `group_name`.
    pub name: String,
    /// Ranks, ascending.
    pub ranks: Vec<u32>,
}

/// The form of a rank table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Version {
    /// No version: groups of instances.
    Legacy,
    /// Servers.
    V1_0,
    /// Servers, which may stand in superpods.
    V1_2,
    /// Ranks with their places in the layers of a network: Ascend 950.
    V2_0,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Legacy => "without version",
            Version::V1_0 => "1.0",
            Version::V1_2 => "1.2",
            Version::V2_0 => "2.0",
        })
    }
}

/// A rank table that was read and found right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankTable {
    path: PathBuf,
    version: Version,
    servers: Vec<Server>,
    sections: Vec<Section>,
}

impl RankTable {
    /// Reads a table of version 1.0, 1.2 or 2.0, or one without a version.
    ///
    /// # Errors
    /// One line with the first fault: file, line, column, field, and what is wrong or which two positions disagree.
    pub fn read(path: impl AsRef<Path>) -> Result<RankTable> {
        let path = path.as_ref();
        let mut table = RankTable::parse(path, &table::read(path)?)?;
        table.path = std::path::absolute(path)
            .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display())))?;
        Ok(table)
    }

    /// A table from text, under the name of `path`, which is not opened.
    ///
    /// # Errors
    /// As [`RankTable::read`].
    pub fn parse(path: impl AsRef<Path>, bytes: &[u8]) -> Result<RankTable> {
        let report = RankTable::check(path, bytes, Product::Any);
        for warning in report.warnings() {
            log::warn!("{}", report.line(warning));
        }
        report.into_table()
    }

    /// All faults of the table `bytes`, which is called `path`; its rules are those of `product`.
    pub fn check(path: impl AsRef<Path>, bytes: &[u8], product: Product) -> TableReport {
        table::check(path.as_ref(), bytes, product)
    }

    /// [`RankTable::check`] of a file.
    ///
    /// # Errors
    /// If the file cannot be read or is too large to be a table.
    pub fn check_file(path: impl AsRef<Path>, product: Product) -> Result<TableReport> {
        let path = path.as_ref();
        Ok(table::check(path, &table::read(path)?, product))
    }

    /// The path of the table; absolute if it was read from a file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The form of the table.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Superpods or groups, where the table has them.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The servers in the order of their ranks.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        // Ranks are 0 to size - 1 and servers stand in their order.
        let last = self.servers.last().and_then(|server| server.devices.last());
        last.map_or(0, |device| device.rank + 1)
    }

    /// Devices per server.
    ///
    /// # Errors
    /// If servers differ; the message shows how many each has.
    pub fn locals(&self) -> Result<u32> {
        let count = |server: &Server| server.devices.len();
        let first = self.servers.first().map_or(0, count);
        if self.servers.iter().any(|server| count(server) != first) {
            let map = self.list(|server| format!("{:?} has {}", server.id, count(server)));
            return Err(Error::unsupported(format!(
                "{}: servers have different numbers of devices: {map}",
                table::display(&self.path)
            )));
        }
        u32::try_from(first).map_err(|_| Error::invalid("more devices than a rank can count"))
    }

    /// The server that `name` means: a 0-based index in `server_list` or a `server_id`.
    ///
    /// # Errors
    /// If there is none, or an index and a `server_id` that reads the same mean two servers; the message lists what exists.
    pub fn server_by(&self, name: &str) -> Result<&Server> {
        let wanted = name.parse::<usize>().ok();
        let by_index = self.servers.iter().find(|s| Some(s.index) == wanted);
        let by_id = self.servers.iter().find(|s| s.id == name);
        match (by_index, by_id) {
            (Some(one), Some(other)) if one.index != other.index => Err(Error::invalid(format!(
                "{}: server {name:?} is both index {} (server_id {:?}) and the server_id of index {}",
                table::display(&self.path),
                one.index,
                one.id,
                other.index
            ))),
            (Some(server), _) | (None, Some(server)) => Ok(server),
            (None, None) => Err(Error::invalid(format!(
                "{}: no server {name:?} in server_list, which has {}",
                table::display(&self.path),
                self.list(|server| format!("{} ({:?})", server.index, server.id))
            ))),
        }
    }

    /// The server that holds `rank` and the device it has there.
    ///
    /// # Errors
    /// If the table has no such rank.
    pub fn find(&self, rank: u32) -> Result<(&Server, &ServerDevice)> {
        let after = self.servers.partition_point(|s| s.first_rank() <= rank);
        let server = after.checked_sub(1).map(|index| &self.servers[index]);
        let found = server.and_then(|server| {
            let offset = usize::try_from(rank - server.first_rank()).ok()?;
            Some((server, server.devices.get(offset)?))
        });
        found.ok_or_else(|| {
            Error::invalid(format!(
                "{}: no rank {rank}: the table has {} ranks",
                table::display(&self.path),
                self.size()
            ))
        })
    }

    fn list(&self, show: impl Fn(&Server) -> String) -> String {
        let mut parts: Vec<String> = self.servers.iter().take(LISTED).map(show).collect();
        if self.servers.len() > LISTED {
            parts.push(format!("and {} more", self.servers.len() - LISTED));
        }
        parts.join(", ")
    }
}

/// The bytes of a file that describes a job, as a rank table.
///
/// # Errors
/// If it cannot be read, is no regular file or larger than 16 MiB.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    table::read(path)
}

/// A job as one of its ranks sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    table: RankTable,
    rank: u32,
    local_device: Option<i32>,
}

impl Cluster {
    /// `table` seen from `rank`.
    ///
    /// # Errors
    /// If the table has no such rank.
    pub fn new(table: RankTable, rank: u32) -> Result<Cluster> {
        table.find(rank)?;
        Ok(Cluster {
            table,
            rank,
            local_device: None,
        })
    }

    /// The cluster that the environment describes: the table is the file of `RANK_TABLE_FILE` or
    /// `MINDSPORE_HCCL_CONFIG_PATH`, `RANK_ID` is this process's rank. `RANK_SIZE`
    /// must be what the table says, if it is set; for `DEVICE_ID` see [`Cluster::local_device`].
    ///
    /// # Errors
    /// Names the variable that is missing or wrong, or what is wrong with the table.
    pub fn from_env() -> Result<Cluster> {
        environment::cluster(|name| std::env::var_os(name))
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.table.size()
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        // Each has a rank of its own, and ranks are counted in u32.
        u32::try_from(self.table.servers().len()).unwrap_or(u32::MAX)
    }

    /// Devices per server.
    ///
    /// # Errors
    /// If servers differ; the message shows how many each has.
    pub fn locals(&self) -> Result<u32> {
        self.table.locals()
    }

    /// What `DEVICE_ID` says this rank's device is, where the cluster comes from the environment and it is set: by the number on
    /// its server, or by that of this process (`aclrtSetDevice`).
    pub fn local_device(&self) -> Option<i32> {
        self.local_device
    }

    /// The device of `rank` by its number on its server, which need not be the one by which the rank's process opens it
    /// (hcomm, topoinfo_ranktableConcise.cc:176): see [`Device::id_of_physical`](crate::ascend::Device::id_of_physical).
    ///
    /// # Errors
    /// If the table has no such rank.
    pub fn device_id(&self, rank: u32) -> Result<i32> {
        Ok(self.table.find(rank)?.1.device_id)
    }

    /// The file the cluster was read from; HCCL reads it too.
    pub fn table_path(&self) -> &Path {
        self.table.path()
    }

    /// The table itself.
    pub fn table(&self) -> &RankTable {
        &self.table
    }
}
