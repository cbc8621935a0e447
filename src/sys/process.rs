//! The few process calls that the standard library lacks, each behind a safe function.
//!
//! Owns no state. Must not know who uses it or why.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Makes the child of `command` the leader of its own process group, without blocked signals, and has the kernel kill
/// it when the **thread** that starts it ends, however that comes about. Start children from a thread that outlives them.
pub fn own_group_and_die_with_parent(command: &mut Command) {
    command.process_group(0);
    let parent = std::process::id();
    let none = empty_set();
    let before_exec = move || {
        // The mask is inherited, and what is waited for here would never reach the child.
        // SAFETY: pthread_sigmask reads one valid sigset_t; a null old set is allowed.
        let code = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) };
        if code != 0 {
            return Err(Error::from_raw_os_error(code));
        }
        let signal = libc::c_ulong::from(libc::SIGKILL.unsigned_abs());
        // SAFETY: prctl(PR_SET_PDEATHSIG) takes one integer and touches no memory of ours.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } != 0 {
            return Err(Error::last_os_error());
        }
        // The parent may have died before the call above, and then nobody would send the signal.
        if std::os::unix::process::parent_id() != parent {
            return Err(Error::from_raw_os_error(libc::ECANCELED));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(before_exec) };
}

/// Waits until process `pid`, a child of this process, has ended and tells how. It is left to be reaped, so that
/// its number and that of its group stay taken.
///
/// # Errors
/// If `pid` is not an unreaped child.
pub fn wait_for_end(pid: u32) -> Result<ExitStatus> {
    loop {
        // SAFETY: siginfo_t is plain data, for which all zeros is a value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: waitid writes one siginfo_t to the address of a live local.
        let status = unsafe { libc::waitid(libc::P_PID, pid, &mut info, options) };
        if status == 0 {
            // SAFETY: waitid has filled the structure in for a child that ended, which sets this field.
            let value = unsafe { info.si_status() };
            let exited = info.si_code == libc::CLD_EXITED;
            return Ok(ExitStatus::from_raw(if exited {
                (value & 0xff) << 8
            } else {
                value
            }));
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Sends `signal` to every process of the group that `leader` leads. A group that is gone is no error.
///
/// # Errors
/// If the signal number is wrong or no process of the group may be signalled.
pub fn signal_group(leader: u32, signal: i32) -> Result<()> {
    let group = match i32::try_from(leader) {
        // 0 and 1 mean "my own group" and "everything" to kill(2).
        Ok(group) if group > 1 => group,
        _ => return Err(Error::from_raw_os_error(libc::EINVAL)),
    };
    // SAFETY: kill takes two integers and touches no memory of ours.
    if unsafe { libc::kill(-group, signal) } == 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}

/// Whether there is something to read, the end or a fault, within `limit`.
pub fn is_readable(file: BorrowedFd<'_>, limit: Duration) -> bool {
    has(file, libc::POLLIN, limit)
}

/// Whether something can be written, or a fault is known, within `limit`. A pipe then takes [`PIPE_BUF`](libc::PIPE_BUF) bytes at once.
pub fn is_writable(file: BorrowedFd<'_>, limit: Duration) -> bool {
    has(file, libc::POLLOUT, limit)
}

fn has(file: BorrowedFd<'_>, events: libc::c_short, limit: Duration) -> bool {
    let mut asked = libc::pollfd {
        fd: file.as_raw_fd(),
        events,
        revents: 0,
    };
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: poll reads and writes one pollfd, a live local, whose descriptor is borrowed.
    unsafe { libc::poll(&mut asked, 1, limit) != 0 }
}

/// What this process has used so far, all its threads together.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Time on a core, in the program and in the system.
    pub cpu: Duration,
    /// How often a thread of it left its core, to wait or for another thread.
    pub switches: u64,
}

/// What this process has used so far.
///
/// # Errors
/// If the system does not tell.
pub fn usage() -> Result<Usage> {
    // SAFETY: rusage is plain data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage writes one rusage to a live local.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0 {
        return Err(Error::last_os_error());
    }
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    let time = |time: libc::timeval| {
        Duration::from_secs(count(time.tv_sec)) + Duration::from_micros(count(time.tv_usec))
    };
    Ok(Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        switches: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
    })
}

/// The cores that this process may run on.
///
/// # Errors
/// If the system does not tell.
pub fn cores() -> Result<Vec<usize>> {
    // SAFETY: cpu_set_t is plain data, for which all zeros is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let bytes = std::mem::size_of_val(&set);
    // SAFETY: sched_getaffinity writes at most `bytes` to the address of a live local.
    if unsafe { libc::sched_getaffinity(0, bytes, &mut set) } != 0 {
        return Err(Error::last_os_error());
    }
    let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: CPU_ISSET reads one bit of the set, below its size.
    let has = |core: &usize| unsafe { libc::CPU_ISSET(*core, &set) };
    Ok((0..most).filter(has).collect())
}

/// Has the child of `command`, and what it starts, run on `cores` only: some of [`cores`].
pub fn run_on(command: &mut Command, cores: &[usize]) {
    // SAFETY: cpu_set_t is plain data, for which all zeros is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &core in cores {
        // SAFETY: CPU_SET writes one bit of the set, and nothing where there is none for that core.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    let before_exec = move || {
        // SAFETY: sched_setaffinity reads one valid cpu_set_t.
        match unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes one system call: it neither allocates nor locks.
    unsafe { command.pre_exec(before_exec) };
}

/// Whether process `pid` is stopped, by a signal or a debugger; false where the system does not tell.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name stands in parentheses and may hold any character; the state follows.
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't'))
}

/// Kills every process of this user that was started with the environment variable `name` set to `value`, and what those
/// start meanwhile: also what has left its group or its session. This process is spared.
pub fn kill_started_with(name: &str, value: &str) {
    const ROUNDS: usize = 50;
    const PAUSE: Duration = Duration::from_millis(20);
    let entry = format!("{name}={value}");
    for _ in 0..ROUNDS {
        let found: Vec<i32> = running().filter(|&pid| has_entry(pid, &entry)).collect();
        if found.is_empty() {
            return;
        }
        for pid in found {
            // SAFETY: kill takes two integers and touches no memory of ours.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// All processes but this one.
fn running() -> impl Iterator<Item = i32> {
    let own = std::process::id().cast_signed();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(move |&pid: &i32| pid != own && pid > 1)
}

/// Whether a process began with this entry in its environment. One that has ended has none.
fn has_entry(pid: i32, entry: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut entries = environment.split(|&byte| byte == 0);
    entries.any(|found| found == entry.as_bytes())
}

/// Signals that no longer interrupt this process, but are waited for.
pub struct Signals {
    set: libc::sigset_t,
}

impl Signals {
    /// Blocks `signals` in this thread and in those it starts later. Call it before any other thread exists.
    ///
    /// # Errors
    /// If a signal number is wrong.
    pub fn block(signals: &[i32]) -> Result<Signals> {
        let mut set = empty_set();
        for signal in signals {
            // SAFETY: sigaddset changes one sigset_t that was made by sigemptyset.
            if unsafe { libc::sigaddset(&mut set, *signal) } != 0 {
                return Err(Error::last_os_error());
            }
        }
        // SAFETY: pthread_sigmask reads one valid sigset_t; a null old set is allowed.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } {
            0 => Ok(Signals { set }),
            code => Err(Error::from_raw_os_error(code)),
        }
    }

    /// Waits for one of the signals and returns its number.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn wait(&self) -> Result<i32> {
        let mut signal = 0;
        // SAFETY: sigwait reads a valid sigset_t and writes one int to the address of a live local.
        match unsafe { libc::sigwait(&self.set, &mut signal) } {
            0 => Ok(signal),
            code => Err(Error::from_raw_os_error(code)),
        }
    }
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, for which all zeros is a value.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: sigemptyset writes one sigset_t to the address of a live local.
    unsafe { libc::sigemptyset(&mut set) };
    set
}

/// The user by whose rights this process opens files.
pub fn effective_user() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether this process was started with `signal` ignored, as `nohup` does for SIGHUP.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: sigaction is plain data, for which all zeros is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with a null new action, sigaction only writes the present one to the address of a live local.
    let status = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Has ended children kept until they are waited for, even if this process was started with SIGCHLD ignored.
pub fn keep_ended_children() {
    // SAFETY: signal with SIG_DFL installs no code of ours; SIGCHLD is a valid signal, so it cannot fail.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}
