//! The processes of a job as threads see them: their lines and their ends, as events.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;

use crate::cli::launch::event::{Event, Pipe};
use crate::reduce::REPORT_VARIABLE;
use crate::sys::process;

/// A line longer than this is passed on in pieces.
const LINE: u64 = 64 << 10;

/// Starts a process and the threads that follow it.
pub(crate) fn spawn(
    command: &mut Command,
    index: usize,
    sender: &SyncSender<Event>,
) -> std::io::Result<Child> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.env(REPORT_VARIABLE, "stderr");
    process::own_group_and_die_with_parent(command);
    let mut child = command.spawn()?;
    let pid = child.id();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let started = follow(stdout, Pipe::Out, index, sender)
        .and_then(|()| follow(stderr, Pipe::Err, index, sender))
        .and_then(|()| {
            let sender = sender.clone();
            thread(move || {
                // An end that cannot be seen is not a success.
                let unknown = |_| ExitStatus::from_raw(1 << 8);
                let status = process::wait_for_end(pid).unwrap_or_else(unknown);
                let _ = sender.send(Event::Ended(index, status));
            })
        });
    if let Err(error) = started {
        let _ = process::signal_group(pid, libc::SIGKILL);
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// Sends the lines of a pipe as events.
fn follow(
    pipe: Option<impl Read + Send + 'static>,
    which: Pipe,
    index: usize,
    sender: &SyncSender<Event>,
) -> std::io::Result<()> {
    let sender = sender.clone();
    thread(move || {
        let mut reader = pipe.map(BufReader::new);
        while let Some(line) = reader.as_mut().and_then(next_line) {
            if sender.send(Event::Line(index, which, line)).is_err() {
                return;
            }
        }
        let _ = sender.send(Event::Closed(index));
    })
}

/// The next line without its line break, or the part of it that fits the limit.
fn next_line(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    match reader.take(LINE).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            Some(line)
        }
    }
}

fn thread(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().spawn(body).map(|_| ())
}
