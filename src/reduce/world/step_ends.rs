//! Events behind steps, so that the end of a step is seen however far ahead the host is.

use std::collections::VecDeque;

/// Events at a time.
const EVENTS: usize = 16;

/// Events recorded behind steps that may not have ended, the oldest first.
///
/// Behind every step while there are events for all of them; where the host is far ahead, behind every second, fourth and so
/// on, so that the events are spread evenly over all steps that are under way.
pub(super) struct StepEnds<E> {
    recorded: VecDeque<(u64, E)>,
    free: Vec<E>,
    /// Steps whose number is a multiple of it get an event.
    gap: u64,
    /// The newest step of which the end has been seen.
    finished: u64,
}

impl<E> Default for StepEnds<E> {
    fn default() -> Self {
        StepEnds {
            recorded: VecDeque::new(),
            free: Vec::new(),
            gap: 1,
            finished: 0,
        }
    }
}

impl<E> StepEnds<E> {
    /// With the events that `make` makes.
    pub(super) fn new<F>(make: impl FnMut() -> Result<E, F>) -> Result<Self, F> {
        let free: Result<Vec<E>, F> = std::iter::repeat_with(make).take(EVENTS).collect();
        Ok(StepEnds {
            free: free?,
            ..StepEnds::default()
        })
    }

    /// The event to record behind `step`, the newest, if it is to have one; then it is [put back](Self::recorded).
    pub(super) fn event_for(&mut self, step: u64) -> Option<E> {
        if !step.is_multiple_of(self.gap) {
            return None;
        }
        if self.free.is_empty() {
            self.gap *= 2;
            for (step, event) in std::mem::take(&mut self.recorded) {
                match step.is_multiple_of(self.gap) {
                    true => self.recorded.push_back((step, event)),
                    false => self.free.push(event),
                }
            }
        }
        self.free.pop()
    }

    /// `event` was recorded behind `step`.
    pub(super) fn recorded(&mut self, step: u64, event: E) {
        self.recorded.push_back((step, event));
    }

    /// Takes note of steps that have ended; the newest step of which the end has been seen.
    pub(super) fn finished(&mut self, has_ended: impl Fn(&E) -> bool) -> u64 {
        while let Some((step, event)) = self.recorded.pop_front() {
            if !has_ended(&event) {
                self.recorded.push_front((step, event));
                return self.finished;
            }
            self.finished = step;
            self.free.push(event);
        }
        self.gap = 1;
        self.finished
    }

    /// The oldest step with an event that has not ended.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.recorded.front().map(|(step, _)| *step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> StepEnds<()> {
        StepEnds::new(|| Ok::<_, ()>(())).unwrap()
    }

    fn add(ends: &mut StepEnds<()>, step: u64) {
        if let Some(event) = ends.event_for(step) {
            ends.recorded(step, event);
        }
    }

    #[test]
    fn events_are_spread_over_all_steps_that_are_under_way() {
        let mut ends = ends();
        for step in 1..=1000_u64 {
            add(&mut ends, step);
            let steps: Vec<u64> = ends.recorded.iter().map(|(step, _)| *step).collect();
            let widest = steps.windows(2).map(|pair| pair[1] - pair[0]).max();
            let widest = widest.unwrap_or(1);
            assert!(widest <= 1.max(step / 4), "{step}: {steps:?}");
            assert!(steps[0] <= widest && step - steps[steps.len() - 1] < widest);
        }
    }

    #[test]
    fn each_step_has_an_event_again_once_all_have_ended() {
        let mut ends = ends();
        for step in 1..=100_u64 {
            add(&mut ends, step);
        }
        assert_eq!(ends.oldest(), Some(8));
        assert_eq!(ends.finished(|()| true), 96);
        assert_eq!(ends.oldest(), None);
        add(&mut ends, 101);
        assert_eq!(ends.oldest(), Some(101));
        assert_eq!(ends.finished(|()| false), 96);
    }
}
