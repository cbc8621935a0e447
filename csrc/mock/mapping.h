// Mapping of device memory, by the process that has it and by those that share it.

#ifndef ASCEND_MOCK_MAPPING_H
#define ASCEND_MOCK_MAPPING_H

#include <cstdint>

#include <sys/mman.h>

namespace mock {

constexpr uint64_t HUGE_PAGE_BYTES = 2ULL << 20;
constexpr uint64_t PAGE_BYTES = 4096;

inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// The file at an address that is a multiple of HUGE_PAGE_BYTES, so that its large pages are large here, too: room for that
// is taken first. MAP_FAILED if there is none.
inline void *map_aligned(int file, uint64_t bytes) {
    const uint64_t room = bytes + HUGE_PAGE_BYTES;
    void *taken = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (taken == MAP_FAILED) {
        return MAP_FAILED;
    }
    auto *begin = static_cast<char *>(taken);
    const uint64_t skip =
        round_up(reinterpret_cast<uintptr_t>(begin), HUGE_PAGE_BYTES) - reinterpret_cast<uintptr_t>(begin);
    void *base = mmap(begin + skip, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
    if (base == MAP_FAILED) {
        munmap(taken, room);
        return MAP_FAILED;
    }
    if (skip > 0) {
        munmap(begin, skip);
    }
    const uint64_t rest = HUGE_PAGE_BYTES - skip;
    if (rest > 0) {
        munmap(begin + skip + round_up(bytes, PAGE_BYTES), rest);
    }
    return base;
}

} // namespace mock

#endif
