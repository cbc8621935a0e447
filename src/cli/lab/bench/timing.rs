//! Times of work that other work disturbs: minima over repetitions, of things taken in turn.

use std::hint::black_box;
use std::time::Instant;

use crate::error::Result;

/// The shortest time of each of `works`, in seconds, over `reps` rounds of all of them after one that is not timed.
pub(crate) fn minima(reps: u32, works: &mut [&mut dyn FnMut() -> Result<()>]) -> Result<Vec<f64>> {
    let mut best = vec![f64::INFINITY; works.len()];
    for round in 0..=reps {
        for (work, best) in works.iter_mut().zip(&mut best) {
            let begin = Instant::now();
            work()?;
            let time = begin.elapsed().as_secs_f64();
            if round > 0 {
                *best = best.min(time);
            }
        }
    }
    Ok(best)
}

/// Two stretches of ordinary memory to copy between.
pub(crate) struct HostCopy {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl HostCopy {
    pub(crate) fn new(bytes: usize) -> Self {
        HostCopy {
            from: vec![1; bytes],
            to: vec![2; bytes],
        }
    }

    /// The memory that is read.
    pub(crate) fn from(&self) -> &[u8] {
        &self.from
    }

    pub(crate) fn run(&mut self) {
        self.to.copy_from_slice(black_box(&self.from));
        black_box(&mut self.to);
    }
}

/// Times of repetitions, in seconds; at least one.
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Times(times)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// The upper one of two in the middle.
    pub(crate) fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}
