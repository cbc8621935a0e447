//! Tensors in vectors, and what kernels make of them, beside double precision.

use std::time::Duration;

use crate::ascend::{Buffer, DataType, Span};
use crate::cli::lab::reference::{
    adasum, dot, download, relative_error, rounded, roundoff, upload, vector,
};
use crate::cli::tools::qualify::findings::{Seen, require};
use crate::cli::tools::qualify::stages::arithmetic::setup::Setup;
use crate::error::Result;
use crate::kernel::layout::{
    COEFFICIENT_POST, COEFFICIENT_WEIGHT, MISSING_BYTE, Segment, coefficient_scale,
    coefficient_weight_low, coefficient_words, entry_index, record_exponents, record_words,
};
use crate::kernel::{Coefficients, Fold, Gram, Queue, SegmentTable, Vectors, WeightedSum};

/// Elements of the tensors: about the grains of instructions, of copies and of units.
const COUNTS: [u64; 7] = [1, 3, 65, 511, 4096, 9001, 40_003];
/// Which of them has vectors so near to each other that products of more than two are summed exactly.
const ALIKE: usize = 5;
/// Largest error of sums in fp32, relative to the norms of the vectors.
pub(crate) const FP32: f64 = 2e-6;
/// Largest error of exact sums.
pub(crate) const EXACT: f64 = 1e-11;
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A segment for each tensor, with gaps between them where the processor can copy from anywhere.
pub(crate) fn segments(setup: &Setup) -> Vec<Segment> {
    const GAP: u64 = 5;
    const WHOLE: u64 = 32;
    let (mut offset, mut first_unit) = (0, 0);
    let mut segments = Vec::new();
    for (tensor, len) in (0..).zip(COUNTS) {
        offset = match setup.kernels.chip().copies_whole_blocks() {
            true => u64::next_multiple_of(offset, WHOLE),
            false => offset + GAP,
        };
        let segment = Segment {
            offset,
            len,
            first_unit,
            tensor,
        };
        offset += len;
        first_unit += segment.units();
        segments.push(segment);
    }
    segments
}

/// Elements of a vector with all of them, and a whole block behind the last.
pub(crate) fn extent(segments: &[Segment]) -> usize {
    let end = segments.last().map_or(0, |last| last.offset + last.len);
    usize::try_from(end.next_multiple_of(64)).unwrap_or(usize::MAX)
}

/// The elements of a segment.
pub(crate) fn part<'a, T>(values: &'a [T], segment: &Segment) -> &'a [T] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    &values[index(segment.offset)..index(segment.offset + segment.len)]
}

/// The largest error that was seen, if it is small enough.
pub(crate) fn within(error: f64, tolerance: f64) -> Result<Seen> {
    require(error <= tolerance, || {
        format!("the relative error is {error:.1e}, more than {tolerance:.1e}")
    })?;
    Ok(Seen::figure(error, "relative error"))
}

/// Vectors of tensors on their way to the AdaSum of each tensor.
pub(crate) struct Problem {
    dtype: DataType,
    radix: usize,
    segments: Vec<Segment>,
    table: SegmentTable,
    values: Vec<Vec<f64>>,
    vectors: Vectors,
    partials: Span,
    records: Span,
    coefficients: Span,
    out: Span,
}

impl Problem {
    pub(crate) fn new(setup: &Setup, dtype: DataType, radix: usize) -> Result<Problem> {
        let device = &setup.device;
        let segments = segments(setup);
        let len = extent(&segments);
        let mut values: Vec<Vec<f64>> = (1..=radix as u64)
            .map(|seed| vector(dtype, seed, len))
            .collect();
        let (first, others) = values.split_at_mut(1);
        let start = usize::try_from(segments[ALIKE].offset).unwrap_or(usize::MAX);
        let common = part(&first[0], &segments[ALIKE]);
        for other in others {
            for (value, common) in other[start..].iter_mut().zip(common) {
                *value = rounded(dtype, common + *value / 32.0);
            }
        }
        let spans = values.iter().map(|values| upload(device, dtype, values));
        let spans: Vec<Span> = spans.collect::<Result<_>>()?;
        let record = 4 * record_words(radix);
        let table = SegmentTable::new(device, &segments)?;
        let units = usize::try_from(table.units).unwrap_or(usize::MAX);
        Ok(Problem {
            dtype,
            radix,
            vectors: Vectors::new(device, &spans)?,
            partials: Buffer::zeroed(device, units * record)?.span(),
            records: Buffer::zeroed(device, segments.len() * record)?.span(),
            coefficients: Buffer::zeroed(device, segments.len() * 4 * coefficient_words(radix))?
                .span(),
            out: Buffer::zeroed(device, len * dtype.size())?.span(),
            segments,
            table,
            values,
        })
    }

    /// Largest relative error of a result of the type.
    pub(crate) fn tolerance(&self) -> f64 {
        FP32 + roundoff(self.dtype)
    }

    fn tensors(&self) -> impl Iterator<Item = (&Segment, Vec<Vec<f64>>)> {
        self.segments.iter().map(|segment| {
            let parts = self
                .values
                .iter()
                .map(|values| part(values, segment).to_vec());
            (segment, parts.collect())
        })
    }

    /// The largest error of an entry of a Gram matrix, relative to the norms of both vectors.
    pub(crate) fn products(&self, setup: &Setup) -> Result<f64> {
        let (stream, kernels) = (&setup.stream, &setup.kernels);
        let gram = Gram {
            vectors: &self.vectors,
            dtype: self.dtype,
            segments: &self.table,
            partials: &self.partials,
        };
        kernels.gram(stream, &gram)?;
        let fold = Fold {
            partials: &self.partials,
            segments: &self.table,
            records: &self.records,
            radix: self.radix,
        };
        kernels.fold(stream, &fold)?;
        stream.synchronize_timeout(PATIENCE)?;
        Ok(self.errors()?.into_iter().fold(0.0, f64::max))
    }

    /// The same for the tensor whose vectors are nearly the same, once products are there.
    pub(crate) fn exactness(&self) -> Result<f64> {
        Ok(self.errors()?[ALIKE])
    }

    /// The largest error of each tensor's record; infinite instead of NaN.
    fn errors(&self) -> Result<Vec<f64>> {
        let words = download(DataType::F32, &self.records)?;
        let records = words.chunks_exact(record_words(self.radix));
        let errors = self.tensors().zip(records).map(|((_, parts), record)| {
            let mut worst: f64 = 0.0;
            for row in 0..self.radix {
                for column in row..self.radix {
                    let (a, b) = (&parts[row], &parts[column]);
                    let norms = (dot(a, a) * dot(b, b)).sqrt();
                    let error = (self.entry(record, row, column) - dot(a, b)).abs() / norms;
                    worst = if error.is_nan() {
                        f64::INFINITY
                    } else {
                        worst.max(error)
                    };
                }
            }
            worst
        });
        Ok(errors.collect())
    }

    /// An entry of the Gram matrix that a record holds.
    fn entry(&self, record: &[f64], row: usize, column: usize) -> f64 {
        let word = 2 * entry_index(row, column, self.radix);
        let exponents = record_exponents(self.radix);
        let power = record[exponents + row] + record[exponents + column];
        (record[word] + record[word + 1]) * power.exp2()
    }

    /// The largest error of a tensor's sum by the weights that the kernel finds, summed in double precision.
    pub(crate) fn weights(&self, setup: &Setup) -> Result<f64> {
        let tensors = self.segments.len() as u64;
        let device = &setup.device;
        let refs: Vec<u64> = (0..tensors).flat_map(|tensor| [tensor, 1]).collect();
        let indices: Vec<u64> = (0..tensors).collect();
        let launch = Coefficients {
            records: &self.records,
            refs: &Buffer::from_slice(device, &refs)?.span(),
            indices: &Buffer::from_slice(device, &indices)?.span(),
            out: &self.coefficients,
            radix: self.radix,
            tensor_count: tensors,
        };
        setup.kernels.coefficients(&setup.stream, &launch)?;
        setup.stream.synchronize_timeout(PATIENCE)?;
        let words = download(DataType::F32, &self.coefficients)?;
        let entries = words.chunks_exact(coefficient_words(self.radix));
        let errors = self.tensors().zip(entries).map(|((_, parts), entry)| {
            relative_error(&self.weighted(entry, &parts), &adasum(&parts))
        });
        Ok(errors.fold(0.0, f64::max))
    }

    /// The sum that an entry of coefficients stands for.
    fn weighted(&self, entry: &[f64], parts: &[Vec<f64>]) -> Vec<f64> {
        let power = |word: usize| match entry[word] {
            0.0 => 1.0,
            power => power,
        };
        let weight = |vector: usize| {
            let low = entry[coefficient_weight_low(self.radix) + vector];
            let scale = power(coefficient_scale(self.radix) + vector);
            power(COEFFICIENT_POST) * (entry[COEFFICIENT_WEIGHT + vector] + low) * scale.powi(2)
        };
        let weights: Vec<f64> = (0..self.radix).map(weight).collect();
        let element = |at: usize| parts.iter().zip(&weights).map(|(x, w)| w * x[at]).sum();
        (0..parts[0].len()).map(element).collect()
    }

    /// The largest error of a tensor's result.
    pub(crate) fn sum(&self, setup: &Setup) -> Result<f64> {
        self.launch_sum(setup, (&setup.stream).into())?;
        setup.stream.synchronize_timeout(PATIENCE)?;
        let results = download(self.dtype, &self.out)?;
        let errors = self
            .tensors()
            .map(|(segment, parts)| relative_error(part(&results, segment), &adasum(&parts)));
        Ok(errors.fold(0.0, f64::max))
    }

    /// Enqueues the weighted sums of all tensors.
    pub(crate) fn launch_sum(&self, setup: &Setup, queue: Queue<'_>) -> Result<()> {
        let launch = WeightedSum {
            vectors: &self.vectors,
            dtype: self.dtype,
            segments: &self.table,
            coefficients: &self.coefficients,
            out: &self.out,
            copies: None,
        };
        setup.kernels.weighted_sum(queue, &launch)
    }

    /// Overwrites the weights with the mark of data that never came.
    pub(crate) fn lose_weights(&self, setup: &Setup) -> Result<()> {
        setup.stream.fill(&self.coefficients, MISSING_BYTE)
    }

    /// The result of the last tensor, where it begins.
    pub(crate) fn last(&self) -> Result<Span> {
        let at = self.segments.last().map_or(0, |last| last.offset);
        let at = usize::try_from(at).unwrap_or(usize::MAX) * self.dtype.size();
        self.out.slice(at..self.out.len())
    }
}
