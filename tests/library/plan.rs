//! Plans of all ranks together: they hold for every shape and radix, and a broken plan is refused.

use adasum::plan::{
    Choices, DType, Form, Forms, Group, Layout, Placement, Plan, Planner, Range, RoundOrder, Shape,
    VectorPart, check,
};
use adasum::transfer::{Direction, Transfer};
use proptest::prelude::*;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A few units and many tensors smaller than one: slices of every kind, also empty ones.
const COUNTS: [u64; 9] = [1, 2, 3, 7, 257, 100_003, 0, 64, 5000];

fn planner(servers: u32, locals: u32, radix: u32) -> Planner {
    let layout = Layout::new(DType::F32, &COUNTS).unwrap();
    Planner::new(Shape::new(servers, locals).unwrap(), layout, radix).unwrap()
}

fn plans(servers: u32, locals: u32, radix: u32) -> Vec<Plan> {
    let planner = planner(servers, locals, radix);
    (0..servers * locals)
        .map(|rank| planner.plan(rank).unwrap())
        .collect()
}

/// Checks many (servers, locals, radix) on all cores.
fn hold(shapes: &[(u32, u32, u32)]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(servers, locals, radix)) =
                    shapes.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(error) = check(&plans(servers, locals, radix)) {
                        panic!("{servers} servers of {locals}, radix {radix}: {error}");
                    }
                }
            });
        }
    });
}

/// Pairwise and with owners of all scalars: the plan with the most to check.
fn pairwise_and_owned(placement: Placement, radix: u32) -> Choices {
    Choices {
        placement,
        forms: Forms::of(Form::Pairwise),
        owned_above: 0,
        ..Choices::new(radix)
    }
}

fn chosen(servers: u32, locals: u32, choices: Choices) -> Vec<Plan> {
    let layout = Layout::new(DType::F32, &COUNTS).unwrap();
    let planner = Planner::with(Shape::new(servers, locals).unwrap(), layout, choices).unwrap();
    (0..servers * locals)
        .map(|rank| planner.plan(rank).unwrap())
        .collect()
}

/// Plans of these shapes, with every placement.
fn choices_hold(radix: u32, shapes: impl Iterator<Item = (u32, u32)> + Clone) {
    for placement in [Placement::Hierarchical, Placement::Columns] {
        let choices = pairwise_and_owned(placement, radix);
        for (servers, locals) in shapes.clone() {
            let held = check(&chosen(servers, locals, choices));
            assert_eq!(held, Ok(()), "{servers} x {locals}, {choices:?}");
        }
    }
}

#[test]
fn plans_of_every_choice_hold() {
    for radix in [2, 3, 8] {
        choices_hold(
            radix,
            (1..=34).flat_map(|servers| [(servers, 1), (servers, 2), (servers, 8)]),
        );
    }
    choices_hold(8, [(64, 8), (509, 1), (13, 42)].into_iter());
}

#[test]
#[ignore = "minutes; .ci/run --full"]
fn the_whole_matrix_of_choices_up_to_4096_ranks_holds() {
    choices_hold(8, [(512, 8), (4093, 1), (97, 42)].into_iter());
}

/// Two equal halves, pairwise: the left one sends and then receives, the right one the other way round.
#[test]
fn pairwise_is_the_order_of_the_cells() {
    for plan in chosen(16, 1, pairwise_and_owned(Placement::Columns, 2)) {
        for (step, round) in plan.rounds.iter().enumerate() {
            let left = plan.rank >> step & 1 == 0;
            let transfers = &round.combine.exchange.transfers;
            let sends: Vec<bool> = transfers.iter().map(Transfer::is_send).collect();
            if transfers.len() == 2 {
                assert_eq!(sends, [left, !left], "rank {}, step {step}", plan.rank);
            }
        }
    }
}

/// All servers that are a power of two and all ranks of one, up to `most` ranks.
fn powers_of_two(most: u32) -> Vec<(u32, u32, u32)> {
    let servers = (0..=most.ilog2()).map(|power| 1u32 << power);
    let shapes =
        servers.flat_map(|servers| (1..=most / servers).map(move |locals| (servers, locals, 2)));
    shapes.collect()
}

#[test]
fn every_power_of_two_of_servers_holds() {
    let mut shapes = powers_of_two(128);
    shapes.extend((0..=10).map(|power| (1 << power, 1024 >> power, 2)));
    hold(&shapes);
}

#[test]
#[ignore = "minutes; .ci/run --full"]
fn the_whole_matrix_of_powers_of_two_up_to_1024_ranks_holds() {
    hold(&powers_of_two(1024));
}

#[test]
fn every_number_of_servers_and_every_radix_holds() {
    let mut shapes = Vec::new();
    for radix in 2..=8 {
        shapes.extend((1..=130).map(|servers| (servers, 1, radix)));
        shapes.extend((1..=20).map(|servers| (servers, 3, radix)));
    }
    shapes.extend([(1024, 1, 8), (1000, 1, 8), (1021, 1, 8), (512, 2, 4)]);
    hold(&shapes);
}

/// Ranks that read the memory of their own server only.
const SHARED_IN_SERVERS: Forms = Forms {
    in_server: Form::Shared,
    across: Form::Batch,
    records: Form::Batch,
};

/// All that exchanges can be.
static FORMS: LazyLock<Vec<Forms>> = LazyLock::new(|| {
    let forms = Form::ALL.into_iter().map(Forms::of);
    forms.chain([SHARED_IN_SERVERS]).collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn plans_hold_for_any_layout(
        servers in 1u32..40,
        locals in 1u32..6,
        radix in 2u32..9,
        counts in prop::collection::vec(0u64..30_000, 0..30),
        columns: bool,
        forms in prop::sample::select(FORMS.to_vec()),
        large_first: bool,
        owned_above in prop::sample::select(vec![0, 1000, 20_000, u64::MAX]),
    ) {
        let layout = Layout::new(DType::F32, &counts).unwrap();
        let choices = Choices {
            radix,
            order: if large_first { RoundOrder::LargeFirst } else { RoundOrder::SmallFirst },
            placement: if columns { Placement::Columns } else { Placement::Hierarchical },
            forms,
            owned_above,
        };
        let planner = Planner::with(Shape::new(servers, locals).unwrap(), layout, choices);
        if columns && forms == SHARED_IN_SERVERS && servers > 1 && locals > 1 {
            let error = planner.err().unwrap();
            prop_assert!(error.to_string().contains("placement is columns"), "{}", error);
            return Ok(());
        }
        let planner = planner.unwrap();
        let plans: Vec<Plan> = (0..servers * locals)
            .map(|rank| planner.plan(rank).unwrap())
            .collect();
        prop_assert_eq!(check(&plans), Ok(()));
    }
}

#[test]
fn slices_of_a_group_are_those_of_its_plans() {
    for (servers, radix) in [(8, 2), (7, 4), (22, 8)] {
        let planner = planner(servers, 3, radix);
        let plans = plans(servers, 3, radix);
        for index in 0..plans[0].rounds.len() {
            let group = plans[0].rounds[index].scalars.group;
            let slices = planner.slices(group, index + 1);
            for (rank, slice) in group.ranks().zip(slices) {
                assert_eq!(plans[rank as usize].rounds[index].combine.slice, slice);
            }
        }
    }
}

/// With a power of two of servers and radix 2 a rank meets one peer a round, twice as far each time.
#[test]
fn radix_two_is_recursive_halving() {
    for plan in plans(16, 2, 2) {
        for (round, step) in plan.rounds.iter().enumerate() {
            let peer = ((plan.rank / 2) ^ (1 << round)) * 2 + plan.rank % 2;
            let transfers = &step.combine.exchange.transfers;
            assert!(transfers.iter().all(|transfer| transfer.peer == peer));
        }
    }
}

/// Each alteration must be refused with a sentence that names the step.
#[test]
fn a_broken_plan_is_refused() {
    type Alteration = fn(&mut [Plan]);
    fn first(plan: &mut Plan, round: usize, direction: Direction) -> &mut Transfer<VectorPart> {
        let transfers = &mut plan.rounds[round].combine.exchange.transfers;
        let mut transfers = transfers.iter_mut();
        transfers
            .find(|transfer| transfer.direction == direction)
            .unwrap()
    }
    let alterations: [(&str, &str, Alteration); 19] = [
        ("a range that is sent", "round 0", |plans| {
            let range = &mut first(&mut plans[4], 0, Direction::Send).part.range;
            *range = Range::new(range.start() + 1, range.end());
        }),
        ("a range that is received", "round 1", |plans| {
            let range = &mut first(&mut plans[9], 1, Direction::Receive).part.range;
            *range = Range::new(range.start(), range.end() - 1);
        }),
        ("a peer", "round 1", |plans| {
            first(&mut plans[2], 1, Direction::Send).peer += 1;
        }),
        ("the own rank as peer", "round 0", |plans| {
            first(&mut plans[2], 0, Direction::Send).peer = 2;
        }),
        ("a peer that does not exist", "round 0", |plans| {
            first(&mut plans[2], 0, Direction::Receive).peer = 99;
        }),
        ("an operand", "round 0", |plans| {
            first(&mut plans[0], 0, Direction::Receive).part.operand = 0;
        }),
        ("a scalar group", "round 1", |plans| {
            plans[5].rounds[1].scalars.group.count -= 1;
        }),
        ("a subtree", "round 1", |plans| {
            plans[5].rounds[1].members[0] = Group {
                first: 3,
                count: 2,
                stride: 2,
            };
        }),
        ("a subtree of ranks that do not exist", "round 1", |plans| {
            plans[5].rounds[1].members[0].first = 99;
        }),
        ("the order of subtrees", "round 0", |plans| {
            plans[5].rounds[0].members.swap(0, 1);
        }),
        ("the own vector", "round 0", |plans| {
            plans[6].rounds[0].combine.own ^= 1
        }),
        ("the slice", "round 1", |plans| {
            let slice = &mut plans[7].rounds[1].combine.slice;
            *slice = Range::new(slice.start(), slice.end() - 1);
        }),
        ("the order of transfers", "round 0", |plans| {
            plans[4].rounds[0].combine.exchange.transfers.swap(0, 1)
        }),
        ("a chunk of the mean", "in-server mean", |plans| {
            if let Some(mean) = &mut plans[3].mean {
                mean.exchange.transfers.pop();
            }
        }),
        ("the order of the mean", "in-server mean", |plans| {
            if let Some(mean) = &mut plans[3].mean {
                mean.own += 1;
            }
        }),
        ("a missing return", "another rank, shape", |plans| {
            plans[3].returns.pop();
        }),
        ("a swapped return", "return of round 1", |plans| {
            plans[3].returns.swap(0, 1)
        }),
        ("an all-to-all between servers", "round 0", |plans| {
            for plan in plans {
                plan.forms.across = Form::AllToAll;
            }
        }),
        ("the gather", "gather in the server", |plans| {
            if let Some(gather) = &mut plans[3].gather {
                gather.transfers.pop();
            }
        }),
    ];
    assert!(check(&plans(4, 3, 2)).is_ok());
    for (what, step, alter) in alterations {
        let mut plans = plans(4, 3, 2);
        alter(&mut plans);
        let error = check(&plans).expect_err(what);
        assert!(error.to_string().contains(step), "{what}: {error}");
    }
}

/// The same of barriers between reads and writes of buffers that ranks share.
#[test]
fn a_missing_barrier_is_found() {
    type Alteration = fn(&mut Plan);
    let server = |rank: u32| Group {
        first: rank / 3 * 3,
        count: 3,
        stride: 1,
    };
    let alterations: [(&str, &str, Alteration); 8] = [
        ("none before the mean", "mean in the server", |plan| {
            plan.mean.as_mut().unwrap().exchange.barrier = None;
        }),
        ("none before the first round", "round 0", |plan| {
            plan.rounds[0].combine.exchange.barrier = None;
        }),
        ("none before the second round", "round 1", |plan| {
            plan.rounds[1].combine.exchange.barrier = None;
        }),
        ("none before the return", "return of round 0", |plan| {
            plan.returns[0].barrier = None;
        }),
        ("none before the gather", "gather in the server", |plan| {
            plan.gather.as_mut().unwrap().barrier = None;
        }),
        ("none behind all", "copy in of the next reduction", |plan| {
            plan.shared = None;
        }),
        ("one that a rank misses", "do not all wait", |plan| {
            if plan.rank == 7 {
                plan.rounds[0].combine.exchange.barrier = None;
            }
        }),
        ("one without its own rank", "do not all wait", |plan| {
            plan.shared = Some(Group {
                first: 1,
                count: 11,
                stride: 1,
            });
        }),
    ];
    let choices = Choices {
        forms: Forms::of(Form::Shared),
        ..Choices::new(2)
    };
    assert_eq!(check(&chosen(4, 3, choices)), Ok(()));
    for (what, words, alter) in alterations {
        let mut plans = chosen(4, 3, choices);
        plans.iter_mut().for_each(alter);
        let error = check(&plans).expect_err(what);
        assert!(error.to_string().contains(words), "{what}: {error}");
    }
    // With a rank a server, what is written needs one barrier before it and one behind it, and none at the end.
    let alone = || chosen(4, 1, choices);
    assert_eq!(check(&alone()), Ok(()));
    assert!(alone().iter().all(|plan| plan.release(true).is_none()));
    for (written, alter) in [
        (
            "reads",
            (|plan| plan.returns[0].barrier = None) as Alteration,
        ),
        ("round 1", |plan| {
            plan.rounds[1].combine.exchange.barrier = None;
        }),
    ] {
        let mut plans = alone();
        plans.iter_mut().for_each(alter);
        let error = check(&plans).unwrap_err().to_string();
        assert!(error.contains("without a barrier"), "{error}");
        assert!(error.contains(written), "{error}");
    }
    // A result that is written to another rank than the owner's part says.
    let mut plans = alone();
    for transfer in &mut plans[2].returns[0].transfers {
        if transfer.is_send() {
            transfer.part.range = Range::new(0, transfer.part.range.end());
        }
    }
    check(&plans).unwrap_err();
    // Ranks of other servers are read in a round, and in the end.
    for shrink in [
        |plan: &mut Plan, group| plan.rounds[0].combine.exchange.barrier = Some(group),
        |plan: &mut Plan, group| plan.rounds[1].combine.exchange.barrier = Some(group),
        |plan: &mut Plan, group| plan.shared = Some(group),
    ] {
        let mut plans = chosen(4, 3, choices);
        plans
            .iter_mut()
            .for_each(|plan| shrink(plan, server(plan.rank)));
        let error = check(&plans).unwrap_err();
        assert!(error.to_string().contains("without a barrier"), "{error}");
    }
}

/// The same of what columns and owners add.
#[test]
fn a_broken_choice_is_refused() {
    type Alteration = fn(&mut [Plan]);
    fn owned(plan: &mut Plan, round: usize) -> &mut adasum::plan::OwnedScalars {
        plan.rounds[round].scalars.owned.as_mut().unwrap()
    }
    let alterations: [(&str, &str, Alteration); 9] = [
        ("a missing share", "another rank, shape", |plans| {
            plans[2].share = None;
        }),
        ("no share at all", "shared before the rounds", |plans| {
            plans.iter_mut().for_each(|plan| plan.share = None);
        }),
        ("what is shared", "share in the server", |plans| {
            if let Some(share) = &mut plans[2].share {
                share.transfers.pop();
            }
        }),
        ("a form of exchange", "another rank, shape", |plans| {
            plans[1].forms.across = Form::Batch;
        }),
        ("a record kept", "round 0", |plans| {
            owned(&mut plans[0], 0).kept += 1
        }),
        ("an owner's tensors", "round 1", |plans| {
            let own = owned(&mut plans[7], 1);
            own.tensors = Range::new(own.tensors.start(), own.tensors.end() - 1);
        }),
        ("a rank without owners", "round 0", |plans| {
            plans[4].rounds[0].scalars.owned = None;
        }),
        ("too short runs", "round 0", |plans| {
            for plan in plans {
                owned(plan, 0).run -= 1;
            }
        }),
        ("a record received", "scalars", |plans| {
            for plan in plans {
                let transfers = &mut owned(plan, 1).exchange.transfers;
                transfers.retain(Transfer::is_send);
            }
        }),
    ];
    let choices = pairwise_and_owned(Placement::Columns, 2);
    assert!(check(&chosen(4, 3, choices)).is_ok());
    for (what, step, alter) in alterations {
        let mut plans = chosen(4, 3, choices);
        alter(&mut plans);
        let error = check(&plans).expect_err(what);
        assert!(error.to_string().contains(step), "{what}: {error}");
    }
}
