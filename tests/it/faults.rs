//! What becomes of a job of 16 ranks when one operation of one rank goes wrong.
//!
//! Ranks are processes under `adasum-run launch`, faults those of the mock. Whatever happens: every surviving rank
//! returns an error in time, none hangs, none has a wrong result, and the launcher names the culprit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use adasum::ascend::Stream;
use adasum::reduce::{GradientReducer, Options, World};
use adasum::topo::Cluster;

use crate::processes::{Folder, adasum_run, err, out};
use crate::support::{download, noise, specs, upload};

const SERVERS: u32 = 4;
const LOCALS: u32 = 4;
const COUNTS: [usize; 3] = [30_000, 5000, 90_001];
const STEPS: u32 = 2;
/// After so long without progress a rank gives up. HCCL itself, with its limit below, says first who is missing.
const STALL: Duration = Duration::from_secs(5);
const HCCL_SECONDS: &str = "3";
/// What a survivor may take longer than its limit.
const SLACK: Duration = Duration::from_secs(10);
/// Names another build of the program, so that a long run does not depend on builds meanwhile.
const PROGRAM: &str = "ADASUM_TEST_PROGRAM";
/// Set for the ranks of a job that is to compare checksums.
const CHECKSUM: &str = "ADASUM_TEST_CHECKSUM";
/// Set for the ranks of a job that reduces among the even and among the odd ranks, each a world of two ranks a server.
const PARTS: &str = "ADASUM_TEST_PARTS";

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
    let options = Options {
        stall_timeout: STALL,
        create_timeout: Duration::from_secs(60),
        checksum: std::env::var_os(CHECKSUM).is_some(),
        ..Options::default()
    };
    let members: Vec<u32> = (0..world.size())
        .filter(|rank| rank % 2 == world.rank() % 2)
        .collect();
    let part = match std::env::var_os(PARTS) {
        Some(_) => world.part(&members, LOCALS / 2)?,
        None => world.clone(),
    };
    let mut reducer = GradientReducer::new(&part, &specs(&COUNTS), &options)?;
    let stream = Stream::new(world.device())?;
    for step in 0..STEPS {
        let inputs: Vec<Vec<f32>> = (0..COUNTS.len() as u64)
            .map(|tensor| {
                let key = |index| [u64::from(world.rank()), u64::from(step), tensor, index];
                (0..COUNTS[tensor as usize] as u64)
                    .map(|index| noise(&key(index)))
                    .collect()
            })
            .collect();
        let spans = upload(world.device(), &inputs);
        *start = Instant::now();
        reducer.reduce(&spans, &stream)?;
        reducer.synchronize(&stream, 2 * STALL)?;
        let hash = download(&spans)
            .iter()
            .flatten()
            .fold(0xCBF2_9CE4_8422_2325_u64, |hash, x| {
                (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0000_0100_0000_01B3)
            });
        println!("\nresult {step} {hash:016x}");
    }
    drop(reducer);
    drop(part);
    world.finish(STALL)
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

/// Runs it, with more variables for its ranks.
fn job(folder: &Folder, fault: Option<&str>, variables: &[(&str, &str)]) -> Outcome {
    let table = folder.path().join("table.json");
    let mut command = match std::env::var_os(PROGRAM) {
        Some(program) => std::process::Command::new(program),
        None => adasum_run(&[]),
    };
    command.args(["launch", "--linger", "30", "--timeout", "120"]);
    command.arg("--rank-table").arg(&table).arg("--");
    command.arg(std::env::current_exe().unwrap()).args([
        "faults::one_rank",
        "--exact",
        "--ignored",
        "--nocapture",
    ]);
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
    let folder = Folder::new(name);
    let server = |server: u32| {
        let device = |local: u32| {
            format!(
                r#"{{"device_id":"{local}","device_ip":"192.168.{server}.{}","rank_id":"{}"}}"#,
                local + 1,
                server * LOCALS + local
            )
        };
        let devices: Vec<String> = (0..LOCALS).map(device).collect();
        format!(
            r#"{{"server_id":"10.0.0.{}","device":[{}]}}"#,
            server + 1,
            devices.join(",")
        )
    };
    let servers: Vec<String> = (0..SERVERS).map(server).collect();
    let table = format!(
        r#"{{"status":"completed","version":"1.0","server_count":"{SERVERS}","server_list":[{}]}}"#,
        servers.join(",")
    );
    std::fs::write(folder.path().join("table.json"), table).unwrap();
    folder
}

/// One fault.
struct Fault {
    rank: u32,
    operation: &'static str,
    index: u32,
    kind: &'static str,
}

/// The operations of one rank in the step after the warm-up, by function and number.
///
/// A warm-up has all of them but the copies of the tensors and the two checks that follow those; before it, the ranks
/// compare their plans. Rounds of two servers each: 2.
fn operations() -> Vec<(&'static str, u32)> {
    const ROUNDS: u32 = 2;
    let exchanges = 1 + ROUNDS + ROUNDS + 1;
    let kernels = 2 + 1 + 4 * ROUNDS;
    let checks = 1 + 1 + ROUNDS + 1;
    let all = kernels + checks;
    let listed = [
        ("HcclBatchSendRecv", exchanges, exchanges),
        ("HcclAllGather", 1 + ROUNDS, ROUNDS),
        ("kernel", all - 4, all),
    ];
    listed
        .into_iter()
        .flat_map(|(name, first, count)| (first..first + count).map(move |index| (name, index)))
        .collect()
}

const KINDS: [&str; 3] = ["die", "stall", "error"];

impl Fault {
    fn text(&self) -> String {
        let kind = match (self.kind, self.operation, self.index % 2) {
            ("error", "kernel", _) => "error=507015",
            // On the stream, or of the call.
            ("error", _, 0) => "error=507048",
            ("error", _, _) => "error=4",
            (kind, _, _) => kind,
        };
        format!("{}:{}:{}:{kind}", self.rank, self.operation, self.index)
    }

    /// Runs a job with it and says what is wrong with the outcome.
    fn run(&self, folder: &Folder, good: &[String]) -> Result<(), String> {
        let outcome = job(folder, Some(&self.text()), &[]);
        let wrong = |what: String| Err(format!("{}: {what}\n{}", self.text(), outcome.text));
        for rank in 0..SERVERS * LOCALS {
            if let Some(results) = outcome.results.get(&rank)
                && !good.starts_with(results)
            {
                return wrong(format!("rank {rank} has a wrong result"));
            }
            if self.kind == "die" && rank == self.rank {
                continue;
            }
            let Some(end) = outcome.ends.get(&rank) else {
                return wrong(format!("rank {rank} did not end"));
            };
            let Some(time) = end.strip_prefix("ended after ") else {
                return wrong(format!("rank {rank} knows of no error"));
            };
            let milliseconds: u64 = time.split(' ').next().unwrap().parse().unwrap();
            if Duration::from_millis(milliseconds) > STALL + SLACK {
                return wrong(format!("rank {rank} took {milliseconds} ms"));
            }
        }
        if outcome.culprits != [self.rank] {
            return wrong(format!("the culprit is {:?}", outcome.culprits));
        }
        Ok(())
    }
}

/// Runs all of them, a few at a time, and fails with what was wrong with each.
fn run_all(name: &str, faults: &[Fault], at_a_time: usize) {
    let folder = folder(name);
    let good = job(&folder, None, &[]);
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
                    let result = fault.run(&folder, &results);
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
        "faults: {} of {} operations on {} ranks, {} wrong, {:.0} s",
        faults.len(),
        operations().len(),
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
    for (operation, index) in operations() {
        for kind in KINDS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            faults.push(Fault {
                rank: (state >> 33) as u32 % (SERVERS * LOCALS),
                operation,
                index,
                kind,
            });
        }
    }
    assert!(faults.len() >= 60);
    run_all("faults-sample", &faults, 3);
}

/// The same on every rank.
#[test]
#[ignore = "takes more than half an hour"]
fn every_operation_of_every_rank_may_die_stall_or_fail() {
    let faults: Vec<Fault> = (0..SERVERS * LOCALS)
        .flat_map(|rank| {
            operations()
                .into_iter()
                .flat_map(move |(operation, index)| {
                    KINDS.map(|kind| Fault {
                        rank,
                        operation,
                        index,
                        kind,
                    })
                })
        })
        .collect();
    run_all("faults-all", &faults, 4);
}

/// What is damaged on its way back differs between ranks.
#[test]
fn checksums_find_damaged_results() {
    let folder = folder("faults-corrupt");
    // The last exchange of the step after the warm-up: the gather in the server.
    let fault = "6:HcclBatchSendRecv:11:corrupt";
    let unseen = job(&folder, Some(fault), &[]);
    let good = &unseen.results[&0];
    assert_ne!(unseen.results[&6], *good, "{}", unseen.text);
    // What that exchange left, and before vectors are combined, where the result would be wrong on all ranks alike: in the
    // server, in a round, and among the scalars.
    for (fault, found) in [
        (fault, "rank 6 does not hold what rank"),
        (
            "6:HcclBatchSendRecv:6:corrupt",
            "rank 6 does not hold what rank",
        ),
        (
            "6:HcclBatchSendRecv:7:corrupt",
            "rank 6 does not hold what rank",
        ),
        ("6:HcclAllGather:3:corrupt", "ranks [6] hold other data"),
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
    let fault = "6:HcclBatchSendRecv:7:stall";
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
        ("6:HcclBatchSendRecv:7:die", HCCL_SECONDS),
        ("6:HcclBatchSendRecv:7:stall", "600"),
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
