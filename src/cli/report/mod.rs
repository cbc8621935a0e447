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

use crate::cli::io::{failed, save};
use crate::cli::report::chart::Chart;
use crate::cli::report::times::Pace;
use crate::error::{Error, Result};
use crate::reduce::STATISTICS_VARIABLE;

/// Records in a run that more names have are not drawn.
const CHARTS: usize = 24;

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
    /// Makes the folder and removes records of an earlier run of `ranks`.
    ///
    /// # Errors
    /// If it cannot be made or an old file stays.
    pub(crate) fn prepare(path: &Path, ranks: impl Iterator<Item = u32>) -> Result<Folder> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::invalid(format!("--report {}: {error}", path.display()))
        };
        std::fs::create_dir_all(path).map_err(|error| failed(&error))?;
        let path = std::path::absolute(path).map_err(|error| failed(&error))?;
        let ranks: BTreeSet<u32> = ranks.collect();
        let records = ranks
            .iter()
            .map(|rank| path.join(format!("rank_{rank}.jsonl")));
        let of_worlds = std::fs::read_dir(&path).map_err(|error| failed(&error))?;
        let of_worlds = of_worlds.flatten().map(|entry| entry.path());
        let of_worlds =
            of_worlds.filter(|path| times::rank_of(path).is_some_and(|rank| ranks.contains(&rank)));
        for file in records.chain(of_worlds) {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(&error));
                }
                _ => {}
            }
        }
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
        let (mut charts, paces) = history::read(&self.path)?;
        charts.truncate(CHARTS);
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
        let json =
            serde_json::to_string_pretty(&whole).map_err(|error| failed("report.json", error))?;
        save(&self.path.join("report.json"), &format!("{json}\n"))?;
        save(
            &self.path.join("index.html"),
            &page::page(title, &facts, &charts),
        )?;
        Ok(charts)
    }

    /// The path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
