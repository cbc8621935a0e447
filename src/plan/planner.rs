//! The steps of one rank: in-server mean, AdaSum rounds across servers, and the way back.
//!
//! Ranks are numbered server by server: rank = server * locals + local.
//!
//! - Mean: the ranks of a server each come to own one chunk of the server's mean.
//! - Rounds: ranks with the same local index hold the same chunk. They merge adjacent subtrees of servers: the members
//!   of a merged subtree each come to own one slice of the chunk, from all subtrees.
//! - Returns: the rounds run backwards as all-gathers.
//! - Gather: and so does the mean.
//!
//! In columns the ranks of a server share the whole mean before the rounds, a chunk is the whole buffer, and there is no
//! gather.
//!
//! A round of radix 2 over equal subtrees is recursive vector halving with distance doubling.

use super::tree::{RoundOrder, Subtree, Tree};
use super::{
    Combine, Exchange, Form, Forms, Group, Layout, OwnedScalars, Placement, Plan, Range,
    RecordPart, Round, Scalars, Shape, VectorPart, record_words,
};
use crate::error::{Error, Result};
use crate::transfer::{Direction, Transfer};

/// What may be chosen about a plan; [`choose`](super::choose) settles what the caller leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// The most subtrees that a round merges, 2 to 8. Consecutive stages of the tree are taken in one round
    /// while their product is at most this.
    pub radix: u32,
    /// Which round is the small one.
    pub order: RoundOrder,
    /// Where vectors lie while servers are merged.
    pub placement: Placement,
    /// How exchanges are given to HCCL.
    pub forms: Forms,
    /// Scalars go to owners where gathering all records takes more bytes than this on each rank; below,
    /// everyone gathers them. 0 for always owners, `u64::MAX` for never.
    pub owned_above: u64,
}

impl Choices {
    /// Hierarchical, in batches, scalars gathered, the small round first.
    pub fn new(radix: u32) -> Self {
        Choices {
            radix,
            order: RoundOrder::default(),
            placement: Placement::Hierarchical,
            forms: Forms::of(Form::Batch),
            owned_above: u64::MAX,
        }
    }
}

/// Makes the plans of all ranks for one fused buffer.
#[derive(Debug, Clone)]
pub struct Planner {
    shape: Shape,
    layout: Layout,
    tree: Tree,
    choices: Choices,
    /// Which part of the buffer each local rank owns of its server's mean.
    chunks: Vec<Range>,
    /// For each round, in the order of the merged subtrees: the most tensors that a slice touches.
    strides: Vec<Vec<u64>>,
}

impl Planner {
    /// Plans of `shape` for a buffer of this layout, merging at most `radix` (2 to 8) subtrees a round.
    pub fn new(shape: Shape, layout: Layout, radix: u32) -> Result<Self> {
        Planner::with(shape, layout, Choices::new(radix))
    }

    /// Plans of `shape` for a buffer of this layout.
    ///
    /// # Errors
    /// If the radix is out of range; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for [`Placement::Columns`] where
    /// ranks read the memory of their own server only ([`Form::Shared`]).
    pub fn with(shape: Shape, layout: Layout, choices: Choices) -> Result<Self> {
        let Forms {
            in_server, across, ..
        } = choices.forms;
        // A rank would read the chunks of others in its server while their rounds write to them.
        if choices.placement == Placement::Columns
            && in_server == Form::Shared
            && across != Form::Shared
            && shape.servers > 1
            && shape.locals > 1
        {
            return Err(Error::unsupported(
                "exchange is shared and placement is columns: where ranks read only the memory of their own server, take \
                 hierarchical, or another exchange",
            ));
        }
        let mut planner = Planner {
            tree: Tree::new(shape.servers, choices.radix, choices.order)?,
            chunks: layout.split(layout.whole(), shape.locals),
            strides: Vec::new(),
            shape,
            layout,
            choices,
        };
        planner.strides = (1..=planner.tree.rounds())
            .map(|rounds| planner.strides(rounds))
            .collect();
        Ok(planner)
    }

    /// Servers and ranks.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where the tensors lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What was chosen.
    pub fn choices(&self) -> Choices {
        self.choices
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
        let undone = mean.as_ref().map(|mean| reversed(rank, &mean.exchange));
        let Forms {
            in_server, across, ..
        } = self.choices.forms;
        let returns = match across {
            Form::Shared => (!rounds.is_empty())
                .then(|| self.of_owners(rank))
                .into_iter()
                .collect(),
            _ => rounds
                .iter()
                .rev()
                .map(|round| reversed(rank, &round.combine.exchange))
                .collect(),
        };
        let (share, gather) = match self.choices.placement {
            Placement::Hierarchical => (None, undone),
            Placement::Columns => (undone, None),
        };
        Ok(Plan {
            shape,
            rank,
            dtype: self.layout.dtype(),
            elements: self.layout.elements(),
            tensors: self.layout.tensors().len() as u64,
            placement: self.choices.placement,
            forms: self.choices.forms,
            shared: match (across, in_server) {
                (Form::Shared, _) if !rounds.is_empty() => Some(self.all_ranks()),
                (_, Form::Shared) if mean.is_some() => Some(self.ranks_of_server(rank)),
                _ => None,
            },
            mean,
            share,
            returns,
            rounds,
            gather,
        })
    }

    /// Whether scalars of this round go to owners in any group: the same for all ranks.
    pub fn owners_in(&self, round: usize) -> bool {
        let mut server = 0;
        while server < self.shape.servers {
            let merged = self.tree.subtree(round + 1, server);
            let radix = u32::try_from(self.tree.parts(round, merged).count()).unwrap_or(u32::MAX);
            if radix > 1 && self.gathered_bytes(round, merged, radix) > self.choices.owned_above {
                return true;
            }
            server += merged.count;
        }
        false
    }

    /// Bytes of scalars that each member of a merged subtree's group gathers if nobody owns them.
    fn gathered_bytes(&self, round: usize, merged: Subtree, radix: u32) -> u64 {
        let stride = self.strides[round][self.tree.index(round + 1, merged.first)];
        let members = match self.choices.placement {
            Placement::Hierarchical => merged.count * self.shape.locals,
            Placement::Columns => merged.count,
        };
        4 * u64::from(members) * stride * record_words(radix as usize) as u64
    }

    /// What each rank of `group` owns after the first `rounds` rounds, in the order of the group.
    pub fn slices(&self, group: Group, rounds: usize) -> Vec<Range> {
        group.ranks().map(|rank| self.slice(rank, rounds)).collect()
    }

    /// What `rank` owns after the first `rounds` rounds.
    fn slice(&self, rank: u32, rounds: usize) -> Range {
        let server = self.shape.server(rank);
        let owners = self.tree.subtree(rounds, server).count;
        let slot = self.tree.slot(rounds, server);
        self.layout
            .part(self.chunk(self.shape.local(rank)), slot, owners)
    }

    /// What a local rank holds of its server's mean when the rounds begin.
    fn chunk(&self, local: u32) -> Range {
        match self.choices.placement {
            Placement::Hierarchical => self.chunks[local as usize],
            Placement::Columns => self.layout.whole(),
        }
    }

    fn mean(&self, rank: u32) -> Combine {
        let shape = self.shape;
        let server = shape.server(rank);
        let local = shape.local(rank);
        let own = self.chunks[local as usize];
        let others = || (0..shape.locals).filter(move |&other| other != local);
        let transfers = others().flat_map(|other| {
            let peer = shape.rank(server, other);
            let (range, operand) = (self.chunks[other as usize], local);
            let send = Transfer::send(peer, VectorPart { range, operand });
            let (range, operand) = (own, other);
            [send, Transfer::receive(peer, VectorPart { range, operand })]
        });
        Combine {
            operands: shape.locals,
            own: local,
            slice: own,
            exchange: self.shared(
                self.choices.forms.in_server,
                self.ranks_of_server(rank),
                exchange(rank, transfers),
            ),
        }
    }

    /// The result of `rank`'s chunk, from the ranks that own parts of it after the last round.
    fn of_owners(&self, rank: u32) -> Exchange {
        let (shape, rounds) = (self.shape, self.tree.rounds());
        let (server, local) = (shape.server(rank), shape.local(rank));
        let part = |range: Range| VectorPart { range, operand: 0 };
        let others = (0..shape.servers).filter(|&other| other != server);
        let transfers = others.flat_map(|other| {
            let peer = shape.rank(other, local);
            [
                Transfer::send(peer, part(self.slice(rank, rounds))),
                Transfer::receive(peer, part(self.slice(peer, rounds))),
            ]
        });
        exchange(rank, transfers).behind(self.all_ranks())
    }

    /// `exchange` behind a barrier of `group`, if that is how it is done.
    fn shared(&self, form: Form, group: Group, exchange: Exchange) -> Exchange {
        match form {
            Form::Shared => exchange.behind(group),
            _ => exchange,
        }
    }

    fn ranks_of_server(&self, rank: u32) -> Group {
        Group {
            first: self.shape.rank(self.shape.server(rank), 0),
            count: self.shape.locals,
            stride: 1,
        }
    }

    /// The ranks of a merged subtree that a rank reads in the round, or that read its buffer in the server before.
    fn readers(&self, rank: u32, merged: Subtree) -> Group {
        let shape = self.shape;
        match self.choices.placement {
            // Of the mean, others in the server read other chunks.
            Placement::Hierarchical => Group {
                first: shape.rank(merged.first, shape.local(rank)),
                count: merged.count,
                stride: shape.locals,
            },
            // The whole mean is shared before the rounds.
            Placement::Columns => Group {
                first: shape.rank(merged.first, 0),
                count: merged.count * shape.locals,
                stride: 1,
            },
        }
    }

    fn all_ranks(&self) -> Group {
        Group {
            first: 0,
            count: self.shape.size(),
            stride: 1,
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
        let mut transfers = Vec::new();
        for (operand, part) in (0..).zip(&parts) {
            if part.servers().contains(&server) {
                own = operand;
            }
        }
        for (operand, part) in (0..).zip(&parts) {
            for peer in part.servers().filter(|&other| other != server) {
                let peer = shape.rank(peer, local);
                let sent = VectorPart {
                    range: old.intersection(self.slice(peer, round + 1)),
                    operand: own,
                };
                let received = VectorPart {
                    range: new.intersection(self.slice(peer, round)),
                    operand,
                };
                transfers.push(Transfer::send(peer, sent));
                transfers.push(Transfer::receive(peer, received));
            }
        }
        let radix = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let exchange = exchange(rank, transfers);
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
                operands: radix,
                own,
                slice: new,
                exchange: match radix {
                    1 => exchange,
                    _ => self.shared(
                        self.choices.forms.across,
                        self.readers(rank, merged),
                        exchange,
                    ),
                },
            },
            scalars: self.scalars(rank, round, merged, radix),
        }
    }

    fn scalars(&self, rank: u32, round: usize, merged: Subtree, radix: u32) -> Scalars {
        let shape = self.shape;
        let group = match self.choices.placement {
            Placement::Hierarchical => Group {
                first: shape.rank(merged.first, 0),
                count: merged.count * shape.locals,
                stride: 1,
            },
            Placement::Columns => Group {
                first: shape.rank(merged.first, shape.local(rank)),
                count: merged.count,
                stride: shape.locals,
            },
        };
        let stride = self.strides[round][self.tree.index(round + 1, merged.first)];
        let gathered = self.gathered_bytes(round, merged, radix);
        let owned = radix > 1 && gathered > self.choices.owned_above;
        let tensors = self.layout.tensors_in(self.slice(rank, round + 1));
        Scalars {
            group,
            tensors,
            records: self.layout.records_of(tensors),
            stride,
            owned: owned.then(|| self.owned(rank, round, merged, group)),
        }
    }

    fn owned(&self, rank: u32, round: usize, merged: Subtree, group: Group) -> OwnedScalars {
        let tensors = self.layout.tensors().len() as u64;
        let run = tensors.div_ceil(u64::from(group.count));
        let run_of = |index: u32| {
            let first = (u64::from(index) * run).min(tensors);
            Range::new(first, (first + run).min(tensors))
        };
        let own = run_of(group.index_of(rank).unwrap_or(0));
        let contribution = self.layout.tensors_in(self.slice(rank, round + 1));
        let records = |range: Range| self.layout.records_of(range);
        let part = |tensors: Range| RecordPart {
            tensors,
            records: records(tensors),
        };
        let index = |tensor: u64| u32::try_from(tensor / run.max(1)).unwrap_or(u32::MAX);
        // To the owners of what this rank has.
        let owners = match contribution.is_empty() {
            true => 0..0,
            false => index(contribution.start())..index(contribution.end() - 1) + 1,
        };
        let sends = owners.map(|owner| {
            let peer = group.first + owner * group.stride;
            Transfer::send(peer, part(run_of(owner).intersection(contribution)))
        });
        let holders = self.holders(rank, round + 1, merged, own);
        let receives = holders.into_iter().map(|peer| {
            let theirs = self.layout.tensors_in(self.slice(peer, round + 1));
            Transfer::receive(peer, part(theirs.intersection(own)))
        });
        // Transfers whose tensors are all empty are left out, on both sides.
        let transfers = sends
            .chain(receives)
            .filter(|transfer| transfer.peer != rank && transfer.part.records > 0);
        OwnedScalars {
            run,
            tensors: own,
            kept: records(contribution.intersection(own)),
            exchange: Exchange::new(rank, transfers),
        }
    }

    /// The ranks of `rank`'s scalar group that may have elements of these tensors after `rounds` rounds.
    fn holders(&self, rank: u32, rounds: usize, merged: Subtree, tensors: Range) -> Vec<u32> {
        let elements = self.layout.elements_of(tensors);
        let locals = match self.choices.placement {
            Placement::Hierarchical => 0..self.shape.locals,
            Placement::Columns => {
                let local = self.shape.local(rank);
                local..local + 1
            }
        };
        let mut holders = Vec::new();
        for local in locals {
            let chunk = self.chunk(local);
            if chunk.intersection(elements).is_empty() {
                continue;
            }
            // Slices of a chunk ascend with their slots.
            let slice = |slot: u32| self.layout.part(chunk, slot, merged.count);
            let first = first_where(merged.count, |slot| slice(slot).end() > elements.start());
            let end = first_where(merged.count, |slot| slice(slot).start() >= elements.end());
            holders.extend((first..end).map(|slot| {
                let server = self.tree.server_at(rounds, merged, slot);
                self.shape.rank(server, local)
            }));
        }
        holders
    }

    /// The largest number of records of a slice after `rounds` rounds, for each subtree.
    fn strides(&self, rounds: usize) -> Vec<u64> {
        let locals = match self.choices.placement {
            Placement::Hierarchical => self.shape.locals,
            // All columns are alike.
            Placement::Columns => 1,
        };
        let mut strides = vec![0; self.tree.subtrees(rounds)];
        for server in 0..self.shape.servers {
            let stride = &mut strides[self.tree.index(rounds, server)];
            for local in 0..locals {
                let slice = self.slice(self.shape.rank(server, local), rounds);
                *stride = self.layout.records_in(slice).max(*stride);
            }
        }
        strides
    }
}

/// The first of `0..count` for which `holds`, and all behind it.
fn first_where(count: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The exchange backwards: everybody gets back what it gave away, now combined.
fn reversed(rank: u32, exchange: &Exchange) -> Exchange {
    let transfers = exchange.transfers.iter().map(|transfer| {
        let part = VectorPart {
            operand: 0,
            ..transfer.part
        };
        match transfer.direction {
            Direction::Send => Transfer::receive(transfer.peer, part),
            Direction::Receive => Transfer::send(transfer.peer, part),
        }
    });
    Exchange {
        barrier: exchange.barrier,
        ..Exchange::new(rank, transfers)
    }
}

/// An exchange of vectors, without what is empty.
fn exchange(rank: u32, transfers: impl IntoIterator<Item = Transfer<VectorPart>>) -> Exchange {
    let transfers = transfers.into_iter();
    Exchange::new(
        rank,
        transfers.filter(|transfer| !transfer.part.range.is_empty()),
    )
}
