//! The processes of a job as threads see them: their lines and their ends, as events.

use std::fs::File;
use std::io::{ErrorKind::Interrupted, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use crate::cli::launch::event::{Event, Pipe};
use crate::reduce::REPORT_VARIABLE;
use crate::sys::process;

/// Bytes that are read at once; a line longer than this is passed on in pieces.
const BLOCK: usize = 64 << 10;
/// A line whose end does not come for so long is passed on without it, as a question or a bar of progress.
const QUIET: Duration = Duration::from_secs(2);

/// The standard input of a process.
#[derive(Default)]
pub(crate) enum Input {
    #[default]
    Empty,
    /// That of this process.
    Ours,
    /// This, and no end before the job closes `stdin` of the [`Child`], or this process ends.
    Text(Vec<u8>),
}

/// Starts a process and the threads that follow it. `failed` is set when it has ended badly, before the event that says so.
pub(crate) fn spawn(
    command: &mut Command,
    input: Input,
    index: usize,
    sender: &SyncSender<Event>,
    failed: &Arc<AtomicBool>,
) -> std::io::Result<Child> {
    command.stdin(match input {
        Input::Empty => Stdio::null(),
        Input::Ours | Input::Text(_) => Stdio::piped(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env(REPORT_VARIABLE, "stderr");
    process::own_group_and_die_with_parent(command);
    let mut child = command.spawn()?;
    let pid = child.id();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let started = follow(stdout, Pipe::Out, index, sender)
        .and_then(|()| follow(stderr, Pipe::Err, index, sender))
        .and_then(|()| {
            let (sender, failed) = (sender.clone(), Arc::clone(failed));
            thread(move || {
                // An end that cannot be seen is not a success.
                let unknown = |_| ExitStatus::from_raw(1 << 8);
                let status = process::wait_for_end(pid).unwrap_or_else(unknown);
                failed.fetch_or(!status.success(), Ordering::SeqCst);
                let _ = sender.send(Event::Ended(index, status));
            })
        })
        .and_then(|()| write_input(&mut child, input));
    if let Err(error) = started {
        let _ = process::signal_group(pid, libc::SIGKILL);
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// Starts a thread for the input of `child`, if it has one. A process that reads no more is no fault.
fn write_input(child: &mut Child, input: Input) -> std::io::Result<()> {
    match input {
        Input::Empty => Ok(()),
        Input::Ours => {
            let Some(mut pipe) = child.stdin.take() else {
                return Ok(());
            };
            thread(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut pipe);
            })
        }
        Input::Text(text) => {
            let Some(pipe) = &child.stdin else {
                return Ok(());
            };
            let mut copy = File::from(pipe.as_fd().try_clone_to_owned()?);
            thread(move || {
                let _ = copy.write_all(&text);
            })
        }
    }
}

/// Sends the lines of a pipe as events.
fn follow(
    pipe: Option<impl Read + AsFd + Send + 'static>,
    which: Pipe,
    index: usize,
    sender: &SyncSender<Event>,
) -> std::io::Result<()> {
    let sender = sender.clone();
    thread(move || {
        if let Some(pipe) = pipe {
            pass_on(pipe, |lines| {
                sender.send(Event::Lines(index, which, lines)).is_ok()
            });
        }
        let _ = sender.send(Event::Closed(index));
    })
}

/// Hands on what comes out of a pipe, in blocks of whole lines, until its end or until `take` wants no more.
fn pass_on(mut pipe: impl Read + AsFd, mut take: impl FnMut(Vec<u8>) -> bool) {
    let mut block = vec![0; BLOCK];
    let mut held: Vec<u8> = Vec::new();
    let mut since = Instant::now(); // when the first of what is held came
    loop {
        let more_in_time = || {
            let left = QUIET.saturating_sub(since.elapsed());
            left > Duration::ZERO && process::is_readable(pipe.as_fd(), left)
        };
        let count = match held.is_empty() || more_in_time() {
            true => match pipe.read(&mut block) {
                Err(error) if error.kind() == Interrupted => continue,
                read => read.unwrap_or(0),
            },
            false => 0,
        };
        let is_over = count == 0 && held.is_empty();
        if held.is_empty() {
            since = Instant::now();
        }
        held.extend_from_slice(&block[..count]);
        let whole = held
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map(|at| at + 1);
        let rest = match whole {
            Some(whole) => {
                since = Instant::now();
                held.split_off(whole)
            }
            // Its end has come, or does not come in time, or is too far away.
            None if count == 0 || held.len() >= BLOCK => Vec::new(),
            None => continue,
        };
        let mut lines = std::mem::replace(&mut held, rest);
        if lines.last().is_some_and(|&last| last != b'\n') {
            lines.push(b'\n');
        }
        if is_over || !take(lines) {
            return;
        }
    }
}

fn thread(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().spawn(body).map(|_| ())
}
