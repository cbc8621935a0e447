use super::*;
use crate::plan::{DType, Layout, Planner, Shape};

/// A machine that anyone can compute with.
const LATENCY: f64 = 8e-6;
const FIRST: f64 = 10e9;
const AGAIN: f64 = 20e9;
const FURTHER: f64 = 40e9;
const LAUNCHES: f64 = 3e-6;
const TENSOR: f64 = 1e-7;
const WAIT: f64 = 0.25;
const RECORD: u64 = 64;

/// What the steps of `bytes` in `tensors` take on it, among `ranks`.
fn measured(bytes: f64, tensors: f64, ranks: u32) -> Measured {
    let launched = |accesses: f64, rate: f64| LAUNCHES + tensors * TENSOR + accesses * bytes / rate;
    Measured {
        bytes,
        tensors,
        steps: Steps {
            exchange: LATENCY + bytes / FIRST,
            gram: launched(2.0, FIRST),
            gather: f64::from(ranks.ilog2()) * LATENCY
                + 2.0 * (bytes - 1e3) / FIRST * WAIT
                + f64::from(ranks - 1) * (tensors - 1.0) * RECORD as f64 / AGAIN,
            combine: launched(3.0, AGAIN),
            back: LATENCY + bytes / AGAIN,
            back_again: LATENCY + bytes / FURTHER,
        },
    }
}

fn calibrated(ranks: u32) -> Calibration {
    let steps = [(1e3, 1.0), (1e6, 1.0), (1e6, 501.0)];
    let steps = steps.map(|(bytes, tensors)| measured(bytes, tensors, ranks));
    let again = LAUNCHES + TENSOR + 2.0 * 1e6 / AGAIN;
    Calibration::of(&steps, again, ranks, RECORD)
}

fn close(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-9, "{a}, {b}");
}

#[test]
fn parameters_are_those_that_the_steps_were_computed_from() {
    for ranks in [2, 4] {
        let found = calibrated(ranks);
        close(found.first.local.latency, LATENCY);
        close(found.first.remote.bandwidth, FIRST);
        close(found.first.memory, FIRST);
        close(found.again.local.latency, LATENCY);
        close(found.again.remote.bandwidth, AGAIN);
        close(found.again.memory, AGAIN);
        close(found.rest.local.latency, LATENCY);
        close(found.rest.remote.bandwidth, AGAIN);
        close(found.rest.memory, AGAIN);
        close(found.further.local.latency, LATENCY);
        close(found.further.remote.bandwidth, FURTHER);
        for fixed in [found.gram, found.combine] {
            close(found.wait, WAIT);
            close(fixed.launches, LAUNCHES);
            close(fixed.tensor, TENSOR);
        }
    }
}

#[test]
fn a_clock_that_saw_no_time_pass_gives_rates_without_end() {
    let nothing = Measured {
        steps: Steps::default(),
        ..measured(1e3, 1.0, 2)
    };
    let steps = [
        nothing,
        Measured {
            bytes: 1e6,
            ..nothing
        },
        Measured {
            bytes: 1e6,
            tensors: 9.0,
            ..nothing
        },
    ];
    let found = Calibration::of(&steps, 0.0, 2, RECORD);
    assert_eq!(found.first.memory, f64::INFINITY);
    let plan = plan(2, 1, 1 << 20);
    assert_eq!(found.phases(&plan).seconds(), [0.0; 5]);
}

fn plan(servers: u32, locals: u32, elements: u64) -> Plan {
    let shape = Shape::new(servers, locals).unwrap();
    let layout = Layout::new(DType::F32, &[elements]).unwrap();
    let planner = Planner::new(shape, layout, 2).unwrap();
    planner.plan(0).unwrap()
}

#[test]
fn phases_are_sums_over_the_steps_of_the_plan() {
    let bytes = f64::from(4 << 20);
    let [exchange, gram, scalars, combine, back] =
        calibrated(2).phases(&plan(2, 1, 1 << 20)).seconds();
    let half = bytes / 2.0;
    close(exchange, LATENCY + half / FIRST);
    close(gram, LAUNCHES + TENSOR + 2.0 * half / FIRST);
    close(combine, LAUNCHES + TENSOR + 3.0 * half / AGAIN);
    close(back, LATENCY + half / AGAIN);
    close(
        scalars,
        LATENCY + gram * WAIT + RECORD as f64 / AGAIN + 2.0 * RECORD as f64 / AGAIN,
    );

    // The second round finds its vectors where the first one left them.
    let [exchange, gram, _, combine, back] = calibrated(4).phases(&plan(4, 1, 1 << 20)).seconds();
    let quarter = bytes / 4.0;
    close(exchange, 2.0 * LATENCY + half / FIRST + quarter / AGAIN);
    close(
        gram,
        2.0 * (LAUNCHES + TENSOR) + 2.0 * half / FIRST + 2.0 * quarter / AGAIN,
    );
    close(
        combine,
        2.0 * (LAUNCHES + TENSOR) + 3.0 * (half + quarter) / AGAIN,
    );
    close(back, 2.0 * LATENCY + quarter / AGAIN + half / FURTHER);
}

#[test]
fn a_mean_in_the_server_comes_first() {
    let [exchange, gram, _, combine, back] = calibrated(4).phases(&plan(2, 2, 1 << 20)).seconds();
    let (half, quarter) = (f64::from(2 << 20), f64::from(1 << 20));
    close(exchange, 2.0 * LATENCY + half / FIRST + quarter / AGAIN);
    close(gram, LAUNCHES + TENSOR + 2.0 * quarter / AGAIN);
    let mean = LAUNCHES / 2.0 + 3.0 * half / FIRST;
    close(combine, mean + LAUNCHES + TENSOR + 3.0 * quarter / AGAIN);
    close(back, 2.0 * LATENCY + quarter / AGAIN + half / FURTHER);
}
