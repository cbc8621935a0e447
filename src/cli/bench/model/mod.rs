//! The cost model beside a reduction: what this machine can do is measured first by steps of other sizes, the cost of the very
//! plans that run is computed from it, and the phases of the reduction are measured in turn with the steps.

mod calibration;
mod walk;

use serde::Serialize;

use self::calibration::{Calibration, Measured, Modelled};
use self::walk::{RECORD, Stride, Walk};
use super::rank::tell;
use super::reduction::{Bench, PHASES};
use super::request::Reduced;
use crate::ascend::DataType;
use crate::error::Result;

/// Bytes of a half of a merge whose time is next to all launches and latencies.
const TINY: usize = 1 << 10;
/// Bytes of short tensors.
const SHORT: usize = 2 << 10;
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
    calibration: serde_json::Value,
}

/// Calibrates, reduces and tells, rank 0 for all.
///
/// # Errors
/// Whatever fails on this rank.
pub(super) fn run(bench: &mut Bench<'_>, what: &Reduced) -> Result<()> {
    let world = bench.world();
    let whole = bench.whole();
    let dtype = DataType::from(what.dtype);
    let walks = strides(whole.len(), bench.bucket_bytes())
        .map(|stride| Walk::new(world, &whole, dtype, stride));
    let [tiny, long, short] = walks;
    let walks = [tiny?, long?, short?];

    let mut phases = Vec::new();
    let mut steps: [Vec<f32>; 3] = Default::default();
    let mut again = Vec::new();
    for _ in 0..what.reps {
        phases.extend(bench.timed_phases()?);
        for (walk, steps) in walks.iter().zip(&mut steps) {
            steps.extend(bench.timed(|stream| walk.enqueue(stream), || walk.seconds())?);
        }
        let long = &walks[1];
        again.extend(bench.timed(|stream| long.enqueue_again(stream), || long.seconds_again())?);
    }
    let measured = bench.shortest::<{ PHASES.len() }>(&phases)?;
    let measured_steps = |index: usize| -> Result<Measured> {
        Ok(walks[index].measured(bench.shortest(&steps[index])?))
    };
    let steps = [measured_steps(0)?, measured_steps(1)?, measured_steps(2)?];
    let [again] = bench.shortest(&again)?;
    let calibration = Calibration::of(&steps, again, what.ranks, RECORD as u64);

    let mut sum = [0.0; 5];
    for plan in bench.plans()? {
        let seconds: Modelled = calibration.phases(&plan);
        for (sum, seconds) in sum.iter_mut().zip(seconds.seconds()) {
            *sum += seconds;
        }
    }
    #[allow(clippy::cast_possible_truncation, reason = "fp32 is enough for a time")]
    let modelled = bench.slowest(&sum.map(|seconds| seconds as f32))?;
    if world.rank() != 0 {
        return Ok(());
    }
    tell(&Machine {
        model: "calibration",
        ranks: what.ranks,
        dtype: what.dtype.name(),
        calibration: calibration.figures(),
    })?;
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

/// Merges of next to nothing; of three quarters of a bucket in one tensor each; of as much in short tensors.
fn strides(whole: usize, bucket: u64) -> [Stride; 3] {
    let bucket = usize::try_from(bucket).unwrap_or(usize::MAX).min(whole);
    let half = bucket / 8 * 3 / 64 * 64;
    [
        (TINY, TINY, 1),
        (half, half, usize::MAX),
        (half, SHORT, usize::MAX),
    ]
    .map(|(half, tensor, merges)| Stride {
        half,
        tensor,
        merges,
    })
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
