//! `adasum-run simulate`: its forms, and the figures that the documentation states.

use serde_json::Value;

use crate::support::adasum_run::{FULL_DISK, Folder, adasum_run, adasum_run_within, err, out};

fn simulate(options: &[&str]) -> String {
    let output = adasum_run(&[&["simulate"], options].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    out(&output)
}

fn row<'a>(all: &'a Value, devices: u32, scheme: &str) -> &'a Value {
    let mut rows = all["rows"].as_array().unwrap().iter();
    rows.find(|row| row["devices"] == devices && row["scheme"] == scheme)
        .unwrap()
}

const PAGE: &str = include_str!("../../docs/simulate.md");

/// What `--json` prints with these options.
fn rows(options: &[&str]) -> Value {
    serde_json::from_str(&simulate(&[options, &["--json"]].concat())).unwrap()
}

/// ResNet-50 on 910B, figure by figure, and what is sent.
#[test]
fn ratios_are_those_of_the_documentation() {
    let all = rows(&["--devices", "16,64,256,1024,8192"]);
    assert_eq!(
        (&all["bytes"], &all["tensors"]),
        (&102_228_128.into(), &161.into())
    );
    let ratio =
        |devices, scheme: &str, name: &str| row(&all, devices, scheme)[name].as_f64().unwrap();
    for (devices, number) in [
        (16, "16"),
        (64, "64"),
        (256, "256"),
        (1024, "1,024"),
        (8192, "8,192"),
    ] {
        let [auto, pipelined, pairs, mindspore] = [
            ("AdaSum, auto", "ratio"),
            ("AdaSum, auto", "pipelined_ratio"),
            ("AdaSum, radix 2", "ratio"),
            ("AdaSum, MindSpore's scheme", "ratio"),
        ]
        .map(|(scheme, name)| ratio(devices, scheme, name));
        let line =
            format!("| {number} | {auto:.2} | {pipelined:.2} | {pairs:.2} | {mindspore:.2} |");
        assert!(PAGE.contains(&line), "{line}");
        assert!(auto <= pairs && auto < mindspore, "{line}");
    }
    // 2 (1 - 1/S) N / D, but for slices that cannot be cut evenly; MindSpore's scheme sends D times as much.
    let sent = |scheme: &str| {
        row(&all, 64, scheme)["bytes_between_servers"]
            .as_f64()
            .unwrap()
    };
    let expected = 2.0 * 7.0 / 8.0 * 102_228_128.0 / 8.0;
    assert!((sent("AdaSum, auto") / expected - 1.0).abs() < 0.01);
    assert!((sent("AdaSum, MindSpore's scheme") / expected - 8.0).abs() < 0.01);
}

/// What the page says in sentences.
#[test]
fn other_ratios_are_those_of_the_documentation() {
    let auto = |all: &Value, devices, name: &str| {
        row(all, devices, "AdaSum, auto")[name].as_f64().unwrap()
    };
    let large = rows(&["--cluster", "910B", "--model", "7b", "--devices", "64,8192"]);
    let [few, many] = [64, 8192].map(|devices| {
        ["ratio", "pipelined_ratio"].map(|name| format!("{:.2}", auto(&large, devices, name)))
    });
    assert_eq!(few[0], many[0]);
    let line = format!(
        "take {} times the all-reduce on 64 devices and on 8,192; pipelined {} and {}.",
        few[0], few[1], many[1]
    );
    assert!(PAGE.contains(&line), "{line}");

    let [ours, batch] = ["auto", "batch"].map(|exchange| {
        ["910B", "910A"].map(|cluster| {
            let options = [
                "--cluster",
                cluster,
                "--devices",
                "64",
                "--exchange",
                exchange,
            ];
            auto(&rows(&options), 64, "ratio")
        })
    });
    for line in [
        format!(
            "{:.1} times the all-reduce on 910B and {:.1} times on",
            batch[0], batch[1]
        ),
        format!("that are chosen it is {:.2} and {:.2}.", ours[0], ours[1]),
    ] {
        assert!(PAGE.contains(&line), "{line}");
    }
}

/// The table of peer memory, figure by figure.
#[test]
fn ratios_of_peer_memory_are_those_of_the_documentation() {
    for (title, cluster, devices, model) in [
        ("910B, 64 devices, ResNet-50", "910B", 64, "resnet-50"),
        ("A3, 384 devices, ResNet-50", "A3", 384, "resnet-50"),
        ("A3, 384 devices, 14 GB of bf16", "A3", 384, "7b"),
    ] {
        let ratios = |exchange: &str, name: &str| {
            let number = devices.to_string();
            let options = ["--cluster", cluster, "--devices", &number, "--model", model];
            let all = rows(&[&options[..], &["--exchange", exchange]].concat());
            row(&all, devices, "AdaSum, auto")[name].as_f64().unwrap()
        };
        let figures: Vec<String> = ["ratio", "pipelined_ratio"]
            .into_iter()
            .flat_map(|name| ["auto", "shared"].map(|exchange| ratios(exchange, name)))
            .map(|ratio| format!("{ratio:.2}"))
            .collect();
        let line = format!("| {title} | {} |", figures.join(" | "));
        assert!(PAGE.contains(&line), "{line}");
    }
}

#[test]
fn files_hold_what_the_table_shows() {
    let folder = Folder::new("simulate");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (csv, svg) = (path("a.csv"), path("a.svg"));
    let table = simulate(&[
        "--cluster",
        "A3",
        "--model",
        "7b",
        "--csv",
        &csv,
        "--svg",
        &svg,
    ]);
    assert!(
        table.starts_with("A3, servers of 16; 14.0 GB of bf16 in 291 tensors"),
        "{table}"
    );
    assert!(table.contains("nothing here was measured on an NPU"));
    let csv = std::fs::read_to_string(csv).unwrap();
    let mut devices: Vec<&str> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(4).unwrap())
        .collect();
    devices.dedup();
    // One server has nothing to combine, and no supernode has more than 768 dies.
    assert_eq!(devices, ["32", "64", "128", "256", "512"]);
    let svg = std::fs::read_to_string(svg).unwrap();
    for text in [
        "devices",
        "ratio to hierarchical all-reduce",
        "auto, pipelined",
        "prefers-color-scheme:dark",
    ] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn a_cluster_of_ones_own_is_read() {
    let folder = Folder::new("simulate-own");
    let known = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/cli/lab/simulate/clusters.toml"
    );
    let text = std::fs::read_to_string(known).unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, text.replace("\"910B\"", "\"mine\"")).unwrap();
    let path = path.to_str().unwrap();
    let figures = |options: &[&str]| -> Value { serde_json::from_str(&simulate(options)).unwrap() };
    let mine = figures(&[
        "--clusters",
        path,
        "--cluster",
        "mine",
        "--devices",
        "24",
        "--json",
    ]);
    // Three servers: MindSpore's scheme needs a power of two.
    let rows = mine["rows"].as_array().unwrap();
    assert!(
        rows.iter()
            .all(|row| row["scheme"] != "AdaSum, MindSpore's scheme")
    );
    assert_eq!(
        mine["rows"],
        figures(&["--devices", "24", "--json"])["rows"]
    );
    for (options, part) in [
        (&["--clusters", path][..], "known are 910A, mine, A3"),
        (&["--devices", "8"], "--devices 8: 910B has servers of 8"),
        (
            &["--cluster", "A3", "--devices", "1024"],
            "at most 768 devices",
        ),
        (&["--clusters", "nowhere.toml"], "nowhere.toml"),
        // It has no end.
        (
            &["--clusters", "/dev/zero"],
            "/dev/zero: not a regular file",
        ),
    ] {
        let output = adasum_run(&[&["simulate"], options].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(err(&output).contains(part), "{}", err(&output));
    }
}

#[test]
fn files_are_written_whole_or_not_at_all() {
    let folder = Folder::new("simulate-full");
    let written = |arguments: &[&str], name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "old").unwrap();
        let mut command = adasum_run_within(FULL_DISK, arguments);
        let output = command.arg(&path).output().unwrap();
        let text = err(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let wanted = format!("adasum-run: {}: File too large", path.display());
        assert!(
            text.starts_with(&wanted) && text.lines().count() == 1,
            "{text}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    };
    written(&["simulate", "--csv"], "a.csv");
    written(&["simulate", "--svg"], "a.svg");
    written(&["plan", "--servers", "4", "--svg"], "b.svg");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn outputs_are_files_of_their_own() {
    let folder = Folder::new("simulate-same");
    let path = folder.path().join("clusters.toml");
    std::fs::write(&path, "old").unwrap();
    for (options, said) in [
        (
            ["--csv", "x", "--svg", "./x"],
            "--svg ./x: --csv is the same file",
        ),
        (
            ["--clusters", "clusters.toml", "--csv", "clusters.toml"],
            "--clusters is the same file",
        ),
    ] {
        let mut command = adasum_run(&[&["simulate"][..], &options].concat());
        let output = command.current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(err(&output).contains(said), "{}", err(&output));
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}
