//! `adasum-run launch`: any program, once per rank, in the environment of the tutorial's scripts.
//!
//! `job` runs the processes of this and of other commands and sees to it that none is left: `children` and `signals` make events
//! of what happens to them, `running` keeps what is known of each, `cause` finds out why they failed, `reaper` ends them if this
//! process is killed. `ranks` makes their commands, `servers` those of launchers on several machines, `logs` and `output` take their lines.

mod cause;
pub(crate) mod children;
pub(crate) mod event;
pub(crate) mod failure;
pub(crate) mod hosts;
pub(crate) mod job;
mod logs;
mod outer_launcher;
mod output;
pub(crate) mod ranks;
pub(crate) mod reaper;
mod running;
mod servers;
mod signals;
mod size;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::io::{failed, notice, refuse_same};
use crate::cli::launch::children::Input;
use crate::cli::launch::job::{End, Limits, Rank, job_name};
use crate::cli::launch::logs::Logs;
use crate::cli::launch::output::{Output, Prefix};
use crate::cli::launch::servers::Start;
use crate::cli::launch::size::Size;
use crate::cli::report;
use crate::cli::report::trace::Trace;
use crate::cli::text::count;
use crate::error::{Error, Result};
use crate::sys::process;
use crate::topo::{JobSecret, RankTable, Server, ServerDevice};

/// Name and version of the form of `report.json`.
const SCHEMA: &str = "adasum.launch/1";

#[derive(Debug, clap::Args)]
#[command(after_help = LONG_HELP)]
pub(crate) struct Args {
    /// The rank table (JSON; version 1.0, 1.2, 2.0 or none) [default: RANK_TABLE_FILE, else MINDSPORE_HCCL_CONFIG_PATH]
    #[arg(long, value_name = "FILE")]
    rank_table: Option<PathBuf>,
    #[command(flatten)]
    size: Size,
    #[command(flatten)]
    start: Start,
    /// Start only this server's ranks: its 0-based index in server_list, its server_id, or auto for the server whose
    /// server_id is an address or the name of this machine [default: all servers, here]
    #[arg(long, value_name = "SERVER")]
    server_id: Option<String>,
    /// Start only this rank: its number, or env for what mpirun or srun has set
    #[arg(long, value_name = "RANK", conflicts_with = "server_id")]
    rank: Option<String>,
    /// Name of the job for the mock of HCCL; equal on all servers [default for all servers here: a random one]
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Stop the job after this many seconds, all attempts together
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// After a failure, let ranks that use this library end by themselves for so many seconds [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    linger: Option<Duration>,
    /// Start all ranks of this launcher again, at most so many times, when one has failed. Of several launchers, each needs it
    #[arg(long, value_name = "N", default_value_t = 0)]
    restarts: u32,
    /// Write each rank's output to DIR/device_R/train.log and its environment to env.log beside it
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Start each rank in its directory DIR/device_R
    #[arg(long, requires = "log_dir")]
    own_dir: bool,
    /// Copy this file into each rank's directory; may be given several times
    #[arg(long, value_name = "FILE", requires = "own_dir")]
    copy: Vec<PathBuf>,
    /// Show nothing of what ranks print
    #[arg(long)]
    silent: bool,
    /// What stands before each line of a rank
    #[arg(long, value_name = "PREFIX", default_value = "rank")]
    prefix: Prefix,
    /// Give the standard input of this program to rank 0, which otherwise has none, as the others
    #[arg(long, conflicts_with = "restarts")]
    stdin: bool,
    /// Run each rank on cores of its own: the cores that this program may use, in equal shares
    #[arg(long)]
    bind_to_cores: bool,
    /// MASTER_ADDR of the ranks, whatever ADASUM_MASTER_ADDR says here [default: this machine if all servers are here, else the
    /// first server's server_id]
    #[arg(long, value_name = "HOST")]
    master_addr: Option<String>,
    /// MASTER_PORT of the ranks, whatever ADASUM_MASTER_PORT says here [default: a free one if all servers are here, else 29500]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    master_port: Option<u16>,
    /// Draw what ranks record (loss, accuracy, cosine and gain of tensors) into this folder: index.html, SVG, CSV, JSON
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write a timeline of steps, buckets, stages and waits on all ranks here, for chrome://tracing and Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const LONG_HELP: &str = "\
Numbers in the place of a table: torchrun's --nnodes and --nproc-per-node, msrun's --worker_num and --local_worker_num are taken, too.
Several machines: --hosts a:8,b:8 prints the command for each; with --ssh they are started from here, in a folder of this name, by this
program under the same path. The secret and what -x NAME has here go through ssh's input, so nobody sees them on a command line.

AdaSum combines servers. Where one server is all there is, a program makes its world with devices_per_server=1: each rank counts as a
server then.

Each rank gets RANK_TABLE_FILE (also as MINDSPORE_HCCL_CONFIG_PATH), RANK_ID, RANK_SIZE (all ranks), DEVICE_ID, DEVICE_NUM
(ranks on its server), SERVER_ID (index of its server); torchrun's RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT; ADASUM_RESTART_COUNT; and HCCL_MOCK_JOB. With --hosts it gets no table: ranks meet at MASTER_ADDR. Its lines come out as \"[r2] line\"; one whose end does not come for 2 s
comes out without it. When a rank fails, it is reported with
its last lines and the rest are stopped: SIGTERM, 5 s, SIGKILL. Ranks that use this library report what they waited for, which
is joined to name the cause.

ADASUM_JOB_SECRET, a new secret for each start of all ranks, proves who may join the job. With --server-id or --rank this program
makes none: give all launchers the same ADASUM_JOB_SECRET (16 bytes or more), or ADASUM_JOB_SECRET_FILE, a file of mode 0600.

Under a launcher that starts a process for each rank: srun adasum-run launch --rank env --rank-table T -- PROGRAM.

With --report, ADASUM_STATISTICS_DIR names the folder: a rank R appends lines to rank_R.jsonl there, such as
{\"step\":1,\"epoch\":0.1,\"values\":{\"loss\":2.3},\"tensors\":[{\"name\":\"w\",\"cosine\":0.3,\"gain\":1.2}]}
(adasum::reduce::Journal writes them, with the \"time\" in seconds of Unix time, from which seconds a step come). Progress is shown for a rank that writes to standard error
adasum-report: {\"report\":\"progress\",\"rank\":0,\"done\":3,\"total\":90,\"unit\":\"epochs\"}

With --trace, ADASUM_TRACE_DIR names a folder in TMPDIR in which ranks that reduce with this library write when their steps and stages ran;
all of it becomes FILE when the job ends, however it ends. Each of several launchers writes its own ranks: give each a FILE of its own.

Exit code: that of the first rank that fails (of the last attempt), 128 + n if signal n killed it; 0 when all ranks end with
0, or when standard output is closed, which stops the job; 1 when a log, report or trace of a job that succeeds
cannot be written; 2 wrong usage or rank table; 124 timeout; 126, 127 the
program cannot be started; 130 interrupted by ^C, 143 by SIGTERM.";

/// Facts of a job in `report.json`.
#[derive(Serialize)]
struct JobFacts {
    schema: &'static str,
    program: Vec<String>,
    ranks: usize,
    servers: usize,
    attempts: u32,
    exit_code: u8,
    seconds: f64,
    /// Why the job did not succeed.
    cause: Option<String>,
}

/// The ranks of this machine and what they share.
struct Launch<'a> {
    args: &'a Args,
    table: &'a RankTable,
    places: Vec<(&'a Server, &'a ServerDevice)>,
    all_here: bool,
    /// Whether the ranks have a secret from elsewhere.
    has_secret: bool,
    master: [(&'static str, OsString); 2],
    report: Option<report::Folder>,
    trace: Option<Trace>,
}

/// Runs the job that `args` describe.
///
/// # Errors
/// If the table or the server is wrong, a file cannot be written, or this machine refuses what the launcher needs.
pub(crate) fn run(args: &Args) -> Result<End> {
    let all_here = args.server_id.is_none() && args.rank.is_none();
    let hosts = args.size.hosts();
    if all_here && !hosts.is_empty() {
        // Wrong numbers are found here, not on every machine.
        args.size.table()?;
        return args.start.launch(&hosts, args.job.as_deref(), args.timeout);
    }
    args.start.begin_here()?;
    let table = match args.size.table()? {
        Some(made) => made,
        None => RankTable::read(table_path(args)?)?,
    };
    let places = places(args, &table)?;
    let has_secret = JobSecret::from_env()?.is_some();
    // Before the output starts a thread; up to here, waiting for a table or a name can be interrupted.
    signals::block()?;
    let numbers = || places.iter().map(|(_, device)| device.rank);
    let report = args.report.as_deref();
    let report = report
        .map(|path| report::Folder::prepare(path, numbers(), table.size()))
        .transpose()?;
    let trace = args.trace.as_deref();
    let trace = trace
        .map(|path| {
            refuse_same("--trace", path, &[("the rank table", table.path())])?;
            Trace::prepare(path)
        })
        .transpose()?;
    let logs = args.log_dir.as_deref().map(Logs::new).transpose()?;
    let address = args.master_addr.clone();
    let address = address.unwrap_or_else(|| hosts::master_address(&table, all_here));
    let port = args
        .master_port
        .unwrap_or_else(|| hosts::master_port(all_here));
    let launch = Launch {
        args,
        table: &table,
        places,
        all_here,
        has_secret,
        master: [
            ("MASTER_ADDR", address.into()),
            ("MASTER_PORT", port.to_string().into()),
        ],
        report,
        trace,
    };
    let mut output = Output::new(args.silent, args.prefix, logs);
    let start = Instant::now();
    let ran = launch.run(&mut output);
    output.finish();
    let trace = launch.trace.as_ref().map_or(Ok(()), Trace::write);
    let logs = output.logs.as_ref().map_or(Ok(()), Logs::check);
    let report = match (&launch.report, &ran) {
        (Some(folder), Ok((end, attempts))) => {
            launch.write_report(folder, *end, *attempts, start.elapsed(), output.cause)
        }
        _ => Ok(()),
    };
    let end = ran.map(|(end, _)| end);
    let written = [logs, trace, report];
    written.into_iter().fold(end, job::with_written)
}

impl Launch<'_> {
    /// Runs the ranks until they succeed, fail for the last time, or are stopped; returns the number of attempts.
    fn run(&self, output: &mut Output) -> Result<(End, u32)> {
        let mut limits = Limits {
            timeout: self.args.timeout,
            ..Limits::default()
        };
        limits.linger = self.args.linger.unwrap_or(limits.linger);
        let mut attempt = 0;
        loop {
            let ranks = self.ranks(attempt, output)?;
            output.start(ranks.len());
            let end = job::run(ranks, self.table.size(), &limits, output)?;
            if !matches!(end, End::Failed(_)) || attempt == self.args.restarts {
                return Ok((end, attempt + 1));
            }
            attempt += 1;
            let most = self.args.restarts;
            notice(&format!(
                "starting all ranks again: restart {attempt} of {most}"
            ));
        }
    }

    /// The commands of one attempt. Each has a job and a secret of its own, so that it meets nothing that an earlier one left.
    fn ranks(&self, attempt: u32, output: &mut Output) -> Result<Vec<Rank>> {
        let args = self.args;
        let job = match &args.job {
            Some(job) => Some(job.clone()),
            None => self.all_here.then(job_name),
        };
        // The launchers of a job cannot agree on one by themselves.
        let made = self.all_here && !self.has_secret;
        let secret = made.then(JobSecret::fresh).transpose()?;
        let cores = match args.bind_to_cores {
            true => shares(
                &process::cores().map_err(|error| failed("--bind-to-cores", error))?,
                self.places.len(),
            ),
            false => Vec::new(),
        };
        let trace = self.trace.as_ref();
        let trace = trace.map(|trace| trace.variable(attempt)).transpose()?;
        let mut started = Vec::new();
        for &(server, device) in &self.places {
            let mut command = Command::new(&args.program[0]);
            command.args(&args.program[1..]);
            command.envs(args.start.variables().iter().cloned());
            let mut rank = ranks::rank(command, self.table, server, device);
            let command = &mut rank.command;
            if !args.size.hosts().is_empty() {
                // HCCL would believe the addresses of devices in it, which nobody knows here; ranks that meet need none.
                ranks::hide_table(command);
            }
            command.envs(self.master.clone());
            let (address, port) = (args.master_addr.is_some(), args.master_port.is_some());
            ranks::hide_meeting(command, address, port);
            command.env("ADASUM_RESTART_COUNT", attempt.to_string());
            command.envs(secret.as_ref().map(JobSecret::variable));
            command.envs(self.report.as_ref().map(report::Folder::variable));
            command.envs(trace.clone());
            ranks::set_mock(command, job.as_deref(), self.all_here);
            if args.stdin && device.rank == 0 {
                rank.input = Input::Ours;
            }
            let command = &mut rank.command;
            args.start.check_variables(command)?;
            if let Some(cores) = cores.get(started.len()) {
                process::run_on(command, cores);
            }
            if let Some(logs) = &mut output.logs {
                let folder = logs.open(device.rank, command, &args.copy, attempt == 0)?;
                if args.own_dir {
                    command.current_dir(folder);
                    // From there, a relative path would lead elsewhere.
                    if let Some(path) = std::env::var_os(JobSecret::FILE_VARIABLE) {
                        let path = std::path::absolute(&path).unwrap_or_else(|_| path.into());
                        command.env(JobSecret::FILE_VARIABLE, path);
                    }
                }
            }
            started.push(rank);
        }
        Ok(started)
    }

    fn write_report(
        &self,
        folder: &report::Folder,
        end: End,
        attempts: u32,
        duration: Duration,
        cause: Option<String>,
    ) -> Result<()> {
        let program = self.args.program.iter();
        let program: Vec<String> = program
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let servers = self.places.iter().map(|(server, _)| server.index);
        let servers: std::collections::BTreeSet<usize> = servers.collect();
        let head = JobFacts {
            schema: SCHEMA,
            ranks: self.places.len(),
            servers: servers.len(),
            attempts,
            exit_code: end.exit_code(),
            seconds: duration.as_secs_f64(),
            program,
            cause,
        };
        let mut facts = vec![
            ("program".to_owned(), head.program.join(" ")),
            (
                "rank table".to_owned(),
                self.table.path().display().to_string(),
            ),
            (
                "started here".to_owned(),
                format!(
                    "{} of {}",
                    count(head.ranks as u64, "rank"),
                    count(head.servers as u64, "server")
                ),
            ),
            ("attempts".to_owned(), attempts.to_string()),
            ("exit code".to_owned(), head.exit_code.to_string()),
            ("duration".to_owned(), format!("{:.1} s", head.seconds)),
        ];
        facts.extend(head.cause.clone().map(|cause| ("cause".to_owned(), cause)));
        let charts = folder.write("Report of a job", &facts, &head)?;
        let page = folder.path().join("index.html");
        match charts.len() {
            0 => notice(&format!(
                "{}: no rank has recorded anything",
                page.display()
            )),
            _ => notice(&format!("report: {}", page.display())),
        }
        Ok(())
    }
}

fn table_path(args: &Args) -> Result<PathBuf> {
    let path = args.rank_table.clone().or_else(ranks::table_path);
    path.ok_or_else(|| {
        Error::invalid(
            "no rank table: give -n RANKS to start ranks on this machine, or --rank-table, or set RANK_TABLE_FILE",
        )
    })
}

/// The ranks to start.
fn places<'a>(args: &Args, table: &'a RankTable) -> Result<Vec<(&'a Server, &'a ServerDevice)>> {
    if let Some(rank) = &args.rank {
        let rank = outer_launcher::rank(rank, table.size(), |name| std::env::var_os(name))?;
        return Ok(vec![table.find(rank)?]);
    }
    let servers: Vec<&Server> = match args.server_id.as_deref() {
        Some("auto") => vec![hosts::own_server(table)?],
        Some(name) => vec![table.server_by(name)?],
        None => table.servers().iter().collect(),
    };
    let devices = |server: &'a Server| server.devices.iter().map(move |device| (server, device));
    Ok(servers.into_iter().flat_map(devices).collect())
}

/// The cores of each of `ranks`: equal numbers of neighbours, or one that several share.
fn shares(cores: &[usize], ranks: usize) -> Vec<Vec<usize>> {
    let each = (cores.len() / ranks.max(1)).max(1);
    let blocks: Vec<Vec<usize>> = cores.chunks(each).map(<[usize]>::to_vec).collect();
    blocks.iter().cycle().take(ranks).cloned().collect()
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit),
        Ok(_) => Err("must be more than 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
