//! Memory that a launch reaches through a table of addresses.

use crate::ascend::{Argument, Buffer, Device, Span};
use crate::error::Result;

/// A table of addresses in device memory, and what is kept alive by it.
#[derive(Clone)]
pub(super) struct Addresses {
    table: Span,
    spans: Vec<Span>,
}

impl Addresses {
    /// The addresses of `spans`.
    pub(super) fn new(device: &Device, spans: &[Span]) -> Result<Self> {
        let addresses: Vec<u64> = spans.iter().map(Span::address).collect();
        let bytes = size_of_val(&addresses[..]);
        // There is no memory of no bytes.
        let table = Buffer::new(device, bytes.max(64))?.span().slice(0..bytes)?;
        table.write(&addresses)?;
        Ok(Self::in_table(table, spans))
    }

    /// `table` is filled later, on the stream of the launches.
    pub(super) fn in_table(table: Span, behind: &[Span]) -> Self {
        Addresses {
            table,
            spans: behind.to_vec(),
        }
    }

    /// How many addresses there are.
    pub(super) fn len(&self) -> usize {
        self.table.len() / size_of::<u64>()
    }

    /// What lies behind them, as far as that is known.
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
