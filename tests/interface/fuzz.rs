//! The bodies of the fuzz targets over their committed corpora.

use std::path::{Path, PathBuf};

use adasum::ffi::adasum_status;

use super::corpus;

#[allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call crosses into C; what makes them sound is said at the head of the file"
)]
#[path = "../../fuzz/bodies/c_abi.rs"]
mod c_abi;
#[cfg(feature = "cli")]
#[path = "../../fuzz/bodies/files.rs"]
mod files;
#[path = "../../fuzz/bodies/rank_table.rs"]
mod rank_table;

fn folder_of(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

#[test]
fn call_sequences_of_the_corpus_are_answered() {
    crate::support::mock_environment();
    let folder = folder_of("c_abi");
    let inputs = corpus::inputs();
    if std::env::var_os("ADASUM_BLESS").is_some() {
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        for input in &inputs {
            std::fs::write(folder.join(&input.name), &input.bytes).unwrap();
        }
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), inputs.len());
    let mut wrong = Vec::new();
    for input in inputs {
        let committed = std::fs::read(folder.join(&input.name)).unwrap();
        assert!(
            committed == input.bytes,
            "{}: ADASUM_BLESS=1 writes it anew",
            input.name
        );
        let answers = c_abi::run(&input.bytes);
        let failed = answers
            .iter()
            .filter(|&&status| status != adasum_status::ADASUM_OK);
        let failed = failed.count();
        if input.refused.is_some_and(|refused| refused != failed) {
            wrong.push(format!("{}: {answers:?}", input.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rank_tables_of_the_corpus_are_taken_or_refused() {
    let files = std::fs::read_dir(folder_of("rank_table")).unwrap();
    let files: Vec<_> = files.collect();
    assert!(files.len() >= 8, "{} files", files.len());
    for file in files {
        let file = file.unwrap().path();
        println!("{}", file.display());
        rank_table::run(&std::fs::read(file).unwrap());
    }
}

/// Each folder has files that are taken, and others.
#[cfg(feature = "cli")]
#[test]
fn files_of_the_corpus_are_taken_or_refused() {
    type Body = fn(&[u8]) -> bool;
    let bodies: [(&str, Body, usize); 4] = [
        ("npz", files::npz, 5),
        ("safetensors", files::safetensors, 1),
        ("records", files::records, 2),
        ("boost", files::boost, 1),
    ];
    for (target, body, expected) in bodies {
        let files: Vec<_> = std::fs::read_dir(folder_of(target)).unwrap().collect();
        let taken = files.iter().filter(|file| {
            let file = file.as_ref().unwrap().path();
            println!("{}", file.display());
            body(&std::fs::read(file).unwrap())
        });
        assert_eq!(taken.count(), expected, "{target}");
        assert!(files.len() > expected, "{target}");
    }
}

/// What can be had without a fuzzer: random sequences for half a minute.
#[test]
#[ignore = "half a minute; .ci/run --full fuzzes, or does this where it cannot"]
fn random_call_sequences_are_answered() {
    crate::support::mock_environment();
    let start = std::time::Instant::now();
    let mut inputs = 0_u64;
    while start.elapsed() < std::time::Duration::from_secs(30) {
        c_abi::run(&corpus::noise(inputs, 240));
        inputs += 1;
    }
    println!("{inputs} inputs");
    assert!(inputs > 20);
}
