//! The streams that a reduction is spread over, and what keeps a failure on one of them from being missed.
//!
//! Payload is exchanged on the caller's stream. Kernels and scalars have a stream each, unless there is nothing to overlap: then
//! all work is on the caller's.
//!
//! A stream goes on behind work that failed, its own and that of others whose event it waits for, and would send and
//! return what an earlier step left. So every block of a kernel signs the receipt of its bucket when it is done, and before
//! payload leaves, and before the caller's stream takes results over, the signatures are compared with the blocks launched:
//! if one is missing, what would be sent or returned is spoilt with NaNs and the stream fails, unless it carries all of the work
//! and its own failures say more. What collectives of scalars
//! bring is filled with [`MISSING_BYTE`] before: kernels that find such records sign that they missed them.
//!
//! [`MISSING_BYTE`]: crate::kernel::layout::MISSING_BYTE

use crate::ascend::Stream;

/// Which stream a stage runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reduce) enum StreamRole {
    /// The caller's stream.
    Payload,
    /// The world's stream of kernels.
    Kernels,
    /// The world's stream of scalar collectives.
    Scalars,
}

/// The streams of one call.
#[derive(Clone, Copy)]
pub(crate) struct CallStreams<'a> {
    pub(in crate::reduce) payload: &'a Stream,
    pub(in crate::reduce) kernels: &'a Stream,
    pub(in crate::reduce) scalars: &'a Stream,
}

impl<'a> CallStreams<'a> {
    /// All work on the caller's stream.
    pub(in crate::reduce) fn one(stream: &'a Stream) -> Self {
        CallStreams {
            payload: stream,
            kernels: stream,
            scalars: stream,
        }
    }

    /// Whether the work of both is on one stream.
    pub(in crate::reduce) fn are_same(&self, a: StreamRole, b: StreamRole) -> bool {
        std::ptr::eq(self.get(a), self.get(b))
    }

    pub(in crate::reduce) fn get(&self, role: StreamRole) -> &'a Stream {
        match role {
            StreamRole::Payload => self.payload,
            StreamRole::Kernels => self.kernels,
            StreamRole::Scalars => self.scalars,
        }
    }
}
