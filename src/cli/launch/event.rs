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
    Line(usize, Pipe, Vec<u8>),
    /// A pipe of the rank has no writer any more.
    Closed(usize),
    Ended(usize, ExitStatus),
    Signal(i32),
}
