// subtract: out = a - b, computed in fp32 and rounded once to the type of the three vectors.
//
// out may be exactly one of the inputs: a tile is read before it is written.
#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "layout.h"

namespace adasum {

using namespace AscendC;

__aicore__ inline void subtract_tile(const LocalTensor<float> &out, const LocalTensor<float> &a,
                                     const LocalTensor<float> &b, const LocalTensor<float> &, uint32_t count) {
    Sub(out, a, b, static_cast<int32_t>(count));
    PipeBarrier<PIPE_V>();
}

template <typename T>
__aicore__ inline void subtract_tile(const LocalTensor<T> &out, const LocalTensor<T> &a, const LocalTensor<T> &b,
                                     const LocalTensor<float> &wide, uint32_t count) {
    LocalTensor<float> x = widen(wide, a, count);
    LocalTensor<float> y = widen(wide[UNIT], b, count);
    PipeBarrier<PIPE_V>();
    Sub(x, x, y, static_cast<int32_t>(count));
    PipeBarrier<PIPE_V>();
    Cast(out, x, TO_NEAREST, count);
    PipeBarrier<PIPE_V>();
}

template <typename T>
class Subtract {
public:
    // The second operand lies in other memory banks than the first.
    static constexpr uint32_t STRIDE = UNIT + 256 / sizeof(T);
    static constexpr uint32_t WIDE_BYTES = sizeof(T) == sizeof(float) ? 0 : 2 * UNIT * 4;
    static constexpr uint32_t UB_BYTES = 2 * (2 * STRIDE + UNIT) * sizeof(T) + WIDE_BYTES;
    static_assert(UB_BYTES <= UB_BUDGET, "subtract: too much UB");

    __aicore__ inline Subtract() {}

    __aicore__ inline void run(TPipe &pipe, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t count) {
        pipe.InitBuffer(operands_, 2, 2 * STRIDE * static_cast<uint32_t>(sizeof(T)));
        pipe.InitBuffer(results_, 2, UNIT * static_cast<uint32_t>(sizeof(T)));
        if (WIDE_BYTES != 0) {
            pipe.InitBuffer(wide_buffer_, 2 * UNIT * 4);
            wide_ = wide_buffer_.Get<float>();
        }
        a_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(a));
        b_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(b));
        out_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(out));
        Share units = share_of(units_of(count));
        for (uint64_t unit = units.begin; unit < units.end; ++unit) {
            uint64_t offset = unit * UNIT;
            subtract(offset, padded(static_cast<uint32_t>(smaller(UNIT, count - offset))));
        }
    }

private:
    __aicore__ inline void subtract(uint64_t offset, uint32_t count) {
#ifdef ADASUM_FUSED
        fused::subtract(out_.access(offset, count), a_.access(offset, count), b_.access(offset, count), count);
        return;
#endif
        LocalTensor<T> operands = operands_.template AllocTensor<T>();
        copy_in(operands, a_[offset], count);
        copy_in(operands[STRIDE], b_[offset], count);
        operands_.EnQue(operands);
        operands = operands_.template DeQue<T>();
        LocalTensor<T> result = results_.template AllocTensor<T>();
        subtract_tile(result, operands, operands[STRIDE], wide_, count);
        operands_.FreeTensor(operands);
        results_.EnQue(result);
        result = results_.template DeQue<T>();
        copy_out(out_[offset], result, count);
        results_.FreeTensor(result);
    }

    TQue<TPosition::VECIN, 1> operands_;
    TQue<TPosition::VECOUT, 1> results_;
    TBuf<TPosition::VECCALC> wide_buffer_;
    LocalTensor<float> wide_;
    GlobalTensor<T> a_;
    GlobalTensor<T> b_;
    GlobalTensor<T> out_;
};

template <typename T>
__aicore__ inline void subtract_of(TPipe &pipe, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t count) {
    Subtract<T> kernel;
    kernel.run(pipe, a, b, out, count);
}

__aicore__ inline void subtract_any(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t dtype, uint64_t count,
                                    GM_ADDR receipt) {
    TPipe pipe;
    if (dtype == DTYPE_FLOAT) {
        subtract_of<float>(pipe, a, b, out, count);
    } else if (dtype == DTYPE_FLOAT16) {
        subtract_of<half>(pipe, a, b, out, count);
    }
#if ADASUM_HAS_BF16
    if (dtype == DTYPE_BF16) {
        subtract_of<bfloat16_t>(pipe, a, b, out, count);
    }
#endif
    sign(pipe, receipt);
}

} // namespace adasum

ADASUM_VECTOR_KERNEL(subtract);

extern "C" __global__ __aicore__ void subtract(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t dtype, uint64_t count,
                                               GM_ADDR receipt) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    adasum::subtract_any(a, b, out, dtype, count, receipt);
    adasum::leave();
}
