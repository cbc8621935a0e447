//! `adasum-run launch --hosts`: the commands for several machines, printed or started by a program in the place of ssh.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::support::adasum_run::{Folder, adasum_run, all_gone, err, eventually, out, send};

/// Takes a host and a command as ssh does, and notes both. This machine is all hosts.
const SSH: &str = "#!/bin/sh
echo \"$*\" >> said
shift
cd /
exec sh -c \"$*\"
";
/// As [`SSH`], but what it starts outlives it, as on another machine: only the end of its input says that it has gone.
const APART: &str = "#!/bin/sh
host=$1
shift
mkfifo in.$host
exec 3<&0
cat <&3 > in.$host &
exec 4< in.$host
cd /
setsid env -u ADASUM_LAUNCH_ID sh -c \"$*\" <&4
";
/// What a rank knows of the job, on a line.
const KNOWN: &str = r#"echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $SERVER_ID $MASTER_ADDR:$MASTER_PORT "[$RANK_TABLE_FILE]" "$HCCL_MOCK_JOB" "$ADASUM_JOB_SECRET" "$MINE""#;
/// Each rank notes its number and waits for a signal.
const WAIT: &str = "echo $$ > $RANK.new; mv $RANK.new $RANK; exec sleep 1000";

/// `adasum-run launch` with these options, in a folder with programs `ssh` and `apart`.
fn launch(folder: &Folder, options: &[&str], script: &str) -> Command {
    for (name, text) in [("ssh", SSH), ("apart", APART)] {
        let program = folder.path().join(name);
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = adasum_run(&["launch"]);
    command.args(options).args(["--", "sh", "-c", script]);
    command.current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    command
}

/// The words of each rank's line, by rank.
fn known(text: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut lines: Vec<_> = text.lines().map(words).collect();
    lines.sort();
    lines
}

#[test]
fn a_closed_standard_error_does_not_end_the_launchers() {
    let folder = Folder::new("hosts-closed");
    let options = ["--hosts=127.0.0.1:1", "--ssh=./ssh"];
    let script = "echo text >&2; sleep 1; exit 3";
    let mut child = launch(&folder, &options, script).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn launchers_started_over_ssh_are_one_job() {
    let folder = Folder::new("hosts-ssh");
    let options = [
        "--hosts=127.0.0.1:2,localhost:2",
        "--ssh=./ssh",
        "--prefix",
        "none",
        "--master-port",
        "23456",
        "-x",
        "MINE=it's here",
    ];
    let output = launch(&folder, &options, KNOWN).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let ranks = known(&out(&output));
    assert_eq!(ranks.len(), 4, "{ranks:?}");
    let (job, secret) = (&ranks[0][7], &ranks[0][8]);
    assert_eq!(secret.len(), 64);
    for (rank, words) in ranks.iter().enumerate() {
        let (server, local) = (rank / 2, rank % 2);
        // The table would have addresses of devices that nobody knows.
        let wanted =
            format!("{rank} 4 {local} 2 {server} 127.0.0.1:23456 [] {job} {secret} it's here");
        assert_eq!(words.join(" "), wanted);
    }
    let commands = std::fs::read_to_string(folder.path().join("said")).unwrap();
    let mut hosts: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["127.0.0.1", "localhost"]);
    assert!(
        !commands.contains(secret),
        "the secret is on a command line"
    );
}

/// The commands that are printed do what those over ssh do.
#[test]
fn printed_commands_are_one_job() {
    let folder = Folder::new("hosts-printed");
    let hosts = [
        "--hosts",
        "127.0.0.1,localhost",
        "--nproc-per-node=2",
        "--prefix=none",
    ];
    let mut printing = launch(&folder, &hosts, KNOWN);
    let output = printing.env("MINE", "two words").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(
        err(&output).contains("the same ADASUM_JOB_SECRET or"),
        "{}",
        err(&output)
    );
    let text = out(&output);
    // A script has line breaks; a command begins where a line says the host.
    let commands: Vec<&str> = text.split("# on ").skip(1).collect();
    let mut ranks = Vec::new();
    for (command, host) in commands.iter().zip(["127.0.0.1", "localhost"]) {
        let command = command.strip_prefix(&format!("{host}\n")).unwrap();
        let command = command.replacen("adasum-run", env!("CARGO_BIN_EXE_adasum-run"), 1);
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &command]).current_dir(folder.path());
        let shell = shell
            .env("ADASUM_JOB_SECRET", "a secret of the user")
            .env("MINE", "here");
        let output: Output = shell.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        ranks.extend(known(&out(&output)));
    }
    assert_eq!(ranks.len(), 4, "{text}");
    let job = &ranks[0][7];
    assert!(!job.is_empty());
    for (rank, words) in ranks.iter().enumerate() {
        let wanted = format!(
            "{rank} 4 {} 2 {} 127.0.0.1:29500 [] {job} a secret of the user here",
            rank % 2,
            rank / 2
        );
        assert_eq!(words.join(" "), wanted);
    }
}

#[test]
fn the_end_of_one_server_is_that_of_all() {
    let folder = Folder::new("hosts-fail");
    let script = format!(
        "test $RANK != 3 || {{ until test -e 0 -a -e 1; do sleep 0.1; done; exit 7; }}; {WAIT}"
    );
    let options = ["--hosts=127.0.0.1:2,localhost:2", "--ssh=./ssh"];
    let output = launch(&folder, &options, &script).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", err(&output));
    let said = err(&output);
    for sentence in [
        "rank 3 failed first: exit status 7 (server 1 \"localhost\", device 1)",
        "adasum-run: server 1 failed first: exit status 7 (localhost)",
        "adasum-run: stopping the others: server 0",
    ] {
        assert!(said.contains(sentence), "{said}");
    }
    all_gone(&folder.pids(0..2));
}

/// Nobody is left, not even of a launcher that is killed: the others see the end of their input.
#[test]
fn servers_end_with_the_program_that_started_them() {
    for signal in ["-INT", "-KILL"] {
        let folder = Folder::new(&format!("hosts{signal}"));
        let options = ["--hosts=127.0.0.1:2,localhost:2", "--ssh=./ssh"];
        let mut launcher = launch(&folder, &options, WAIT).spawn().unwrap();
        let ranks = folder.pids(0..4);
        send(signal, launcher.id());
        let status = launcher.wait().unwrap();
        all_gone(&ranks);
        if signal == "-INT" {
            assert_eq!(status.code(), Some(130));
        }
    }
}

/// However the job ends, ranks elsewhere are told by SIGTERM, and nothing runs there any more when this program returns.
#[test]
fn launchers_elsewhere_are_waited_for() {
    const TOLD: &str = "trap 'echo TERM > $RANK.told; sleep 1; touch $RANK.ended; exit 0' TERM
        trap 'echo HUP > $RANK.told; exit 1' HUP
        echo $$ > $RANK.new; mv $RANK.new $RANK
        sleep 1000 & wait";
    let fails =
        format!("test $RANK = 0 || {{ until test -e 0; do sleep 0.1; done; exit 7; }}\n{TOLD}");
    for (name, script, code, told) in [("signal", TOLD, 130, 0..2), ("failure", &fails, 7, 0..1)] {
        let folder = Folder::new(&format!("hosts-apart-{name}"));
        let options = ["--hosts=127.0.0.1:1,localhost:1", "--ssh=./apart"];
        let child = launch(&folder, &options, script).spawn().unwrap();
        let ranks = folder.pids(told.clone());
        if name == "signal" {
            send("-INT", child.id());
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}: {}", err(&output));
        for rank in told {
            let note = |what: &str| folder.path().join(format!("{rank}.{what}"));
            assert_eq!(
                std::fs::read_to_string(note("told")).unwrap(),
                "TERM\n",
                "{name}"
            );
            assert!(note("ended").exists(), "{name}: rank {rank} still ran");
        }
        all_gone(&ranks);
    }
}

/// A second signal ends the wait for them; they end all the same.
#[test]
fn a_second_signal_does_not_wait_for_launchers_elsewhere() {
    let folder = Folder::new("hosts-apart-twice");
    let options = ["--hosts=127.0.0.1:1,localhost:1", "--ssh=./apart"];
    let script = format!("trap '' TERM; {WAIT}");
    let mut child = launch(&folder, &options, &script).spawn().unwrap();
    let ranks = folder.pids(0..2);
    eventually("the end", || {
        send("-INT", child.id());
        std::thread::sleep(std::time::Duration::from_millis(50));
        child.try_wait().unwrap()
    });
    let said = err(&child.wait_with_output().unwrap());
    let sentence = "not waited for any longer, and may leave processes: servers 0-1";
    assert!(said.contains(sentence), "{said}");
    all_gone(&ranks);
}

#[test]
fn wrong_hosts_are_named() {
    let folder = Folder::new("hosts-wrong");
    let refused = |options: &[&str], code: i32, why: &str| {
        let output = launch(&folder, options, "true").output().unwrap();
        let said = err(&output);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
        assert!(said.contains(why), "{options:?}: {said}");
    };
    for (options, why) in [
        (
            &["--hosts=a:2,b"][..],
            "--hosts b: how many ranks? Give b:RANKS",
        ),
        (&["--hosts=a:2,b:3"], "--hosts: a has 2 ranks, b has 3"),
        (&["--hosts=a:2,a:2"], "--hosts: a is there twice"),
        (&["--hosts=a:0"], "invalid value 'a:0' for '--hosts"),
        (&["--hosts=:2"], "must be HOST or HOST:RANKS"),
        // A host that would be an option of ssh.
        (
            &["--hosts=-oProxyCommand=id:2"],
            "must be HOST or HOST:RANKS",
        ),
        (&["--hosts=root@a:2"], "must be a HOST without a user"),
        (&["--hosts=fe80::1:2"], "[fe80::1]:8"),
        (&["--hosts=a:2", "-n", "2"], "cannot be used with"),
        (&["--hosts=a:2", "--rank-table", "t"], "cannot be used with"),
        (
            &["--hosts=a:2", "--ssh", "--server-id", "0"],
            "cannot be used with",
        ),
        (
            &["--hosts=a:2", "--ssh", "--restarts", "1"],
            "cannot be used with",
        ),
        (&["--ssh", "-n", "2"], "--ssh: to which machines?"),
        (
            &["--hosts=a:2", "--server-id", "2"],
            "no server \"2\" in server_list",
        ),
        (&["-n", "1", "-x", "NOT SET"], "must be NAME or NAME=VALUE"),
        (&["-n", "1", "-x", "NOBODY_SETS_THIS"], "it is not set here"),
        (
            &["--hosts=a:2", "--ssh=./ssh", "-x", "A=b\nc"],
            "--env A: with --ssh a value must not have line breaks",
        ),
    ] {
        refused(options, 2, why);
    }
    // A host that cannot be reached is a failure of the job.
    refused(
        &["--hosts=a:2", "--ssh=false"],
        1,
        "server 0 failed first: exit status 1 (a)",
    );
    refused(
        &["--hosts=a:2", "--ssh=./absent"],
        127,
        "server 0: cannot start ./absent",
    );
}
