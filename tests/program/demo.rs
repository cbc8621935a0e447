//! `adasum-run demo`: the promised line of JSON, the report, and the end when a rank is lost.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::adasum_run::{
    Folder, adasum_run, alive, children, err, eventually, out, send, variable,
};

/// The demo in an empty folder, with a cache of its own.
fn demo(folder: &Folder, options: &[&str]) -> Command {
    let mut command = adasum_run(&["demo"]);
    command
        .args(options)
        .current_dir(folder.path())
        .env("ADASUM_CACHE_DIR", folder.path().join("cache"));
    command
}

fn losses(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|loss| loss.as_f64().unwrap()).collect()
}

#[test]
fn both_trainings_end_in_one_line_of_json() {
    let folder = Folder::new("demo-json");
    let output = demo(&folder, &["--epochs", "2", "--json", "--report", "report"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    let line: Value = serde_json::from_str(&text).unwrap();
    let mut members: Vec<&String> = line.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(
        members,
        ["accuracy", "loss", "mean", "ranks", "reduction", "servers"]
    );
    assert_eq!((&line["ranks"], &line["servers"]), (&16.into(), &2.into()));
    assert_eq!(line["reduction"], "adasum");
    for training in [&line, &line["mean"]] {
        let loss = losses(&training["loss"]);
        assert!(
            loss.len() == 2 && loss[1] < 0.8 * loss[0] && loss[0] < 2.5,
            "{loss:?}"
        );
        let accuracy = training["accuracy"].as_f64().unwrap();
        assert!((0.3..=1.0).contains(&accuracy), "{accuracy}");
    }
    // Same start, same images: what differs is the reduction.
    assert_ne!(line["loss"], line["mean"]["loss"]);

    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("report").join(name)).unwrap();
    let report: Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(report["schema"], "adasum.demo/1");
    assert_eq!(report["trainings"][0]["loss"], line["loss"]);
    assert_eq!(report["trainings"][1]["loss"], line["mean"]["loss"]);
    let csv = read("loss.csv");
    assert!(csv.starts_with("epoch,adasum,mean\n1,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
    // As the line says, digit by digit.
    let first = csv.lines().nth(1).unwrap().split(',').nth(1).unwrap();
    assert_eq!(line["loss"][0].to_string(), first);

    // Rank 0 records 22 times of AdaSum and twice of the mean; each but the first of a training ends a time.
    for (name, most) in [("step_seconds", f64::INFINITY), ("reduction_share", 100.0)] {
        let csv = read(&format!("{name}.csv"));
        assert!(csv.starts_with("epoch,adasum,mean\n"), "{csv}");
        let rows = csv.lines().skip(1).flat_map(|row| row.split(',').skip(1));
        let times: Vec<f64> = rows.filter_map(|time| time.parse().ok()).collect();
        assert_eq!(times.len(), 21 + 1, "{csv}");
        assert!(
            times.iter().all(|time| *time >= 0.0 && *time <= most),
            "{csv}"
        );
    }

    // Six tensors at 11 steps an epoch: cosines are cosines, and AdaSum of two is between their mean and their sum.
    for (name, least, most) in [("cosine", -1.0, 1.0), ("gain", 1.0 - 1e-5, 1e3)] {
        let csv = read(&format!("{name}.csv"));
        let rows: Vec<Vec<f64>> = csv
            .lines()
            .skip(1)
            .map(|line| {
                line.split(',')
                    .map(|field| field.parse().unwrap())
                    .collect()
            })
            .collect();
        assert_eq!((rows.len(), rows[0].len()), (22, 7), "{csv}");
        for row in &rows {
            assert!(
                row[1..]
                    .iter()
                    .all(|figure| (least..=most).contains(figure)),
                "{row:?}"
            );
        }
    }
    assert_eq!(read("accuracy.csv").lines().count(), 3);
    let page = read("index.html");
    assert_eq!(page.matches("<svg ").count(), 6);
    for chart in [
        "loss",
        "accuracy",
        "step_seconds",
        "reduction_share",
        "cosine",
        "gain",
    ] {
        let picture = read(&format!("{chart}.svg"));
        assert!(
            picture.contains("prefers-color-scheme:dark") && picture.contains("polyline"),
            "{chart}"
        );
        assert!(page.contains(&format!("{chart}.csv")));
    }
}

/// Both servers over TCP on addresses of the loopback interface: not a bit of the training changes.
#[test]
fn over_tcp_the_training_is_the_same() {
    let folder = Folder::new("demo-tcp");
    let line = |net: &str| {
        // Below those of `program::leaks`, which may run beside it.
        let port = 31_000 + std::process::id() % 100 * 8;
        let output = demo(&folder, &["--epochs", "1", "--json"])
            .env("HCCL_MOCK_NET", net)
            .env("HCCL_IF_BASE_PORT", port.to_string())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    assert_eq!(line("tcp"), line("shm"));
}

#[test]
fn one_reduction_alone_has_no_other_beside_it() {
    let folder = Folder::new("demo-mean");
    let output = demo(&folder, &["--epochs", "1", "--json", "--reduction", "mean"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let line: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(line["reduction"], "mean");
    assert!(line.get("mean").is_none());
    assert_eq!(losses(&line["loss"]).len(), 1);
}

#[test]
fn a_killed_rank_is_named_and_nothing_is_left() {
    let folder = Folder::new("demo-kill");
    let mut child = demo(&folder, &["--epochs", "1000", "--reduction", "adasum"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The training is under way once an epoch is told.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines.find(|line| {
        line.as_ref()
            .unwrap()
            .starts_with("epoch: 1 step: 11 loss is ")
    });
    assert!(told.is_some());
    let started = children(child.id());
    let number = |pid: &u32| variable(*pid, "RANK_ID");
    assert_eq!(started.iter().filter_map(number).count(), 16);
    let victim = started
        .iter()
        .find(|pid| number(pid).as_deref() == Some("5"));
    let begin = Instant::now();
    send("-KILL", *victim.unwrap());

    // Read on, so that the demo is not stopped by a full pipe.
    assert!(lines.all(|line| line.is_ok()));
    let output = child.wait_with_output().unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(output.status.code(), Some(128 + 9), "{}", err(&output));
    let message = err(&output);
    assert!(
        message.contains("adasum-run: rank 5 failed first: killed by signal 9 (SIGKILL)"),
        "{message}"
    );
    eventually("all it started to end", || {
        (!started.iter().any(|pid| alive(*pid))).then_some(())
    });
}

#[test]
fn wrong_options_are_refused() {
    let folder = Folder::new("demo-usage");
    for options in [
        &["--epochs", "0"][..],
        &["--reduction", "max"],
        &["--epochs", "many"],
    ] {
        let output = demo(&folder, options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

/// The flow of the tutorial: one launcher for each server, here on one machine and named as one job.
#[test]
fn two_launchers_of_one_job_meet() {
    let table = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/rank_tables/rank_table_16pcs.json"
    );
    let job = format!("two-launchers-{}", std::process::id());
    let launchers = ["0", "10.155.111.141"].map(|server| {
        let options = ["--server-id", server, "--job", &job, "--timeout", "60"];
        let mut command = adasum_run(&["launch", "--rank-table", table]);
        command
            .args(options)
            .arg("--")
            .arg(env!("CARGO_BIN_EXE_adasum-run"));
        command.args(["demo-rank", "--epochs", "1", "--reduction", "adasum"]);
        command.env("ADASUM_BACKEND", "mock");
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    });
    let [first, second] = launchers.map(|launcher| launcher.wait_with_output().unwrap());
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    assert_eq!(second.status.code(), Some(0), "{}", err(&second));
    // Rank 0 tells; the second server trained with it.
    assert!(
        out(&first).contains("[r0] {\"event\":\"epoch\",\"epoch\":1"),
        "{}",
        out(&first)
    );
    assert_eq!(out(&second), "");
}
