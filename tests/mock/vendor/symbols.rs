//! The dynamic symbols that the libraries of real clients need, beside what the mock exports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::known::{WHEELS, Wheel};
use super::{folder, theirs};

/// Libraries of the vendor that the mock does not play. What needs one cannot be loaded, and no client loads it unasked.
const NOT_PLAYED: [&str; 2] = ["libatb.so", "libfmk_parser.so"];

/// Beginnings of the names of libraries that come with torch or the system.
const OF_OTHERS: [&str; 10] = [
    "libtorch",
    "libc10",
    "libstdc++",
    "libm.",
    "libgcc_s",
    "libpthread",
    "libdl.",
    "librt.",
    "libc.",
    "ld-linux",
];

/// Looked up by name when the client needs them, which it cannot do without.
const LOOKED_UP: [&str; 19] = [
    "aclGetCannAttribute",
    "aclGetCompileopt",
    "aclGetCompileoptSize",
    "aclSetCompileopt",
    "aclrtCreateEventWithFlag",
    "aclrtCtxSetSysParamOpt",
    "aclrtGetPrimaryCtxState",
    "aclrtGetSysParamOpt",
    "aclrtQueryEventStatus",
    "aclrtQueryEventWaitStatus",
    "aclrtSetDeviceSatMode",
    "aclrtSetOpExecuteTimeOut",
    "aclrtSetOpWaitTimeout",
    "aclrtSetSysParamOpt",
    "aclrtStreamGetId",
    "aclrtStreamQuery",
    "aclsysGetCANNVersion",
    "HcclCommInitRootInfoConfig",
    "HcclGetCommName",
];

pub(super) fn check() {
    let exported = exported();
    let mut missing = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut mentioned = BTreeSet::new();
    for wheel in &WHEELS {
        let Needs { symbols, libraries } = needs(wheel);
        mentioned.extend(functions_mentioned(wheel));
        let lacking: BTreeSet<String> = symbols.difference(&exported).cloned().collect();
        println!(
            "torch-npu {}: needs {} symbols and {} libraries of the vendor; the mock lacks {}: {}",
            wheel.version,
            symbols.len(),
            libraries.len(),
            lacking.len(),
            listed(&lacking)
        );
        assert!(symbols.contains("aclInit") && libraries.contains("libhccl.so"));
        for library in libraries {
            if !Path::new(env!("OUT_DIR")).join(&library).exists() {
                wrong.push(format!("{} needs {library}", wheel.version));
            }
        }
        missing.extend(lacking);
    }
    let looked_up: BTreeSet<String> = LOOKED_UP.into_iter().map(str::to_owned).collect();
    for name in looked_up.difference(&mentioned) {
        wrong.push(format!("{name}, which no wheel mentions"));
    }
    println!(
        "looked up by name and required: {} symbols; the mock lacks {}: {}",
        looked_up.len(),
        looked_up.difference(&exported).count(),
        listed(looked_up.difference(&exported))
    );
    missing.extend(looked_up.difference(&exported).cloned());
    let optional: BTreeSet<String> = &mentioned - &missing;
    println!(
        "looked up by name, with something else where they are missing: the mock lacks {}: {}",
        optional.difference(&exported).count(),
        listed(optional.difference(&exported))
    );

    wrong.extend(missing);
    assert!(wrong.is_empty(), "the mock lacks {}", wrong.join(", "));
}

fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().cloned().collect::<Vec<_>>().join(" ")
}

/// Functions of the wheel's headers whose names stand in its main library: linked, or looked up when they are needed.
fn functions_mentioned(wheel: &Wheel) -> BTreeSet<String> {
    let bytes = std::fs::read(folder(wheel).join("lib/libtorch_npu.so")).unwrap();
    let texts: BTreeSet<&[u8]> = bytes
        .split(|byte| *byte == 0)
        .filter(|text| text.starts_with(b"acl") || text.starts_with(b"Hccl"))
        .collect();
    let functions = theirs(wheel).functions.into_keys();
    functions
        .filter(|name| texts.contains(name.as_bytes()))
        .collect()
}

/// What a wheel needs of the vendor.
struct Needs {
    symbols: BTreeSet<String>,
    libraries: BTreeSet<String>,
}

fn needs(wheel: &Wheel) -> Needs {
    let mut found = Needs {
        symbols: BTreeSet::new(),
        libraries: BTreeSet::new(),
    };
    let files = libraries_below(&folder(wheel));
    let own: BTreeSet<String> = files
        .iter()
        .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    // A library that needs one that is left out is left out, too.
    let mut left_out: BTreeSet<String> = NOT_PLAYED.map(str::to_owned).into();
    let mut files: Vec<(PathBuf, BTreeSet<String>)> = files
        .into_iter()
        .map(|file| (file.clone(), needed(&file)))
        .collect();
    while let Some(at) = files
        .iter()
        .position(|(_, needed)| !needed.is_disjoint(&left_out))
    {
        let (file, _) = files.remove(at);
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        println!("torch-npu {}: without {name}", wheel.version);
        left_out.insert(name);
    }
    for (file, needed) in files {
        found.libraries.extend(needed.into_iter().filter(|name| {
            !own.contains(name) && !OF_OTHERS.iter().any(|other| name.starts_with(other))
        }));
        found.symbols.extend(
            names(&file, "--undefined-only")
                .into_iter()
                .filter(|name| is_the_vendors(name)),
        );
    }
    found
}

fn libraries_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(libraries_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "so") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// C functions of the vendor's interfaces and C++ of its namespace `ge`.
fn is_the_vendors(name: &str) -> bool {
    let capital_after = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    ["Hccl", "Hcom", "Msprof", "rt"]
        .into_iter()
        .any(capital_after)
        || (name.starts_with("acl") && name.contains(|letter: char| letter.is_ascii_uppercase()))
        || name.starts_with("_ZN2ge")
        || name.starts_with("_ZNK2ge")
}

fn exported() -> BTreeSet<String> {
    ["libascendcl.so", "libhccl.so"]
        .into_iter()
        .flat_map(|name| names(&Path::new(env!("OUT_DIR")).join(name), "--defined-only"))
        .collect()
}

fn names(library: &Path, which: &str) -> Vec<String> {
    let text = output(Command::new("nm").args(["-D", which]).arg(library));
    text.lines()
        .filter_map(|line| line.split_whitespace().next_back()?.split('@').next())
        .map(str::to_owned)
        .collect()
}

fn needed(library: &Path) -> BTreeSet<String> {
    let text = output(Command::new("readelf").arg("-d").arg(library));
    text.lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()))
        .collect()
}

fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
