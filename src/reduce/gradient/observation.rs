//! Which reductions keep their gradients.

/// Whether reductions are observed, and of which tensors the last one was.
pub(super) struct Observation {
    on: bool,
    observed: Vec<bool>,
}

impl Observation {
    /// Off, for so many tensors.
    pub(super) fn new(tensors: usize) -> Self {
        Observation {
            on: false,
            observed: vec![false; tensors],
        }
    }

    /// Observes the next reductions, or not; what was observed before counts no more when this is turned off.
    pub(super) fn switch(&mut self, on: bool) {
        self.on = on;
        if !on {
            self.observed.fill(false);
        }
    }

    /// Notes a reduction of `tensors`; whether it is observed.
    pub(super) fn begin(&mut self, tensors: &[usize]) -> bool {
        for &tensor in tensors {
            self.observed[tensor] = self.on;
        }
        self.on
    }

    /// Whether the last reduction of every tensor was observed.
    pub(super) fn is_complete(&self) -> bool {
        !self.observed.is_empty() && self.observed.iter().all(|&observed| observed)
    }
}
