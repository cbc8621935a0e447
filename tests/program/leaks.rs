//! What a job over the mock leaves behind, however it ends: no process, no name of a socket, no file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::mock::c_programs::program;
use crate::support::adasum_run::{Folder, adasum_run, alive, children, eventually, send, variable};

/// Processes under way, the ranks among them or below, and the names of their sockets (a world of a root info keeps none).
struct Job {
    started: Vec<Child>,
    ranks: Vec<u32>,
    sockets: BTreeSet<String>,
    folder: Folder,
}

/// Starts the demo and waits until its ranks train.
fn start(name: &str, net: &str, epochs: &str) -> Job {
    let folder = folder(name);
    let port = 31_800 + std::process::id() % 60 * 8;
    let mut demo = adasum_run(&["demo", "--epochs", epochs, "--reduction", "adasum"])
        .current_dir(folder.path())
        .env("ADASUM_CACHE_DIR", folder.path().join("cache"))
        .env("TMPDIR", folder.path().join("tmp"))
        .env("HCCL_MOCK_NET", net)
        .env("HCCL_IF_BASE_PORT", port.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("epoch: 1 step: 1")));
    let ranks: Vec<u32> = children(demo.id())
        .into_iter()
        .filter(|pid| variable(*pid, "RANK_ID").is_some())
        .collect();
    assert_eq!(ranks.len(), 16);
    // Read on, so that the demo is not stopped by a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let job = Job::under_way(vec![demo], ranks, folder);
    // Any user could take such a name before.
    assert!(!job.sockets.iter().any(|name| name.contains("claim-")));
    job
}

/// Starts four ranks that share the bytes of a root info and nothing else, and waits until they exchange data.
fn start_by_root_info(program: &Path, net: &str) -> Job {
    let folder = folder("leaks-root-info");
    let start = |rank: usize| {
        Command::new(program)
            .arg("forever")
            .env("TMPDIR", folder.path().join("tmp"))
            .env("HCCL_MOCK_NET", net)
            .env("ROOT_INFO_FILE", folder.path().join("root-info"))
            .env("OMPI_COMM_WORLD_SIZE", "4")
            .env("OMPI_COMM_WORLD_RANK", rank.to_string())
            .env("OMPI_COMM_WORLD_LOCAL_RANK", rank.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut ranks: Vec<Child> = (0..4).map(start).collect();
    for rank in &mut ranks {
        let mut lines = BufReader::new(rank.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "right");
        std::thread::spawn(move || lines.for_each(drop));
    }
    let pids = ranks.iter().map(Child::id).collect();
    Job::under_way(ranks, pids, folder)
}

/// A private folder with one for temporary files in it.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir(folder.path().join("tmp")).unwrap();
    folder
}

/// Names of the mock's sockets that are open now, by inode.
fn open_sockets() -> Vec<(String, String)> {
    let table = fs::read_to_string("/proc/net/unix").unwrap();
    let rows = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = *fields.get(7)?;
        let own = name.starts_with("@ascend-mock-");
        own.then(|| (fields[6].to_owned(), name.to_owned()))
    });
    rows.collect()
}

fn socket_names(pids: &[u32]) -> BTreeSet<String> {
    let files = pids.iter().flat_map(|pid| {
        let folder = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        folder.filter_map(|file| fs::read_link(file.ok()?.path()).ok())
    });
    let files: BTreeSet<String> = files.map(|file| file.display().to_string()).collect();
    let sockets = open_sockets().into_iter();
    sockets
        .filter(|(inode, _)| files.contains(&format!("socket:[{inode}]")))
        .map(|(_, name)| name)
        .collect()
}

impl Job {
    fn under_way(started: Vec<Child>, ranks: Vec<u32>, folder: Folder) -> Job {
        let sockets = socket_names(&ranks);
        Job {
            started,
            ranks,
            sockets,
            folder,
        }
    }

    /// Kills all ranks at once.
    fn kill(&self) {
        let pids = self.ranks.iter().map(u32::to_string);
        let status = Command::new("kill").arg("-KILL").args(pids).status();
        assert!(status.unwrap().success());
    }

    fn left_nothing(mut self) {
        for process in &mut self.started {
            process.wait().unwrap();
        }
        eventually("all ranks to end", || {
            (!self.ranks.iter().any(|pid| alive(*pid))).then_some(())
        });
        let names: BTreeSet<String> = open_sockets().into_iter().map(|(_, name)| name).collect();
        let left: Vec<&String> = names.intersection(&self.sockets).collect();
        assert!(left.is_empty(), "{left:?}");
        let temporary: Vec<_> = fs::read_dir(self.folder.path().join("tmp"))
            .unwrap()
            .collect();
        assert!(temporary.is_empty(), "{temporary:?}");
        let shared = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let shared: Vec<_> = shared
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| {
                ["adasum", "ascend", "hccl"]
                    .iter()
                    .any(|own| name.contains(own))
            })
            .collect();
        assert!(shared.is_empty(), "{shared:?}");
    }
}

#[test]
fn success_leaves_nothing() {
    start("leaks-success", "shm", "20").left_nothing();
}

#[test]
fn a_rank_that_fails_leaves_nothing() {
    let job = start("leaks-failure", "shm", "1000");
    send("-KILL", job.ranks[3]);
    job.left_nothing();
}

#[test]
fn kill_of_every_rank_at_once_leaves_nothing() {
    for net in ["shm", "tcp"] {
        let job = start("leaks-kill", net, "1000");
        job.kill();
        job.left_nothing();
    }
}

#[test]
fn kill_of_a_whole_world_of_a_root_info_leaves_nothing() {
    let program = program("launched_ranks.cpp");
    for net in ["shm", "tcp"] {
        let job = start_by_root_info(&program, net);
        job.kill();
        job.left_nothing();
    }
}
