//! The end of a process: in words, as an exit code, with its last lines.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::cli::launch::event::each;

/// Last lines that are kept of each rank.
const LINES: usize = 10;
/// Longest part of such a line that is shown.
const WIDTH: usize = 400;

/// The last lines of a rank, from both of its streams in the order they came.
#[derive(Default)]
pub(crate) struct Tail {
    lines: VecDeque<String>,
}

impl Tail {
    /// Adds lines, each with its line break, and forgets the oldest if there are too many.
    pub(crate) fn push(&mut self, lines: &[u8]) {
        let mut last: Vec<&[u8]> = each(lines).rev().take(LINES).collect();
        while let Some(line) = last.pop() {
            if self.lines.len() == LINES {
                self.lines.pop_front();
            }
            let text = String::from_utf8_lossy(&line[..line.len().min(WIDTH)]);
            self.lines.push_back(text.into_owned());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

/// "exit status 3" or "killed by signal 9 (SIGKILL)".
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal} ({})", signal_name(signal)),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// The exit code that passes `status` on, as a shell does: 128 + n for signal n.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, Some(signal)) => signal_code(signal),
        (None, None) => 1,
    }
}

/// 128 + n.
pub(crate) fn signal_code(signal: i32) -> u8 {
    u8::try_from(signal).map_or(1, |signal| signal.saturating_add(128))
}

/// The usual name of a signal that ends programs.
pub(crate) fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGCONT => "SIGCONT",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => "a signal without a usual name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_in_words_and_codes() {
        let exited = ExitStatus::from_raw(3 << 8);
        assert_eq!(
            (describe(exited), exit_code(exited)),
            ("exit status 3".into(), 3)
        );
        let killed = ExitStatus::from_raw(9);
        assert_eq!(describe(killed), "killed by signal 9 (SIGKILL)");
        assert_eq!(exit_code(killed), 137);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut tail = Tail::default();
        assert!(tail.is_empty());
        for number in 0..LINES + 3 {
            tail.push(format!("{number}\n").as_bytes());
        }
        assert_eq!(tail.lines().next(), Some("3"));
        assert_eq!(tail.lines().count(), LINES);
        let block: String = (0..100).map(|number| format!("{number}\n")).collect();
        tail.push(block.as_bytes());
        assert_eq!(tail.lines().next(), Some("90"));
        assert_eq!(tail.lines().last(), Some("99"));
    }
}
