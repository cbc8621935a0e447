// How `gram` sums the products of one unit: lanes of the vector unit collect them, a tree of additions joins lanes.
//
// r = 2 uses PlainLanes, r > 2 uses WideLanes: the norm of a subtree is a difference of large entries where its
// leaves nearly cancel, and fp32 sums would leave only noise of it. Products of 16-bit values are exact in fp32.
//
// Bytes of a tile are those of a vector; UB is that of the whole kernel, for fp32 and for 16-bit types. Arch 1001 takes
// 6144 bytes more for r = 2. gram.cpp holds the table against the code and against the budget of 160 KiB (163840).
//
//   r   lanes   sums             tile      UB     UB 16
//   2     512   fp32            16384   91136     91136
//   3     512   hi + lo, fp32    8192  116224    111360
//   4     512   hi + lo, fp32    8192  153600    147968
//   5     512   hi + lo, fp32    4096  154112    146432
//   6     256   hi + lo, fp32    4096  131072    128768
//   7     256   hi + lo, fp32    4096  156160    154112
//   8     128   hi + lo, fp32    4096  135680    137984
#ifndef ADASUM_GRAM_LANES_H
#define ADASUM_GRAM_LANES_H

#include "adasum_ascendc.h"
#include "device.h"
#include "layout.h"
#include "two_float.h"
#include "two_float_lanes.h"

namespace adasum {

// The table above, from r = 2 on: lanes, bytes of a tile, UB, UB for 16-bit types.
constexpr uint32_t GRAM_TABLE[7][4] = {
    {512, 16384, 91136, 91136},  {512, 8192, 116224, 111360}, {512, 8192, 153600, 147968}, {512, 4096, 154112, 146432},
    {256, 4096, 131072, 128768}, {256, 4096, 156160, 154112}, {128, 4096, 135680, 137984}};

__aicore__ inline constexpr uint32_t lanes_of(uint32_t radix) { return radix <= 5 ? 512 : (radix <= 7 ? 256 : 128); }

// The fewest lanes, a power of two from `least` to `most`, that hold all elements of a unit at once, else `most`.
__aicore__ inline uint32_t lanes_for(uint32_t len, uint32_t least, uint32_t most) {
    uint32_t lanes = least;
    while (lanes < len && lanes < most) {
        lanes *= 2;
    }
    return lanes;
}

// One fp32 sum a lane, for two vectors. A unit is up to eight strips of 512 elements with 64 lanes each: element i of a
// strip goes to lane i % 64. So an instruction can take 64 elements of every strip, which keeps the vector unit busy, and
// a CPU can go through a strip, and so through memory, in order with the lanes of the strip in registers.
class PlainLanes {
public:
    static constexpr uint32_t WIDTH = 512;
    static constexpr uint32_t STRIP = 512;
    // Whether the fast twin has `sum` for it.
    static constexpr bool FUSED = true;

    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix) {
        return (ADASUM_WHOLE_BLOCKS ? 2 : 1) * entries(radix) * WIDTH * 4;
    }
    // The most elements of a vector that `add` takes.
    static __aicore__ inline constexpr uint32_t step(uint32_t) { return UNIT; }

    __aicore__ inline PlainLanes() {}

    __aicore__ inline void init(AscendC::TPipe &pipe, uint32_t radix) {
        radix_ = radix;
        entries_ = entries(radix);
        pipe.InitBuffer(buffer_, ub_bytes(radix));
        sums_ = buffer_.Get<float>();
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
        for (uint32_t half = lanes_ / 2; half >= BLOCK; half /= 2) {
            for (uint32_t entry = 0; entry < entries_; ++entry) {
                AscendC::LocalTensor<float> sums = sums_[entry * WIDTH];
                AscendC::Add(sums, sums, sums[half], static_cast<int32_t>(half));
            }
            AscendC::PipeBarrier<PIPE_V>();
        }
        sum_blocks(record, 2, sums_, WIDTH, entries_);
    }

#ifdef ADASUM_FUSED
    // The same record for a unit of two vectors as they lie in device memory.
    template <typename T>
    void sum(const AscendC::LocalTensor<float> &record, const T *x, const T *y, uint32_t len) {
        static_assert(WIDTH == fused::PAIR_WIDTH && STRIP == fused::PAIR_STRIP && REPEAT == fused::PAIR_LANES,
                      "the fused step has lanes elsewhere");
        start(len);
        fused::sum_pair(record.write(0, 2 * entries(2)), sums_.write(0, entries(2) * WIDTH), lanes_, x, y, len);
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

    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer_;
    AscendC::LocalTensor<float> sums_;
    AscendC::LocalTensor<float> products_;
    uint32_t radix_ = 0;
    uint32_t entries_ = 0;
    uint32_t lanes_ = 0;
};

// Two-float sums a lane. EXACT says that products are exact in fp32; else their errors come from split factors.
template <bool EXACT>
class WideLanes {
public:
    static constexpr bool FUSED = false;

    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix) {
        uint32_t sums = 2 * entries(radix) + 1;
        uint32_t lanes = (sums + TEMPORARIES) * lanes_of(radix);
        return (lanes + spare_words(radix)) * 4;
    }
    static __aicore__ inline constexpr uint32_t step(uint32_t radix) { return lanes_of(radix); }

    __aicore__ inline WideLanes() {}

    __aicore__ inline void init(AscendC::TPipe &pipe, uint32_t radix) {
        radix_ = radix;
        entries_ = entries(radix);
        width_ = lanes_of(radix);
        pipe.InitBuffer(buffer_, ub_bytes(radix));
        AscendC::LocalTensor<float> all = buffer_.Get<float>();
        high_ = all;
        low_ = all[(entries_ + 1) * width_];
        product_ = all[(2 * entries_ + 1) * width_];
        error_ = product_[width_];
        work_ = error_[width_];
        rest_ = work_[width_];
        halves_ = rest_[width_];
    }

    // Begins a unit; returns the number of lanes in use, which `add` fills.
    __aicore__ inline uint32_t start(uint32_t len) {
        lanes_ = lanes_for(len, BLOCK, width_);
        fresh_ = len >= lanes_;
        spare_ = entries_;
        for (uint32_t entry = 0; entry < entries_; ++entry) {
            place_[entry] = entry;
            if (!fresh_) {
                AscendC::Duplicate(high(entry), 0.0f, static_cast<int32_t>(lanes_));
            }
            if (!fresh_ || EXACT) {
                AscendC::Duplicate(low(entry), 0.0f, static_cast<int32_t>(lanes_));
            }
        }
        AscendC::PipeBarrier<PIPE_V>();
        return lanes_;
    }

    // Adds the products of up to as many elements as there are lanes; the first ones are set where they fill all lanes.
    __aicore__ inline void add(const AscendC::LocalTensor<float> *x, int32_t count) {
#ifdef ADASUM_FUSED
        fused::add_products<EXACT>(wide_sums(), halves_, x, count);
        fresh_ = false;
        return;
#endif
        if (!EXACT) {
            split_all(x, count);
        }
        uint32_t entry = 0;
        for (uint32_t i = 0; i < radix_; ++i) {
            for (uint32_t j = i; j < radix_; ++j, ++entry) {
                if (fresh_) {
                    set_products(entry, x, i, j, count);
                } else {
                    add_products(entry, x, i, j, count);
                }
            }
        }
        fresh_ = false;
    }

    // Writes hi and lo of each entry of a record.
    __aicore__ inline void finish(const AscendC::LocalTensor<float> &record) {
#ifdef ADASUM_FUSED
        fused::finish_products(wide_sums(), record);
        return;
#endif
        for (uint32_t half = lanes_ / 2; half >= BLOCK; half /= 2) {
            for (uint32_t entry = 0; entry < entries_; ++entry) {
                add_half(entry, half);
            }
        }
        join_block(record);
    }

private:
    static constexpr uint32_t TEMPORARIES = 4;
    // Arrays of BLOCK lanes an entry that `join_block` needs.
    static constexpr uint32_t BLOCKS_IN_JOIN = 5;

    // Lanes of all entries in one array, up to the next block.
    static __aicore__ inline constexpr uint32_t entry_lanes(uint32_t radix) {
        return (entries(radix) + BLOCK - 1) / BLOCK * BLOCK;
    }

    // What is halves while products are added, and work when they are joined.
    static __aicore__ inline constexpr uint32_t spare_words(uint32_t radix) {
        uint32_t halves = EXACT ? 0 : 2 * radix * lanes_of(radix);
        uint32_t join = BLOCKS_IN_JOIN * BLOCK * entry_lanes(radix);
        return halves > join ? halves : join;
    }

    // The last 8 lanes of each entry as a tree of two-float additions. Lane k of all entries becomes one array, so that an
    // instruction adds lanes of all of them.
    __aicore__ inline void join_block(const AscendC::LocalTensor<float> &record) {
        uint32_t width = entry_lanes(radix_);
        AscendC::LocalTensor<float> work = halves_[2 * BLOCK * width];
        TwoFloatLanes by_lane{work, work[BLOCK * width]};
        for (uint32_t entry = 0; entry < entries_; ++entry) {
            AscendC::Muls(by_lane.hi[entry * BLOCK], high(entry), 1.0f, static_cast<int32_t>(BLOCK));
            AscendC::Muls(by_lane.lo[entry * BLOCK], low(entry), 1.0f, static_cast<int32_t>(BLOCK));
        }
        AscendC::PipeBarrier<PIPE_V>();
        TwoFloatLanes by_entry{halves_, halves_[BLOCK * width]};
        two_sum(by_entry, by_lane.hi, by_lane.lo, work[2 * BLOCK * width], static_cast<int32_t>(BLOCK * entries_));
        transpose_blocks(by_lane.hi, width, 1, by_entry.hi, BLOCK * entries_);
        transpose_blocks(by_lane.lo, width, 1, by_entry.lo, BLOCK * entries_);
        // Sums and what they are made of change places at each level.
        TwoFloatLanes sums = by_lane;
        AscendC::LocalTensor<float> other = halves_;
        for (uint32_t lanes = BLOCK / 2; lanes > 0; lanes /= 2) {
            uint32_t count = lanes * width;
            TwoFloatLanes joined{other, other[count]};
            TwoFloatLanes low{other[2 * count], other[3 * count]};
            adasum::add(joined, sums, sums.from(count), low, static_cast<int32_t>(count));
            other = sums.hi;
            sums = joined;
        }
        transpose_blocks(record, 2, 2 * BLOCK, sums.hi, entries_);
        transpose_blocks(record[1], 2, 2 * BLOCK, sums.lo, entries_);
    }

#ifdef ADASUM_FUSED
    // Sums stay in their places here.
    fused::WideSums wide_sums() const {
        return fused::WideSums{
            high_.write(0, entries_ * width_), low_.write(0, entries_ * width_), width_, lanes_, radix_, fresh_};
    }
#endif

    // The sums of an entry: hi lanes change places with the spare ones at each addition.
    __aicore__ inline AscendC::LocalTensor<float> high(uint32_t entry) const { return high_[place_[entry] * width_]; }
    __aicore__ inline AscendC::LocalTensor<float> low(uint32_t entry) const { return low_[entry * width_]; }

    __aicore__ inline AscendC::LocalTensor<float> upper(uint32_t i) const { return halves_[2 * i * width_]; }
    __aicore__ inline AscendC::LocalTensor<float> lower(uint32_t i) const { return halves_[(2 * i + 1) * width_]; }

    __aicore__ inline void swap_spare(uint32_t entry) {
        uint32_t place = place_[entry];
        place_[entry] = spare_;
        spare_ = place;
    }

    // upper(i) + lower(i) = x[i], 12 bits each: their products are exact.
    __aicore__ inline void split_all(const AscendC::LocalTensor<float> *x, int32_t count) {
        for (uint32_t i = 0; i < radix_; ++i) {
            AscendC::Muls(upper(i), x[i], 4097.0f, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < radix_; ++i) {
            AscendC::Sub(lower(i), upper(i), x[i], count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < radix_; ++i) {
            AscendC::Sub(upper(i), upper(i), lower(i), count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < radix_; ++i) {
            AscendC::Sub(lower(i), x[i], upper(i), count);
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    // error = the rounding error of product = x[i] * x[j].
    __aicore__ inline void find_error(const AscendC::LocalTensor<float> &error,
                                      const AscendC::LocalTensor<float> &product, uint32_t i, uint32_t j,
                                      int32_t count) {
        AscendC::Mul(error, upper(i), upper(j), count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(error, error, product, count);
        AscendC::PipeBarrier<PIPE_V>();
        multiply_add(error, upper(i), lower(j), work_, count);
        AscendC::PipeBarrier<PIPE_V>();
        multiply_add(error, lower(i), upper(j), work_, count);
        AscendC::PipeBarrier<PIPE_V>();
        multiply_add(error, lower(i), lower(j), work_, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void set_products(uint32_t entry, const AscendC::LocalTensor<float> *x, uint32_t i, uint32_t j,
                                        int32_t count) {
        AscendC::Mul(high(entry), x[i], x[j], count);
        AscendC::PipeBarrier<PIPE_V>();
        if (!EXACT) {
            find_error(low(entry), high(entry), i, j, count);
        }
    }

    __aicore__ inline void add_products(uint32_t entry, const AscendC::LocalTensor<float> *x, uint32_t i, uint32_t j,
                                        int32_t count) {
        AscendC::Mul(product_, x[i], x[j], count);
        AscendC::PipeBarrier<PIPE_V>();
        if (!EXACT) {
            find_error(error_, product_, i, j, count);
            AscendC::Add(low(entry), low(entry), error_, count);
            AscendC::PipeBarrier<PIPE_V>();
        }
        add_exactly(entry, product_, count);
        if (static_cast<uint32_t>(count) == lanes_) {
            swap_spare(entry);
        } else {
            // The lanes behind keep their sums.
            AscendC::Muls(high(entry), high_[spare_ * width_], 1.0f, count);
            AscendC::PipeBarrier<PIPE_V>();
        }
    }

    __aicore__ inline void add_half(uint32_t entry, uint32_t half) {
        int32_t count = static_cast<int32_t>(half);
        AscendC::Add(low(entry), low(entry), low(entry)[half], count);
        AscendC::PipeBarrier<PIPE_V>();
        add_exactly(entry, high(entry)[half], count);
        swap_spare(entry);
    }

    // spare = high + addend, and the rounding error goes to low.
    __aicore__ inline void add_exactly(uint32_t entry, const AscendC::LocalTensor<float> &addend, int32_t count) {
        AscendC::LocalTensor<float> sum = high_[spare_ * width_];
        AscendC::Add(sum, high(entry), addend, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(work_, sum, high(entry), count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(error_, addend, work_, count);
        AscendC::Sub(rest_, sum, work_, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(work_, high(entry), rest_, count);
        AscendC::Add(low(entry), low(entry), error_, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(low(entry), low(entry), work_, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer_;
    AscendC::LocalTensor<float> high_;
    AscendC::LocalTensor<float> low_;
    AscendC::LocalTensor<float> product_;
    AscendC::LocalTensor<float> error_;
    AscendC::LocalTensor<float> work_;
    AscendC::LocalTensor<float> rest_;
    AscendC::LocalTensor<float> halves_;
    uint32_t place_[entries(MAX_RADIX)];
    uint32_t radix_ = 0;
    uint32_t entries_ = 0;
    uint32_t width_ = 0;
    uint32_t lanes_ = 0;
    uint32_t spare_ = 0;
    bool fresh_ = false;
};

} // namespace adasum

#endif
