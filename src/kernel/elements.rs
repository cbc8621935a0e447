//! Launches of the kernels that work element by element: packing, subtraction, the check for non-finite numbers.

use super::addresses::Addresses;
use super::segments::SegmentTable;
use super::{Kernels, Queue, check_room, layout};
use crate::ascend::{Argument, DataType, Device, Function, Span};
use crate::error::{Error, Result};

/// Tensors anywhere in device memory: a table of their addresses, which also keeps them alive.
#[derive(Clone)]
pub struct Tensors(Addresses);

impl Tensors {
    /// A table of `spans`; [`layout::Segment::tensor`] counts them.
    ///
    /// # Errors
    /// If device memory is short.
    pub fn new(device: &Device, spans: &[Span]) -> Result<Self> {
        Addresses::new(device, spans).map(Tensors)
    }

    /// `table` as the addresses (`u64`) of tensors. It is filled later, on the stream of the launches; whoever fills it
    /// keeps the tensors alive until those have run.
    pub fn in_table(table: Span) -> Self {
        Tensors(Addresses::in_table(table, &[]))
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no tensor.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tensors, as far as they are known.
    pub(super) fn spans(&self) -> &[Span] {
        self.0.spans()
    }

    pub(super) fn argument(&self) -> Argument<'_> {
        self.0.argument()
    }
}

/// Arguments of [`Kernels::pack`] and [`Kernels::unpack`].
///
/// Addresses need only the alignment of an element, except on a chip that [copies whole
/// blocks](super::Chip::copies_whole_blocks).
#[derive(Clone, Copy)]
pub struct Move<'a> {
    /// The tensors; each starts at the first element of its segment.
    pub tensors: &'a Tensors,
    /// Elements of the tensors: F32, F16 or Bf16.
    pub tensor_type: DataType,
    /// The fused buffer; elements outside of the segments stay as they are.
    pub fused: &'a Span,
    /// Elements of the fused buffer: F32, F16 or Bf16.
    pub fused_type: DataType,
    /// The factor of every element, in fp32, before it is rounded. With 1 and equal types no bit changes.
    pub factor: f32,
    /// Segments of the fused buffer.
    pub segments: &'a SegmentTable,
}

/// Arguments of [`Kernels::subtract`].
#[derive(Clone, Copy)]
pub struct Subtract<'a> {
    /// Minuend.
    pub a: &'a Span,
    /// Subtrahend.
    pub b: &'a Span,
    /// Out: the difference; exactly one of the vectors, or apart from both.
    pub out: &'a Span,
    /// Elements of the three vectors: F32, F16 or Bf16.
    pub dtype: DataType,
    /// Number of elements.
    pub count: u64,
}

/// Arguments of [`Kernels::finite_check`].
#[derive(Clone, Copy)]
pub struct FiniteCheck<'a> {
    /// The vector that segments are part of.
    pub vector: &'a Span,
    /// Elements of the vector: F32, F16 or Bf16.
    pub dtype: DataType,
    /// Segments of the vector.
    pub segments: &'a SegmentTable,
    /// [`layout::FLAG_WORDS`] fp32 words for each tensor, zeros before the first check: become 1 where a NaN or an
    /// infinity is.
    pub flags: &'a Span,
}

impl Kernels {
    /// Enqueues the copy of all tensors into the fused buffer.
    pub fn pack<'a>(&self, queue: impl Into<Queue<'a>>, launch: &Move<'_>) -> Result<()> {
        let types = [launch.tensor_type, launch.fused_type];
        self.move_elements("pack", &self.pack, queue.into(), launch, types)
    }

    /// Enqueues the copy of the fused buffer to all tensors.
    pub fn unpack<'a>(&self, queue: impl Into<Queue<'a>>, launch: &Move<'_>) -> Result<()> {
        let types = [launch.fused_type, launch.tensor_type];
        self.move_elements("unpack", &self.unpack, queue.into(), launch, types)
    }

    fn move_elements(
        &self,
        name: &str,
        function: &Function,
        queue: Queue<'_>,
        launch: &Move<'_>,
        [from, to]: [DataType; 2],
    ) -> Result<()> {
        let (from, to) = (self.dtype(from, name)?, self.dtype(to, name)?);
        self.check_starts(name, "tensor", launch.tensors.0.spans())?;
        self.check_starts(name, "fused buffer", std::slice::from_ref(launch.fused))?;
        launch.segments.check(name)?;
        let units = launch.segments.units;
        if units > 0 && launch.tensors.is_empty() {
            return Err(Error::invalid(format!("{name}: segments of no tensors")));
        }
        let arguments = [
            launch.tensors.argument(),
            Argument::Span(&launch.segments.table),
            Argument::Span(launch.fused),
            Argument::Value(u64::from(launch.factor.to_bits())),
            Argument::Value(from),
            Argument::Value(to),
            Argument::Value(launch.tensors.len() as u64),
            Argument::Value(launch.segments.count),
            Argument::Value(units),
        ];
        self.launch(queue, function, units, arguments)
    }

    /// Enqueues the difference of two vectors.
    pub fn subtract<'a>(&self, queue: impl Into<Queue<'a>>, launch: &Subtract<'_>) -> Result<()> {
        let dtype = self.dtype(launch.dtype, "subtract")?;
        for (name, span) in [("a", launch.a), ("b", launch.b), ("out", launch.out)] {
            self.check_starts("subtract", name, std::slice::from_ref(span))?;
            check_room("subtract", name, span, launch.count, launch.dtype.size())?;
        }
        let units = launch.count.div_ceil(layout::UNIT);
        let arguments = [
            Argument::Span(launch.a),
            Argument::Span(launch.b),
            Argument::Span(launch.out),
            Argument::Value(dtype),
            Argument::Value(launch.count),
        ];
        self.launch(queue.into(), &self.subtract, units, arguments)
    }

    /// Enqueues the search for NaN and infinities.
    pub fn finite_check<'a>(
        &self,
        queue: impl Into<Queue<'a>>,
        launch: &FiniteCheck<'_>,
    ) -> Result<()> {
        let dtype = self.dtype(launch.dtype, "finite_check")?;
        self.check_starts(
            "finite_check",
            "vector",
            std::slice::from_ref(launch.vector),
        )?;
        launch.segments.check("finite_check")?;
        let units = launch.segments.units;
        let arguments = [
            Argument::Span(launch.vector),
            Argument::Span(&launch.segments.table),
            Argument::Span(launch.flags),
            Argument::Value(dtype),
            Argument::Value(launch.segments.count),
            Argument::Value(units),
        ];
        self.launch(queue.into(), &self.finite_check, units, arguments)
    }
}
