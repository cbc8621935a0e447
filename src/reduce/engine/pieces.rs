//! The parts of a slice on which the vectors of a combine lie in one place each.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::plan::{Combine, Layout, Range, Segment, VectorPart};
use crate::reduce::engine::place::Place;
use crate::transfer::Transfer;

/// A part of a combine's slice. What is received lies together, so that the whole slice is one piece; of what is read where
/// other ranks have it, several may have parts of one operand.
pub(super) struct Piece {
    /// Where the slice would begin in the buffer of each operand.
    pub(super) vectors: Vec<Place>,
    /// The parts of tensors, counted from the start of the slice; units from that of the piece.
    pub(super) segments: Vec<Segment>,
    /// Units of the slice before the piece.
    pub(super) first_unit: u64,
}

impl Piece {
    /// The pieces of `combine`'s slice in their order, at least one. `place` gives an operand's place by its number and the
    /// rank that has it, if it is read there.
    pub(super) fn of(
        layout: &Layout,
        combine: &Combine,
        place: impl Fn(u32, Option<u32>) -> Result<Place>,
    ) -> Result<Vec<Piece>> {
        let slice = combine.slice;
        let reads: Vec<&Transfer<VectorPart>> = match combine.exchange.barrier {
            Some(_) => combine.exchange.receives().collect(),
            None => Vec::new(),
        };
        let mut cuts: BTreeSet<u64> = [slice.start(), slice.end()].into();
        for read in &reads {
            cuts.extend([read.part.range.start(), read.part.range.end()]);
        }
        let cuts: Vec<u64> = cuts.into_iter().collect();
        let mut ranges: Vec<Range> = cuts.windows(2).map(|c| Range::new(c[0], c[1])).collect();
        if ranges.is_empty() {
            ranges.push(slice);
        }
        let mut first_unit = 0;
        let mut pieces = Vec::with_capacity(ranges.len());
        for range in ranges {
            let source = |number: u32| {
                let part = |read: &Transfer<VectorPart>| {
                    read.part.operand == number && read.part.range.contains(range)
                };
                reads.iter().find(|read| part(read)).map(|read| read.peer)
            };
            let vectors = (0..combine.operands).map(|number| place(number, source(number)));
            let segments: Vec<Segment> = layout
                .segments(range)
                .into_iter()
                .map(|segment| Segment {
                    offset: range.start() - slice.start() + segment.offset,
                    ..segment
                })
                .collect();
            let units: u64 = segments.iter().map(Segment::units).sum();
            pieces.push(Piece {
                vectors: vectors.collect::<Result<_>>()?,
                segments,
                first_unit,
            });
            first_unit += units;
        }
        Ok(pieces)
    }
}
