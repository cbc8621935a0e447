//! One rank's part of the training: its images, its copy of the network, the schedule.
//!
//! Must not know how gradients are reduced: the caller does that between [`Trainer::gradients`] and [`Trainer::step`].

use sha1::{Digest, Sha1};

use crate::cli::lab::digits::images::{CLASSES, Digits, PIXELS, batches, load};
use crate::cli::lab::digits::network::{Momentum, Network};
use crate::error::Result;

/// Values between the layers of the network.
pub(crate) const LAYERS: [usize; 4] = [PIXELS, 128, 64, CLASSES];
/// Images of a rank in a step.
pub(crate) const BATCH: usize = 8;
/// Factor of the momentum.
pub(crate) const MOMENTUM: f32 = 0.9;
/// Highest learning rate of the schedule.
pub(crate) const RATE: f32 = 0.05;
/// Epochs in which the rate rises to it; in the rest it falls to 0.
pub(crate) const WARM_UP: f32 = 1.0;
/// Seed of the initial weights, the same on every rank.
const SEED: u64 = 2020;

/// The state of a training on one rank.
pub(crate) struct Trainer {
    pub(crate) network: Network,
    /// Gradients of the last batch, which are reduced.
    pub(crate) gradients: Vec<Vec<f32>>,
    momentum: Momentum,
    train: Digits,
    test: Digits,
    rank: usize,
    ranks: usize,
    epochs: usize,
}

impl Trainer {
    /// The start of a training of `epochs`, which is the same on all ranks.
    pub(crate) fn new(rank: usize, ranks: usize, epochs: usize) -> Result<Trainer> {
        let (train, test) = load()?;
        let network = Network::new(&LAYERS, SEED);
        Ok(Trainer {
            gradients: network.zeros(),
            momentum: Momentum::new(&network, MOMENTUM),
            network,
            train,
            test,
            rank,
            ranks,
            epochs,
        })
    }

    /// Steps of an epoch.
    pub(crate) fn steps(&self) -> usize {
        self.train.count() / (self.ranks * BATCH)
    }

    /// This rank's images for each step of an epoch (from 1).
    pub(crate) fn batches(&self, epoch: usize) -> Vec<Vec<usize>> {
        batches(self.train.count(), epoch, self.rank, self.ranks, BATCH)
    }

    /// The mean loss over a batch, whose gradient is then in `gradients`.
    pub(crate) fn gradients(&mut self, batch: &[usize]) -> f32 {
        let images = self.train.select(batch);
        self.network
            .loss(&images.pixels, &images.labels, &mut self.gradients)
    }

    /// Moves the weights along `gradients`, which by now are reduced. Epochs count from 1, steps from 0.
    pub(crate) fn step(&mut self, epoch: usize, step: usize) {
        let passed = (epoch - 1) as f32 + (step + 1) as f32 / self.steps() as f32;
        let rate = RATE * schedule(passed, self.epochs as f32);
        self.momentum.step(&mut self.network, &self.gradients, rate);
    }

    /// The part of the images held back that is classified right.
    pub(crate) fn accuracy(&self) -> f64 {
        self.network.accuracy(&self.test)
    }

    /// A digest of all bits of the weights.
    pub(crate) fn digest(&self) -> [u8; 20] {
        let mut sha = Sha1::new();
        for value in self.network.tensors.iter().flatten() {
            sha.update(value.to_bits().to_le_bytes());
        }
        sha.finalize().into()
    }
}

/// The part of the highest rate after `passed` of `epochs`: up in a straight line, then down in one.
fn schedule(passed: f32, epochs: f32) -> f32 {
    if passed < WARM_UP {
        return passed / WARM_UP;
    }
    let left = (epochs - passed) / (epochs - WARM_UP).max(1.0);
    // The last step still counts.
    left.clamp(0.01, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: usize = 2;
    const LOCALS: usize = 8;

    /// The mean of tensors of several ranks.
    fn mean(ranks: &[Vec<Vec<f32>>]) -> Vec<Vec<f32>> {
        let mut sum = ranks[0].clone();
        for rank in &ranks[1..] {
            for (sum, tensor) in sum.iter_mut().flatten().zip(rank.iter().flatten()) {
                *sum += tensor;
            }
        }
        for value in sum.iter_mut().flatten() {
            *value /= ranks.len() as f32;
        }
        sum
    }

    /// AdaSum of two servers' tensors, by the formula.
    #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
    fn adasum(a: &[Vec<f32>], b: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let dot = |x: &[f32], y: &[f32]| -> f64 {
            x.iter()
                .zip(y)
                .map(|(x, y)| f64::from(*x) * f64::from(*y))
                .sum()
        };
        let pair = |(a, b): (&Vec<f32>, &Vec<f32>)| {
            let (aa, ab, bb) = (dot(a, a), dot(a, b), dot(b, b));
            let scale = |own: f64| {
                if own == 0.0 {
                    1.0
                } else {
                    1.0 - ab / (2.0 * own)
                }
            };
            let (wa, wb) = (scale(aa), scale(bb));
            let both = a.iter().zip(b);
            both.map(|(a, b)| (wa * f64::from(*a) + wb * f64::from(*b)) as f32)
                .collect()
        };
        a.iter().zip(b).map(pair).collect()
    }

    /// The whole job in one process: (mean loss of each epoch, accuracy).
    fn train(epochs: usize, reduce: impl Fn(&[Vec<Vec<f32>>]) -> Vec<Vec<f32>>) -> (Vec<f32>, f64) {
        let ranks = SERVERS * LOCALS;
        let mut trainer = Trainer::new(0, ranks, epochs).unwrap();
        let mut losses = Vec::new();
        for epoch in 1..=epochs {
            let images = trainer.train.count();
            let batches: Vec<_> = (0..ranks)
                .map(|rank| batches(images, epoch, rank, ranks, BATCH))
                .collect();
            let mut sum = 0.0;
            for step in 0..trainer.steps() {
                let mut gradients = Vec::new();
                for batches in &batches {
                    sum += trainer.gradients(&batches[step]);
                    gradients.push(trainer.gradients.clone());
                }
                trainer.gradients = reduce(&gradients);
                trainer.step(epoch, step);
            }
            losses.push(sum / (ranks * trainer.steps()) as f32);
        }
        let accuracy = trainer.accuracy();
        (losses, accuracy)
    }

    #[test]
    fn both_reductions_learn_the_digits() {
        let epochs = 10;
        let all = train(epochs, mean);
        let servers = train(epochs, |ranks| {
            adasum(&mean(&ranks[..LOCALS]), &mean(&ranks[LOCALS..]))
        });
        println!("mean {all:?}\nadasum {servers:?}");
        for (losses, accuracy) in [all, servers] {
            assert!(losses[epochs - 1] < losses[0] / 2.0, "{losses:?}");
            assert!(accuracy > 0.9, "{accuracy}");
        }
    }

    #[test]
    fn the_schedule_rises_and_falls() {
        assert!((schedule(0.5, 10.0) - 0.5).abs() < 1e-6);
        assert!((schedule(1.0, 10.0) - 1.0).abs() < 1e-6);
        assert!((schedule(5.5, 10.0) - 0.5).abs() < 1e-6);
        assert!(schedule(10.0, 10.0) > 0.0);
        assert!(schedule(1.0, 1.0) > 0.0);
    }

    #[test]
    fn one_changed_bit_changes_the_digest() {
        let mut trainer = Trainer::new(0, 16, 1).unwrap();
        let before = trainer.digest();
        let value = &mut trainer.network.tensors[1][0];
        *value = f32::from_bits(value.to_bits() ^ 1);
        assert_ne!(before, trainer.digest());
    }
}
