//! Programs in C++ that use ACL and HCCL only, built against our headers and run on the mock's libraries.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use crate::support::adasum_run::Folder;

/// Where the build put the mock's libraries.
const LIBRARIES: &str = env!("OUT_DIR");

/// Compiles a file beside this one with `flags`, and returns the path of the result.
fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (variable, standard, language) = if name.ends_with(".c") {
        ("CC", "cc", "-std=c99")
    } else {
        ("CXX", "c++", "-std=c++17")
    };
    let compiler = std::env::var(variable).unwrap_or_else(|_| standard.to_owned());
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace('.', "_"));
    // Another process may be at it as well, or run it.
    let draft = output.with_extension(std::process::id().to_string());
    // The variable may hold a wrapper before the compiler.
    let mut words = compiler.split_whitespace();
    let status = Command::new(words.next().expect("a compiler"))
        .args(words)
        .args([language, "-O1", "-Wall", "-Wextra", "-pthread", "-I"])
        .arg(root.join("csrc/cann"))
        .arg(root.join("tests/mock").join(name))
        .arg("-o")
        .arg(&draft)
        .args(flags)
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(status.success(), "{name} does not compile");
    fs::rename(&draft, &output).unwrap();
    output
}

/// A kernel binary for the mock; several tests load the same.
fn kernel_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| compile("kernel_binary.cpp", &["-shared", "-fPIC"]))
}

/// The program of a file, which is compiled once for all tests.
pub(crate) fn program(name: &str) -> PathBuf {
    static PROGRAMS: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let mut programs = PROGRAMS.lock().unwrap();
    let program = Arc::clone(programs.entry(name.to_owned()).or_default());
    drop(programs);
    let search = format!("-L{LIBRARIES}");
    let at_run_time = format!("-Wl,-rpath,{LIBRARIES}");
    let flags: [&str; 4] = [&search, &at_run_time, "-lhccl", "-lascendcl"];
    program.get_or_init(|| compile(name, &flags)).clone()
}

/// The program says itself what failed; its exit code says whether something did.
fn passes(program: &Path, environment: &[(&str, &Path)]) {
    passes_with(program, &[], environment);
}

/// The same for the cases whose names hold one of `cases`.
fn passes_with(program: &Path, cases: &[&str], environment: &[(&str, &Path)]) {
    let mut command = Command::new(program);
    for variable in [
        "HCCL_CONNECT_TIMEOUT",
        "HCCL_EXEC_TIMEOUT",
        "HCCL_IF_BASE_PORT",
        "HCCL_MOCK_FAULT",
        "HCCL_MOCK_NET",
        "ASCEND_MOCK_DEVICES",
        "ASCEND_MOCK_FIRST_DEVICE",
        "ASCEND_RT_VISIBLE_DEVICES",
    ] {
        command.env_remove(variable);
    }
    command.args(cases).envs(environment.iter().copied());
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}: {}\n{}\n{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    println!(
        "{}: {}",
        program.display(),
        text.lines().last().unwrap_or_default()
    );
}

/// Conformance cases, one named behaviour each; the program's last line counts them.
fn conforms(name: &str) {
    passes(&program(name), &[("HARNESS_KERNEL", kernel_binary())]);
}

#[test]
fn plain_c_conforms() {
    conforms("conform.c");
}

#[test]
fn acl_conforms() {
    conforms("conform_acl.cpp");
}

#[test]
fn acl_contexts_conform() {
    conforms("conform_contexts.cpp");
}

#[test]
fn acl_streams_conform() {
    conforms("conform_streams.cpp");
}

#[test]
fn acl_events_and_callbacks_conform() {
    conforms("conform_events.cpp");
}

#[test]
fn acl_kernels_conform() {
    conforms("conform_kernels.cpp");
}

#[test]
fn acl_memory_conforms() {
    conforms("conform_memory.cpp");
}

#[test]
fn acl_shared_memory_conforms() {
    conforms("conform_ipc.cpp");
}

#[test]
fn acl_memory_of_a_supernode_conforms() {
    conforms("conform_fabric.cpp");
}

#[test]
fn acl_copies_conform() {
    conforms("conform_copies.cpp");
}

#[test]
fn every_deviation_turns_its_rule_against_the_program() {
    conforms("mock_deviate.cpp");
}

#[test]
fn acl_operators_conform() {
    conforms("conform_operators.cpp");
}

#[test]
fn hccl_conforms() {
    conforms("conform_hccl.cpp");
}

#[test]
fn hccl_configurations_conform() {
    conforms("conform_config.cpp");
}

#[test]
fn hccl_worlds_conform() {
    conforms("conform_worlds.cpp");
}

#[test]
fn pairs_of_ranks_conform() {
    conforms("conform_pairs.cpp");
}

#[test]
fn hccl_exchanges_conform() {
    conforms("conform_exchange.cpp");
}

#[test]
fn hccl_groups_conform() {
    conforms("conform_groups.cpp");
}

#[test]
fn hcom_conforms() {
    conforms("conform_hcom.cpp");
}

#[test]
fn rank_tables_conform() {
    conforms("conform_tables.cpp");
}

#[test]
fn collectives_of_threads_and_processes() {
    passes(&program("mock_collectives.cpp"), &[]);
}

#[test]
fn barriers_keep_ranks_apart_that_read_each_others_memory() {
    let kernel = ("HARNESS_KERNEL", kernel_binary());
    passes(&program("mock_peers.cpp"), &[kernel]);
}

#[test]
fn every_collective_with_every_type() {
    passes(&program("mock_exchanges.cpp"), &[]);
}

#[test]
fn faults_give_the_vendors_codes_and_end() {
    passes(&program("mock_faults.cpp"), &[]);
}

#[test]
fn servers_are_reached_by_shared_memory_or_tcp_and_strangers_are_refused() {
    passes(&program("mock_network.cpp"), &[]);
}

/// The same cases as over shared memory, each rank its own process or all of them threads; 2 servers, then 4. Not as 64
/// threads: the kernel needs long for their two thousand connections.
#[test]
fn collectives_over_tcp() {
    let program = program("mock_collectives.cpp");
    let tcp = ("HCCL_MOCK_NET", Path::new("tcp"));
    passes_with(&program, &["-t1", "-t2", "-t3", "-t4", "-t5", "-p"], &[tcp]);
    let four_each = ("HARNESS_PER_SERVER", Path::new("4"));
    passes_with(&program, &["p16"], &[tcp, four_each]);
}

#[test]
fn every_collective_with_every_type_over_tcp() {
    let program = program("mock_exchanges.cpp");
    let tcp = ("HCCL_MOCK_NET", Path::new("tcp"));
    passes_with(&program, &["-t4", "-t5", "p16", "-950"], &[tcp]);
}

/// One process per device, each knowing its place by the variables of mpirun; the root info goes through a file.
#[test]
fn ranks_of_a_launcher_find_each_other_by_root_info() {
    let program = program("launched_ranks.cpp");
    for net in ["auto", "tcp"] {
        let folder = Folder::new(&format!("launched-{net}"));
        let start = |rank: u32| {
            Command::new(&program)
                .env("HCCL_MOCK_NET", net)
                .env("ROOT_INFO_FILE", folder.path().join("root-info"))
                .env("OMPI_COMM_WORLD_SIZE", "4")
                .env("OMPI_COMM_WORLD_RANK", rank.to_string())
                .env("OMPI_COMM_WORLD_LOCAL_RANK", rank.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let ranks: Vec<_> = (0..4).map(start).collect();
        for (rank, child) in ranks.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let complained = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "rank {rank}: {said}{complained}");
            let by_tcp = !said.trim_end().ends_with("network_bytes 0");
            assert_eq!(by_tcp, net == "tcp", "{said}");
        }
    }
}

#[test]
fn faults_over_tcp() {
    let program = program("mock_faults.cpp");
    passes(&program, &[("HCCL_MOCK_NET", Path::new("tcp"))]);
}

#[test]
fn operations_have_one_order_per_communicator() {
    passes(&program("mock_order.cpp"), &[]);
}

#[test]
fn faults_on_demand_strike_where_they_are_asked_for() {
    let kernel = ("HARNESS_KERNEL", kernel_binary());
    passes(&program("mock_inject.cpp"), &[kernel]);
}

#[test]
fn devices_streams_events_memory_and_kernels() {
    let kernel = ("HARNESS_KERNEL", kernel_binary());
    passes(&program("mock_runtime.cpp"), &[kernel]);
}
