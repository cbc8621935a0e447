//! The report of a run: what its ranks recorded, as pictures, CSV, JSON and one page that shows all of it.
//!
//! `history` reads the records, `times` when steps and reductions ran, `chart` (with `axis`) draws lines, `page` writes
//! `index.html`; `trace` writes timelines. Who runs the ranks prepares the
//! folder, gives them its name and writes the report when they have ended.

mod axis;
pub(crate) mod chart;
pub(crate) mod history;
mod page;
pub(crate) mod svg;
mod times;
pub(crate) mod trace;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::io::{self, failed, notice, save};
use crate::cli::report::chart::Chart;
use crate::cli::report::history::History;
use crate::cli::report::times::Pace;
use crate::error::{Context, Error, Result, quote};
use crate::reduce::STATISTICS_VARIABLE;

/// The file that shows all.
const PAGE: &str = "index.html";

/// A folder for a report.
pub(crate) struct Folder {
    path: PathBuf,
}

/// The object of `report.json`: what the command says, then the lines of all pictures.
#[derive(Serialize)]
struct Whole<'a, T: Serialize> {
    #[serde(flatten)]
    head: &'a T,
    charts: &'a [Chart],
    /// How long the steps of each run took.
    #[serde(skip_serializing_if = "<[Pace]>::is_empty")]
    paces: &'a [Pace],
}

impl Folder {
    /// Makes the folder and removes records of an earlier run: those of `ranks`, which are started here, and of ranks that a world
    /// of `world` does not have. The others are those of launchers elsewhere.
    ///
    /// # Errors
    /// If it cannot be made, an old file stays, or the page cannot be written.
    pub(crate) fn prepare(
        path: &Path,
        ranks: impl Iterator<Item = u32>,
        world: u32,
    ) -> Result<Folder> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::invalid(format!("--report {}: {error}", path.display()))
        };
        std::fs::create_dir_all(path).map_err(|error| failed(&error))?;
        let path = std::path::absolute(path).map_err(|error| failed(&error))?;
        let ranks: BTreeSet<u32> = ranks.collect();
        let is_old = |path: &PathBuf| {
            let rank = history::rank_of(path).or_else(|| times::rank_of(path));
            rank.is_some_and(|rank| rank >= world || ranks.contains(&rank))
        };
        let entries = std::fs::read_dir(&path).map_err(|error| failed(&error))?;
        let paths = entries.flatten().map(|entry| entry.path());
        for file in paths.filter(is_old) {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(&error));
                }
                _ => {}
            }
        }
        io::check_place(&path.join(PAGE)).context(|| "--report")?;
        Ok(Folder { path })
    }

    /// The variable that has a rank record.
    pub(crate) fn variable(&self) -> (&'static str, OsString) {
        (STATISTICS_VARIABLE, self.path.clone().into_os_string())
    }

    /// Writes all files; returns the charts that the records gave.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(crate) fn write(
        &self,
        title: &str,
        facts: &[(String, String)],
        head: &impl Serialize,
    ) -> Result<Vec<Chart>> {
        let History {
            charts,
            paces,
            left_out,
        } = history::read(&self.path)?;
        for chart in &charts {
            let file = |ending: &str| self.path.join(format!("{}.{ending}", chart.name));
            save(&file("csv"), &chart.csv())?;
            save(&file("svg"), &chart.draw().file())?;
        }
        let whole = Whole {
            head,
            charts: &charts,
            paces: &paces,
        };
        let mut facts = facts.to_vec();
        facts.extend(paces.iter().map(|pace| {
            let name = match pace.run.as_str() {
                "" => "a step".to_owned(),
                run => format!("a step of {run}"),
            };
            (name, pace.text())
        }));
        if !left_out.is_empty() {
            let text = listed(&left_out);
            notice(&format!("report: too many values, not drawn are {text}"));
            facts.push(("values not drawn".to_owned(), text));
        }
        let json =
            serde_json::to_string_pretty(&whole).map_err(|error| failed("report.json", error))?;
        save(&self.path.join("report.json"), &format!("{json}\n"))?;
        save(&self.path.join(PAGE), &page::page(title, &facts, &charts))?;
        Ok(charts)
    }

    /// The path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// How many names, and the first of them.
fn listed(names: &[String]) -> String {
    const LISTED: usize = 16;
    let shown: Vec<String> = names.iter().take(LISTED).map(quote).collect();
    let more = if names.len() > LISTED { ", ..." } else { "" };
    format!("{}: {}{more}", names.len(), shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::TemporaryFolder;

    #[test]
    fn records_of_ranks_that_are_no_more_are_removed() {
        let scratch = TemporaryFolder::new("adasum-report-test").unwrap();
        let names = |kind: &str| [0, 1, 2, 3, 9].map(|rank| format!("{kind}_{rank}"));
        let records = names("rank").map(|name| format!("{name}.jsonl"));
        let of_worlds = names("steps").map(|name| format!("{name}.7.jsonl"));
        let others = ["rank_x.jsonl", "report.json"].map(str::to_owned);
        for name in records.iter().chain(&of_worlds).chain(&others) {
            std::fs::write(scratch.path().join(name), b"").unwrap();
        }
        Folder::prepare(scratch.path(), 0..2, 3).unwrap();
        let entries = std::fs::read_dir(scratch.path()).unwrap().flatten();
        let left: BTreeSet<_> = entries.map(|entry| entry.file_name()).collect();
        let wanted = [
            "rank_2.jsonl",
            "rank_x.jsonl",
            "report.json",
            "steps_2.7.jsonl",
        ];
        assert_eq!(left, wanted.map(OsString::from).into());
    }
}
