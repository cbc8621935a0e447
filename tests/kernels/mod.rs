//! The kernels, launched through ACL on the mock, against plain loops in double precision.

mod bounds;
mod counts;
mod elements;
mod lanes;
mod machine;
mod mutants;
mod radix;
mod receipts;
mod reference;
mod rule;
mod separation;
pub(crate) mod strict;

use adasum::ErrorKind;
use adasum::ascend::{DataType, Span};
use adasum::kernel::layout::{
    COEFFICIENT_FLAGS, COEFFICIENT_POST, COEFFICIENT_WEIGHT, UNIT, ZERO_EXPONENT,
    coefficient_leaf_norm, coefficient_words, record_exponents,
};
use adasum::kernel::{Gram, SegmentTable};

use crate::support::noise;
use machine::{Machine, UNTOUCHED, WORDS, extent, floats, packed};
use reference::{assert_pair, assert_record, dot, lane_sum, part, random, values};

const SIZES: [usize; 15] = [
    0, 1, 2, 3, 7, 16, 17, 255, 256, 257, 4095, 4096, 4097, 65_537, 100_003,
];

#[test]
fn kernels_agree_with_double_precision_at_every_size() {
    let machine = Machine::new();
    let segments = packed(&SIZES, 5);
    let (a, b) = (
        random(extent(&segments), 1, 1.0),
        random(extent(&segments), 2, 3.0),
    );
    let outcome = machine.reduce(&a, &b, &segments);
    let (partials, records) = (floats(&outcome.partials), floats(&outcome.records));
    let out = floats(&outcome.out);
    for (index, segment) in segments.iter().enumerate() {
        let what = format!("{} elements", segment.len);
        let (x, y) = (part(&a, segment), part(&b, segment));
        assert_record(&records[index * WORDS..][..WORDS], x, y, &what);
        assert_pair(part(&out, segment), x, y, &what);
        for (unit, (x, y)) in x
            .chunks(UNIT as usize)
            .zip(y.chunks(UNIT as usize))
            .enumerate()
        {
            let record = &partials[(segment.first_unit as usize + unit) * WORDS..][..WORDS];
            assert_record(record, x, y, &format!("{what}, unit {unit}"));
        }
    }
    // Nothing outside of the segments is written.
    let mut outside = vec![true; out.len()];
    for segment in &segments {
        outside[segment.offset as usize..(segment.offset + segment.len) as usize].fill(false);
    }
    for (value, _) in out.iter().zip(outside).filter(|(_, outside)| *outside) {
        assert_eq!(*value, UNTOUCHED);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_blocks() {
    let sizes: Vec<usize> = SIZES.iter().copied().chain([3; 40]).collect();
    let segments = packed(&sizes, 1);
    let (a, b) = (
        random(extent(&segments), 3, 1.0),
        random(extent(&segments), 4, 1.0),
    );
    let expected = Machine::with_blocks(Some(1)).reduce(&a, &b, &segments);
    for blocks in [2, 3, 7, 40, 48, 1000] {
        let outcome = Machine::with_blocks(Some(blocks)).reduce(&a, &b, &segments);
        assert!(outcome == expected, "{blocks} blocks");
    }
}

#[test]
fn units_do_not_depend_on_alignment_or_slice() {
    let machine = Machine::new();
    let len = 5 * UNIT as usize + 77;
    let (a, b) = (random(len, 5, 1.0), random(len, 6, 1.0));
    let expected = machine.reduce(&a, &b, &packed(&[len], 0)).partials;
    for shift in [4, 8, 28, 60] {
        let vectors = [machine.shifted(&a, shift), machine.shifted(&b, 64 - shift)];
        let (partials, _) = machine.gram(&vectors, &packed(&[len], 0));
        assert!(
            machine.bits(&partials) == expected,
            "shifted by {shift} bytes"
        );
    }
    // The slice from unit 2 on, with another tensor before it.
    let cut = 2 * UNIT as usize;
    let behind = |values: &[f32]| [&[1.0; 9][..], &values[cut..]].concat();
    let segments = packed(&[9, len - cut], 0);
    let vectors = [machine.upload(&behind(&a)), machine.upload(&behind(&b))];
    let (partials, _) = machine.gram(&vectors, &segments);
    assert!(
        machine.bits(&partials)[WORDS..] == expected[2 * WORDS..],
        "slice"
    );
}

#[test]
fn partials_have_the_bits_of_plain_steps() {
    let machine = Machine::new();
    // Units of one to eight strips, with and without a tail.
    for len in [
        1, 63, 64, 65, 511, 512, 513, 1000, 1100, 1536, 2048, 2049, 2112, 2700, 3500, 4095, 4096,
    ] {
        let (a, b) = (random(len, 110, 1.0), random(len, 111, 1.0));
        let outcome = machine.reduce(&a, &b, &packed(&[len], 0));
        let expected = [lane_sum(&a, &a), lane_sum(&a, &b), lane_sum(&b, &b)];
        for (entry, expected) in expected.into_iter().enumerate() {
            let got = [2 * entry, 2 * entry + 1].map(|word| outcome.partials[word]);
            assert_eq!(got, [expected.to_bits(), 0], "{len} elements");
        }
    }
}

#[test]
fn coefficients_sum_records_of_many_slices() {
    let machine = Machine::new();
    // 100 pieces of one tensor, and another tensor between them.
    let pieces = 100;
    let segments = packed(&[1000; 100], 0);
    let (a, b) = (
        random(extent(&segments), 7, 1.0),
        random(extent(&segments), 8, 1.0),
    );
    let (_, records) = machine.gram(&[machine.upload(&a), machine.upload(&b)], &segments);
    let lists = [
        (0..pieces)
            .filter(|piece| piece % 3 != 0)
            .collect::<Vec<u64>>(),
        vec![],
        (0..pieces).filter(|piece| piece % 3 == 0).collect(),
    ];
    let weights = machine.read(&machine.solve(&records, &lists));
    for (tensor, list) in lists.iter().enumerate() {
        let total = |f: fn(&[f32], &[f32]) -> [f64; 3]| {
            list.iter().fold([0.0; 3], |sum, &piece| {
                let segment = &segments[piece as usize];
                let part = f(part(&a, segment), part(&b, segment));
                [sum[0] + part[0], sum[1] + part[1], sum[2] + part[2]]
            })
        };
        let [aa, ab, bb] = total(|x, y| [dot(x, x), dot(x, y), dot(y, y)]);
        let expected = if list.is_empty() {
            [1.0; 2]
        } else {
            [1.0 - ab / aa / 2.0, 1.0 - ab / bb / 2.0]
        };
        let words = &weights[tensor * coefficient_words(2)..];
        for (got, expected) in words[COEFFICIENT_WEIGHT..].iter().zip(expected) {
            assert!(
                (f64::from(*got) - expected).abs() < 2e-7,
                "{got}, not {expected}"
            );
        }
    }
}

#[test]
fn sums_of_records_keep_both_floats() {
    let machine = Machine::new();
    let len = 300 * UNIT as usize;
    let (a, b) = (random(len, 9, 1.0), random(len, 10, 1.0));
    let (partials, records) = machine.gram(
        &[machine.upload(&a), machine.upload(&b)],
        &packed(&[len], 0),
    );
    let mut expected = [0.0; 3];
    for record in machine.read(&partials).chunks(WORDS) {
        for (sum, value) in expected.iter_mut().zip(values(record)) {
            *sum += value;
        }
    }
    let norm = (expected[0] * expected[2]).sqrt();
    for (got, expected) in values(&machine.read(&records)).into_iter().zip(expected) {
        assert!(
            (got - expected).abs() < 1e-13 * norm,
            "{got}, not {expected}"
        );
    }
}

#[test]
fn extreme_magnitudes_are_safe() {
    let machine = Machine::new();
    let scales = [3e37, 1e30, 1e19, 1.0, 1e-12, 1e-19, 1e-30, 1e-38, 1e-44];
    for (i, scale_a) in scales.into_iter().enumerate() {
        for (j, scale_b) in scales.into_iter().enumerate() {
            for len in [1, 5000] {
                let a = random(len, 20 + i as u64, scale_a);
                let b = random(len, 40 + j as u64, scale_b);
                let what = format!("{len} elements of {scale_a:e} and {scale_b:e}");
                let (out, weights) = machine.pair(&a, &b);
                assert_eq!(weights[COEFFICIENT_FLAGS], 0.0, "{what}");
                assert_pair(&out, &a, &b, &what);
            }
        }
    }
}

#[test]
fn magnitudes_may_differ_within_a_tensor() {
    let machine = Machine::new();
    let unit = UNIT as usize;
    let factors = [1e30, 1.0, 1e-30, 0.0, 1e-42, 1e15];
    let mut a = random(factors.len() * unit, 60, 1.0);
    let mut b = random(factors.len() * unit, 61, 1.0);
    for (index, factor) in factors.into_iter().enumerate() {
        let range = index * unit..(index + 1) * unit;
        for x in &mut a[range.clone()] {
            *x *= factor;
        }
        // The other way round.
        for y in &mut b[range] {
            *y *= factors[factors.len() - 1 - index];
        }
    }
    // One element that is far from its unit.
    a[3 * unit - 1] = f32::MAX;
    b[0] = f32::from_bits(1);
    let (out, _) = machine.pair(&a, &b);
    assert_pair(&out, &a, &b, "mixed");
    // Identical vectors, up to the roundings of subnormal halves.
    let (out, _) = machine.pair(&b, &b);
    let exact = |(x, y): (&f32, &f32)| x == y || y.abs() < 2.0 * f32::MIN_POSITIVE;
    assert!(out.iter().zip(&b).all(exact));
}

#[test]
fn largest_numbers_cancel_instead_of_overflowing() {
    let machine = Machine::new();
    let top = vec![f32::MAX; 3000];
    let bottom = vec![-f32::MAX; 3000];
    assert!(machine.pair(&top, &bottom).0.iter().all(|&x| x == 0.0));
    assert!(machine.pair(&top, &top).0 == top);
    let half = vec![-f32::MAX / 2.0; 3000];
    assert_pair(&machine.pair(&top, &half).0, &top, &half, "parallel");
}

#[test]
fn exact_cases_are_exact() {
    let machine = Machine::new();
    for len in [1, 3, 257, 4097, 20_000] {
        for scale in [1e35, 1.0, 1e-25, 1e-41] {
            let g = random(len, 70, scale);
            let opposite: Vec<f32> = g.iter().map(|x| -x).collect();
            let zero = vec![0.0; len];
            assert!(machine.pair(&g, &g).0 == g, "identical");
            assert!(machine.pair(&g, &opposite).0 == zero, "anti-parallel");
            let (out, weights) = machine.pair(&zero, &g);
            assert!(out == g, "zero is the identity");
            for weight in &weights[COEFFICIENT_WEIGHT..COEFFICIENT_WEIGHT + 2] {
                assert_eq!(weight * power(weights[COEFFICIENT_POST]), 1.0);
            }
            assert!(machine.pair(&g, &zero).0 == g, "zero is the identity");
            assert!(machine.pair(&zero, &zero).0 == zero);
        }
    }
    let g = random(5000, 71, 1.0);
    let weights = COEFFICIENT_WEIGHT..COEFFICIENT_WEIGHT + 2;
    assert_eq!(machine.pair(&g, &g).1[weights.clone()], [0.5, 0.5]);
    let opposite: Vec<f32> = g.iter().map(|x| -x).collect();
    assert_eq!(machine.pair(&g, &opposite).1[weights], [1.5, 1.5]);
}

#[test]
fn powers_of_two_change_nothing() {
    let machine = Machine::new();
    let (a, b) = (random(9000, 80, 1.0), random(9000, 81, 1.0));
    let expected = machine.pair(&a, &b);
    for exponent in [-60, -20, 1, 40, 70] {
        let factor = f32::exp2(exponent as f32);
        let scaled = |values: &[f32]| values.iter().map(|x| x * factor).collect::<Vec<f32>>();
        let (out, weights) = machine.pair(&scaled(&a), &scaled(&b));
        // Norms behind them scale.
        let same = COEFFICIENT_WEIGHT..coefficient_leaf_norm(2);
        assert_eq!(weights[same.clone()], expected.1[same], "2^{exponent}");
        assert!(out == scaled(&expected.0), "2^{exponent}");
    }
}

#[test]
fn zero_vectors_are_marked() {
    let machine = Machine::new();
    let a = vec![0.0; 5000];
    let b = random(5000, 90, 1.0);
    let records = floats(&machine.reduce(&a, &b, &packed(&[5000], 0)).records);
    assert_eq!(records[record_exponents(2)], ZERO_EXPONENT as f32);
    assert_eq!(records[record_exponents(2) + 1], 0.0);
    assert_eq!(records[..4], [0.0; 4]);
}

#[test]
fn a_non_finite_element_spoils_its_tensor_only() {
    let machine = Machine::new();
    let segments = packed(&[5000, 6000, 5000], 1);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 4096, 5999] {
            let a = random(extent(&segments), 91, 1.0);
            let mut b = random(extent(&segments), 92, 1.0);
            b[segments[1].offset as usize + at] = bad;
            let outcome = machine.reduce(&a, &b, &segments);
            let (out, weights) = (floats(&outcome.out), floats(&outcome.coefficients));
            for (index, segment) in segments.iter().enumerate() {
                let weights = &weights[index * coefficient_words(2)..][..coefficient_words(2)];
                if index == 1 {
                    assert_eq!(weights[COEFFICIENT_FLAGS], 1.0);
                    assert!(
                        weights[COEFFICIENT_WEIGHT..][..2]
                            .iter()
                            .all(|x| x.is_nan())
                    );
                    assert!(part(&out, segment).iter().all(|x| x.is_nan()));
                } else {
                    assert_eq!(weights[COEFFICIENT_FLAGS], 0.0);
                    assert_pair(
                        part(&out, segment),
                        part(&a, segment),
                        part(&b, segment),
                        "beside",
                    );
                }
            }
            let record = &floats(&outcome.records)[WORDS..2 * WORDS];
            assert_eq!(record[..record_exponents(2)], [0.0; 6]);
        }
    }
}

#[test]
fn thousands_of_tiny_segments() {
    let machine = Machine::new();
    let sizes: Vec<usize> = (0..6000).map(|i| i % 11).collect();
    let segments = packed(&sizes, 0);
    let (a, b) = (
        random(extent(&segments), 93, 1.0),
        random(extent(&segments), 94, 1e-3),
    );
    let out = floats(&machine.reduce(&a, &b, &segments).out);
    for segment in &segments {
        let what = format!("tensor {}", segment.tensor);
        assert_pair(
            part(&out, segment),
            part(&a, segment),
            part(&b, segment),
            &what,
        );
    }
}

/// What a scale or a factor of a whole sum stands for.
fn power(word: f32) -> f32 {
    if word == 0.0 { 1.0 } else { word }
}

/// The coefficients of a tensor as the host writes them.
fn constant(weights: &[f32], post: f32) -> Vec<f32> {
    let mut words = vec![0.0; coefficient_words(weights.len())];
    words[COEFFICIENT_WEIGHT..][..weights.len()].copy_from_slice(weights);
    words[COEFFICIENT_POST] = post;
    words
}

#[test]
fn weighted_sums_round_every_step_and_may_be_in_place() {
    let machine = Machine::new();
    let segments = packed(&[3, 0, 4097, 2000], 2);
    let len = extent(&segments);
    for radix in 1..=8 {
        let vectors: Vec<Vec<f32>> = (0..radix as u64)
            .map(|i| random(len, 100 + i, 1.0))
            .collect();
        let weights: Vec<f32> = (0..radix as u64).map(|i| noise(&[7, i])).collect();
        let coefficients = machine.upload(&constant(&weights, 0.0).repeat(segments.len()));
        let inside = |i: usize| {
            segments
                .iter()
                .any(|s| (s.offset..s.offset + s.len).contains(&(i as u64)))
        };
        let expected = |i: usize| {
            let mut sum = weights[0] * vectors[0][i];
            for (weight, vector) in weights.iter().zip(&vectors).skip(1) {
                let product = weight * vector[i];
                sum += product;
            }
            sum
        };
        for place in 0..=radix {
            let spans: Vec<Span> = vectors
                .iter()
                .map(|vector| machine.upload(vector))
                .collect();
            let out = spans
                .get(place)
                .cloned()
                .unwrap_or_else(|| machine.untouched(len));
            // Copies apart and in place of the vector before, more than a window of addresses holds.
            let mut outs = vec![out];
            outs.extend((0..70).map(|_| machine.untouched(len)));
            outs.extend(place.checked_sub(1).map(|before| spans[before].clone()));
            machine.sum_to(DataType::F32, &spans, &segments, &coefficients, &outs);
            for (copy, out) in outs.iter().enumerate() {
                let vector = match copy {
                    0 => vectors.get(place),
                    1..=70 => None,
                    _ => vectors.get(place - 1),
                };
                for (i, value) in machine.read(out).into_iter().enumerate() {
                    let before = vector.map_or(UNTOUCHED, |vector| vector[i]);
                    let expected = if inside(i) { expected(i) } else { before };
                    assert_eq!(
                        value.to_bits(),
                        expected.to_bits(),
                        "radix {radix}, place {place}, copy {copy}, element {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn weights_of_zero_and_nan_follow_ieee() {
    let machine = Machine::new();
    let sum = |weights: &[f32], post: f32, values: &[f32]| {
        let segments = packed(&[2], 0);
        let spans: Vec<Span> = values
            .iter()
            .map(|&value| machine.upload(&[value; 2]))
            .collect();
        let out = machine.untouched(2);
        machine.sum(
            &spans,
            &segments,
            &machine.upload(&constant(weights, post)),
            &out,
        );
        machine.read(&out)[1]
    };
    assert!(sum(&[0.0, 1.0], 0.0, &[f32::INFINITY, 1.0]).is_nan());
    assert!(sum(&[f32::NAN, 1.0], 0.0, &[0.0, 1.0]).is_nan());
    assert_eq!(sum(&[0.0, 1.0], 0.0, &[5.0, 1.0]), 1.0);
    assert_eq!(sum(&[1.0, 1.0], 0.5, &[5.0, 1.0]), 3.0);
}

#[test]
fn wrong_launches_are_refused_by_name() {
    let machine = Machine::new();
    let span = machine.untouched(4096);
    let [one, two] = [1, 2].map(|radix| machine.vectors(&vec![span.clone(); radix]));
    let segments = |units| SegmentTable {
        table: span.clone(),
        count: 1,
        units,
    };
    let gram = Gram {
        vectors: &two,
        dtype: DataType::F32,
        segments: &segments(1),
        partials: &span,
    };
    let refused = |launch: Gram<'_>, kind: ErrorKind, word: &str| {
        let error = machine.kernels.gram(&machine.stream, &launch).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(word), "{error}");
    };
    let single = Gram {
        vectors: &one,
        ..gram
    };
    refused(single, ErrorKind::InvalidArgument, "one vector");
    let double = Gram {
        dtype: DataType::F64,
        ..gram
    };
    refused(double, ErrorKind::Unsupported, "F64");
    let large = Gram {
        segments: &segments(1 << 40),
        ..gram
    };
    refused(large, ErrorKind::InvalidArgument, "partials");
}
