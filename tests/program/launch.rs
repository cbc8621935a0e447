//! `adasum-run launch`: what ranks are given, how their output and their ends are passed on, and that none is left.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::adasum_run::{
    Folder, adasum_run, adasum_run_within, all_gone, children, err, eventually, out, send, variable,
};

const TABLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/rank_tables/rank_table_16pcs.json"
);
/// How long the launcher waits for ranks that it has told to end: what takes less was not killed.
const GRACE: Duration = Duration::from_secs(5);
/// Each rank notes its number and waits for a signal.
const WAIT: &str = "echo $$ > $RANK_ID.new; mv $RANK_ID.new $RANK_ID; exec sleep 1000";

/// A shell script on the ranks of the tutorial's table, in `folder`.
fn shell(folder: &Folder, options: &[&str], script: &str) -> Command {
    let mut command = adasum_run(&["launch", "--rank-table", TABLE]);
    command.args(options).args(["--", "sh", "-c", script]);
    command.current_dir(folder.path());
    command
}

fn run(options: &[&str], script: &str) -> Output {
    let folder = Folder::new(&format!("launch-{:?}", std::thread::current().id()));
    shell(&folder, options, script).output().unwrap()
}

fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the ranks said, in the order of letters.
fn sorted(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = out(output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Lines of `env` by rank.
fn environments(output: &Output) -> HashMap<u32, HashMap<String, String>> {
    let mut ranks: HashMap<u32, HashMap<String, String>> = HashMap::new();
    for line in out(output).lines() {
        let (rank, pair) = line.strip_prefix("[r").unwrap().split_once("] ").unwrap();
        if let Some((name, value)) = pair.split_once('=') {
            let rank = ranks.entry(rank.parse().unwrap()).or_default();
            rank.insert(name.to_owned(), value.to_owned());
        }
    }
    ranks
}

#[test]
fn every_rank_gets_the_environment_of_the_tutorial() {
    let output = run(&[], "env");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let ranks = environments(&output);
    assert_eq!(ranks.len(), 16);
    for (rank, environment) in &ranks {
        let (server, local) = (rank / 8, rank % 8);
        for (name, value) in [
            ("RANK_TABLE_FILE", TABLE.to_owned()),
            ("MINDSPORE_HCCL_CONFIG_PATH", TABLE.to_owned()),
            ("RANK_ID", rank.to_string()),
            ("RANK_SIZE", "16".to_owned()),
            ("DEVICE_ID", local.to_string()),
            ("DEVICE_NUM", "8".to_owned()),
            ("SERVER_ID", server.to_string()),
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", "16".to_owned()),
            ("LOCAL_RANK", local.to_string()),
            ("LOCAL_WORLD_SIZE", "8".to_owned()),
        ] {
            assert_eq!(environment.get(name), Some(&value), "rank {rank} {name}");
        }
        for name in ["HCCL_MOCK_JOB", "ADASUM_JOB_SECRET"] {
            assert_eq!(environment[name], ranks[&0][name]);
        }
    }
    let other = environments(&run(&[], "env"));
    for name in ["HCCL_MOCK_JOB", "ADASUM_JOB_SECRET"] {
        assert_ne!(other[&0][name], ranks[&0][name]);
    }
    assert_eq!(ranks[&0]["ADASUM_JOB_SECRET"].len(), 64);
}

#[test]
fn one_server_by_index_or_by_id() {
    for server in ["1", "10.155.111.141"] {
        let ranks = environments(&run(&["--server-id", server], "env"));
        let mut numbers: Vec<u32> = ranks.keys().copied().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (8..16).collect::<Vec<_>>());
        assert!(!ranks[&8].contains_key("HCCL_MOCK_JOB"));
        // Another launcher could not know it.
        assert!(!ranks[&8].contains_key("ADASUM_JOB_SECRET"));
        assert_eq!(ranks[&8]["SERVER_ID"], "1");
    }
    let ranks = environments(&run(&["--server-id", "0", "--job", "mine"], "env"));
    assert_eq!(ranks[&7]["HCCL_MOCK_JOB"], "mine");
}

/// A secret of the user's is handed on as it is, and looked at before anything starts.
#[test]
fn a_secret_of_the_user_is_kept() {
    let folder = Folder::new("launch-secret");
    let file = folder.path().join("secret");
    std::fs::write(&file, "the secret of a user\n").unwrap();
    let set_mode = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&file, mode).unwrap();
    };
    set_mode(0o600);
    let mut command = shell(&folder, &[], "env");
    let output = command
        .env("ADASUM_JOB_SECRET_FILE", &file)
        .output()
        .unwrap();
    let ranks = environments(&output);
    assert_eq!(ranks[&3]["ADASUM_JOB_SECRET_FILE"], file.to_str().unwrap());
    assert!(!ranks[&3].contains_key("ADASUM_JOB_SECRET"));
    // A relative path would lead elsewhere from the directory of a rank.
    let own = shell(&folder, &["--log-dir", "logs", "--own-dir"], "env")
        .env("ADASUM_JOB_SECRET_FILE", "secret")
        .output()
        .unwrap();
    let path = environments(&own)[&3]["ADASUM_JOB_SECRET_FILE"].clone();
    assert_eq!(
        std::fs::canonicalize(path).unwrap(),
        std::fs::canonicalize(&file).unwrap()
    );
    set_mode(0o604);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = err(&output);
    let expected = format!(
        "ADASUM_JOB_SECRET_FILE: {}: its mode is 0604, so that others may use it",
        file.display()
    );
    assert!(message.contains(&expected), "{message}");
    assert_eq!(out(&output), "");
}

/// What left its group and its session ends with the job, however the job ends.
#[test]
fn processes_in_sessions_of_their_own_end_with_the_job() {
    let script =
        "setsid sh -c 'echo $$ > '$RANK_ID'.new; mv '$RANK_ID'.new '$RANK_ID'; exec sleep 1000' &
        while [ ! -f $RANK_ID ]; do sleep 0.1; done";
    // Rank 3 fails when all have noted what they started.
    let failure = "[ $RANK_ID = 3 ] || exec sleep 1000
        while [ $(ls | grep -cx '[0-9]*') -lt 16 ]; do sleep 0.1; done; exit 7";
    for (name, end, code) in [
        ("success", "exit 0", Some(0)),
        ("failure", failure, Some(7)),
        ("killed", "exec sleep 1000", None),
    ] {
        let folder = Folder::new(&format!("launch-setsid-{name}"));
        let mut launcher = start(&mut shell(&folder, &[], &format!("{script}; {end}")));
        let pids = folder.pids(0..16);
        if code.is_none() {
            launcher.kill().unwrap();
        }
        let output = launcher.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{name}: {}", err(&output));
        all_gone(&pids);
    }
}

#[test]
fn a_relative_table_becomes_absolute() {
    let folder = Folder::new("relative");
    std::fs::copy(TABLE, folder.path().join("table.json")).unwrap();
    let output = adasum_run(&["launch", "--rank-table", "table.json", "--", "env"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let path = folder.path().join("table.json");
    assert_eq!(
        environments(&output)[&3]["RANK_TABLE_FILE"],
        path.to_str().unwrap()
    );
}

/// Numbers of ranks as users of other launchers give them.
#[test]
fn ranks_without_a_table_get_one() {
    let script = "echo $RANK_ID/$RANK_SIZE device $DEVICE_ID of $DEVICE_NUM, server $SERVER_ID";
    let said = |options: &[&str]| {
        let mut command = adasum_run(&["launch", "--prefix", "none"]);
        let command = command.args(options).args(["--", "sh", "-c", script]);
        // What is given counts, not what is there.
        let output = command.env("RANK_TABLE_FILE", TABLE).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        sorted(&output)
    };
    let of = |servers: u32, devices: u32| {
        let rank = |rank: u32| {
            let (size, device, server) = (servers * devices, rank % devices, rank / devices);
            format!("{rank}/{size} device {device} of {devices}, server {server}")
        };
        let mut lines: Vec<String> = (0..servers * devices).map(rank).collect();
        lines.sort();
        lines
    };
    assert_eq!(said(&["-n", "4"]), of(1, 4));
    assert_eq!(said(&["--np", "1"]), of(1, 1));
    assert_eq!(said(&["--nproc-per-node", "3"]), of(1, 3));
    assert_eq!(said(&["--nproc_per_node=2", "--nnodes=2"]), of(2, 2));
    assert_eq!(said(&["-n12", "--servers", "3"]), of(3, 4));
    assert_eq!(
        said(&["--servers", "2", "--devices-per-server", "3"]),
        of(2, 3)
    );
    assert_eq!(said(&["--worker_num=4", "--local_worker_num=1"]), of(4, 1));

    let refused = |options: &[&str], why: &str| {
        let mut command = adasum_run(&["launch"]);
        let command = command.args(options).args(["--", "true"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(err(&output).contains(why), "{options:?}: {}", err(&output));
    };
    refused(
        &["-n", "4", "--servers", "3"],
        "-n 4: --servers 3 does not divide it",
    );
    refused(
        &["-n", "4", "--servers", "2", "--devices-per-server", "3"],
        "-n 4: 2 servers of 3",
    );
    refused(&["--servers", "2"], "--servers 2: how many ranks?");
    refused(&["-n", "0"], "invalid value '0' for '--ranks <RANKS>'");
    refused(&["-n", "4", "--rank-table", TABLE], "cannot be used with");
    refused(&["-n", "4", "--rank", "1"], "cannot be used with");
    refused(&[], "give -n RANKS");
    refused(
        &["-n", "1", "--master-port", "0"],
        "invalid value '0' for '--master-port",
    );
}

#[test]
fn prefixes_are_as_asked_for() {
    let line = |prefix: &str| {
        let options = [
            "launch", "-n", "1", "--prefix", prefix, "--", "echo", "text",
        ];
        out(&adasum_run(&options).output().unwrap())
    };
    assert_eq!(line("none"), "text\n");
    assert_eq!(line("rank"), "[r0] text\n");
    let timed = line("time");
    let seconds = timed
        .strip_prefix("[r0 ")
        .and_then(|rest| rest.strip_suffix("] text\n"));
    assert!(seconds.unwrap().parse::<f64>().unwrap() >= 0.0, "{timed}");
}

#[test]
fn rank_0_can_have_the_standard_input() {
    let read = |options: &[&str]| {
        let mut command = adasum_run(&["launch", "-n", "2"]);
        command.args(options).args(["--", "sh", "-c", "wc -c"]);
        let mut child = start(command.stdin(Stdio::piped()));
        let text = vec![b'x'; 300_000];
        // A launcher that wants no input closes the pipe when it ends.
        let _ = child.stdin.take().unwrap().write_all(&text);
        sorted(&child.wait_with_output().unwrap())
    };
    assert_eq!(read(&["--stdin"]), ["[r0] 300000", "[r1] 0"]);
    assert_eq!(read(&[]), ["[r0] 0", "[r1] 0"]);
}

#[test]
fn ranks_are_bound_to_cores_that_the_launcher_may_use() {
    let cores = |options: &[&str]| {
        let mut command = adasum_run(&["launch", "-n", "2", "--prefix", "none"]);
        command
            .args(options)
            .args(["--", "grep", "Cpus_allowed_list", "/proc/self/status"]);
        sorted(&command.output().unwrap())
    };
    let (free, bound) = (cores(&[]), cores(&["--bind-to-cores"]));
    assert_eq!((free.len(), bound.len()), (2, 2));
    assert_eq!(free[0], free[1]);
    match std::thread::available_parallelism().unwrap().get() {
        1 => assert_eq!(bound, free),
        _ => assert!(
            bound[0] != bound[1] && !bound.contains(&free[0]),
            "{free:?} {bound:?}"
        ),
    }
}

/// A line without an end, as a question, comes out while its rank waits.
#[test]
fn a_line_without_an_end_comes_out_in_time() {
    let mut child = start(&mut adasum_run(&[
        "launch",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        "printf 'sure? '; exec sleep 1000",
    ]));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "[r0] sure? \n");
    send("-TERM", child.id());
    child.wait().unwrap();
}

/// Nor does a bar of progress wait for its end, though more of it comes all the time.
#[test]
fn a_line_that_grows_comes_out_in_time() {
    let grows = "while :; do printf '#'; sleep 0.3; done";
    let mut child = start(&mut adasum_run(&[
        "launch", "-n", "1", "--", "sh", "-c", grows,
    ]));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("[r0] ##"), "{line}");
    send("-TERM", child.id());
    child.wait().unwrap();
}

#[test]
fn three_million_short_lines_are_passed_on_whole() {
    let folder = Folder::new("blocks");
    let script = "yes 1234567 | head -c 24000000";
    let output = adasum_run(&[
        "launch",
        "-n",
        "1",
        "--prefix",
        "none",
        "--log-dir",
        "logs",
        "--",
        "sh",
        "-c",
        script,
    ])
    .current_dir(folder.path())
    .output()
    .unwrap();
    assert_eq!(output.stdout.len(), 24_000_000);
    let log = std::fs::read(folder.path().join("logs/device_0/train.log")).unwrap();
    assert!(log == output.stdout, "the log is something else");
}

#[test]
fn wrong_usage_is_2_and_one_line_says_why() {
    let output = run(&["--server-id", "7"], "true");
    assert_eq!(output.status.code(), Some(2));
    let message = err(&output);
    assert!(
        message.starts_with("adasum-run: ") && message.lines().count() == 1,
        "{message}"
    );
    assert!(message.contains("no server \"7\""), "{message}");
    assert!(message.contains("1 (\"10.155.111.141\")"), "{message}");

    let missing = adasum_run(&["launch", "--rank-table", "/none.json", "--", "true"]);
    let output = { missing }.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).starts_with("adasum-run: /none.json: "));

    for arguments in [
        &["launch", "--rank-table", TABLE][..],
        &["launch", "--", "true"],
        &[
            "launch",
            "--rank-table",
            TABLE,
            "--timeout",
            "0",
            "--",
            "true",
        ],
        &[
            "launch",
            "--rank-table",
            TABLE,
            "--timeout",
            "soon",
            "--",
            "true",
        ],
        &["nonsense"],
    ] {
        assert_eq!(
            adasum_run(arguments).output().unwrap().status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_program_that_cannot_be_started_is_127_or_126() {
    let folder = Folder::new("nostart");
    let launch = |program: &str| {
        adasum_run(&["launch", "--rank-table", TABLE, "--", program])
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let output = launch("./no-such-program");
    assert_eq!(output.status.code(), Some(127));
    assert!(err(&output).starts_with("adasum-run: rank 0: cannot start ./no-such-program: "));
    std::fs::write(folder.path().join("text"), "not a program").unwrap();
    assert_eq!(launch("./text").status.code(), Some(126));
}

#[test]
fn lines_are_whole_and_carry_their_rank() {
    let script = "i=0; while [ $i -lt 50 ]; do printf '%s-' $RANK_ID; printf '%0200d\\n' $i; i=$((i+1)); done; printf last";
    let output = run(&[], script);
    let mut next = HashMap::new();
    let mut last = 0;
    for line in out(&output).lines() {
        let (rank, text) = line.strip_prefix("[r").unwrap().split_once("] ").unwrap();
        if text == "last" {
            last += 1;
            continue;
        }
        // Each rank's lines are whole and in their order.
        let number = next.entry(rank.to_owned()).or_insert(0);
        assert_eq!(text, format!("{rank}-{number:0200}"));
        *number += 1;
    }
    assert_eq!((next.len(), last), (16, 16));
    assert!(next.values().all(|count| *count == 50));
}

#[test]
fn both_streams_stay_apart_and_nothing_is_lost() {
    let output = run(&["--server-id", "0"], "seq 1 5000; echo oops >&2");
    assert_eq!(out(&output).lines().count(), 8 * 5000);
    let mut errors: Vec<String> = err(&output).lines().map(str::to_owned).collect();
    errors.sort();
    let expected: Vec<String> = (0..8).map(|rank| format!("[r{rank}] oops")).collect();
    assert_eq!(errors, expected);
}

#[test]
fn the_first_failure_is_reported_first_and_its_code_passed_on() {
    let script = "case $RANK_ID in
        2) echo before; echo broken >&2; touch failing; exit 5;;
        6) while ! [ -e failing ]; do sleep 0.01; done; sleep 0.1; exit 9;;
        *) exec sleep 1000;; esac";
    let output = run(&[], script);
    assert_eq!(output.status.code(), Some(5));
    let message = err(&output);
    let lines: Vec<&str> = message
        .lines()
        .filter(|line| line.starts_with("adasum-run"))
        .collect();
    assert_eq!(
        lines[0],
        "adasum-run: rank 2 failed first: exit status 5 (server 0 \"10.155.111.140\", device 2)"
    );
    assert_eq!(lines[1], "adasum-run: its last lines:");
    assert!(
        lines[2..4].contains(&"adasum-run:   [r2] before"),
        "{message}"
    );
    assert!(
        lines[2..4].contains(&"adasum-run:   [r2] broken"),
        "{message}"
    );
    assert!(
        lines[4].starts_with("adasum-run: stopping the others: "),
        "{message}"
    );
}

/// A report that is read after the end of its rank counts: the machine may be busy.
#[test]
fn a_report_that_comes_late_is_no_silence() {
    let script = r#"
        report() { echo "adasum-report: {\"report\":\"$1\",\"rank\":$RANK_ID$2}" >&2; }
        failed() { report failed ",\"message\":\"m\",\"stalled\":false,\"missed_others\":$1,\"waiting\":null"; }
        report joined
        if [ $RANK_ID = 0 ]; then
            until [ -e here ]; do sleep 0.05; done
            failed true
            touch gone
        else
            touch here
            until [ -e gone ]; do sleep 0.05; done
            sleep 0.3
            # Holds the pipe open, as a reader that gets no processor would.
            { sleep 0.6; failed false; } &
        fi
        exit 3"#;
    let folder = Folder::new("launch-late-report");
    let mut command = adasum_run(&["launch", "-n", "2", "--linger", "20"]);
    command.args(["--", "sh", "-c", script]);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let message = err(&output);
    assert!(message.contains("rank 0 failed first"), "{message}");
    assert!(
        message.contains("cause: rank 1 failed by itself"),
        "{message}"
    );
}

#[test]
fn a_killed_rank_ends_the_job_at_once() {
    let folder = Folder::new("kill9");
    let child = start(&mut shell(&folder, &[], WAIT));
    let pids = folder.pids(0..16);
    let begin = Instant::now();
    send("-KILL", pids[11]);
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < GRACE, "{:?}", begin.elapsed());
    assert_eq!(output.status.code(), Some(128 + 9));
    let message = err(&output);
    assert!(
        message.starts_with("adasum-run: rank 11 failed first: killed by signal 9 (SIGKILL)"),
        "{message}"
    );
    assert!(
        message.contains("stopping the others: ranks 0-10, 12-15"),
        "{message}"
    );
    all_gone(&pids);
}

#[test]
fn what_a_rank_started_goes_with_it() {
    let folder = Folder::new("family");
    // Rank 0 fails once the others' own processes run; they ignore the polite request.
    let script = "trap '' TERM
        if [ $RANK_ID = 0 ]; then while ! [ -e 7 ]; do sleep 0.01; done; exit 1; fi
        sleep 1000 & echo $! > $RANK_ID.new; mv $RANK_ID.new $RANK_ID; wait";
    let begin = Instant::now();
    let mut command = shell(&folder, &["--server-id", "0"], script);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    // Then SIGKILL.
    assert!(begin.elapsed() > GRACE);
    assert!(begin.elapsed() < Duration::from_secs(30));
    all_gone(&folder.pids(1..8));
}

#[test]
fn a_rank_that_ends_well_leaves_nothing_either() {
    let folder = Folder::new("leftover");
    let script = "sleep 1000 & echo $! > $RANK_ID";
    let output = shell(&folder, &["--server-id", "0"], script)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    all_gone(&folder.pids(0..8));
}

#[test]
fn the_timeout_is_124_and_names_who_still_runs() {
    let folder = Folder::new("timeout");
    let script = format!("[ $RANK_ID = 3 ] && exit 0; {WAIT}");
    let output = shell(&folder, &["--timeout", "0.7"], &script)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(
        err(&output),
        "adasum-run: timeout after 0.7 s, still running: ranks 0-2, 4-15\n"
    );
    all_gone(&folder.pids(4..16));
}

#[test]
fn ranks_can_be_told_to_end() {
    // Not a shell, which would unblock signals by itself.
    let mut command = adasum_run(&["launch", "--rank-table", TABLE, "--timeout", "0.3"]);
    let begin = Instant::now();
    let output = command.args(["--", "sleep", "1000"]).output().unwrap();
    assert_eq!(output.status.code(), Some(124));
    assert!(begin.elapsed() < GRACE, "{:?}", begin.elapsed());
}

#[test]
fn interrupts_are_passed_on() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let folder = Folder::new("interrupt");
        // In the background, so that the shell runs its trap at once.
        let script = "trap 'echo told; exit 0' INT TERM HUP
            echo $$ > $RANK_ID.new; mv $RANK_ID.new $RANK_ID; sleep 1000 & wait";
        let child = start(&mut shell(&folder, &["--server-id", "1"], script));
        let pids = folder.pids(8..16);
        send(signal, child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert_eq!(out(&output).matches("] told\n").count(), 8, "{signal}");
        all_gone(&pids);
    }
}

/// The thread that waits for the end of standard input does not take them.
#[test]
fn interrupts_are_passed_on_while_standard_input_is_read() {
    let folder = Folder::new("interrupt-stdin");
    let options = ["--server-id", "1", "--end-with-stdin"];
    let mut child = start(shell(&folder, &options, WAIT).stdin(Stdio::piped()));
    let pids = folder.pids(8..16);
    send("-TERM", child.id());
    let status = eventually("the end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(143));
    all_gone(&pids);
}

/// Ranks that print into a pipe that nobody reads wait, and so does the launcher, but not behind its limit or a signal.
#[test]
fn a_reader_that_stops_reading_keeps_nothing_from_ending_the_job() {
    for redirected in ["yes", "yes >&2"] {
        let folder = Folder::new("unread");
        let script = format!("echo $$ > $RANK_ID.new; mv $RANK_ID.new $RANK_ID; exec {redirected}");
        let begin = Instant::now();
        let mut child = start(&mut shell(&folder, &["--timeout", "2"], &script));
        let status = eventually("the limit", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(124), "{redirected}");
        assert!(begin.elapsed() >= Duration::from_secs(2));
        all_gone(&folder.pids(0..16));

        let folder = Folder::new("unread-told");
        let mut child = start(&mut shell(&folder, &[], &script));
        let pids = folder.pids(0..16);
        // As long as it takes to fill what a pipe holds.
        std::thread::sleep(Duration::from_secs(1));
        send("-TERM", child.id());
        let status = eventually("the end", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(143), "{redirected}");
        all_gone(&pids);
    }
}

/// A rank that fails ends the job, though its end waits behind lines that nobody reads. Logs have all lines.
#[test]
fn a_failure_ends_a_job_whose_output_nobody_reads() {
    // More than a pipe takes, and no more than the launcher's queue does, however few come at a time.
    const LINES: usize = 20_000;
    let script = format!(
        "echo $$ > $RANK.new; mv $RANK.new $RANK
        if [ $RANK = 1 ]; then until [ -e printed ]; do sleep 0.1; done; exit 7; fi
        yes 1234567 | head -n {LINES}; touch printed; exec sleep 1000"
    );
    for unread in ["stdout", "both"] {
        let folder = Folder::new(&format!("launch-unread-{unread}"));
        let mut command = adasum_run(&["launch", "-n", "2", "--log-dir", "logs"]);
        command.args(["--", "sh", "-c", &script]);
        command.current_dir(folder.path());
        let (_reader, writer) = std::io::pipe().unwrap();
        if unread == "both" {
            command.stderr(writer.try_clone().unwrap());
        } else {
            command.stderr(Stdio::piped());
        }
        let mut child = command.stdout(writer).spawn().unwrap();
        let ranks = folder.pids(0..2);
        let status = eventually("the end", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(7), "{unread}");
        all_gone(&ranks);
        let log = std::fs::read(folder.path().join("logs/device_0/train.log")).unwrap();
        assert_eq!(log.len(), 8 * LINES, "{unread}");
        if unread == "stdout" {
            let said = err(&child.wait_with_output().unwrap());
            assert!(said.contains("nobody reads the output"), "{said}");
            assert!(
                said.contains("rank 1 failed first: exit status 7"),
                "{said}"
            );
        }
    }
}

/// A signal ends the wait for what a rank that has failed may still report.
#[test]
fn a_signal_ends_the_wait_for_reports() {
    let folder = Folder::new("launch-signal-report");
    // What it leaves behind holds its pipes open.
    let script = r#"echo 'adasum-report: {"report":"joined","rank":0}' >&2
        setsid sh -c 'touch left; exec sleep 1000' &
        until [ -e left ]; do sleep 0.1; done
        echo $$ > 0.new; mv 0.new 0; exit 3"#;
    let mut command = adasum_run(&["launch", "-n", "1", "--linger", "1000"]);
    command.args(["--", "sh", "-c", script]);
    let mut child = start(command.current_dir(folder.path()));
    all_gone(&folder.pids(0..1));
    std::thread::sleep(Duration::from_secs(1));
    let status = eventually("the end", || {
        send("-INT", child.id());
        std::thread::sleep(Duration::from_millis(50));
        child.try_wait().unwrap()
    });
    // Or the signal came before the end of the rank.
    assert!(matches!(status.code(), Some(3 | 130)), "{status}");
}

#[test]
fn signals_count_while_ranks_are_started() {
    let folder = Folder::new("launch-signal-start");
    let script = "[ $RANK = 0 ] && kill -TERM $PPID; touch started.$RANK; exec sleep 1000";
    let mut command = adasum_run(&["launch", "-n", "600", "--", "sh", "-c", script]);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", err(&output));
    let started = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(started < 600, "all ranks were started");
}

/// The reaper of a launcher inside of a job is not ended with that job: it has still to end the ranks.
#[test]
fn the_reaper_of_an_inner_launcher_outlives_the_outer_job() {
    let folder = Folder::new("launch-nested");
    // What the inner rank leaves behind is in a session of its own, and so nobody's but the reaper's.
    let script = "setsid sh -c 'echo $$ > 0.new; mv 0.new 0; exec sleep 1000' & wait";
    let program = env!("CARGO_BIN_EXE_adasum-run");
    let mut command = adasum_run(&["launch", "-n", "1", "--", program, "launch", "-n", "1"]);
    command.args(["--", "sh", "-c", script]);
    let mut outer = start(command.current_dir(folder.path()));
    let left = folder.pids(0..1)[0];
    let is_reaper = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"reaper")
    };
    let inner = children(outer.id()).into_iter().find(|pid| !is_reaper(pid));
    let inner = inner.unwrap();
    let reaper = children(inner).into_iter().find(is_reaper).unwrap();
    // By its mark the outer job finds what it has to end.
    assert!(variable(inner, "ADASUM_LAUNCH_ID").is_some());
    assert_eq!(variable(reaper, "ADASUM_LAUNCH_ID"), None);
    send("-KILL", inner);
    assert_eq!(outer.wait().unwrap().code(), Some(137));
    all_gone(&[reaper, left]);
}

#[test]
fn a_limit_may_be_longer_than_the_clock() {
    let output = run(&["--linger", "1e18", "--timeout", "1e18"], "exit 3");
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
}

/// It carries no mark of the job, so that it is not found; it ends as nobody reads what it prints.
#[test]
fn what_is_left_behind_may_not_print_for_ever() {
    let folder = Folder::new("launch-printing");
    let forever = "touch started; while echo x; do sleep 0.02; done";
    let script = format!(
        "setsid env -i \"PATH=$PATH\" sh -c '{forever}' &
        while [ ! -f started ]; do sleep 0.1; done; exit 3"
    );
    let mut command = adasum_run(&["launch", "-n", "1", "--silent", "--", "sh", "-c", &script]);
    let mut child = start(command.current_dir(folder.path()));
    let status = eventually("the end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(3));
    let text = err(&child.wait_with_output().unwrap());
    assert!(
        text.contains("what rank 0 left behind still prints"),
        "{text}"
    );
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let folder = Folder::new("twice");
    let script = format!("trap '' INT; {WAIT}");
    let mut child = start(&mut shell(&folder, &["--server-id", "1"], &script));
    let pids = folder.pids(8..16);
    let begin = Instant::now();
    send("-INT", child.id());
    // Equal signals that wait together count once: send until one is seen.
    let status = eventually("the end", || {
        send("-INT", child.id());
        std::thread::sleep(Duration::from_millis(50));
        child.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(130));
    assert!(begin.elapsed() < GRACE);
    all_gone(&pids);
}

#[test]
fn ranks_die_with_a_killed_launcher() {
    // The rank itself, and what a rank started.
    let family = "sleep 1000 & echo $! > $RANK_ID.new; mv $RANK_ID.new $RANK_ID; wait";
    for script in [WAIT, family] {
        let folder = Folder::new("launcher");
        let mut child = start(&mut shell(&folder, &[], script));
        let pids = folder.pids(0..16);
        send("-KILL", child.id());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        all_gone(&pids);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = Folder::new("pipe");
    let mut child = start(&mut shell(&folder, &[], "yes"));
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

/// Ranks leave what the tutorial's scripts leave, each in its directory.
#[test]
fn each_rank_has_a_directory_with_its_logs() {
    let folder = Folder::new("launch-logs");
    std::fs::write(folder.path().join("train.txt"), "copied\n").unwrap();
    let options = [
        "--server-id",
        "1",
        "--log-dir",
        "logs",
        "--own-dir",
        "--copy",
        "train.txt",
        "--silent",
    ];
    let script = "cat train.txt; pwd >&2; echo made > made";
    let output = shell(&folder, &options, script)
        .env("ADASUM_JOB_SECRET", "the secret of a user")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!((out(&output), err(&output)), (String::new(), String::new()));
    for rank in 8..16 {
        let own = folder.path().join(format!("logs/device_{rank}"));
        let read = |name: &str| std::fs::read_to_string(own.join(name)).unwrap();
        let log = read("train.log");
        let mut lines: Vec<&str> = log.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [own.canonicalize().unwrap().to_str().unwrap(), "copied"]
        );
        assert_eq!(read("made"), "made\n");
        let environment = read("env.log");
        let mode = own.join("env.log").metadata().unwrap().permissions().mode();
        assert_eq!(
            mode & 0o777,
            0o600,
            "the user's environment may hold secrets"
        );
        assert!(environment.contains("ADASUM_JOB_SECRET=(not shown)\n"));
        for line in [format!("RANK_ID={rank}"), "WORLD_SIZE=16".to_owned()] {
            assert!(environment.lines().any(|found| found == line), "{line}");
        }
        // The rest is that of the launcher.
        assert!(environment.lines().any(|line| line.starts_with("PATH=")));
    }
    assert!(!folder.path().join("logs/device_0").exists());
}

/// A disk that is full for one log is not for the others, and the job is no success.
#[test]
fn a_log_that_ends_early_is_named() {
    let folder = Folder::new("launch-full");
    // Files get no longer than a few KB.
    let limit = "trap '' XFSZ; ulimit -f 8";
    let script = "if [ $RANK = 0 ]; then yes | head -c 100000; touch full; exit $1; fi
        until [ -e full ]; do sleep 0.1; done; sleep 1; echo late";
    for (code, expected) in [("0", 1), ("5", 5)] {
        let options = ["launch", "-n", "2", "--silent", "--log-dir", "logs", "--"];
        let mut command = adasum_run_within(limit, &options);
        command.args(["sh", "-c", script, "sh", code]);
        // `env.log` is short.
        let home = std::env::var_os("HOME").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home);
        let output = command.current_dir(folder.path()).output().unwrap();
        let said = err(&output);
        assert_eq!(output.status.code(), Some(expected), "{said}");
        let path = folder.path().join("logs/device_0/train.log");
        let sentence = format!(
            "rank 0: its log {} ends here: File too large",
            path.display()
        );
        assert_eq!(said.matches(&sentence).count(), 1, "{said}");
        assert!(
            said.contains("--log-dir: the logs lack lines of rank 0\n"),
            "{said}"
        );
        if code == "0" {
            let other = folder.path().join("logs/device_1/train.log");
            assert_eq!(std::fs::read_to_string(other).unwrap(), "late\n");
        }
        std::fs::remove_file(folder.path().join("full")).unwrap();
    }
}

/// What cannot be read or written is known before a rank is started.
#[test]
fn files_are_looked_at_before_ranks_are_started() {
    let folder = Folder::new("launch-places");
    std::fs::create_dir_all(folder.path().join("report/index.html")).unwrap();
    let made = Command::new("mkfifo")
        .arg(folder.path().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    for (options, part) in [
        (&["--report", "report"][..], "--report: "),
        (
            &["--trace", "none/trace.json"],
            "--trace: none/trace.json: ",
        ),
        (
            &["--log-dir", "logs", "--own-dir", "--copy", "pipe"],
            "--copy pipe: not a regular file",
        ),
    ] {
        let output = shell(&folder, options, "touch started").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(err(&output).contains(part), "{options:?}: {}", err(&output));
    }
    assert!(!folder.path().join("started").exists());
}

/// Variables of the user's reach the ranks, or are refused.
#[test]
fn variables_that_the_launcher_sets_are_refused() {
    let run = |options: &[&str]| {
        let mut command = adasum_run(&["launch", "-n", "1", "--prefix", "none"]);
        let script = "echo $HCCL_MOCK_NET $MINE";
        command
            .args(options)
            .args(["--", "sh", "-c", script])
            .output()
            .unwrap()
    };
    let output = run(&["-x", "HCCL_MOCK_NET=tcp", "-x", "MINE=1", "-x", "MINE=2"]);
    assert_eq!(out(&output), "tcp 2\n", "{}", err(&output));
    for name in [
        "RANK",
        "RANK_TABLE_FILE",
        "MASTER_ADDR",
        "ADASUM_JOB_SECRET",
        "ADASUM_LAUNCH_ID",
        "ADASUM_REPORT",
    ] {
        let output = run(&["-x", &format!("{name}=of the user's")]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let said = err(&output);
        assert!(
            said.contains(&format!("--env {name}: ranks get this variable from")),
            "{said}"
        );
        assert_eq!(out(&output), "");
    }
}

/// What is given to this program counts before what its environment says.
#[test]
fn a_meeting_on_the_command_line_is_that_of_the_ranks() {
    let meeting = |options: &[&str]| {
        let script = "echo $ADASUM_MASTER_ADDR,$ADASUM_MASTER_PORT,$ADASUM_ROOTINFO_FILE";
        let mut command = adasum_run(&["launch", "-n", "1", "--prefix", "none"]);
        command.args(options).args(["--", "sh", "-c", script]);
        command
            .env("ADASUM_MASTER_ADDR", "host")
            .env("ADASUM_MASTER_PORT", "7");
        out(&command
            .env("ADASUM_ROOTINFO_FILE", "file")
            .output()
            .unwrap())
    };
    assert_eq!(meeting(&[]), "host,7,file\n");
    assert_eq!(meeting(&["--master-addr", "127.0.0.1"]), ",7,\n");
    assert_eq!(meeting(&["--master-port", "23456"]), "host,,\n");
}

#[test]
fn a_job_that_fails_is_started_again_as_often_as_asked() {
    let folder = Folder::new("launch-restarts");
    let script = "echo $ADASUM_RESTART_COUNT $HCCL_MOCK_JOB $MASTER_ADDR:$MASTER_PORT
        [ $RANK_ID = 5 ] && [ $ADASUM_RESTART_COUNT -lt 2 ] && exit 7; exit 0";
    let options = ["--restarts", "2", "--log-dir", "logs"];
    let output = shell(&folder, &options, script).output().unwrap();
    let message = err(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert_eq!(
        message
            .matches("rank 5 failed first: exit status 7")
            .count(),
        2,
        "{message}"
    );
    assert!(
        message.contains("adasum-run: starting all ranks again: restart 2 of 2\n"),
        "{message}"
    );
    // The log holds all attempts, each of them a job of its own.
    let log = std::fs::read_to_string(folder.path().join("logs/device_5/train.log")).unwrap();
    let attempts: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    let counts: Vec<&str> = attempts.iter().map(|words| words[0]).collect();
    assert_eq!(counts, ["0", "1", "2"]);
    assert_ne!(attempts[0][1], attempts[1][1]);
    assert!(attempts[0][2].starts_with("127.0.0.1:"), "{log}");

    let output = shell(&folder, &["--restarts", "1"], "exit 3")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(err(&output).matches("starting all ranks again").count(), 1);
}

/// An interrupt ends a job for good.
#[test]
fn what_is_interrupted_is_not_started_again() {
    let folder = Folder::new("launch-interrupt");
    let options = ["--server-id", "0", "--restarts", "3"];
    // The first attempt fails; the second waits.
    let script = format!("[ $ADASUM_RESTART_COUNT = 0 ] && exit 1; {WAIT}");
    let child = start(&mut shell(&folder, &options, &script));
    let pids = folder.pids(0..8);
    send("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert_eq!(err(&output).matches("starting all ranks again").count(), 1);
    all_gone(&pids);
}

/// The timeout is that of all attempts together.
#[test]
fn restarts_do_not_prolong_the_timeout() {
    let folder = Folder::new("launch-restart-timeout");
    let options = ["--server-id", "0", "--restarts", "1000", "--timeout", "2"];
    let begin = Instant::now();
    let output = shell(&folder, &options, "sleep 0.3; exit 1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(124), "{}", err(&output));
    assert!(err(&output).contains("timeout after 2 s, still running"));
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn under_another_launcher_each_process_starts_its_rank() {
    let run = |variables: &[(&str, &str)], rank: &str| {
        let mut command = adasum_run(&["launch", "--rank", rank, "--", "env"]);
        command.env("RANK_TABLE_FILE", TABLE);
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let output = run(
        &[
            ("OMPI_COMM_WORLD_RANK", "9"),
            ("OMPI_COMM_WORLD_SIZE", "16"),
        ],
        "env",
    );
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let ranks = environments(&output);
    assert_eq!(ranks.keys().copied().collect::<Vec<_>>(), [9]);
    for (name, value) in [
        ("RANK_ID", "9"),
        ("DEVICE_ID", "1"),
        ("SERVER_ID", "1"),
        ("LOCAL_RANK", "1"),
        ("MASTER_ADDR", "10.155.111.140"),
        ("MASTER_PORT", "29500"),
    ] {
        assert_eq!(ranks[&9][name], value, "{name}");
    }
    let output = run(&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4")], "env");
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("SLURM_NTASKS is 4, but the rank table has 16 ranks"));
    assert_eq!(environments(&run(&[], "2"))[&2]["RANK"], "2");
}

/// The server whose `server_id` is an address of this machine.
#[test]
fn the_own_server_is_found_by_its_address() {
    let folder = Folder::new("launch-auto");
    let text = std::fs::read_to_string(TABLE).unwrap();
    let table = |first: &str, second: &str| {
        let text = text
            .replace("10.155.111.140", first)
            .replace("10.155.111.141", second);
        std::fs::write(folder.path().join("table.json"), text).unwrap();
        adasum_run(&[
            "launch",
            "--rank-table",
            "table.json",
            "--server-id",
            "auto",
            "--",
            "env",
        ])
        .current_dir(folder.path())
        .output()
        .unwrap()
    };
    // An address that is set aside for documentation, and one that every machine has.
    let ranks = environments(&table("203.0.113.1", "127.0.0.1"));
    assert_eq!(ranks.len(), 8);
    assert_eq!(ranks[&8]["MASTER_ADDR"], "203.0.113.1");
    let none = table("203.0.113.1", "203.0.113.2");
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("no server_id is an address or the name of this machine"));
    let both = table("127.0.0.2", "127.0.0.1");
    assert!(
        err(&both).contains("several servers are this machine"),
        "{}",
        err(&both)
    );
}

/// What any program records is drawn, and progress that it tells is shown.
#[test]
fn a_report_shows_what_ranks_recorded() {
    let folder = Folder::new("launch-report");
    let script = r#"for step in 1 2 3; do
            echo "{\"step\":$step,\"values\":{\"loss\":$((step + RANK_ID))},\"tensors\":[{\"name\":\"w\",\"cosine\":0.$step,\"gain\":null}]}" \
                >> $ADASUM_STATISTICS_DIR/rank_$RANK_ID.jsonl
        done
        echo "adasum-report: {\"report\":\"progress\",\"rank\":$RANK_ID,\"done\":1,\"total\":2,\"unit\":\"epochs\"}" >&2
        exit 4"#;
    // A record of an earlier run must not be in the report.
    std::fs::create_dir(folder.path().join("report")).unwrap();
    std::fs::write(folder.path().join("report/rank_3.jsonl"), "{\"step\":99}\n").unwrap();
    let output = shell(&folder, &["--report", "report", "--server-id", "0"], script)
        .output()
        .unwrap();
    // The report is written although the job failed.
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    let message = err(&output);
    assert!(message.contains("adasum-run: 1/2 epochs, "), "{message}");
    assert!(!message.contains("adasum-report"), "{message}");
    assert!(message.contains("adasum-run: report: "), "{message}");
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("report").join(name)).unwrap();
    let loss = read("loss.csv");
    assert!(loss.starts_with("step,loss\n1,"), "{loss}");
    assert_eq!(loss.lines().count(), 4);
    assert_eq!(read("cosine.csv"), "step,w\n1,0.1\n2,0.2\n3,0.3\n");
    assert!(!folder.path().join("report/gain.csv").exists());
    let report: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(
        (&report["schema"], &report["exit_code"]),
        (&"adasum.launch/1".into(), &4.into())
    );
    let cause = report["cause"].as_str().unwrap();
    assert!(
        cause.contains(" failed first: exit status 4 (server 0"),
        "{cause}"
    );
    assert_eq!(report["charts"][0]["name"], "loss");
    let page = read("index.html");
    assert_eq!(page.matches("<svg ").count(), 2);
    assert!(page.contains(" failed first: exit status 4"), "no cause");
    // One file that needs nothing else.
    for outside in ["<script", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// Seconds a step come from the times of records, the share in reductions from what worlds wrote; nothing of it is made up.
#[test]
fn a_report_has_seconds_a_step_where_ranks_record_times() {
    let folder = Folder::new("launch-report-times");
    // Rank 0 takes 2 s a step, and its device is in a reduction in the last quarter of each; the others say no time.
    let script = r#"[ $RANK_ID = 0 ] || exit 0
        world='{"trace":"world","rank":0,"size":8,"number":0}'
        span() { echo "{\"trace\":\"span\",\"track\":\"step\",\"name\":\"$1\",\"start_ns\":$2,\"ns\":500000000,\"step\":1}"; }
        { echo $world; span reduction 103500000000; span reduction 105500000000; span barrier 104000000000; } \
            > $ADASUM_STATISTICS_DIR/steps_0.1.0.jsonl
        for step in 1 2 3; do
            echo "{\"step\":$step,\"time\":$((100 + 2 * step)).0,\"values\":{\"loss\":1$step},\"tensors\":[{\"name\":\"w\",\"cosine\":0.5,\"gain\":1.5}]}" \
                >> $ADASUM_STATISTICS_DIR/rank_0.jsonl
        done"#;
    std::fs::create_dir(folder.path().join("report")).unwrap();
    let old = folder.path().join("report/steps_0.9.9.jsonl");
    std::fs::write(&old, "of an earlier run").unwrap();
    let output = shell(&folder, &["--report", "report", "--server-id", "0"], script)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(!old.exists());
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("report").join(name)).unwrap();
    assert_eq!(read("step_seconds.csv"), "step,seconds\n2,2\n3,2\n");
    assert_eq!(
        read("reduction_share.csv"),
        "step,% of the time\n2,25\n3,25\n"
    );
    let report: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    let pace = serde_json::json!([{"run": "", "seconds_a_step": 2.0, "reduction_share": 0.25}]);
    assert_eq!(report["paces"], pace);
    let page = read("index.html");
    assert!(page.contains("<td>a step</td><td>2.00 s, 25.0 % of the time in reductions</td>"));
    // Marks and values under the pointer.
    assert!(page.contains(">0: orthogonal</text>") && page.contains(">1: as the mean</text>"));
    assert!(page.contains("<title>w, step 2: 0.5</title>"), "{page}");
}
