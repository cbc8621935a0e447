//! Reads the devices of a table and knows what must be unique among all of them.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::net::IpAddr;

use super::ServerDevice;
use super::fault::FaultKind;
use super::field::Field;
use super::product::Product;
use crate::error::quote;

/// Longest `server_id` in bytes that HCCL takes.
const MAX_SERVER_ID: usize = 64;

/// What a table's version and shape ask of its devices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) product: Product,
    /// Whether devices reach each other over the network, so that each needs an address.
    pub(super) several: bool,
    /// Whether fields of superpods may be there: version 1.2.
    pub(super) superpod_fields: bool,
    /// Whether `super_device_id` must be there: version 1.2 with superpods.
    pub(super) in_superpods: bool,
    /// Whether `rank_id` says the rank; otherwise the order of the table does.
    pub(super) ranked: bool,
}

/// The reader of devices; it keeps where each value that must be unique was seen first.
pub(super) struct Devices<'a> {
    rules: Rules,
    servers: HashMap<String, String>,
    ips: HashMap<IpAddr, String>,
    /// The first address, whose family the others must have.
    first_ip: Option<(IpAddr, String)>,
    ranks: HashMap<u32, Field<'a>>,
    /// Whether every device has a rank of its own. If not, faults of all ranks together would only follow from that.
    ranks_known: bool,
}

impl<'a> Devices<'a> {
    pub(super) fn new(rules: Rules) -> Self {
        Devices {
            rules,
            servers: HashMap::new(),
            ips: HashMap::new(),
            first_ip: None,
            ranks: HashMap::new(),
            ranks_known: true,
        }
    }

    /// Notes that a device or a list of devices could not be read.
    pub(super) fn mark_incomplete(&mut self) {
        self.ranks_known = false;
    }

    /// Whether every device that was read has a rank of its own.
    pub(super) fn ranks_known(&self) -> bool {
        self.ranks_known
    }

    /// The `server_id` of `server`, which no other server may have.
    pub(super) fn unique_server_id(&mut self, server: &Field<'a>) -> Option<String> {
        let field = server.get("server_id")?;
        let id = server_id(&field)?;
        let what = quote(&id);
        if let Some(first) = first_use(&mut self.servers, id.clone(), server) {
            let hint = if id.contains('*') {
                ": it is masked, as in the published sample table; give each server its own address or name"
            } else {
                ""
            };
            field.wrong(format!("{what} is already that of {first}{hint}"));
        }
        Some(id)
    }

    /// A device; `on_server` has the device numbers of its server so far.
    pub(super) fn read(
        &mut self,
        field: &Field<'a>,
        on_server: &mut HashMap<i32, String>,
    ) -> Option<ServerDevice> {
        if !field.is_object() {
            self.mark_incomplete();
            return None;
        }
        let device_id = self.device_id(field, on_server);
        let rank = self.rank(field);
        let device_ips = self.device_ips(field);
        port(field, "device_port");
        if self.rules.superpod_fields {
            self.superpod_fields(field);
        }
        Some(ServerDevice {
            device_id: device_id?,
            device_ips: device_ips?,
            rank: rank?,
        })
    }

    fn device_id(&self, device: &Field<'a>, on_server: &mut HashMap<i32, String>) -> Option<i32> {
        let field = device.get("device_id")?;
        let id = field.number::<i32>()?;
        let last = self.rules.product.last_device();
        if id > last {
            field.wrong(format!("device {id} is beyond {last}, the last of a 910A"));
            return None;
        }
        if let Some(first) = first_use(on_server, id, device) {
            field.wrong(format!("device {id} is already that of {first}"));
        }
        Some(id)
    }

    fn rank(&mut self, device: &Field<'a>) -> Option<u32> {
        if !self.rules.ranked {
            let rank = u32::try_from(self.ranks.len()).ok()?;
            self.ranks.insert(rank, device.clone());
            return Some(rank);
        }
        let read = device
            .get("rank_id")
            .and_then(|field| Some((field.number::<u32>()?, field)));
        let Some((rank, field)) = read else {
            self.ranks_known = false;
            return None;
        };
        match self.ranks.get(&rank) {
            Some(first) => {
                self.ranks_known = false;
                let first = first.path();
                field.wrong(format!("rank {rank} is already that of {first}"));
            }
            None => {
                self.ranks.insert(rank, device.clone());
            }
        }
        Some(rank)
    }

    fn device_ips(&mut self, device: &Field<'a>) -> Option<Vec<IpAddr>> {
        let due = self.rules.several || self.rules.product == Product::Ascend910A;
        let found = if due {
            device.get("device_ip")?
        } else {
            // Devices that reach each other without the network need no address.
            match device.find("device_ip") {
                Some(field) if !field.text()?.is_empty() => field,
                _ => return Some(Vec::new()),
            }
        };
        let ips = found.addresses()?;
        for ip in &ips {
            let (known, place) = self
                .first_ip
                .get_or_insert_with(|| (*ip, device.path().to_owned()));
            if known.is_ipv4() != ip.is_ipv4() {
                found.wrong(format!("{ip} and {known} of {place} mix IPv4 and IPv6"));
                return None;
            }
            if let Some(first) = first_use(&mut self.ips, *ip, device) {
                found.wrong(format!("{ip} is already that of {first}"));
            }
        }
        Some(ips)
    }

    fn superpod_fields(&self, device: &Field<'a>) {
        let id = if self.rules.in_superpods {
            device.get("super_device_id")
        } else {
            device.find("super_device_id")
        };
        if let Some(field) = id
            && field.number::<u32>() == Some(u32::MAX)
        {
            field.wrong("stands for no device");
        }
        if let Some(field) = device.find("backup_device_ip") {
            field.addresses();
        }
        port(device, "backup_device_port");
        port(device, "host_port");
    }

    /// Ranks are 0 to size - 1: they are unique by now, so where one is missing, another is too large.
    pub(super) fn check_ranks(&mut self) {
        if !self.ranks_known {
            return;
        }
        let size = self.ranks.len();
        let missing = (0..u32::MAX).find(|rank| !self.ranks.contains_key(rank));
        let largest = self.ranks.iter().max_by_key(|(rank, _)| **rank);
        if let (Some(missing), Some((largest, device))) = (missing, largest)
            && missing < *largest
            && let Some(field) = device.find("rank_id")
        {
            field.wrong(format!(
                "rank {missing} is missing: {size} devices need ranks 0 to {}, this is {largest}",
                size - 1
            ));
            self.ranks_known = false;
        }
    }
}

/// Reads a `server_id`, of allowed length.
pub(super) fn server_id(field: &Field<'_>) -> Option<String> {
    let id = field.text()?;
    if id.is_empty() {
        field.wrong("is empty");
        return None;
    }
    if id.len() > MAX_SERVER_ID {
        field.wrong(format!(
            "longer than {MAX_SERVER_ID} characters: {}",
            quote(id)
        ));
        return None;
    }
    Some(id.to_owned())
}

/// Checks the number `name`, if the table has it: it must be `count`.
pub(super) fn check_count(object: &Field<'_>, name: &str, count: usize, what: impl Display) {
    let Some(field) = object.find(name) else {
        return;
    };
    if let Some(stated) = field.number::<usize>()
        && stated != count
    {
        let text = quote(field.text().unwrap_or_default());
        field.wrong(format!("{text}, but {what} has {count}"));
    }
}

fn port(device: &Field<'_>, name: &str) {
    if let Some(field) = device.find(name)
        && field.number::<u16>() == Some(0)
    {
        field.fault(FaultKind::Wrong, "a port is 1 to 65535");
    }
}

/// Notes where `key` is used; for a second use, the first place.
fn first_use<K: Hash + Eq>(
    seen: &mut HashMap<K, String>,
    key: K,
    place: &Field<'_>,
) -> Option<String> {
    use std::collections::hash_map::Entry;
    match seen.entry(key) {
        Entry::Occupied(first) => Some(first.get().clone()),
        Entry::Vacant(free) => {
            free.insert(place.path().to_owned());
            None
        }
    }
}
