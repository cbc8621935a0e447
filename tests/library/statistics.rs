//! `GradientReducer::statistics` against figures in double precision.

use std::time::Duration;

use adasum::ErrorKind;
use adasum::ascend::Stream;
use adasum::reduce::{
    DType, GradientReducer, InServer, Options, Placement, Reduction, ScalarExchange, TensorSpec,
    TensorStatistics, World,
};

use crate::support::oracle::{adasum, mean, norm};
use crate::support::{in_world, noise, reduce, reducer, specs, upload};

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

/// The figures of one reduction, which all ranks must agree on; observed, unless it is a single round.
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
    figures_with(servers, locals, &options, radix < servers, inputs)
}

fn figures_with(
    servers: u32,
    locals: u32,
    options: &Options,
    observe: bool,
    inputs: impl Fn(u32) -> Vec<Vec<f32>> + Sync,
) -> Vec<TensorStatistics> {
    let counts: Vec<usize> = inputs(0).iter().map(Vec::len).collect();
    let mut all = in_world(servers, locals, |world| {
        let mut reducer = GradientReducer::new(world, &specs(&counts), options).unwrap();
        // Figures are those of the last reduction alone.
        reduce(&mut reducer, world, &vec_of_ones(&counts));
        reducer.observe(observe);
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

/// With one round, and with several that are observed.
#[test]
fn every_figure_is_that_of_double_precision() {
    let worlds = [
        (2, 1, 8),
        (3, 2, 8),
        (7, 1, 8),
        (8, 1, 2),
        (6, 2, 2),
        (11, 1, 4),
    ];
    for (servers, locals, radix) in worlds {
        let found = figures(servers, locals, radix, gradients);
        for (tensor, figures) in found.iter().enumerate() {
            let at = format!("{servers} x {locals}, radix {radix}, tensor {tensor}");
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

/// Equal and orthogonal vectors.
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
        assert!(found[0].cosine.abs() < 1e-6, "{}", found[0].cosine);
        assert_eq!(found[0].kappa, 1.0);
    }
}

/// Nothing is guessed: without the gradients several rounds leave the figures open that take all of them.
#[test]
fn several_rounds_that_are_not_observed_leave_figures_open() {
    let options = Options::default();
    let open = &figures_with(8, 1, &options, false, gradients)[1];
    let known = &figures_with(8, 1, &options, true, gradients)[1];
    assert!(open.cosine.is_nan() && open.gain.is_nan());
    assert_eq!(
        (&open.norms, open.norm, open.kappa),
        (&known.norms, known.norm, known.kappa)
    );
}

/// A timed reduction is a reduction: its figures take the place of those of a subset before.
#[test]
fn timed_reductions_have_figures() {
    let known = format!("{:?}", figures(4, 1, 2, gradients));
    in_world(4, 1, |world| {
        let mut reducer = reducer(world, &COUNTS);
        reducer.observe(true);
        let stream = Stream::new(world.device()).unwrap();
        let ones = upload(world.device(), &vec_of_ones(&COUNTS[1..2]));
        reducer.reduce_some(&[1], &ones, &stream).unwrap();
        let spans = upload(world.device(), &gradients(world.rank()));
        reducer
            .phases(&spans, &stream, Duration::from_secs(100))
            .unwrap();
        assert_eq!(format!("{:?}", reducer.statistics().unwrap()), known);
    });
}

/// Gradients are kept of every type, of subsets, and as they count: weighed, summed, in parts.
#[test]
fn observed_gradients_count_as_they_are_combined() {
    let vectors = |weight: fn(u32) -> f64| -> Vec<Vec<f64>> {
        let of = |rank| gradients(rank).swap_remove(1);
        let wide = |rank| {
            of(rank)
                .iter()
                .map(|&x| f64::from(x) * weight(rank))
                .collect()
        };
        (0..8).map(wide).collect()
    };
    let servers = |ranks: &[Vec<f64>], factor: f64| -> Vec<Vec<f64>> {
        let sum = |pair: &[Vec<f64>]| -> Vec<f64> {
            pair[0]
                .iter()
                .zip(&pair[1])
                .map(|(a, b)| factor * (a + b))
                .collect()
        };
        ranks.chunks(2).map(sum).collect()
    };
    let check =
        |change: &(dyn Fn(&World, &mut Options) + Sync), vectors: &[Vec<f64>], what: &str| {
            let mut found = in_world(4, 2, |world| {
                let mut options = Options::default();
                change(world, &mut options);
                let tensors = [
                    TensorSpec::new("t", 33, DType::F32),
                    TensorSpec::new("u", 9001, DType::F32),
                ];
                let mut reducer = GradientReducer::new(world, &tensors, &options).unwrap();
                reducer.observe(true);
                let stream = Stream::new(world.device()).unwrap();
                let own = gradients(world.rank());
                let spans = upload(world.device(), &[own[3].clone(), own[1].clone()]);
                reducer.reduce_some(&[1], &spans[1..], &stream).unwrap();
                reducer.reduce_some(&[0], &spans[..1], &stream).unwrap();
                reducer.statistics().unwrap().swap_remove(1)
            });
            let found = found.swap_remove(5);
            let count = vectors.len();
            let mean: Vec<f64> = (0..vectors[0].len())
                .map(|i| vectors.iter().map(|v| v[i]).sum::<f64>() / count as f64)
                .collect();
            close(
                found.gain,
                norm(&adasum(vectors)) / norm(&mean),
                &format!("{what}: gain"),
            );
            let pairs = (0..count).flat_map(|i| (0..i).map(move |j| (i, j)));
            let cosine = |(i, j): (usize, usize)| {
                dot(&vectors[i], &vectors[j]) / norm(&vectors[i]) / norm(&vectors[j])
            };
            let cosines: Vec<f64> = pairs.map(cosine).collect();
            let cosine = cosines.iter().sum::<f64>() / cosines.len() as f64;
            close(found.cosine, cosine, &format!("{what}: cosine"));
        };
    let plain = vectors(|_| 1.0);
    check(&|_, _| {}, &servers(&plain, 0.5), "mean in the server");
    check(
        &|_, options| options.in_server = InServer::Sum,
        &servers(&plain, 1.0),
        "sum",
    );
    let weighed = vectors(|rank| f64::from(1 + rank));
    let weigh = |world: &World, options: &mut Options| options.scale = (1 + world.rank()) as f32;
    check(&weigh, &servers(&weighed, 0.5), "weights");
    let shards: Vec<Vec<f64>> = plain.chunks(2).map(<[_]>::concat).collect();
    check(
        &|_, options| options.in_server = InServer::Shards,
        &shards,
        "shards",
    );
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
            figures_with(4, 2, &options, radix < 4, gradients)
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
