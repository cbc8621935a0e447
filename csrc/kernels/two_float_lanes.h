// Two-float numbers in lanes: the operations of two_float.h as vector instructions, with the same bits.
//
// No result is one of the operands. Each function ends with a barrier.
#ifndef ADASUM_TWO_FLOAT_LANES_H
#define ADASUM_TWO_FLOAT_LANES_H

#include "adasum_ascendc.h"

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
    two_sum(sum, a.hi, b.hi, low.hi, count);
    two_sum(low, a.lo, b.lo, a.hi, count);
    AscendC::Add(sum.lo, sum.lo, low.hi, count);
    AscendC::PipeBarrier<PIPE_V>();
    quick_two_sum(a, sum.hi, sum.lo, count);
    AscendC::Add(a.lo, a.lo, low.lo, count);
    AscendC::PipeBarrier<PIPE_V>();
    quick_two_sum(sum, a.hi, a.lo, count);
}

} // namespace adasum

#endif
