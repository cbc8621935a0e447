//! What stands before and behind a reduction: votes on overflow, clipping by the norm.

use super::{COUNTS, PATIENCE, gradients, specs, upload, wide};
use crate::support::oracle;
use crate::support::{get_as, in_world, put_as, rounded};
use adasum::ascend::{Span, Stream};
use adasum::reduce::{
    DType, GradientReducer, NormClip, Options, OverflowVote, OwnedPart, Reduction, TensorSpec,
};

#[test]
fn a_nan_or_infinity_of_one_rank_is_the_decision_of_all() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let decisions = in_world(2, 2, |world| {
            let mut vote = OverflowVote::new(world, &specs(dtype), PATIENCE).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let mut decide = |bad: Option<(u32, f32)>| {
                let mut tensors = gradients(world.rank());
                if let Some((rank, value)) = bad
                    && rank == world.rank()
                {
                    tensors[2][299] = value;
                }
                let spans = upload(world.device(), &tensors, dtype);
                vote.cast(&spans, &stream).unwrap();
                vote.overflowed(&stream, PATIENCE).unwrap()
            };
            let huge = if dtype == DType::F16 { 6.5e4 } else { 3e38 };
            [
                decide(None),
                decide(Some((3, f32::NAN))),
                decide(Some((0, f32::INFINITY))),
                decide(Some((1, huge))),
                decide(Some((2, f32::NEG_INFINITY))),
                decide(None),
            ]
        });
        for decision in decisions {
            assert_eq!(
                decision,
                [false, true, true, false, true, false],
                "{dtype:?}"
            );
        }
    }
}

#[test]
fn clipping_takes_the_norm_of_all_tensors_to_the_limit() {
    in_world(1, 1, |world| {
        let types = [DType::F32, DType::F16, DType::BF16];
        let specs: Vec<TensorSpec> = types
            .iter()
            .zip(COUNTS)
            .map(|(&dtype, count)| TensorSpec::new("t", count as u64, dtype))
            .collect();
        let stream = Stream::new(world.device()).unwrap();
        let before: Vec<Vec<f32>> = gradients(0)
            .iter()
            .zip(types)
            .map(|(x, dtype)| x.iter().map(|&x| rounded(x, dtype)).collect())
            .collect();
        let all: Vec<f64> = before.iter().flat_map(|x| wide(x)).collect();
        let norm = oracle::norm(&all);
        for factor in [0.01, 0.5, 1.01] {
            let limit = (norm * factor) as f32;
            let mut clip = NormClip::new(world, &specs, limit).unwrap();
            let spans: Vec<Span> = (0..3)
                .map(|t| put_as(world.device(), &before[t], types[t]))
                .collect();
            clip.clip(&spans, &stream).unwrap();
            stream.synchronize().unwrap();
            let found = f64::from(clip.last_norm().unwrap());
            assert!((found - norm).abs() < 1e-6 * norm, "{found} {norm}");
            for t in 0..3 {
                let out = get_as(&spans[t], types[t]);
                if factor > 1.0 {
                    assert_eq!(out, before[t]);
                    continue;
                }
                let truth: Vec<f64> = wide(&before[t]).iter().map(|x| x * factor).collect();
                let bounds = [oracle::FP32, oracle::FP16, oracle::BF16][t];
                let error = oracle::error(&out, &truth, std::slice::from_ref(&truth), bounds);
                assert!(error <= 1.0, "{factor}, tensor {t}: {error}");
            }
        }
        let mut clip = NormClip::new(world, &specs, 1.0).unwrap();
        let spans: Vec<Span> = (0..3)
            .map(|t| {
                let mut values = before[t].clone();
                if t == 1 {
                    values[3] = f32::INFINITY;
                }
                put_as(world.device(), &values, types[t])
            })
            .collect();
        clip.clip(&spans, &stream).unwrap();
        stream.synchronize().unwrap();
        assert!(clip.last_norm().unwrap().is_nan());
        for t in 0..3 {
            assert!(get_as(&spans[t], types[t]).iter().all(|x| x.is_nan()));
        }
        for wrong in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let error = NormClip::new(world, &specs, wrong).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("max_norm"), "{error}");
        }
    });
}

/// Each rank has parts of the tensors: the norm is that of all of them, and every rank scales by the same factor.
#[test]
fn clipping_of_parts_takes_the_norm_of_all_ranks() {
    let results = in_world(3, 2, |world| {
        let options = Options {
            scattered: true,
            ..Options::default()
        };
        let specs = specs(DType::F32);
        let mut reducer = GradientReducer::new(world, &specs, &options).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let whole = super::reduced(world, &gradients(world.rank()), &Options::default());
        let all: Vec<f64> = whole.iter().flat_map(|x| wide(x)).collect();
        let norm = oracle::norm(&all);
        for factor in [0.25, 2.0] {
            let limit = (norm * factor) as f32;
            let mut clip =
                NormClip::of_parts(world, &specs, &reducer.owned(), limit, PATIENCE).unwrap();
            let spans = upload(world.device(), &gradients(world.rank()), DType::F32);
            reducer.reduce(&spans, &stream).unwrap();
            clip.clip(&spans, &stream).unwrap();
            reducer.collect(&spans, &stream).unwrap();
            reducer.synchronize(&stream, PATIENCE).unwrap();
            let found = f64::from(clip.last_norm().unwrap());
            assert!((found - norm).abs() < 1e-6 * norm, "{found} {norm}");
            let out = super::download(&spans, DType::F32);
            if factor > 1.0 {
                assert_eq!(out, whole);
                continue;
            }
            for (out, whole) in out.iter().zip(&whole) {
                let truth: Vec<f64> = wide(whole).iter().map(|x| x * factor).collect();
                let error = oracle::error_fp32(out, &truth, std::slice::from_ref(&truth));
                assert!(error <= 1.0, "{error}");
            }
        }
        // One bad value on one rank.
        let mut bad = gradients(world.rank());
        if world.rank() == 4 {
            bad[2][0] = f32::NAN;
        }
        let mut clip = NormClip::of_parts(world, &specs, &reducer.owned(), 1.0, PATIENCE).unwrap();
        let spans = upload(world.device(), &bad, DType::F32);
        reducer.reduce(&spans, &stream).unwrap();
        clip.clip(&spans, &stream).unwrap();
        reducer.synchronize(&stream, PATIENCE).unwrap();
        assert!(clip.last_norm().unwrap().is_nan());

        let outside = [OwnedPart {
            tensor: 1,
            start: 5,
            len: 3,
        }];
        let made = NormClip::of_parts(world, &specs, &outside, 1.0, PATIENCE).map(|_| ());
        assert!(made.unwrap_err().to_string().contains("start: 5"));
        whole
    });
    assert!(results.iter().all(|whole| *whole == results[0]));
}

/// The shards of a server together, whatever other servers are.
#[test]
fn clipping_of_shards_takes_the_norm_of_a_server() {
    in_world(2, 2, |world| {
        let specs = specs(DType::F32);
        let first = world.rank() / 2 * 2;
        let server = world.part(&[first, first + 1], 1).unwrap();
        let whole: Vec<OwnedPart> = (0..)
            .zip(COUNTS)
            .map(|(tensor, count)| OwnedPart {
                tensor,
                start: 0,
                len: count as u64,
            })
            .collect();
        let mut clip = NormClip::of_parts(&server, &specs, &whole, 1.0, PATIENCE).unwrap();
        // The shards of a model: equal in both servers.
        let shard = gradients(world.rank() % 2);
        let spans = upload(world.device(), &shard, DType::F32);
        let stream = Stream::new(world.device()).unwrap();
        clip.clip(&spans, &stream).unwrap();
        stream.synchronize().unwrap();
        let all: Vec<f64> = (0..2)
            .flat_map(|rank| gradients(rank).into_iter().flatten().map(f64::from))
            .collect();
        let norm = oracle::norm(&all);
        let found = f64::from(clip.last_norm().unwrap());
        assert!((found - norm).abs() < 1e-6 * norm, "{found} {norm}");
        for (out, shard) in super::download(&spans, DType::F32).iter().zip(&shard) {
            let truth: Vec<f64> = wide(shard).iter().map(|x| x / norm).collect();
            let error = oracle::error_fp32(out, &truth, std::slice::from_ref(&truth));
            assert!(error <= 1.0, "{error}");
        }
    });
}

/// Means and sums say so as AdaSum does: what one rank had, and what adding up made of finite values.
#[test]
fn means_and_sums_report_what_is_not_finite() {
    for (servers, locals, scattered) in [(3, 2, false), (3, 2, true), (1, 3, false), (1, 1, false)]
    {
        for reduction in [Reduction::Mean, Reduction::Sum] {
            in_world(servers, locals, |world| {
                let options = Options {
                    reduction,
                    scattered,
                    ..Options::default()
                };
                let specs = vec![
                    TensorSpec::new("bad", 5000, DType::F32),
                    TensorSpec::new("good", 300, DType::F32),
                    TensorSpec::new("empty", 0, DType::F16),
                    TensorSpec::new("large", 100, DType::F16),
                ];
                let mut reducer = GradientReducer::new(world, &specs, &options).unwrap();
                let stream = Stream::new(world.device()).unwrap();
                let mut flags = |bad: f32, large: f32| {
                    let mut first = vec![1.0; 5000];
                    if world.rank() == world.size() - 1 {
                        first[4999] = bad;
                    }
                    let spans = [
                        put_as(world.device(), &first, DType::F32),
                        put_as(world.device(), &[1.0; 300], DType::F32),
                        put_as(world.device(), &[], DType::F16),
                        put_as(world.device(), &[large; 100], DType::F16),
                    ];
                    reducer.reduce(&spans, &stream).unwrap();
                    reducer.synchronize(&stream, PATIENCE).unwrap();
                    reducer.nonfinite().unwrap()
                };
                assert_eq!(flags(1.0, 1.0), [false; 4]);
                assert_eq!(flags(f32::NAN, 1.0), [true, false, false, false]);
                assert_eq!(flags(f32::INFINITY, 1.0), [true, false, false, false]);
                // Above 65,504 when two of them are added up in fp16.
                let overflows = reduction == Reduction::Sum && world.size() > 1;
                assert_eq!(flags(1.0, 40_000.0), [false, false, false, overflows]);
                assert_eq!(flags(1.0, 1.0), [false; 4]);
            });
        }
    }
}
