//! Clusters by name, from a file.

use std::path::Path;

use serde::Deserialize;

use crate::cli::io;
use crate::error::{Error, Result};
use crate::plan::Machine;

/// The clusters that come with the program.
const KNOWN: &str = include_str!("clusters.toml");

/// Servers of one kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    pub(crate) devices_per_server: u32,
    /// The largest one there is.
    pub(crate) most_devices: Option<u32>,
    /// Seconds from one kernel to the next one on a stream.
    pub(crate) launch: f64,
    pub(crate) machine: Machine,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cluster: Vec<Cluster>,
}

/// The cluster `name` of `file`, or of those that come with the program.
///
/// # Errors
/// If the file is wrong or has no such cluster; the message lists those that it has.
pub(crate) fn find(file: Option<&Path>, name: &str) -> Result<Cluster> {
    let clusters = match file {
        None => parse("clusters.toml", KNOWN)?,
        Some(path) => parse(&path.display().to_string(), &io::read_text(path)?)?,
    };
    let names: Vec<String> = clusters
        .iter()
        .map(|cluster| cluster.machine.name.clone())
        .collect();
    let found = clusters
        .into_iter()
        .find(|cluster| cluster.machine.name == name);
    found.ok_or_else(|| {
        Error::invalid(format!(
            "--cluster {name:?}: known are {}",
            names.join(", ")
        ))
    })
}

fn parse(file: &str, text: &str) -> Result<Vec<Cluster>> {
    let parsed: File = toml::from_str(text)
        .map_err(|error| Error::invalid(format!("{file}: {}", error.to_string().trim_end())))?;
    for cluster in &parsed.cluster {
        check(cluster).map_err(|error| error.context(file))?;
    }
    Ok(parsed.cluster)
}

/// Times are not negative and rates positive, so that no figure of the model is.
fn check(cluster: &Cluster) -> Result<()> {
    let machine = &cluster.machine;
    let wrong = |field: &str, value: f64| {
        let name = &machine.name;
        Err(Error::invalid(format!(
            "cluster {name:?}: {field} is {value}"
        )))
    };
    for (field, value) in [
        ("launch", cluster.launch),
        ("machine.message", machine.message),
        ("machine.operation", machine.operation),
        ("machine.all_to_all", machine.all_to_all.unwrap_or(0.0)),
        ("machine.local.latency", machine.local.latency),
        ("machine.remote.latency", machine.remote.latency),
    ] {
        if !(value >= 0.0 && value.is_finite()) {
            return wrong(field, value);
        }
    }
    for (field, value) in [
        ("machine.memory", machine.memory),
        ("machine.local.bandwidth", machine.local.bandwidth),
        ("machine.remote.bandwidth", machine.remote.bandwidth),
        ("devices_per_server", f64::from(cluster.devices_per_server)),
    ] {
        if !(value > 0.0 && value.is_finite()) {
            return wrong(field, value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures by which reducers choose on a device are those that are simulated.
    #[test]
    fn known_clusters_are_the_machines_of_the_plan() {
        for name in ["910A", "910B", "A3"] {
            let cluster = find(None, name).unwrap();
            assert_eq!(Some(cluster.machine), Machine::named(name));
        }
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        let fault = |text: &str| parse("my.toml", text).unwrap_err().to_string();
        let field = fault(&KNOWN.replacen("memory = 1.2e12", "memory = 0.0", 1));
        assert_eq!(field, "my.toml: cluster \"910A\": machine.memory is 0");
        let unknown = fault(&KNOWN.replacen("launch", "lunch", 3));
        assert!(unknown.contains("lunch"), "{unknown}");
        assert!(fault("").contains("cluster"));
        let name = find(None, "B200").unwrap_err().to_string();
        assert_eq!(name, "--cluster \"B200\": known are 910A, 910B, A3");
    }
}
