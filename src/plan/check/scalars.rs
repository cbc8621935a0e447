//! The scalars of every tensor come together once.

use super::{broken, in_order};
use crate::error::Result;
use crate::plan::{Group, OwnedScalars, Plan, Range, Scalars};

/// Checks the exchange of scalars of one round in one group.
pub(super) fn check(step: &str, plans: &[Plan], round: usize, group: Group) -> Result<()> {
    let of = |rank: u32| &plans[rank as usize].rounds[round].scalars;
    let first = of(group.first);
    for (index, rank) in (0..).zip(group.ranks()) {
        let mine = of(rank);
        if mine.stride != first.stride || mine.records > mine.stride {
            return Err(broken(format!(
                "{step}: rank {rank} contributes {} records of at most {}, rank {} of at most {}",
                mine.records, mine.stride, group.first, first.stride
            )));
        }
        match (&mine.owned, &first.owned) {
            (None, None) => {}
            (Some(owned), Some(theirs)) if owned.run == theirs.run => {
                run(step, plans, rank, index, owned)?;
                records(step, rank, mine, owned)?;
                transfers(step, plans, rank, owned, group, |rank| of(rank))?;
            }
            _ => {
                return Err(broken(format!(
                    "{step}: ranks {rank} and {} do not agree on the owners of scalars",
                    group.first
                )));
            }
        }
    }
    let Some(owned) = &first.owned else {
        return Ok(());
    };
    // Runs are equally long and in order, so they tile the tensors if there are enough of them.
    let tensors = plans[group.first as usize].tensors;
    if owned.run.saturating_mul(u64::from(group.count)) < tensors {
        return Err(broken(format!(
            "{step}: {} owners of {} tensors each for {tensors} tensors",
            group.count, owned.run
        )));
    }
    let count = |side: fn(&OwnedScalars) -> usize| -> usize {
        let owned = group.ranks().filter_map(|rank| of(rank).owned.as_ref());
        owned.map(side).sum()
    };
    let (sends, receives) = (
        count(|owned| owned.exchange.sends().count()),
        count(|owned| owned.exchange.receives().count()),
    );
    if sends != receives {
        return Err(broken(format!(
            "{step}: {sends} sends of scalars, but {receives} receives"
        )));
    }
    Ok(())
}

/// The rank's own tensors are its run.
fn run(step: &str, plans: &[Plan], rank: u32, index: u64, owned: &OwnedScalars) -> Result<()> {
    let tensors = plans[rank as usize].tensors;
    let first = (index * owned.run).min(tensors);
    let expected = Range::new(first, (first + owned.run).min(tensors));
    if owned.tensors == expected {
        return Ok(());
    }
    Err(broken(format!(
        "{step}: rank {rank} owns tensors {} instead of {expected}",
        owned.tensors
    )))
}

/// Every record of the rank is kept or sent.
fn records(step: &str, rank: u32, mine: &Scalars, owned: &OwnedScalars) -> Result<()> {
    let sent: u64 = owned.exchange.sends().map(|send| send.part.records).sum();
    if sent + owned.kept == mine.records {
        return Ok(());
    }
    Err(broken(format!(
        "{step}: rank {rank} sends {sent} and keeps {} of {} records",
        owned.kept, mine.records
    )))
}

/// Every send is what its owner lacks, and is received.
fn transfers<'a>(
    step: &str,
    plans: &[Plan],
    rank: u32,
    owned: &OwnedScalars,
    group: Group,
    of: impl Fn(u32) -> &'a Scalars,
) -> Result<()> {
    in_order(step, rank, &owned.exchange, plans.len())?;
    for send in owned.exchange.sends() {
        let tensors = send.part.tensors;
        let theirs = group
            .index_of(send.peer)
            .and_then(|_| of(send.peer).owned.as_ref());
        let fits = theirs.is_some_and(|theirs| {
            let received = theirs.exchange.received_from(send.peer, rank);
            received == Some(&send.part) && tensors == of(rank).tensors.intersection(theirs.tensors)
        });
        if !fits {
            return Err(broken(format!(
                "{step}: rank {rank} sends the scalars of tensors {tensors} to rank {}, which does not receive them \
                 or does not own them",
                send.peer
            )));
        }
    }
    Ok(())
}
