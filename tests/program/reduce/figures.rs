//! `--stats` against figures computed here with plain loops.

use serde_json::Value;

use super::{Array, Run};

const RANKS: usize = 5;

fn statistics(run: &Run, options: &[&str]) -> Value {
    let options = [options, &["--stats", "stats.json"]].concat();
    let (_, _) = run.reduced(&options);
    let text = std::fs::read_to_string(run.path("stats.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report.as_object().unwrap().len(), 1);
    report["tensors"].clone()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn close(value: &Value, expected: f64, what: &str) {
    let value = value.as_f64().unwrap();
    let error = (value - expected).abs();
    assert!(
        error <= 1e-12 * expected.abs().max(1.0),
        "{what}: {value}, not {expected}"
    );
}

/// The largest ratio of spread to square over the nodes of ((01)(23))4, from the Gram matrix of the leaves.
fn kappa(vectors: &[Vec<f64>]) -> f64 {
    let gram = |i: usize, j: usize| dot(&vectors[i], &vectors[j]);
    let product = |u: &[f64], v: &[f64]| {
        let terms = (0..RANKS).flat_map(|i| (0..RANKS).map(move |j| (i, j)));
        terms.map(|(i, j)| u[i] * v[j] * gram(i, j)).sum::<f64>()
    };
    let unit =
        |leaf: usize| -> Vec<f64> { (0..RANKS).map(|i| f64::from(u8::from(i == leaf))).collect() };
    let mut largest = 1.0;
    let mut pair = |u: Vec<f64>, v: Vec<f64>| -> Vec<f64> {
        let d = product(&u, &v);
        let (a, b) = (
            1.0 - d / product(&u, &u) / 2.0,
            1.0 - d / product(&v, &v) / 2.0,
        );
        let w: Vec<f64> = u.iter().zip(&v).map(|(x, y)| a * x + b * y).collect();
        let spread: f64 = (0..RANKS).map(|i| w[i] * w[i] * gram(i, i)).sum();
        largest = f64::max(largest, spread / product(&w, &w));
        w
    };
    let left = pair(unit(0), unit(1));
    let right = pair(unit(2), unit(3));
    let four = pair(left, right);
    pair(four, unit(4));
    largest
}

#[test]
fn figures_are_those_of_their_definitions() {
    // Related vectors, so that something cancels: kappa is far from 1.
    let rank = |rank: u64| {
        let common = Array::random("t", 5000, 99);
        let own = Array::random("t", 5000, rank);
        let sign = if rank.is_multiple_of(2) { 1.0 } else { -0.7 };
        let pairs = common.values.iter().zip(&own.values);
        vec![Array::vector(
            "t",
            &pairs.map(|(c, o)| sign * c + 0.3 * o).collect::<Vec<f32>>(),
        )]
    };
    let inputs: Vec<Vec<Array>> = (0..RANKS as u64).map(rank).collect();
    let vectors: Vec<Vec<f64>> = inputs
        .iter()
        .map(|rank| rank[0].values.iter().map(|&x| f64::from(x)).collect())
        .collect();
    let run = Run::new("stats", &inputs);
    let figures = statistics(&run, &[]);
    let figures = &figures[0];
    assert_eq!(figures["name"], "t");
    assert_eq!(figures["nonfinite"], false);
    let out: Vec<f64> = super::read(&run.path("out.npz"))[0]
        .values
        .iter()
        .map(|&x| f64::from(x))
        .collect();
    for (rank, vector) in vectors.iter().enumerate() {
        close(&figures["norms"][rank], norm(vector), "norms");
    }
    close(&figures["norm"], norm(&out), "norm");
    let mean: Vec<f64> = (0..5000)
        .map(|i| vectors.iter().map(|v| v[i]).sum::<f64>() / 5.0)
        .collect();
    close(&figures["gain"], norm(&out) / norm(&mean), "gain");
    let pairs: Vec<f64> = (0..RANKS)
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| dot(&vectors[i], &vectors[j]) / norm(&vectors[i]) / norm(&vectors[j]))
        .collect();
    close(
        &figures["cosine"],
        pairs.iter().sum::<f64>() / pairs.len() as f64,
        "cosine",
    );
    let expected = kappa(&vectors);
    assert!(expected > 2.0, "something must cancel: {expected}");
    let ratio = figures["kappa"].as_f64().unwrap() / expected;
    assert!(
        (ratio - 1.0).abs() < 1e-9,
        "kappa: {ratio} times {expected}"
    );
}

#[test]
fn means_of_servers_zeros_and_tensors_that_are_not_finite() {
    let rank = |values: [f32; 2], bad: f32| {
        vec![
            Array::vector("t", &values),
            Array::vector("bad", &[1.0, bad]),
        ]
    };
    let inputs = [
        rank([1.0, 0.0], 1.0),
        rank([3.0, 0.0], 1.0),
        rank([0.0, 0.0], f32::NAN),
        rank([0.0, 0.0], 1.0),
    ];
    let run = Run::new("stats-servers", &inputs);
    let figures = statistics(&run, &["--devices-per-server", "2"]);
    let good = &figures[0];
    assert_eq!(good["norms"], serde_json::json!([2.0, 0.0]));
    assert!(
        good["cosine"].is_null(),
        "there is no pair without the zero vector"
    );
    assert_eq!(
        (good["norm"].as_f64(), good["gain"].as_f64()),
        (Some(2.0), Some(2.0))
    );
    let bad = &figures[1];
    assert_eq!(bad["nonfinite"], true);
    assert!(bad["norm"].is_null() && bad["norms"][1].is_null() && bad["kappa"].is_null());
    assert!((bad["norms"][0].as_f64().unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);

    let figures = statistics(&run, &["--reduction", "sum"]);
    close(&figures[0]["gain"], 4.0, "gain of a sum");
    close(&figures[0]["kappa"], 1.0, "kappa of parallel vectors");
}
