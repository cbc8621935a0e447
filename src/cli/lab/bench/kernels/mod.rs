//! Each kernel on one core, beside a copy by one thread and a plain loop of three dot products. The copy is one within device
//! memory, where the kernels' vectors lie: the pages of other memory may be faster or slower.

mod cases;
mod scalar;

use serde::Serialize;

use crate::ascend::Device;
use crate::cli::io::send;
use crate::cli::lab::bench::kernels::cases::{Case, Cases, DeviceCopy, Source};
use crate::cli::lab::bench::kernels::scalar::ScalarDot;
use crate::cli::lab::bench::timing::minima;
use crate::cli::lab::element_type::ElementType;
use crate::error::Result;

/// Numbers of vectors that are timed.
const RADICES: [usize; 3] = [2, 4, 8];

/// One kernel on one type.
#[derive(Serialize)]
pub(crate) struct Line {
    pub(crate) kernel: &'static str,
    pub(crate) dtype: &'static str,
    pub(crate) radix: usize,
    /// Nanoseconds of an element of one vector; of a record for fold, of a tensor for coefficients.
    ns_per_element: f64,
    /// Rate of the bytes that the kernel must read and write, over that of a copy.
    pub(crate) copy_fraction: f64,
    /// `memory` or `cache`: where the operands come from.
    from: &'static str,
    /// `plain`, or `two_float` where sums are kept in two fp32 numbers.
    pub(crate) form: &'static str,
    /// The type that pack and unpack write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<&'static str>,
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
pub(crate) fn run(bytes: u64, reps: u32) -> Result<()> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let device = Device::open(0)?;
    let mut bench = Bench {
        copy: DeviceCopy::new(&device, (bytes / 2).max(1))?,
        reps,
        tell: &mut |line| send(line),
    };
    for source in [Source::Memory(bytes), Source::Cache(bytes)] {
        let cases = Cases::new(&device, source, Some(1))?;
        bench.beside_scalar(&cases)?;
        bench.all(&cases, &ElementType::ALL)?;
    }
    Ok(())
}

/// Times all kernels on all cores of a device, for elements of `dtypes`, on vectors that take `bytes` together.
///
/// # Errors
/// If a launch fails.
pub(crate) fn on_all_cores(
    device: &Device,
    dtypes: &[ElementType],
    bytes: usize,
    reps: u32,
    tell: &mut dyn FnMut(&Line) -> Result<()>,
) -> Result<()> {
    let cases = Cases::new(device, Source::Memory(bytes), None)?;
    let copy = DeviceCopy::new(device, (bytes / 2).max(1))?;
    let mut bench = Bench { copy, reps, tell };
    let pair = cases.gram(ElementType::F32, 2, false)?;
    bench.time(&cases, pair)?;
    bench.all(&cases, dtypes)
}

struct Bench<'a> {
    copy: DeviceCopy,
    reps: u32,
    tell: &'a mut dyn FnMut(&Line) -> Result<()>,
}

impl Bench<'_> {
    /// Times all kernels but the Gram matrix of two fp32 vectors.
    fn all(&mut self, cases: &Cases, dtypes: &[ElementType]) -> Result<()> {
        for &dtype in dtypes {
            self.reductions(cases, dtype)?;
            self.elements(cases, dtype, dtypes)?;
        }
        for radix in RADICES {
            self.time(cases, cases.fold(radix)?)?;
            self.time(cases, cases.coefficients(radix)?)?;
        }
        Ok(())
    }

    /// Times the kernels of the Gram matrix and of the weighted sum.
    fn reductions(&mut self, cases: &Cases, dtype: ElementType) -> Result<()> {
        for radix in RADICES {
            if (dtype, radix) != (ElementType::F32, 2) {
                self.time(cases, cases.gram(dtype, radix, false)?)?;
            }
            if radix > 2 {
                self.time(cases, cases.gram(dtype, radix, true)?)?;
            }
            self.time(cases, cases.weighted_sum(dtype, radix, false)?)?;
            self.time(cases, cases.weighted_sum(dtype, radix, true)?)?;
        }
        Ok(())
    }

    /// Times the kernels that work element by element.
    fn elements(
        &mut self,
        cases: &Cases,
        dtype: ElementType,
        dtypes: &[ElementType],
    ) -> Result<()> {
        // Between fp32 and the 16-bit types, and without a change.
        let other = match dtype {
            ElementType::F32 => dtypes.last().copied().unwrap_or(dtype),
            _ => ElementType::F32,
        };
        for (from, to) in [(dtype, dtype), (dtype, other)] {
            self.time(cases, cases.pack(from, to)?)?;
            self.time(cases, cases.unpack(from, to)?)?;
        }
        self.time(cases, cases.subtract(dtype)?)?;
        self.time(cases, cases.finite_check(dtype)?)
    }

    fn time(&mut self, cases: &Cases, case: Case) -> Result<()> {
        let copy = &self.copy;
        let mut kernel = || cases.run(&case);
        let best = minima(self.reps, &mut [&mut || copy.run(), &mut kernel])?;
        let line = self.line(cases, &case, best[0], best[1]);
        (self.tell)(&line)
    }

    /// The Gram matrix of two fp32 vectors, the copy and the scalar loop in turn.
    fn beside_scalar(&mut self, cases: &Cases) -> Result<()> {
        let case = cases.gram(ElementType::F32, 2, false)?;
        let mut scalar = ScalarDot::new(case.elements, case.rounds);
        let copy = &self.copy;
        let mut kernel = || cases.run(&case);
        let best = minima(
            self.reps,
            &mut [&mut || copy.run(), &mut kernel, &mut || {
                scalar.run();
                Ok(())
            }],
        )?;
        let mut line = self.line(cases, &case, best[0], best[1]);
        line.times_scalar_f64_dot = Some(best[2] / best[1]);
        (self.tell)(&line)?;
        let mut line = self.line(cases, &case, best[0], best[2]);
        line.kernel = "scalar_f64_dot";
        (self.tell)(&line)
    }

    fn line(&self, cases: &Cases, case: &Case, copy: f64, time: f64) -> Line {
        let copy_rate = 2.0 * self.copy.len() as f64 / copy;
        let elements = (case.elements * case.rounds) as f64;
        Line {
            kernel: case.kernel,
            dtype: case.dtype.name(),
            radix: case.radix,
            ns_per_element: time / elements * 1e9,
            copy_fraction: case.bytes * elements / time / copy_rate,
            from: cases.source().name(),
            form: case.form,
            to: case.to.map(ElementType::name),
            elements: case.elements,
            reps: self.reps,
            copy_gb_per_s: copy_rate * 1e-9,
            times_scalar_f64_dot: None,
        }
    }
}
