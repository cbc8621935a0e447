// Names of Ascend C that both twins declare: enumerations and structures, in the vendor's namespaces and forms.
//
// Only what the kernels use is here, so that another spelling does not compile. What differs between chips goes by
// __NPU_ARCH__, as in the vendor's headers; tests/kernels/vendor_headers.sh holds the kernels against those.
#ifndef ADASUM_TWIN_NAMES_H
#define ADASUM_TWIN_NAMES_H

#include <cstdint>

#define __aicore__
// A check by a compiler with address spaces gives its own.
#ifndef __gm__
#define __gm__
#endif
#define __global__ __attribute__((visibility("default")))
#define GM_ADDR __gm__ uint8_t *

enum pipe_t { PIPE_S, PIPE_V, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };

enum KernelMetaType : uint8_t { KERNEL_TYPE_AIV_ONLY };
#define KERNEL_TASK_TYPE_DEFAULT(type) static_cast<void>(type)

namespace AscendC {

enum class TPosition : uint8_t { GM, VECIN, VECOUT, VECCALC, LCM = VECCALC };

enum class HardEvent : uint8_t { MTE2_V, V_MTE2, MTE3_V, V_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S, MAX };
using TEventID = int8_t;

enum class RoundMode : uint8_t { CAST_NONE = 0, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };

// Strides in blocks of 32 bytes: from one block of a repeat to the next, and from one repeat to the next.
struct BinaryRepeatParams {
    BinaryRepeatParams() {}
    BinaryRepeatParams(const uint8_t dstBlk, const uint8_t src0Blk, const uint8_t src1Blk, const uint8_t dstRep,
                       const uint8_t src0Rep, const uint8_t src1Rep)
        : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk), dstRepStride(dstRep),
          src0RepStride(src0Rep), src1RepStride(src1Rep) {}

    uint8_t dstBlkStride = 1;
    uint8_t src0BlkStride = 1;
    uint8_t src1BlkStride = 1;
    uint8_t dstRepStride = 8;
    uint8_t src0RepStride = 8;
    uint8_t src1RepStride = 8;
};

// Gaps between the blocks of a copy.
#if defined(__NPU_ARCH__) && __NPU_ARCH__ == 3510
using CopyStride_ = int64_t;
#else
using CopyStride_ = uint32_t;
#endif

struct DataCopyExtParams {
    DataCopyExtParams() {}
    DataCopyExtParams(const uint16_t count, const uint32_t len, const CopyStride_ src, const CopyStride_ dst,
                      const uint32_t reserved)
        : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(reserved) {}

    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    CopyStride_ srcStride = 0;
    CopyStride_ dstStride = 0;
    uint32_t rsv = 0;
};

template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams() {}
    DataCopyPadExtParams(const bool pad, const uint8_t left, const uint8_t right, T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}

    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    T paddingValue{};
};

} // namespace AscendC

#endif
