//! Copies of tensors, one after the other in device memory.

use crate::ascend::{Buffer, DataType, Device, Span, Stream};
use crate::error::{Error, Result};
use crate::kernel::{Kernels, Move, SegmentTable, Subtract};
use crate::plan::{DType, Layout, TensorSpec};
use crate::reduce::engine::address_table::AddressTable;
use crate::reduce::engine::allocator::TableAllocator;
use crate::reduce::engine::bucket::data_type;

/// The element type of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reduce) enum Store {
    /// The type of each tensor.
    Native,
    /// fp32 for all.
    Fp32,
}

/// Room for a copy of each tensor of a list, in a type of its own. Each copy starts at a multiple of 64 bytes.
///
/// Everything here is stream-ordered, waits for nothing and allocates only while changes of addresses are on their way. Calls
/// come in the order of the world ([`World::enqueue`](crate::reduce::World::enqueue)), whatever their streams.
pub(in crate::reduce) struct TensorCopies {
    places: Vec<Span>,
    parts: Vec<CopiesOfType>,
}

/// The copies of all tensors of one element type.
pub(in crate::reduce) struct CopiesOfType {
    tensor_type: DataType,
    pub(in crate::reduce) copy_type: DataType,
    /// Indices of the tensors in the list.
    pub(in crate::reduce) members: Vec<usize>,
    pub(in crate::reduce) copies: Span,
    /// Length of the copies, gaps between tensors included.
    pub(in crate::reduce) elements: u64,
    /// The tensors in the copies, counted as in `members`; those with elements.
    pub(in crate::reduce) segments: SegmentTable,
    /// The members with elements, each of which has a segment.
    pub(in crate::reduce) filled: Vec<usize>,
    /// Addresses of the tensors.
    addresses: AddressTable,
}

impl TensorCopies {
    /// Room for copies of `tensors`, all zero.
    pub(in crate::reduce) fn new(
        device: &Device,
        tensors: &[TensorSpec],
        store: Store,
    ) -> Result<Self> {
        let tables = TableAllocator::new(device);
        let mut places: Vec<Option<Span>> = vec![None; tensors.len()];
        let mut parts = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let members: Vec<usize> = (0..tensors.len())
                .filter(|&index| tensors[index].dtype == dtype)
                .collect();
            if members.is_empty() {
                continue;
            }
            let counts: Vec<u64> = members.iter().map(|&index| tensors[index].count).collect();
            let layout = Layout::new(store.dtype(dtype), &counts)?;
            let copies = Buffer::zeroed(device, span_bytes(&layout, layout.elements())?)?.span();
            for (&member, range) in members.iter().zip(layout.tensors()) {
                let start = span_bytes(&layout, range.start())?;
                let end = span_bytes(&layout, range.end())?;
                places[member] = Some(copies.slice(start..end)?);
            }
            parts.push(CopiesOfType {
                tensor_type: data_type(dtype),
                copy_type: data_type(layout.dtype()),
                copies,
                elements: layout.elements(),
                segments: SegmentTable::new(device, &layout.segments(layout.whole()))?,
                filled: members
                    .iter()
                    .copied()
                    .filter(|&member| tensors[member].count > 0)
                    .collect(),
                addresses: AddressTable::new(&tables, members.len())?,
                members,
            });
        }
        Ok(TensorCopies {
            places: places.into_iter().flatten().collect(),
            parts,
        })
    }

    /// The copies by element type of the tensors.
    pub(in crate::reduce) fn parts(&self) -> &[CopiesOfType] {
        &self.parts
    }

    /// Where the copies are, in the order of the list.
    pub(in crate::reduce) fn places(&self) -> &[Span] {
        &self.places
    }

    /// Copies `factor` times each tensor in: fp32 arithmetic, rounded once to the type of the copy.
    pub(in crate::reduce) fn pack(
        &mut self,
        kernels: &Kernels,
        stream: &Stream,
        tensors: &[Span],
        factor: f32,
    ) -> Result<()> {
        self.copy(stream, tensors, factor, |launch| {
            kernels.pack(stream, launch)
        })
    }

    /// Copies `factor` times each copy out: fp32 arithmetic, rounded once to the type of the tensor.
    pub(in crate::reduce) fn unpack(
        &mut self,
        kernels: &Kernels,
        stream: &Stream,
        tensors: &[Span],
        factor: f32,
    ) -> Result<()> {
        self.copy(stream, tensors, factor, |launch| {
            kernels.unpack(stream, launch)
        })
    }

    fn copy(
        &mut self,
        stream: &Stream,
        tensors: &[Span],
        factor: f32,
        launch: impl Fn(&Move<'_>) -> Result<()>,
    ) -> Result<()> {
        for part in &mut self.parts {
            let members = part.members.iter().filter_map(|&index| tensors.get(index));
            part.addresses
                .update(members.map(Span::address).collect(), stream)?;
            launch(&Move {
                tensors: &part.addresses.tensors(&(0..part.members.len()))?,
                tensor_type: part.tensor_type,
                fused: &part.copies,
                fused_type: part.copy_type,
                factor,
                segments: &part.segments,
            })?;
        }
        stream.keep(tensors);
        Ok(())
    }

    /// Replaces these copies by `from` less these; both are for the same list.
    pub(in crate::reduce) fn subtract_from(
        &self,
        from: &TensorCopies,
        kernels: &Kernels,
        stream: &Stream,
    ) -> Result<()> {
        for (minuend, part) in from.parts.iter().zip(&self.parts) {
            kernels.subtract(
                stream,
                &Subtract {
                    a: &minuend.copies,
                    b: &part.copies,
                    out: &part.copies,
                    dtype: part.copy_type,
                    count: part.elements,
                },
            )?;
        }
        Ok(())
    }
}

impl Store {
    fn dtype(self, tensor: DType) -> DType {
        match self {
            Store::Native => tensor,
            Store::Fp32 => DType::F32,
        }
    }
}

fn span_bytes(layout: &Layout, elements: u64) -> Result<usize> {
    usize::try_from(elements * layout.dtype().size())
        .map_err(|_| Error::invalid(format!("{elements} elements are more than memory holds")))
}
