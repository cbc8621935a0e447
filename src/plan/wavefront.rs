//! The order in which the stages of several buckets are issued.

/// How many stages a bucket is behind the one before it: those of a round. The scalars of one bucket cross while the vectors
/// of the next one do; a bucket that followed at once would wait for the same stream.
const BEHIND: usize = 4;

/// Pairs of bucket and stage, for buckets with so many stages each.
///
/// A wavefront: at most `depth` buckets are under way, each is a round behind the one before it, and a bucket starts only
/// when the one `depth` before it has ended, whose memory it may use. All ranks issue in this one order, so that whatever
/// a stage waits for was issued before it, on every rank.
pub fn wavefront(stages: &[usize], depth: usize) -> Vec<(usize, usize)> {
    // Beats at which buckets start; each issues a stage a beat.
    let mut starts: Vec<usize> = Vec::with_capacity(stages.len());
    for bucket in 0..stages.len() {
        let behind = bucket
            .checked_sub(1)
            .map_or(0, |before| starts[before] + BEHIND.min(stages[before]));
        let free = bucket
            .checked_sub(depth.max(1))
            .map_or(0, |earlier| starts[earlier] + stages[earlier]);
        starts.push(behind.max(free));
    }
    let mut order: Vec<(usize, usize)> = (0..)
        .zip(stages)
        .flat_map(|(bucket, &count)| (0..count).map(move |stage| (bucket, stage)))
        .collect();
    order.sort_by_key(|&(bucket, stage)| (starts[bucket] + stage, bucket));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_is_a_round_behind_the_one_before_it() {
        let order = wavefront(&[6, 6, 6], 2);
        assert_eq!(
            order[..12],
            [
                (0, 0),
                (0, 1),
                (0, 2),
                (0, 3),
                (0, 4),
                (1, 0),
                (0, 5),
                (1, 1),
                (1, 2),
                (1, 3),
                (1, 4),
                (2, 0),
            ]
        );
        // One that has fewer stages than a round leaves no gap.
        assert_eq!(wavefront(&[1, 2], 2), [(0, 0), (1, 0), (1, 1)]);
        assert_eq!(wavefront(&[2, 2], 1), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(wavefront(&[], 4), []);
    }

    proptest! {
        #[test]
        fn every_stage_comes_once_in_order_and_memory_is_free(
            stages in prop::collection::vec(1usize..9, 0..12),
            depth in 1usize..6,
        ) {
            let order = wavefront(&stages, depth);
            prop_assert_eq!(order.len(), stages.iter().sum::<usize>());
            let mut next = vec![0; stages.len()];
            for (bucket, stage) in order {
                prop_assert_eq!(stage, next[bucket]);
                next[bucket] += 1;
                if bucket >= depth {
                    prop_assert_eq!(next[bucket - depth], stages[bucket - depth]);
                }
            }
        }
    }
}
