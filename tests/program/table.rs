//! `adasum-run table`: files as hccl_tools.py and merge_hccl.py write them, verdicts, pictures.
//!
//! The files of `tests/golden/rank_tables` were written by Python's `json.dump(..., indent=4)` from the description of
//! those tools.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::adasum_run::{Folder, adasum_run, err, out};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/rank_tables");
const SAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/rank_tables/rank_table_16pcs.json"
);
/// As on a server with two devices more than usual.
const CONF: &str = "\
# written by the driver
address_0=192.1.27.6
netmask_0=255.255.255.0
address_1=192.2.27.6
address_2=192.3.27.6
address_3=192.4.27.6
address_4=192.1.27.7
address_5=192.2.27.7
address_6=192.3.27.7
address_7 = 192.4.27.7
";

fn table(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = adasum_run(&["table"]);
    command.args(arguments).current_dir(folder.path());
    // No hccn_tool but what a test puts there.
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    command.output().unwrap()
}

/// The one file that the command made and named, which must be the golden one of the same name.
#[track_caller]
fn made(folder: &Folder, arguments: &[&str], name: &str) {
    let output = table(folder, arguments);
    assert!(output.status.success(), "{}", err(&output));
    let printed = out(&output);
    let path = folder.path().join(printed.strip_suffix('\n').unwrap());
    assert_eq!(path.file_name().unwrap(), name);
    let golden = fs::read(Path::new(GOLDEN).join(name)).unwrap();
    assert!(
        fs::read(&path).unwrap() == golden,
        "{}",
        fs::read_to_string(&path).unwrap()
    );
}

fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let output = table(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{}", out(&output));
    assert!(output.stdout.is_empty());
    err(&output)
}

#[test]
fn tables_are_those_of_hccl_tools_byte_for_byte() {
    let folder = Folder::new("table-make");
    fs::write(folder.path().join("hccn.conf"), CONF).unwrap();
    let server = "10.155.111.140";
    made(
        &folder,
        &[
            "make",
            "--device_num",
            "[0,8)",
            "--server_ip",
            server,
            "--hccn-conf",
            "hccn.conf",
        ],
        "hccl_8p_01234567_10.155.111.140.json",
    );
    let file = fs::read_to_string(folder.path().join("hccn.conf")).unwrap();
    fs::write(
        folder.path().join("other.conf"),
        file.replace(".27.7", ".27.8"),
    )
    .unwrap();
    made(
        &folder,
        &[
            "make",
            "--device-num=[4,6)",
            "--server-ip=10.155.111.141",
            "--hccn_conf=other.conf",
            "-o",
            ".",
        ],
        "hccl_2p_45_10.155.111.141.json",
    );
    // The addresses are those of the visible devices, and names count them.
    made(
        &folder,
        &[
            "make",
            "--device_num",
            "[1,3)",
            "--visible_devices",
            "0,7,2,4",
            "--server_ip",
            "10.155.111.142",
            "--device-ips",
            "192.4.27.9,192.3.27.9",
        ],
        "hccl_2p_12_10.155.111.142.json",
    );
    let all: Vec<String> = (0..16).map(|n| n.to_string()).collect();
    let ips: Vec<String> = (0..16).map(|n| format!("10.0.0.{n}")).collect();
    fs::create_dir(folder.path().join("made")).unwrap();
    made(
        &folder,
        &[
            "make",
            "--device_num=[0,16)",
            &format!("--visible-devices={}", all.join(",")),
            "--server_ip=node-16",
            &format!("--device-ips={}", ips.join(",")),
            "--output=made",
        ],
        "hccl_16p_0123456789101112131415_node-16.json",
    );
}

#[test]
fn addresses_are_asked_of_the_tool_for_the_devices_that_are_meant() {
    let folder = Folder::new("table-tool");
    let tool = folder.path().join("hccn_tool");
    let script = "#!/bin/sh\n[ \"$1 $3 $4\" = '-i -ip -g' ] || exit 3\ncase $2 in 7) n=4;; 2) n=3;; esac\necho ipaddr:192.$n.27.9\necho netmask:255.255.255.0\n";
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    made(
        &folder,
        &[
            "make",
            "--device_num=[1,3)",
            "--visible_devices=0,7,2",
            "--server_ip=10.155.111.142",
        ],
        "hccl_2p_12_10.155.111.142.json",
    );
}

#[test]
fn what_hccl_tools_refuses_is_refused_in_its_words() {
    let folder = Folder::new("table-refused");
    fs::write(folder.path().join("hccn.conf"), CONF).unwrap();
    let make = |range: &str| {
        let range = format!("--device_num={range}");
        refused(
            &folder,
            &["make", &range, "--server_ip=a", "--hccn-conf=hccn.conf"],
        )
    };
    assert!(make("[0,9)").contains("device num [0,9) must be in range [0,8] !"));
    assert!(make("[6,4)").contains("First num 6 of device num [6,4) must less than last num 4 !"));
    assert!(
        make("[2,8)").contains("device num [2,8) must be in the same group of [0,4] or [4,8] !")
    );
    let missing = refused(
        &folder,
        &[
            "make",
            "--device_num=[0,1)",
            "--visible_devices=9",
            "--server_ip=a",
            "--hccn-conf=hccn.conf",
        ],
    );
    assert!(missing.contains("hccn.conf: no address_9="), "{missing}");
    if !Path::new("/etc/hccn.conf").exists() {
        let nothing = refused(&folder, &["make", "--server_ip=a"]);
        assert!(
            nothing.contains("Failed to find information for hccl: hccn_tool -i 0 -ip -g: "),
            "{nothing}"
        );
        assert!(nothing.contains("/etc/hccn.conf"), "{nothing}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn merged_tables_are_those_of_merge_hccl_byte_for_byte() {
    let folder = Folder::new("table-merge");
    let golden = |name: &str| format!("{GOLDEN}/{name}");
    made(
        &folder,
        &[
            "merge",
            &golden("hccl_2p_45_10.155.111.141.json"),
            &golden("hccl_8p_01234567_10.155.111.140.json"),
            &golden("cross_cluster.json"),
        ],
        "hccl_3s_11p.json",
    );
}

#[test]
fn tables_that_do_not_go_together_are_refused_with_both_places() {
    let folder = Folder::new("table-apart");
    let first = format!("{GOLDEN}/hccl_2p_45_10.155.111.141.json");
    let text = fs::read_to_string(&first).unwrap();
    let other = |name: &str, from: &str, to: &str| {
        fs::write(folder.path().join(name), text.replace(from, to)).unwrap();
        refused(&folder, &["merge", &first, name])
    };
    let server = other("same.json", "192.", "193.");
    let said = "server_list[1].server_id: \"10.155.111.141\" is already that of server_list[0] (server_list[0] is server_list[0] of ";
    assert!(server.contains(said), "{server}");
    assert!(
        server.contains("server_list[1] is server_list[0] of same.json)"),
        "{server}"
    );
    let address = other("ips.json", "10.155.111.141", "other");
    assert!(
        address.contains("192.1.27.8 is already that of server_list[0].device[0]"),
        "{address}"
    );
    let faulty = other("faulty.json", "completed", "soon");
    assert!(
        faulty.contains("faulty.json:22:15: status: \"soon\", but must be \"completed\""),
        "{faulty}"
    );
    let version = other("new.json", "\"1.0\"", "\"1.2\"");
    assert!(
        version.contains("new.json: only tables of version 1.0 are merged, this is one 1.2"),
        "{version}"
    );
}

#[test]
fn check_lists_every_fault_and_its_exit_code_is_the_verdict() {
    let folder = Folder::new("table-check");
    let good = table(&folder, &["check", SAMPLE]);
    assert_eq!(good.status.code(), Some(0));
    assert_eq!(out(&good), "right: version 1.0, 2 servers, 16 ranks\n");

    let text = fs::read_to_string(SAMPLE).unwrap();
    let masked = text
        .replace("10.155.111.140", "10.*.*.*")
        .replace("10.155.111.141", "10.*.*.*");
    let masked = masked.replacen("\"rank_id\": \"3\"", "\"rank_id\": \"2\"", 1);
    fs::write(folder.path().join("bad.json"), &masked).unwrap();
    let bad = table(&folder, &["check", "bad.json"]);
    assert_eq!(bad.status.code(), Some(1));
    let lines: Vec<String> = out(&bad).lines().map(str::to_owned).collect();
    let line_of = |part: &str| masked[..masked.rfind(part).unwrap()].matches('\n').count() + 1;
    assert_eq!(lines.len(), 3, "{lines:?}");
    let start = format!("bad.json:{}:", line_of("\"rank_id\": \"2\""));
    assert!(lines[0].starts_with(&start), "{lines:?}");
    assert!(lines[0].ends_with(
        "server_list[0].device[3].rank_id: rank 2 is already that of server_list[0].device[2]"
    ));
    let start = format!("bad.json:{}:", line_of("10.*.*.*"));
    assert!(
        lines[1].starts_with(&start) && lines[1].contains("it is masked"),
        "{lines:?}"
    );
    assert_eq!(lines[2], "2 faults");

    let report: Value =
        serde_json::from_slice(&table(&folder, &["check", "--json", "bad.json"]).stdout).unwrap();
    assert_eq!(report["right"], json!(false));
    assert_eq!(
        report["faults"][1]["field"],
        json!("server_list[1].server_id")
    );
    assert_eq!(report["faults"][1]["line"], json!(line_of("10.*.*.*")));

    let soc = table(
        &folder,
        &[
            "check",
            "--soc=Ascend910A",
            &format!("{GOLDEN}/cross_cluster.json"),
        ],
    );
    assert_eq!(soc.status.code(), Some(0), "{}", out(&soc));
    let wide = format!("{GOLDEN}/hccl_16p_0123456789101112131415_node-16.json");
    assert_eq!(table(&folder, &["check", &wide]).status.code(), Some(0));
    assert_eq!(
        table(&folder, &["check", "--soc=Ascend910A", &wide])
            .status
            .code(),
        Some(1)
    );
    assert!(refused(&folder, &["check", "none.json"]).contains("none.json: No such file"));
}

#[test]
fn show_draws_servers_devices_and_groups() {
    let folder = Folder::new("table-show");
    let output = table(&folder, &["show", SAMPLE]);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    for line in [
        "version 1.0, 2 servers, 16 ranks",
        "server 1: 10.155.111.141",
        "|-- rank 8   device 0   192.1.27.8",
        "`-- rank 15  device 7   192.4.27.9",
        "  ranks 8-15",
        "  ranks 7, 15",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line:?} is not in\n{text}"
        );
    }
    let output = table(&folder, &["show", "--json", SAMPLE]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["servers"][1]["devices"][5]["rank"], json!(13));
    assert_eq!(shown["groups"]["across_servers"][3], json!([3, 11]));
    assert_eq!(
        shown["groups"]["within_servers"][1],
        json!((8..16).collect::<Vec<_>>())
    );
}
