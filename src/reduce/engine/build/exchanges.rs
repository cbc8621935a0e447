//! The stages that bring parts of vectors to where they are combined, or gathered.

use std::sync::Arc;

use crate::error::Result;
use crate::plan::{self, Exchange, Form, Range, VectorPart};
use crate::reduce::engine::bucket::{Entry, bytes, data_type};
use crate::reduce::engine::build::StageBuilder;
use crate::reduce::engine::pieces::Piece;
use crate::reduce::engine::place::{Base, Place};
use crate::reduce::engine::rendezvous::{Rendezvous, Stand};
use crate::reduce::engine::stage::{ExchangeTask, Places, Task};
use crate::transfer::Direction;

impl StageBuilder<'_> {
    /// Where operand `number` of a combine lies: the own one in place, the others one after the other in
    /// the receive buffer.
    fn operand(&self, combine: &plan::Combine, number: u32) -> Result<Place> {
        if number == combine.own {
            return self.part(combine.slice);
        }
        let slot = number - u32::from(number > combine.own);
        let len = bytes(combine.slice.len(), self.size)?;
        Ok(Place {
            base: Base::Scratch,
            start: len * slot as usize,
            len,
        })
    }

    /// The parts of the slice of a combine, each with the vectors of all operands on it.
    pub(super) fn pieces(&self, combine: &plan::Combine) -> Result<Vec<Piece>> {
        let place = |base: Base| {
            Ok(Place {
                base,
                ..self.part(combine.slice)?
            })
        };
        Piece::of(self.layout, combine, |number, source| match source {
            // What is compared is what kernels read.
            _ if self.options.checksum => self.operand(combine, number),
            Some(peer) => place(Base::Peer(self.rank_of(peer))),
            None if combine.exchange.barrier.is_some() => place(Base::Fused),
            None => self.operand(combine, number),
        })
    }

    /// Where what is received for a combine comes to lie.
    fn received(&self, combine: &plan::Combine, part: &VectorPart) -> Result<Place> {
        let operand = self.operand(combine, part.operand)?;
        let start = bytes(part.range.start() - combine.slice.start(), self.size)?;
        Ok(operand.part(start, bytes(part.range.len(), self.size)?))
    }

    /// Brings the operands of a combine, or lets them be read; then with the barrier.
    pub(super) fn exchange(
        &mut self,
        combine: &plan::Combine,
        form: Form,
        stand: Stand,
    ) -> Result<(Task, Option<Arc<Rendezvous>>)> {
        let exchange = &combine.exchange;
        let Some(group) = exchange.barrier else {
            let place = |builder: &Self, part: &_| builder.received(combine, part);
            return Ok((self.exchange_into(exchange, form, place)?, None));
        };
        let mut task = self.read(exchange, group, stand)?;
        if self.options.checksum {
            task.copies = self.copies(exchange, |part| self.received(combine, part))?;
        }
        let barrier = Arc::clone(&task.barrier);
        Ok((Task::Read(task), Some(barrier)))
    }

    /// Brings parts to where they lie in the fused buffer.
    pub(super) fn in_place(
        &mut self,
        exchange: &Exchange,
        form: Form,
        stand: Stand,
    ) -> Result<Task> {
        let place = |builder: &Self, part: &VectorPart| builder.part(part.range);
        let Some(group) = exchange.barrier else {
            return self.exchange_into(exchange, form, place);
        };
        let mut task = self.read(exchange, group, stand)?;
        self.copy_in_place(&mut task, exchange)?;
        Ok(Task::Read(task))
    }

    /// The rank of the world that is `peer` in the plan.
    pub(super) fn rank_of(&self, peer: u32) -> u32 {
        let shards = self.options.shards(self.world);
        peer * shards + self.world.rank() % shards
    }

    /// The last block of a segment of `place`. HCCL moves long parts in pieces, the first elements first.
    fn last_block(&self, place: Place, segment: &plan::Segment) -> Result<Place> {
        // What the oldest chips write at once; segments start at multiples of it there.
        const BLOCK: usize = 32;
        let (start, len) = (
            bytes(segment.offset, self.size)?,
            bytes(segment.len, self.size)?,
        );
        let before = (len - 1) / BLOCK * BLOCK;
        Ok(place.part(start + before, len - before))
    }

    /// Near the end of each tensor's part in what comes to lie at these places.
    pub(super) fn awaited(&mut self, received: &[(Range, Place)]) -> Result<Places> {
        let mut awaited = Vec::new();
        for &(range, place) in received {
            for segment in self.layout.segments(range) {
                awaited.push(Entry::Place(self.last_block(place, &segment)?));
            }
        }
        Ok(Places {
            entries: self.enter(awaited),
            dtype: data_type(self.layout.dtype()),
        })
    }

    fn exchange_into(
        &mut self,
        exchange: &Exchange,
        form: Form,
        place: impl Fn(&Self, &plan::VectorPart) -> Result<Place>,
    ) -> Result<Task> {
        // All ranks of a server come to its all-to-all.
        if exchange.is_empty() && form != Form::AllToAll {
            return Ok(Task::Nothing);
        }
        let mut transfers = Vec::with_capacity(exchange.transfers.len());
        let mut received = Vec::new();
        for transfer in &exchange.transfers {
            let range = transfer.part.range;
            let place = match transfer.direction {
                Direction::Send => self.part(range)?,
                Direction::Receive => place(self, &transfer.part)?,
            };
            if !transfer.is_send() {
                received.push((range, place));
            }
            transfers.push(transfer.with(self.rank_of(transfer.peer), place));
        }
        let awaited = self.awaited(&received)?;
        let (comm, first) = match form {
            Form::AllToAll => self.world.server()?,
            _ => (Arc::clone(self.world.comm()), 0),
        };
        Ok(Task::Exchange(ExchangeTask {
            comm,
            first,
            form,
            transfers,
            awaited,
        }))
    }
}
