//! Whether messages arrived as they were sent: checksums of what both sides hold, where [`Options::checksum`] asks for them.
//!
//! Results that differ between ranks show what was damaged after vectors were combined. What was damaged before makes a result
//! that is wrong on all ranks alike, so every message is compared as well. The host waits for each of them then.
//!
//! [`Options::checksum`]: crate::reduce::Options::checksum

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::ascend::Span;
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::engine::checksum::{DIGEST, digest};
use crate::reduce::engine::place::Memory;
use crate::reduce::engine::stage::{Stage, Task};
use crate::reduce::world::World;
use crate::reduce::world::watch::WatchedStage;
use crate::transfer::Direction;

/// How long the host sleeps between two looks at a message.
const PAUSE: Duration = Duration::from_micros(100);
/// Whoever never synchronises by the reducer leaves no more calls than these behind.
const CALLS: usize = 1024;
/// The receiver, where all ranks of a group must hold the same.
const GROUP: u32 = u32::MAX;

/// Which message, in the order in which they are issued: call, stage, sender, receiver, and which of theirs in that stage.
type Key = [u32; 5];

/// What one rank holds of a message.
type Claim = (Key, [u8; DIGEST]);

/// Bytes of a claim.
const BYTES: usize = size_of::<Key>() + DIGEST;

/// What this rank holds of the messages since they were compared last.
#[derive(Default)]
pub(in crate::reduce) struct MessageLog(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    /// The stages of each call.
    calls: Vec<Arc<[Arc<WatchedStage>]>>,
    claims: Vec<Claim>,
}

impl MessageLog {
    /// A call begins, with these stages.
    pub(in crate::reduce) fn begin(&self, stages: &Arc<[Arc<WatchedStage>]>) {
        let mut notes = self.notes();
        if notes.calls.len() == CALLS {
            *notes = Notes::default();
        }
        notes.calls.push(Arc::clone(stages));
    }

    /// Waits for what was issued at `position`, if that is a message, and notes what it left.
    pub(in crate::reduce) fn note(
        &self,
        world: &World,
        position: usize,
        stage: &Stage,
        memory: &Memory,
    ) -> Result<()> {
        let rank = world.rank();
        let pair = |direction, peer| match direction {
            Direction::Send => [rank, peer],
            Direction::Receive => [peer, rank],
        };
        let spans: Vec<([u32; 2], Span)> = match &stage.task {
            Task::Exchange(exchange) => exchange
                .transfers
                .iter()
                .map(|transfer| {
                    let ranks = pair(transfer.direction, transfer.peer);
                    Ok((ranks, transfer.part.span(memory)?))
                })
                .collect::<Result<_>>()?,
            Task::Read(read) => read
                .copies
                .iter()
                .map(|copy| {
                    let ranks = pair(copy.direction, copy.peer);
                    Ok((ranks, copy.part.to.span(memory)?))
                })
                .collect::<Result<_>>()?,
            Task::Records(records) => records
                .transfers
                .iter()
                .map(|transfer| {
                    let ranks = pair(transfer.direction, records.rank(transfer.peer));
                    (ranks, transfer.part.clone())
                })
                .collect(),
            Task::Gather(gather) => {
                let first = gather.peers.iter().copied().min().unwrap_or(rank);
                vec![([first.min(rank), GROUP], gather.gathered.clone())]
            }
            _ => return Ok(()),
        };
        let watch = world.watch();
        watch.call(&stage.watched, position, || {
            // The watchdog sets the limit.
            while !stage.watched.done.is_complete()? {
                watch.check()?;
                thread::sleep(PAUSE);
            }
            Ok(())
        })?;
        let mut notes = self.notes();
        let call = notes.calls.len() - 1;
        let mut parts: BTreeMap<[u32; 2], u32> = BTreeMap::new();
        for ([from, to], span) in spans {
            let part = parts.entry([from, to]).or_default();
            let key = [number(call), number(position), from, to, *part];
            *part += 1;
            notes.claims.push((key, digest(&span)?));
        }
        Ok(())
    }

    /// Compares what all ranks noted, and forgets it.
    ///
    /// Collective.
    ///
    /// # Errors
    /// `Mismatch` on all ranks, naming the first message that is not the same everywhere.
    pub(in crate::reduce) fn compare(&self, world: &World, timeout: Duration) -> Result<()> {
        let Notes { calls, claims } = std::mem::take(&mut *self.notes());
        let counts = world.gather(&(claims.len() as u64).to_le_bytes(), timeout)?;
        let (counts, _) = counts.as_chunks::<8>();
        let counts = counts.iter().map(|count| u64::from_le_bytes(*count));
        let counts: Vec<usize> = counts
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
            .collect();
        let longest = counts.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(());
        }
        let mut mine: Vec<u8> = claims.iter().flat_map(written).collect();
        mine.resize(longest * BYTES, 0);
        let all = world.gather(&mine, timeout)?;
        let ranks = all.chunks_exact(longest * BYTES).zip(&counts);
        let ranks: Vec<Vec<Claim>> = ranks
            .map(|(bytes, &count)| bytes.chunks_exact(BYTES).take(count).map(read).collect())
            .collect();
        match first_difference(&ranks) {
            None => Ok(()),
            Some(([call, stage, from, to, _], odd)) => {
                let named = |rank| world.rank_in_root(rank);
                let odd: Vec<u32> = odd.into_iter().map(named).collect();
                let stages = calls.get(call as usize);
                let watched = stages.and_then(|stages| stages.get(stage as usize));
                let operation = watched.map_or("a message", |watched| watched.operation.as_str());
                let what = match to {
                    GROUP => format!("ranks {odd:?} hold other data than the rest of their group"),
                    _ => format!(
                        "rank {} does not hold what rank {} sent to it",
                        named(to),
                        named(from)
                    ),
                };
                Err(Error::new(
                    ErrorKind::Mismatch,
                    format!("{operation}: {what}"),
                ))
            }
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Whoever panicked has left whole claims.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first message of which ranks hold different data, and the ranks that hold it otherwise than most do; of several equally
/// frequent ones that of the lowest rank counts as right.
fn first_difference(ranks: &[Vec<Claim>]) -> Option<(Key, Vec<u32>)> {
    let mut held: BTreeMap<Key, Vec<(u32, [u8; DIGEST])>> = BTreeMap::new();
    for (rank, claims) in (0..).zip(ranks) {
        for &(key, digest) in claims {
            held.entry(key).or_default().push((rank, digest));
        }
    }
    held.into_iter().find_map(|(key, holders)| {
        let count = |digest| holders.iter().filter(|holder| holder.1 == digest).count();
        let common = holders.iter().rev().max_by_key(|holder| count(holder.1))?.1;
        let odd = holders.iter().filter(|holder| holder.1 != common);
        let odd: Vec<u32> = odd.map(|holder| holder.0).collect();
        (!odd.is_empty()).then_some((key, odd))
    })
}

fn written((key, digest): &Claim) -> Vec<u8> {
    let key = key.iter().flat_map(|number| number.to_le_bytes());
    key.chain(*digest).collect()
}

/// Of exactly [`BYTES`] bytes.
fn read(bytes: &[u8]) -> Claim {
    let (key, rest) = bytes.split_at(size_of::<Key>());
    let mut claim = Claim::default();
    for (number, bytes) in claim.0.iter_mut().zip(key.as_chunks::<4>().0) {
        *number = u32::from_le_bytes(*bytes);
    }
    claim.1.copy_from_slice(rest);
    claim
}

/// Calls and stages are few.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; DIGEST] = [1; DIGEST];
    const B: [u8; DIGEST] = [2; DIGEST];

    #[test]
    fn claims_are_written_and_read() {
        let claim = ([1, 2, 3, GROUP, 5], [7; DIGEST]);
        let bytes = written(&claim);
        assert_eq!(bytes.len(), BYTES);
        assert!(read(&bytes) == claim);
    }

    #[test]
    fn the_first_message_that_differs_is_found() {
        let early = [0, 1, 0, 1, 0];
        let late = [0, 4, 1, 0, 0];
        assert_eq!(
            first_difference(&[vec![(early, A)], vec![(early, A)]]),
            None
        );
        let ranks = [vec![(late, A), (early, A)], vec![(early, B), (late, B)]];
        assert_eq!(first_difference(&ranks), Some((early, vec![1])));
        // A message that nobody else has a word about.
        assert_eq!(first_difference(&[vec![(early, A)], vec![]]), None);
    }

    #[test]
    fn most_of_a_group_are_right() {
        let key = [0, 2, 0, GROUP, 0];
        let ranks = [vec![(key, B)], vec![(key, A)], vec![(key, A)]];
        assert_eq!(first_difference(&ranks), Some((key, vec![0])));
    }
}
