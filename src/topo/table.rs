//! Reads a rank table and holds it to the rules that HCCL applies to one.
//!
//! The rules that need the hardware (device addresses of this machine, the number of devices) are left to HCCL.

use std::io::Read;
use std::path::Path;

use super::fault::{Fault, FaultKind, Faults, TableReport};
use super::field::{Field, warn_of_duplicates};
use super::product::Product;
use super::{RankTable, Section, Server, Version, json, legacy, rank_list, server_list};
use crate::error::{Error, Result, quote};

/// Largest file that is read: more than a hundred thousand devices.
const MAX_BYTES: u64 = 16 << 20;

/// The servers and sections of a table.
pub(super) struct Contents {
    /// Servers in the order of their ranks, the devices of each in the order of theirs.
    pub(super) servers: Vec<Server>,
    /// Superpods or groups.
    pub(super) sections: Vec<Section>,
}

/// Reads the file, refusing what is not a regular file of a sane size.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let name = display(path);
    let failed = |error| Error::invalid(format!("{name}: {error}"));
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        return Err(Error::invalid(format!("{name}: not a regular file")));
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // The limit holds for what is read, not for what the file claimed to be.
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        let limit = MAX_BYTES >> 20;
        return Err(Error::invalid(format!("{name}: larger than {limit} MiB")));
    }
    Ok(bytes)
}

/// A path as it stands in a message: on one line.
pub(super) fn display(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// Checks the table `bytes`, which is called `path`.
pub(super) fn check(path: &Path, bytes: &[u8], product: Product) -> TableReport {
    let mut report = TableReport {
        file: display(path),
        faults: Vec::new(),
        unlisted: 0,
        warnings: Vec::new(),
        table: None,
    };
    let parsed = json::text(bytes).and_then(|text| Ok((text, json::parse(text)?)));
    let (text, tree) = match parsed {
        Ok(parsed) => parsed,
        Err((line, column, message)) => {
            report.faults.push(Fault {
                kind: FaultKind::Unreadable,
                line,
                column,
                field: String::new(),
                message,
            });
            return report;
        }
    };
    let faults = Faults::default();
    let contents = document(&Field::root(&faults, &tree), product);
    let good = faults.count() == 0;
    (report.faults, report.unlisted, report.warnings) = faults.finish(text);
    if let Some((version, contents)) = contents.filter(|_| good) {
        report.table = Some(RankTable {
            path: path.to_owned(),
            version,
            servers: contents.servers,
            sections: contents.sections,
        });
    }
    report
}

fn document(root: &Field<'_>, product: Product) -> Option<(Version, Contents)> {
    if !root.is_object() {
        return None;
    }
    warn_of_duplicates(root);
    let version = version(root);
    check_status(root, version);
    let version = version?;
    let contents = match version {
        Version::Legacy => legacy::read(root, product),
        Version::V1_0 => server_list::read(root, false, product),
        Version::V1_2 => server_list::read(root, true, product),
        Version::V2_0 => rank_list::read(root),
    };
    Some((version, contents?))
}

fn version(root: &Field<'_>) -> Option<Version> {
    let Some(version) = root.find("version") else {
        if root.find("group_list").is_some() {
            return Some(Version::Legacy);
        }
        root.get("version");
        return None;
    };
    match version.text()? {
        "1.0" => Some(Version::V1_0),
        "1.2" => Some(Version::V1_2),
        "2.0" => Some(Version::V2_0),
        other => {
            let other = quote(other);
            version.fault(
                FaultKind::Unsupported,
                format!("{other} is not supported, only \"1.0\", \"1.2\", \"2.0\" and tables of groups without a version are"),
            );
            None
        }
    }
}

/// HCCL polls an unfinished table for half an hour; a launcher has nothing to wait for. In version 2.0 it may be left out.
fn check_status(root: &Field<'_>, version: Option<Version>) {
    let status = match version {
        Some(Version::V2_0) => root.find("status"),
        _ => root.get("status"),
    };
    let Some(status) = status else {
        return;
    };
    if let Some(text) = status.text()
        && text != "completed"
    {
        status.fault(
            FaultKind::Unfinished,
            format!("{}, but must be \"completed\"", quote(text)),
        );
    }
}
