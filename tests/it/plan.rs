//! Plans of all ranks together: every shape up to 1,024 ranks holds, and a broken plan is refused.

use adasum::plan::{DType, Group, Layout, Plan, Range, Shape, check};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A few units and many tensors smaller than one: slices of every kind, also empty ones.
const COUNTS: [u64; 9] = [1, 2, 3, 7, 257, 100_003, 0, 64, 5000];

fn plans(servers: u32, locals: u32) -> Vec<Plan> {
    let layout = Layout::new(DType::F32, &COUNTS).unwrap();
    let shape = Shape::new(servers, locals).unwrap();
    (0..shape.size())
        .map(|rank| Plan::new(shape, &layout, rank).unwrap())
        .collect()
}

#[test]
fn every_shape_up_to_1024_ranks_holds() {
    let mut shapes = Vec::new();
    for servers in (0..=10).map(|k| 1u32 << k) {
        shapes.extend((1..=1024 / servers).map(|locals| (servers, locals)));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(servers, locals)) =
                    shapes.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(error) = check(&plans(servers, locals)) {
                        panic!("{servers} servers of {locals}: {error}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_number_of_servers_that_is_not_a_power_of_two_is_unsupported() {
    let layout = Layout::new(DType::F32, &COUNTS).unwrap();
    let error = Plan::new(Shape::new(6, 1).unwrap(), &layout, 0).unwrap_err();
    assert_eq!(error.kind(), adasum::ErrorKind::Unsupported);
    assert!(error.to_string().contains("6 servers"), "{error}");
}

#[test]
fn slices_of_a_group_are_those_of_its_plans() {
    let layout = Layout::new(DType::F32, &COUNTS).unwrap();
    let shape = Shape::new(8, 3).unwrap();
    let plans = plans(8, 3);
    for (index, rounds) in (0..3usize).zip(1..) {
        let group = plans[0].rounds[index].scalars;
        let slices = Plan::slices(shape, &layout, group, rounds);
        for (rank, slice) in group.ranks().zip(slices) {
            assert_eq!(plans[rank as usize].rounds[index].combine.slice, slice);
        }
    }
}

/// Each alteration must be refused with a sentence that names the step.
#[test]
fn a_broken_plan_is_refused() {
    type Alteration = fn(&mut [Plan]);
    let alterations: [(&str, &str, Alteration); 16] = [
        ("a range that is sent", "round 0", |plans| {
            let send = &mut plans[4].rounds[0].combine.exchange.sends[0];
            send.range = Range::new(send.range.start() + 1, send.range.end());
        }),
        ("a range that is received", "round 1", |plans| {
            let receive = &mut plans[9].rounds[1].combine.exchange.receives[0];
            receive.range = Range::new(receive.range.start(), receive.range.end() - 1);
        }),
        ("a peer", "round 1", |plans| {
            plans[2].rounds[1].combine.exchange.sends[0].peer += 1;
        }),
        ("the own rank as peer", "round 0", |plans| {
            plans[2].rounds[0].combine.exchange.sends[0].peer = 2;
        }),
        ("a peer that does not exist", "round 0", |plans| {
            plans[2].rounds[0].combine.exchange.receives[0].peer = 99;
        }),
        ("an operand", "round 0", |plans| {
            plans[0].rounds[0].combine.exchange.receives[0].operand = 0;
        }),
        ("a scalar group", "round 1", |plans| {
            plans[5].rounds[1].scalars.count -= 1;
        }),
        ("a subtree", "round 1", |plans| {
            plans[5].rounds[1].members[0] = Group {
                first: 3,
                count: 2,
                stride: 2,
            };
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
        ("a chunk of the mean", "in-server mean", |plans| {
            if let Some(mean) = &mut plans[3].mean {
                mean.exchange.sends.pop();
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
        ("a swapped return", "return 0", |plans| {
            plans[3].returns.swap(0, 1)
        }),
        ("the gather", "gather in the server", |plans| {
            if let Some(gather) = &mut plans[3].gather {
                gather.receives.pop();
            }
        }),
    ];
    assert!(check(&plans(4, 3)).is_ok());
    for (what, step, alter) in alterations {
        let mut plans = plans(4, 3);
        alter(&mut plans);
        let error = check(&plans).expect_err(what);
        assert!(error.to_string().contains(step), "{what}: {error}");
    }
}
