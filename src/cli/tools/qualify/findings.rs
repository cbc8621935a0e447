//! Findings of a stage's process: lines of its standard output that the command reads.

use std::io::Write;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// Start of a line with a finding; JSON follows.
const PREFIX: &str = "adasum-qualify: ";

/// How a check or a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingStatus {
    Passed,
    Failed,
    /// Not tried; the note says why.
    Skipped,
}

impl FindingStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            FindingStatus::Passed => "passed",
            FindingStatus::Failed => "failed",
            FindingStatus::Skipped => "skipped",
        }
    }
}

/// A number that a check measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) unit: String,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) check: String,
    pub(crate) verdict: FindingStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) figure: Option<Figure>,
    /// A sentence: what was seen, or what is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    pub(crate) seconds: f64,
}

impl Finding {
    /// The finding in a line of a process, if there is one.
    pub(crate) fn parse(line: &[u8]) -> Option<Finding> {
        serde_json::from_slice(line.strip_prefix(PREFIX.as_bytes())?).ok()
    }

    /// "12.3 GB/s; what was seen".
    pub(crate) fn text(&self) -> String {
        let figure = self.figure.as_ref();
        let figure = figure.map(|figure| format!("{} {}", ThreeDigits(figure.value), figure.unit));
        let note = Some(self.note.clone()).filter(|note| !note.is_empty());
        let parts: Vec<String> = [figure, note].into_iter().flatten().collect();
        parts.join("; ")
    }
}

/// A number with three digits that count.
struct ThreeDigits(f64);

impl std::fmt::Display for ThreeDigits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.abs() {
            0.0 => f.write_str("0"),
            size if !(1e-2..1e6).contains(&size) => write!(f, "{:.1e}", self.0),
            size if size >= 100.0 || self.0.fract() == 0.0 => write!(f, "{:.0}", self.0),
            size if size >= 10.0 => write!(f, "{:.1}", self.0),
            _ => write!(f, "{:.2}", self.0),
        }
    }
}

/// Figure and note of a check that passed.
#[derive(Default)]
pub(crate) struct Seen {
    figure: Option<Figure>,
    note: String,
}

impl Seen {
    /// A number and its unit.
    pub(crate) fn figure(value: f64, unit: &str) -> Seen {
        let unit = unit.to_owned();
        Seen {
            figure: Some(Figure { value, unit }),
            note: String::new(),
        }
    }

    pub(crate) fn note(note: impl Into<String>) -> Seen {
        Seen::default().and(note)
    }

    pub(crate) fn and(self, note: impl Into<String>) -> Seen {
        Seen {
            note: note.into(),
            ..self
        }
    }
}

/// The error of a check that saw something else than it should.
pub(crate) fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Mismatch, what)
}

/// Fails with a sentence, unless `holds`.
pub(crate) fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(wrong(otherwise()))
    }
}

/// Sends what this process finds to the command that started it.
pub(crate) struct Findings(std::io::Stdout);

impl Findings {
    pub(crate) fn new() -> Findings {
        Findings(std::io::stdout())
    }

    /// Runs a check and sends its finding; returns whether it passed.
    pub(crate) fn check(
        &mut self,
        name: impl Into<String>,
        check: impl FnOnce() -> Result<Seen>,
    ) -> bool {
        self.attempt(name, || Ok(((), check()?))).is_ok()
    }

    /// Runs a check that makes something for later ones, and sends its finding.
    ///
    /// # Errors
    /// The failure of the check.
    pub(crate) fn attempt<T>(
        &mut self,
        name: impl Into<String>,
        check: impl FnOnce() -> Result<(T, Seen)>,
    ) -> Result<T> {
        let begin = Instant::now();
        let (made, verdict, seen) = match check() {
            Ok((made, seen)) => (Ok(made), FindingStatus::Passed, seen),
            Err(error) => {
                let note = error.to_string();
                (Err(error), FindingStatus::Failed, Seen::note(note))
            }
        };
        self.send(&Finding {
            check: name.into(),
            verdict,
            figure: seen.figure,
            note: seen.note,
            seconds: begin.elapsed().as_secs_f64(),
        });
        made
    }

    /// Sends that a check was not tried.
    pub(crate) fn skip(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.send(&Finding {
            check: name.into(),
            verdict: FindingStatus::Skipped,
            figure: None,
            note: why.into(),
            seconds: 0.0,
        });
    }

    fn send(&mut self, finding: &Finding) {
        match serde_json::to_string(finding) {
            Ok(json) => {
                let line = format!("{PREFIX}{json}\n");
                // A command that is gone reads nothing; its reaper ends this process.
                let _ = self.0.write_all(line.as_bytes());
            }
            Err(error) => log::error!("a finding is lost: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_three_digits() {
        let shown =
            [0.0, 8.0, 1.234, 45.67, 456.7, 1e-7, 2.5e7].map(|x| ThreeDigits(x).to_string());
        assert_eq!(shown, ["0", "8", "1.23", "45.7", "457", "1.0e-7", "2.5e7"]);
    }

    #[test]
    fn a_finding_comes_back_from_its_line() {
        let finding = Finding {
            check: "copy".to_owned(),
            verdict: FindingStatus::Failed,
            figure: Some(Figure {
                value: 1.5,
                unit: "GB/s".to_owned(),
            }),
            note: "byte 3 differs".to_owned(),
            seconds: 0.25,
        };
        let line = format!("{PREFIX}{}", serde_json::to_string(&finding).unwrap());
        assert_eq!(Finding::parse(line.as_bytes()), Some(finding.clone()));
        assert_eq!(finding.text(), "1.50 GB/s; byte 3 differs");
        assert_eq!(Finding::parse(b"a line of a library"), None);
    }
}
