//! `GradientReducer::statistics` against figures in double precision.

use adasum::ErrorKind;
use adasum::reduce::{
    GradientReducer, Options, Placement, Reduction, ScalarExchange, TensorStatistics,
};

use crate::oracle::{adasum, mean, norm};
use crate::support::{in_world, noise, reduce, reducer, specs};

const COUNTS: [usize; 4] = [1, 9001, 0, 33];

/// This rank's gradients: with a common part, which makes cosines of about 1/2.
fn gradients(rank: u32) -> Vec<Vec<f32>> {
    let value = |tensor: u64, index: u64| {
        noise(&[99, tensor, index]) + noise(&[rank.into(), tensor, index])
    };
    let tensor =
        |(tensor, &count): (u64, &usize)| (0..count as u64).map(|i| value(tensor, i)).collect();
    (0..).zip(&COUNTS).map(tensor).collect()
}

/// The figures of one reduction, which all ranks must agree on.
fn figures(
    servers: u32,
    locals: u32,
    radix: u32,
    inputs: impl Fn(u32) -> Vec<Vec<f32>> + Sync,
) -> Vec<TensorStatistics> {
    let options = Options {
        radix,
        ..Options::default()
    };
    figures_with(servers, locals, &options, inputs)
}

fn figures_with(
    servers: u32,
    locals: u32,
    options: &Options,
    inputs: impl Fn(u32) -> Vec<Vec<f32>> + Sync,
) -> Vec<TensorStatistics> {
    let counts: Vec<usize> = inputs(0).iter().map(Vec::len).collect();
    let mut all = in_world(servers, locals, |world| {
        let mut reducer = GradientReducer::new(world, &specs(&counts), options).unwrap();
        // Figures are those of the last reduction alone.
        reduce(&mut reducer, world, &vec_of_ones(&counts));
        reduce(&mut reducer, world, &inputs(world.rank()));
        reducer.statistics().unwrap()
    });
    // NaN is no reason to differ.
    let texts: Vec<String> = all.iter().map(|figures| format!("{figures:?}")).collect();
    assert!(texts.iter().all(|text| *text == texts[0]));
    all.swap_remove(0)
}

fn vec_of_ones(counts: &[usize]) -> Vec<Vec<f32>> {
    counts.iter().map(|&count| vec![1.0; count]).collect()
}

fn close(value: f64, expected: f64, what: &str) {
    let error = (value - expected).abs();
    assert!(
        error <= 1e-5 * expected.abs().max(1e-3),
        "{what}: {value}, not {expected}"
    );
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[test]
fn one_round_gives_every_figure() {
    for (servers, locals) in [(2, 1), (3, 2), (7, 1)] {
        let found = figures(servers, locals, 8, gradients);
        for (tensor, figures) in found.iter().enumerate() {
            let at = format!("{servers} x {locals}, tensor {tensor}");
            assert_eq!(figures.name, format!("t{tensor}"));
            assert!(!figures.nonfinite);
            if COUNTS[tensor] == 0 {
                assert_eq!((figures.norm, figures.gain), (0.0, 0.0));
                assert!(figures.cosine.is_nan());
                continue;
            }
            let ranks: Vec<Vec<f32>> = (0..servers * locals)
                .map(|rank| gradients(rank).swap_remove(tensor))
                .collect();
            let ranks: Vec<&[f32]> = ranks.iter().map(Vec::as_slice).collect();
            let vectors: Vec<Vec<f64>> = ranks.chunks(locals as usize).map(mean).collect();
            assert_eq!(figures.norms.len(), vectors.len());
            for (value, vector) in figures.norms.iter().zip(&vectors) {
                close(*value, norm(vector), &format!("{at}: norms"));
            }
            let result = norm(&adasum(&vectors));
            close(figures.norm, result, &format!("{at}: norm"));
            close(
                figures.gain,
                result / norm(&mean(&ranks)),
                &format!("{at}: gain"),
            );
            let mut cosines = Vec::new();
            for i in 0..vectors.len() {
                for j in 0..i {
                    let product = norm(&vectors[i]) * norm(&vectors[j]);
                    cosines.push(dot(&vectors[i], &vectors[j]) / product);
                }
            }
            let cosine = cosines.iter().sum::<f64>() / cosines.len() as f64;
            close(figures.cosine, cosine, &format!("{at}: cosine"));
        }
    }
}

/// Equal and orthogonal vectors: the two cases in which several rounds are exact, too.
#[test]
fn several_rounds_are_put_together() {
    for (servers, locals) in [(4, 2), (9, 1), (11, 1)] {
        let at = |rank: u32| rank / locals;
        let equal = |_| vec![(0..500).map(|i| noise(&[i])).collect()];
        let found = figures(servers, locals, 2, equal);
        close(found[0].gain, 1.0, "gain of equal vectors");
        close(found[0].cosine, 1.0, "cosine of equal vectors");
        let orthogonal = |rank: u32| {
            let own = |i: u32| i % servers == at(rank);
            let value = |i: u32| if own(i) { 1.0 + at(rank) as f32 } else { 0.0 };
            vec![(0..servers * 40).map(value).collect()]
        };
        let found = figures(servers, locals, 2, orthogonal);
        let of = |server: u32| f64::from(server + 1) * 40.0_f64.sqrt();
        for (server, value) in (0..).zip(&found[0].norms) {
            close(*value, of(server), "norms of orthogonal vectors");
        }
        let result = (0..servers)
            .map(|server| of(server).powi(2))
            .sum::<f64>()
            .sqrt();
        close(found[0].norm, result, "norm of orthogonal vectors");
        close(
            found[0].gain,
            f64::from(servers),
            "gain of orthogonal vectors",
        );
        assert_eq!((found[0].cosine, found[0].kappa), (0.0, 1.0));
    }
}

/// Between those cases several rounds give estimates: good ones where the vectors have much in common.
#[test]
fn several_rounds_come_close() {
    let exact = &figures(8, 1, 8, gradients)[1];
    let estimate = &figures(8, 1, 2, gradients)[1];
    let ratio = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.05, "{a}, not {b}");
    ratio(estimate.cosine, exact.cosine);
    ratio(estimate.gain, exact.gain);
    for (a, b) in estimate.norms.iter().zip(&exact.norms) {
        close(*a, *b, "norms");
    }
}

/// Whoever sums the scalars, and wherever the vectors lie.
#[test]
fn figures_do_not_depend_on_the_exchange() {
    for radix in [2, 8] {
        let with = |scalars, placement| {
            let options = Options {
                radix,
                scalars,
                placement,
                ..Options::default()
            };
            figures_with(4, 2, &options, gradients)
        };
        let gathered = with(ScalarExchange::Gathered, Placement::Hierarchical);
        let owned = with(ScalarExchange::Owned, Placement::Hierarchical);
        assert_eq!(format!("{gathered:?}"), format!("{owned:?}"));
        let columns = with(ScalarExchange::Gathered, Placement::Columns);
        for (a, b) in gathered.iter().zip(&columns).filter(|(a, _)| a.norm > 0.0) {
            close(a.cosine, b.cosine, "cosine of columns");
            close(a.gain, b.gain, "gain of columns");
        }
    }
}

#[test]
fn zeros_cancelling_and_bad_values() {
    let inputs = |rank: u32| {
        let opposite = if rank == 0 { 1.0 } else { -2.0 };
        let bad = if rank == 1 { f32::NAN } else { 1.0 };
        vec![
            vec![f32::from(rank == 0); 3],
            vec![opposite],
            vec![1.0, bad],
            vec![0.0; 2],
        ]
    };
    let found = figures(2, 1, 2, inputs);
    close(found[0].norms[0], 3.0_f64.sqrt(), "norm");
    assert_eq!(found[0].norms[1], 0.0);
    assert!(found[0].cosine.is_nan(), "there is no pair");
    close(found[0].gain, 2.0, "gain beside a zero vector");
    close(found[1].cosine, -1.0, "cosine of opposite vectors");
    close(found[1].gain, 1.0, "gain of parallel vectors");
    // The weights are 2 and 5/4.
    close(found[1].kappa, (4.0 + 6.25) / 0.25, "kappa");
    assert!(found[2].nonfinite && found[2].norm.is_nan() && found[2].norms[0].is_nan());
    assert!(found[2].cosine.is_nan() && found[2].gain.is_nan() && found[2].kappa.is_nan());
    assert_eq!(
        (found[3].norm, found[3].gain, found[3].kappa),
        (0.0, 0.0, 1.0)
    );
}

#[test]
fn without_adasum_there_are_none() {
    in_world(2, 1, |world| {
        let options = Options {
            reduction: Reduction::Mean,
            ..Options::default()
        };
        let reducer = GradientReducer::new(world, &specs(&[5]), &options).unwrap();
        assert_eq!(
            reducer.statistics().unwrap_err().kind(),
            ErrorKind::Unsupported
        );
    });
    in_world(1, 1, |world| {
        let error = reducer(world, &[5]).statistics().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
}
