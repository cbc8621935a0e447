//! Which libraries are loaded, seen from outside: each case is a process of its own with its own environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use adasum::ascend;

use crate::support::adasum_run::Folder;

/// What the started process runs: it prints the choice or the error.
#[test]
#[ignore = "in processes of their own, started by other tests"]
fn child() {
    match ascend::backend() {
        Ok(info) => println!(
            "chosen: {} {} {}",
            info.name,
            info.acl.display(),
            info.hccl.display()
        ),
        Err(error) => println!("error: {error}"),
    }
}

/// The line that a process with these variables prints.
fn outcome(variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["library::backend::child", "--exact"]);
    command.args(["--ignored", "--nocapture"]);
    for name in [
        "ADASUM_BACKEND",
        "ADASUM_CANN_HOME",
        "ASCEND_HOME_PATH",
        "ASCEND_TOOLKIT_HOME",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
    ] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found = text.lines().find_map(|line| {
        let start = line.find("chosen: ").or_else(|| line.find("error: "))?;
        Some(line[start..].to_owned())
    });
    found.unwrap_or_else(|| {
        panic!(
            "no outcome in {text:?}, {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// The folder of the unpacked mock.
fn mock_folder() -> PathBuf {
    let outcome = outcome(&[("ADASUM_BACKEND", "mock")]);
    let path = outcome
        .strip_prefix("chosen: mock ")
        .unwrap_or_else(|| panic!("{outcome}"));
    let acl = Path::new(path.split(' ').next().unwrap());
    acl.parent().unwrap().to_owned()
}

#[test]
fn the_mock_can_be_asked_for() {
    let folder = mock_folder();
    for name in ["libascendcl.so", "libhccl.so"] {
        assert!(folder.join(name).is_file(), "{}", folder.display());
    }
    // Even where a toolkit is said to be.
    let outcome = outcome(&[
        ("ADASUM_BACKEND", "mock"),
        ("ASCEND_HOME_PATH", "/no/toolkit"),
    ]);
    assert!(outcome.starts_with("chosen: mock "), "{outcome}");
}

#[test]
fn a_toolkit_that_cannot_be_loaded_is_an_error() {
    for name in ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"] {
        let outcome = outcome(&[(name, "/no/toolkit")]);
        assert!(
            outcome.starts_with("error: CANN cannot be loaded"),
            "{outcome}"
        );
        assert!(outcome.contains("source set_env.sh"), "{outcome}");
        assert!(outcome.contains("/no/toolkit/libascendcl.so"), "{outcome}");
    }
    let outcome = outcome(&[("ADASUM_CANN_HOME", "/no/cann")]);
    assert!(outcome.contains("ADASUM_CANN_HOME is set"), "{outcome}");
    let outcome = self::outcome(&[("ADASUM_BACKEND", "cann")]);
    assert!(outcome.contains("(ADASUM_BACKEND=cann"), "{outcome}");
    let outcome = self::outcome(&[("ADASUM_BACKEND", "tpu")]);
    assert!(
        outcome.ends_with("is not one of auto, cann, mock"),
        "{outcome}"
    );
}

#[test]
fn what_is_in_the_process_comes_first() {
    let folder = mock_folder();
    let [acl, hccl] =
        ["libascendcl.so", "libhccl.so"].map(|name| folder.join(name).display().to_string());
    for preloaded in [&acl, &hccl] {
        let variables = [
            ("LD_PRELOAD", preloaded.as_str()),
            ("ASCEND_HOME_PATH", "/no/toolkit"),
        ];
        assert_eq!(outcome(&variables), format!("chosen: mock {acl} {hccl}"));
    }
    let outcome = outcome(&[("LD_PRELOAD", &acl), ("ADASUM_BACKEND", "cann")]);
    assert!(
        outcome.contains("mock is already in this process"),
        "{outcome}"
    );
    assert!(outcome.contains(&acl), "{outcome}");
}

#[test]
fn libraries_are_found_by_home_and_by_name() {
    let folder = mock_folder().display().to_string();
    let chosen = format!("chosen: mock {folder}/libascendcl.so {folder}/libhccl.so");
    assert_eq!(outcome(&[("ADASUM_CANN_HOME", &folder)]), chosen);
    assert_eq!(outcome(&[("LD_LIBRARY_PATH", &folder)]), chosen);
    let outcome = outcome(&[("LD_LIBRARY_PATH", &folder), ("ADASUM_BACKEND", "cann")]);
    assert!(
        outcome.starts_with("error: ADASUM_BACKEND=cann was asked for"),
        "{outcome}"
    );
}

/// The library with a name in it replaced by another one that is not longer.
fn renamed(mut library: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let from = format!("{from}\0").into_bytes();
    let mut to = to.as_bytes().to_vec();
    to.resize(from.len(), 0);
    let places: Vec<usize> = (0..library.len() - from.len())
        .filter(|start| library[*start..].starts_with(&from))
        .collect();
    assert!(!places.is_empty());
    for start in places {
        library[start..start + to.len()].copy_from_slice(&to);
    }
    library
}

/// ACL without `function`, as older libraries are, beside HCCL in `folder`.
pub(crate) fn acl_without(function: &str, folder: &Path) -> PathBuf {
    let mock = mock_folder();
    let library = std::fs::read(mock.join("libascendcl.so")).unwrap();
    let library = renamed(library, function, &function.replacen('a', "x", 1));
    let acl = folder.join("libascendcl.so");
    std::fs::write(&acl, library).unwrap();
    std::fs::copy(mock.join("libhccl.so"), folder.join("libhccl.so")).unwrap();
    acl
}

/// CANN 9 has ACL in libacl_rt.so, and libascendcl.so is an optional part of a package (runtime,
/// scripts/package/module/ascend/RuntimeSo.xml:44).
#[test]
fn acl_may_have_its_newer_name_only() {
    let folder = mock_folder();
    let newer = Folder::new("newer");
    for (from, to) in [
        ("libascendcl.so", "libacl_rt.so"),
        ("libhccl.so", "libhccl.so"),
    ] {
        let library = std::fs::read(folder.join(from)).unwrap();
        let library = renamed(library, "libascendcl.so", "libacl_rt.so");
        std::fs::write(newer.path().join(to), library).unwrap();
    }
    let [acl, hccl] =
        ["libacl_rt.so", "libhccl.so"].map(|name| newer.path().join(name).display().to_string());
    let home = newer.path().display().to_string();
    let found = [
        outcome(&[("ADASUM_CANN_HOME", &home)]),
        outcome(&[("LD_LIBRARY_PATH", &home)]),
        outcome(&[("LD_PRELOAD", &acl), ("ASCEND_HOME_PATH", "/no/toolkit")]),
        outcome(&[("LD_PRELOAD", &hccl), ("ASCEND_HOME_PATH", "/no/toolkit")]),
    ];
    for outcome in found {
        assert_eq!(outcome, format!("chosen: mock {acl} {hccl}"));
    }
}

#[test]
fn a_mixture_is_refused() {
    let folder = mock_folder();
    let mixed = Folder::new("mixture");
    let libraries = mixed.path().join("lib64");
    std::fs::create_dir(&libraries).unwrap();
    // Under another name the mark is found no longer: the library looks like the vendor's.
    let vendor = std::fs::read(folder.join("libascendcl.so")).unwrap();
    let vendor = renamed(vendor, "adasum_mock_version", "xdasum_mock_version");
    std::fs::write(libraries.join("libascendcl.so"), vendor).unwrap();
    std::fs::copy(folder.join("libhccl.so"), libraries.join("libhccl.so")).unwrap();
    let outcome = outcome(&[("ASCEND_HOME_PATH", &mixed.path().display().to_string())]);
    assert!(
        outcome.starts_with("error: libraries that do not belong together"),
        "{outcome}"
    );
    assert!(
        outcome.contains("lib64/libascendcl.so is CANN's"),
        "{outcome}"
    );
    assert!(
        outcome.contains("lib64/libhccl.so is the mock's"),
        "{outcome}"
    );
}
