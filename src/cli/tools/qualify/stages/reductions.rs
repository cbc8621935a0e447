//! Whole reductions beside double precision.

use std::time::{Duration, Instant};

use crate::ascend::{DataType, GROUPS_RUN, Span, Stream, groups_run};
use crate::cli::lab::reference::{
    adasum, download, name, relative_error, roundoff, upload, vector,
};
use crate::cli::tools::qualify::findings::{Findings, Seen, require};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::error::{Context, Result};
use crate::kernel::Chip;
use crate::plan::{Form, Reach};
use crate::reduce::{DType, GradientReducer, Options, Reduction, TensorSpec, Wire, World};

/// Elements of the tensors of a reduction: small, odd, and more than one bucket.
const COUNTS: [usize; 4] = [70, 1001, 40_000, 300_007];
/// Bytes of a bucket.
const BUCKET: u64 = 512 << 10;
const STEPS: u32 = 2;
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    // Each rank as a server of its own, then servers of several ranks.
    let mut shapes = vec![1];
    shapes.extend(Some(own.locals()?).filter(|&locals| locals > 1));
    for locals in shapes {
        let world = own.world(locals, &format!("world-of-{locals}"))?;
        let (servers, device) = (world.servers(), world.device());
        let chip = Chip::named(&device.soc_name()?)?;
        let groups = groups_run(device)?;
        let reads_peers = Case::plain().options().reach(&world)? != Reach::None;
        for case in cases(servers) {
            if !chip.computes_with(case.dtype) {
                continue;
            }
            let what = format!("{servers} servers of {locals}, {}", case.name());
            if case.exchange == Form::Group && !groups {
                findings.skip(what, GROUPS_RUN);
                continue;
            }
            if case.exchange == Form::Shared && !reads_peers {
                findings.skip(what, "ranks cannot read each other's memory");
                continue;
            }
            let done = findings.attempt(what, || Ok(((), case.reduce(&world)?)));
            done.context(|| "after a failed reduction")?;
        }
        world.finish(PATIENCE)?;
    }
    Ok(())
}

/// A reduction to try.
pub(crate) struct Case {
    dtype: DataType,
    reduction: Reduction,
    wire: Wire,
    radix: u32,
    exchange: Form,
}

/// What users can choose, each choice at least once.
fn cases(servers: u32) -> Vec<Case> {
    let plain = || Case::plain();
    let mut cases = Vec::new();
    for exchange in Form::ALL {
        for radix in [2, 4, 8] {
            if radix == 2 || radix <= servers {
                cases.push(Case {
                    exchange,
                    radix,
                    ..plain()
                });
            }
        }
        for dtype in [DataType::F16, DataType::Bf16] {
            cases.push(Case {
                exchange,
                dtype,
                ..plain()
            });
        }
    }
    for reduction in [Reduction::Mean, Reduction::Sum] {
        cases.push(Case {
            reduction,
            ..plain()
        });
    }
    cases.push(Case {
        dtype: DataType::F16,
        wire: Wire::F32,
        ..plain()
    });
    cases
}

impl Case {
    pub(crate) fn plain() -> Case {
        Case {
            dtype: DataType::F32,
            reduction: Reduction::Adasum,
            wire: Wire::Native,
            radix: 2,
            exchange: Form::Batch,
        }
    }

    fn name(&self) -> String {
        let reduction = match self.reduction {
            Reduction::Adasum => format!("AdaSum of radix {}", self.radix),
            Reduction::Mean => "mean".to_owned(),
            Reduction::Sum => "sum".to_owned(),
        };
        let wire = match self.wire {
            Wire::Native => "",
            Wire::F32 => " on an f32 wire",
        };
        let exchange = self.exchange.name();
        format!("{reduction}, {}{wire}, {exchange}", name(self.dtype))
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            reduction: self.reduction,
            radix: self.radix,
            exchange: Some(self.exchange),
            wire: self.wire,
            bucket_bytes: BUCKET,
            create_timeout: PATIENCE,
            stall_timeout: PATIENCE,
            ..Options::default()
        }
    }

    pub(crate) fn specs(&self) -> Vec<TensorSpec> {
        let dtype = match self.dtype {
            DataType::F16 => DType::F16,
            DataType::Bf16 => DType::BF16,
            _ => DType::F32,
        };
        let spec = |count: &usize| TensorSpec::new(format!("of {count}"), *count as u64, dtype);
        COUNTS.iter().map(spec).collect()
    }

    /// Reduces some steps and compares the results with those of all ranks' gradients in double precision.
    pub(crate) fn reduce(&self, world: &World) -> Result<Seen> {
        let (device, rank) = (world.device(), world.rank());
        let mut reducer = GradientReducer::new(world, &self.specs(), &self.options())?;
        let stream = Stream::new(device)?;
        let (mut worst, mut seconds) = (0.0_f64, 0.0);
        for step in 0..STEPS {
            let upload = |(tensor, &count): (usize, &usize)| -> Result<Span> {
                let seed = seed(rank, step, tensor);
                upload(device, self.dtype, &vector(self.dtype, seed, count))
            };
            let spans: Vec<Span> = COUNTS
                .iter()
                .enumerate()
                .map(upload)
                .collect::<Result<_>>()?;
            let begin = Instant::now();
            reducer.reduce(&spans, &stream)?;
            reducer.synchronize(&stream, PATIENCE)?;
            seconds = begin.elapsed().as_secs_f64();
            for (tensor, span) in spans.iter().enumerate() {
                let error = relative_error(
                    &download(self.dtype, span)?,
                    &self.expected(world, step, tensor),
                );
                worst = worst.max(error);
            }
        }
        let tolerance = self.tolerance(world);
        require(worst <= tolerance, || {
            format!("the relative error is {worst:.1e}, more than {tolerance:.1e}")
        })?;
        Ok(Seen::figure(1e3 * seconds, "ms").and(format!("relative error {worst:.1e}")))
    }

    /// The result by all ranks' gradients.
    fn expected(&self, world: &World, step: u32, tensor: usize) -> Vec<f64> {
        let of = |rank| vector(self.dtype, seed(rank, step, tensor), COUNTS[tensor]);
        let locals = world.locals();
        let scaled = |ranks: std::ops::Range<u32>, factor: f64| -> Vec<f64> {
            let all: Vec<Vec<f64>> = ranks.map(of).collect();
            (0..COUNTS[tensor])
                .map(|at| factor * all.iter().map(|values| values[at]).sum::<f64>())
                .collect()
        };
        match self.reduction {
            Reduction::Mean => scaled(0..world.size(), 1.0 / f64::from(world.size())),
            Reduction::Sum => scaled(0..world.size(), 1.0),
            Reduction::Adasum => {
                let server = |s| scaled(s * locals..(s + 1) * locals, 1.0 / f64::from(locals));
                adasum(&(0..world.servers()).map(server).collect::<Vec<_>>())
            }
        }
    }

    /// A rounding for each time that elements are written in their type, and the sums in fp32.
    fn tolerance(&self, world: &World) -> f64 {
        const FP32: f64 = 5e-6;
        let roundings = match self.wire {
            Wire::F32 => 1,
            Wire::Native => 2 + world.size().ilog2(),
        };
        FP32 + f64::from(roundings) * roundoff(self.dtype)
    }
}

fn seed(rank: u32, step: u32, tensor: usize) -> u64 {
    1 + u64::from(rank) + 1000 * u64::from(step) + 1_000_000 * tensor as u64
}
