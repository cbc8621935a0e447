//! A mock device with the kernels, and what the tests do with it.

use std::ops::Range;

use adasum::Result;
use adasum::ascend::{Buffer, DataType, Device, Pod, Span, Stream};
use adasum::kernel::layout::{Segment, coefficient_words, record_words};
use adasum::kernel::{
    Coefficients, Fold, Gram, Kernels, Rule, SegmentTable, Tensors, Vectors, WeightedSum,
};

use super::strict;
use crate::support::mock_environment;

/// Apart from the devices of the ranks in other tests.
const DEVICE: i32 = 1000;
/// Words of a record of two vectors.
pub(super) const WORDS: usize = record_words(2);
/// What no kernel writes: fills buffers so that a write outside of its place shows.
pub(super) const UNTOUCHED: f32 = -7.0;

/// Products up to which a launch also runs on the strict twin of each chip. Sources for 2201 and 3510 are the same but
/// for tables of types, so that the second one runs samples.
const STRICT_WORK: [(u32, u64); 3] = [(2201, 1 << 20), (1001, 1 << 18), (3510, 1 << 14)];

/// How many products `each` an element makes.
fn products(segments: &[Segment], each: usize) -> u64 {
    segments
        .iter()
        .map(|segment| segment.len)
        .sum::<u64>()
        .saturating_mul(each as u64)
}

/// A device with kernels and a stream. What it runs, it runs on the fast twin and on the strict ones.
pub(super) struct Machine {
    pub(super) device: Device,
    pub(super) stream: Stream,
    pub(super) kernels: Kernels,
    /// By the number of the chip's architecture.
    strict: Vec<(u32, u64, Kernels)>,
}

/// A launch as the chips see it.
pub(super) struct Job<'a> {
    /// About how many products it makes.
    pub(super) work: u64,
    /// What it writes to.
    pub(super) outs: &'a [Span],
    pub(super) types: &'a [DataType],
    /// Whether tensors and segments start on 64 bytes, as arch 1001 wants it.
    pub(super) aligned: bool,
    /// Bytes of `outs` that arch 1001 may write as well.
    pub(super) rest: Vec<Range<usize>>,
}

impl Job<'_> {
    fn runs_on(&self, arch: u32) -> bool {
        arch != 1001 || (self.aligned && !self.types.contains(&DataType::Bf16))
    }
}

/// Whether all segments start on 64 bytes in vectors of `dtype` at `spans`.
pub(super) fn is_aligned(dtype: DataType, spans: &[Span], segments: &[Segment]) -> bool {
    spans.iter().all(|span| span.address().is_multiple_of(64))
        && segments
            .iter()
            .all(|segment| (segment.offset * dtype.size() as u64).is_multiple_of(64))
}

/// What lies between the segments' ends and the next multiples of 64 bytes.
pub(super) fn rests(dtype: DataType, segments: &[Segment]) -> Vec<Range<usize>> {
    segments
        .iter()
        .map(|segment| (segment.offset + segment.len) as usize * dtype.size())
        .map(|end| end..end.next_multiple_of(64))
        .collect()
}

/// Everything that a reduction of two vectors leaves behind.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) partials: Vec<u32>,
    pub(super) records: Vec<u32>,
    pub(super) coefficients: Vec<u32>,
    pub(super) out: Vec<u32>,
}

impl Machine {
    pub(super) fn new() -> Self {
        Machine::with_blocks(None)
    }

    pub(super) fn with_blocks(blocks: Option<u32>) -> Self {
        mock_environment();
        let device = Device::open(DEVICE).unwrap();
        let limited = |kernels: Kernels| match blocks {
            Some(blocks) => kernels.with_blocks(blocks),
            None => kernels,
        };
        Machine {
            stream: Stream::new(&device).unwrap(),
            kernels: limited(Kernels::load(&device).unwrap()),
            strict: STRICT_WORK
                .iter()
                .map(|&(arch, work)| {
                    let kernels = Kernels::load_file(&device, strict::binary(arch)).unwrap();
                    (arch, work, limited(kernels))
                })
                .collect(),
            device,
        }
    }

    /// The fast twin, which stands for arch 2201, and the strict ones, by the number of the architecture.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, &Kernels)> {
        let strict = self
            .strict
            .iter()
            .map(|(arch, _, kernels)| (*arch, kernels));
        std::iter::once((2201, &self.kernels)).chain(strict)
    }

    /// Launches on the fast twin and on the strict ones of all chips that can run it, which must leave the same bytes.
    ///
    /// Where there is much to do only the fast twin runs, unless `ADASUM_STRICT_ALL` is set.
    pub(super) fn on_all(&self, job: &Job<'_>, launch: impl Fn(&Kernels) -> Result<()>) {
        let all = std::env::var_os("ADASUM_STRICT_ALL").is_some();
        let strict: Vec<_> = self
            .strict
            .iter()
            .filter(|(arch, work, _)| job.runs_on(*arch) && (all || job.work <= *work))
            .collect();
        if strict.is_empty() {
            launch(&self.kernels).unwrap();
            self.stream.synchronize().unwrap();
            return;
        }
        let before = self.bytes(job.outs);
        launch(&self.kernels).unwrap();
        let expected = self.bytes(job.outs);
        for (arch, _, kernels) in strict {
            // What is computed in place starts from the same again.
            for (span, bytes) in job.outs.iter().zip(&before) {
                span.write(bytes).unwrap();
            }
            launch(kernels).unwrap();
            let mut got = self.bytes(job.outs);
            if *arch == 1001 {
                for (got, expected) in got.iter_mut().zip(&expected) {
                    for rest in &job.rest {
                        let rest = rest.start.min(got.len())..rest.end.min(got.len());
                        got[rest.clone()].copy_from_slice(&expected[rest]);
                    }
                }
            }
            assert!(got == expected, "the strict twin of arch {arch} differs");
        }
        for (span, bytes) in job.outs.iter().zip(&expected) {
            span.write(bytes).unwrap();
        }
    }

    fn bytes(&self, spans: &[Span]) -> Vec<Vec<u8>> {
        self.stream.synchronize().unwrap();
        let read = |span: &Span| {
            let mut bytes = vec![0_u8; span.len()];
            span.read(&mut bytes).unwrap();
            bytes
        };
        spans.iter().map(read).collect()
    }

    /// `values` on the device, `shift` bytes off the start of an allocation.
    pub(super) fn shifted<T: Pod>(&self, values: &[T], shift: usize) -> Span {
        let bytes = size_of_val(values);
        let span = Buffer::new(&self.device, bytes + shift + 64)
            .unwrap()
            .span();
        let span = span.slice(shift..shift + bytes).unwrap();
        span.write(values).unwrap();
        span
    }

    pub(super) fn upload<T: Pod>(&self, values: &[T]) -> Span {
        self.shifted(values, 0)
    }

    pub(super) fn untouched(&self, words: usize) -> Span {
        self.upload(&vec![UNTOUCHED; words])
    }

    pub(super) fn read(&self, span: &Span) -> Vec<f32> {
        self.stream.synchronize().unwrap();
        let mut values = vec![0.0; span.len() / 4];
        span.read(&mut values).unwrap();
        values
    }

    pub(super) fn bits(&self, span: &Span) -> Vec<u32> {
        self.read(span)
            .iter()
            .map(|value| value.to_bits())
            .collect()
    }

    pub(super) fn segments(&self, entries: &[Segment]) -> SegmentTable {
        SegmentTable::new(self.stream.device(), entries).unwrap()
    }

    pub(super) fn vectors(&self, spans: &[Span]) -> Vectors {
        Vectors::new(self.stream.device(), spans).unwrap()
    }

    /// The records of the units and of the segments of two fp32 vectors.
    pub(super) fn gram(&self, vectors: &[Span; 2], segments: &[Segment]) -> (Span, Span) {
        self.gram_of(DataType::F32, vectors, segments)
    }

    /// The records of the units and of the segments of any vectors.
    pub(super) fn gram_of(
        &self,
        dtype: DataType,
        vectors: &[Span],
        segments: &[Segment],
    ) -> (Span, Span) {
        let words = record_words(vectors.len());
        let table = self.segments(segments);
        let partials = self.untouched(table.units as usize * words);
        let records = self.untouched(segments.len() * words);
        let gram = Gram {
            vectors: &self.vectors(vectors),
            dtype,
            segments: &table,
            partials: &partials,
        };
        let fold = Fold {
            partials: &partials,
            segments: &table,
            records: &records,
            radix: vectors.len(),
        };
        let work = products(segments, vectors.len() * (vectors.len() + 1) / 2);
        let job = Job {
            work,
            outs: std::slice::from_ref(&partials),
            types: &[dtype],
            aligned: is_aligned(dtype, vectors, segments),
            rest: Vec::new(),
        };
        self.on_all(&job, |kernels| kernels.gram(&self.stream, &gram));
        self.on_all(&scalars(&records), |kernels| {
            kernels.fold(&self.stream, &fold)
        });
        (partials, records)
    }

    /// The weights of tensors of two vectors whose records have the numbers in `lists`.
    pub(super) fn solve(&self, records: &Span, lists: &[Vec<u64>]) -> Span {
        self.solve_of(2, records, lists)
    }

    pub(super) fn solve_of(&self, radix: usize, records: &Span, lists: &[Vec<u64>]) -> Span {
        self.solve_by(Rule::default(), radix, records, lists)
    }

    /// The error that the kernels' host side refuses a rule with.
    pub(super) fn refused_by(&self, rule: Rule, records: &Span) -> adasum::Error {
        let launch = Coefficients {
            records,
            refs: &self.upload(&[0_u64, 1]),
            indices: &self.upload(&[0_u64]),
            out: &self.untouched(coefficient_words(2)),
            radix: 2,
            tensor_count: 1,
        };
        self.kernels
            .coefficients_by(rule, &self.stream, &launch)
            .unwrap_err()
    }

    pub(super) fn solve_by(
        &self,
        rule: Rule,
        radix: usize,
        records: &Span,
        lists: &[Vec<u64>],
    ) -> Span {
        let mut refs = Vec::new();
        let mut indices: Vec<u64> = Vec::new();
        for list in lists {
            refs.extend([indices.len() as u64, list.len() as u64]);
            indices.extend(list);
        }
        let out = self.untouched(lists.len() * coefficient_words(radix));
        let launch = Coefficients {
            records,
            refs: &self.upload(&refs),
            indices: &self.upload(&indices),
            out: &out,
            radix,
            tensor_count: lists.len() as u64,
        };
        self.on_all(&scalars(&out), |kernels| {
            kernels.coefficients_by(rule, &self.stream, &launch)
        });
        out
    }

    pub(super) fn sum(
        &self,
        vectors: &[Span],
        segments: &[Segment],
        coefficients: &Span,
        out: &Span,
    ) {
        self.sum_of(DataType::F32, vectors, segments, coefficients, out);
    }

    pub(super) fn sum_of(
        &self,
        dtype: DataType,
        vectors: &[Span],
        segments: &[Segment],
        coefficients: &Span,
        out: &Span,
    ) {
        self.sum_to(
            dtype,
            vectors,
            segments,
            coefficients,
            std::slice::from_ref(out),
        );
    }

    /// To the first of `outs`, and copies to the others.
    pub(super) fn sum_to(
        &self,
        dtype: DataType,
        vectors: &[Span],
        segments: &[Segment],
        coefficients: &Span,
        outs: &[Span],
    ) {
        let (out, copies) = outs.split_first().unwrap();
        let copies = Tensors::new(&self.device, copies).unwrap();
        let launch = WeightedSum {
            vectors: &self.vectors(vectors),
            dtype,
            segments: &self.segments(segments),
            coefficients,
            out,
            copies: Some(&copies),
        };
        let job = Job {
            work: products(segments, vectors.len()),
            outs,
            types: &[dtype],
            aligned: is_aligned(dtype, vectors, segments) && out.address().is_multiple_of(64),
            rest: rests(dtype, segments),
        };
        self.on_all(&job, |kernels| kernels.weighted_sum(&self.stream, &launch));
    }

    /// `values`, rounded to `dtype`, `shift` elements off the start of an allocation.
    pub(super) fn upload_as(&self, dtype: DataType, values: &[f32], shift: usize) -> Span {
        match dtype {
            DataType::F32 => self.shifted(values, 4 * shift),
            _ => self.shifted(&narrow(dtype, values), 2 * shift),
        }
    }

    /// The bits of the elements.
    pub(super) fn bits_as(&self, dtype: DataType, span: &Span) -> Vec<u32> {
        if dtype == DataType::F32 {
            return self.bits(span);
        }
        self.stream.synchronize().unwrap();
        let mut values = vec![0_u16; span.len() / 2];
        span.read(&mut values).unwrap();
        values.into_iter().map(u32::from).collect()
    }

    pub(super) fn read_as(&self, dtype: DataType, span: &Span) -> Vec<f32> {
        let bits = self.bits_as(dtype, span);
        bits.into_iter().map(|bits| widen(dtype, bits)).collect()
    }

    /// The AdaSum of any vectors in place of the first, one tensor a segment; coefficients and result.
    pub(super) fn tree(
        &self,
        dtype: DataType,
        vectors: &[Span],
        segments: &[Segment],
    ) -> (Span, Span) {
        let (_, records) = self.gram_of(dtype, vectors, segments);
        let lists: Vec<Vec<u64>> = (0..segments.len() as u64).map(|i| vec![i]).collect();
        let coefficients = self.solve_of(vectors.len(), &records, &lists);
        self.sum_of(dtype, vectors, segments, &coefficients, &vectors[0]);
        (coefficients, vectors[0].clone())
    }

    /// The AdaSum of two vectors, one tensor a segment.
    pub(super) fn reduce(&self, a: &[f32], b: &[f32], segments: &[Segment]) -> Outcome {
        let vectors = [self.upload(a), self.upload(b)];
        let (partials, records) = self.gram(&vectors, segments);
        let lists: Vec<Vec<u64>> = (0..segments.len() as u64).map(|i| vec![i]).collect();
        let coefficients = self.solve(&records, &lists);
        let out = self.untouched(a.len());
        self.sum(&vectors, segments, &coefficients, &out);
        Outcome {
            partials: self.bits(&partials),
            records: self.bits(&records),
            coefficients: self.bits(&coefficients),
            out: self.bits(&out),
        }
    }

    /// The AdaSum of a pair of one tensor, and its coefficients.
    pub(super) fn pair(&self, a: &[f32], b: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let outcome = self.reduce(a, b, &packed(&[a.len()], 0));
        (floats(&outcome.out), floats(&outcome.coefficients))
    }
}

/// A launch that works on records only.
fn scalars(out: &Span) -> Job<'_> {
    Job {
        work: 0,
        outs: std::slice::from_ref(out),
        types: &[],
        aligned: true,
        rest: Vec::new(),
    }
}

/// Rounded to a 16-bit type.
pub(super) fn narrow(dtype: DataType, values: &[f32]) -> Vec<u16> {
    let bits = |&value: &f32| match dtype {
        DataType::F16 => half::f16::from_f32(value).to_bits(),
        _ => half::bf16::from_f32(value).to_bits(),
    };
    values.iter().map(bits).collect()
}

/// The value of an element.
pub(super) fn widen(dtype: DataType, bits: u32) -> f32 {
    match dtype {
        DataType::F32 => f32::from_bits(bits),
        DataType::F16 => half::f16::from_bits(bits as u16).to_f32(),
        _ => half::bf16::from_bits(bits as u16).to_f32(),
    }
}

/// `values` as they are after rounding to `dtype`.
pub(super) fn rounded(dtype: DataType, values: Vec<f32>) -> Vec<f32> {
    if dtype == DataType::F32 {
        return values;
    }
    let bits = narrow(dtype, &values);
    bits.into_iter()
        .map(|bits| widen(dtype, u32::from(bits)))
        .collect()
}

pub(super) fn floats(bits: &[u32]) -> Vec<f32> {
    bits.iter().map(|&bits| f32::from_bits(bits)).collect()
}

/// Tensors of `sizes`, each `gap` elements behind the one before it.
pub(super) fn packed(sizes: &[usize], gap: usize) -> Vec<Segment> {
    let mut offset = gap as u64;
    let mut first_unit = 0;
    (0..)
        .zip(sizes)
        .map(|(tensor, &size)| {
            let segment = Segment {
                offset,
                len: size as u64,
                first_unit,
                tensor,
            };
            offset += size as u64 + gap as u64;
            first_unit += segment.units();
            segment
        })
        .collect()
}

/// Tensors of `sizes`, each on the next multiple of 64 bytes behind the one before it.
pub(super) fn aligned(sizes: &[usize], dtype: DataType) -> Vec<Segment> {
    let grain = 64 / dtype.size() as u64;
    let mut segments = packed(sizes, 0);
    let mut end = 0_u64;
    for segment in &mut segments {
        segment.offset = end.next_multiple_of(grain);
        end = segment.offset + segment.len;
    }
    segments
}

pub(super) fn extent(segments: &[Segment]) -> usize {
    let last = segments.last().unwrap();
    (last.offset + last.len) as usize + 3
}
