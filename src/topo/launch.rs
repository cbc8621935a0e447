//! How the processes of a job were started, read from the environment.

use std::ffi::OsString;
use std::path::PathBuf;

use super::environment::{self, number};
use super::{Cluster, JobSecret, Meeting};
use crate::error::{Error, Result};

/// As many as plans are made for. Whoever leads a meeting has memory for each.
const MOST_RANKS: u32 = 1 << 20;

const LOCAL_RANK: &str = "LOCAL_RANK";
const LOCAL_SIZE: &str = "LOCAL_WORLD_SIZE";
const DEVICE: &str = "DEVICE_ID";
const FILE: &str = "ADASUM_ROOTINFO_FILE";
const OWN_ADDRESS: &str = "ADASUM_MASTER_ADDR";
const OWN_PORT: &str = "ADASUM_MASTER_PORT";
const ROLE: &str = "MS_ROLE";

/// The variables by which a launcher tells a process its place; of several names the first that is set counts.
struct Variables {
    rank: &'static [&'static str],
    size: &'static [&'static str],
    address: &'static str,
    port: &'static str,
}

const TORCHRUN: Variables = Variables {
    rank: &["RANK"],
    size: &["WORLD_SIZE"],
    address: "MASTER_ADDR",
    port: "MASTER_PORT",
};
/// MindSpore's msrun sets `MS_WORKER_NUM`, `MS_SCHED_HOST`, `MS_SCHED_PORT` and `MS_ROLE` for all its processes, `MS_NODE_ID`
/// for those whose rank it knows, and newer ones `RANK_SIZE`, `RANK_ID` and `DEVICE_ID` too
/// (mindspore/parallel/cluster/process_entity/_api.py: `_Node.run`, `_ComputeGraphNode.run`, `_ProcessManager.run`,
/// `start_scheduler`, `_start_single_worker`). Workers whose rank it does not know, which are those of several nodes without
/// `--node_rank`, inherit the scheduler's `RANK_ID`, 0, or have none. `mindspore.communication.init` sets `DEVICE_ID` and the final
/// `RANK_ID` only with `RANK_TABLE_FILE` (communication/management.py: `_set_envs`); else `adasum.mindspore.world` does after it.
const MSRUN: Variables = Variables {
    rank: &["RANK_ID", "MS_NODE_ID"],
    size: &["RANK_SIZE", "MS_WORKER_NUM"],
    address: "MS_SCHED_HOST",
    port: "MS_SCHED_PORT",
};

/// What the environment says of this process's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// A rank of a rank table.
    Table(Cluster),
    /// A rank without a table: ranks meet where the environment says.
    Process(Process),
}

/// A rank that was started in torchrun's or msrun's way.
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
    /// Reads the environment: the variables of [`Cluster::from_env`] if a rank table is named; else those of torchrun,
    /// `RANK` and `WORLD_SIZE`; else those of MindSpore's msrun, `RANK_ID` (or `MS_NODE_ID`) and `RANK_SIZE` (or `MS_WORKER_NUM`).
    /// With both: `DEVICE_ID` (or `LOCAL_RANK`: the device), `LOCAL_WORLD_SIZE` (not required), and where ranks meet
    /// ([`Meeting::from_env`]).
    ///
    /// msrun with several nodes knows ranks only if it is given `--node_rank`: without, its `RANK_ID` may be wrong, and
    /// `mindspore.communication.init` puts that right only with `RANK_TABLE_FILE`. `adasum.mindspore.world` sets it after `init`.
    ///
    /// # Errors
    /// Names the variable that is missing or wrong.
    pub fn from_env() -> Result<Launch> {
        launch(|name| std::env::var_os(name))
    }
}

impl Meeting {
    /// The variable of the host, before that of any launcher.
    pub const ADDRESS_VARIABLE: &'static str = OWN_ADDRESS;
    /// The variable of the port, before that of any launcher.
    pub const PORT_VARIABLE: &'static str = OWN_PORT;
    /// The variable of the file, which counts before all of them.
    pub const FILE_VARIABLE: &'static str = FILE;

    /// The meeting that the environment names: the file `ADASUM_ROOTINFO_FILE`, or rank 0 at `ADASUM_MASTER_ADDR` and
    /// `ADASUM_MASTER_PORT`, without those at `MASTER_ADDR` and the port behind `MASTER_PORT`, without those at `MS_SCHED_HOST`
    /// and the port behind `MS_SCHED_PORT`. Who may join knows the secret of [`super::JobSecret::from_env`].
    ///
    /// # Errors
    /// Names the variable that is missing or wrong.
    pub fn from_env() -> Result<Meeting> {
        let lookup = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_msrun = lookup(TORCHRUN.address).is_none() && lookup(MSRUN.address).is_some();
        meeting(&lookup, if is_msrun { &MSRUN } else { &TORCHRUN })
    }
}

fn launch(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Launch> {
    let lookup = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let table = [environment::TABLE, environment::TABLE_ALIAS];
    if table.iter().any(|name| lookup(name).is_some()) {
        return environment::cluster(lookup).map(Launch::Table);
    }
    let has = |variables: &Variables| {
        let mut names = variables.rank.iter().chain(variables.size);
        names.any(|name| lookup(name).is_some())
    };
    let variables = [&TORCHRUN, &MSRUN].into_iter().find(|known| has(known));
    let Some(variables) = variables else {
        return Err(Error::invalid(format!(
            "neither a rank table ({}) nor RANK and WORLD_SIZE, nor RANK_ID and RANK_SIZE are set: start the program with \
             adasum-run launch, torchrun or msrun",
            environment::TABLE
        )));
    };
    // msrun runs the program in its scheduler, too.
    if let Some(role) = lookup(ROLE).filter(|role| *role != *"MS_WORKER") {
        return Err(Error::invalid(format!(
            "{ROLE} is {role:?}: only processes with MS_WORKER are ranks"
        )));
    }
    process(&lookup, variables).map(Launch::Process)
}

/// The number in the first of `names` that is set, with its name.
fn first_number(
    lookup: &impl Fn(&str) -> Option<OsString>,
    names: &[&'static str],
) -> Result<(&'static str, u32)> {
    for name in names {
        if let Some(value) = number(lookup, name)? {
            return Ok((name, value));
        }
    }
    Err(Error::invalid(format!(
        "{} is not set, though other variables of a job without a rank table ({}) are",
        names.join(" or "),
        environment::TABLE
    )))
}

fn process(lookup: &impl Fn(&str) -> Option<OsString>, variables: &Variables) -> Result<Process> {
    let (rank_name, rank) = first_number(lookup, variables.rank)?;
    let (size_name, size) = first_number(lookup, variables.size)?;
    for name in variables.size {
        if let Some(other) = number::<u32>(lookup, name)?.filter(|other| *other != size) {
            return Err(Error::invalid(format!(
                "{name} is {other}, but {size_name} is {size}"
            )));
        }
    }
    if rank >= size {
        return Err(Error::invalid(format!(
            "{rank_name} is {rank}, but {size_name} is {size}"
        )));
    }
    if size > MOST_RANKS {
        return Err(Error::invalid(format!(
            "{size_name} is {size}: there are at most {MOST_RANKS} ranks"
        )));
    }
    let local_rank = number::<u32>(lookup, LOCAL_RANK)?;
    let locals = number::<u32>(lookup, LOCAL_SIZE)?;
    if locals == Some(0) {
        return Err(Error::invalid(format!("{LOCAL_SIZE} is 0")));
    }
    let device = match (number::<i32>(lookup, DEVICE)?, local_rank) {
        (Some(device), _) => device,
        (None, Some(local)) => i32::try_from(local)
            .map_err(|_| Error::invalid(format!("{LOCAL_RANK} is {local}: no such device")))?,
        (None, None) => {
            return Err(Error::invalid(format!(
                "{DEVICE} or {LOCAL_RANK} is not set: it is the device of this rank (newer \
                 releases of MindSpore's msrun set it)"
            )));
        }
    };
    Ok(Process {
        rank,
        size,
        device,
        local_rank,
        locals,
        meeting: meeting(lookup, variables)?,
    })
}

fn meeting(lookup: &impl Fn(&str) -> Option<OsString>, variables: &Variables) -> Result<Meeting> {
    let Variables { address, port, .. } = variables;
    if let Some(file) = lookup(FILE) {
        return Ok(Meeting::File(PathBuf::from(file)));
    }
    let names = [OWN_ADDRESS, address];
    let found = names.iter().find_map(|name| Some((name, lookup(name)?)));
    let Some((name, host)) = found else {
        return Err(Error::invalid(format!(
            "{address} is not set (nor are {OWN_ADDRESS} and {FILE}): ranks meet there"
        )));
    };
    let host = host
        .to_str()
        .ok_or_else(|| Error::invalid(format!("{name} is {host:?}, not a host")))?;
    let number = |name: &str| match number::<u16>(lookup, name)? {
        Some(0) => Err(Error::invalid(format!("{name} is 0, which is no port"))),
        port => Ok(port),
    };
    let port = match (number(OWN_PORT)?, number(port)?) {
        (Some(own), _) => own,
        // The launcher itself listens at that port.
        (None, Some(number)) => number.checked_add(1).ok_or_else(|| {
            Error::invalid(format!(
                "{port} is {number}, there is no port behind it: set {OWN_PORT}"
            ))
        })?,
        (None, None) => {
            return Err(Error::invalid(format!(
                "{port} is not set (nor is {OWN_PORT})"
            )));
        }
    };
    Ok(Meeting::Address {
        host: host.to_owned(),
        port,
        secret: JobSecret::read(lookup)?,
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

    const TORCHRUNS: [(&str, &str); 6] = [
        ("RANK", "5"),
        ("WORLD_SIZE", "8"),
        (LOCAL_RANK, "1"),
        (LOCAL_SIZE, "4"),
        ("MASTER_ADDR", "node0"),
        ("MASTER_PORT", "29500"),
    ];
    /// What a worker of msrun finds: see [`MSRUN`].
    const MSRUNS: [(&str, &str); 8] = [
        ("RANK_ID", "5"),
        ("RANK_SIZE", "8"),
        ("DEVICE_ID", "1"),
        ("MS_WORKER_NUM", "8"),
        ("MS_SCHED_HOST", "node0"),
        ("MS_SCHED_PORT", "8118"),
        ("MS_ROLE", "MS_WORKER"),
        ("MS_NODE_ID", "5"),
    ];

    fn process(launcher: &[(&str, &str)], more: &[(&str, &str)]) -> Process {
        match with(&[more, launcher].concat()).unwrap() {
            Launch::Process(process) => process,
            Launch::Table(_) => panic!("a table"),
        }
    }

    fn address(host: &str, port: u16) -> Meeting {
        Meeting::Address {
            host: host.to_owned(),
            port,
            secret: None,
        }
    }

    #[test]
    fn torchruns_variables_place_a_rank() {
        let process = |more: &[(&str, &str)]| process(&TORCHRUNS, more);
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
        // A program that was started by torchrun and uses MindSpore finds both.
        assert_eq!(process(&MSRUNS), expected);
    }

    #[test]
    fn msruns_variables_place_a_rank() {
        let process = |more: &[(&str, &str)]| process(&MSRUNS, more);
        let expected = Process {
            rank: 5,
            size: 8,
            device: 1,
            local_rank: None,
            locals: None,
            meeting: address("node0", 8119),
        };
        assert_eq!(process(&[]), expected);
        // Before 2.3, and in a dynamic cluster without msrun.
        assert_eq!(process(&[("RANK_ID", ""), ("RANK_SIZE", "")]), expected);
        assert_eq!(
            process(&[("MS_ROLE", ""), ("MS_NODE_ID", "a name")]),
            expected
        );
        assert_eq!(process(&[(LOCAL_SIZE, "4")]).locals, Some(4));
        let own = [(OWN_PORT, "7"), (OWN_ADDRESS, "node1")];
        assert_eq!(process(&own).meeting, address("node1", 7));
        // Not those of another launcher.
        let other = [("MASTER_ADDR", "node1"), ("MASTER_PORT", "7")];
        assert_eq!(process(&other), expected);
    }

    #[test]
    fn the_secret_of_the_environment_is_that_of_the_meeting() {
        let process = process(&TORCHRUNS, &[(JobSecret::VARIABLE, "sixteen or more.")]);
        let Meeting::Address { secret, .. } = process.meeting else {
            panic!("a file")
        };
        assert_eq!(secret.unwrap().variable().1, "sixteen or more.");
    }

    #[test]
    fn a_rank_table_comes_first() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/examples/rank_tables/rank_table_16pcs.json"
        );
        let both = [
            &TORCHRUNS[..],
            &[(environment::TABLE, path), ("RANK_ID", "9")],
        ]
        .concat();
        assert!(matches!(with(&both), Ok(Launch::Table(cluster)) if cluster.rank() == 9));
    }

    fn says(launcher: &[(&str, &str)], changes: &[(&str, &str)], what: &str) {
        let error = with(&[changes, launcher].concat()).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::InvalidArgument);
        assert!(error.to_string().starts_with(what), "{error}");
    }

    #[test]
    fn every_bad_variable_of_torchrun_is_named() {
        let says = |changes: &[(&str, &str)], what: &str| says(&TORCHRUNS, changes, what);
        says(&[("RANK", "8")], "RANK is 8, but WORLD_SIZE is 8");
        says(&[("WORLD_SIZE", "x")], "WORLD_SIZE is \"x\", not a number");
        says(&[("WORLD_SIZE", "300000000")], "WORLD_SIZE is 300000000");
        says(&[("WORLD_SIZE", "")], "WORLD_SIZE is not set");
        says(&[(LOCAL_RANK, "")], "DEVICE_ID or LOCAL_RANK is not set");
        says(&[(LOCAL_RANK, "4000000000")], "LOCAL_RANK is 4000000000");
        says(&[(LOCAL_SIZE, "0")], "LOCAL_WORLD_SIZE is 0");
        says(&[("MASTER_ADDR", "")], "MASTER_ADDR is not set");
        says(&[("MASTER_PORT", "")], "MASTER_PORT is not set");
        says(
            &[("MASTER_PORT", "65535")],
            "MASTER_PORT is 65535, there is no port behind it",
        );
        says(
            &[("MASTER_PORT", "0")],
            "MASTER_PORT is 0, which is no port",
        );
        says(&[(OWN_PORT, "70000")], "ADASUM_MASTER_PORT is \"70000\"");
        says(
            &[(OWN_PORT, "0")],
            "ADASUM_MASTER_PORT is 0, which is no port",
        );
        says(
            &[(JobSecret::VARIABLE, "short")],
            "ADASUM_JOB_SECRET: the secret has 5 bytes",
        );
        let error = with(&[]).unwrap_err().to_string();
        assert!(error.starts_with("neither a rank table"), "{error}");
    }

    #[test]
    fn every_bad_variable_of_msrun_is_named() {
        let says = |changes: &[(&str, &str)], what: &str| says(&MSRUNS, changes, what);
        says(&[("RANK_ID", "8")], "RANK_ID is 8, but RANK_SIZE is 8");
        says(&[("RANK_ID", "-1")], "RANK_ID is \"-1\", not a number");
        let unknown = [("RANK_ID", ""), ("MS_NODE_ID", "")];
        says(&unknown, "RANK_ID or MS_NODE_ID is not set");
        says(
            &[("MS_WORKER_NUM", "4")],
            "MS_WORKER_NUM is 4, but RANK_SIZE is 8",
        );
        says(
            &[("RANK_SIZE", ""), ("MS_WORKER_NUM", "")],
            "RANK_SIZE or MS_WORKER_NUM is not set",
        );
        says(&[("MS_ROLE", "MS_SCHED")], "MS_ROLE is \"MS_SCHED\": only");
        says(&[(DEVICE, "")], "DEVICE_ID or LOCAL_RANK is not set");
        says(&[("MS_SCHED_HOST", "")], "MS_SCHED_HOST is not set");
        says(&[("MS_SCHED_PORT", "")], "MS_SCHED_PORT is not set");
        says(
            &[("MS_SCHED_PORT", "65535")],
            "MS_SCHED_PORT is 65535, there is no port behind it",
        );
    }
}
