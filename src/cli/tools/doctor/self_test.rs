//! Two ranks, as threads of a process of their own, reduce over the backend; the result is compared with the exact one.
//!
//! Their own process, so that what was found so far is reported even if a library crashes or hangs.

use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::ascend::{DataType, Device, RootInfo, Span, Stream};
use crate::cli::io::{failed, print};
use crate::cli::lab::reference;
use crate::cli::launch::failure;
use crate::cli::tools::doctor::report::Check;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::reduce::{DType, GradientReducer, Options, TensorSpec, World};
use crate::sys::process;

/// Name of the command that is the process of the two ranks.
pub(crate) const COMMAND: &str = "doctor-ranks";
const TYPE: DataType = DataType::F32;
/// Elements of the tensors: small, odd, and more than a unit of the kernels.
const SIZES: [usize; 3] = [3, 1001, 40_000];
/// Largest error that counts as right, relative to the norm of the exact result. The arithmetic is fp32.
const TOLERANCE: f64 = 2e-6;
/// How much longer than its own limit the process of the ranks may take to end.
const GRACE: Duration = Duration::from_secs(20);
/// How many of its last lines are shown when it fails.
const LINES: usize = 3;

/// Runs the test on devices 0 and 1 of `devices`.
pub(crate) fn check(devices: u32, timeout: Duration) -> Check {
    const NAME: &str = "self-test";
    if devices < 2 {
        return Check::skipped(NAME, "it needs two devices");
    }
    let begin = Instant::now();
    let output = match run_ranks(timeout) {
        Ok(output) => output,
        Err(error) => return Check::failed(NAME, error),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let error = said.trim().parse::<f64>().ok();
    let Some(error) = error.filter(|_| output.status.success()) else {
        return Check::failed(NAME, failure_text(output.status, &output.stderr));
    };
    let mut check = Check::new(NAME);
    let milliseconds = begin.elapsed().as_millis();
    check.say(format!(
        "two ranks reduced {} tensors in {milliseconds} ms; largest error {error:.1e} of the exact result's norm",
        SIZES.len()
    ));
    if error > TOLERANCE {
        check.fail(format!(
            "that is more than {TOLERANCE:e}: the result is wrong"
        ));
    }
    check.data = json!({"largest_error": error, "tolerance": TOLERANCE});
    check
}

/// How a process that failed ended, with its last lines.
fn failure_text(status: ExitStatus, stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    format!(
        "the two ranks ended with {}: {last}",
        failure::describe(status)
    )
}

/// Runs the ranks in a process of their own, which is killed if it does not end.
fn run_ranks(timeout: Duration) -> Result<Output> {
    let io = |error| failed("the process of the two ranks", error);
    let mut command = Command::new(std::env::current_exe().map_err(io)?);
    command
        .args([COMMAND, &timeout.as_secs().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    process::own_group_and_die_with_parent(&mut command);
    let child = command.spawn().map_err(io)?;
    let group = child.id();
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(ended) = receiver.recv_timeout(timeout + GRACE) else {
        process::signal_group(group, libc::SIGKILL).map_err(io)?;
        let message = format!(
            "the two ranks hung for {} s and were killed",
            timeout.as_secs()
        );
        return Err(Error::new(ErrorKind::Timeout, message));
    };
    ended.map_err(io)
}

/// The process of the two ranks: prints their largest relative error.
pub(crate) fn ranks(timeout: Duration) -> Result<()> {
    let error = run(timeout)?;
    print(&format!("{error}\n"))
}

/// The largest relative error of both ranks. Threads that do not come back within `timeout` are left behind.
fn run(timeout: Duration) -> Result<f64> {
    let deadline = Instant::now() + timeout;
    let (root_sender, root_receiver) = channel();
    let (result_sender, result_receiver) = channel();
    let first = result_sender.clone();
    spawn(0, move || {
        first.send(rank(0, &Root::Make(root_sender), timeout))
    })?;
    spawn(1, move || {
        result_sender.send(rank(1, &Root::Take(root_receiver), timeout))
    })?;
    let mut worst: f64 = 0.0;
    for _ in 0..2 {
        let left = deadline.saturating_duration_since(Instant::now());
        let error = result_receiver.recv_timeout(left).map_err(|_| {
            let message = format!("the two ranks are not done after {} s", timeout.as_secs());
            Error::new(ErrorKind::Timeout, message)
        })??;
        worst = worst.max(error);
    }
    Ok(worst)
}

fn spawn<T: Send + 'static>(rank: u32, body: impl FnOnce() -> T + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name(format!("rank {rank}"));
    thread
        .spawn(body)
        .map(drop)
        .map_err(|error| failed(format!("rank {rank}"), error))
}

/// How a rank gets the root info.
enum Root {
    Make(Sender<RootInfo>),
    Take(Receiver<RootInfo>),
}

/// This rank's largest relative error.
fn rank(rank: u32, root: &Root, timeout: Duration) -> Result<f64> {
    let lost = || Error::new(ErrorKind::InvalidState, "rank 0 did not come so far");
    let part = || -> Result<f64> {
        let device = Device::open(i32::try_from(rank).unwrap_or_default())?;
        let root = match root {
            Root::Make(sender) => {
                let root = RootInfo::new(&device)?;
                sender.send(root.clone()).map_err(|_| lost())?;
                root
            }
            Root::Take(receiver) => receiver.recv_timeout(timeout).map_err(|_| lost())?,
        };
        let world = World::from_root_info(device, &root, 2, rank, 1)?;
        let error = reduce(&world, timeout)?;
        world.finish(timeout)?;
        Ok(error)
    };
    part().context(|| format!("rank {rank} of 2"))
}

fn reduce(world: &World, timeout: Duration) -> Result<f64> {
    let specs: Vec<TensorSpec> = SIZES
        .iter()
        .map(|size| TensorSpec::new(format!("of {size}"), *size as u64, DType::F32))
        .collect();
    let mut reducer = GradientReducer::new(world, &specs, &Options::default())?;
    let stream = Stream::new(world.device())?;
    let gradient = |rank, size| reference::vector(TYPE, 1 + u64::from(rank), size);
    let upload = |size: &usize| -> Result<Span> {
        reference::upload(world.device(), TYPE, &gradient(world.rank(), *size))
    };
    let spans = SIZES.iter().map(upload).collect::<Result<Vec<_>>>()?;
    reducer.reduce(&spans, &stream)?;
    reducer.synchronize(&stream, timeout)?;
    let mut worst: f64 = 0.0;
    for (size, span) in SIZES.iter().zip(&spans) {
        let exact = reference::adasum(&[0, 1].map(|rank| gradient(rank, *size)));
        let values = reference::download(TYPE, span)?;
        worst = worst.max(reference::relative_error(&values, &exact));
    }
    Ok(worst)
}
