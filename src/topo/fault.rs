//! What is wrong with a rank table, fault by fault, each with its place in the file.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;

use super::RankTable;
use crate::error::{Error, ErrorKind};

/// The most faults of a table that are kept; the rest are counted.
const KEPT: usize = 1000;

/// What sort of rule a table breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// The file cannot be read, is not UTF-8 or not JSON; nothing else is known of it.
    Unreadable,
    /// A field that must be there is not.
    Missing,
    /// A value is of a wrong type, out of range or contradicts another.
    Wrong,
    /// A version that is not read here.
    Unsupported,
    /// `status` says that the table is not complete yet.
    Unfinished,
}

/// One fault, or one remark, about a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What sort of rule is broken.
    pub kind: FaultKind,
    /// Line of the file, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// Byte of the line, from 1; 0 if the file as a whole is meant.
    pub column: usize,
    /// Path of the field, as in `server_list[1].device[3].rank_id`; empty for the whole document.
    pub field: String,
    /// What is wrong, one line in lower case.
    pub message: String,
}

impl fmt::Display for Fault {
    /// `line:column: field: message`, without the parts that are not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// All that a check found out about a table.
#[derive(Debug)]
pub struct TableReport {
    pub(super) file: String,
    pub(super) faults: Vec<Fault>,
    pub(super) unlisted: usize,
    pub(super) warnings: Vec<Fault>,
    pub(super) table: Option<RankTable>,
}

impl TableReport {
    /// What must be corrected, in the order of the file.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The number of faults that [`TableReport::faults`] leaves out: it holds the first thousand that were found.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// What HCCL takes, but probably nobody meant.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }

    /// The table, if it has no fault.
    pub fn table(&self) -> Option<&RankTable> {
        self.table.as_ref()
    }

    /// `fault` as one line with the file's name, as compilers write it.
    pub fn line(&self, fault: &Fault) -> String {
        let separator = if fault.line > 0 { ":" } else { ": " };
        format!("{}{separator}{fault}", self.file)
    }

    /// The table, or its first fault.
    pub(super) fn into_table(self) -> crate::Result<RankTable> {
        if let Some(table) = self.table {
            return Ok(table);
        }
        let Some(first) = self.faults.first() else {
            let message = format!("{}: no table and no fault", self.file);
            return Err(Error::new(ErrorKind::InvalidState, message));
        };
        let kind = match first.kind {
            FaultKind::Unsupported => ErrorKind::Unsupported,
            _ => ErrorKind::InvalidArgument,
        };
        let more = match self.faults.len() - 1 + self.unlisted {
            0 => String::new(),
            1 => " (and 1 more fault)".to_owned(),
            more => format!(" (and {more} more faults)"),
        };
        Err(Error::new(kind, format!("{}{more}", self.line(first))))
    }
}

/// Collects faults while a table is read.
#[derive(Default)]
pub(super) struct Faults {
    found: RefCell<Vec<(usize, Fault)>>,
    unlisted: RefCell<usize>,
    warnings: RefCell<Vec<(usize, Fault)>>,
}

impl Faults {
    /// Notes a fault at byte `offset` of the text; lines are counted later.
    pub(super) fn add(&self, kind: FaultKind, offset: usize, field: String, message: String) {
        if self.found.borrow().len() < KEPT {
            push(&self.found, kind, offset, field, message);
        } else {
            *self.unlisted.borrow_mut() += 1;
        }
    }

    pub(super) fn warn(&self, offset: usize, field: String, message: String) {
        if self.warnings.borrow().len() < KEPT {
            push(&self.warnings, FaultKind::Wrong, offset, field, message);
        }
    }

    /// Number of faults so far.
    pub(super) fn count(&self) -> usize {
        self.found.borrow().len() + *self.unlisted.borrow()
    }

    /// (faults, unlisted, warnings), in the order of the text.
    pub(super) fn finish(self, text: &str) -> (Vec<Fault>, usize, Vec<Fault>) {
        let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let placed = |list: RefCell<Vec<(usize, Fault)>>| {
            let mut list = list.into_inner();
            list.sort_by_key(|(offset, _)| *offset);
            let place = |(offset, mut fault): (usize, Fault)| {
                let before = lines.partition_point(|at| *at < offset);
                let start = before.checked_sub(1).map_or(0, |last| lines[last] + 1);
                fault.line = before + 1;
                fault.column = offset - start + 1;
                fault
            };
            list.into_iter().map(place).collect()
        };
        (
            placed(self.found),
            self.unlisted.into_inner(),
            placed(self.warnings),
        )
    }
}

fn push(
    list: &RefCell<Vec<(usize, Fault)>>,
    kind: FaultKind,
    offset: usize,
    field: String,
    message: String,
) {
    let fault = Fault {
        kind,
        line: 0,
        column: 0,
        field,
        message,
    };
    list.borrow_mut().push((offset, fault));
}
