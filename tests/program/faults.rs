//! What becomes of a job of 16 ranks when one operation of one rank goes wrong.
//!
//! Ranks are processes under `adasum-run launch`, faults those of the mock. Whatever happens: every surviving rank
//! returns an error in time, none hangs, none has a wrong result, and the launcher names the culprit. Where a kernel fails, streams
//! go on, and others may end well, but what the failure touched is a NaN for all of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use adasum::ascend::Stream;
use adasum::reduce::{Form, GradientReducer, Options, World};
use adasum::topo::Cluster;

use crate::library::execution::counter;
use crate::support::adasum_run::{Folder, adasum_run, err, out};
use crate::support::{download, noise, specs, upload};

const SERVERS: u32 = 4;
const LOCALS: u32 = 4;
const COUNTS: [usize; 3] = [30_000, 5000, 90_001];
const STEPS: u32 = 2;
/// After so long without progress a rank gives up. HCCL itself, with its limit below, says first who is missing.
const STALL: Duration = Duration::from_secs(5);
const HCCL_SECONDS: &str = "3";
/// What a survivor may take longer than its limit.
const SLACK: Duration = Duration::from_secs(20);
/// What stands for a tensor with a NaN.
const SPOILT: &str = "spoilt";
/// Names another build of the program, so that a long run does not depend on builds meanwhile.
const PROGRAM: &str = "ADASUM_TEST_PROGRAM";
/// How many steps the ranks of a job take, and the job itself, so that its processes are found.
const STEPS_VARIABLE: &str = "ADASUM_TEST_STEPS";
const JOB_VARIABLE: &str = "ADASUM_TEST_JOB";
/// Set for the ranks of a job that is to compare checksums.
const CHECKSUM: &str = "ADASUM_TEST_CHECKSUM";
/// Set for the ranks of a job that reduces among the even and among the odd ranks, each a world of two ranks a server.
const PARTS: &str = "ADASUM_TEST_PARTS";

/// Set for the ranks of a job that read each other's memory, to [`IN_BUFFERS`] if gradients lie in the reducer's own buffers.
const SHARED: &str = "ADASUM_TEST_SHARED";
const IN_BUFFERS: &str = "in buffers";

/// One rank of a job: prints a hash for each result, and how it ended.
#[test]
#[ignore = "a process of a job, started by another test"]
fn one_rank() {
    let mut start = Instant::now();
    match steps(&mut start) {
        Ok(()) => println!("\nended well"),
        Err(error) => {
            println!("\nended after {} ms: {error}", start.elapsed().as_millis());
            std::process::exit(3);
        }
    }
}

fn steps(start: &mut Instant) -> adasum::Result<()> {
    let cluster = Cluster::from_env()?;
    let world = World::from_cluster(&cluster)?;
    let in_buffers = std::env::var(SHARED).is_ok_and(|value| value == IN_BUFFERS);
    let standard = Options::default();
    let (radix, bucket_bytes) = match in_buffers {
        // Two rounds, and two buckets.
        true => (4, 150_000),
        false => (standard.radix, standard.bucket_bytes),
    };
    let options = Options {
        radix,
        bucket_bytes,
        gradient_buffers: in_buffers,
        stall_timeout: STALL,
        create_timeout: Duration::from_secs(60),
        checksum: std::env::var_os(CHECKSUM).is_some(),
        exchange: std::env::var_os(SHARED).map(|_| Form::Shared),
        ..standard
    };
    let members: Vec<u32> = (0..world.size())
        .filter(|rank| rank % 2 == world.rank() % 2)
        .collect();
    let part = match std::env::var_os(PARTS) {
        Some(_) => world.part(&members, LOCALS / 2)?,
        None => world.clone(),
    };
    let mut reducer = GradientReducer::new(&part, &specs(&COUNTS), &options)?;
    let launches = || println!("\nlaunches {}", counter("kernel_launches"));
    launches();
    let stream = Stream::new(world.device())?;
    let steps = std::env::var(STEPS_VARIABLE).map_or(STEPS, |steps| steps.parse().unwrap());
    for step in 0..steps {
        let inputs: Vec<Vec<f32>> = (0..COUNTS.len() as u64)
            .map(|tensor| {
                let key = |index| [u64::from(world.rank()), u64::from(step), tensor, index];
                (0..COUNTS[tensor as usize] as u64)
                    .map(|index| noise(&key(index)))
                    .collect()
            })
            .collect();
        let spans = match in_buffers {
            true => reducer.gradient_buffers()?.into_iter().flatten().collect(),
            false => upload(world.device(), &inputs),
        };
        for (span, input) in spans.iter().zip(&inputs).filter(|_| in_buffers) {
            span.write(input)?;
        }
        *start = Instant::now();
        reducer.reduce(&spans, &stream)?;
        reducer.synchronize(&stream, 2 * STALL)?;
        let results = download(&spans);
        let results: Vec<String> = results.iter().map(|tensor| told(tensor)).collect();
        println!("\nresult {step} {}", results.join(" "));
        launches();
    }
    drop(reducer);
    drop(part);
    world.finish(STALL)
}

/// The hash of a tensor, or that it has a NaN.
fn told(tensor: &[f32]) -> String {
    if tensor.iter().any(|x| x.is_nan()) {
        return SPOILT.to_owned();
    }
    let hash = tensor.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, x| {
        (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0000_0100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// Whether each tensor of these results is right or says that it is not.
fn is_true(results: &[String], good: &[String]) -> bool {
    results.len() <= good.len()
        && results.iter().zip(good).all(|(result, good)| {
            let (words, good) = (result.split(' '), good.split(' '));
            words.clone().count() == good.clone().count()
                && words
                    .zip(good)
                    .all(|(word, good)| word == good || word == SPOILT)
        })
}

/// What a job left behind.
struct Outcome {
    /// The hashes that each rank printed.
    results: BTreeMap<u32, Vec<String>>,
    /// How each rank says that it ended.
    ends: BTreeMap<u32, String>,
    /// The ranks that the launcher names.
    culprits: Vec<u32>,
    text: String,
}

impl Outcome {
    /// The numbers of the kernels that all ranks have in the step behind the warm-up.
    fn kernels(&self) -> Range<u32> {
        let of_rank = |rank: u32| {
            let mark = format!("[r{rank}] launches ");
            let launches = self.text.lines();
            let launches = launches.filter_map(|line| line.strip_prefix(&mark));
            let launches: Vec<u32> = launches.map(|count| count.parse().unwrap()).collect();
            assert_eq!(launches.len() as u32, 1 + STEPS, "{}", self.text);
            launches[0]..launches[1]
        };
        let all: Vec<Range<u32>> = (0..SERVERS * LOCALS).map(of_rank).collect();
        let start = all.iter().map(|range| range.start).max().unwrap();
        let end = all.iter().map(|range| range.end).min().unwrap();
        assert!(start < end, "{all:?}");
        start..end
    }
}

/// Runs it, with more variables for its ranks.
fn job(folder: &Folder, fault: Option<&str>, variables: &[(&str, &str)]) -> Outcome {
    let program = std::env::current_exe().unwrap();
    job_of(folder, &one_rank_of(&program), fault, variables)
}

/// The command for [`one_rank`] of this program.
fn one_rank_of(program: &Path) -> [&OsStr; 5] {
    [
        program.as_os_str(),
        "program::faults::one_rank".as_ref(),
        "--exact".as_ref(),
        "--ignored".as_ref(),
        "--nocapture".as_ref(),
    ]
}

/// Runs ranks that are `program` with its arguments.
fn job_of(
    folder: &Folder,
    program: &[&OsStr],
    fault: Option<&str>,
    variables: &[(&str, &str)],
) -> Outcome {
    let table = folder.path().join("table.json");
    let mut command = match std::env::var_os(PROGRAM) {
        Some(program) => std::process::Command::new(program),
        None => adasum_run(&[]),
    };
    command.args(["launch", "--linger", "30", "--timeout", "120"]);
    command
        .arg("--rank-table")
        .arg(&table)
        .arg("--")
        .args(program);
    command
        .env("ADASUM_BACKEND", "mock")
        .env("HCCL_EXEC_TIMEOUT", HCCL_SECONDS)
        .env("ASCEND_MOCK_HBM_MB", "1024");
    command.env_remove("HCCL_MOCK_FAULT");
    if let Some(fault) = fault {
        command.env("HCCL_MOCK_FAULT", fault);
    }
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = format!("{}{}", out(&output), err(&output));
    let mut outcome = Outcome {
        results: BTreeMap::new(),
        ends: BTreeMap::new(),
        culprits: Vec::new(),
        text: String::new(),
    };
    for line in text.lines() {
        if let Some(ranks) = line.strip_prefix("adasum-run: cause: rank") {
            outcome.culprits = ranks_in(ranks);
        }
        let Some((rank, line)) = line.strip_prefix("[r").and_then(|l| l.split_once("] ")) else {
            continue;
        };
        let rank = rank.parse().unwrap();
        if line.starts_with("result ") {
            outcome
                .results
                .entry(rank)
                .or_default()
                .push(line.to_owned());
        } else if line.starts_with("ended ") {
            outcome.ends.insert(rank, line.to_owned());
        }
    }
    outcome.text = text;
    outcome
}

/// " 3 ..." or "s 0-2, 5 ...".
fn ranks_in(text: &str) -> Vec<u32> {
    let list = text.strip_prefix('s').unwrap_or(text).trim_start();
    let end = list
        .find(|c: char| !(c.is_ascii_digit() || "-, ".contains(c)))
        .unwrap_or(list.len());
    let parts = list[..end].split(',').map(str::trim);
    let numbers = parts.filter(|part| !part.is_empty()).flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    });
    numbers.collect()
}

fn folder(name: &str) -> Folder {
    folder_of(name, SERVERS)
}

/// A folder with the table of all ranks on so many servers.
fn folder_of(name: &str, servers: u32) -> Folder {
    let folder = Folder::new(name);
    let locals = SERVERS * LOCALS / servers;
    let server = |server: u32| {
        let device = |local: u32| {
            format!(
                r#"{{"device_id":"{local}","device_ip":"192.168.{server}.{}","rank_id":"{}"}}"#,
                local + 1,
                server * locals + local
            )
        };
        let devices: Vec<String> = (0..locals).map(device).collect();
        format!(
            r#"{{"server_id":"10.0.0.{}","device":[{}]}}"#,
            server + 1,
            devices.join(",")
        )
    };
    let list: Vec<String> = (0..servers).map(server).collect();
    let table = format!(
        r#"{{"status":"completed","version":"1.0","server_count":"{servers}","server_list":[{}]}}"#,
        list.join(",")
    );
    std::fs::write(folder.path().join("table.json"), table).unwrap();
    folder
}

/// What goes wrong on one rank.
struct Fault {
    rank: u32,
    /// By function and number.
    operations: Vec<(&'static str, u32)>,
    kind: &'static str,
    /// More variables of its job.
    variables: &'static [(&'static str, &'static str)],
}

/// The operations of one rank in the step after the warm-up, by function and number.
///
/// A warm-up has as many, but for kernels; before it, the ranks compare their plans, and learn whether all have made their parts of the
/// reducer and have room for it. Rounds of two servers each: 2.
fn operations(good: &Outcome) -> Vec<(&'static str, u32)> {
    const ROUNDS: u32 = 2;
    let in_server = 1 + 1;
    let across = ROUNDS + ROUNDS;
    let listed = [
        ("HcclAlltoAllV", in_server..2 * in_server),
        ("HcclBatchSendRecv", across..2 * across),
        ("HcclAllGather", 3 + ROUNDS..3 + 2 * ROUNDS),
        ("kernel", good.kernels()),
    ];
    listed
        .into_iter()
        .flat_map(|(name, range)| range.map(move |index| (name, index)))
        .collect()
}

const KINDS: [&str; 3] = ["die", "stall", "error"];

impl Fault {
    fn text(&self) -> String {
        let rule = |&(operation, index): &(&str, u32)| {
            let kind = match (self.kind, operation, index % 2) {
                ("error", "kernel", _) => "error=507015",
                // On the stream, or of the call; a call that fails is the last one.
                ("error", _, 1) if self.operations.len() == 1 => "error=4",
                ("error", _, _) => "error=507049",
                (kind, _, _) => kind,
            };
            format!("{}:{operation}:{index}:{kind}", self.rank)
        };
        let rules: Vec<String> = self.operations.iter().map(rule).collect();
        rules.join(",")
    }

    /// Runs a job with it and says what is wrong with the outcome.
    fn run(&self, folder: &Folder, good: &[String]) -> Result<(), String> {
        let outcome = job(folder, Some(&self.text()), self.variables);
        let wrong = |what: String| Err(format!("{}: {what}\n{}", self.text(), outcome.text));
        for rank in 0..SERVERS * LOCALS {
            let results = outcome.results.get(&rank).map_or(&[][..], Vec::as_slice);
            if !is_true(results, good) {
                return wrong(format!("rank {rank} has a wrong result"));
            }
            // Of the others: a kernel that fails ends no communicator.
            let kernel = self.kind == "error" && self.operations[0].0 == "kernel";
            if self.kind == "die" && rank == self.rank {
                continue;
            }
            let Some(end) = outcome.ends.get(&rank) else {
                return wrong(format!("rank {rank} did not end"));
            };
            if kernel && rank != self.rank && end == "ended well" {
                continue;
            }
            let Some(time) = end.strip_prefix("ended after ") else {
                return wrong(format!("rank {rank} knows of no error"));
            };
            let milliseconds: u64 = time.split(' ').next().unwrap().parse().unwrap();
            if Duration::from_millis(milliseconds) > STALL + SLACK {
                return wrong(format!("rank {rank} took {milliseconds} ms"));
            }
        }
        // Behind the warm-up, and before the end of the first step.
        let launches = format!("[r{}] launches ", self.rank);
        let steps = outcome.text.lines();
        let steps = steps.filter(|line| line.starts_with(&launches)).count();
        if steps != 1 {
            return wrong(format!("it struck when {steps} counts were printed"));
        }
        // A stream tells the code of its last failure (runtime, core/src/stream/stream.hpp, SetErrCode). Behind two of its own,
        // one that it owes to others may hide them: if they were still queuing, for one, and so failed, too. Then the rank is among
        // those that may be the cause, or what the launcher shows of these names it.
        let (in_server, in_world) = (
            format!("(world rank {}) fails with", self.rank),
            format!(", rank {} of {} fails with", self.rank, SERVERS * LOCALS),
        );
        let names_it = |line: &str| {
            line.starts_with("adasum-run:   rank")
                && (line.contains(&in_server) || line.contains(&in_world))
        };
        let hidden = self.operations.len() > 1
            && (outcome.culprits.contains(&self.rank) || outcome.text.lines().any(names_it));
        if outcome.culprits != [self.rank] && !(hidden && outcome.culprits.len() <= LOCALS as usize)
        {
            return wrong(format!("the culprit is {:?}", outcome.culprits));
        }
        Ok(())
    }
}

/// Runs all of them, a few at a time, and fails with what was wrong with each.
fn run_all(folder: &Folder, good: &Outcome, faults: &[Fault], at_a_time: usize) {
    let results = good.results.get(&0).cloned().unwrap_or_default();
    assert_eq!(results.len(), STEPS as usize, "{}", good.text);
    for rank in 0..SERVERS * LOCALS {
        assert_eq!(good.results.get(&rank), Some(&results), "{}", good.text);
        assert_eq!(good.ends[&rank], "ended well", "{}", good.text);
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = std::sync::Mutex::new(Vec::new());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begin = Instant::now();
                    let result = fault.run(folder, &results);
                    println!(
                        "faults: {} of {}: {} {:.1} s {}; {:.0} s in all",
                        done.fetch_add(1, Ordering::Relaxed) + 1,
                        faults.len(),
                        fault.text(),
                        begin.elapsed().as_secs_f64(),
                        if result.is_ok() { "ok" } else { "WRONG" },
                        start.elapsed().as_secs_f64()
                    );
                    failures.lock().unwrap().extend(result.err());
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    println!(
        "faults: {} on {} ranks, {} wrong, {:.0} s",
        faults.len(),
        SERVERS * LOCALS,
        failures.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Each operation with each kind, on ranks that a fixed seed chooses.
#[test]
fn every_operation_may_die_stall_or_fail() {
    let mut state = 20_240_607_u64;
    let mut faults = Vec::new();
    let folder = folder("faults-sample");
    let good = job(&folder, None, &[]);
    for (operation, index) in operations(&good) {
        for kind in KINDS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            faults.push(Fault {
                rank: (state >> 33) as u32 % (SERVERS * LOCALS),
                operations: vec![(operation, index)],
                kind,
                variables: &[],
            });
        }
    }
    assert!(faults.len() >= 60);
    run_all(&folder, &good, &faults, 3);
}

/// On the 910A the host waits in an exchange for the counts of all ranks. Servers of 8 use it.
#[test]
fn a_rank_may_die_in_an_exchange_that_holds_the_host() {
    const VARIABLES: &[(&str, &str)] = &[("ASCEND_MOCK_SOC", "Ascend910A")];
    let folder = folder_of("faults-910A", 2);
    let good = job(&folder, None, VARIABLES);
    let exchanges = operations(&good)
        .into_iter()
        .filter(|(operation, _)| *operation == "HcclAlltoAllV");
    let faults = exchanges.map(|operation| Fault {
        rank: 6,
        operations: vec![operation],
        kind: "die",
        variables: VARIABLES,
    });
    run_all(&folder, &good, &faults.collect::<Vec<_>>(), 3);
}

/// Ranks that read each other's memory, and what each of them does in the step behind the warm-up.
struct Shared {
    folder: Folder,
    good: Outcome,
    variables: &'static [(&'static str, &'static str)],
    barriers: Range<u32>,
    gathers: Range<u32>,
}

impl Shared {
    /// All ranks on `servers` servers. A step has so many barriers and gathers.
    fn new(
        name: &str,
        servers: u32,
        (barriers, gathers): (u32, u32),
        variables: &'static [(&'static str, &'static str)],
    ) -> Shared {
        // Of machines, what joins devices, plans, whether all have made their parts, have room, keys, whether all could use them, and what
        // they still use; then those of the warm-up.
        let before = 8 + gathers;
        let folder = folder_of(name, servers);
        let good = job(&folder, None, variables);
        Shared {
            folder,
            good,
            variables,
            barriers: barriers..2 * barriers,
            gathers: before..before + gathers,
        }
    }

    /// Lets each list of operations go wrong on one rank.
    fn run(&self, faults: impl Iterator<Item = Vec<(&'static str, u32)>>, kinds: &[&'static str]) {
        let fault = |(number, operations): (usize, Vec<_>)| Fault {
            rank: (5 * number as u32 + 3) % (SERVERS * LOCALS),
            operations,
            kind: kinds[number % kinds.len()],
            variables: self.variables,
        };
        let faults: Vec<Fault> = faults.enumerate().map(fault).collect();
        run_all(&self.folder, &self.good, &faults, 3);
    }

    /// Each barrier, gather and kernel, one kind each.
    fn run_each(&self) {
        let ranges = [
            ("HcclAllReduce", self.barriers.clone()),
            ("HcclAllGather", self.gathers.clone()),
            ("kernel", self.good.kernels()),
        ];
        let each = ranges
            .into_iter()
            .flat_map(|(name, range)| range.map(move |index| vec![(name, index)]));
        self.run(each, &KINDS);
    }
}

/// The same of ranks that read each other's memory.
#[test]
fn every_operation_on_shared_memory_may_die_stall_or_fail() {
    // Before the mean, two rounds, the return and the gather, and behind all.
    Shared::new("faults-shared", SERVERS, (6, 2), &[(SHARED, "1")]).run_each();
}

/// With one rank a server there is no barrier behind all, and buckets with buffers of their own have the first and the last one in
/// common: before the first of two rounds, before the second one of each of two buckets, and before the return.
#[test]
fn every_operation_in_the_reducers_own_buffers_may_die_stall_or_fail() {
    let variables = &[(SHARED, IN_BUFFERS)];
    Shared::new("faults-buffers", SERVERS * LOCALS, (4, 4), variables).run_each();
}

/// A rank that fails a barrier waits for nobody there. If it fails a gather, too, it has no weights to write a sum with.
#[test]
fn a_barrier_and_a_gather_on_shared_memory_may_both_fail() {
    let shared = Shared::new("faults-shared-two", SERVERS, (6, 2), &[(SHARED, "1")]);
    let both = shared.barriers.clone().flat_map(|barrier| {
        let gathers = shared.gathers.clone();
        gathers.map(move |gather| vec![("HcclAllReduce", barrier), ("HcclAllGather", gather)])
    });
    shared.run(both, &["error"]);
}

/// The same on every rank.
#[test]
#[ignore = "takes more than half an hour"]
fn every_operation_of_every_rank_may_die_stall_or_fail() {
    let folder = folder("faults-all");
    let good = job(&folder, None, &[]);
    let faults: Vec<Fault> = (0..SERVERS * LOCALS)
        .flat_map(|rank| {
            operations(&good)
                .into_iter()
                .flat_map(move |(operation, index)| {
                    KINDS.map(|kind| Fault {
                        rank,
                        operations: vec![(operation, index)],
                        kind,
                        variables: &[],
                    })
                })
        })
        .collect();
    run_all(&folder, &good, &faults, 4);
}

/// What is damaged on its way back differs between ranks.
#[test]
fn checksums_find_damaged_results() {
    let folder = folder("faults-corrupt");
    // The last exchange of the step after the warm-up: the gather in the server.
    let fault = "6:HcclAlltoAllV:3:corrupt";
    let unseen = job(&folder, Some(fault), &[]);
    let good = &unseen.results[&0];
    assert_ne!(unseen.results[&6], *good, "{}", unseen.text);
    // What that exchange left, and before vectors are combined, where the result would be wrong on all ranks alike: in the
    // server, in a round, and among the scalars.
    for (fault, found) in [
        (fault, "rank 6 does not hold what rank"),
        (
            "6:HcclAlltoAllV:2:corrupt",
            "rank 6 does not hold what rank",
        ),
        (
            "6:HcclBatchSendRecv:4:corrupt",
            "rank 6 does not hold what rank",
        ),
        ("6:HcclAllGather:5:corrupt", "ranks [6] hold other data"),
    ] {
        let seen = job(&folder, Some(fault), &[(CHECKSUM, "1")]);
        for rank in 0..SERVERS * LOCALS {
            let end = &seen.ends[&rank];
            assert!(end.contains(found), "{fault}: {end}");
            assert!(!seen.results.contains_key(&rank), "{fault}: {}", seen.text);
        }
    }
}

/// With a limit of HCCL's own that is far away the watchdog is the one who speaks, and what it says is enough: each rank
/// names whom it waits for in which exchange, and together that leads to the pair in which the exchange stands still.
#[test]
fn a_stalled_exchange_names_its_pair_before_hccl_does() {
    let folder = folder("faults-watchdog");
    // The first round's exchange of the step after the warm-up.
    let fault = "6:HcclBatchSendRecv:4:stall";
    let outcome = job(&folder, Some(fault), &[("HCCL_EXEC_TIMEOUT", "600")]);
    for rank in 0..SERVERS * LOCALS {
        let end = outcome.ends.get(&rank);
        let end = end.unwrap_or_else(|| panic!("rank {rank} did not end\n{}", outcome.text));
        assert!(end.starts_with("ended after "), "{end}");
    }
    let own = &outcome.ends[&6];
    assert!(
        own.contains("nothing moved") && own.contains("round 0"),
        "{own}"
    );
    let named = &outcome.culprits;
    assert!(
        named.contains(&6) && named.len() <= 2,
        "{named:?}\n{}",
        outcome.text
    );
}

/// A rank of a world that is a part: the other ranks of that part fail and name it by its number in the whole.
#[test]
fn a_fault_in_a_part_is_found() {
    let folder = folder("faults-parts");
    for (fault, hccl) in [
        ("6:HcclBatchSendRecv:4:die", HCCL_SECONDS),
        ("6:HcclBatchSendRecv:4:stall", "600"),
    ] {
        let variables = [(PARTS, "1"), ("HCCL_EXEC_TIMEOUT", hccl)];
        let outcome = job(&folder, Some(fault), &variables);
        for rank in (0..SERVERS * LOCALS).step_by(2).filter(|&rank| rank != 6) {
            let end = outcome.ends.get(&rank);
            let end = end.unwrap_or_else(|| panic!("rank {rank} did not end\n{}", outcome.text));
            assert!(end.starts_with("ended after "), "{end}");
        }
        let named = &outcome.culprits;
        assert!(
            named.contains(&6) && named.iter().all(|rank| rank % 2 == 0) && named.len() <= 2,
            "{fault}: {named:?}\n{}",
            outcome.text
        );
    }
}

/// Ranks of a table of version 2.0, that of Ascend 950, meet by root info, where the launcher says.
#[test]
fn ranks_of_a_table_of_version_2_make_a_world() {
    let folder = Folder::new("faults-version-2");
    let rank = |number: u32| {
        let (server, local) = (number / LOCALS, number % LOCALS);
        format!(
            r#"{{"rank_id":{number},"local_id":{local},"device_id":{local},"level_list":[{{"net_layer":0,
            "net_instance_id":"pod{server}","rank_addr_list":[{{"addr_type":"IPV4","addr":"10.0.{server}.{local}",
            "ports":["0/4"]}}]}}]}}"#
        )
    };
    let ranks: Vec<String> = (0..SERVERS * LOCALS).map(rank).collect();
    let table = format!(
        r#"{{"version":"2.0","rank_count":{},"rank_list":[{}]}}"#,
        ranks.len(),
        ranks.join(",")
    );
    std::fs::write(folder.path().join("table.json"), table).unwrap();
    let outcome = job(&folder, None, &[]);
    let well = outcome.ends.values().filter(|end| *end == "ended well");
    assert_eq!(well.count(), ranks.len(), "{}", outcome.text);
    let same = outcome
        .results
        .values()
        .all(|results| *results == outcome.results[&0]);
    assert!(
        same && outcome.results[&0].len() == STEPS as usize,
        "{}",
        outcome.text
    );
}

/// A rank that hangs before it has done anything, is stopped there, or hangs in HCCL: the others' creation reaches its limit first, and
/// they are not the cause. The jobs mostly wait, and so run beside each other.
#[test]
fn a_rank_that_hangs_while_starting_is_named() {
    let folder = folder("faults-start");
    let hangs = |hang: &str, fault: Option<&str>, words: &str| {
        let script = format!("[ $RANK_ID = 2 ] && {hang}; exec \"$@\"");
        let program = std::env::current_exe().unwrap();
        let shell = ["sh", "-c", &script, "sh"].map(OsStr::new);
        let command = [&shell[..], &one_rank_of(&program)].concat();
        let limit = [("HCCL_CONNECT_TIMEOUT", "20")];
        let outcome = job_of(&folder, &command, fault, &limit);
        assert_eq!(outcome.culprits, [2], "{}", outcome.text);
        assert!(outcome.text.contains(words), "{}", outcome.text);
    };
    let stall = Some("2:HcclCommInitClusterInfoConfig:0:stall");
    std::thread::scope(|scope| {
        for (hang, fault, words) in [
            (
                "exec sleep 100",
                None,
                "rank 2 did not begin to join the world",
            ),
            ("kill -STOP $$", None, "rank 2 is stopped"),
            (":", stall, "rank 2 did not finish joining the world"),
        ] {
            let hangs = &hangs;
            scope.spawn(move || hangs(hang, fault, words));
        }
    });
}

/// Signals at random times to one or two ranks: no job hangs, nothing is left, and whoever is named got one.
#[test]
#[ignore = "takes ten minutes"]
fn random_signals_end_jobs_and_the_right_ranks_are_named() {
    const JOBS: u32 = 100;
    let folder = folder("faults-signals");
    let next = AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    let (struck, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let number = u32::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                    if number >= JOBS {
                        return;
                    }
                    let signals = Signals::random(number.into());
                    let found = signals.run(&folder, number);
                    println!("faults: {number}: {signals:?}: {found:?}");
                    struck.fetch_add(usize::from(found == Ok(true)), Ordering::Relaxed);
                    let stop = signals.signal == libc::SIGSTOP && found == Ok(true);
                    stopped.fetch_add(usize::from(stop), Ordering::Relaxed);
                    wrong.lock().unwrap().extend(found.err());
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!(
        "faults: {} of {JOBS} jobs were struck, {} stopped",
        struck.load(Ordering::Relaxed),
        stopped.load(Ordering::Relaxed)
    );
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(struck.load(Ordering::Relaxed) > 80);
}

/// What is sent, to whom and when.
#[derive(Debug)]
struct Signals {
    signal: i32,
    ranks: Vec<u32>,
    after: Duration,
    hccl_seconds: &'static str,
}

impl Signals {
    fn random(seed: u64) -> Signals {
        let value = |key: u64, below: u64| {
            let unit = f64::from(noise(&[seed, key, 77, 3])).abs();
            ((unit * 1e6) as u64) % below
        };
        let first = value(0, 16) as u32;
        let second = (first + 1 + value(1, 15) as u32) % 16;
        Signals {
            signal: [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV][value(2, 3) as usize],
            ranks: if value(3, 3) == 0 {
                vec![first, second]
            } else {
                vec![first]
            },
            after: Duration::from_millis(value(4, 4000)),
            hccl_seconds: if value(5, 2) == 0 {
                HCCL_SECONDS
            } else {
                "600"
            },
        }
    }

    /// Whether the signals came in time to end the job; or what is wrong.
    fn run(&self, folder: &Folder, number: u32) -> Result<bool, String> {
        let name = format!("{}-{number}", std::process::id());
        let variables = [
            (JOB_VARIABLE, name.as_str()),
            // More than a job gets done before its signal.
            (STEPS_VARIABLE, "600"),
            ("HCCL_EXEC_TIMEOUT", self.hccl_seconds),
            ("HCCL_CONNECT_TIMEOUT", "8"),
        ];
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(self.after);
                for (pid, rank) in processes_of(&name) {
                    if rank.is_some_and(|rank| self.ranks.contains(&rank)) {
                        // The first of a fault's kind is taken by the standard library, which finds no fault.
                        let times = if self.signal == libc::SIGSEGV { 2 } else { 1 };
                        for _ in 0..times {
                            // SAFETY: kill takes two integers.
                            unsafe { libc::kill(pid, self.signal) };
                            std::thread::sleep(Duration::from_millis(10));
                        }
                    }
                }
            });
            job(folder, None, &variables)
        });
        let wrong = |what: String| Err(format!("{number} {self:?}: {what}\n{}", outcome.text));
        let left = processes_of(&name);
        if !left.is_empty() {
            return wrong(format!("{left:?} are left"));
        }
        if outcome.text.contains("timeout after") {
            return wrong("the job hung".to_owned());
        }
        if outcome
            .ends
            .values()
            .filter(|end| *end == "ended well")
            .count()
            == 16
        {
            return Ok(false);
        }
        // Where nobody waited for it any more, it is only told who failed.
        let first = || {
            let (_, text) = outcome.text.split_once("adasum-run: rank ")?;
            let (rank, _) = text.split_once(" failed first")?;
            rank.parse::<u32>().ok()
        };
        let mut named = outcome.culprits.clone();
        if named.is_empty() {
            named.extend(first());
        }
        if named.is_empty() || named.iter().any(|rank| !self.ranks.contains(rank)) {
            return wrong(format!("the culprits are {named:?}"));
        }
        Ok(true)
    }
}

/// The live processes of a job, with their ranks.
fn processes_of(job: &str) -> Vec<(i32, Option<u32>)> {
    let entry = format!("{JOB_VARIABLE}={job}");
    let own = std::process::id();
    let of = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let entries = || {
            environment
                .split(|&byte| byte == 0)
                .map(String::from_utf8_lossy)
        };
        let found = pid.cast_unsigned() != own && entries().any(|found| found == entry);
        let rank = entries().find_map(|entry| entry.strip_prefix("RANK_ID=")?.parse().ok());
        found.then_some((pid, rank))
    };
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(of).collect()
}
