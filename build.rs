//! Builds what the crate embeds: the mock's two libraries and the CPU twin of the kernels.

#![allow(clippy::panic, reason = "a build script reports by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(env("OUT_DIR"));
    println!("cargo::rerun-if-changed=csrc");
    println!("cargo::rerun-if-env-changed=ADASUM_SANITIZE");

    let acl = library("csrc/mock/acl", &["csrc/cann", "csrc/mock"], &[]);
    link(&acl, &out.join("libascendcl.so"), "libascendcl.so", &[]);

    let hccl = library("csrc/mock/hccl", &["csrc/cann", "csrc/mock"], &[]);
    let search = format!("-L{}", out.display());
    link(
        &hccl,
        &out.join("libhccl.so"),
        "libhccl.so",
        &[&search, "-Wl,-rpath,$ORIGIN", "-lascendcl"],
    );

    twin("adasum_kernels.o", None);
    if env("CARGO_CFG_TARGET_ARCH") == "x86_64" {
        // The processor that a program runs on is not known here: it chooses.
        for level in ["x86-64-v3", "x86-64-v4"] {
            twin(&format!("adasum_kernels_{level}.o"), Some(level));
        }
    }
}

/// Builds the CPU twin of the kernels for a level of instructions.
fn twin(file: &str, level: Option<&str>) {
    let out = PathBuf::from(env("OUT_DIR"));
    // A fused multiply-add would make results depend on the compiler and the processor.
    let mut flags = vec!["-DADASUM_TWIN", "-ffp-contract=off", "-O3"];
    let march = level.map(|level| format!("-march={level}"));
    flags.extend(march.as_deref());
    let includes = ["csrc/kernels", "csrc/kernels/twin"];
    let objects = library("csrc/kernels", &includes, &flags);
    // Linked before the next level's objects take the place of these.
    link(&objects, &out.join(file), file, &[]);
}

/// Object files of all C++ sources in `folder`, with the compiler that made them.
struct Objects {
    compiler: cc::Tool,
    files: Vec<PathBuf>,
}

fn library(folder: &str, includes: &[&str], flags: &[&str]) -> Objects {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .map(|entry| {
            entry
                .unwrap_or_else(|error| panic!("{folder}: {error}"))
                .path()
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    // The order of a folder listing is not fixed; the library must be.
    sources.sort();

    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .pic(true)
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wpedantic")
        .flag("-fvisibility=hidden")
        .flag("-pthread")
        .files(&sources)
        .includes(includes);
    if env("OPT_LEVEL") == "0" {
        // The mock moves and reduces all data: unoptimised it would hold up every test.
        build.opt_level(2);
    }
    for flag in flags {
        build.flag(flag);
    }
    for flag in sanitizer() {
        build.flag(flag);
    }
    let compiler = build.get_compiler();
    Objects {
        files: build.compile_intermediates(),
        compiler,
    }
}

fn link(objects: &Objects, output: &Path, soname: &str, flags: &[&str]) {
    let mut command: Command = objects.compiler.to_command();
    command
        .arg("-shared")
        .arg(format!("-Wl,-soname,{soname}"))
        .arg("-Wl,--no-undefined")
        .arg("-o")
        .arg(output)
        .args(&objects.files)
        .args(flags)
        .arg("-ldl");
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?} failed with {status}");
}

/// `ADASUM_SANITIZE=address,undefined` builds the C++ parts with those sanitizers.
fn sanitizer() -> Vec<String> {
    match std::env::var("ADASUM_SANITIZE") {
        Ok(list) if !list.is_empty() => vec![format!("-fsanitize={list}"), "-g".to_owned()],
        _ => Vec::new(),
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}
