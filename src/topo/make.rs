//! Makes rank tables: of one server, with the names, rules and bytes of MindSpore's `hccl_tools.py`; of any number of equal
//! servers, for jobs of one machine.

use std::path::Path;

use serde::Serialize;

use super::{Product, RankTable, json};
use crate::error::{Context, Error, Result};

/// The devices of a server that the tool's rules are made for: two groups of four.
const USUAL: usize = 8;

/// A table that can be written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTable {
    /// Name of its file, by the rules of the tool that it follows.
    pub file_name: String,
    /// The content of the file.
    pub text: String,
}

/// The devices of a server that take part, out of the visible ones, in the order of their ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    numbers: std::ops::Range<usize>,
    devices: Vec<i32>,
}

impl Selection {
    /// `device_num` is a range as `[0,8)`, `visible` the numbers of the devices that it counts (0 to 7 by default).
    ///
    /// With up to 8 visible devices, a range may cross from 0-3 to 4-7 only as a whole, as on a server of 8. With more,
    /// any range of them will do.
    ///
    /// # Errors
    /// If the range is not one, is empty, or leaves the visible devices.
    pub fn new(device_num: &str, visible: Option<&str>) -> Result<Selection> {
        let visible = match visible {
            Some(list) => visible_devices(list)?,
            None => (0..=7).collect(),
        };
        let numbers = range(device_num)?;
        let (first, last) = (numbers.start, numbers.end);
        let limit = visible.len().max(USUAL);
        if last > limit {
            return Err(Error::invalid(format!(
                "device num {device_num} must be in range [0,{limit}] !"
            )));
        }
        // The tool takes an empty range, but a table without devices is refused by everything that reads it.
        if first >= last {
            return Err(Error::invalid(format!(
                "First num {first} of device num {device_num} must less than last num {last} !"
            )));
        }
        if limit == USUAL && first < 4 && last > 4 && (first, last) != (0, USUAL) {
            return Err(Error::invalid(format!(
                "device num {device_num} must be in the same group of [0,4] or [4,8] !"
            )));
        }
        let devices = visible.get(numbers.clone()).ok_or_else(|| {
            let count = visible.len();
            Error::invalid(format!(
                "device num {device_num} needs {last} visible devices, but there are {count}"
            ))
        })?;
        Ok(Selection {
            devices: devices.to_vec(),
            numbers,
        })
    }

    /// The numbers of the devices on their server, in the order of their ranks.
    pub fn devices(&self) -> &[i32] {
        &self.devices
    }
}

/// The table of one server, whose devices have `addresses`, one for each of the selection.
///
/// # Errors
/// If there is not one address for each device, or the table would break a rule.
pub fn make(selection: &Selection, server_id: &str, addresses: &[String]) -> Result<NewTable> {
    let devices = selection.devices.len();
    if devices != addresses.len() {
        return Err(Error::invalid(format!(
            "{devices} devices need as many addresses, not {}",
            addresses.len()
        )));
    }
    if server_id.contains('/') {
        return Err(Error::invalid(format!(
            "the server {server_id:?} cannot be part of a file's name"
        )));
    }
    let device = |(rank, (id, address)): (usize, (&i32, &String))| DeviceEntry {
        device_id: id.to_string(),
        device_ip: Some(address.clone()),
        rank_id: rank.to_string(),
    };
    let pairs = selection.devices.iter().zip(addresses);
    let digits: String = selection.numbers.clone().map(|n| n.to_string()).collect();
    let file_name = format!("hccl_{devices}p_{digits}_{server_id}.json");
    let server = ServerEntry {
        server_id: server_id.to_owned(),
        device: pairs.enumerate().map(device).collect(),
        host_nic_ip: Some("reserve"),
    };
    table(file_name, vec![server])
}

/// The table of servers with these names and `devices` devices each, whose addresses nobody knows.
///
/// HCCL needs none of the devices of one server (but on 910A). Those of several servers are made up: enough for the mock of HCCL, and
/// for ranks that meet without a table.
///
/// # Errors
/// If there is no server or device, or the table would break a rule.
pub fn make_without_addresses(servers: &[String], devices: u32) -> Result<NewTable> {
    let address = |rank: u32| {
        let [_, high, middle, low] = (rank + 1).to_be_bytes();
        (servers.len() > 1).then(|| format!("10.{high}.{middle}.{low}"))
    };
    let device = |rank: u32| DeviceEntry {
        device_id: (rank % devices).to_string(),
        device_ip: address(rank),
        rank_id: rank.to_string(),
    };
    let server = |(index, name): (u32, &String)| ServerEntry {
        server_id: name.clone(),
        device: (index * devices..(index + 1) * devices)
            .map(device)
            .collect(),
        host_nic_ip: None,
    };
    let file_name = format!("rank_table_{}x{devices}.json", servers.len());
    table(file_name, (0..).zip(servers).map(server).collect())
}

fn table(file_name: String, servers: Vec<ServerEntry>) -> Result<NewTable> {
    let text = json::python_style(&TableEntry {
        version: "1.0",
        server_count: servers.len().to_string(),
        server_list: servers,
        status: "completed",
    })?;
    RankTable::check(Path::new(&file_name), text.as_bytes(), Product::Any)
        .into_table()
        .context(|| "the table that would be made")?;
    Ok(NewTable { file_name, text })
}

/// `[first,last)` of non-negative numbers.
fn range(text: &str) -> Result<std::ops::Range<usize>> {
    let wrong = || Error::invalid(format!("device num {text} is not a range as [0,8)"));
    let inner = text.trim().strip_prefix('[').ok_or_else(wrong)?;
    let inner = inner.strip_suffix(')').ok_or_else(wrong)?;
    let (first, last) = inner.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse().map_err(|_| wrong());
    Ok(number(first)?..number(last)?)
}

fn visible_devices(list: &str) -> Result<Vec<i32>> {
    let mut devices = Vec::new();
    for part in list.split(',') {
        let id = part.trim().parse::<u16>().map_err(|_| {
            Error::invalid(format!(
                "visible devices {list:?}: {part:?} is not the number of a device"
            ))
        })?;
        if devices.contains(&i32::from(id)) {
            let message = format!("visible devices {list:?}: {id} is there twice");
            return Err(Error::invalid(message));
        }
        devices.push(i32::from(id));
    }
    Ok(devices)
}

// The order of fields is that of the file.

#[derive(Serialize)]
struct TableEntry<'a> {
    version: &'a str,
    server_count: String,
    server_list: Vec<ServerEntry>,
    status: &'a str,
}

#[derive(Serialize)]
struct ServerEntry {
    server_id: String,
    device: Vec<DeviceEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_nic_ip: Option<&'static str>,
}

#[derive(Serialize)]
struct DeviceEntry {
    device_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_ip: Option<String>,
    rank_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(device_num: &str, visible: Option<&str>) -> std::result::Result<Vec<i32>, String> {
        Selection::new(device_num, visible)
            .map(|selection| selection.devices)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn ranges_follow_the_rules_of_a_server_of_eight() {
        assert_eq!(chosen("[0,8)", None).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(chosen("[4, 6)", None).unwrap(), [4, 5]);
        assert_eq!(chosen("[0,1)", Some("5")).unwrap(), [5]);
        let error = |range| chosen(range, None).unwrap_err();
        assert_eq!(error("[0,9)"), "device num [0,9) must be in range [0,8] !");
        assert_eq!(
            error("[5,4)"),
            "First num 5 of device num [5,4) must less than last num 4 !"
        );
        assert!(error("[4,4)").starts_with("First num 4 of"));
        assert_eq!(
            error("[3,6)"),
            "device num [3,6) must be in the same group of [0,4] or [4,8] !"
        );
        for bad in ["", "0,8", "[0,8]", "[-1,4)", "[0 8)", "[a,8)", "[0,8)x"] {
            assert!(error(bad).ends_with("is not a range as [0,8)"), "{bad}");
        }
    }

    #[test]
    fn lists_of_devices_have_any_width() {
        let sixteen = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15";
        assert_eq!(
            chosen("[6,12)", Some(sixteen)).unwrap(),
            [6, 7, 8, 9, 10, 11]
        );
        assert_eq!(
            chosen("[0,17)", Some(sixteen)).unwrap_err(),
            "device num [0,17) must be in range [0,16] !"
        );
        assert_eq!(
            chosen("[0,4)", Some("7,6,5")).unwrap_err(),
            "device num [0,4) needs 4 visible devices, but there are 3"
        );
        assert!(chosen("[0,1)", Some("0,,1")).is_err());
        assert!(chosen("[0,1)", Some("1,1")).is_err());
        assert!(chosen("[0,18446744073709551615)", None).is_err());
    }

    #[test]
    fn tables_without_addresses_have_equal_servers() {
        let make = |servers: u32, devices| {
            let names: Vec<String> = (0..servers).map(|index| format!("node{index}")).collect();
            make_without_addresses(&names, devices)
        };
        for (servers, devices) in [(1, 1), (1, 4), (2, 2), (3, 5), (16, 64)] {
            let made = make(servers, devices).unwrap();
            assert_eq!(
                made.file_name,
                format!("rank_table_{servers}x{devices}.json")
            );
            let read = RankTable::check(Path::new("table"), made.text.as_bytes(), Product::Any);
            let table = read.into_table().unwrap();
            assert_eq!(
                (table.servers().len(), table.size()),
                (servers as usize, servers * devices)
            );
            assert_eq!(table.servers()[0].id, "node0");
        }
        assert!(!make(1, 2).unwrap().text.contains("device_ip"));
        assert!(
            make(1, 17).is_ok() && make(0, 1).is_err() && make(1, 0).is_err(),
            "there are 0 of something"
        );
    }

    #[test]
    fn a_table_that_breaks_a_rule_is_not_made() {
        let two = Selection::new("[0,2)", None).unwrap();
        let make = |server: &str, ips: [&str; 2]| {
            let made = make(&two, server, &ips.map(str::to_owned));
            made.map(|table| table.file_name)
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            make("10.0.0.1", ["192.168.0.1", "192.168.0.2"]).unwrap(),
            "hccl_2p_01_10.0.0.1.json"
        );
        let twice = make("10.0.0.1", ["192.168.0.1", "192.168.0.1"]).unwrap_err();
        assert!(twice.contains("is already that of"), "{twice}");
        assert!(make("10.0.0.1", ["192.168.0.1", "x"]).is_err());
        assert!(make("../up", ["192.168.0.1", "192.168.0.2"]).is_err());
        assert!(make("", ["192.168.0.1", "192.168.0.2"]).is_err());
    }
}
