//! The commands of ranks and the variables that they find.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::cli::io::failed;
use crate::cli::launch::children::Input;
use crate::cli::launch::job::{Rank, job_name};
use crate::error::Result;
use crate::topo::{Meeting, RankTable, Server, ServerDevice};

/// Devices of the mock where nothing else is said.
pub(crate) const MOCK_DEVICES: usize = 8;
pub(crate) const MOCK_DEVICES_VARIABLE: &str = "ASCEND_MOCK_DEVICES";
/// Which devices a process sees, of the mock's, too.
pub(crate) const VISIBLE_VARIABLE: &str = "ASCEND_RT_VISIBLE_DEVICES";
/// Chooses the backend of a process.
pub(crate) const BACKEND: &str = "ADASUM_BACKEND";

/// The second is an older name of the same thing, which must not contradict it.
const TABLE_VARIABLES: [&str; 2] = ["RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH"];

/// The rank table that the variables of this process name.
pub(crate) fn table_path() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = TABLE_VARIABLES.into_iter().find_map(variable);
    path.map(PathBuf::from)
}

/// The rank of `device` as a process: `command` with the variables of its place.
pub(crate) fn rank(
    mut command: Command,
    table: &RankTable,
    server: &Server,
    device: &ServerDevice,
) -> Rank {
    command.envs(variables(table, server, device));
    // The mock has fewer devices, unless it is told.
    let last = server
        .devices
        .iter()
        .filter_map(|device| usize::try_from(device.device_id).ok());
    let needed = last.max().map_or(0, |last| last + 1);
    if needed > MOCK_DEVICES {
        set_default(&mut command, MOCK_DEVICES_VARIABLE, &needed.to_string());
    }
    let (index, id) = (server.index, &server.id);
    Rank {
        rank: device.rank,
        place: format!("server {index} {id:?}, device {}", device.device_id),
        command,
        input: Input::Empty,
    }
}

/// The variables that the tutorial's scripts and torchrun set for a rank.
fn variables(
    table: &RankTable,
    server: &Server,
    device: &ServerDevice,
) -> Vec<(&'static str, OsString)> {
    let text = |value: String| OsString::from(value);
    let size = table.size().to_string();
    let locals = server.devices.len().to_string();
    let rank = device.rank.to_string();
    let local_rank = (device.rank - server.first_rank()).to_string();
    vec![
        (TABLE_VARIABLES[0], table.path().into()),
        (TABLE_VARIABLES[1], table.path().into()),
        ("RANK_ID", text(rank.clone())),
        ("RANK_SIZE", text(size.clone())),
        ("DEVICE_ID", text(device.device_id.to_string())),
        ("DEVICE_NUM", text(locals.clone())),
        ("SERVER_ID", text(server.index.to_string())),
        ("RANK", text(rank)),
        ("WORLD_SIZE", text(size)),
        ("LOCAL_RANK", text(local_rank)),
        ("LOCAL_WORLD_SIZE", text(locals)),
    ]
}

/// Has ranks meet without the table.
pub(crate) fn hide_table(command: &mut Command) {
    for name in TABLE_VARIABLES {
        command.env_remove(name);
    }
}

/// Removes the variables that would count before a `MASTER_ADDR` and a `MASTER_PORT` of the command line.
pub(crate) fn hide_meeting(command: &mut Command, address: bool, port: bool) {
    for (hidden, name) in [
        (address, Meeting::ADDRESS_VARIABLE),
        (port, Meeting::PORT_VARIABLE),
        (address || port, Meeting::FILE_VARIABLE),
    ] {
        if hidden {
            command.env_remove(name);
        }
    }
}

/// Variables for the mock of HCCL: which ranks belong together and how they reach each other.
pub(crate) fn set_mock(command: &mut Command, job: Option<&str>, all_here: bool) {
    if let Some(job) = job {
        command.env("HCCL_MOCK_JOB", job);
    }
    if all_here {
        set_default(command, "HCCL_MOCK_NET", "shm");
    }
}

/// Sets a variable that neither the environment nor `command` has yet.
fn set_default(command: &mut Command, name: &str, value: &str) {
    if std::env::var_os(name).is_none() && !command.get_envs().any(|(known, _)| known == name) {
        command.env(name, value);
    }
}

/// The file of this program.
pub(crate) fn this_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| failed("cannot find this program", error))
}

/// The backend of the ranks of demo and benchmarks: the mock, unless the user says otherwise.
pub(crate) fn backend() -> String {
    std::env::var(BACKEND).unwrap_or_else(|_| "mock".to_owned())
}

/// This program as every rank of `table`; `arguments` adds arguments, and variables of its own.
pub(crate) fn own_program(
    table: &RankTable,
    arguments: impl Fn(&ServerDevice, &mut Command),
) -> Result<Vec<Rank>> {
    let (program, job, backend) = (this_program()?, job_name(), backend());
    let mut ranks = Vec::new();
    for server in table.servers() {
        for device in &server.devices {
            let mut rank = rank(Command::new(&program), table, server, device);
            set_mock(&mut rank.command, Some(&job), true);
            rank.command.env(BACKEND, &backend);
            if backend == "mock" {
                // It is said of the machine's NPUs.
                rank.command.env_remove(VISIBLE_VARIABLE);
            }
            arguments(device, &mut rank.command);
            ranks.push(rank);
        }
    }
    Ok(ranks)
}
