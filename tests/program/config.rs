//! `adasum-run config` serves programs that know ACL and HCCL only.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn config(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_adasum-run"))
        .arg("config")
        .args(arguments)
        .output()
        .unwrap()
}

/// The one line that it prints.
fn line(argument: &str) -> String {
    let output = config(&[argument]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}

fn folder(argument: &str) -> PathBuf {
    let folder = PathBuf::from(line(argument));
    assert!(folder.is_absolute() && folder.is_dir(), "{folder:?}");
    folder
}

/// Names of files below `folder`, in order.
fn files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in inner.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap();
                names.push(name.to_str().unwrap().to_owned());
            }
        }
    }
    names.sort();
    names
}

#[test]
fn the_library_folder_holds_what_clients_load_and_nothing_else() {
    let expected = [
        "libacl_op_compiler.so",
        "libacl_tdt_channel.so",
        "libascendcl.so",
        "libge_runner.so",
        "libgraph.so",
        "libhccl.so",
        "libopapi.so",
    ];
    let folder = folder("--mock-lib-dir");
    assert_eq!(files(&folder), expected);
    for name in expected {
        // On the handle of each of them torch_npu looks functions of ACL up.
        let library = folder.join(name);
        // SAFETY: runs the initialisers of the mock's libraries, which do nothing.
        let library = unsafe { libloading::Library::new(&library) };
        let library = library.unwrap_or_else(|error| panic!("{name}: {error}"));
        // SAFETY: the symbol is only looked up.
        let function = unsafe { library.get::<*const ()>(b"aclrtMalloc\0") };
        assert!(function.is_ok(), "{name} does not lead to libascendcl.so");
    }
}

#[test]
fn the_include_folder_holds_the_headers_of_this_version() {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/cann");
    let folder = folder("--cann-include");
    let names = files(&folder);
    assert_eq!(names, files(&headers));
    assert!(names.contains(&"acl/acl.h".to_owned()), "{names:?}");
    for name in names {
        let content = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
        assert_eq!(content(&folder), content(&headers), "{name}");
    }
}

#[test]
fn flags_can_be_asked_for_together_and_something_must_be() {
    let both = config(&["--libs", "--cflags"]);
    let text = String::from_utf8(both.stdout).unwrap();
    assert_eq!(
        text.trim_end(),
        format!("{} {}", line("--cflags"), line("--libs"))
    );
    assert_eq!(config(&[]).status.code(), Some(2));
}

/// Builds a file beside this one as its author would, in a shell, and runs it on the folder alone.
fn builds_and_runs(compile: &str, name: &str, says: &str) {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace('.', "_"));
    let script = format!(
        "set -e; {compile} $(\"$RUN\" config --cflags) -o \"$PROGRAM\" \"$SOURCE\" $(\"$RUN\" config --libs)\n\
         cd /; LD_LIBRARY_PATH=$(\"$RUN\" config --mock-lib-dir) \"$PROGRAM\""
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .env("RUN", env!("CARGO_BIN_EXE_adasum-run"))
        .env("PROGRAM", &program)
        .env(
            "SOURCE",
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/program")
                .join(name),
        )
        .env_remove("ASCEND_MOCK_DEVICES")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{name}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), says);
}

#[test]
fn a_c_program_for_acl_is_built_and_runs() {
    builds_and_runs(
        "${CC:-cc} -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror",
        "client.c",
        "client.c: 1048576 bytes right\n",
    );
}

#[test]
fn functions_that_clients_only_link_fail_or_hold_what_they_are_given() {
    builds_and_runs(
        "${CC:-cc} -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror",
        "stubs.c",
        "stubs.c: right\n",
    );
}

#[test]
fn a_cpp_program_for_acl_and_hccl_is_built_and_runs() {
    builds_and_runs(
        "${CXX:-c++} -std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror -pthread",
        "client.cpp",
        "client.cpp: 4 ranks right\n",
    );
}
