//! Device memory that communicators take.

use serde_json::json;

use crate::cli::text::count;
use crate::cli::tools::doctor::report::Check;
use crate::soc::Generation;
use crate::topo::RankTable;

/// HCCL's default for each of the two buffers of a communicator, in MB.
const DEFAULT_BUFFER: u64 = 200;
/// MB of each buffer of a communicator for scalars.
const SCALAR_BUFFER: u64 = 1;

/// The budget of a rank: the communicators of all ranks and, if there are several servers of several ranks, of its server
/// with two buffers of `HCCL_BUFFSIZE` each, and one with two of 1 MB for each round of the reduction.
pub(crate) fn check(table: Option<&RankTable>, free: Option<usize>, soc: Option<&str>) -> Check {
    let mut check = Check::new("memory");
    let buffer = std::env::var("HCCL_BUFFSIZE")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(DEFAULT_BUFFER);
    let servers = table.map_or(2, |table| table.servers().len());
    let rounds = rounds(servers);
    // Servers of unequal size are a fault of the table, which another check reports.
    let locals = table.map_or(2, |table| table.locals().unwrap_or(2));
    let vectors = 1 + u64::from(servers > 1 && locals > 1);
    let payload = buffer.saturating_mul(2).saturating_mul(vectors);
    let scalars = 2 * SCALAR_BUFFER * rounds;
    let all = payload.saturating_add(scalars);
    let of = match table {
        Some(_) => count(servers as u64, "server"),
        None => "a job of 2 servers (no rank table is given)".to_owned(),
    };
    check.say(format!(
        "a rank of {of} needs at most {all} MB for communicators: {vectors} x 2 x HCCL_BUFFSIZE ({buffer}) and {rounds} x 2 MB"
    ));
    check.say("HCCL takes it at the first operation of each, beside the gradients' own buffers");
    check.say("at most two of them are at work at a time: payload and scalars");
    if soc.is_some_and(on_ai_cpus) {
        check.say(format!(
            "on an {} HCCL's operations run on AI CPUs, which serve some 6 communicators of a device at a time: count those of the framework, too",
            soc.unwrap_or_default()
        ));
    }
    if let Some(free) = free {
        let free = (free >> 20) as u64;
        if all > free {
            check.fail(format!(
                "device 0 has only {free} MB free: lower HCCL_BUFFSIZE"
            ));
        } else if all > free / 2 {
            check.warn(format!(
                "this is more than half of the {free} MB that are free"
            ));
        }
    }
    check.data = json!({
        "buffer_mb": buffer,
        "payload_communicators": vectors,
        "scalar_communicators": rounds,
        "all_mb": all,
    });
    check
}

/// Whether HCCL has its operations on the AI CPUs of this processor unless told otherwise (hccl,
/// docs/zh/user_guide/constraints.md:15 and 24; hcomm, externalinput.cc:1703).
fn on_ai_cpus(soc: &str) -> bool {
    matches!(Generation::of_soc(soc), Generation::A3 | Generation::A950)
}

/// Rounds of the reduction over this many servers, at most: as many as when each joins two.
fn rounds(servers: usize) -> u64 {
    u64::from(servers.next_power_of_two().trailing_zeros())
}

#[cfg(test)]
mod tests {
    use crate::cli::tools::doctor::memory::{on_ai_cpus, rounds};

    #[test]
    fn only_newer_processors_have_operations_on_ai_cpus() {
        let known = [
            "Ascend910A",
            "Ascend910B1",
            "Ascend910_9391",
            "Ascend950PR_9599",
        ];
        assert_eq!(known.map(on_ai_cpus), [false, false, true, true]);
    }

    #[test]
    fn a_round_at_most_doubles_what_is_joined() {
        let counts: Vec<u64> = [1, 2, 3, 4, 6, 8, 9, 1009].map(rounds).into();
        assert_eq!(counts, [0, 1, 2, 2, 3, 3, 4, 10]);
    }
}
