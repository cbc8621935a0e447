// fold: the record of each segment, as the ordered two-float sum of the records of its units.
//
// Blocks share the segments. All arithmetic is scalar; a segment of one unit has the record of that unit. The record of a
// segment with a unit whose record never came (layout.h) looks as if it had not come either, and the block does not sign.
#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "layout.h"
#include "records.h"

namespace adasum {

using namespace AscendC;

class Fold {
public:
    __aicore__ inline Fold() {}

    __aicore__ inline void init(TPipe &pipe, GM_ADDR partials, GM_ADDR segments, GM_ADDR records, uint32_t radix,
                                uint64_t segment_count) {
        radix_ = radix;
        words_ = record_words(radix);
        window_records_ = WINDOW_BYTES / sizeof(float) / words_;
        segment_count_ = segment_count;
        partials_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(partials));
        records_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(records));
        segments_.init(pipe, segments);
        pipe.InitBuffer(window_buffer_, WINDOW_BYTES);
        pipe.InitBuffer(results_buffer_, RESULTS * words_ * sizeof(float));
        window_ = window_buffer_.Get<float>();
        results_ = results_buffer_.Get<float>();
    }

    // Whether all records of units were there.
    __aicore__ inline bool run(Share segments) {
        if (segments.begin == segments.end) {
            return true;
        }
        uint64_t last = segments.end - 1;
        segments_.seek(last, segment_count_);
        unit_end_ = segments_.number(last, SEGMENT_FIRST_UNIT) + units_of(segments_.number(last, SEGMENT_LEN));
        for (uint64_t first = segments.begin; first < segments.end; first += RESULTS) {
            uint32_t count = static_cast<uint32_t>(smaller(RESULTS, segments.end - first));
            wait_for<HardEvent::MTE3_S>();
            wait_for<HardEvent::MTE3_V>();
            for (uint32_t i = 0; i < count; ++i) {
                fold_segment(first + i, results_[i * words_]);
            }
            wait_for<HardEvent::S_MTE3>();
            wait_for<HardEvent::V_MTE3>();
            copy_out(records_[first * words_], results_, count * words_);
        }
        return complete_;
    }

private:
    using Segments = Table<2 * SEGMENT_WORDS, 64>;

    static constexpr uint32_t WINDOW_BYTES = 32768;
    static constexpr uint32_t RESULTS = 32;
    static constexpr uint32_t RESULT_BYTES = RESULTS * record_words(MAX_RADIX) * 4;
    static_assert(Segments::WINDOW_BYTES + WINDOW_BYTES + RESULT_BYTES <= UB_BUDGET, "fold: too much UB");

    __aicore__ inline void fold_segment(uint64_t segment, const LocalTensor<float> &result) {
        segments_.seek(segment, segment_count_);
        uint64_t unit = segments_.number(segment, SEGMENT_FIRST_UNIT);
        uint64_t end = unit + units_of(segments_.number(segment, SEGMENT_LEN));
        if (end - unit == 1) {
            LocalTensor<float> only = record(unit);
            copy_bits(result.ReinterpretCast<int32_t>(), only.ReinterpretCast<int32_t>(), words_);
            complete_ = complete_ && bits_of(only.GetValue(record_flags(radix_))) != MISSING;
            return;
        }
        sum_.reset(radix_);
        for (; unit < end; ++unit) {
            sum_.add_record(record(unit));
        }
        sum_.store(result);
        complete_ = complete_ && !sum_.missing();
    }

    // The record of a unit.
    __aicore__ inline LocalTensor<float> record(uint64_t unit) {
        if (unit < window_begin_ || unit >= window_end_) {
            load(unit);
        }
        return window_[static_cast<uint32_t>(unit - window_begin_) * words_];
    }

    // Fills the window from the record of `unit` on: the units of the block's segments follow one another.
    __aicore__ inline void load(uint64_t unit) {
        uint32_t count = static_cast<uint32_t>(smaller(window_records_, unit_end_ - unit));
        wait_for<HardEvent::S_MTE2>();
        wait_for<HardEvent::V_MTE2>();
        copy_in(window_, partials_[unit * words_], count * words_);
        wait_for<HardEvent::MTE2_S>();
        window_begin_ = unit;
        window_end_ = unit + count;
    }

    Segments segments_;
    GlobalTensor<float> partials_;
    GlobalTensor<float> records_;
    TBuf<TPosition::VECIN> window_buffer_;
    TBuf<TPosition::VECOUT> results_buffer_;
    LocalTensor<float> window_;
    LocalTensor<float> results_;
    RecordSum sum_;
    uint64_t segment_count_ = 0;
    uint64_t unit_end_ = 0;
    uint64_t window_begin_ = 0;
    uint64_t window_end_ = 0;
    uint32_t window_records_ = 0;
    uint32_t radix_ = 0;
    uint32_t words_ = 0;
    bool complete_ = true;
};

__aicore__ inline void fold_all(GM_ADDR partials, GM_ADDR segments, GM_ADDR records, uint64_t radix,
                                uint64_t segment_count, GM_ADDR receipt) {
    TPipe pipe;
    Fold kernel;
    kernel.init(pipe, partials, segments, records, static_cast<uint32_t>(radix), segment_count);
    if (kernel.run(share_of(segment_count))) {
        sign(pipe, receipt);
    }
}

} // namespace adasum

ADASUM_VECTOR_KERNEL(fold);

extern "C" __global__ __aicore__ void fold(GM_ADDR partials, GM_ADDR segments, GM_ADDR records, uint64_t radix,
                                           uint64_t segment_count, GM_ADDR receipt) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    adasum::fold_all(partials, segments, records, radix, segment_count, receipt);
    adasum::leave();
}
