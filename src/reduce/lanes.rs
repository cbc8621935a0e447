//! The streams that a reduction is spread over, and what keeps a failure on one of them from being missed.
//!
//! Payload is exchanged on the caller's stream, so that its failures show there. Kernels and scalars have a stream each.
//! A stream that waits for an event goes on also if the work before that event failed, and would send and return what an
//! earlier step left. So the last work of an internal stream zeroes a token in device memory, and the caller's stream
//! checks it, before it goes on, with a kernel that fails the stream unless the token is zero (and sets it again).
//!
//! Where there is nothing to overlap, all work is on the caller's stream: no events between streams, and no tokens.

use crate::ascend::{Buffer, Device, Span, Stream};
use crate::error::Result;
use crate::kernel::Kernels;

/// Bytes of one token: a line that no other stream's writes touch.
const TOKEN: usize = 64;

/// Which stream a stage runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// The caller's stream.
    Payload,
    /// The world's stream of kernels.
    Kernels,
    /// The world's stream of scalar collectives.
    Scalars,
}

/// The streams of one call.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<'a> {
    pub(super) payload: &'a Stream,
    pub(super) kernels: &'a Stream,
    pub(super) scalars: &'a Stream,
}

impl<'a> Lanes<'a> {
    /// All work on the caller's stream.
    pub(super) fn one(stream: &'a Stream) -> Self {
        Lanes {
            payload: stream,
            kernels: stream,
            scalars: stream,
        }
    }

    /// Whether the work of `lane` is on the caller's stream.
    pub(super) fn is_callers(&self, lane: Lane) -> bool {
        std::ptr::eq(self.get(lane), self.payload)
    }

    pub(super) fn get(&self, lane: Lane) -> &'a Stream {
        match lane {
            Lane::Payload => self.payload,
            Lane::Kernels => self.kernels,
            Lane::Scalars => self.scalars,
        }
    }
}

/// The tokens of one bucket: that of kernels, then that of scalars. Set, unless a check is due.
pub(super) struct Tokens(Span);

impl Tokens {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let words = [1_u32; 2 * TOKEN / size_of::<u32>()];
        Ok(Tokens(Buffer::from_slice(device, &words)?.span()))
    }

    /// Enqueues that the work of `lane` so far is done.
    pub(super) fn clear(&self, lane: Lane, lanes: &Lanes<'_>) -> Result<()> {
        let token = match lane {
            _ if lanes.is_callers(lane) => return Ok(()),
            Lane::Payload => return Ok(()),
            Lane::Kernels => self.0.slice(0..TOKEN)?,
            Lane::Scalars => self.0.slice(TOKEN..2 * TOKEN)?,
        };
        lanes.get(lane).zero(&token)
    }

    /// Enqueues on the caller's stream that it fails unless the work of the internal streams is done.
    pub(super) fn check(&self, kernels: &Kernels, scalars: bool, lanes: &Lanes<'_>) -> Result<()> {
        let end = if scalars { 2 * TOKEN } else { TOKEN };
        kernels.guard(lanes.payload, &self.0.slice(0..end)?)
    }
}
