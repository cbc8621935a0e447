//! Stages of buckets on the streams of a device: when the last one ends.

use crate::plan::wavefront;

/// A stream; stages on one run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Payload,
    Kernels,
    Scalars,
}

/// A part of a bucket's reduction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimedStage {
    pub(crate) lane: Lane,
    pub(crate) seconds: f64,
}

/// Seconds if each stage waits for the one before it, and nothing overlaps.
pub(crate) fn sequential(buckets: &[Vec<TimedStage>]) -> f64 {
    buckets.iter().flatten().map(|stage| stage.seconds).sum()
}

/// Seconds if at most `depth` buckets are under way at a time, issued in the order of the reducers.
pub(crate) fn pipelined(buckets: &[Vec<TimedStage>], depth: usize) -> f64 {
    let lengths: Vec<usize> = buckets.iter().map(Vec::len).collect();
    let mut free = [0.0_f64; 3];
    let mut done = vec![0.0_f64; buckets.len()];
    for (bucket, index) in wavefront(&lengths, depth) {
        let stage = buckets[bucket][index];
        // A bucket starts in the memory of the one that is `depth` before it.
        let before = match (index, bucket.checked_sub(depth)) {
            (0, Some(earlier)) => done[earlier],
            _ => done[bucket],
        };
        let lane = &mut free[stage.lane as usize];
        *lane = lane.max(before) + stage.seconds;
        done[bucket] = *lane;
    }
    done.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(lane: Lane, seconds: f64) -> TimedStage {
        TimedStage { lane, seconds }
    }

    #[test]
    fn one_bucket_overlaps_nothing() {
        let bucket = vec![
            stage(Lane::Payload, 2.0),
            stage(Lane::Kernels, 1.0),
            stage(Lane::Scalars, 0.5),
        ];
        let buckets = [bucket];
        assert_eq!(pipelined(&buckets, 4), 3.5);
        assert_eq!(sequential(&buckets), 3.5);
    }

    /// The longest lane, plus what the first bucket needs before it and the last one after it.
    #[test]
    fn many_buckets_take_as_long_as_the_longest_lane() {
        let bucket = vec![stage(Lane::Payload, 2.0), stage(Lane::Kernels, 0.5)];
        let buckets = vec![bucket; 10];
        assert_eq!(pipelined(&buckets, 4), 20.5);
        // With room for one bucket there is nothing to overlap.
        assert_eq!(pipelined(&buckets, 1), 25.0);
    }

    /// Two rounds and their way back: while a bucket's scalars cross, vectors of the others do.
    #[test]
    fn scalars_hide_behind_other_buckets() {
        let round = [
            stage(Lane::Payload, 1.0),
            stage(Lane::Kernels, 0.0),
            stage(Lane::Scalars, 1.0),
            stage(Lane::Kernels, 0.0),
        ];
        let back = [stage(Lane::Payload, 1.0); 2];
        let buckets = vec![[&round[..], &round, &back].concat(); 8];
        assert_eq!(sequential(&buckets), 48.0);
        let pipelined = pipelined(&buckets, 4);
        assert!((32.0..36.0).contains(&pipelined), "{pipelined}");
    }
}
