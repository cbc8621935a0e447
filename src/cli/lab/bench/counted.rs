//! What a reduction takes beside time. Launches and messages do not change with other work on the machine; waits do, and
//! with them wakes, switches and seconds on a core.

use serde::{Deserialize, Serialize};

use crate::ascend::mock_counter;
use crate::error::{Error, Result};
use crate::sys::process::usage;

/// For one reduction, all ranks together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Over the mock: kernels, messages that a rank took, and sleeping threads that were woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) launches: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wakes: Option<f64>,
    /// How often a thread left its core.
    pub(crate) switches: f64,
    pub(crate) cpu_s: f64,
}

/// How many numbers there are.
const COUNTS: usize = 5;

/// What this process has counted since its start, or between two moments: in the order of [`Counted`], but the time in
/// microseconds. What only the mock counts is 0 elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts([u64; COUNTS]);

impl Counts {
    pub(super) fn now() -> Result<Self> {
        let usage = usage().map_err(|error| Error::invalid(format!("getrusage: {error}")))?;
        let count = |name| Ok(mock_counter(name)?.unwrap_or(0));
        Ok(Counts([
            count(c"kernel_launches")?,
            count(c"messages")?,
            count(c"wakes")?,
            usage.switches,
            u64::try_from(usage.cpu.as_micros()).unwrap_or(u64::MAX),
        ]))
    }

    /// Adds what was counted since `earlier`.
    pub(super) fn add_since(&mut self, earlier: Counts) -> Result<()> {
        let now = Counts::now()?;
        for (sum, (now, earlier)) in self.0.iter_mut().zip(now.0.iter().zip(earlier.0)) {
            *sum += now - earlier;
        }
        Ok(())
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        self.0.map(u64::to_ne_bytes).concat()
    }

    /// Those of all ranks together, over `reps` reductions.
    pub(super) fn sum(all: &[u8], reps: usize, over_mock: bool) -> Counted {
        let (numbers, _) = all.as_chunks();
        let sum = |index: usize| {
            let own = numbers.iter().skip(index).step_by(COUNTS);
            let sum: u64 = own.map(|number| u64::from_ne_bytes(*number)).sum();
            sum as f64 / reps as f64
        };
        let of_mock = |index| over_mock.then(|| sum(index));
        Counted {
            launches: of_mock(0),
            messages: of_mock(1),
            wakes: of_mock(2),
            switches: sum(3),
            cpu_s: 1e-6 * sum(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ranks_are_summed_for_one_reduction() {
        let ranks = [[8, 16, 4, 4, 400_000], [8, 16, 0, 0, 200_000]];
        let all = ranks.map(|counts| Counts(counts).to_bytes()).concat();
        let line = |over_mock| serde_json::to_string(&Counts::sum(&all, 4, over_mock)).unwrap();
        let expected = r#"{"launches":4.0,"messages":8.0,"wakes":1.0,"switches":1.0,"cpu_s":0.15}"#;
        assert_eq!(line(true), expected);
        assert_eq!(line(false), r#"{"switches":1.0,"cpu_s":0.15}"#);
    }
}
