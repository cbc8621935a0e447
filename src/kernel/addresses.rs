//! Tables in device memory, and the memory that a launch reaches through a table of addresses.

use crate::ascend::{Argument, Buffer, Device, Span};
use crate::error::Result;

/// `words` in device memory.
pub(super) fn table(device: &Device, words: &[u64]) -> Result<Span> {
    let bytes = size_of_val(words);
    // There is no memory of no bytes.
    let table = Buffer::new(device, bytes.max(64))?.span().slice(0..bytes)?;
    table.write(words)?;
    Ok(table)
}

/// A table of addresses in device memory, and the memory that it keeps alive.
#[derive(Clone)]
pub(super) struct Addresses {
    table: Span,
    spans: Vec<Span>,
}

impl Addresses {
    /// The addresses of `spans`.
    pub(super) fn new(device: &Device, spans: &[Span]) -> Result<Self> {
        let addresses: Vec<u64> = spans.iter().map(Span::address).collect();
        Ok(Self::in_table(table(device, &addresses)?, spans))
    }

    /// `table` is filled later, on the stream of the launches.
    pub(super) fn in_table(table: Span, behind: &[Span]) -> Self {
        Addresses {
            table,
            spans: behind.to_vec(),
        }
    }

    /// The number of addresses.
    pub(super) fn len(&self) -> usize {
        self.table.len() / size_of::<u64>()
    }

    /// The memory at the addresses, as far as it is known.
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(super) fn argument(&self) -> Argument<'_> {
        Argument::Table {
            table: &self.table,
            behind: &self.spans,
        }
    }
}
