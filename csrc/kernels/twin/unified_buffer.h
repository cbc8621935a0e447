// The twin's unified buffer, its buffers and the tensors on them, and tensors in device memory.
#ifndef ADASUM_TWIN_UNIFIED_BUFFER_H
#define ADASUM_TWIN_UNIFIED_BUFFER_H

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "names.h"

#define ADASUM_TWIN_CHECK(condition, rule)                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            ::AscendC::twin::violated(__FILE__, __LINE__, rule);                                                       \
        }                                                                                                              \
    } while (false)

namespace AscendC {
namespace twin {

[[noreturn, gnu::cold, gnu::noinline]] inline void violated(const char *file, int line, const char *rule) {
    std::fprintf(stderr, "adasum kernel twin: %s:%d: %s\n", file, line, rule);
    std::abort();
}

// How many bytes from an address on are in one allocation of device memory; 0 if it lies in none. Unset: all is taken
// for device memory. Ranks may be threads, and each loads the binary and sets it.
using Finder = int (*)(uint64_t address, uint64_t *left);
inline std::atomic<Finder> finder{nullptr};

// Part of device memory.
struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;

    bool holds(uint64_t address, uint64_t bytes) const {
        return address >= begin && address < end && bytes <= end - address;
    }
};

// What a thread has seen of device memory in its launch, and the first access of its kernel that left it.
struct DeviceMemory {
    static constexpr uint32_t RANGES = 64;               // vectors, result, its copies, tables: each is looked up once
    static constexpr uint64_t REFUGE_BYTES = 4ULL << 20; // more than a copy moves
    Range ranges[RANGES] = {};
    uint32_t looked_up = 0; // ranges, of which the last ones are kept
    char *refuge = nullptr; // where accesses go that have no place; stays for the thread
    bool faulted = false;
    char fault[160] = {};
};
inline thread_local DeviceMemory device_memory;

// Where the access goes in truth: an accelerator raises an exception, so nothing of the host may be touched. `range` becomes
// that of its allocation, if it has one.
[[gnu::cold, gnu::noinline]] inline void *look_up(void *address, uint64_t bytes, Range &range) {
    DeviceMemory &seen = device_memory;
    const uint64_t begin = reinterpret_cast<uint64_t>(address);
    uint64_t left = 0;
    const bool found = finder.load(std::memory_order_relaxed)(begin, &left) != 0;
    if (found && bytes <= left) {
        range = Range{begin, begin + left};
        seen.ranges[seen.looked_up % DeviceMemory::RANGES] = range;
        ++seen.looked_up;
        return address;
    }
    if (!seen.faulted) {
        seen.faulted = true;
        std::snprintf(seen.fault, sizeof(seen.fault),
                      "an access to %llu bytes at %p, of which %llu are in an allocation of device memory",
                      static_cast<unsigned long long>(bytes), address,
                      static_cast<unsigned long long>(found ? left : 0));
    }
    if (seen.refuge == nullptr) {
        seen.refuge = static_cast<char *>(std::calloc(1, DeviceMemory::REFUGE_BYTES));
    }
    if (seen.refuge == nullptr || bytes > DeviceMemory::REFUGE_BYTES) {
        violated(__FILE__, __LINE__, seen.fault);
    }
    return seen.refuge;
}

// `last` is the range of the last access before it, and becomes that of this one.
inline void *in_device_memory(void *address, uint64_t bytes, Range &last) {
    const uint64_t begin = reinterpret_cast<uint64_t>(address);
    if (last.holds(begin, bytes) || bytes == 0 || finder.load(std::memory_order_relaxed) == nullptr) {
        return address;
    }
    const DeviceMemory &seen = device_memory;
    for (uint32_t i = 0; i < seen.looked_up && i < DeviceMemory::RANGES; ++i) {
        if (seen.ranges[i].holds(begin, bytes)) {
            last = seen.ranges[i];
            return address;
        }
    }
    return look_up(address, bytes, last);
}

// A new launch may find other allocations, and has no part in what an earlier one did: a kernel that stopped itself told no fault.
inline void forget_device_memory() {
    device_memory.looked_up = 0;
    device_memory.faulted = false;
}

// 192 KiB of an Atlas A2 core, less what the vendor's runtime keeps.
constexpr uint32_t UB_BYTES = 192 * 1024 - 8 * 1024 - 256;
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t CACHE_LINE = 64; // of the processor that the twin runs on
static_assert(UB_BYTES % CACHE_LINE == 0, "buffers begin at cache lines");
constexpr uint32_t MAX_BUFFERS = 64;

enum class State : uint8_t { FREE, ALLOCATED, QUEUED, TAKEN };

// Part of the unified buffer that InitBuffer gave out.
struct Buffer {
    uint8_t *base = nullptr;
    uint32_t bytes = 0;
    State state = State::FREE;
};

struct alignas(CACHE_LINE) UnifiedBuffer {
    uint8_t bytes[UB_BYTES];
};

inline thread_local UnifiedBuffer unified_buffer;
inline thread_local int64_t block_index = 0;
inline thread_local int64_t block_count = 1;
// Whether copies out add to what is there.
inline thread_local bool atomic_add = false;

} // namespace twin

template <typename T>
class LocalTensor {
public:
    LocalTensor() = default;
    LocalTensor(twin::Buffer *buffer, uint8_t *data, uint32_t bytes) : buffer_(buffer), data_(data), bytes_(bytes) {}

    LocalTensor operator[](const uint32_t offset) const {
        uint64_t skipped = static_cast<uint64_t>(offset) * sizeof(T);
        ADASUM_TWIN_CHECK(skipped <= bytes_, "a sub-tensor starts behind the end of its tensor");
        return LocalTensor(buffer_, data_ + skipped, bytes_ - static_cast<uint32_t>(skipped));
    }

    T GetValue(const uint32_t index) const {
        T value;
        std::memcpy(&value, read(index, 1), sizeof(T));
        return value;
    }

    template <typename S>
    void SetValue(const uint32_t index, const S value) const {
        static_assert(std::is_same<S, T>::value, "SetValue of another type than the tensor's");
        std::memcpy(write(index, 1), &value, sizeof(T));
    }

    template <typename U>
    LocalTensor<U> ReinterpretCast() const {
        return LocalTensor<U>(buffer_, data_, bytes_);
    }

    // Not of the vendor's interface: for the functions of the twin.
    const T *read(uint32_t index, uint32_t count) const { return write(index, count); }
    T *write(uint32_t index, uint32_t count) const {
        ADASUM_TWIN_CHECK((static_cast<uint64_t>(index) + count) * sizeof(T) <= bytes_,
                          "an access leaves its local tensor");
        return reinterpret_cast<T *>(data_) + index;
    }
    void check_aligned(uint32_t bytes) const {
        ADASUM_TWIN_CHECK(reinterpret_cast<uintptr_t>(data_) % bytes == 0,
                          "an operand in the unified buffer is not aligned");
    }
    twin::Buffer *buffer() const { return buffer_; }

private:
    twin::Buffer *buffer_ = nullptr;
    uint8_t *data_ = nullptr;
    uint32_t bytes_ = 0;
};

template <typename T>
class GlobalTensor {
public:
    void SetGlobalBuffer(__gm__ T *buffer) { data_ = buffer; }

    GlobalTensor operator[](const uint64_t offset) const {
        GlobalTensor part;
        part.data_ = data_ + offset;
        return part;
    }

    // Not of the vendor's interface: for the functions of the twin.
    T *access(uint64_t index, uint64_t count) const {
        return static_cast<T *>(twin::in_device_memory(data_ + index, count * sizeof(T), last_));
    }

private:
    T *data_ = nullptr;
    mutable twin::Range last_;
};

} // namespace AscendC

#endif
