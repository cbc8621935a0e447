//! Signals to this process as events of the job that runs.

use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cli::io;
use crate::cli::launch::event::Event;
use crate::error::{Error, Result};
use crate::sys::process;

/// Receiver of signals: the job that runs now, or the next one.
struct Listener {
    /// Whether the thread that waits for signals runs.
    watching: bool,
    job: Option<SyncSender<Event>>,
    missed: Option<i32>,
}

static LISTENER: Mutex<Listener> = Mutex::new(Listener {
    watching: false,
    job: None,
    missed: None,
});

fn listener() -> MutexGuard<'static, Listener> {
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    fn receive(&mut self, signal: i32) {
        let sent = self.job.as_ref().map(|job| job.send(Event::Signal(signal)));
        if !matches!(sent, Some(Ok(()))) {
            self.missed = Some(signal);
        }
    }
}

/// Has the job see this signal, as if it had come to this process.
pub(crate) fn receive(signal: i32) {
    listener().receive(signal);
}

/// Keeps the signals that end a program for [`watch`], in this thread and in those it starts later. A thread that is started before
/// would take them, and they would end this process.
pub(crate) fn block() -> Result<process::Signals> {
    let mut wanted = vec![libc::SIGINT, libc::SIGTERM];
    if !process::is_ignored(libc::SIGHUP) {
        wanted.push(libc::SIGHUP);
    }
    process::Signals::block(&wanted).map_err(cannot_watch)
}

fn cannot_watch(error: std::io::Error) -> Error {
    io::failed("cannot watch signals", error)
}

/// Turns the signals that end a program into events of this job, from now on. One thread waits for them, for all jobs of this
/// process one after the other.
pub(crate) fn watch(sender: &SyncSender<Event>) -> Result<()> {
    let mut listener = listener();
    listener.job = Some(sender.clone());
    if let Some(signal) = listener.missed.take() {
        listener.receive(signal);
    }
    if listener.watching {
        return Ok(());
    }
    let signals = block()?;
    let wait = move || {
        while let Ok(signal) = signals.wait() {
            receive(signal);
        }
    };
    std::thread::Builder::new()
        .spawn(wait)
        .map_err(cannot_watch)?;
    listener.watching = true;
    Ok(())
}
