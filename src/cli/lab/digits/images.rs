//! The demo's data: 1,797 handwritten digits of 8 x 8 pixels, embedded in the program.
//!
//! Source and licence are in `examples/data/README.md`.

use crate::cli::lab::digits::random::Random;
use crate::error::{Error, Result};

const TEXT: &str = include_str!("../../../../examples/data/optdigits.csv");

/// Pixels of an image.
pub const PIXELS: usize = 64;
/// Kinds of digits.
pub const CLASSES: usize = 10;
/// Largest value of a pixel in the file.
const WHITE: f32 = 16.0;
/// Every fifth image of each kind of digit is held back for the test.
const TEST_EVERY: usize = 5;

/// Images with pixels in 0..1 and the digits they show.
#[derive(Default)]
pub struct Digits {
    pub pixels: Vec<f32>,
    pub labels: Vec<usize>,
}

impl Digits {
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// Adds image `index` of `other`.
    fn push(&mut self, other: &Digits, index: usize) {
        self.pixels.extend_from_slice(other.image(index));
        self.labels.push(other.labels[index]);
    }

    pub fn image(&self, index: usize) -> &[f32] {
        &self.pixels[index * PIXELS..][..PIXELS]
    }

    /// A copy of some of the images.
    pub fn select(&self, indices: &[usize]) -> Digits {
        let mut selected = Digits::default();
        for index in indices {
            selected.push(self, *index);
        }
        selected
    }
}

/// The images to train on and those held back, the same parts in every run.
pub fn load() -> Result<(Digits, Digits)> {
    let all = parse(TEXT)?;
    let (mut train, mut test) = (Digits::default(), Digits::default());
    let mut seen = [0; CLASSES];
    for index in 0..all.count() {
        let count = &mut seen[all.labels[index]];
        *count += 1;
        let part = match *count % TEST_EVERY {
            0 => &mut test,
            _ => &mut train,
        };
        part.push(&all, index);
    }
    Ok((train, test))
}

/// For each step of an epoch, the images of `rank`. All ranks draw from one order, so no image is used twice.
pub fn batches(
    images: usize,
    epoch: usize,
    rank: usize,
    ranks: usize,
    batch: usize,
) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..images).collect();
    Random::new(epoch as u64).shuffle(&mut order);
    order
        .chunks_exact(ranks * batch)
        .map(|step| step[rank * batch..][..batch].to_vec())
        .collect()
}

fn parse(text: &str) -> Result<Digits> {
    let mut digits = Digits::default();
    for (index, line) in text.lines().enumerate() {
        let values: Option<Vec<u8>> = line.split(',').map(|value| value.parse().ok()).collect();
        match values.as_deref() {
            Some([pixels @ .., label])
                if pixels.len() == PIXELS && usize::from(*label) < CLASSES =>
            {
                digits
                    .pixels
                    .extend(pixels.iter().map(|value| f32::from(*value) / WHITE));
                digits.labels.push(usize::from(*label));
            }
            _ => {
                let line = index + 1;
                return Err(Error::invalid(format!(
                    "optdigits.csv: line {line} is not 64 pixels and a digit"
                )));
            }
        }
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_split_by_kind() {
        let (train, test) = load().unwrap();
        assert_eq!(train.count() + test.count(), 1797);
        assert_eq!(test.count(), 355);
        for class in 0..CLASSES {
            let count = |part: &Digits| part.labels.iter().filter(|label| **label == class).count();
            assert!((33..=37).contains(&count(&test)), "{class}");
            assert!(count(&train) >= 4 * count(&test));
        }
        assert!(train.pixels.iter().all(|pixel| (0.0..=1.0).contains(pixel)));
    }

    #[test]
    fn an_epoch_uses_no_image_twice_and_differs_from_the_next() {
        let epoch = |number| -> Vec<usize> {
            (0..16)
                .flat_map(|rank| batches(1442, number, rank, 16, 8).concat())
                .collect()
        };
        let mut first = epoch(1);
        assert_eq!(first.len(), 11 * 16 * 8);
        assert_ne!(first, epoch(2));
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 11 * 16 * 8);
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(
            parse("1,2,3")
                .err()
                .map(|error| error.to_string())
                .as_deref(),
            Some("optdigits.csv: line 1 is not 64 pixels and a digit")
        );
    }
}
