//! What is compared: AdaSum by its plans, and all-reduces by their closed formulas, as stages.
//!
//! All use the same links, memory and latencies, and none is credited with what another is not: an exchange of a step costs its
//! latency, a message for each further peer, and the bytes of the busiest link. AdaSum pays for the launches of its kernels;
//! all-reduces add while they receive and pay for none.

use std::collections::BTreeMap;

use crate::cli::lab::simulate::cluster::Cluster;
use crate::cli::lab::simulate::timeline::{Lane, TimedStage};
use crate::error::{Error, Result};
use crate::plan::{Choices, Cost, Layout, Link, Planner, Shape, StepKind, StepSeconds};

/// Ranks of a plan that are looked at to find the slowest of each stage.
const SAMPLE: u32 = 32;

/// One of the all-reduces, or AdaSum as MindSpore's cells arrange it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Formula {
    /// A ring of all devices.
    Ring,
    /// NHR over all devices: log2 steps each way.
    Nhr,
    /// Reduce-scatter in the server, NHR between servers, all-gather in the server.
    Hierarchical,
    /// MindSpore's cells: the mean in the server, then each device its whole vector, three scalar all-reduces a step.
    MindSpore,
}

impl Formula {
    pub(crate) const ALL: [Formula; 4] = [
        Formula::Ring,
        Formula::Nhr,
        Formula::Hierarchical,
        Formula::MindSpore,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Formula::Ring => "ring all-reduce",
            Formula::Nhr => "NHR all-reduce",
            Formula::Hierarchical => "hierarchical all-reduce",
            Formula::MindSpore => "AdaSum, MindSpore's scheme",
        }
    }

    /// The stages of `bytes`; `None` where the scheme does not exist.
    pub(crate) fn stages(
        self,
        cluster: &Cluster,
        shape: Shape,
        bytes: f64,
    ) -> Option<Vec<TimedStage>> {
        let model = Model {
            cluster,
            shape,
            bytes,
        };
        match self {
            Formula::Ring => Some(model.ring()),
            Formula::Nhr => Some(model.nhr()),
            Formula::Hierarchical => Some(model.hierarchical()),
            Formula::MindSpore => model.seed(),
        }
    }

    /// Bytes that a device sends to other servers.
    pub(crate) fn bytes_between_servers(self, shape: Shape, bytes: f64) -> f64 {
        let (p, servers) = (f64::from(shape.size()), f64::from(shape.servers));
        match self {
            // The devices at the ends of a server send all that they send over the network.
            Formula::Ring | Formula::Nhr => 2.0 * (p - 1.0) / p * bytes,
            Formula::Hierarchical => {
                2.0 * (servers - 1.0) / servers * bytes / f64::from(shape.locals)
            }
            Formula::MindSpore => 2.0 * (servers - 1.0) / servers * bytes,
        }
    }
}

/// Closed formulas of a cluster.
struct Model<'a> {
    cluster: &'a Cluster,
    shape: Shape,
    bytes: f64,
}

impl Model<'_> {
    fn ring(&self) -> Vec<TimedStage> {
        let p = f64::from(self.shape.size());
        let link = self.slowest();
        let moved = (p - 1.0) * link.latency + (p - 1.0) / p * self.bytes / link.bandwidth;
        self.all_reduce(moved, (p - 1.0) / p * self.bytes)
    }

    fn nhr(&self) -> Vec<TimedStage> {
        let p = f64::from(self.shape.size());
        let link = self.slowest();
        let moved = f64::from(doublings(self.shape.size())) * link.latency
            + (p - 1.0) / p * self.bytes / link.bandwidth;
        self.all_reduce(moved, (p - 1.0) / p * self.bytes)
    }

    fn hierarchical(&self) -> Vec<TimedStage> {
        let share = self.bytes / f64::from(self.shape.locals);
        let mut stages = self.mean();
        stages.extend(self.between(share));
        stages.extend(self.in_server());
        stages
    }

    fn seed(&self) -> Option<Vec<TimedStage>> {
        if !self.shape.servers.is_power_of_two() {
            return None;
        }
        let machine = &self.cluster.machine;
        let mut stages = self.mean();
        stages.extend(self.in_server());
        let mut half = self.bytes;
        let rounds = self.shape.servers.ilog2();
        for round in 1..=rounds {
            half /= 2.0;
            stages.push(self.remote_step(half));
            // Copies, products and sums of its operators: twelve passes over the half.
            stages.push(kernel(12.0 * half / machine.memory));
            stages.push(TimedStage {
                lane: Lane::Scalars,
                seconds: 3.0 * f64::from(round) * machine.remote.latency,
            });
        }
        for _ in 0..rounds {
            stages.push(self.remote_step(half));
            half *= 2.0;
        }
        Some(stages)
    }

    /// Each device gets its share of the server's sum.
    fn mean(&self) -> Vec<TimedStage> {
        let locals = f64::from(self.shape.locals);
        let share = self.bytes / locals;
        let mut stages = self.in_server();
        if !stages.is_empty() {
            stages.push(kernel((locals + 1.0) * share / self.cluster.machine.memory));
        }
        stages
    }

    /// One exchange of shares with all devices of the server.
    fn in_server(&self) -> Vec<TimedStage> {
        let machine = &self.cluster.machine;
        let peers = f64::from(self.shape.locals) - 1.0;
        if peers < 1.0 {
            return Vec::new();
        }
        let share = self.bytes / f64::from(self.shape.locals);
        let busiest = if machine.local.mesh {
            share
        } else {
            peers * share
        };
        let seconds = machine.local.latency
            + (peers - 1.0) * machine.message
            + busiest / machine.local.bandwidth;
        vec![TimedStage {
            lane: Lane::Payload,
            seconds,
        }]
    }

    /// NHR of `bytes` between servers: steps that halve, then double, each with its sum.
    fn between(&self, bytes: f64) -> Vec<TimedStage> {
        let servers = self.shape.servers;
        if servers == 1 {
            return Vec::new();
        }
        let machine = &self.cluster.machine;
        let steps = doublings(servers);
        let all = f64::from(servers - 1) / f64::from(servers) * bytes;
        let mut stages = Vec::new();
        let mut left = all;
        let mut sizes = Vec::new();
        let mut half = bytes;
        for step in 0..steps {
            half /= 2.0;
            // The last step takes what is left where servers are no power of two.
            let moved = if step + 1 == steps {
                left
            } else {
                half.min(left)
            };
            left -= moved;
            sizes.push(moved);
            stages.push(self.remote_step(moved));
            stages.push(kernel(3.0 * moved / machine.memory));
        }
        stages.extend(sizes.iter().rev().map(|&moved| self.remote_step(moved)));
        stages
    }

    fn remote_step(&self, bytes: f64) -> TimedStage {
        let link = &self.cluster.machine.remote;
        TimedStage {
            lane: Lane::Payload,
            seconds: link.latency + bytes / link.bandwidth,
        }
    }

    /// Scatter, sum and gather, of which two move for `moved` seconds and one reads and writes `summed` bytes thrice.
    fn all_reduce(&self, moved: f64, summed: f64) -> Vec<TimedStage> {
        let payload = TimedStage {
            lane: Lane::Payload,
            seconds: moved,
        };
        vec![
            payload,
            kernel(3.0 * summed / self.cluster.machine.memory),
            payload,
        ]
    }

    /// The link that every step of a flat scheme waits for.
    fn slowest(&self) -> Link {
        match self.shape.servers {
            1 => self.cluster.machine.local,
            _ => self.cluster.machine.remote,
        }
    }
}

fn kernel(seconds: f64) -> TimedStage {
    TimedStage {
        lane: Lane::Kernels,
        seconds,
    }
}

/// log2, rounded up.
fn doublings(members: u32) -> u32 {
    members.next_power_of_two().ilog2()
}

/// The stages of AdaSum on a buffer, each as long as on the slowest rank, and the most bytes that one sends to other servers.
///
/// # Errors
/// If the plan cannot be made.
pub(crate) fn adasum(
    cluster: &Cluster,
    shape: Shape,
    layout: &Layout,
    choices: Choices,
) -> Result<(Vec<TimedStage>, u64)> {
    let planner = Planner::with(shape, layout.clone(), choices)?;
    let samples = SAMPLE.min(shape.size());
    let mut slowest: BTreeMap<StepKind, StepSeconds> = BTreeMap::new();
    let mut bytes = 0;
    for sample in 0..samples {
        let rank = u64::from(sample) * u64::from(shape.size()) / u64::from(samples);
        let rank = u32::try_from(rank).map_err(|_| Error::invalid("rank out of range"))?;
        // Not always the same place in a server.
        let rank = (rank + sample % shape.locals).min(shape.size() - 1);
        let cost = Cost::of(&planner.plan(rank)?, &cluster.machine);
        bytes = cost.payload_between_servers().max(bytes);
        for step in &cost.steps {
            let slow = slowest.entry(step.step).or_default();
            slow.exchange = slow.exchange.max(step.phases.exchange);
            slow.gram = slow.gram.max(step.phases.gram);
            slow.scalars = slow.scalars.max(step.phases.scalars);
            slow.combine = slow.combine.max(step.phases.combine);
        }
    }
    let stages = slowest
        .values()
        .flat_map(|phases| stages(phases, cluster.launch));
    Ok((stages.collect(), bytes))
}

/// The phases of a step, with launches: the sum in the server; Gram matrix, coefficients and weighted sum of a round.
fn stages(phases: &StepSeconds, launch: f64) -> Vec<TimedStage> {
    let mut stages = vec![TimedStage {
        lane: Lane::Payload,
        seconds: phases.exchange,
    }];
    if phases.gram > 0.0 || phases.scalars > 0.0 {
        stages.push(kernel(phases.gram + launch));
        stages.push(TimedStage {
            lane: Lane::Scalars,
            seconds: phases.scalars,
        });
        stages.push(kernel(phases.combine + 2.0 * launch));
    } else if phases.combine > 0.0 {
        stages.push(kernel(phases.combine + launch));
    }
    stages
}

#[cfg(test)]
mod tests;
