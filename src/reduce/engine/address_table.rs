//! Addresses that kernels read from device memory, kept up to date without a wait.

use std::collections::VecDeque;
use std::ops::Range;

use crate::ascend::{Device, Event, HostBuffer, Span, Stream};
use crate::error::Result;
use crate::kernel::{Tensors, Vectors};
use crate::reduce::engine::allocator::TableAllocator;

/// Bytes of an address.
const ADDRESS: usize = size_of::<u64>();

/// A table of device addresses. Kernels on two streams read it.
pub(super) struct AddressTable {
    table: Span,
    /// What the table holds once the queued copies have run.
    current: Vec<u64>,
    pages: Pages,
}

/// As many as changes have been on their way at a time, in the order of their copies.
#[derive(Default)]
struct Pages(VecDeque<Page>);

/// Host memory that a copy reads, free again when the event is complete.
struct Page {
    memory: HostBuffer,
    copied: Event,
}

impl AddressTable {
    /// A table of `len` addresses, all 0.
    pub(in crate::reduce) fn new(tables: &TableAllocator<'_>, len: usize) -> Result<Self> {
        Ok(AddressTable {
            table: tables.zeroed(len * ADDRESS)?,
            current: vec![0; len],
            pages: Pages::default(),
        })
    }

    /// Number of addresses.
    pub(super) fn len(&self) -> usize {
        self.current.len()
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
        let page = self.pages.free(stream.device(), addresses.len())?;
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

impl Pages {
    /// The oldest page if its copy is done, else a new one, which then is the latest: a host that is ahead does not wait.
    fn free(&mut self, device: &Device, addresses: usize) -> Result<&mut Page> {
        let free = match self.0.front() {
            Some(oldest) => oldest.copied.is_complete()?,
            None => false,
        };
        if !free {
            self.0.push_front(Page {
                memory: HostBuffer::new(device, addresses * ADDRESS)?,
                copied: Event::new(device)?,
            });
        }
        self.0.rotate_left(1);
        let latest = self.0.len() - 1;
        Ok(&mut self.0[latest])
    }
}
