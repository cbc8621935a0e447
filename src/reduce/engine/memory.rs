//! Where the vectors of a bucket lie, before it is known where its buffers are.

use crate::ascend::{DataType, Span, Transfer};
use crate::error::Result;

/// Bytes of an fp32 word of records and coefficients.
pub(in crate::reduce) const WORD: usize = 4;

/// The buffers of a bucket.
pub(in crate::reduce) struct Memory {
    /// All tensors: a buffer of the reducer, or the caller's own.
    pub(in crate::reduce) fused: Span,
    /// What other ranks sent.
    pub(super) scratch: Span,
}

/// One of the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Fused,
    Scratch,
}

/// A part of one of the buffers, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reduce) struct Place {
    pub(super) base: Base,
    pub(in crate::reduce) start: usize,
    pub(in crate::reduce) len: usize,
}

impl Place {
    /// `len` bytes of this place, from its byte `start` on.
    pub(in crate::reduce) fn part(self, start: usize, len: usize) -> Place {
        Place {
            start: self.start + start,
            len,
            ..self
        }
    }

    pub(in crate::reduce) fn span(self, memory: &Memory) -> Result<Span> {
        self.of(memory).slice(self.start..self.start + self.len)
    }

    pub(super) fn address(self, memory: &Memory) -> u64 {
        self.of(memory).address() + self.start as u64
    }

    fn of(self, memory: &Memory) -> &Span {
        match self.base {
            Base::Fused => &memory.fused,
            Base::Scratch => &memory.scratch,
        }
    }
}

/// A send or a receive, before it is known where the buffers are.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedTransfer {
    /// Rank of the world.
    pub(in crate::reduce) peer: u32,
    pub(in crate::reduce) send: bool,
    pub(in crate::reduce) place: Place,
}

impl PlacedTransfer {
    /// Where it is in `memory`, for a communicator whose rank 0 is rank `first` of the world.
    pub(super) fn locate(self, first: u32, memory: &Memory, dtype: DataType) -> Result<Transfer> {
        let (peer, span) = (self.peer - first, self.place.span(memory)?);
        Ok(match self.send {
            true => Transfer::Send { peer, span, dtype },
            false => Transfer::Recv { peer, span, dtype },
        })
    }
}
