//! Which tensors share a fused buffer.

use std::ops::Range;

/// Cuts a list of tensors of so many bytes into consecutive parts of at most `bound` bytes, as few as can be, and among
/// those with the smallest largest part. A tensor above the bound shares its part with empty ones only: its
/// coefficients need all of it.
pub fn buckets(bytes: &[u64], bound: u64) -> Vec<Range<usize>> {
    let fewest = filled(bytes, bound).len();
    let (mut low, mut high) = (0, bound);
    while low < high {
        let middle = low + (high - low) / 2;
        if filled(bytes, middle).len() > fewest {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    filled(bytes, low)
}

/// Each part takes as much as fits.
fn filled(bytes: &[u64], bound: u64) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut room = 0;
    for (index, &size) in bytes.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if size <= room => part.end = index + 1,
            _ => {
                parts.push(index..index + 1);
                room = bound.max(size);
            }
        }
        room -= size;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_even_and_a_large_tensor_is_alone() {
        assert!(buckets(&[], 10).is_empty());
        assert_eq!(buckets(&[4, 4, 4, 4], 15), [0..2, 2..4]);
        assert_eq!(buckets(&[1, 99, 1, 1], 10), [0..1, 1..2, 2..4]);
        assert_eq!(buckets(&[0, 0, 5], 0), [0..2, 2..3]);
    }

    proptest! {
        #[test]
        fn parts_tile_the_list_within_the_bound(
            bytes in prop::collection::vec(0u64..1000, 0..60),
            bound in 0u64..3000,
        ) {
            let parts = buckets(&bytes, bound);
            let mut at = 0;
            for part in &parts {
                prop_assert_eq!(part.start, at);
                prop_assert!(part.end > at);
                at = part.end;
                let total: u64 = bytes[part.clone()].iter().sum();
                let filled = bytes[part.clone()].iter().filter(|&&size| size > 0).count();
                prop_assert!(total <= bound || filled == 1);
            }
            prop_assert_eq!(at, bytes.len());
            prop_assert_eq!(parts.len(), filled(&bytes, bound).len());
        }
    }
}
