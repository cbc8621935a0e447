//! `include/adasum.h` is what cbindgen makes of `src/ffi`. `ADASUM_BLESS=1 cargo test --test it header` writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use cbindgen::{Builder, Config, DocumentationLength, EnumConfig, Language, Style};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

const PREAMBLE: &str = "\
/* AdaSum gradient reduction for Huawei Ascend NPUs. Made from src/ffi by a test: do not edit.
 *
 * Conventions. Every function that can fail returns an adasum_status and writes its outputs only on success;
 * adasum_last_error has the sentence. Pointers must not be NULL unless their function says so; (NULL, 0) is an empty
 * array. Whatever a function named _create or _from_ gives is ended by the _destroy of its type, which takes NULL.
 * Handles may go from thread to thread; what several threads may do at once is said with each type. \"Collective\"
 * means that all ranks of the world must call, in the same order. \"Stream-ordered\" means that the call enqueues on the
 * stream and returns.
 *
 * Versions. Before 1.0 a minor version may break this interface; within one, functions and statuses are only added.
 * A program checks adasum_abi_version() == ADASUM_ABI_VERSION. */";

fn generated() -> String {
    let config = Config {
        language: Language::C,
        include_guard: Some("ADASUM_H".to_owned()),
        cpp_compat: true,
        header: Some(PREAMBLE.to_owned()),
        documentation_length: DocumentationLength::Full,
        style: Style::Both,
        line_length: 120,
        tab_width: 4,
        usize_is_size_t: true,
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        enumeration: EnumConfig::default(),
        ..Config::default()
    };
    let mut builder = Builder::new().with_config(config);
    let folder = root().join("src/ffi");
    for name in [
        "status",
        "library",
        "log",
        "arguments",
        "options",
        "setters",
        "world",
        "reducer",
        "gradient",
        "delta",
        "mean",
    ] {
        builder = builder.with_src(folder.join(format!("{name}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn header_is_that_of_the_sources() {
    let file = root().join("include/adasum.h");
    let header = generated();
    if std::env::var_os("ADASUM_BLESS").is_some() {
        std::fs::write(&file, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == header,
        "include/adasum.h is not what src/ffi gives: ADASUM_BLESS=1 cargo test --test it header"
    );
}

/// The dynamic symbols of the library: only ours, and exactly those of the committed list.
#[test]
fn exports_are_the_committed_list() {
    let library = crate::support::cdylib();
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(&library)
        .output()
        .unwrap();
    assert!(output.status.success(), "nm {}", library.display());
    let mut names: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    names.sort();
    let text = names.join("\n") + "\n";
    let file = root().join("tests/it/exports.txt");
    if std::env::var_os("ADASUM_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap_or_default());
    assert!(names.iter().all(|name| name.starts_with("adasum_")));
    assert!(names.len() >= 25, "{} exports", names.len());
}

fn compile(compiler: &str, language: &str, standard: &str, folder: &Path) -> Option<()> {
    let source = folder.join(format!("twice-{standard}.{language}"));
    std::fs::write(
        &source,
        "#include \"adasum.h\"\n#include \"adasum.h\"\nint main(void) { return 0; }\n",
    )
    .unwrap();
    let output = Command::new(compiler)
        .arg(format!("-std={standard}"))
        .args([
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            "-I",
        ])
        .arg(root().join("include"))
        .arg(&source)
        .output()
        .ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler} -std={standard}: {errors}"
    );
    Some(())
}

#[test]
fn header_compiles_as_every_standard() {
    let folder = crate::support::folder("header");
    for standard in ["c99", "c11", "c17", "c2x"] {
        compile("cc", "c", standard, &folder).expect("a C compiler");
        let _ = compile("clang", "c", standard, &folder);
    }
    for standard in ["c++11", "c++17", "c++20"] {
        compile("c++", "cpp", standard, &folder).expect("a C++ compiler");
        let _ = compile("clang++", "cpp", standard, &folder);
    }
}

/// Builds `source` of `tests/c` against the C library and the mock, and runs it.
fn run(source: &str, compiler: &str, standard: &str) {
    let folder = crate::support::folder(&source.replace('.', "_"));
    let program = folder.join("program");
    let library = crate::support::cdylib();
    let mock = env!("OUT_DIR");
    let output = Command::new(compiler)
        .arg(format!("-std={standard}"))
        .args([
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-pthread",
        ])
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(root().join("csrc/cann"))
        .arg(root().join("tests/c").join(source))
        .arg("-o")
        .arg(&program)
        .arg(&library)
        .arg(format!("-L{mock}"))
        .args(["-lhccl", "-lascendcl", "-lm"])
        .arg(format!("-Wl,-rpath,{mock}"))
        .arg(format!(
            "-Wl,-rpath,{}",
            library.parent().unwrap().display()
        ))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source}: {errors}");
    let output = Command::new(&program)
        .env_remove("RANK_TABLE_FILE")
        .output()
        .unwrap();
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{source}: {}\n{out}{errors}",
        output.status
    );
}

/// Programs that know the headers only, with ranks as threads over the mock.
#[test]
fn c_program_reduces_and_is_told_what_it_does_wrong() {
    run("capi.c", "cc", "c99");
}

#[test]
fn cpp_program_reduces_and_catches_what_it_does_wrong() {
    run("capi.cpp", "c++", "c++17");
}
