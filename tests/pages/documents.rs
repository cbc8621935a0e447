//! What a newcomer copies from the README and the tutorial runs, in order, in a fresh copy of the repository.
//!
//! Fenced blocks say by their language how they are held to what they promise:
//!
//! | block | check |
//! |---|---|
//! | `bash` | runs, after those before it on its page, in one folder |
//! | `bash ci` | takes too long here: `.ci/run` has each of its lines, perhaps with more options |
//! | `text` | the block that ran last printed its lines, numbers to one part in [`TOLERANCE`]; `...` stands for any |
//! | `text measured` | the same, but for numbers: they differ between machines and runs |
//! | `text shown` | shows what another test looks at |
//! | `rust FILE`, `cpp FILE`, `python FILE` | its lines are in FILE, which other tests build and run |
//! | `json FILE` | is what FILE holds |
//! | any other | must be in [`OTHERS`] |

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::checks::tests;
use crate::support::adasum_run::Folder;

/// Languages of blocks that show something and promise nothing.
const OTHERS: [&str; 1] = ["math"];

/// Numbers of a page and of a run agree to one part in so many: far less than what a change of the arithmetic would show, far
/// more than what compilers and processors change in losses after some epochs.
const TOLERANCE: f64 = 1e4;

struct Block {
    language: String,
    /// What follows the language.
    note: String,
    text: String,
    /// Of its first line, for messages.
    line: usize,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                let (language, note) = info.split_once(' ').unwrap_or((info, ""));
                open = Some(Block {
                    language: language.to_owned(),
                    note: note.to_owned(),
                    text: String::new(),
                    line: number + 2,
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block has no end");
    found
}

/// All pages of the repository.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let path = folder.join(&name);
            if entry.file_type().unwrap().is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                pages.push(path);
            }
        }
    }
    assert!(pages.len() > 10, "{} pages", pages.len());
    pages
}

/// Whether a line of the script is this command, perhaps with more options.
fn runs(script: &str, command: &str) -> bool {
    script.lines().any(|line| {
        let line = line.trim_start();
        let line = match line.strip_prefix("step \"") {
            Some(step) => step.split_once("\" ").map_or("", |(_, command)| command),
            None => line,
        };
        let rest = line.strip_prefix(command);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

/// The repository as cloned, but for what the commands write.
fn fresh_copy(folder: &Path) {
    for name in [
        "Cargo.toml",
        "README.md",
        "csrc",
        "docs",
        "examples",
        "include",
        "src",
        "tests",
    ] {
        std::os::unix::fs::symlink(root().join(name), folder.join(name)).unwrap();
    }
}

/// `cargo` without a build: it runs what is built already. Anything else than running is for `.ci/run`.
const CARGO: &str = r#"#!/bin/sh
set -eu
case "$1 $2 $3" in
"run --release --") shift 3; exec adasum-run "$@" ;;
"build --release -p") exit 0 ;;
esac
[ "$1 $2" = "run --example" ] || { echo "cargo $*: not in this test" >&2; exit 1; }
name=$3; shift 3; [ "${1:-}" != -- ] || shift
exec "$EXAMPLES/$name" "$@"
"#;

/// A folder for programs before all others: adasum-run, cargo, the examples.
fn programs(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let program = env!("CARGO_BIN_EXE_adasum-run");
    std::os::unix::fs::symlink(program, bin.join("adasum-run")).unwrap();
    fs::write(bin.join("cargo"), CARGO).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bin.join("cargo"), mode).unwrap();
    bin
}

/// Runs a page's blocks in their order; returns how many ran.
fn check(page: &str) -> usize {
    let folder = Folder::new(&format!("page-{}", page.replace('/', "-")));
    let clone = folder.path().join("adasum");
    fs::create_dir(&clone).unwrap();
    fresh_copy(&clone);
    let bin = programs(folder.path());
    let examples = Path::new(env!("CARGO_BIN_EXE_adasum-run")).with_file_name("examples");
    for name in ["tutorial", "reducers"] {
        assert!(
            examples.join(name).exists(),
            "cargo test --test it builds no examples: cargo build --examples"
        );
    }
    let release = clone.join("target/release");
    fs::create_dir_all(&release).unwrap();
    std::os::unix::fs::symlink(&examples, release.join("examples")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let mut printed = String::new();
    let mut ran = 0;
    for block in blocks(page) {
        let place = format!("{page}:{}", block.line);
        match (block.language.as_str(), block.note.as_str()) {
            ("bash", "ci") => {
                for line in block.text.lines() {
                    let line = line.split("  #").next().unwrap().trim_end();
                    assert!(runs(&ci, line), "{place}: .ci/run does not run {line:?}");
                }
            }
            ("bash", "") => {
                let output = Command::new("bash")
                    .args(["-euo", "pipefail", "-c", &block.text])
                    .current_dir(&clone)
                    .env(
                        "PATH",
                        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
                    )
                    .env("EXAMPLES", &examples)
                    .env("ADASUM_CACHE_DIR", folder.path().join("cache"))
                    .env("JOB", format!("page-{}", std::process::id()))
                    .env_remove("ADASUM_BACKEND")
                    .env_remove("RANK_TABLE_FILE")
                    .output()
                    .unwrap();
                printed = String::from_utf8_lossy(&output.stdout).into_owned();
                printed += &String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success(),
                    "{place}: {}\n{printed}",
                    output.status
                );
                ran += 1;
            }
            ("text", "shown") => {}
            ("text", "") => shown(&place, &block.text, &printed, same_numbers),
            ("text", "measured") => shown(&place, &block.text, &printed, |_, _| true),
            ("rust" | "cpp" | "python", file) if !file.is_empty() => {
                excerpt(&place, &block.text, file)
            }
            ("json", file) if !file.is_empty() => {
                let held = fs::read_to_string(clone.join(file)).unwrap();
                let tree = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
                assert_eq!(tree(&block.text), tree(&held), "{place}");
            }
            (language, _) => assert!(
                OTHERS.contains(&language),
                "{place}: ```{language} promises nothing"
            ),
        }
    }
    ran
}

/// A line with each number replaced by the same sign, and blanks made one; and its numbers.
fn shape(line: &str) -> (String, Vec<f64>) {
    let mut shape = String::new();
    let mut numbers = Vec::new();
    for word in line.split_whitespace() {
        let digit = |c: char| c.is_ascii_digit();
        let mut rest = word;
        while let Some(at) = rest.find(digit) {
            shape += &rest[..at];
            shape.push('#');
            let end =
                rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.' && c != 'e' && c != '-');
            let end = end.map_or(rest.len(), |end| at + end);
            // What is no number counts by its letters alone: an address, a range.
            let number = rest[at..end].trim_end_matches(['.', '-', 'e']);
            match number.parse() {
                Ok(value) => numbers.push(value),
                Err(_) => shape += number,
            }
            rest = &rest[end..];
        }
        shape += rest;
        shape.push(' ');
    }
    (shape, numbers)
}

fn same_numbers(shown: &[f64], printed: &[f64]) -> bool {
    // Pages show seconds of a run with a digit behind the point, and nothing else so.
    let seconds = |a: f64| a.fract() != 0.0 && (a * 10.0).fract().abs() < 1e-9 && a < 10.0;
    let near =
        |(&a, &b): (&f64, &f64)| seconds(a) || (a - b).abs() * TOLERANCE <= a.abs().max(b.abs());
    shown.len() == printed.len() && shown.iter().zip(printed).all(near)
}

/// Checks that the lines of `text` are among those that were `printed`, in the same order, where their numbers are the `same`.
fn shown(place: &str, text: &str, printed: &str, same: impl Fn(&[f64], &[f64]) -> bool) {
    let mut lines = printed.lines().map(shape);
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && *line != "...")
    {
        let (wanted, numbers) = shape(line);
        assert!(
            lines.any(|(line, printed)| line == wanted && same(&numbers, &printed)),
            "{place}: {line:?} is not printed, or not there:\n{printed}"
        );
    }
}

/// Checks that the lines of `text` are lines of `file`, one after the other but for "...".
fn excerpt(place: &str, text: &str, file: &str) {
    let held = fs::read_to_string(root().join(file)).unwrap();
    let trimmed = |text: &str| -> String {
        let lines = text.lines().map(|line| format!("{}\n", line.trim()));
        lines.filter(|line| line.len() > 1).collect()
    };
    let held = trimmed(&held);
    let mut from = 0;
    for part in text.split("\n...\n") {
        let part = trimmed(part);
        let at = held[from..].find(&part);
        from += at.unwrap_or_else(|| panic!("{place}: {file} does not hold\n{part}"));
    }
}

#[test]
fn the_readme_runs() {
    assert!(check("README.md") > 1);
}

/// What rustdoc's front page says that its program prints.
#[test]
fn the_program_of_the_front_page_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_adasum-run"))
        .args(["launch", "-n", "2", "--"])
        .arg(Path::new(env!("CARGO_BIN_EXE_adasum-run")).with_file_name("examples/gradient"))
        .env("ADASUM_BACKEND", "mock")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let page = include_str!("../../src/lib.rs");
    let shown = page.lines().filter_map(|line| line.strip_prefix("//! "));
    let shown: Vec<&str> = shown.filter(|line| line.starts_with("[r")).collect();
    assert_eq!(shown.len(), 2);
    assert_eq!(lines, shown);
}

#[test]
fn the_page_of_the_program_runs() {
    assert!(check("docs/program.md") > 4);
}

#[test]
fn the_tutorial_runs() {
    assert!(check("examples/tutorial/README.md") > 3);
}

#[test]
fn other_pages_promise_nothing_else() {
    for page in [
        "docs/experiment.md",
        "docs/from-mindspore.md",
        "docs/from-horovod.md",
    ] {
        check(page);
    }
}

/// The checks themselves: what they would miss is not promised at all.
#[test]
fn what_is_not_printed_is_noticed() {
    let printed = "epoch: 1 step: 11 loss is 2.5\nother\nepoch: 2 step: 11 loss is 1.5e-3\n";
    let any = |_: &[f64], _: &[f64]| true;
    shown(
        "",
        "epoch: 7 step: 9 loss is 1.25\n...\nepoch: 3 step: 1 loss is 2\n",
        printed,
        any,
    );
    for text in ["epoch: 1 step: 11 loss was 2.5\n", "other\nother\n"] {
        assert!(std::panic::catch_unwind(|| shown("", text, printed, any)).is_err());
    }
    shown(
        "",
        "epoch: 1 step: 11 loss is 2.50001\n",
        printed,
        same_numbers,
    );
    for text in [
        "epoch: 1 step: 11 loss is 2.501\n",
        "epoch: 2 step: 11 loss is 1.6e-3\n",
    ] {
        assert!(std::panic::catch_unwind(|| shown("", text, printed, same_numbers)).is_err());
    }
    excerpt("", "mod interface;\n...\nmod support;\n", "tests/main.rs");
    assert!(std::panic::catch_unwind(|| excerpt("", "mod nothing;\n", "tests/main.rs")).is_err());
}

/// A test that a page names is there.
#[test]
fn tests_that_pages_name_exist() {
    let all = tests(&["--include-ignored"]);
    let first = |name: &str| name.split("::").next().map(str::to_owned);
    let modules: BTreeSet<_> = all.iter().map(|name| first(name)).collect();
    let mut named = 0;
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            // `kernels::` alone is a filter.
            if name.matches("::").count() < 2 || !modules.contains(&first(name)) {
                continue;
            }
            named += 1;
            let known = all.iter().any(|test| test == name);
            assert!(known, "{}: there is no test {name}", page.display());
        }
    }
    assert!(named >= 5, "{named} tests");
}

/// Links between pages and to files lead somewhere.
#[test]
fn links_lead_to_files() {
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = root().join(page.parent().unwrap()).join(target);
            assert!(path.exists(), "{}: {target} is not there", page.display());
        }
    }
}

/// Cargo compiles all dev-dependencies of a package for each of its examples, and none of a package that it depends on.
#[test]
fn an_example_compiles_nothing_that_only_tests_need() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let dev = |manifest: &str| -> Vec<String> {
        let (_, own) = manifest.split_once("[dev-dependencies]\n").unwrap();
        let own = own.split("\n\n").next().unwrap();
        let names = own.lines().map(|line| line.split(' ').next().unwrap());
        names.map(str::to_owned).collect()
    };
    let (of_crate, of_examples) = (read("Cargo.toml"), read("examples/rust/Cargo.toml"));
    assert!(of_crate.contains("\nautoexamples = false\n") && !of_crate.contains("[[example]]"));
    let (tests, examples) = (dev(&of_crate), dev(&of_examples));
    assert!(tests.contains(&"proptest".to_owned()) && examples.contains(&"adasum".to_owned()));
    assert!(tests.iter().all(|name| !examples.contains(name)));
    for example in fs::read_dir(root().join("examples")).unwrap() {
        let name = example.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".rs") {
            assert!(
                of_examples.contains(&format!("\npath = \"../{name}\"\n")),
                "{name}"
            );
        }
    }
}
