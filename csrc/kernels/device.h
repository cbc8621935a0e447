// What every kernel needs of the device: tables, shares of work, tiles.
#ifndef ADASUM_DEVICE_H
#define ADASUM_DEVICE_H

#include "adasum_ascendc.h"
#include "arch.h"
#include "layout.h"

namespace adasum {

__aicore__ inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

// A contiguous range [begin, end).
struct Share {
    uint64_t begin;
    uint64_t end;
};

// This block's share of `count` items, spread as evenly as can be.
__aicore__ inline Share share_of(uint64_t count) {
    uint64_t blocks = static_cast<uint64_t>(AscendC::GetBlockNum());
    uint64_t block = static_cast<uint64_t>(AscendC::GetBlockIdx());
    uint64_t part = count / blocks;
    uint64_t rest = count % blocks;
    uint64_t begin = block * part + smaller(block, rest);
    return Share{begin, begin + part + (block < rest ? 1 : 0)};
}

// A table in device memory of entries of WORDS 32-bit words, read in order through a window in UB. The scalar unit reads no
// table in device memory itself: its cache may hold lines of an earlier table there, and arch 1001 cannot drop them.
template <uint32_t WORDS, uint32_t ENTRIES>
class Table {
public:
    static constexpr uint32_t WINDOW_BYTES = WORDS * ENTRIES * sizeof(uint32_t);

    __aicore__ inline Table() {}

    __aicore__ inline void init(AscendC::TPipe &pipe, GM_ADDR address) {
        memory_.SetGlobalBuffer(reinterpret_cast<__gm__ uint32_t *>(address));
        pipe.InitBuffer(buffer_, WINDOW_BYTES);
        window_ = buffer_.template Get<uint32_t>();
    }

    __aicore__ inline bool holds(uint64_t entry) const { return entry >= begin_ && entry < end_; }

    // Makes sure that `entry` is in the window; no entry from `limit` on is touched.
    __aicore__ inline void seek(uint64_t entry, uint64_t limit) {
        if (!holds(entry)) {
            load(entry, limit);
        }
    }

    // Fills the window from `entry` on.
    __aicore__ inline void load(uint64_t entry, uint64_t limit) {
        uint32_t count = static_cast<uint32_t>(smaller(ENTRIES, limit - entry));
        wait_for<AscendC::HardEvent::S_MTE2>();
        copy_in(window_, memory_[entry * WORDS], count * WORDS);
        wait_for<AscendC::HardEvent::MTE2_S>();
        begin_ = entry;
        end_ = entry + count;
    }

    // The last entry in the window.
    __aicore__ inline uint64_t last() const { return end_ - 1; }

    // The 32-bit word `index` of an entry in the window.
    __aicore__ inline uint32_t word(uint64_t entry, uint32_t index) const {
        return window_.GetValue(static_cast<uint32_t>(entry - begin_) * WORDS + index);
    }

    // The 64-bit number `index` of an entry in the window.
    __aicore__ inline uint64_t number(uint64_t entry, uint32_t index) const {
        uint64_t low = word(entry, 2 * index);
        uint64_t high = word(entry, 2 * index + 1);
        return low | (high << 32);
    }

private:
    AscendC::GlobalTensor<uint32_t> memory_;
    AscendC::TBuf<AscendC::TPosition::VECIN> buffer_;
    AscendC::LocalTensor<uint32_t> window_;
    uint64_t begin_ = 0;
    uint64_t end_ = 0;
};

__aicore__ inline uint64_t units_of(uint64_t len) { return (len + UNIT - 1) / UNIT; }

// The elements of one unit, from the start of the slice and of their segment, and the tensor that they belong to.
struct UnitSpan {
    uint64_t offset;
    uint64_t within;
    uint64_t tensor;
    uint32_t len;
};

// Walks the units of the segment table in order.
class UnitCursor {
public:
    static constexpr uint32_t WINDOW = 64;
    static constexpr uint32_t UB_BYTES = WINDOW * SEGMENT_WORDS * sizeof(uint64_t);

    __aicore__ inline UnitCursor() {}

    __aicore__ inline void init(AscendC::TPipe &pipe, GM_ADDR segments, uint64_t segment_count) {
        table_.init(pipe, segments);
        count_ = segment_count;
    }

    // Goes to a unit of the table: the next call of `next` returns it.
    __aicore__ inline void seek(uint64_t unit) {
        // The last segment that starts at or before the unit holds it: empty ones lie before it.
        uint64_t low = 0;
        uint64_t high = count_;
        table_.seek(low, count_);
        while (high - low > 1) {
            uint64_t middle = low + (high - low) / 2;
            table_.seek(middle, count_);
            if (table_.number(middle, SEGMENT_FIRST_UNIT) <= unit) {
                low = middle;
            } else {
                high = middle;
            }
        }
        enter(low);
        done_ = (unit - table_.number(segment_, SEGMENT_FIRST_UNIT)) * UNIT;
    }

    // The tensor of the last segment in the window.
    __aicore__ inline uint64_t known_tensor() const { return table_.number(table_.last(), SEGMENT_TENSOR); }

    __aicore__ inline UnitSpan next() {
        while (done_ >= len_) {
            enter(segment_ + 1);
        }
        UnitSpan span{offset_ + done_, done_, tensor_, static_cast<uint32_t>(smaller(UNIT, len_ - done_))};
        done_ += span.len;
        return span;
    }

private:
    __aicore__ inline void enter(uint64_t segment) {
        segment_ = segment;
        table_.seek(segment, count_);
        offset_ = table_.number(segment, SEGMENT_OFFSET);
        len_ = table_.number(segment, SEGMENT_LEN);
        tensor_ = table_.number(segment, SEGMENT_TENSOR);
        done_ = 0;
    }

    Table<2 * SEGMENT_WORDS, WINDOW> table_;
    uint64_t count_ = 0;
    uint64_t segment_ = 0;
    uint64_t offset_ = 0;
    uint64_t len_ = 0;
    uint64_t tensor_ = 0;
    uint64_t done_ = 0;
};

// Bytes of a vector in one tile: 16 KiB where r of them fit twice, for the full bandwidth of a copy.
__aicore__ inline constexpr uint32_t tile_bytes(uint32_t radix) {
    return radix <= 2 ? 16384 : (radix <= 4 ? 8192 : 4096);
}

// Elements of a vector in one tile.
template <typename T>
__aicore__ inline constexpr uint32_t tile_of(uint32_t radix) {
    return tile_bytes(radix) / sizeof(T) < UNIT ? static_cast<uint32_t>(tile_bytes(radix) / sizeof(T)) : UNIT;
}

// From the tile of a vector to that of the next, which so lies in other memory banks.
template <typename T>
__aicore__ inline constexpr uint32_t tile_stride(uint32_t radix) {
    return tile_of<T>(radix) + 256 / static_cast<uint32_t>(sizeof(T));
}

// Sets up the r vectors that a table of device addresses names.
template <typename T>
__aicore__ inline void open_vectors(AscendC::TPipe &pipe, AscendC::GlobalTensor<T> *vectors, GM_ADDR addresses,
                                    uint32_t radix) {
    Table<2, MAX_RADIX> table;
    table.init(pipe, addresses);
    table.load(0, radix);
    for (uint32_t i = 0; i < radix; ++i) {
        vectors[i].SetGlobalBuffer(reinterpret_cast<__gm__ T *>(table.number(i, 0)));
    }
}

// The fp32 values of `count` elements: of a 16-bit type they are cast into `buffer`, else they stay where they are.
// A barrier must follow before they are used.
__aicore__ inline AscendC::LocalTensor<float> widen(const AscendC::LocalTensor<float> &,
                                                    const AscendC::LocalTensor<float> &values, uint32_t) {
    return values;
}

template <typename T>
__aicore__ inline AscendC::LocalTensor<float> widen(const AscendC::LocalTensor<float> &buffer,
                                                    const AscendC::LocalTensor<T> &values, uint32_t count) {
    AscendC::Cast(buffer, values, AscendC::RoundMode::CAST_NONE, count);
    return buffer;
}

} // namespace adasum

#endif
