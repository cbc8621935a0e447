// finite_check: sets the flag of each tensor that has a NaN or an infinity, fp32 ones in a table of zeros.
//
// 0 times a finite number is 0, anything else is NaN and stays NaN in a sum. Blocks that share a tensor may both
// set its flag, to the same value; none ever clears one. A flag has a block of 32 bytes of its own, so that every chip
// can copy one.
#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "layout.h"

namespace adasum {

using namespace AscendC;

template <typename T>
class FiniteCheck {
public:
    static constexpr uint32_t LANES = 512;
    // Units whose sums are read at once.
    static constexpr uint32_t RUN = 64;
    static constexpr uint32_t WIDE_BYTES = sizeof(T) == sizeof(float) ? 0 : LANES * 4;
    static constexpr uint32_t WORK_BYTES = (2 * LANES + RUN * BLOCK) * 4;
    static constexpr uint32_t UB_BYTES =
        2 * UNIT * sizeof(T) + WIDE_BYTES + WORK_BYTES + FLAG_WORDS * 4 + UnitCursor::UB_BYTES;
    static_assert(UB_BYTES <= UB_BUDGET, "finite_check: too much UB");

    __aicore__ inline FiniteCheck() {}

    __aicore__ inline void init(TPipe &pipe, GM_ADDR vector, GM_ADDR segments, GM_ADDR flags, uint64_t segment_count) {
        vector_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(vector));
        flags_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(flags));
        pipe.InitBuffer(tiles_, 2, UNIT * static_cast<uint32_t>(sizeof(T)));
        pipe.InitBuffer(work_buffer_, WORK_BYTES);
        pipe.InitBuffer(one_buffer_, FLAG_WORDS * 4);
        sums_ = work_buffer_.Get<float>();
        products_ = sums_[LANES];
        results_ = products_[LANES];
        one_ = one_buffer_.Get<float>();
        if (WIDE_BYTES != 0) {
            pipe.InitBuffer(wide_buffer_, LANES * 4);
            wide_ = wide_buffer_.Get<float>();
        }
        cursor_.init(pipe, segments, segment_count);
        // The scalar unit waits for the vector unit before it copies one.
        Duplicate(one_, 1.0f, static_cast<int32_t>(FLAG_WORDS));
    }

    __aicore__ inline void run(Share units) {
        if (units.begin < units.end) {
            cursor_.seek(units.begin);
        }
        for (uint64_t unit = units.begin; unit < units.end; unit += RUN) {
            run_of_units(static_cast<uint32_t>(smaller(RUN, units.end - unit)));
        }
    }

private:
    __aicore__ inline void run_of_units(uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) {
            UnitSpan span = cursor_.next();
            tensors_[i] = span.tensor;
            sum_unit(results_[i * BLOCK], span);
        }
        wait_for<HardEvent::V_S>();
        for (uint32_t i = 0; i < count; ++i) {
            if (any_of(results_[i * BLOCK])) {
                copy_out(flags_[tensors_[i] * FLAG_WORDS], one_, FLAG_WORDS);
                // The next one may set the same flag.
                PipeBarrier<PIPE_MTE3>();
            }
        }
        wait_for<HardEvent::S_V>();
    }

    // Whether one of the sums of a block is not zero.
    static __aicore__ inline bool any_of(const LocalTensor<float> &sums) {
        for (uint32_t lane = 0; lane < BLOCK; ++lane) {
            if (sums.GetValue(lane) != 0.0f) {
                return true;
            }
        }
        return false;
    }

    // The sums of a unit in the lanes of a block.
    __aicore__ inline void sum_unit(const LocalTensor<float> &result, const UnitSpan &unit) {
#ifdef ADASUM_FUSED
        Duplicate(result, fused::zero_times(vector_.access(unit.offset, unit.len), unit.len),
                  static_cast<int32_t>(BLOCK));
        return;
#endif
        LocalTensor<T> tile = tiles_.template AllocTensor<T>();
        copy_in(tile, vector_[unit.offset], unit.len);
        Duplicate(sums_, 0.0f, static_cast<int32_t>(LANES));
        PipeBarrier<PIPE_V>();
        tiles_.EnQue(tile);
        tile = tiles_.template DeQue<T>();
        for (uint32_t done = 0; done < unit.len; done += LANES) {
            uint32_t part = static_cast<uint32_t>(smaller(LANES, unit.len - done));
            LocalTensor<float> values = widen(wide_, tile[done], part);
            PipeBarrier<PIPE_V>();
            Muls(products_, values, 0.0f, static_cast<int32_t>(part));
            PipeBarrier<PIPE_V>();
            Add(sums_, sums_, products_, static_cast<int32_t>(part));
            PipeBarrier<PIPE_V>();
        }
        tiles_.FreeTensor(tile);
        for (uint32_t half = LANES / 2; half > BLOCK; half /= 2) {
            Add(sums_, sums_, sums_[half], static_cast<int32_t>(half));
            PipeBarrier<PIPE_V>();
        }
        Add(result, sums_, sums_[BLOCK], static_cast<int32_t>(BLOCK));
        PipeBarrier<PIPE_V>();
    }

    TQue<TPosition::VECIN, 1> tiles_;
    TBuf<TPosition::VECCALC> work_buffer_;
    TBuf<TPosition::VECOUT> one_buffer_;
    TBuf<TPosition::VECCALC> wide_buffer_;
    LocalTensor<float> sums_;
    LocalTensor<float> products_;
    LocalTensor<float> results_;
    LocalTensor<float> one_;
    LocalTensor<float> wide_;
    GlobalTensor<T> vector_;
    GlobalTensor<float> flags_;
    UnitCursor cursor_;
    uint64_t tensors_[RUN];
};

template <typename T>
__aicore__ inline void finite_check_of(TPipe &pipe, GM_ADDR vector, GM_ADDR segments, GM_ADDR flags,
                                       uint64_t segment_count, uint64_t unit_count) {
    FiniteCheck<T> kernel;
    kernel.init(pipe, vector, segments, flags, segment_count);
    kernel.run(share_of(unit_count));
}

__aicore__ inline void finite_check_any(GM_ADDR vector, GM_ADDR segments, GM_ADDR flags, uint64_t dtype,
                                        uint64_t segment_count, uint64_t unit_count, GM_ADDR receipt) {
    TPipe pipe;
    if (dtype == DTYPE_FLOAT) {
        finite_check_of<float>(pipe, vector, segments, flags, segment_count, unit_count);
    } else if (dtype == DTYPE_FLOAT16) {
        finite_check_of<half>(pipe, vector, segments, flags, segment_count, unit_count);
    }
#if ADASUM_HAS_BF16
    if (dtype == DTYPE_BF16) {
        finite_check_of<bfloat16_t>(pipe, vector, segments, flags, segment_count, unit_count);
    }
#endif
    sign(pipe, receipt);
}

} // namespace adasum

ADASUM_VECTOR_KERNEL(finite_check);

extern "C" __global__ __aicore__ void finite_check(GM_ADDR vector, GM_ADDR segments, GM_ADDR flags, uint64_t dtype,
                                                   uint64_t segment_count, uint64_t unit_count, GM_ADDR receipt) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    adasum::finite_check_any(vector, segments, flags, dtype, segment_count, unit_count, receipt);
    adasum::leave();
}
