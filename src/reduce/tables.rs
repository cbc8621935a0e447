//! Tables in device memory that tell kernels where things are.

use crate::ascend::{Buffer, Device, Pod, Span};
use crate::error::Result;
use crate::kernel::layout as kernel;
use crate::plan::{Layout, Range};

/// The segments of one slice, on the device.
pub(super) struct Segments {
    pub(super) table: Span,
    pub(super) count: u64,
    pub(super) units: u64,
}

impl Segments {
    /// Those of a slice, counted from its start.
    pub(super) fn new(device: &Device, layout: &Layout, slice: Range) -> Result<Self> {
        Segments::counted_from(device, layout, slice, slice.start())
    }

    /// Those of a slice, counted from the start of the buffer.
    pub(super) fn in_buffer(device: &Device, layout: &Layout, slice: Range) -> Result<Self> {
        Segments::counted_from(device, layout, slice, 0)
    }

    fn counted_from(device: &Device, layout: &Layout, slice: Range, origin: u64) -> Result<Self> {
        let segments = layout.segments(slice);
        let words: Vec<u64> = segments
            .iter()
            .flat_map(|segment| {
                kernel::Segment {
                    offset: slice.start() + segment.offset - origin,
                    len: segment.len,
                    first_unit: segment.first_unit,
                    tensor: segment.tensor,
                }
                .words()
            })
            .collect();
        Ok(Segments {
            table: upload(device, &words)?,
            count: segments.len() as u64,
            units: segments.iter().map(|segment| segment.units()).sum(),
        })
    }
}

impl Segments {
    /// The first `elements` elements of a buffer as tensor 0.
    pub(super) fn one(device: &Device, elements: u64) -> Result<Self> {
        let segment = kernel::Segment {
            len: elements,
            ..kernel::Segment::default()
        };
        Ok(Segments {
            table: upload(device, &segment.words())?,
            count: 1,
            units: segment.units(),
        })
    }
}

/// The same weights for each of `tensors` tensors, in the form that `coefficients` writes.
pub(super) fn uniform_weights(device: &Device, weights: &[f32], tensors: usize) -> Result<Span> {
    let mut one = [0.0_f32; kernel::COEFFICIENT_WORDS];
    for (operand, &weight) in weights.iter().enumerate() {
        one[kernel::COEFFICIENT_WEIGHT + operand] = weight;
        one[kernel::COEFFICIENT_SCALE + operand] = 1.0;
    }
    upload(device, &one.repeat(tensors))
}

/// Which records to sum for each tensor, on the device.
///
/// Every member of a group contributes the records of the tensors in its slice, `stride` records apart
/// in the gathered array. They are summed in the order of the slices, which is the order of units.
pub(super) struct FoldList {
    pub(super) refs: Span,
    pub(super) indices: Span,
    /// Records that each member contributes; the largest number that one of them needs.
    pub(super) stride: u64,
}

impl FoldList {
    pub(super) fn new(device: &Device, layout: &Layout, slices: &[Range]) -> Result<Self> {
        let contributions: Vec<Vec<u64>> = slices
            .iter()
            .map(|&slice| layout.segments(slice).iter().map(|s| s.tensor).collect())
            .collect();
        let stride = contributions.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let mut order: Vec<usize> = (0..slices.len()).collect();
        order.sort_by_key(|&member| slices[member].start());

        let mut records: Vec<Vec<u64>> = vec![Vec::new(); layout.tensors().len()];
        for member in order {
            for (position, &tensor) in (0..).zip(&contributions[member]) {
                records[usize::try_from(tensor).unwrap_or(usize::MAX)]
                    .push(member as u64 * stride + position);
            }
        }
        let mut refs = Vec::with_capacity(2 * records.len());
        let mut indices: Vec<u64> = Vec::new();
        for list in &records {
            refs.extend([indices.len() as u64, list.len() as u64]);
            indices.extend(list);
        }
        Ok(FoldList {
            refs: upload(device, &refs)?,
            indices: upload(device, &indices)?,
            stride,
        })
    }
}

/// A table of its own; an empty one still has an address.
pub(super) fn upload<T: Pod>(device: &Device, values: &[T]) -> Result<Span> {
    let bytes = size_of_val(values);
    let buffer = Buffer::new(device, bytes.max(64))?;
    let span = buffer.span().slice(0..bytes)?;
    span.write(values)?;
    Ok(span)
}
