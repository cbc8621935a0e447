//! A process that outlives a launcher that is killed, and ends what it started.
//!
//! The kernel kills each rank with the launcher, but not what a rank started itself. The reaper reads the ranks'
//! process groups from a pipe; when the pipe ends before the launcher has said that all is done, it kills them, and whatever else
//! carries the mark of the job in its environment.

use std::io::{BufRead, Result, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::sys::process;

/// The hidden subcommand that is the reaper.
pub(crate) const COMMAND: &str = "reaper";
/// Set for all processes of a job, to a value of its own.
pub(crate) const MARK: &str = "ADASUM_LAUNCH_ID";
/// Last line from the launcher.
const DONE: &str = "done";

/// The launcher's end of the pipe.
pub(crate) struct Reaper {
    child: Child,
    pipe: ChildStdin,
}

impl Reaper {
    /// Starts this program again as the reaper of the job whose [`MARK`] is `job`.
    pub(crate) fn start(job: &str) -> Result<Reaper> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([COMMAND, job])
            // A launcher that has started this one would end it with its own job.
            .env_remove(MARK)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Out of reach of ^C, which is the launcher's to handle.
            .process_group(0)
            .spawn()?;
        match child.stdin.take() {
            Some(pipe) => Ok(Reaper { child, pipe }),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Has the group that `leader` leads killed if the launcher is.
    pub(crate) fn watch(&mut self, leader: u32) -> Result<()> {
        self.pipe.write_all(format!("{leader}\n").as_bytes())
    }

    /// Ends the reaper: nothing is left to kill.
    pub(crate) fn dismiss(mut self) {
        let sent = self.pipe.write_all(format!("{DONE}\n").as_bytes());
        drop(self.pipe);
        if sent.is_ok() {
            let _ = self.child.wait();
        }
    }
}

/// The process of the reaper.
pub(crate) fn run(job: &str) {
    let mut leaders: Vec<u32> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        match line {
            Ok(line) if line == DONE => return,
            Ok(line) => leaders.extend(line.parse::<u32>()),
            Err(_) => break,
        }
    }
    for leader in leaders {
        // One that is gone needs nothing.
        let _ = process::signal_group(leader, libc::SIGKILL);
    }
    process::kill_started_with(MARK, job);
}
