//! Machines of a table: which server is this one, and where the first one is.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use crate::error::{Error, Result};
use crate::topo::{self, RankTable, Server};

/// Default port of torchrun.
const PORT: u16 = 29500;

/// The server whose `server_id` is an address or the name of this machine.
///
/// # Errors
/// If none is, or several are; the message lists them.
pub(crate) fn own_server(table: &RankTable) -> Result<&Server> {
    let name = host_name();
    let named = |server: &&Server| is_name(&server.id, &name);
    let mut found: Vec<&Server> = table.servers().iter().filter(named).collect();
    if found.is_empty() {
        // Asking for names may take long, so it comes last.
        found = table
            .servers()
            .iter()
            .filter(|server| has_address(&server.id))
            .collect();
    }
    let list = |servers: &[&Server]| {
        let names = servers
            .iter()
            .map(|server| format!("{} ({:?})", server.index, server.id));
        names.collect::<Vec<_>>().join(", ")
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let all: Vec<&Server> = table.servers().iter().take(16).collect();
            Err(Error::invalid(format!(
                "--server-id auto: no server_id is an address or the name of this machine ({name}): {}",
                list(&all)
            )))
        }
        several => Err(Error::invalid(format!(
            "--server-id auto: several servers are this machine ({name}): {}",
            list(several)
        ))),
    }
}

/// `MASTER_ADDR` of the ranks of `table`: this machine if all are here, else the first server by its `server_id`.
pub(crate) fn master_address(table: &RankTable, all_here: bool) -> String {
    match table.servers().first() {
        Some(first) if !all_here => first.id.clone(),
        _ => Ipv4Addr::LOCALHOST.to_string(),
    }
}

/// `MASTER_PORT`: one that is free now if all ranks are here, else the one that everybody knows.
pub(crate) fn master_port(all_here: bool) -> u16 {
    all_here.then(topo::free_port).flatten().unwrap_or(PORT)
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}

/// Whether `id` is the name `host`, with or without the domain.
fn is_name(id: &str, host: &str) -> bool {
    let short = |name: &str| {
        name.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let whole = |name: &str| name.to_ascii_lowercase();
    let address = id.parse::<IpAddr>().is_ok();
    let abbreviated = !id.contains('.') || !host.contains('.');
    !address
        && !host.is_empty()
        && (whole(id) == whole(host) || (abbreviated && short(id) == short(host)))
}

/// An address is this machine's if a socket can be bound to it.
fn has_address(id: &str) -> bool {
    let bound = |address: SocketAddr| {
        let ip = address.ip();
        !ip.is_unspecified() && !ip.is_multicast() && UdpSocket::bind((ip, 0)).is_ok()
    };
    match id.parse::<IpAddr>() {
        Ok(ip) => bound((ip, 0).into()),
        Err(_) => (id, 0)
            .to_socket_addrs()
            .is_ok_and(|mut all| all.any(bound)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_with_and_without_their_domain() {
        assert!(is_name("node7", "node7"));
        assert!(is_name("Node7", "node7.cluster.example"));
        assert!(is_name("node7.cluster.example", "node7"));
        assert!(!is_name("node7.a.example", "node7.b.example"));
        assert!(!is_name("node", "node7"));
        assert!(!is_name("10.0.0.1", "10"));
        assert!(!is_name("", ""));
    }

    #[test]
    fn only_addresses_of_this_machine_count() {
        assert!(has_address("127.0.0.1"));
        // Set aside for documentation: nobody has them.
        assert!(!has_address("203.0.113.1"));
        assert!(!has_address("2001:db8::1"));
        assert!(!has_address("0.0.0.0"));
    }
}
