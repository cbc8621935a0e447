//! Where the tensors lie in the fused buffer, and where that buffer may be cut.

use super::Range;
use crate::error::{Error, Result};

/// Elements of a work unit.
///
/// A partial dot product belongs to one unit, and the units of a tensor start at its first element
/// whatever buffer the tensor lies in. Slices are cut between units only, so a unit's partial has the same
/// bits for every number of ranks and every bucket.
pub const UNIT: u64 = 4096;

/// Tensors with elements start at multiples of this many bytes: the vendor's copies on a device ask for it.
pub(super) const ALIGNMENT: u64 = 64;

/// Upper bound on the elements of a fused buffer. Far above any memory, far below overflow.
const MAX_ELEMENTS: u64 = 1 << 48;

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 half precision.
    F16,
    /// bfloat16: the upper half of a single-precision number.
    BF16,
}

impl DType {
    /// Bytes of an element.
    pub fn size(self) -> u64 {
        match self {
            DType::F32 => 4,
            DType::F16 | DType::BF16 => 2,
        }
    }

    /// The usual short name.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
        }
    }
}

/// A tensor to reduce: coefficients are computed for each tensor as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name for messages and statistics.
    pub name: String,
    /// Number of elements; 0 is allowed.
    pub count: u64,
    /// Element type.
    pub dtype: DType,
}

impl TensorSpec {
    /// A tensor of `count` elements.
    pub fn new(name: impl Into<String>, count: u64, dtype: DType) -> Self {
        TensorSpec {
            name: name.into(),
            count,
            dtype,
        }
    }
}

/// The part of a tensor that lies in a slice of the fused buffer, as data and as kernels read it from device memory.
///
/// Unit `k` covers the elements `k * UNIT .. min((k + 1) * UNIT, len)` and has the number `first_unit + k`.
/// The segments of a slice stand in the order of their units, without gaps between them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// First element, counted from the start of the slice.
    pub offset: u64,
    /// Number of elements; those of a [`Layout`] have at least 1, kernels take 0, too.
    pub len: u64,
    /// Number of its first unit among the units of the slice.
    pub first_unit: u64,
    /// Index of the tensor in the layout.
    pub tensor: u64,
}

impl Segment {
    /// The number of units.
    pub fn units(&self) -> u64 {
        self.len.div_ceil(UNIT)
    }

    /// The words of the table in device memory, in their order there.
    pub fn words(&self) -> [u64; 4] {
        [self.offset, self.len, self.first_unit, self.tensor]
    }
}

/// The tensors of one element type, one after the other in a fused buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    dtype: DType,
    tensors: Vec<Range>,
    /// How many tensors with elements come before each, and before the end.
    filled: Vec<u64>,
    elements: u64,
}

impl Layout {
    /// Places tensors of `counts` elements in their order, each aligned for device copies.
    pub fn new(dtype: DType, counts: &[u64]) -> Result<Self> {
        let align = ALIGNMENT / dtype.size();
        let mut tensors = Vec::with_capacity(counts.len());
        let mut filled = vec![0];
        let mut elements: u64 = 0;
        for (index, &count) in counts.iter().enumerate() {
            let end = elements
                .checked_add(count)
                .and_then(|end| end.checked_next_multiple_of(align))
                .filter(|&end| end <= MAX_ELEMENTS)
                .ok_or_else(|| {
                    Error::invalid(format!(
                        "tensor {index} with {count} elements makes the buffer longer than {MAX_ELEMENTS} elements"
                    ))
                })?;
            tensors.push(Range::new(elements, elements + count));
            filled.push(filled[index] + u64::from(count > 0));
            elements = end;
        }
        // No gap behind the last element, whatever empty tensors follow: a buffer that holds nothing else is exactly this long.
        let last = tensors.iter().rposition(|tensor| !tensor.is_empty());
        let elements = last.map_or(0, |last| tensors[last].end());
        let behind = last.map_or(0, |last| last + 1);
        tensors[behind..].fill(Range::new(elements, elements));
        Ok(Layout {
            dtype,
            elements,
            tensors,
            filled,
        })
    }

    /// Element type of the buffer.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where each tensor lies.
    pub fn tensors(&self) -> &[Range] {
        &self.tensors
    }

    /// Length of the buffer in elements, alignment gaps included.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// The whole buffer.
    pub fn whole(&self) -> Range {
        Range::new(0, self.elements)
    }

    /// The border between units that is nearest to `position`; the lower one of two equally near.
    ///
    /// Borders themselves stay where they are and the order of positions is kept, so borders of a range
    /// stay inside it.
    pub fn border_near(&self, position: u64) -> u64 {
        // The last tensor that starts at or before the position.
        let after = self
            .tensors
            .partition_point(|tensor| tensor.start() <= position);
        let Some(tensor) = after.checked_sub(1).and_then(|i| self.tensors.get(i)) else {
            return 0;
        };
        let next = self
            .tensors
            .get(after)
            .map_or(self.elements, |next| next.start());
        let lower = tensor.start() + (position - tensor.start()) / UNIT * UNIT;
        if lower >= tensor.end() && lower > tensor.start() {
            // In the gap behind a tensor that ends on a unit border.
            return next;
        }
        let upper = if lower + UNIT < tensor.end() {
            lower + UNIT
        } else {
            next
        };
        if position >= upper {
            upper
        } else if position - lower <= upper - position {
            lower
        } else {
            upper
        }
    }

    /// Part `index` when `range` is cut into `parts` consecutive ranges of nearly equal length along unit
    /// borders. Cutting finer by a whole factor only adds cuts.
    pub fn part(&self, range: Range, index: u32, parts: u32) -> Range {
        let cut = |i: u32| {
            if i >= parts {
                return range.end();
            }
            // 48-bit lengths times 32-bit parts need more than 64 bits.
            let offset = u128::from(range.len()) * u128::from(i) / u128::from(parts);
            self.border_near(range.start() + u64::try_from(offset).unwrap_or(range.len()))
        };
        Range::new(cut(index), cut(index + 1))
    }

    /// All parts of `range`; see [`Layout::part`].
    pub fn split(&self, range: Range, parts: u32) -> Vec<Range> {
        (0..parts).map(|i| self.part(range, i, parts)).collect()
    }

    /// Indices of the tensors with an element in `slice`; empty tensors may be among them.
    pub fn tensors_in(&self, slice: Range) -> Range {
        if slice.is_empty() {
            return Range::default();
        }
        let first = self.tensors.partition_point(|t| t.end() <= slice.start());
        let end = self.tensors.partition_point(|t| t.start() < slice.end());
        Range::new(first as u64, end as u64)
    }

    /// How many tensors have an element in `slice`: the number of its [`segments`](Layout::segments).
    pub fn records_in(&self, slice: Range) -> u64 {
        self.records_of(self.tensors_in(slice))
    }

    /// How many of these tensors (indices) have elements.
    pub fn records_of(&self, tensors: Range) -> u64 {
        let filled = |index: u64| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            self.filled.get(index).copied().unwrap_or(0)
        };
        filled(tensors.end()).saturating_sub(filled(tensors.start()))
    }

    /// The elements of these tensors (indices), alignment gaps between them included.
    pub fn elements_of(&self, tensors: Range) -> Range {
        let start = |index: u64| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            self.tensors.get(index).map_or(self.elements, |t| t.start())
        };
        Range::new(start(tensors.start()), start(tensors.end()))
    }

    /// The parts of tensors that lie in `slice`, in order; tensors without an element there are left out.
    pub fn segments(&self, slice: Range) -> Vec<Segment> {
        let first = self
            .tensors
            .partition_point(|tensor| tensor.end() <= slice.start());
        let mut segments = Vec::new();
        let mut first_unit = 0;
        for (index, tensor) in self.tensors.iter().enumerate().skip(first) {
            if tensor.start() >= slice.end() {
                break;
            }
            let part = tensor.intersection(slice);
            if part.is_empty() {
                continue;
            }
            let segment = Segment {
                offset: part.start() - slice.start(),
                len: part.len(),
                first_unit,
                tensor: index as u64,
            };
            first_unit += segment.units();
            segments.push(segment);
        }
        segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(counts: &[u64]) -> Layout {
        Layout::new(DType::F32, counts).unwrap()
    }

    #[test]
    fn tensors_are_aligned_and_keep_their_order() {
        let layout = layout(&[1, 0, 17, 16, 0]);
        let starts: Vec<u64> = layout.tensors().iter().map(|t| t.start()).collect();
        assert_eq!(starts, [0, 16, 16, 48, 64]);
        assert_eq!(layout.elements(), 64);
    }

    #[test]
    fn empty_tensors_at_the_end_make_no_gap() {
        let layout = layout(&[0, 17, 0, 3, 0, 0]);
        let starts: Vec<u64> = layout.tensors().iter().map(|t| t.start()).collect();
        assert_eq!(starts, [0, 0, 32, 32, 35, 35]);
        assert_eq!(layout.elements(), 35);
        assert_eq!(layout.border_near(34), 35);
        assert_eq!(layout.border_near(35), 35);
    }

    #[test]
    fn too_long_a_buffer_is_refused() {
        let error = Layout::new(DType::F32, &[5, u64::MAX]).unwrap_err();
        assert!(error.to_string().contains("tensor 1"), "{error}");
    }

    #[test]
    fn borders_lie_on_the_grid_of_the_tensor() {
        // Tensor 1 starts at 16: its units start at 16, 4112, ...
        let layout = layout(&[3, 10_000]);
        assert_eq!(layout.border_near(0), 0);
        assert_eq!(layout.border_near(9), 16);
        assert_eq!(layout.border_near(16 + 2047), 16);
        assert_eq!(layout.border_near(16 + 2049), 16 + UNIT);
        assert_eq!(layout.border_near(layout.elements()), layout.elements());
    }

    proptest! {
        #[test]
        fn splitting_tiles_the_range_along_unit_borders(
            counts in prop::collection::vec(0u64..20_000, 1..40),
            parts in 1u32..33,
        ) {
            let layout = layout(&counts);
            let slices = layout.split(layout.whole(), parts);
            prop_assert_eq!(slices.len(), parts as usize);
            let mut at = 0;
            let mut units = 0;
            for slice in slices {
                prop_assert_eq!(slice.start(), at);
                at = slice.end();
                prop_assert_eq!(layout.records_in(slice), layout.segments(slice).len() as u64);
                for segment in layout.segments(slice) {
                    let tensor = layout.tensors()[usize::try_from(segment.tensor).unwrap()];
                    prop_assert_eq!((slice.start() + segment.offset - tensor.start()) % UNIT, 0);
                    units += segment.units();
                }
            }
            prop_assert_eq!(at, layout.elements());
            let expected: u64 = counts.iter().map(|count| count.div_ceil(UNIT)).sum();
            prop_assert_eq!(units, expected);
        }

        #[test]
        fn borders_are_fixed_points_and_keep_order(
            counts in prop::collection::vec(0u64..20_000, 1..20),
            a in 0u64..200_000, b in 0u64..200_000,
        ) {
            let layout = layout(&counts);
            let (a, b) = (a.min(layout.elements()), b.min(layout.elements()));
            let (low, high) = (layout.border_near(a.min(b)), layout.border_near(a.max(b)));
            prop_assert!(low <= high);
            prop_assert_eq!(layout.border_near(low), low);
        }
    }
}
