//! Events that rank 0 of the demo sends to the command: one JSON object a line on its standard output.

use serde::{Deserialize, Serialize};

use crate::reduce;

/// `--reduction` and what the results call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reduction {
    /// The mean in each server, AdaSum between servers
    Adasum,
    /// The mean over all ranks
    Mean,
}

impl Reduction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reduction::Adasum => "adasum",
            Reduction::Mean => "mean",
        }
    }
}

impl From<Reduction> for reduce::Reduction {
    fn from(reduction: Reduction) -> Self {
        match reduction {
            Reduction::Adasum => reduce::Reduction::Adasum,
            Reduction::Mean => reduce::Reduction::Mean,
        }
    }
}

/// A line of rank 0.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    /// A training begins.
    Start { reduction: Reduction },
    /// A step is done.
    Step,
    /// An epoch of `steps` is done; the mean loss over ranks and steps.
    Epoch {
        epoch: usize,
        steps: usize,
        loss: f32,
    },
    /// The training is done.
    Done { accuracy: f64, seconds: f64 },
}

impl Event {
    /// The event in a line, if it is one.
    pub(crate) fn parse(line: &[u8]) -> Option<Event> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_and_other_lines_do_not() {
        let event = Event::Epoch {
            epoch: 3,
            steps: 11,
            loss: 0.1,
        };
        let line = serde_json::to_vec(&event).unwrap();
        assert_eq!(Event::parse(&line), Some(event));
        assert_eq!(Event::parse(b"a warning of some library"), None);
        assert_eq!(Event::parse(b"{\"event\":\"other\"}"), None);
    }
}
