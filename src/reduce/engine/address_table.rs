//! Addresses that kernels read from device memory, kept up to date without a wait.

use std::ops::Range;

use crate::ascend::{Event, HostBuffer, Span, Stream};
use crate::error::Result;
use crate::kernel::{Tensors, Vectors};
use crate::reduce::engine::allocator::TableAllocator;

/// Bytes of an address.
const ADDRESS: usize = size_of::<u64>();

/// Changes that may be on their way at a time; one more waits for the first.
const PAGES: usize = 8;

/// A table of device addresses. Kernels on two streams read it.
pub(super) struct AddressTable {
    table: Span,
    /// What the table holds once the queued copies have run.
    current: Vec<u64>,
    pages: Vec<Page>,
    next: usize,
}

/// Host memory that a copy reads, free again when the event is complete.
struct Page {
    memory: HostBuffer,
    copied: Event,
}

impl AddressTable {
    /// A table of `len` addresses, all 0.
    pub(in crate::reduce) fn new(tables: &TableAllocator<'_>, len: usize) -> Result<Self> {
        let device = tables.device();
        let pages = (0..PAGES).map(|_| {
            Ok(Page {
                memory: HostBuffer::new(device, len * ADDRESS)?,
                copied: Event::new(device)?,
            })
        });
        Ok(AddressTable {
            table: tables.zeroed(len * ADDRESS)?,
            current: vec![0; len],
            pages: pages.collect::<Result<_>>()?,
            next: 0,
        })
    }

    /// Enqueues a change of the table to `addresses`, if it is one; the event behind it, for other streams that read it.
    pub(in crate::reduce) fn update(
        &mut self,
        addresses: Vec<u64>,
        stream: &Stream,
    ) -> Result<Option<&Event>> {
        if addresses == self.current {
            return Ok(None);
        }
        let page = &mut self.pages[self.next];
        self.next = (self.next + 1) % PAGES;
        if !page.copied.is_complete()? {
            page.copied.synchronize()?;
        }
        page.memory.write(&addresses)?;
        stream.upload(&self.table, &page.memory)?;
        stream.record(&page.copied)?;
        self.current = addresses;
        Ok(Some(&page.copied))
    }

    /// The vectors whose addresses stand in `entries`; each launch keeps `behind` alive.
    pub(in crate::reduce) fn vectors(
        &self,
        entries: &Range<usize>,
        behind: &[Span],
    ) -> Result<Vectors> {
        Vectors::in_table(self.part(entries)?, behind)
    }

    /// The tensors whose addresses stand in `entries`.
    pub(in crate::reduce) fn tensors(&self, entries: &Range<usize>) -> Result<Tensors> {
        Ok(Tensors::in_table(self.part(entries)?))
    }

    fn part(&self, entries: &Range<usize>) -> Result<Span> {
        self.table
            .slice(entries.start * ADDRESS..entries.end * ADDRESS)
    }
}
