//! The results of the demo, as JSON, as files and as a table.

use std::fmt::Write;

use serde::Serialize;

use crate::cli::io::json;
use crate::cli::lab::demo::event::Reduction;
use crate::cli::lab::demo::training::{BATCH, LAYERS, MOMENTUM, RATE, WARM_UP};
use crate::cli::report;
use crate::error::Result;

/// Name and version of the form of `report.json`.
const SCHEMA: &str = "adasum.demo/1";

/// One training.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Training {
    pub(crate) reduction: Reduction,
    /// Per epoch: the mean over ranks and steps.
    pub(crate) loss: Vec<f32>,
    /// Part of the held-back digits that is recognised.
    pub(crate) accuracy: f64,
    pub(crate) seconds: f64,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    ranks: u32,
    servers: usize,
    reduction: Reduction,
    loss: &'a [f32],
    accuracy: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Mean<'a>>,
}

#[derive(Serialize)]
struct Mean<'a> {
    loss: &'a [f32],
    accuracy: f64,
}

/// The object of `report.json`.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    ranks: u32,
    servers: usize,
    backend: &'a str,
    epochs: usize,
    batch_per_rank: usize,
    layers: &'static [usize],
    learning_rate: f32,
    warm_up_epochs: f32,
    momentum: f32,
    trainings: &'a [Training],
}

/// The trainings and where they ran; at least one.
pub(crate) struct Results<'a> {
    pub(crate) ranks: u32,
    pub(crate) servers: usize,
    pub(crate) backend: &'a str,
    pub(crate) trainings: &'a [Training],
}

impl Results<'_> {
    /// One JSON object on a line.
    pub(crate) fn json(&self) -> Result<String> {
        let first = &self.trainings[0];
        let second = self.trainings.get(1);
        let line = Line {
            ranks: self.ranks,
            servers: self.servers,
            reduction: first.reduction,
            loss: &first.loss,
            accuracy: first.accuracy,
            mean: second.map(|mean| Mean {
                loss: &mean.loss,
                accuracy: mean.accuracy,
            }),
        };
        Ok(json(&line)? + "\n")
    }

    /// Writes the report into `folder`.
    pub(crate) fn write(&self, folder: &report::Folder) -> Result<()> {
        let head = Report {
            schema: SCHEMA,
            ranks: self.ranks,
            servers: self.servers,
            backend: self.backend,
            epochs: self.trainings[0].loss.len(),
            batch_per_rank: BATCH,
            layers: &LAYERS,
            learning_rate: RATE,
            warm_up_epochs: WARM_UP,
            momentum: MOMENTUM,
            trainings: self.trainings,
        };
        let layers: Vec<String> = LAYERS.iter().map(ToString::to_string).collect();
        let mut facts = vec![
            (
                "ranks".to_owned(),
                format!("{} on {} servers", self.ranks, self.servers),
            ),
            ("backend".to_owned(), self.backend.to_owned()),
            (
                "network".to_owned(),
                format!("layers of {} values", layers.join(", ")),
            ),
            (
                "optimizer".to_owned(),
                format!(
                    "momentum {MOMENTUM}, learning rate up to {RATE}, {BATCH} images a rank and step"
                ),
            ),
        ];
        facts.extend(self.trainings.iter().map(|training| {
            let loss = &training.loss;
            let text = format!(
                "loss {:.4} to {:.4}, accuracy {:.1} % on held-back digits, {:.1} s",
                loss[0],
                loss[loss.len() - 1],
                100.0 * training.accuracy,
                training.seconds
            );
            (training.reduction.name().to_owned(), text)
        }));
        folder.write("Handwritten digits: AdaSum and the mean", &facts, &head)?;
        Ok(())
    }

    /// The trainings side by side.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "{:<10} {:>12} {:>12} {:>10} {:>9}",
            "reduction", "first loss", "last loss", "accuracy", "seconds"
        );
        for training in self.trainings {
            let loss = &training.loss;
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n{:<10} {:>12.4} {:>12.4} {:>8.1} % {:>9.1}",
                training.reduction.name(),
                loss[0],
                loss[loss.len() - 1],
                100.0 * training.accuracy,
                training.seconds
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn training(reduction: Reduction, loss: &[f32]) -> Training {
        Training {
            reduction,
            loss: loss.to_vec(),
            accuracy: 0.5,
            seconds: 1.0,
        }
    }

    fn results(trainings: &[Training]) -> Results<'_> {
        Results {
            ranks: 16,
            servers: 2,
            backend: "mock",
            trainings,
        }
    }

    #[test]
    fn the_line_has_exactly_the_promised_members() {
        let one = [training(Reduction::Mean, &[2.5, 0.1])];
        assert_eq!(
            results(&one).json().unwrap().trim_end(),
            r#"{"ranks":16,"servers":2,"reduction":"mean","loss":[2.5,0.1],"accuracy":0.5}"#
        );
        let two = [
            training(Reduction::Adasum, &[2.5]),
            training(Reduction::Mean, &[3.0]),
        ];
        assert_eq!(
            results(&two).json().unwrap().trim_end(),
            r#"{"ranks":16,"servers":2,"reduction":"adasum","loss":[2.5],"accuracy":0.5,"mean":{"loss":[3.0],"accuracy":0.5}}"#
        );
    }
}
