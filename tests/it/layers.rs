//! Imports run one way: each module of the crate may use only those in its row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may import of ours; everything may use `error`.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("error", &[]),
    ("cache", &[]),
    ("variables", &[]),
    ("plan", &[]),
    ("topo", &[]),
    ("sys", &["cache"]),
    ("ascend", &["sys"]),
    ("kernel", &["ascend", "cache", "sys"]),
    ("reduce", &["plan", "kernel", "ascend", "topo"]),
    ("ffi", &["reduce", "topo", "plan", "ascend"]),
    (
        "cli",
        &[
            "reduce",
            "topo",
            "plan",
            "kernel",
            "ascend",
            "cache",
            "sys",
            "variables",
        ],
    ),
    ("bin", &["cli"]),
];

/// Modules that may hold `unsafe`.
const UNSAFE: [&str; 4] = ["sys", "ascend", "kernel", "ffi"];

fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(&root).unwrap();
                let module = inside
                    .components()
                    .next()
                    .unwrap()
                    .as_os_str()
                    .to_str()
                    .unwrap();
                files.push((module.trim_end_matches(".rs").to_owned(), path.clone()));
            }
        }
    }
    files
}

/// The modules of the crate that a source names.
fn imports(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for prefix in ["crate::", "adasum::"] {
        for (at, _) in source.match_indices(prefix) {
            let line = source[..at].rsplit('\n').next().unwrap_or("");
            if line.trim_start().starts_with("//") {
                continue;
            }
            let rest = &source[at + prefix.len()..];
            if let Some(list) = rest.strip_prefix('{') {
                // `use crate::{a::X, b}`: the names at the outer level.
                let mut depth = 0;
                let mut name = String::new();
                for character in list.chars() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            found.insert(first_word(&name));
                            name.clear();
                        }
                        _ if depth == 0 => name.push(character),
                        _ => {}
                    }
                }
                found.insert(first_word(&name));
            } else {
                found.insert(first_word(rest));
            }
        }
    }
    found
}

fn first_word(text: &str) -> String {
    text.trim()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

#[test]
fn imports_run_one_way() {
    let allowed: BTreeMap<_, _> = ALLOWED.into_iter().collect();
    let mut wrong = Vec::new();
    for (module, path) in sources() {
        if module == "lib" {
            continue;
        }
        let row = allowed
            .get(module.as_str())
            .unwrap_or_else(|| panic!("{module} has no row in the table of layers"));
        for import in imports(&fs::read_to_string(&path).unwrap()) {
            let ours = allowed.contains_key(import.as_str());
            if ours && import != module && import != "error" && !row.contains(&import.as_str()) {
                wrong.push(format!("{} imports {import}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unsafe_stays_in_the_modules_that_wrap_c() {
    let mut wrong = Vec::new();
    for (module, path) in sources() {
        let code = fs::read_to_string(&path).unwrap();
        let has_unsafe = code.lines().any(|line| {
            let line = line.trim_start();
            !line.starts_with("//") && line.contains("unsafe ") && !line.contains("unsafe_")
        });
        if has_unsafe && !UNSAFE.contains(&module.as_str()) {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The scanner itself: an import that it would miss is a hole in the wall.
#[test]
fn imports_are_found_in_every_form() {
    let source = "use crate::sys::acl;\nuse crate::{plan::{Plan, check}, topo};\nlet x = crate::kernel::f();\n// crate::cli\nuse adasum::ascend;";
    let expected = ["ascend", "kernel", "plan", "sys", "topo"];
    assert_eq!(imports(source), expected.map(str::to_owned).into());
}
