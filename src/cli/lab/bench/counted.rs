//! What a reduction takes beside time. Launches and messages do not change with other work on the machine; waits do, and
//! with them wakes, switches and seconds on a core.

use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::ascend::mock_counter;
use crate::error::{Error, Result};
use crate::sys::process::usage;

/// For one reduction, all ranks together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Over the mock: kernels, messages that a rank took, and sleeping threads that were woken.
    #[serde(flatten)]
    pub(crate) mock: Option<CountedByMock>,
    /// How often a thread left its core.
    pub(crate) switches: f64,
    pub(crate) cpu_s: f64,
}

/// What the mock counts.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct CountedByMock {
    pub(crate) launches: f64,
    pub(crate) messages: f64,
    pub(crate) wakes: f64,
}

/// What this process has counted since its start, or between two moments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts([f64; 5]);

impl Counts {
    pub(super) fn now() -> Result<Self> {
        let usage = usage().map_err(|error| Error::invalid(format!("getrusage: {error}")))?;
        let count = |name| Ok(mock_counter(name)?.map_or(f64::NAN, |count| count as f64));
        Ok(Counts([
            count(c"kernel_launches")?,
            count(c"messages")?,
            count(c"wakes")?,
            usage.switches as f64,
            usage.cpu_seconds,
        ]))
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|count| count.to_ne_bytes())
            .collect()
    }

    /// Those of several processes together, over `reps` reductions.
    pub(super) fn sum(all: &[u8], reps: usize) -> Counted {
        let (numbers, _) = all.as_chunks();
        let sum = |index: usize| {
            let own = numbers.iter().skip(index).step_by(5);
            own.map(|number| f64::from_ne_bytes(*number)).sum::<f64>() / reps as f64
        };
        Counted {
            mock: (!sum(0).is_nan()).then(|| CountedByMock {
                launches: sum(0),
                messages: sum(1),
                wakes: sum(2),
            }),
            switches: sum(3),
            cpu_s: sum(4),
        }
    }
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(self, earlier: Counts) -> Counts {
        Counts(std::array::from_fn(|index| {
            self.0[index] - earlier.0[index]
        }))
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        for (own, more) in self.0.iter_mut().zip(more.0) {
            *own += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ranks_are_summed_for_one_reduction() {
        let first = Counts([10.0, 20.0, 4.0, 6.0, 0.5]) - Counts([2.0, 4.0, 0.0, 2.0, 0.1]);
        let second = Counts([8.0, 16.0, 0.0, 0.0, 0.2]);
        let all = [first.to_bytes(), second.to_bytes()].concat();
        let counted = Counts::sum(&all, 4);
        let mock = counted.mock.unwrap();
        assert_eq!((mock.launches, mock.messages, mock.wakes), (4.0, 8.0, 1.0));
        assert_eq!(counted.switches, 1.0);
        assert!((counted.cpu_s - 0.15).abs() < 1e-12);
    }

    #[test]
    fn without_the_mock_its_counts_are_left_out() {
        let counts = Counts([f64::NAN, f64::NAN, f64::NAN, 3.0, 0.5]);
        let line = serde_json::to_string(&Counts::sum(&counts.to_bytes(), 1)).unwrap();
        assert_eq!(line, r#"{"switches":3.0,"cpu_s":0.5}"#);
        let read: Counted = serde_json::from_str(&line).unwrap();
        assert!(read.mock.is_none());
    }
}
