// gram: the Gram matrix of r vectors, one record a unit, in one pass over memory.
//
// How products are summed is in gram_lanes.h. A unit whose squared norms leave the range of fp32 products is summed
// again with powers of two on its vectors, and one whose vectors could nearly cancel (separation.h) is summed again exactly.
#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "gram_exact.h"
#include "gram_lanes.h"
#include "layout.h"
#include "separation.h"
#include "two_float.h"

namespace adasum {

using namespace AscendC;

// Records wait for their range check and their copy in buffers of this size.
constexpr uint32_t STAGE_BYTES = 8192;

// The most units whose records do so at a time.
constexpr uint32_t MAX_RUN = 128;

// The fp32 values of the part of a tile that a step takes, scaled where need be.
template <typename T>
class Operands {
public:
    // For steps of up to `width` elements.
    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix, uint32_t width) {
        return sizeof(T) == sizeof(float) ? 0 : radix * width * 4;
    }

    __aicore__ inline Operands() {}

    __aicore__ inline void init(TPipe &pipe, uint32_t radix, uint32_t width) {
        radix_ = radix;
        width_ = width;
        stride_ = tile_stride<T>(radix);
        if (sizeof(T) != sizeof(float)) {
            pipe.InitBuffer(buffer_, ub_bytes(radix, width));
            values_ = buffer_.Get<float>();
        }
    }

    // Exponents that `take` is to remove from the values; none unless asked for.
    __aicore__ inline void scale_by(const int32_t *exponents) { exponents_ = exponents; }
    __aicore__ inline bool scaled() const { return exponents_ != nullptr; }

    __aicore__ inline const LocalTensor<float> *take(const LocalTensor<T> &tiles, uint32_t from, uint32_t count) {
        for (uint32_t i = 0; i < radix_; ++i) {
            LocalTensor<float> buffer = sizeof(T) == sizeof(float) ? values_ : values_[i * width_];
            parts_[i] = widen(buffer, tiles[i * stride_ + from], count);
        }
        if (sizeof(T) != sizeof(float)) {
            PipeBarrier<PIPE_V>();
        }
        if (exponents_ != nullptr) {
            scale(static_cast<int32_t>(count));
        }
        return parts_;
    }

private:
    __aicore__ inline void scale(int32_t count) {
        for (uint32_t i = 0; i < radix_; ++i) {
            if (exponents_[i] != 0) {
                Muls(parts_[i], parts_[i], power_of_two(-exponents_[i]), count);
            }
        }
        PipeBarrier<PIPE_V>();
    }

    TBuf<TPosition::VECCALC> buffer_;
    LocalTensor<float> values_;
    LocalTensor<float> parts_[MAX_RADIX];
    const int32_t *exponents_ = nullptr;
    uint32_t radix_ = 0;
    uint32_t width_ = 0;
    uint32_t stride_ = 0;
};

// What sums units again that plain sums do not serve: nothing, for two vectors.
class NoLanes {
public:
    static constexpr bool EXIST = false;
    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t) { return 0; }
    __aicore__ inline NoLanes() {}
    __aicore__ inline void init(const LocalTensor<float> &, uint32_t) {}
};

template <typename T, typename Plain, typename Exact>
class Gram {
public:
    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix) {
        uint32_t tiles = 2 * radix * tile_stride<T>(radix) * static_cast<uint32_t>(sizeof(T));
        uint32_t operands = Operands<T>::ub_bytes(radix, Plain::step(radix));
        return tiles + operands + lane_bytes(radix) + 2 * STAGE_BYTES + UnitCursor::UB_BYTES;
    }

    __aicore__ inline Gram() {}

    // Works in `spans`, which has MAX_RUN of them.
    __aicore__ inline void init(TPipe &pipe, UnitSpan *spans, GM_ADDR vectors, GM_ADDR segments, GM_ADDR partials,
                                uint32_t radix, uint64_t segment_count) {
        spans_ = spans;
        radix_ = radix;
        words_ = record_words(radix);
        tile_ = tile_of<T>(radix);
        stride_ = tile_stride<T>(radix);
        open_vectors(pipe, vectors_, vectors, radix);
        partials_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(partials));
        pipe.InitBuffer(tiles_, 2, radix * stride_ * static_cast<uint32_t>(sizeof(T)));
        pipe.InitBuffer(stages_, 2, STAGE_BYTES);
        operands_.init(pipe, radix, Plain::step(radix));
        pipe.InitBuffer(lanes_, lane_bytes(radix));
        plain_.init(lanes_.Get<float>(), radix);
        exact_.init(lanes_.Get<float>(), radix);
        cursor_.init(pipe, segments, segment_count);
    }

    __aicore__ inline void run(Share units) {
        uint64_t limit = STAGE_BYTES / sizeof(float) / words_;
        limit = smaller(limit, MAX_RUN);
        if (units.begin < units.end) {
            cursor_.seek(units.begin);
        }
        for (uint64_t unit = units.begin; unit < units.end; unit += limit) {
            run_of_units(unit, static_cast<uint32_t>(smaller(limit, units.end - unit)));
        }
    }

private:
    // A unit has plain sums and then, if need be, exact ones in the same memory.
    static __aicore__ inline constexpr uint32_t lane_bytes(uint32_t radix) {
        uint32_t plain = Plain::ub_bytes(radix);
        uint32_t exact = Exact::ub_bytes(radix);
        return plain > exact ? plain : exact;
    }

    __aicore__ inline void run_of_units(uint64_t first, uint32_t count) {
        LocalTensor<float> stage = stages_.AllocTensor<float>();
        Duplicate(stage, 0.0f, static_cast<int32_t>(count * words_));
        PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < count; ++i) {
            spans_[i] = cursor_.next();
            sum(plain_, stage[i * words_], spans_[i]);
        }
        wait_for<HardEvent::V_S>();
        for (uint32_t i = 0; i < count; ++i) {
            check_unit(stage[i * words_], spans_[i]);
        }
        // The copy waits for the vector unit, and so for what the scalar unit wrote.
        wait_for<HardEvent::S_V>();
        stages_.EnQue(stage);
        stage = stages_.DeQue<float>();
        copy_out(partials_[first * words_], stage, count * words_);
        stages_.FreeTensor(stage);
    }

    // Writes the entries of the unit's record.
    template <typename Lanes>
    __aicore__ inline void sum(Lanes &lanes, const LocalTensor<float> &record, const UnitSpan &unit) {
#ifdef ADASUM_FUSED
        if (!operands_.scaled()) {
            const T *x[MAX_RADIX];
            for (uint32_t i = 0; i < radix_; ++i) {
                x[i] = vectors_[i].access(unit.offset, unit.len);
            }
            lanes.sum(record, x, unit.len);
            return;
        }
#endif
        sum_unit(lanes, record, unit);
    }

    template <typename Lanes>
    __aicore__ inline void sum_unit(Lanes &lanes, const LocalTensor<float> &record, const UnitSpan &unit) {
        uint32_t step = lanes.start(unit.len);
        for (uint32_t done = 0; done < unit.len; done += tile_) {
            uint32_t count = static_cast<uint32_t>(smaller(tile_, unit.len - done));
            load_tiles(unit.offset + done, count);
            LocalTensor<T> tiles = tiles_.template DeQue<T>();
            for (uint32_t from = 0; from < count; from += step) {
                uint32_t part = static_cast<uint32_t>(smaller(step, count - from));
                lanes.add(operands_.take(tiles, from, part), static_cast<int32_t>(part));
            }
            tiles_.FreeTensor(tiles);
        }
        lanes.finish(record);
    }

    __aicore__ inline void load_tiles(uint64_t offset, uint32_t count) {
        LocalTensor<T> tiles = tiles_.template AllocTensor<T>();
        for (uint32_t i = 0; i < radix_; ++i) {
            copy_in(tiles[i * stride_], vectors_[i][offset], count);
        }
        tiles_.EnQue(tiles);
    }

    // Sums again what needs it: afterwards the record is final.
    __aicore__ inline void check_unit(const LocalTensor<float> &record, const UnitSpan &unit) {
        bool scaled = false;
        for (uint32_t i = 0; i < radix_; ++i) {
            exponents_[i] = exponent_for(diagonal(record, i));
            scaled = scaled || exponents_[i] != 0;
        }
        if (scaled) {
            operands_.scale_by(exponents_);
            wait_for<HardEvent::S_V>();
            sum(plain_, record, unit);
            wait_for<HardEvent::V_S>();
        }
        if (scaled && !is_finite_record(record)) {
            give_up(record);
        } else {
            sum_exactly_if_needed(record, unit);
            set_exponents(record);
        }
        operands_.scale_by(nullptr);
    }

    __aicore__ inline bool is_finite_record(const LocalTensor<float> &record) const {
        for (uint32_t i = 0; i < radix_; ++i) {
            if (!is_finite(diagonal(record, i))) {
                return false;
            }
        }
        return true;
    }

    __aicore__ inline void sum_exactly_if_needed(const LocalTensor<float> &record, const UnitSpan &unit) {
        if constexpr (Exact::EXIST) {
            if (!is_separated(record, radix_)) {
                wait_for<HardEvent::S_V>();
                sum(exact_, record, unit);
                wait_for<HardEvent::V_S>();
            }
        }
    }

    // Words of vectors that were not scaled are zero already.
    __aicore__ inline void set_exponents(const LocalTensor<float> &record) {
        for (uint32_t i = 0; i < radix_; ++i) {
            if (exponents_[i] != 0) {
                int32_t exponent = diagonal(record, i) == 0.0f ? ZERO_EXPONENT : exponents_[i];
                record.SetValue(record_exponents(radix_) + i, to_float(exponent));
            }
        }
    }

    __aicore__ inline float diagonal(const LocalTensor<float> &record, uint32_t vector) const {
        return record.GetValue(2 * entry_index(vector, vector, radix_));
    }

    // Sums of numbers that are too large may also come out as NaN.
    static __aicore__ inline int32_t exponent_for(float norm) {
        if (!(norm <= power_of_two(DIAGONAL_LOG2_MAX))) {
            return EXPONENT_OF_HUGE;
        }
        return norm < power_of_two(DIAGONAL_LOG2_MIN) ? EXPONENT_OF_TINY : 0;
    }

    // A NaN or an infinity: a record without numbers.
    __aicore__ inline void give_up(const LocalTensor<float> &record) {
        for (uint32_t word = 0; word < record_exponents(radix_); ++word) {
            record.SetValue(word, 0.0f);
        }
        for (uint32_t i = 0; i < radix_; ++i) {
            record.SetValue(record_exponents(radix_) + i, to_float(ZERO_EXPONENT));
        }
        record.SetValue(record_flags(radix_), 1.0f);
    }

    TQue<TPosition::VECIN, 1> tiles_;
    TQue<TPosition::VECOUT, 1> stages_;
    Operands<T> operands_;
    TBuf<TPosition::VECCALC> lanes_;
    Plain plain_;
    Exact exact_;
    UnitCursor cursor_;
    GlobalTensor<T> vectors_[MAX_RADIX];
    GlobalTensor<float> partials_;
    UnitSpan *spans_ = nullptr;
    int32_t exponents_[MAX_RADIX];
    uint32_t radix_ = 0;
    uint32_t words_ = 0;
    uint32_t tile_ = 0;
    uint32_t stride_ = 0;
};

template <typename T>
struct GramOf {
    static_assert(tile_of<T>(2) == UNIT, "gram: the sums of two vectors take a unit as one tile");
    using Pair = Gram<T, PairLanes, NoLanes>;
    using Many = Gram<T, PlainLanes, ExactLanes<sizeof(T) == 2>>;

    static __aicore__ inline constexpr uint32_t ub_bytes(uint32_t radix) {
        return radix == 2 ? Pair::ub_bytes(radix) : Many::ub_bytes(radix);
    }
    // Whether a row of the table is what the code does, and fits.
    static __aicore__ inline constexpr bool fits(uint32_t radix) {
        const uint32_t *row = GRAM_TABLE[radix - 2];
        uint32_t more = ADASUM_WHOLE_BLOCKS && radix == 2 ? entries(2) * PairLanes::WIDTH * 4 : 0;
        return row[0] == plain_lanes(radix) && row[1] == exact_lanes(radix) && row[2] == tile_bytes(radix) &&
               row[sizeof(T) == sizeof(float) ? 3 : 4] + more == ub_bytes(radix) && ub_bytes(radix) <= UB_BUDGET &&
               exact_lanes(radix) <= plain_lanes(radix);
    }
    static __aicore__ inline constexpr bool fits_all() {
        return fits(2) && fits(3) && fits(4) && fits(5) && fits(6) && fits(7) && fits(8);
    }
};

static_assert(GramOf<float>::fits_all(), "gram: the table of gram_lanes.h is wrong, or too much UB, for fp32");
static_assert(GramOf<half>::fits_all(), "gram: the table of gram_lanes.h is wrong, or too much UB, for fp16 and bf16");

template <typename Kernel>
__aicore__ inline void run_gram(TPipe &pipe, UnitSpan *spans, GM_ADDR vectors, GM_ADDR segments, GM_ADDR partials,
                                uint64_t radix, uint64_t segment_count, uint64_t unit_count) {
    Kernel kernel;
    kernel.init(pipe, spans, vectors, segments, partials, static_cast<uint32_t>(radix), segment_count);
    kernel.run(share_of(unit_count));
}

template <typename T>
__aicore__ inline void gram_of(TPipe &pipe, UnitSpan *spans, GM_ADDR vectors, GM_ADDR segments, GM_ADDR partials,
                               uint64_t radix, uint64_t segment_count, uint64_t unit_count) {
    if (radix == 2) {
        run_gram<typename GramOf<T>::Pair>(pipe, spans, vectors, segments, partials, radix, segment_count, unit_count);
    } else {
        run_gram<typename GramOf<T>::Many>(pipe, spans, vectors, segments, partials, radix, segment_count, unit_count);
    }
}

__aicore__ inline void gram_any(GM_ADDR vectors, GM_ADDR segments, GM_ADDR partials, uint64_t radix, uint64_t dtype,
                                uint64_t segment_count, uint64_t unit_count, GM_ADDR receipt) {
    TPipe pipe;
    UnitSpan spans[MAX_RUN]; // 4 KB of the stack: once, and not in the object of each type
    if (dtype == DTYPE_FLOAT) {
        gram_of<float>(pipe, spans, vectors, segments, partials, radix, segment_count, unit_count);
    } else if (dtype == DTYPE_FLOAT16) {
        gram_of<half>(pipe, spans, vectors, segments, partials, radix, segment_count, unit_count);
    }
#if ADASUM_HAS_BF16
    if (dtype == DTYPE_BF16) {
        gram_of<bfloat16_t>(pipe, spans, vectors, segments, partials, radix, segment_count, unit_count);
    }
#endif
    sign(pipe, receipt);
}

} // namespace adasum

ADASUM_VECTOR_KERNEL(gram);

extern "C" __global__ __aicore__ void gram(GM_ADDR vectors, GM_ADDR segments, GM_ADDR partials, uint64_t radix,
                                           uint64_t dtype, uint64_t segment_count, uint64_t unit_count,
                                           GM_ADDR receipt) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    adasum::gram_any(vectors, segments, partials, radix, dtype, segment_count, unit_count, receipt);
    adasum::leave();
}
