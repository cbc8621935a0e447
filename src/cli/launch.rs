//! `adasum-run launch`: any program, once per rank, in the environment of the tutorial's scripts.

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::engine::{self, End, Limits, Observer, Rank, Stream};
use crate::error::Result;
use crate::topo::{Device, RankTable, Server};

/// Between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long ranks that report failures may take to notice that of another.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// The rank table (JSON; version 1.0, 1.2 or none)
    #[arg(long, value_name = "FILE")]
    rank_table: PathBuf,
    /// Start only this server's ranks: its 0-based index in server_list, or its server_id [default: all servers, here]
    #[arg(long, value_name = "SERVER")]
    server_id: Option<String>,
    /// Name of the job for the mock of HCCL; equal on all servers [default without --server-id: a random one]
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Stop the job after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// After a failure, let ranks that use this library end by themselves for so many seconds [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    linger: Option<Duration>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const LONG_HELP: &str = "\
Each rank gets RANK_TABLE_FILE, RANK_ID, RANK_SIZE (all ranks), DEVICE_ID, DEVICE_NUM (ranks on its server), SERVER_ID
(index of its server); RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE; and HCCL_MOCK_JOB. Its lines come out as
\"[r2] line\". When a rank fails, it is reported with its last lines and the rest are stopped: SIGTERM, 5 s, SIGKILL.
Ranks that use this library report what they waited for, which is joined to name the cause.

Exit code: that of the first rank that fails, 128 + n if signal n killed it; 0 when all ranks end with 0; 2 wrong usage
or rank table; 124 timeout; 126, 127 the program cannot be started; 130 interrupted by ^C, 143 by SIGTERM.";

/// Runs the job that `args` describe.
///
/// # Errors
/// If the table or the server is wrong, or this machine refuses what the launcher needs.
pub(crate) fn run(args: Args) -> Result<End> {
    let table = RankTable::read(&args.rank_table)?;
    let (servers, job) = match &args.server_id {
        Some(name) => (vec![table.server_by(name)?], args.job),
        None => {
            let job = args.job.unwrap_or_else(random_job);
            (table.servers().iter().collect(), Some(job))
        }
    };
    let all_here = args.server_id.is_none();
    let mut ranks = Vec::new();
    for server in servers {
        for device in &server.devices {
            let mut command = Command::new(&args.program[0]);
            command.args(&args.program[1..]);
            command.envs(environment(&table, server, device));
            mock_environment(&mut command, job.as_deref(), all_here);
            ranks.push(Rank {
                rank: device.rank,
                place: place(server, device),
                command,
            });
        }
    }
    let limits = Limits {
        timeout: args.timeout,
        grace: GRACE,
        linger: args.linger.unwrap_or(LINGER),
    };
    engine::run(ranks, &limits, &mut Prefixed)
}

/// What the tutorial's scripts export for a rank, and what torchrun does.
pub(crate) fn environment(
    table: &RankTable,
    server: &Server,
    device: &Device,
) -> Vec<(&'static str, OsString)> {
    let text = |value: String| OsString::from(value);
    let size = table.size().to_string();
    let locals = server.devices.len().to_string();
    let rank = device.rank.to_string();
    let local_rank = (device.rank - server.first_rank()).to_string();
    vec![
        ("RANK_TABLE_FILE", table.path().into()),
        // An older name of the same thing, which must not contradict it.
        ("MINDSPORE_HCCL_CONFIG_PATH", table.path().into()),
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

/// What the mock of HCCL needs to know: which ranks belong together and how they reach each other.
pub(crate) fn mock_environment(command: &mut Command, job: Option<&str>, all_here: bool) {
    if let Some(job) = job {
        command.env("HCCL_MOCK_JOB", job);
    }
    if all_here && std::env::var_os("HCCL_MOCK_NET").is_none() {
        command.env("HCCL_MOCK_NET", "shm");
    }
}

/// Where a rank runs, for messages.
pub(crate) fn place(server: &Server, device: &Device) -> String {
    format!(
        "server {} {:?}, device {}",
        server.index, server.id, device.device_id
    )
}

/// A name that no other job has.
pub(crate) fn random_job() -> String {
    // The standard library seeds this from the system's source of randomness.
    let hash = || std::hash::RandomState::new().build_hasher().finish();
    format!("{:016x}{:08x}", hash(), std::process::id())
}

/// Lines as `[r2] line`, each written whole.
struct Prefixed;

impl Observer for Prefixed {
    fn line(&mut self, rank: u32, stream: Stream, line: &[u8]) -> std::io::Result<()> {
        let whole = prefixed(rank, line);
        match stream {
            Stream::Out => std::io::stdout().lock().write_all(&whole),
            Stream::Err => {
                // Nobody to tell if standard error is closed.
                let _ = std::io::stderr().lock().write_all(&whole);
                Ok(())
            }
        }
    }

    fn notice(&mut self, text: &str) {
        notice(text);
    }
}

/// A rank's line with its prefix and line break.
pub(crate) fn prefixed(rank: u32, line: &[u8]) -> Vec<u8> {
    let mut whole = format!("[r{rank}] ").into_bytes();
    whole.extend_from_slice(line);
    whole.push(b'\n');
    whole
}

/// A sentence of this program on standard error.
pub(crate) fn notice(text: &str) {
    let _ = std::io::stderr()
        .lock()
        .write_all(format!("adasum-run: {text}\n").as_bytes());
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit),
        Ok(_) => Err("must be more than 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
