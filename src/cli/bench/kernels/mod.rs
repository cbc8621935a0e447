//! Each kernel on one core, beside a copy by one thread and a plain loop of three dot products. The copy is one within device
//! memory, where the kernels' vectors lie: the pages of other memory may be faster or slower.

mod cases;
mod scalar;

use std::time::Duration;

use serde::Serialize;

use self::cases::{Case, DeviceCopy, Maker, Place};
use self::scalar::ScalarDot;
use super::rank::tell;
use super::request::ElementType;
use super::timing::minima;
use crate::ascend::Device;
use crate::error::Result;

/// How long a launch may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Numbers of vectors that are timed.
const RADICES: [usize; 3] = [2, 4, 8];

/// One kernel on one type.
#[derive(Serialize)]
struct Line {
    kernel: &'static str,
    dtype: &'static str,
    radix: usize,
    /// Of an element of one vector; of a record for fold, of a tensor for coefficients.
    ns_per_element: f64,
    /// Rate of the bytes that the kernel must read and write, over that of a copy.
    copy_fraction: f64,
    /// `memory` or `cache`: where the operands come from.
    from: &'static str,
    /// `plain`, or `two_float` where sums are kept in two fp32 numbers.
    form: &'static str,
    /// The type that pack and unpack write.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'static str>,
    /// Elements of a vector.
    elements: usize,
    reps: u32,
    /// Read and written bytes of the copy within device memory, in 10^9 a second.
    copy_gb_per_s: f64,
    /// For gram of two fp32 vectors: how many times as fast as the scalar loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_scalar_f64_dot: Option<f64>,
}

/// Times all kernels on vectors that take `bytes` together.
///
/// # Errors
/// Whatever fails on this rank.
pub(super) fn run(bytes: u64, reps: u32) -> Result<()> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let device = Device::open(0)?;
    let mut bench = Bench {
        copy: DeviceCopy::new(&device, (bytes / 2).max(1))?,
        reps,
    };
    for place in [Place::Memory(bytes), Place::Cache(bytes)] {
        let maker = Maker::new(&device, place)?;
        bench.beside_scalar(&maker)?;
        for dtype in ElementType::ALL {
            bench.reductions(&maker, dtype)?;
            bench.elements(&maker, dtype)?;
        }
        for radix in RADICES {
            bench.time(&maker, maker.fold(radix)?)?;
            bench.time(&maker, maker.coefficients(radix)?)?;
        }
    }
    Ok(())
}

struct Bench {
    copy: DeviceCopy,
    reps: u32,
}

impl Bench {
    /// Kernels of the Gram matrix and of the weighted sum.
    fn reductions(&mut self, maker: &Maker, dtype: ElementType) -> Result<()> {
        for radix in RADICES {
            if (dtype, radix) != (ElementType::F32, 2) {
                self.time(maker, maker.gram(dtype, radix)?)?;
            }
            self.time(maker, maker.weighted_sum(dtype, radix, false)?)?;
            self.time(maker, maker.weighted_sum(dtype, radix, true)?)?;
        }
        Ok(())
    }

    /// Kernels that work element by element.
    fn elements(&mut self, maker: &Maker, dtype: ElementType) -> Result<()> {
        // Between fp32 and the 16-bit types, and without a change.
        let other = match dtype {
            ElementType::F32 => ElementType::Bf16,
            _ => ElementType::F32,
        };
        for (from, to) in [(dtype, dtype), (dtype, other)] {
            self.time(maker, maker.pack(from, to)?)?;
            self.time(maker, maker.unpack(from, to)?)?;
        }
        self.time(maker, maker.subtract(dtype)?)?;
        self.time(maker, maker.finite_check(dtype)?)
    }

    fn time(&mut self, maker: &Maker, case: Case) -> Result<()> {
        let copy = &self.copy;
        let mut kernel = || maker.run(&case);
        let best = minima(self.reps, &mut [&mut || copy.run(), &mut kernel])?;
        tell(&self.line(maker, &case, best[0], best[1]))
    }

    /// The Gram matrix of two fp32 vectors, the copy and the scalar loop in turn.
    fn beside_scalar(&mut self, maker: &Maker) -> Result<()> {
        let case = maker.gram(ElementType::F32, 2)?;
        let mut scalar = ScalarDot::new(case.elements, case.rounds);
        let copy = &self.copy;
        let mut kernel = || maker.run(&case);
        let best = minima(
            self.reps,
            &mut [&mut || copy.run(), &mut kernel, &mut || {
                scalar.run();
                Ok(())
            }],
        )?;
        let mut line = self.line(maker, &case, best[0], best[1]);
        line.times_scalar_f64_dot = Some(best[2] / best[1]);
        tell(&line)?;
        let mut line = self.line(maker, &case, best[0], best[2]);
        line.kernel = "scalar_f64_dot";
        tell(&line)
    }

    fn line(&self, maker: &Maker, case: &Case, copy: f64, time: f64) -> Line {
        let copy_rate = 2.0 * self.copy.len() as f64 / copy;
        let elements = (case.elements * case.rounds) as f64;
        Line {
            kernel: case.kernel,
            dtype: case.dtype.name(),
            radix: case.radix,
            ns_per_element: time / elements * 1e9,
            copy_fraction: case.bytes * elements / time / copy_rate,
            from: maker.place().name(),
            form: case.form,
            to: case.to.map(ElementType::name),
            elements: case.elements,
            reps: self.reps,
            copy_gb_per_s: copy_rate * 1e-9,
            times_scalar_f64_dot: None,
        }
    }
}
