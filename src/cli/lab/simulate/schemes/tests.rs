//! The stages beside closed formulas that are written down here once more, and beside published tables of them.

use super::*;
use crate::cli::lab::simulate::cluster;
use crate::cli::lab::simulate::timeline::sequential;
use crate::plan::DType;

const RESNET_50: f64 = 102_228_128.0;

fn shape(devices: u32) -> Shape {
    Shape::new(devices / 8, 8).unwrap()
}

fn milliseconds(formula: Formula, name: &str, devices: u32, bytes: f64) -> f64 {
    let cluster = cluster::find(None, name).unwrap();
    let stages = formula.stages(&cluster, shape(devices), bytes).unwrap();
    1e3 * sequential(&[stages])
}

/// Published times in milliseconds on 910B: flat ring, plain hierarchical all-reduce, the cells' scheme. Those tables take no
/// message latencies in the server, which adds 6 times 2 us twice here.
#[test]
fn all_reduces_take_what_is_published() {
    for (devices, ring, plain, seed) in [
        (16, 8.25, 1.56, 5.49),
        (64, 10.6, 2.04, 9.22),
        (256, 18.3, 2.21, 10.7),
        (1024, 49.1, 2.32, 11.7),
        (8192, 336.0, 2.45, 13.5),
    ] {
        for (formula, expected) in [
            (Formula::Ring, ring),
            (Formula::Hierarchical, plain),
            (Formula::MindSpore, seed),
        ] {
            let ours = milliseconds(formula, "910B", devices, RESNET_50);
            let off = (ours / expected - 1.0).abs();
            assert!(
                off < 0.03,
                "{formula:?} of {devices}: {ours} ms, not {expected}"
            );
        }
    }
    let large = milliseconds(Formula::Hierarchical, "910B", 1024, 14e9);
    assert!((large / 277.0 - 1.0).abs() < 0.01, "{large}");
    let old = milliseconds(Formula::Hierarchical, "910A", 64, RESNET_50);
    assert!((old / 4.64 - 1.0).abs() < 0.03, "{old}");
}

/// 2 log2(p) a + 2 (p - 1)/p N/b + 3 (p - 1)/p N/H.
#[test]
fn nhr_follows_its_formula() {
    let p = 256.0;
    let part = (p - 1.0) / p * RESNET_50;
    let expected = 2.0 * 8.0 * 20e-6 + 2.0 * part / 25e9 + 3.0 * part / 1.6e12;
    let ours = 1e-3 * milliseconds(Formula::Nhr, "910B", 256, RESNET_50);
    assert!((ours / expected - 1.0).abs() < 1e-9, "{ours}");
}

/// The steps between servers move 2 (M - 1)/M of a share for any number of servers.
#[test]
fn nothing_is_lost_between_servers_that_are_no_power_of_two() {
    let cluster = cluster::find(None, "910B").unwrap();
    for servers in [2, 3, 5, 6, 7, 12, 100] {
        let model = Model {
            cluster: &cluster,
            shape: Shape::new(servers, 8).unwrap(),
            bytes: 8e9,
        };
        let stages = model.between(1e9);
        let latency = cluster.machine.remote.latency;
        let payload = stages.iter().filter(|stage| stage.lane == Lane::Payload);
        let moved: f64 = payload.map(|stage| (stage.seconds - latency) * 25e9).sum();
        let expected = 2.0 * f64::from(servers - 1) / f64::from(servers) * 1e9;
        assert!((moved / expected - 1.0).abs() < 1e-9, "{servers}: {moved}");
    }
}

/// AdaSum of one tensor that divides evenly, radix 2: phases of its plan beside the formula, launches counted by hand.
#[test]
fn adasum_follows_its_formula() {
    let cluster = cluster::find(None, "910B").unwrap();
    let elements = 1_u64 << 25;
    let layout = Layout::new(DType::F32, &[elements]).unwrap();
    let (servers, locals) = (16.0, 8.0);
    let bytes = 4.0 * elements as f64;
    let share = bytes / locals;
    let choices = Choices {
        forms: cluster.machine.forms(None, shape(128), 2),
        ..Choices::new(2)
    };
    let (stages, sent) = adasum(&cluster, shape(128), &layout, choices).unwrap();
    assert_eq!(sent as f64, 2.0 * (servers - 1.0) / servers * share);

    let machine = &cluster.machine;
    let in_server = 10e-6 + 6.0 * 2e-6 + share / 28e9;
    let mut expected = 2.0 * in_server + (locals + 1.0) * share / machine.memory + cluster.launch;
    for round in 1..=4 {
        let half = share / f64::from(1 << round);
        expected += 2.0 * (20e-6 + half / 25e9 + 4.0 * half / machine.memory)
            + 5.0 * half / machine.memory
            + 3.0 * cluster.launch;
        // One record of 64 bytes from each of 8 * 2^round members: `round` doublings between servers, then at once in
        // the server.
        let servers = f64::from(1 << round);
        expected += f64::from(round) * 20e-6 + (servers - 1.0) * 64.0 / 25e9;
        expected += 10e-6 + 6.0 * 2e-6 + servers * 64.0 / 28e9;
        expected += 8.0 * servers * 64.0 / machine.memory;
    }
    let ours = sequential(&[stages]);
    assert!(
        (ours / expected - 1.0).abs() < 1e-3,
        "{ours}, not {expected}"
    );
}

/// Without Gram matrix, scalars and launches, AdaSum of radix 2 is the hierarchical all-reduce: both are modelled alike.
#[test]
fn without_its_scalars_adasum_is_an_all_reduce() {
    let mut cluster = cluster::find(None, "910B").unwrap();
    cluster.launch = 0.0;
    let elements = 1_u64 << 25;
    let layout = Layout::new(DType::F32, &[elements]).unwrap();
    // HCCL's collectives copy while they move; its sends and receives do not.
    cluster.machine.staged = false;
    let choices = Choices {
        forms: cluster.machine.forms(None, shape(64), 2),
        ..Choices::new(2)
    };
    let planner = Planner::with(shape(64), layout, choices).unwrap();
    let cost = Cost::of(&planner.plan(0).unwrap(), &cluster.machine);
    let stripped: f64 = cost
        .steps
        .iter()
        .map(|step| step.phases.exchange + step.phases.combine)
        .sum();
    let plain = Formula::Hierarchical
        .stages(&cluster, shape(64), 4.0 * elements as f64)
        .unwrap();
    let plain = sequential(&[plain]);
    assert!(
        (stripped / plain - 1.0).abs() < 1e-9,
        "{stripped}, not {plain}"
    );
}
