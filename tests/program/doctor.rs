//! `adasum-run doctor` on the mock: each part finds what is wrong with it, and the exit code says so.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::adasum_run::{Folder, adasum_run, adasum_run_within, err, out};

const TABLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/rank_tables/rank_table_16pcs.json"
);

fn doctor(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = adasum_run(&["doctor"]);
    clean(&mut command);
    command.env("ADASUM_BACKEND", "mock").args(arguments);
    command.envs(environment.iter().copied()).output().unwrap()
}

/// What the machine of the test happens to have set is not to be judged.
fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let part_of_a_job = ["RANK_", "DEVICE_ID", "MINDSPORE_", "CM_"];
        if name.starts_with("HCCL_")
            || name.starts_with("ADASUM_")
            || name.starts_with("ASCEND_")
            || part_of_a_job.iter().any(|start| name.starts_with(start))
        {
            command.env_remove(name);
        }
    }
}

/// The report in JSON, and whether something failed.
fn report(arguments: &[&str], environment: &[(&str, &str)]) -> (Value, i32) {
    let output = doctor(&[&["--json"], arguments].concat(), environment);
    let text = out(&output);
    assert_eq!(text.lines().count(), 1, "{text}{}", err(&output));
    (
        serde_json::from_str(&text).unwrap(),
        output.status.code().unwrap(),
    )
}

#[track_caller]
fn expect(report: &Value, check: &str, verdict: &str, part: &str) {
    let found = &report["checks"][check];
    assert_eq!(found["verdict"], json!(verdict), "{report:#}");
    let lines = found["lines"].as_array().unwrap();
    assert!(
        lines
            .iter()
            .any(|line| line.as_str().unwrap().contains(part)),
        "{part:?} is not in {lines:#?}"
    );
}

#[test]
fn a_machine_in_order() {
    let (report, code) = report(&["--rank-table", TABLE], &[]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["verdict"], json!("ok"));
    expect(&report, "backend", "ok", "mock: ADASUM_BACKEND=mock");
    expect(&report, "symbols", "ok", "all functions that are needed");
    expect(
        &report,
        "device",
        "ok",
        "8 devices; device 0 is an Ascend910B1",
    );
    expect(&report, "device", "ok", "by HCCS with devices 1-7");
    expect(&report, "kernels", "ok", "the CPU twin");
    expect(&report, "kernels", "ok", "an Ascend910B1 itself would ");
    expect(&report, "variables", "ok", "ADASUM_BACKEND=mock");
    expect(
        &report,
        "rank_table",
        "ok",
        "right: version 1.0, 2 servers, 16 ranks",
    );
    expect(&report, "memory", "ok", "802 MB for communicators");
    expect(&report, "self_test", "ok", "two ranks reduced 3 tensors");
    let error = report["checks"]["self_test"]["data"]["largest_error"]
        .as_f64()
        .unwrap();
    assert!(error > 0.0 && error < 2e-6, "{error}");
    for library in ["acl", "hccl"] {
        let path = report["checks"]["backend"]["data"][library]
            .as_str()
            .unwrap();
        assert!(Path::new(path).is_file(), "{path}");
    }
}

#[test]
fn the_same_as_text() {
    let output = doctor(&["--no-device"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(
        text.starts_with("ok       backend     mock: ADASUM_BACKEND=mock\n"),
        "{text}"
    );
    assert!(
        text.contains("\nskipped  self-test   no device is open\n"),
        "{text}"
    );
    assert!(
        text.ends_with("skipped: device, kernels, rank table, self-test\n"),
        "{text}"
    );
}

/// As after some launchers: children that end would not be waited for.
#[test]
fn ended_children_may_be_ignored() {
    let mut command = adasum_run_within("trap '' CHLD", &["doctor", "--json"]);
    clean(&mut command);
    let output = command.env("ADASUM_BACKEND", "mock").output().unwrap();
    let report = serde_json::from_str(&out(&output)).unwrap();
    expect(&report, "self_test", "ok", "two ranks reduced");
}

#[test]
fn each_part_fails_for_itself() {
    for (fault, part) in [
        // What is exchanged arrives damaged.
        ("0:HcclBatchSendRecv:*:corrupt", "the result is wrong"),
        ("0:*:5:error=4", "the two ranks ended with exit status 1: "),
        // The doctor lives on.
        (
            "1:*:5:die",
            "the two ranks ended with killed by signal 9 (SIGKILL)",
        ),
    ] {
        let (report, code) = report(&[], &[("HCCL_MOCK_FAULT", fault)]);
        assert_eq!(code, 1, "{fault}: {report:#}");
        expect(&report, "self_test", "failed", part);
        expect(&report, "variables", "warning", "on purpose");
    }
    let (stalled, code) = report(
        &["--timeout=2"],
        &[("HCCL_MOCK_FAULT", "0:HcclBatchSendRecv:*:stall")],
    );
    assert_eq!(code, 1, "{stalled:#}");
    expect(&stalled, "self_test", "failed", "2 s");

    let (variables, code) = report(&["--no-device"], &[("HCCL_CONNECT_TIMEOUT", "0")]);
    assert_eq!(code, 1);
    expect(
        &variables,
        "variables",
        "failed",
        "HCCL_CONNECT_TIMEOUT=0: must be a number from 1 to 7200",
    );

    let (kernels, code) = report(&[], &[("ADASUM_KERNELS", "/nowhere/kernels.o")]);
    assert_eq!(code, 1);
    expect(&kernels, "kernels", "failed", "/nowhere/kernels.o");

    let (memory, code) = report(
        &[],
        &[("HCCL_BUFFSIZE", "200"), ("ASCEND_MOCK_HBM_MB", "256")],
    );
    assert_eq!(code, 1);
    expect(&memory, "memory", "failed", "lower HCCL_BUFFSIZE");

    let (backend, code) = report(
        &[],
        &[("ADASUM_BACKEND", "cann"), ("ADASUM_CANN_HOME", "/nowhere")],
    );
    assert_eq!(code, 1);
    expect(&backend, "backend", "failed", "CANN cannot be loaded");
    expect(&backend, "self_test", "skipped", "no device is open");

    let (one, code) = report(&[], &[("ASCEND_MOCK_DEVICES", "1")]);
    assert_eq!(code, 0);
    expect(&one, "self_test", "skipped", "two devices");
}

#[test]
fn the_table_of_the_job_is_judged_for_this_chip() {
    let folder = Folder::new("doctor-table");
    let path = folder.path().join("bad.json");
    let masked = fs::read_to_string(TABLE)
        .unwrap()
        .replace("10.155.111.140", "10.155.111.141");
    fs::write(&path, masked).unwrap();
    let path = path.to_str().unwrap();
    let (bad, code) = report(&["--no-device"], &[("RANK_TABLE_FILE", path)]);
    assert_eq!(code, 1);
    expect(
        &bad,
        "rank_table",
        "failed",
        "is already that of server_list[0]",
    );
    assert_eq!(
        bad["checks"]["rank_table"]["data"]["verdict"]["faults"][0]["field"],
        json!("server_list[1].server_id")
    );

    let rank = [
        ("RANK_TABLE_FILE", TABLE),
        ("RANK_ID", "9"),
        ("DEVICE_ID", "1"),
    ];
    let (good, code) = report(&["--no-device"], &rank);
    assert_eq!(code, 0, "{good:#}");
    expect(&good, "rank_table", "ok", "this process is rank 9");
    // Which device that is only ACL can say: in a container, and with fewer visible ones, the number on the server or its own.
    let told = |device: &str, machine: &[(&str, &str)], verdict: &str, what: &str| {
        let rank = [
            ("RANK_TABLE_FILE", TABLE),
            ("RANK_ID", "9"),
            ("DEVICE_ID", device),
        ];
        let (found, _) = report(&[], &[&rank[..], machine].concat());
        expect(&found, "rank_table", verdict, what);
    };
    told("1", &[], "ok", "rank 9, on its device 1");
    told("2", &[], "failed", "DEVICE_ID is 2, but");
    let container = [
        ("ASCEND_MOCK_DEVICES", "1"),
        ("ASCEND_MOCK_FIRST_DEVICE", "1"),
    ];
    told("1", &container, "ok", "rank 9, on its device 0");
    told("0", &container, "ok", "rank 9, on its device 0");
    let why = "says 1 for rank 9, which is device 0 of this process";
    told("2", &container, "failed", why);
    let others = [("ASCEND_RT_VISIBLE_DEVICES", "2,3")];
    told(
        "1",
        &others,
        "failed",
        "gives rank 9 device 1 of its server",
    );

    let three = r#"{"status":"completed","version":"1.0","server_count":"1","server_list":[{"server_id":"a","device":[
        {"device_id":"0","rank_id":"0","device_ip":"10.0.0.1"},{"device_id":"1","rank_id":"1","device_ip":"10.0.0.2"},
        {"device_id":"2","rank_id":"2","device_ip":"10.0.0.3"}]}]}"#;
    fs::write(path, three).unwrap();
    let old = [("ASCEND_MOCK_SOC", "Ascend910A"), ("RANK_TABLE_FILE", path)];
    let (refused, _) = report(&[], &old);
    let joined = "device 0 is joined by HCCS with devices 1-3, by PCIe (PIX) with devices 4-7";
    expect(&refused, "device", "ok", joined);
    expect(
        &refused,
        "rank_table",
        "failed",
        "a 910A server has 1, 2, 4, 8 or 16",
    );
}
