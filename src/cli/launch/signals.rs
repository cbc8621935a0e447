//! Signals to this process, for the job that runs or the next one.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cli::io;
use crate::cli::launch::event::Event;
use crate::error::{Error, Result};
use crate::sys::process;

/// The last signal that nobody has taken yet, or 0.
static CAME: AtomicI32 = AtomicI32::new(0);

/// Whom to wake when a signal comes.
struct Listener {
    /// Whether the thread that waits for signals runs.
    watching: bool,
    job: Option<SyncSender<Event>>,
}

static LISTENER: Mutex<Listener> = Mutex::new(Listener {
    watching: false,
    job: None,
});

fn listener() -> MutexGuard<'static, Listener> {
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the job see this signal, as if it had come to this process.
pub(crate) fn receive(signal: i32) {
    CAME.store(signal, Ordering::SeqCst);
    if let Some(job) = &listener().job {
        // Where the queue is full nobody has to be woken.
        let _ = job.try_send(Event::Signal);
    }
}

/// Whether a signal has come that nobody has taken.
pub(crate) fn came() -> bool {
    CAME.load(Ordering::SeqCst) != 0
}

/// The signal that has come since the last call, also before the job began.
pub(crate) fn take() -> Option<i32> {
    match CAME.swap(0, Ordering::SeqCst) {
        0 => None,
        signal => Some(signal),
    }
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

/// Wakes this job for the signals that end a program, from now on: it finds them by [`take`]. One thread waits for them, for all jobs
/// of this process one after the other.
pub(crate) fn watch(sender: &SyncSender<Event>) -> Result<()> {
    let mut listener = listener();
    listener.job = Some(sender.clone());
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
