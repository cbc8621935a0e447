//! The stages of steps in which ranks read each other's buffers.

use std::sync::Arc;

use crate::error::Result;
use crate::plan::{Exchange, Group, Plan, Range, VectorPart};
use crate::reduce::engine::bucket::{Entry, bytes, data_type};
use crate::reduce::engine::build::StageBuilder;
use crate::reduce::engine::place::{Base, Place};
use crate::reduce::engine::rendezvous::Rendezvous;
use crate::reduce::engine::stage::{CopyTask, Places, Read, ReadTask, Stage, Task};
use crate::transfer::{Direction, Transfer};

impl StageBuilder<'_> {
    /// The copies that read each part of the result where it lies: with other ranks what `exchange` brings, here the rest.
    pub(super) fn parts(
        &mut self,
        members: &[usize],
        exchange: &Exchange,
        factor: f32,
    ) -> Result<Vec<CopyTask>> {
        let mut received: Vec<(Range, Base)> = exchange
            .receives()
            .map(|receive| (receive.part.range, Base::Peer(self.rank_of(receive.peer))))
            .collect();
        received.sort_unstable_by_key(|(range, _)| range.start());
        let mut parts = Vec::new();
        let mut at = 0;
        for (range, peer) in received {
            parts.push((Range::new(at, range.start()), Base::Fused));
            at = range.end();
            parts.push((range, peer));
        }
        parts.push((Range::new(at, self.layout.elements()), Base::Fused));
        parts.retain(|(range, _)| !range.is_empty());
        let nowhere = Places {
            entries: 0..0,
            dtype: data_type(self.dtype),
        };
        parts
            .into_iter()
            .map(|(range, buffer)| {
                let part = self.copy(members, range, factor, nowhere.clone())?;
                Ok(CopyTask { buffer, ..part })
            })
            .collect()
    }

    /// Behind all that reads other ranks' buffers: nobody writes to its own before.
    pub(super) fn release(&mut self, stages: &mut Vec<Stage>, plan: &Plan) -> Result<()> {
        let Some(group) = plan.release else {
            return Ok(());
        };
        let barrier = self.rendezvous(Some(group))?;
        let task = self.read(&Exchange::new(plan.rank, []), barrier)?;
        self.push(stages, "release", Task::Read(task))
    }

    /// Lets `task` copy what it reads to where it lies in the fused buffer.
    pub(super) fn copy_in_place(&mut self, task: &mut ReadTask, exchange: &Exchange) -> Result<()> {
        task.copies = self.copies(exchange, |part| self.part(part.range))?;
        task.places = Some(self.awaited(&task.copies, exchange)?);
        Ok(())
    }

    /// The barrier of `exchange`, and nothing that is copied behind it.
    pub(super) fn read(&self, exchange: &Exchange, barrier: Arc<Rendezvous>) -> Result<ReadTask> {
        let transfers = exchange.transfers.iter();
        let elements = transfers.map(|transfer| transfer.part.range.len()).sum();
        Ok(ReadTask {
            barrier,
            copies: Vec::new(),
            places: None,
            direct: false,
            bytes: bytes(elements, self.size)? as u64,
        })
    }

    pub(super) fn copies(
        &self,
        exchange: &Exchange,
        place: impl Fn(&VectorPart) -> Result<Place>,
    ) -> Result<Vec<Transfer<Read>>> {
        let copy = |transfer: &Transfer<VectorPart>| {
            let own = self.part(transfer.part.range)?;
            let peer = self.rank_of(transfer.peer);
            let read = match transfer.direction {
                Direction::Send => Read { from: own, to: own },
                Direction::Receive => Read {
                    from: Place {
                        base: Base::Peer(peer),
                        ..own
                    },
                    to: place(&transfer.part)?,
                },
            };
            Ok(transfer.with(peer, read))
        };
        exchange.transfers.iter().map(copy).collect()
    }

    /// An element near the end of each tensor's part in what is copied.
    fn awaited(&mut self, copies: &[Transfer<Read>], exchange: &Exchange) -> Result<Places> {
        let mut awaited = Vec::new();
        for (copy, transfer) in copies.iter().zip(&exchange.transfers) {
            if !copy.is_send() {
                for segment in self.layout.segments(transfer.part.range) {
                    awaited.push(Entry::Place(self.last_block(copy.part.to, &segment)?));
                }
            }
        }
        Ok(Places {
            entries: self.enter(awaited),
            dtype: data_type(self.layout.dtype()),
        })
    }

    /// A barrier of all ranks of the world or of this rank's server.
    pub(super) fn rendezvous(&self, group: Option<Group>) -> Result<Arc<Rendezvous>> {
        let all = self.planner.shape().size();
        let (comm, first) = match group {
            Some(group) if group.count < all => self.world.server()?,
            _ => (self.world.shared_comm(), 0),
        };
        Ok(Arc::new(Rendezvous::new(self.tables, comm, first)?))
    }
}
