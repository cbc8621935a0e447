//! The lines of a rank's file.

use serde::{Deserialize, Serialize};

use crate::reduce::world::watch::Phase;

/// A line of a rank's file. The first is a `World`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trace", rename_all = "snake_case")]
pub enum TraceLine {
    /// What the file is about: one file for each world that a process joins.
    World {
        /// The rank that writes.
        rank: u32,
        /// Ranks of the world.
        size: u32,
        /// How many worlds the process had joined before.
        number: u64,
    },
    /// Something that took time. One that is written as begun is written again when it has ended.
    Span(TraceSpan),
    /// A step of which nothing, or not all, is written: the host was too far ahead of the device.
    LeftOut {
        /// Its number.
        step: u64,
    },
}

/// A time from begin to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSpan {
    /// What did it.
    pub track: Track,
    /// `reduction`, `round 0: products`, `barrier`.
    pub name: String,
    /// Begin, in nanoseconds of Unix time.
    pub start_ns: u64,
    /// Nanoseconds that it took; `None` if it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<u64>,
    /// Of a stage: when the host had enqueued it, in nanoseconds of Unix time. The device cannot have begun it before it was
    /// enqueued, even where `start_ns` is earlier: the stream had come there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub enqueued_ns: u64,
    /// By so much the times of the device, all alike, may be early or late on the clock of the host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error_ns: u64,
    /// Number of the step, as in messages.
    pub step: u64,
    /// Of a stage: its bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<usize>,
    /// Of a stage: its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Ranks that it exchanges data with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<u32>,
    /// Bytes that this rank sends and receives in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Of a stage: what all ranks that take part in it have alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<StageId>,
}

/// What a stage is the same by on all ranks that it joins.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StageId {
    /// Name of the world's communicator.
    pub world: String,
    /// Number of the call of that world.
    pub call: u64,
    /// Position in the order of the step.
    pub position: usize,
}

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Track {
    /// A whole step on the device.
    Step,
    /// Stages on the caller's stream.
    Payload,
    /// Stages on the world's stream of kernels.
    Kernels,
    /// Stages on the world's stream of scalars.
    Scalars,
    /// A call of this library's, by the clock of the host.
    Host,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
