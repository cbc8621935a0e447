//! Each kernel, element type and radix against double precision, and its speed beside a copy.

mod guard;
mod moves;
mod problem;
mod setup;

use crate::ascend::{self, DataType, Stream};
use crate::cli::lab::bench::kernels;
use crate::cli::lab::element_type::ElementType;
use crate::cli::lab::reference::{TYPES, name};
use crate::cli::tools::qualify::findings::{Findings, Seen};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::cli::tools::qualify::stages::arithmetic::problem::Problem;
use crate::cli::tools::qualify::stages::arithmetic::setup::Setup;
use crate::error::Result;
use crate::kernel::Kernels;

/// Numbers of vectors that rounds merge.
const RADICES: [usize; 3] = [2, 4, 8];
/// Bytes of all vectors of a launch that is timed, and how often it is.
const TIMED: usize = 256 << 20;
/// Bytes on the mock, where the CPU plays the device.
const TIMED_BY_HOST: usize = 8 << 20;
const REPETITIONS: u32 = 5;

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    let device = own.device()?;
    let setup = Setup {
        stream: Stream::new(&device)?,
        kernels: Kernels::load(&device)?,
        device,
    };
    let (types, absent): (Vec<DataType>, Vec<DataType>) = TYPES
        .iter()
        .partition(|dtype| setup.kernels.chip().computes_with(**dtype));
    for dtype in absent {
        findings.skip(name(dtype), "the processor does not compute with it");
    }
    for &dtype in &types {
        for radix in RADICES {
            reduce(&setup, dtype, radix, findings);
        }
        moves::subtract(&setup, dtype, findings);
        moves::finite(&setup, dtype, findings);
        for &other in &types {
            moves::pack(&setup, dtype, other, findings);
            moves::unpack(&setup, dtype, other, findings);
        }
    }
    speed(&setup, findings);
    // Last: what a guard fails may leave the device in any state.
    guard::run(&setup, findings);
    Ok(())
}

/// The kernels that turn `radix` vectors into their AdaSum.
fn reduce(setup: &Setup, dtype: DataType, radix: usize, findings: &mut Findings) {
    let of = |kernel: &str| format!("{kernel} {} of {radix}", name(dtype));
    let problem = findings.attempt(of("gram and fold"), || {
        let problem = Problem::new(setup, dtype, radix)?;
        let error = problem.products(setup)?;
        Ok((problem, problem::within(error, problem::FP32)?))
    });
    let Ok(problem) = problem else {
        for kernel in ["coefficients", "weighted_sum"] {
            findings.skip(of(kernel), "what it takes is wrong");
        }
        return;
    };
    if radix > 2 {
        findings.check(of("exact sums of gram"), || {
            problem::within(problem.exactness()?, problem::EXACT)
        });
    }
    if !findings.check(of("coefficients"), || {
        problem::within(problem.weights(setup)?, problem::FP32)
    }) {
        findings.skip(of("weighted_sum"), "what it takes is wrong");
        return;
    }
    findings.check(of("weighted_sum"), || {
        problem::within(problem.sum(setup)?, problem.tolerance())
    });
}

/// Every kernel's share of the rate of a copy.
fn speed(setup: &Setup, findings: &mut Findings) {
    let chip = setup.kernels.chip();
    let types: Vec<ElementType> = ElementType::ALL
        .into_iter()
        .filter(|&dtype| chip.computes_with(dtype.into()))
        .collect();
    let mut lines = Vec::new();
    let timed = findings.check("all kernels are timed", || {
        let bytes = match ascend::backend()?.name {
            "mock" => TIMED_BY_HOST,
            _ => TIMED,
        };
        kernels::on_all_cores(&setup.device, &types, bytes, REPETITIONS, &mut |line| {
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
