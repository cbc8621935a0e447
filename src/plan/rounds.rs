//! The steps of one rank: in-server mean, AdaSum rounds across servers, and the way back.
//!
//! Ranks are numbered server by server: rank = server * locals + local.
//!
//! 1. The ranks of a server each come to own one chunk of the server's mean.
//! 2. Ranks with the same local index hold the same chunk. They merge adjacent subtrees of servers in
//!    rounds: the members of a merged subtree each come to own one slice of the chunk, from all subtrees.
//! 3. The rounds run backwards as all-gathers, and so does step 1.
//!
//! Today a round merges two subtrees of equal size, which is recursive vector halving with distance
//! doubling: adjacent servers first, as in the paper's implementation.

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
    /// Brings the other vectors.
    pub exchange: Exchange,
}

/// One merge of adjacent subtrees of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The merged subtrees, in the order of the tree: this column's ranks of each.
    pub members: Vec<Group>,
    /// Exchange and slice; `combine.operands` is the radix.
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

impl Plan {
    /// The plan of `rank` for a buffer of this layout.
    ///
    /// A number of servers that is not a power of two is refused as unsupported.
    pub fn new(shape: Shape, layout: &Layout, rank: u32) -> Result<Self> {
        let size = shape.size();
        if rank >= size {
            return Err(Error::invalid(format!("rank {rank} of {size} ranks")));
        }
        if !shape.servers.is_power_of_two() {
            return Err(Error::unsupported(format!(
                "{} servers: a number of servers that is not a power of two is not supported yet",
                shape.servers
            )));
        }
        let chunks = layout.split(layout.whole(), shape.locals);
        let mean = (shape.locals > 1).then(|| mean(shape, &chunks, rank));
        let rounds = rounds(shape, layout, &chunks, rank);
        Ok(Plan {
            shape,
            rank,
            elements: layout.elements(),
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
    pub fn slices(shape: Shape, layout: &Layout, group: Group, rounds: u32) -> Vec<Range> {
        let chunks = layout.split(layout.whole(), shape.locals);
        group
            .ranks()
            .map(|rank| {
                (0..rounds).fold(chunks[shape.local(rank) as usize], |slice, round| {
                    halves(layout, slice)[usize::from(is_upper(shape, rank, round))]
                })
            })
            .collect()
    }
}

fn halves(layout: &Layout, slice: Range) -> [Range; 2] {
    let parts = layout.split(slice, 2);
    [parts[0], parts[1]]
}

/// Whether the server of `rank` is in the upper of the two subtrees that `round` merges.
fn is_upper(shape: Shape, rank: u32, round: u32) -> bool {
    shape.server(rank) >> round & 1 == 1
}

fn mean(shape: Shape, chunks: &[Range], rank: u32) -> Combine {
    let server = shape.server(rank);
    let local = shape.local(rank);
    let own = chunks[local as usize];
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
            sends: non_empty(others().map(|other| transfer(other, chunks[other as usize], local))),
            receives: non_empty(others().map(|other| transfer(other, own, other))),
        },
    }
}

fn rounds(shape: Shape, layout: &Layout, chunks: &[Range], rank: u32) -> Vec<Round> {
    let mut slice = chunks[shape.local(rank) as usize];
    let mut rounds = Vec::new();
    for index in 0..shape.servers.trailing_zeros() {
        let parts = halves(layout, slice);
        let upper = is_upper(shape, rank, index);
        let own = u32::from(upper);
        let width = 1 << index;
        let peer = shape.rank(shape.server(rank) ^ width, shape.local(rank));
        let kept = parts[usize::from(upper)];
        let given = parts[usize::from(!upper)];
        let first = shape.server(rank) / (2 * width) * (2 * width);
        let local = shape.local(rank);
        rounds.push(Round {
            members: [first, first + width]
                .map(|server| Group {
                    first: shape.rank(server, local),
                    count: width,
                    stride: shape.locals,
                })
                .to_vec(),
            combine: Combine {
                operands: 2,
                own,
                slice: kept,
                exchange: Exchange {
                    sends: non_empty([Transfer {
                        peer,
                        range: given,
                        operand: own,
                    }]),
                    receives: non_empty([Transfer {
                        peer,
                        range: kept,
                        operand: 1 - own,
                    }]),
                },
            },
            scalars: Group {
                first: shape.rank(first, 0),
                count: 2 * width * shape.locals,
                stride: 1,
            },
        });
        slice = kept;
    }
    rounds
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
