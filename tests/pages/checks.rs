//! What `.ci/run` starts: no test that is ignored is forgotten, and no filter there has lost its tests.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::rust_files;

/// The names of this program's tests, or of those that are ignored.
pub(super) fn tests(more: &[&str]) -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).arg("--list").args(more).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_owned).collect()
}

/// The text of all Rust sources below a folder of the repository.
fn sources(folder: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = rust_files(&folder).into_iter();
    files
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// The filters behind these words on the lines of `.ci/run` that start tests and hold `option`.
fn filters(words: &str, option: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = fs::read_to_string(root.join(".ci/run")).unwrap();
    let script = script.replace("\\\n", " ");
    let lines = script.lines().filter(|line| line.contains(option));
    let rest = lines.filter_map(|line| line.split_once(words));
    let filters = rest.filter_map(|(_, rest)| {
        let mut words = rest.split_whitespace();
        words.find(|word| !word.starts_with('-'))
    });
    filters.map(str::to_owned).collect()
}

#[test]
fn every_ignored_test_is_started_somewhere() {
    // Without an option with this word a line leaves them out.
    let (started, sources) = (filters("--test it ", "ignored"), sources("tests"));
    let ignored = tests(&["--ignored"]);
    assert!(ignored.len() > 10, "{ignored:?}");
    for name in ignored {
        let by_a_test = sources.contains(&format!("\"{name}\""));
        let by_the_script = started.iter().any(|filter| name.contains(filter.as_str()));
        assert!(by_a_test || by_the_script, "nothing starts {name}");
    }
}

#[test]
fn every_filter_has_tests() {
    let all = tests(&["--include-ignored"]);
    for filter in filters("--test it ", "") {
        let found = all.iter().any(|name| name.contains(&filter));
        assert!(found, ".ci/run starts {filter}, which no test is called");
    }
    let library = sources("src");
    for filter in filters("--lib ", "") {
        let found = match filter.strip_suffix("::") {
            Some(module) => Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("src")
                .join(module)
                .is_dir(),
            None => library.contains(&format!("fn {filter}(")),
        };
        assert!(found, ".ci/run starts {filter}, which no test is called");
    }
}
