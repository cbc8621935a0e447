// Steps of the kernels that the fast twin does in one loop: what is a sequence of vector instructions on the device, and
// in the strict twin, keeps its intermediate results in registers here.
//
// Every lane sees the same operations in the same order, each rounded once, so the bits are the same; tests compare the
// twins. A step takes the tensors that the instructions would, or what they are copied from and to, through the same
// checks.
#ifndef ADASUM_TWIN_FUSED_H
#define ADASUM_TWIN_FUSED_H

#include "../two_float.h"
#include "instructions.h"
#include "lanes.h"

#define ADASUM_FUSED 1

namespace adasum {
namespace fused {

using Tensor = AscendC::LocalTensor<float>;

// Elements of a cache line: what loops over vectors do at a time.
template <typename T>
constexpr uint32_t LINE = AscendC::twin::CACHE_LINE / sizeof(T);

// Asks for the cache line that a loop will come to after this one: a page ahead, where a processor's own fetching stops.
template <typename T>
inline void expect_after(const T *line) {
    constexpr uint32_t AHEAD = 4096 / sizeof(T);
    __builtin_prefetch(line + AHEAD, 0, 3);
}

// Asks for all lines of as many elements.
template <uint32_t COUNT, typename T>
inline void expect_all_after(const T *from) {
    for (uint32_t i = 0; i < COUNT; i += LINE<T>) {
        expect_after(from + i);
    }
}

// Asks for it where a loop reads several vectors of 16-bit numbers and writes one. In fp32 a processor fetches enough ahead for such
// a loop by itself, and asking takes up to half of the time of what is in cache.
template <typename T>
inline void expect_shorts_after(const T *line) {
    if (sizeof(T) == 2) {
        expect_after(line);
    }
}

// Addresses of vectors that a loop has for itself: no store can change them, so they stay in registers.
template <uint32_t RADIX, typename T>
class Vectors {
public:
    explicit Vectors(const T *const *addresses) {
#pragma GCC unroll 8
        for (uint32_t k = 0; k < RADIX; ++k) {
            addresses_[k] = addresses[k];
        }
    }

    const T *operator[](uint32_t k) const { return addresses_[k]; }

private:
    const T *addresses_[RADIX];
};

// Calls `at_line` for the first element of each whole cache line of T, `do_lanes` for each register of lanes, and `do_one` for
// each of the last elements, which fill no register.
template <typename T, typename AtLine, typename DoLanes, typename DoOne>
[[gnu::always_inline]] inline void for_each(uint32_t count, const AtLine &at_line, const DoLanes &do_lanes,
                                            const DoOne &do_one) {
    using AscendC::twin::REGISTER_LANES;
    uint32_t i = 0;
    for (; i + LINE<T> <= count; i += LINE<T>) {
        at_line(i);
#pragma GCC unroll 8
        for (uint32_t k = 0; k < LINE<T>; k += REGISTER_LANES) {
            do_lanes(i + k);
        }
    }
    for (; i + REGISTER_LANES <= count; i += REGISTER_LANES) {
        do_lanes(i);
    }
    for (; i < count; ++i) {
        do_one(i);
    }
}

// to = f(a, b) for two-float numbers in lanes (two_float_lanes.h); b may be their fp32 parts alone.
template <typename Pair, typename F>
inline void each_two_float(const Pair &to, const Pair &a, const Tensor &b_hi, const Tensor &b_lo, int32_t count,
                           const F &f) {
    float *hi = AscendC::twin::output(to.hi, count);
    float *lo = AscendC::twin::output(to.lo, count);
    const float *x_hi = AscendC::twin::input(a.hi, count);
    const float *x_lo = AscendC::twin::input(a.lo, count);
    const float *y_hi = AscendC::twin::input(b_hi, count);
    const float *y_lo = AscendC::twin::input(b_lo, count);
#pragma GCC ivdep
    for (int32_t i = 0; i < count; ++i) {
        TwoFloat result = f(TwoFloat{x_hi[i], x_lo[i]}, TwoFloat{y_hi[i], y_lo[i]});
        hi[i] = result.hi;
        lo[i] = result.lo;
    }
}

template <typename Pair>
inline void add(const Pair &sum, const Pair &a, const Pair &b, int32_t count) {
    each_two_float(sum, a, b.hi, b.lo, count, [](TwoFloat x, TwoFloat y) { return adasum::add(x, y); });
}

template <typename Pair>
inline void multiply(const Pair &product, const Pair &a, const Pair &b, int32_t count) {
    each_two_float(product, a, b.hi, b.lo, count, [](TwoFloat x, TwoFloat y) { return adasum::multiply(x, y); });
}

template <typename Pair>
inline void multiply(const Pair &product, const Pair &a, const Tensor &b, int32_t count) {
    each_two_float(product, a, b, b, count, [](TwoFloat x, TwoFloat y) { return adasum::multiply(x, y.hi); });
}

// The sum of the elements times zero: zero if all are finite, else NaN.
template <typename T>
inline float zero_times(const T *x, uint32_t count) {
    using namespace AscendC::twin;
    constexpr uint32_t SUMS = 4;
    constexpr uint32_t STEP = SUMS * REGISTER_LANES;
    Lanes sums[SUMS] = {};
    uint32_t i = 0;
    // Not unrolled: what fetches ahead looks at each load instruction, and its steps through memory stay small.
#pragma GCC unroll 1
    for (; i + STEP <= count; i += STEP) {
        expect_all_after<STEP>(x + i);
        for (uint32_t k = 0; k < SUMS; ++k) {
            sums[k] = sums[k] + load_lanes(x + i + k * REGISTER_LANES) * 0.0f;
        }
    }
    Lanes all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = 0.0f;
    for (; i < count; ++i) {
        sum = sum + load_one(x + i) * 0.0f;
    }
    for (uint32_t lane = 0; lane < REGISTER_LANES; ++lane) {
        sum = sum + all[lane];
    }
    return sum;
}

// Sums of weighted vectors: what they are summed from and the weights.
template <typename T>
struct Weighted {
    const T *x[8];
    const float *weights;
    const float *lows;
};

// out = ((w0 x0 + w1 x1) + w2 x2) + ...
template <uint32_t RADIX, typename T>
inline void weighted_sum(T *out, const Weighted<T> &from, uint32_t count) {
    using namespace AscendC::twin;
    const Vectors<RADIX, T> x(from.x);
    float weights[RADIX];
    std::memcpy(weights, from.weights, sizeof(weights));
    auto ask = [&](uint32_t i) {
#pragma GCC unroll 8
        for (uint32_t k = 0; k < RADIX; ++k) {
            expect_shorts_after(x[k] + i);
        }
    };
    auto sum_lanes = [&](uint32_t i) {
        Lanes sum = load_lanes(x[0] + i) * weights[0];
#pragma GCC unroll 8
        for (uint32_t k = 1; k < RADIX; ++k) {
            sum = sum + load_lanes(x[k] + i) * weights[k];
        }
        store_lanes(out + i, sum);
    };
    auto sum_one = [&](uint32_t i) {
        float sum = load_one(x[0] + i) * weights[0];
        for (uint32_t k = 1; k < RADIX; ++k) {
            sum = sum + load_one(x[k] + i) * weights[k];
        }
        store_one(out + i, sum);
    };
    for_each<T>(count, ask, sum_lanes, sum_one);
}

// One more vector in a sum of two-float numbers, as two_float.h does it; `Number` is Lanes or float.
template <typename Number>
inline void add_weighted(Number &sum, Number &rest, const Number &x, float weight, const TwoFloat &halves, float low) {
    Number product = x * weight;
    Number wide = x * 4097.0f;
    Number high = wide - (wide - x);
    Number tail = x - high;
    Number error = high * halves.hi - product;
    error = error + tail * halves.hi;
    error = error + high * halves.lo;
    error = error + tail * halves.lo;
    error = error + x * low;
    rest = rest + error;
    Number total = sum + product;
    Number part = total - sum;
    Number own = total - part;
    rest = rest + ((sum - own) + (product - part));
    sum = total;
}

// The same sum in two-float numbers, with what the weights leave out.
template <typename T>
inline void weighted_sum_exactly(T *out, const Weighted<T> &from, uint32_t radix, uint32_t count) {
    using namespace AscendC::twin;
    TwoFloat halves[8];
    for (uint32_t k = 0; k < radix; ++k) {
        halves[k] = adasum::split(from.weights[k]);
    }
    uint32_t i = 0;
    for (; i + REGISTER_LANES <= count; i += REGISTER_LANES) {
        Lanes sum = {};
        Lanes rest = {};
        for (uint32_t k = 0; k < radix; ++k) {
            add_weighted(sum, rest, load_lanes(from.x[k] + i), from.weights[k], halves[k], from.lows[k]);
        }
        store_lanes(out + i, sum + rest);
    }
    for (; i < count; ++i) {
        float sum = 0.0f;
        float rest = 0.0f;
        for (uint32_t k = 0; k < radix; ++k) {
            add_weighted(sum, rest, load_one(from.x[k] + i), from.weights[k], halves[k], from.lows[k]);
        }
        store_one(out + i, sum + rest);
    }
}

// The sum of `radix` vectors in either way. `out` may be one of them.
template <typename T>
inline void weighted_sum_of(T *out, const Weighted<T> &from, uint32_t radix, bool exactly, uint32_t count) {
    if (exactly) {
        weighted_sum_exactly(out, from, radix, count);
        return;
    }
    switch (radix) {
    case 1: return weighted_sum<1>(out, from, count);
    case 2: return weighted_sum<2>(out, from, count);
    case 3: return weighted_sum<3>(out, from, count);
    case 4: return weighted_sum<4>(out, from, count);
    case 5: return weighted_sum<5>(out, from, count);
    case 6: return weighted_sum<6>(out, from, count);
    case 7: return weighted_sum<7>(out, from, count);
    default: return weighted_sum<8>(out, from, count);
    }
}

// out = a - b, in fp32. `out` may be one of them.
template <typename T>
inline void subtract(T *out, const T *a, const T *b, uint32_t count) {
    using namespace AscendC::twin;
    auto ask = [&](uint32_t i) {
        expect_shorts_after(a + i);
        expect_shorts_after(b + i);
    };
    auto subtract_lanes = [&](uint32_t i) { store_lanes(out + i, load_lanes(a + i) - load_lanes(b + i)); };
    auto subtract_one = [&](uint32_t i) { store_one(out + i, load_one(a + i) - load_one(b + i)); };
    for_each<T>(count, ask, subtract_lanes, subtract_one);
}

// to = from * factor, in fp32.
template <typename To, typename From>
inline void scale(To *to, const From *from, float factor, uint32_t count) {
    using namespace AscendC::twin;
    auto ask = [&](uint32_t i) { expect_after(from + i); };
    auto scale_lanes = [&](uint32_t i) { store_lanes(to + i, load_lanes(from + i) * factor); };
    auto scale_one = [&](uint32_t i) { store_one(to + i, load_one(from + i) * factor); };
    for_each<From>(count, ask, scale_lanes, scale_one);
}

} // namespace fused
} // namespace adasum

#endif
