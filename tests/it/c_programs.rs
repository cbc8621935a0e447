//! Programs in C++ that use ACL and HCCL only, built against our headers and run on the mock's libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the build put the mock's libraries.
const LIBRARIES: &str = env!("OUT_DIR");

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/c")
        .join(name)
}

/// Compiles a file of `tests/c` with `flags` and returns the result.
fn compile(name: &str, flags: &[&str]) -> PathBuf {
    // Tests run side by side and may compile the same file: each writes its own, and the last one stays.
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace('.', "_"));
    let part = output.with_extension(format!("{:?}", std::thread::current().id()));
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/cann");
    let (variable, standard, language) = if name.ends_with(".c") {
        ("CC", "cc", "-std=c99")
    } else {
        ("CXX", "c++", "-std=c++17")
    };
    let compiler = std::env::var_os(variable).unwrap_or_else(|| standard.into());
    let status = Command::new(&compiler)
        .args([language, "-O1", "-Wall", "-Wextra", "-pthread", "-I"])
        .arg(headers)
        .arg(source(name))
        .arg("-o")
        .arg(&part)
        .args(flags)
        .status()
        .unwrap_or_else(|error| panic!("{}: {error}", compiler.display()));
    assert!(status.success(), "{name} does not compile");
    std::fs::rename(&part, &output).unwrap();
    output
}

fn program(name: &str) -> PathBuf {
    let search = format!("-L{LIBRARIES}");
    let at_run_time = format!("-Wl,-rpath,{LIBRARIES}");
    compile(name, &[&search, &at_run_time, "-lhccl", "-lascendcl"])
}

/// The program says itself what failed; its exit code says whether something did.
fn passes(program: &Path, environment: &[(&str, &Path)]) {
    let mut command = Command::new(program);
    command.envs(environment.iter().copied());
    for variable in [
        "HCCL_CONNECT_TIMEOUT",
        "HCCL_EXEC_TIMEOUT",
        "ASCEND_MOCK_DEVICES",
    ] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}: {}\n{}\n{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    println!(
        "{}: {}",
        program.display(),
        text.lines().last().unwrap_or_default()
    );
}

/// Conformance cases, one named behaviour each; the program's last line counts them.
fn conforms(name: &str) {
    let kernel = compile("kernel_binary.cpp", &["-shared", "-fPIC"]);
    passes(&program(name), &[("HARNESS_KERNEL", &kernel)]);
}

#[test]
fn plain_c_conforms() {
    conforms("conform.c");
}

#[test]
fn acl_conforms() {
    conforms("conform_acl.cpp");
}

#[test]
fn acl_events_callbacks_and_kernels_conform() {
    conforms("conform_events.cpp");
}

#[test]
fn acl_memory_conforms() {
    conforms("conform_memory.cpp");
}

#[test]
fn hccl_conforms() {
    conforms("conform_hccl.cpp");
}

#[test]
fn hccl_exchanges_conform() {
    conforms("conform_exchange.cpp");
}

#[test]
fn rank_tables_conform() {
    conforms("conform_tables.cpp");
}

#[test]
fn collectives_of_threads_and_processes() {
    passes(&program("mock_collectives.cpp"), &[]);
}

#[test]
fn faults_give_the_vendors_codes_and_end() {
    passes(&program("mock_faults.cpp"), &[]);
}

#[test]
fn devices_streams_events_memory_and_kernels() {
    let kernel = compile("kernel_binary.cpp", &["-shared", "-fPIC"]);
    passes(&program("mock_runtime.cpp"), &[("HARNESS_KERNEL", &kernel)]);
}
