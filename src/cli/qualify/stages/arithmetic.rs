//! Each kernel, element type and radix against double precision, and its speed beside a copy.

mod guard;
mod moves;
mod problem;

use self::problem::Problem;
use crate::ascend::{self, DataType, Device, Stream};
use crate::cli::bench::{ElementType, kernels};
use crate::cli::qualify::findings::{Findings, Seen};
use crate::cli::qualify::stage::Place;
use crate::cli::reference::{TYPES, name};
use crate::error::Result;
use crate::kernel::Kernels;

/// Numbers of vectors that rounds merge.
const RADICES: [usize; 3] = [2, 4, 8];
/// Bytes of all vectors of a launch that is timed, and how often it is.
const TIMED: usize = 256 << 20;
/// Where a processor of the host plays the device.
const TIMED_BY_HOST: usize = 8 << 20;
const REPETITIONS: u32 = 5;

/// What kernels run with.
struct Machine {
    device: Device,
    stream: Stream,
    kernels: Kernels,
}

pub(crate) fn run(place: &Place, findings: &mut Findings) -> Result<()> {
    let device = place.device()?;
    let machine = Machine {
        stream: Stream::new(&device)?,
        kernels: Kernels::load(&device)?,
        device,
    };
    let (types, absent): (Vec<DataType>, Vec<DataType>) = TYPES
        .iter()
        .partition(|dtype| machine.kernels.chip().computes_with(**dtype));
    for dtype in absent {
        findings.skip(name(dtype), "the processor does not compute with it");
    }
    for &dtype in &types {
        for radix in RADICES {
            reduce(&machine, dtype, radix, findings);
        }
        moves::subtract(&machine, dtype, findings);
        moves::finite(&machine, dtype, findings);
        for &other in &types {
            moves::pack(&machine, dtype, other, findings);
            moves::unpack(&machine, dtype, other, findings);
        }
    }
    speed(&machine, findings);
    // Last: what a guard fails may leave the device in any state.
    guard::run(&machine, findings);
    Ok(())
}

/// The way of `radix` vectors to their AdaSum.
fn reduce(machine: &Machine, dtype: DataType, radix: usize, findings: &mut Findings) {
    let of = |kernel: &str| format!("{kernel} {} of {radix}", name(dtype));
    let mut made = None;
    let named = of("gram and fold");
    let is_right = findings.check(named, || {
        let problem = Problem::new(machine, dtype, radix)?;
        let error = problem.products(machine)?;
        made = Some(problem);
        problem::within(error, problem::FP32)
    });
    let Some(problem) = made.filter(|_| is_right) else {
        for kernel in ["coefficients", "weighted_sum"] {
            findings.skip(of(kernel), "what it takes is wrong");
        }
        return;
    };
    if !findings.check(of("coefficients"), || {
        problem::within(problem.weights(machine)?, problem::FP32)
    }) {
        findings.skip(of("weighted_sum"), "what it takes is wrong");
        return;
    }
    findings.check(of("weighted_sum"), || {
        problem::within(problem.sum(machine)?, problem.tolerance())
    });
}

/// Every kernel's share of the rate of a copy.
fn speed(machine: &Machine, findings: &mut Findings) {
    let chip = machine.kernels.chip();
    let types: Vec<ElementType> = [ElementType::F32, ElementType::F16, ElementType::Bf16]
        .into_iter()
        .filter(|&dtype| chip.computes_with(dtype.into()))
        .collect();
    let mut lines = Vec::new();
    let timed = findings.check("all kernels are timed", || {
        let bytes = match ascend::backend()?.name {
            "mock" => TIMED_BY_HOST,
            _ => TIMED,
        };
        kernels::on_all_cores(&machine.device, &types, bytes, REPETITIONS, &mut |line| {
            let to = line.to.map_or_else(String::new, |to| format!(" to {to}"));
            let form = match line.form {
                "plain" => String::new(),
                other => format!(", {}", other.replace('_', "-")),
            };
            let what = format!("{} {} of {}{to}{form}", line.kernel, line.dtype, line.radix);
            lines.push((what, 100.0 * line.copy_fraction));
            Ok(())
        })?;
        Ok(Seen::default())
    });
    for (what, share) in lines.into_iter().filter(|_| timed) {
        findings.check(format!("speed of {what}"), || {
            Ok(Seen::figure(share, "% of a copy's rate"))
        });
    }
}
