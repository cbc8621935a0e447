//! Numbers and words of all subcommands, with one and with two of everything.

use std::cell::RefCell;
use std::process::Output;

use crate::support::adasum_run::{Folder, adasum_run};

/// What is counted, in the singular.
const NOUNS: &str = "attempt bucket byte collective core device element epoch error exchange fault file function gradient group \
    image kernel level line message number parameter peer rank record repetition restart round row second server stage step stream \
    subtree table tensor warning word";

/// "1 ranks" and "2 rank": places in `text` where number and word do not go together.
fn wrong_words(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &str| {
        word.trim_end_matches(|c: char| !c.is_alphanumeric())
            .to_owned()
    };
    let nouns: Vec<&str> = NOUNS.split_whitespace().collect();
    let mut wrong = Vec::new();
    for (at, pair) in words.windows(2).enumerate() {
        // The end of a list is no count: "0, 1 servers".
        let Ok(number) = pair[0].trim_start_matches('(').parse::<u64>() else {
            continue;
        };
        let noun = bare(pair[1]);
        let before = at
            .checked_sub(1)
            .map(|at| bare(words[at]))
            .unwrap_or_default();
        // "rank 2 server 1" numbers things.
        let numbered = nouns
            .iter()
            .any(|noun| before == *noun || before == format!("{noun}s"));
        let in_list = at > 0 && words[at - 1].ends_with(['+', ',']);
        let is = |form: &dyn Fn(&str) -> String| nouns.iter().any(|known| noun == form(known));
        let (one, many) = (
            is(&|known| known.to_owned()),
            is(&|known| format!("{known}s")),
        );
        if !numbered && !in_list && (number == 1 && many || number != 1 && one) {
            wrong.push(words[at.saturating_sub(5)..(at + 5).min(words.len())].join(" "));
        }
    }
    wrong
}

#[test]
fn wrong_words_are_found() {
    for right in [
        "1 rank of 2 servers",
        "rank 1, 2 ranks; rank 2 server 1",
        "ranks 0, 1 server_0",
        "0 files",
    ] {
        assert_eq!(wrong_words(right), Vec::<String>::new(), "{right}");
    }
    for wrong in [
        "a rank of 1 servers.",
        "(1 faults)",
        "2 message",
        "0 file",
        "so 11 step",
    ] {
        assert_eq!(wrong_words(wrong).len(), 1, "{wrong}");
    }
}

/// A file of so many tensors, each with as many elements.
fn tensors(folder: &Folder, name: &str, number: usize) {
    let bytes = 4 * number;
    let entry = |tensor: usize| {
        let (start, end) = (tensor * bytes, (tensor + 1) * bytes);
        format!(
            r#""t{tensor}": {{"dtype": "F32", "shape": [{number}], "data_offsets": [{start}, {end}]}}"#
        )
    };
    let header = format!(
        "{{{}}}",
        (0..number).map(entry).collect::<Vec<_>>().join(", ")
    );
    let length = (header.len() as u64).to_le_bytes();
    let values = 1_f32.to_le_bytes().repeat(number * number);
    let file = [&length[..], header.as_bytes(), &values].concat();
    std::fs::write(folder.path().join(name), file).unwrap();
}

#[test]
fn all_subcommands_count_in_right_words() {
    let folder = Folder::new("words");
    let said = RefCell::new(String::new());
    let run = |line: &str, options: &[&str]| -> Output {
        let arguments: Vec<&str> = line.split(' ').chain(options.iter().copied()).collect();
        let mut command = adasum_run(&arguments);
        let output = command.current_dir(folder.path()).output().unwrap();
        let text = [output.stdout.clone(), output.stderr.clone()].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        said.borrow_mut()
            .push_str(&format!("\n$ {} |\n{text}", arguments.join("_")));
        output
    };
    let fault = r#"{"version": "1.0", "server_count": "1", "status": "completed", "server_list": [{"server_id": "a", "device": ["#;
    for n in ["1", "2"] {
        let number: usize = n.parse().unwrap();
        for rank in 0..2 {
            tensors(&folder, &format!("{n}-{rank}.safetensors"), number);
        }
        let devices = vec![r#"{"device_id": "x", "device_ip": "y", "rank_id": "z"}"#; number];
        let bad = format!("{fault}{}]}}]}}", devices.join(", "));
        std::fs::write(folder.path().join(format!("bad{n}.json")), bad).unwrap();
        for d in ["1", "2"] {
            run(
                "plan --tensors 1 --bytes 4",
                &["--servers", n, "--devices-per-server", d],
            );
            run(
                "plan --counts 1,1 --rank 0",
                &["--servers", n, "--devices-per-server", d],
            );
            run(
                "launch --timeout 100",
                &["--servers", n, "--devices-per-server", d, "--", "true"],
            );
            run(
                "bench -b 8 --reps 1",
                &["--ranks", n, "--tensors", d, "--devices-per-server", d],
            );
            let files = [format!("{n}-0.safetensors"), format!("{n}-1.safetensors")];
            let files: Vec<&str> = files
                .iter()
                .take(d.parse().unwrap())
                .map(String::as_str)
                .collect();
            for options in [
                "",
                "--reduction mean",
                "--arithmetic mindspore",
                "--devices-per-server 2",
                "--stats s.json",
            ] {
                let options = options.split_whitespace().chain(["-o", "out.safetensors"]);
                run(
                    "reduce",
                    &files.iter().copied().chain(options).collect::<Vec<_>>(),
                );
            }
        }
        run(
            "reduce -o out.safetensors 1-0.safetensors 2-0.safetensors",
            &[],
        );
        run("launch --restarts", &[n, "-n", n, "--", "false"]);
        run("launch --timeout 0.1 -n", &[n, "--", "sleep", "9"]);
        run(
            "launch --hosts a:1,b:1 --ssh=false --devices-per-server",
            &[n, "--", "true"],
        );
        let record =
            r#"echo '{"step":1,"values":{"loss":1}}' > $ADASUM_STATISTICS_DIR/rank_$RANK.jsonl"#;
        run(
            "launch",
            &[
                "-n",
                n,
                "--report",
                &format!("report{n}"),
                "--",
                "sh",
                "-c",
                record,
            ],
        );
        let page = std::fs::read_to_string(folder.path().join(format!("report{n}/index.html")));
        let page = page.unwrap();
        // What stands between elements.
        let page: Vec<&str> = page
            .split('<')
            .filter_map(|part| Some(part.split_once('>')?.1))
            .collect();
        let page = page.join(" |\n");
        run(
            "launch",
            &["-n", n, "--report", &format!("empty{n}"), "--", "true"],
        );
        run("simulate --bytes 4 --tensors", &[n, "--devices", n]);
        run("simulate --bytes 4 --tensors", &[n, "--devices", "16"]);
        run("bench --kernels -b 64 --reps", &[n]);
        let range = format!("[0,{n})");
        let ips = ["10.1.0.1", "10.1.0.2"][..number].join(",");
        run(
            "table make --server-ip 10.0.0.1 --device-num",
            &[&range, "--device-ips", &ips],
        );
        run(
            "table make --server-ip 10.0.0.2 --device-num",
            &[&range, "--device-ips", &ips.replace("10.1.0", "10.1.1")],
        );
        let made = |server: u32| format!("hccl_{n}p_{}_10.0.0.{server}.json", &"01"[..number]);
        let table = made(1);
        assert!(run("table show", &[&table]).status.success());
        run("table check", &[&table]);
        run("table check", &[&format!("bad{n}.json")]);
        run("doctor --no-device --rank-table", &[&table]);
        run("plan --rank-table", &[&table]);
        let merged = run("table merge", &[&table, &made(2)]);
        assert!(merged.status.success());
        run(
            "table show",
            &[String::from_utf8(merged.stdout).unwrap().trim()],
        );
        run(
            "launch --rank-table",
            &[&format!("bad{n}.json"), "--", "true"],
        );
        said.borrow_mut().push_str(&page);
    }
    let said = said.into_inner();
    assert!(said.lines().count() > 500, "{said}");
    let wrong = wrong_words(&said);
    assert!(wrong.is_empty(), "{}\n{said}", wrong.join("\n"));
}
