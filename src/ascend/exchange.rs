//! What the ranks of a communicator send each other.

use std::collections::HashSet;
use std::mem::discriminant;

use super::buffer::Span;
use super::check::check;
use super::comm::Comm;
use super::stream::Stream;
use super::transfer::{DataType, ReduceOp, Transfer};
use crate::error::{Context, Error, Result};

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

    /// Does all `transfers` at once, in both directions; a peer's matching half is in its same call. Empty ones are
    /// left out, on both sides. At most one send and one receive per peer. Wraps `HcclBatchSendRecv`.
    ///
    /// # Errors
    /// If an argument is wrong or no link to a peer can be made.
    pub fn batch(&self, transfers: &[Transfer], stream: &Stream) -> Result<()> {
        let transfers: Vec<&Transfer> = transfers
            .iter()
            .filter(|item| !item.span().is_empty())
            .collect();
        self.check_batch(&transfers)?;
        let items: Result<Vec<_>> = transfers.iter().map(|transfer| transfer.raw()).collect();
        let mut items = items?;
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let items = items.as_mut_ptr();
        let spans: Vec<&Span> = transfers.iter().map(|transfer| transfer.span()).collect();
        self.issue(&spans, stream, |backend, comm, stream| {
            // SAFETY: `count` items outlive the call; their memory is kept until the stream is synchronised.
            unsafe { check!(backend.hccl.HcclBatchSendRecv(items, count, comm, stream)) }
        })
        .context(|| self.describe(&format!("batch of {count} transfers")))
    }

    fn check_batch(&self, transfers: &[&Transfer]) -> Result<()> {
        let mut seen = HashSet::new();
        for transfer in transfers {
            self.check_peer(transfer.peer())?;
            let direction = discriminant(*transfer);
            if !seen.insert((direction, transfer.peer())) {
                return Err(Error::invalid(format!(
                    "a batch has two transfers in one direction with rank {}",
                    transfer.peer()
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
