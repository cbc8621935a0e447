//! Timelines: what `bench --trace` and `launch --trace` write is in the Trace Event Format, is nested as its readers ask for, and
//! has the ranks, steps, buckets and stages that ran. Times are held against each other, never against a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use adasum::ascend::Stream;
use adasum::reduce::{GradientReducer, Options, World};
use adasum::topo::Cluster;
use serde_json::Value;

use crate::support::adasum_run::{Folder, adasum_run, err, out};
use crate::support::{noise, specs, upload};

/// Elements of the tensors of [`one_rank`], each of which is a bucket.
const COUNTS: [usize; 3] = [5000, 7001, 20_001];
const STEPS: u64 = 4;
const STALL: Duration = Duration::from_secs(5);

/// One rank of a job that reduces.
#[test]
#[ignore = "a process of a job, started by another test"]
fn one_rank() {
    let world = World::from_cluster(&Cluster::from_env().unwrap()).unwrap();
    let options = Options {
        stall_timeout: STALL,
        bucket_bytes: 1,
        ..Options::default()
    };
    let mut reducer = GradientReducer::new(&world, &specs(&COUNTS), &options).unwrap();
    let stream = Stream::new(world.device()).unwrap();
    let inputs: Vec<Vec<f32>> = COUNTS
        .iter()
        .map(|&count| {
            (0..count as u64)
                .map(|index| noise(&[u64::from(world.rank()), index]))
                .collect()
        })
        .collect();
    let spans = upload(world.device(), &inputs);
    for _ in 0..STEPS {
        reducer.reduce(&spans, &stream).unwrap();
        reducer.synchronize(&stream, 2 * STALL).unwrap();
    }
    drop(reducer);
    world.finish(STALL).unwrap();
}

/// A job of such ranks, which writes its timeline to `file`.
fn launch(file: &Path, size: &[&str], faults: &str) -> Output {
    let file = file.to_str().unwrap();
    let mut command = job(&[&["--trace", file], size].concat());
    command.env("HCCL_MOCK_FAULT", faults);
    command.output().unwrap()
}

/// A job of such ranks with these options of the launcher.
fn job(options: &[&str]) -> Command {
    let mut command = adasum_run(&["launch"]);
    command.args(options).arg("--");
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "program::trace::one_rank", "--ignored"]);
    command.args(["--nocapture", "--test-threads=1"]);
    command.env("ADASUM_BACKEND", "mock");
    command.env("HCCL_EXEC_TIMEOUT", "600");
    command
}

/// An event with a time, which it has from `start` to `end` in nanoseconds.
#[derive(Debug, Clone)]
struct Bar {
    rank: u64,
    thread: u64,
    name: String,
    categories: Vec<String>,
    start: u64,
    /// `None` if it has not ended.
    end: Option<u64>,
    arguments: Value,
}

impl Bar {
    fn is(&self, category: &str) -> bool {
        self.categories.iter().any(|own| own == category)
    }

    fn step(&self) -> u64 {
        self.arguments["step"].as_u64().unwrap()
    }

    fn bucket(&self) -> Option<u64> {
        self.arguments["bucket"].as_u64()
    }
}

/// A timeline, read and checked by the rules of the format.
struct Timeline {
    /// Names of processes and of threads.
    ranks: BTreeMap<u64, String>,
    threads: BTreeMap<(u64, u64), String>,
    bars: Vec<Bar>,
}

impl Timeline {
    fn read(file: &Path) -> Timeline {
        let text = std::fs::read_to_string(file).unwrap();
        let events: Vec<Value> = serde_json::from_str(&text).unwrap();
        let (mut ranks, mut threads) = (BTreeMap::new(), BTreeMap::new());
        let mut bars = Vec::new();
        for event in events {
            let number = |key: &str| {
                event[key]
                    .as_u64()
                    .unwrap_or_else(|| panic!("{key}: {event}"))
            };
            // Readers take times as floating-point microseconds, and some cut them to nanoseconds.
            let time = |key: &str| {
                let nanoseconds = event[key].as_f64().unwrap() * 1000.0;
                assert!(nanoseconds >= 0.0 && nanoseconds.fract() == 0.0, "{event}");
                nanoseconds as u64
            };
            let (rank, thread) = (number("pid"), number("tid"));
            let name = event["name"].as_str().unwrap().to_owned();
            let start = time("ts");
            let named = || event["args"]["name"].as_str().unwrap().to_owned();
            match event["ph"].as_str().unwrap() {
                "M" if name == "process_name" => drop(ranks.insert(rank, named())),
                "M" if name == "thread_name" => drop(threads.insert((rank, thread), named())),
                "M" => assert!(event["args"]["sort_index"].is_u64(), "{event}"),
                phase @ ("X" | "B") => bars.push(Bar {
                    rank,
                    thread,
                    categories: event["cat"]
                        .as_str()
                        .unwrap()
                        .split(',')
                        .map(str::to_owned)
                        .collect(),
                    end: (phase == "X").then(|| start + time("dur")),
                    arguments: event["args"].clone(),
                    name,
                    start,
                }),
                other => panic!("{other}: {event}"),
            }
        }
        let timeline = Timeline {
            ranks,
            threads,
            bars,
        };
        timeline.check();
        timeline
    }

    /// Bars of a thread follow each other or lie in each other, and stand in the order in which they begin.
    fn check(&self) {
        for (thread, name) in &self.threads {
            assert!(self.ranks.contains_key(&thread.0));
            let mut open: Vec<&Bar> = Vec::new();
            let mut last = 0;
            for bar in self
                .bars
                .iter()
                .filter(|bar| (bar.rank, bar.thread) == *thread)
            {
                assert!(bar.start >= last, "{name}: {bar:?}");
                last = bar.start;
                while open
                    .last()
                    .is_some_and(|outer| outer.end.is_some_and(|end| end <= bar.start))
                {
                    open.pop();
                }
                if let Some(outer) = open.last() {
                    let inside = outer
                        .end
                        .is_none_or(|end| bar.end.is_some_and(|own| own <= end));
                    assert!(inside, "{name}: {bar:?} leaves {outer:?}");
                }
                let device = name.contains("(device)");
                assert_eq!(
                    (bar.is("device"), bar.is("host")),
                    (device, !device),
                    "{bar:?}"
                );
                open.push(bar);
            }
        }
        for bar in &self.bars {
            assert!(
                self.threads.contains_key(&(bar.rank, bar.thread)),
                "{bar:?}"
            );
        }
    }

    fn of(&self, rank: u64, category: &str) -> Vec<&Bar> {
        let bars = self.bars.iter();
        bars.filter(|bar| bar.rank == rank && bar.is(category))
            .collect()
    }

    /// The steps of a rank that reduce.
    fn reductions(&self, rank: u64) -> Vec<&Bar> {
        let steps = self.bars.iter().filter(|bar| bar.rank == rank);
        steps
            .filter(|bar| bar.name.ends_with(": reduction"))
            .collect()
    }

    /// All ranks are there and have so many reductions, each with the stages of these buckets, in the order of AdaSum.
    fn expect(&self, ranks: u64, steps: u64, buckets: u64, stages: &[&str]) {
        let names: Vec<String> = (0..ranks).map(|rank| format!("rank {rank}")).collect();
        assert_eq!(self.ranks.values().cloned().collect::<Vec<_>>(), names);
        for rank in 0..ranks {
            let reductions = self.reductions(rank);
            assert_eq!(reductions.len() as u64, steps, "rank {rank}");
            for step in reductions {
                let number = step.step();
                assert_eq!(step.name, format!("step {number}: reduction"));
                assert!(step.is("device") && step.end.is_some());
                let inside = |bar: &&&Bar| bar.step() == number;
                let bars = self.of(rank, "bucket");
                let found: BTreeSet<Option<u64>> =
                    bars.iter().filter(inside).map(|bar| bar.bucket()).collect();
                assert_eq!(
                    found,
                    (0..buckets).map(Some).collect(),
                    "rank {rank}: {step:?}"
                );
                for bucket in bars.iter().filter(inside) {
                    self.expect_stages(bucket, step, stages);
                }
            }
        }
    }

    fn expect_stages(&self, bucket: &Bar, step: &Bar, stages: &[&str]) {
        let own = |bar: &&Bar| {
            bar.rank == bucket.rank
                && bar.step() == bucket.step()
                && bar.bucket() == bucket.bucket()
                && !bar.is("bucket")
        };
        let bars: Vec<&Bar> = self.bars.iter().filter(own).collect();
        let mut ordered = bars.clone();
        ordered.sort_by_key(|bar| bar.start);
        let names: Vec<&str> = ordered.iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(names, stages, "{bucket:?}");
        // A microsecond is more than the events' times are rounded by.
        for bar in bars {
            assert!(bar.start + 1000 >= step.start, "{bar:?} {step:?}");
            assert!(
                bar.end.unwrap() <= step.end.unwrap() + 1000,
                "{bar:?} {step:?}"
            );
        }
        assert_eq!(bucket.start, ordered[0].start);
        let last = ordered.iter().map(|bar| bar.end.unwrap()).max();
        assert_eq!(bucket.end, last);
    }
}

/// The stages of a bucket that lies in one buffer, with two servers.
const TWO_SERVERS: [&str; 5] = [
    "round 0",
    "round 0: products",
    "round 0: scalars",
    "round 0: sum",
    "return of round 0",
];

#[test]
fn a_bench_of_two_ranks_has_its_steps_and_stages() {
    let folder = Folder::new("trace-bench-2");
    let file = folder.path().join("trace.json");
    let mut command = adasum_run(&["bench", "--ranks", "2", "--reps", "3", "--json"]);
    command.args([
        "--bytes",
        "400000",
        "--tensors",
        "5",
        "--bucket-bytes",
        "1",
        "--trace",
    ]);
    let output = command.arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(err(&output).contains(&format!("trace: {}", file.display())));
    assert_eq!(out(&output).lines().count(), 1, "{output:?}");
    let timeline = Timeline::read(&file);
    // 2 that are not timed, 3 that are, 3 for the phases.
    timeline.expect(2, 8, 5, &TWO_SERVERS);
    for rank in 0..2 {
        let others = serde_json::json!([1 - rank]);
        for bar in timeline.of(rank, "exchange") {
            assert_eq!(bar.arguments["peers"], others, "{bar:?}");
            assert!(bar.arguments["bytes"].as_u64().unwrap() > 0);
        }
        let calls: Vec<&Bar> = timeline.of(rank, "host");
        let waits = calls.iter().filter(|bar| bar.name == "synchronize");
        assert!(waits.count() >= 8, "{calls:?}");
        let enqueued = calls.iter().filter(|bar| bar.name == "enqueue reduction");
        assert_eq!(enqueued.count(), 8);
    }
}

/// Four ranks on two servers; rank 2 is late in one of them.
#[test]
fn a_rank_that_is_late_is_waited_for() {
    const HELD: u64 = 1_000_000_000;
    let folder = Folder::new("trace-late");
    let file = folder.path().join("trace.json");
    let size = ["-n", "4", "--servers", "2"];
    // Call 0 is that of the warm-up.
    let output = launch(&file, &size, "2:HcclAlltoAllV:7:hold=1");
    assert!(output.status.success(), "{output:?}");
    let timeline = Timeline::read(&file);
    let stages = [
        "in the server",
        "in the server: sum",
        "round 0",
        "round 0: products",
        "round 0: scalars",
        "round 0: sum",
        "return of round 0",
        "gather in the server",
    ];
    timeline.expect(4, STEPS, COUNTS.len() as u64, &stages);
    for rank in 0..4 {
        let (mate, other) = (rank ^ 1, rank ^ 2);
        for bar in timeline.of(rank, "exchange") {
            let peer = if bar.name.starts_with("round") {
                other
            } else {
                mate
            };
            assert_eq!(bar.arguments["peers"], serde_json::json!([peer]), "{bar:?}");
        }
    }
    // The rank waits for its own host, and the other one of its server for it.
    let steps = |rank: u64, name: &str| {
        let long = |bar: &&&Bar| bar.name == name && bar.end.unwrap() - bar.start >= HELD / 2;
        let waits = timeline.of(rank, "wait");
        let steps: BTreeSet<u64> = waits.iter().filter(long).map(|bar| bar.step()).collect();
        assert!(!steps.is_empty(), "{name}: {waits:?}");
        steps
    };
    let (own, mate) = (steps(2, "wait for the host"), steps(3, "wait for rank 2"));
    assert!(!own.is_disjoint(&mate), "{own:?} {mate:?}");
}

/// What ended before the failure is there, and what waits for ever has begun.
#[test]
fn the_timeline_of_a_failed_job_is_written() {
    for kind in ["stall", "die"] {
        let folder = Folder::new(&format!("trace-{kind}"));
        let file = folder.path().join("trace.json");
        // Two calls for each of three buckets in the warm-up and in each step: the first one of the third step.
        let faults = format!("1:HcclAlltoAllV:18:{kind}");
        let output = launch(&file, &["-n", "4", "--servers", "2"], &faults);
        assert!(!output.status.success(), "{output:?}");
        assert!(err(&output).contains("trace: "), "{output:?}");
        let timeline = Timeline::read(&file);
        assert_eq!(timeline.ranks.len(), 4);
        for rank in 0..4 {
            let steps = timeline.reductions(rank);
            let ended = steps.iter().filter(|bar| bar.end.is_some()).count();
            assert!(ended >= 2, "{kind}: rank {rank}: {steps:?}");
        }
        let unfinished = timeline.bars.iter().filter(|bar| bar.end.is_none());
        for bar in unfinished {
            assert_eq!(bar.arguments["unfinished"], true);
        }
        // Its mate waits, until the watchdog of either gives up.
        let waits = |bar: &&Bar| bar.name == "in the server" && bar.bucket() == Some(0);
        let of_mate = timeline.of(0, "exchange");
        let last = of_mate.into_iter().rfind(waits).unwrap();
        let lasted = last.end.map(|end| Duration::from_nanos(end - last.start));
        if kind == "stall" {
            assert!(lasted.is_none_or(|time| time > STALL / 2), "{last:?}");
        }
    }
}

#[test]
fn each_attempt_is_in_the_timeline() {
    let folder = Folder::new("trace-restarts");
    let file = folder.path().join("trace.json");
    let size = ["-n", "2", "--servers", "2", "--restarts", "1"];
    // Ranks of one device each exchange in batches.
    let output = launch(&file, &size, "0:HcclBatchSendRecv:0:error=5");
    assert!(!output.status.success(), "{output:?}");
    let timeline = Timeline::read(&file);
    for rank in 0..2 {
        let first = "step 1: gathering from all ranks";
        let steps = timeline.of(rank, "device");
        let joined = steps.iter().filter(|bar| bar.name == first).count();
        assert_eq!(joined, 2, "{output:?}");
    }
}

#[test]
fn files_that_cannot_be_are_refused_before_ranks_start() {
    let folder = Folder::new("trace-refused");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("folder")).unwrap();
    std::fs::write(path("old.json"), "old").unwrap();
    let mut permissions = std::fs::metadata(path("old.json")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(path("old.json"), permissions).unwrap();
    std::fs::copy(
        "examples/rank_tables/rank_table_16pcs.json",
        path("table.json"),
    )
    .unwrap();
    let table = path("table.json");
    for (file, why) in [
        (path("folder"), "directory"),
        (path("none/trace.json"), "No such file"),
        (path("old.json"), "read-only"),
        (table.clone(), "the same file"),
    ] {
        let job = [
            "launch",
            "--rank-table",
            &table,
            "--trace",
            &file,
            "--",
            "true",
        ];
        let bench = [
            "bench",
            "--bytes",
            "4096",
            "--tensors",
            "1",
            "--trace",
            &file,
        ];
        for arguments in [&job[..], &bench[..]] {
            if file == table && arguments[0] == "bench" {
                continue;
            }
            let output = adasum_run(arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
            let text = err(&output);
            assert!(text.contains("--trace") && text.contains(why), "{text}");
            assert!(text.contains(&file), "{text}");
        }
    }
    assert_eq!(std::fs::read_to_string(path("old.json")).unwrap(), "old");
    let left: BTreeSet<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(
        left,
        ["folder", "old.json", "table.json"].map(Into::into).into()
    );
}

#[test]
fn ranks_that_record_nothing_give_an_empty_timeline() {
    let folder = Folder::new("trace-empty");
    let file = folder.path().join("trace.json");
    let mut command = adasum_run(&["launch", "-n", "2", "--trace"]);
    let output = command.arg(&file).args(["--", "true"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        err(&output).contains("no rank has recorded anything"),
        "{output:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[]\n");
}

/// Who asks ranks to write where they cannot is told so by the name of the variable.
#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = Folder::new("trace-no-folder");
    let nowhere = folder.path().join("nowhere");
    for variable in ["ADASUM_TRACE_DIR", "ADASUM_STATISTICS_DIR"] {
        let mut command = job(&["-n", "2", "--servers", "2"]);
        let output = command.env(variable, &nowhere).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        let text = out(&output) + &err(&output);
        let named = format!("{variable}: {}", nowhere.display());
        assert!(text.contains(&named), "{text}");
    }
}
