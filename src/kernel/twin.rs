//! The CPU twin of the kernels, built for several levels of instructions: the fastest that this processor runs.
//!
//! All levels give the same bits: they never fuse a multiply with an add, and wider instructions compute the same.

/// The kernel binary of a level.
pub(super) struct Twin {
    /// Level of instructions, as compilers name it.
    pub(super) level: &'static str,
    pub(super) binary: &'static [u8],
    runs: fn() -> bool,
}

/// The binaries, the slowest first; the first one runs everywhere.
#[cfg(target_arch = "x86_64")]
const TWINS: [Twin; 3] = [
    Twin {
        level: "x86-64",
        binary: include_bytes!(concat!(env!("OUT_DIR"), "/adasum_kernels.o")),
        runs: || true,
    },
    Twin {
        level: "x86-64-v3",
        binary: include_bytes!(concat!(env!("OUT_DIR"), "/adasum_kernels_x86-64-v3.o")),
        runs: level_3,
    },
    Twin {
        level: "x86-64-v4",
        binary: include_bytes!(concat!(env!("OUT_DIR"), "/adasum_kernels_x86-64-v4.o")),
        runs: level_4,
    },
];

#[cfg(not(target_arch = "x86_64"))]
const TWINS: [Twin; 1] = [Twin {
    level: "baseline",
    binary: include_bytes!(concat!(env!("OUT_DIR"), "/adasum_kernels.o")),
    runs: || true,
}];

#[cfg(target_arch = "x86_64")]
fn level_3() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe")
}

#[cfg(target_arch = "x86_64")]
fn level_4() -> bool {
    level_3()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// The binaries that this processor runs, the fastest last.
pub(super) fn runnable() -> impl Iterator<Item = Twin> {
    TWINS.into_iter().filter(|twin| (twin.runs)())
}

/// The binary of the fastest twin.
pub(super) fn binary() -> &'static [u8] {
    runnable().last().map_or(&[], |twin| {
        log::debug!("kernels: the CPU twin for {}", twin.level);
        twin.binary
    })
}

#[cfg(test)]
mod tests {
    use super::runnable;
    use crate::ascend::{Buffer, DataType, Device, Span, Stream};
    use crate::cache;
    use crate::kernel::layout::{coefficient_words, record_words};
    use crate::kernel::{Coefficients, Fold, Gram, Kernels, SegmentTable, Vectors, WeightedSum};

    const LEN: usize = 9001;

    /// What vectors are made of.
    #[derive(Clone, Copy, Debug)]
    enum Numbers {
        /// Finite ones of every size: exponents below the largest.
        All,
        /// From 1 to 1.5, so that vectors nearly depend on each other and are summed exactly.
        Alike,
    }

    /// A byte of element memory, of which `noise` is random.
    fn byte(numbers: Numbers, dtype: DataType, place: usize, noise: u8) -> u8 {
        match (numbers, dtype, dtype.size() - place % dtype.size()) {
            (Numbers::All, ..) => noise & 0xbb,
            (Numbers::Alike, DataType::F16, 1) => 0x3c | noise & 1,
            (Numbers::Alike, DataType::F16, _) => noise,
            (Numbers::Alike, _, 1) => 0x3f,
            (Numbers::Alike, _, 2) => 0x80 | noise & 0x3f,
            (Numbers::Alike, ..) => noise,
        }
    }

    /// What a reduction of `radix` vectors leaves behind.
    fn outcome(
        device: &Device,
        kernels: &Kernels,
        numbers: Numbers,
        dtype: DataType,
        radix: usize,
    ) -> Vec<u8> {
        let stream = Stream::new(device).unwrap();
        let zeroed = |bytes: usize| Buffer::zeroed(device, bytes).unwrap().span();
        let vectors: Vec<Span> = (0..radix)
            .map(|i| {
                let noise =
                    |k: usize| u8::try_from((k * 2_654_435_761 + i * 40_503) >> 9 & 0xff).unwrap();
                let bytes: Vec<u8> = (0..LEN * dtype.size())
                    .map(|k| byte(numbers, dtype, k, noise(k)))
                    .collect();
                Buffer::from_slice(device, &bytes).unwrap().span()
            })
            .collect();
        let vectors = Vectors::new(device, &vectors).unwrap();
        let segments = SegmentTable::one(device, LEN as u64).unwrap();
        let record = 4 * record_words(radix);
        let partials = zeroed(LEN.div_ceil(4096) * record);
        let records = zeroed(record);
        let coefficients = zeroed(4 * coefficient_words(radix));
        let out = zeroed(LEN * dtype.size());
        let gram = Gram {
            vectors: &vectors,
            dtype,
            segments: &segments,
            partials: &partials,
        };
        let fold = Fold {
            partials: &partials,
            segments: &segments,
            records: &records,
            radix,
        };
        let solve = Coefficients {
            records: &records,
            refs: &Buffer::from_slice(device, &[0_u64, 1]).unwrap().span(),
            indices: &Buffer::from_slice(device, &[0_u64]).unwrap().span(),
            out: &coefficients,
            radix,
            tensor_count: 1,
        };
        let sum = WeightedSum {
            vectors: &vectors,
            dtype,
            segments: &segments,
            coefficients: &coefficients,
            out: &out,
            copies: None,
        };
        kernels.gram(&stream, &gram).unwrap();
        kernels.fold(&stream, &fold).unwrap();
        kernels.coefficients(&stream, &solve).unwrap();
        kernels.weighted_sum(&stream, &sum).unwrap();
        stream.synchronize().unwrap();
        let mut all = Vec::new();
        for span in [&partials, &records, &coefficients, &out] {
            let mut bytes = vec![0_u8; span.len()];
            span.read(&mut bytes).unwrap();
            all.extend(bytes);
        }
        all
    }

    #[test]
    fn all_levels_give_the_same_bits() {
        let device = Device::open(0).unwrap();
        let kernels: Vec<(&str, Kernels)> = runnable()
            .map(|twin| {
                let folder = cache::unpack(&[("adasum_kernels.o", twin.binary)]).unwrap();
                let file = folder.join("adasum_kernels.o");
                (twin.level, Kernels::load_file(&device, &file).unwrap())
            })
            .collect();
        assert!(!kernels.is_empty());
        for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
            for (numbers, radix) in [
                (Numbers::All, 2),
                (Numbers::All, 3),
                (Numbers::All, 8),
                (Numbers::Alike, 2),
                (Numbers::Alike, 4),
                (Numbers::Alike, 7),
                (Numbers::Alike, 8),
            ] {
                let expected = outcome(&device, &kernels[0].1, numbers, dtype, radix);
                for (level, kernels) in &kernels[1..] {
                    let got = outcome(&device, kernels, numbers, dtype, radix);
                    assert!(
                        got == expected,
                        "{level}, {numbers:?}, {dtype:?}, radix {radix}"
                    );
                }
            }
        }
    }
}
