//! The results of all stages, for people and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::cli::tools::qualify::findings::{Finding, FindingStatus};
use crate::cli::tools::qualify::job::StageResult;

/// A line for a stage: "passed   memory           2.1 s  what it shows".
pub(crate) fn line(result: &StageResult) -> String {
    let (verdict, stage) = (result.verdict.name(), result.stage);
    let line = format!("{verdict:<8} {:<15}", stage.name);
    match (result.verdict, result.notes.first()) {
        (FindingStatus::Skipped, Some(why)) => format!("{line}         {why}"),
        _ => format!("{line}{:6.1} s  {}", result.seconds, stage.about),
    }
}

/// What did not pass in a stage, a line each.
pub(crate) fn faults(result: &StageResult) -> Vec<String> {
    if result.verdict != FindingStatus::Failed {
        return Vec::new();
    }
    let failed = result.findings.iter();
    let failed = failed.filter(|(_, finding)| finding.verdict == FindingStatus::Failed);
    let lines =
        failed.map(|(rank, finding)| format!("rank {rank}: {}: {}", finding.check, finding.text()));
    lines.chain(result.notes.iter().cloned()).collect()
}

/// The verdict in a sentence, and whether all passed that were asked for.
pub(crate) fn summary(results: &[StageResult]) -> (String, bool) {
    let names = |verdict| -> Vec<&str> {
        let with = results.iter().filter(|result| result.verdict == verdict);
        with.map(|result| result.stage.name).collect()
    };
    let mut parts = Vec::new();
    for verdict in [FindingStatus::Failed, FindingStatus::Skipped] {
        let names = names(verdict);
        if !names.is_empty() {
            parts.push(format!("{}: {}", verdict.name(), names.join(", ")));
        }
    }
    match parts.is_empty() {
        true => ("all stages passed".to_owned(), true),
        false => {
            let is_fine = |o: &StageResult| o.verdict == FindingStatus::Passed || !o.is_asked_for;
            (parts.join("; "), results.iter().all(is_fine))
        }
    }
}

/// Every stage with every finding.
pub(crate) fn as_text(results: &[StageResult]) -> String {
    let mut text = format!("adasum-run {} qualify\n", env!("CARGO_PKG_VERSION"));
    for result in results {
        let _ = writeln!(text, "\n{}", line(result));
        for (rank, finding) in &result.findings {
            let Finding { check, verdict, .. } = finding;
            let seen = finding.text();
            let colon = if seen.is_empty() { "" } else { ": " };
            let _ = writeln!(
                text,
                "  {:<8} r{rank} {:8.3} s  {check}{colon}{seen}",
                verdict.name(),
                finding.seconds
            );
        }
        for note in &result.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    let _ = writeln!(text, "\n{}", summary(results).0);
    text
}

/// `{"version", "passed", "stages": [{"stage", "verdict", "seconds", "checks": [{"rank", "check", ...}], "notes"}]}`.
pub(crate) fn as_json(results: &[StageResult]) -> Value {
    let check = |(rank, finding): &(u32, Finding)| {
        let mut value = json!(finding);
        value["rank"] = json!(rank);
        value
    };
    let stage = |result: &StageResult| {
        json!({
            "stage": result.stage.name,
            "about": result.stage.about,
            "verdict": result.verdict,
            "seconds": result.seconds,
            "checks": result.findings.iter().map(check).collect::<Vec<Value>>(),
            "notes": result.notes,
        })
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "passed": summary(results).1,
        "stages": results.iter().map(stage).collect::<Vec<Value>>(),
    })
}
