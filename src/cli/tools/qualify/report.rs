//! What came of all stages, for people and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::cli::tools::qualify::findings::{Finding, Verdict};
use crate::cli::tools::qualify::job::Outcome;

/// A line for a stage: "passed   memory           2.1 s  what it shows".
pub(crate) fn line(outcome: &Outcome) -> String {
    let (verdict, stage) = (outcome.verdict.name(), outcome.stage);
    let line = format!("{verdict:<8} {:<15}", stage.name);
    match (outcome.verdict, outcome.notes.first()) {
        (Verdict::Skipped, Some(why)) => format!("{line}         {why}"),
        _ => format!("{line}{:6.1} s  {}", outcome.seconds, stage.about),
    }
}

/// What did not pass in a stage, a line each.
pub(crate) fn faults(outcome: &Outcome) -> Vec<String> {
    if outcome.verdict != Verdict::Failed {
        return Vec::new();
    }
    let failed = outcome.findings.iter();
    let failed = failed.filter(|(_, finding)| finding.verdict == Verdict::Failed);
    let lines =
        failed.map(|(rank, finding)| format!("rank {rank}: {}: {}", finding.check, finding.text()));
    lines.chain(outcome.notes.iter().cloned()).collect()
}

/// The verdict in a sentence, and whether all passed that were asked for.
pub(crate) fn summary(outcomes: &[Outcome]) -> (String, bool) {
    let names = |verdict| -> Vec<&str> {
        let with = outcomes.iter().filter(|outcome| outcome.verdict == verdict);
        with.map(|outcome| outcome.stage.name).collect()
    };
    let mut parts = Vec::new();
    for verdict in [Verdict::Failed, Verdict::Skipped] {
        let names = names(verdict);
        if !names.is_empty() {
            parts.push(format!("{}: {}", verdict.name(), names.join(", ")));
        }
    }
    match parts.is_empty() {
        true => ("all stages passed".to_owned(), true),
        false => {
            let is_fine = |o: &Outcome| o.verdict == Verdict::Passed || !o.is_asked_for;
            (parts.join("; "), outcomes.iter().all(is_fine))
        }
    }
}

/// Every stage with every finding.
pub(crate) fn as_text(outcomes: &[Outcome]) -> String {
    let mut text = format!("adasum-run {} qualify\n", env!("CARGO_PKG_VERSION"));
    for outcome in outcomes {
        let _ = writeln!(text, "\n{}", line(outcome));
        for (rank, finding) in &outcome.findings {
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
        for note in &outcome.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    let _ = writeln!(text, "\n{}", summary(outcomes).0);
    text
}

/// `{"version", "passed", "stages": [{"stage", "verdict", "seconds", "checks": [{"rank", "check", ...}], "notes"}]}`.
pub(crate) fn as_json(outcomes: &[Outcome]) -> Value {
    let check = |(rank, finding): &(u32, Finding)| {
        let mut value = json!(finding);
        value["rank"] = json!(rank);
        value
    };
    let stage = |outcome: &Outcome| {
        json!({
            "stage": outcome.stage.name,
            "about": outcome.stage.about,
            "verdict": outcome.verdict,
            "seconds": outcome.seconds,
            "checks": outcome.findings.iter().map(check).collect::<Vec<Value>>(),
            "notes": outcome.notes,
        })
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "passed": summary(outcomes).1,
        "stages": outcomes.iter().map(stage).collect::<Vec<Value>>(),
    })
}
