// The steps of gram for more than two vectors in one loop each (fused.h).
//
// There are two ways to go through a unit. Whole units of fp32 numbers are taken as they lie in memory (`sum_in_order`):
// processors then fetch ahead by themselves, more at a time than a program can ask for, and the sums of all lanes are loaded
// and stored again and again. 16-bit numbers are half as many bytes with as much work, and short units have little to fetch,
// so there a register keeps the sums of its lanes to the end (`sum_by_lanes`).
#ifndef ADASUM_TWIN_FUSED_GRAM_MANY_H
#define ADASUM_TWIN_FUSED_GRAM_MANY_H

#include "../layout.h"
#include "fused_gram.h"

namespace adasum {
namespace fused {

// As many lanes as a register has at a time, in blocks of rows of the Gram matrix whose sums, with the vectors, registers
// hold.
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

// Strips, of an element for each lane, whose products are added before sums are stored: two where registers do not hold the
// sums of all entries.
constexpr uint32_t strips_of_step(uint32_t radix) { return entries(radix) > MOST_SUMS ? 2 : 1; }

// Lanes that a run through the unit sums: a power of two, as many as have their sums in a first-level cache, beside what is
// read meanwhile.
constexpr uint32_t lanes_of_run(uint32_t radix) {
    uint32_t lanes = 512;
    while (entries(radix) * lanes * sizeof(float) > 22 * 1024) {
        lanes /= 2;
    }
    return lanes;
}

// Adds the products of a register of lanes, of `lanes` in all, from element `first` on, of as many strips as a step takes.
// Their sums lie one behind the other from row ROW on. BEGIN: there were none.
template <uint32_t RADIX, uint32_t ROW, bool BEGIN>
[[gnu::always_inline]] inline void add_step(float *sums, const Vectors<RADIX, float> &x, uint32_t first,
                                            uint32_t lanes) {
    using namespace AscendC::twin;
    if constexpr (ROW < RADIX) {
        constexpr uint32_t ROWS = rows_of_block(RADIX, ROW);
        constexpr uint32_t SUMS = sums_of_block(RADIX, ROW, ROWS);
        constexpr uint32_t STRIPS = strips_of_step(RADIX);
        Lanes block[SUMS];
#pragma GCC unroll 24
        for (uint32_t entry = 0; entry < SUMS; ++entry) {
            block[entry] = BEGIN ? Lanes{} : load_lanes(sums + entry * REGISTER_LANES);
        }
#pragma GCC unroll 2
        for (uint32_t strip = 0; strip < STRIPS; ++strip) {
            uint32_t i = first + strip * lanes;
            add_rows<RADIX - ROW, ROWS>(block, [&](uint32_t j) {
                // Memory is asked for the next step.
                if (ROW == 0 && i % LINE<float> == 0) {
                    __builtin_prefetch(x[ROW + j] + i + STRIPS * lanes, 0, 3);
                }
                return load_lanes(x[ROW + j] + i);
            });
        }
#pragma GCC unroll 24
        for (uint32_t entry = 0; entry < SUMS; ++entry) {
            store_lanes(sums + entry * REGISTER_LANES, block[entry]);
        }
        add_step<RADIX, ROW + ROWS, BEGIN>(sums + SUMS * REGISTER_LANES, x, first, lanes);
    }
}

// Adds the products of the steps from element `first` on, for the lanes of a run.
template <uint32_t RADIX, bool BEGIN>
inline void add_run(float *sums, const float *const *vectors, uint32_t first, uint32_t run, uint32_t lanes) {
    using AscendC::twin::REGISTER_LANES;
    const Vectors<RADIX, float> x(vectors);
    for (uint32_t lane = 0; lane < run; lane += REGISTER_LANES) {
        add_step<RADIX, 0, BEGIN>(sums + lane * entries(RADIX), x, first + lane, lanes);
    }
}

// Sums the products of a whole unit into the hi words of its record. `lanes` is a power of two; `sums` has room for as many of
// each entry.
template <uint32_t RADIX>
inline void sum_in_order(float *record, float *sums, uint32_t lanes, const float *const *x) {
    using namespace AscendC::twin;
    constexpr uint32_t ENTRIES = entries(RADIX);
    const uint32_t run = lanes < lanes_of_run(RADIX) ? lanes : lanes_of_run(RADIX);
    const uint32_t step = strips_of_step(RADIX) * lanes;
    for (uint32_t lane = 0; lane < lanes; lane += run) {
        float *own = sums + lane * ENTRIES;
        add_run<RADIX, true>(own, x, lane, run, lanes);
        for (uint32_t i = lane + step; i < UNIT; i += step) {
            add_run<RADIX, false>(own, x, i, run, lanes);
        }
    }
    for (uint32_t half = lanes / 2; half >= GROUP; half /= 2) {
        for (uint32_t i = 0; i < half * ENTRIES; i += REGISTER_LANES) {
            store_lanes(sums + i, load_lanes(sums + i) + load_lanes(sums + half * ENTRIES + i));
        }
    }
    for (uint32_t entry = 0; entry < ENTRIES; ++entry) {
        float group[GROUP];
        for (uint32_t lane = 0; lane < GROUP; lane += REGISTER_LANES) {
            store_lanes(group + lane, load_lanes(sums + lane * ENTRIES + entry * REGISTER_LANES));
        }
        record[2 * entry] = sum_of_lanes(group);
    }
}

// The most elements of a lane: of r = 8, which has the fewest lanes.
constexpr uint32_t MOST_OF_LANE = 16;

// Where the sums of some lanes go: those of `joins` other halves lie before it, WORDS from one to the next, and are joined with
// them.
template <uint32_t RADIX>
struct Halves {
    static constexpr uint32_t WORDS = entries(RADIX) * GROUP;

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
inline void sum_by_lanes(float *record, float *sums, uint32_t lanes, const T *const *x, uint32_t len) {
    using namespace AscendC::twin;
    using Place = Halves<RADIX>;
    uint32_t groups = lanes > GROUP ? lanes / GROUP : 1;
    uint32_t levels = static_cast<uint32_t>(__builtin_ctz(groups));
    // As far ahead as a whole unit, also where units are short.
    uint32_t ahead = UNIT;
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

template <uint32_t RADIX, typename T>
inline void sum_many_of(float *record, float *sums, uint32_t lanes, const T *const *x, uint32_t len) {
    if constexpr (sizeof(T) == sizeof(float)) {
        if (len == UNIT) {
            sum_in_order<RADIX>(record, sums, lanes, x);
            return;
        }
    }
    sum_by_lanes<RADIX>(record, sums, lanes, x, len);
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

} // namespace fused
} // namespace adasum

#endif
