//! Values to compute with.

use crate::cli::lab::element_type::ElementType;

/// `bytes` of elements of `dtype` between -1 and 1, the same for the same seed.
pub(crate) fn random(dtype: ElementType, bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        // xorshift64 (Marsaglia 2003); its upper 24 bits make a number of fp32.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let mut values = Vec::with_capacity(bytes + 4);
    while values.len() < bytes {
        match dtype {
            ElementType::F32 => values.extend(next().to_ne_bytes()),
            ElementType::F16 => values.extend(half::f16::from_f32(next()).to_ne_bytes()),
            ElementType::Bf16 => values.extend(half::bf16::from_f32(next()).to_ne_bytes()),
        }
    }
    values.truncate(bytes);
    values
}
