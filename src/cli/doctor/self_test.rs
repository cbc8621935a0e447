//! Two ranks, as threads of a process of their own, reduce over the backend; the result is compared with the exact one.
//!
//! Their own process, so that what was found so far is reported even if a library crashes or hangs.

use std::io::Write;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::json;

use super::report::Check;
use crate::ascend::{Buffer, Device, RootInfo, Span, Stream};
use crate::cli::failure;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::reduce::{DType, GradientReducer, Options, TensorSpec, World};
use crate::sys::process;

/// Name of the command that is the process of the two ranks.
pub(crate) const COMMAND: &str = "doctor-ranks";
/// Elements of the tensors: small, odd, and more than a unit of the kernels.
const SIZES: [usize; 3] = [3, 1001, 40_000];
/// Largest error that counts as right, relative to the norm of the exact result. The arithmetic is fp32.
const TOLERANCE: f64 = 2e-6;
/// How much longer than its own limit the process of the ranks may take to end.
const GRACE: Duration = Duration::from_secs(20);
/// How many of its last lines are shown when it fails.
const LINES: usize = 3;

/// Runs the test on devices 0 and 1 of `devices`.
pub(super) fn check(devices: u32, timeout: Duration) -> Check {
    const NAME: &str = "self-test";
    if devices < 2 {
        return Check::skipped(NAME, "it needs two devices");
    }
    let begin = Instant::now();
    let output = match apart(timeout) {
        Ok(output) => output,
        Err(error) => return Check::failed(NAME, error),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let error = said.trim().parse::<f64>().ok();
    let Some(error) = error.filter(|_| output.status.success()) else {
        return Check::failed(NAME, broken(output.status, &output.stderr));
    };
    let mut check = Check::new(NAME);
    let milliseconds = begin.elapsed().as_millis();
    check.say(format!(
        "two ranks reduced {} tensors in {milliseconds} ms; largest error {error:.1e} of the exact result's norm",
        SIZES.len()
    ));
    if error.is_nan() || error > TOLERANCE {
        check.fail(format!(
            "that is more than {TOLERANCE:e}: the result is wrong"
        ));
    }
    check.data = json!({"largest_error": error, "tolerance": TOLERANCE});
    check
}

/// What a process that failed had to say.
fn broken(status: ExitStatus, stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    format!(
        "the two ranks ended with {}: {last}",
        failure::describe(status)
    )
}

/// Runs the ranks in a process of their own, which is killed if it does not end.
fn apart(timeout: Duration) -> Result<Output> {
    let io = |error| {
        Error::new(
            ErrorKind::Io,
            format!("the process of the two ranks: {error}"),
        )
    };
    let mut command = Command::new(std::env::current_exe().map_err(io)?);
    command
        .args([COMMAND, &timeout.as_secs().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    process::own_group_and_die_with_parent(&mut command);
    let child = command.spawn().map_err(io)?;
    let group = child.id();
    let (give, take) = channel();
    std::thread::spawn(move || give.send(child.wait_with_output()));
    let Ok(ended) = take.recv_timeout(timeout + GRACE) else {
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
    writeln!(std::io::stdout(), "{error}")
        .map_err(|error| Error::new(ErrorKind::Io, format!("standard output: {error}")))
}

/// The largest relative error of both ranks. Threads that do not come back within `timeout` are left behind.
fn run(timeout: Duration) -> Result<f64> {
    let deadline = Instant::now() + timeout;
    let (give_root, take_root) = channel();
    let (give_result, take_result) = channel();
    let first = give_result.clone();
    spawn(0, move || {
        first.send(rank(0, &Root::Make(give_root), timeout))
    })?;
    spawn(1, move || {
        give_result.send(rank(1, &Root::Take(take_root), timeout))
    })?;
    let mut worst: f64 = 0.0;
    for _ in 0..2 {
        let left = deadline.saturating_duration_since(Instant::now());
        let error = take_result.recv_timeout(left).map_err(|_| {
            let message = format!("the two ranks are not done after {} s", timeout.as_secs());
            Error::new(ErrorKind::Timeout, message)
        })??;
        worst = larger(worst, error);
    }
    Ok(worst)
}

fn spawn<T: Send + 'static>(rank: u32, body: impl FnOnce() -> T + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name(format!("rank {rank}"));
    thread
        .spawn(body)
        .map(drop)
        .map_err(|error| Error::new(ErrorKind::Io, format!("rank {rank}: {error}")))
}

/// How a rank comes by what all ranks share.
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
            Root::Make(give) => {
                let root = RootInfo::new(&device)?;
                give.send(root.clone()).map_err(|_| lost())?;
                root
            }
            Root::Take(take) => take.recv_timeout(timeout).map_err(|_| lost())?,
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
    let upload = |size: &usize| -> Result<Span> {
        Ok(Buffer::from_slice(world.device(), &gradient(world.rank(), *size))?.span())
    };
    let spans = SIZES.iter().map(upload).collect::<Result<Vec<_>>>()?;
    reducer.reduce(&spans, &stream)?;
    reducer.synchronize(&stream, timeout)?;
    let mut worst: f64 = 0.0;
    for (size, span) in SIZES.iter().zip(&spans) {
        let mut values = vec![0.0_f32; *size];
        span.read(&mut values)?;
        let error = relative_error(&values, &exact(*size));
        worst = larger(worst, error);
    }
    Ok(worst)
}

/// The larger of two errors; a NaN, which `f64::max` would lose, is the largest.
fn larger(a: f64, b: f64) -> f64 {
    if b.is_nan() || b > a { b } else { a }
}

/// A gradient by formula, with an angle between those of the two ranks that is neither 0 nor a right one.
fn gradient(rank: u32, size: usize) -> Vec<f32> {
    let phase = 0.7 * f64::from(rank);
    let value = |index: usize| (0.37 * index as f64 + phase).sin() + 0.25;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "rounded to fp32 on purpose"
    )]
    let rounded = |index| value(index) as f32;
    (0..size).map(rounded).collect()
}

/// AdaSum of the two gradients: a (1 - ab / 2aa) + b (1 - ab / 2bb), in fp64.
fn exact(size: usize) -> Vec<f64> {
    let wide = |rank| -> Vec<f64> { gradient(rank, size).into_iter().map(f64::from).collect() };
    let (a, b) = (wide(0), wide(1));
    let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| x * y).sum() };
    let weight_a = 1.0 - dot(&a, &b) / (2.0 * dot(&a, &a));
    let weight_b = 1.0 - dot(&a, &b) / (2.0 * dot(&b, &b));
    let sum = |(a, b): (&f64, &f64)| weight_a * a + weight_b * b;
    a.iter().zip(&b).map(sum).collect()
}

fn relative_error(values: &[f32], exact: &[f64]) -> f64 {
    let pairs = values.iter().zip(exact);
    let error: f64 = pairs.map(|(v, e)| (f64::from(*v) - e).powi(2)).sum();
    let norm: f64 = exact.iter().map(|e| e.powi(2)).sum();
    (error / norm).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_lost() {
        assert_eq!(larger(1.0, 2.0), 2.0);
        assert_eq!(larger(2.0, 1.0), 2.0);
        assert!(larger(1.0, f64::NAN).is_nan() && larger(f64::NAN, 1.0).is_nan());
    }

    #[test]
    fn a_mean_or_a_sum_would_not_pass() {
        for size in SIZES {
            let (a, b) = (gradient(0, size), gradient(1, size));
            let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            let mean: Vec<f32> = sum.iter().map(|x| x / 2.0).collect();
            let exact = exact(size);
            assert!(relative_error(&sum, &exact) > 0.05, "{size}");
            assert!(relative_error(&mean, &exact) > 0.05, "{size}");
            #[allow(
                clippy::cast_possible_truncation,
                reason = "rounded to fp32 on purpose"
            )]
            let right: Vec<f32> = exact.iter().map(|x| *x as f32).collect();
            assert!(relative_error(&right, &exact) < TOLERANCE, "{size}");
        }
    }
}
