//! How much memory this process can still get.
//!
//! Owns no state. Must not know what it is for.

use std::fs;
use std::path::Path;

/// What is left, and of whom: an allocation of more would fail, or have the kernel end some process.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    /// Bytes. Pages that only keep contents of files count as free.
    pub bytes: u64,
    /// Whose limit it is: the subject of a sentence.
    pub of: &'static str,
}

/// The least that the machine, the control groups of this process (version 1 and 2) and its limit of address space have
/// left; `None` where nothing tells.
pub fn left() -> Option<Left> {
    let least = of_system(Path::new("/")).into_iter().chain(of_addresses());
    least.min_by_key(|left| left.bytes)
}

/// What the files below `root` tell.
fn of_system(root: &Path) -> Vec<Left> {
    let mut all = Vec::new();
    let memory = read(&root.join("proc/meminfo"));
    if let Some(kib) = entry(&memory, "MemAvailable:") {
        let bytes = kib.saturating_mul(1024);
        all.push(Left {
            bytes,
            of: "this machine",
        });
    }
    for line in read(&root.join("proc/self/cgroup")).lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, limit, used, prefix) = match controllers {
            "" => ("", "memory.max", "memory.current", ""),
            _ if controllers.split(',').any(|name| name == "memory") => (
                "memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_",
            ),
            _ => continue,
        };
        let mount = root.join("sys/fs/cgroup").join(mount);
        // Each group is within the limits of those above it. In a container the path may be that of the host, where only
        // the last step is found.
        for group in Path::new(group.trim_start_matches('/')).ancestors() {
            let folder = mount.join(group);
            let number = |name| read(&folder.join(name)).trim().parse::<u64>().ok();
            let (Some(limit), Some(used)) = (number(limit), number(used)) else {
                continue;
            };
            let facts = read(&folder.join("memory.stat"));
            let cached = ["active_file", "inactive_file"]
                .map(|name| entry(&facts, &format!("{prefix}{name}")).unwrap_or(0));
            let used = used.saturating_sub(cached.iter().sum());
            all.push(Left {
                bytes: limit.saturating_sub(used),
                of: "the control group of this process",
            });
        }
    }
    all
}

/// The number behind `name` in lines of names and numbers.
fn entry(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    let mut line = lines.find_map(|mut line| (line.next()? == name).then_some(line))?;
    line.next()?.parse().ok()
}

/// A file that need not be there.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn of_addresses() -> Option<Left> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit writes one structure to the address of a live local.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    if status != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let used = entry(&read(Path::new("/proc/self/status")), "VmSize:")?;
    let bytes = limit.rlim_cur.saturating_sub(used.saturating_mul(1024));
    Some(Left {
        bytes,
        of: "the address space of this process (ulimit -v)",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        let root = std::env::temp_dir().join(format!("adasum-memory-{}", std::process::id()));
        let put = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || -> Vec<u64> { of_system(&root).iter().map(|left| left.bytes).collect() };
        assert!(found().is_empty());
        put(
            "proc/meminfo",
            "MemTotal:  9 kB\nMemFree:  1 kB\nMemAvailable:   7 kB\n",
        );
        assert_eq!(found(), [7 * 1024]);
        // Version 2: a limit above an unlimited group; pages of files are no use.
        put("proc/self/cgroup", "0::/job/rank\n");
        put("sys/fs/cgroup/job/rank/memory.max", "max\n");
        put("sys/fs/cgroup/job/rank/memory.current", "10\n");
        put("sys/fs/cgroup/job/memory.max", "6000\n");
        put("sys/fs/cgroup/job/memory.current", "5000\n");
        assert_eq!(found(), [7 * 1024, 1000]);
        put(
            "sys/fs/cgroup/job/memory.stat",
            "anon 9\nactive_file 30\ninactive_file 4\n",
        );
        assert_eq!(found(), [7 * 1024, 1034]);
        // Version 1, in a container that sees its own group as the mount.
        put("proc/self/cgroup", "4:cpu,memory:/docker/12\n3:cpuset:/\n");
        put("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
        put("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
        assert_eq!(found(), [7 * 1024, 0]);
        put(
            "sys/fs/cgroup/memory/memory.stat",
            "inactive_file 1\ntotal_inactive_file 1000\n",
        );
        assert_eq!(found(), [7 * 1024, 96]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn this_machine_has_some() {
        assert!(left().is_some_and(|left| left.bytes > 0));
    }
}
