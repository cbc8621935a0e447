//! Packing, subtraction and the check for non-finite numbers, against plain loops.

use adasum::ErrorKind;
use adasum::ascend::{DataType, Span};
use adasum::kernel::layout::Segment;
use adasum::kernel::{FiniteCheck, Move, Subtract, Tensors};

use super::machine::{Machine, extent, packed, rounded, widen};
use super::reference::random;

const TYPES: [DataType; 3] = [DataType::F32, DataType::F16, DataType::Bf16];
const SIZES: [usize; 16] = [
    0, 1, 2, 3, 7, 16, 17, 255, 256, 257, 4095, 4096, 4097, 65_535, 65_537, 100_003,
];

/// What unwritten memory holds.
const BEFORE: f32 = -7.0;

/// Bits of `values` as elements of `dtype`.
fn bits(dtype: DataType, values: &[f32]) -> Vec<u32> {
    match dtype {
        DataType::F32 => values.iter().map(|x| x.to_bits()).collect(),
        _ => super::machine::narrow(dtype, values)
            .into_iter()
            .map(u32::from)
            .collect(),
    }
}

/// `value * factor` in fp32, then rounded.
fn moved(value: f32, factor: f32, to: DataType) -> f32 {
    rounded(to, vec![value * factor])[0]
}

struct Fusion {
    tensors: Vec<Span>,
    fused: Span,
    segments: Vec<Segment>,
    types: [DataType; 2],
}

impl Fusion {
    fn run(&self, machine: &Machine, factor: f32, pack: bool) {
        let table = machine.segments(&self.segments);
        let launch = Move {
            tensors: &Tensors::new(&machine.device, &self.tensors).unwrap(),
            tensor_type: self.types[0],
            fused: &self.fused,
            fused_type: self.types[1],
            factor,
            segments: &table,
            segment_count: self.segments.len() as u64,
            unit_count: self.segments.iter().map(Segment::units).sum(),
        };
        if pack {
            machine.kernels.pack(&machine.stream, &launch).unwrap();
        } else {
            machine.kernels.unpack(&machine.stream, &launch).unwrap();
        }
        machine.stream.synchronize().unwrap();
    }
}

#[test]
fn tensors_are_packed_and_unpacked_with_any_types() {
    let sizes: Vec<usize> = SIZES.iter().copied().chain([5; 100]).collect();
    let segments = packed(&sizes, 3);
    let len = extent(&segments);
    for from in TYPES {
        for to in TYPES {
            for (factor, blocks) in [(1.0, 48), (0.125, 1), (3.0, 7), (1.0, 2)] {
                let machine = Machine::with_blocks(Some(blocks));
                let tensors: Vec<Vec<f32>> = (0..)
                    .zip(&sizes)
                    .map(|(seed, &size)| rounded(from, random(size, 2000 + seed, 100.0)))
                    .collect();
                let upload = |shift: usize, values: &[Vec<f32>]| -> Vec<Span> {
                    (0..)
                        .zip(values)
                        .map(|(i, x)| machine.upload_as(from, x, (i + shift) % 16))
                        .collect()
                };
                let mut fusion = Fusion {
                    tensors: upload(1, &tensors),
                    fused: machine.upload_as(to, &vec![BEFORE; len], 3),
                    segments: segments.clone(),
                    types: [from, to],
                };
                fusion.run(&machine, factor, true);
                let mut expected = vec![BEFORE; len];
                for (segment, tensor) in segments.iter().zip(&tensors) {
                    for (k, &value) in tensor.iter().enumerate() {
                        expected[segment.offset as usize + k] = moved(value, factor, to);
                    }
                }
                let what = format!("{from:?} to {to:?} times {factor}");
                let got = machine.bits_as(to, &fusion.fused);
                assert!(got == bits(to, &expected), "pack {what}");

                let blank: Vec<Vec<f32>> = sizes.iter().map(|&size| vec![BEFORE; size]).collect();
                fusion.tensors = upload(5, &blank);
                fusion.run(&machine, factor, false);
                for (segment, tensor) in segments.iter().zip(&fusion.tensors) {
                    let start = segment.offset as usize;
                    let packed = &expected[start..start + segment.len as usize];
                    let expected: Vec<f32> =
                        packed.iter().map(|&x| moved(x, factor, from)).collect();
                    let got = machine.bits_as(from, tensor);
                    assert!(got == bits(from, &expected), "unpack {what}");
                }
            }
        }
    }
}

#[test]
fn packing_without_a_change_keeps_every_bit() {
    let machine = Machine::new();
    let all: Vec<u16> = (0..=u16::MAX).collect();
    // Signalling NaN among them.
    let words: Vec<u32> = all.iter().map(|&x| u32::from(x) << 16 | 1).collect();
    for dtype in TYPES {
        let (tensor, fused) = match dtype {
            DataType::F32 => (
                machine.upload(&words),
                machine.upload(&vec![9_u32; all.len()]),
            ),
            _ => (
                machine.upload(&all),
                machine.upload(&vec![9_u16; all.len()]),
            ),
        };
        let fusion = Fusion {
            tensors: vec![tensor.clone()],
            fused,
            segments: packed(&[all.len()], 0),
            types: [dtype; 2],
        };
        fusion.run(&machine, 1.0, true);
        let expected = machine.bits_as(dtype, &tensor);
        assert!(
            machine.bits_as(dtype, &fusion.fused) == expected,
            "{dtype:?}"
        );
    }
}

#[test]
fn differences_round_once_and_may_be_in_place() {
    for dtype in TYPES {
        for (blocks, len) in [
            (1, 0),
            (1, 1),
            (3, 257),
            (48, 4097),
            (2, 65_537),
            (7, 100_003),
        ] {
            let machine = Machine::with_blocks(Some(blocks));
            let [a, b] =
                [3000, 3001].map(|seed| rounded(dtype, random(len, seed, seed as f32 - 2999.0)));
            let difference: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
            let expected = bits(dtype, &rounded(dtype, difference));
            for place in 0..3 {
                let spans = [
                    machine.upload_as(dtype, &a, 1),
                    machine.upload_as(dtype, &b, 6),
                    machine.upload_as(dtype, &vec![BEFORE; len], 3),
                ];
                let launch = Subtract {
                    a: &spans[0],
                    b: &spans[1],
                    out: &spans[place],
                    dtype,
                    count: len as u64,
                };
                machine.kernels.subtract(&machine.stream, &launch).unwrap();
                let got = machine.bits_as(dtype, &spans[place]);
                assert!(got == expected, "{dtype:?}, {len} elements, place {place}");
            }
        }
    }
}

#[test]
fn only_tensors_with_a_non_finite_element_are_flagged() {
    let sizes: Vec<usize> = SIZES.iter().copied().chain([3; 200]).collect();
    let segments = packed(&sizes, 1);
    for dtype in TYPES {
        for (blocks, bad) in [(1, f32::NAN), (7, f32::INFINITY), (48, f32::NEG_INFINITY)] {
            let machine = Machine::with_blocks(Some(blocks));
            let mut values = random(extent(&segments), 4000, 1.0);
            // The largest and the smallest numbers are finite.
            let extremes = match dtype {
                DataType::F16 => [65_504.0, 6e-8],
                _ => [widen(DataType::Bf16, 0x7f7f), f32::from_bits(0x0001_0000)],
            };
            for (i, value) in values.iter_mut().enumerate() {
                *value = if i % 3 == 0 { extremes[i % 2] } else { *value };
            }
            let mut expected = vec![0.0_f32; segments.len()];
            for (index, segment) in segments.iter().enumerate() {
                if index % 2 == 0 && segment.len > 0 {
                    values[(segment.offset + segment.len - 1) as usize] = bad;
                    expected[index] = 1.0;
                }
            }
            // Between tensors anything may lie.
            values[0] = f32::NAN;
            let vector = machine.upload_as(dtype, &values, 3);
            let flags = machine.upload(&vec![0.0_f32; segments.len()]);
            let launch = FiniteCheck {
                vector: &vector,
                dtype,
                segments: &machine.segments(&segments),
                flags: &flags,
                segment_count: segments.len() as u64,
                unit_count: segments.iter().map(Segment::units).sum(),
            };
            machine
                .kernels
                .finite_check(&machine.stream, &launch)
                .unwrap();
            assert_eq!(machine.read(&flags), expected, "{dtype:?}, {bad}");
        }
    }
}

#[test]
fn other_types_are_refused_by_name() {
    let machine = Machine::new();
    let span = machine.untouched(64);
    let launch = Subtract {
        a: &span,
        b: &span,
        out: &span,
        dtype: DataType::I32,
        count: 64,
    };
    let error = machine
        .kernels
        .subtract(&machine.stream, &launch)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("I32"), "{error}");
    let launch = Subtract {
        dtype: DataType::F32,
        count: 65,
        ..launch
    };
    let error = machine
        .kernels
        .subtract(&machine.stream, &launch)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
