// The twin's copies and vector instructions. A loop rounds after every operation: multiply-add is not contracted.
#ifndef ADASUM_TWIN_INSTRUCTIONS_H
#define ADASUM_TWIN_INSTRUCTIONS_H

#include <cmath>

#include "lanes.h"
#include "names.h"
#include "types.h"
#include "unified_buffer.h"

namespace AscendC {

namespace twin {

constexpr uint32_t MAX_COPY_BYTES = 2097151;

// The number of elements of a copy. The twin takes one block, which is all that the kernels use.
template <typename T>
inline uint32_t copy_count(const DataCopyExtParams &params) {
    ADASUM_TWIN_CHECK(params.blockCount == 1, "DataCopyPad: the twin copies one block");
    ADASUM_TWIN_CHECK(params.blockLen <= MAX_COPY_BYTES, "DataCopyPad: blockLen is too large");
    ADASUM_TWIN_CHECK(params.blockLen % sizeof(T) == 0, "DataCopyPad: blockLen is not a whole number of elements");
    return params.blockLen / static_cast<uint32_t>(sizeof(T));
}

template <typename T>
inline T *output(const LocalTensor<T> &tensor, int32_t count) {
    static_assert(std::is_same<T, float>::value || std::is_same<T, int32_t>::value || std::is_same<T, int16_t>::value,
                  "the twin computes in float, int32_t and int16_t");
    ADASUM_TWIN_CHECK(count >= 0, "a vector instruction with a negative count");
    tensor.check_aligned(BLOCK_BYTES);
    return tensor.write(0, static_cast<uint32_t>(count));
}

template <typename T>
inline const T *input(const LocalTensor<T> &tensor, int32_t count) {
    tensor.check_aligned(BLOCK_BYTES);
    return tensor.read(0, static_cast<uint32_t>(count));
}

// Adds to a number that other threads may add to.
inline void add_at_once(float *to, float value) {
    uint32_t *word = reinterpret_cast<uint32_t *>(to);
    uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &before, to_bits(from_bits(before) + value), true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
    }
}

// f of each two elements. Operands are one and the same or apart, so the loop carries no dependence.
template <typename T, typename F>
inline void each_pair(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, int32_t count,
                      F f) {
    T *to = output(dst, count);
    const T *a = input(src0, count);
    const T *b = input(src1, count);
#pragma GCC ivdep
    for (int32_t i = 0; i < count; ++i) {
        to[i] = f(a[i], b[i]);
    }
}

// f(dst, src0, src1, mask) for each repeat. Within one the twin takes contiguous lanes only.
template <typename T, typename F>
inline void each_repeat(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                        uint64_t mask, uint8_t repeats, const BinaryRepeatParams &params, F f) {
    constexpr uint32_t BLOCK = BLOCK_BYTES / sizeof(T);
    ADASUM_TWIN_CHECK(mask >= 1 && mask <= 256 / sizeof(T), "the mask of a vector instruction is out of range");
    ADASUM_TWIN_CHECK(params.dstBlkStride == 1 && params.src0BlkStride == 1 && params.src1BlkStride == 1,
                      "a vector instruction: the twin takes contiguous blocks");
    int32_t count = static_cast<int32_t>(mask);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        f(dst[repeat * params.dstRepStride * BLOCK], src0[repeat * params.src0RepStride * BLOCK],
          src1[repeat * params.src1RepStride * BLOCK], count);
    }
}

} // namespace twin

template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &params,
                        const DataCopyPadExtParams<T> &pad) {
    ADASUM_TWIN_CHECK(!pad.isPad && pad.leftPadding == 0 && pad.rightPadding == 0,
                      "DataCopyPad: the twin does not pad");
    uint32_t count = twin::copy_count<T>(params);
    dst.check_aligned(twin::BLOCK_BYTES);
    std::memcpy(dst.write(0, count), src.access(0, count), count * sizeof(T));
}

template <typename T>
inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &params) {
    ADASUM_TWIN_CHECK(!twin::atomic_add, "DataCopyPad: the twin adds by DataCopy only");
    src.check_aligned(twin::BLOCK_BYTES);
    uint32_t count = twin::copy_count<T>(params);
    std::memcpy(dst.access(0, count), src.read(0, count), count * sizeof(T));
}

// From here on copies out add to what is there, each number at once, until SetAtomicNone.
template <typename T>
inline void SetAtomicAdd() {
    static_assert(std::is_same<T, float>::value, "SetAtomicAdd: the twin adds float");
    ADASUM_TWIN_CHECK(!twin::atomic_add, "SetAtomicAdd twice");
    twin::atomic_add = true;
}

inline void SetAtomicNone() { twin::atomic_add = false; }

template <typename T>
inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count) {
    ADASUM_TWIN_CHECK(count * sizeof(T) % twin::BLOCK_BYTES == 0, "DataCopy: no multiple of 32 bytes");
    src.check_aligned(twin::BLOCK_BYTES);
    T *to = dst.access(0, count);
    const T *from = src.read(0, count);
    if (twin::atomic_add) {
        for (uint32_t i = 0; i < count; ++i) {
            twin::add_at_once(to + i, from[i]);
        }
    } else {
        std::memcpy(to, from, count * sizeof(T));
    }
}

template <typename T>
inline void Duplicate(const LocalTensor<T> &dst, const T &scalar, const int32_t &count) {
    T *to = twin::output(dst, count);
    const T value = scalar;
    for (int32_t i = 0; i < count; ++i) {
        to[i] = value;
    }
}

template <typename T>
inline void Add(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                const int32_t &count) {
    twin::each_pair(dst, src0, src1, count, [](T a, T b) { return static_cast<T>(a + b); });
}

template <typename T>
inline void Mul(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                const int32_t &count) {
    twin::each_pair(dst, src0, src1, count, [](T a, T b) { return static_cast<T>(a * b); });
}

template <typename T, bool isSetMask = true>
inline void Mul(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask,
                const uint8_t repeatTime, const BinaryRepeatParams &repeatParams) {
    twin::each_repeat(dst, src0, src1, mask, repeatTime, repeatParams,
                      [](const LocalTensor<T> &to, const LocalTensor<T> &a, const LocalTensor<T> &b, int32_t count) {
        Mul(to, a, b, count);
    });
}

template <typename T, bool isSetMask = true>
inline void Muls(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, const int32_t &count) {
    T *to = twin::output(dst, count);
    const T *a = twin::input(src, count);
    const T factor = scalar;
#pragma GCC ivdep
    for (int32_t i = 0; i < count; ++i) {
        to[i] = static_cast<T>(a[i] * factor);
    }
}

template <typename T>
inline void Sub(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                const int32_t &count) {
    twin::each_pair(dst, src0, src1, count, [](T a, T b) { return static_cast<T>(a - b); });
}

template <typename T>
inline void Div(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                const int32_t &count) {
    twin::each_pair(dst, src0, src1, count, [](T a, T b) { return static_cast<T>(a / b); });
}

template <typename T>
inline void Max(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                const int32_t &count) {
    twin::each_pair(dst, src0, src1, count, [](T a, T b) { return a < b ? b : a; });
}

template <typename T>
inline void Sqrt(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count) {
    T *to = twin::output(dst, count);
    const T *a = twin::input(src, count);
#pragma GCC ivdep
    for (int32_t i = 0; i < count; ++i) {
        to[i] = std::sqrt(a[i]);
    }
}

// Between float and the 16-bit types: up as it is, down to nearest.
template <typename T, typename U>
inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode,
                 const uint32_t count) {
    constexpr bool UP = std::is_same<T, float>::value && sizeof(U) == 2;
    constexpr bool DOWN = std::is_same<U, float>::value && sizeof(T) == 2;
    static_assert(UP || DOWN, "Cast: the twin converts between float and 16-bit floats");
    ADASUM_TWIN_CHECK(roundMode == (UP ? RoundMode::CAST_NONE : RoundMode::CAST_RINT),
                      "Cast: up is CAST_NONE, down is CAST_RINT");
    dst.check_aligned(twin::BLOCK_BYTES);
    src.check_aligned(twin::BLOCK_BYTES);
    T *to = dst.write(0, count);
    const U *from = src.read(0, count);
    uint32_t i = 0;
    for (; i + twin::REGISTER_LANES <= count; i += twin::REGISTER_LANES) {
        twin::store_lanes(to + i, twin::load_lanes(from + i));
    }
    for (; i < count; ++i) {
        twin::convert(from[i], to[i]);
    }
}

template <typename T, typename U>
inline void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                      const int32_t &count) {
    T *to = twin::output(dst, count);
    const U *a = twin::input(src0, count);
    const U *b = twin::input(src1, count);
#pragma GCC ivdep
    for (int32_t i = 0; i < count; ++i) {
        to[i] = to[i] + a[i] * b[i];
    }
}

template <typename T, typename U, bool isSetMask = true>
inline void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, uint64_t mask,
                      const uint8_t repeatTime, const BinaryRepeatParams &repeatParams) {
    static_assert(std::is_same<T, U>::value, "MulAddDst: the twin strides over operands of one type");
    twin::each_repeat(dst, src0, src1, mask, repeatTime, repeatParams,
                      [](const LocalTensor<T> &to, const LocalTensor<T> &a, const LocalTensor<T> &b, int32_t count) {
        MulAddDst(to, a, b, count);
    });
}

// One sum for each repeat of up to 64 lanes: neighbours first, as a binary tree.
template <typename T, bool isSetMask = true>
inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t mask,
                           const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                           const int32_t srcRepStride) {
    constexpr int32_t LANES = 256 / sizeof(T);
    constexpr int32_t BLOCK = twin::BLOCK_BYTES / sizeof(T);
    ADASUM_TWIN_CHECK(mask >= 2 && mask <= LANES && (mask & (mask - 1)) == 0 && srcBlkStride == 1,
                      "WholeReduceSum: the twin sums a power of two of contiguous lanes");
    ADASUM_TWIN_CHECK(repeatTime >= 0 && repeatTime <= 255, "WholeReduceSum: repeatTime is out of range");
    ADASUM_TWIN_CHECK(srcRepStride >= 0 && srcRepStride <= 255, "WholeReduceSum: srcRepStride is out of range");
    src.check_aligned(twin::BLOCK_BYTES);
    dst.check_aligned(sizeof(T));
    for (int32_t repeat = 0; repeat < repeatTime; ++repeat) {
        const T *from = src.read(static_cast<uint32_t>(repeat * srcRepStride * BLOCK), static_cast<uint32_t>(mask));
        T sums[LANES / 2];
        for (int32_t i = 0; i < mask / 2; ++i) {
            sums[i] = from[2 * i] + from[2 * i + 1];
        }
        for (int32_t width = mask / 4; width > 0; width /= 2) {
            for (int32_t i = 0; i < width; ++i) {
                sums[i] = sums[2 * i] + sums[2 * i + 1];
            }
        }
        *dst.write(static_cast<uint32_t>(repeat * dstRepStride), 1) = sums[0];
    }
}

// A single lane of each repeat.
template <typename T, bool isSetMask = true>
inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[],
                           const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                           const int32_t srcRepStride) {
    constexpr int32_t BLOCK = twin::BLOCK_BYTES / sizeof(T);
    ADASUM_TWIN_CHECK(mask[0] != 0 && (mask[0] & (mask[0] - 1)) == 0 && mask[0] < 1ULL << BLOCK && mask[1] == 0,
                      "WholeReduceSum: the twin takes a single lane of the first block");
    ADASUM_TWIN_CHECK(repeatTime >= 0 && repeatTime <= 255, "WholeReduceSum: repeatTime is out of range");
    ADASUM_TWIN_CHECK(srcRepStride >= 0 && srcRepStride <= 255 && srcBlkStride == 1,
                      "WholeReduceSum: a stride is out of range");
    src.check_aligned(twin::BLOCK_BYTES);
    dst.check_aligned(sizeof(T));
    uint32_t lane = 0;
    while (mask[0] >> lane != 1) {
        ++lane;
    }
    if (repeatTime == 0) {
        return;
    }
    T *to = dst.write(0, static_cast<uint32_t>((repeatTime - 1) * dstRepStride + 1));
    const T *from = src.read(lane, static_cast<uint32_t>((repeatTime - 1) * srcRepStride * BLOCK + 1));
    for (int32_t repeat = 0; repeat < repeatTime; ++repeat) {
        to[repeat * dstRepStride] = from[repeat * srcRepStride * BLOCK];
    }
}

} // namespace AscendC

#endif
