//! Which units of more than two vectors are summed in fp32 and which exactly (`csrc/kernels/separation.h`), and that the tree is
//! right with both.

use adasum::ascend::DataType;
use adasum::kernel::layout::{UNIT, record_words};

use super::bounds::{Sums, TYPES, assert_record, checked, one, sums_of, units, worst};
use super::machine::{Machine, packed, rounded};
use super::reference::{dot, random, tree};
use crate::support::oracle::norm;

/// Units whose vectors cancel beside units whose vectors do not, at all ratios of their norms: what the plain sums of the latter
/// are off must not be much beside what is left of the former.
#[test]
fn units_that_cancel_and_units_that_do_not_make_one_tensor() {
    let machine = Machine::new();
    let unit = UNIT as usize;
    for radix in 3..=8 {
        for distance in [1e-1_f32, 1e-3, 1e-5] {
            for share in [1.0_f32, 1e-2, 1e-4, 1e-6] {
                let g = random(unit, 470, 1.0);
                let vectors: Vec<Vec<f32>> = (0..radix)
                    .map(|i| {
                        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
                        let other = random(unit, 471 + i as u64, distance);
                        let near = g.iter().zip(other).map(|(g, o)| sign * g + o);
                        near.chain(random(3 * unit + 5, 480 + i as u64, share))
                            .collect()
                    })
                    .collect();
                let what = format!("radix {radix}, {distance:e}, {share:e}");
                checked(&machine, &vectors, DataType::F32, &what);
            }
        }
    }
}

/// Cosines of all pairs from below -1/7, where eight vectors cancel, to near 1, past the limit of plain sums.
#[test]
fn plain_and_exact_sums_meet_at_the_limit() {
    let machine = Machine::new();
    let len = 3 * UNIT as usize;
    let mut seen = [0, 0];
    for dtype in TYPES {
        for radix in [3, 4, 8] {
            for common in [
                -0.14_f32, -0.1, 0.0, 0.3, 0.9, 0.98, 0.984, 0.985, 0.99, 0.999,
            ] {
                let g = random(len, 490, 1.0);
                let own: Vec<Vec<f32>> = (0..radix)
                    .map(|i| random(len, 491 + i as u64, 1.0))
                    .collect();
                let vectors: Vec<Vec<f32>> = (0..radix)
                    .map(|i| {
                        let values = (0..len).map(|k| {
                            if common >= 0.0 {
                                common.sqrt() * g[k] + (1.0 - common).sqrt() * own[i][k]
                            } else {
                                // Less a part of their sum.
                                let sum: f32 = own.iter().map(|x| x[k]).sum();
                                own[i][k] - (-7.0 * common) * sum / radix as f32
                            }
                        });
                        rounded(dtype, values.collect())
                    })
                    .collect();
                let what = format!("{dtype:?}, radix {radix}, common {common}");
                let x: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
                for unit in units(&x) {
                    match sums_of(&unit) {
                        Sums::Plain => seen[0] += 1,
                        Sums::Exact => seen[1] += 1,
                        Sums::Either => {}
                    }
                }
                let spans: Vec<_> = vectors
                    .iter()
                    .map(|x| machine.upload_as(dtype, x, 0))
                    .collect();
                let (partials, _) = machine.gram_of(dtype, &spans, &packed(&[len], 0));
                let partials = machine.read(&partials);
                let words = record_words(radix);
                for (unit, record) in units(&x).zip(partials.chunks(words)) {
                    assert_record(record, &unit, &what);
                }
                checked(&machine, &vectors, dtype, &what);
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

/// Ones and their 4096th parts: a product of two of the latter added to a one is half a unit in the last place, which is lost
/// each time. So all roundings of a lane go one way.
#[test]
fn roundings_that_go_one_way_stay_within_their_number() {
    let machine = Machine::new();
    for radix in 3..=8_usize {
        let lanes = if radix == 8 { 256 } else { 512 };
        let vectors: Vec<Vec<f32>> = (0..radix)
            .map(|i| {
                let element = |k: usize| match (k / lanes, k % lanes) {
                    (0, lane) if lane / (lanes / 64) == i => -1.0,
                    (0, _) => 1.0,
                    (step, _) if (step & (i + 1)).count_ones() % 2 == 1 => -1.0 / 4096.0,
                    _ => 1.0 / 4096.0,
                };
                (0..UNIT as usize).map(element).collect()
            })
            .collect();
        let x: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
        assert_eq!(sums_of(&x), Sums::Plain);
        let spans: Vec<_> = vectors.iter().map(|x| machine.upload(x)).collect();
        let (partials, _) = machine.gram_of(DataType::F32, &spans, &packed(&[UNIT as usize], 0));
        let record = machine.read(&partials);
        let square = dot(&vectors[0], &vectors[0]);
        let off = (f64::from(record[0]) - square).abs() / square;
        let lost = (UNIT as usize / lanes - 1) as f64 * 2.0_f64.powi(-24);
        assert!(
            off > 0.9 * lost && off < worst(radix),
            "radix {radix}: {off:e}"
        );
        // What separation.h derives, with as much for each level.
        let (_, out) = one(&machine, &vectors, DataType::F32);
        let truth = tree(&x);
        let difference: Vec<f64> = out
            .iter()
            .zip(&truth.result)
            .map(|(&x, t)| f64::from(x) - t)
            .collect();
        let levels = f64::from(radix.next_power_of_two().ilog2());
        let allowed = levels * worst(radix) * radix as f64 * truth.kappa * square.sqrt();
        assert!(norm(&difference) < allowed, "radix {radix}");
    }
}
