//! Rank tables: the good ones are read as HCCL reads them, each bad one is refused with one line
//! that names the file and the field or the positions that disagree.

use adasum::ErrorKind;
use adasum::topo::{Cluster, FaultKind, Product, RankTable};
use proptest::prelude::*;
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("../../examples/rank_tables/rank_table_16pcs.json");

/// A table of `servers` x `devices` as the tutorial writes it.
fn table(servers: usize, devices: usize) -> Value {
    let device = |server: usize, index: usize| {
        json!({
            "device_id": index.to_string(),
            "device_ip": format!("192.168.{server}.{}", index + 1),
            "rank_id": (server * devices + index).to_string(),
        })
    };
    let server = |index: usize| {
        json!({
            "server_id": format!("node_{index}"),
            "device": (0..devices).map(|d| device(index, d)).collect::<Vec<_>>(),
            "host_nic_ip": "reserve",
        })
    };
    json!({
        "version": "1.0",
        "server_count": servers.to_string(),
        "server_list": (0..servers).map(server).collect::<Vec<_>>(),
        "status": "completed",
    })
}

fn parse(table: &Value) -> adasum::Result<RankTable> {
    RankTable::parse("rank_table.json", table.to_string().as_bytes())
}

/// The message for a 2 x 2 table after `change`: one line that starts with the file's name, then the place, which is
/// left out here. There is one fault, and it is the same one that a check lists.
fn fault(change: impl FnOnce(&mut Value)) -> String {
    let mut bad = table(2, 2);
    change(&mut bad);
    refusal(&bad)
}

fn refusal(bad: &Value) -> String {
    let text = parse(bad).expect_err("a bad table was taken").to_string();
    assert!(!text.contains('\n'), "{text}");
    assert!(text.len() < 400, "{text}");
    let report = RankTable::check("rank_table.json", bad.to_string().as_bytes(), Product::Any);
    assert_eq!(report.faults().len(), 1, "{:#?}", report.faults());
    let fault = &report.faults()[0];
    assert_eq!(text, report.line(fault));
    // All of the text is in one line.
    let place = format!("rank_table.json:1:{}: ", fault.column);
    assert!(fault.line == 1 && fault.column > 0, "{text}");
    format!("rank_table.json: {}", text.strip_prefix(&place).unwrap())
}

fn remove(object: &mut Value, name: &str) {
    object.as_object_mut().unwrap().remove(name).unwrap();
}

#[test]
fn the_tutorials_table_is_two_servers_of_eight() {
    let table = RankTable::parse("rank_table_16pcs.json", SAMPLE.as_bytes()).unwrap();
    assert_eq!(table.size(), 16);
    assert_eq!(table.locals().unwrap(), 8);
    let ids: Vec<&str> = table.servers().iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["10.155.111.140", "10.155.111.141"]);
    let (server, device) = table.find(13).unwrap();
    assert_eq!((server.index, device.device_id, device.rank), (1, 5, 13));
    assert_eq!(
        device.device_ips,
        ["192.2.27.9".parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(
        table.server_by("1").unwrap(),
        table.server_by("10.155.111.141").unwrap()
    );
}

#[test]
fn servers_and_devices_come_in_the_order_of_their_ranks() {
    let mut mixed = table(2, 2);
    for server in mixed["server_list"].as_array_mut().unwrap() {
        server["device"].as_array_mut().unwrap().reverse();
    }
    mixed["server_list"].as_array_mut().unwrap().reverse();
    let read = parse(&mixed).unwrap();
    let ranks: Vec<u32> = read
        .servers()
        .iter()
        .flat_map(|server| server.devices.iter().map(|device| device.rank))
        .collect();
    assert_eq!(ranks, [0, 1, 2, 3]);
    // The index stays the position in the file: that is what `--server-id` and SERVER_ID mean.
    assert_eq!(read.servers()[0].index, 1);
    assert_eq!(read.server_by("0").unwrap().id, "node_1");
}

#[test]
fn what_hccl_takes_is_taken() {
    let mut loose = table(2, 1);
    loose["server_list"][0]["device"][0]["device_ip"] = json!("192.168.0.1,192.168.0.9");
    loose["server_list"][0]["device"][0]["device_port"] = json!("16667");
    loose["server_list"][0]["host_ip"] = json!("10.0.0.1");
    loose["server_list"][0]["something_new"] = json!({"deep": [1, 2.5, null]});
    remove(&mut loose, "server_count");
    assert_eq!(parse(&loose).unwrap().size(), 2);

    // One server needs no addresses.
    let mut single = table(1, 2);
    remove(&mut single["server_list"][0]["device"][0], "device_ip");
    single["server_list"][0]["device"][1]["device_ip"] = json!("");
    assert_eq!(parse(&single).unwrap().size(), 2);

    let marked = format!("\u{feff}{SAMPLE}");
    assert_eq!(RankTable::parse("t", marked.as_bytes()).unwrap().size(), 16);
}

#[test]
fn a_file_that_is_not_json_names_line_and_column() {
    let message = |bytes: &[u8]| RankTable::parse("t.json", bytes).unwrap_err().to_string();
    assert_eq!(
        message(b"{\n  \"version\": \"1.0\",\n  oops\n}"),
        "t.json:3:3: not valid JSON: key must be a string"
    );
    assert!(message(b"").starts_with("t.json:1:0: not valid JSON: EOF"));
    assert!(message(&b"[".repeat(100_000)).contains("recursion limit"));
    assert_eq!(message(b"{\"a\xff\":1}"), "t.json:1:4: not UTF-8 text");
    assert_eq!(
        message(b"[]"),
        "t.json:1:1: expected an object, found an array"
    );
}

#[test]
fn a_missing_field_is_named_with_its_path() {
    let expect = |change: &dyn Fn(&mut Value), path: &str| {
        assert_eq!(fault(change), format!("rank_table.json: {path}: missing"));
    };
    expect(&|t| remove(t, "version"), "version");
    expect(&|t| remove(t, "status"), "status");
    expect(&|t| remove(t, "server_list"), "server_list");
    expect(
        &|t| remove(&mut t["server_list"][1], "server_id"),
        "server_list[1].server_id",
    );
    expect(
        &|t| remove(&mut t["server_list"][1], "device"),
        "server_list[1].device",
    );
    for name in ["device_id", "device_ip", "rank_id"] {
        expect(
            &|t| remove(&mut t["server_list"][0]["device"][1], name),
            &format!("server_list[0].device[1].{name}"),
        );
    }
}

/// (where, what is put there, the message after the file's name)
const REPLACED: &[(&str, &str, &str)] = &[
    (
        "/version",
        "1.0",
        "version: expected a string, found a number",
    ),
    (
        "/version",
        "\"9.9\"",
        "version: \"9.9\" is not supported, only \"1.0\", \"1.2\", \"2.0\" and tables of groups without a version are",
    ),
    (
        "/status",
        "\"initializing\"",
        "status: \"initializing\", but must be \"completed\"",
    ),
    ("/status", "null", "status: expected a string, found null"),
    (
        "/server_count",
        "2",
        "server_count: expected a string, found a number",
    ),
    (
        "/server_count",
        "\"two\"",
        "server_count: \"two\" is not a number in range",
    ),
    (
        "/server_count",
        "\"3\"",
        "server_count: \"3\", but server_list has 2",
    ),
    ("/server_list", "[]", "server_list: is empty"),
    (
        "/server_list",
        "{}",
        "server_list: expected an array, found an object",
    ),
    (
        "/server_list/1",
        "7",
        "server_list[1]: expected an object, found a number",
    ),
    (
        "/server_list/1/server_id",
        "1",
        "server_list[1].server_id: expected a string, found a number",
    ),
    (
        "/server_list/1/server_id",
        "\"\"",
        "server_list[1].server_id: is empty",
    ),
    (
        "/server_list/1/server_id",
        "\"node_0\"",
        "server_list[1].server_id: \"node_0\" is already that of server_list[0]",
    ),
    (
        "/server_list/1/host_ip",
        "\"here\"",
        "server_list[1].host_ip: \"here\" is not an IP address",
    ),
    (
        "/server_list/1/device",
        "[]",
        "server_list[1].device: is empty",
    ),
    (
        "/server_list/1/device",
        "\"0\"",
        "server_list[1].device: expected an array, found a string",
    ),
    (
        "/server_list/1/device/0/rank_id",
        "2",
        "server_list[1].device[0].rank_id: expected a string, found a number",
    ),
    (
        "/server_list/1/device/0/rank_id",
        "\"-2\"",
        "server_list[1].device[0].rank_id: \"-2\" is not a number in range",
    ),
    (
        "/server_list/1/device/0/rank_id",
        "\"4294967296\"",
        "server_list[1].device[0].rank_id: \"4294967296\" is not a number in range",
    ),
    (
        "/server_list/1/device/0/rank_id",
        "\"\"",
        "server_list[1].device[0].rank_id: \"\" is not a number in range",
    ),
    (
        "/server_list/1/device/0/rank_id",
        "\"1\"",
        "server_list[1].device[0].rank_id: rank 1 is already that of server_list[0].device[1]",
    ),
    (
        "/server_list/1/device/0/rank_id",
        "\"4\"",
        "server_list[1].device[0].rank_id: rank 2 is missing: 4 devices need ranks 0 to 3, this is 4",
    ),
    (
        "/server_list/1/device/1/device_id",
        "\"0\"",
        "server_list[1].device[1].device_id: device 0 is already that of server_list[1].device[0]",
    ),
    (
        "/server_list/1/device/1/device_id",
        "1",
        "server_list[1].device[1].device_id: expected a string, found a number",
    ),
    (
        "/server_list/1/device/1/device_id",
        "\"one\"",
        "server_list[1].device[1].device_id: \"one\" is not a number in range",
    ),
    (
        "/server_list/1/device/1/device_ip",
        "\"\"",
        "server_list[1].device[1].device_ip: \"\" is not an IP address",
    ),
    (
        "/server_list/1/device/1/device_ip",
        "\"192.168.1\"",
        "server_list[1].device[1].device_ip: \"192.168.1\" is not an IP address",
    ),
    (
        "/server_list/1/device/1/device_ip",
        "\"192.168.0.1\"",
        "server_list[1].device[1].device_ip: 192.168.0.1 is already that of server_list[0].device[0]",
    ),
    (
        "/server_list/1/device/1/device_port",
        "\"0\"",
        "server_list[1].device[1].device_port: a port is 1 to 65535",
    ),
    (
        "/server_list/1/device/1/device_port",
        "\"70000\"",
        "server_list[1].device[1].device_port: \"70000\" is not a number in range",
    ),
];

#[test]
fn a_wrong_value_is_named_with_its_path() {
    for (place, value, expected) in REPLACED {
        let (parent, name) = place.rsplit_once('/').unwrap();
        let message = fault(|table| {
            let value: Value = serde_json::from_str(value).unwrap();
            match table.pointer_mut(parent).unwrap() {
                Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
                object => object[name] = value,
            }
        });
        assert_eq!(message, format!("rank_table.json: {expected}"), "{place}");
    }
}

#[test]
fn faults_between_positions_name_both() {
    let mut swapped = table(2, 2);
    swapped["server_list"][0]["device"][1]["rank_id"] = json!("2");
    swapped["server_list"][1]["device"][0]["rank_id"] = json!("1");
    let report = RankTable::check("t", swapped.to_string().as_bytes(), Product::Any);
    let found: Vec<_> = report
        .faults()
        .iter()
        .map(|fault| (fault.field.as_str(), fault.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (
                "server_list[0]",
                "ranks of a server must be one block, but after rank 0 comes rank 2"
            ),
            (
                "server_list[1]",
                "ranks of a server must be one block, but after rank 1 comes rank 3"
            ),
        ]
    );
    let mixed = fault(|table| {
        table["server_list"][1]["device"][1]["device_ip"] = json!("fe80::1");
    });
    assert!(
        mixed.starts_with(
            "rank_table.json: server_list[1].device[1].device_ip: fe80::1 and 192.168."
        ),
        "{mixed}"
    );
    assert!(mixed.ends_with("mix IPv4 and IPv6"), "{mixed}");
}

/// The tutorial's published sample has both servers under one masked address.
#[test]
fn a_masked_server_id_that_is_there_twice_is_explained() {
    let masked = SAMPLE
        .replace("10.155.111.140", "10.*.*.*")
        .replace("10.155.111.141", "10.*.*.*");
    let message = RankTable::parse("t", masked.as_bytes())
        .unwrap_err()
        .to_string();
    let second = masked.rfind("\"10.*.*.*\"").unwrap();
    let line = masked[..second].matches('\n').count() + 1;
    let column = second - masked[..second].rfind('\n').unwrap();
    assert_eq!(
        message,
        format!(
            "t:{line}:{column}: server_list[1].server_id: \"10.*.*.*\" is already that of server_list[0]: it is masked, \
             as in the published sample table; give each server its own address or name"
        )
    );
    let ip = fault(|t| t["server_list"][0]["device"][0]["device_ip"] = json!("192.*.*.*"));
    assert!(
        ip.ends_with("is masked: put the real address there"),
        "{ip}"
    );
}

#[test]
fn all_faults_are_found_each_with_its_line() {
    let mut bad = table(2, 2);
    bad["server_list"][0]["device"][0]["device_ip"] = json!("here");
    bad["server_list"][0]["device"][1]["device_port"] = json!(7);
    remove(&mut bad["server_list"][1], "server_id");
    bad["server_list"][1]["device"][0]["rank_id"] = json!("0");
    remove(&mut bad["server_list"][1]["device"][1], "device_id");
    bad["status"] = json!("soon");
    let text = serde_json::to_string_pretty(&bad).unwrap();
    let report = RankTable::check("t.json", text.as_bytes(), Product::Any);
    assert!(report.table().is_none());
    let found: Vec<_> = report
        .faults()
        .iter()
        .map(|f| (f.field.as_str(), f.kind))
        .collect();
    assert_eq!(
        found,
        [
            ("server_list[0].device[0].device_ip", FaultKind::Wrong),
            ("server_list[0].device[1].device_port", FaultKind::Wrong),
            ("server_list[1].server_id", FaultKind::Missing),
            ("server_list[1].device[0].rank_id", FaultKind::Wrong),
            ("server_list[1].device[1].device_id", FaultKind::Missing),
            ("status", FaultKind::Unfinished),
        ]
    );
    // The line of a fault holds its field; that of a missing one begins the object which lacks it.
    for fault in report.faults() {
        let line = text.lines().nth(fault.line - 1).unwrap();
        let name = fault.field.rsplit('.').next().unwrap();
        let expected = if fault.kind == FaultKind::Missing {
            "{"
        } else {
            name
        };
        assert!(line.contains(expected), "{fault}: {line}");
        assert!(line.is_char_boundary(fault.column - 1), "{fault}: {line}");
    }
    let message = RankTable::parse("t.json", text.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("t.json:8:24: server_list[0].device[0].device_ip: ")
            && message.ends_with("(and 5 more faults)"),
        "{message}"
    );
}

#[test]
fn long_and_odd_values_stay_on_one_short_line() {
    fault(|table| table["server_list"][0]["server_id"] = json!("x".repeat(100_000)));
    fault(|table| table["server_list"][0]["device"][0]["rank_id"] = json!("1\n2".repeat(10_000)));
    let line = RankTable::parse("a\nb.json", b"{").unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
}

#[test]
fn other_versions_are_unsupported_rather_than_wrong() {
    let mut newer = table(2, 2);
    newer["version"] = json!("1.4");
    assert_eq!(parse(&newer).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn uneven_servers_show_the_map() {
    let mut uneven = table(2, 2);
    uneven["server_list"][1]["device"]
        .as_array_mut()
        .unwrap()
        .pop();
    let read = parse(&uneven).unwrap();
    assert_eq!(read.size(), 3);
    let message = read.locals().unwrap_err().to_string();
    assert!(
        message.ends_with("\"node_0\" has 2, \"node_1\" has 1"),
        "{message}"
    );
}

#[test]
fn an_unknown_server_lists_what_exists() {
    let read = parse(&table(2, 2)).unwrap();
    for name in ["2", "node_2", "", "-1"] {
        let message = read.server_by(name).unwrap_err().to_string();
        assert!(
            message.ends_with("0 (\"node_0\"), 1 (\"node_1\")"),
            "{message}"
        );
    }
    // A server whose id reads like the index of another cannot be meant by that text.
    let mut numbers = table(2, 1);
    numbers["server_list"][0]["server_id"] = json!("1");
    numbers["server_list"][1]["server_id"] = json!("0");
    assert!(parse(&numbers).unwrap().server_by("1").is_err());
}

#[test]
fn a_file_is_read_under_its_name() {
    let folder = std::env::temp_dir().join(format!("adasum-table-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let message = |path: &std::path::Path| RankTable::read(path).unwrap_err().to_string();

    let missing = folder.join("missing.json");
    assert!(message(&missing).starts_with(&format!("{}: ", missing.display())));
    assert!(message(&folder).ends_with("not a regular file"));

    let huge = folder.join("huge.json");
    std::fs::File::create(&huge)
        .unwrap()
        .set_len(1 << 34)
        .unwrap();
    assert!(message(&huge).contains("larger than 16 MiB"));

    let good = folder.join("good.json");
    std::fs::write(&good, SAMPLE).unwrap();
    let cluster = Cluster::new(RankTable::read(&good).unwrap(), 8).unwrap();
    assert_eq!(cluster.table_path(), good);
    assert_eq!(cluster.device_id(8).unwrap(), 0);
    assert!(cluster.device_id(16).is_err());
    assert!(Cluster::new(cluster.table().clone(), 16).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

proptest! {
    /// Any damage to the text ends in a table or in one line, never in a panic.
    #[test]
    fn damaged_tables_never_panic(
        at in 0..SAMPLE.len(),
        removed in 0..40usize,
        put in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        let end = (at + removed).min(bytes.len());
        bytes.splice(at..end, put);
        match RankTable::parse("t.json", &bytes) {
            Ok(table) => prop_assert!(table.size() >= 1 && table.find(table.size() - 1).is_ok()),
            Err(error) => {
                let line = error.to_string();
                prop_assert!(line.starts_with("t.json:") && !line.contains('\n'), "{}", line);
            }
        }
    }
}
