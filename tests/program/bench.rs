//! `adasum-run bench` runs in all its forms, its lines have the keys that scripts read, and wrong results are found. No time is
//! looked at.

use std::process::Output;

use serde_json::Value;

use crate::support::adasum_run::{adasum_run, err, out};

fn bench(arguments: &[&str]) -> Output {
    with(&[], arguments)
}

/// With variables.
fn with(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = adasum_run(&[&["bench"], arguments].concat());
    command.envs(variables.iter().copied()).output().unwrap()
}

/// The JSON objects that it prints.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let output = bench(arguments);
    assert!(output.status.success(), "{output:?}");
    objects(&output)
}

fn objects(output: &Output) -> Vec<Value> {
    out(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn positive(line: &Value, key: &str) {
    let value = line[key].as_f64();
    assert!(value.is_some_and(|value| value > 0.0), "{key} in {line}");
}

/// The variable is said of the machine's NPUs, of which other programs may need the rest.
#[test]
fn the_mock_plays_its_devices_whatever_is_visible_of_others() {
    let visible = [("ASCEND_RT_VISIBLE_DEVICES", "1")];
    let output = with(
        &visible,
        &["--ranks", "2", "--bytes", "4096", "--reps", "1"],
    );
    assert!(output.status.success(), "{output:?}");
}

/// In a supernode memory is shared by handles that reach all its servers.
#[test]
fn ranks_of_a_supernode_share_memory_by_handles() {
    let arguments = [
        "--json",
        "--ranks",
        "4",
        "--bytes",
        "3000000",
        "--tensors",
        "9",
        "--reps",
        "2",
        "--exchange",
        "shared",
    ];
    for (soc, sharing) in [("Ascend910_9391", "Supernode"), ("Ascend910B1", "Machine")] {
        let output = with(
            &[("ASCEND_MOCK_SOC", soc), ("ADASUM_LOG", "debug")],
            &arguments,
        );
        assert!(output.status.success(), "{output:?}");
        let said = format!("can read memory of: All, shared by {sharing}");
        assert!(err(&output).contains(&said), "{output:?}");
        assert!(objects(&output).iter().all(|line| line["wrong"] == 0));
    }
}

/// Processes read each other's memory: nothing is wrong, and vectors have no place to be received at.
#[test]
fn ranks_that_share_memory_have_the_result() {
    for (ranks, locals) in [("2", "1"), ("5", "1"), ("6", "2")] {
        let run = |exchange: &str| {
            lines(&[
                "--json",
                "--ranks",
                ranks,
                "--devices-per-server",
                locals,
                "--bytes",
                "3000000",
                "--tensors",
                "9",
                "--reps",
                "1",
                "--exchange",
                exchange,
            ])
        };
        let (shared, sent) = (run("shared"), run("batch"));
        for (shared, sent) in shared.iter().zip(&sent) {
            assert_eq!(shared["wrong"], 0, "{shared}");
            let bytes = |line: &Value| line["device_bytes"].as_u64().unwrap();
            assert!(bytes(shared) < bytes(sent), "{shared}\n{sent}");
        }
    }
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
                for form in ["plain", "two_float"] {
                    let has = |kernel| has(kernel, dtype, radix, form, from);
                    let exact_pair = radix == 2 && form == "two_float";
                    assert!(has("gram") != exact_pair, "{dtype} {radix} {form}");
                    assert!(has("weighted_sum"), "{dtype} {radix} {form}");
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
        assert_eq!(line["wrong"], 0);
        for key in ["min_s", "median_s", "max_s", "device_bytes"] {
            positive(line, key);
        }
        // Bytes over the median; times 2 (n - 1) / n for 4 ranks.
        let rate = 65536.0 / line["median_s"].as_f64().unwrap() * 1e-9;
        for (key, rate) in [("algorithm_gb_per_s", rate), ("bus_gb_per_s", 1.5 * rate)] {
            assert!(
                (line[key].as_f64().unwrap() / rate - 1.0).abs() < 1e-9,
                "{line}"
            );
        }
        for phase in ["exchange", "combine", "return"] {
            positive(&line["phases"], phase);
        }
        for phase in ["gram", "scalars"] {
            let none = line["phases"][phase] == 0.0;
            assert_eq!(none, mean, "{phase} in {line}");
        }
        // Every repetition takes as many of them.
        for key in ["launches", "messages"] {
            positive(&line["counted"], key);
            let count = line["counted"][key].as_f64().unwrap();
            assert_eq!(count.fract(), 0.0, "{key} in {line}");
        }
        for key in ["wakes", "switches", "cpu_s"] {
            assert!(line["counted"][key].as_f64().unwrap() >= 0.0, "{line}");
        }
        let seconds = |key: &str| line[key].as_f64().unwrap();
        assert!(seconds("min_s") <= seconds("median_s"));
        assert!(seconds("median_s") <= seconds("max_s"));
    }
}

/// The cost model chooses it where nobody says what it is.
#[test]
fn the_radix_is_the_plans() {
    let size = ["--bytes", "2000000", "--tensors", "9"];
    let machine = ["--servers", "8", "--machine", "mock", "--radix", "auto"];
    let planned = adasum_run(&[&["plan"], &size[..], &machine].concat()).output();
    let plan = out(&planned.unwrap());
    let (_, radix) = plan.split_once("hierarchical, radix ").expect("a radix");
    let reps = ["--ranks", "8", "--reps", "1", "--json"];
    for (asked, expected) in [("auto", &radix[..1]), ("3", "3")] {
        let chosen = match asked {
            "auto" => lines(&[&size[..], &reps].concat()),
            _ => lines(&[&size[..], &reps, &["--radix", asked]].concat()),
        };
        assert_eq!(chosen[0]["radix"].to_string(), expected);
    }
    assert_ne!(&radix[..1], "2", "{plan}");
}

/// The table of counts in docs/costs.md, as far as it is soon measured.
#[test]
fn the_page_has_the_launches_and_messages() {
    let page = include_str!("../../docs/costs.md");
    let (_, table) = page
        .split_once("| form | ranks | bytes | radix | launches |")
        .unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let rows = table.lines().skip(2).map(|row| -> Vec<&str> {
        let cells = row.trim_matches('|').split('|');
        cells.map(str::trim).collect()
    });
    let mut compared = 0;
    for row in rows {
        let [form, ranks, bytes, radix, launches, messages] = row[..6] else {
            panic!("{row:?}");
        };
        let bytes = bytes.replace(',', "");
        if bytes.len() > 7 && ranks != "2" || bytes.len() > 8 {
            continue;
        }
        // The standard sizes depend on the machine's caches.
        let (exchange, bucket) = match form {
            "shared" => ("shared", "67108864"),
            _ => ("auto", "16777216"),
        };
        let buckets = ["--exchange", exchange, "--bucket-bytes", bucket];
        let plan = [&buckets[..], &["--radix", radix]].concat();
        let size = ["--bytes", &bytes, "--tensors", "161"];
        let options = ["--ranks", ranks, "--reps", "1", "--check", "0", "--json"];
        let counted = lines(&[&size[..], &plan, &options].concat()).remove(0)["counted"].take();
        for (key, shown) in [("launches", launches), ("messages", messages)] {
            let shown: f64 = shown.replace(',', "").parse().unwrap();
            assert_eq!(counted[key], shown, "{key}: {row:?}");
        }
        compared += 1;
    }
    assert_eq!(compared, 10);
}

#[test]
fn a_sweep_is_a_table() {
    let output = bench(&[
        "--ranks", "4", "-b", "64", "-e", "70K", "-f", "32", "--reps", "2",
    ]);
    assert!(output.status.success(), "{output:?}");
    let table = out(&output);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "# AdaSum, 4 ranks, 1 a server, 2 repetitions");
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let names = [
        "#", "size", "tensors", "type", "time", "algbw", "busbw", "wrong",
    ];
    assert_eq!(words(lines[1]), names);
    assert_eq!(words(lines[2]), ["#", "(B)", "(us)", "(GB/s)", "(GB/s)"]);
    let rows = &lines[3..lines.len() - 2];
    let expected = [("64", "16"), ("2048", "161"), ("65536", "161")];
    assert_eq!(rows.len(), expected.len(), "{table}");
    for (row, (size, tensors)) in rows.iter().zip(expected) {
        // Numbers end below the ends of the names.
        assert_eq!(row.len(), lines[1].len(), "{table}");
        let words = words(row);
        assert_eq!(words.len(), 7, "{table}");
        assert_eq!(words[..3], [size, tensors, "f32"], "{table}");
        assert!(words[3].parse::<f64>().unwrap() > 0.0, "{table}");
        assert_eq!(words[6], "0", "{table}");
    }
    let [wrong, average] = lines[lines.len() - 2..] else {
        panic!("{table}");
    };
    assert_eq!(wrong, "# wrong elements: 0");
    assert!(average.starts_with("# average busbw: "), "{table}");
}

/// Every combination that the exact result is computed for in another way.
#[test]
fn right_results_are_not_called_wrong() {
    for arguments in [
        "--ranks 3 --dtype bf16",
        "--ranks 6 --devices-per-server 2 --dtype f16 --tensors 1",
        "--ranks 8 --radix 8",
        "--ranks 4 --devices-per-server 2 --mean --dtype bf16",
        "--ranks 2 --mean",
        "--ranks 2 --exchange alltoall --bucket-bytes 4K --pipeline-depth 3",
    ] {
        let sweep = "-b 4 -e 400K -f 40 --reps 1 --json";
        let arguments: Vec<&str> = sweep.split(' ').chain(arguments.split(' ')).collect();
        let lines = lines(&arguments);
        assert!(lines.len() == 4, "{lines:?}");
        for line in &lines {
            assert_eq!(line["wrong"], 0, "{arguments:?}: {line}");
        }
    }
}

#[test]
fn wrong_results_are_counted_and_fail() {
    let fault = [("HCCL_MOCK_FAULT", "1:HcclBatchSendRecv:*:corrupt")];
    let arguments = [
        "--ranks",
        "2",
        "-b",
        "4K",
        "-e",
        "8K",
        "--reps",
        "1",
        "--exchange",
        "batch",
    ];
    let output = with(&fault, &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (table, error) = (out(&output), err(&output));
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(rows.len(), 2, "{table}");
    let wrong: Vec<u64> = (rows.iter())
        .map(|row| row.split_whitespace().last().unwrap().parse().unwrap())
        .collect();
    assert!(wrong.iter().all(|&wrong| wrong > 0), "{table}");
    let sum: u64 = wrong.iter().sum();
    assert!(
        table.contains(&format!("# wrong elements: {sum}\n")),
        "{table}"
    );
    let sentence = format!("adasum-run: the result is wrong: {sum} elements");
    assert!(error.contains(&sentence), "{error}");
    assert!(error.contains("with 4096, 8192 bytes"), "{error}");

    // Nobody looks.
    let unchecked = with(&fault, &[&arguments[..], &["-c", "0"]].concat());
    assert!(unchecked.status.success(), "{unchecked:?}");
    let table = out(&unchecked);
    assert_eq!(table.matches(" N/A\n").count(), 3, "{table}");
    let json = with(&fault, &[&arguments[..], &["--check=0", "--json"]].concat());
    assert!(
        objects(&json).iter().all(|line| line["wrong"].is_null()),
        "{json:?}"
    );
}

/// A command that says that it takes 1000 s for 4096 bytes and 500 s for 8192, among other things.
const OTHER: &str = r#"echo no JSON; echo '{"bytes":4096}'; for b in 4096 8192
    do echo '{"peer":"other","bytes":'$b',"median_s":'$((4096000 / b))'}'; done"#;

#[test]
fn a_ratio_is_taken_round_by_round() {
    let arguments = [
        "--compare",
        OTHER,
        "--rounds",
        "3",
        "-b",
        "4096",
        "-e",
        "8192",
        "--reps",
        "1",
    ];
    let lines = lines(&[&arguments[..], &["--json"]].concat());
    let (rounds, ratios) = lines.split_at(lines.len() - 2);
    let medians = rounds.iter().filter(|line| line.get("median_s").is_some());
    let who = medians.map(|line| line["peer"].as_str().unwrap());
    // In turn, and whoever is first changes.
    let expected = ["other", "adasum", "adasum", "other", "other", "adasum"];
    assert_eq!(
        who.collect::<Vec<_>>(),
        expected.map(|name| [name; 2]).concat()
    );
    for (ratio, bytes, other) in [(&ratios[0], 4096, 1000.0), (&ratios[1], 8192, 500.0)] {
        assert_eq!(ratio["compare"], OTHER);
        assert_eq!(ratio["bytes"], bytes);
        assert_eq!(ratio["rounds"], 3);
        let ours = rounds
            .iter()
            .filter(|line| line["peer"] == "adasum" && line["bytes"] == bytes);
        let mut each: Vec<f64> = ours
            .map(|line| line["median_s"].as_f64().unwrap() / other)
            .collect();
        // JSON may cost the last bit.
        let near = |told: &Value, value: f64| (told.as_f64().unwrap() / value - 1.0).abs() < 1e-9;
        let told = ratio["ratios"].as_array().unwrap();
        assert_eq!(told.len(), each.len(), "{ratio}");
        assert!(
            told.iter()
                .zip(&each)
                .all(|(told, &value)| near(told, value)),
            "{ratio}"
        );
        each.sort_by(f64::total_cmp);
        for (key, value) in [
            ("ratio", each[1]),
            ("ratio_min", each[0]),
            ("ratio_max", each[2]),
            ("ratio_q1", (each[0] + each[1]) / 2.0),
        ] {
            assert!(near(&ratio[key], value), "{ratio}");
        }
    }

    let output = bench(&arguments);
    assert!(output.status.success(), "{output:?}");
    let table = out(&output);
    assert!(
        table.contains("# ratio: time over the other's, median and quartiles of 3 rounds\n"),
        "{table}"
    );
    let rows: Vec<Vec<&str>> = (table.lines().filter(|line| !line.starts_with('#')))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let shown: Vec<(&str, &str, &str)> = rows.iter().map(|row| (row[0], row[6], row[7])).collect();
    assert_eq!(
        shown,
        [("4096", "0", "1000000000"), ("8192", "0", "500000000")]
    );
    assert!(rows.iter().all(|row| row.len() == 11), "{table}");
    let said = err(&output);
    for line in ["no JSON\n", "adasum-run: round 3 of 3\n"] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn a_program_that_is_no_comparison_is_refused() {
    for (command, code, why) in [
        (
            "/nonexistent/program",
            2,
            "--compare \"/nonexistent/program\": exit status 127",
        ),
        ("exit 3", 1, "--compare \"exit 3\": exit status 3"),
        ("kill -9 $$", 1, "killed by signal 9 (SIGKILL)"),
        (
            "echo hello",
            2,
            "no line of it is a JSON object with bytes 4096",
        ),
        (
            r#"echo '{"bytes":4096,"median_s":0}'"#,
            2,
            "median_s is 0 for 4096 bytes",
        ),
    ] {
        let output = bench(&["-b", "4096", "--reps", "1", "--compare", command]);
        let error = err(&output);
        assert_eq!(output.status.code(), Some(code), "{command}: {error}");
        assert!(error.contains(why), "{command}: {error}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, word) in [
        (
            &["--ranks", "3", "--devices-per-server", "2"][..],
            "--ranks",
        ),
        (
            &["--bytes", "64", "--tensors", "17"],
            "--bytes 64: too few for 17 tensors, of which each has an element of 4 bytes",
        ),
        (&["-b", "4K", "-e", "1K"], "-e 1024 is less than -b 4096"),
        (
            &["-b", "1K", "-e", "4K", "-f", "1"],
            "'--stepfactor <F>': 1 is not in",
        ),
        (&["-b", "1 K", "-e", "4K"], "'--bytes <B>': must be 4 to"),
        (&["-e", "4K"], "--bytes <B>"),
        (&["-b", "4K", "-f", "2"], "--maxbytes <B>"),
        (&["-b", "4K", "-c", "2"], "'--check <0|1>'"),
        (
            &["--kernels", "-b", "8"],
            "--bytes 8: --kernels and --transport need at least 64",
        ),
        (&["--transport", "-b", "64", "-e", "128"], "--maxbytes"),
        (
            &["--transport", "--ranks", "4"],
            "cannot be used with '--ranks <N>'",
        ),
        (
            &["--kernels", "--dtype", "f16", "--radix", "2"],
            "cannot be used with",
        ),
        (&["--rounds", "3"], "--compare <COMMAND>"),
        (&["--kernels", "--transport"], "--transport"),
        (&["--tensors", "399"], "--tensors"),
    ] {
        let output = bench(arguments);
        let error = err(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
}
