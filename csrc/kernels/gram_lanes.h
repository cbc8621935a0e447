// How `gram` sums the products of a unit in fp32: lanes of the vector unit collect them, a tree of additions joins lanes.
//
// r = 2 uses PairLanes, r > 2 uses PlainLanes, and ExactLanes (gram_exact.h) for the units that need it (separation.h).
//
// Bytes of a tile are those of a vector; UB is that of the whole kernel, for fp32 and for 16-bit types. Arch 1001 takes
// 6144 bytes more for r = 2. gram.cpp holds the table against the code and against the budget of 160 KiB (163840).
//
//   r   lanes   exact   tile      UB     UB 16
//   2     512       -  16384   91136     91136
//   3     512     512   8192  116224    111360
//   4     512     512   8192  153600    147968
//   5     512     512   4096  154112    146432
//   6     512     256   4096  131072    134912
//   7     512     256   4096  156160    161280
//   8     256     128   4096  135680    142080
#ifndef ADASUM_GRAM_LANES_H
#define ADASUM_GRAM_LANES_H

#include "adasum_ascendc.h"
#include "device.h"
#include "layout.h"

namespace adasum {

// The table above, from r = 2 on: lanes, those of exact sums, bytes of a tile, UB, UB for 16-bit types.
constexpr uint32_t GRAM_TABLE[7][5] = {{512, 0, 16384, 91136, 91136},    {512, 512, 8192, 116224, 111360},
                                       {512, 512, 8192, 153600, 147968}, {512, 512, 4096, 154112, 146432},
                                       {512, 256, 4096, 131072, 134912}, {512, 256, 4096, 156160, 161280},
                                       {256, 128, 4096, 135680, 142080}};

__aicore__ inline constexpr uint32_t plain_lanes(uint32_t radix) { return radix <= 7 ? 512 : 256; }

__aicore__ inline constexpr uint32_t exact_lanes(uint32_t radix) {
    return radix == 2 ? 0 : (radix <= 5 ? 512 : (radix <= 7 ? 256 : 128));
}

// The fewest lanes, a power of two from `least` to `most`, that hold all elements of a unit at once, else `most`.
__aicore__ inline uint32_t lanes_for(uint32_t len, uint32_t least, uint32_t most) {
    uint32_t lanes = least;
    while (lanes < len && lanes < most) {
        lanes *= 2;
    }
    return lanes;
}

// Joins the `lanes` in use of each entry by halves, the last 8 as neighbours; entries are `width` lanes apart. Writes the hi
// words of a record.
__aicore__ inline void join_lanes(const AscendC::LocalTensor<float> &record, const AscendC::LocalTensor<float> &sums,
                                  uint32_t lanes, uint32_t width, uint32_t entries) {
    for (uint32_t half = lanes / 2; half >= BLOCK; half /= 2) {
        for (uint32_t entry = 0; entry < entries; ++entry) {
            AscendC::LocalTensor<float> own = sums[entry * width];
            AscendC::Add(own, own, own[half], static_cast<int32_t>(half));
        }
        AscendC::PipeBarrier<PIPE_V>();
    }
    sum_blocks(record, 2, sums, width, entries);
}

// One fp32 sum a lane, for two vectors. A unit is up to eight strips of 512 elements with 64 lanes each: element i of a
// strip goes to lane i % 64. So an instruction can take 64 elements of every strip, which keeps the vector unit busy, and
// a CPU can go through a strip, and so through memory, in order with the lanes of the strip in registers.
class PairLanes {
public:
    static constexpr uint32_t WIDTH = 512;
    static constexpr uint32_t STRIP = 512;
    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix) {
        return (ADASUM_WHOLE_BLOCKS ? 2 : 1) * entries(radix) * WIDTH * 4;
    }
    // The most elements of a vector that `add` takes.
    static __aicore__ inline constexpr uint32_t step(uint32_t) { return UNIT; }

    __aicore__ inline PairLanes() {}

    // Works in `all`, which has ub_bytes(radix).
    __aicore__ inline void init(const AscendC::LocalTensor<float> &all, uint32_t radix) {
        radix_ = radix;
        entries_ = entries(radix);
        sums_ = all;
        products_ = ADASUM_WHOLE_BLOCKS ? sums_[entries_ * WIDTH] : sums_;
    }

    // Begins a unit; returns how many elements `add` takes at a time.
    __aicore__ inline uint32_t start(uint32_t len) {
        lanes_ = lanes_for((len + STRIP - 1) / STRIP * REPEAT, REPEAT, WIDTH);
        return UNIT;
    }

    // Sums the products of all elements of the unit.
    __aicore__ inline void add(const AscendC::LocalTensor<float> *x, int32_t count) {
        AscendC::Duplicate(sums_, 0.0f, static_cast<int32_t>(entries_ * WIDTH));
        AscendC::PipeBarrier<PIPE_V>();
        uint32_t whole = static_cast<uint32_t>(count) / STRIP;
        uint32_t rest = static_cast<uint32_t>(count) % STRIP;
        for (uint32_t from = 0; from < STRIP; from += REPEAT) {
            uint32_t strips = whole + (rest >= from + REPEAT ? 1 : 0);
            if (strips == 0) {
                break;
            }
            add_strips(x, from, strips);
        }
        if (rest % REPEAT != 0) {
            add_tail(x, static_cast<uint32_t>(count), rest % REPEAT);
        }
    }

    // Writes the hi words of a record; its lo words stay as they are, which is zero.
    __aicore__ inline void finish(const AscendC::LocalTensor<float> &record) {
        join_lanes(record, sums_, lanes_, WIDTH, entries_);
    }

#ifdef ADASUM_FUSED
    // The same record for a unit of two vectors as they lie in device memory.
    template <typename T>
    void sum(const AscendC::LocalTensor<float> &record, const T *const *x, uint32_t len) {
        static_assert(WIDTH == fused::PAIR_WIDTH && STRIP == fused::PAIR_STRIP && REPEAT == fused::GROUP,
                      "the fused step has lanes elsewhere");
        start(len);
        fused::sum_pair(record.write(0, 2 * entries(2)), sums_.write(0, entries(2) * WIDTH), lanes_, x[0], x[1], len);
    }
#endif

private:
    // Adds the products of 64 elements of each strip, `from` elements behind its start.
    __aicore__ inline void add_strips(const AscendC::LocalTensor<float> *x, uint32_t from, uint32_t strips) {
        uint32_t entry = 0;
        for (uint32_t i = 0; i < radix_; ++i) {
            for (uint32_t j = i; j < radix_; ++j, ++entry) {
                multiply_add_strips<STRIP>(sums_[entry * WIDTH], x[i][from], x[j][from], products_[entry * WIDTH],
                                           strips);
            }
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    // Adds the last products, which are fewer than 64.
    __aicore__ inline void add_tail(const AscendC::LocalTensor<float> *x, uint32_t count, uint32_t tail) {
        uint32_t from = count - tail;
        uint32_t lane = count / STRIP * REPEAT;
        uint32_t entry = 0;
        for (uint32_t i = 0; i < radix_; ++i) {
            for (uint32_t j = i; j < radix_; ++j, ++entry) {
                uint32_t place = entry * WIDTH + lane;
                multiply_add(sums_[place], x[i][from], x[j][from], products_[place], static_cast<int32_t>(tail));
            }
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    AscendC::LocalTensor<float> sums_;
    AscendC::LocalTensor<float> products_;
    uint32_t radix_ = 0;
    uint32_t entries_ = 0;
    uint32_t lanes_ = 0;
};

// One fp32 sum a lane, for more vectors. Element i of a unit goes to lane i % lanes, so an instruction takes elements that lie
// one behind another.
class PlainLanes {
public:
    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix) {
        uint32_t products = ADASUM_WHOLE_BLOCKS ? 2 : 0;
        return (entries(radix) + products) * plain_lanes(radix) * 4;
    }
    static __aicore__ inline constexpr uint32_t step(uint32_t radix) { return plain_lanes(radix); }

    __aicore__ inline PlainLanes() {}

    // Works in `all`, which has ub_bytes(radix).
    __aicore__ inline void init(const AscendC::LocalTensor<float> &all, uint32_t radix) {
        radix_ = radix;
        entries_ = entries(radix);
        width_ = plain_lanes(radix);
        sums_ = all;
        products_ = ADASUM_WHOLE_BLOCKS ? all[entries_ * width_] : all;
    }

    // Begins a unit; returns the number of lanes in use, which `add` takes at a time.
    __aicore__ inline uint32_t start(uint32_t len) {
        lanes_ = lanes_for(len, BLOCK, width_);
        AscendC::Duplicate(sums_, 0.0f, static_cast<int32_t>(entries_ * width_));
        AscendC::PipeBarrier<PIPE_V>();
        return lanes_;
    }

    // Adds the products of up to as many elements as there are lanes.
    __aicore__ inline void add(const AscendC::LocalTensor<float> *x, int32_t count) {
        uint32_t entry = 0;
        for (uint32_t i = 0; i < radix_; ++i) {
            for (uint32_t j = i; j < radix_; ++j, ++entry) {
                // Where products take memory, an entry has that of the entry before the last one.
                multiply_add(sums_[entry * width_], x[i], x[j], products_[entry % 2 * width_], count);
            }
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    // Writes the hi words of a record; its lo words stay as they are, which is zero.
    __aicore__ inline void finish(const AscendC::LocalTensor<float> &record) {
        join_lanes(record, sums_, lanes_, width_, entries_);
    }

#ifdef ADASUM_FUSED
    // The same record for a unit of vectors as they lie in device memory.
    template <typename T>
    void sum(const AscendC::LocalTensor<float> &record, const T *const *x, uint32_t len) {
        static_assert(UNIT / plain_lanes(MAX_RADIX) <= fused::MOST_OF_LANE, "the fused step has no room for a lane");
        uint32_t lanes = lanes_for(len, BLOCK, width_);
        fused::sum_many(record.write(0, 2 * entries_), sums_.write(0, entries_ * width_), lanes, x, radix_, len);
    }
#endif

private:
    AscendC::LocalTensor<float> sums_;
    AscendC::LocalTensor<float> products_;
    uint32_t radix_ = 0;
    uint32_t entries_ = 0;
    uint32_t width_ = 0;
    uint32_t lanes_ = 0;
};

} // namespace adasum

#endif
