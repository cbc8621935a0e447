//! The order in which the stages of all buckets are issued.

use std::sync::Arc;

use crate::plan::wavefront;
use crate::reduce::engine::bucket::{Bucket, Pass};
use crate::reduce::world::watch::WatchedStage;

/// The stages of a pass over all buckets.
pub(in crate::reduce) struct Schedule {
    /// Bucket and stage, in the order in which they are issued.
    pub(in crate::reduce) stages: Vec<(usize, usize)>,
    /// Before which of them the caller's stream waits for all that is issued.
    pub(super) pauses: Vec<usize>,
    /// The stages in that order, for those who watch.
    pub(super) watched: Arc<[Arc<WatchedStage>]>,
}

impl Schedule {
    /// With `depth` buckets under way. `barrier` comes at the end of all; `in_common` says whether buckets have their first and
    /// last barrier in common.
    pub(super) fn new(
        buckets: &[Bucket],
        pass: Pass,
        depth: usize,
        barrier: Option<&Arc<WatchedStage>>,
        in_common: bool,
    ) -> Self {
        let lengths = buckets.iter().map(|bucket| bucket.stages(pass).len());
        let (stages, pauses) = if in_common {
            let closing = buckets.iter().map(|bucket| bucket.closing);
            between_barriers(&lengths.zip(closing).collect::<Vec<_>>(), depth)
        } else {
            (
                one_behind_the_other(&lengths.collect::<Vec<_>>(), depth),
                Vec::new(),
            )
        };
        let watched = stages
            .iter()
            .map(|&(bucket, stage)| Arc::clone(&buckets[bucket].stages(pass)[stage].watched));
        Schedule {
            watched: watched.chain(barrier.cloned()).collect(),
            stages,
            pauses,
        }
    }
}

/// A wavefront, for buckets with so many stages each. Where each has a buffer of its own, the last one's release is that of all: the
/// last stage comes last, also if another bucket has more stages.
fn one_behind_the_other(lengths: &[usize], depth: usize) -> Vec<(usize, usize)> {
    let mut stages = wavefront(lengths, depth);
    let last = lengths.len().checked_sub(1);
    let last = last.and_then(|bucket| Some((bucket, lengths[bucket].checked_sub(1)?)));
    stages.retain(|&stage| Some(stage) != last);
    stages.extend(last);
    stages
}

/// For buckets with so many stages, of which so many are behind the rounds: all gradients are copied in, by the first stages,
/// before the first barrier, and no result is taken before the last one. Also before which stages these barriers are.
fn between_barriers(buckets: &[(usize, usize)], depth: usize) -> (Vec<(usize, usize)>, Vec<usize>) {
    let rounds = buckets.iter().map(|(length, closing)| length - 1 - closing);
    let rounds = wavefront(&rounds.collect::<Vec<usize>>(), depth);
    let pauses = vec![buckets.len(), buckets.len() + rounds.len()];
    let first = (0..buckets.len()).map(|bucket| (bucket, 0));
    let rounds = rounds.iter().map(|&(bucket, stage)| (bucket, stage + 1));
    let closing = (0..).zip(buckets).flat_map(|(bucket, &(length, closing))| {
        (length - closing..length).map(move |stage| (bucket, stage))
    });
    (first.chain(rounds).chain(closing).collect(), pauses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_bucket_ends_last() {
        assert_eq!(
            one_behind_the_other(&[30, 23], 4).last(),
            Some(&(1, 22)),
            "a wavefront ends with the longer one"
        );
        assert_eq!(one_behind_the_other(&[2, 0], 1), [(0, 0), (0, 1)]);
        assert_eq!(one_behind_the_other(&[], 1), []);
    }

    proptest! {
        #[test]
        fn rounds_of_all_buckets_lie_between_their_barriers(
            buckets in prop::collection::vec((0usize..9, 1usize..4), 0..8),
            depth in 1usize..6,
        ) {
            let buckets: Vec<_> = buckets.into_iter().map(|(rounds, closing)| (1 + rounds + closing, closing)).collect();
            let (stages, pauses) = between_barriers(&buckets, depth);
            let mut next = vec![0; buckets.len()];
            for (position, &(bucket, stage)) in stages.iter().enumerate() {
                prop_assert_eq!(stage, next[bucket]);
                next[bucket] += 1;
                let (length, closing) = buckets[bucket];
                prop_assert_eq!(stage == 0, position < pauses[0]);
                prop_assert_eq!(stage >= length - closing, position >= pauses[1]);
            }
            let lengths: Vec<usize> = buckets.iter().map(|&(length, _)| length).collect();
            prop_assert_eq!(next, lengths);
        }
    }
}
