//! A barrier before ranks read each other's buffers, on which kernels can look back.
//!
//! A stream goes on behind a collective that failed, and what peers have would be read before it is ready. So the barrier is a
//! sum to which each rank adds 1, on a receipt: whoever has read looks whether all ranks have signed, and spoils what it
//! made of it if not.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::ascend::{Comm, DataType, ReduceOp, Span, Stream};
use crate::error::Result;
use crate::kernel::{Guard, OnMissing, Receipt, Tensors};
use crate::plan::Group;
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::world::World;

/// The barriers that all buckets have in common where each has a buffer of its own: one behind which the gradients of all of
/// them can be read, and one behind which all results are there.
#[derive(Default)]
pub(super) struct CommonBarriers {
    first: OnceCell<Arc<Rendezvous>>,
    last: OnceCell<Arc<Rendezvous>>,
}

/// Which barrier it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// Before anything is read.
    First,
    /// In the midst.
    Between,
    /// Before results are taken.
    Last,
}

impl CommonBarriers {
    /// The barrier of all buckets that stands there, if it is one of these; made by `make` for the first of them, whose ranks meet at
    /// it for all. Whether this is the one.
    pub(super) fn at(
        &self,
        stand: Stand,
        make: impl FnOnce() -> Result<Arc<Rendezvous>>,
    ) -> Result<(Arc<Rendezvous>, bool)> {
        let common = match stand {
            Stand::First => &self.first,
            Stand::Last => &self.last,
            Stand::Between => return Ok((make()?, true)),
        };
        if let Some(barrier) = common.get() {
            return Ok((Arc::clone(barrier), false));
        }
        let barrier = make()?;
        Ok((Arc::clone(common.get_or_init(|| barrier)), true))
    }
}

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
