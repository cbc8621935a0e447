//! The bodies of the fuzz targets over their committed corpora.

use std::path::Path;

#[allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call crosses into C; what makes them sound is said at the head of the file"
)]
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

/// What can be had without a fuzzer: random sequences for half a minute.
#[test]
#[ignore = "half a minute; .ci/run --full fuzzes"]
fn random_call_sequences_are_answered() {
    crate::support::mock_environment();
    let start = std::time::Instant::now();
    let mut inputs = 0_u64;
    while start.elapsed() < std::time::Duration::from_secs(30) {
        let unit = |i: u64| crate::support::noise(&[91, inputs, i]).abs();
        let bytes: Vec<u8> = (0..240)
            .map(|i| {
                // Small numbers mean something more often.
                let most = if unit(2 * i) < 0.7 { 14.0 } else { 256.0 };
                (unit(2 * i + 1) * most) as u8
            })
            .collect();
        c_abi::run(&bytes);
        inputs += 1;
    }
    println!("{inputs} inputs");
    assert!(inputs > 20);
}
