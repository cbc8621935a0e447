//! Tables in device memory that tell kernels where things are.

use crate::ascend::Span;
use crate::error::Result;
use crate::kernel::layout::{COEFFICIENT_WEIGHT, coefficient_words};
use crate::plan::{Layout, Range, Segment};
use crate::reduce::engine::allocator::TableAllocator;

/// The segments of a slice, counted from the start of the buffer.
pub(super) fn segments_in_buffer(layout: &Layout, slice: Range) -> Vec<Segment> {
    let segments = layout.segments(slice).into_iter();
    let entry = |segment: Segment| Segment {
        offset: slice.start() + segment.offset,
        ..segment
    };
    segments.map(entry).collect()
}

/// The same weights for each of `tensors` tensors, in the form that `coefficients` writes.
pub(in crate::reduce) fn uniform_weights(
    tables: &TableAllocator<'_>,
    weights: &[f32],
    tensors: usize,
) -> Result<Span> {
    let mut one = vec![0.0_f32; coefficient_words(weights.len())];
    one[COEFFICIENT_WEIGHT..][..weights.len()].copy_from_slice(weights);
    tables.upload(&one.repeat(tensors))
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
        tables: &TableAllocator<'_>,
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
        FoldList::new(tables, &records)
    }

    /// For the tensors `own`, of which an owner has its own records and, behind them, those it received.
    ///
    /// `parts` are the tensors that came from each member, with the record number of the first of them, in the order of
    /// the slices.
    pub(in crate::reduce) fn owned(
        tables: &TableAllocator<'_>,
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
        FoldList::new(tables, &records)
    }

    fn new(tables: &TableAllocator<'_>, records: &[Vec<u64>]) -> Result<Self> {
        let mut refs = Vec::with_capacity(2 * records.len());
        let mut indices: Vec<u64> = Vec::new();
        for list in records {
            refs.extend([indices.len() as u64, list.len() as u64]);
            indices.extend(list);
        }
        Ok(FoldList {
            refs: tables.upload(&refs)?,
            indices: tables.upload(&indices)?,
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
