//! The buffers that buckets are reduced in.

use std::sync::Arc;
use std::time::Duration;

use crate::ascend::{Buffer, Span};
use crate::error::Result;
use crate::plan::Group;
use crate::reduce::engine::allocator::DeviceMemory;
use crate::reduce::engine::bucket::Bucket;
use crate::reduce::engine::place::Memory;
use crate::reduce::world::World;
use crate::reduce::world::shared::SharedBuffer;

/// The buffers of the buckets that are under way at a time. All that a reducer does shares them: one call of a world
/// follows the other.
pub(in crate::reduce) struct Slots {
    /// Bucket `i` uses slot `i` modulo their number.
    slots: Vec<Memory>,
    /// What all fused buffers are parts of, if other ranks read them: its part in the world's list.
    shared: Option<Arc<SharedBuffer>>,
    /// The most of them.
    pub(super) count: usize,
    /// Buckets that are under way at a time.
    pub(super) under_way: usize,
}

impl Slots {
    /// Fused buffers in one allocation begin at multiples of it, as allocations do.
    const ALIGNMENT: usize = 512;

    /// For so many buckets at a time.
    pub(in crate::reduce) fn new(depth: usize) -> Self {
        Slots {
            slots: Vec::new(),
            shared: None,
            count: depth,
            under_way: depth,
        }
    }

    /// For so many buckets at a time, but with buffers of its own for each.
    pub(in crate::reduce) fn for_each_bucket(depth: usize) -> Self {
        Slots {
            count: usize::MAX,
            ..Slots::new(depth)
        }
    }

    /// Where the tensors of bucket `index` lie in its buffer.
    pub(in crate::reduce) fn places(&self, index: usize, bucket: &Bucket) -> Result<Vec<Span>> {
        bucket.places(&self.memory(index, bucket)?)
    }

    /// Makes them large enough for `buckets`. What is queued keeps the memory that it uses.
    ///
    /// Collective: waits for all ranks, at most `timeout`. Where one has no memory all of them fail, and their world stays usable.
    pub(in crate::reduce) fn fit(
        &mut self,
        world: &World,
        buckets: &[Bucket],
        timeout: Duration,
    ) -> Result<()> {
        let Some(readers) = buckets.first().map(|bucket| bucket.shared) else {
            return Ok(());
        };
        let fused = self.fit_own(world, buckets, readers.is_none());
        let fused = world.all_have(fused, "make room for a reduction", timeout)?;
        let Some(group) = readers else {
            return Ok(());
        };
        let mut pairs = self.slots.iter().zip(&fused);
        let fits =
            pairs.all(|(memory, &bytes)| memory.fused.len() == bytes && !memory.peers.is_empty());
        match fits {
            true => Ok(()),
            false => self.share(world, &fused, group, timeout),
        }
    }

    /// Makes what no other rank reads large enough for `buckets`: what is received in, and fused buffers if they are `own`. Gives
    /// the bytes that the fused buffer of each slot has to have.
    fn fit_own(&mut self, world: &World, buckets: &[Bucket], own: bool) -> Result<Vec<usize>> {
        let mut fused = Vec::with_capacity(self.slots.len());
        for first in 0..self.count.min(buckets.len()) {
            let sharing = || buckets.iter().skip(first).step_by(self.count);
            let bytes = sharing().map(Bucket::fused_bytes);
            let bytes = bytes.collect::<Result<Vec<usize>>>()?.into_iter().max();
            let scratch = sharing().map(|bucket| bucket.scratch_bytes).max();
            let scratch = scratch.unwrap_or(0);
            if self.slots.len() == first {
                self.slots.push(Memory {
                    fused: span(world, 0)?,
                    scratch: span(world, 0)?,
                    peers: Arc::default(),
                });
            }
            let memory = &mut self.slots[first];
            if memory.scratch.len() < scratch {
                memory.scratch = span(world, scratch)?;
            }
            let bytes = bytes.unwrap_or(0).max(memory.fused.len());
            if own && memory.fused.len() < bytes {
                memory.fused = span(world, bytes)?;
            }
            fused.push(bytes);
        }
        let others = self.slots[fused.len()..].iter();
        fused.extend(others.map(|memory| memory.fused.len()));
        Ok(fused)
    }

    /// Fused buffers of so many bytes that the ranks in `group` read: parts of one allocation, which takes whole pages and is made
    /// known once. What there was before is freed behind it, and stays if that cannot be made.
    fn share(
        &mut self,
        world: &World,
        fused: &[usize],
        group: Group,
        timeout: Duration,
    ) -> Result<()> {
        let lengths = fused
            .iter()
            .map(|bytes| bytes.next_multiple_of(Self::ALIGNMENT));
        let buffer = world.share(lengths.sum(), group, timeout)?;
        let mut start = 0;
        for (memory, &bytes) in self.slots.iter_mut().zip(fused) {
            let part = |whole: &Span| whole.slice(start..start + bytes);
            memory.fused = part(&buffer.own)?;
            let peers = buffer.peers.iter();
            let peers = peers.map(|peer| peer.as_ref().map(part).transpose());
            memory.peers = peers.collect::<Result<_>>()?;
            start += bytes.next_multiple_of(Self::ALIGNMENT);
        }
        self.shared = Some(buffer);
        world.free_shared(timeout)
    }

    /// Whether what is at `address` lies in one of the fused buffers.
    pub(in crate::reduce) fn hold(&self, address: u64) -> bool {
        let inside = |span: &Span| {
            let start = span.address();
            (start..start + span.len() as u64).contains(&address)
        };
        match &self.shared {
            Some(buffer) => inside(&buffer.own),
            None => self.slots.iter().any(|memory| inside(&memory.fused)),
        }
    }

    /// What they take.
    pub(in crate::reduce) fn device_memory(&self) -> DeviceMemory {
        let sum = |bytes: fn(&Memory) -> usize| self.slots.iter().map(bytes).sum::<usize>();
        let (fused, allocations) = match &self.shared {
            Some(buffer) => (buffer.own.len().next_multiple_of(Buffer::SHAREABLE_PAGE), 1),
            None => (sum(|memory| memory.fused.len()), self.slots.len()),
        };
        DeviceMemory {
            fused: fused as u64,
            received: sum(|memory| memory.scratch.len()) as u64,
            allocations: (allocations + self.slots.len()) as u64,
            ..DeviceMemory::default()
        }
    }

    pub(super) fn memory(&self, index: usize, bucket: &Bucket) -> Result<Memory> {
        let memory = &self.slots[index % self.count];
        Ok(Memory {
            fused: memory.fused.slice(0..bucket.fused_bytes()?)?,
            scratch: memory.scratch.clone(),
            peers: Arc::clone(&memory.peers),
        })
    }
}

/// Memory of so many bytes, all 0: at least some, so that it has an address.
fn span(world: &World, bytes: usize) -> Result<Span> {
    Ok(Buffer::zeroed(world.device(), bytes.max(64))?.span())
}
