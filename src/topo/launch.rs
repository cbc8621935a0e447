//! How the processes of a job were started, read from the environment.

use std::ffi::OsString;
use std::path::PathBuf;

use super::environment::{self, number};
use super::{Cluster, Meeting};
use crate::error::{Error, Result};

const RANK: &str = "RANK";
const SIZE: &str = "WORLD_SIZE";
const LOCAL_RANK: &str = "LOCAL_RANK";
const LOCAL_SIZE: &str = "LOCAL_WORLD_SIZE";
const DEVICE: &str = "DEVICE_ID";
const FILE: &str = "ADASUM_ROOTINFO_FILE";
const OWN_ADDRESS: &str = "ADASUM_MASTER_ADDR";
const OWN_PORT: &str = "ADASUM_MASTER_PORT";
const ADDRESS: &str = "MASTER_ADDR";
const PORT: &str = "MASTER_PORT";

/// What the environment says of this process's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// A rank of a rank table.
    Table(Cluster),
    /// A rank without a table: ranks meet where the environment says.
    Process(Process),
}

/// A rank that was started in torchrun's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// This process's rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// Its device.
    pub device: i32,
    /// Its number among the ranks of its server, if the environment has it.
    pub local_rank: Option<u32>,
    /// Ranks on its server, if the environment has it.
    pub locals: Option<u32>,
    /// Where the ranks meet.
    pub meeting: Meeting,
}

impl Launch {
    /// Reads the environment: the variables of [`Cluster::from_env`] if a rank table is named; else `RANK`,
    /// `WORLD_SIZE`, `LOCAL_RANK` (or `DEVICE_ID`: the device), `LOCAL_WORLD_SIZE` (not required), and where ranks meet
    /// ([`Meeting::from_env`]).
    ///
    /// # Errors
    /// Names the variable that is missing or wrong.
    pub fn from_env() -> Result<Launch> {
        launch(|name| std::env::var_os(name))
    }
}

impl Meeting {
    /// The meeting that the environment names: the file `ADASUM_ROOTINFO_FILE`, or rank 0 at `ADASUM_MASTER_ADDR` and
    /// `ADASUM_MASTER_PORT`, without those at `MASTER_ADDR` and the port behind `MASTER_PORT`.
    ///
    /// # Errors
    /// Names the variable that is missing or wrong.
    pub fn from_env() -> Result<Meeting> {
        meeting(&|name: &str| std::env::var_os(name).filter(|value| !value.is_empty()))
    }
}

fn launch(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Launch> {
    let lookup = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let table = [environment::TABLE, environment::TABLE_ALIAS];
    if table.iter().any(|name| lookup(name).is_some()) {
        return environment::cluster(lookup).map(Launch::Table);
    }
    if lookup(RANK).is_none() && lookup(SIZE).is_none() {
        return Err(Error::invalid(format!(
            "neither a rank table ({}) nor {RANK} and {SIZE} are set: start the program with adasum-run launch or torchrun",
            environment::TABLE
        )));
    }
    let required = |name: &str| {
        number::<u32>(&lookup, name)?
            .ok_or_else(|| Error::invalid(format!("{name} is not set, {RANK} or {SIZE} is")))
    };
    let (rank, size) = (required(RANK)?, required(SIZE)?);
    if rank >= size {
        return Err(Error::invalid(format!(
            "{RANK} is {rank}, but {SIZE} is {size}"
        )));
    }
    let local_rank = number::<u32>(&lookup, LOCAL_RANK)?;
    let locals = number::<u32>(&lookup, LOCAL_SIZE)?;
    if locals == Some(0) {
        return Err(Error::invalid(format!("{LOCAL_SIZE} is 0")));
    }
    let device = match (number::<i32>(&lookup, DEVICE)?, local_rank) {
        (Some(device), _) => device,
        (None, Some(local)) => i32::try_from(local)
            .map_err(|_| Error::invalid(format!("{LOCAL_RANK} is {local}: no such device")))?,
        (None, None) => {
            return Err(Error::invalid(format!(
                "{LOCAL_RANK} is not set (nor is {DEVICE}): it is the device of this rank"
            )));
        }
    };
    Ok(Launch::Process(Process {
        rank,
        size,
        device,
        local_rank,
        locals,
        meeting: meeting(&lookup)?,
    }))
}

fn meeting(lookup: &impl Fn(&str) -> Option<OsString>) -> Result<Meeting> {
    if let Some(file) = lookup(FILE) {
        return Ok(Meeting::File(PathBuf::from(file)));
    }
    let address = lookup(OWN_ADDRESS).or_else(|| lookup(ADDRESS));
    let Some(address) = address else {
        return Err(Error::invalid(format!(
            "{ADDRESS} is not set (nor are {OWN_ADDRESS} and {FILE}): ranks meet there"
        )));
    };
    let host = address
        .to_str()
        .ok_or_else(|| Error::invalid(format!("{ADDRESS} is {address:?}, not a host")))?;
    let port = match number::<u16>(lookup, OWN_PORT)? {
        Some(port) => port,
        None => match number::<u16>(lookup, PORT)? {
            // The launcher's own store listens at that port.
            Some(port) => port.checked_add(1).ok_or_else(|| {
                Error::invalid(format!(
                    "{PORT} is {port}, there is no port behind it: set {OWN_PORT}"
                ))
            })?,
            None => {
                return Err(Error::invalid(format!(
                    "{PORT} is not set (nor is {OWN_PORT})"
                )));
            }
        },
    };
    Ok(Meeting::Address {
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Launch> {
        launch(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    const TORCHRUN: [(&str, &str); 6] = [
        (RANK, "5"),
        (SIZE, "8"),
        (LOCAL_RANK, "1"),
        (LOCAL_SIZE, "4"),
        (ADDRESS, "node0"),
        (PORT, "29500"),
    ];

    fn process(more: &[(&str, &str)]) -> Process {
        match with(&[more, &TORCHRUN].concat()).unwrap() {
            Launch::Process(process) => process,
            Launch::Table(_) => panic!("a table"),
        }
    }

    #[test]
    fn torchruns_variables_place_a_rank() {
        let address = |host: &str, port| Meeting::Address {
            host: host.to_owned(),
            port,
        };
        let expected = Process {
            rank: 5,
            size: 8,
            device: 1,
            local_rank: Some(1),
            locals: Some(4),
            meeting: address("node0", 29501),
        };
        assert_eq!(process(&[]), expected);
        assert_eq!(process(&[(OWN_PORT, "7")]).meeting, address("node0", 7));
        assert_eq!(
            process(&[(OWN_ADDRESS, "::1")]).meeting,
            address("::1", 29501)
        );
        assert_eq!(
            process(&[(FILE, "/x/y")]).meeting,
            Meeting::File("/x/y".into())
        );
        assert_eq!(process(&[(DEVICE, "7")]).device, 7);
    }

    #[test]
    fn a_rank_table_comes_first() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/examples/rank_tables/rank_table_16pcs.json"
        );
        let both = [
            &TORCHRUN[..],
            &[(environment::TABLE, path), ("RANK_ID", "9")],
        ]
        .concat();
        assert!(matches!(with(&both), Ok(Launch::Table(cluster)) if cluster.rank() == 9));
    }

    #[test]
    fn every_bad_variable_is_named() {
        let says = |changes: &[(&str, &str)], what: &str| {
            let error = with(&[changes, &TORCHRUN].concat())
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(what), "{error}");
        };
        says(&[(RANK, "8")], "RANK is 8, but WORLD_SIZE is 8");
        says(&[(SIZE, "x")], "WORLD_SIZE is \"x\", not a number");
        says(&[(SIZE, "")], "WORLD_SIZE is not set");
        says(
            &[(LOCAL_RANK, "")],
            "LOCAL_RANK is not set (nor is DEVICE_ID)",
        );
        says(&[(LOCAL_RANK, "4000000000")], "LOCAL_RANK is 4000000000");
        says(&[(LOCAL_SIZE, "0")], "LOCAL_WORLD_SIZE is 0");
        says(&[(ADDRESS, "")], "MASTER_ADDR is not set");
        says(&[(PORT, "")], "MASTER_PORT is not set");
        says(
            &[(PORT, "65535")],
            "MASTER_PORT is 65535, there is no port behind it",
        );
        says(&[(OWN_PORT, "70000")], "ADASUM_MASTER_PORT is \"70000\"");
        assert!(
            with(&[])
                .unwrap_err()
                .to_string()
                .starts_with("neither a rank table")
        );
    }
}
