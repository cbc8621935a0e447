// The steps of gram in one loop (fused.h): products of two vectors, of more, and their exact sums.
#ifndef ADASUM_TWIN_FUSED_GRAM_H
#define ADASUM_TWIN_FUSED_GRAM_H

#include "../two_float.h"
#include "fused.h"
#include "lanes.h"

namespace adasum {
namespace fused {

// Lanes that are summed together: those of whole cache lines.
constexpr uint32_t GROUP = 64;

// The products of two vectors, as gram_lanes.h has them: an entry has PAIR_WIDTH lanes, a group for each strip of
// PAIR_STRIP elements.
constexpr uint32_t PAIR_WIDTH = 512;
constexpr uint32_t PAIR_STRIP = 512;

// A part of the lanes of a strip, as many as registers hold: sums of xx, xy and yy. Loops are unrolled early: compilers keep the sums in
// memory else.
class PartSums {
public:
    static constexpr uint32_t REGISTERS = 4;
    static constexpr uint32_t LANES = REGISTERS * AscendC::twin::REGISTER_LANES;
    static_assert(GROUP % LANES == 0, "a group is a whole number of parts");

    PartSums() {
#pragma GCC unroll 4
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            xx_[k] = xy_[k] = yy_[k] = Lanes{};
        }
    }

    // Adds the products of as many elements as there are lanes.
    template <typename T>
    void add(const T *x, const T *y) {
#pragma GCC unroll 4
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            uint32_t i = k * AscendC::twin::REGISTER_LANES;
            Lanes a = AscendC::twin::load_lanes(x + i);
            Lanes b = AscendC::twin::load_lanes(y + i);
            xx_[k] = xx_[k] + a * a;
            xy_[k] = xy_[k] + a * b;
            yy_[k] = yy_[k] + b * b;
        }
    }

    // Adds the sums of another strip, which are stored there.
    void join(const float *sums) {
#pragma GCC unroll 4
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            const float *from = sums + k * AscendC::twin::REGISTER_LANES;
            xx_[k] = AscendC::twin::load_lanes(from) + xx_[k];
            xy_[k] = AscendC::twin::load_lanes(from + PAIR_WIDTH) + xy_[k];
            yy_[k] = AscendC::twin::load_lanes(from + 2 * PAIR_WIDTH) + yy_[k];
        }
    }

    void store(float *sums) const {
#pragma GCC unroll 4
        for (uint32_t k = 0; k < REGISTERS; ++k) {
            float *to = sums + k * AscendC::twin::REGISTER_LANES;
            AscendC::twin::store_lanes(to, xx_[k]);
            AscendC::twin::store_lanes(to + PAIR_WIDTH, xy_[k]);
            AscendC::twin::store_lanes(to + 2 * PAIR_WIDTH, yy_[k]);
        }
    }

private:
    using Lanes = AscendC::twin::Lanes;

    Lanes xx_[REGISTERS];
    Lanes xy_[REGISTERS];
    Lanes yy_[REGISTERS];
};

// The last elements of two vectors, fewer than a strip has lanes, as that many with zeros behind.
template <typename T>
struct PaddedTails {
    T x[GROUP] = {};
    T y[GROUP] = {};

    PaddedTails(const T *from_x, const T *from_y, uint32_t count) {
        std::memcpy(x, from_x, count * sizeof(T));
        std::memcpy(y, from_y, count * sizeof(T));
    }
};

// Sums the lanes from `part` on of strip number `strip`, which has `count` elements, the last ones in `tails`, and joins them with
// those of earlier strips as halves of all `lanes` are joined: as soon as both halves are there. Inlined, since a call costs
// as much as a tenth of a strip.
template <typename T>
[[gnu::always_inline]] inline void sum_part(float *sums, uint32_t lanes, uint32_t strip, uint32_t part, const T *x,
                                            const T *y, uint32_t count, const PaddedTails<T> &tails) {
    uint32_t tail = count % GROUP;
    PartSums own;
    // Not unrolled: a processor fetches ahead by itself, by the steps of each load instruction, while these are small.
#pragma GCC unroll 1
    for (uint32_t i = 0; i < count - tail; i += GROUP) {
        if (part == 0) {
            expect_all_after<GROUP>(x + i);
            expect_all_after<GROUP>(y + i);
        }
        own.add(x + i + part, y + i + part);
    }
    if (tail > part) {
        own.add(tails.x + part, tails.y + part);
    }
    uint32_t place = strip * GROUP;
    for (uint32_t half = lanes / 2; half >= GROUP && place >= half; half /= 2) {
        place -= half;
        own.join(sums + place + part);
    }
    own.store(sums + place + part);
}

// The sum of a group of lanes as a tree: halves are joined until 8 lanes are left, then neighbours.
inline float sum_of_lanes(const float *sums) {
    using namespace AscendC::twin;
    constexpr uint32_t REGISTERS = GROUP / REGISTER_LANES;
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
    uint32_t tail = count % GROUP;
    PaddedTails<T> tails(x + count - tail, y + count - tail, tail);
    for (uint32_t strip = 0; strip < lanes / GROUP; ++strip) {
        // Strips behind the end are there for the halves of others that they are joined with.
        uint32_t from = strip * PAIR_STRIP < count ? strip * PAIR_STRIP : count;
        uint32_t len = count - from < PAIR_STRIP ? count - from : PAIR_STRIP;
        for (uint32_t part = 0; part < GROUP; part += PartSums::LANES) {
            sum_part(sums, lanes, strip, part, x + from, y + from, len, tails);
        }
    }
    for (uint32_t entry = 0; entry < 3; ++entry) {
        record[2 * entry] = sum_of_lanes(sums + entry * PAIR_WIDTH);
    }
}

// The products of more vectors: as many lanes as a register has at a time, in blocks of rows of the Gram matrix whose sums,
// with the vectors, registers hold.
constexpr uint32_t MOST_SUMS = AscendC::twin::REGISTER_BYTES == 64 ? 24 : 10;

// How many rows from `row` on make a block.
constexpr uint32_t rows_of_block(uint32_t radix, uint32_t row) {
    uint32_t rows = 0;
    for (uint32_t sums = 0; row + rows < radix && sums + radix - row - rows <= MOST_SUMS; ++rows) {
        sums += radix - row - rows;
    }
    return rows;
}

constexpr uint32_t sums_of_block(uint32_t radix, uint32_t row, uint32_t rows) {
    return rows * (2 * (radix - row) - rows + 1) / 2;
}

// Adds the products of vectors whose elements `load(j)` gives.
template <uint32_t COLUMNS, uint32_t ROWS, typename Load>
[[gnu::always_inline]] inline void add_rows(AscendC::twin::Lanes *sums, const Load &load) {
    AscendC::twin::Lanes values[COLUMNS];
#pragma GCC unroll 8
    for (uint32_t j = 0; j < COLUMNS; ++j) {
        values[j] = load(j);
    }
    uint32_t entry = 0;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < ROWS; ++i) {
#pragma GCC unroll 8
        for (uint32_t j = i; j < COLUMNS; ++j, ++entry) {
            sums[entry] = sums[entry] + values[i] * values[j];
        }
    }
}

// The last `count` elements, fewer than a register has lanes, with zeros behind.
template <typename T>
inline AscendC::twin::Lanes load_last(const T *from, uint32_t count) {
    T padded[AscendC::twin::REGISTER_LANES] = {};
    std::memcpy(padded, from, count * sizeof(T));
    return AscendC::twin::load_lanes(padded);
}

// How many elements ahead memory is asked for: those of a whole unit, also where units are short.
constexpr uint32_t AHEAD = 4096;

// The most elements of a lane: of r = 8, which has the fewest lanes.
constexpr uint32_t MOST_OF_LANE = 16;

// Where the sums of some lanes go: those of `joins` other halves lie before it, WORDS from one to the next, and are joined with
// them.
template <uint32_t RADIX>
struct Halves {
    static constexpr uint32_t WORDS = RADIX * (RADIX + 1) / 2 * GROUP;

    float *sums;
    uint32_t joins;

    // Joins the sums of a block, which lie GROUP apart from entry number `first` on, and stores them over the last half that they
    // were joined with.
    template <uint32_t SUMS>
    [[gnu::always_inline]] void store(uint32_t first, AscendC::twin::Lanes *block) const {
        float *to = sums + first * GROUP;
        for (uint32_t join = 0; join < joins; ++join) {
            to -= WORDS;
#pragma GCC unroll 24
            for (uint32_t entry = 0; entry < SUMS; ++entry) {
                block[entry] = AscendC::twin::load_lanes(to + entry * GROUP) + block[entry];
            }
        }
#pragma GCC unroll 24
        for (uint32_t entry = 0; entry < SUMS; ++entry) {
            AscendC::twin::store_lanes(to + entry * GROUP, block[entry]);
        }
    }
};

// Sums the rows from ROW on, in blocks, of `count` elements a lane, which the first block has kept of the vectors from FIRST on.
template <uint32_t RADIX, uint32_t FIRST, uint32_t ROW>
[[gnu::always_inline]] inline void sum_kept(const Halves<RADIX> &sums, uint32_t entry, const float *kept,
                                            uint32_t count) {
    using namespace AscendC::twin;
    if constexpr (ROW < RADIX) {
        constexpr uint32_t ROWS = rows_of_block(RADIX, ROW);
        constexpr uint32_t SUMS = sums_of_block(RADIX, ROW, ROWS);
        Lanes block[SUMS] = {};
        const float *from = kept + (ROW - FIRST) * REGISTER_LANES;
#pragma GCC unroll 1
        for (uint32_t i = 0; i < count; ++i, from += (RADIX - FIRST) * REGISTER_LANES) {
            add_rows<RADIX - ROW, ROWS>(block, [&](uint32_t j) { return load_lanes(from + j * REGISTER_LANES); });
        }
        sums.template store<SUMS>(entry, block);
        sum_kept<RADIX, FIRST, ROW + ROWS>(sums, entry + SUMS, kept, count);
    }
}

// The sums of a register of lanes from `lane` on, of a unit of `len` elements; GROUP apart. With each register of a vector it asks
// for one of the next unit, from element `ahead` on: one behind the other, as memory gives them fastest, and not in the order in
// which lanes take them.
//
// Elements of a lane lie 1 or 2 KiB apart, and a cache has few places for such addresses. So the first block keeps what later blocks
// need, as fp32, one element behind the other.
template <uint32_t RADIX, typename T>
[[gnu::always_inline]] inline void sum_register(const Halves<RADIX> &sums, uint32_t lanes, uint32_t lane,
                                                const T *const *x, uint32_t len, uint32_t &ahead) {
    using namespace AscendC::twin;
    constexpr uint32_t ROWS = rows_of_block(RADIX, 0);
    constexpr uint32_t SUMS = sums_of_block(RADIX, 0, ROWS);
    alignas(REGISTER_BYTES) float kept[MOST_OF_LANE * RADIX * REGISTER_LANES];
    uint32_t count = 0;
    const auto keep = [&](uint32_t j, const Lanes &values) {
        if (j >= ROWS) {
            store_lanes(kept + (count * (RADIX - ROWS) + j - ROWS) * REGISTER_LANES, values);
        }
        return values;
    };
    Lanes block[SUMS] = {};
    uint32_t i = lane;
    for (; i + REGISTER_LANES <= len; i += lanes, ahead += REGISTER_LANES, ++count) {
        add_rows<RADIX, ROWS>(block, [&](uint32_t j) {
            if (ahead % LINE<T> == 0) {
                __builtin_prefetch(x[j] + ahead, 0, 3);
            }
            return keep(j, load_lanes(x[j] + i));
        });
    }
    if (i < len) {
        add_rows<RADIX, ROWS>(block, [&](uint32_t j) { return keep(j, load_last(x[j] + i, len - i)); });
        ahead += REGISTER_LANES;
        ++count;
    }
    sums.template store<SUMS>(0, block);
    sum_kept<RADIX, ROWS, ROWS>(sums, SUMS, kept, count);
}

// The `bits` low bits of a number in reverse.
inline uint32_t reversed(uint32_t number, uint32_t bits) {
    uint32_t result = 0;
    for (uint32_t bit = 0; bit < bits; ++bit) {
        result |= (number >> bit & 1U) << (bits - 1 - bit);
    }
    return result;
}

// Sums the products of a unit into the hi words of its record. `lanes` is a power of two. Halves of all lanes are joined as
// soon as both are there: in an order of bits reversed, `sums` has room for what waits for its other half.
template <uint32_t RADIX, typename T>
inline void sum_many_of(float *record, float *sums, uint32_t lanes, const T *const *x, uint32_t len) {
    using namespace AscendC::twin;
    using Place = Halves<RADIX>;
    uint32_t groups = lanes > GROUP ? lanes / GROUP : 1;
    uint32_t levels = static_cast<uint32_t>(__builtin_ctz(groups));
    uint32_t ahead = AHEAD;
    for (uint32_t step = 0; step < groups; ++step) {
        float *own = sums + static_cast<uint32_t>(__builtin_popcount(step)) * Place::WORDS;
        uint32_t joins = static_cast<uint32_t>(__builtin_ctz(~step));
        uint32_t lane = reversed(step, levels) * GROUP;
        for (uint32_t part = 0; part < GROUP; part += REGISTER_LANES) {
            sum_register(Place{own + part, joins}, lanes, lane + part, x, len, ahead);
        }
    }
    for (uint32_t entry = 0; entry < Place::WORDS / GROUP; ++entry) {
        record[2 * entry] = sum_of_lanes(sums + entry * GROUP);
    }
}

template <typename T>
inline void sum_many(float *record, float *sums, uint32_t lanes, const T *const *x, uint32_t radix, uint32_t len) {
    switch (radix) {
    case 3: return sum_many_of<3>(record, sums, lanes, x, len);
    case 4: return sum_many_of<4>(record, sums, lanes, x, len);
    case 5: return sum_many_of<5>(record, sums, lanes, x, len);
    case 6: return sum_many_of<6>(record, sums, lanes, x, len);
    case 7: return sum_many_of<7>(record, sums, lanes, x, len);
    default: return sum_many_of<8>(record, sums, lanes, x, len);
    }
}

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
