//! The addresses of this machine's devices on the network between servers.

use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cli::io;
use crate::error::{Error, Result};

/// Where drivers keep the addresses.
const CONFIGURATION: &str = "/etc/hccn.conf";

/// The addresses of `devices` from `hccn_tool`, else from the driver's file.
pub(crate) fn of_this_machine(devices: &[i32]) -> Result<Vec<String>> {
    let asked: std::result::Result<Vec<String>, String> =
        devices.iter().map(|device| ask(*device)).collect();
    let reason = match asked {
        Ok(addresses) => return Ok(addresses),
        Err(reason) => reason,
    };
    log::info!("{reason}; reading {CONFIGURATION} instead");
    from_file(Path::new(CONFIGURATION), devices).map_err(|error| {
        Error::invalid(format!(
            "Failed to find information for hccl: {reason}; {error}"
        ))
    })
}

/// The addresses of `devices` from lines `address_N=IP` of `file`.
pub(crate) fn from_file(file: &Path, devices: &[i32]) -> Result<Vec<String>> {
    let text = io::read_text(file)?;
    let find = |device: &i32| {
        let name = format!("address_{device}");
        let mut entries = text.lines().filter_map(|line| line.split_once('='));
        // Of several the last counts, as it is the last to be read.
        let entry = entries.rfind(|(key, _)| key.trim() == name);
        match entry.map(|(_, address)| address.trim()) {
            Some(address) if !address.is_empty() => Ok(address.to_owned()),
            _ => Err(Error::invalid(format!("{}: no {name}=", file.display()))),
        }
    };
    devices.iter().map(find).collect()
}

/// Asks `hccn_tool`, which answers `ipaddr:192.168.1.8` in its first line.
fn ask(device: i32) -> std::result::Result<String, String> {
    let arguments = ["-i", &device.to_string(), "-ip", "-g"];
    let called = format!("hccn_tool {}", arguments.join(" "));
    let output = Command::new("hccn_tool")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{called}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match address_in(&text) {
        Some(address) if output.status.success() => Ok(address.to_owned()),
        _ => Err(format!("{called} ({}) gave no address", output.status)),
    }
}

/// The address in an answer of `hccn_tool`.
fn address_in(text: &str) -> Option<&str> {
    let (_, address) = text.lines().next()?.split_once(':')?;
    let address = address.trim();
    address.parse::<IpAddr>().is_ok().then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_is_an_answer() {
        let answer = "ipaddr:192.168.1.8\nnetmask:255.255.255.0\n";
        assert_eq!(address_in(answer), Some("192.168.1.8"));
        assert_eq!(address_in("ipaddr: fe80::1 \n"), Some("fe80::1"));
        for wrong in ["", "\n", "ipaddr:\n", "error: no device 3\n", "1.2.3.4"] {
            assert_eq!(address_in(wrong), None, "{wrong:?}");
        }
    }
}
