//! Results that stay where they were computed, for optimizers that are sharded.

use crate::ascend::{Span, Stream};
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::engine::bucket::Pass;
use crate::reduce::engine::program::Program;
use crate::reduce::gradient::GradientReducer;

/// A part of a tensor that this rank holds after a scattered reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnedPart {
    /// Index of the tensor in the list of the reducer.
    pub tensor: usize,
    /// First element of the part, counted in the tensor.
    pub start: u64,
    /// Number of elements.
    pub len: u64,
}

impl GradientReducer {
    /// The parts of tensors that this rank is the owner of, in the order of the buckets.
    ///
    /// The parts of all ranks tile all tensors. With [`Options::scattered`](crate::reduce::Options::scattered) these, and no other
    /// elements, are results
    /// after [`GradientReducer::reduce`]; what the other elements of the gradients are then is not said.
    pub fn owned(&self) -> Vec<OwnedPart> {
        owned(self.plans.whole())
    }

    /// As [`GradientReducer::owned`], after [`GradientReducer::reduce_some`] of the same `tensors`: a subset is cut in
    /// another way than the whole list.
    ///
    /// Prepares the subset if that has not been done, so it is collective then, as [`GradientReducer::prepare_some`].
    ///
    /// # Errors
    /// As [`GradientReducer::prepare_some`].
    pub fn owned_some(&mut self, tensors: &[usize]) -> Result<Vec<OwnedPart>> {
        let number = self.number_of(tensors)?;
        self.plan(number).map(owned)
    }

    /// Brings the owned parts of `tensors` to all ranks: for weights that a sharded optimizer has stepped, each rank the
    /// parts that it owns. Sizes and types are those of the gradients.
    ///
    /// Collective and stream-ordered, as [`GradientReducer::reduce`].
    ///
    /// # Errors
    /// `InvalidState` without [`Options::scattered`](crate::reduce::Options::scattered); else as [`GradientReducer::reduce`].
    pub fn collect(&mut self, tensors: &[Span], stream: &Stream) -> Result<()> {
        self.check_scattered()?;
        self.run_whole(Pass::Collection, tensors, stream, None)
    }

    /// As [`GradientReducer::collect`], of the parts that [`GradientReducer::owned_some`] names.
    ///
    /// # Errors
    /// As [`GradientReducer::collect`] and [`GradientReducer::prepare_some`].
    pub fn collect_some(
        &mut self,
        tensors: &[usize],
        weights: &[Span],
        stream: &Stream,
    ) -> Result<()> {
        self.check_scattered()?;
        self.run_some(tensors, Pass::Collection, weights, stream)
    }

    fn check_scattered(&self) -> Result<()> {
        if self.options.scattered {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidState,
            "results are not scattered: collect needs the option `scattered`",
        ))
    }
}

fn owned(plan: &Program) -> Vec<OwnedPart> {
    let parts = plan.buckets.iter().flat_map(|bucket| {
        let tensors = bucket.layout.tensors().iter().zip(&bucket.members);
        tensors.map(|(range, &member)| {
            let part = range.intersection(bucket.owned);
            OwnedPart {
                tensor: plan.tensors[member],
                start: part.start().saturating_sub(range.start()),
                len: part.len(),
            }
        })
    });
    parts.filter(|part| part.len > 0).collect()
}
