//! The mean reducer: MindSpore's example with its figures, types, groups, fusion.

use adasum::ErrorKind;
use adasum::ascend::{Buffer, Span, Stream};
use adasum::reduce::{DType, Fusion, MeanOptions, MeanReducer, MeanTensor, TensorSpec, World};

use crate::support::oracle;
use crate::support::{get_as, in_world, noise, put_as, rounded};

const TYPES: [DType; 4] = [DType::F32, DType::F16, DType::BF16, DType::F32];
const COUNTS: [usize; 4] = [5000, 4097, 33, 1];

fn tensors() -> Vec<MeanTensor> {
    let specs = (0..).zip(COUNTS.iter().zip(TYPES));
    specs
        .map(|(i, (&count, dtype))| TensorSpec::new(format!("t{i}"), count as u64, dtype).into())
        .collect()
}

/// The gradient of a rank, as its type holds it.
fn gradient(rank: u32, tensor: usize) -> Vec<f32> {
    (0..COUNTS[tensor] as u64)
        .map(|i| rounded(noise(&[u64::from(rank), tensor as u64, i]), TYPES[tensor]))
        .collect()
}

/// One reduction on this rank.
fn reduced(world: &World, tensors: &[MeanTensor], options: &MeanOptions) -> Vec<Vec<f32>> {
    let mut reducer = MeanReducer::new(world, tensors, options).unwrap();
    let stream = Stream::new(world.device()).unwrap();
    let spans: Vec<Span> = (0..COUNTS.len())
        .map(|i| put_as(world.device(), &gradient(world.rank(), i), TYPES[i]))
        .collect();
    reducer.reduce(&spans, &stream).unwrap();
    stream.synchronize().unwrap();
    (0..COUNTS.len())
        .map(|i| get_as(&spans[i], TYPES[i]))
        .collect()
}

/// Holds a result against the fp64 sum over `ranks`, times `factor`.
fn assert_sum(out: &[Vec<f32>], ranks: &[u32], factor: f64, what: &str) {
    for (tensor, out) in out.iter().enumerate() {
        let inputs: Vec<Vec<f32>> = ranks.iter().map(|&rank| gradient(rank, tensor)).collect();
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let scale = factor * ranks.len() as f64;
        let truth: Vec<f64> = oracle::mean(&inputs).iter().map(|x| x * scale).collect();
        let bounds = match TYPES[tensor] {
            DType::F32 => oracle::FP32,
            DType::F16 => oracle::FP16,
            DType::BF16 => oracle::BF16,
        };
        let wide: Vec<Vec<f64>> = inputs.iter().map(|input| oracle::mean(&[input])).collect();
        let error = oracle::error(out, &truth, &wide, bounds);
        assert!(error <= 1.0, "{what}, tensor {tensor}: {error}");
    }
}

/// MindSpore's documented example of `DistributedGradReducer`, its network and loss by hand: 16 rows of ones through
/// a 16 x 10 matrix of ones, squared error to zero, Momentum(0.1, 0.9).
#[test]
fn the_documented_example_gives_its_figures() {
    const ROWS: usize = 16;
    const IN: usize = 16;
    const OUT: usize = 10;
    for (mean, weight, second) in [(true, 0.68, 118.3744), (false, -4.12, 4345.4464)] {
        let results = in_world(2, 8, |world| {
            let tensors = [TensorSpec::new("weight", (IN * OUT) as u64, DType::F32).into()];
            let options = MeanOptions {
                mean,
                degree: Some(16),
                ..MeanOptions::default()
            };
            let mut reducer = MeanReducer::new(world, &tensors, &options).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let mut weights = vec![1.0_f32; IN * OUT];
            let mut moments = vec![0.0_f32; IN * OUT];
            let mut losses = Vec::new();
            let mut after_first = Vec::new();
            for step in 0..2 {
                let outputs: Vec<f32> = (0..OUT)
                    .map(|column| (0..IN).map(|row| weights[row * OUT + column]).sum())
                    .collect();
                losses.push(outputs.iter().map(|y| y * y).sum::<f32>() / OUT as f32);
                // d(mean of y^2)/dw = sum over the rows of 2 y x / (rows * columns).
                let gradients: Vec<f32> = (0..IN * OUT)
                    .map(|i| ROWS as f32 * 2.0 * outputs[i % OUT] / (ROWS * OUT) as f32)
                    .collect();
                let span = put_as(world.device(), &gradients, DType::F32);
                reducer
                    .reduce(std::slice::from_ref(&span), &stream)
                    .unwrap();
                stream.synchronize().unwrap();
                let reduced = get_as(&span, DType::F32);
                for i in 0..weights.len() {
                    moments[i] = 0.9 * moments[i] + reduced[i];
                    weights[i] -= 0.1 * moments[i];
                }
                if step == 0 {
                    after_first.clone_from(&weights);
                }
            }
            (losses, after_first)
        });
        for (losses, weights) in results {
            assert_eq!(losses[0], 256.0);
            let close = |x: f32, y: f64| (f64::from(x) - y).abs() <= 2e-6 * y.abs();
            assert!(weights.iter().all(|&w| close(w, weight)), "{weights:?}");
            assert!(close(losses[1], second), "{losses:?}");
        }
    }
}

#[test]
fn all_types_and_degrees_against_fp64_and_equal_on_all_ranks() {
    for (servers, locals) in [(1, 3), (2, 4), (3, 1)] {
        let ranks: Vec<u32> = (0..servers * locals).collect();
        for (mean, degree) in [(true, None), (false, None), (true, Some(7))] {
            let options = MeanOptions {
                mean,
                degree,
                ..MeanOptions::default()
            };
            let outs = in_world(servers, locals, |world| {
                reduced(world, &tensors(), &options)
            });
            let divisor = degree.unwrap_or(i64::from(servers * locals)) as f64;
            let factor = if mean { 1.0 / divisor } else { 1.0 };
            let what = format!("{servers} x {locals}, {options:?}");
            assert_sum(&outs[0], &ranks, factor, &what);
            assert!(outs.iter().all(|out| *out == outs[0]), "{what}");
        }
    }
}

/// Sums that leave the range of fp16 come back in it: the wire is fp32.
#[test]
fn the_sum_is_fp32_whatever_the_type() {
    let outs = in_world(1, 4, |world| {
        let tensors = [TensorSpec::new("t", 100, DType::F16).into()];
        let mut reducer = MeanReducer::new(world, &tensors, &MeanOptions::default()).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let span = put_as(world.device(), &[60_000.0; 100], DType::F16);
        reducer
            .reduce(std::slice::from_ref(&span), &stream)
            .unwrap();
        stream.synchronize().unwrap();
        get_as(&span, DType::F16)
    });
    let kept = rounded(60_000.0, DType::F16);
    assert!(outs.iter().flatten().all(|&x| x == kept));
}

#[test]
fn fusion_does_not_change_a_bit() {
    let outs = in_world(2, 2, |world| {
        let own = |ids: [u32; 4]| {
            let mut tensors = tensors();
            for (tensor, id) in tensors.iter_mut().zip(ids) {
                tensor.fusion = Some(id);
            }
            tensors
        };
        let with = |tensors: &[MeanTensor], fusion: Fusion| {
            let options = MeanOptions {
                fusion,
                ..MeanOptions::default()
            };
            reduced(world, tensors, &options)
        };
        let all = with(&tensors(), Fusion::All);
        assert_eq!(all, with(&tensors(), Fusion::None));
        assert_eq!(all, with(&tensors(), Fusion::Split(vec![1, 9])));
        assert_eq!(all, with(&own([0, 1, 0, 1]), Fusion::All));
        all
    });
    assert!(outs.iter().all(|out| *out == outs[0]));
}

#[test]
fn layerwise_parallel_tensors_are_left_alone() {
    in_world(2, 2, |world| {
        let mut tensors = tensors();
        let plain = reduced(world, &tensors, &MeanOptions::default());
        tensors[1].layerwise_parallel = true;
        let out = reduced(world, &tensors, &MeanOptions::default());
        assert_eq!(out[1], gradient(world.rank(), 1));
        for i in [0, 2, 3] {
            assert_eq!(out[i], plain[i]);
        }
    });
}

/// Also where a rank would have fewer groups to agree on, or none.
#[test]
fn ranks_must_agree_on_what_is_reduced() {
    in_world(2, 1, |world| {
        for fusion in [Fusion::All, Fusion::None] {
            for others in [&[1][..], &[0, 1, 2, 3]] {
                let mut own = tensors();
                for &tensor in others {
                    own[tensor].layerwise_parallel = world.rank() == 1;
                }
                let options = MeanOptions {
                    fusion: fusion.clone(),
                    ..MeanOptions::default()
                };
                let error = MeanReducer::new(world, &own, &options).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
                let words = format!("ranks [1] have option no mean of tensor {}", others[0]);
                assert!(error.to_string().contains(&words), "{error}");
            }
        }
        reduced(world, &tensors(), &MeanOptions::default());
    });
}

/// Groups at the same time, one of them of uneven servers; ranks outside keep their gradients.
#[test]
fn a_group_reduces_among_itself() {
    let groups = [vec![0, 1, 4, 5], vec![2, 6, 7]];
    let outs = in_world(2, 4, |world| {
        let group = groups.iter().find(|group| group.contains(&world.rank()))?;
        let options = MeanOptions {
            group: Some(group.clone()),
            ..MeanOptions::default()
        };
        Some(reduced(world, &tensors(), &options))
    });
    for group in &groups {
        let first = outs[group[0] as usize].as_ref().unwrap();
        assert_sum(
            first,
            group,
            1.0 / group.len() as f64,
            &format!("{group:?}"),
        );
        for &rank in group {
            assert_eq!(outs[rank as usize].as_ref(), Some(first));
        }
    }
    assert!(outs[3].is_none());
}

#[test]
fn gradients_may_start_at_any_element_and_move_between_calls() {
    in_world(2, 1, |world| {
        let tensors = [TensorSpec::new("t", 100, DType::F16).into()];
        let mut reducer = MeanReducer::new(world, &tensors, &MeanOptions::default()).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        for offset in [2, 30, 2] {
            let buffer = Buffer::zeroed(world.device(), 400).unwrap().span();
            let span = buffer.slice(offset..offset + 200).unwrap();
            let bits = if world.rank() == 0 {
                0x3c00_u16
            } else {
                0x4200
            };
            span.write(&[bits; 100]).unwrap();
            reducer
                .reduce(std::slice::from_ref(&span), &stream)
                .unwrap();
            stream.synchronize().unwrap();
            // (1 + 3) / 2
            assert_eq!(get_as(&span, DType::F16), [2.0; 100]);
            let mut around = vec![0_u8; 400];
            buffer.read(&mut around).unwrap();
            assert!(around[..offset].iter().all(|&byte| byte == 0));
            assert!(around[offset + 200..].iter().all(|&byte| byte == 0));
        }
    });
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    in_world(2, 1, |world| {
        let refused = |options: MeanOptions| {
            let error = MeanReducer::new(world, &tensors(), &options)
                .map(|_| ())
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            error.to_string()
        };
        for degree in [0, -3] {
            let message = refused(MeanOptions {
                degree: Some(degree),
                ..MeanOptions::default()
            });
            assert_eq!(
                message,
                format!(
                    "For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer should large than 0 \
                     and be int, degree: {degree}."
                )
            );
        }
        for group in [vec![], vec![1, 0], vec![0, 2], vec![1 - world.rank()]] {
            let message = refused(MeanOptions {
                group: Some(group.clone()),
                ..MeanOptions::default()
            });
            assert!(message.contains(&format!("{group:?}")), "{message}");
        }
        let mut reducer = MeanReducer::new(world, &tensors(), &MeanOptions::default()).unwrap();
        let stream = Stream::new(world.device()).unwrap();
        let error = reducer.reduce(&[], &stream).unwrap_err().to_string();
        assert!(error.contains("0 gradients were given for 4"), "{error}");
    });
}

/// Of those that are reduced, whatever travels together.
#[test]
fn what_is_not_finite_is_reported() {
    for fusion in [Fusion::All, Fusion::None] {
        in_world(2, 2, |world| {
            let options = MeanOptions {
                fusion: fusion.clone(),
                ..MeanOptions::default()
            };
            let mut tensors = tensors();
            tensors[0].layerwise_parallel = true;
            let mut reducer = MeanReducer::new(world, &tensors, &options).unwrap();
            let stream = Stream::new(world.device()).unwrap();
            let bad = |i: usize| i != 1 && world.rank() == 3;
            let spans: Vec<Span> = (0..COUNTS.len())
                .map(|i| {
                    let mut values = gradient(world.rank(), i);
                    values[0] = if bad(i) { f32::INFINITY } else { 0.5 };
                    put_as(world.device(), &values, TYPES[i])
                })
                .collect();
            reducer.reduce(&spans, &stream).unwrap();
            assert_eq!(reducer.nonfinite().unwrap(), [false, false, true, true]);
        });
    }
}
