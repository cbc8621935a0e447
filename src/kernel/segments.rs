//! The table of segments that most launches take.

use super::addresses::table;
use super::check_room;
use super::layout::Segment;
use crate::ascend::{Device, Span};
use crate::error::Result;

/// A table of [`Segment`]s in device memory.
#[derive(Debug, Clone)]
pub struct SegmentTable {
    /// The entries.
    pub table: Span,
    /// Number of segments.
    pub count: u64,
    /// Number of units of all segments.
    pub units: u64,
}

impl SegmentTable {
    /// A table of `entries`.
    ///
    /// # Errors
    /// If device memory is short.
    pub fn new(device: &Device, entries: &[Segment]) -> Result<Self> {
        SegmentTable::uploaded(entries, |words| table(device, words))
    }

    /// A table of `entries`, whose words `upload` brings to the device.
    pub(crate) fn uploaded(
        entries: &[Segment],
        upload: impl FnOnce(&[u64]) -> Result<Span>,
    ) -> Result<Self> {
        let words: Vec<u64> = entries.iter().flat_map(Segment::words).collect();
        Ok(SegmentTable {
            table: upload(&words)?,
            count: entries.len() as u64,
            units: entries.iter().map(Segment::units).sum(),
        })
    }

    /// The first `elements` elements of a buffer, as tensor 0.
    ///
    /// # Errors
    /// If device memory is short.
    pub fn one(device: &Device, elements: u64) -> Result<Self> {
        let entry = Segment {
            len: elements,
            ..Segment::default()
        };
        SegmentTable::new(device, &[entry])
    }

    /// Checks that the table has room for its entries.
    pub(super) fn check(&self, kernel: &str) -> Result<()> {
        check_room(
            kernel,
            "segments",
            &self.table,
            self.count,
            size_of::<Segment>(),
        )
    }
}
