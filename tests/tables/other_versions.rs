//! Rank tables of version 1.2 and of the oldest form, and the rules of one product.

use adasum::topo::{Product, RankTable, Version};
use serde_json::{Value, json};

/// Three servers with one device each, the first two in superpod "p", the third in "q".
fn superpods() -> Value {
    let server = |name: &str, index: u32| {
        json!({"server_id": name, "device": [{
            "device_id": "0",
            "super_device_id": index.to_string(),
            "device_ip": format!("10.0.0.{index}"),
            "backup_device_ip": format!("10.0.1.{index}"),
            "backup_device_port": "16668",
            "host_port": "60001",
            "rank_id": index.to_string(),
        }]})
    };
    json!({
        "status": "completed",
        "version": "1.2",
        "server_count": "3",
        "server_list": [server("a", 0), server("b", 1), server("c", 2)],
        "super_pod_list": [
            {"super_pod_id": "p", "server_list": [{"server_id": "a"}, {"server_id": "b"}]},
            {"super_pod_id": "q", "server_list": [{"server_id": "c"}]},
        ],
    })
}

/// Two groups: the first has a server of two devices and one of one, the second a server of one.
fn groups() -> Value {
    let device = |id: u32, ip: u32| json!({"device_id": id.to_string(), "device_ip": format!("10.0.0.{ip}")});
    json!({
        "status": "completed",
        "group_count": "2",
        "group_list": [
            {"group_name": "g", "instance_count": "2", "device_count": "3", "instance_list": [
                {"pod_name": "0", "server_id": "a", "devices": [device(0, 1), device(1, 2)]},
                {"pod_name": "1", "server_id": "b", "devices": [device(0, 3)]},
            ]},
            {"group_name": "h", "instance_count": "1", "device_count": "1", "instance_list": [
                {"pod_name": "2", "server_id": "c", "devices": [device(0, 4)]},
            ]},
        ],
    })
}

/// Two servers of two ranks, as the vendor's page for Ascend 950 shows them (hccl,
/// docs/zh/user_guide/cluster_info_config/rank_table_config_a5.md).
fn ranks() -> Value {
    let rank = |number: u32| {
        let (server, local) = (number / 2, number % 2);
        let address = |kind: &str, addr: String, port: &str| json!({"addr_type": kind, "addr": addr, "ports": [port], "plane_id": "plane0"});
        json!({
            "rank_id": number,
            "local_id": local,
            "device_id": local,
            "device_port": 16666 + number,
            "host_port": 60001 + number,
            "level_list": [
                {"net_layer": 0, "net_instance_id": format!("pod{server}"), "net_type": "TOPO_FILE_DESC", "net_attr": "",
                 "rank_addr_list": [address("EID", format!("000000000000000000100000dfdf00{number:02}"), "1/0")]},
                {"net_layer": 1, "net_instance_id": "az0", "net_type": "CLOS", "net_attr": "",
                 "rank_addr_list": [address("IPV4", format!("172.16.{server}.{}", 10 + local), "0/4")]},
            ],
        })
    };
    json!({
        "status": "completed",
        "version": "2.0",
        "rank_count": 4,
        "rank_list": [rank(0), rank(1), rank(2), rank(3)],
    })
}

fn check(table: &Value, product: Product) -> Result<RankTable, Vec<String>> {
    let report = RankTable::check("t.json", table.to_string().as_bytes(), product);
    let lines = report
        .faults()
        .iter()
        .map(|fault| format!("{}: {}", fault.field, fault.message));
    report.table().cloned().ok_or_else(|| lines.collect())
}

/// (where in the table, what is put there or `null` to remove it, all faults)
type Case<'a> = (&'a str, &'a str, &'a [&'a str]);

fn cases(good: &Value, product: Product, cases: &[Case<'_>]) {
    assert!(check(good, product).is_ok());
    for (place, value, expected) in cases {
        let mut bad = good.clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        let value: Value = serde_json::from_str(value).unwrap();
        match bad.pointer_mut(parent).unwrap() {
            Value::Array(list) if value.is_null() => drop(list.remove(name.parse().unwrap())),
            Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
            Value::Object(members) if value.is_null() => drop(members.remove(name).unwrap()),
            object => object[name] = value,
        }
        match check(&bad, product) {
            Ok(_) => assert!(expected.is_empty(), "{place} was taken"),
            Err(faults) => assert_eq!(&faults, expected, "{place}"),
        }
    }
}

#[test]
fn superpods_are_read() {
    let table = check(&superpods(), Product::Any).unwrap();
    assert_eq!((table.version(), table.size()), (Version::V1_2, 3));
    let sections: Vec<_> = table
        .sections()
        .iter()
        .map(|s| (s.name.as_str(), s.ranks.as_slice()))
        .collect();
    assert_eq!(sections, [("p", [0, 1].as_slice()), ("q", [2].as_slice())]);

    // Without superpods it is a table of servers.
    let mut plain = superpods();
    plain.as_object_mut().unwrap().remove("super_pod_list");
    assert!(check(&plain, Product::Any).unwrap().sections().is_empty());

    // Inside one superpod no address is needed.
    let mut one = superpods();
    one["super_pod_list"] = json!([{"super_pod_id": "p", "server_list": [
        {"server_id": "a"}, {"server_id": "b"}, {"server_id": "c"}]}]);
    for server in one["server_list"].as_array_mut().unwrap() {
        server["device"][0]
            .as_object_mut()
            .unwrap()
            .remove("device_ip");
    }
    assert_eq!(check(&one, Product::Any).unwrap().size(), 3);
}

#[test]
fn every_rule_of_superpods_holds() {
    cases(
        &superpods(),
        Product::Any,
        &[
            ("/server_count", "null", &[]),
            (
                "/server_list/1/device/0/super_device_id",
                "\"\"",
                &["server_list[1].device[0].super_device_id: \"\" is not a number in range"],
            ),
            // A decimal number (hcomm topoinfo_ranktableConcise.cc:848); 4294967295 stands for none (hccl_net_dev_defs.h:19).
            (
                "/server_list/1/device/0/super_device_id",
                "\"0x1\"",
                &["server_list[1].device[0].super_device_id: \"0x1\" is not a number in range"],
            ),
            (
                "/server_list/1/device/0/super_device_id",
                "\"4294967295\"",
                &["server_list[1].device[0].super_device_id: stands for no device"],
            ),
            (
                "/server_list/1/device/0/super_device_id",
                "\"00\"",
                &[
                    "server_list[1].device[0].super_device_id: \"0\" is already that of server_list[0].device[0]",
                ],
            ),
            (
                "/server_list/1/device/0/super_device_id",
                "null",
                &["server_list[1].device[0].super_device_id: missing"],
            ),
            (
                "/server_list/1/device/0/device_ip",
                "null",
                &["server_list[1].device[0].device_ip: missing"],
            ),
            (
                "/server_list/1/device/0/backup_device_ip",
                "\"here\"",
                &["server_list[1].device[0].backup_device_ip: \"here\" is not an IP address"],
            ),
            (
                "/server_list/1/device/0/backup_device_port",
                "\"65536\"",
                &[
                    "server_list[1].device[0].backup_device_port: \"65536\" is not a number in range",
                ],
            ),
            (
                "/server_list/1/device/0/host_port",
                "\"0\"",
                &["server_list[1].device[0].host_port: a port is 1 to 65535"],
            ),
            (
                "/server_list/1/device/0/super_device_id",
                "\"0\"",
                &[
                    "server_list[1].device[0].super_device_id: \"0\" is already that of server_list[0].device[0]",
                ],
            ),
            // In another superpod it is another device.
            ("/server_list/2/device/0/super_device_id", "\"0\"", &[]),
            ("/super_pod_list", "[]", &["super_pod_list: is empty"]),
            (
                "/super_pod_list/0",
                "7",
                &["super_pod_list[0]: expected an object, found a number"],
            ),
            (
                "/super_pod_list/0/super_pod_id",
                "\"\"",
                &["super_pod_list[0].super_pod_id: is empty"],
            ),
            (
                "/super_pod_list/1/super_pod_id",
                "\"p\"",
                &["super_pod_list[1].super_pod_id: \"p\" is that of another superpod already"],
            ),
            (
                "/super_pod_list/0/server_list/1",
                "null",
                &["server_list[1]: is in no superpod"],
            ),
            (
                "/super_pod_list/1/server_list/0/server_id",
                "\"a\"",
                &[
                    "server_list[2]: is in no superpod",
                    "super_pod_list[1].server_list[0].server_id: \"a\" is in super_pod_list[0] already",
                ],
            ),
            (
                "/super_pod_list/1/server_list/0/server_id",
                "\"z\"",
                &[
                    "server_list[2]: is in no superpod",
                    "super_pod_list[1].server_list[0].server_id: \"z\" is not in server_list",
                ],
            ),
            (
                "/super_pod_list",
                r#"[{"super_pod_id": "p", "server_list": [{"server_id": "a"}, {"server_id": "c"}]},
                    {"super_pod_id": "q", "server_list": [{"server_id": "b"}]}]"#,
                &[
                    "super_pod_list[0]: the servers of a superpod must follow each other in server_list, but server_list[2] \
                   is apart from the others",
                ],
            ),
        ],
    );
}

#[test]
fn ranks_of_version_2_are_read() {
    let table = check(&ranks(), Product::Any).unwrap();
    assert_eq!(
        (table.version(), table.size(), table.locals().unwrap()),
        (Version::V2_0, 4, 2)
    );
    let servers: Vec<_> = table
        .servers()
        .iter()
        .map(|server| server.id.as_str())
        .collect();
    assert_eq!(servers, ["pod0", "pod1"]);
    let (server, device) = table.find(3).unwrap();
    assert_eq!((server.index, device.device_id), (1, 1));
    assert_eq!(
        device.device_ips,
        ["172.16.1.11".parse::<std::net::IpAddr>().unwrap()]
    );
    // The order of the list does not matter, and a status need not be there.
    let mut turned = ranks();
    turned["rank_list"].as_array_mut().unwrap().reverse();
    turned.as_object_mut().unwrap().remove("status");
    assert_eq!(
        check(&turned, Product::Any).unwrap().servers(),
        table.servers()
    );
}

#[test]
fn every_rule_of_version_2_holds() {
    let layer = "rank_list[1].level_list[1]";
    let entry = "rank_list[1].level_list[1].rank_addr_list[0]";
    let faults: [(&str, &str, String); 25] = [
        ("/rank_count", "null", "rank_count: missing".into()),
        ("/rank_count", "3", "rank_count: 3, but rank_list has 4".into()),
        ("/rank_count", "\"4\"", "rank_count: expected a number, found a string".into()),
        ("/rank_count", "0", "rank_count: 0 is not a number from 1 to 65536".into()),
        ("/rank_list", "[]", "rank_list: is empty".into()),
        ("/status", "\"initializing\"", "status: \"initializing\", but must be \"completed\"".into()),
        ("/rank_list/1/rank_id", "null", "rank_list[1].rank_id: missing".into()),
        ("/rank_list/1/rank_id", "0", "rank_list[1].rank_id: rank 0 is already that of rank_list[0]".into()),
        ("/rank_list/3/rank_id", "9", "rank_list[3].rank_id: rank 3 is missing: 4 ranks need 0 to 3, this is 9".into()),
        ("/rank_list/1/local_id", "65", "rank_list[1].local_id: 65 is not a number from 0 to 64".into()),
        ("/rank_list/1/local_id", "64", "rank_list[1].replaced_local_id: missing".into()),
        ("/rank_list/1/device_id", "0", "rank_list[1].device_id: device 0 is already that of rank_list[0]".into()),
        ("/rank_list/1/device_id", "65", "rank_list[1].device_id: 65 is not a number from 0 to 64".into()),
        ("/rank_list/1/device_port", "0", "rank_list[1].device_port: 0 is not a number from 1 to 65535".into()),
        ("/rank_list/1/level_list", "null", "rank_list[1].level_list: missing".into()),
        ("/rank_list/1/level_list/0", "null", "rank_list[1].level_list: has no layer 0, which tells the ranks of a server".into()),
        ("/rank_list/1/level_list/1/net_layer", "0", format!("{layer}.net_layer: layer 0 does not come after the one before it")),
        ("/rank_list/1/level_list/1/net_layer", "8", format!("{layer}.net_layer: 8 is not a number from 0 to 7")),
        ("/rank_list/1/level_list/1/net_type", "\"RING\"",
         format!("{layer}.net_type: \"RING\" is none of 1DMESH, 2DMESH, A3_SERVER, A2_AX_SERVER, TOPO_FILE_DESC, CLOS")),
        ("/rank_list/1/level_list/1/net_instance_id", "\"\"", format!("{layer}.net_instance_id: \"\" has 0 bytes, not 1 to 1024")),
        ("/rank_list/1/level_list/1/rank_addr_list/0/addr_type", "\"IPv4\"", format!("{entry}.addr_type: \"IPv4\" is none of EID, IPV4, IPV6")),
        ("/rank_list/1/level_list/1/rank_addr_list/0/addr", "\"::1\"", format!("{entry}.addr: \"::1\" is not an address of type IPV4")),
        ("/rank_list/1/level_list/0/rank_addr_list/0/addr", "\"12\"",
         "rank_list[1].level_list[0].rank_addr_list[0].addr: \"12\" is not 32 hexadecimal digits".into()),
        ("/rank_list/1/level_list/1/rank_addr_list/0/ports", "[]", format!("{entry}.ports: is empty")),
        ("/rank_list/2/level_list/0/net_instance_id", "\"pod2\"", String::new()),
    ];
    for (place, value, fault) in &faults {
        let expected: &[&str] = if fault.is_empty() { &[] } else { &[fault] };
        cases(&ranks(), Product::Any, &[(place, value, expected)]);
    }
    // Ranks 1 and 2 change places: neither server is a block.
    let mut apart = ranks();
    apart["rank_list"][1]["rank_id"] = json!(2);
    apart["rank_list"][2]["rank_id"] = json!(1);
    let faults = check(&apart, Product::Any).unwrap_err();
    assert_eq!(
        faults,
        [
            "rank_list[1]: the ranks of server \"pod0\" are not one block: rank 2 is apart from the others"
        ]
    );
    // A second spare device.
    let mut spare = ranks();
    for rank in [0, 2] {
        spare["rank_list"][rank]["local_id"] = json!(64);
        spare["rank_list"][rank]["replaced_local_id"] = json!(7);
    }
    let faults = check(&spare, Product::Any).unwrap_err();
    assert_eq!(
        faults,
        [
            "rank_list[2].replaced_local_id: a spare device stands in for another at rank_list[0].replaced_local_id already"
        ]
    );
}

#[test]
fn groups_are_read_in_the_order_of_the_table() {
    let table = check(&groups(), Product::Any).unwrap();
    assert_eq!((table.version(), table.size()), (Version::Legacy, 4));
    let ids: Vec<_> = table
        .servers()
        .iter()
        .map(|s| (s.id.as_str(), s.first_rank()))
        .collect();
    assert_eq!(ids, [("a", 0), ("b", 2), ("c", 3)]);
    let sections: Vec<_> = table
        .sections()
        .iter()
        .map(|s| (s.name.as_str(), s.ranks.as_slice()))
        .collect();
    assert_eq!(
        sections,
        [("g", [0, 1, 2].as_slice()), ("h", [3].as_slice())]
    );

    // Pods of one server may be several instances, side by side.
    let mut pods = groups();
    pods["group_list"][0]["instance_list"][1]["server_id"] = json!("a");
    pods["group_list"][0]["instance_list"][1]["devices"][0]["device_id"] = json!("2");
    let table = check(&pods, Product::Any).unwrap();
    assert_eq!(table.servers()[0].devices.len(), 3);
}

#[test]
fn every_rule_of_groups_holds() {
    cases(
        &groups(),
        Product::Any,
        &[
            ("/group_list", "null", &["version: missing"]),
            ("/group_count", "null", &[]),
            ("/group_list/0/group_name", "null", &[]),
            ("/group_list/0/instance_list/0/pod_name", "null", &[]),
            ("/status", "null", &["status: missing"]),
            (
                "/group_count",
                "\"3\"",
                &["group_count: \"3\", but group_list has 2"],
            ),
            (
                "/group_list/0/instance_count",
                "\"1\"",
                &["group_list[0].instance_count: \"1\", but instance_list has 2"],
            ),
            (
                "/group_list/0/device_count",
                "\"4\"",
                &["group_list[0].device_count: \"4\", but the group has 3"],
            ),
            (
                "/group_list/1/instance_list",
                "null",
                &["group_list[1].instance_list: missing"],
            ),
            (
                "/group_list/1/instance_list/0/server_id",
                "null",
                &["group_list[1].instance_list[0].server_id: missing"],
            ),
            (
                "/group_list/1/instance_list/0/devices",
                "[]",
                &["group_list[1].instance_list[0].devices: is empty"],
            ),
            (
                "/group_list/0/instance_list/0/devices/1/device_id",
                "\"0\"",
                &[
                    "group_list[0].instance_list[0].devices[1].device_id: device 0 is already that of \
                   group_list[0].instance_list[0].devices[0]",
                ],
            ),
            (
                "/group_list/1/instance_list/0/devices/0/device_ip",
                "\"10.0.0.1\"",
                &[
                    "group_list[1].instance_list[0].devices[0].device_ip: 10.0.0.1 is already that of \
                   group_list[0].instance_list[0].devices[0]",
                ],
            ),
            (
                "/group_list/1/instance_list/0/devices/0",
                r#"{"device_id": "1"}"#,
                &["group_list[1].instance_list[0].devices[0].device_ip: missing"],
            ),
        ],
    );
    let mut apart = groups();
    apart["group_list"][1]["instance_list"][0]["server_id"] = json!("a");
    apart["group_list"][1]["instance_list"][0]["devices"][0]["device_id"] = json!("7");
    assert_eq!(
        check(&apart, Product::Any).unwrap_err(),
        [
            "group_list[1].instance_list[0]: the ranks of a server must be one block, but server \"a\" of \
          group_list[0].instance_list[0] has others in between"
        ]
    );
}

#[test]
fn the_910a_has_rules_of_its_own() {
    let server = |name: &str, devices: &[u32], rank: usize, address: u32| {
        let device = |(index, id): (usize, &u32)| {
            json!({"device_id": id.to_string(), "rank_id": (rank + index).to_string(),
                   "device_ip": format!("10.0.{address}.{id}")})
        };
        json!({"server_id": name, "device": devices.iter().enumerate().map(device).collect::<Vec<_>>()})
    };
    let table = |devices: [&[u32]; 2]| {
        json!({"status": "completed", "version": "1.0", "server_count": "2", "server_list": [
            server("a", devices[0], 0, 0), server("b", devices[1], devices[0].len(), 1)]})
    };
    let good: [[&[u32]; 2]; 3] = [
        [&[0], &[7]],
        [&[0, 3], &[4, 7]],
        [&[4, 5, 6, 7], &[0, 1, 2, 3]],
    ];
    for devices in good {
        assert!(
            check(&table(devices), Product::Ascend910A).is_ok(),
            "{devices:?}"
        );
    }
    let refused = |devices| {
        assert!(check(&table(devices), Product::Any).is_ok());
        check(&table(devices), Product::Ascend910A)
            .unwrap_err()
            .join("; ")
    };
    assert!(refused([&[0, 1, 2], &[0, 1, 2]]).starts_with("server_list[0]: has 3 devices"));
    assert!(
        refused([&[0, 1], &[0]])
            .starts_with("server_list[1]: has 1 devices, but the first server has 2")
    );
    assert!(
        refused([&[0, 1], &[3, 4]])
            .starts_with("server_list[1]: its 2 devices lie on both sides of 0-3 and 4-7")
    );
    assert!(
        refused([&[0], &[8]])
            .starts_with("server_list[1].device[0].device_id: device 8 is beyond 7")
    );

    let mut alone = json!({"status": "completed", "version": "1.0", "server_count": "1", "server_list": [server("a", &[0], 0, 0)]});
    alone["server_list"][0]["device"][0]
        .as_object_mut()
        .unwrap()
        .remove("device_ip");
    assert!(check(&alone, Product::Any).is_ok());
    assert_eq!(
        check(&alone, Product::Ascend910A).unwrap_err(),
        ["server_list[0].device[0].device_ip: missing"]
    );
    for (name, product) in [
        ("Ascend910A", Product::Ascend910A),
        ("Ascend910ProB", Product::Ascend910A),
        ("Ascend910B1", Product::Any),
    ] {
        assert_eq!(Product::of_soc(name), product, "{name}");
    }
}

#[test]
fn a_member_that_is_there_twice_is_remarked() {
    let text = superpods().to_string().replacen(
        "\"version\":\"1.2\"",
        "\"version\":\"9\",\"version\":\"1.2\"",
        1,
    );
    let report = RankTable::check("t.json", text.as_bytes(), Product::Any);
    assert!(report.table().is_some(), "{:?}", report.faults());
    let lines: Vec<_> = report
        .warnings()
        .iter()
        .map(|warning| report.line(warning))
        .collect();
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with(": version: is there before: the last one counts"),
        "{lines:?}"
    );
}

/// Time grows with the size of the file, not with its square: a server for each device, a superpod for each server.
#[test]
fn tables_as_large_as_they_may_be_are_judged_at_once() {
    let ip = |n: usize| format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255);
    let count = 60_000;
    let servers: Vec<Value> = (0..count)
        .map(|n| {
            json!({"server_id": n.to_string(), "device": [{"device_id": "0", "rank_id": n.to_string(),
                   "device_ip": ip(n), "super_device_id": "0"}]})
        })
        .collect();
    let pods: Vec<Value> = (0..count)
        .map(|n| json!({"super_pod_id": n.to_string(), "server_list": [{"server_id": n.to_string()}]}))
        .collect();
    let instances: Vec<Value> = (0..count)
        .map(|n| json!({"server_id": n.to_string(), "devices": [{"device_id": "0", "device_ip": ip(n)}]}))
        .collect();
    let mut superpods = json!({"status": "completed", "version": "1.2", "server_list": servers, "super_pod_list": pods});
    let groups = json!({"status": "completed", "group_list": [{"instance_list": instances}]});
    let begin = std::time::Instant::now();
    for table in [&superpods, &groups] {
        let read = check(table, Product::Any).unwrap();
        assert_eq!((read.size() as usize, read.servers().len()), (count, count));
    }
    // As many faults as there are devices: the first thousand are listed, the rest are counted.
    for server in superpods["server_list"].as_array_mut().unwrap() {
        server["device"][0]["device_ip"] = json!("10.0.0.1");
    }
    let report = RankTable::check("t", superpods.to_string().as_bytes(), Product::Any);
    assert_eq!(
        (report.faults().len(), report.unlisted()),
        (1000, count - 1 - 1000)
    );
    assert!(
        begin.elapsed() < std::time::Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
}
