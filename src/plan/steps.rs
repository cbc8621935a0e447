//! The steps of one rank as data, and their order.

use serde::{Deserialize, Serialize};

use super::{DType, Group, Range, Shape};
use crate::transfer::Transfer;

/// Where the vectors of a server lie while servers are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// Each rank of a server owns one chunk of its mean: 1/D of the traffic between servers.
    #[default]
    Hierarchical,
    /// Each rank has its server's whole mean, and ranks of the same local index merge it among themselves: the
    /// arrangement of MindSpore's cells. D times the traffic between servers; no gather in the server at the end.
    Columns,
}

/// How the transfers of a step are made: by which calls of HCCL, or by none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One `HcclAlltoAllV` of all ranks of a server: over all links at once.
    ///
    /// In a server only: between servers HCCL first gathers all counts, for which the host waits in every call
    /// (hcomm, hccl_communicator_host.cc:4407), and on chips without a full mesh in a server, too.
    AllToAll,
    /// One `HcclBatchSendRecv`: sends one after another, receives beside them
    /// (hcomm, coll_batch_send_recv_executor.cc).
    Batch,
    /// `HcclSend` and `HcclRecv` between `HcclGroupStart` and `HcclGroupEnd`: all at once.
    Group,
    /// `HcclSend` and `HcclRecv` one after the other, in the order of [`Exchange`].
    Pairwise,
    /// Nothing is sent: behind a barrier ([`Exchange::barrier`]) each rank reads what it would receive where its peers have
    /// it, at the same place of their fused buffers. The result of the last round is written there before, see [`Plan::returns`].
    Shared,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 5] = [
        Form::AllToAll,
        Form::Batch,
        Form::Group,
        Form::Pairwise,
        Form::Shared,
    ];

    /// The form of this name.
    pub fn named(name: &str) -> Option<Self> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Form::AllToAll => "alltoall",
            Form::Batch => "batch",
            Form::Group => "group",
            Form::Pairwise => "pairwise",
            Form::Shared => "shared",
        }
    }
}

/// The forms of a plan's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// Of steps between ranks of one server.
    pub in_server: Form,
    /// Of steps between servers. Never [`Form::AllToAll`].
    pub across: Form,
    /// Of records on their way to the owners of their tensors. Never [`Form::AllToAll`] or [`Form::Shared`].
    pub records: Form,
}

impl Forms {
    /// One form for all steps; batches where [`Form::AllToAll`] or [`Form::Shared`] does not serve.
    pub fn of(form: Form) -> Self {
        let or_batch = |serves: bool| match serves {
            true => form,
            false => Form::Batch,
        };
        Forms {
            in_server: form,
            across: or_batch(form != Form::AllToAll),
            records: or_batch(!matches!(form, Form::AllToAll | Form::Shared)),
        }
    }
}

impl std::fmt::Display for Forms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Forms {
            in_server,
            across,
            records,
        } = *self;
        if in_server == across && records == across {
            return f.write_str(across.name());
        }
        write!(
            f,
            "{} in servers, {} between them, {} of records",
            in_server.name(),
            across.name(),
            records.name()
        )
    }
}

/// The part of a vector that a transfer moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorPart {
    /// Elements of the fused buffer.
    pub range: Range,
    /// Which operand of the receiver's combine the data is; 0 where nothing is combined.
    pub operand: u32,
}

/// The records that a transfer moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPart {
    /// Indices of the tensors whose records they are.
    pub tensors: Range,
    /// How many records: one for each of these tensors with elements.
    pub records: u64,
}

/// All transfers of one step, in an order in which each can wait for its peer: at most one send and one receive for each peer.
///
/// Peers come in the order of `rank ^ peer`, and of two ranks the lower one sends first. Two ranks that
/// differ from their peers in the same bits are disjoint pairs, so every rank meets its peers in one order
/// that all ranks share: the first pair of that order which is not done can always go on. With two equal
/// halves this is the order of MindSpore's cells: left sends, then receives; right receives, then sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange<T = VectorPart> {
    /// What this rank sends and receives; [`Form::Pairwise`] takes them one after the other. With [`Form::Shared`] a rank
    /// reads what it receives, and what it sends is read.
    pub transfers: Vec<Transfer<T>>,
    /// The ranks that wait for each other before anything of it is read, this one among them: with [`Form::Shared`] only.
    pub barrier: Option<Group>,
}

impl<T> Exchange<T> {
    /// Brings transfers of rank `rank` into their order.
    pub fn new(rank: u32, transfers: impl IntoIterator<Item = Transfer<T>>) -> Self {
        let mut transfers: Vec<Transfer<T>> = transfers.into_iter().collect();
        transfers.sort_by_key(|transfer| position(rank, transfer));
        Exchange {
            transfers,
            barrier: None,
        }
    }

    /// The same behind a barrier of `group`.
    #[must_use]
    pub fn behind(self, group: Group) -> Self {
        Exchange {
            barrier: Some(group),
            ..self
        }
    }

    /// Whether nothing crosses.
    pub fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// What this rank sends.
    pub fn sends(&self) -> impl Iterator<Item = &Transfer<T>> {
        self.transfers.iter().filter(|transfer| transfer.is_send())
    }

    /// What this rank receives.
    pub fn receives(&self) -> impl Iterator<Item = &Transfer<T>> {
        self.transfers.iter().filter(|transfer| !transfer.is_send())
    }

    /// What rank `rank`, whose exchange this is, receives from rank `peer`.
    pub fn received_from(&self, rank: u32, peer: u32) -> Option<&T> {
        let wanted = position(rank, &Transfer::receive(peer, ()));
        let found = self
            .transfers
            .binary_search_by_key(&wanted, |transfer| position(rank, transfer));
        found.ok().map(|index| &self.transfers[index].part)
    }

    /// Whether the transfers of rank `rank` are in their order, with no peer twice in one direction.
    pub fn is_in_order(&self, rank: u32) -> bool {
        let positions = self
            .transfers
            .iter()
            .map(|transfer| position(rank, transfer));
        positions.is_sorted_by(|before, after| before < after)
    }
}

/// The place of a transfer of rank `rank` among its transfers.
fn position<T>(rank: u32, transfer: &Transfer<T>) -> (u32, bool) {
    let peer = transfer.peer;
    (rank ^ peer, transfer.is_send() != (rank < peer))
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

/// How the scalars of one round are summed and the weights of all tensors computed.
///
/// Each rank contributes a record for each tensor in its slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalars {
    /// Ranks whose slices together are the whole vector.
    pub group: Group,
    /// Indices of the tensors that this rank contributes to; empty ones among them have no record.
    pub tensors: Range,
    /// Records that this rank contributes, one for each of these tensors with elements.
    pub records: u64,
    /// The most records that a member contributes.
    pub stride: u64,
    /// Absent: all records are gathered by all members, `stride` from each, and everyone sums and solves.
    pub owned: Option<OwnedScalars>,
}

/// Each tensor has an owner in the group, who gets its records, sums and solves; weights are gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedScalars {
    /// Tensors of each owner: member i owns `i * run..(i + 1) * run` as far as there are so many.
    pub run: u64,
    /// Indices of this rank's own tensors.
    pub tensors: Range,
    /// Records that this rank contributes to its own tensors.
    pub kept: u64,
    /// The other records on their way to the owners.
    pub exchange: Exchange<RecordPart>,
}

/// One merge of adjacent subtrees of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The merged subtrees, in the order of the tree: this column's ranks of each.
    pub members: Vec<Group>,
    /// Exchange and slice; `combine.operands` is the radix, and with 1 there is nothing to do for this rank.
    pub combine: Combine,
    /// How the round's scalars are summed.
    pub scalars: Scalars,
}

/// What one rank does in a reduction of one fused buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Servers and ranks.
    pub shape: Shape,
    /// The rank that this plan is for.
    pub rank: u32,
    /// Element type of the buffer.
    pub dtype: DType,
    /// Length of the fused buffer.
    pub elements: u64,
    /// Number of tensors in it.
    pub tensors: u64,
    /// Where vectors lie between the steps.
    pub placement: Placement,
    /// How exchanges are given to HCCL.
    pub forms: Forms,
    /// Step 1, absent with one rank per server.
    pub mean: Option<Combine>,
    /// Step 1 continued, only in columns: every rank gets the whole mean of its server.
    pub share: Option<Exchange>,
    /// Step 2.
    pub rounds: Vec<Round>,
    /// Step 3 across servers: the rounds backwards. With [`Form::Shared`] one for all of them: the ranks that own parts of the
    /// result write them to the others' buffers at the end of the last round, and here all wait until that is done. Scattered
    /// results ([`Options::scattered`](crate::reduce::Options::scattered)), and those of a mean or a sum, each rank reads here.
    pub returns: Vec<Exchange>,
    /// Step 3 in the server, absent with one rank per server and in columns.
    pub gather: Option<Exchange>,
    /// With a step of [`Form::Shared`]: the ranks that read or write each other's fused buffers.
    pub shared: Option<Group>,
}

/// A step of a plan. All ranks of a world take the same steps; in some a rank may have nothing to do.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// The mean in the server.
    Mean(&'a Combine),
    /// The whole mean for everyone in the server, in columns.
    Share(&'a Exchange),
    /// A round across servers, and its number.
    Round(usize, &'a Round),
    /// A round backwards, and the number of that round.
    Return(usize, &'a Exchange),
    /// The gather in the server.
    Gather(&'a Exchange),
}

/// Which step of a plan, without what it holds: to say when something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// The mean in the server.
    Mean,
    /// The whole mean for everyone in the server, in columns.
    Share,
    /// A round across servers.
    Round(usize),
    /// A round backwards.
    Return(usize),
    /// The gather in the server.
    Gather,
}

impl Plan {
    /// What this rank writes to the buffers of others at the end of the last round, and they to its own; behind it all wait for
    /// each other.
    pub fn written(&self) -> Option<&Exchange> {
        self.returns
            .iter()
            .find(|exchange| exchange.barrier.is_some())
    }

    /// The ranks that wait for each other behind the last step, before one of them writes to its fused buffer again. None where
    /// results are `written` and nobody reads another one's buffer behind the barrier of that.
    pub fn release(&self, written: bool) -> Option<Group> {
        let is_read = |exchange: &Exchange| exchange.barrier.is_some();
        let done =
            written && self.written().is_some() && !self.gather.as_ref().is_some_and(is_read);
        self.shared.filter(|_| !done)
    }

    /// The steps in their order.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        let rounds = self.rounds.iter().enumerate();
        let last = self.returns.len();
        let returns = self.returns.iter().enumerate();
        self.mean
            .iter()
            .map(Step::Mean)
            .chain(self.share.iter().map(Step::Share))
            .chain(rounds.map(|(index, round)| Step::Round(index, round)))
            .chain(returns.map(move |(index, exchange)| Step::Return(last - 1 - index, exchange)))
            .chain(self.gather.iter().map(Step::Gather))
    }
}

impl<'a> Step<'a> {
    /// Which one it is.
    pub fn kind(self) -> StepKind {
        match self {
            Step::Mean(_) => StepKind::Mean,
            Step::Share(_) => StepKind::Share,
            Step::Round(index, _) => StepKind::Round(index),
            Step::Return(index, _) => StepKind::Return(index),
            Step::Gather(_) => StepKind::Gather,
        }
    }

    /// What crosses in it.
    pub fn exchange(self) -> &'a Exchange {
        match self {
            Step::Mean(combine) => &combine.exchange,
            Step::Round(_, round) => &round.combine.exchange,
            Step::Share(exchange) | Step::Return(_, exchange) | Step::Gather(exchange) => exchange,
        }
    }

    /// What is combined in it, if anything is.
    pub fn combine(self) -> Option<&'a Combine> {
        match self {
            Step::Mean(combine) => Some(combine),
            Step::Round(_, round) => Some(&round.combine),
            Step::Share(_) | Step::Return(..) | Step::Gather(_) => None,
        }
    }

    /// Whether results are on their way to all ranks.
    pub fn is_way_back(self) -> bool {
        matches!(self, Step::Return(..) | Step::Gather(_))
    }

    /// How its exchange is made.
    pub fn form(self, forms: Forms) -> Form {
        self.kind().form(forms)
    }
}

impl StepKind {
    /// How its exchange is made.
    pub fn form(self, forms: Forms) -> Form {
        match self {
            StepKind::Mean | StepKind::Share | StepKind::Gather => forms.in_server,
            StepKind::Round(_) | StepKind::Return(_) => forms.across,
        }
    }
}

impl Ord for StepKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let place = |kind: &StepKind| match *kind {
            StepKind::Mean => (0, 0),
            StepKind::Share => (1, 0),
            StepKind::Round(round) => (2, round),
            StepKind::Return(round) => (3, usize::MAX - round),
            StepKind::Gather => (4, 0),
        };
        place(self).cmp(&place(other))
    }
}

impl PartialOrd for StepKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for StepKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StepKind::Mean => f.write_str("mean"),
            StepKind::Share => f.write_str("share"),
            StepKind::Round(round) => write!(f, "round {round}"),
            StepKind::Return(round) => write!(f, "return of round {round}"),
            StepKind::Gather => f.write_str("gather"),
        }
    }
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = match self {
            Step::Mean(_) | Step::Share(_) | Step::Gather(_) => " in the server",
            Step::Round(..) | Step::Return(..) => "",
        };
        write!(f, "{}{place}", self.kind())
    }
}
