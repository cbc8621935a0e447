// Numbers and record formats that the kernels and the host agree on.
//
// src/kernel/layout.rs repeats them; a test reads this file and compares. Keep one constant on one line.
#ifndef ADASUM_LAYOUT_H
#define ADASUM_LAYOUT_H

#include "adasum_ascendc.h"

namespace adasum {

// A unit is the grain of all work: no result depends on how units are spread over cores.
constexpr uint32_t UNIT = 4096;
constexpr uint32_t MAX_RADIX = 8;

// aclDataType values.
constexpr uint32_t DTYPE_FLOAT = 0;
constexpr uint32_t DTYPE_FLOAT16 = 1;
constexpr uint32_t DTYPE_BF16 = 27;

// Segment: offset, len, first_unit, tensor. Segments are in the order of their units.
constexpr uint32_t SEGMENT_WORDS = 4;
constexpr uint32_t SEGMENT_OFFSET = 0;
constexpr uint32_t SEGMENT_LEN = 1;
constexpr uint32_t SEGMENT_FIRST_UNIT = 2;
constexpr uint32_t SEGMENT_TENSOR = 3;

// Reference: first, count of a tensor's records in the list of record numbers. References are in the order of the list.
constexpr uint32_t REFERENCE_WORDS = 2;

// Coefficients of a tensor, fp32 words: the sum over i of weight[i] * scale[i] * scale[i] * x[i], times post.
// Scales and post are powers of two, or 0, which means 1.
// Kappa and the norms are statistics (tree.h): NaN where the flag is set, and at most the largest fp32 number.
// Behind the words with a name here stand r weights, r scales, r low parts of weights (what the fp32 weights leave out, where
// the weighted vectors nearly cancel; else zeros), and the r Euclidean norms of the vectors.
constexpr uint32_t COEFFICIENT_FLAGS = 0;
constexpr uint32_t COEFFICIENT_POST = 1;
constexpr uint32_t COEFFICIENT_KAPPA = 2;
constexpr uint32_t COEFFICIENT_RESULT_NORM = 3;
constexpr uint32_t COEFFICIENT_WEIGHT = 4;

// A flag of finite_check, fp32 words: all 1 or all 0.
constexpr uint32_t FLAG_WORDS = 8;

// The exponent of a vector that is zero everywhere.
constexpr int32_t ZERO_EXPONENT = -1024;

// Squared norm of a unit that fp32 products serve well; outside of it the vector is scaled by 2^-84 or 2^85.
constexpr int32_t DIAGONAL_LOG2_MIN = -80;
constexpr int32_t DIAGONAL_LOG2_MAX = 90;
constexpr int32_t EXPONENT_OF_HUGE = 84;
constexpr int32_t EXPONENT_OF_TINY = -85;

// Bits of the flags word of a record, or of the coefficients of a tensor, that never came: whoever waits for them fills
// their memory with ones before.
constexpr uint32_t MISSING = 4294967295;

// What a block adds to its receipt instead of 1 if something never came that other ranks were to send. So many blocks are
// launched between two guards at most.
constexpr uint32_t MISSED_SIGNATURE = 4096;

// Why a guard found a receipt wrong: blocks of this rank failed; all ran, but what others were to send never came.
constexpr uint32_t REASON_OWN = 1;
constexpr uint32_t REASON_OTHERS = 2;
// Added to the number of signatures that are due (2^32): the guard spoils and tells, and does not fail its stream.
constexpr uint64_t GUARD_GOES_ON = 4294967296;

// Entries of the upper triangle of a Gram matrix, in row order.
__aicore__ inline constexpr uint32_t entries(uint32_t radix) { return radix * (radix + 1) / 2; }

__aicore__ inline constexpr uint32_t entry_index(uint32_t row, uint32_t column, uint32_t radix) {
    return row * radix - row * (row + 1) / 2 + column;
}

// Record, fp32 words: hi and lo of each entry, an exponent per vector, the flags; rounded up to 32 bytes.
__aicore__ inline constexpr uint32_t record_exponents(uint32_t radix) { return 2 * entries(radix); }

__aicore__ inline constexpr uint32_t record_flags(uint32_t radix) { return record_exponents(radix) + radix; }

__aicore__ inline constexpr uint32_t record_words(uint32_t radix) { return (record_flags(radix) + 1 + 7) / 8 * 8; }

__aicore__ inline constexpr uint32_t coefficient_scale(uint32_t radix) { return COEFFICIENT_WEIGHT + radix; }

__aicore__ inline constexpr uint32_t coefficient_weight_low(uint32_t radix) { return COEFFICIENT_WEIGHT + 2 * radix; }

__aicore__ inline constexpr uint32_t coefficient_leaf_norm(uint32_t radix) { return COEFFICIENT_WEIGHT + 3 * radix; }

// Rounded up to 32 bytes.
__aicore__ inline constexpr uint32_t coefficient_words(uint32_t radix) {
    return (COEFFICIENT_WEIGHT + 4 * radix + 7) / 8 * 8;
}

// What a kernel may take of the unified buffer, on every chip, beside 32 bytes for its signature and 64 for the addresses of
// its vectors.
constexpr uint32_t UB_BUDGET = 160 * 1024;

} // namespace adasum

#endif
