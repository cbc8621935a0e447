//! What threads tell the main thread of a job.

use std::process::ExitStatus;

/// Which pipe of a rank a line came from.
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
