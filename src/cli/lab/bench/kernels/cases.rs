//! One launch of each kernel, with operands.

use std::time::Duration;

use crate::ascend::{Buffer, Device, Span, Stream};
use crate::cli::lab::bench::operands;
use crate::cli::lab::element_type::ElementType;
use crate::error::Result;
use crate::kernel::layout::{self, Segment, UNIT, coefficient_words, record_words};
use crate::kernel::{
    Coefficients, FiniteCheck, Fold, Gram, Kernels, Move, SegmentTable, Subtract, Tensors, Vectors,
    WeightedSum,
};

/// How long a launch may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Elements of a vector that stays in cache.
const CACHED: usize = 32 << 10;
/// Bytes by which a vector begins later in its page of memory than the one before.
const STAGGER: usize = 256;
/// Tensors that pack and unpack find.
const TENSORS: usize = 16;
/// Records that fold adds up to one, and that the coefficients of a tensor come from.
const RECORDS_OF_SEGMENT: usize = 64;
const RECORDS_OF_TENSOR: usize = 2;

/// Where operands come from, with the bytes that a launch goes through.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// Vectors that together have these bytes.
    Memory(usize),
    /// Vectors of [`CACHED`] elements, again and again.
    Cache(usize),
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Memory(_) => "memory",
            Source::Cache(_) => "cache",
        }
    }

    /// Elements of each vector and how often a launch goes through them, for `bytes` an element of all vectors.
    fn extent(self, bytes: usize) -> (usize, usize) {
        match self {
            Source::Memory(whole) => ((whole / bytes).max(TENSORS), 1),
            Source::Cache(whole) => (CACHED, (whole / bytes / CACHED).clamp(1, 256)),
        }
    }
}

type Launch = Box<dyn Fn(&Kernels, &Stream) -> Result<()>>;

/// A launch and what it is a launch of.
pub(crate) struct Case {
    pub(crate) kernel: &'static str,
    pub(crate) dtype: ElementType,
    pub(crate) radix: usize,
    pub(crate) form: &'static str,
    pub(crate) to: Option<ElementType>,
    /// Elements of a vector, and how often a run goes through them.
    pub(crate) elements: usize,
    pub(crate) rounds: usize,
    /// Bytes that must be read and written for an element.
    pub(crate) bytes: f64,
    launches: usize,
    launch: Launch,
}

impl Case {
    fn new(
        kernel: &'static str,
        dtype: ElementType,
        (elements, rounds): (usize, usize),
        bytes: f64,
        launch: Launch,
    ) -> Self {
        Case {
            kernel,
            dtype,
            radix: 1,
            form: "plain",
            to: None,
            elements,
            rounds,
            bytes,
            launches: 1,
            launch,
        }
    }
}

/// A copy within the memory of a device, by the one thread that runs a stream.
pub(crate) struct DeviceCopy {
    from: Span,
    to: Span,
    stream: Stream,
}

impl DeviceCopy {
    pub(crate) fn new(device: &Device, bytes: usize) -> Result<Self> {
        Ok(DeviceCopy {
            from: Buffer::from_slice(device, &vec![1_u8; bytes])?.span(),
            to: Buffer::from_slice(device, &vec![2_u8; bytes])?.span(),
            stream: Stream::new(device)?,
        })
    }

    /// Bytes that a run reads.
    pub(crate) fn len(&self) -> usize {
        self.from.len()
    }

    /// Copies once and waits for it.
    pub(crate) fn run(&self) -> Result<()> {
        self.stream.copy(&self.to, &self.from)?;
        self.stream.synchronize_timeout(PATIENCE)
    }
}

/// Cases for one device: kernels and the memory for their operands.
pub(crate) struct Cases {
    device: Device,
    stream: Stream,
    kernels: Kernels,
    source: Source,
}

impl Cases {
    /// For kernels on `blocks` cores, `None` for all.
    pub(crate) fn new(device: &Device, source: Source, blocks: Option<u32>) -> Result<Self> {
        let kernels = Kernels::load(device)?;
        Ok(Cases {
            device: device.clone(),
            stream: Stream::new(device)?,
            kernels: match blocks {
                Some(blocks) => kernels.with_blocks(blocks),
                None => kernels,
            },
            source,
        })
    }

    pub(crate) fn source(&self) -> Source {
        self.source
    }

    /// Runs the case once and waits for it.
    pub(crate) fn run(&self, case: &Case) -> Result<()> {
        for _ in 0..case.launches {
            (case.launch)(&self.kernels, &self.stream)?;
        }
        self.stream.synchronize_timeout(PATIENCE)
    }

    /// Of random vectors, or of vectors that are all the same, for which more than two have to be summed exactly.
    pub(crate) fn gram(&self, dtype: ElementType, radix: usize, exact: bool) -> Result<Case> {
        let size = size(dtype);
        let extent = self.source.extent(radix * size);
        let seeds = (1..=radix as u64).map(|vector| if exact { 1 } else { vector });
        let spans = self.vectors(dtype, extent.0, seeds)?;
        let vectors = Vectors::new(&self.device, &spans)?;
        let table = self.table(&[extent.0], extent.1)?;
        let partials = self.zeroed(as_usize(table.units) * 4 * record_words(radix))?;
        let launch = move |kernels: &Kernels, stream: &Stream| {
            let gram = Gram {
                vectors: &vectors,
                dtype: dtype.into(),
                segments: &table,
                partials: &partials,
            };
            kernels.gram(stream, &gram)
        };
        let bytes = (radix * size) as f64;
        let mut case = Case::new("gram", dtype, extent, bytes, Box::new(launch));
        case.radix = radix;
        if exact {
            case.form = "two_float";
        }
        Ok(case)
    }

    /// Works in place over the first vector.
    pub(crate) fn weighted_sum(
        &self,
        dtype: ElementType,
        radix: usize,
        two_float: bool,
    ) -> Result<Case> {
        let size = size(dtype);
        let extent = self.source.extent(radix * size);
        let spans = self.vectors(dtype, extent.0, 1..=radix as u64)?;
        let out = spans[0].clone();
        let vectors = Vectors::new(&self.device, &spans)?;
        let table = self.table(&[extent.0], extent.1)?;
        let coefficients = self.upload(&weights(radix, two_float))?;
        let launch = move |kernels: &Kernels, stream: &Stream| {
            let sum = WeightedSum {
                vectors: &vectors,
                dtype: dtype.into(),
                segments: &table,
                coefficients: &coefficients,
                out: &out,
                copies: None,
            };
            kernels.weighted_sum(stream, &sum)
        };
        let bytes = ((radix + 1) * size) as f64;
        let mut case = Case::new("weighted_sum", dtype, extent, bytes, Box::new(launch));
        case.radix = radix;
        if two_float {
            case.form = "two_float";
        }
        Ok(case)
    }

    pub(crate) fn pack(&self, from: ElementType, to: ElementType) -> Result<Case> {
        self.moved("pack", from, to, |kernels, stream, launch| {
            kernels.pack(stream, launch)
        })
    }

    pub(crate) fn unpack(&self, from: ElementType, to: ElementType) -> Result<Case> {
        self.moved("unpack", from, to, |kernels, stream, launch| {
            kernels.unpack(stream, launch)
        })
    }

    fn moved(
        &self,
        kernel: &'static str,
        from: ElementType,
        to: ElementType,
        call: fn(&Kernels, &Stream, &Move<'_>) -> Result<()>,
    ) -> Result<Case> {
        let (tensor_type, fused_type) = if kernel == "pack" {
            (from, to)
        } else {
            (to, from)
        };
        let bytes = size(from) + size(to);
        let (elements, rounds) = self.source.extent(bytes);
        let counts = [elements / TENSORS; TENSORS];
        let extent = (counts.iter().sum(), rounds);
        let tensors: Result<Vec<Span>> = counts
            .iter()
            .map(|&count| self.upload(&operands::random(tensor_type, count * size(tensor_type), 1)))
            .collect();
        let tensors = Tensors::new(&self.device, &tensors?)?;
        let fused = self.upload(&operands::random(
            fused_type,
            extent.0 * size(fused_type),
            2,
        ))?;
        let table = self.table(&counts, rounds)?;
        let launch = move |kernels: &Kernels, stream: &Stream| {
            let launch = Move {
                tensors: &tensors,
                tensor_type: tensor_type.into(),
                fused: &fused,
                fused_type: fused_type.into(),
                factor: 1.0,
                segments: &table,
            };
            call(kernels, stream, &launch)
        };
        let mut case = Case::new(kernel, from, extent, bytes as f64, Box::new(launch));
        case.to = Some(to);
        Ok(case)
    }

    /// Works in place over the first vector.
    pub(crate) fn subtract(&self, dtype: ElementType) -> Result<Case> {
        let size = size(dtype);
        let extent = self.source.extent(2 * size);
        let vectors = self.vectors(dtype, extent.0, 1..=2)?;
        let launch = move |kernels: &Kernels, stream: &Stream| {
            let launch = Subtract {
                a: &vectors[0],
                b: &vectors[1],
                out: &vectors[0],
                dtype: dtype.into(),
                count: extent.0 as u64,
            };
            kernels.subtract(stream, &launch)
        };
        let bytes = (3 * size) as f64;
        let mut case = Case::new("subtract", dtype, extent, bytes, Box::new(launch));
        case.radix = 2;
        // It takes no table that could name the same elements again.
        case.launches = extent.1;
        Ok(case)
    }

    pub(crate) fn finite_check(&self, dtype: ElementType) -> Result<Case> {
        let size = size(dtype);
        let extent = self.source.extent(size);
        let vector = self.vectors(dtype, extent.0, 1..=1)?.remove(0);
        let table = self.table(&[extent.0], extent.1)?;
        let flags = self.zeroed(64)?;
        let launch = move |kernels: &Kernels, stream: &Stream| {
            let launch = FiniteCheck {
                vector: &vector,
                dtype: dtype.into(),
                segments: &table,
                flags: &flags,
            };
            kernels.finite_check(stream, &launch)
        };
        let bytes = size as f64;
        Ok(Case::new(
            "finite_check",
            dtype,
            extent,
            bytes,
            Box::new(launch),
        ))
    }

    /// A case whose elements are the records to fold.
    pub(crate) fn fold(&self, radix: usize) -> Result<Case> {
        let (records, segments) = self.records(radix, RECORDS_OF_SEGMENT)?;
        let units = as_usize(UNIT) * RECORDS_OF_SEGMENT;
        let table = self.table(&vec![units; segments], 1)?;
        let partials = self.upload(&grams(radix, records))?;
        let out = self.zeroed(segments * 4 * record_words(radix))?;
        let launch = move |kernels: &Kernels, stream: &Stream| {
            let launch = Fold {
                partials: &partials,
                segments: &table,
                records: &out,
                radix,
            };
            kernels.fold(stream, &launch)
        };
        let written = 1.0 / RECORDS_OF_SEGMENT as f64;
        let bytes = (4 * record_words(radix)) as f64 * (1.0 + written);
        let extent = (records, 1);
        let mut case = Case::new("fold", ElementType::F32, extent, bytes, Box::new(launch));
        case.radix = radix;
        Ok(case)
    }

    /// A case whose elements are tensors.
    pub(crate) fn coefficients(&self, radix: usize) -> Result<Case> {
        let (records, tensors) = self.records(radix, RECORDS_OF_TENSOR)?;
        let each = RECORDS_OF_TENSOR as u64;
        let refs: Vec<u64> = (0..tensors as u64).flat_map(|t| [t * each, each]).collect();
        let indices: Vec<u64> = (0..records as u64).collect();
        let (refs, indices) = (self.upload(&refs)?, self.upload(&indices)?);
        let inward = self.upload(&grams(radix, records))?;
        let out = self.zeroed(tensors * 4 * coefficient_words(radix))?;
        let launch = move |kernels: &Kernels, stream: &Stream| {
            let launch = Coefficients {
                records: &inward,
                refs: &refs,
                indices: &indices,
                out: &out,
                radix,
                tensor_count: tensors as u64,
            };
            kernels.coefficients(stream, &launch)
        };
        let bytes = (RECORDS_OF_TENSOR * (4 * record_words(radix) + 8)) as f64
            + (size_of::<layout::Reference>() + 4 * coefficient_words(radix)) as f64;
        let extent = (tensors, 1);
        let mut case = Case::new(
            "coefficients",
            ElementType::F32,
            extent,
            bytes,
            Box::new(launch),
        );
        case.radix = radix;
        Ok(case)
    }

    /// How many records of `radix` vectors, and groups of `each` of them. They are computed on far longer than they
    /// are read, so a small part of the memory is enough.
    fn records(&self, radix: usize, each: usize) -> Result<(usize, usize)> {
        let bytes = match self.source {
            Source::Memory(bytes) => bytes / 16,
            Source::Cache(bytes) => bytes.min(256 << 10),
        };
        let groups = (bytes / 4 / record_words(radix) / each).max(1);
        Ok((groups * each, groups))
    }

    /// Random vectors of `elements`, one for each seed. They begin at different places of a page of memory, as those of
    /// tensors do: a cache has room for few elements that are a power of two apart.
    fn vectors(
        &self,
        dtype: ElementType,
        elements: usize,
        seeds: impl Iterator<Item = u64>,
    ) -> Result<Vec<Span>> {
        let vector = |(index, seed): (usize, u64)| {
            let place = index * STAGGER;
            let mut bytes = vec![0; place];
            bytes.extend(operands::random(dtype, elements * size(dtype), seed));
            self.upload(&bytes)?.slice(place..bytes.len())
        };
        seeds.enumerate().map(vector).collect()
    }

    /// One segment for each of `counts`, again for each round.
    fn table(&self, counts: &[usize], rounds: usize) -> Result<SegmentTable> {
        let mut entries = Vec::new();
        let mut units = 0;
        for _ in 0..rounds {
            let mut offset = 0;
            for (tensor, &count) in counts.iter().enumerate() {
                let segment = Segment {
                    offset,
                    len: count as u64,
                    first_unit: units,
                    tensor: tensor as u64,
                };
                offset += segment.len;
                units += segment.units();
                entries.push(segment);
            }
        }
        SegmentTable::new(&self.device, &entries)
    }

    fn upload<T: crate::ascend::Pod>(&self, values: &[T]) -> Result<Span> {
        Ok(Buffer::from_slice(&self.device, values)?.span())
    }

    fn zeroed(&self, bytes: usize) -> Result<Span> {
        Ok(Buffer::zeroed(&self.device, bytes)?.span())
    }
}

/// Coefficients of one tensor: those of a mean, so that sums in source stay as large as they are.
fn weights(radix: usize, two_float: bool) -> Vec<f32> {
    let mut words = vec![0.0; coefficient_words(radix)];
    for vector in 0..radix {
        words[layout::COEFFICIENT_WEIGHT + vector] = 1.0 / radix as f32;
        if two_float {
            words[layout::coefficient_weight_low(radix) + vector] = 1e-9;
        }
    }
    words
}

/// Records of vectors that are nearly orthogonal.
fn grams(radix: usize, records: usize) -> Vec<f32> {
    let mut record = vec![0.0; record_words(radix)];
    for row in 0..radix {
        for column in row..radix {
            let value = if row == column { 1000.0 } else { 10.0 };
            record[2 * layout::entry_index(row, column, radix)] = value;
            record[2 * layout::entry_index(row, column, radix) + 1] = 1e-5;
        }
    }
    record.repeat(records)
}

fn size(dtype: ElementType) -> usize {
    as_usize(dtype.size())
}

fn as_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
