//! How long each kind of stage takes when nothing overlaps.

use std::time::Duration;

use crate::ascend::{Span, Stream};
use crate::error::Result;
use crate::reduce::engine::bucket::Pass;
use crate::reduce::engine::clock::Clock;
use crate::reduce::engine::stage::Task;
use crate::reduce::gradient::GradientReducer;
use crate::reduce::world::watch::Phase;

/// Seconds of device time that the stages of a reduction took, by kind; sums over all buckets. Waits for other ranks count
/// to the stage that waits.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Phases {
    /// Between the caller's tensors and fused buffers, both ways; next to nothing where tensors are reduced in place.
    pub copies: f64,
    /// Exchanges before vectors are combined.
    pub exchange: f64,
    /// Products of vectors and their sums.
    pub gram: f64,
    /// Exchanges of scalars, and what owners of tensors compute for others.
    pub scalars: f64,
    /// Weights and weighted sums, and the look for what is not finite.
    pub combine: f64,
    /// Results on their way to all ranks.
    pub back: f64,
}

impl GradientReducer {
    /// Reduces `gradients` as [`GradientReducer::reduce`] does, but one stage after the other, and waits for the end at most
    /// `timeout`; the result is how long the stages took on this rank.
    ///
    /// Collective. For measurements: nothing overlaps, so that the phases are more in sum than a reduction takes.
    ///
    /// # Errors
    /// As [`GradientReducer::reduce`] and [`GradientReducer::synchronize`]; `Unsupported` where events have no times.
    pub fn phases(
        &mut self,
        gradients: &[Span],
        stream: &Stream,
        timeout: Duration,
    ) -> Result<Phases> {
        self.world.check()?;
        let clock = Clock::new(
            self.world.device(),
            self.plans.whole().reduction.stages.len(),
        )?;
        self.run_whole(Pass::Reduction, gradients, stream, Some(&clock))?;
        self.world.synchronize(stream, timeout)?;
        let mut phases = Phases::default();
        let schedule = &self.plans.whole().reduction;
        for (&(bucket, stage), seconds) in schedule.stages.iter().zip(clock.seconds()?) {
            let stage = &self.plans.whole().buckets[bucket].stages[stage];
            let part = match (&stage.task, &stage.watched.part) {
                (Task::Nothing, _) | (_, None) => continue,
                (_, Some(part)) => part,
            };
            *match part.phase {
                Phase::Copies => &mut phases.copies,
                Phase::Exchange => &mut phases.exchange,
                Phase::Gram => &mut phases.gram,
                Phase::Scalars => &mut phases.scalars,
                Phase::Combine => &mut phases.combine,
                Phase::Return => &mut phases.back,
            } += seconds;
        }
        Ok(phases)
    }
}
