//! The whole oracle matrix: every number of servers and ranks a server, in every radix and type.
//!
//! Run by `.ci/run --full`. `ADASUM_MATRIX=K/N` in the environment takes every N-th world from the K-th on, K below N.

use std::time::Instant;

use crate::library::checked_calls::{against_oracle, radix, tensors};
use adasum::reduce::{Form, Options, Placement, ScalarExchange, Wire};

/// Servers and ranks a server.
fn worlds() -> Vec<(u32, u32)> {
    let mut worlds = Vec::new();
    for servers in (2..=33).chain([48, 64, 97]) {
        worlds.extend([1, 2, 4, 8].map(|locals| (servers, locals)));
    }
    worlds
}

/// What a world reduces with. One rank a server takes every radix. More of them change what comes before the rounds, not
/// the rounds: they take two radices that change from world to world, so that each meets each number of ranks a server
/// in several numbers of servers, and so do the other choices.
fn choices(servers: u32, locals: u32) -> Vec<Options> {
    let mut choices: Vec<Options> = match locals {
        1 => (2..=8).map(radix).collect(),
        _ => [0, 3].map(|i| radix(2 + (servers + locals + i) % 7)).into(),
    };
    let other = radix(2 + (servers + locals + 5) % 7);
    choices.push(match servers % 4 {
        3 => Options {
            exchange: Some(Form::Shared),
            ..other
        },
        0 => Options {
            placement: Placement::Columns,
            exchange: Some(Form::Pairwise),
            ..other
        },
        1 => Options {
            scalars: ScalarExchange::Owned,
            exchange: Some(Form::AllToAll),
            ..other
        },
        _ => Options {
            wire: Wire::F32,
            exchange: Some(Form::Batch),
            ..other
        },
    });
    choices
}

/// Every N-th from the K-th on, by the variable `ADASUM_MATRIX`.
fn part() -> (usize, usize) {
    let Ok(text) = std::env::var("ADASUM_MATRIX") else {
        return (0, 1);
    };
    let parsed = text.split_once('/').and_then(|(first, step)| {
        let part = (first.parse().ok()?, step.parse().ok()?);
        (part.0 < part.1).then_some(part)
    });
    parsed.unwrap_or_else(|| panic!("ADASUM_MATRIX={text}: must be K/N with K below N"))
}

#[test]
#[ignore = "minutes: run by `.ci/run --full`"]
fn the_whole_matrix() {
    let tensors = tensors();
    let (first, step) = part();
    let all = worlds();
    let worlds: Vec<(u32, u32)> = all.iter().copied().skip(first).step_by(step).collect();
    let start = Instant::now();
    let mut reductions = 0;
    for (done, &(servers, locals)) in worlds.iter().enumerate() {
        let choices = choices(servers, locals);
        let begun = Instant::now();
        against_oracle(servers, locals, &tensors, &choices);
        reductions += choices.len();
        println!(
            "matrix: {} of {}: {servers} servers of {locals}, {} choices, {:.1} s; {:.0} s in all",
            done + 1,
            worlds.len(),
            choices.len(),
            begun.elapsed().as_secs_f64(),
            start.elapsed().as_secs_f64()
        );
    }
    println!(
        "matrix: {} worlds of {}, {reductions} reductions of {} tensors, none outside the bounds, {:.0} s",
        worlds.len(),
        all.len(),
        tensors.len(),
        start.elapsed().as_secs_f64()
    );
}
