//! Lines and progress of a running job, for the user and for the logs.

use std::io::ErrorKind::TimedOut;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::cli::io::{notice, write_unless};
use crate::cli::launch::event::{Pipe, each};
use crate::cli::launch::job::Observer;
use crate::cli::launch::logs::Logs;
use crate::cli::text::count;
use crate::reduce::Progress;

/// Parts of the whole after which progress is shown without a terminal.
const PARTS: u64 = 10;

/// Lines with a prefix, each written whole, unless they are to go to the logs only.
pub(crate) struct Output {
    pub(crate) silent: bool,
    prefix: Prefix,
    pub(crate) logs: Option<Logs>,
    bar: ProgressBar,
    /// Ranks that were started, and those that have ended.
    ranks: usize,
    ended: usize,
    /// The rank whose progress is shown: the first that reports any.
    reporter: Option<u32>,
    start: Instant,
    /// Parts that were shown.
    shown: u64,
    /// Why the last attempt did not succeed.
    pub(crate) cause: Option<String>,
}

impl Output {
    pub(crate) fn new(silent: bool, prefix: Prefix, logs: Option<Logs>) -> Output {
        // Draws on standard error, and only if that is a terminal.
        let bar = ProgressBar::new_spinner();
        style(&bar, "{spinner} {msg}, {elapsed}");
        Output {
            silent,
            prefix,
            logs,
            bar,
            ranks: 0,
            ended: 0,
            reporter: None,
            start: Instant::now(),
            shown: 0,
            cause: None,
        }
    }

    /// A job of so many ranks starts, maybe again.
    pub(crate) fn start(&mut self, ranks: usize) {
        (self.ranks, self.ended, self.reporter, self.shown) = (ranks, 0, None, 0);
        self.cause = None;
        self.start = Instant::now();
        self.bar.set_message(self.alive());
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(250));
        }
    }

    /// The job is over.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn alive(&self) -> String {
        match self.ended {
            0 => count(self.ranks as u64, "rank"),
            ended => format!(
                "{} of {}",
                self.ranks - ended,
                count(self.ranks as u64, "rank")
            ),
        }
    }

    /// A line for those who have no terminal.
    fn show(&mut self, progress: &Progress) {
        let parts = progress.done.saturating_mul(PARTS) / progress.total.max(1);
        if parts <= self.shown || progress.done == 0 {
            return;
        }
        self.shown = parts;
        let (done, total, unit) = (progress.done, progress.total, &progress.unit);
        let left =
            total.saturating_sub(done) as f64 / done as f64 * self.start.elapsed().as_secs_f64();
        let bytes = match progress.bytes {
            0 => String::new(),
            bytes => format!(", {} reduced", HumanBytes(bytes)),
        };
        notice(&format!("{done}/{total} {unit}{bytes}, {left:.0} s left"));
    }
}

/// Writes lines to the same stream of this process. A closed standard error is no fault; one that nobody reads ends the job as
/// standard output does.
pub(crate) fn write_lines(
    pipe: Pipe,
    lines: &[u8],
    give_up: &dyn Fn(Duration) -> bool,
) -> std::io::Result<()> {
    match pipe {
        Pipe::Out => write_unless(std::io::stdout(), lines, give_up),
        Pipe::Err => match write_unless(std::io::stderr(), lines, give_up) {
            Err(error) if error.kind() == TimedOut => Err(error),
            _ => Ok(()),
        },
    }
}

/// What stands before each line of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prefix {
    /// Nothing
    None,
    /// The rank: [r2]
    Rank,
    /// The rank and the seconds since the ranks were started: [r2 12.345]
    Time,
}

impl Observer for Output {
    fn line(&mut self, rank: u32, pipe: Pipe, line: &[u8]) -> std::io::Result<()> {
        self.lines(rank, pipe, &[line, b"\n"].concat(), &|_| false)
    }

    fn lines(
        &mut self,
        rank: u32,
        pipe: Pipe,
        lines: &[u8],
        give_up: &dyn Fn(Duration) -> bool,
    ) -> std::io::Result<()> {
        if self.silent {
            return Ok(());
        }
        let prefix = match self.prefix {
            Prefix::None => String::new(),
            Prefix::Rank => format!("[r{rank}] "),
            Prefix::Time => format!("[r{rank} {:.3}] ", self.start.elapsed().as_secs_f64()),
        };
        let mut whole = Vec::with_capacity(2 * lines.len());
        for line in each(lines) {
            whole.extend_from_slice(prefix.as_bytes());
            whole.extend_from_slice(line);
            whole.push(b'\n');
        }
        self.bar.suspend(|| write_lines(pipe, &whole, give_up))
    }

    fn keep(&mut self, rank: u32, lines: &[u8]) {
        if let Some(logs) = &mut self.logs
            && let Err(error) = logs.lines(rank, lines)
        {
            self.notice(&error.to_string());
        }
    }

    fn notice(&mut self, text: &str) {
        self.bar.suspend(|| notice(text));
    }

    fn cause(&mut self, text: &str) {
        self.cause = Some(text.to_owned());
    }

    fn ended(&mut self, _rank: u32) {
        self.ended += 1;
        self.bar.set_message(self.alive());
    }

    fn progress(&mut self, progress: &Progress) {
        if *self.reporter.get_or_insert(progress.rank) != progress.rank || progress.total == 0 {
            return;
        }
        if self.bar.is_hidden() {
            return self.show(progress);
        }
        if self.bar.length() != Some(progress.total) {
            style(
                &self.bar,
                "{spinner} {msg} {wide_bar} {pos}/{len}, {eta} left",
            );
            self.bar.set_length(progress.total);
        }
        let bytes = match progress.bytes {
            0 => String::new(),
            bytes => format!(", {} reduced", HumanBytes(bytes)),
        };
        self.bar
            .set_message(format!("{}{bytes}, {}", self.alive(), progress.unit));
        self.bar.set_position(progress.done);
    }
}

fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
