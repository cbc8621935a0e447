//! Worlds of some of a world's ranks, and the communicators that a world is split into.

use std::sync::Arc;

use sha1::{Digest, Sha1};

use crate::ascend::{Comm, CommConfig};
use crate::error::{Context, Error, Result};
use crate::plan::{Group, Shape};
use crate::reduce::world::{Inner, Origin, Purpose, World, lock};

impl World {
    /// The world of `ranks`, some of this world's ranks in ascending order, with `locals` of them a server.
    ///
    /// Collective among `ranks` only: each of them calls it with the same arguments, and all ranks make the
    /// parts that they share in the same order. The members are renumbered from 0 in their order; `locals`
    /// consecutive ones count as a server, whatever this world's servers are. A part shares device, streams and order
    /// of work with this world: what is enqueued through either waits for what either was given before, and a failure
    /// of one poisons both. With [`Form::Shared`](crate::plan::Form::Shared) all members end it with [`World::finish`]:
    /// dropping it frees what others may still have mapped. Uses: the ranks of one server, of one pipeline stage, of one
    /// shard of a model.
    ///
    /// # Errors
    /// `InvalidArgument` if `ranks` are not ascending ranks of this world with this one among them, or no
    /// whole number of servers.
    pub fn part(&self, ranks: &[u32], locals: u32) -> Result<World> {
        self.check()?;
        self.check_part(ranks, locals)?;
        let size = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        let members: Vec<u32> = ranks.iter().map(|&rank| self.rank_in_root(rank)).collect();
        let root = self.root();
        let number = {
            let mut parts = lock(&root.inner.parts);
            let count = parts.made.entry(members.clone()).or_default();
            *count += 1;
            *count
        };
        let comm = root.sub(&format!("part {number}"), &members, &CommConfig::default())?;
        let origin = Origin {
            root: root.clone(),
            ranks: members,
        };
        let shape = Shape::new(size / locals, locals)?;
        let work = Arc::clone(&self.inner.work);
        let inner = Arc::new(Inner::new(comm, shape, work, Some(origin)));
        let mut parts = lock(&root.inner.parts);
        parts.live.retain(|part| part.strong_count() > 0);
        parts.live.push(Arc::downgrade(&inner));
        drop(parts);
        Ok(World { inner })
    }

    fn check_part(&self, ranks: &[u32], locals: u32) -> Result<()> {
        if !ranks.windows(2).all(|pair| pair[0] < pair[1])
            || ranks.last().is_none_or(|&last| last >= self.size())
        {
            return Err(Error::invalid(format!(
                "ranks {ranks:?} of a part are not ascending ranks below {}",
                self.size()
            )));
        }
        if !ranks.contains(&self.rank()) {
            return Err(Error::invalid(format!(
                "rank {} is not in the part of ranks {ranks:?}",
                self.rank()
            )));
        }
        if locals == 0 || !ranks.len().is_multiple_of(locals as usize) {
            return Err(Error::invalid(format!(
                "the {} ranks {ranks:?} are not a whole number of servers of {locals}",
                ranks.len()
            )));
        }
        Ok(())
    }

    /// The communicator of a group that this rank is in, made at the first request.
    ///
    /// All members must ask for their groups in the same order.
    pub(crate) fn group(&self, group: Group, purpose: Purpose) -> Result<Arc<Comm>> {
        let known = lock(&self.inner.groups).get(&(group, purpose)).cloned();
        if let Some(comm) = known {
            return Ok(comm);
        }
        let members: Vec<u32> = group.ranks().map(|rank| self.rank_in_root(rank)).collect();
        let (name, buffer_mb) = match purpose {
            // The vendor's default would take 400 MB of device memory for a few records, or for one number.
            Purpose::Scalars => ("scalars", Some(1)),
            Purpose::Barriers => ("barriers", Some(1)),
            // An all-to-all of more than the buffer goes through it in pieces.
            Purpose::Vectors => ("vectors", None),
        };
        let config = CommConfig {
            buffer_mb,
            ..CommConfig::default()
        };
        let name = format!("{} {name}", self.inner.comm.name());
        // Waits for the others: without the lock, which an abort takes.
        let comm = Arc::new(self.root().sub(&name, &members, &config)?);
        lock(&self.inner.groups).insert((group, purpose), Arc::clone(&comm));
        Ok(comm)
    }

    /// The communicator that the ranks of this rank's server exchange vectors over, and the rank that is first in it.
    pub(crate) fn server(&self) -> Result<(Arc<Comm>, u32)> {
        let Shape { servers, locals } = self.shape();
        if servers == 1 {
            return Ok((Arc::clone(self.comm()), 0));
        }
        let first = self.rank() / locals * locals;
        let group = Group {
            first,
            count: locals,
            stride: 1,
        };
        Ok((self.group(group, Purpose::Vectors)?, first))
    }

    /// The world whose communicator can be split: HCCL splits no sub-communicator again.
    fn root(&self) -> &World {
        match &self.inner.origin {
            Some(origin) => &origin.root,
            None => self,
        }
    }

    /// This rank in the root, as messages name it.
    pub(in crate::reduce) fn own_in_root(&self) -> u32 {
        self.watch().rank()
    }

    /// What a rank of this world is in the root, whose ranks messages name.
    pub(in crate::reduce) fn rank_in_root(&self, rank: u32) -> u32 {
        let Some(origin) = &self.inner.origin else {
            return rank;
        };
        // Callers pass ranks of this world only.
        let known = origin.ranks.get(rank as usize);
        known.copied().unwrap_or(u32::MAX)
    }

    /// The communicator of `members`, ranks of this root with this one among them.
    fn sub(&self, purpose: &str, members: &[u32], config: &CommConfig) -> Result<Comm> {
        let rank = self.rank();
        let index = members.iter().position(|&member| member == rank);
        let index = index
            .and_then(|index| u32::try_from(index).ok())
            .ok_or_else(|| {
                Error::invalid(format!(
                    "rank {rank} is not in the group of ranks {members:?}"
                ))
            })?;
        let digest = group_digest(self.inner.comm.name(), purpose, members);
        let config = CommConfig {
            name: Some(format!("adasum_{}", hex(&digest))),
            ..config.clone()
        };
        let id = digest
            .iter()
            .take(8)
            .fold(0, |id, &byte| id << 8 | u64::from(byte));
        let comm = self.inner.comm.sub(members, id, index, &config);
        comm.context(|| format!("rank {rank}: group of ranks {members:?}"))
    }
}

fn group_digest(world: &str, purpose: &str, members: &[u32]) -> [u8; 20] {
    let mut hash = Sha1::new();
    hash.update(world.as_bytes());
    hash.update(b" ");
    hash.update(purpose.as_bytes());
    for member in members {
        hash.update(member.to_le_bytes());
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
