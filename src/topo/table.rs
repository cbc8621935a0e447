//! Reads a rank table of version 1.0 and holds it to the rules that HCCL applies to one.
//!
//! Every fault is one line that names the file and the field or the two positions that disagree.
//! The rules that need the hardware (device addresses of this machine, device limits of a product)
//! are left to HCCL.

use std::collections::HashMap;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;

use super::field::{Field, quote};
use super::{Device, Server};
use crate::error::{Error, Result};

/// Largest file that is read: more than a hundred thousand devices.
const MAX_BYTES: u64 = 16 << 20;
/// Longest `server_id` that HCCL takes.
const MAX_SERVER_ID: usize = 64;

/// Reads the file, refusing what is not a regular file of a sane size.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let name = display(path);
    let failed = |error| Error::invalid(format!("{name}: {error}"));
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        return Err(Error::invalid(format!("{name}: not a regular file")));
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // The limit holds for what is read, not for what the file claimed to be.
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        let limit = MAX_BYTES >> 20;
        return Err(Error::invalid(format!(
            "{name}: larger than {limit} MiB, which no rank table is"
        )));
    }
    Ok(bytes)
}

/// The servers of a table in the order of their ranks, the devices of each in the order of theirs.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Server>> {
    let document = document(file, bytes)?;
    let root = Field::root(file, &document);
    check_version(&root)?;
    check_status(&root)?;

    let list = root.get("server_list")?.elements()?;
    check_server_count(&root, list.len())?;
    let mut seen = Seen::default();
    let mut servers = Vec::with_capacity(list.len());
    for (index, field) in list.iter().enumerate() {
        servers.push(server(field, index, list.len() > 1, &mut seen)?);
    }
    check_ranks(&root, &seen.ranks)?;
    for (server, field) in servers.iter_mut().zip(&list) {
        server.devices.sort_by_key(|device| device.rank);
        check_block(server, field)?;
    }
    servers.sort_by_key(Server::first_rank);
    Ok(servers)
}

/// A path as it stands in a message: on one line.
pub(super) fn display(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

fn document(file: &str, bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Error::invalid(format!("{file}: not UTF-8 text at byte {at}"))
    })?;
    // HCCL's parser skips a byte order mark too.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let full = error.to_string();
        let reason = full.split(" at line ").next().unwrap_or(&full);
        Error::invalid(format!(
            "{file}: not valid JSON at line {line} column {column}: {reason}"
        ))
    })
}

fn check_version(root: &Field<'_>) -> Result<()> {
    let Some(version) = root.find("version")? else {
        if root.find("group_list")?.is_some() {
            let message = "a table without version (the legacy form) is not supported, only 1.0 is";
            return Err(root.unsupported(message));
        }
        return Err(root.error("version: missing"));
    };
    match version.text()? {
        "1.0" => Ok(()),
        other => {
            let other = quote(other);
            Err(version.unsupported(format!("{other} is not supported, only \"1.0\" is")))
        }
    }
}

/// HCCL polls an unfinished table for half an hour; a launcher has nothing to wait for.
fn check_status(root: &Field<'_>) -> Result<()> {
    let status = root.get("status")?;
    match status.text()? {
        "completed" => Ok(()),
        other => Err(status.error(format!("{}, but must be \"completed\"", quote(other)))),
    }
}

fn check_server_count(root: &Field<'_>, servers: usize) -> Result<()> {
    let Some(count) = root.find("server_count")? else {
        // As HCCL: the list itself says how many there are.
        log::warn!("{}", root.error("server_count: missing"));
        return Ok(());
    };
    if count.number::<usize>()? == servers {
        return Ok(());
    }
    let text = quote(count.text()?);
    Err(count.error(format!("{text}, but server_list has {servers}")))
}

/// Where each value that must be unique was seen first.
#[derive(Default)]
struct Seen {
    servers: HashMap<String, String>,
    ips: HashMap<IpAddr, String>,
    ranks: HashMap<u32, String>,
}

fn server(field: &Field<'_>, index: usize, ip_due: bool, seen: &mut Seen) -> Result<Server> {
    let id_field = field.get("server_id")?;
    let id = id_field.text()?;
    if id.is_empty() {
        return Err(id_field.error("is empty"));
    }
    if id.chars().count() > MAX_SERVER_ID {
        let message = format!("longer than {MAX_SERVER_ID} characters: {}", quote(id));
        return Err(id_field.error(message));
    }
    first_use(
        &mut seen.servers,
        id.to_owned(),
        field,
        &id_field,
        quote(id),
    )?;
    if let Some(host) = field.find("host_ip")? {
        addresses(&host)?;
    }

    let mut on_server = HashMap::new();
    let mut devices = Vec::new();
    for device_field in field.get("device")?.elements()? {
        let device = device(&device_field, ip_due, seen)?;
        let id = device.device_id;
        let id_field = device_field.get("device_id")?;
        first_use(
            &mut on_server,
            id,
            &device_field,
            &id_field,
            format!("device {id}"),
        )?;
        devices.push(device);
    }
    Ok(Server {
        index,
        id: id.to_owned(),
        devices,
    })
}

fn device(field: &Field<'_>, ip_due: bool, seen: &mut Seen) -> Result<Device> {
    let device_id = field.get("device_id")?.number::<i32>()?;
    let rank_field = field.get("rank_id")?;
    let rank = rank_field.number::<u32>()?;
    first_use(
        &mut seen.ranks,
        rank,
        field,
        &rank_field,
        format!("rank {rank}"),
    )?;
    if let Some(port) = field.find("device_port")?
        && port.number::<u16>()? == 0
    {
        return Err(port.error("a port is 1 to 65535"));
    }

    let mut device_ips = Vec::new();
    // One server needs no network between devices.
    let ip_field = match field.find("device_ip")? {
        None if ip_due => Some(field.get("device_ip")?),
        found => found,
    };
    if let Some(ip_field) = ip_field
        && (ip_due || !ip_field.text()?.is_empty())
    {
        device_ips = addresses(&ip_field)?;
        for ip in &device_ips {
            one_family(&seen.ips, *ip, &ip_field)?;
            first_use(&mut seen.ips, *ip, field, &ip_field, ip)?;
        }
    }
    Ok(Device {
        device_id,
        device_ips,
        rank,
    })
}

/// Notes where `key` is used; a second use is an error at `field` that names the first place.
fn first_use<K: std::hash::Hash + Eq>(
    seen: &mut HashMap<K, String>,
    key: K,
    place: &Field<'_>,
    field: &Field<'_>,
    what: impl std::fmt::Display,
) -> Result<()> {
    match seen.insert(key, place.path().to_owned()) {
        None => Ok(()),
        Some(first) => Err(field.error(format!("{what} is already that of {first}"))),
    }
}

/// One address, or several separated by commas.
fn addresses(field: &Field<'_>) -> Result<Vec<IpAddr>> {
    let parse = |part: &str| {
        part.parse::<IpAddr>()
            .map_err(|_| field.error(format!("{} is not an IP address", quote(part))))
    };
    field.text()?.split(',').map(parse).collect()
}

fn one_family(seen: &HashMap<IpAddr, String>, ip: IpAddr, field: &Field<'_>) -> Result<()> {
    let other = |known: &&IpAddr| known.is_ipv4() != ip.is_ipv4();
    // All known addresses are of one family, so any one of them tells.
    match seen.keys().next().filter(other) {
        None => Ok(()),
        Some(known) => {
            let place = &seen[known];
            let message = format!("{ip} and {known} of {place} mix IPv4 and IPv6");
            Err(field.error(message))
        }
    }
}

/// Ranks are unique by now, so a missing one means that another is too large.
fn check_ranks(root: &Field<'_>, places: &HashMap<u32, String>) -> Result<()> {
    let size = places.len();
    let missing = (0..u32::MAX).find(|rank| !places.contains_key(rank));
    let largest = places.iter().max_by_key(|(rank, _)| **rank);
    match (missing, largest) {
        (Some(missing), Some((largest, place))) if missing < *largest => Err(root.error(format!(
            "{place}.rank_id: rank {missing} is missing: {size} devices need ranks 0 to {}, this is {largest}",
            size - 1
        ))),
        _ => Ok(()),
    }
}

fn check_block(server: &Server, field: &Field<'_>) -> Result<()> {
    for pair in server.devices.windows(2) {
        let (before, after) = (pair[0].rank, pair[1].rank);
        if after != before + 1 {
            return Err(field.error(format!(
                "ranks of a server must be one block, but after rank {before} comes rank {after}"
            )));
        }
    }
    Ok(())
}
