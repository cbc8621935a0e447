//! How much device memory a reducer takes, counted where it is allocated.

use std::cell::Cell;
use std::ops::Add;

use crate::ascend::{Buffer, Device, Pod, Span};
use crate::error::Result;
use crate::kernel::{Receipt, SegmentTable};
use crate::plan::Segment;

/// Device memory of a [`GradientReducer`](crate::reduce::GradientReducer) in bytes: all that it takes from its creation on, without
/// the copies that [`observe`](crate::reduce::GradientReducer::observe) keeps.
/// Plans of subsets of its tensors have tables of their own, and share its buffers, which grow if a subset has a larger bucket.
///
/// With `depth` buckets under way, bucket i uses the buffers of slot i modulo `depth`:
///
/// - `fused`: for each slot the bytes of its largest bucket, gaps between tensors included; where other ranks read them, all in one
///   allocation of whole pages;
/// - `received`: for each slot the most that a step receives before it combines: with m vectors on a slice, m - 1 slices;
/// - `tables`: where tensors lie, weights, and the scalars of all rounds. They grow with tensors, rounds and units of 4096
///   elements.
///
/// Each of `allocations` is at least 64 bytes; a library may round each up. Communicators have buffers of their own: two of
/// `HCCL_BUFFSIZE` MB for that of all ranks and for that of a server, if there are several of several ranks, two of 1 MB for
/// each group that exchanges scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceMemory {
    /// Fused buffers.
    pub fused: u64,
    /// Buffers for what other ranks send.
    pub received: u64,
    /// Tables and scalars.
    pub tables: u64,
    /// Number of allocations.
    pub allocations: u64,
}

impl DeviceMemory {
    /// Buffers and tables together.
    pub fn bytes(self) -> u64 {
        self.fused + self.received + self.tables
    }
}

impl Add for DeviceMemory {
    type Output = DeviceMemory;

    fn add(self, other: DeviceMemory) -> DeviceMemory {
        DeviceMemory {
            fused: self.fused + other.fused,
            received: self.received + other.received,
            tables: self.tables + other.tables,
            allocations: self.allocations + other.allocations,
        }
    }
}

/// Allocates tables in device memory, and counts what they take.
pub(in crate::reduce) struct TableAllocator<'a> {
    device: &'a Device,
    taken: Cell<DeviceMemory>,
}

/// The least that is allocated: an empty table has an address, too. Parts of a table begin at multiples of it.
const LINE: usize = 64;

impl<'a> TableAllocator<'a> {
    pub(in crate::reduce) fn new(device: &'a Device) -> Self {
        TableAllocator {
            device,
            taken: Cell::default(),
        }
    }

    /// What all tables so far take.
    pub(in crate::reduce) fn taken(&self) -> DeviceMemory {
        self.taken.get()
    }

    /// A table of so many bytes, all 0.
    pub(in crate::reduce) fn zeroed(&self, bytes: usize) -> Result<Span> {
        let buffer = Buffer::zeroed(self.device, self.count(bytes))?;
        buffer.span().slice(0..bytes)
    }

    /// Tables of so many bytes, all 0, in one allocation: that, and they.
    pub(in crate::reduce) fn zeroed_parts<const N: usize>(
        &self,
        bytes: [usize; N],
    ) -> Result<(Span, [Span; N])> {
        let lengths = bytes.map(|bytes| bytes.next_multiple_of(LINE));
        let whole = self.zeroed(lengths.iter().sum())?;
        let mut parts = [const { None }; N];
        let mut start = 0;
        for (part, (bytes, length)) in parts.iter_mut().zip(bytes.into_iter().zip(lengths)) {
            *part = Some(whole.slice(start..start + bytes)?);
            start += length;
        }
        let parts = parts.map(|part| part.unwrap_or_else(|| whole.clone()));
        Ok((whole, parts))
    }

    /// A table with these values.
    pub(in crate::reduce) fn upload<T: Pod>(&self, values: &[T]) -> Result<Span> {
        let bytes = size_of_val(values);
        let buffer = Buffer::new(self.device, self.count(bytes))?;
        let span = buffer.span().slice(0..bytes)?;
        span.write(values)?;
        Ok(span)
    }

    /// A table of segments.
    pub(in crate::reduce) fn segments(&self, segments: &[Segment]) -> Result<SegmentTable> {
        SegmentTable::uploaded(segments, |words| self.upload(words))
    }

    /// A receipt for the kernels of a bucket.
    pub(in crate::reduce) fn receipt(&self) -> Result<Receipt> {
        self.count(Receipt::BYTES);
        Receipt::new(self.device)
    }

    /// Counts an allocation for a table of so many bytes; its length.
    fn count(&self, bytes: usize) -> usize {
        let length = bytes.max(LINE);
        let table = DeviceMemory {
            tables: length as u64,
            allocations: 1,
            ..DeviceMemory::default()
        };
        self.taken.set(self.taken.get() + table);
        length
    }
}
