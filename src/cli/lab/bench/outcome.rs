//! Benchmarks of reductions, from start to end: what they show and whether their results are right.

use std::io::Write;

use crate::cli::io::print;
use crate::cli::lab::bench::compare::{self, Against};
use crate::cli::lab::bench::measured::Measured;
use crate::cli::lab::bench::request::{Reduced, Request};
use crate::cli::lab::bench::{job, table};
use crate::cli::launch::job::End;
use crate::cli::report::trace::Trace;
use crate::cli::text::count;
use crate::error::{Error, ErrorKind, Result};

/// Measures and prints a table, or lines of JSON.
///
/// # Errors
/// If the ranks cannot be started, or a result is wrong.
pub(crate) fn run(what: Reduced, trace: Option<&Trace>, json: bool) -> Result<End> {
    let head = table::head(&what, None);
    let mut lines: Vec<Measured> = Vec::new();
    let end = job::run(&Request::Reduction(what), trace, &mut |line| {
        let measured: Measured = serde_json::from_slice(line)?;
        match json {
            true => pass_on(line)?,
            false => {
                let head = if lines.is_empty() { &*head } else { "" };
                let row = table::row(&measured, None);
                std::io::stdout().write_all(format!("{head}{row}").as_bytes())?;
            }
        }
        lines.push(measured);
        Ok(())
    })?;
    if end == End::Success {
        if !json {
            print(&table::foot(&lines))?;
        }
        judge(&lines)?;
    }
    Ok(end)
}

/// Measures in turn with another program and prints a table, or lines of JSON: those of both and those of the ratios.
///
/// # Errors
/// If the ranks or the other program cannot be started, the other program fails, or a result is wrong.
pub(crate) fn run_against(what: &Reduced, against: &Against<'_>, json: bool) -> Result<End> {
    let mut show = |line: &[u8]| match json {
        true => pass_on(line),
        false => Ok(()),
    };
    let (end, pairs) = compare::run(what, against, &mut show)?;
    if end != End::Success {
        return Ok(end);
    }
    let lines: Vec<Measured> = pairs.iter().map(|pair| pair.ours.clone()).collect();
    if json {
        for pair in &pairs {
            print(&format!("{}\n", pair.line(against.command)?))?;
        }
    } else {
        let rows = pairs.iter().map(|pair| table::row(&pair.ours, Some(pair)));
        let rows: String = rows.collect();
        let (head, foot) = (table::head(what, Some(against)), table::foot(&lines));
        print(&(head + &rows + &foot))?;
    }
    judge(&lines)?;
    Ok(end)
}

fn pass_on(line: &[u8]) -> std::io::Result<()> {
    std::io::stdout().write_all(&[line, b"\n"].concat())
}

/// # Errors
/// If elements are wrong.
fn judge(lines: &[Measured]) -> Result<()> {
    let wrong = |line: &&Measured| line.wrong.is_some_and(|wrong| wrong > 0);
    let sizes: Vec<String> = lines
        .iter()
        .filter(wrong)
        .map(|line| line.bytes.to_string())
        .collect();
    if sizes.is_empty() {
        return Ok(());
    }
    let elements: u64 = lines.iter().filter_map(|line| line.wrong).sum();
    Err(Error::new(
        ErrorKind::Mismatch,
        format!(
            "the result is wrong: {} of all ranks together {} not what double precision gives, with {} bytes",
            count(elements, "element"),
            if elements == 1 { "is" } else { "are" },
            sizes.join(", ")
        ),
    ))
}
