//! Device memory that communicators take.

use serde_json::json;

use super::report::Check;
use crate::topo::RankTable;

/// What HCCL takes for each of the two buffers of a communicator, in MB, if nothing else is asked for.
const DEFAULT_BUFFER: u64 = 200;
/// What the communicators for scalars are made with.
const SCALAR_BUFFER: u64 = 1;

/// The budget of a rank: the communicator of all ranks with two buffers of `HCCL_BUFFSIZE`, and one with two of 1 MB for
/// each round of the reduction.
pub(super) fn check(table: Option<&RankTable>, free: Option<usize>) -> Check {
    let mut check = Check::new("memory");
    let buffer = std::env::var("HCCL_BUFFSIZE")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(DEFAULT_BUFFER);
    let servers = table.map_or(2, |table| table.servers().len());
    let rounds = rounds(servers);
    let world = buffer.saturating_mul(2);
    let scalars = 2 * SCALAR_BUFFER * rounds;
    let all = world.saturating_add(scalars);
    let of = match table {
        Some(_) => format!("{servers} servers"),
        None => "a job of 2 servers (no rank table is given)".to_owned(),
    };
    check.say(format!(
        "a rank of {of} needs at most {all} MB for communicators: 2 x HCCL_BUFFSIZE ({buffer}) and {rounds} x 2 MB"
    ));
    check.say("HCCL takes it at the first operation of each, beside the gradients' own buffers");
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
        "world_mb": world,
        "scalar_communicators": rounds,
        "all_mb": all,
    });
    check
}

/// Rounds of the reduction over this many servers, at most: as many as when each joins two.
fn rounds(servers: usize) -> u64 {
    u64::from(servers.next_power_of_two().trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::rounds;

    #[test]
    fn a_round_at_most_doubles_what_is_joined() {
        let counts: Vec<u64> = [1, 2, 3, 4, 6, 8, 9, 1009].map(rounds).into();
        assert_eq!(counts, [0, 1, 2, 2, 3, 3, 4, 10]);
    }
}
