//! Buffers of device memory that ranks read of each other, and write to.

use std::sync::Arc;
use std::time::Duration;

use crate::ascend::{Buffer, LinkType, MemoryKey, Sharing, Span};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::{Group, Reach};
use crate::reduce::world::hosts::{HOST_BYTES, encode};
use crate::reduce::world::{World, lock};
use crate::topo::host_key;

/// A buffer of this rank and those of the ranks that it reads and writes, all equally long.
pub(in crate::reduce) struct SharedBuffer {
    pub(in crate::reduce) own: Span,
    /// By rank; `None` for this one and for those that it does not read.
    pub(in crate::reduce) peers: Arc<[Option<Span>]>,
}

/// The shared buffers of a world, in the order in which they were made: the same on all ranks.
///
/// Whoever frees a buffer must know that nobody reads or writes it any more. So the world keeps what its users have dropped until all
/// ranks have dropped theirs.
#[derive(Default)]
pub(super) struct SharedBuffers {
    kept: Vec<Arc<SharedBuffer>>,
    reach: Option<(Reach, Sharing)>,
    /// Why it is less than what ranks could share.
    less: Option<String>,
}

impl SharedBuffers {
    /// Never frees what there is: of a world that has failed, a rank that is late may still write to it.
    pub(super) fn keep_for_ever(&mut self) {
        if !self.kept.is_empty() {
            let bytes: usize = self.kept.iter().map(|buffer| buffer.own.len()).sum();
            log::warn!("{bytes} bytes of device memory stay in use: others may write to them");
        }
        std::mem::take(&mut self.kept).leak();
    }

    /// Closes the peers' buffers that this rank does not use any more. Which of its own it uses: a byte for each, 0 if not.
    fn close_unused(&mut self) -> Vec<u8> {
        let close = |buffer: &mut Arc<SharedBuffer>| match Arc::get_mut(buffer) {
            None => 1,
            Some(buffer) => {
                buffer.peers = Arc::default();
                0
            }
        };
        self.kept.iter_mut().map(close).collect()
    }

    /// Frees what no rank uses, as each of them has said it.
    fn free_unused<'a>(&mut self, used: impl Iterator<Item = &'a [u8]> + Clone) {
        let mut number = 0;
        self.kept.retain(|_| {
            number += 1;
            used.clone().any(|used| used[number - 1] != 0)
        });
    }
}

/// What a rank tells the others of where it is: its machine, which devices of it the process sees (a key of the variable), its
/// device among them, and its supernode, if it shares memory there.
struct Place {
    machine: [u8; HOST_BYTES],
    visible: [u8; HOST_BYTES],
    device: i32,
    supernode: Option<u32>,
}

impl Place {
    const BYTES: usize = 2 * HOST_BYTES + 8 + 4;

    fn write(&self) -> [u8; Place::BYTES] {
        let mut bytes = [0; Place::BYTES];
        let (machine, rest) = bytes.split_at_mut(HOST_BYTES);
        let (visible, numbers) = rest.split_at_mut(HOST_BYTES);
        let (supernode, device) = numbers.split_at_mut(8);
        machine.copy_from_slice(&self.machine);
        visible.copy_from_slice(&self.visible);
        device.copy_from_slice(&self.device.to_le_bytes());
        let number = self.supernode.map_or(0, |number| u64::from(number) + 1);
        supernode.copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; Place::BYTES]) -> Self {
        let (machine, rest) = bytes.split_at(HOST_BYTES);
        let (visible, numbers) = rest.split_at(HOST_BYTES);
        let (supernode, device) = numbers.split_at(8);
        let number = supernode.first_chunk().copied().map(u64::from_le_bytes);
        let key = |bytes: &[u8]| bytes.first_chunk().copied().unwrap_or([0; HOST_BYTES]);
        Place {
            machine: key(machine),
            visible: key(visible),
            device: device.first_chunk().copied().map_or(0, i32::from_le_bytes),
            supernode: number
                .and_then(|number| number.checked_sub(1))
                .and_then(|number| u32::try_from(number).ok()),
        }
    }
}

/// Two ranks of a machine whose kernels cannot read each other's memory.
struct Barred {
    rank: u32,
    peer: u32,
    link: LinkType,
}

impl Barred {
    const BYTES: usize = 4 + 8;

    /// What a rank tells: the peer and what joins the two, which is nothing where there is no such peer.
    fn write(found: Option<&Barred>) -> [u8; Barred::BYTES] {
        let (peer, link) = found.map_or((0, 0), |pair| (pair.peer, pair.link.0));
        let mut bytes = [0; Barred::BYTES];
        bytes[..4].copy_from_slice(&peer.to_le_bytes());
        bytes[4..].copy_from_slice(&link.to_le_bytes());
        bytes
    }

    fn read(rank: u32, bytes: &[u8; Barred::BYTES]) -> Option<Self> {
        let (peer, link) = bytes.split_at(4);
        let link = link.first_chunk().copied().map(u64::from_le_bytes);
        Some(Barred {
            rank,
            peer: peer.first_chunk().copied().map(u32::from_le_bytes)?,
            link: LinkType(link.filter(|&bits| bits != 0)?),
        })
    }

    fn in_server(&self, locals: usize) -> bool {
        self.rank as usize / locals == self.peer as usize / locals
    }
}

/// Whose memory ranks in servers of `locals` can read, but for those that are `barred`, and by what. As far as both reach, it is
/// what the vendor's own library of shared memory (SHMEM) takes: handles of a supernode.
fn reach_of(places: &[Place], barred: &[Barred], locals: usize) -> (Reach, Sharing) {
    let in_servers = barred.iter().any(|pair| pair.in_server(locals));
    let reach = |alike: &dyn Fn(&[Place]) -> bool| match () {
        () if barred.is_empty() && alike(places) => Reach::All,
        () if !in_servers && places.chunks(locals).all(alike) => Reach::Server,
        () => Reach::None,
    };
    let supernode = reach(&|places| {
        let first = places[0].supernode;
        first.is_some() && places.iter().all(|place| place.supernode == first)
    });
    let machine = reach(&|places| {
        let first = places[0].machine;
        places.iter().all(|place| place.machine == first)
    });
    match supernode {
        Reach::None => (machine, Sharing::Machine),
        _ if supernode < machine => (machine, Sharing::Machine),
        _ => (supernode, Sharing::Supernode),
    }
}

impl World {
    /// Whose memory ranks can read by its address: that of the ranks on the same machine or in the same supernode.
    ///
    /// Collective at the first call. Waits for all ranks, at most `timeout`.
    pub(in crate::reduce) fn reach(&self, timeout: Duration) -> Result<Reach> {
        Ok(self.sharing(timeout)?.0)
    }

    fn sharing(&self, timeout: Duration) -> Result<(Reach, Sharing)> {
        if let Some(known) = lock(&self.inner.shared).reach {
            return Ok(known);
        }
        let visible = std::env::var_os("ASCEND_RT_VISIBLE_DEVICES").unwrap_or_default();
        let place = Place {
            machine: encode(&host_key()),
            visible: encode(&visible.to_string_lossy()),
            device: self.device().id(),
            supernode: self.shares_in_supernode(),
        };
        let places = self.gather(&place.write(), timeout)?;
        let (places, _) = places.as_chunks::<{ Place::BYTES }>();
        let places: Vec<Place> = places.iter().map(Place::read).collect();
        let locals = self.locals() as usize;
        let barred = self.barred(&place, &places, timeout)?;
        let reach = reach_of(&places, &barred, locals);
        let less = (reach.0 < reach_of(&places, &[], locals).0)
            .then(|| self.why_barred(&barred, &places))
            .flatten();
        if let Some(less) = &less {
            log::info!("rank {}: {less}", self.own_in_root());
        }
        log::debug!(
            "rank {} can read memory of: {:?}, shared by {:?}",
            self.own_in_root(),
            reach.0,
            reach.1
        );
        if reach.1 == Sharing::Supernode {
            self.enable_neighbours(&place, &places);
        }
        let mut shared = lock(&self.inner.shared);
        shared.reach = Some(reach);
        shared.less = less;
        Ok(reach)
    }

    /// Why [`World::reach`] is less than what ranks could share, if it is: the same on all ranks.
    pub(in crate::reduce) fn why_less(&self) -> Option<String> {
        lock(&self.inner.shared).less.clone()
    }

    /// Pairs of ranks that PCIe joins, at most one of each rank. Collective.
    fn barred(&self, own: &Place, places: &[Place], timeout: Duration) -> Result<Vec<Barred>> {
        let found = self.barred_peer(own, places);
        let told = self.gather(&Barred::write(found.as_ref()), timeout)?;
        let (told, _) = told.as_chunks::<{ Barred::BYTES }>();
        let read = |(rank, told)| Barred::read(rank, told);
        Ok((0..).zip(told).filter_map(read).collect())
    }

    /// A sentence about a pair: of one server, if there is one.
    fn why_barred(&self, barred: &[Barred], places: &[Place]) -> Option<String> {
        let locals = self.locals() as usize;
        let pair = barred.iter().min_by_key(|pair| !pair.in_server(locals))?;
        let named = |rank: u32| {
            let device = places[rank as usize].device;
            format!("device {device} of rank {}", self.rank_in_root(rank))
        };
        Some(format!(
            "{} joins {} and {}, and kernels do not read other NPUs over PCIe",
            pair.link,
            named(pair.rank),
            named(pair.peer)
        ))
    }

    /// A rank on this machine that PCIe joins to this one: of the same server, if one of those is.
    ///
    /// What cannot be seen bars nobody: older libraries do not tell, and the device of a process that sees others may have no number
    /// here.
    fn barred_peer(&self, own: &Place, places: &[Place]) -> Option<Barred> {
        let link = |place: &Place| match place.visible == own.visible {
            true if place.device != own.device => self.device().link_type(place.device),
            _ => Ok(None),
        };
        let rank = self.rank();
        let mut found = Vec::new();
        for (peer, place) in (0..).zip(places) {
            if peer == rank || place.machine != own.machine {
                continue;
            }
            match link(place) {
                Ok(Some(link)) if link.is_pcie() => found.push(Barred { rank, peer, link }),
                Ok(Some(_)) => {}
                Ok(None) => log::debug!("what joins ranks {rank} and {peer} cannot be seen"),
                Err(error) => log::debug!("what joins ranks {rank} and {peer}: {error}"),
            }
        }
        let in_server = |pair: &Barred| pair.in_server(self.locals() as usize);
        found.into_iter().min_by_key(|pair| !in_server(pair))
    }

    /// Handles leave access to the devices of the same machine to their user; keys enable it by themselves.
    ///
    /// A refusal is not the end, as HCCL enables them, too; nor are devices whose number here is not known, because their
    /// ranks see others.
    fn enable_neighbours(&self, own: &Place, places: &[Place]) {
        let neighbours = places
            .iter()
            .filter(|place| place.machine == own.machine && place.visible == own.visible);
        for place in neighbours {
            if let Err(error) = self.device().enable_access(place.device) {
                log::info!(
                    "rank {}, device {}: {error}",
                    self.own_in_root(),
                    place.device
                );
            }
        }
    }

    /// The supernode of the device, if driver and library share memory there: only a try tells.
    fn shares_in_supernode(&self) -> Option<u32> {
        let supernode = self.device().supernode().ok().flatten()?;
        match Buffer::shareable(self.device(), 1, Sharing::Supernode) {
            Ok(_) => Some(supernode),
            Err(error) => {
                log::info!(
                    "rank {} in supernode {supernode} shares no memory there: {error}",
                    self.own_in_root()
                );
                None
            }
        }
    }

    /// A buffer of `bytes` bytes, all 0, and those of the other ranks in `group`, this one among them, to read.
    ///
    /// Collective: all ranks of the world ask for as many bytes. Waits for them, at most `timeout`.
    ///
    /// # Errors
    /// `Mismatch` on the others if one cannot share or read: the world stays usable.
    pub(in crate::reduce) fn share(
        &self,
        bytes: usize,
        group: Group,
        timeout: Duration,
    ) -> Result<Arc<SharedBuffer>> {
        let (_, sharing) = self.sharing(timeout)?;
        let own = Buffer::shareable(self.device(), bytes, sharing);
        let key = own.as_ref().ok().and_then(Buffer::key);
        // What is no key stands for no buffer.
        let key = key.map_or([0; MemoryKey::BYTES], MemoryKey::to_bytes);
        let keys = self.gather(&key, timeout)?;
        let keys = keys.chunks_exact(MemoryKey::BYTES);
        let read = |rank: u32| rank != self.rank() && group.index_of(rank).is_some();
        let peers = (0..)
            .zip(keys)
            .map(|(rank, key)| match MemoryKey::from_bytes(key) {
                Err(_) => Err(Error::new(
                    ErrorKind::Mismatch,
                    format!(
                        "rank {} could not share {bytes} bytes; its own message says why",
                        self.rank_in_root(rank)
                    ),
                )),
                Ok(key) if read(rank) => Span::import(self.device(), &key, bytes)
                    .map(Some)
                    .context(|| format!("memory of rank {}", self.rank_in_root(rank))),
                Ok(_) => Ok(None),
            });
        let peers: Result<Arc<[_]>> = peers.collect();
        // A rank that cannot read keeps its own buffer until all have come: others are importing it.
        let own = own.map(|own| own.span());
        let made = own
            .clone()
            .and_then(|own| Ok(SharedBuffer { own, peers: peers? }));
        let buffer = Arc::new(self.all_have(made, "read what others share", timeout)?);
        lock(&self.inner.shared).kept.push(Arc::clone(&buffer));
        Ok(buffer)
    }

    /// Closes what this rank does not use any more of others, and frees what no rank does.
    ///
    /// Collective. Waits for all ranks, at most `timeout`, and for all earlier work of the world.
    pub(in crate::reduce) fn free_shared(&self, timeout: Duration) -> Result<()> {
        // What is queued may still read or write it.
        self.drain(timeout)?;
        let used = lock(&self.inner.shared).close_unused();
        let all = self.gather(&used, timeout)?;
        lock(&self.inner.shared).free_unused(all.chunks_exact(used.len()));
        Ok(())
    }

    /// Closes what others share, and frees what this rank shares when all have. All work has ended.
    ///
    /// Collective, where anything is shared. Waits for all ranks, at most `timeout`: what this rank shares stays in use if they do
    /// not come.
    pub(super) fn leave_shared(&self, timeout: Duration) -> Result<()> {
        if lock(&self.inner.shared).kept.is_empty() {
            return Ok(());
        }
        lock(&self.inner.shared).close_unused();
        self.gather(&[0], timeout)
            .context(|| "leaving the memory that ranks share")?;
        lock(&self.inner.shared).kept.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks on the machines of that name in the supernodes of that number, as far as it is not 0.
    fn reach(machines: &str, supernodes: [u32; 4], locals: usize) -> (Reach, Sharing) {
        reach_without(&[], machines, supernodes, locals)
    }

    /// The same, where these pairs are barred.
    fn reach_without(
        pairs: &[[u32; 2]],
        machines: &str,
        supernodes: [u32; 4],
        locals: usize,
    ) -> (Reach, Sharing) {
        let place = |(name, number): (char, u32)| Place {
            machine: encode(&name.to_string()),
            visible: encode(""),
            device: 0,
            supernode: number.checked_sub(1),
        };
        let places = machines.chars().zip(supernodes).map(place);
        let told: Vec<Place> = places.map(|place| Place::read(&place.write())).collect();
        let barred = pairs.iter().map(|&[rank, peer]| {
            let link = LinkType(2);
            let told = Barred::write(Some(&Barred { rank, peer, link }));
            Barred::read(rank, &told).unwrap()
        });
        reach_of(&told, &barred.collect::<Vec<_>>(), locals)
    }

    #[test]
    fn memory_is_shared_as_far_as_all_ranks_can() {
        let machine = |reach| (reach, Sharing::Machine);
        let supernode = |reach| (reach, Sharing::Supernode);
        assert_eq!(reach("aaaa", [0; 4], 2), machine(Reach::All));
        assert_eq!(reach("aabb", [0; 4], 2), machine(Reach::Server));
        assert_eq!(reach("abcd", [0; 4], 1), machine(Reach::Server));
        assert_eq!(reach("abab", [0; 4], 2), machine(Reach::None));
        assert_eq!(reach("aabb", [1; 4], 2), supernode(Reach::All));
        assert_eq!(reach("aaaa", [1; 4], 2), supernode(Reach::All));
        assert_eq!(reach("aabb", [1, 1, 2, 2], 2), supernode(Reach::Server));
        assert_eq!(reach("abcd", [u32::MAX; 4], 2), supernode(Reach::All));
        // One that does not share there: as far as machines go.
        assert_eq!(reach("aabb", [1, 1, 1, 0], 2), machine(Reach::Server));
        assert_eq!(reach("aaaa", [1, 1, 2, 2], 2), machine(Reach::All));
    }

    #[test]
    fn memory_is_not_read_over_pcie() {
        let machine = |reach| (reach, Sharing::Machine);
        let supernode = |reach| (reach, Sharing::Supernode);
        let pairs = |pairs: &[[u32; 2]], locals| reach_without(pairs, "aaaa", [0; 4], locals);
        assert_eq!(pairs(&[[1, 2]], 2), machine(Reach::Server));
        assert_eq!(pairs(&[[1, 2]], 4), machine(Reach::None));
        assert_eq!(pairs(&[[3, 0], [1, 0]], 2), machine(Reach::None));
        let reach = reach_without(&[[1, 2]], "aaaa", [1; 4], 2);
        assert_eq!(reach, supernode(Reach::Server));
        assert!(Barred::read(0, &Barred::write(None)).is_none());
    }
}
