// Two-float numbers in lanes: the operations of two_float.h as vector instructions, with the same bits.
//
// Unless said otherwise no result is one of the operands. Each function ends with a barrier.
#ifndef ADASUM_TWO_FLOAT_LANES_H
#define ADASUM_TWO_FLOAT_LANES_H

#include "adasum_ascendc.h"
#include "arch.h"

namespace adasum {

struct TwoFloatLanes {
    AscendC::LocalTensor<float> hi;
    AscendC::LocalTensor<float> lo;

    __aicore__ inline TwoFloatLanes from(uint32_t lane) const { return TwoFloatLanes{hi[lane], lo[lane]}; }
};

// sum.hi + sum.lo = a + b exactly.
__aicore__ inline void two_sum(const TwoFloatLanes &sum, const AscendC::LocalTensor<float> &a,
                               const AscendC::LocalTensor<float> &b, const AscendC::LocalTensor<float> &work,
                               int32_t count) {
    AscendC::Add(sum.hi, a, b, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(work, sum.hi, a, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sum.lo, sum.hi, work, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sum.lo, a, sum.lo, count);
    AscendC::Sub(work, b, work, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(sum.lo, sum.lo, work, count);
    AscendC::PipeBarrier<PIPE_V>();
}

// The same for |a| >= |b| or a = 0.
__aicore__ inline void quick_two_sum(const TwoFloatLanes &sum, const AscendC::LocalTensor<float> &a,
                                     const AscendC::LocalTensor<float> &b, int32_t count) {
    AscendC::Add(sum.hi, a, b, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sum.lo, sum.hi, a, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(sum.lo, b, sum.lo, count);
    AscendC::PipeBarrier<PIPE_V>();
}

// sum = a + b. What a held is gone; `low` is work.
__aicore__ inline void add(const TwoFloatLanes &sum, const TwoFloatLanes &a, const TwoFloatLanes &b,
                           const TwoFloatLanes &low, int32_t count) {
#ifdef ADASUM_FUSED
    fused::add(sum, a, b, count);
    return;
#endif
    two_sum(sum, a.hi, b.hi, low.hi, count);
    two_sum(low, a.lo, b.lo, a.hi, count);
    AscendC::Add(sum.lo, sum.lo, low.hi, count);
    AscendC::PipeBarrier<PIPE_V>();
    quick_two_sum(a, sum.hi, sum.lo, count);
    AscendC::Add(a.lo, a.lo, low.lo, count);
    AscendC::PipeBarrier<PIPE_V>();
    quick_two_sum(sum, a.hi, a.lo, count);
}

// halves.hi + halves.lo = a, with 12 bits in hi.
__aicore__ inline void split(const TwoFloatLanes &halves, const AscendC::LocalTensor<float> &a, int32_t count) {
    AscendC::Muls(halves.hi, a, 4097.0f, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(halves.lo, halves.hi, a, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(halves.hi, halves.hi, halves.lo, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(halves.lo, a, halves.hi, count);
    AscendC::PipeBarrier<PIPE_V>();
}

// error = what the product of x and y, in halves, rounded off.
__aicore__ inline void product_error(const AscendC::LocalTensor<float> &error,
                                     const AscendC::LocalTensor<float> &product, const TwoFloatLanes &x,
                                     const TwoFloatLanes &y, const AscendC::LocalTensor<float> &work, int32_t count) {
    AscendC::Mul(error, x.hi, y.hi, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Sub(error, error, product, count);
    AscendC::PipeBarrier<PIPE_V>();
    multiply_add(error, x.hi, y.lo, work, count);
    AscendC::PipeBarrier<PIPE_V>();
    multiply_add(error, x.lo, y.hi, work, count);
    AscendC::PipeBarrier<PIPE_V>();
    multiply_add(error, x.lo, y.lo, work, count);
    AscendC::PipeBarrier<PIPE_V>();
}

// Arrays of lanes that products need for work.
constexpr uint32_t PRODUCT_WORK = 7;

// product.hi + product.lo = a * b exactly.
__aicore__ inline void two_product(const TwoFloatLanes &product, const AscendC::LocalTensor<float> &a,
                                   const AscendC::LocalTensor<float> &b, const AscendC::LocalTensor<float> *work,
                                   int32_t count) {
    TwoFloatLanes x{work[0], work[1]};
    TwoFloatLanes y{work[2], work[3]};
    split(x, a, count);
    split(y, b, count);
    AscendC::Mul(product.hi, a, b, count);
    product_error(product.lo, product.hi, x, y, work[4], count);
}

// product = a * b; it may be one of them.
__aicore__ inline void multiply(const TwoFloatLanes &product, const TwoFloatLanes &a, const TwoFloatLanes &b,
                                const AscendC::LocalTensor<float> *work, int32_t count) {
#ifdef ADASUM_FUSED
    fused::multiply(product, a, b, count);
    return;
#endif
    TwoFloatLanes exact{work[5], work[6]};
    two_product(exact, a.hi, b.hi, work, count);
    AscendC::Mul(work[0], a.hi, b.lo, count);
    AscendC::PipeBarrier<PIPE_V>();
    multiply_add(work[0], a.lo, b.hi, work[4], count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(exact.lo, exact.lo, work[0], count);
    AscendC::PipeBarrier<PIPE_V>();
    quick_two_sum(product, exact.hi, exact.lo, count);
}

// The same for a factor of one fp32 number.
__aicore__ inline void multiply(const TwoFloatLanes &product, const TwoFloatLanes &a,
                                const AscendC::LocalTensor<float> &b, const AscendC::LocalTensor<float> *work,
                                int32_t count) {
#ifdef ADASUM_FUSED
    fused::multiply(product, a, b, count);
    return;
#endif
    TwoFloatLanes exact{work[5], work[6]};
    two_product(exact, a.hi, b, work, count);
    AscendC::Mul(work[0], a.lo, b, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(exact.lo, exact.lo, work[0], count);
    AscendC::PipeBarrier<PIPE_V>();
    quick_two_sum(product, exact.hi, exact.lo, count);
}

} // namespace adasum

#endif
