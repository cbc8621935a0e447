//! Numbers and record formats that the kernels and the host agree on: `csrc/kernels/layout.h` in Rust.

use crate::ascend::DataType;
use crate::error::{Error, Result};
use crate::plan;
pub use crate::plan::{
    Segment, UNIT, coefficient_words, entries, entry_index, record_exponents, record_flags,
    record_words,
};

/// The most vectors of one launch.
pub const MAX_RADIX: usize = plan::MAX_RADIX as usize;

/// Element type of the vectors: the value of `aclDataType` for fp32.
pub const DTYPE_FLOAT: u64 = 0;
/// Element type of the vectors: fp16.
pub const DTYPE_FLOAT16: u64 = 1;
/// Element type of the vectors: bf16.
pub const DTYPE_BF16: u64 = 27;

/// Flag, of the [`coefficient_words`] of a tensor: 1 if it has a NaN or an infinity anywhere, else 0.
///
/// The weighted sum of a tensor is `post * (weight[0] * scale[0]^2 * x[0] + weight[1] * scale[1]^2 * x[1] + ...)`. Scales, for
/// weights that do not fit fp32, and `post` are powers of two, or 0 for 1.
///
/// Kappa and the norms are statistics: zero where only weights were asked for, NaN where the flag is set, and at most the
/// largest fp32 number.
pub const COEFFICIENT_FLAGS: usize = 0;
/// Factor of the whole sum.
pub const COEFFICIENT_POST: usize = 1;
/// Kappa, how much cancelled: the largest ratio, over the nodes of the tree, of the summed squared norms of a node's weighted
/// vectors to the squared norm of the node.
pub const COEFFICIENT_KAPPA: usize = 2;
/// Euclidean norm of the result.
pub const COEFFICIENT_RESULT_NORM: usize = 3;
/// First of the weights.
pub const COEFFICIENT_WEIGHT: usize = plan::COEFFICIENT_WEIGHT;

/// First of the scales of `radix` vectors.
pub const fn coefficient_scale(radix: usize) -> usize {
    COEFFICIENT_WEIGHT + radix
}

/// First of what the fp32 weights of `radix` vectors leave out, where the weighted vectors nearly cancel; else zeros.
pub const fn coefficient_weight_low(radix: usize) -> usize {
    COEFFICIENT_WEIGHT + 2 * radix
}

/// First of the Euclidean norms of `radix` vectors.
pub const fn coefficient_leaf_norm(radix: usize) -> usize {
    COEFFICIENT_WEIGHT + 3 * radix
}

/// 32-bit words of an entry of [`FiniteCheck`](super::FiniteCheck)`::flags`: all 1.0 or, as before the first check, all 0.
pub const FLAG_WORDS: usize = 8;

/// Bits of the flags word of a record, or of the coefficients of a tensor, that never came. Whoever waits for them fills
/// their memory with bytes of [`MISSING_BYTE`] before.
pub const MISSING: u32 = u32::MAX;
/// What a block adds to its receipt instead of 1 if something never came that other ranks were to send; so many blocks may
/// be launched between two guards at most.
pub const MISSED_SIGNATURE: u32 = 4096;
/// Why a guard found a receipt wrong: blocks of this rank failed.
pub const REASON_OWN: u32 = 1;
/// Why a guard found a receipt wrong: all blocks ran, but what other ranks were to send never came.
pub const REASON_OTHERS: u32 = 2;
/// Added to the number of signatures that are due: the guard spoils and tells, and does not fail its stream.
pub const GUARD_GOES_ON: u64 = 1 << 32;
/// All four bytes of [`MISSING`]; as a float of any type they are NaN.
pub const MISSING_BYTE: u8 = 0xff;
const _: () = assert!(MISSING == u32::from_ne_bytes([MISSING_BYTE; 4]));

/// The exponent of a vector that is zero everywhere.
pub const ZERO_EXPONENT: i32 = -1024;

/// The place of a tensor's record numbers in the list of record numbers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reference {
    /// Position of the first number.
    pub first: u64,
    /// Number of record numbers.
    pub count: u64,
}

/// The code of an element type that the kernels compute with.
pub(super) fn dtype_code(dtype: DataType, kernel: &str) -> Result<u64> {
    match dtype {
        DataType::F32 => Ok(DTYPE_FLOAT),
        DataType::F16 => Ok(DTYPE_FLOAT16),
        DataType::Bf16 => Ok(DTYPE_BF16),
        other => Err(Error::unsupported(format!(
            "{kernel}: elements of type {other:?}; the kernels take F32, F16 and Bf16"
        ))),
    }
}

/// Checks the number of vectors of a launch.
pub(super) fn check_radix(radix: usize, kernel: &str) -> Result<()> {
    if radix == 0 || radix > MAX_RADIX {
        return Err(Error::invalid(format!(
            "{kernel}: {radix} vectors, not 1 to {MAX_RADIX}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of `constexpr TYPE NAME = VALUE;` in the header.
    fn constant(name: &str) -> i64 {
        let header = include_str!("../../csrc/kernels/layout.h");
        let marker = format!(" {name} = ");
        let line = header
            .lines()
            .find(|line| line.starts_with("constexpr") && line.contains(&marker))
            .unwrap_or_else(|| panic!("no {name} in layout.h"));
        let value = line
            .split(&marker)
            .nth(1)
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        value.parse().unwrap()
    }

    #[test]
    fn constants_are_those_of_the_kernels() {
        macro_rules! same {
            ($($name:ident)*) => {
                $(assert_eq!(i128::from(constant(stringify!($name))), $name as i128, stringify!($name));)*
            };
        }
        same!(UNIT MAX_RADIX DTYPE_FLOAT DTYPE_FLOAT16 DTYPE_BF16 FLAG_WORDS ZERO_EXPONENT MISSING MISSED_SIGNATURE);
        same!(COEFFICIENT_FLAGS COEFFICIENT_POST COEFFICIENT_KAPPA COEFFICIENT_RESULT_NORM COEFFICIENT_WEIGHT);
        same!(REASON_OWN REASON_OTHERS GUARD_GOES_ON);
    }

    #[test]
    fn tables_have_the_words_of_the_kernels() {
        let bytes = |name: &str| usize::try_from(8 * constant(name)).unwrap();
        assert_eq!(size_of::<Segment>(), bytes("SEGMENT_WORDS"));
        assert_eq!(size_of::<Reference>(), bytes("REFERENCE_WORDS"));
        let segment = Segment {
            offset: 10,
            len: 11,
            first_unit: 12,
            tensor: 13,
        };
        let word = |name: &str| segment.words()[usize::try_from(constant(name)).unwrap()];
        assert_eq!(word("SEGMENT_OFFSET"), 10);
        assert_eq!(word("SEGMENT_LEN"), 11);
        assert_eq!(word("SEGMENT_FIRST_UNIT"), 12);
        assert_eq!(word("SEGMENT_TENSOR"), 13);
    }

    #[test]
    fn records_are_laid_out_as_documented() {
        assert_eq!(record_words(2), 16);
        assert_eq!(record_words(8), 88);
        for radix in 1..=MAX_RADIX {
            let mut next = 0;
            for row in 0..radix {
                for column in row..radix {
                    assert_eq!(entry_index(row, column, radix), next);
                    next += 1;
                }
            }
            assert_eq!(entries(radix), next);
            assert!(record_words(radix) > record_flags(radix));
            assert_eq!(record_words(radix) % 8, 0);
            assert!(coefficient_words(radix) >= coefficient_leaf_norm(radix) + radix);
            assert_eq!(coefficient_words(radix) % 8, 0);
        }
    }
}
