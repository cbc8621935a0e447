//! Numbers of ranks as users of other launchers give them, in the place of a rank table.

use crate::cache;
use crate::error::{Error, Result};
use crate::topo::{self, RankTable};

#[derive(Debug, clap::Args)]
pub(crate) struct Size {
    /// Start so many ranks on this machine, with a rank table that is made for them: one server, unless --servers says more
    #[arg(
        short = 'n', long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=4096), visible_alias = "np", aliases = ["worker-num", "worker_num"],
        conflicts_with_all = FROM_A_TABLE
    )]
    ranks: Option<u32>,
    /// Servers in that table; all are here, so more than 1 are for the mock only [default: 1]
    #[arg(
        long, value_name = "SERVERS", value_parser = clap::value_parser!(u32).range(1..=4096), visible_alias = "nnodes", conflicts_with_all = FROM_A_TABLE
    )]
    servers: Option<u32>,
    /// Ranks of each server in that table
    #[arg(
        long, value_name = "DEVICES", value_parser = clap::value_parser!(u32).range(1..=4096), visible_alias = "nproc-per-node",
        aliases = ["nproc_per_node", "local-worker-num", "local_worker_num"], conflicts_with_all = FROM_A_TABLE
    )]
    devices_per_server: Option<u32>,
}

/// Options that go with a table of the user's.
const FROM_A_TABLE: [&str; 3] = ["rank_table", "server_id", "rank"];

impl Size {
    /// The table of these ranks; `None` if no number was given.
    pub(crate) fn table(&self) -> Result<Option<RankTable>> {
        let (servers, devices) = match (self.ranks, self.servers, self.devices_per_server) {
            (None, None, None) => return Ok(None),
            (None, servers, Some(devices)) => (servers.unwrap_or(1), devices),
            (Some(ranks), Some(servers), None) => (servers, share(ranks, "--servers", servers)?),
            (Some(ranks), None, Some(devices)) => {
                (share(ranks, "--devices-per-server", devices)?, devices)
            }
            (Some(ranks), None, None) => (1, ranks),
            (Some(ranks), Some(servers), Some(devices)) => {
                if u64::from(ranks) != u64::from(servers) * u64::from(devices) {
                    return Err(Error::invalid(format!(
                        "-n {ranks}: {servers} servers of {devices} devices have another number of ranks"
                    )));
                }
                (servers, devices)
            }
            (None, Some(servers), None) => {
                return Err(Error::invalid(format!(
                    "--servers {servers}: how many ranks? Give -n RANKS or --devices-per-server DEVICES"
                )));
            }
        };
        let made = topo::make_here(servers, devices)?;
        let folder = cache::unpack(&[(&made.file_name, made.text.as_bytes())])?;
        RankTable::read(folder.join(made.file_name)).map(Some)
    }
}

/// `ranks` in parts of `part`, an option's value.
fn share(ranks: u32, option: &str, part: u32) -> Result<u32> {
    match ranks.checked_rem(part) {
        Some(0) => Ok(ranks / part),
        _ => Err(Error::invalid(format!(
            "-n {ranks}: {option} {part} does not divide it"
        ))),
    }
}
