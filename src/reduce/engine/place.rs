//! Where the vectors of a bucket lie, before it is known where its buffers are.

use std::sync::Arc;

use crate::ascend::Span;
use crate::error::{Error, Result};

/// Bytes of an fp32 word of records and coefficients.
pub(in crate::reduce) const WORD: usize = 4;

/// The buffers of a bucket.
pub(in crate::reduce) struct Memory {
    /// All tensors: a buffer of the reducer, or the caller's own.
    pub(in crate::reduce) fused: Span,
    /// What other ranks sent.
    pub(super) scratch: Span,
    /// The fused buffers of other ranks, by rank, where this rank reads them.
    pub(super) peers: Arc<[Option<Span>]>,
}

impl Memory {
    /// Where the buffers lie.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        let peers = self.peers.iter().flatten();
        [&self.fused, &self.scratch]
            .into_iter()
            .chain(peers)
            .map(Span::address)
    }
}

/// A buffer of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Fused,
    Scratch,
    /// The fused buffer of this rank of the world.
    Peer(u32),
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
        self.base
            .of(memory)?
            .slice(self.start..self.start + self.len)
    }

    pub(super) fn address(self, memory: &Memory) -> Result<u64> {
        Ok(self.base.of(memory)?.address() + self.start as u64)
    }
}

impl Base {
    pub(super) fn of(self, memory: &Memory) -> Result<&Span> {
        match self {
            Base::Fused => Ok(&memory.fused),
            Base::Scratch => Ok(&memory.scratch),
            Base::Peer(rank) => {
                let peer = memory.peers.get(rank as usize).and_then(Option::as_ref);
                peer.ok_or_else(|| {
                    Error::invalid(format!("the buffer of rank {rank} is not shared"))
                })
            }
        }
    }
}
