//! Buffers of device memory that ranks read of each other.

use std::sync::Arc;
use std::time::Duration;

use crate::ascend::{Buffer, MemoryKey, Span};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::{Group, Reach};
use crate::reduce::world::hosts::{HOST_BYTES, encode};
use crate::reduce::world::{World, lock};
use crate::topo::host_key;

/// A buffer of this rank and those of the ranks that it reads, all equally long.
pub(in crate::reduce) struct SharedBuffer {
    pub(in crate::reduce) own: Span,
    /// By rank; `None` for this one and for those that it does not read.
    pub(in crate::reduce) peers: Arc<[Option<Span>]>,
}

/// The shared buffers of a world, numbered in the order in which they were made: the same on all ranks.
///
/// Whoever frees a buffer must know that nobody reads it any more. So the world keeps what its users have dropped until all
/// ranks have dropped theirs.
#[derive(Default)]
pub(super) struct SharedBuffers {
    kept: Vec<(u64, Arc<SharedBuffer>)>,
    made: u64,
    reach: Option<Reach>,
}

impl SharedBuffers {
    /// Closes the peers' buffers that this rank does not use any more. Returns the number below which it uses none.
    fn close_unused(&mut self) -> u64 {
        for (_, buffer) in &mut self.kept {
            if let Some(buffer) = Arc::get_mut(buffer) {
                buffer.peers = Arc::default();
            }
        }
        let used = |kept: &&(u64, Arc<SharedBuffer>)| Arc::strong_count(&kept.1) > 1;
        self.kept.iter().find(used).map_or(self.made, |kept| kept.0)
    }
}

/// What a rank tells the others of a buffer.
struct Offer {
    /// `None` if there is no buffer.
    key: Option<MemoryKey>,
    /// The rank uses no buffer with a smaller number.
    unused_below: u64,
}

impl Offer {
    const BYTES: usize = 8 + MemoryKey::BYTES;

    fn write(&self) -> [u8; Offer::BYTES] {
        let mut bytes = [0; Offer::BYTES];
        let (number, key) = bytes.split_at_mut(8);
        number.copy_from_slice(&self.unused_below.to_le_bytes());
        if let Some(own) = &self.key {
            key.copy_from_slice(own.as_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8; Offer::BYTES]) -> Self {
        let (number, key) = bytes.split_at(8);
        Offer {
            key: MemoryKey::from_bytes(key).ok(),
            unused_below: number.first_chunk().copied().map_or(0, u64::from_le_bytes),
        }
    }
}

impl World {
    /// Whose memory ranks can read by its address: that of the ranks on the same machine.
    ///
    /// Collective at the first call. Waits for all ranks, at most `timeout`.
    pub(in crate::reduce) fn reach(&self, timeout: Duration) -> Result<Reach> {
        if let Some(known) = lock(&self.inner.shared).reach {
            return Ok(known);
        }
        let machines = self.gather(&encode(&host_key()), timeout)?;
        let (machines, _) = machines.as_chunks::<HOST_BYTES>();
        let alike = |ranks: &[[u8; HOST_BYTES]]| ranks.iter().all(|machine| *machine == ranks[0]);
        let reach = match () {
            () if alike(machines) => Reach::All,
            () if machines.chunks(self.locals() as usize).all(alike) => Reach::Server,
            () => Reach::None,
        };
        lock(&self.inner.shared).reach = Some(reach);
        Ok(reach)
    }

    /// A buffer of `bytes` bytes, all 0, and those of the other ranks in `group`, this one among them, to read.
    ///
    /// Collective: all ranks of the world ask for as many bytes. Waits for them, at most `timeout`, and for all earlier work of
    /// the world. Frees what no rank uses any more.
    pub(in crate::reduce) fn share(
        &self,
        bytes: usize,
        group: Group,
        timeout: Duration,
    ) -> Result<Arc<SharedBuffer>> {
        self.drain(timeout)?;
        let unused_below = lock(&self.inner.shared).close_unused();
        let own = Buffer::shareable(self.device(), bytes);
        let offer = Offer {
            key: own.as_ref().ok().and_then(Buffer::key).cloned(),
            unused_below,
        };
        let offers = self.gather(&offer.write(), timeout)?;
        let own = own?.span();
        let (offers, _) = offers.as_chunks::<{ Offer::BYTES }>();
        let offers: Vec<Offer> = offers.iter().map(Offer::read).collect();
        let read = |rank: u32| rank != self.rank() && group.index_of(rank).is_some();
        let peers = (0..).zip(&offers).map(|(rank, offer)| match &offer.key {
            None => Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("rank {rank} could not share {bytes} bytes; its own message says why"),
            )),
            Some(key) if read(rank) => Span::import(self.device(), key, bytes)
                .map(Some)
                .context(|| format!("memory of rank {}", self.rank_in_root(rank))),
            Some(_) => Ok(None),
        });
        let peers: Result<Arc<[_]>> = peers.collect();
        let done = self.gather(&[u8::from(peers.is_ok())], timeout)?;
        let peers = peers?;
        if let Some(rank) = done.iter().position(|&done| done == 0) {
            return Err(Error::new(
                ErrorKind::Acl,
                format!("rank {rank} cannot read what others share; its own message says why"),
            ));
        }
        let buffer = Arc::new(SharedBuffer { own, peers });
        let unused = offers.iter().map(|offer| offer.unused_below).min();
        let mut shared = lock(&self.inner.shared);
        shared.kept.retain(|&(number, _)| Some(number) >= unused);
        let number = shared.made;
        shared.kept.push((number, Arc::clone(&buffer)));
        shared.made += 1;
        Ok(buffer)
    }

    /// Closes what others share, and frees what this rank shares when all have.
    ///
    /// Collective, where anything was ever shared. Waits for all ranks, at most `timeout`.
    pub(super) fn leave_shared(&self, timeout: Duration) -> Result<()> {
        let made = {
            let mut shared = lock(&self.inner.shared);
            shared.close_unused();
            shared.made
        };
        if made > 0 {
            self.gather(&[0], timeout)?;
            lock(&self.inner.shared).kept.clear();
        }
        Ok(())
    }
}
