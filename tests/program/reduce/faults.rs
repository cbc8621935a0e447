//! Ranks that damage data or stand still.

use std::time::{Duration, Instant};

use super::{Array, Run};
use crate::support::adasum_run::{adasum_run, err};
use crate::support::noise;

/// The end of a reduction of four files with a fault of the mock, and what it said.
fn end(name: &str, fault: &str, options: &[&str]) -> (Option<i32>, String, bool) {
    let rank = |rank| {
        let values: Vec<f32> = (0..20_000).map(|i| noise(&[rank, i])).collect();
        vec![Array::vector("t", &values)]
    };
    let run = Run::new(name, &(0..4).map(rank).collect::<Vec<_>>());
    let mut command = adasum_run(&["reduce"]);
    command
        .args(&run.files)
        .args(options)
        .args(["-o", "out.npz"]);
    command.env("HCCL_MOCK_FAULT", fault);
    let output = command.current_dir(run.folder.path()).output().unwrap();
    (
        output.status.code(),
        err(&output),
        run.path("out.npz").exists(),
    )
}

#[test]
fn damaged_messages_are_an_error_and_no_file() {
    // Warm-up and reduction have two rounds there and two back each: the first of the reduction, which would make the result
    // wrong on all ranks alike, and the last of all.
    for (operation, step) in [(4, "round 0"), (7, "return of round 0")] {
        let (code, said, written) = end(
            "corrupt",
            &format!("2:HcclBatchSendRecv:{operation}:corrupt"),
            &["--radix", "2"],
        );
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains(&format!(
                "{step}: rank 2 does not hold what rank 3 sent to it"
            )),
            "{said}"
        );
        assert!(!written);
    }
}

#[test]
fn a_rank_that_stands_still_is_found_in_the_given_time() {
    let start = Instant::now();
    let fault = "2:HcclBatchSendRecv:5:stall";
    let (code, said, written) = end("stall", fault, &["--radix", "2", "--stall-timeout", "2"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("nothing moved") && said.contains("round 1"),
        "{said}"
    );
    assert!(!written);
    assert!(start.elapsed() < Duration::from_secs(60));
    let (code, said, _) = end("stall-zero", fault, &["--stall-timeout", "0"]);
    assert_eq!(code, Some(2), "{said}");
}
