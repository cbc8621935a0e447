//! Where the vectors of a bucket lie, before it is known where its buffers are.

use crate::ascend::Span;
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

/// A buffer of a bucket.
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
