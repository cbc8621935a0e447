//! Buckets of about one size are calibrated together: what fits the cache is another machine than what does not.

use super::calibration::Calibration;
use super::walk::{RECORD, Stride, Walk};
use crate::ascend::DataType;
use crate::cli::bench::reduction::Bench;
use crate::error::Result;

/// Bytes of a half of a merge whose time is next to all launches and latencies.
const TINY: usize = 1 << 10;
/// Bytes of short tensors.
const SHORT: usize = 2 << 10;
/// Sizes with a smaller part of all bytes go with their neighbours.
const SHARE: f64 = 0.1;

/// Buckets of a power of two of bytes to the next, and the walks that stand for them.
pub(super) struct Regime<'a> {
    /// Bytes of the largest bucket.
    pub(super) bucket: u64,
    /// Merges of next to nothing; of three quarters of the bucket in one tensor each; of as much in short tensors.
    walks: [Walk<'a>; 3],
    steps: [Vec<f32>; 3],
    again: Vec<f32>,
}

impl<'a> Regime<'a> {
    /// Collective.
    pub(super) fn new(bench: &Bench<'a>, dtype: DataType, bucket: u64) -> Result<Self> {
        let whole = bench.whole();
        let walk = |stride| Walk::new(bench.world(), &whole, dtype, stride);
        let [tiny, long, short] = strides(whole.len(), bucket);
        Ok(Regime {
            bucket,
            walks: [walk(tiny)?, walk(long)?, walk(short)?],
            steps: Default::default(),
            again: Vec::new(),
        })
    }

    /// Goes through the gradients once by each walk.
    ///
    /// Collective.
    pub(super) fn sample(&mut self, bench: &Bench<'a>) -> Result<()> {
        for (walk, steps) in self.walks.iter().zip(&mut self.steps) {
            steps.extend(bench.timed(|stream| walk.enqueue(stream), || walk.seconds())?);
        }
        let long = &self.walks[1];
        let again = bench.timed(|stream| long.enqueue_again(stream), || long.seconds_again())?;
        self.again.extend(again);
        Ok(())
    }

    /// From the shortest samples on the slowest rank.
    ///
    /// Collective.
    pub(super) fn calibration(&self, bench: &Bench<'a>, ranks: u32) -> Result<Calibration> {
        let measured =
            |index: usize| Ok(self.walks[index].measured(bench.shortest(&self.steps[index])?));
        let steps = [measured(0)?, measured(1)?, measured(2)?];
        let [again] = bench.shortest(&self.again)?;
        Ok(Calibration::of(&steps, again, ranks, RECORD as u64))
    }
}

/// For buckets of these bytes, the largest of each size that has a share of all bytes; ascending.
pub(super) fn sizes(buckets: &[u64]) -> Vec<u64> {
    let total: u64 = buckets.iter().sum();
    let mut sorted: Vec<u64> = buckets.iter().copied().filter(|&bytes| bytes > 0).collect();
    sorted.sort_unstable();
    let alike = sorted.chunk_by(|a, b| a.ilog2() == b.ilog2());
    let counts = |class: &&[u64]| class.iter().sum::<u64>() as f64 >= SHARE * total as f64;
    let largest = |class: &[u64]| class.last().copied();
    let mut found: Vec<u64> = alike.filter(counts).filter_map(largest).collect();
    if found.is_empty() {
        found.extend(sorted.last());
    }
    found
}

/// Which of `sizes`, of which there is one, is closest to a bucket of `bytes`.
pub(super) fn closest(sizes: &[u64], bytes: u64) -> usize {
    let log = |bytes: u64| (bytes.max(1) as f64).log2();
    let distance = |index: &usize| (log(sizes[*index]) - log(bytes)).abs();
    let nearer = |a: &usize, b: &usize| distance(a).total_cmp(&distance(b));
    (0..sizes.len()).min_by(nearer).unwrap_or(0)
}

fn strides(whole: usize, bucket: u64) -> [Stride; 3] {
    let bucket = usize::try_from(bucket).unwrap_or(usize::MAX).min(whole);
    let half = (bucket / 8 * 3 / 64 * 64).max(2 * SHORT);
    [
        (TINY, TINY, 1),
        (half, half, usize::MAX),
        (half, SHORT, usize::MAX),
    ]
    .map(|(half, tensor, merges)| Stride {
        half,
        tensor,
        merges,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_hold_a_share_of_the_bytes_stand_for_all() {
        assert_eq!(sizes(&[1000]), [1000]);
        // From 512 to 1023, from 4096 to 8191.
        assert_eq!(sizes(&[4096, 600, 8191, 1023, 5000, 90]), [8191]);
        assert_eq!(sizes(&[600; 10]), [600]);
        assert_eq!(sizes(&[600, 700, 4000]), [700, 4000]);
        assert!(sizes(&[]).is_empty());
        let many: Vec<u64> = (0..40).map(|log| 1 << log).collect();
        assert_eq!(sizes(&many), [1 << 37, 1 << 38, 1 << 39]);
    }

    #[test]
    fn the_closest_size_is_that_of_the_smallest_ratio() {
        let sizes = [1 << 10, 1 << 20];
        assert_eq!(closest(&sizes, 1), 0);
        assert_eq!(closest(&sizes, 1 << 14), 0);
        assert_eq!(closest(&sizes, 1 << 16), 1);
        assert_eq!(closest(&sizes, 1 << 40), 1);
        assert_eq!(closest(&sizes[..1], 1 << 40), 0);
    }

    #[test]
    fn merges_fit_the_gradients() {
        for (whole, bucket) in [(128 << 10, 1000), (1 << 20, 1 << 20), (1 << 20, 1 << 30)] {
            for stride in strides(whole, bucket) {
                assert!(2 * stride.half <= whole && stride.half.is_multiple_of(64));
                assert!(stride.tensor <= stride.half);
            }
        }
    }
}
