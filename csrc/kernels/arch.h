// What the chips do differently, and the few instructions that differ with them: waits, copies of n elements, sums.
//
// Arch 2201 is Atlas A2 and A3, 3510 is Ascend 950, 1001 is Ascend 910A. All give the same bits.
//
// Arch 1001 copies whole blocks of 32 bytes only, so it asks more of memory: every tensor, and every segment of a fused
// buffer, starts at a multiple of 64 bytes and owns the memory up to the next multiple of 64 bytes behind its end. A
// copy in reads such a rest, a copy out writes it (with what the arithmetic makes of it), and nothing else is touched.
// A fused buffer is laid out like that, and an allocation ends like that: aclrtMalloc starts at 64 bytes, rounds up to
// 32 and adds 32. Tables may be read up to 31 bytes behind their end. Everywhere else an element is the grain.
#ifndef ADASUM_ARCH_H
#define ADASUM_ARCH_H

#include "adasum_ascendc.h"

// The build may name the chip where the compiler does not.
#ifndef ADASUM_NPU_ARCH
#ifdef __NPU_ARCH__
#define ADASUM_NPU_ARCH __NPU_ARCH__
#elif defined(ADASUM_TWIN)
#define ADASUM_NPU_ARCH 2201
#else
#error "the build must name the chip: ADASUM_NPU_ARCH"
#endif
#endif

#if ADASUM_NPU_ARCH == 1001
#define ADASUM_WHOLE_BLOCKS 1
#define ADASUM_HAS_BF16 0
#else
#define ADASUM_WHOLE_BLOCKS 0
#define ADASUM_HAS_BF16 1
#endif

namespace adasum {

// Lets the second pipe of the event wait for all that the first one was given so far. All such waits share one flag for each event, and
// a flag may be set again only when the first pipe knows that the last wait for it has run.
template <AscendC::HardEvent event>
__aicore__ inline void wait_for() {
    int32_t id = static_cast<int32_t>(::GetTPipePtr()->FetchEventID(event));
    AscendC::SetFlag<event>(id);
    AscendC::WaitFlag<event>(id);
}

// Floats in 32 bytes, the grain of an operand's address, and in one repeat of a vector instruction.
constexpr uint32_t BLOCK = 8;
constexpr uint32_t REPEAT = 64;

// Strides of an instruction whose sources take a repeat from each of strips of `strip` floats; its results lie one behind
// another.
__aicore__ inline AscendC::BinaryRepeatParams strides_of(uint32_t strip) {
    constexpr uint8_t NEXT = REPEAT / BLOCK;
    uint8_t stride = static_cast<uint8_t>(strip / BLOCK);
    return AscendC::BinaryRepeatParams{1, 1, 1, NEXT, stride, stride};
}

// How many elements a kernel that writes `count` of them has to compute: on arch 1001 whole blocks, also of 16-bit
// types; up to 60 bytes behind the last element.
__aicore__ inline constexpr uint32_t padded(uint32_t count) {
#if ADASUM_WHOLE_BLOCKS
    return (count + 2 * BLOCK - 1) / (2 * BLOCK) * (2 * BLOCK);
#else
    return count;
#endif
}

// Rounds fp32 to a 16-bit type, to nearest, ties to even. Arch 1001 issues no instruction for CAST_RINT; CAST_NONE rounds
// like it there.
#if ADASUM_NPU_ARCH == 1001
constexpr AscendC::RoundMode TO_NEAREST = AscendC::RoundMode::CAST_NONE;
#else
constexpr AscendC::RoundMode TO_NEAREST = AscendC::RoundMode::CAST_RINT;
#endif

#if ADASUM_WHOLE_BLOCKS

template <typename T>
__aicore__ inline constexpr uint32_t whole_blocks(uint32_t count) {
    constexpr uint32_t ELEMENTS = 32 / sizeof(T);
    return (count + ELEMENTS - 1) / ELEMENTS * ELEMENTS;
}

template <typename T>
__aicore__ inline void copy_in(const AscendC::LocalTensor<T> &dst, const AscendC::GlobalTensor<T> &src,
                               uint32_t count) {
    AscendC::DataCopy(dst, src, whole_blocks<T>(count));
}

template <typename T>
__aicore__ inline void copy_out(const AscendC::GlobalTensor<T> &dst, const AscendC::LocalTensor<T> &src,
                                uint32_t count) {
    AscendC::DataCopy(dst, src, whole_blocks<T>(count));
}

// dst += a * b, rounded twice. `work` has room for the product and is not used again before the next barrier.
__aicore__ inline void multiply_add(const AscendC::LocalTensor<float> &dst, const AscendC::LocalTensor<float> &a,
                                    const AscendC::LocalTensor<float> &b, const AscendC::LocalTensor<float> &work,
                                    int32_t count) {
    AscendC::Mul(work, a, b, count);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(dst, dst, work, count);
}

// The same for 64 elements of each of some strips: those of `dst` and `work` lie one behind another, those of `a` and `b`
// STRIP elements apart.
template <uint32_t STRIP>
__aicore__ inline void multiply_add_strips(const AscendC::LocalTensor<float> &dst, const AscendC::LocalTensor<float> &a,
                                           const AscendC::LocalTensor<float> &b,
                                           const AscendC::LocalTensor<float> &work, uint32_t strips) {
    AscendC::Mul(work, a, b, static_cast<uint64_t>(REPEAT), static_cast<uint8_t>(strips), strides_of(STRIP));
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(dst, dst, work, static_cast<int32_t>(strips * REPEAT));
}

// results[i * result_stride] = the sum of the block at lanes[i * lane_stride], neighbours first; ends with a barrier.
__aicore__ inline void sum_blocks(const AscendC::LocalTensor<float> &results, uint32_t result_stride,
                                  const AscendC::LocalTensor<float> &lanes, uint32_t lane_stride, uint32_t count) {
    wait_for<AscendC::HardEvent::V_S>();
    for (uint32_t i = 0; i < count; ++i) {
        float sums[BLOCK];
        for (uint32_t lane = 0; lane < BLOCK; ++lane) {
            sums[lane] = lanes.GetValue(i * lane_stride + lane);
        }
        for (uint32_t width = BLOCK / 2; width > 0; width /= 2) {
            for (uint32_t lane = 0; lane < width; ++lane) {
                sums[lane] = sums[2 * lane] + sums[2 * lane + 1];
            }
        }
        results.SetValue(i * result_stride, sums[0]);
    }
    wait_for<AscendC::HardEvent::S_V>();
}

// to[k * lane_stride + i * stride] = lane k of block i of `from`, for all of `count` elements; ends with a barrier.
__aicore__ inline void transpose_blocks(const AscendC::LocalTensor<float> &to, uint32_t lane_stride, uint32_t stride,
                                        const AscendC::LocalTensor<float> &from, uint32_t count) {
    wait_for<AscendC::HardEvent::V_S>();
    for (uint32_t i = 0; i < count; ++i) {
        to.SetValue(i % BLOCK * lane_stride + i / BLOCK * stride, from.GetValue(i));
    }
    wait_for<AscendC::HardEvent::S_V>();
}

// to[i] = the word `index` of record i, for `count` records of `words` words, which are whole blocks. A barrier must follow.
__aicore__ inline void take_column(const AscendC::LocalTensor<float> &to, const AscendC::LocalTensor<float> &records,
                                   uint32_t index, uint32_t words, uint32_t count) {
    wait_for<AscendC::HardEvent::V_S>();
    for (uint32_t i = 0; i < count; ++i) {
        to.SetValue(i, records.GetValue(i * words + index));
    }
    wait_for<AscendC::HardEvent::S_V>();
}

// Copies elements of an integer type within UB, bit by bit; `count` is padded. A barrier must follow.
template <typename T>
__aicore__ inline void copy_bits(const AscendC::LocalTensor<T> &to, const AscendC::LocalTensor<T> &from,
                                 uint32_t count) {
    // The larger of a number and itself; in pairs, as this chip has no instruction for 16-bit integers.
    AscendC::LocalTensor<int32_t> words = from.template ReinterpretCast<int32_t>();
    AscendC::Max(to.template ReinterpretCast<int32_t>(), words, words,
                 static_cast<int32_t>(count * sizeof(T) / sizeof(int32_t)));
}

#else

template <typename T>
__aicore__ inline void copy_in(const AscendC::LocalTensor<T> &dst, const AscendC::GlobalTensor<T> &src,
                               uint32_t count) {
    AscendC::DataCopyExtParams shape{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    AscendC::DataCopyPadExtParams<T> pad;
    pad.isPad = false;
    AscendC::DataCopyPad(dst, src, shape, pad);
}

template <typename T>
__aicore__ inline void copy_out(const AscendC::GlobalTensor<T> &dst, const AscendC::LocalTensor<T> &src,
                                uint32_t count) {
    AscendC::DataCopyExtParams shape{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    AscendC::DataCopyPad(dst, src, shape);
}

__aicore__ inline void multiply_add(const AscendC::LocalTensor<float> &dst, const AscendC::LocalTensor<float> &a,
                                    const AscendC::LocalTensor<float> &b, const AscendC::LocalTensor<float> &,
                                    int32_t count) {
    AscendC::MulAddDst(dst, a, b, count);
}

template <uint32_t STRIP>
__aicore__ inline void multiply_add_strips(const AscendC::LocalTensor<float> &dst, const AscendC::LocalTensor<float> &a,
                                           const AscendC::LocalTensor<float> &b, const AscendC::LocalTensor<float> &,
                                           uint32_t strips) {
    AscendC::MulAddDst(dst, a, b, static_cast<uint64_t>(REPEAT), static_cast<uint8_t>(strips), strides_of(STRIP));
}

__aicore__ inline void sum_blocks(const AscendC::LocalTensor<float> &results, uint32_t result_stride,
                                  const AscendC::LocalTensor<float> &lanes, uint32_t lane_stride, uint32_t count) {
    AscendC::WholeReduceSum(results, lanes, static_cast<int32_t>(BLOCK), static_cast<int32_t>(count),
                            static_cast<int32_t>(result_stride), 1, static_cast<int32_t>(lane_stride / BLOCK));
    AscendC::PipeBarrier<PIPE_V>();
}

// Sums of single lanes, which are these lanes.
__aicore__ inline void transpose_blocks(const AscendC::LocalTensor<float> &to, uint32_t lane_stride, uint32_t stride,
                                        const AscendC::LocalTensor<float> &from, uint32_t count) {
    for (uint32_t lane = 0; lane < BLOCK && lane < count; ++lane) {
        uint64_t mask[2] = {1ULL << lane, 0};
        uint32_t blocks = (count - lane + BLOCK - 1) / BLOCK;
        AscendC::WholeReduceSum(to[lane * lane_stride], from, mask, static_cast<int32_t>(blocks),
                                static_cast<int32_t>(stride), 1, 1);
    }
    AscendC::PipeBarrier<PIPE_V>();
}

__aicore__ inline void take_column(const AscendC::LocalTensor<float> &to, const AscendC::LocalTensor<float> &records,
                                   uint32_t index, uint32_t words, uint32_t count) {
    uint64_t mask[2] = {1ULL << index % BLOCK, 0};
    AscendC::WholeReduceSum(to, records[index / BLOCK * BLOCK], mask, static_cast<int32_t>(count), 1, 1,
                            static_cast<int32_t>(words / BLOCK));
}

template <typename T>
__aicore__ inline void copy_bits(const AscendC::LocalTensor<T> &to, const AscendC::LocalTensor<T> &from,
                                 uint32_t count) {
    AscendC::Muls(to, from, static_cast<T>(1), static_cast<int32_t>(count));
}

#endif

} // namespace adasum

#endif
