//! What a job over the mock leaves behind, however it ends: no process, no name of a socket, no file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::processes::{Folder, adasum_run, alive, children, eventually, send, variable};

/// A demo under way, its ranks, and the names of their sockets.
struct Job {
    demo: Child,
    ranks: Vec<u32>,
    sockets: BTreeSet<String>,
    folder: Folder,
}

/// Starts the demo and waits until its ranks train.
fn start(name: &str, net: &str, epochs: &str) -> Job {
    let folder = Folder::new(name);
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let port = 31_800 + std::process::id() % 60 * 8;
    let mut demo = adasum_run(&["demo", "--epochs", epochs, "--reduction", "adasum"])
        .current_dir(folder.path())
        .env("ADASUM_CACHE_DIR", folder.path().join("cache"))
        .env("TMPDIR", &temporary)
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
    let sockets = socket_names(&ranks);
    assert!(sockets.iter().any(|name| name.contains("claim-")));
    // Read on, so that the demo is not stopped by a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Job {
        demo,
        ranks,
        sockets,
        folder,
    }
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
    fn left_nothing(mut self) {
        self.demo.wait().unwrap();
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
        let pids: Vec<String> = job.ranks.iter().map(u32::to_string).collect();
        let kill = std::process::Command::new("kill")
            .arg("-KILL")
            .args(&pids)
            .status();
        assert!(kill.unwrap().success());
        job.left_nothing();
    }
}
