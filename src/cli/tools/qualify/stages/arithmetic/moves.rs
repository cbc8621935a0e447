//! Kernels whose results have one right bit pattern: packing, differences, the look for what is not finite.

use crate::ascend::{Buffer, DataType, Span};
use crate::cli::lab::reference::{download, name, rounded, upload, vector};
use crate::cli::tools::qualify::findings::{Findings, Seen, require};
use crate::cli::tools::qualify::stages::arithmetic::problem::{PATIENCE, extent, part, segments};
use crate::cli::tools::qualify::stages::arithmetic::setup::Setup;
use crate::error::Result;
use crate::kernel::layout::{FLAG_WORDS, Segment};
use crate::kernel::{FiniteCheck, Move, SegmentTable, Subtract, Tensors};

/// Every element is multiplied by it, in fp32.
const FACTOR: f32 = 0.3;

/// An element of `dtype` on its way to `other`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the value is a number of fp32"
)]
fn moved(other: DataType, value: f64) -> f64 {
    rounded(other, f64::from(value as f32 * FACTOR))
}

fn same(values: &[f64], expected: &[f64], what: impl Fn(usize) -> String) -> Result<()> {
    let differs = values.iter().zip(expected).position(|(is, be)| is != be);
    require(differs.is_none() && values.len() == expected.len(), || {
        let at = differs.unwrap_or_default();
        format!("{}: {:e}, not {:e}", what(at), values[at], expected[at])
    })
}

/// Tensors become one buffer.
pub(crate) fn pack(setup: &Setup, from: DataType, to: DataType, findings: &mut Findings) {
    findings.check(format!("pack {} to {}", name(from), name(to)), || {
        let case = Moved::new(setup, from, (from, to))?;
        setup.kernels.pack(&setup.stream, &case.launch())?;
        setup.stream.synchronize_timeout(PATIENCE)?;
        let packed = download(to, &case.fused)?;
        case.check(
            to,
            |index| Ok(part(&packed, &case.segments[index]).to_vec()),
        )
    });
}

/// One buffer becomes tensors.
pub(crate) fn unpack(setup: &Setup, from: DataType, to: DataType, findings: &mut Findings) {
    findings.check(format!("unpack {} to {}", name(from), name(to)), || {
        let case = Moved::new(setup, from, (to, from))?;
        setup.kernels.unpack(&setup.stream, &case.launch())?;
        setup.stream.synchronize_timeout(PATIENCE)?;
        case.check(to, |index| download(to, &case.tensors[index]))
    });
}

/// The same values in tensors and in a fused buffer; a kernel moves them from one to the other.
struct Moved {
    values: Vec<f64>,
    segments: Vec<Segment>,
    table: SegmentTable,
    tensors: Vec<Span>,
    list: Tensors,
    fused: Span,
    /// Types of the tensors and of the buffer.
    types: (DataType, DataType),
}

impl Moved {
    fn new(setup: &Setup, from: DataType, types: (DataType, DataType)) -> Result<Moved> {
        let device = &setup.device;
        let segments = segments(setup);
        let values = vector(from, 1, extent(&segments));
        let tensor = |segment| upload(device, types.0, part(&values, segment));
        let tensors = segments.iter().map(tensor).collect::<Result<Vec<Span>>>()?;
        Ok(Moved {
            table: SegmentTable::new(device, &segments)?,
            list: Tensors::new(device, &tensors)?,
            fused: upload(device, types.1, &values)?,
            values,
            segments,
            tensors,
            types,
        })
    }

    fn launch(&self) -> Move<'_> {
        Move {
            tensors: &self.list,
            tensor_type: self.types.0,
            fused: &self.fused,
            fused_type: self.types.1,
            factor: FACTOR,
            segments: &self.table,
        }
    }

    /// Compares what is `found` of each tensor with its values on their way to the type `to`.
    fn check(&self, to: DataType, found: impl Fn(usize) -> Result<Vec<f64>>) -> Result<Seen> {
        for (index, segment) in self.segments.iter().enumerate() {
            let values = part(&self.values, segment).iter();
            let expected: Vec<f64> = values.map(|&x| moved(to, x)).collect();
            same(&found(index)?, &expected, |at| {
                format!("element {at} of {}", segment.len)
            })?;
        }
        Ok(Seen::default())
    }
}

/// Differences, rounded once.
pub(crate) fn subtract(setup: &Setup, dtype: DataType, findings: &mut Findings) {
    const COUNT: usize = 20_003;
    findings.check(format!("subtract {}", name(dtype)), || {
        let [a, b] = [3, 4].map(|seed| vector(dtype, seed, COUNT));
        let out =
            Buffer::zeroed(&setup.device, (COUNT * dtype.size()).next_multiple_of(64))?.span();
        let out = out.slice(0..COUNT * dtype.size())?;
        setup.kernels.subtract(
            &setup.stream,
            &Subtract {
                a: &upload(&setup.device, dtype, &a)?,
                b: &upload(&setup.device, dtype, &b)?,
                out: &out,
                dtype,
                count: COUNT as u64,
            },
        )?;
        setup.stream.synchronize_timeout(PATIENCE)?;
        // The difference of two numbers of fp32 is exact in double precision but for bits far below fp32's.
        let expected: Vec<f64> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| rounded(dtype, a - b))
            .collect();
        same(&download(dtype, &out)?, &expected, |at| {
            format!("element {at}")
        })?;
        Ok(Seen::default())
    });
}

/// Only tensors with a NaN or an infinity have the flag.
pub(crate) fn finite(setup: &Setup, dtype: DataType, findings: &mut Findings) {
    findings.check(format!("finite_check {}", name(dtype)), || {
        let segments = segments(setup);
        let mut values = vector(dtype, 5, extent(&segments));
        let bad = [(2, f64::NAN), (4, f64::INFINITY), (6, f64::NEG_INFINITY)];
        for (tensor, value) in bad {
            let last = segments[tensor].offset + segments[tensor].len - 1;
            values[usize::try_from(last).unwrap_or_default()] = value;
        }
        let flags = Buffer::zeroed(&setup.device, segments.len() * 4 * FLAG_WORDS)?.span();
        setup.kernels.finite_check(
            &setup.stream,
            &FiniteCheck {
                vector: &upload(&setup.device, dtype, &values)?,
                dtype,
                segments: &SegmentTable::new(&setup.device, &segments)?,
                flags: &flags,
            },
        )?;
        setup.stream.synchronize_timeout(PATIENCE)?;
        let words = download(DataType::F32, &flags)?;
        let flagged: Vec<f64> = words
            .chunks_exact(FLAG_WORDS)
            .map(|words| words[0])
            .collect();
        let is_bad = |tensor| bad.iter().any(|(other, _)| *other == tensor);
        let expected: Vec<f64> = (0..segments.len())
            .map(|t| f64::from(u8::from(is_bad(t))))
            .collect();
        same(&flagged, &expected, |tensor| {
            format!("flag of tensor {tensor}")
        })?;
        Ok(Seen::default())
    });
}
