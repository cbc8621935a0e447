//! `adasum-run bench` runs in all its forms, and its lines have the keys that scripts read. No figure is looked at.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_adasum-run"))
        .arg("bench")
        .args(arguments)
        .output()
        .unwrap()
}

/// The JSON objects that it prints.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let output = bench(arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn positive(line: &Value, key: &str) {
    let value = line[key].as_f64();
    assert!(value.is_some_and(|value| value > 0.0), "{key} in {line}");
}

#[test]
fn every_kernel_has_a_line_for_each_type_and_radix() {
    let lines = lines(&["--kernels", "--json", "--bytes", "65536", "--reps", "1"]);
    let has = |kernel: &str, dtype: &str, radix: u64, form: &str, from: &str| {
        lines.iter().any(|line| {
            line["kernel"] == kernel
                && line["dtype"] == dtype
                && line["radix"] == radix
                && line["form"] == form
                && line["from"] == from
        })
    };
    for from in ["memory", "cache"] {
        for dtype in ["f32", "f16", "bf16"] {
            for radix in [2, 4, 8] {
                let form = if radix == 2 { "plain" } else { "two_float" };
                assert!(has("gram", dtype, radix, form, from), "{dtype} {radix}");
                for form in ["plain", "two_float"] {
                    assert!(has("weighted_sum", dtype, radix, form, from));
                }
            }
            for kernel in ["pack", "unpack", "finite_check"] {
                assert!(has(kernel, dtype, 1, "plain", from), "{kernel} {dtype}");
            }
            assert!(has("subtract", dtype, 2, "plain", from), "{dtype}");
        }
        for radix in [2, 4, 8] {
            assert!(has("fold", "f32", radix, "plain", from));
            assert!(has("coefficients", "f32", radix, "plain", from));
        }
        assert!(has("scalar_f64_dot", "f32", 2, "plain", from));
    }
    for line in &lines {
        positive(line, "ns_per_element");
        positive(line, "copy_fraction");
    }
    assert_eq!(lines[0]["kernel"], "gram");
    positive(&lines[0], "times_scalar_f64_dot");
}

#[test]
fn messages_are_timed_beside_memcpy() {
    let lines = lines(&["--transport", "--json", "--bytes", "4096", "--reps", "2"]);
    let found: Vec<(&str, u64)> = lines
        .iter()
        .map(|line| {
            (
                line["transport"].as_str().unwrap(),
                line["bytes"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("send", 1024),
        ("exchange", 1024),
        ("send", 4096),
        ("exchange", 4096),
    ];
    assert_eq!(found, expected);
    for line in &lines {
        for key in ["min_s", "median_s", "gb_per_s", "memcpy_gb_per_s", "ratio"] {
            positive(line, key);
        }
    }
}

#[test]
fn a_reduction_is_reported_with_the_keys_of_the_peers() {
    let arguments = "--json --ranks 4 --devices-per-server 2 --bytes 65536 --tensors 7 --reps 3 --radix 3 --dtype f16";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    for (mean, name) in [(false, "adasum"), (true, "adasum-mean")] {
        let mut arguments = arguments.clone();
        if mean {
            arguments.push("--mean");
        }
        let lines = lines(&arguments);
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert_eq!(line["peer"], name);
        assert_eq!(line["ranks"], 4);
        assert_eq!(line["dtype"], "f16");
        assert_eq!(line["bytes"], 65536);
        assert_eq!(line["layers"], 7);
        assert_eq!(line["reps"], 3);
        for key in ["min_s", "median_s", "max_s", "bus_gb_per_s", "device_bytes"] {
            positive(line, key);
        }
        for phase in ["exchange", "combine", "return"] {
            positive(&line["phases"], phase);
        }
        for phase in ["gram", "scalars"] {
            let none = line["phases"][phase] == 0.0;
            assert_eq!(none, mean, "{phase} in {line}");
        }
        let seconds = |key: &str| line[key].as_f64().unwrap();
        assert!(seconds("min_s") <= seconds("median_s"));
        assert!(seconds("median_s") <= seconds("max_s"));
    }
}

#[test]
fn ratios_to_peers_follow_the_line() {
    let name = format!("adasum-bench-test-{}.jsonl", std::process::id());
    let file = std::env::temp_dir().join(name);
    let peer = |layers: u32| {
        format!(
            "{{\"peer\":\"other{layers}\",\"ranks\":2,\"dtype\":\"f32\",\"bytes\":4096,\"layers\":{layers},\"reps\":1,\
             \"min_s\":1000.0,\"median_s\":1000.0,\"max_s\":1000.0}}\n"
        )
    };
    std::fs::write(&file, format!("{}no JSON\n{}", peer(3), peer(5))).unwrap();
    let path = file.to_str().unwrap();
    let lines = lines(&[
        "--json",
        "--bytes",
        "4096",
        "--tensors",
        "3",
        "--reps",
        "1",
        "--compare",
        path,
    ]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1]["compare"], "other3");
    let ratio = lines[1]["ratio_min"].as_f64().unwrap();
    let own = lines[0]["min_s"].as_f64().unwrap();
    assert!((ratio * 1000.0 / own - 1.0).abs() < 1e-6, "{lines:?}");
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, word) in [
        (
            &["--ranks", "3", "--devices-per-server", "2"][..],
            "--ranks",
        ),
        (&["--bytes", "64", "--tensors", "100"], "--tensors"),
        (&["--compare", "/nonexistent/file"], "/nonexistent/file"),
        (&["--kernels", "--transport"], "--transport"),
        (&["--tensors", "399"], "--tensors"),
    ] {
        let output = bench(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(word), "{arguments:?}: {text}");
    }
}
