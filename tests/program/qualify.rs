//! `adasum-run qualify` over the mock: all stages pass, and with a rule of the mock broken on purpose the right one fails.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::adasum_run::{Folder, adasum_run, err, eventually, out, send};

const STAGES: [&str; 9] = [
    "libraries",
    "device",
    "memory",
    "streams",
    "kernels",
    "arithmetic",
    "communicators",
    "reductions",
    "rejoin",
];

/// Rules of the mock and the stages that rest on them.
const RULES: [(&str, &str); 20] = [
    ("soc_unknown", "device"),
    ("cores_zero", "device"),
    ("copy_h2d", "memory"),
    ("copy_d2h", "memory"),
    ("copy_d2d", "memory"),
    ("memset", "memory"),
    ("event_early", "streams"),
    ("wait_ignored", "streams"),
    ("sync_early", "streams"),
    ("limit_ignored", "streams"),
    ("no_abort", "streams"),
    ("abort_deaf", "streams"),
    ("binary_refused", "kernels"),
    ("function_missing", "kernels"),
    ("launch_refused", "arithmetic"),
    ("root_info_refused", "communicators"),
    ("world_refused", "communicators"),
    ("sub_refused", "communicators"),
    ("rank_wrong", "communicators"),
    ("no_rejoin", "rejoin"),
];

fn qualify(arguments: &[&str], rule: Option<&str>) -> (Value, Output) {
    let rule = rule.map(|rule| ("ASCEND_MOCK_DEVIATE", rule));
    qualify_with(arguments, rule)
}

/// With a variable of the mock.
fn qualify_with(arguments: &[&str], variable: Option<(&str, &str)>) -> (Value, Output) {
    // Tests run side by side.
    let folder = Folder::new(&format!(
        "qualify-{}-{}",
        arguments.len(),
        variable.map_or("none", |(_, value)| value)
    ));
    let report = folder.path().join("out");
    let mut command = adasum_run(&["qualify", "--devices", "2", "--out"]);
    command.arg(&report).args(arguments);
    command.env("ADASUM_BACKEND", "mock");
    command.env_remove("ASCEND_MOCK_DEVIATE");
    command.envs(variable);
    let output = command.output().unwrap();
    let json = fs::read(report.join("report.json"))
        .unwrap_or_else(|error| panic!("{error}: {}{}", out(&output), err(&output)));
    let text = fs::read_to_string(report.join("report.txt")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    for stage in json["stages"].as_array().unwrap() {
        let (name, verdict) = (stage["stage"].as_str().unwrap(), &stage["verdict"]);
        let line = format!("\n{:<8} {name}", verdict.as_str().unwrap());
        assert!(text.contains(&line), "{name}: {text}");
        let log = report.join(format!("{name}.log"));
        assert_eq!(log.exists(), *verdict != json!("skipped"), "{name}");
    }
    (json, output)
}

/// The stages that ended like this.
fn stages<'a>(report: &'a Value, verdict: &str) -> Vec<&'a str> {
    let stages = report["stages"].as_array().unwrap().iter();
    let with = stages.filter(|stage| stage["verdict"] == json!(verdict));
    with.map(|stage| stage["stage"].as_str().unwrap()).collect()
}

#[test]
fn all_stages_pass_over_the_mock() {
    let (report, output) = qualify(&[], None);
    assert_eq!(stages(&report, "passed"), STAGES, "{report:#}");
    assert_eq!(report["passed"], json!(true));
    assert_eq!(output.status.code(), Some(0));
    // Every check of every rank passed or says why it was not tried, and the slow ones have figures.
    for stage in report["stages"].as_array().unwrap() {
        let checks = stage["checks"].as_array().unwrap();
        assert!(!checks.is_empty(), "{stage:#}");
        assert!(stage["seconds"].as_f64().unwrap() > 0.0);
        for check in checks {
            let is_skipped = check["verdict"] == json!("skipped") && check["note"].is_string();
            assert!(
                is_skipped || check["verdict"] == json!("passed"),
                "{check:#}"
            );
        }
    }
}

/// The names of the checks of a stage that ended like this.
fn checks<'a>(report: &'a Value, stage: &str, verdict: &str) -> Vec<&'a str> {
    let stages = report["stages"].as_array().unwrap();
    let found = stages.iter().find(|found| found["stage"] == json!(stage));
    let checks = found.unwrap()["checks"].as_array().unwrap().iter();
    let with = checks.filter(|check| check["verdict"] == json!(verdict));
    with.map(|check| check["check"].as_str().unwrap()).collect()
}

/// Group calls came with CANN 9.0: with it exchanges by groups are tried and right, before it they are said to be skipped.
#[test]
fn groups_are_tried_where_there_are_any() {
    let stages = ["--only", "communicators", "--only", "reductions"];
    for (version, verdict) in [("8.3.RC1", "skipped"), ("9.0.0", "passed")] {
        let (report, output) = qualify_with(&stages, Some(("ASCEND_MOCK_CANN", version)));
        assert_eq!(output.status.code(), Some(0), "{report:#}");
        let of_groups = |stage| {
            let checks = checks(&report, stage, verdict);
            checks.iter().any(|check| check.contains("group"))
        };
        assert!(of_groups("communicators"), "{version}: {report:#}");
        assert!(of_groups("reductions"), "{version}: {report:#}");
        let others = checks(&report, "reductions", "passed");
        for form in ["alltoall", "batch", "pairwise"] {
            let tried = others.iter().any(|check| check.ends_with(form));
            assert!(tried, "{version}, {form}: {others:?}");
        }
    }
}

/// What only a part of the stages needs; all rules take minutes.
#[test]
fn a_broken_rule_fails_the_stage_that_rests_on_it() {
    for (rule, stage) in RULES {
        let quick = ["device", "memory", "kernels"];
        if quick.contains(&stage) {
            let (report, output) = qualify(&["--only", "device", "--only", stage], Some(rule));
            assert_eq!(stages(&report, "failed"), [stage], "{rule}: {report:#}");
            assert_eq!(output.status.code(), Some(1), "{rule}");
        }
    }
}

#[test]
#[ignore = "takes some minutes"]
fn every_broken_rule_fails_the_stage_that_rests_on_it() {
    for (rule, stage) in RULES {
        let (report, output) = qualify(&[], Some(rule));
        let failed = stages(&report, "failed");
        assert_eq!(
            failed.first(),
            Some(&stage),
            "{rule}: {failed:?} {report:#}"
        );
        assert_eq!(output.status.code(), Some(1), "{rule}");
        // What does not rest on it has passed.
        let at = STAGES.iter().position(|name| *name == stage).unwrap();
        let passed = stages(&report, "passed");
        assert!(passed.len() >= at, "{rule}: {passed:?}");
        println!("qualify: {rule} fails {failed:?}");
    }
}

/// Ranks of a rank table that a launcher has started.
#[test]
fn ranks_of_a_table_qualify_together() {
    let folder = Folder::new("qualify-table");
    let table = folder.path().join("table.json");
    let devices = |server: u32| -> Vec<Value> {
        let device = |local: u32| {
            json!({"device_id": local.to_string(), "device_ip": format!("192.168.{server}.{}", local + 1),
                "rank_id": (2 * server + local).to_string()})
        };
        (0..2).map(device).collect()
    };
    let server = |server: u32| json!({"server_id": format!("10.0.0.{}", server + 1), "device": devices(server)});
    let text = json!({"status": "completed", "version": "1.0", "server_count": "2", "server_list": [server(0), server(1)]});
    fs::write(&table, text.to_string()).unwrap();
    let report = folder.path().join("out");
    let mut command = adasum_run(&["launch", "--rank-table"]);
    command.arg(&table).arg("--");
    command.arg(adasum_run(&[]).get_program());
    command.arg("qualify").arg("--rank-table").arg(&table);
    command.arg("--out").arg(&report);
    command.args(["--only", "communicators", "--only", "reductions"]);
    command.env("ADASUM_BACKEND", "mock");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    for rank in 0..4 {
        let json = fs::read(report.join(format!("rank-{rank}/report.json"))).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        let passed = ["libraries", "communicators", "reductions"];
        assert_eq!(stages(&json, "passed"), passed, "{json:#}{}", err(&output));
    }
}

#[test]
fn a_folder_with_something_in_it_is_refused() {
    let folder = Folder::new("qualify-used");
    fs::write(folder.path().join("report.txt"), "of another run").unwrap();
    let mut command = adasum_run(&["qualify", "--out"]);
    let output = command.arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("not empty"), "{}", err(&output));
}

/// The stage that runs is not to blame, and no other one begins.
#[test]
fn an_interruption_ends_the_command() {
    let folder = Folder::new("qualify-interrupted");
    let report = folder.path().join("out");
    let mut command = adasum_run(&["qualify", "--devices", "2", "--out"]);
    command.arg(&report).env("ADASUM_BACKEND", "mock");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // From the first stage on.
    eventually("a report", || {
        report.join("report.json").exists().then_some(())
    });
    send("-TERM", child.id());
    let status = eventually("the end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(143));
    let json: Value =
        serde_json::from_slice(&fs::read(report.join("report.json")).unwrap()).unwrap();
    assert_eq!(stages(&json, "failed"), [""; 0], "{json:#}");
    let last = json["stages"].as_array().unwrap().last().unwrap();
    let last = last.to_string();
    assert!(last.contains("interrupted by SIGTERM"), "{last}");
}
