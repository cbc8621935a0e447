//! How much arithmetic the kernels do: operations of the vector unit, each of one instruction on one fp32 element.
//!
//! The strict twin counts them (`csrc/kernels/README.md`, "Operations"); `kernels::counts` compares.

use super::{DType, MAX_RADIX};

/// Operations an element, of fp32 and of a 16-bit type.
type Operations = [f64; 2];

/// `gram`, from radix 2 on, of vectors that fp32 sums serve. Units of more than two vectors that could nearly cancel are summed
/// again in two-float numbers (`csrc/kernels/separation.h`), 6 to 14 times as many operations. Gradients that are so
/// near to each other are rare, so the model leaves that out.
const GRAM: [Operations; 7] = [
    [3.9, 5.9],
    [7.8, 10.8],
    [13.0, 17.0],
    [19.5, 24.5],
    [27.3, 33.3],
    [36.7, 43.6],
    [42.6, 50.6],
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
