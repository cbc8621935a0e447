// Ordered two-float sums of Gram records whose vectors may carry different exponents.
#ifndef ADASUM_RECORDS_H
#define ADASUM_RECORDS_H

#include "adasum_ascendc.h"
#include "layout.h"
#include "two_float.h"

namespace adasum {

// The sum of the records added so far, in their order; exponents are those of the largest addends.
class RecordSum {
public:
    __aicore__ inline RecordSum() {}

    __aicore__ inline void reset(uint32_t radix) {
        radix_ = radix;
        nonfinite_ = false;
        missing_ = false;
        for (uint32_t entry = 0; entry < entries(radix); ++entry) {
            sums_[entry] = TwoFloat{0.0f, 0.0f};
        }
        for (uint32_t i = 0; i < radix; ++i) {
            exponents_[i] = ZERO_EXPONENT;
        }
    }

    __aicore__ inline void add_record(const AscendC::LocalTensor<float> &record) {
        float flags = record.GetValue(record_flags(radix_));
        missing_ = missing_ || bits_of(flags) == MISSING;
        if (flags != 0.0f || !is_in_range(record)) {
            // Its numbers mean nothing, and what they are shifted by could be anything.
            nonfinite_ = true;
            return;
        }
        bool aligned = align(record);
        uint32_t entry = 0;
        for (uint32_t i = 0; i < radix_; ++i) {
            for (uint32_t j = i; j < radix_; ++j, ++entry) {
                TwoFloat addend{record.GetValue(2 * entry), record.GetValue(2 * entry + 1)};
                if (!aligned) {
                    sums_[entry] = shift(sums_[entry], sum_shift_[i] + sum_shift_[j]);
                    addend = shift(addend, addend_shift_[i] + addend_shift_[j]);
                }
                sums_[entry] = add(sums_[entry], addend);
            }
        }
    }

    // Writes the sum as a record; a non-finite one carries no numbers, and one of a record that never came looks as if it had
    // not come either.
    __aicore__ inline void store(const AscendC::LocalTensor<float> &record) const {
        uint32_t words = record_words(radix_);
        for (uint32_t word = 2 * entries(radix_); word < words; ++word) {
            record.SetValue(word, 0.0f);
        }
        for (uint32_t entry = 0; entry < entries(radix_); ++entry) {
            record.SetValue(2 * entry, nonfinite_ ? 0.0f : sums_[entry].hi);
            record.SetValue(2 * entry + 1, nonfinite_ ? 0.0f : sums_[entry].lo);
        }
        for (uint32_t i = 0; i < radix_; ++i) {
            int32_t exponent = nonfinite_ ? ZERO_EXPONENT : exponents_[i];
            record.SetValue(record_exponents(radix_) + i, to_float(exponent));
        }
        record.SetValue(record_flags(radix_), missing_ ? float_of(MISSING) : (nonfinite_ ? 1.0f : 0.0f));
    }

    __aicore__ inline bool nonfinite() const { return nonfinite_; }

    // Whether a record never came (layout.h); the sum counts as non-finite then.
    __aicore__ inline bool missing() const { return missing_; }

    __aicore__ inline bool is_zero(uint32_t vector) const { return exponents_[vector] == ZERO_EXPONENT; }

    // The sum of an entry, free of range limits.
    __aicore__ inline Scaled entry(uint32_t row, uint32_t column) const {
        return normalise(sums_[entry_index(row, column, radix_)], exponents_[row] + exponents_[column]);
    }

private:
    // Whether the exponents can be those of a record: shifts take as long as they are far.
    __aicore__ inline bool is_in_range(const AscendC::LocalTensor<float> &record) const {
        constexpr float MOST = -static_cast<float>(ZERO_EXPONENT);
        for (uint32_t i = 0; i < radix_; ++i) {
            float exponent = record.GetValue(record_exponents(radix_) + i);
            if (!(exponent >= -MOST && exponent <= MOST)) {
                return false;
            }
        }
        return true;
    }

    // Raises exponents to those of the record; true if neither the sums nor the record need a shift.
    __aicore__ inline bool align(const AscendC::LocalTensor<float> &record) {
        bool aligned = true;
        for (uint32_t i = 0; i < radix_; ++i) {
            int32_t exponent = to_integer(record.GetValue(record_exponents(radix_) + i));
            sum_shift_[i] = 0;
            addend_shift_[i] = 0;
            if (exponent == ZERO_EXPONENT || exponent == exponents_[i]) {
                continue;
            }
            if (exponents_[i] == ZERO_EXPONENT) {
                exponents_[i] = exponent;
                continue;
            }
            aligned = false;
            if (exponent > exponents_[i]) {
                sum_shift_[i] = exponents_[i] - exponent;
                exponents_[i] = exponent;
            } else {
                addend_shift_[i] = exponent - exponents_[i];
            }
        }
        return aligned;
    }

    TwoFloat sums_[entries(MAX_RADIX)];
    int32_t exponents_[MAX_RADIX];
    int32_t sum_shift_[MAX_RADIX];
    int32_t addend_shift_[MAX_RADIX];
    uint32_t radix_ = 0;
    bool nonfinite_ = false;
    bool missing_ = false;
};

} // namespace adasum

#endif
