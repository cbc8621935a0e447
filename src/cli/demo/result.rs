//! What the demo found out, as JSON, as files and as a table.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::event::Reduction;
use super::training::{BATCH, LAYERS, MOMENTUM, RATE, WARM_UP};
use crate::error::{Error, ErrorKind, Result};

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
pub(crate) struct Outcome<'a> {
    pub(crate) ranks: u32,
    pub(crate) servers: usize,
    pub(crate) backend: &'a str,
    pub(crate) trainings: &'a [Training],
}

impl Outcome<'_> {
    /// One JSON object on one line.
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
        serde_json::to_string(&line).map_err(|error| unwritable("the result", &error))
    }

    /// Writes `report.json` and `loss.csv` into `folder`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let report = Report {
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
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| unwritable("report.json", &error))?;
        save(&folder.join("report.json"), &format!("{json}\n"))?;
        save(&folder.join("loss.csv"), &self.csv())
    }

    /// A row for each epoch, a column for each reduction.
    fn csv(&self) -> String {
        let mut text = "epoch".to_owned();
        for training in self.trainings {
            text = text + "," + training.reduction.name();
        }
        for epoch in 0..self.trainings[0].loss.len() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{}", epoch + 1);
            for training in self.trainings {
                let _ = write!(text, ",{}", training.loss[epoch]);
            }
        }
        text + "\n"
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

fn save(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| unwritable(&path.display().to_string(), &error))
}

fn unwritable(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("{what}: {error}"))
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

    fn outcome(trainings: &[Training]) -> Outcome<'_> {
        Outcome {
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
            outcome(&one).json().unwrap(),
            r#"{"ranks":16,"servers":2,"reduction":"mean","loss":[2.5,0.1],"accuracy":0.5}"#
        );
        let two = [
            training(Reduction::Adasum, &[2.5]),
            training(Reduction::Mean, &[3.0]),
        ];
        assert_eq!(
            outcome(&two).json().unwrap(),
            r#"{"ranks":16,"servers":2,"reduction":"adasum","loss":[2.5],"accuracy":0.5,"mean":{"loss":[3.0],"accuracy":0.5}}"#
        );
    }

    #[test]
    fn the_csv_has_a_row_for_each_epoch() {
        let two = [
            training(Reduction::Adasum, &[2.5, 0.1]),
            training(Reduction::Mean, &[3.0, 1.0]),
        ];
        assert_eq!(outcome(&two).csv(), "epoch,adasum,mean\n1,2.5,3\n2,0.1,1\n");
    }
}
