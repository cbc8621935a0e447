//! Launches of the kernels behind a weighted sum: Gram matrices, their sums, coefficients, and the sum itself.

use super::addresses::Addresses;
use super::segments::SegmentTable;
use super::{Kernels, Queue, Tensors, check_room, layout};
use crate::ascend::{Argument, DataType, Device, Span};
use crate::error::{Error, Result};

/// `coefficients` has a block for so many tensors each. A block solves up to 64 side by side, so that a few more take hardly
/// longer (`csrc/kernels/tree_lanes.h`).
const TENSORS_PER_BLOCK: u64 = 16;

/// The vectors of a launch: a table of their addresses in device memory, which also keeps them alive.
#[derive(Clone)]
pub struct Vectors(Addresses);

impl Vectors {
    /// A table of `spans`, in the order of the operands; each starts at the first element of its slice.
    ///
    /// # Errors
    /// If there are none or more than [`layout::MAX_RADIX`], or device memory is short.
    pub fn new(device: &Device, spans: &[Span]) -> Result<Self> {
        layout::check_radix(spans.len(), "vectors")?;
        Addresses::new(device, spans).map(Vectors)
    }

    /// `table` as the addresses (`u64`) of the operands, in their order. It is filled later, on the stream of the
    /// launches; each launch keeps `behind` alive.
    ///
    /// # Errors
    /// If there is room for none or more than [`layout::MAX_RADIX`].
    pub fn in_table(table: Span, behind: &[Span]) -> Result<Self> {
        let vectors = Vectors(Addresses::in_table(table, behind));
        layout::check_radix(vectors.radix(), "vectors")?;
        Ok(vectors)
    }

    /// The number of vectors.
    pub fn radix(&self) -> usize {
        self.0.len()
    }
}

/// Arguments of [`Kernels::gram`].
#[derive(Clone, Copy)]
pub struct Gram<'a> {
    /// The vectors, at least two; segments lie within all of them.
    pub vectors: &'a Vectors,
    /// Elements of the vectors: F32, F16 or Bf16.
    pub dtype: DataType,
    /// Segments of the vectors.
    pub segments: &'a SegmentTable,
    /// Out: a record for each unit.
    pub partials: &'a Span,
}

/// Arguments of [`Kernels::fold`].
#[derive(Clone, Copy)]
pub struct Fold<'a> {
    /// The records that [`Kernels::gram`] wrote.
    pub partials: &'a Span,
    /// The segments that `gram` was given.
    pub segments: &'a SegmentTable,
    /// Out: a record for each segment.
    pub records: &'a Span,
    /// Number of vectors.
    pub radix: usize,
}

/// Arguments of [`Kernels::coefficients`].
#[derive(Clone, Copy)]
pub struct Coefficients<'a> {
    /// Records of segments, of all ranks that share the tensors.
    pub records: &'a Span,
    /// A [`layout::Reference`] for each tensor, in the order of the list.
    pub refs: &'a Span,
    /// Record numbers (`u64`), those of a tensor one after the other in the order of summation.
    pub indices: &'a Span,
    /// Out: [`layout::coefficient_words`] words for each tensor.
    pub out: &'a Span,
    /// Number of vectors.
    pub radix: usize,
    /// Number of tensors.
    pub tensor_count: u64,
}

/// What [`Kernels::coefficients_by`] adds to the AdaSum rule.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rule {
    /// In a pair, a vector whose squared norm is at most so many times that of the other counts as zero: the pair is
    /// the other. At least 0 and below 1; 0 leaves the rule as it is, where only exact zeros count.
    pub zero_tol: f32,
    /// The weights are scaled so that the norm of the result is at most this; 0 for no limit. Statistics are those
    /// from before.
    pub norm_limit: f32,
    /// Only the weights and the flags are wanted: statistics are zero.
    pub weights_only: bool,
}

/// Arguments of [`Kernels::weighted_sum`].
#[derive(Clone, Copy)]
pub struct WeightedSum<'a> {
    /// The vectors; segments lie within all of them.
    pub vectors: &'a Vectors,
    /// Elements of the vectors and of the sum: F32, F16 or Bf16.
    pub dtype: DataType,
    /// Segments of the vectors; elements outside of them stay as they are.
    pub segments: &'a SegmentTable,
    /// [`layout::coefficient_words`] words for each tensor that a segment names.
    pub coefficients: &'a Span,
    /// Out: the sum; exactly one of the vectors, or apart from all of them.
    pub out: &'a Span,
    /// Out: further places of the sum, each as `out`; they may be in memory of other ranks that this one can write to.
    pub copies: Option<&'a Tensors>,
}

impl Rule {
    /// The rule as the kernel takes it.
    fn word(self) -> Result<u64> {
        if !(0.0..1.0).contains(&self.zero_tol) {
            return Err(Error::invalid(format!(
                "zero_tol {} is not at least 0 and below 1",
                self.zero_tol
            )));
        }
        if !(self.norm_limit >= 0.0 && self.norm_limit.is_finite()) {
            return Err(Error::invalid(format!(
                "norm_limit {} is not finite and at least 0",
                self.norm_limit
            )));
        }
        // Without the sign of a negative zero, whose bit stands for `weights_only`.
        let bits = |value: f32| u64::from(value.abs().to_bits());
        Ok(bits(self.zero_tol) | u64::from(self.weights_only) << 31 | bits(self.norm_limit) << 32)
    }
}

impl Kernels {
    /// Enqueues the Gram matrices of all units: one pass over the vectors.
    pub fn gram<'a>(&self, queue: impl Into<Queue<'a>>, launch: &Gram<'_>) -> Result<()> {
        let radix = launch.vectors.radix();
        check_gram_radix("gram", radix)?;
        let dtype = self.dtype(launch.dtype, "gram")?;
        self.check_starts("gram", "vector", launch.vectors.0.spans())?;
        launch.segments.check("gram")?;
        let units = launch.segments.units;
        check_room(
            "gram",
            "partials",
            launch.partials,
            units,
            record_bytes(radix),
        )?;
        let arguments = [
            launch.vectors.0.argument(),
            Argument::Span(&launch.segments.table),
            Argument::Span(launch.partials),
            Argument::Value(radix as u64),
            Argument::Value(dtype),
            Argument::Value(launch.segments.count),
            Argument::Value(units),
        ];
        self.launch(queue.into(), &self.gram, units, arguments)
    }

    /// Enqueues the sums of the records of units, one for each segment.
    ///
    /// A segment with a unit whose record [never came](layout::MISSING) gets a record that looks as if it had not come
    /// either, and its block does not sign.
    pub fn fold<'a>(&self, queue: impl Into<Queue<'a>>, launch: &Fold<'_>) -> Result<()> {
        check_gram_radix("fold", launch.radix)?;
        launch.segments.check("fold")?;
        let (count, bytes) = (launch.segments.count, record_bytes(launch.radix));
        let units = launch.segments.units;
        check_room("fold", "partials", launch.partials, units, bytes)?;
        check_room("fold", "records", launch.records, count, bytes)?;
        let arguments = [
            Argument::Span(launch.partials),
            Argument::Span(&launch.segments.table),
            Argument::Span(launch.records),
            Argument::Value(launch.radix as u64),
            Argument::Value(count),
        ];
        self.launch(queue.into(), &self.fold, count, arguments)
    }

    /// Enqueues the weights of all tensors.
    ///
    /// A tensor with a record that [never came](layout::MISSING) gets weights of NaN that look as if they had not come
    /// either, and its block signs that it missed it.
    pub fn coefficients<'a>(
        &self,
        queue: impl Into<Queue<'a>>,
        launch: &Coefficients<'_>,
    ) -> Result<()> {
        self.coefficients_by(Rule::default(), queue, launch)
    }

    /// Enqueues the weights of all tensors, by a rule with additions.
    ///
    /// # Errors
    /// If a number of the rule is out of range, and as [`Kernels::coefficients`].
    pub fn coefficients_by<'a>(
        &self,
        rule: Rule,
        queue: impl Into<Queue<'a>>,
        launch: &Coefficients<'_>,
    ) -> Result<()> {
        let rule = rule.word()?;
        check_gram_radix("coefficients", launch.radix)?;
        let count = launch.tensor_count;
        let (reference, entry) = (
            size_of::<layout::Reference>(),
            4 * layout::coefficient_words(launch.radix),
        );
        check_room("coefficients", "refs", launch.refs, count, reference)?;
        check_room("coefficients", "out", launch.out, count, entry)?;
        let arguments = [
            Argument::Span(launch.records),
            Argument::Span(launch.refs),
            Argument::Span(launch.indices),
            Argument::Span(launch.out),
            Argument::Value(launch.radix as u64),
            Argument::Value(count),
            Argument::Value(rule),
        ];
        let blocks = count.div_ceil(TENSORS_PER_BLOCK);
        self.launch(queue.into(), &self.coefficients, blocks, arguments)
    }

    /// Enqueues the weighted sum of the vectors: one pass over memory.
    ///
    /// The sum of a tensor whose weights [never came](layout::MISSING) is NaN, and its blocks sign that they missed them.
    pub fn weighted_sum<'a>(
        &self,
        queue: impl Into<Queue<'a>>,
        launch: &WeightedSum<'_>,
    ) -> Result<()> {
        let dtype = self.dtype(launch.dtype, "weighted_sum")?;
        self.check_starts("weighted_sum", "vector", launch.vectors.0.spans())?;
        self.check_starts("weighted_sum", "out", std::slice::from_ref(launch.out))?;
        let copies = launch.copies.map_or(&[][..], Tensors::spans);
        self.check_starts("weighted_sum", "copy", copies)?;
        launch.segments.check("weighted_sum")?;
        let units = launch.segments.units;
        let arguments = [
            launch.vectors.0.argument(),
            Argument::Span(&launch.segments.table),
            Argument::Span(launch.coefficients),
            Argument::Span(launch.out),
            Argument::Value(launch.vectors.radix() as u64),
            Argument::Value(dtype),
            Argument::Value(launch.segments.count),
            Argument::Value(units),
            launch.copies.map_or(Argument::Value(0), Tensors::argument),
            Argument::Value(launch.copies.map_or(0, Tensors::len) as u64),
        ];
        self.launch(queue.into(), &self.weighted_sum, units, arguments)
    }
}

/// Bytes of a record of the Gram matrix of `radix` vectors.
fn record_bytes(radix: usize) -> usize {
    4 * layout::record_words(radix)
}

/// Checks the number of vectors of a kernel of the Gram matrix: 2 to 8.
fn check_gram_radix(kernel: &str, radix: usize) -> Result<()> {
    layout::check_radix(radix, kernel)?;
    if radix < 2 {
        return Err(Error::invalid(format!(
            "{kernel}: one vector has no Gram matrix"
        )));
    }
    Ok(())
}
