//! How long steps took, and how much of that was spent in reductions: from the times at which ranks recorded, and from what
//! their worlds wrote of the device (`reduce::TraceLine`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::cli::io::failed;
use crate::error::Result;
use crate::reduce::{COLLECTION, REDUCTION, TraceLine, TraceSpan, Track};

/// When each rank's device was in a reduction: begin and end of each, in nanoseconds of Unix time.
#[derive(Debug, Default)]
pub(crate) struct Reductions(BTreeMap<u32, Vec<(u64, u64)>>);

/// The time between two records of a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    /// Steps in it, at least 1.
    pub(crate) steps: u64,
    pub(crate) seconds: f64,
    /// Seconds of it in reductions, where that was recorded.
    pub(crate) reducing: Option<f64>,
}

/// How long the steps of a run took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Pace {
    pub(crate) run: String,
    /// The median over steps and ranks.
    pub(crate) seconds_a_step: f64,
    /// The part of all time, 0 to 1, that was spent in reductions.
    pub(crate) reduction_share: Option<f64>,
}

impl Reductions {
    /// What the files in `folder` say.
    ///
    /// # Errors
    /// If one cannot be read. Lines that say nothing are left out.
    pub(crate) fn read(folder: &Path) -> Result<Reductions> {
        let mut all = Reductions::default();
        let entries = std::fs::read_dir(folder).map_err(|error| failed(folder.display(), error))?;
        let paths = entries.flatten().map(|entry| entry.path());
        for path in paths.filter(|path| rank_of(path).is_some()) {
            let text = std::fs::read(&path).map_err(|error| failed(path.display(), error))?;
            let lines = text.split(|byte| *byte == b'\n');
            let mut own = None;
            for line in lines.filter_map(|line| serde_json::from_slice(line).ok()) {
                match (line, own) {
                    (TraceLine::World { rank, .. }, _) => {
                        own = Some(rank);
                        all.0.entry(rank).or_default();
                    }
                    (TraceLine::Span(span), Some(rank)) => {
                        all.0.entry(rank).or_default().extend(reduction(&span));
                    }
                    _ => {}
                }
            }
        }
        Ok(all)
    }

    /// The time from `from` to `to`, in seconds of Unix time, in which `rank` has done so many steps; `None` if it is no time.
    pub(crate) fn passed(&self, rank: u32, steps: u64, from: f64, to: f64) -> Option<Passed> {
        let seconds = to - from;
        let within = |&(start, end): &(u64, u64)| {
            let (start, end) = (start as f64 * 1e-9, end as f64 * 1e-9);
            (end.min(to) - start.max(from)).max(0.0)
        };
        let reducing = |spans: &Vec<(u64, u64)>| spans.iter().map(within).sum();
        (seconds > 0.0 && steps > 0).then(|| Passed {
            steps,
            seconds,
            reducing: self.0.get(&rank).map(reducing),
        })
    }
}

/// The rank of a file that a world has written.
pub(crate) fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_prefix("steps_")?.strip_suffix(".jsonl")?;
    name.split_once('.')?.0.parse().ok()
}

/// When a reduction ran, if the span is one.
fn reduction(span: &TraceSpan) -> Option<(u64, u64)> {
    let reduces = span.name == REDUCTION || span.name == COLLECTION;
    let ns = span.ns.filter(|_| span.track == Track::Step && reduces)?;
    Some((span.start_ns, span.start_ns + ns))
}

impl Pace {
    /// The pace of a run over these times; `None` without any.
    pub(crate) fn of(run: &str, times: &[Passed]) -> Option<Pace> {
        let mut steps: Vec<f64> = times.iter().map(Passed::seconds_a_step).collect();
        steps.sort_by(f64::total_cmp);
        let seconds_a_step = *steps.get(steps.len() / 2)?;
        Some(Pace {
            run: run.to_owned(),
            seconds_a_step,
            reduction_share: share(times),
        })
    }

    /// In words.
    pub(crate) fn text(&self) -> String {
        let share = self.reduction_share;
        let share = share.map_or(String::new(), |share| {
            format!(", {:.1} % of the time in reductions", 100.0 * share)
        });
        format!("{}{share}", duration(self.seconds_a_step))
    }
}

impl Passed {
    pub(crate) fn seconds_a_step(&self) -> f64 {
        self.seconds / self.steps as f64
    }
}

/// The part of the time that was spent in reductions, where that is known.
pub(crate) fn share(times: &[Passed]) -> Option<f64> {
    let known = times
        .iter()
        .filter_map(|time| Some((time.reducing?, time.seconds)));
    let sum = known.fold((0.0, 0.0), |sum, time| (sum.0 + time.0, sum.1 + time.1));
    (sum.1 > 0.0).then_some(sum.0 / sum.1)
}

/// "12.3 ms".
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{:.1} \u{b5}s", seconds * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_count_where_they_lie_in_the_time() {
        let second = 1_000_000_000;
        let spans = vec![(second, 3 * second), (4 * second, 5 * second)];
        let all = Reductions(BTreeMap::from([(1, spans)]));
        let passed = all.passed(1, 2, 2.0, 10.0).unwrap();
        assert_eq!(passed.seconds_a_step(), 4.0);
        assert_eq!(passed.reducing, Some(2.0));
        assert_eq!(share(&[passed, passed]), Some(0.25));
        // Nobody knows of rank 0, and time that goes back is no time.
        assert_eq!(all.passed(0, 1, 2.0, 3.0).unwrap().reducing, None);
        assert!(all.passed(1, 1, 3.0, 3.0).is_none());
        assert!(all.passed(1, 0, 3.0, 4.0).is_none());
    }

    #[test]
    fn a_pace_is_the_median_of_steps() {
        let passed = |seconds, reducing| Passed {
            steps: 1,
            seconds,
            reducing,
        };
        let times = [passed(9.0, None), passed(2.0, Some(1.0)), passed(3.0, None)];
        let pace = Pace::of("a", &times).unwrap();
        assert_eq!(
            (pace.seconds_a_step, pace.reduction_share),
            (3.0, Some(0.5))
        );
        assert_eq!(pace.text(), "3.00 s, 50.0 % of the time in reductions");
        assert_eq!(Pace::of("a", &[]), None);
    }

    #[test]
    fn files_of_worlds_are_known_by_their_names() {
        assert_eq!(rank_of(Path::new("a/steps_12.345.0.jsonl")), Some(12));
        for other in [
            "rank_1.jsonl",
            "steps_1.jsonl",
            "steps_x.1.0.jsonl",
            "steps_1.csv",
        ] {
            assert_eq!(rank_of(Path::new(other)), None);
        }
    }
}
