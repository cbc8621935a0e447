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

// Asks for memory that is likely to be read soon.
inline void expect(const void *address) { __builtin_prefetch(address, 0, 3); }

// Elements from those that weighted_sum and gram of more vectors read to those that they ask for.
constexpr uint32_t AHEAD = 2048;

// The products of two vectors, as gram_lanes.h has them: an entry has PAIR_WIDTH lanes, PAIR_LANES for each strip of
// PAIR_STRIP elements.
constexpr uint32_t PAIR_WIDTH = 512;
constexpr uint32_t PAIR_STRIP = 512;
constexpr uint32_t PAIR_LANES = 64;

// Elements of each vector that are asked for at the end of a unit, so that memory does not wait while its lanes are
// summed up.
constexpr uint32_t BETWEEN_UNITS = 48;
// Within a unit a processor fetches ahead by itself where its registers hold all lanes of a strip: loads come in order
// then, with little between them. Else the lanes are loaded and stored between, and asking this far ahead helps.
constexpr uint32_t WITHIN_UNITS = 1024;
constexpr bool STRIP_FITS_REGISTERS = AscendC::twin::REGISTER_BYTES == 64;

// The lanes of one strip: sums of xx, xy and yy.
class StripSums {
public:
    StripSums() {
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            xx_[k] = xy_[k] = yy_[k] = Lanes{};
        }
    }

    // Adds the products of as many elements as there are lanes.
    template <bool ASK_AHEAD, typename T>
    void add(const T *x, const T *y) {
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            uint32_t i = k * AscendC::twin::REGISTER_LANES;
            if (ASK_AHEAD && i * sizeof(T) % 64 == 0) {
                expect(x + i + WITHIN_UNITS);
                expect(y + i + WITHIN_UNITS);
            }
            Lanes a = AscendC::twin::load_lanes(x + i);
            Lanes b = AscendC::twin::load_lanes(y + i);
            xx_[k] = xx_[k] + a * a;
            xy_[k] = xy_[k] + a * b;
            yy_[k] = yy_[k] + b * b;
        }
    }

    // Adds the sums of another strip, which are stored there.
    void join(const float *sums) {
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            const float *from = sums + k * AscendC::twin::REGISTER_LANES;
            xx_[k] = AscendC::twin::load_lanes(from) + xx_[k];
            xy_[k] = AscendC::twin::load_lanes(from + PAIR_WIDTH) + xy_[k];
            yy_[k] = AscendC::twin::load_lanes(from + 2 * PAIR_WIDTH) + yy_[k];
        }
    }

    void store(float *sums) const {
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            float *to = sums + k * AscendC::twin::REGISTER_LANES;
            AscendC::twin::store_lanes(to, xx_[k]);
            AscendC::twin::store_lanes(to + PAIR_WIDTH, xy_[k]);
            AscendC::twin::store_lanes(to + 2 * PAIR_WIDTH, yy_[k]);
        }
    }

private:
    using Lanes = AscendC::twin::Lanes;
    static constexpr uint32_t REGISTERS = PAIR_LANES / AscendC::twin::REGISTER_LANES;

    Lanes xx_[REGISTERS];
    Lanes xy_[REGISTERS];
    Lanes yy_[REGISTERS];
};

// The last elements of a strip, fewer than its lanes, as that many with zeros behind.
template <typename T>
struct PaddedTail {
    T values[PAIR_LANES] = {};

    PaddedTail(const T *from, uint32_t count) { std::memcpy(values, from, count * sizeof(T)); }
};

// Sums `count` elements of strip number `strip`, and joins its lanes with those of earlier strips as halves of all
// `lanes` are joined: as soon as both halves are there. Inlined, since a call costs as much as a tenth of a strip.
template <typename T>
[[gnu::always_inline]] inline void sum_strip(float *sums, uint32_t lanes, uint32_t strip, const T *x, const T *y,
                                             uint32_t count) {
    uint32_t tail = count % PAIR_LANES;
    StripSums strip_sums;
    // Not unrolled: what fetches ahead looks at each load instruction, and its steps through memory stay small.
#pragma GCC unroll 1
    for (uint32_t i = 0; i < count - tail; i += PAIR_LANES) {
        strip_sums.add<!STRIP_FITS_REGISTERS>(x + i, y + i);
    }
    if (tail != 0) {
        PaddedTail<T> a(x + count - tail, tail);
        PaddedTail<T> b(y + count - tail, tail);
        strip_sums.add<false>(a.values, b.values);
    }
    uint32_t place = strip * PAIR_LANES;
    for (uint32_t half = lanes / 2; half >= PAIR_LANES && place >= half; half /= 2) {
        place -= half;
        strip_sums.join(sums + place);
    }
    strip_sums.store(sums + place);
}

// The sum of 64 lanes as a tree: halves are joined until 8 lanes are left, then neighbours.
inline float sum_of_lanes(const float *sums) {
    using namespace AscendC::twin;
    constexpr uint32_t REGISTERS = PAIR_LANES / REGISTER_LANES;
    constexpr uint32_t BLOCK_LANES = 8;
    Lanes parts[REGISTERS];
    for (uint32_t k = 0; k < REGISTERS; ++k) {
        parts[k] = load_lanes(sums + k * REGISTER_LANES);
    }
    uint32_t left = REGISTERS;
    for (; left * REGISTER_LANES > BLOCK_LANES && left > 1; left /= 2) {
        for (uint32_t k = 0; k < left / 2; ++k) {
            parts[k] = parts[k] + parts[k + left / 2];
        }
    }
    for (uint32_t half = REGISTER_LANES / 2; half >= BLOCK_LANES; half /= 2) {
        parts[0] = parts[0] + exchanged(parts[0], half);
    }
    // What a register cannot hold of 8 lanes lies in the second one.
    for (uint32_t distance = 1; distance < BLOCK_LANES && distance < REGISTER_LANES; distance *= 2) {
        for (uint32_t k = 0; k < left; ++k) {
            parts[k] = parts[k] + exchanged(parts[k], distance);
        }
    }
    return left == 2 ? parts[0][0] + parts[1][0] : parts[0][0];
}

// Sums the products of a unit into the hi words of its record. `lanes` is a power of two; `sums` has room for three
// entries.
template <typename T>
inline void sum_pair(float *record, float *sums, uint32_t lanes, const T *x, const T *y, uint32_t count) {
    for (uint32_t strip = 0; strip < lanes / PAIR_LANES; ++strip) {
        // Strips behind the end are there for the halves of others that they are joined with.
        uint32_t from = strip * PAIR_STRIP < count ? strip * PAIR_STRIP : count;
        uint32_t part = count - from < PAIR_STRIP ? count - from : PAIR_STRIP;
        sum_strip(sums, lanes, strip, x + from, y + from, part);
    }
    for (uint32_t i = 0; i < BETWEEN_UNITS; i += 64 / sizeof(T)) {
        expect(x + count + i);
        expect(y + count + i);
    }
    for (uint32_t entry = 0; entry < 3; ++entry) {
        record[2 * entry] = sum_of_lanes(sums + entry * PAIR_WIDTH);
    }
}

// The sum of the elements times zero: zero if all are finite, else NaN.
template <typename T>
inline float zero_times(const T *x, uint32_t count) {
    using namespace AscendC::twin;
    constexpr uint32_t SUMS = 4;
    constexpr uint32_t STEP = SUMS * REGISTER_LANES;
    Lanes sums[SUMS] = {};
    uint32_t i = 0;
    // Not unrolled, as in sum_strip.
#pragma GCC unroll 1
    for (; i + STEP <= count; i += STEP) {
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

// Two-float sums of all entries of a Gram matrix, `width` lanes apart, of which `lanes` are in use.
struct WideSums {
    float *high;
    float *low;
    uint32_t width;
    uint32_t lanes;
    uint32_t radix;
    bool fresh;
};

// One factor of products; the halves of 12 bits are needed where products are not exact.
struct Factor {
    const float *x;
    const float *upper;
    const float *lower;
};

inline void split(float *upper, float *lower, const float *x, int32_t count) {
#pragma GCC ivdep
    for (int32_t i = 0; i < count; ++i) {
        float wide = x[i] * 4097.0f;
        float rest = wide - x[i];
        float high = wide - rest;
        upper[i] = high;
        lower[i] = x[i] - high;
    }
}

inline float product_error(const Factor &a, const Factor &b, float product, int32_t i) {
    float error = a.upper[i] * b.upper[i] - product;
    error = error + a.upper[i] * b.lower[i];
    error = error + a.lower[i] * b.upper[i];
    return error + a.lower[i] * b.lower[i];
}

// hi + lo = hi + lo + addend.
inline void add_exactly(float &hi, float &lo, float addend) {
    float sum = hi + addend;
    float part = sum - hi;
    float error = addend - part;
    float rest = sum - part;
    lo = lo + error;
    lo = lo + (hi - rest);
    hi = sum;
}

// high + low = a * b; low is zero already where products are exact.
template <bool EXACT>
inline void set_entry(float *__restrict high, float *__restrict low, const Factor &a, const Factor &b, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
        float product = a.x[i] * b.x[i];
        high[i] = product;
        if (!EXACT) {
            low[i] = product_error(a, b, product, i);
        }
    }
}

// high + low += a * b.
template <bool EXACT>
inline void add_entry(float *__restrict high, float *__restrict low, const Factor &a, const Factor &b, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
        float product = a.x[i] * b.x[i];
        float sum = high[i];
        float rest = low[i];
        if (!EXACT) {
            rest = rest + product_error(a, b, product, i);
        }
        add_exactly(sum, rest, product);
        high[i] = sum;
        low[i] = rest;
    }
}

// Adds the products of up to as many elements of each vector as there are lanes. `halves` has room for two times
// `width` numbers of each vector.
template <bool EXACT>
inline void add_products(const WideSums &sums, const Tensor &halves, const Tensor *x, int32_t count) {
    Factor factors[8];
    for (uint32_t k = 0; k < sums.radix; ++k) {
        factors[k].x = AscendC::twin::input(x[k], count);
        if (!EXACT) {
            for (int32_t i = 0; i < count; i += 16) {
                expect(factors[k].x + i + AHEAD);
            }
            float *upper = halves.write(2 * k * sums.width, sums.width);
            float *lower = halves.write((2 * k + 1) * sums.width, sums.width);
            split(upper, lower, factors[k].x, count);
            factors[k].upper = upper;
            factors[k].lower = lower;
        }
    }
    float *high = sums.high;
    float *low = sums.low;
    for (uint32_t a = 0; a < sums.radix; ++a) {
        for (uint32_t b = a; b < sums.radix; ++b) {
            if (sums.fresh) {
                set_entry<EXACT>(high, low, factors[a], factors[b], count);
            } else {
                add_entry<EXACT>(high, low, factors[a], factors[b], count);
            }
            high += sums.width;
            low += sums.width;
        }
    }
}

// Joins lanes by halves, first in sums and errors, the last 8 as two-float numbers; writes hi and lo of each entry.
inline void finish_products(const WideSums &sums, const Tensor &record) {
    constexpr uint32_t BLOCK_LANES = 8;
    uint32_t entries = sums.radix * (sums.radix + 1) / 2;
    for (uint32_t entry = 0; entry < entries; ++entry) {
        float *high = sums.high + entry * sums.width;
        float *low = sums.low + entry * sums.width;
        for (uint32_t half = sums.lanes / 2; half >= BLOCK_LANES; half /= 2) {
#pragma GCC ivdep
            for (uint32_t i = 0; i < half; ++i) {
                float sum = high[i];
                float rest = low[i] + low[i + half];
                add_exactly(sum, rest, high[i + half]);
                high[i] = sum;
                low[i] = rest;
            }
        }
        TwoFloat lanes[BLOCK_LANES];
        for (uint32_t lane = 0; lane < BLOCK_LANES; ++lane) {
            lanes[lane] = two_sum(high[lane], low[lane]);
        }
        for (uint32_t half = BLOCK_LANES / 2; half > 0; half /= 2) {
            for (uint32_t lane = 0; lane < half; ++lane) {
                lanes[lane] = adasum::add(lanes[lane], lanes[lane + half]);
            }
        }
        record.SetValue(2 * entry, lanes[0].hi);
        record.SetValue(2 * entry + 1, lanes[0].lo);
    }
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
    uint32_t i = 0;
    for (; i + REGISTER_LANES <= count; i += REGISTER_LANES) {
        Lanes sum = load_lanes(from.x[0] + i) * from.weights[0];
        expect(from.x[0] + i + AHEAD);
        for (uint32_t k = 1; k < RADIX; ++k) {
            expect(from.x[k] + i + AHEAD);
            sum = sum + load_lanes(from.x[k] + i) * from.weights[k];
        }
        store_lanes(out + i, sum);
    }
    for (; i < count; ++i) {
        float sum = load_one(from.x[0] + i) * from.weights[0];
        for (uint32_t k = 1; k < RADIX; ++k) {
            sum = sum + load_one(from.x[k] + i) * from.weights[k];
        }
        store_one(out + i, sum);
    }
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
    uint32_t i = 0;
    for (; i + REGISTER_LANES <= count; i += REGISTER_LANES) {
        expect(a + i + AHEAD);
        expect(b + i + AHEAD);
        store_lanes(out + i, load_lanes(a + i) - load_lanes(b + i));
    }
    for (; i < count; ++i) {
        store_one(out + i, load_one(a + i) - load_one(b + i));
    }
}

// to = from * factor, in fp32.
template <typename To, typename From>
inline void scale(To *to, const From *from, float factor, uint32_t count) {
    using namespace AscendC::twin;
    uint32_t i = 0;
    for (; i + REGISTER_LANES <= count; i += REGISTER_LANES) {
        expect(from + i + AHEAD);
        store_lanes(to + i, load_lanes(from + i) * factor);
    }
    for (; i < count; ++i) {
        store_one(to + i, load_one(from + i) * factor);
    }
}

} // namespace fused
} // namespace adasum

#endif
