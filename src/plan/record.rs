//! Records: the Gram matrix of vectors on a part of a tensor, as plans count it and kernels write it.

/// The words of coefficients that are the same for any number of vectors: four for the tensor, and then the first weight.
pub(crate) const COEFFICIENT_WEIGHT: usize = 4;

/// 32-bit words of the weights and statistics of a tensor of `radix` vectors, which `coefficients` writes.
pub const fn coefficient_words(radix: usize) -> usize {
    (COEFFICIENT_WEIGHT + 4 * radix).next_multiple_of(8)
}

/// Entries of the upper triangle of a Gram matrix of `radix` vectors, in row order.
pub const fn entries(radix: usize) -> usize {
    radix * (radix + 1) / 2
}

/// Position of entry (`row`, `column`), `row <= column`, among the [`entries`].
pub const fn entry_index(row: usize, column: usize, radix: usize) -> usize {
    row * radix + column - row * (row + 1) / 2
}

/// Word of the first exponent in a record; before it stand `hi` and `lo` of each entry.
///
/// Entry (i, j) is `(hi + lo) * 2^(exponent[i] + exponent[j])`.
pub const fn record_exponents(radix: usize) -> usize {
    2 * entries(radix)
}

/// Word of a record's flag: 1 if it has a NaN or an infinity, else 0.
pub const fn record_flags(radix: usize) -> usize {
    record_exponents(radix) + radix
}

/// 32-bit words of a record.
pub const fn record_words(radix: usize) -> usize {
    (record_flags(radix) + 1).next_multiple_of(8)
}
