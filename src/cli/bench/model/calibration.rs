//! What a machine can do, from steps of known sizes, and how long the phases of a plan take on it by the cost model.
//!
//! A rank's vectors come out of memory when a bucket is begun and out of the cache afterwards, so there is a [`Machine`] for
//! either. What the machines of `plan` do not know, launches and tensors, is added here.

use serde_json::{Value, json};

use crate::plan::{Cost, Link, Machine, Plan, Step};

/// Seconds of the steps that merge a pair of vectors, each rank with a half of either, by the clock of the device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Steps {
    /// Halves cross.
    pub(super) exchange: f64,
    /// Products and their fold.
    pub(super) gram: f64,
    /// All ranks give each other their records.
    pub(super) gather: f64,
    /// Coefficients and the weighted sum.
    pub(super) combine: f64,
    /// Results cross.
    pub(super) back: f64,
    /// The same once more, with another rank: nothing was computed in between that ranks could wait for.
    pub(super) back_again: f64,
}

/// Steps of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// Bytes of a half.
    pub(super) bytes: f64,
    /// Tensors in it.
    pub(super) tensors: f64,
    pub(super) steps: Steps,
}

/// Launches of a phase and what each tensor adds, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fixed {
    pub(super) launches: f64,
    pub(super) tensor: f64,
}

/// A machine as it was measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calibration {
    /// Links and products for what comes out of memory.
    first: Machine,
    /// The same for what a step before has touched.
    again: Machine,
    /// Scalars, and weighted sums of what was touched.
    rest: Machine,
    /// Ways back behind a way back.
    further: Machine,
    gram: Fixed,
    combine: Fixed,
    /// How long a gather waits for ranks that end their products later, as a share of the time of those.
    wait: f64,
}

/// Seconds of the phases of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Modelled {
    pub(super) exchange: f64,
    pub(super) gram: f64,
    pub(super) scalars: f64,
    pub(super) combine: f64,
    pub(super) back: f64,
}

impl Calibration {
    /// From steps of next to nothing, of `long` tensors as large as can be, and of the same bytes in many `short` ones, by
    /// `ranks` ranks with records of `record` bytes. `again` is the time of the products of long tensors that were read right before.
    pub(super) fn of(
        [tiny, long, short]: &[Measured; 3],
        again: f64,
        ranks: u32,
        record: u64,
    ) -> Self {
        let more = long.bytes - tiny.bytes;
        let rate_of = |accesses: f64, step: fn(&Steps) -> f64| {
            rate(accesses * more, step(&long.steps) - step(&tiny.steps))
        };
        let link = |step: fn(&Steps) -> f64| {
            let bandwidth = rate_of(1.0, step);
            let latency = step(&tiny.steps) - tiny.bytes / bandwidth;
            (latency.max(0.0), bandwidth)
        };
        let kernel = |accesses: f64, step: fn(&Steps) -> f64| {
            let rate = rate_of(accesses, step);
            let tensor = (step(&short.steps) - step(&long.steps)) / (short.tensors - long.tensors);
            let tensor = tensor.max(0.0);
            // A tiny merge has a tensor and some bytes, too.
            let launches = step(&tiny.steps) - tensor - accesses * tiny.bytes / rate;
            let launches = launches.max(0.0);
            (rate, Fixed { launches, tensor })
        };
        let (gram_rate, gram) = kernel(2.0, |steps| steps.gram);
        let (combine_rate, combine) = kernel(3.0, |steps| steps.combine);
        let again = again - gram.launches - gram.tensor;
        let doublings = f64::from(ranks.next_power_of_two().ilog2().max(1));
        let records = f64::from(ranks - 1) * (short.tensors - long.tensors) * record as f64;
        let scalars = (
            tiny.steps.gather / doublings,
            rate(records, short.steps.gather - long.steps.gather),
        );
        let apart = long.steps.gather - tiny.steps.gather;
        let products = long.steps.gram - tiny.steps.gram;
        let wait = if products > 0.0 {
            apart / products
        } else {
            0.0
        };
        Calibration {
            first: machine(link(|steps| steps.exchange), gram_rate),
            again: machine(link(|steps| steps.back), rate(2.0 * long.bytes, again)),
            rest: machine(scalars, combine_rate),
            further: machine(link(|steps| steps.back_again), f64::INFINITY),
            gram,
            combine,
            wait: wait.max(0.0),
        }
    }

    /// For a reader: seconds, and GB/s of links (one way) and kernels (read and written); null is too short to tell.
    pub(super) fn figures(&self) -> Value {
        let link = |machine: &Machine| {
            json!({
                "latency_s": short(machine.local.latency),
                "gb_per_s": short(machine.local.bandwidth * 1e-9),
            })
        };
        let kernel = |machine: &Machine| short(machine.memory * 1e-9);
        json!({
            "exchange": link(&self.first),
            "exchange_again": link(&self.again),
            "return_again": link(&self.further),
            "scalars": link(&self.rest),
            "wait_of_gram": short(self.wait),
            "gram": {
                "launches_s": short(self.gram.launches),
                "tensor_s": short(self.gram.tensor),
                "gb_per_s": kernel(&self.first),
                "again_gb_per_s": kernel(&self.again),
            },
            "combine": {
                "launches_s": short(self.combine.launches),
                "tensor_s": short(self.combine.tensor),
                "gb_per_s": kernel(&self.rest),
            },
        })
    }

    /// The phases of `plan`, of which the steps come one after the other.
    pub(super) fn phases(&self, plan: &Plan) -> Modelled {
        let [first, again, rest, further] = [&self.first, &self.again, &self.rest, &self.further]
            .map(|machine| Cost::of(plan, machine).steps);
        let mut phases = Modelled::default();
        for (index, step) in again.iter().enumerate() {
            let moved = match index {
                0 => first[0].phases,
                _ if phases.back > 0.0 => further[index].phases,
                _ => step.phases,
            };
            let rest = rest[index].phases;
            match step.step {
                Step::Return(_) | Step::Gather => phases.back += moved.exchange,
                Step::Share => phases.exchange += moved.exchange,
                Step::Mean => {
                    phases.exchange += moved.exchange;
                    // A sum without coefficients: one of the two launches.
                    phases.combine += moved.combine + self.combine.launches / 2.0;
                }
                Step::Round(round) => {
                    let tensors = plan.rounds[round].scalars.records as f64;
                    let fixed = |fixed: &Fixed| fixed.launches + tensors * fixed.tensor;
                    phases.exchange += moved.exchange;
                    let gram = moved.gram + fixed(&self.gram);
                    phases.gram += gram;
                    phases.scalars += rest.scalars + gram * self.wait;
                    phases.combine += rest.combine + fixed(&self.combine);
                }
            }
        }
        phases
    }
}

impl Modelled {
    /// In the order of the phases.
    pub(super) fn seconds(&self) -> [f64; 5] {
        [
            self.exchange,
            self.gram,
            self.scalars,
            self.combine,
            self.back,
        ]
    }
}

/// One link for all peers; the rates of kernels are those of launches, arithmetic included.
fn machine((latency, bandwidth): (f64, f64), memory: f64) -> Machine {
    let link = Link {
        latency,
        bandwidth,
        mesh: false,
    };
    Machine {
        name: "measured".to_owned(),
        local: link,
        remote: link,
        message: 0.0,
        memory,
        product: 0.0,
        wide: 0.0,
        all_to_all: None,
        groups: false,
        staged: false,
    }
}

/// Four digits: what was measured has no more.
fn short(value: f64) -> Option<f64> {
    format!("{value:.3e}")
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

/// Units in a second; without end where the clock saw no time pass.
fn rate(units: f64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        units / seconds
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
mod tests;
