//! Tables of version 2.0, those of Ascend 950: a list of ranks, each with its place in every layer of the network.
//!
//! Numbers are JSON numbers here, not strings. Fields and limits are those of HCCL (hcomm,
//! src/coll_communicator_mgr/rank_graph/rank_table_info). The instance of layer 0 that ranks share is their server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::field::Field;
use super::table::Contents;
use super::{Server, ServerDevice};
use crate::error::quote;

const MOST_RANKS: u64 = 65_536;
const LAST_DEVICE: u64 = 64;
/// The number of a spare device, which says whose place it takes.
const SPARE: u64 = 64;
const LAST_LAYER: u64 = 7;
const MOST_LAYERS: usize = 8;
const MOST_ADDRESSES: usize = 24;
const MOST_PORTS: usize = 16;
const LONGEST_PORT: usize = 32;
const LONGEST_INSTANCE: usize = 1024;
const LONGEST_PLANE: usize = 1024;
const EID_DIGITS: usize = 32;
const PORTS: RangeInclusive<u64> = 1..=65_535;
const NETWORKS: [&str; 6] = [
    "1DMESH",
    "2DMESH",
    "A3_SERVER",
    "A2_AX_SERVER",
    "TOPO_FILE_DESC",
    "CLOS",
];

/// An entry of the list of ranks: the device, and the name of its server.
struct RankEntry<'a> {
    server: String,
    device: ServerDevice,
    field: Field<'a>,
}

/// Reads a table of ranks. `None` if there is no list of them to look at.
pub(super) fn read(root: &Field<'_>) -> Option<Contents> {
    let list = root.get("rank_list")?.elements()?;
    if let Some(count) = root.get("rank_count")
        && let Some(stated) = count.whole(1..=MOST_RANKS)
        && stated != list.len() as u64
    {
        count.wrong(format!("{stated}, but rank_list has {}", list.len()));
    }
    let mut replaced = None;
    let read: Vec<_> = list
        .iter()
        .map(|field| rank(field, &mut replaced))
        .collect();
    let mut ranks = read.into_iter().collect::<Option<Vec<_>>>()?;
    ranks.sort_by_key(|rank| rank.device.rank);
    check_numbers(&ranks);
    Some(Contents {
        servers: servers(ranks),
        sections: Vec::new(),
    })
}

/// Reads a rank; `replaced` is the place of the spare device, of which a table has one at most.
fn rank<'a>(field: &Field<'a>, replaced: &mut Option<String>) -> Option<RankEntry<'a>> {
    if !field.is_object() {
        return None;
    }
    let number = field
        .get("rank_id")
        .and_then(|field| field.whole(0..=MOST_RANKS - 1));
    let local = field
        .get("local_id")
        .and_then(|field| field.whole(0..=SPARE));
    let device = field
        .get("device_id")
        .and_then(|field| field.whole(0..=LAST_DEVICE));
    if local == Some(SPARE) {
        check_spare(field, replaced);
    }
    for name in ["device_port", "host_port"] {
        if let Some(port) = field.find(name) {
            port.whole(PORTS);
        }
    }
    if let Some(plane) = field.find("control_plane")
        && plane.is_object()
    {
        address(&plane);
        plane.get("listen_port").and_then(|port| port.whole(PORTS));
    }
    let (server, device_ips) = layers(field)?;
    local?;
    Some(RankEntry {
        server,
        device: ServerDevice {
            device_id: i32::try_from(device?).ok()?,
            device_ips,
            rank: u32::try_from(number?).ok()?,
        },
        field: field.clone(),
    })
}

fn check_spare(field: &Field<'_>, replaced: &mut Option<String>) {
    let Some(place) = field.get("replaced_local_id") else {
        return;
    };
    place.whole(0..=SPARE - 1);
    match replaced {
        Some(first) => place.wrong(format!(
            "a spare device stands in for another at {first} already"
        )),
        None => *replaced = Some(place.path().to_owned()),
    }
}

/// Reads the layers of a rank: the instance of layer 0, and all IP addresses.
fn layers(rank: &Field<'_>) -> Option<(String, Vec<IpAddr>)> {
    let field = rank.get("level_list")?;
    let list = field.elements()?;
    if list.len() > MOST_LAYERS {
        field.wrong(format!(
            "has {} layers, more than {MOST_LAYERS}",
            list.len()
        ));
    }
    let mut server = None;
    let mut ips = Vec::new();
    let mut before = None;
    for layer in &list {
        if !layer.is_object() {
            return None;
        }
        let number_field = layer.get("net_layer")?;
        let number = number_field.whole(0..=LAST_LAYER)?;
        if before.is_some_and(|before| number <= before) {
            number_field.wrong(format!(
                "layer {number} does not come after the one before it"
            ));
        }
        before = Some(number);
        let instance = instance(layer)?;
        if number == 0 {
            server = Some(instance);
        }
        if let Some(kind) = layer.find("net_type") {
            one_of(&kind, &NETWORKS);
        }
        ips.extend(addresses(layer)?);
    }
    if server.is_none() {
        field.wrong("has no layer 0, which tells the ranks of a server");
    }
    Some((server?, ips))
}

fn instance(layer: &Field<'_>) -> Option<String> {
    let field = layer.get("net_instance_id")?;
    let name = field.text()?;
    if name.is_empty() || name.len() > LONGEST_INSTANCE {
        field.wrong(format!(
            "{} has {} bytes, not 1 to {LONGEST_INSTANCE}",
            quote(name),
            name.len()
        ));
    }
    Some(name.to_owned())
}

fn addresses(layer: &Field<'_>) -> Option<Vec<IpAddr>> {
    let field = layer.get("rank_addr_list")?;
    let list = field.items()?;
    if list.len() > MOST_ADDRESSES {
        field.wrong(format!(
            "has {} addresses, more than {MOST_ADDRESSES}",
            list.len()
        ));
    }
    let mut ips = Vec::new();
    for entry in &list {
        if !entry.is_object() {
            return None;
        }
        ips.extend(address(entry));
        if let Some(plane) = entry.find("plane_id")
            && plane.text().is_some_and(|name| name.len() > LONGEST_PLANE)
        {
            plane.wrong(format!("is longer than {LONGEST_PLANE} bytes"));
        }
        ports(entry);
    }
    Some(ips)
}

fn ports(entry: &Field<'_>) {
    let Some(field) = entry.get("ports") else {
        return;
    };
    let Some(list) = field.elements() else { return };
    if list.len() > MOST_PORTS {
        field.wrong(format!("has {} ports, more than {MOST_PORTS}", list.len()));
    }
    for port in &list {
        if port
            .text()
            .is_some_and(|text| text.is_empty() || text.len() > LONGEST_PORT)
        {
            port.wrong(format!("a port has 1 to {LONGEST_PORT} bytes"));
        }
    }
}

/// Reads `addr_type` and `addr`; the address, if it is one of IP.
fn address(entry: &Field<'_>) -> Option<IpAddr> {
    let kind = one_of(&entry.get("addr_type")?, &["EID", "IPV4", "IPV6"])?;
    let field = entry.get("addr")?;
    let text = field.text()?;
    if kind == "EID" {
        let digits = text.len() == EID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits {
            field.wrong(format!(
                "{} is not {EID_DIGITS} hexadecimal digits",
                quote(text)
            ));
        }
        return None;
    }
    let ip = text
        .parse()
        .ok()
        .filter(|ip: &IpAddr| ip.is_ipv4() == (kind == "IPV4"));
    if ip.is_none() {
        field.wrong(format!("{} is not an address of type {kind}", quote(text)));
    }
    ip
}

fn one_of<'a>(field: &Field<'a>, words: &[&str]) -> Option<&'a str> {
    let text = field.text()?;
    if words.contains(&text) {
        return Some(text);
    }
    field.wrong(format!("{} is none of {}", quote(text), words.join(", ")));
    None
}

/// Checks that ranks are 0 to size - 1, each once; `ranks` are in their order.
fn check_numbers(ranks: &[RankEntry<'_>]) {
    for (expected, rank) in (0_u32..).zip(ranks) {
        let number = rank.device.rank;
        if number == expected {
            continue;
        }
        let Some(field) = rank.field.find("rank_id") else {
            return;
        };
        let before = (expected as usize)
            .checked_sub(1)
            .and_then(|index| ranks.get(index));
        match before {
            Some(first) if first.device.rank == number => field.wrong(format!(
                "rank {number} is already that of {}",
                first.field.path()
            )),
            _ => field.wrong(format!(
                "rank {expected} is missing: {} ranks need 0 to {}, this is {number}",
                ranks.len(),
                ranks.len() - 1
            )),
        }
        return;
    }
}

/// Collects the ranks of each instance of layer 0, which must be one block.
fn servers(ranks: Vec<RankEntry<'_>>) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    let mut on_server: HashMap<i32, String> = HashMap::new();
    for rank in ranks {
        let known = servers.iter().position(|server| server.id == rank.server);
        if known.is_some_and(|index| index + 1 != servers.len()) {
            rank.field.wrong(format!(
                "the ranks of server {} are not one block: rank {} is apart from the others",
                quote(&rank.server),
                rank.device.rank
            ));
            return servers;
        }
        if known.is_none() {
            on_server.clear();
            servers.push(Server {
                index: servers.len(),
                id: rank.server,
                devices: Vec::new(),
            });
        }
        let place = rank.field.path().to_owned();
        if let Some(first) = on_server.insert(rank.device.device_id, place)
            && let Some(field) = rank.field.find("device_id")
        {
            field.wrong(format!(
                "device {} is already that of {first}",
                rank.device.device_id
            ));
        }
        if let Some(server) = servers.last_mut() {
            server.devices.push(rank.device);
        }
    }
    servers
}
