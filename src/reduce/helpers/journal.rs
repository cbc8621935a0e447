//! What a run records of itself over time, one JSON object a line, for whoever draws it.
//!
//! The directory that [`STATISTICS_VARIABLE`] names has a file `rank_R.jsonl` for each rank that records. A program that does
//! not use this library can write the same lines:
//!
//! ```json
//! {"run":"adasum","step":11,"epoch":1.0,"time":1795413191.25,"values":{"loss":2.19},"tensors":[{"name":"w1","norm":0.5,"cosine":0.3,"gain":1.2,"kappa":1.1}]}
//! ```
//!
//! All members but `step` may be absent; members that a reader does not know are passed over. `null` stands for a number that
//! is not finite. `time` is in seconds of Unix time; from record to record it tells how long steps take. Worlds write when
//! their reductions ran into files of their own there, `steps_R.*.jsonl` (lines: [`TraceLine`](crate::reduce::TraceLine)).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorKind, Result};
use crate::reduce::gradient::statistics::TensorStatistics;
use crate::reduce::world::trace::STATISTICS_VARIABLE;

/// The state of a run after a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Record {
    /// Which of several trainings in one job; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Number of the step, from 1. A later record of the same step completes or replaces what an earlier one says.
    pub step: u64,
    /// Epochs that have passed, parts of one counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<f64>,
    /// When it was recorded, in seconds of Unix time. [`Journal::record`] sees to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// Figures by name, such as `loss` and `accuracy`; where several ranks record one, the mean over them is drawn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Figure>,
    /// What the reduction did to each tensor; the same on all ranks, so one of them is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorRecord>,
}

/// Figures of a tensor in a reduction, as in [`TensorStatistics`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorRecord {
    /// Name of the tensor.
    pub name: String,
    /// |result|.
    #[serde(default)]
    pub norm: Figure,
    /// Mean cosine of all pairs of vectors that were combined.
    #[serde(default)]
    pub cosine: Figure,
    /// |result| / |mean|.
    #[serde(default)]
    pub gain: Figure,
    /// How much cancelled.
    #[serde(default)]
    pub kappa: Figure,
}

/// A number, which JSON writes as `null` if it is not finite.
#[derive(Debug, Clone, Copy)]
pub struct Figure(pub f64);

impl Default for Figure {
    fn default() -> Self {
        Figure(f64::NAN)
    }
}

/// All that are not finite are alike, because they are alike when they are read back.
impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (!self.0.is_finite() && !other.0.is_finite())
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.is_finite().then_some(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let number = Option::<f64>::deserialize(deserializer)?;
        Ok(number.map_or_else(Figure::default, Figure))
    }
}

impl Record {
    /// A record of `step` in `run`.
    pub fn new(run: impl Into<String>, step: u64) -> Self {
        Record {
            run: run.into(),
            step,
            ..Record::default()
        }
    }

    /// With the epochs that have passed.
    #[must_use]
    pub fn epoch(mut self, epoch: f64) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// With one more figure.
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: f64) -> Self {
        self.values.insert(name.into(), Figure(value));
        self
    }

    /// With what [`GradientReducer::statistics`](crate::reduce::GradientReducer::statistics) has returned.
    #[must_use]
    pub fn tensors(mut self, statistics: &[TensorStatistics]) -> Self {
        let of = |tensor: &TensorStatistics| TensorRecord {
            name: tensor.name.clone(),
            norm: Figure(tensor.norm),
            cosine: Figure(tensor.cosine),
            gain: Figure(tensor.gain),
            kappa: Figure(tensor.kappa),
        };
        self.tensors = statistics.iter().map(of).collect();
        self
    }
}

/// One rank's file of records.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// The journal of `rank` if somebody wants one: if [`STATISTICS_VARIABLE`] is set and not empty.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn from_env(rank: u32) -> Result<Option<Journal>> {
        match std::env::var_os(STATISTICS_VARIABLE).filter(|value| !value.is_empty()) {
            Some(folder) => Journal::open(Path::new(&folder), rank).map(Some),
            None => Ok(None),
        }
    }

    /// The journal of `rank` in `folder`; what it holds already is kept.
    ///
    /// # Errors
    /// If the name of the folder is empty, or the file cannot be opened.
    pub fn open(folder: &Path, rank: u32) -> Result<Journal> {
        if folder.as_os_str().is_empty() {
            return Err(Error::invalid("folder of the journal: the name is empty"));
        }
        let path = folder.join(format!("rank_{rank}.jsonl"));
        let opened = File::options().create(true).append(true).open(&path);
        match opened {
            Ok(file) => Ok(Journal { path, file }),
            Err(error) => Err(unwritable(&path, &error)),
        }
    }

    /// Appends a record, which is in the file when this returns. One without a time gets that of this call.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&mut self, record: &Record) -> Result<()> {
        let now = || UNIX_EPOCH.elapsed().ok().map(|time| time.as_secs_f64());
        let record = Record {
            time: record.time.or_else(now),
            ..record.clone()
        };
        let line =
            serde_json::to_string(&record).map_err(|error| unwritable(&self.path, &error))?;
        // One call, so that a reader never sees half a line of a rank that lives.
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|error| unwritable(&self.path, &error))
    }
}

fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_line_is_read_and_written() {
        let line = r#"{"run":"adasum","step":11,"epoch":1.0,"time":1795413191.25,"values":{"loss":2.19},"tensors":[{"name":"w1","norm":0.5,"cosine":0.3,"gain":1.2,"kappa":1.1}]}"#;
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(record.values["loss"], Figure(2.19));
        let later = line.replacen('{', r#"{"of_a_later_version":[1],"#, 1);
        assert_eq!(serde_json::from_str::<Record>(&later).unwrap(), record);
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
        let least: Record = serde_json::from_str(r#"{"step":1}"#).unwrap();
        assert_eq!(least, Record::new("", 1));
    }

    #[test]
    fn what_is_not_finite_comes_back_as_no_number() {
        let record = Record::new("", 1).value("loss", f64::INFINITY);
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(line, r#"{"step":1,"values":{"loss":null}}"#);
        let back: Record = serde_json::from_str(&line).unwrap();
        assert!(back.values["loss"].0.is_nan());
    }
}
