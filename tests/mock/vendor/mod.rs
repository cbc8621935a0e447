//! Our tables beside the real headers, and the mock's exports beside what real clients need.
//!
//! The headers and libraries are those inside torch-npu wheels, which `tests/clients/vendor_wheels.sh` unpacks into a
//! temporary folder; `ADASUM_VENDOR_WHEELS` names it. Nothing of them is kept.

mod interface;
mod known;
mod symbols;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::generate::{from_headers, generate};
use interface::Interface;
use known::{Outcome, Wheel};

/// The folder of one unpacked wheel.
fn folder(wheel: &Wheel) -> PathBuf {
    let all = std::env::var_os("ADASUM_VENDOR_WHEELS")
        .expect("ADASUM_VENDOR_WHEELS: the folder that tests/clients/vendor_wheels.sh filled");
    Path::new(&all).join(wheel.version).join("torch_npu")
}

fn theirs(wheel: &Wheel) -> Interface {
    let include = folder(wheel).join("include");
    let acl = include.join("third_party/acl/inc");
    let hccl = include.join("third_party/hccl/inc");
    let folders = [include, acl.clone(), hccl.clone()];
    // Ours declares in acl.h what the vendor's has in files of its own.
    let acl = ["acl.h", "acl_op_compiler.h", "acl_prof.h"].map(|name| acl.join("acl").join(name));
    Interface::read(&from_headers(&acl, &[hccl.join("hccl/hccl.h")], &folders))
}

fn ours() -> Interface {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Interface::read(&generate(root).map(|file| file.text))
}

/// The comparison of one kind of declaration with one wheel.
#[derive(Default)]
struct Tally {
    agree: usize,
    absent: usize,
    excepted: usize,
    notes: Vec<String>,
    unknown: Vec<String>,
}

fn compare(
    wheel: &Wheel,
    kind: &str,
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
) -> Tally {
    let mut tally = Tally::default();
    for (name, mine) in ours {
        let outcome = match theirs.get(name) {
            Some(their) if their == mine => {
                tally.agree += 1;
                continue;
            }
            Some(their) => Outcome::Differs(their),
            None => Outcome::Absent,
        };
        match (known::reason(wheel, name, &outcome), &outcome) {
            (Some(reason), Outcome::Absent) => {
                tally.absent += 1;
                tally
                    .notes
                    .push(format!("{kind} {name}: not there: {reason}"));
            }
            (Some(reason), Outcome::Differs(their)) => {
                tally.excepted += 1;
                tally
                    .notes
                    .push(format!("{kind} {name}: {their}, here {mine}: {reason}"));
            }
            (None, Outcome::Absent) => tally
                .unknown
                .push(format!("{kind} {name}: not there, here {mine}")),
            (None, Outcome::Differs(their)) => tally
                .unknown
                .push(format!("{kind} {name}: {their}, here {mine}")),
        }
    }
    tally
}

/// The vendor fact: functions, values and layouts are those of the headers of three generations of CANN.
#[test]
#[ignore = "needs torch-npu wheels: tests/clients/vendor_wheels.sh"]
fn tables_agree_with_the_vendors_headers() {
    let ours = ours();
    let mut notes = Vec::new();
    let mut unknown = Vec::new();
    println!("\nagree / not in that release / known difference / UNKNOWN DIFFERENCE");
    println!(
        "{:<14} {:<6} {:>18} {:>18} {:>18} {:>18}",
        "torch-npu", "CANN", "functions", "values", "sizes", "fields"
    );
    for wheel in &known::WHEELS {
        let theirs = theirs(wheel);
        let mut row = format!("{:<14} {:<6}", wheel.version, wheel.cann);
        for (kind, ours, theirs) in [
            ("function", &ours.functions, &theirs.functions),
            ("value", &ours.values, &theirs.values),
            ("size", &ours.layouts, &theirs.layouts),
            ("field", &ours.fields, &theirs.fields),
        ] {
            assert!(!ours.is_empty() && !theirs.is_empty(), "no {kind} was read");
            let tally = compare(wheel, kind, ours, theirs);
            let cell = format!(
                "{} / {} / {} / {}",
                tally.agree,
                tally.absent,
                tally.excepted,
                tally.unknown.len()
            );
            row += &format!(" {cell:>18}");
            let of_wheel = |line| format!("{:<14} {line}", wheel.version);
            notes.extend(tally.notes.into_iter().map(of_wheel));
            unknown.extend(tally.unknown.into_iter().map(of_wheel));
        }
        println!("{row}");
    }
    println!("\nnot there, or known to differ:\n{}", notes.join("\n"));
    assert!(
        unknown.is_empty(),
        "not in the vendor's headers as in csrc/cann, and neither a comment there (the first release with it) nor \
         tests/mock/vendor/known.rs says why:\n{}",
        unknown.join("\n")
    );
}

/// Whether a wheel can be loaded at all: every library is bound at once, so one missing symbol fails its import.
#[test]
#[ignore = "needs torch-npu wheels: tests/clients/vendor_wheels.sh"]
fn the_mock_has_the_symbols_of_real_clients() {
    symbols::check();
}
