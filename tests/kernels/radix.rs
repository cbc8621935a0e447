//! Up to eight vectors of each type, against the tree computed vector by vector in double precision.

use adasum::ascend::DataType;
use adasum::kernel::layout::{
    COEFFICIENT_FLAGS, COEFFICIENT_KAPPA, COEFFICIENT_POST, COEFFICIENT_RESULT_NORM,
    COEFFICIENT_WEIGHT, Segment, UNIT, coefficient_leaf_norm, coefficient_weight_low,
    coefficient_words, entry_index, record_words,
};

use super::bounds::{TYPES, assert_record, assert_tree, checked, one, roundoff};
use super::machine::{Machine, extent, packed, rounded};
use super::reference::{dot, part, random, tree};
use crate::support::oracle::norm;

const SIZES: [usize; 17] = [
    0, 1, 2, 3, 7, 16, 17, 255, 256, 257, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1_000_003,
];

/// Vectors that have something in common, as gradients do.
fn related(radix: usize, len: usize, seed: u64, dtype: DataType) -> Vec<Vec<f32>> {
    let common = random(len, seed, 0.5);
    (0..radix as u64)
        .map(|i| {
            let own = random(len, seed + 1 + i, 1.0);
            let sum = common.iter().zip(&own).map(|(c, o)| c + o).collect();
            rounded(dtype, sum)
        })
        .collect()
}

fn parts<'a>(vectors: &'a [Vec<f32>], segment: &Segment) -> Vec<&'a [f32]> {
    vectors.iter().map(|x| part(x, segment)).collect()
}

#[test]
fn every_type_radix_and_size_agrees_with_double_precision() {
    let machine = Machine::new();
    for dtype in TYPES {
        for radix in 2..=8 {
            let segments = packed(&SIZES, 5);
            let vectors = related(radix, extent(&segments), 10 * radix as u64, dtype);
            let spans: Vec<_> = (0..radix)
                .map(|i| machine.upload_as(dtype, &vectors[i], (3 * i + 1) % 16))
                .collect();
            let (partials, records) = machine.gram_of(dtype, &spans, &segments);
            let (partials, records) = (machine.read(&partials), machine.read(&records));
            let words = record_words(radix);
            let (_, out) = machine.tree(dtype, &spans, &segments);
            let out = machine.read_as(dtype, &out);
            for (index, segment) in segments.iter().enumerate() {
                let what = format!("{dtype:?}, radix {radix}, {} elements", segment.len);
                let x = parts(&vectors, segment);
                assert_record(&records[index * words..][..words], &x, &what);
                assert_tree(part(&out, segment), &x, dtype, &what);
                if segment.len > 0 {
                    let first: Vec<&[f32]> =
                        x.iter().map(|x| &x[..x.len().min(UNIT as usize)]).collect();
                    let record = &partials[segment.first_unit as usize * words..][..words];
                    assert_record(record, &first, &format!("{what}, unit 0"));
                }
            }
            // Nothing outside of the segments is written.
            assert_eq!(out[..5], vectors[0][..5]);
            let behind = extent(&segments) - 3;
            assert_eq!(out[behind..], vectors[0][behind..]);
        }
    }
}

#[test]
fn bits_do_not_depend_on_blocks_or_alignment() {
    // The large one takes its time with reference and comparison; its units are like those of the others.
    let sizes: Vec<usize> = SIZES[..16].iter().copied().chain([3; 20]).collect();
    let segments = packed(&sizes, 1);
    for dtype in TYPES {
        for radix in 2..=8 {
            let vectors = related(radix, extent(&segments), 300, dtype);
            let run = |blocks: u32, shift: usize| {
                let machine = Machine::with_blocks(Some(blocks));
                let spans: Vec<_> = (0..radix)
                    .map(|i| machine.upload_as(dtype, &vectors[i], (shift * (i + 1)) % 32))
                    .collect();
                let (partials, records) = machine.gram_of(dtype, &spans, &segments);
                let (coefficients, out) = machine.tree(dtype, &spans, &segments);
                [
                    machine.bits(&partials),
                    machine.bits(&records),
                    machine.bits(&coefficients),
                    machine.bits_as(dtype, &out),
                ]
            };
            let expected = run(1, 0);
            for (blocks, shift) in [(1, 1), (2, 0), (3, 7), (40, 13), (48, 31), (1000, 0)] {
                assert!(
                    run(blocks, shift) == expected,
                    "{dtype:?}, radix {radix}, {blocks} blocks, shifted by {shift}"
                );
            }
        }
    }
}

fn scaled(x: &[f32], factor: f32) -> Vec<f32> {
    x.iter().map(|x| x * factor).collect()
}

#[test]
fn cancelling_leaves_keep_their_precision() {
    let machine = Machine::new();
    // Cosines from about -0.9 to -1 of neighbours; the nearer ones cannot be told apart in 16 bits.
    let cases = [0.5_f32, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5]
        .into_iter()
        .flat_map(|distance| TYPES.map(|dtype| (distance, dtype)))
        .filter(|(distance, dtype)| *dtype == DataType::F32 || *distance > 5e-3);
    for (distance, dtype) in cases {
        for len in [2, 100, 5000] {
            for radix in 2..=8 {
                let g = random(len, 400, 1.0);
                // Every second vector is nearly opposite to the one before it.
                let vectors: Vec<Vec<f32>> = (0..radix)
                    .map(|i| {
                        let other = random(len, 401 + i as u64, distance);
                        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
                        let near = g.iter().zip(other).map(|(g, o)| sign * g + o).collect();
                        rounded(dtype, near)
                    })
                    .collect();
                let what = format!("{dtype:?}, {len} elements, radix {radix}, {distance:e}");
                checked(&machine, &vectors, dtype, &what);
            }
        }
    }
}

/// What the weights say is what comes out, rounded once, however much of two vectors cancels.
#[test]
fn an_opposed_pair_is_summed_in_two_numbers() {
    let machine = Machine::new();
    for len in [2, 100, 5000] {
        for distance in [1e-4_f32, 1e-2, 1.0, 3.0] {
            let x = random(len, 450, 1.0);
            let other = random(len, 451, distance);
            let y: Vec<f32> = x.iter().zip(&other).map(|(x, o)| o - x).collect();
            let cosine = dot(&x, &y) / (dot(&x, &x) * dot(&y, &y)).sqrt();
            let opposed = cosine < -std::f64::consts::FRAC_1_SQRT_2;
            let vectors = [x, y];
            let (words, out) = one(&machine, &vectors, DataType::F32);
            let low = &words[coefficient_weight_low(2)..][..2];
            let what = format!("{len} elements, {distance:e}: {low:?}");
            assert_eq!(low.iter().any(|&low| low != 0.0), opposed, "{what}");
            assert!(opposed || distance >= 1.0, "{what}");
            if !opposed {
                continue;
            }
            let [a, b] =
                [0, 1].map(|i| f64::from(words[COEFFICIENT_WEIGHT + i]) + f64::from(low[i]));
            let sum: Vec<f64> = vectors[0]
                .iter()
                .zip(&vectors[1])
                .map(|(&x, &y)| a * f64::from(x) + b * f64::from(y))
                .collect();
            let difference: Vec<f64> = out
                .iter()
                .zip(&sum)
                .map(|(&o, s)| f64::from(o) - s)
                .collect();
            let allowed = 1.01 * roundoff(DataType::F32) * norm(&sum);
            assert!(
                norm(&difference) <= allowed,
                "{what}: {:e}",
                norm(&difference)
            );
        }
    }
}

#[test]
fn parallel_vectors_of_either_sign_give_the_mean() {
    let machine = Machine::new();
    for dtype in TYPES {
        for radix in 2..=8 {
            for len in [1, 5, 1000] {
                for seed in 0..10 {
                    let g = random(len, 500 + seed, 1.0);
                    let factors = random(radix, 600 + seed, 1.0);
                    let vectors: Vec<Vec<f32>> = factors
                        .iter()
                        .map(|&factor| rounded(dtype, scaled(&g, factor)))
                        .collect();
                    let what = format!("{dtype:?}, radix {radix}, {len} elements, seed {seed}");
                    checked(&machine, &vectors, dtype, &what);
                }
            }
        }
    }
}

#[test]
fn exact_trees_are_exact() {
    let machine = Machine::new();
    for dtype in TYPES {
        for len in [1, 8, 9, 257, 5000] {
            let g = rounded(dtype, random(len, 700, 1.0));
            let h = rounded(dtype, random(len, 701, 1.0));
            let zero = vec![0.0; len];
            let against = scaled(&g, -1.0);
            let result = |vectors: &[&Vec<f32>]| {
                let vectors: Vec<Vec<f32>> = vectors.iter().map(|x| (*x).clone()).collect();
                one(&machine, &vectors, dtype).1
            };
            assert!(result(&[&g, &against, &h, &h]) == h, "g - g, h, h");
            assert!(result(&[&h, &h, &g, &against]) == h, "h, h, g - g");
            assert!(result(&[&g, &g, &against]) == zero, "g, g - g");
            assert!(result(&[&g, &against, &g, &against]) == zero);
            assert!(result(&[&zero; 5]) == zero);
            for radix in 2..=8 {
                for place in 0..radix {
                    let mut vectors = vec![&zero; radix];
                    vectors[place] = &g;
                    assert!(result(&vectors) == g, "only {place} of {radix}");
                }
            }
            for radix in [2, 4, 8] {
                let (words, out) = one(&machine, &vec![g.clone(); radix], dtype);
                let weights = &words[COEFFICIENT_WEIGHT..][..radix];
                assert_eq!(weights, vec![1.0 / radix as f32; radix]);
                // Three eighths of a number may not fit fp32.
                assert!(radix == 8 || out == g, "{radix} times the same");
            }
        }
    }
}

#[test]
fn scales_from_tiny_to_huge_mix() {
    let machine = Machine::new();
    for dtype in TYPES {
        // Up to where the type ends, subnormals included.
        let scales = match dtype {
            DataType::F16 => [2e4_f32, 1e-5, 1.0, 1e-7, 1e4, 1e-3, 1e2, 2e-7],
            _ => [1e30_f32, 1e-30, 1.0, 1e-38, 1e37, 1e-20, 1e15, 1e-42],
        };
        for radix in 2..=8 {
            for turn in 0..8 {
                for len in [1, 6000] {
                    let vectors: Vec<Vec<f32>> = (0..radix)
                        .map(|i| {
                            let scale = scales[(i * 3 + turn) % 8];
                            rounded(dtype, random(len, (800 + i) as u64, scale))
                        })
                        .collect();
                    let what = format!("{dtype:?}, radix {radix}, turn {turn}, {len} elements");
                    let (coefficients, _) = checked(&machine, &vectors, dtype, &what);
                    assert_eq!(coefficients[COEFFICIENT_FLAGS], 0.0);
                }
            }
        }
    }
}

#[test]
fn the_largest_and_the_smallest_numbers_stay_in_range() {
    let machine = Machine::new();
    for dtype in TYPES {
        let ends = match dtype {
            DataType::F32 => [f32::MAX, f32::from_bits(1)],
            DataType::F16 => [65_504.0, 6e-8],
            _ => [f32::from_bits(0x7f7f_0000), f32::from_bits(0x0001_0000)],
        };
        for radix in 2..=8 {
            for end in ends {
                for len in [1, 3000] {
                    for opposite in [usize::MAX, 1, radix - 1] {
                        let vectors: Vec<Vec<f32>> = (0..radix)
                            .map(|i| vec![if i == opposite { -end } else { end }; len])
                            .collect();
                        let what =
                            format!("{dtype:?}, radix {radix}, {len} times {end:e}, {opposite}");
                        let (words, _) = checked(&machine, &vectors, dtype, &what);
                        assert_eq!(words[COEFFICIENT_FLAGS], 0.0, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn bits_of_fp16_reach_from_subnormals_to_infinity() {
    let machine = Machine::new();
    // Half the sum of all 16-bit numbers and themselves is the numbers.
    for dtype in [DataType::F16, DataType::Bf16] {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let spans = [machine.upload(&all), machine.upload(&all)];
        let weights = super::constant(&[0.5, 0.5], 0.0);
        let out = machine.upload(&vec![0_u16; all.len()]);
        let segments = packed(&[all.len()], 0);
        machine.sum_of(dtype, &spans, &segments, &machine.upload(&weights), &out);
        for (index, bits) in machine.bits_as(dtype, &out).into_iter().enumerate() {
            let [from, to] = [index as u32, bits].map(|bits| super::machine::widen(dtype, bits));
            let same = from.to_bits() == to.to_bits() || (from.is_nan() && to.is_nan());
            assert!(same, "{dtype:?}: {index:04x} became {bits:04x}");
        }
        // Rounding of many quotients is that of the crate `half`.
        let values = rounded(dtype, random(60_000, 900, 60_000.0));
        for weight in [1.0 / 3.0, 1e-7, 0.9, 1.7] {
            let x = machine.upload_as(dtype, &values, 0);
            let coefficients = machine.upload(&super::constant(&[weight], 0.0));
            let segments = packed(&[values.len()], 0);
            machine.sum_of(
                dtype,
                std::slice::from_ref(&x),
                &segments,
                &coefficients,
                &x,
            );
            let expected = rounded(dtype, values.iter().map(|x| x * weight).collect());
            assert!(
                machine.read_as(dtype, &x) == expected,
                "{dtype:?} times {weight}"
            );
        }
    }
}

#[test]
fn a_non_finite_element_spoils_its_tensor_only() {
    let machine = Machine::new();
    let segments = packed(&[300, 5000, 300], 1);
    for dtype in TYPES {
        for radix in 2..=8 {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut vectors = related(radix, extent(&segments), 1000, dtype);
                vectors[radix - 1][segments[1].offset as usize + 4100] = bad;
                let spans: Vec<_> = vectors
                    .iter()
                    .map(|x| machine.upload_as(dtype, x, 0))
                    .collect();
                let (coefficients, out) = machine.tree(dtype, &spans, &segments);
                let coefficients = machine.read(&coefficients);
                let out = machine.read_as(dtype, &out);
                for (index, segment) in segments.iter().enumerate() {
                    let what = format!("{dtype:?}, radix {radix}, tensor {index}");
                    let words = &coefficients[index * coefficient_words(radix)..]
                        [..coefficient_words(radix)];
                    let flag = if index == 1 { 1.0 } else { 0.0 };
                    assert_eq!(words[COEFFICIENT_FLAGS], flag, "{what}");
                    if index == 1 {
                        assert!(
                            words[COEFFICIENT_WEIGHT..][..radix]
                                .iter()
                                .all(|weight| weight.is_nan()),
                            "{what}"
                        );
                        assert!(words[COEFFICIENT_KAPPA].is_nan(), "{what}");
                        assert!(part(&out, segment).iter().all(|x| x.is_nan()), "{what}");
                    } else {
                        assert_tree(part(&out, segment), &parts(&vectors, segment), dtype, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn statistics_describe_the_tree() {
    let machine = Machine::new();
    for radix in 2..=8 {
        for scale in [1e-30_f32, 1.0, 1e30] {
            let vectors: Vec<Vec<f32>> = related(radix, 5000, 1100, DataType::F32)
                .iter()
                .map(|x| scaled(x, scale))
                .collect();
            let (words, _) = one(&machine, &vectors, DataType::F32);
            let x: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
            let truth = tree(&x);
            let result = norm(&truth.result);
            let close = |word: usize, expected: f64| {
                let got = f64::from(words[word]);
                assert!(
                    (got - expected).abs() <= 2e-6 * expected.abs(),
                    "radix {radix}, word {word}: {got:e}, not {expected:e}"
                );
            };
            close(COEFFICIENT_RESULT_NORM, result);
            close(COEFFICIENT_KAPPA, truth.kappa);
            for (i, x) in x.iter().enumerate() {
                close(coefficient_leaf_norm(radix) + i, dot(x, x).sqrt());
                let weight = truth.weights[i] / f64::from(super::power(words[COEFFICIENT_POST]));
                close(COEFFICIENT_WEIGHT + i, weight);
            }
        }
    }
}

#[test]
fn sums_of_sixteen_million_elements_are_precise() {
    let machine = Machine::new();
    let len = 1 << 24;
    let segments = packed(&[len], 0);
    let mut all = [1200, 1201, 1202].map(|seed| random(len, seed, 1.0));
    // Independent vectors, and three of which two are nearly the same.
    for (radix, alike, allowed) in [(2, false, 1e-9), (3, false, 1e-9), (3, true, 1e-13)] {
        let vectors = &mut all[..radix];
        if alike {
            let (first, others) = vectors.split_at_mut(1);
            for (x, y) in others[0].iter_mut().zip(&first[0]) {
                *x = y + 1e-3 * *x;
            }
        }
        let spans: Vec<_> = vectors.iter().map(|x| machine.upload(x)).collect();
        let (_, records) = machine.gram_of(DataType::F32, &spans, &segments);
        let record = machine.read(&records);
        let square = dot(&vectors[0], &vectors[0]);
        for i in 0..radix {
            for j in i..radix {
                let entry = entry_index(i, j, radix);
                let got = f64::from(record[2 * entry]) + f64::from(record[2 * entry + 1]);
                let error = (got - dot(&vectors[i], &vectors[j])).abs() / square;
                assert!(error <= allowed, "radix {radix}, entry {i},{j}: {error:e}");
            }
        }
    }
}
