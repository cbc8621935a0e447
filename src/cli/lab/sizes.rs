//! Sizes of tensors as they are in real networks: log-normal, a few large ones and many small ones.

use crate::cli::text::count;
use crate::error::{Error, Result};

/// Logarithms of relative sizes: draws from a normal distribution of mean 0 and standard deviation 2, one a line.
const LOGARITHMS: &str = include_str!("log_sizes.txt");
/// How many draws there are.
pub(crate) const MOST: i64 = 398;

/// `bytes`, an option's, as whole elements of `element` bytes each.
///
/// # Errors
/// If there are fewer elements than tensors.
pub(crate) fn elements(bytes: u64, element: u64, tensors: u32) -> Result<u64> {
    let elements = bytes / element;
    if elements < u64::from(tensors) {
        return Err(Error::invalid(format!(
            "--bytes {bytes}: too few for {}, of which each has an element of {element} bytes",
            count(tensors, "tensor")
        )));
    }
    Ok(elements)
}

/// Splits `elements` into `tensors`, at least one element each; needs as many elements and 1 to [`MOST`] tensors.
pub(crate) fn split(elements: u64, tensors: u32) -> Vec<u64> {
    let weights: Vec<f64> = LOGARITHMS
        .lines()
        .take(tensors as usize)
        .filter_map(|line| line.parse::<f64>().ok())
        .map(f64::exp)
        .collect();
    let whole: f64 = weights.iter().sum();
    let spread = elements.saturating_sub(u64::from(tensors)) as f64;
    let mut left = elements;
    let mut sizes = Vec::with_capacity(weights.len());
    for (index, weight) in weights.iter().enumerate() {
        let behind = (weights.len() - 1 - index) as u64;
        let most = left.saturating_sub(behind);
        let size = match behind {
            0 => left,
            _ => floor(weight / whole * spread).max(1).min(most),
        };
        sizes.push(size);
        left -= size;
    }
    sizes
}

/// The whole part of a number from 0 to 2^53.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of memory are far below 2^53 and not negative"
)]
fn floor(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_add_up_and_none_is_empty() {
        for (elements, tensors) in [
            (25_557_032, 161),
            (25_557_032, 398),
            (161, 161),
            (1000, 398),
            (7, 1),
        ] {
            let sizes = split(elements, tensors);
            assert_eq!(sizes.len(), tensors as usize);
            assert_eq!(sizes.iter().sum::<u64>(), elements);
            assert!(sizes.iter().all(|&size| size > 0));
        }
        assert_eq!(LOGARITHMS.lines().count() as i64, MOST);
    }

    /// What the peers' own generator gives for ResNet-50's parameters: the first three, the last and the largest.
    #[test]
    fn sizes_are_those_of_the_peers() {
        for (tensors, first, last, largest) in [
            (161, [2936, 1065, 98538], 53426, 2_557_058),
            (398, [1043, 378, 35015], 1225, 4_868_755),
        ] {
            let sizes = split(25_557_032, tensors);
            assert_eq!(sizes[..3], first);
            assert_eq!(sizes.last(), Some(&last));
            assert_eq!(sizes.iter().max(), Some(&largest));
        }
    }
}
