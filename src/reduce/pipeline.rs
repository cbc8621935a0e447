//! The order in which the stages of several buckets are issued.

/// Pairs of bucket and stage, for buckets with so many stages each.
///
/// A wavefront: at most `depth` buckets are under way, each is a stage behind the one before it, and a bucket starts only
/// when the one `depth` before it has ended, whose memory it may use. All ranks issue in this one order, so that whatever
/// a stage waits for was issued before it, on every rank.
pub(crate) fn wavefront(stages: &[usize], depth: usize) -> Vec<(usize, usize)> {
    let mut next = vec![0; stages.len()];
    let mut order = Vec::with_capacity(stages.iter().sum());
    let (mut first, mut started) = (0, 0);
    while first < stages.len() {
        if started < stages.len().min(first + depth.max(1)) {
            started += 1;
        }
        for bucket in first..started {
            if next[bucket] < stages[bucket] {
                order.push((bucket, next[bucket]));
                next[bucket] += 1;
            }
        }
        while first < started && next[first] == stages[first] {
            first += 1;
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_is_a_stage_behind_the_one_before_it() {
        let order = wavefront(&[3, 3, 3], 2);
        assert_eq!(
            order,
            [
                (0, 0),
                (0, 1),
                (1, 0),
                (0, 2),
                (1, 1),
                (1, 2),
                (2, 0),
                (2, 1),
                (2, 2)
            ]
        );
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
