//! The stages of steps in which ranks read each other's buffers.

use std::sync::Arc;

use crate::error::Result;
use crate::plan::{Exchange, Group, Plan, Range, VectorPart};
use crate::reduce::engine::bucket::bytes;
use crate::reduce::engine::build::StageBuilder;
use crate::reduce::engine::place::{Base, Place};
use crate::reduce::engine::rendezvous::{Rendezvous, Stand};
use crate::reduce::engine::stage::{CopyPart, Read, ReadTask, Stage, Task};
use crate::reduce::world::Purpose;
use crate::transfer::{Direction, Transfer};

impl StageBuilder<'_> {
    /// The copies from where each part of the result lies: with other ranks what `exchange` brings, here the rest.
    pub(super) fn parts(
        &mut self,
        members: &[usize],
        exchange: &Exchange,
        factor: f32,
    ) -> Result<Vec<CopyPart>> {
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
        parts
            .into_iter()
            .map(|(range, buffer)| self.copy(members, buffer, range, factor))
            .collect()
    }

    /// Behind all that reads other ranks' buffers: nobody writes to its own before. If nobody would before the last bucket has
    /// ended, that one's serves for all.
    pub(super) fn release(
        &mut self,
        stages: &mut Vec<Stage>,
        plan: &Plan,
        written: bool,
    ) -> Result<()> {
        let group = plan.release(written).filter(|_| !self.which.is_kept);
        let Some(group) = group else {
            return Ok(());
        };
        let task = self.read(&Exchange::new(plan.rank, []), group, Stand::Between)?;
        self.push(stages, "release", Task::Read(task))
    }

    /// Lets `task` copy what it reads to where it lies in the fused buffer.
    pub(super) fn copy_in_place(&mut self, task: &mut ReadTask, exchange: &Exchange) -> Result<()> {
        task.copies = self.copies(exchange, |part| self.part(part.range))?;
        let received = exchange.receives().map(|receive| receive.part.range);
        let received = received.map(|range| Ok((range, self.part(range)?)));
        let received: Vec<_> = received.collect::<Result<_>>()?;
        task.places = Some(self.awaited(&received)?);
        Ok(())
    }

    /// The barrier of `group` before what `exchange` brings is read, and nothing that is copied behind it.
    pub(super) fn read(&self, exchange: &Exchange, group: Group, stand: Stand) -> Result<ReadTask> {
        let transfers = exchange.transfers.iter();
        let elements = transfers.map(|transfer| transfer.part.range.len()).sum();
        let make = || self.rendezvous(group);
        let (barrier, meets) = match self.which.common {
            Some(common) => common.at(stand, make)?,
            None => (make()?, true),
        };
        Ok(ReadTask {
            barrier,
            meets,
            copies: Vec::new(),
            places: None,
            written: false,
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

    /// The barrier of these ranks of the plan.
    fn rendezvous(&self, group: Group) -> Result<Arc<Rendezvous>> {
        let shards = self.options.shards(self.world);
        let (comm, group) = if group.count == self.planner.shape().size() {
            (Arc::clone(self.world.comm()), group.of_parts(shards))
        } else {
            let group = Group {
                first: self.rank_of(group.first),
                stride: group.stride * shards,
                ..group
            };
            (self.world.group(group, Purpose::Barriers)?, group)
        };
        Ok(Arc::new(Rendezvous::new(self.tables, comm, group)?))
    }
}
