//! Numbers of ranks as users of other launchers give them, in the place of a rank table.

use crate::cache;
use crate::cli::text::count;
use crate::error::{Error, Result};
use crate::topo::{self, RankTable};

#[derive(Debug, clap::Args)]
pub(crate) struct Size {
    /// Start so many ranks on this machine, with a rank table that is made for them: one server, unless --servers says more. It has
    /// no addresses of devices, which HCCL on 910A wants
    #[arg(
        short = 'n', long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RANKS)), visible_alias = "np", aliases = ["worker-num", "worker_num"],
        conflicts_with_all = FROM_A_TABLE
    )]
    ranks: Option<u32>,
    /// Servers in that table; all are here, so more than 1 are for the mock only [default: 1]
    #[arg(
        long, value_name = "SERVERS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RANKS)), visible_alias = "nnodes", conflicts_with_all = FROM_A_TABLE
    )]
    servers: Option<u32>,
    /// Ranks of each server in that table
    #[arg(
        long, value_name = "DEVICES", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RANKS)), visible_alias = "nproc-per-node",
        aliases = ["nproc_per_node", "local-worker-num", "local_worker_num"], conflicts_with = "rank_table"
    )]
    devices_per_server: Option<u32>,
    /// Machines and the ranks of each (else --devices-per-server), as a:8,b:8. Prints the command for each, or starts it (--ssh).
    /// Ranks get no rank table, but meet at the first of them
    #[arg(
        long, value_name = "HOST:RANKS", value_delimiter = ',', value_parser = host, conflicts_with_all = ["rank_table", "ranks", "servers"]
    )]
    hosts: Vec<Host>,
}

/// A machine of --hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    name: String,
    ranks: Option<u32>,
}

/// So many ranks are started on this machine, at most.
const MOST_RANKS: u32 = 4096;
/// Options that go with a table of the user's.
const FROM_A_TABLE: [&str; 3] = ["rank_table", "server_id", "rank"];

impl Size {
    /// Names or addresses of the machines, in the order of their ranks; none if all are here.
    pub(crate) fn hosts(&self) -> Vec<&str> {
        self.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    /// The table of these ranks; `None` if no number was given.
    pub(crate) fn table(&self) -> Result<Option<RankTable>> {
        let Some((servers, devices)) = self.numbers()? else {
            return Ok(None);
        };
        let names = match self.hosts.is_empty() {
            true => (0..servers)
                .map(|index| format!("server_{index}"))
                .collect(),
            false => self
                .hosts
                .iter()
                .map(|host| host.name.clone())
                .collect::<Vec<_>>(),
        };
        let made = topo::make_without_addresses(&names, devices)?;
        let folder = cache::unpack(&[(&made.file_name, made.text.as_bytes())])?;
        RankTable::read(folder.join(made.file_name)).map(Some)
    }

    /// Servers and the devices of each.
    fn numbers(&self) -> Result<Option<(u32, u32)>> {
        if !self.hosts.is_empty() {
            return self.numbers_of_hosts().map(Some);
        }
        Ok(Some(
            match (self.ranks, self.servers, self.devices_per_server) {
                (None, None, None) => return Ok(None),
                (None, servers, Some(devices)) => {
                    let servers = servers.unwrap_or(1);
                    let ranks = u64::from(servers) * u64::from(devices);
                    if ranks > u64::from(MOST_RANKS) {
                        return Err(Error::invalid(format!(
                            "--servers {servers}, --devices-per-server {devices}: {ranks} ranks are more than {MOST_RANKS}"
                        )));
                    }
                    (servers, devices)
                }
                (Some(ranks), Some(servers), None) => {
                    (servers, share(ranks, "--servers", servers)?)
                }
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
            },
        ))
    }

    fn numbers_of_hosts(&self) -> Result<(u32, u32)> {
        let ranks = |host: &Host| {
            let ranks = host.ranks.or(self.devices_per_server);
            ranks.ok_or_else(|| {
                Error::invalid(format!(
                    "--hosts {0}: how many ranks? Give {0}:RANKS or --devices-per-server DEVICES",
                    host.name
                ))
            })
        };
        let first = &self.hosts[0];
        let devices = ranks(first)?;
        for (index, host) in self.hosts.iter().enumerate() {
            let (own, name) = (ranks(host)?, &host.name);
            if own != devices {
                return Err(Error::invalid(format!(
                    "--hosts: {} has {}, {name} has {own}: servers have equal numbers",
                    first.name,
                    count(devices, "rank"),
                )));
            }
            if self.hosts[..index].iter().any(|other| other.name == *name) {
                return Err(Error::invalid(format!("--hosts: {name} is there twice")));
            }
        }
        let servers = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        Ok((servers, devices))
    }
}

/// `a`, `a:8`, `10.0.0.1:8` or `[fe80::1]:8`.
fn host(text: &str) -> std::result::Result<Host, String> {
    let wrong = || "must be HOST or HOST:RANKS, as node1:8 or [fe80::1]:8".to_owned();
    let (name, ranks) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => (name, Some(rest.strip_prefix(':').ok_or_else(wrong)?)),
        None => match text.split_once(':') {
            Some((name, ranks)) => (name, Some(ranks)),
            None => (text, None),
        },
    };
    if name.contains('@') {
        return Err(
            "must be a HOST without a user: say the user in the configuration of ssh".to_owned(),
        );
    }
    // ssh takes a first dash for an option.
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
        return Err(wrong());
    }
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|ranks| (1..=MOST_RANKS).contains(ranks))
    };
    Ok(Host {
        name: name.to_owned(),
        ranks: ranks
            .map(|text| number(text).ok_or_else(wrong))
            .transpose()?,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ranks_has_a_limit() {
        let size = |servers, devices| Size {
            ranks: None,
            servers: Some(servers),
            devices_per_server: Some(devices),
            hosts: Vec::new(),
        };
        assert_eq!(size(512, 8).numbers().unwrap(), Some((512, 8)));
        let text = size(4096, 4096).numbers().unwrap_err().to_string();
        let part = "--servers 4096, --devices-per-server 4096: 16777216 ranks";
        assert!(text.contains(part), "{text}");
    }
}
