//! Starts the ranks of a benchmark over a rank table of its own, and passes on what rank 0 finds.

use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::request::Request;
use crate::cli::engine::{self, End, Limits, Observer, Rank, Stream};
use crate::cli::launch;
use crate::error::{Error, ErrorKind, Result};
use crate::topo::RankTable;

/// Chooses the backend of all ranks.
const BACKEND: &str = "ADASUM_BACKEND";

/// Tells the mock which core the streams of a rank run on. With a core for each rank, each has its own, as those of an MPI
/// job do: two that share one by chance would take turns.
const CORE: &str = "ASCEND_MOCK_CORE";

/// Takes a line that is a JSON object.
pub(super) type Show<'a> = dyn FnMut(&[u8]) -> std::io::Result<()> + 'a;

/// Runs the ranks and gives each line of rank 0 to `show`.
pub(super) fn run(request: &Request, show: &mut Show<'_>) -> Result<End> {
    let folder = Folder::new()?;
    let path = folder.0.join("rank_table.json");
    let (ranks, locals) = request.shape();
    let text = table(ranks, locals).to_string();
    std::fs::write(&path, text).map_err(|error| io(&path, &error))?;
    let table = RankTable::read(&path)?;
    let ranks = commands(&table, request)?;
    let limits = Limits {
        // How long it takes is the question; a rank that hangs ends by the limits of its operations.
        timeout: None,
        grace: launch::GRACE,
        linger: launch::LINGER,
    };
    let mut view = View { show };
    engine::run(ranks, table.size(), &limits, &mut view)
}

/// A table of simulated servers with `locals` devices each.
fn table(ranks: u32, locals: u32) -> Value {
    let device = |rank: u32| {
        json!({
            "device_id": (rank % locals).to_string(),
            "device_ip": format!("192.{}.{}.{}", 1 + rank % locals, rank / locals / 250, 1 + rank / locals % 250),
            "rank_id": rank.to_string(),
        })
    };
    let servers: Vec<Value> = (0..ranks / locals)
        .map(|server| {
            let ranks = server * locals..(server + 1) * locals;
            json!({
                "server_id": format!("10.155.{}.{}", server / 250, 1 + server % 250),
                "device": ranks.map(device).collect::<Vec<Value>>(),
            })
        })
        .collect();
    json!({
        "version": "1.0",
        "server_count": servers.len().to_string(),
        "server_list": servers,
        "status": "completed",
    })
}

/// This program again for each rank of the table.
fn commands(table: &RankTable, request: &Request) -> Result<Vec<Rank>> {
    let failed = |what: String| Error::new(ErrorKind::Io, what);
    let program = std::env::current_exe()
        .map_err(|error| failed(format!("cannot find this program: {error}")))?;
    let request =
        serde_json::to_string(request).map_err(|error| failed(format!("the request: {error}")))?;
    let job = launch::random_job();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let backend = std::env::var(BACKEND).unwrap_or_else(|_| "mock".to_owned());
    let mut ranks = Vec::new();
    for server in table.servers() {
        for device in &server.devices {
            let mut command = Command::new(&program);
            command.args(["bench-rank", &request]);
            command.envs(launch::environment(table, server, device));
            launch::mock_environment(&mut command, Some(&job), true);
            command.env(BACKEND, &backend);
            if table.size() as usize <= cores && std::env::var_os(CORE).is_none() {
                command.env(CORE, device.rank.to_string());
            }
            ranks.push(Rank {
                rank: device.rank,
                place: launch::place(server, device),
                command,
            });
        }
    }
    Ok(ranks)
}

struct View<'a> {
    show: &'a mut Show<'a>,
}

impl Observer for View<'_> {
    fn line(&mut self, rank: u32, stream: Stream, line: &[u8]) -> std::io::Result<()> {
        if stream == Stream::Out
            && serde_json::from_slice::<Value>(line).is_ok_and(|value| value.is_object())
        {
            return (self.show)(line);
        }
        // Nobody to tell if standard error is closed.
        let _ = std::io::stderr()
            .lock()
            .write_all(&launch::prefixed(rank, line));
        Ok(())
    }

    fn notice(&mut self, text: &str) {
        launch::notice(text);
    }
}

/// A folder that goes with the job.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        let name = format!("adasum-bench-{}", launch::random_job());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| io(&path, &error))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            log::warn!("{}: {error}", self.0.display());
        }
    }
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {error}", path.display()))
}
