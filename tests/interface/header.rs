//! `include/adasum.h` is what cbindgen makes of `src/ffi`. `ADASUM_BLESS=1 cargo test --test it header` writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use adasum::reduce::{OPTIONS, OptionInfo};
use cbindgen::{Builder, Config, DocumentationLength, EnumConfig, Language, Style};

/// The folder of the crate.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

const PREAMBLE: &str = "\
/* AdaSum gradient reduction for Huawei Ascend NPUs. Made from src/ffi by a test: do not edit.
 * Nothing here has run on an NPU yet; run `adasum-run qualify` first.
 *
 * Conventions. Every function that can fail returns an adasum_status and writes its outputs only on success;
 * adasum_last_error has the sentence. Pointers must not be NULL unless their function says so; (NULL, 0) is an empty
 * array. Whatever a function gives through an `out` that points to a handle is ended by the _destroy of its type, which
 * takes NULL.
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
        "world",
        "reducer",
        "gradient",
        "statistics",
        "delta",
        "mean",
        "clip",
        "accumulate",
        "journal",
    ] {
        builder = builder.with_src(folder.join(format!("{name}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches(OPTIONS_HERE).count(), 1);
    text.replace(OPTIONS_HERE, &options())
}

/// The line for which the list of options stands.
const OPTIONS_HERE: &str = " * OPTIONS\n";

/// The options: name, a star where a variable sets it, what it may be, what it decides.
fn options() -> String {
    let mut text = String::new();
    for option in &OPTIONS {
        let star = if option.variable.is_some() { "*" } else { "" };
        let OptionInfo {
            name,
            values,
            default,
            help,
            ..
        } = option;
        text += &format!(" *   {name}{star}: {values}; default {default}\n");
        let mut line = String::new();
        for word in help.split(' ') {
            if !line.is_empty() && line.len() + word.len() > WIDTH {
                text += &format!(" *       {line}\n");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        text += &format!(" *       {line}\n");
    }
    text
}

/// Letters of a line of help.
const WIDTH: usize = 108;

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
    let file = root().join("tests/interface/exports.txt");
    if std::env::var_os("ADASUM_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap_or_default());
    assert!(names.iter().all(|name| name.starts_with("adasum_")));
    assert!(names.len() >= 25, "{} exports", names.len());
}

/// Programs ask for the version that they were linked with.
#[test]
fn the_library_goes_by_its_name_with_major_and_minor_version() {
    let library = crate::support::cdylib();
    let output = Command::new("readelf")
        .args(["-d", "-W"])
        .arg(&library)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains("(SONAME)"));
    let version = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0;
    let name = format!("[libadasum.so.{version}]");
    assert!(line.is_some_and(|line| line.ends_with(&name)), "{text}");
}

/// Options that let nothing pass, and where the headers are.
pub(crate) fn strict<'a>(command: &'a mut Command, standard: &str) -> &'a mut Command {
    command
        .arg(format!("-std={standard}"))
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(root().join("include"))
}

/// A unit that includes `header` twice; `None` if there is no such compiler.
fn compile(compiler: &str, header: &str, standard: &str, folder: &Path) -> Option<()> {
    let language = if standard.contains("++") { "cpp" } else { "c" };
    let source = folder.join(format!("twice-{header}-{standard}.{language}"));
    let text =
        format!("#include \"{header}\"\n#include \"{header}\"\nint main(void) {{ return 0; }}\n");
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler);
    strict(&mut command, standard)
        .arg("-fsyntax-only")
        .arg(&source);
    let output = command.output().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler} -std={standard} {header}: {errors}"
    );
    Some(())
}

/// The first of `names` that can be started.
fn installed(names: &[&'static str]) -> Option<&'static str> {
    let starts = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    names.iter().find(starts).copied()
}

#[test]
fn headers_compile_as_every_standard() {
    let folder = crate::support::folder("header");
    let clang = [
        installed(&["clang", "clang-14"]),
        installed(&["clang++", "clang++-14"]),
    ];
    if clang.contains(&None) {
        println!("!!! SKIPPED: headers with clang, which is not installed");
    }
    for standard in ["c99", "c11", "c17", "c2x"] {
        compile("cc", "adasum.h", standard, &folder).expect("a C compiler");
        clang[0].map(|clang| compile(clang, "adasum.h", standard, &folder));
    }
    for standard in ["c++11", "c++17", "c++20"] {
        compile("c++", "adasum.h", standard, &folder).expect("a C++ compiler");
        clang[1].map(|clang| compile(clang, "adasum.h", standard, &folder));
        if standard != "c++11" {
            compile("c++", "adasum.hpp", standard, &folder).expect("a C++ compiler");
            clang[1].map(|clang| compile(clang, "adasum.hpp", standard, &folder));
        }
    }
}

/// What the vendor's programs include, each header alone.
#[test]
fn headers_of_acl_and_hccl_compile_alone() {
    let alone = |compiler: &str, language: &str, standard: &str, header: &str| {
        let mut command = Command::new(compiler);
        let output = strict(&mut command, standard)
            .args(["-fsyntax-only", "-I"])
            .arg(root().join("csrc/cann"))
            .args(["-x", language])
            .arg(root().join("csrc/cann").join(header))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler} {header}: {errors}");
    };
    alone("cc", "c", "c99", "acl/acl.h");
    for header in [
        "acl/acl.h",
        "hccl/hccl.h",
        "hccl/hcom.h",
        "hccl/hccl_comm.h",
    ] {
        alone("c++", "c++", "c++17", header);
    }
}

/// Definitions that are not inline would meet in one program.
#[test]
fn two_units_may_include_the_headers() {
    let folder = crate::support::folder("two-units");
    let mut command = Command::new("c++");
    strict(&mut command, "c++17");
    for (name, rest) in [
        ("a", "int other();\nint main() { return other(); }"),
        ("b", "int other() { return 0; }"),
    ] {
        let source = folder.join(format!("{name}.cpp"));
        std::fs::write(&source, format!("#include \"adasum.hpp\"\n{rest}\n")).unwrap();
        command.arg(source);
    }
    let output = command
        .arg("-o")
        .arg(folder.join("program"))
        .arg(crate::support::cdylib())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
