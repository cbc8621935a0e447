//! Imports run one way, as docs/architecture.md draws them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::rust_files;

/// Modules that may hold `unsafe`.
const UNSAFE: [&str; 4] = ["sys", "ascend", "kernel", "ffi"];

/// Each source of the library, with the module that it is of.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = rust_files(&root).into_iter().map(|path| {
        let inside = path.strip_prefix(&root).unwrap().components().next();
        let module = inside.unwrap().as_os_str().to_str().unwrap();
        (module.trim_end_matches(".rs").to_owned(), path)
    });
    files.collect()
}

/// The rows `name -> names` of the drawing in docs/architecture.md whose fence says `drawing`.
fn drawn(drawing: &str) -> BTreeMap<String, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let page = fs::read_to_string(page).unwrap();
    let fence = format!("```text {drawing}\n");
    let start = page.find(&fence).expect("the drawing") + fence.len();
    let end = start + page[start..].find("```").unwrap();
    let rows = page[start..end].lines().map(|row| {
        let (name, names) = row.split_once("->").expect("name -> names");
        let names = names.split_whitespace().map(str::to_owned).collect();
        (name.trim().to_owned(), names)
    });
    rows.collect()
}

/// What a source names behind `crate::` or `adasum::`, as far as each path goes.
fn imports(source: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for prefix in ["crate::", "adasum::"] {
        for (at, _) in source.match_indices(prefix) {
            let line = source[..at].rsplit('\n').next().unwrap_or("");
            if !line.trim_start().starts_with("//") {
                walk(&source[at + prefix.len()..], &[], &mut found);
            }
        }
    }
    found
}

/// Reads one path, or the paths of `{…}`; returns how many bytes they took.
fn walk(text: &str, before: &[String], found: &mut BTreeSet<Vec<String>>) -> usize {
    let skipped = text.len() - text.trim_start().len();
    let rest = &text[skipped..];
    if let Some(list) = rest.strip_prefix('{') {
        let mut at = 0;
        loop {
            at += walk(&list[at..], before, found);
            let left = &list[at..];
            let next = left.find([',', '}']).expect("a list that ends");
            at += next + 1;
            if left.as_bytes()[next] == b'}' {
                return skipped + 1 + at;
            }
        }
    }
    let word: String = rest
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let mut path = before.to_vec();
    if !word.is_empty() {
        path.push(word.clone());
    }
    match rest[word.len()..].strip_prefix("::") {
        Some(further) => skipped + word.len() + 2 + walk(further, &path, found),
        None => {
            if !path.is_empty() {
                found.insert(path);
            }
            skipped + word.len()
        }
    }
}

#[test]
fn imports_run_one_way() {
    let allowed = drawn("modules");
    let mut wrong = Vec::new();
    for (module, path) in sources() {
        if module == "lib" {
            continue;
        }
        let row = allowed
            .get(&module)
            .unwrap_or_else(|| panic!("{module} is not in the drawing"));
        for import in imports(&fs::read_to_string(&path).unwrap()) {
            let import = &import[0];
            let free = import == "error" || *import == module || row.contains(import);
            if allowed.contains_key(import) && !free {
                wrong.push(format!("{} imports {import}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_no_circle(&allowed);
}

#[test]
fn reduce_has_walls() {
    assert_walls("reduce");
}

#[test]
fn cli_has_walls() {
    assert_walls("cli");
}

/// The rooms of `module` import one another as its drawing says, and neither they nor its files do so in a circle.
fn assert_walls(module: &str) {
    let allowed = drawn(module);
    assert_no_circle(&allowed);
    let sources: BTreeMap<String, String> = sources()
        .into_iter()
        .filter(|(name, _)| name == module)
        .map(|(_, path)| (name_in(module, &path), fs::read_to_string(&path).unwrap()))
        .collect();
    let mut files = BTreeMap::new();
    let mut wrong = Vec::new();
    for (file, source) in &sources {
        // Other ways to name a module would not be seen below. Tests name what is above them.
        let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        if code.contains("super::") && !file.ends_with("/tests") {
            wrong.push(format!("{file} names a module by super::"));
        }
        let mut named = BTreeSet::new();
        for import in imports(code) {
            if import[0] != module {
                continue;
            }
            let longest = (1..import.len())
                .rev()
                .map(|len| import[1..=len].join("/"))
                .find(|name| sources.contains_key(name));
            let Some(other) = longest.filter(|other| other != file) else {
                continue;
            };
            let [room, other_room] =
                [file, &other].map(|name| name.split('/').next().unwrap().to_owned());
            let row = allowed
                .get(&room)
                .unwrap_or_else(|| panic!("{room} is not in the drawing"));
            if room != other_room && !row.contains(&other_room) {
                wrong.push(format!("{file} imports {other}"));
            }
            named.insert(other);
        }
        files.insert(file.clone(), named);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(files.len() > 20, "{files:?}");
    assert_no_circle(&files);
}

/// `reduce/world/part.rs` is world/part in `reduce`, `reduce/world/mod.rs` is world.
fn name_in(module: &str, path: &Path) -> String {
    let name = path.with_extension("");
    let name = name.to_str().unwrap();
    let name = name.rsplit_once(&format!("/src/{module}/")).unwrap().1;
    name.strip_suffix("/mod").unwrap_or(name).to_owned()
}

fn assert_no_circle(arrows: &BTreeMap<String, BTreeSet<String>>) {
    let mut left = arrows.clone();
    while !left.is_empty() {
        let free: Vec<String> = left
            .iter()
            .filter(|(_, to)| to.iter().all(|to| !left.contains_key(to)))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!free.is_empty(), "a circle among {:?}", left.keys());
        for name in free {
            left.remove(&name);
        }
    }
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
    let source = "use crate::sys::acl;\nuse crate::{plan::{Plan, check}, topo};\nlet x = crate::kernel::f();\n\
                  // crate::cli\nuse adasum::ascend;";
    let expected = [
        "ascend",
        "kernel::f",
        "plan::Plan",
        "plan::check",
        "sys::acl",
        "topo",
    ];
    let found: Vec<String> = imports(source).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, expected);
}
