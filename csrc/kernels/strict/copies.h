// The strict twin's copies between device memory and the unified buffer.
#ifndef ADASUM_STRICT_COPIES_H
#define ADASUM_STRICT_COPIES_H

#include "tensors.h"

namespace AscendC {

namespace twin {

constexpr uint32_t MAX_COPY_BLOCKS = 4095;
constexpr uint32_t MAX_COPY_BYTES = 2097151;

inline uint32_t whole_blocks(uint32_t bytes) { return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES; }

// One block of a copy.
struct CopiedBlock {
    uint64_t device;
    uint32_t local; // where the copied bytes are, behind the padding on the left
};

// A whole copy in either direction.
struct CopyPlan {
    std::vector<CopiedBlock> blocks;
    std::vector<DeviceAccess> device;
    std::vector<Access> local;
    uint32_t bytes; // of a block in device memory
    uint32_t left;  // padding in front of it and behind it, in bytes
    uint32_t right;
};

template <typename T>
void check_shape(const char *what, const DataCopyExtParams &params, Site at) {
    ADASUM_STRICT_CHECK(params.blockCount <= MAX_COPY_BLOCKS, LIMITS, at, "%s: blockCount is %u, at most %u", what,
                        params.blockCount, MAX_COPY_BLOCKS);
    ADASUM_STRICT_CHECK(params.blockLen <= MAX_COPY_BYTES, LIMITS, at, "%s: blockLen is %u, at most %u", what,
                        params.blockLen, MAX_COPY_BYTES);
    ADASUM_STRICT_CHECK(params.blockLen % sizeof(T) == 0, LIMITS, at, "%s: blockLen is not a whole number of elements",
                        what);
}

// `extent` is how far the copy reaches into the tensor of the unified buffer, in bytes. Copies in go to VECIN and copies out
// come from VECOUT; VECCALC serves copies in on Ascend 950 only (the vendor's pages of DataCopy and DataCopyPad).
template <typename T>
void check_local(const char *what, const LocalTensor<T> &tensor, uint32_t extent, TPosition due, Site at) {
    Operand place = tensor.operand_((extent + sizeof(T) - 1) / sizeof(T), BLOCK_BYTES, what, at);
    ADASUM_STRICT_CHECK(place.bytes >= extent, BOUNDS, at, "%s: leaves its local tensor", what);
    ADASUM_STRICT_CHECK(tensor.buffer_of_()->position == due, QUEUES, at,
                        "%s: the tensor's position is not that of the direction", what);
}

// A copy that adds is what a block does last: one block of 32 bytes.
template <typename T>
void check_added(const char *what, const DataCopyExtParams &params, Site at) {
    ADASUM_STRICT_CHECK((std::is_same<T, float>::value && params.blockCount == 1 && params.blockLen == BLOCK_BYTES),
                        RECEIPTS, at, "%s of %u blocks of %u bytes while copies out add: only a receipt may be written",
                        what, params.blockCount, params.blockLen);
}

template <typename T>
CopyPlan plan_copy(const char *what, const LocalTensor<T> &local, const GlobalTensor<T> &device,
                   const DataCopyExtParams &params, uint32_t left, uint32_t right, bool in, Site at) {
    check_shape<T>(what, params, at);
    uint64_t device_gap = static_cast<uint64_t>(in ? params.srcStride : params.dstStride);
    uint64_t local_gap = static_cast<uint64_t>(in ? params.dstStride : params.srcStride) * BLOCK_BYTES;
    // A copy in fills the last 32-byte block of each of its blocks, with rubbish behind the data.
    uint32_t data = left + params.blockLen + right;
    uint32_t taken = whole_blocks(data);
    CopyPlan plan{{}, {}, {}, params.blockLen, left, right};
    if (params.blockCount == 0 || params.blockLen == 0) {
        return plan;
    }
    bool adds = !in && is_adding(at);
    if (adds) {
        check_added<T>(what, params, at);
    }
    uint64_t extent = (params.blockCount - 1) * (taken + local_gap) + (in ? taken : data);
    ADASUM_STRICT_CHECK(extent <= UB_BYTES, BOUNDS, at, "%s: larger than the unified buffer", what);
    check_local(what, local, static_cast<uint32_t>(extent), in ? TPosition::VECIN : TPosition::VECOUT, at);
    uint32_t begin = local.operand_(0, 0, at).begin;
    uint64_t address = device.place_(at);
    for (uint32_t i = 0; i < params.blockCount; ++i) {
        uint64_t offset = i * (params.blockLen + device_gap);
        uint32_t to = begin + static_cast<uint32_t>(i * (taken + local_gap));
        plan.blocks.push_back(CopiedBlock{address + offset, to + left});
        plan.device.push_back(DeviceAccess{address + offset, params.blockLen, !in, adds});
        plan.local.push_back(Access{to, in ? taken : data, in});
    }
    return plan;
}

template <typename T>
void copy_in(const CopyPlan &plan, T padding, bool padded, Site at) {
    issue(COPY_IN, at, plan.local, plan.device, [plan, padding, padded] {
        for (const CopiedBlock &block : plan.blocks) {
            uint32_t begin = block.local - plan.left;
            uint32_t data = plan.left + plan.bytes + plan.right;
            poison(begin, whole_blocks(data));
            for (uint32_t i = 0; padded && i < data; i += sizeof(T)) {
                std::memcpy(bytes_at(begin + i), &padding, sizeof(T));
            }
            std::memcpy(bytes_at(block.local), reinterpret_cast<const void *>(block.device), plan.bytes);
            mark(padded ? begin : block.local, padded ? data : plan.bytes, true);
        }
    });
}

inline void add_floats(uint64_t device, uint32_t local, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += sizeof(float)) {
        float sum;
        float addend;
        std::memcpy(&sum, reinterpret_cast<const void *>(device + i), sizeof(sum));
        std::memcpy(&addend, bytes_at(local + i), sizeof(addend));
        sum += addend;
        std::memcpy(reinterpret_cast<void *>(device + i), &sum, sizeof(sum));
    }
}

inline void copy_out(const CopyPlan &plan, Site at) {
    issue(COPY_OUT, at, plan.local, plan.device, [plan, at] {
        for (const CopiedBlock &block : plan.blocks) {
            ADASUM_STRICT_CHECK(initialised(block.local, plan.bytes), UNINITIALISED, at,
                                "a copy out of what nothing has written");
            if (plan.device.front().adds) {
                add_floats(block.device, block.local, plan.bytes);
            } else {
                std::memcpy(reinterpret_cast<void *>(block.device), bytes_at(block.local), plan.bytes);
            }
        }
    });
}

template <typename T>
DataCopyExtParams whole_copy(uint32_t count, Site at) {
    uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T);
    ADASUM_STRICT_CHECK(bytes % BLOCK_BYTES == 0, ALIGNMENT, at,
                        "DataCopy of %llu bytes: no multiple of 32, the rest would be dropped",
                        static_cast<unsigned long long>(bytes));
    ADASUM_STRICT_CHECK(bytes <= MAX_COPY_BYTES, LIMITS, at, "DataCopy: %llu bytes, at most %u",
                        static_cast<unsigned long long>(bytes), MAX_COPY_BYTES);
    DataCopyExtParams params;
    params.blockLen = static_cast<uint32_t>(bytes);
    return params;
}

} // namespace twin

template <typename T>
inline void SetAtomicAdd(twin::Site at = twin::Site::here()) {
    static_assert(twin::adds_at_once<T>, "duty 9 (types): SetAtomicAdd does not take this type on this chip");
    twin::start_adding(at);
}

inline void SetAtomicNone(twin::Site at = twin::Site::here()) { twin::stop_adding(at); }

template <typename T>
inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count,
                     twin::Site at = twin::Site::here()) {
    static_assert(twin::has<T>, "duty 9 (types): DataCopy of a type that this chip does not have");
    twin::copy_in(twin::plan_copy("DataCopy", dst, src, twin::whole_copy<T>(count, at), 0, 0, true, at), T(), false,
                  at);
}

template <typename T>
inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count,
                     twin::Site at = twin::Site::here()) {
    static_assert(twin::has<T>, "duty 9 (types): DataCopy of a type that this chip does not have");
    twin::copy_out(twin::plan_copy("DataCopy", src, dst, twin::whole_copy<T>(count, at), 0, 0, false, at), at);
}

template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &params,
                        const DataCopyPadExtParams<T> &pad, twin::Site at = twin::Site::here()) {
    static_assert(!twin::IS_1001 || sizeof(T) == 0, "duty 9 (types): this chip has no DataCopyPad");
    uint32_t left = pad.leftPadding * static_cast<uint32_t>(sizeof(T));
    uint32_t right = pad.rightPadding * static_cast<uint32_t>(sizeof(T));
    ADASUM_STRICT_CHECK(left <= twin::BLOCK_BYTES && right <= twin::BLOCK_BYTES, LIMITS, at,
                        "DataCopyPad: paddings of %u and %u bytes, at most 32", left, right);
    twin::copy_in(twin::plan_copy("DataCopyPad", dst, src, params, left, right, true, at), pad.paddingValue, pad.isPad,
                  at);
}

template <typename T>
inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &params,
                        twin::Site at = twin::Site::here()) {
    static_assert(!twin::IS_1001 || sizeof(T) == 0, "duty 9 (types): this chip has no DataCopyPad");
    twin::copy_out(twin::plan_copy("DataCopyPad", src, dst, params, 0, 0, false, at), at);
}

} // namespace AscendC

#endif
