//! Receipts: how a stream learns whether the kernels of another one have done their work.
//!
//! On a real device a stream goes on behind a task that failed, and so does one that waits for an event behind it: what the
//! failed task left would be sent and returned. So each block of a kernel signs: at its end, and only if all went well, it
//! adds 1 to a number in device memory. [`Kernels::guard`] on the stream that goes on compares that number with the blocks
//! that were launched.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ascend::{Argument, Buffer, DataType, Device, Span, Stream};
use crate::error::{Error, ErrorKind, Result};

use super::Kernels;
use super::elements::Tensors;
use super::layout::{GUARD_GOES_ON, MISSED_SIGNATURE, REASON_OTHERS, REASON_OWN};

/// Bytes of the number in device memory: a line that no other write touches.
const LINE: usize = 64;

/// The limit of blocks between two guards: more could be mistaken for blocks that missed something.
const MOST: u32 = MISSED_SIGNATURE;

/// The signatures of the blocks of launches, and how many are due.
///
/// Launches that share a receipt must be ordered, and a guard between those before it and those behind it. Once a
/// guard has found it wrong, the number in device memory is NaN and stays it: every later guard finds it wrong, too.
#[derive(Debug)]
pub struct Receipt {
    line: Span,
    due: AtomicU32,
}

impl Receipt {
    /// A receipt with nothing due and nothing signed. Takes [`Receipt::BYTES`] of device memory.
    ///
    /// # Errors
    /// If device memory is short.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Receipt {
            line: Buffer::zeroed(device, LINE)?.span(),
            due: AtomicU32::new(0),
        })
    }

    /// A receipt that is wrong from the start.
    pub(super) fn wrong(device: &Device) -> Result<Self> {
        let receipt = Receipt::new(device)?;
        receipt.line.write(&[f32::from_bits(u32::MAX); LINE / 4])?;
        Ok(receipt)
    }

    /// The device memory of a receipt.
    pub const BYTES: usize = LINE;

    /// `stream` for launches whose blocks sign this receipt.
    pub fn on<'a>(&'a self, stream: &'a Stream) -> Queue<'a> {
        Queue {
            stream,
            receipt: Some(self),
            most: u32::MAX,
        }
    }

    /// The element for the sum of a collective in which each of `ranks` ranks gives 1: together they sign this receipt. Before
    /// it comes, [`Receipt::nobody_came`] must stand there.
    pub fn signed_by(&self, ranks: u32) -> Result<Span> {
        self.due.store(ranks, Ordering::Relaxed);
        self.line.slice(0..size_of::<f32>())
    }

    /// What stands for a sum of `ranks` ranks that never came.
    #[expect(
        clippy::cast_precision_loss,
        reason = "ranks are at most 2^20, and a sum of other numbers serves as well"
    )]
    pub fn nobody_came(ranks: u32) -> f32 {
        ranks as f32 * MISSED_SIGNATURE as f32
    }

    /// The number in device memory, as fp32.
    pub(super) fn line(&self) -> &Span {
        &self.line
    }

    /// Counts the blocks of a launch: before it is enqueued, so that one that fails to be leaves signatures missing.
    pub(super) fn expect(&self, blocks: u32) {
        // A sum that would overflow stays at the largest number, which a guard refuses.
        let add = |due: u32| Some(due.saturating_add(blocks));
        let _ = self
            .due
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The number of signatures that became due since the last call.
    #[expect(
        clippy::cast_precision_loss,
        reason = "whole numbers below MOST are exact"
    )]
    pub(super) fn take(&self) -> Result<f32> {
        match self.due.swap(0, Ordering::Relaxed) {
            due if due < MOST => Ok(due as f32),
            due => Err(Error::new(
                ErrorKind::InvalidState,
                format!("guard: {due} blocks since the last one are not below {MOST}"),
            )),
        }
    }
}

/// Where kernels are launched: a stream, and the receipt that their blocks sign, if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Queue<'a> {
    pub(super) stream: &'a Stream,
    receipt: Option<&'a Receipt>,
    /// The most blocks of a launch.
    pub(super) most: u32,
}

impl Queue<'_> {
    /// For so many launches between two guards: each has at most as many blocks as leave half of what a guard can count to others.
    #[must_use]
    pub fn for_launches(self, launches: usize) -> Self {
        let launches = u32::try_from(launches).unwrap_or(u32::MAX).max(1);
        let most = (MOST / 2 / launches).max(1);
        Queue { most, ..self }
    }

    /// Counts the blocks of a launch, and returns its last argument.
    pub(super) fn sign(&self, blocks: u32) -> Argument<'_> {
        match self.receipt {
            None => Argument::Value(0),
            Some(receipt) => {
                receipt.expect(blocks);
                Argument::Span(receipt.line())
            }
        }
    }
}

impl<'a> From<&'a Stream> for Queue<'a> {
    /// A stream whose failures its owner sees by itself: nothing is signed.
    fn from(stream: &'a Stream) -> Self {
        Queue {
            stream,
            receipt: None,
            most: u32::MAX,
        }
    }
}

/// What a guard does with its stream where work is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// The stream fails.
    Fail,
    /// The stream goes on: see [`Reason::is_needed`].
    Continue,
}

/// Arguments of [`Kernels::guard`].
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    /// What blocks were to sign.
    pub receipt: &'a Receipt,
    /// The places where results begin; may be none.
    pub places: &'a Tensors,
    /// The type of the elements at these places.
    pub dtype: DataType,
    /// Out: why the guard found work missing, unless an earlier one has written it.
    pub reason: &'a Reason,
    /// What becomes of the stream where work is missing.
    pub on_missing: OnMissing,
}

/// Why a guard has found work missing, written by the first one that did.
#[derive(Debug)]
pub struct Reason {
    line: Span,
    /// Whether a guard was enqueued that does not fail its stream.
    quiet: AtomicBool,
}

/// Whose work a guard found missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Culprit {
    /// Kernels of this rank failed.
    Own,
    /// All kernels of this rank ran, but what other ranks were to send never came.
    Others,
}

impl Reason {
    /// No reason yet. Takes a line of device memory.
    ///
    /// # Errors
    /// If device memory is short.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Reason {
            line: Buffer::zeroed(device, LINE)?.span(),
            quiet: AtomicBool::new(false),
        })
    }

    pub(super) fn line(&self) -> &Span {
        &self.line
    }

    pub(super) fn expect_quiet(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    /// Whether a guard that lets its stream go on ([`OnMissing::Continue`]) was ever enqueued: then a wait for the stream that
    /// succeeds says nothing about it, and [`Reason::read`] does.
    pub fn is_needed(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// Whose work was missing, `None` if no guard has found any missing. Reads device memory; queued work is not waited for.
    ///
    /// # Errors
    /// If the copy fails.
    pub fn read(&self) -> Result<Option<Culprit>> {
        let mut words = [0.0_f32; LINE / size_of::<f32>()];
        self.line.read(&mut words)?;
        let is = |reason: u32| words[0].to_bits() == (reason as f32).to_bits();
        Ok(match () {
            () if is(REASON_OWN) => Some(Culprit::Own),
            () if is(REASON_OTHERS) => Some(Culprit::Others),
            () => None,
        })
    }
}

impl Kernels {
    /// Enqueues a check that all blocks of the launches since the last guard have signed the receipt.
    ///
    /// If they have, the receipt begins again. If not, the element at each of the places becomes NaN, so that what
    /// failed work left is not taken for a result, and the stream fails: its next synchronisation says so. Arch 1001 cannot
    /// fail a stream; there the NaNs (the whole 32 bytes at each place) are all there is to see.
    ///
    /// Call it for a stream that waits for those launches, before it goes on. The first guard that finds work missing writes
    /// why to the reason. A stream that carries the launches itself need not fail ([`OnMissing::Continue`]): it tells of their
    /// failures itself, but of several only the last.
    ///
    /// # Errors
    /// If 4096 blocks or more were launched, or the call fails.
    pub fn guard(&self, stream: &Stream, launch: &Guard<'_>) -> Result<()> {
        let Guard {
            receipt,
            places,
            reason,
            ..
        } = launch;
        self.dtype(launch.dtype, "guard")?;
        let due = u64::from(receipt.take()?.to_bits());
        let due = match launch.on_missing {
            OnMissing::Fail => due,
            OnMissing::Continue => {
                reason.expect_quiet();
                due | GUARD_GOES_ON
            }
        };
        let arguments = [
            Argument::Span(receipt.line()),
            Argument::Value(due),
            places.argument(),
            Argument::Value(places.len() as u64),
            Argument::Value(launch.dtype.size() as u64),
            Argument::Span(reason.line()),
        ];
        stream.launch(&self.guard, 1, &arguments)
    }

    /// Enqueues a kernel that makes the element at each of `places` NaN (on arch 1001 the 32 bytes that begin there).
    ///
    /// # Errors
    /// If the call fails.
    pub fn spoil(&self, stream: &Stream, places: &Tensors, dtype: DataType) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        self.dtype(dtype, "guard")?;
        // A guard that finds its receipt wrong, has nothing new to tell, and goes on.
        let line = self.unsigned.line();
        let arguments = [
            Argument::Span(line),
            Argument::Value(GUARD_GOES_ON),
            places.argument(),
            Argument::Value(places.len() as u64),
            Argument::Value(dtype.size() as u64),
            Argument::Span(line),
        ];
        stream.launch(&self.guard, 1, &arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mean of a server of 768 ranks, on a chip of 48 cores; few launches keep all cores.
    #[test]
    fn many_launches_leave_room_for_others() {
        let device = Device::open(0).unwrap();
        let receipt = Receipt::new(&device).unwrap();
        let stream = Stream::new(&device).unwrap();
        let most = |launches| receipt.on(&stream).for_launches(launches).most;
        assert!(110 * most(110) <= MOST / 2 && 111 * 48 > MOST);
        assert!(most(1) >= 48 && most(42) >= 48 && most(0) >= 48);
        assert_eq!(most(usize::MAX), 1);
    }

    #[test]
    fn blocks_are_counted_until_they_are_taken() {
        let device = Device::open(0).unwrap();
        let receipt = Receipt::new(&device).unwrap();
        assert_eq!(receipt.take().unwrap().to_bits(), 0);
        receipt.expect(48);
        receipt.expect(1);
        assert_eq!(receipt.take().unwrap().to_bits(), 49.0_f32.to_bits());
        assert_eq!(receipt.take().unwrap().to_bits(), 0);
        receipt.expect(MOST - 1);
        assert_eq!(receipt.take().unwrap().to_bits(), 4095.0_f32.to_bits());
        for too_many in [MOST, u32::MAX] {
            receipt.expect(too_many);
            receipt.expect(7);
            let error = receipt.take().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidState);
        }
    }
}
