//! `adasum-run plan`: what it shows fits together over all ranks and follows the closed formulas.

use serde_json::Value;

use crate::support::adasum_run::{Folder, adasum_run, err, out};

const TABLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/rank_tables/rank_table_16pcs.json"
);

fn plan(options: &[&str]) -> String {
    let output = adasum_run(&[&["plan"], options].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    out(&output)
}

/// The messages of one side: bucket, step, sender, receiver, range, tag; sorted.
fn messages(plans: &[Value], side: &str) -> Vec<String> {
    let mut found = Vec::new();
    for plan in plans {
        for step in plan["steps"].as_array().unwrap() {
            for message in step[side].as_array().unwrap() {
                let (own, peer) = (&plan["rank"], &message["peer"]);
                let (from, to) = if side == "sends" {
                    (own, peer)
                } else {
                    (peer, own)
                };
                let (range, tag) = (&message["range"], &message["tag"]);
                found.push(format!(
                    "{} {} {from} {to} {range} {tag}",
                    step["bucket"], step["step"]
                ));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_message_has_two_ends_and_everyone_ends_with_everything() {
    for (radix, placement) in [
        ("2", "hierarchical"),
        ("4", "hierarchical"),
        ("3", "columns"),
    ] {
        let text = plan(&[
            "--servers",
            "6",
            "--devices-per-server",
            "2",
            "--bytes",
            "900000",
            "--tensors",
            "9",
            "--bucket-bytes",
            "300000",
            "--radix",
            radix,
            "--placement",
            placement,
            "--json",
        ]);
        assert_eq!(text.lines().count(), 1);
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["tree"], "(((0 1) (2 3)) (4 5))");
        let plans = all["plans"].as_array().unwrap();
        assert_eq!(plans.len(), 12);
        let sent = messages(plans, "sends");
        assert!(sent.len() > 12);
        assert_eq!(sent, messages(plans, "receives"));
        for bucket in all["buckets"].as_array().unwrap() {
            for plan in plans {
                let steps = plan["steps"].as_array().unwrap();
                let last = steps
                    .iter()
                    .rfind(|step| step["bucket"] == bucket["bucket"]);
                let whole = serde_json::json!([0, bucket["elements"]]);
                assert_eq!(last.unwrap()["owns"], whole, "rank {}", plan["rank"]);
            }
        }
    }
}

/// 2 (1 - 1/S) N / D between servers; tag and group of a message as MindSpore's cells have them.
#[test]
fn the_tutorials_job_is_shown_as_data() {
    let bytes = 1 << 24;
    let text = plan(&[
        "--rank-table",
        TABLE,
        "--counts",
        "4194304",
        "--rank",
        "8",
        "--json",
    ]);
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&all["servers"], &all["ranks"]), (&2.into(), &16.into()));
    let plans = all["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0]["bytes_between_servers"], bytes / 8);
    let round = &plans[0]["steps"][1];
    assert_eq!(round["step"], "round 0");
    assert_eq!(round["combine"]["group"], "0-8");
    // The hash of "tag" + step 0 + rank 0 + index 0.
    assert_eq!(round["receives"][0]["tag"], 1_577_415_134);
    assert_eq!(round["sends"][0]["bytes"], bytes / 16);
}

#[test]
fn text_names_rounds_and_peers() {
    let all = plan(&["--rank-table", TABLE]);
    assert!(all.contains("round 0 merges servers 0 + 1\n"), "{all}");
    assert_eq!(
        all.lines().filter(|line| line.contains(" MB ")).count(),
        16 + 1
    );
    let one = plan(&["--servers", "3", "--rank", "2", "--counts", "5000,7"]);
    assert!(one.contains("tree of servers: ((0 1) 2)\n"), "{one}");
    assert!(one.contains("rank 2 (server 2, local 0)"), "{one}");
    assert!(one.contains("-> rank 0"), "{one}");
}

#[test]
fn the_picture_shows_the_tree_and_the_steps() {
    let folder = Folder::new("plan-svg");
    let path = folder.path().join("plan.svg");
    let printed = plan(&[
        "--servers",
        "4",
        "--rank",
        "3",
        "--svg",
        path.to_str().unwrap(),
    ]);
    assert_eq!(printed, "");
    let picture = std::fs::read_to_string(path).unwrap();
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"));
    for text in [
        "Plan of rank 3 of 4",
        "round 1",
        "return of round 0",
        "prefers-color-scheme:dark",
    ] {
        assert!(picture.contains(text), "{text}");
    }
}

#[test]
fn what_cannot_be_planned_is_refused() {
    for (options, part) in [
        (
            &["--servers", "2", "--rank", "2"][..],
            "--rank 2: there are 2 ranks",
        ),
        (&["--servers", "0"], "at least 1"),
        (
            &["--servers", "2", "--radix", "9"],
            "auto or a number from 2 to 8",
        ),
        (
            &["--servers", "2", "--machine", "B200"],
            "known are 910A, 910B, A3, mock",
        ),
        (
            &["--servers", "2", "--bytes", "8", "--tensors", "3"],
            "too few for 3 tensors",
        ),
        (&["--servers", "65", "--svg", "x.svg"], "at most 64 servers"),
        (&[], "--rank-table"),
    ] {
        let output = adasum_run(&[&["plan"], options].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(err(&output).contains(part), "{options:?}: {}", err(&output));
    }
}

/// What is wrong or left out is told with what would do, and one of something is no plural.
#[test]
fn words_and_refusals_help() {
    let head = plan(&["--servers", "1", "--counts", "1", "--rank", "0"]);
    assert!(head.starts_with("1 server of 1 device, 1 rank; "), "{head}");
    assert!(
        head.contains("\n1 tensor, 1 element of f32, 4 B in 1 bucket\n"),
        "{head}"
    );
    let units = plan(&["--servers=2", "--bytes=1.5MB", "--bucket-bytes=1MiB"]);
    assert_eq!(
        units,
        plan(&["--servers=2", "--bytes=1500000", "--bucket-bytes=1048576"])
    );

    let long = "x".repeat(100_000);
    let logs = concat!(env!("CARGO_TARGET_TMPDIR"), "/words");
    for (arguments, why) in [
        (
            &["bench", "-b", "64", "--compare", "/none"][..],
            "--compare \"/none\": exit status 127",
        ),
        (
            &["qualify", "--out", "/proc/none"],
            "--out /proc/none: No such file",
        ),
        (
            &[
                "launch",
                "-n1",
                "--log-dir",
                logs,
                "--own-dir",
                "--copy",
                "/none",
                "--",
                "true",
            ],
            "--copy /none: No such file",
        ),
        (
            &["plan"],
            "Give --rank-table FILE, or --servers S and --devices-per-server D",
        ),
        (
            &["plan", "--servers", "2", "--bucket-bytes", "0"],
            "'--bucket-bytes <B>': must be 1 to",
        ),
        (
            &["plan", "--servers", "2", "--bytes", "4 MB"],
            "as 4096, 1e9, 100MB or 4MiB",
        ),
        (
            &["simulate", "--model", "7b", "--bytes", "3"],
            "cannot be used with",
        ),
        (
            &["launch", "-n", "1", "--rank", &long, "--", "true"],
            "cannot be used with",
        ),
        (
            &[
                "launch",
                "--rank-table",
                TABLE,
                "--rank",
                &long,
                "--",
                "true",
            ],
            "xxxxx\"...: must be env or a rank below 16",
        ),
    ] {
        let output = adasum_run(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = err(&output);
        assert!(message.contains(why), "{message}");
        assert!(message.len() < 1000, "{} bytes", message.len());
    }
}
