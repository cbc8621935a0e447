//! Pairwise transfers come to an end although each waits for its other half.

use super::broken;
use crate::error::Result;
use crate::plan::{Exchange, Plan, Turn};

/// Plays the turns of all ranks: a transfer is done when both ranks are at it.
///
/// The exchange must have passed the check of its transfers before.
pub(super) fn end<'a>(
    step: &str,
    plans: &'a [Plan],
    exchange: impl Fn(&'a Plan) -> Option<&'a Exchange>,
) -> Result<()> {
    let mut waiting: Vec<std::vec::IntoIter<Turn>> = plans
        .iter()
        .map(|plan| exchange(plan).map_or_else(Vec::new, |mine| mine.pairwise(plan.rank)))
        .map(Vec::into_iter)
        .collect();
    let at = |turns: &std::vec::IntoIter<Turn>| turns.as_slice().first().copied();
    // Ranks that may have become able to go on.
    let mut ready: Vec<usize> = (0..plans.len()).collect();
    while let Some(rank) = ready.pop() {
        while let Some(turn) = at(&waiting[rank]) {
            let peer = match turn {
                Turn::Send(transfer) | Turn::Receive(transfer) => transfer.peer as usize,
            };
            let met = match (turn, at(&waiting[peer])) {
                (Turn::Send(mine), Some(Turn::Receive(theirs)))
                | (Turn::Receive(mine), Some(Turn::Send(theirs))) => {
                    theirs.peer as usize == rank && mine.range == theirs.range
                }
                _ => false,
            };
            if !met {
                break;
            }
            waiting[rank].next();
            waiting[peer].next();
            ready.push(peer);
        }
    }
    match waiting.iter().position(|turns| at(turns).is_some()) {
        None => Ok(()),
        Some(rank) => Err(broken(format!(
            "{step}: pairwise, rank {rank} waits for ever at {:?}",
            at(&waiting[rank])
        ))),
    }
}
