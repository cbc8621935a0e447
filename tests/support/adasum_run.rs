//! Helpers for tests that start `adasum-run` and look at its processes.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// No wait in a test is longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test with these arguments.
pub(crate) fn adasum_run(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adasum-run"));
    command.args(arguments);
    for name in [
        "ADASUM_BACKEND",
        "ADASUM_JOB_SECRET",
        "ADASUM_JOB_SECRET_FILE",
        "ADASUM_LOG",
        "ADASUM_STATISTICS_DIR",
        "ADASUM_TRACE_DIR",
        "ASCEND_RT_VISIBLE_DEVICES",
        "HCCL_MOCK_JOB",
        "HCCL_MOCK_NET",
    ] {
        command.env_remove(name);
    }
    // SAFETY: between fork and exec it makes one call that signal handlers may make, too.
    unsafe { command.pre_exec(heed_signals) };
    command
}

/// A shell that runs the program under test with limits of its own: `limits` are commands that set them.
pub(crate) fn adasum_run_within(limits: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{limits}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_adasum-run")]);
    command.args(arguments);
    command
}

/// Limits under which no file gets longer than 512 bytes, and writing more is an error as on a full disk.
pub(crate) const FULL_DISK: &str = "trap '' XFSZ; ulimit -f 1";

/// Tests that run in the background of a script or under nohup have these signals ignored, and programs inherit that.
fn heed_signals() -> std::io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: sets no handler of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

/// A private folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("adasum-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The process numbers that ranks wrote into files named by their ranks, when all are there.
    pub(crate) fn pids(&self, ranks: std::ops::Range<u32>) -> Vec<u32> {
        let read = |rank: u32| fs::read_to_string(self.0.join(rank.to_string())).ok();
        let number = |text: String| text.strip_suffix('\n').and_then(|text| text.parse().ok());
        eventually("ranks to start", || {
            let pids = ranks.clone().map(|rank| read(rank).and_then(number));
            pids.collect::<Option<Vec<u32>>>()
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asks until there is an answer.
pub(crate) fn eventually<T>(what: &str, mut question: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = question() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs; one that has ended and waits to be reaped does not.
pub(crate) fn alive(pid: u32) -> bool {
    state(pid).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// The processes that `parent` started and that have not been reaped.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| state(*pid).is_some_and(|(_, ppid)| ppid == parent))
        .collect()
}

/// A variable in the environment that a process was started with.
pub(crate) fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let mut variables = environment
        .split('\0')
        .filter_map(|pair| pair.split_once('='));
    variables
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value.to_owned())
}

/// Waits for processes to end.
pub(crate) fn all_gone(pids: &[u32]) {
    eventually("processes to end", || {
        (!pids.iter().any(|pid| alive(*pid))).then_some(())
    });
}

pub(crate) fn send(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// State and parent of a process.
fn state(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}
