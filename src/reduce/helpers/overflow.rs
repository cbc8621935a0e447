//! One decision of all ranks: is there a NaN or an infinity anywhere.

use std::time::Duration;

use crate::ascend::{Buffer, Span, Stream};
use crate::error::{Context, Result};
use crate::kernel::{FiniteCheck, SegmentTable};
use crate::plan::TensorSpec;
use crate::reduce::engine::arguments::check_tensors;
use crate::reduce::engine::bucket::data_type;
use crate::reduce::world::World;

/// Bytes of the fp32 word that ranks vote with.
const WORD: usize = 4;

/// Finds out whether any tensor of any rank has a NaN or an infinity, the same on all ranks.
///
/// Made for loss scaling: vote on the gradients before they are reduced, and skip reduction and optimizer on all ranks
/// if the vote says so. The same object can look at results afterwards: it also finds what a reduction made of finite
/// gradients. The decision stays on the device ([`OverflowVote::decision`], for optimizers that read it there) and is
/// brought to the host only by [`OverflowVote::overflowed`].
pub struct OverflowVote {
    world: World,
    specs: Vec<TensorSpec>,
    segments: Vec<SegmentTable>,
    decision: Span,
}

impl OverflowVote {
    /// Prepares votes on `tensors` and warms up the collective.
    ///
    /// Collective: all ranks of the world call it. Ranks may have different tensors, as pipeline stages do.
    ///
    /// # Errors
    /// If device memory is short or a rank does not come within `timeout`.
    pub fn new(world: &World, tensors: &[TensorSpec], timeout: Duration) -> Result<Self> {
        let device = world.device();
        let make = || {
            let segments = tensors
                .iter()
                .map(|tensor| SegmentTable::one(device, tensor.count));
            Ok(OverflowVote {
                world: world.clone(),
                specs: tensors.to_vec(),
                segments: segments.collect::<Result<_>>()?,
                decision: Buffer::zeroed(device, 64)?.span().slice(0..WORD)?,
            })
        };
        let vote = world.all_have(make(), "make its part of the overflow vote", timeout)?;
        let stream = Stream::new(device)?;
        world.all_reduce_sum(&vote.decision, &stream)?;
        world
            .synchronize(&stream, timeout)
            .context(|| format!("rank {}: warm-up of the overflow vote", world.own_in_root()))?;
        Ok(vote)
    }

    /// Enqueues a vote on `tensors`, whole tensors in the order of creation.
    ///
    /// Collective and stream-ordered.
    ///
    /// # Errors
    /// Wrong spans are refused before anything is enqueued; else what enqueueing says.
    pub fn cast(&mut self, tensors: &[Span], stream: &Stream) -> Result<()> {
        check_tensors(&self.world, self.specs.iter(), tensors, "tensor")?;
        let rank = self.world.own_in_root();
        self.world
            .enqueue(stream, |stream| {
                stream.zero(&self.decision)?;
                let specs = self.specs.iter().zip(&self.segments);
                for (vector, (spec, segments)) in tensors.iter().zip(specs) {
                    self.world.kernels().finite_check(
                        stream,
                        &FiniteCheck {
                            vector,
                            dtype: data_type(spec.dtype),
                            segments,
                            flags: &self.decision,
                        },
                    )?;
                }
                Ok(())
            })
            .context(|| format!("rank {rank}: overflow vote"))?;
        // A sum of ones is exact in every order.
        self.world
            .all_reduce_sum(&self.decision, stream)
            .context(|| format!("rank {rank}: overflow vote"))
    }

    /// The decision of the last vote: an fp32 word in device memory, the number of ranks that found a NaN or an
    /// infinity; 0 if all is finite. Good for work that is enqueued behind the vote.
    pub fn decision(&self) -> &Span {
        &self.decision
    }

    /// Waits for what `stream` holds, on which the last vote was cast, and tells whether anything is not finite; the same on all
    /// ranks.
    ///
    /// # Errors
    /// If any of that work failed, or is not done within `timeout`: that poisons the world.
    pub fn overflowed(&self, stream: &Stream, timeout: Duration) -> Result<bool> {
        self.world.synchronize(stream, timeout)?;
        let mut ranks = [0.0_f32];
        self.decision.read(&mut ranks)?;
        Ok(ranks[0] != 0.0)
    }
}
