//! The bodies of the fuzz targets over their committed corpora.

use std::path::Path;

#[path = "../../fuzz/bodies/c_abi.rs"]
mod c_abi;
#[path = "../../fuzz/bodies/rank_table.rs"]
mod rank_table;

fn replay(target: &str, least: usize, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(
        files.len() >= least,
        "{}: {} files",
        folder.display(),
        files.len()
    );
    for file in files {
        println!("{}", file.display());
        run(&std::fs::read(&file).unwrap());
    }
}

#[test]
fn call_sequences_of_the_corpus_are_answered() {
    crate::support::mock_environment();
    replay("c_abi", 8, c_abi::run);
}

#[test]
fn rank_tables_of_the_corpus_are_taken_or_refused() {
    replay("rank_table", 8, rank_table::run);
}
