//! The clock of the host, and times of the device on it.

use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::ascend::{Device, Event, Stream};
use crate::error::Result;

/// Unix time that never goes back.
pub(super) struct HostClock {
    unix: u64,
    start: Instant,
}

impl HostClock {
    pub(super) fn new() -> Self {
        let unix = UNIX_EPOCH.elapsed().unwrap_or_default();
        HostClock {
            unix: nanoseconds(unix),
            start: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.unix + nanoseconds(self.start.elapsed())
    }
}

/// An event whose time on the host's clock is known.
pub(super) struct Anchor {
    event: Event,
    pub(super) at: u64,
    /// By so much it may be wrong.
    pub(super) error: u64,
}

impl Anchor {
    /// The best of a few: how long the host waits for an event is what its time may be wrong by.
    pub(super) fn new(
        device: &Device,
        stream: &Stream,
        clock: &HostClock,
        limit: Duration,
    ) -> Result<Anchor> {
        const TRIES: usize = 3;
        let take = || {
            let event = Event::timed(device)?;
            let before = clock.now();
            stream.record(&event)?;
            stream.synchronize_timeout(limit)?;
            let error = (clock.now() - before) / 2;
            let at = before + error;
            Ok(Anchor { event, at, error })
        };
        let mut best = take()?;
        for _ in 1..TRIES {
            let next = take()?;
            if next.error < best.error {
                best = next;
            }
        }
        Ok(best)
    }

    /// When the device came to another event; `None` if it has not, or the event has no time.
    pub(super) fn time_of(&self, event: &Event) -> Option<u64> {
        let seconds = event.seconds_since(&self.event).ok()?;
        let passed = Duration::try_from_secs_f64(seconds).ok()?;
        Some(self.at + nanoseconds(passed))
    }

    /// How long ago it was at `now`: none, where [`Anchor::not_before`] has put it into the future.
    pub(super) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }

    /// With a time that is not before `ended`.
    pub(super) fn not_before(self, ended: u64) -> Anchor {
        let missing = ended.saturating_sub(self.at);
        Anchor {
            at: self.at + missing,
            error: self.error + missing,
            ..self
        }
    }

    /// With the time that the device has passed since an earlier one, where that is not wrong: so times do not jump.
    pub(super) fn after(self, earlier: &Anchor) -> Anchor {
        let passed = self.event.seconds_since(&earlier.event).ok();
        let Some(passed) = passed.and_then(|passed| Duration::try_from_secs_f64(passed).ok())
        else {
            return self;
        };
        let due = (earlier.at + nanoseconds(passed), earlier.error);
        let (at, error) = agreed((self.at, self.error), due);
        Anchor { at, error, ..self }
    }
}

/// The time that is `due`, or the nearest one to it that was `measured`; each with what it may be wrong by.
fn agreed(measured: (u64, u64), due: (u64, u64)) -> (u64, u64) {
    let at = due
        .0
        .clamp(measured.0 - measured.1, measured.0 + measured.1);
    let possible = measured.1 + at.abs_diff(measured.0);
    match at == due.0 {
        true => (at, possible.min(due.1)),
        false => (at, possible),
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_not_before_what_has_ended() {
        let device = Device::open(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let clock = HostClock::new();
        let anchor = || Anchor::new(&device, &stream, &clock, Duration::from_secs(60)).unwrap();
        let first = anchor();
        let (at, error) = (first.at, first.error);
        let same = first.not_before(at - 500);
        assert_eq!((same.at, same.error), (at, error));
        let later = same.not_before(at + 700);
        assert_eq!((later.at, later.error), (at + 700, error + 700));
        // What has ended by an anchor with an error may be in the future.
        assert_eq!((later.age(at), later.age(at + 900)), (0, 200));
        // What begins behind it is not before either, on any stream.
        let event = Event::timed(&device).unwrap();
        let other = Stream::new(&device).unwrap();
        other.record(&event).unwrap();
        other.synchronize().unwrap();
        assert!(later.time_of(&event).unwrap() >= at + 700);
    }

    #[test]
    fn times_do_not_jump_where_clocks_agree() {
        // Measured worse than before, better than before, and not possible any more: the clocks drift.
        assert_eq!(agreed((1000, 90), (1020, 5)), (1020, 5));
        assert_eq!(agreed((1000, 10), (1004, 50)), (1004, 14));
        assert_eq!(agreed((1000, 10), (1300, 5)), (1010, 20));
        assert_eq!(agreed((1000, 10), (200, 5)), (990, 20));
    }
}
