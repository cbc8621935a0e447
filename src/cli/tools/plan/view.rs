//! Plans as data to show.

use serde::Serialize;

use crate::cli::io::json;
use crate::cli::lab::workload::{Bucket, TensorArgs};
use crate::error::Result;
use crate::plan::mindspore::{TagHash, group_name, tag};
use crate::plan::{
    Choices, Combine, Cost, Group, Machine, Placement, Plan, Planner, Request, Round, Shape, Step,
    StepCost, VectorPart, choose,
};
use crate::transfer::{Direction, Transfer};

/// Name and version of the form of `--json`.
const SCHEMA: &str = "adasum.plan/1";
/// Groups with more ranks are not named.
const NAMED: u32 = 64;

/// All plans of a reduction.
pub(crate) struct View {
    pub(crate) shape: Shape,
    pub(crate) machine: Machine,
    pub(crate) head: Head,
    pub(crate) buckets: Vec<(Bucket, Planner)>,
}

/// Facts that all ranks share.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Head {
    schema: &'static str,
    pub(crate) servers: u32,
    pub(crate) devices_per_server: u32,
    pub(crate) ranks: u32,
    pub(crate) dtype: &'static str,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
    pub(crate) tensors: usize,
    pub(crate) radix: u32,
    pub(crate) placement: &'static str,
    pub(crate) exchange: String,
    pub(crate) machine: String,
    /// Servers in pairs, as AdaSum combines them.
    pub(crate) tree: String,
    /// For each round the servers, first and end, of the subtrees that become one.
    pub(crate) rounds: Vec<Vec<Vec<[u32; 2]>>>,
    pub(crate) buckets: Vec<BucketHead>,
}

/// A fused buffer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BucketHead {
    pub(crate) bucket: usize,
    /// First and end of its tensors.
    pub(crate) tensors: [usize; 2],
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
}

/// The plan of one rank.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RankView {
    pub(crate) rank: u32,
    pub(crate) server: u32,
    pub(crate) local: u32,
    /// Bytes of vectors and scalars.
    pub(crate) sent_bytes: u64,
    pub(crate) bytes_between_servers: u64,
    pub(crate) messages: u64,
    pub(crate) accessed_bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) steps: Vec<StepView>,
}

/// A step of one bucket.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StepView {
    pub(crate) bucket: usize,
    pub(crate) step: String,
    /// Elements that the rank owns after it: first and end.
    pub(crate) owns: [u64; 2],
    pub(crate) sends: Vec<Message>,
    pub(crate) receives: Vec<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) combine: Option<CombineView>,
    pub(crate) sent_bytes: u64,
    pub(crate) scalar_bytes: u64,
    pub(crate) accessed_bytes: u64,
    pub(crate) seconds: f64,
}

/// Part of a vector that is sent or received.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Message {
    pub(crate) peer: u32,
    pub(crate) range: [u64; 2],
    pub(crate) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<u32>,
}

/// The vectors that a step combines.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CombineView {
    pub(crate) vectors: u32,
    /// Position of this rank's own one.
    pub(crate) own: u32,
    /// The ranks that exchange vectors, named as in MindSpore's cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scalars: Option<ScalarsView>,
}

/// How scalars are summed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ScalarsView {
    pub(crate) first_rank: u32,
    pub(crate) ranks: u32,
    pub(crate) stride: u32,
    /// First and end of the tensors that this rank contributes to.
    pub(crate) tensors: [u64; 2],
    /// `gathered` by all, or `owned`: each tensor's owner sums and solves.
    pub(crate) how: &'static str,
}

impl View {
    pub(crate) fn new(
        shape: Shape,
        tensors: &TensorArgs,
        machine: &Machine,
        request: Request,
    ) -> Result<Self> {
        let choices = choose(shape, &[tensors.whole()?], machine, &request)?;
        let buckets = tensors.buckets()?.into_iter().map(|bucket| {
            let planner = Planner::with(shape, bucket.layout.clone(), choices)?;
            Ok((bucket, planner))
        });
        let buckets = buckets.collect::<Result<Vec<_>>>()?;
        let size = tensors.dtype().size();
        let counts = tensors.elements()?;
        let elements = counts.iter().sum::<u64>();
        let head = Head {
            schema: SCHEMA,
            servers: shape.servers,
            devices_per_server: shape.locals,
            ranks: shape.size(),
            dtype: tensors.dtype().name(),
            elements,
            bytes: elements * size,
            tensors: counts.len(),
            radix: choices.radix,
            placement: match choices.placement {
                Placement::Hierarchical => "hierarchical",
                Placement::Columns => "columns",
            },
            exchange: choices.forms.to_string(),
            machine: machine.name.clone(),
            tree: tree(shape)?,
            rounds: rounds(shape, choices)?,
            buckets: buckets
                .iter()
                .enumerate()
                .map(|(index, (bucket, planner))| BucketHead {
                    bucket: index,
                    tensors: [bucket.members.start, bucket.members.end],
                    elements: planner.layout().elements(),
                    bytes: planner.layout().elements() * size,
                })
                .collect(),
        };
        Ok(View {
            shape,
            machine: machine.clone(),
            head,
            buckets,
        })
    }

    /// The plan of `rank`, bucket after bucket.
    pub(crate) fn rank(&self, rank: u32) -> Result<RankView> {
        let mut view = RankView {
            rank,
            server: self.shape.server(rank),
            local: self.shape.local(rank),
            sent_bytes: 0,
            bytes_between_servers: 0,
            messages: 0,
            accessed_bytes: 0,
            seconds: 0.0,
            steps: Vec::new(),
        };
        for (bucket, (_, planner)) in self.buckets.iter().enumerate() {
            let plan = planner.plan(rank)?;
            let cost = Cost::of(&plan, &self.machine);
            view.sent_bytes += cost.sent();
            view.bytes_between_servers += cost.payload_between_servers();
            view.messages += cost.messages();
            view.accessed_bytes += cost.accesses();
            view.seconds += cost.seconds();
            let steps = Steps {
                plan: &plan,
                bucket,
                buckets: self.buckets.len(),
            };
            // The cost has no steps in which this rank does nothing.
            for step in plan.steps() {
                let cost = cost.steps.iter().find(|cost| cost.step == step.kind());
                view.steps.extend(cost.map(|cost| steps.view(step, cost)));
            }
        }
        Ok(view)
    }

    /// One line: `rank`, or all.
    pub(crate) fn json(&self, rank: Option<u32>) -> Result<String> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            head: &'a Head,
            plans: Vec<RankView>,
        }
        let ranks = rank.map_or(0..self.shape.size(), |rank| rank..rank + 1);
        let whole = Whole {
            head: &self.head,
            plans: ranks.map(|rank| self.rank(rank)).collect::<Result<_>>()?,
        };
        Ok(json(&whole)? + "\n")
    }
}

/// One rank's plan of one bucket.
struct Steps<'a> {
    plan: &'a Plan,
    bucket: usize,
    buckets: usize,
}

impl Steps<'_> {
    fn view(&self, step: Step<'_>, cost: &StepCost) -> StepView {
        let plan = self.plan;
        let of = |combine: &Combine| (combine.slice.start(), combine.slice.end());
        // What the rounds find, which returns lead back to.
        let chunk = match (&plan.mean, plan.placement) {
            (Some(mean), Placement::Hierarchical) => of(mean),
            _ => (0, plan.elements),
        };
        let after = |round: usize| match round.checked_sub(1) {
            Some(before) => of(&plan.rounds[before].combine),
            None => chunk,
        };
        let whole = (0, plan.elements);
        let (owns, combine, round) = match step {
            Step::Mean(mean) => (of(mean), Some(mean_view(mean)), None),
            Step::Round(index, round) => (of(&round.combine), Some(round_view(round)), Some(index)),
            Step::Return(round, _) => (after(round), None, Some(round)),
            Step::Share(_) | Step::Gather(_) => (whole, None, None),
        };
        let exchange = step.exchange();
        StepView {
            bucket: self.bucket,
            step: cost.step.to_string(),
            owns: [owns.0, owns.1],
            sends: self.messages(exchange.sends(), round),
            receives: self.messages(exchange.receives(), round),
            combine,
            sent_bytes: cost.payload.sent(),
            scalar_bytes: cost.scalars.sent(),
            accessed_bytes: cost.accesses,
            seconds: cost.seconds,
        }
    }

    /// Messages of one direction, by the ranks on the other side.
    fn messages<'t>(
        &self,
        transfers: impl Iterator<Item = &'t Transfer<VectorPart>>,
        round: Option<usize>,
    ) -> Vec<Message> {
        let message = |transfer: &Transfer<VectorPart>| {
            let (sender, receiver) = match transfer.direction {
                Direction::Send => (self.plan.rank, transfer.peer),
                Direction::Receive => (transfer.peer, self.plan.rank),
            };
            let range = transfer.part.range;
            Message {
                peer: transfer.peer,
                range: [range.start(), range.end()],
                bytes: range.len() * self.plan.dtype.size(),
                tag: round.and_then(|round| self.tag(round, sender, receiver)),
            }
        };
        let mut messages: Vec<Message> = transfers.map(message).collect();
        messages.sort_unstable_by_key(|message| message.peer);
        messages
    }

    /// The tag that the cells would use; a bucket takes the place of a parameter.
    fn tag(&self, round: usize, sender: u32, receiver: u32) -> Option<u32> {
        let index = match sender < receiver {
            true => self.bucket,
            false => self.buckets + self.bucket,
        };
        let (round, index) = (u32::try_from(round).ok()?, u32::try_from(index).ok()?);
        Some(tag(round, sender, index, TagHash::Sha1))
    }
}

fn mean_view(mean: &Combine) -> CombineView {
    CombineView {
        vectors: mean.operands,
        own: mean.own,
        group: None,
        scalars: None,
    }
}

fn round_view(round: &Round) -> CombineView {
    let count: u32 = round.members.iter().map(|group| group.count).sum();
    let ranks = || {
        round
            .members
            .iter()
            .copied()
            .flat_map(Group::ranks)
            .collect::<Vec<u32>>()
    };
    let scalars = &round.scalars;
    CombineView {
        vectors: round.combine.operands,
        own: round.combine.own,
        group: (count <= NAMED).then(|| group_name(&ranks())),
        scalars: Some(ScalarsView {
            first_rank: scalars.group.first,
            ranks: scalars.group.count,
            stride: scalars.group.stride,
            tensors: [scalars.tensors.start(), scalars.tensors.end()],
            how: match scalars.owned {
                Some(_) => "owned",
                None => "gathered",
            },
        }),
    }
}

/// The subtrees that each round merges; an empty buffer is enough to ask for them.
fn rounds(shape: Shape, choices: Choices) -> Result<Vec<Vec<Vec<[u32; 2]>>>> {
    let layout = crate::plan::Layout::new(crate::plan::DType::F32, &[])?;
    let shape = Shape::new(shape.servers, 1)?;
    let planner = Planner::with(shape, layout, choices)?;
    let mut rounds: Vec<Vec<Vec<[u32; 2]>>> = Vec::new();
    for server in 0..shape.servers {
        for (index, round) in planner.plan(server)?.rounds.iter().enumerate() {
            if rounds.len() <= index {
                rounds.push(Vec::new());
            }
            let parts = round
                .members
                .iter()
                .map(|group| [group.first, group.first + group.count]);
            let parts: Vec<[u32; 2]> = parts.collect();
            if rounds[index].last() != Some(&parts) {
                rounds[index].push(parts);
            }
        }
    }
    Ok(rounds)
}

/// The tree in brackets: rounds of radix 2 are its nodes.
fn tree(shape: Shape) -> Result<String> {
    let mut subtrees: std::collections::BTreeMap<u32, String> = (0..shape.servers)
        .map(|server| (server, server.to_string()))
        .collect();
    for round in rounds(shape, Choices::new(2))? {
        for parts in round.iter().filter(|parts| parts.len() > 1) {
            let names = parts.iter().filter_map(|part| subtrees.remove(&part[0]));
            let names: Vec<String> = names.collect();
            subtrees.insert(parts[0][0], format!("({})", names.join(" ")));
        }
    }
    Ok(subtrees.into_values().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trees of the documentation.
    #[test]
    fn trees_are_those_of_the_contract() {
        for (servers, expected) in [
            (1, "0"),
            (2, "(0 1)"),
            (5, "(((0 1) (2 3)) 4)"),
            (6, "(((0 1) (2 3)) (4 5))"),
            (9, "((((0 1) 2) ((3 4) 5)) ((6 7) 8))"),
        ] {
            assert_eq!(tree(Shape::new(servers, 4).unwrap()).unwrap(), expected);
        }
    }

    #[test]
    fn rounds_of_a_larger_radix_merge_more() {
        let shape = Shape::new(8, 1).unwrap();
        assert_eq!(rounds(shape, Choices::new(2)).unwrap().len(), 3);
        let one = rounds(shape, Choices::new(8)).unwrap();
        let parts: Vec<[u32; 2]> = (0..8).map(|server| [server, server + 1]).collect();
        assert_eq!(one, [[parts]]);
    }
}
