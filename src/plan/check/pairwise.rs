//! Pairwise transfers come to an end although each waits for its other half.

use std::slice;

use super::broken;
use crate::error::Result;
use crate::plan::{Exchange, Plan, VectorPart};
use crate::transfer::Transfer;

/// Plays the transfers of all ranks: one is done when both ranks are at it.
///
/// The exchange must have passed the check of its transfers before.
pub(super) fn end<'a>(
    step: &str,
    plans: &'a [Plan],
    exchange: impl Fn(&'a Plan) -> Option<&'a Exchange>,
) -> Result<()> {
    let transfers = |plan| exchange(plan).map_or(&[][..], |mine| &mine.transfers);
    let mut waiting: Vec<slice::Iter<'a, Transfer<VectorPart>>> =
        plans.iter().map(|plan| transfers(plan).iter()).collect();
    let at = |rest: &slice::Iter<'a, Transfer<VectorPart>>| rest.as_slice().first();
    // Ranks that may have become able to go on.
    let mut ready: Vec<usize> = (0..plans.len()).collect();
    while let Some(rank) = ready.pop() {
        while let Some(mine) = at(&waiting[rank]) {
            let peer = mine.peer as usize;
            let met = at(&waiting[peer]).is_some_and(|theirs| {
                theirs.peer as usize == rank
                    && mine.is_send() != theirs.is_send()
                    && mine.part == theirs.part
            });
            if !met {
                break;
            }
            waiting[rank].next();
            waiting[peer].next();
            ready.push(peer);
        }
    }
    match waiting.iter().position(|rest| at(rest).is_some()) {
        None => Ok(()),
        Some(rank) => Err(broken(format!(
            "{step}: pairwise, rank {rank} waits for ever at {:?}",
            at(&waiting[rank])
        ))),
    }
}
