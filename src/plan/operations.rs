//! How much arithmetic the kernels do: operations of the vector unit, each of one instruction on one fp32 element.
//!
//! The strict twin counts them (`csrc/kernels/README.md`, "Operations"); `kernels::counts` compares.

use super::{DType, MAX_RADIX};

/// Operations an element, of fp32 and of a 16-bit type.
type Operations = [f64; 2];

/// `gram`, from radix 2 on. Two vectors are summed in fp32; more of them in two-float numbers, to which products of fp32
/// add an error each, and those of 16-bit types, which are exact, do not.
const GRAM: [Operations; 7] = [
    [3.9, 5.9],
    [100.5, 57.0],
    [162.9, 93.4],
    [239.7, 138.5],
    [331.6, 190.2],
    [437.7, 252.1],
    [559.0, 321.2],
];

fn of(operations: Operations, dtype: DType) -> f64 {
    operations[usize::from(dtype != DType::F32)]
}

/// Operations of `gram` for each element of a vector, for 2 to [`MAX_RADIX`] vectors.
pub fn gram_operations(radix: u32, dtype: DType) -> f64 {
    of(GRAM[radix.clamp(2, MAX_RADIX) as usize - 2], dtype)
}

/// Operations of `weighted_sum` for each element of the result: a product for each vector, a sum between two; 16-bit
/// types are cast to fp32 and back.
pub fn sum_operations(radix: u32, dtype: DType) -> f64 {
    let radix = f64::from(radix);
    of([2.0 * radix - 1.0, 3.0 * radix], dtype)
}
