//! Packing, subtraction and the check for non-finite numbers, against plain loops.

use adasum::ErrorKind;
use adasum::ascend::{DataType, Span};
use adasum::kernel::layout::{FLAG_WORDS, Segment};
use adasum::kernel::{FiniteCheck, Move, Subtract, Tensors};

use super::machine::{Job, Machine, aligned, extent, is_aligned, packed, rests, rounded, widen};
use super::reference::{part, random};

const TYPES: [DataType; 3] = [DataType::F32, DataType::F16, DataType::Bf16];
/// Lists of lengths: what every twin runs, what the fast one and a strict one run, what only the fast one runs.
const SMALL: [usize; 13] = [0, 1, 2, 3, 7, 16, 17, 255, 256, 257, 4095, 4096, 4097];
const MIDDLE: [usize; 3] = [65_535, 65_536, 65_537];
const LARGE: [usize; 1] = [1_000_003];

/// The small lengths and many tiny tensors.
fn many() -> Vec<usize> {
    SMALL.iter().copied().chain([5; 100]).collect()
}

/// Tensors of `sizes` as arch 1001 wants them, or with gaps that fit no chip's blocks.
fn segments_of(sizes: &[usize], dtype: DataType, whole_blocks: bool) -> Vec<Segment> {
    if whole_blocks {
        aligned(sizes, dtype)
    } else {
        packed(sizes, 3)
    }
}

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

/// `values * factor` in fp32, then rounded.
fn moved(values: &[f32], factor: f32, to: DataType) -> Vec<f32> {
    rounded(to, values.iter().map(|x| x * factor).collect())
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
        };
        let spans = self.tensors.iter().filter(|span| !span.is_empty());
        let job = Job {
            work: 2 * self.segments.iter().map(|segment| segment.len).sum::<u64>(),
            outs: if pack {
                std::slice::from_ref(&self.fused)
            } else {
                &self.tensors
            },
            types: &self.types,
            aligned: is_aligned(
                self.types[1],
                std::slice::from_ref(&self.fused),
                &self.segments,
            ) && spans.clone().all(|span| span.address().is_multiple_of(64)),
            rest: if pack {
                rests(self.types[1], &self.segments)
            } else {
                Vec::new()
            },
        };
        machine.on_all(&job, |kernels| {
            if pack {
                kernels.pack(&machine.stream, &launch)
            } else {
                kernels.unpack(&machine.stream, &launch)
            }
        });
    }
}

/// Packs tensors of `sizes` and unpacks them again. `shift` moves every start off what is aligned.
fn pack_and_unpack(
    sizes: &[usize],
    [from, to]: [DataType; 2],
    (factor, blocks, shift): (f32, u32, usize),
) {
    let machine = Machine::with_blocks(Some(blocks));
    let segments = segments_of(sizes, to, shift == 0);
    let tensors: Vec<Vec<f32>> = (0..)
        .zip(sizes)
        .map(|(seed, &size)| rounded(from, random(size, 2000 + seed, 100.0)))
        .collect();
    let upload = |more: usize, values: &[Vec<f32>]| -> Vec<Span> {
        (0..)
            .zip(values)
            .map(|(i, x)| machine.upload_as(from, x, (i + more) % 16 * shift))
            .collect()
    };
    let mut expected = vec![BEFORE; extent(&segments)];
    let mut fusion = Fusion {
        tensors: upload(1, &tensors),
        fused: machine.upload_as(to, &expected, 3 * shift),
        segments,
        types: [from, to],
    };
    fusion.run(&machine, factor, true);
    for (segment, tensor) in fusion.segments.iter().zip(&tensors) {
        let start = segment.offset as usize;
        expected[start..start + tensor.len()].copy_from_slice(&moved(tensor, factor, to));
    }
    let what = format!("{from:?} to {to:?} times {factor}");
    let got = machine.bits_as(to, &fusion.fused);
    assert!(got == bits(to, &expected), "pack {what}");

    let blank: Vec<Vec<f32>> = sizes.iter().map(|&size| vec![BEFORE; size]).collect();
    fusion.tensors = upload(5, &blank);
    fusion.run(&machine, factor, false);
    for (segment, tensor) in fusion.segments.iter().zip(&fusion.tensors) {
        let expected = moved(part(&expected, segment), factor, from);
        let got = machine.bits_as(from, tensor);
        assert!(got == bits(from, &expected), "unpack {what}");
    }
}

#[test]
fn tensors_are_packed_and_unpacked_with_any_types() {
    for from in TYPES {
        for to in TYPES {
            for (factor, blocks, shift) in [(1.0, 48, 1), (0.125, 1, 0), (3.0, 7, 1), (1.0, 2, 0)] {
                pack_and_unpack(&many(), [from, to], (factor, blocks, shift));
            }
            pack_and_unpack(&MIDDLE, [from, to], (1.0, 7, 1));
            pack_and_unpack(&LARGE, [from, to], (3.0, 48, 1));
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
        let small = [1, 3, 48]
            .into_iter()
            .flat_map(|blocks| SMALL.map(|len| (blocks, len)));
        for (blocks, len) in small.chain([(2, 65_535), (2, 65_536), (2, 65_537), (7, 1_000_003)]) {
            let machine = Machine::with_blocks(Some(blocks));
            let [a, b] =
                [3000, 3001].map(|seed| rounded(dtype, random(len, seed, seed as f32 - 2999.0)));
            let difference: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
            let expected = bits(dtype, &rounded(dtype, difference));
            for (place, shift) in (0..3).flat_map(|place| [(place, 0), (place, 1)]) {
                let spans = [
                    machine.upload_as(dtype, &a, shift),
                    machine.upload_as(dtype, &b, 6 * shift),
                    machine.upload_as(dtype, &vec![BEFORE; len], 3 * shift),
                ];
                let launch = Subtract {
                    a: &spans[0],
                    b: &spans[1],
                    out: &spans[place],
                    dtype,
                    count: len as u64,
                };
                let job = Job {
                    work: len as u64,
                    outs: std::slice::from_ref(&spans[place]),
                    types: &[dtype],
                    aligned: shift == 0,
                    rest: Vec::new(),
                };
                machine.on_all(&job, |kernels| kernels.subtract(&machine.stream, &launch));
                let got = machine.bits_as(dtype, &spans[place]);
                assert!(
                    got == expected,
                    "{dtype:?}, {len} elements, place {place}, {shift}"
                );
            }
        }
    }
}

/// Checks tensors of which every second one ends with `bad`; NaN lies between them.
fn check(sizes: &[usize], dtype: DataType, blocks: u32, bad: f32, whole_blocks: bool) {
    let machine = Machine::with_blocks(Some(blocks));
    let segments = segments_of(sizes, dtype, whole_blocks);
    // The largest and the smallest numbers are finite.
    let extremes = match dtype {
        DataType::F16 => [65_504.0, 6e-8],
        _ => [widen(DataType::Bf16, 0x7f7f), f32::from_bits(0x0001_0000)],
    };
    let mut values = vec![f32::NAN; extent(&segments)];
    let mut expected = vec![0.0_f32; segments.len() * FLAG_WORDS];
    for (index, segment) in segments.iter().enumerate() {
        let own = &mut values[segment.offset as usize..(segment.offset + segment.len) as usize];
        own.copy_from_slice(&random(own.len(), 4000, 1.0));
        for (i, value) in own.iter_mut().enumerate().step_by(3) {
            *value = extremes[i % 2];
        }
        if let (0, Some(last)) = (index % 2, own.last_mut()) {
            *last = bad;
            expected[index * FLAG_WORDS..][..FLAG_WORDS].fill(1.0);
        }
    }
    let vector = machine.upload_as(dtype, &values, if whole_blocks { 0 } else { 3 });
    let flags = machine.upload(&vec![0.0_f32; expected.len()]);
    let launch = FiniteCheck {
        vector: &vector,
        dtype,
        segments: &machine.segments(&segments),
        flags: &flags,
    };
    let job = Job {
        work: segments.iter().map(|segment| segment.len).sum(),
        outs: std::slice::from_ref(&flags),
        types: &[dtype],
        aligned: is_aligned(dtype, std::slice::from_ref(&vector), &segments),
        rest: Vec::new(),
    };
    machine.on_all(&job, |kernels| {
        kernels.finite_check(&machine.stream, &launch)
    });
    assert_eq!(machine.read(&flags), expected, "{dtype:?}, {bad}");
}

#[test]
fn only_tensors_with_a_non_finite_element_are_flagged() {
    for dtype in TYPES {
        for (blocks, bad) in [(1, f32::NAN), (7, f32::INFINITY), (48, f32::NEG_INFINITY)] {
            for whole_blocks in [true, false] {
                check(&many(), dtype, blocks, bad, whole_blocks);
            }
            check(&MIDDLE, dtype, blocks, bad, false);
            check(&LARGE, dtype, blocks, bad, true);
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
