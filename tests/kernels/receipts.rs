//! Receipts: each kernel signs once a block when all went well, and a guard spoils results where a signature is missing.

use adasum::ascend::{Buffer, DataType, Span, Stream};
use adasum::kernel::layout::{
    COEFFICIENT_FLAGS, COEFFICIENT_WEIGHT, MISSED_SIGNATURE, MISSING, MISSING_BYTE, Segment,
    coefficient_words, record_flags,
};
use adasum::kernel::{
    Coefficients, Culprit, FiniteCheck, Fold, Gram, Guard, Kernels, Move, OnMissing, Queue, Reason,
    Receipt, SegmentTable, Subtract, Tensors, WeightedSum,
};

use super::machine::{Machine, WORDS, aligned, extent};
use super::reference::random;

const TYPE: DataType = DataType::F32;
const COUNTS: [usize; 4] = [9000, 3, 70_000, 1];

/// All that kernels take of two vectors, in device memory.
struct Work {
    segments: Vec<Segment>,
    table: SegmentTable,
    vectors: [Span; 2],
    partials: Span,
    records: Span,
    refs: Span,
    indices: Span,
    coefficients: Span,
    flags: Span,
    out: Span,
}

impl Work {
    fn new(machine: &Machine) -> Self {
        let segments = aligned(&COUNTS, TYPE);
        let len = extent(&segments).next_multiple_of(16);
        let table = machine.segments(&segments);
        let tensors = segments.len();
        Work {
            vectors: [1, 2].map(|seed| machine.upload(&random(len, 3000 + seed, 1.0))),
            partials: machine.untouched(table.units as usize * WORDS),
            records: machine.untouched(tensors * WORDS),
            refs: machine.upload(
                &(0..tensors as u64)
                    .flat_map(|i| [i, 1])
                    .collect::<Vec<u64>>(),
            ),
            indices: machine.upload(&(0..tensors as u64).collect::<Vec<u64>>()),
            coefficients: machine.untouched(tensors * coefficient_words(2)),
            flags: machine.upload(&vec![0.0_f32; tensors * 8]),
            out: machine.untouched(len),
            segments,
            table,
        }
    }

    fn gram(&self, machine: &Machine, kernels: &Kernels, queue: Queue<'_>) {
        let vectors = machine.vectors(&self.vectors);
        let gram = Gram {
            vectors: &vectors,
            dtype: TYPE,
            segments: &self.table,
            partials: &self.partials,
        };
        kernels.gram(queue, &gram).unwrap();
    }

    fn fold(&self, kernels: &Kernels, queue: Queue<'_>) {
        let fold = Fold {
            partials: &self.partials,
            segments: &self.table,
            records: &self.records,
            radix: 2,
        };
        kernels.fold(queue, &fold).unwrap();
    }

    fn solve(&self, kernels: &Kernels, queue: Queue<'_>) {
        let solve = Coefficients {
            records: &self.records,
            refs: &self.refs,
            indices: &self.indices,
            out: &self.coefficients,
            radix: 2,
            tensor_count: self.segments.len() as u64,
        };
        kernels.coefficients(queue, &solve).unwrap();
    }

    fn sum(&self, machine: &Machine, kernels: &Kernels, queue: Queue<'_>) {
        let vectors = machine.vectors(&self.vectors);
        let sum = WeightedSum {
            vectors: &vectors,
            dtype: TYPE,
            segments: &self.table,
            coefficients: &self.coefficients,
            out: &self.out,
            copies: None,
        };
        kernels.weighted_sum(queue, &sum).unwrap();
    }

    /// Every kernel once.
    fn all(&self, machine: &Machine, kernels: &Kernels, queue: Queue<'_>) {
        let tensors: Vec<Span> = (self.segments.iter())
            .map(|segment| machine.upload(&vec![2.5_f32; segment.len as usize]))
            .collect();
        let tensors = Tensors::new(&machine.device, &tensors).unwrap();
        let fused = machine.untouched(self.out.len() / 4);
        let moved = Move {
            tensors: &tensors,
            tensor_type: TYPE,
            fused: &fused,
            fused_type: TYPE,
            factor: 0.5,
            segments: &self.table,
        };
        kernels.pack(queue, &moved).unwrap();
        self.gram(machine, kernels, queue);
        self.fold(kernels, queue);
        self.solve(kernels, queue);
        self.sum(machine, kernels, queue);
        kernels.unpack(queue, &moved).unwrap();
        let difference = Subtract {
            a: &self.vectors[0],
            b: &self.vectors[1],
            out: &fused,
            dtype: TYPE,
            count: COUNTS[0] as u64,
        };
        kernels.subtract(queue, &difference).unwrap();
        let check = FiniteCheck {
            vector: &self.out,
            dtype: TYPE,
            segments: &self.table,
            flags: &self.flags,
        };
        kernels.finite_check(queue, &check).unwrap();
    }
}

/// Fills entry `index` of a table of `words` each as if it had not come.
fn forget(stream: &Stream, table: &Span, index: usize, words: usize) {
    let bytes = 4 * words;
    let entry = table.slice(index * bytes..(index + 1) * bytes).unwrap();
    stream.fill(&entry, MISSING_BYTE).unwrap();
}

/// A receipt that some blocks have not signed.
fn unsigned(machine: &Machine, kernels: &Kernels) -> Receipt {
    let work = Work::new(machine);
    let receipt = Receipt::new(&machine.device).unwrap();
    forget(&machine.stream, &work.coefficients, 2, coefficient_words(2));
    work.sum(machine, kernels, receipt.on(&machine.stream));
    machine.stream.synchronize().unwrap();
    receipt
}

/// Whether a guard of `receipt` spoils the first element of a tensor, and with it all that the chip must; and why.
fn spoilt(
    machine: &Machine,
    (arch, kernels): (u32, &Kernels),
    receipt: &Receipt,
) -> Option<Option<Culprit>> {
    let stream = Stream::new(&machine.device).unwrap();
    let place = machine.upload(&[1.0_f32; 16]);
    let places = Tensors::new(&machine.device, std::slice::from_ref(&place)).unwrap();
    let reason = Reason::new(&machine.device).unwrap();
    let guard = Guard {
        receipt,
        places: &places,
        dtype: TYPE,
        reason: &reason,
        on_missing: OnMissing::Fail,
    };
    kernels.guard(&stream, &guard).unwrap();
    let failed = stream.synchronize().is_err();
    let mut values = [0.0_f32; 16];
    place.read(&mut values).unwrap();
    let spoilt = values.iter().take_while(|value| value.is_nan()).count();
    let expected = match (failed, arch) {
        (true, 1001) => panic!("arch 1001 cannot stop"),
        (true, _) => 1,
        (false, 1001) if spoilt > 0 => 8,
        (false, _) => 0,
    };
    assert_eq!(spoilt, expected, "arch {arch}");
    assert!(values[spoilt..].iter().all(|&value| value == 1.0));
    let told = reason.read().unwrap();
    assert!(told.is_none() || spoilt > 0);
    // A receipt that was found wrong before tells no more.
    (spoilt > 0).then_some(told)
}

/// However many have signed, whoever failed is told from whoever missed what others were to send.
#[test]
fn a_guard_tells_why_by_any_number_of_signatures() {
    let machine = Machine::with_blocks(Some(1));
    for (arch, kernels) in machine.each() {
        for (due, missed, failed) in [
            (2049_u16, 1_u16, 0_u16),
            (2148, 48, 0),
            (4000, 1000, 0),
            (4095, 4095, 0),
            (4095, 0, 1),
            (4000, 1000, 1),
        ] {
            let receipt = Receipt::new(&machine.device).unwrap();
            let place = receipt.signed_by(due.into()).unwrap();
            let well = due - missed - failed;
            let signed = f32::from(well) + f32::from(missed) * MISSED_SIGNATURE as f32;
            place.write(&[signed]).unwrap();
            let culprit = match failed {
                0 => Culprit::Others,
                _ => Culprit::Own,
            };
            let told = spoilt(&machine, (arch, kernels), &receipt);
            assert_eq!(
                told,
                Some(Some(culprit)),
                "arch {arch}: {due}, {missed}, {failed}"
            );
        }
    }
}

#[test]
fn every_kernel_signs_once_a_block_and_changes_nothing_else() {
    for blocks in [1, 2, 3, 7, 40, 1000] {
        let machine = Machine::with_blocks(Some(blocks));
        for (arch, kernels) in machine.each() {
            let [plain, signed] = [0, 1].map(|_| Work::new(&machine));
            let receipt = Receipt::new(&machine.device).unwrap();
            plain.all(&machine, kernels, (&machine.stream).into());
            signed.all(&machine, kernels, receipt.on(&machine.stream));
            machine.stream.synchronize().unwrap();
            assert_eq!(spoilt(&machine, (arch, kernels), &receipt), None);
            for (with, without) in [
                (&signed.partials, &plain.partials),
                (&signed.records, &plain.records),
                (&signed.coefficients, &plain.coefficients),
                (&signed.out, &plain.out),
                (&signed.flags, &plain.flags),
            ] {
                assert!(
                    machine.bits(with) == machine.bits(without),
                    "arch {arch}, {blocks} blocks"
                );
            }
            // Once more, and with nothing in between.
            signed.gram(&machine, kernels, receipt.on(&machine.stream));
            machine.stream.synchronize().unwrap();
            assert_eq!(spoilt(&machine, (arch, kernels), &receipt), None);
            assert_eq!(spoilt(&machine, (arch, kernels), &receipt), None);
        }
    }
}

/// Launches that are dropped with their stream, while another stream goes on.
#[test]
fn work_that_was_dropped_is_missed_then_and_later() {
    let machine = Machine::with_blocks(Some(5));
    let long = [1, 2].map(|_| Buffer::zeroed(&machine.device, 256 << 20).unwrap().span());
    for (arch, kernels) in machine.each() {
        let aborted = Stream::new(&machine.device).unwrap();
        for _ in 0..4 {
            aborted.copy(&long[1], &long[0]).unwrap();
        }
        let work = Work::new(&machine);
        let receipt = Receipt::new(&machine.device).unwrap();
        work.gram(&machine, kernels, receipt.on(&machine.stream));
        work.fold(kernels, receipt.on(&aborted));
        assert!(aborted.abort().unwrap().is_some());
        machine.stream.synchronize().unwrap();
        let own = Some(Some(Culprit::Own));
        assert_eq!(spoilt(&machine, (arch, kernels), &receipt), own);
        // Whatever signs it afterwards.
        for _ in 0..2 {
            work.gram(&machine, kernels, receipt.on(&machine.stream));
            machine.stream.synchronize().unwrap();
            assert_eq!(spoilt(&machine, (arch, kernels), &receipt), Some(None));
        }
    }
}

/// `fold` does not sign for it, the others sign that they missed it, and nothing plausible comes out.
#[test]
fn what_never_came_is_neither_signed_nor_used() {
    let machine = Machine::with_blocks(Some(4));
    let stream = &machine.stream;
    for (arch, kernels) in machine.each() {
        let work = Work::new(&machine);
        work.gram(&machine, kernels, stream.into());
        let marked = |table: &Span, each: usize, flag: usize| -> Vec<bool> {
            let words = machine.bits(table);
            let entries = words.chunks(each);
            entries.map(|entry| entry[flag] == MISSING).collect()
        };
        // A unit of tensor 2.
        forget(stream, &work.partials, 5, WORDS);
        let receipt = Receipt::new(&machine.device).unwrap();
        work.fold(kernels, receipt.on(stream));
        let missing = marked(&work.records, WORDS, record_flags(2));
        assert_eq!(missing, [false, false, true, false]);
        // This rank's own gram is to blame.
        let own = Some(Some(Culprit::Own));
        assert_eq!(spoilt(&machine, (arch, kernels), &receipt), own);
        // So its record.
        let receipt = Receipt::new(&machine.device).unwrap();
        work.solve(kernels, receipt.on(stream));
        let missing = marked(&work.coefficients, coefficient_words(2), COEFFICIENT_FLAGS);
        assert_eq!(missing, [false, false, true, false]);
        let weights = machine.read(&work.coefficients);
        for (tensor, entry) in weights.chunks(coefficient_words(2)).enumerate() {
            assert!(
                entry[COEFFICIENT_WEIGHT..][..2]
                    .iter()
                    .all(|x| x.is_finite() == (tensor != 2))
            );
        }
        let others = Some(Some(Culprit::Others));
        assert_eq!(spoilt(&machine, (arch, kernels), &receipt), others);
        // So its weights, and those of a tensor that were to come from elsewhere.
        forget(stream, &work.coefficients, 0, coefficient_words(2));
        let receipt = Receipt::new(&machine.device).unwrap();
        work.sum(&machine, kernels, receipt.on(stream));
        let out = machine.read(&work.out);
        for (tensor, segment) in work.segments.iter().enumerate() {
            let part = &out[segment.offset as usize..][..segment.len as usize];
            let lost = tensor % 2 == 0;
            assert!(part.iter().all(|x| x.is_nan() == lost), "tensor {tensor}");
        }
        assert_eq!(spoilt(&machine, (arch, kernels), &receipt), others);
        // Both: what failed here comes first.
        let receipt = Receipt::new(&machine.device).unwrap();
        forget(stream, &work.partials, 5, WORDS);
        work.fold(kernels, receipt.on(stream));
        work.sum(&machine, kernels, receipt.on(stream));
        assert_eq!(spoilt(&machine, (arch, kernels), &receipt), own);
    }
}

/// Elements of both sizes, and more places than a window of the kernel holds.
#[test]
fn a_guard_spoils_the_first_element_of_every_place() {
    const UNTOUCHED: u8 = 0x3c;
    let machine = Machine::with_blocks(Some(3));
    for (arch, kernels) in machine.each() {
        for (dtype, count) in [
            (DataType::F32, 200),
            (DataType::F16, 65),
            (DataType::Bf16, 1),
            (DataType::F32, 0),
        ] {
            for (good, on_missing) in [
                (true, OnMissing::Fail),
                (false, OnMissing::Fail),
                (true, OnMissing::Continue),
                (false, OnMissing::Continue),
            ] {
                let places: Vec<Span> = (0..count)
                    .map(|_| machine.upload(&[UNTOUCHED; 64]))
                    .collect();
                let tensors = Tensors::new(&machine.device, &places).unwrap();
                let receipt = match good {
                    true => Receipt::new(&machine.device).unwrap(),
                    false => unsigned(&machine, kernels),
                };
                let stream = Stream::new(&machine.device).unwrap();
                let reason = Reason::new(&machine.device).unwrap();
                let guard = Guard {
                    receipt: &receipt,
                    places: &tensors,
                    dtype,
                    reason: &reason,
                    on_missing,
                };
                kernels.guard(&stream, &guard).unwrap();
                let goes_on = stream.synchronize().is_ok();
                let may = good || arch == 1001 || on_missing == OnMissing::Continue;
                assert_eq!(goes_on, may, "arch {arch}");
                assert_eq!(reason.is_needed(), on_missing == OnMissing::Continue);
                let culprit = (!good).then_some(Culprit::Others);
                assert_eq!(reason.read().unwrap(), culprit);
                let spoilt = match (good, arch) {
                    (true, _) => 0,
                    (false, 1001) => 32,
                    (false, _) => dtype.size(),
                };
                for place in &places {
                    let mut bytes = [0_u8; 64];
                    place.read(&mut bytes).unwrap();
                    let (first, rest) = bytes.split_at(spoilt);
                    assert!(first.iter().all(|&byte| byte == MISSING_BYTE));
                    assert!(rest.iter().all(|&byte| byte == UNTOUCHED));
                }
            }
        }
    }
}
