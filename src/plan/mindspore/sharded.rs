//! Which groups reduce a parameter that is sharded over the devices of a stage, in (semi-)automatic parallel mode.
//!
//! Ranks are those within the stage. The distance of a parameter is that between neighbours among the ranks that
//! hold the same slice of it. Up to 8, the distance lies within a server, and AdaSum takes all steps; beyond, its
//! first steps would pair ranks with different slices and are left out. Scalars are still summed over all servers
//! of a step, so those of the shards on them are summed together; shards within a server are not.

use super::DEVICES_PER_SERVER;
use super::names::group_ranks;
use crate::error::{Error, Result};

/// What becomes of a sharded parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sharded {
    /// Each rank has a slice of its own: its gradient passes as it is.
    FullySharded,
    /// The same slices lie on adjacent ranks that are not all: the parameter takes no part.
    NotReduced,
    /// AdaSum of the slice.
    Reduced {
        /// Steps left out at the beginning.
        border: u32,
        /// The other steps.
        steps: Vec<ShardedStep>,
        /// Who reduces the gradient before.
        mirror: Mirror,
    },
}

/// One step of AdaSum of a sharded parameter, for one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardedStep {
    /// Number of the step.
    pub step: u32,
    /// The two ranks that exchange halves, ascending.
    pub peers: [u32; 2],
    /// The ranks that sum scalars, ascending.
    pub scalars: Vec<u32>,
}

/// The ranks that take the mean of a gradient in their server before AdaSum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mirror {
    /// Nobody else in the server has the slice.
    OneRank,
    /// These, ascending.
    Ranks(Vec<u32>),
}

/// The ranks that hold `rank`'s slice of a parameter, ascending.
///
/// `devices` are the dimensions in which the devices are arranged, the last one the fastest; `sharded` are the
/// dimensions (indices of `devices`) along which the parameter is cut.
///
/// # Errors
/// If a dimension does not exist or is 0, or the rank is not among the devices.
pub fn replicas(devices: &[u32], sharded: &[usize], rank: u32) -> Result<Vec<u32>> {
    let total = devices
        .iter()
        .try_fold(1_u32, |total, &n| total.checked_mul(n));
    let total = total.filter(|&total| rank < total).ok_or_else(|| {
        Error::invalid(format!(
            "rank {rank} is not among devices arranged as {devices:?}"
        ))
    })?;
    if let Some(wrong) = sharded
        .iter()
        .find(|&&dimension| dimension >= devices.len())
    {
        return Err(Error::invalid(format!(
            "devices arranged as {devices:?} have no dimension {wrong}"
        )));
    }
    let place = |rank: u32| -> Vec<u32> {
        let mut stride = total;
        let along = devices.iter().map(|&n| {
            stride /= n;
            rank / stride % n
        });
        let along: Vec<u32> = along.collect();
        sharded.iter().map(|&dimension| along[dimension]).collect()
    };
    let mine = place(rank);
    Ok((0..total).filter(|&other| place(other) == mine).collect())
}

/// The rules for a parameter of which `replicas` hold `rank`'s slice, in a stage of `devices`.
///
/// # Errors
/// If the stage is not a power of two of at least 16 devices, or the replicas are not ascending ranks of it at equal
/// distances that are powers of two, `rank` among them. A replica group that has fewer ranks in a server than the
/// distance implies is refused, too: what MindSpore does there is not defined.
pub fn sharded(rank: u32, devices: u32, replicas: &[u32]) -> Result<Sharded> {
    let invalid = |what: &str| {
        Error::invalid(format!(
            "replicas {replicas:?} of rank {rank}'s slice among {devices} devices: {what}"
        ))
    };
    if devices < 16 || !devices.is_power_of_two() {
        return Err(invalid("the devices are not a power of two from 16 on"));
    }
    if !replicas.contains(&rank) || replicas.last().is_some_and(|&last| last >= devices) {
        return Err(invalid("they are not ranks of the stage with this one"));
    }
    let [first, second, ..] = *replicas else {
        return Ok(Sharded::FullySharded);
    };
    let distance = second.saturating_sub(first);
    let even = replicas
        .windows(2)
        .all(|pair| pair[1].checked_sub(pair[0]) == Some(distance));
    if !even || !distance.is_power_of_two() {
        return Err(invalid("their distances are not one power of two"));
    }
    let count = u32::try_from(replicas.len()).unwrap_or(u32::MAX);
    if distance == 1 && count < devices {
        return Ok(Sharded::NotReduced);
    }
    let mirror = mirror(rank, replicas, distance)
        .ok_or_else(|| invalid("a server has fewer of them than fit"))?;
    let border = (distance.max(DEVICES_PER_SERVER) / DEVICES_PER_SERVER).ilog2();
    let steps = (border..(devices / DEVICES_PER_SERVER).ilog2())
        .map(|step| {
            let apart = DEVICES_PER_SERVER << step;
            ShardedStep {
                step,
                peers: [rank & !apart, rank | apart],
                scalars: group_ranks(rank, step),
            }
        })
        .collect();
    Ok(Sharded::Reduced {
        border,
        steps,
        mirror,
    })
}

/// The replicas in the rank's server: 8 / distance of them, or it is alone.
fn mirror(rank: u32, replicas: &[u32], distance: u32) -> Option<Mirror> {
    if distance >= DEVICES_PER_SERVER {
        return Some(Mirror::OneRank);
    }
    let server = rank / DEVICES_PER_SERVER;
    let near: Vec<u32> = replicas
        .iter()
        .copied()
        .filter(|&other| other / DEVICES_PER_SERVER == server)
        .collect();
    let complete = near.len() == (DEVICES_PER_SERVER / distance) as usize;
    complete.then_some(Mirror::Ranks(near))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: u32 = 32;

    fn rules(rank: u32, devices: &[u32], dimensions: &[usize]) -> Sharded {
        sharded(rank, DEVICES, &replicas(devices, dimensions, rank).unwrap()).unwrap()
    }

    fn steps(rank: u32) -> Vec<ShardedStep> {
        let (near, far) = (rank ^ 8, rank ^ 16);
        vec![
            ShardedStep {
                step: 0,
                peers: [rank.min(near), rank.max(near)],
                scalars: vec![rank.min(near), rank.max(near)],
            },
            ShardedStep {
                step: 1,
                peers: [rank.min(far), rank.max(far)],
                scalars: vec![0, 8, 16, 24],
            },
        ]
    }

    /// The network of MindSpore's six compile tests on 32 devices: w1 is cut (8, 4); w2 is whole or cut (4, 1) on
    /// devices arranged (8, 4); the table is whole or cut (32, 1). Cases 1, 2 and 3, 4 run rank 0; 5, 6 rank 16.
    #[test]
    fn the_six_upstream_cases() {
        for rank in [0, 16] {
            assert_eq!(rules(rank, &[8, 4], &[0, 1]), Sharded::FullySharded, "w1");
            let server: Vec<u32> = (rank..rank + 8).collect();
            let whole = Sharded::Reduced {
                border: 0,
                steps: steps(rank),
                mirror: Mirror::Ranks(server),
            };
            for arranged in [&[8, 1, 1, 4][..], &[4, 8, 1, 1], &[32]] {
                assert_eq!(rules(rank, arranged, &[]), whole, "w2 and the table, whole");
            }
        }
        // w2 cut along the 4 of (8, 4): ranks 0, 4, 8, ... hold one slice, two of them in a server.
        assert_eq!(
            replicas(&[8, 4, 1], &[1], 0).unwrap(),
            [0, 4, 8, 12, 16, 20, 24, 28]
        );
        let halves = Sharded::Reduced {
            border: 0,
            steps: steps(0),
            mirror: Mirror::Ranks(vec![0, 4]),
        };
        assert_eq!(rules(0, &[8, 4, 1], &[1]), halves, "w2 cut in 4");
        assert_eq!(rules(0, &[32, 1], &[0]), Sharded::FullySharded, "the table");
    }

    #[test]
    fn shards_over_servers_leave_out_steps() {
        // Two replicas, 16 apart: the step within the pair of servers that hold different slices is left out.
        let expected = Sharded::Reduced {
            border: 1,
            steps: steps(5).split_off(1),
            mirror: Mirror::OneRank,
        };
        let Sharded::Reduced { steps, .. } = &expected else {
            panic!()
        };
        assert_eq!(steps[0].peers, [5, 21]);
        let mut found = rules(5, &[2, 16], &[1]);
        if let Sharded::Reduced { steps, .. } = &mut found {
            assert_eq!(steps[0].scalars, [5, 13, 21, 29]);
            steps[0].scalars = vec![0, 8, 16, 24];
        }
        assert_eq!(found, expected);
        // A distance of 8: all steps, nobody else in the server.
        let Sharded::Reduced {
            border,
            steps,
            mirror,
        } = rules(5, &[4, 8], &[1])
        else {
            panic!()
        };
        assert_eq!((border, steps.len(), mirror), (0, 2, Mirror::OneRank));
    }

    #[test]
    fn repeated_on_the_right_takes_no_part() {
        assert_eq!(rules(0, &[8, 4], &[0]), Sharded::NotReduced);
    }

    #[test]
    fn what_is_not_defined_is_refused() {
        let fails = |rank, devices, replicas: &[u32], what: &str| {
            let error = sharded(rank, devices, replicas).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        fails(0, 24, &[0, 8, 16], "power of two from 16");
        fails(1, 32, &[0, 8], "with this one");
        fails(0, 32, &[0, 3, 6], "one power of two");
        fails(0, 32, &[0, 2, 8], "one power of two");
        // Two replicas of distance 2: a server of 8 should have four.
        fails(0, 32, &[0, 2], "fewer of them");
        assert!(replicas(&[8, 4], &[2], 0).is_err());
        assert!(replicas(&[8, 4], &[0], 32).is_err());
        assert!(replicas(&[8, 0], &[0], 0).is_err());
    }
}
