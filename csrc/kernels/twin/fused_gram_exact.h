// The exact sums of gram in one loop (fused.h).
#ifndef ADASUM_TWIN_FUSED_GRAM_EXACT_H
#define ADASUM_TWIN_FUSED_GRAM_EXACT_H

#include "fused_gram.h"

namespace adasum {
namespace fused {

// The most elements of a lane of exact sums: of r = 8, which has the fewest lanes.
constexpr uint32_t MOST_OF_EXACT_LANE = 32;

// The elements of a register of lanes of one vector, with their halves of 12 bits where products are not exact. Of the last ones
// there may be fewer than the register has lanes, with zeros behind.
template <bool EXACT_PRODUCTS>
struct Factor {
    using Lanes = AscendC::twin::Lanes;

    Lanes x[MOST_OF_EXACT_LANE];
    Lanes upper[EXACT_PRODUCTS ? 1 : MOST_OF_EXACT_LANE];
    Lanes lower[EXACT_PRODUCTS ? 1 : MOST_OF_EXACT_LANE];

    template <typename T>
    void load(const T *from, uint32_t lane, uint32_t lanes, uint32_t len) {
        using namespace AscendC::twin;
        uint32_t k = 0;
        uint32_t i = lane;
        for (; i + REGISTER_LANES <= len; i += lanes, ++k) {
            set(k, load_lanes(from + i));
        }
        if (i < len) {
            set(k, load_last(from + i, len - i));
        }
    }

    void set(uint32_t k, const Lanes &values) {
        x[k] = values;
        if constexpr (!EXACT_PRODUCTS) {
            Lanes wide = values * 4097.0f;
            upper[k] = wide - (wide - values);
            lower[k] = values - upper[k];
        }
    }
};

// hi + lo = hi + lo + addend, for numbers or registers of them.
template <typename Number>
inline void add_exactly(Number &hi, Number &lo, const Number &addend) {
    Number sum = hi + addend;
    Number part = sum - hi;
    Number lost = addend - part;
    Number rest = sum - part;
    lo = lo + lost;
    lo = lo + (hi - rest);
    hi = sum;
}

// The two-float sums of the products of two vectors, in a register of lanes.
template <bool EXACT_PRODUCTS>
class ExactSums {
public:
    using Lanes = AscendC::twin::Lanes;

    void set(const Factor<EXACT_PRODUCTS> &a, const Factor<EXACT_PRODUCTS> &b, uint32_t k) {
        hi_ = a.x[k] * b.x[k];
        lo_ = error(a, b, k, hi_);
    }

    void add(const Factor<EXACT_PRODUCTS> &a, const Factor<EXACT_PRODUCTS> &b, uint32_t k) {
        Lanes product = a.x[k] * b.x[k];
        if constexpr (!EXACT_PRODUCTS) {
            lo_ = lo_ + error(a, b, k, product);
        }
        add_exactly(hi_, lo_, product);
    }

    // Lanes from `count` on are those of `other`.
    void keep_behind(uint32_t count, const ExactSums &other) {
        for (uint32_t i = count; i < AscendC::twin::REGISTER_LANES; ++i) {
            hi_[i] = other.hi_[i];
            lo_[i] = other.lo_[i];
        }
    }

    void store(float *hi, float *lo) const {
        AscendC::twin::store_lanes(hi, hi_);
        AscendC::twin::store_lanes(lo, lo_);
    }

private:
    // What a product rounds off.
    static Lanes error(const Factor<EXACT_PRODUCTS> &a, const Factor<EXACT_PRODUCTS> &b, uint32_t k,
                       const Lanes &product) {
        if constexpr (EXACT_PRODUCTS) {
            return Lanes{};
        } else {
            Lanes sum = a.upper[k] * b.upper[k] - product;
            sum = sum + a.upper[k] * b.lower[k];
            sum = sum + a.lower[k] * b.upper[k];
            return sum + a.lower[k] * b.lower[k];
        }
    }

    Lanes hi_ = {};
    Lanes lo_ = {};
};

// Sums of all entries of a Gram matrix, `width` lanes apart, of which `lanes` are in use.
struct ExactPlaces {
    float *high;
    float *low;
    uint32_t width;
    uint32_t lanes;
};

// Sums the products of a unit. Where its elements fill all lanes, the first ones are set, not added.
template <bool EXACT_PRODUCTS, typename T>
inline void sum_exactly(const ExactPlaces &to, const T *const *x, uint32_t radix, uint32_t len) {
    using AscendC::twin::REGISTER_LANES;
    Factor<EXACT_PRODUCTS> factors[8];
    for (uint32_t lane = 0; lane < to.lanes; lane += REGISTER_LANES) {
        for (uint32_t i = 0; i < radix; ++i) {
            factors[i].load(x[i], lane, to.lanes, len);
        }
        // Registers that are full, and the elements of the one behind them.
        uint32_t whole = lane + REGISTER_LANES <= len ? (len - lane - REGISTER_LANES) / to.lanes + 1 : 0;
        uint32_t behind = lane + whole * to.lanes;
        uint32_t rest = behind < len ? len - behind : 0;
        uint32_t place = lane;
        for (uint32_t i = 0; i < radix; ++i) {
            for (uint32_t j = i; j < radix; ++j, place += to.width) {
                ExactSums<EXACT_PRODUCTS> sums;
                bool fresh = len >= to.lanes;
                for (uint32_t k = 0; k < whole; ++k) {
                    fresh ? sums.set(factors[i], factors[j], k) : sums.add(factors[i], factors[j], k);
                    fresh = false;
                }
                if (rest > 0) {
                    ExactSums<EXACT_PRODUCTS> before = sums;
                    fresh ? sums.set(factors[i], factors[j], whole) : sums.add(factors[i], factors[j], whole);
                    sums.keep_behind(rest, before);
                }
                sums.store(to.high + place, to.low + place);
            }
        }
    }
}

// Joins lanes by halves, first in sums and errors, the last 8 as two-float numbers; writes hi and lo of each entry.
inline void join_exactly(float *record, const ExactPlaces &sums, uint32_t entries) {
    constexpr uint32_t BLOCK_LANES = 8;
    constexpr uint32_t MOST_ENTRIES = 36;
    // The same lane of all entries, side by side.
    TwoFloat lanes[BLOCK_LANES][MOST_ENTRIES];
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
        for (uint32_t lane = 0; lane < BLOCK_LANES; ++lane) {
            lanes[lane][entry] = two_sum(high[lane], low[lane]);
        }
    }
    for (uint32_t half = BLOCK_LANES / 2; half > 0; half /= 2) {
        for (uint32_t lane = 0; lane < half; ++lane) {
#pragma GCC ivdep
            for (uint32_t entry = 0; entry < entries; ++entry) {
                lanes[lane][entry] = adasum::add(lanes[lane][entry], lanes[lane + half][entry]);
            }
        }
    }
    for (uint32_t entry = 0; entry < entries; ++entry) {
        record[2 * entry] = lanes[0][entry].hi;
        record[2 * entry + 1] = lanes[0][entry].lo;
    }
}

} // namespace fused
} // namespace adasum

#endif
