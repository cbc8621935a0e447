//! The cost model beside a reduction: what this machine can do is measured first by steps of other sizes, the cost of the very
//! plans that run is computed from it, and the phases of the reduction are measured in turn with the steps.

mod calibration;
mod regime;
mod walk;

use serde::Serialize;

use self::calibration::Calibration;
use self::regime::Regime;
use super::rank::tell;
use super::reduction::{Bench, PHASES, narrow};
use super::request::Reduced;
use crate::ascend::DataType;
use crate::error::Result;
use crate::plan::Plan;

/// A phase with less of the time than this is not judged alone.
const SHARE: f64 = 0.1;
/// How far the model may be off.
const TOLERANCE: f64 = 0.3;
/// The least bytes of gradients: a merge that is calibrated with must be larger than a tiny one.
pub(super) const LEAST: u64 = 128 << 10;

/// A phase, or all of them.
#[derive(Serialize)]
struct Line {
    model: &'static str,
    ranks: u32,
    devices_per_server: u32,
    dtype: &'static str,
    bytes: u64,
    layers: u32,
    reps: u32,
    measured_s: f64,
    model_s: f64,
    /// Of the model to the measured time.
    ratio: f64,
    /// Of the measured time of all phases.
    share: f64,
    /// Whether the ratio is within 30 % of 1; absent for phases that take less than a tenth of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<bool>,
}

/// The machine that was measured.
#[derive(Serialize)]
struct Machine {
    model: &'static str,
    ranks: u32,
    dtype: &'static str,
    /// Of the largest bucket that it stands for.
    bucket_bytes: u64,
    calibration: serde_json::Value,
}

/// Calibrates, reduces and tells, rank 0 for all.
///
/// # Errors
/// Whatever fails on this rank.
pub(super) fn run(bench: &mut Bench<'_>, what: &Reduced) -> Result<()> {
    let plans = bench.plans()?;
    let bytes = |plan: &Plan| plan.elements * plan.dtype.size();
    let sizes = regime::sizes(&plans.iter().map(bytes).collect::<Vec<u64>>());
    let regimes = sizes.iter();
    let regimes: Result<Vec<Regime<'_>>> = regimes
        .map(|&size| Regime::new(bench, DataType::from(what.dtype), size))
        .collect();
    let mut regimes = regimes?;
    let mut phases = Vec::new();
    for _ in 0..what.reps {
        phases.extend(bench.timed_phases()?);
        for regime in &mut regimes {
            regime.sample(bench)?;
        }
    }
    let measured = bench.shortest::<{ PHASES.len() }>(&phases)?;
    let calibrations = regimes.iter();
    let calibrations: Result<Vec<Calibration>> = calibrations
        .map(|regime| regime.calibration(bench, what.ranks))
        .collect();
    let calibrations = calibrations?;

    let mut sum = [0.0; 5];
    for plan in &plans {
        let calibration = &calibrations[regime::closest(&sizes, bytes(plan))];
        for (sum, seconds) in sum.iter_mut().zip(calibration.phases(plan).seconds()) {
            *sum += seconds;
        }
    }
    let modelled = bench.slowest(&narrow(sum))?;
    if bench.world().rank() != 0 {
        return Ok(());
    }
    for (regime, calibration) in regimes.iter().zip(&calibrations) {
        tell(&Machine {
            model: "calibration",
            ranks: what.ranks,
            dtype: what.dtype.name(),
            bucket_bytes: regime.bucket,
            calibration: calibration.figures(),
        })?;
    }
    // Copies are not part of the model: there are none where tensors are reduced in place.
    let total = Pair {
        measured: measured[1..].iter().sum(),
        modelled: modelled.iter().sum(),
    };
    for ((name, &measured), modelled) in PHASES[1..].iter().zip(&measured[1..]).zip(modelled) {
        let pair = Pair { measured, modelled };
        tell(&pair.line(name, what, total.measured))?;
    }
    tell(&total.line("sum", what, total.measured))
}

/// Seconds of a phase.
struct Pair {
    measured: f64,
    modelled: f64,
}

impl Pair {
    fn line(&self, name: &'static str, what: &Reduced, total: f64) -> Line {
        let ratio = self.modelled / self.measured;
        let share = self.measured / total;
        Line {
            model: name,
            ranks: what.ranks,
            devices_per_server: what.locals,
            dtype: what.dtype.name(),
            bytes: what.bytes,
            layers: what.tensors,
            reps: what.reps,
            measured_s: self.measured,
            model_s: self.modelled,
            ratio,
            share,
            within: (share >= SHARE).then_some((ratio - 1.0).abs() <= TOLERANCE),
        }
    }
}
