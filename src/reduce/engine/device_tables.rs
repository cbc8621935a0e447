//! Tables in device memory that tell kernels where things are.

use crate::ascend::{Buffer, Device, Pod, Span};
use crate::error::Result;
use crate::kernel::layout as kernel;
use crate::plan::{Layout, Range};

/// The segments of one slice, on the device.
pub(in crate::reduce) struct Segments {
    pub(in crate::reduce) table: Span,
    pub(in crate::reduce) count: u64,
    pub(in crate::reduce) units: u64,
}

impl Segments {
    /// Those of a slice, counted from its start.
    pub(in crate::reduce) fn new(device: &Device, layout: &Layout, slice: Range) -> Result<Self> {
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
    pub(in crate::reduce) fn one(device: &Device, elements: u64) -> Result<Self> {
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
pub(in crate::reduce) fn uniform_weights(
    device: &Device,
    weights: &[f32],
    tensors: usize,
) -> Result<Span> {
    let mut one = [0.0_f32; kernel::COEFFICIENT_WORDS];
    for (operand, &weight) in weights.iter().enumerate() {
        one[kernel::COEFFICIENT_WEIGHT + operand] = weight;
        one[kernel::COEFFICIENT_SCALE + operand] = 1.0;
    }
    upload(device, &one.repeat(tensors))
}

/// Which records to sum for each tensor, on the device, in the order of the slices: that of the units.
pub(in crate::reduce) struct FoldList {
    pub(in crate::reduce) refs: Span,
    pub(in crate::reduce) indices: Span,
}

impl FoldList {
    /// For all tensors, where every member of a group contributes the records of the tensors in its slice, `stride`
    /// records apart in the gathered array.
    pub(in crate::reduce) fn gathered(
        device: &Device,
        layout: &Layout,
        slices: &[Range],
        stride: u64,
    ) -> Result<Self> {
        let mut records: Vec<Vec<u64>> = vec![Vec::new(); layout.tensors().len()];
        for member in in_order(slices) {
            let segments = layout.segments(slices[member]);
            for (position, segment) in (0..).zip(segments) {
                records[index(segment.tensor)].push(member as u64 * stride + position);
            }
        }
        FoldList::new(device, &records)
    }

    /// For the tensors `own`, of which an owner has its own records and, behind them, those it received.
    ///
    /// `parts` are the tensors that came from each member, with the record number of the first of them, in the order of
    /// the slices.
    pub(in crate::reduce) fn owned(
        device: &Device,
        layout: &Layout,
        own: Range,
        parts: &[(Range, u64)],
    ) -> Result<Self> {
        let mut records: Vec<Vec<u64>> = vec![Vec::new(); index(own.len())];
        for (tensors, first) in parts {
            let mut record = *first;
            for tensor in tensors.start()..tensors.end() {
                if layout.records_of(Range::new(tensor, tensor + 1)) > 0 {
                    records[index(tensor - own.start())].push(record);
                    record += 1;
                }
            }
        }
        FoldList::new(device, &records)
    }

    fn new(device: &Device, records: &[Vec<u64>]) -> Result<Self> {
        let mut refs = Vec::with_capacity(2 * records.len());
        let mut indices: Vec<u64> = Vec::new();
        for list in records {
            refs.extend([indices.len() as u64, list.len() as u64]);
            indices.extend(list);
        }
        Ok(FoldList {
            refs: upload(device, &refs)?,
            indices: upload(device, &indices)?,
        })
    }
}

/// The members of a group by the start of their slices.
pub(in crate::reduce) fn in_order(slices: &[Range]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..slices.len()).collect();
    order.sort_by_key(|&member| slices[member].start());
    order
}

/// Tensors were counted in memory, so their indices fit.
pub(in crate::reduce) fn index(tensor: u64) -> usize {
    usize::try_from(tensor).unwrap_or(usize::MAX)
}

/// Zeroed device memory of so many bytes; none still has an address.
pub(in crate::reduce) fn table(device: &Device, bytes: usize) -> Result<Span> {
    Buffer::zeroed(device, bytes.max(64))?
        .span()
        .slice(0..bytes)
}

/// Zeroed tables of so many bytes, each at a multiple of 64, in one allocation: that, and they.
pub(in crate::reduce) fn tables<const N: usize>(
    device: &Device,
    bytes: [usize; N],
) -> Result<(Span, [Span; N])> {
    let whole = table(device, lines(&bytes))?;
    let mut parts = [const { None }; N];
    let mut start = 0;
    for (part, bytes) in parts.iter_mut().zip(bytes) {
        *part = Some(whole.slice(start..start + bytes)?);
        start += lines(&[bytes]);
    }
    let parts = parts.map(|part| part.unwrap_or_else(|| whole.clone()));
    Ok((whole, parts))
}

/// Bytes of tables that each begin at a multiple of 64.
pub(in crate::reduce) fn lines(bytes: &[usize]) -> usize {
    bytes.iter().map(|bytes| bytes.next_multiple_of(64)).sum()
}

/// A table of its own; an empty one still has an address.
pub(in crate::reduce) fn upload<T: Pod>(device: &Device, values: &[T]) -> Result<Span> {
    let bytes = size_of_val(values);
    let buffer = Buffer::new(device, bytes.max(64))?;
    let span = buffer.span().slice(0..bytes)?;
    span.write(values)?;
    Ok(span)
}
