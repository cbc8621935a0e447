//! Starts the ranks of a benchmark over a rank table of its own, or a program to compare with, and passes on what they find.

use std::io::Write;
use std::num::NonZero;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cache::TemporaryFolder;
use crate::cli::io::{json, notice, save};
use crate::cli::lab::bench::request::Request;
use crate::cli::launch::children::Input;
use crate::cli::launch::event::Pipe;
use crate::cli::launch::failure::describe;
use crate::cli::launch::job::{self, End, Limits, Observer, Rank, prefixed};
use crate::cli::launch::ranks::own_program;
use crate::cli::report::trace::Trace;
use crate::error::{Error, ErrorKind, Result, quote};
use crate::topo::RankTable;

/// Tells the mock which core the streams of a rank run on. With a core for each rank, each has its own, as those of an MPI
/// job do: two that share one by chance would take turns.
const CORE: &str = "ASCEND_MOCK_CORE";

/// How long a program to compare with may take in a round.
const OTHER_LIMIT: Duration = Duration::from_secs(3600);

/// Takes a line that is a JSON object.
pub(crate) type Show<'a> = dyn FnMut(&[u8]) -> std::io::Result<()> + 'a;

/// Runs the ranks and gives each line of rank 0 to `show`.
pub(crate) fn run(request: &Request, trace: Option<&Trace>, show: &mut Show<'_>) -> Result<End> {
    let folder = TemporaryFolder::new("adasum-bench")?;
    let path = folder.path().join("rank_table.json");
    let (size, locals) = request.shape();
    save(&path, &table(size, locals).to_string())?;
    let table = RankTable::read(&path)?;
    let ranks = ranks(&table, request, trace)?;
    // No limit on the whole: how long it takes is the question, and a rank that hangs ends by the limits of its operations.
    let limits = Limits::default();
    let mut view = View { show };
    job::run(ranks, table.size(), &limits, &mut view)
}

/// Runs a command of the shell and gives each of its lines that is a JSON object to `show`.
///
/// # Errors
/// If it fails, or takes longer than an hour.
pub(crate) fn command(text: &str, show: &mut Show<'_>) -> Result<End> {
    let mut command = Command::new("sh");
    command.args(["-c", text]);
    let process = Rank {
        rank: 0,
        place: String::new(),
        command,
        input: Input::Empty,
    };
    let limits = Limits {
        timeout: Some(OTHER_LIMIT),
        ..Limits::default()
    };
    let failed = |kind, how: String| {
        let text = format!("--compare {}: {how}", quote(text));
        Err(Error::new(kind, text))
    };
    match job::run(vec![process], 1, &limits, &mut Other { show })? {
        // What a shell says of a program that is not there or is none.
        End::Failed(status) if matches!(status.code(), Some(126 | 127)) => {
            failed(ErrorKind::InvalidArgument, describe(status))
        }
        End::Failed(status) => failed(ErrorKind::Io, describe(status)),
        End::TimedOut => {
            let seconds = OTHER_LIMIT.as_secs();
            failed(ErrorKind::Timeout, format!("not done after {seconds} s"))
        }
        end => Ok(end),
    }
}

/// A table of simulated servers with `locals` devices each.
fn table(ranks: u32, locals: u32) -> Value {
    let device = |rank: u32| {
        json!({
            "device_id": (rank % locals).to_string(),
            "device_ip": format!("192.168.{}.{}", rank / 250, 1 + rank % 250),
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

/// This program for each rank of the table.
fn ranks(table: &RankTable, request: &Request, trace: Option<&Trace>) -> Result<Vec<Rank>> {
    let trace = trace.map(|trace| trace.variable(0)).transpose()?;
    let request = json(request)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    own_program(table, |device, command| {
        command.args(["bench-rank", &request]);
        command.envs(trace.clone());
        if table.size() as usize <= cores && std::env::var_os(CORE).is_none() {
            command.env(CORE, device.rank.to_string());
        }
    })
}

struct View<'a> {
    show: &'a mut Show<'a>,
}

impl Observer for View<'_> {
    fn line(&mut self, rank: u32, pipe: Pipe, line: &[u8]) -> std::io::Result<()> {
        pass_on(pipe, line, self.show, || prefixed(rank, line))
    }

    fn notice(&mut self, text: &str) {
        notice(text);
    }
}

/// A program to compare with. How it ends becomes the error of this program, and is said once.
struct Other<'a> {
    show: &'a mut Show<'a>,
}

impl Observer for Other<'_> {
    fn line(&mut self, _rank: u32, pipe: Pipe, line: &[u8]) -> std::io::Result<()> {
        pass_on(pipe, line, self.show, || [line, b"\n"].concat())
    }

    fn notice(&mut self, text: &str) {
        log::debug!("{text}");
    }
}

/// Gives JSON objects to `show`; all else goes to standard error as `otherwise`.
fn pass_on(
    pipe: Pipe,
    line: &[u8],
    show: &mut Show<'_>,
    otherwise: impl FnOnce() -> Vec<u8>,
) -> std::io::Result<()> {
    let is_object =
        |line| serde_json::from_slice::<Value>(line).is_ok_and(|value| value.is_object());
    if pipe == Pipe::Out && is_object(line) {
        return show(line);
    }
    // A closed standard error is no fault.
    let _ = std::io::stderr().lock().write_all(&otherwise());
    Ok(())
}
