// How `gram` sums the products of a unit whose vectors nearly depend on each other (separation.h): every lane keeps what its
// sums round off, and a tree of two-float additions joins lanes. Products of 16-bit values are exact in fp32; those of fp32
// values are split.
#ifndef ADASUM_GRAM_EXACT_H
#define ADASUM_GRAM_EXACT_H

#include "adasum_ascendc.h"
#include "device.h"
#include "gram_lanes.h"
#include "layout.h"
#include "two_float.h"
#include "two_float_lanes.h"

namespace adasum {

// Two-float sums a lane. Where products are not exact in fp32, their errors come from split factors.
template <bool EXACT_PRODUCTS>
class ExactLanes {
public:
    static constexpr bool EXIST = true;

    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix) {
        uint32_t sums = 2 * entries(radix) + 1;
        uint32_t lanes = (sums + TEMPORARIES) * exact_lanes(radix);
        return (lanes + spare_words(radix)) * 4;
    }

    __aicore__ inline ExactLanes() {}

    // Works in `all`, which has ub_bytes(radix).
    __aicore__ inline void init(const AscendC::LocalTensor<float> &all, uint32_t radix) {
        radix_ = radix;
        entries_ = entries(radix);
        width_ = exact_lanes(radix);
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
            if (!fresh_ || EXACT_PRODUCTS) {
                AscendC::Duplicate(low(entry), 0.0f, static_cast<int32_t>(lanes_));
            }
        }
        AscendC::PipeBarrier<PIPE_V>();
        return lanes_;
    }

    // Adds the products of up to as many elements as there are lanes; the first ones are set where they fill all lanes.
    __aicore__ inline void add(const AscendC::LocalTensor<float> *x, int32_t count) {
        if (!EXACT_PRODUCTS) {
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
        for (uint32_t half = lanes_ / 2; half >= BLOCK; half /= 2) {
            for (uint32_t entry = 0; entry < entries_; ++entry) {
                add_half(entry, half);
            }
        }
        join_block(record);
    }

#ifdef ADASUM_FUSED
    // The same record for a unit of vectors as they lie in device memory.
    template <typename T>
    void sum(const AscendC::LocalTensor<float> &record, const T *const *x, uint32_t len) {
        static_assert(UNIT / exact_lanes(MAX_RADIX) <= fused::MOST_OF_EXACT_LANE,
                      "the fused step has no room for a lane");
        uint32_t words = entries_ * width_;
        fused::ExactPlaces sums{high_.write(0, words), low_.write(0, words), width_, lanes_for(len, BLOCK, width_)};
        fused::sum_exactly<EXACT_PRODUCTS>(sums, x, radix_, len);
        fused::join_exactly(record.write(0, 2 * entries_), sums, entries_);
    }
#endif

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
        uint32_t halves = EXACT_PRODUCTS ? 0 : 2 * radix * exact_lanes(radix);
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

    // The sums of an entry: hi lanes change places with the spare ones at each addition.
    __aicore__ inline AscendC::LocalTensor<float> high(uint32_t entry) const { return high_[place_[entry] * width_]; }
    __aicore__ inline AscendC::LocalTensor<float> low(uint32_t entry) const { return low_[entry * width_]; }

    __aicore__ inline AscendC::LocalTensor<float> upper(uint32_t i) const { return halves_[2 * i * width_]; }
    __aicore__ inline AscendC::LocalTensor<float> lower(uint32_t i) const { return halves_[(2 * i + 1) * width_]; }

    __aicore__ inline TwoFloatLanes halves(uint32_t i) const { return TwoFloatLanes{upper(i), lower(i)}; }

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

    __aicore__ inline void set_products(uint32_t entry, const AscendC::LocalTensor<float> *x, uint32_t i, uint32_t j,
                                        int32_t count) {
        AscendC::Mul(high(entry), x[i], x[j], count);
        AscendC::PipeBarrier<PIPE_V>();
        if (!EXACT_PRODUCTS) {
            product_error(low(entry), high(entry), halves(i), halves(j), work_, count);
        }
    }

    __aicore__ inline void add_products(uint32_t entry, const AscendC::LocalTensor<float> *x, uint32_t i, uint32_t j,
                                        int32_t count) {
        AscendC::Mul(product_, x[i], x[j], count);
        AscendC::PipeBarrier<PIPE_V>();
        if (!EXACT_PRODUCTS) {
            product_error(error_, product_, halves(i), halves(j), work_, count);
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
