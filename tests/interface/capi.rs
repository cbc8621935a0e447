//! Programs in C and C++ that know the headers only, over the mock.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use adasum::reduce::{Figure, Record, TensorRecord};
use adasum::topo::free_port;

use crate::interface::header::{root, strict};
use crate::support::adasum_run::adasum_run;

/// Builds `source`, which lies beside this file, against the library and the mock.
fn build(source: &str, compiler: &str, standard: &str) -> PathBuf {
    let folder = crate::support::folder(&source.replace('.', "_"));
    let program = folder.join("program");
    let mock = env!("OUT_DIR");
    let mut command = Command::new(compiler);
    strict(&mut command, standard)
        .args(["-O1", "-g", "-pthread", "-I"])
        .arg(root().join("csrc/cann"))
        .arg(root().join("tests/interface").join(source))
        .arg("-o")
        .arg(&program)
        .args(crate::support::link_with_cdylib(&folder))
        .arg(format!("-L{mock}"))
        .args(["-lhccl", "-lascendcl", "-lm"])
        .arg(format!("-Wl,-rpath,{mock}"));
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source}: {errors}");
    program
}

/// The program of several tests, which may not build it while another runs it.
fn join_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("capi_join.c", "cc", "c99"))
}

/// Variables that would tell a program where it belongs, and where its journal.
const PLACES: [&str; 20] = [
    "ADASUM_STATISTICS_DIR",
    "RANK_TABLE_FILE",
    "MINDSPORE_HCCL_CONFIG_PATH",
    "RANK_ID",
    "RANK_SIZE",
    "DEVICE_ID",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "MS_ROLE",
    "MS_NODE_ID",
    "MS_WORKER_NUM",
    "MS_SCHED_HOST",
    "MS_SCHED_PORT",
    "ADASUM_JOB_SECRET",
    "ADASUM_JOB_SECRET_FILE",
    "ADASUM_ROOTINFO_FILE",
];

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(program.parent().unwrap());
    for variable in PLACES {
        command.env_remove(variable);
    }
    command
}

fn said(output: &Output) -> String {
    let (out, errors) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(errors)
}

/// Builds and runs a program; the folder that it ran in.
fn run(source: &str, compiler: &str, standard: &str) -> PathBuf {
    let program = build(source, compiler, standard);
    let output = command(&program).output().unwrap();
    assert!(
        output.status.success(),
        "{source}: {}\n{}",
        output.status,
        said(&output)
    );
    program.parent().unwrap().to_owned()
}

#[test]
fn every_reducer_gives_what_can_be_worked_out_by_hand() {
    run("capi.c", "cc", "c99");
}

/// What its journal holds is read as the launcher reads it.
#[test]
fn helpers_give_what_double_precision_gives() {
    let folder = run("capi_helpers.c", "cc", "c99");
    let journal = std::fs::read_to_string(folder.join("rank_7.jsonl")).unwrap();
    let mut records: Vec<Record> = journal
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for record in &mut records {
        // Each says when it was recorded.
        let age = UNIX_EPOCH.elapsed().unwrap().as_secs_f64() - record.time.take().unwrap();
        assert!((0.0..3600.0).contains(&age), "{age}");
    }
    let (of_threads, last) = records.split_at(records.len() - 2);
    let times: Vec<u64> = of_threads.iter().map(|record| record.step).collect();
    assert!((1..=20).all(|step| times.iter().filter(|&&one| one == step).count() == 4));
    let expected = Record::new("threads", 20).value("loss", 0.5);
    assert!(of_threads.contains(&expected));
    let mut record = Record::new("adasum", 11)
        .epoch(1.5)
        .value("loss", 2.19)
        .value("accuracy", f64::NAN);
    record.tensors.push(TensorRecord {
        name: "w1".to_owned(),
        norm: Figure(0.5),
        cosine: Figure(0.25),
        gain: Figure(1.25),
        kappa: Figure(1.0),
    });
    assert_eq!(last, [record, Record::new("", 12)]);
}

#[test]
fn nulls_and_wrong_values_are_refused_by_name() {
    run("capi_nulls.c", "cc", "c99");
}

#[test]
fn wrong_order_threads_and_failures_are_answered() {
    run("capi_order.c", "cc", "c99");
}

/// Launches are counted by the mock.
#[test]
fn tensors_that_lie_side_by_side_are_reduced_in_place() {
    run("capi_places.c", "cc", "c99");
}

#[test]
fn gradients_outside_device_memory_are_an_exception_of_the_core() {
    let program = build("capi_outside.c", "cc", "c99");
    for place in ["host", "long"] {
        let output = command(&program).arg(place).output().unwrap();
        assert!(output.status.success(), "{place}: {}", said(&output));
    }
}

#[test]
fn the_callers_context_stays_current() {
    run("capi_context.c", "cc", "c99");
}

/// On A3 operations of HCCL outlive their streams: the mock frees nothing that they use. Ranks agree on a world and a reducer by three
/// gathers.
#[test]
fn a_world_that_is_given_up_leaves_no_memory_in_use() {
    let program = build("capi_abandon.c", "cc", "c99");
    for soc in ["Ascend910B1", "Ascend910_9391"] {
        let mut command = command(&program);
        command
            .env("ASCEND_MOCK_SOC", soc)
            .env("HCCL_MOCK_FAULT", "1:HcclAllGather:4:stall");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{soc}: {}", said(&output));
    }
}

#[test]
fn after_a_failed_kernel_a_new_world_works_unless_the_context_has_stopped() {
    let program = build("capi_rejoin.c", "cc", "c99");
    let (a2, a3) = ("Ascend910B1", "Ascend910_9391");
    for (mode, soc, operations) in [
        ("go-on", a2, ""),
        ("stop", a2, ""),
        ("stopped", a3, ""),
        ("go-on", a3, "HOST"),
    ] {
        let mut command = command(&program);
        command
            .arg(mode)
            .env("ASCEND_MOCK_SOC", soc)
            .env("HCCL_OP_EXPANSION_MODE", operations)
            .env("HCCL_MOCK_FAULT", "1:kernel:9:error=507015")
            .env("HCCL_EXEC_TIMEOUT", "5");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{mode}: {}", said(&output));
    }
}

#[test]
fn cpp_program_reduces_and_catches_what_it_does_wrong() {
    let folder = run("capi.cpp", "c++", "c++17");
    let journal = std::fs::read_to_string(folder.join("rank_1.jsonl")).unwrap();
    let record: Record = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
    assert_eq!((record.run.as_str(), record.step), ("cpp", 1));
    assert_eq!((record.epoch, record.values["loss"].0), (None, 0.25));
    let norms: Vec<_> = record
        .tensors
        .iter()
        .map(|one| (one.name.as_str(), one.norm.0))
        .collect();
    assert_eq!(norms, [("a", 5.0), ("b", 12.0)]);
}

/// The functions of the header with the pointers that each takes.
fn pointers() -> Vec<(String, Vec<String>)> {
    let header = std::fs::read_to_string(root().join("include/adasum.h")).unwrap();
    let prototypes = header.split(';').filter_map(|part| {
        // The declaration is behind the comment.
        let declaration = part
            .rsplit("*/")
            .next()?
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let (head, arguments) = declaration.split_once('(')?;
        let name = head.rsplit([' ', '*']).next()?.to_owned();
        if !name.starts_with("adasum_") || head.contains("typedef") {
            return None;
        }
        let arguments = arguments.trim_end_matches(')').split(',');
        let pointers = arguments.filter(|argument| argument.contains('*'));
        let names = pointers.filter_map(|argument| argument.rsplit([' ', '*']).next());
        Some((name, names.map(str::to_owned).collect()))
    });
    prototypes.collect()
}

/// Where NULL is an answer, and the comment in the header says so; beside the handle of every `_destroy`.
fn may_be_null(function: &str, pointer: &str) -> bool {
    match pointer {
        "options" => {
            function.starts_with("adasum_world_from_")
                || function.starts_with("adasum_reducer_create")
        }
        "user_data" => function == "adasum_set_log_callback",
        "inout_gradients" => function == "adasum_reducer_delta_begin",
        "out_norms" => function == "adasum_reducer_statistics",
        _ => false,
    }
}

#[test]
fn the_c_program_gives_null_for_every_pointer_of_every_function() {
    let program = std::fs::read_to_string(root().join("tests/interface/capi_nulls.c")).unwrap();
    let program = program.split_whitespace().collect::<Vec<_>>().join(" ");
    let functions = pointers();
    assert!(functions.len() >= 25, "{}", functions.len());
    let exports = std::fs::read_to_string(root().join("tests/interface/exports.txt")).unwrap();
    let found: BTreeSet<&str> = functions.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, exports.lines().collect());
    let mut missing = Vec::new();
    for (function, pointers) in &functions {
        for pointer in pointers {
            let checked = match function.ends_with("_destroy") {
                true => program.contains(&format!("{function}(NULL)")),
                false => {
                    may_be_null(function, pointer)
                        || program.contains(&format!("IS_NULL(\"{function}\", \"{pointer}\","))
                }
            };
            if !checked {
                missing.push(format!("{function}: {pointer}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "not given NULL, though may_be_null does not name them: {missing:#?}"
    );
}

/// Runs a process for each of `ranks` of a job of `size`, two a server, with more variables; what each said.
fn launched(program: &Path, ranks: &[u32], size: u32, more: &[(&str, &str)]) -> Vec<String> {
    outputs(program, ranks, more, |rank| {
        vec![
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", size.to_string()),
            ("LOCAL_RANK", (rank % 2).to_string()),
            // Two servers on one machine: their devices have other numbers here.
            ("DEVICE_ID", rank.to_string()),
            ("LOCAL_WORLD_SIZE", "2".to_owned()),
        ]
    })
}

/// What `program` says as each of `ranks`, which find the variables that `variables` makes and `more`.
fn outputs(
    program: &Path,
    ranks: &[u32],
    more: &[(&str, &str)],
    variables: impl Fn(u32) -> Vec<(&'static str, String)>,
) -> Vec<String> {
    let children: Vec<_> = ranks
        .iter()
        .map(|rank| {
            command(program)
                .envs(variables(*rank))
                .envs(more.iter().copied())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let outputs = children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap());
    outputs.map(|output| said(&output)).collect()
}

/// torchrun's variables, the ranks meeting over TCP or at a file; with a rank missing all that came name it.
#[test]
fn ranks_of_torchrun_find_each_other() {
    let program = join_program();
    let folder = crate::support::folder("join");
    let file = folder.join("root info").display().to_string();
    let before = free_port().unwrap();
    let (port, before) = ((before + 1).to_string(), before.to_string());
    let short = ("ADASUM_CREATE_TIMEOUT_MS", "1500");
    let ways: [&[(&str, &str)]; 3] = [
        &[("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &before)],
        &[
            ("ADASUM_MASTER_ADDR", "localhost"),
            ("ADASUM_MASTER_PORT", &port),
        ],
        &[("ADASUM_ROOTINFO_FILE", &file)],
    ];
    for way in ways {
        let said = launched(program, &[2, 0, 3, 1], 4, way);
        let is_open = !way.iter().any(|(name, _)| *name == "ADASUM_ROOTINFO_FILE");
        for (rank, said) in [2, 0, 3, 1].into_iter().zip(said) {
            let warnings = u32::from(rank == 0 && is_open);
            assert_eq!(
                said,
                format!("rank {rank} of 4, 2 servers, device {rank}, sum 4, {warnings} warnings\n"),
                "{way:?}"
            );
        }
        for said in launched(program, &[0, 1, 3], 4, &[way, &[short]].concat()) {
            assert!(
                said.starts_with("refused: adasum_world_from_environment: rank "),
                "{said}"
            );
            assert!(said.contains("rank 2 of 4 did not come to "), "{said}");
            assert!(said.contains("within 1.500 s"), "{said}");
        }
    }
    let each = [ways[0], &[("ADASUM_DEVICES_PER_SERVER", "1")]].concat();
    let said = launched(program, &[0, 1], 2, &each);
    assert_eq!(
        said[0],
        "rank 0 of 2, 2 servers, device 0, sum 2, 1 warnings\n"
    );
    let wrong = [ways[0], &[("ADASUM_RADIX", "99")]].concat();
    let said = launched(program, &[0], 1, &wrong).remove(0);
    assert!(
        said.contains(
            "adasum_options_load_environment: ADASUM_RADIX is \"99\", must be auto or 2 to 8"
        ),
        "{said}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// What MindSpore's msrun sets for its workers (src/topo/launch.rs names the places), and what its scheduler finds.
#[test]
fn ranks_of_msrun_find_each_other() {
    let program = join_program();
    let port = free_port().unwrap();
    let variables = |rank: u32| {
        vec![
            ("RANK_ID", rank.to_string()),
            ("RANK_SIZE", "4".to_owned()),
            ("DEVICE_ID", rank.to_string()),
            ("MS_WORKER_NUM", "4".to_owned()),
            ("MS_SCHED_HOST", "127.0.0.1".to_owned()),
            ("MS_SCHED_PORT", port.to_string()),
            ("MS_ROLE", "MS_WORKER".to_owned()),
            ("MS_NODE_ID", rank.to_string()),
        ]
    };
    let ranks = [2, 0, 3, 1];
    let more: [&[(&str, &str)]; 2] = [&[("LOCAL_WORLD_SIZE", "2")], &[]];
    for (more, servers) in more.into_iter().zip([2, 1]) {
        let secret = ("ADASUM_JOB_SECRET", "the secret of this job");
        let said = outputs(program, &ranks, &[more, &[secret]].concat(), variables);
        for (rank, said) in ranks.into_iter().zip(said) {
            let expected =
                format!("rank {rank} of 4, {servers} servers, device {rank}, sum 4, 0 warnings\n");
            assert_eq!(said, expected);
        }
    }
    let scheduler = [("MS_ROLE", "MS_SCHED")];
    let said = outputs(program, &[0], &scheduler, variables).remove(0);
    let expected = "adasum_world_from_environment: MS_ROLE is \"MS_SCHED\": only processes with MS_WORKER are ranks";
    assert!(said.contains(expected), "{said}");
}

/// The launcher's secret, addresses and places make a world without its rank table, too.
#[test]
fn launched_ranks_meet_without_their_rank_table() {
    let program = join_program();
    let folder = crate::support::folder("join-launched");
    let table = folder.join("table.json");
    let device = |rank: u32| {
        format!(r#"{{"device_id":"{rank}","device_ip":"192.168.1.{rank}","rank_id":"{rank}"}}"#)
    };
    let devices: Vec<String> = (0..4).map(device).collect();
    let text = format!(
        r#"{{"version":"1.0","server_count":"1","status":"completed",
            "server_list":[{{"server_id":"127.0.0.1","device":[{}]}}]}}"#,
        devices.join(",")
    );
    std::fs::write(&table, text).unwrap();
    let mut command = adasum_run(&["launch", "--rank-table"]);
    command.arg(&table).args(["--", "env"]);
    for name in ["RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH"] {
        command.args(["-u", name]);
    }
    let output = command.arg(program).output().unwrap();
    let said = said(&output);
    for rank in 0..4 {
        let expected =
            format!("[r{rank}] rank {rank} of 4, 1 servers, device {rank}, sum 4, 0 warnings\n");
        assert!(said.contains(&expected), "{said}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Options that are read from the boost file of the tutorial and from MindSpore's profile.
#[test]
fn profiles_and_boost_files_reach_the_reducer() {
    run("capi_profile.c", "cc", "c99");
}
