// The steps of gram for two vectors in one loop (fused.h), and what those for more of them share.
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

// The last `count` elements, fewer than a register has lanes, with zeros behind.
template <typename T>
inline AscendC::twin::Lanes load_last(const T *from, uint32_t count) {
    T padded[AscendC::twin::REGISTER_LANES] = {};
    std::memcpy(padded, from, count * sizeof(T));
    return AscendC::twin::load_lanes(padded);
}

} // namespace fused
} // namespace adasum

#endif
