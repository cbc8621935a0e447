//! The findings of the doctor, as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Ok,
    /// Not checked, and why.
    Skipped,
    /// It will probably work, but somebody should look.
    Warning,
    Failed,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Skipped => "skipped",
            Verdict::Warning => "warning",
            Verdict::Failed => "failed",
        }
    }
}

/// One subject that was looked at.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    /// What was found, a sentence each.
    pub(crate) lines: Vec<String>,
    /// The finding as data, where there is more than sentences.
    pub(crate) data: Value,
}

impl Check {
    pub(crate) fn new(name: &'static str) -> Self {
        Check {
            name,
            verdict: Verdict::Ok,
            lines: Vec::new(),
            data: Value::Null,
        }
    }

    pub(crate) fn skipped(name: &'static str, reason: &str) -> Self {
        let mut check = Check::new(name);
        check.verdict = Verdict::Skipped;
        check.lines.push(reason.to_owned());
        check
    }

    pub(crate) fn failed(name: &'static str, reason: impl ToString) -> Self {
        let mut check = Check::new(name);
        check.fail(reason.to_string());
        check
    }

    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    pub(crate) fn warn(&mut self, line: impl Into<String>) {
        self.worsen(Verdict::Warning, line.into());
    }

    pub(crate) fn fail(&mut self, line: impl Into<String>) {
        self.worsen(Verdict::Failed, line.into());
    }

    fn worsen(&mut self, verdict: Verdict, line: String) {
        self.verdict = self.verdict.max(verdict);
        self.lines.push(format!("{}: {line}", verdict.name()));
    }
}

/// A block for each check, then the verdict in one line.
pub(crate) fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let mut lines = check.lines.iter();
        let first = lines.next().map_or("", String::as_str);
        let (verdict, name) = (check.verdict.name(), check.name);
        let _ = writeln!(text, "{verdict:<8} {name:<11} {first}");
        for line in lines {
            let _ = writeln!(text, "{:<20} {line}", "");
        }
    }
    let _ = writeln!(text, "{}", summary(checks));
    text
}

fn summary(checks: &[Check]) -> String {
    let names = |verdict| -> Vec<&str> {
        let with = checks.iter().filter(|check| check.verdict == verdict);
        with.map(|check| check.name).collect()
    };
    let mut parts = Vec::new();
    for verdict in [Verdict::Failed, Verdict::Warning, Verdict::Skipped] {
        let names = names(verdict);
        if !names.is_empty() {
            parts.push(format!("{}: {}", verdict.name(), names.join(", ")));
        }
    }
    if parts.is_empty() {
        return "all is well".to_owned();
    }
    parts.join("; ")
}

/// `{"verdict": ..., "checks": {name: {"verdict", "lines", "data"}}}`.
pub(crate) fn as_json(checks: &[Check]) -> Value {
    let worst = checks.iter().map(|check| check.verdict).max();
    let mut by_name = serde_json::Map::new();
    for check in checks {
        by_name.insert(
            check.name.replace([' ', '-'], "_"),
            json!({"verdict": check.verdict.name(), "lines": check.lines, "data": check.data}),
        );
    }
    json!({"verdict": worst.unwrap_or(Verdict::Ok).name(), "checks": by_name})
}
