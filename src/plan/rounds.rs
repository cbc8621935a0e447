//! The steps of one rank: in-server mean, AdaSum rounds across servers, and the way back.
//!
//! Ranks are numbered server by server: rank = server * locals + local.
//!
//! 1. The ranks of a server each come to own one chunk of the server's mean.
//! 2. Ranks with the same local index hold the same chunk. They merge adjacent subtrees of servers in
//!    rounds: the members of a merged subtree each come to own one slice of the chunk, from all subtrees.
//! 3. The rounds run backwards as all-gathers, and so does step 1.
//!
//! A round of radix 2 over equal subtrees is recursive vector halving with distance doubling.

use super::tree::{Subtree, Tree};
use super::{Layout, Range};
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

    /// Position of `rank` in the group.
    pub fn index_of(self, rank: u32) -> Option<u32> {
        let distance = rank.checked_sub(self.first)?;
        let index = distance / self.stride;
        (distance % self.stride == 0 && index < self.count).then_some(index)
    }
}

/// A range that crosses between this rank and `peer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The other rank.
    pub peer: u32,
    /// Elements of the fused buffer.
    pub range: Range,
    /// Which operand of the receiver's combine the data is; 0 where nothing is combined.
    pub operand: u32,
}

/// All transfers of one step; at most one send and one receive for each peer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// What this rank sends, ascending by peer.
    pub sends: Vec<Transfer>,
    /// What this rank receives, ascending by peer.
    pub receives: Vec<Transfer>,
}

impl Exchange {
    /// Whether nothing crosses.
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }
}

/// An exchange after which this rank holds `operands` vectors on `slice` and combines them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combine {
    /// Number of vectors, own one included.
    pub operands: u32,
    /// Position of the own vector, which lies in the fused buffer, in the order of combination.
    pub own: u32,
    /// What this rank owns afterwards.
    pub slice: Range,
    /// Brings the other vectors, and the own one where this rank did not hold it.
    pub exchange: Exchange,
}

/// One merge of adjacent subtrees of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The merged subtrees, in the order of the tree: this column's ranks of each.
    pub members: Vec<Group>,
    /// Exchange and slice; `combine.operands` is the radix, and with 1 there is nothing to do for this rank.
    pub combine: Combine,
    /// Ranks whose slices together are the whole buffer: the scalars are summed over them.
    pub scalars: Group,
}

/// What one rank does in a reduction of one fused buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Servers and ranks.
    pub shape: Shape,
    /// The rank that this plan is for.
    pub rank: u32,
    /// Length of the fused buffer.
    pub elements: u64,
    /// Step 1, absent with one rank per server.
    pub mean: Option<Combine>,
    /// Step 2.
    pub rounds: Vec<Round>,
    /// Step 3 across servers: the rounds backwards.
    pub returns: Vec<Exchange>,
    /// Step 3 in the server, absent with one rank per server.
    pub gather: Option<Exchange>,
}

/// Makes the plans of all ranks for one fused buffer.
#[derive(Debug, Clone)]
pub struct Planner {
    shape: Shape,
    layout: Layout,
    tree: Tree,
    /// Which part of the buffer each local rank owns of its server's mean.
    chunks: Vec<Range>,
}

impl Planner {
    /// Plans of `shape` for a buffer of this layout, merging at most `radix` (2 to 8) subtrees a round.
    pub fn new(shape: Shape, layout: Layout, radix: u32) -> Result<Self> {
        Ok(Planner {
            tree: Tree::new(shape.servers, radix)?,
            chunks: layout.split(layout.whole(), shape.locals),
            shape,
            layout,
        })
    }

    /// Servers and ranks.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where the tensors lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The plan of `rank`.
    pub fn plan(&self, rank: u32) -> Result<Plan> {
        let shape = self.shape;
        if rank >= shape.size() {
            return Err(Error::invalid(format!(
                "rank {rank} of {} ranks",
                shape.size()
            )));
        }
        let mean = (shape.locals > 1).then(|| self.mean(rank));
        let rounds: Vec<Round> = (0..self.tree.rounds())
            .map(|round| self.round(rank, round))
            .collect();
        Ok(Plan {
            shape,
            rank,
            elements: self.layout.elements(),
            returns: rounds
                .iter()
                .rev()
                .map(|round| reversed(&round.combine))
                .collect(),
            rounds,
            gather: mean.as_ref().map(reversed),
            mean,
        })
    }

    /// What each rank of `group` owns after the first `rounds` rounds, in the order of the group.
    pub fn slices(&self, group: Group, rounds: usize) -> Vec<Range> {
        group.ranks().map(|rank| self.slice(rank, rounds)).collect()
    }

    /// What `rank` owns after the first `rounds` rounds.
    fn slice(&self, rank: u32, rounds: usize) -> Range {
        let server = self.shape.server(rank);
        let chunk = self.chunks[self.shape.local(rank) as usize];
        let owners = self.tree.subtree(rounds, server).count;
        self.layout
            .part(chunk, self.tree.slot(rounds, server), owners)
    }

    fn mean(&self, rank: u32) -> Combine {
        let shape = self.shape;
        let server = shape.server(rank);
        let local = shape.local(rank);
        let own = self.chunks[local as usize];
        let others = || (0..shape.locals).filter(move |&other| other != local);
        let transfer = |other: u32, range: Range, operand: u32| Transfer {
            peer: shape.rank(server, other),
            range,
            operand,
        };
        Combine {
            operands: shape.locals,
            own: local,
            slice: own,
            exchange: Exchange {
                sends: non_empty(
                    others().map(|other| transfer(other, self.chunks[other as usize], local)),
                ),
                receives: non_empty(others().map(|other| transfer(other, own, other))),
            },
        }
    }

    fn round(&self, rank: u32, round: usize) -> Round {
        let shape = self.shape;
        let (server, local) = (shape.server(rank), shape.local(rank));
        let merged = self.tree.subtree(round + 1, server);
        let parts: Vec<Subtree> = self.tree.parts(round, merged).collect();
        let old = self.slice(rank, round);
        let new = self.slice(rank, round + 1);
        let mut own = 0;
        let mut exchange = Exchange::default();
        for (operand, part) in (0..).zip(&parts) {
            if part.servers().contains(&server) {
                own = operand;
            }
        }
        for (operand, part) in (0..).zip(&parts) {
            for peer in part.servers().filter(|&other| other != server) {
                let peer = shape.rank(peer, local);
                exchange.sends.push(Transfer {
                    peer,
                    range: old.intersection(self.slice(peer, round + 1)),
                    operand: own,
                });
                exchange.receives.push(Transfer {
                    peer,
                    range: new.intersection(self.slice(peer, round)),
                    operand,
                });
            }
        }
        Round {
            members: parts
                .iter()
                .map(|part| Group {
                    first: shape.rank(part.first, local),
                    count: part.count,
                    stride: shape.locals,
                })
                .collect(),
            combine: Combine {
                operands: u32::try_from(parts.len()).unwrap_or(u32::MAX),
                own,
                slice: new,
                exchange: Exchange {
                    sends: non_empty(exchange.sends),
                    receives: non_empty(exchange.receives),
                },
            },
            scalars: Group {
                first: shape.rank(merged.first, 0),
                count: merged.count * shape.locals,
                stride: 1,
            },
        }
    }
}

/// The same ranges the other way: everybody gets back what it gave away, now combined.
fn reversed(combine: &Combine) -> Exchange {
    let turned = |transfers: &[Transfer]| {
        transfers
            .iter()
            .map(|transfer| Transfer {
                operand: 0,
                ..*transfer
            })
            .collect()
    };
    Exchange {
        sends: turned(&combine.exchange.receives),
        receives: turned(&combine.exchange.sends),
    }
}

fn non_empty(transfers: impl IntoIterator<Item = Transfer>) -> Vec<Transfer> {
    transfers
        .into_iter()
        .filter(|transfer| !transfer.range.is_empty())
        .collect()
}
