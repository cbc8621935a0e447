//! Servers, ranks and regular sets of ranks. Rank = server * locals + local.

use crate::error::{Error, Result};

/// Upper bound on the number of ranks.
const MAX_RANKS: u32 = 1 << 20;

/// How many servers there are and how many ranks each has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Servers, S.
    pub servers: u32,
    /// Ranks of each server, D.
    pub locals: u32,
}

impl Shape {
    /// S servers with D ranks each.
    pub fn new(servers: u32, locals: u32) -> Result<Self> {
        if servers == 0 || locals == 0 {
            return Err(Error::invalid(format!(
                "{servers} servers of {locals} ranks: both must be at least 1"
            )));
        }
        if servers
            .checked_mul(locals)
            .is_none_or(|size| size > MAX_RANKS)
        {
            return Err(Error::invalid(format!(
                "{servers} servers of {locals} ranks are more than {MAX_RANKS} ranks"
            )));
        }
        Ok(Shape { servers, locals })
    }

    /// Number of ranks.
    pub fn size(self) -> u32 {
        self.servers * self.locals
    }

    /// Server of a rank.
    pub fn server(self, rank: u32) -> u32 {
        rank / self.locals
    }

    /// Index of a rank in its server.
    pub fn local(self, rank: u32) -> u32 {
        rank % self.locals
    }

    /// Rank of a server's local index.
    pub fn rank(self, server: u32, local: u32) -> u32 {
        server * self.locals + local
    }
}

/// A regular set of ranks: `first`, `first + stride`, ... (`count` of them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group {
    /// Lowest rank.
    pub first: u32,
    /// Number of ranks.
    pub count: u32,
    /// Distance between neighbours, at least 1.
    pub stride: u32,
}

impl Group {
    /// The ranks in ascending order.
    pub fn ranks(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |i| self.first + i * self.stride)
    }

    /// How many of its ranks are in `start..end`.
    pub fn ranks_within(self, start: u32, end: u32) -> u32 {
        let below = |rank: u32| {
            let distance = rank.saturating_sub(self.first);
            distance.div_ceil(self.stride).min(self.count)
        };
        below(end) - below(start)
    }

    /// The group of all parts of its ranks, where each is cut into so many that follow each other.
    #[must_use]
    pub fn of_parts(self, parts: u32) -> Group {
        Group {
            first: self.first * parts,
            count: self.count * parts,
            ..self
        }
    }

    /// Position of `rank` in the group.
    pub fn index_of(self, rank: u32) -> Option<u32> {
        let distance = rank.checked_sub(self.first)?;
        let index = distance / self.stride;
        (distance % self.stride == 0 && index < self.count).then_some(index)
    }
}
