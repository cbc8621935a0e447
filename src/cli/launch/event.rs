//! Events that threads send to the main thread of a job.

use std::process::ExitStatus;

/// A pipe of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pipe {
    Out,
    Err,
}

/// Something that happened; ranks are named by their index in the job.
pub(crate) enum Event {
    /// Whole lines, each with its line break.
    Lines(usize, Pipe, Vec<u8>),
    /// A pipe of the rank has no writer any more.
    Closed(usize),
    Ended(usize, ExitStatus),
    /// A signal has come (`signals`).
    Signal,
}

/// The lines of a block without their line breaks.
pub(crate) fn each(lines: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    let ended = lines.strip_suffix(b"\n");
    ended
        .into_iter()
        .flat_map(|lines| lines.split(|&byte| byte == b'\n'))
}
