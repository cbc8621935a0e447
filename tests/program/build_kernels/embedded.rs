//! Kernels that the build of the crate compiles and embeds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::elf_sample::Sample;
use super::{KERNELS, Toolkit, text};

/// The build script as cargo compiled it, which is the newest where there are several builds.
fn build_script() -> PathBuf {
    let builds = Path::new(env!("OUT_DIR")).join("../..");
    let scripts = fs::read_dir(builds).unwrap().flatten().filter_map(|entry| {
        let ours = entry.file_name().to_str()?.starts_with("adasum-");
        let script = entry.path().join("build-script-build");
        let made = script.metadata().ok()?.modified().ok()?;
        ours.then_some((made, script))
    });
    scripts.max().unwrap().1
}

/// The build script with `list` in `ADASUM_BUILD_KERNELS`; what is C++ for the host becomes empty files.
fn build(kit: &Toolkit, list: &str) -> Output {
    let body = "while [ $# -gt 0 ]; do [ \"$1\" != -o ] || : > \"$2\"; shift; done";
    kit.program("host-compiler", body);
    let out = kit.0.join("out");
    fs::create_dir_all(&out).unwrap();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    Command::new(build_script())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("CXX", kit.0.join("bin/host-compiler"))
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_PKG_VERSION_MAJOR", env!("CARGO_PKG_VERSION_MAJOR"))
        .env("CARGO_PKG_VERSION_MINOR", env!("CARGO_PKG_VERSION_MINOR"))
        .env("CARGO_CFG_TARGET_ARCH", std::env::consts::ARCH)
        .env("CARGO_CFG_TARGET_OS", "linux")
        .env("CARGO_CFG_TARGET_ENV", "gnu")
        .env("CARGO_CFG_TARGET_VENDOR", "unknown")
        .env("CARGO_CFG_TARGET_FEATURE", "")
        .envs([("HOST", &target), ("TARGET", &target)])
        .envs([("OPT_LEVEL", "1"), ("DEBUG", "false")])
        .env("OUT_DIR", &out)
        .env("ADASUM_BUILD_KERNELS", list)
        .env("ASCEND_HOME_PATH", &kit.0)
        .output()
        .unwrap()
}

#[test]
fn the_build_compiles_and_embeds_the_kernels_that_it_is_asked_for() {
    let kit = Toolkit::new("embedded").with_programs();
    let output = build(&kit, "2201,1001");
    assert!(output.status.success(), "{output:?}");
    let log = kit.log();
    for arch in [2201, 1001] {
        let compiled = format!(" -DADASUM_NPU_ARCH={arch} ");
        let count = log.iter().filter(|line| line.contains(&compiled)).count();
        assert_eq!(count, 9, "{log:?}");
    }
    // What the crate includes: a constant of this type, with the files that the toolkit made.
    let program = kit.0.join("embedded.rs");
    let table = kit.0.join("out/kernel_binaries.rs");
    let source = format!(
        "const EMBEDDED: &[(u32, &[u8])] = include!({table:?});\n\
         fn main() {{ for (arch, file) in EMBEDDED {{ println!(\"{{arch}} {{}} {{:?}}\", file.len(), &file[..4]) }} }}"
    );
    fs::write(&program, source).unwrap();
    let executable = kit.0.join("embedded");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let status = Command::new(compiler)
        .arg(&program)
        .arg("-o")
        .arg(&executable)
        .status();
    assert!(status.unwrap().success());
    let printed = text(&Command::new(&executable).output().unwrap().stdout);
    let size = Sample::new(&KERNELS).bytes().len();
    assert_eq!(
        printed,
        format!("2201 {size} [127, 69, 76, 70]\n1001 {size} [127, 69, 76, 70]\n")
    );
}

#[test]
fn a_build_that_cannot_embed_kernels_fails_and_says_why() {
    let kit = Toolkit::new("unembedded");
    let failure = |list: &str| {
        let output = build(&kit, list);
        assert!(!output.status.success(), "{output:?}");
        text(&output.stderr)
    };
    let error = failure("2201");
    assert!(
        error.contains("ADASUM_BUILD_KERNELS=2201") && error.contains("has no ccec"),
        "{error}"
    );
    let error = failure("7");
    assert!(
        error.contains("ADASUM_BUILD_KERNELS=7: 7 is none of [1001, 2201, 3510]"),
        "{error}"
    );
}
