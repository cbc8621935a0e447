// The twin's unified buffer, its buffers and the tensors on them.
//
// A copy from device memory into a buffer may be left undone: the buffer then stands for the device memory (an
// alias) until something writes to it. A kernel cannot tell: it must not change a source before it is done with it.
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

// What a thread has seen of device memory in its launch, and the first access of its kernel that left it.
struct DeviceMemory {
    static constexpr uint32_t RANGES = 16;               // vectors, result, tables, receipt: each is looked up once
    static constexpr uint64_t REFUGE_BYTES = 4ULL << 20; // more than a copy moves
    uint64_t begin[RANGES] = {};
    uint64_t end[RANGES] = {};
    uint32_t next = 0;
    char *refuge = nullptr; // where accesses go that have no place; stays for the thread
    bool faulted = false;
    char fault[160] = {};
};
inline thread_local DeviceMemory device_memory;

// Where the access goes in truth: an accelerator raises an exception, so nothing of the host may be touched.
[[gnu::cold, gnu::noinline]] inline void *look_up(void *address, uint64_t bytes) {
    DeviceMemory &seen = device_memory;
    const uint64_t begin = reinterpret_cast<uint64_t>(address);
    uint64_t left = 0;
    const bool found = finder.load(std::memory_order_relaxed)(begin, &left) != 0;
    if (found && bytes <= left) {
        seen.begin[seen.next] = begin;
        seen.end[seen.next] = begin + left;
        seen.next = (seen.next + 1) % DeviceMemory::RANGES;
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

inline void *in_device_memory(void *address, uint64_t bytes) {
    if (finder.load(std::memory_order_relaxed) == nullptr || bytes == 0) {
        return address;
    }
    const DeviceMemory &seen = device_memory;
    const uint64_t begin = reinterpret_cast<uint64_t>(address);
    for (uint32_t i = 0; i < DeviceMemory::RANGES; ++i) {
        if (begin >= seen.begin[i] && begin < seen.end[i] && bytes <= seen.end[i] - begin) {
            return address;
        }
    }
    return look_up(address, bytes);
}

// A new launch may find other allocations.
inline void forget_device_memory() {
    for (uint64_t &end : device_memory.end) {
        end = 0;
    }
}

// 192 KiB of an Atlas A2 core, less what the vendor's runtime keeps.
constexpr uint32_t UB_BYTES = 192 * 1024 - 8 * 1024 - 256;
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t MAX_BUFFERS = 64;
constexpr uint32_t MAX_ALIASES = 8;
// A smaller copy costs less than keeping count of its alias.
constexpr uint32_t MIN_ALIAS_BYTES = 1024;

enum class State : uint8_t { FREE, ALLOCATED, QUEUED, TAKEN };

struct Alias {
    uint32_t begin;
    uint32_t end;
    const uint8_t *from;
};

// Part of the unified buffer that InitBuffer gave out.
struct Buffer {
    uint8_t *base = nullptr;
    uint32_t bytes = 0;
    uint32_t alias_count = 0;
    State state = State::FREE;
    // Those behind the count mean nothing; compilers that cannot see this would warn.
    Alias aliases[MAX_ALIASES] = {};

    const uint8_t *readable(uint32_t begin, uint32_t size) {
        return alias_count == 0 ? base + begin : readable_alias(begin, size);
    }

    // Does the copies that were left undone in the range.
    uint8_t *writable(uint32_t begin, uint32_t size) {
        if (alias_count != 0) {
            fill(begin, size);
        }
        return base + begin;
    }

    const uint8_t *readable_alias(uint32_t begin, uint32_t size) {
        for (uint32_t i = 0; i < alias_count; ++i) {
            const Alias &alias = aliases[i];
            if (begin >= alias.begin && begin + size <= alias.end) {
                return alias.from + (begin - alias.begin);
            }
        }
        return writable(begin, size);
    }

    [[gnu::noinline]] void fill(uint32_t begin, uint32_t size) { settle(begin, begin + size, false); }

    void load(uint32_t begin, const uint8_t *from, uint32_t size) {
        settle(begin, begin + size, true);
        if (size < MIN_ALIAS_BYTES || alias_count == MAX_ALIASES) {
            std::memcpy(base + begin, from, size);
        } else {
            aliases[alias_count++] = Alias{begin, begin + size, from};
        }
    }

    // Does the copies that were left undone in the range, but for those that are all overwritten.
    void settle(uint32_t begin, uint32_t end, bool overwritten) {
        for (uint32_t i = alias_count; i-- > 0;) {
            const Alias alias = aliases[i];
            if (begin >= alias.end || end <= alias.begin) {
                continue;
            }
            if (!overwritten || alias.begin < begin || alias.end > end) {
                std::memcpy(base + alias.begin, alias.from, alias.end - alias.begin);
            }
            aliases[i] = aliases[--alias_count];
        }
    }
};

struct alignas(64) UnifiedBuffer {
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
    using PrimType = T;

    LocalTensor() = default;
    LocalTensor(twin::Buffer *buffer, uint32_t begin, uint32_t bytes) : buffer_(buffer), begin_(begin), bytes_(bytes) {}

    LocalTensor operator[](const uint32_t offset) const {
        uint64_t skipped = static_cast<uint64_t>(offset) * sizeof(T);
        ADASUM_TWIN_CHECK(skipped <= bytes_, "a sub-tensor starts behind the end of its tensor");
        return LocalTensor(buffer_, begin_ + static_cast<uint32_t>(skipped), bytes_ - static_cast<uint32_t>(skipped));
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
        return LocalTensor<U>(buffer_, begin_, bytes_);
    }

    // Not of the vendor's interface: for the functions of the twin.
    const T *read(uint32_t index, uint32_t count) const {
        return reinterpret_cast<const T *>(buffer_->readable(offset(index, count), count * sizeof(T)));
    }
    T *write(uint32_t index, uint32_t count) const {
        return reinterpret_cast<T *>(buffer_->writable(offset(index, count), count * sizeof(T)));
    }
    void load(const T *from, uint32_t count) const {
        uint32_t begin = offset(0, count);
        ADASUM_TWIN_CHECK(begin % twin::BLOCK_BYTES == 0, "a copy into the unified buffer starts off a 32-byte block");
        buffer_->load(begin, reinterpret_cast<const uint8_t *>(from), count * sizeof(T));
    }
    void check_aligned(uint32_t bytes) const {
        ADASUM_TWIN_CHECK(begin_ % bytes == 0, "an operand in the unified buffer is not aligned");
    }
    twin::Buffer *buffer() const { return buffer_; }

private:
    uint32_t offset(uint32_t index, uint32_t count) const {
        ADASUM_TWIN_CHECK((static_cast<uint64_t>(index) + count) * sizeof(T) <= bytes_,
                          "an access leaves its local tensor");
        return begin_ + index * static_cast<uint32_t>(sizeof(T));
    }

    twin::Buffer *buffer_ = nullptr;
    uint32_t begin_ = 0;
    uint32_t bytes_ = 0;
};

template <typename T>
class GlobalTensor {
public:
    using PrimType = T;

    void SetGlobalBuffer(__gm__ T *buffer, uint64_t size) {
        data_ = buffer;
        size_ = size;
    }
    void SetGlobalBuffer(__gm__ T *buffer) { SetGlobalBuffer(buffer, UINT64_MAX); }

    GlobalTensor operator[](const uint64_t offset) const {
        ADASUM_TWIN_CHECK(offset <= size_, "a sub-tensor starts behind the end of its global tensor");
        GlobalTensor part;
        part.data_ = data_ + offset;
        part.size_ = size_ == UINT64_MAX ? UINT64_MAX : size_ - offset;
        return part;
    }

    // Not of the vendor's interface: for the functions of the twin.
    T *access(uint64_t index, uint64_t count) const {
        ADASUM_TWIN_CHECK(index + count <= size_, "an access leaves its global tensor");
        return static_cast<T *>(twin::in_device_memory(data_ + index, count * sizeof(T)));
    }

private:
    T *data_ = nullptr;
    uint64_t size_ = 0;
};

} // namespace AscendC

#endif
