//! Which tensors share a fused buffer.

use std::ops::Range;

use crate::plan::DType;
use crate::plan::layout::ALIGNMENT;

/// Cuts a list of tensors of so many elements into consecutive parts, whose buffers are at most `bound` bytes long with
/// the gaps between tensors, as few as can be, and among those with the smallest largest part. A tensor above the bound shares
/// its part with empty ones only: its coefficients need all of it.
pub fn buckets(dtype: DType, counts: &[u64], bound: u64) -> Vec<Range<usize>> {
    let sizes: Vec<Size> = counts.iter().map(|&count| Size::of(dtype, count)).collect();
    let fewest = filled(&sizes, bound).len();
    let (mut low, mut high) = (0, bound);
    while low < high {
        let middle = low + (high - low) / 2;
        if filled(&sizes, middle).len() > fewest {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    filled(&sizes, low)
}

/// What a tensor takes in a buffer.
struct Size {
    /// As the last one.
    bytes: u64,
    /// With the gap before the next one.
    padded: u64,
}

impl Size {
    fn of(dtype: DType, count: u64) -> Size {
        let bytes = count.saturating_mul(dtype.size());
        // What saturates is no tensor of any layout.
        let padded = bytes.checked_next_multiple_of(ALIGNMENT);
        Size {
            bytes,
            padded: padded.unwrap_or(u64::MAX),
        }
    }
}

/// Each part takes as much as fits.
fn filled(sizes: &[Size], bound: u64) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut room = 0;
    for (index, size) in sizes.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if size.bytes <= room => part.end = index + 1,
            _ => {
                parts.push(index..index + 1);
                room = bound;
            }
        }
        room = room.saturating_sub(size.padded);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Layout;
    use proptest::prelude::*;

    fn of(counts: &[u64], bound: u64) -> Vec<Range<usize>> {
        buckets(DType::F32, counts, bound)
    }

    #[test]
    fn parts_are_even_and_a_large_tensor_is_alone() {
        assert!(of(&[], 10).is_empty());
        assert_eq!(of(&[16, 16, 16, 16], 255), [0..2, 2..4]);
        assert_eq!(of(&[1, 99, 1, 1], 68), [0..1, 1..2, 2..4]);
        assert_eq!(of(&[0, 0, 5], 0), [0..2, 2..3]);
    }

    #[test]
    fn gaps_between_tensors_count() {
        // A second tensor begins at byte 64 and ends at byte 68.
        assert_eq!(of(&[1, 1], 67), [0..1, 1..2]);
        assert_eq!(of(&[1, 1], 68), std::iter::once(0..2).collect::<Vec<_>>());
        assert_eq!(of(&[1; 1000], 6400).len(), 10);
        // None behind the last element: an empty tensor shares a part that is full.
        let full = buckets(DType::F16, &[97, 33, 0], 322);
        assert_eq!(full, std::iter::once(0..3).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn parts_tile_the_list_within_the_bound(
            counts in prop::collection::vec(0u64..300, 0..60),
            bound in 0u64..5000,
            dtype in prop::sample::select(vec![DType::F32, DType::F16]),
        ) {
            let parts = buckets(dtype, &counts, bound);
            let mut at = 0;
            for part in &parts {
                prop_assert_eq!(part.start, at);
                prop_assert!(part.end > at);
                at = part.end;
                let members = &counts[part.clone()];
                let total = Layout::new(dtype, members).unwrap().elements() * dtype.size();
                let filled = members.iter().filter(|&&count| count > 0).count();
                prop_assert!(total <= bound || filled == 1);
            }
            prop_assert_eq!(at, counts.len());
            let sizes: Vec<Size> = counts.iter().map(|&count| Size::of(dtype, count)).collect();
            prop_assert_eq!(parts.len(), super::filled(&sizes, bound).len());
        }
    }
}
