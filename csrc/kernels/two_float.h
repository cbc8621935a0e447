// Unevaluated sums hi + lo of two fp32 numbers: about 48 bits, from fp32 instructions only.
//
// These sequences are right because every operation rounds once, in the order written. Compile with value-changing
// optimisations off (-ffast-math breaks them); fused multiply-adds do them no harm.
#ifndef ADASUM_TWO_FLOAT_H
#define ADASUM_TWO_FLOAT_H

#include "adasum_ascendc.h"

#ifdef __FAST_MATH__
#error "two_float.h needs strict arithmetic: do not compile the kernels with -ffast-math"
#endif

namespace adasum {

struct TwoFloat {
    float hi;
    float lo;
};

__aicore__ inline uint32_t bits_of(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}

__aicore__ inline float float_of(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

// 2^exponent, for -126 <= exponent <= 127.
__aicore__ inline float power_of_two(int32_t exponent) { return float_of(static_cast<uint32_t>(exponent + 127) << 23); }

// Whole numbers below 2^22 in magnitude between float and integer, by arithmetic alone: 1.5 * 2^23 + n has n in the low
// bits of its fraction.
__aicore__ inline int32_t to_integer(float value) {
    return static_cast<int32_t>(bits_of(value + 12582912.0f)) - 0x4b400000;
}

__aicore__ inline float to_float(int32_t value) {
    return float_of(static_cast<uint32_t>(value + 0x4b400000)) - 12582912.0f;
}

__aicore__ inline bool is_finite(float value) { return (bits_of(value) & 0x7f800000U) != 0x7f800000U; }

__aicore__ inline float quiet_nan() { return float_of(0x7fc00000U); }

// a + b exactly, for |a| >= |b| or a = 0.
__aicore__ inline TwoFloat quick_two_sum(float a, float b) {
    float sum = a + b;
    float b_part = sum - a;
    return TwoFloat{sum, b - b_part};
}

// a + b exactly.
__aicore__ inline TwoFloat two_sum(float a, float b) {
    float sum = a + b;
    float b_part = sum - a;
    float a_part = sum - b_part;
    return TwoFloat{sum, (a - a_part) + (b - b_part)};
}

// The upper 12 bits of a, so that products of such halves are exact. Needs |a| < 2^115.
__aicore__ inline TwoFloat split(float a) {
    float wide = 4097.0f * a;
    float high = wide - (wide - a);
    return TwoFloat{high, a - high};
}

// a * b exactly, unless the error term underflows.
__aicore__ inline TwoFloat two_product(float a, float b) {
    float product = a * b;
    TwoFloat x = split(a);
    TwoFloat y = split(b);
    float error = ((x.hi * y.hi - product) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo;
    return TwoFloat{product, error};
}

__aicore__ inline TwoFloat add(TwoFloat a, TwoFloat b) {
    TwoFloat high = two_sum(a.hi, b.hi);
    TwoFloat low = two_sum(a.lo, b.lo);
    TwoFloat sum = quick_two_sum(high.hi, high.lo + low.hi);
    return quick_two_sum(sum.hi, sum.lo + low.lo);
}

__aicore__ inline TwoFloat negate(TwoFloat a) { return TwoFloat{-a.hi, -a.lo}; }

__aicore__ inline TwoFloat multiply(TwoFloat a, float b) {
    TwoFloat high = two_product(a.hi, b);
    return quick_two_sum(high.hi, high.lo + a.lo * b);
}

__aicore__ inline TwoFloat multiply(TwoFloat a, TwoFloat b) {
    TwoFloat high = two_product(a.hi, b.hi);
    return quick_two_sum(high.hi, high.lo + (a.hi * b.lo + a.lo * b.hi));
}

// a / b by long division, for operands whose exponents are moderate.
__aicore__ inline TwoFloat divide(TwoFloat a, TwoFloat b) {
    float first = a.hi / b.hi;
    TwoFloat rest = add(a, negate(multiply(b, first)));
    float second = rest.hi / b.hi;
    rest = add(rest, negate(multiply(b, second)));
    float third = rest.hi / b.hi;
    return add(quick_two_sum(first, second), TwoFloat{third, 0.0f});
}

// value * 2^exponent for any exponent; exact unless it underflows.
__aicore__ inline TwoFloat shift(TwoFloat value, int32_t exponent) {
    constexpr int32_t STEP = 100;
    while (exponent < -STEP) {
        value = TwoFloat{value.hi * power_of_two(-STEP), value.lo * power_of_two(-STEP)};
        exponent += STEP;
    }
    while (exponent > STEP) {
        value = TwoFloat{value.hi * power_of_two(STEP), value.lo * power_of_two(STEP)};
        exponent -= STEP;
    }
    float factor = power_of_two(exponent);
    return TwoFloat{value.hi * factor, value.lo * factor};
}

// A number m * 2^exponent with 1 <= |m.hi| < 2, or m = 0: free of overflow and underflow.
struct Scaled {
    TwoFloat m;
    int32_t exponent;
};

__aicore__ inline Scaled normalise(TwoFloat value, int32_t exponent) {
    if (value.hi == 0.0f) {
        return Scaled{TwoFloat{0.0f, 0.0f}, 0};
    }
    // Out of the subnormals, whose exponent field says nothing.
    constexpr int32_t LIFT = 64;
    int32_t field = static_cast<int32_t>((bits_of(value.hi) >> 23) & 0xff);
    if (field < LIFT) {
        value = shift(value, LIFT);
        exponent -= LIFT;
        field = static_cast<int32_t>((bits_of(value.hi) >> 23) & 0xff);
    }
    int32_t power = field - 127;
    return power == 0 ? Scaled{value, exponent} : Scaled{shift(value, -power), exponent + power};
}

__aicore__ inline bool is_zero(const Scaled &a) { return a.m.hi == 0.0f; }

__aicore__ inline Scaled scaled_one() { return Scaled{TwoFloat{1.0f, 0.0f}, 0}; }

__aicore__ inline Scaled negate(const Scaled &a) { return Scaled{negate(a.m), a.exponent}; }

// a * 2^exponent.
__aicore__ inline Scaled shift(const Scaled &a, int32_t exponent) {
    return Scaled{a.m, is_zero(a) ? 0 : a.exponent + exponent};
}

__aicore__ inline Scaled add(const Scaled &a, const Scaled &b) {
    // Further apart the smaller one is below the last bit.
    constexpr int32_t FAR = 60;
    if (is_zero(a) || (!is_zero(b) && b.exponent - a.exponent > FAR)) {
        return b;
    }
    if (is_zero(b) || a.exponent - b.exponent > FAR) {
        return a;
    }
    if (a.exponent < b.exponent) {
        return normalise(add(b.m, shift(a.m, a.exponent - b.exponent)), b.exponent);
    }
    return normalise(add(a.m, shift(b.m, b.exponent - a.exponent)), a.exponent);
}

__aicore__ inline Scaled multiply(const Scaled &a, const Scaled &b) {
    if (is_zero(a) || is_zero(b)) {
        return Scaled{TwoFloat{0.0f, 0.0f}, 0};
    }
    return normalise(multiply(a.m, b.m), a.exponent + b.exponent);
}

// a / b, for b other than zero.
__aicore__ inline Scaled divide(const Scaled &a, const Scaled &b) {
    return normalise(divide(a.m, b.m), a.exponent - b.exponent);
}

// Whether a < b, for numbers that are not negative.
__aicore__ inline bool is_less(const Scaled &a, const Scaled &b) {
    if (is_zero(a) || is_zero(b)) {
        return !is_zero(b);
    }
    if (a.exponent != b.exponent) {
        return a.exponent < b.exponent;
    }
    return a.m.hi < b.m.hi || (a.m.hi == b.m.hi && a.m.lo < b.m.lo);
}

// The square root of a number that is not negative, to fp32 precision.
__aicore__ inline Scaled square_root(const Scaled &a) {
    if (is_zero(a)) {
        return a;
    }
    int32_t half = (a.exponent - (a.exponent & 1)) / 2;
    float square = (a.exponent & 1) != 0 ? 2.0f * a.m.hi : a.m.hi;
    // Newton's steps for a number from 1 to 4.
    float root = 0.5f + 0.5f * square;
    for (int32_t step = 0; step < 5; ++step) {
        root = 0.5f * (root + square / root);
    }
    return normalise(TwoFloat{root, 0.0f}, half);
}

// The nearest fp32 number; one that is too large becomes the largest.
__aicore__ inline float to_float(const Scaled &a) {
    if (a.exponent > 127) {
        return a.m.hi < 0.0f ? -float_of(0x7f7fffffU) : float_of(0x7f7fffffU);
    }
    return shift(a.m, a.exponent).hi;
}

} // namespace adasum

#endif
