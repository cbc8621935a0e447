//! What the ranks of a communicator send each other.

use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::Arc;

use super::buffer::Span;
use super::check::{self, check};
use super::comm::Comm;
use super::data_type::{DataType, ReduceOp};
use super::device::Device;
use super::stream::Stream;
use crate::error::{Context, Error, Result};
use crate::sys::acl::aclrtStream;
use crate::sys::hccl::{HcclComm, HcclResult, HcclSendRecvItem, HcclSendRecvType};
use crate::sys::{self, Backend};
use crate::transfer::{Direction, Transfer};

/// Point to point.
impl Comm {
    /// Sends `span` to rank `peer`; it waits there for the receive. Wraps `HcclSend`.
    ///
    /// # Errors
    /// If an argument is wrong or no link to the peer can be made.
    pub fn send(&self, span: &Span, dtype: DataType, peer: u32, stream: &Stream) -> Result<()> {
        self.check_peer(peer)?;
        let (count, address) = (dtype.count(span)?, span.pointer());
        self.issue(&[span], stream, |backend, comm, stream| {
            // SAFETY: `count` elements lie at the address, kept until the stream is synchronised; live handles.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclSend(address, count, dtype.raw(), peer, comm, stream)
                )
            }
        })
        .context(|| self.describe(&format!("send of {} bytes to {peer}", span.len())))
    }

    /// Receives `span` from rank `peer`. Wraps `HcclRecv`.
    ///
    /// # Errors
    /// If an argument is wrong or no link to the peer can be made.
    pub fn recv(&self, span: &Span, dtype: DataType, peer: u32, stream: &Stream) -> Result<()> {
        self.check_peer(peer)?;
        let (count, address) = (dtype.count(span)?, span.pointer());
        self.issue(&[span], stream, |backend, comm, stream| {
            // SAFETY: `count` elements lie at the address, kept until the stream is synchronised; live handles.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclRecv(address, count, dtype.raw(), peer, comm, stream)
                )
            }
        })
        .context(|| self.describe(&format!("receive of {} bytes from {peer}", span.len())))
    }

    /// Does all `transfers` of elements of type `dtype` at once, in both directions; a peer's matching half is in its same call.
    /// Empty ones are left out, on both sides. At most one send and one receive per peer. Wraps `HcclBatchSendRecv`.
    ///
    /// # Errors
    /// If an argument is wrong or no link to a peer can be made.
    pub fn batch(
        &self,
        transfers: &[Transfer<Span>],
        dtype: DataType,
        stream: &Stream,
    ) -> Result<()> {
        let mut items = self.items(transfers, dtype)?;
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let items = items.as_mut_ptr();
        self.issue(&spans(transfers), stream, |backend, comm, stream| {
            // SAFETY: `count` items outlive the call; their memory is kept until the stream is synchronised.
            unsafe { check!(backend.hccl.HcclBatchSendRecv(items, count, comm, stream)) }
        })
        .context(|| self.describe(&format!("batch of {count} transfers")))
    }

    /// Does all `transfers` at once, each by a send or receive of its own, between `HcclGroupStart` and `HcclGroupEnd`. Empty
    /// ones are left out, on both sides. At most one send and one receive per peer.
    ///
    /// On A2 and A3 the end of a group says success also where HCCL refused a part of it, which then never runs
    /// (hcomm, hccl_group.cc:412): what is received then is what lay there before.
    ///
    /// # Errors
    /// If an argument is wrong, or this library or processor has no groups: see [`groups_run`].
    pub fn group(
        &self,
        transfers: &[Transfer<Span>],
        dtype: DataType,
        stream: &Stream,
    ) -> Result<()> {
        let items = self.items(transfers, dtype)?;
        self.issue(&spans(transfers), stream, |backend, comm, stream| {
            let group = OpenGroup::start(backend)?;
            for item in &items {
                group.add(item, comm, stream)?;
            }
            group.end()
        })
        .context(|| self.describe(&format!("group of {} transfers", items.len())))
    }

    /// Enqueues one transfer.
    ///
    /// # Errors
    /// As [`Comm::send`] and [`Comm::recv`].
    pub fn transfer(
        &self,
        transfer: &Transfer<Span>,
        dtype: DataType,
        stream: &Stream,
    ) -> Result<()> {
        match transfer.direction {
            Direction::Send => self.send(&transfer.part, dtype, transfer.peer, stream),
            Direction::Receive => self.recv(&transfer.part, dtype, transfer.peer, stream),
        }
    }

    /// The transfers as the vendor takes them, without empty ones. Their addresses are good as long as the spans are kept.
    fn items(
        &self,
        transfers: &[Transfer<Span>],
        dtype: DataType,
    ) -> Result<Vec<HcclSendRecvItem>> {
        let filled = transfers
            .iter()
            .filter(|transfer| !transfer.part.is_empty());
        self.check_peers(filled.clone())?;
        let item = |transfer: &Transfer<Span>| {
            Ok(HcclSendRecvItem {
                sendRecvType: match transfer.direction {
                    Direction::Send => HcclSendRecvType::HCCL_SEND,
                    Direction::Receive => HcclSendRecvType::HCCL_RECV,
                },
                buf: transfer.part.pointer(),
                count: dtype.count(&transfer.part)?,
                dataType: dtype.raw(),
                remoteRank: transfer.peer,
            })
        };
        filled.map(item).collect()
    }

    fn check_peers<'t>(&self, transfers: impl Iterator<Item = &'t Transfer<Span>>) -> Result<()> {
        let mut seen = HashSet::new();
        for transfer in transfers {
            self.check_peer(transfer.peer)?;
            if !seen.insert((transfer.direction, transfer.peer)) {
                return Err(Error::invalid(format!(
                    "there are two transfers in one direction with rank {}",
                    transfer.peer
                )));
            }
        }
        Ok(())
    }

    fn check_peer(&self, peer: u32) -> Result<()> {
        if peer < self.size() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "peer {peer} is not a rank of communicator {}, which has {}",
            self.name(),
            self.size()
        )))
    }
}

/// Collectives.
impl Comm {
    /// Reduces `send` of all ranks elementwise into `recv` of every rank; they may be the same. Wraps `HcclAllReduce`.
    ///
    /// # Errors
    /// If an argument is wrong or no links can be made.
    pub fn all_reduce(
        &self,
        send: &Span,
        recv: &Span,
        dtype: DataType,
        op: ReduceOp,
        stream: &Stream,
    ) -> Result<()> {
        let count = dtype.count(send)?;
        self.check_lengths(recv.len(), send.len(), 1)?;
        let (from, to) = (send.pointer(), recv.pointer());
        self.issue(&[send, recv], stream, |backend, comm, stream| {
            let (dtype, op) = (dtype.raw(), op.raw());
            // SAFETY: both spans have `count` elements and are kept until the stream is synchronised; live handles.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclAllReduce(from, to, count, dtype, op, comm, stream)
                )
            }
        })
        .context(|| self.describe(&format!("all-reduce of {} bytes", send.len())))
    }

    /// Puts `send` of all ranks, one after the other, into `recv` of every rank. Wraps `HcclAllGather`.
    ///
    /// # Errors
    /// If an argument is wrong or no links can be made.
    pub fn all_gather(
        &self,
        send: &Span,
        recv: &Span,
        dtype: DataType,
        stream: &Stream,
    ) -> Result<()> {
        let count = dtype.count(send)?;
        self.check_lengths(recv.len(), send.len(), self.size())?;
        let (from, to) = (send.pointer(), recv.pointer());
        self.issue(&[send, recv], stream, |backend, comm, stream| {
            // SAFETY: `recv` has room for `count` elements of every rank; both are kept until the stream is synchronised.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclAllGather(from, to, count, dtype.raw(), comm, stream)
                )
            }
        })
        .context(|| self.describe(&format!("all-gather of {} bytes", send.len())))
    }

    /// Reduces `send` of all ranks elementwise and puts part `rank` of the result into `recv`. Wraps
    /// `HcclReduceScatter`.
    ///
    /// # Errors
    /// If an argument is wrong or no links can be made.
    pub fn reduce_scatter(
        &self,
        send: &Span,
        recv: &Span,
        dtype: DataType,
        op: ReduceOp,
        stream: &Stream,
    ) -> Result<()> {
        let count = dtype.count(recv)?;
        self.check_lengths(send.len(), recv.len(), self.size())?;
        let (from, to) = (send.pointer(), recv.pointer());
        self.issue(&[send, recv], stream, |backend, comm, stream| {
            let (dtype, op) = (dtype.raw(), op.raw());
            // SAFETY: `send` has `count` elements for every rank; both are kept until the stream is synchronised.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclReduceScatter(from, to, count, dtype, op, comm, stream)
                )
            }
        })
        .context(|| self.describe(&format!("reduce-scatter of {} bytes", recv.len())))
    }

    /// Does `transfers` of elements of type `dtype` at once, in both directions; ranks without any call it, too. At most one
    /// send and one receive per peer. All that is sent lies in one allocation, all that is received in one, and the two do
    /// not overlap. Wraps `HcclAlltoAllV`.
    ///
    /// # Errors
    /// If an argument is wrong or no links can be made.
    pub fn all_to_all(
        &self,
        transfers: &[Transfer<Span>],
        dtype: DataType,
        stream: &Stream,
    ) -> Result<()> {
        self.check_peers(transfers.iter())?;
        let side = |direction: Direction| {
            let transfers = transfers.iter();
            let of = transfers.filter(|transfer| transfer.direction == direction);
            Side::new(self.size(), dtype, of)
        };
        let (send, recv) = (side(Direction::Send)?, side(Direction::Receive)?);
        self.issue_always(&spans(transfers), stream, |backend, comm, stream| {
            let dtype = dtype.raw();
            // SAFETY: the arrays have an entry for each rank and outlive the call, which reads them at once outside groups;
            // the parts lie in memory that is kept until the stream is synchronised; live handles.
            unsafe {
                check!(backend.hccl.HcclAlltoAllV(
                    send.base,
                    send.counts.as_ptr().cast(),
                    send.places.as_ptr().cast(),
                    dtype,
                    recv.base,
                    recv.counts.as_ptr().cast(),
                    recv.places.as_ptr().cast(),
                    dtype,
                    comm,
                    stream
                ))
            }
        })
        .context(|| self.describe(&format!("all-to-all of {} transfers", transfers.len())))
    }

    /// Copies `span` of rank `root` to all ranks. Wraps `HcclBroadcast`.
    ///
    /// # Errors
    /// If an argument is wrong or no links can be made.
    pub fn broadcast(
        &self,
        span: &Span,
        dtype: DataType,
        root: u32,
        stream: &Stream,
    ) -> Result<()> {
        self.check_peer(root)?;
        let (count, address) = (dtype.count(span)?, span.pointer());
        self.issue(&[span], stream, |backend, comm, stream| {
            // SAFETY: `count` elements lie at the address, kept until the stream is synchronised; live handles.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclBroadcast(address, count, dtype.raw(), root, comm, stream)
                )
            }
        })
        .context(|| self.describe(&format!("broadcast of {} bytes from {root}", span.len())))
    }

    /// Holds the stream until the streams of all ranks are here; the host goes on. Wraps `HcclBarrier`.
    ///
    /// # Errors
    /// If no links can be made.
    pub fn barrier(&self, stream: &Stream) -> Result<()> {
        self.issue_always(&[], stream, |backend, comm, stream| {
            // SAFETY: live handles.
            unsafe { check!(backend.hccl.HcclBarrier(comm, stream)) }
        })
        .context(|| self.describe("barrier"))
    }

    fn check_lengths(&self, whole: usize, part: usize, parts: u32) -> Result<()> {
        if part.checked_mul(parts as usize) == Some(whole) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "communicator {}: {whole} bytes are not {parts} times {part}",
            self.name()
        )))
    }
}

/// The memory of all transfers but empty ones, for a call to keep.
fn spans(transfers: &[Transfer<Span>]) -> Vec<&Span> {
    let parts = transfers.iter().map(|transfer| &transfer.part);
    parts.filter(|part| !part.is_empty()).collect()
}

/// One side of an all-to-all, as the vendor takes it.
struct Side {
    /// The lowest address; null where there is nothing.
    base: *mut c_void,
    /// Elements for each rank.
    counts: Vec<u64>,
    /// Elements between the base and the part of each rank.
    places: Vec<u64>,
}

impl Side {
    fn new<'a>(
        ranks: u32,
        dtype: DataType,
        transfers: impl Iterator<Item = &'a Transfer<Span>>,
    ) -> Result<Self> {
        let transfers: Vec<&Transfer<Span>> = transfers.filter(|t| !t.part.is_empty()).collect();
        let first = transfers.iter().min_by_key(|t| t.part.address());
        let mut side = Side {
            base: first.map_or(std::ptr::null_mut(), |t| t.part.pointer()),
            counts: vec![0; ranks as usize],
            places: vec![0; ranks as usize],
        };
        let Some(first) = first else {
            return Ok(side);
        };
        for transfer in &transfers {
            let (span, peer) = (&transfer.part, transfer.peer as usize);
            let distance = span.address() - first.part.address();
            if !Arc::ptr_eq(&span.allocation(), &first.part.allocation())
                || !distance.is_multiple_of(dtype.size() as u64)
            {
                return Err(Error::invalid(format!(
                    "the part of rank {peer} lies {distance} bytes from the first one, in another allocation or between \
                     {dtype:?} elements"
                )));
            }
            side.counts[peer] = dtype.count(span)?;
            side.places[peer] = distance / dtype.size() as u64;
        }
        Ok(side)
    }
}

/// What there is to say where [`groups_run`] is false.
pub const GROUPS_RUN: &str = "HCCL has groups from CANN 9.0 on, on A2, A3 and 950";

/// Whether this library and the processor of `device` have group calls: the HCCL of CANN 9.0 and later on A2, A3 and 950.
///
/// # Errors
/// If the device cannot be asked.
pub fn groups_run(device: &Device) -> Result<bool> {
    let processor = device.soc_name()?;
    let supported = ["Ascend910B", "Ascend910_93", "Ascend950"]
        .iter()
        .any(|known| processor.starts_with(known));
    let backend = sys::backend()?;
    // A group of nothing, to see whether the functions answer.
    Ok(supported && OpenGroup::start(backend).and_then(OpenGroup::end).is_ok())
}

/// Between the start and the end of a group of this thread, which a failure must not leave open: all later calls would wait
/// for its end.
struct OpenGroup<'a> {
    backend: &'a Backend,
    /// `HcclGroupEnd`, until it is called.
    end: Option<unsafe extern "C" fn() -> HcclResult>,
}

impl<'a> OpenGroup<'a> {
    fn start(backend: &'a Backend) -> Result<Self> {
        let (Ok(start), Ok(end)) = (&backend.hccl.HcclGroupStart, &backend.hccl.HcclGroupEnd)
        else {
            return Err(Error::unsupported(format!(
                "this library has no HcclGroupStart: {GROUPS_RUN}"
            )));
        };
        // SAFETY: the function takes nothing.
        let code = unsafe { start() };
        check::hccl(backend, "HcclGroupStart", code)?;
        Ok(OpenGroup {
            backend,
            end: Some(*end),
        })
    }

    /// Adds a send or a receive, whose memory the caller keeps until the stream is synchronised.
    fn add(&self, item: &HcclSendRecvItem, comm: HcclComm, stream: aclrtStream) -> Result<()> {
        let (count, peer, dtype) = (item.count, item.remoteRank, item.dataType);
        let (backend, buffer) = (self.backend, item.buf);
        if item.sendRecvType == HcclSendRecvType::HCCL_SEND {
            // SAFETY: `count` elements lie in the buffer; live handles.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclSend(buffer, count, dtype, peer, comm, stream)
                )
            }
        } else {
            // SAFETY: as above.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclRecv(buffer, count, dtype, peer, comm, stream)
                )
            }
        }
    }

    fn end(mut self) -> Result<()> {
        let Some(end) = self.end.take() else {
            return Ok(());
        };
        // SAFETY: the function takes nothing; this thread has begun a group.
        let code = unsafe { end() };
        check::hccl(self.backend, "HcclGroupEnd", code)
    }
}

impl Drop for OpenGroup<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // SAFETY: as in `end`. The failure that led here is the one to tell.
            let _ = unsafe { end() };
        }
    }
}
