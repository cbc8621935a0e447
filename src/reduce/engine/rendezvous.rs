//! A barrier before ranks read each other's buffers, on which kernels can look back.
//!
//! A stream goes on behind a collective that failed, and what peers have would be read before it is ready. So the barrier is a
//! sum to which each rank adds 1, on a receipt: whoever has read looks whether all ranks have signed, and spoils what it
//! made of it if not.

use std::sync::Arc;

use crate::ascend::{Comm, DataType, ReduceOp, Span, Stream};
use crate::error::Result;
use crate::kernel::{Guard, OnMissing, Receipt, Tensors};
use crate::plan::Group;
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::world::World;

/// One barrier of the ranks of a communicator.
pub(in crate::reduce) struct Rendezvous {
    comm: Arc<Comm>,
    /// The ranks of the communicator, as ranks of the world.
    group: Group,
    receipt: Receipt,
    /// What this rank adds.
    one: Span,
    /// What stands on the receipt until the sum comes.
    none: Span,
}

impl Rendezvous {
    pub(super) fn new(tables: &TableAllocator<'_>, comm: Arc<Comm>, group: Group) -> Result<Self> {
        Ok(Rendezvous {
            receipt: tables.receipt()?,
            one: tables.upload(&[1.0_f32])?,
            none: tables.upload(&[Receipt::nobody_came(comm.size())])?,
            comm,
            group,
        })
    }

    /// The other ranks of the world that come to it.
    pub(super) fn peers(&self) -> Vec<u32> {
        let own = self.group.first + self.comm.rank() * self.group.stride;
        let ranks = self.group.ranks();
        ranks.filter(|&rank| rank != own).collect()
    }

    /// Enqueues that `stream` waits for all of them.
    pub(super) fn issue(&self, stream: &Stream) -> Result<()> {
        let sum = self.receipt.signed_by(self.comm.size())?;
        stream.copy(&sum, &self.none)?;
        self.comm
            .all_reduce(&self.one, &sum, DataType::F32, ReduceOp::Sum, stream)
    }

    /// Enqueues that what was read behind it, and left at `places`, elements of this type, is spoilt unless all ranks came. A
    /// collective that failed fails its stream, so this one goes on.
    pub(super) fn look_back(
        &self,
        world: &World,
        (places, dtype): (&Tensors, DataType),
        stream: &Stream,
    ) -> Result<()> {
        world.kernels().guard(
            stream,
            &Guard {
                receipt: &self.receipt,
                places,
                dtype,
                reason: world.reason(),
                on_missing: OnMissing::Continue,
            },
        )
    }
}
