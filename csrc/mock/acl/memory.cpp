// Device memory: allocation with the vendor's padding.

#include <atomic>

#include "arena.h"
#include "counters.h"
#include "device.h"
#include "host_memory.h"

namespace mock {
namespace {

// The vendor rounds up to 32 bytes and adds 32 more, which kernels may read past the end; not on the 950.
uint64_t padded(size_t size) {
    const uint64_t rounded = (static_cast<uint64_t>(size) + 31) / 32 * 32;
    return family() == Family::Ascend950 ? rounded : rounded + 32;
}

// A policy may say which kind of memory it wants: of low or of high bandwidth. There is one kind here.
constexpr int MEMORY_KINDS = 0x0100 | 0x1000;
// aclrtMemAttr ends here in later versions: six kinds without a word on the memory they are in.
constexpr int LAST_KIND = 17;

std::atomic<uint64_t> allocated_bytes{0}; // by this process, on all its devices

// Device memory is the host's as soon as it is touched, and then the kernel ends some process if there is not so much.
void warn_of_host(int device, size_t size, uint64_t all) {
    constexpr size_t WORTH_A_LOOK = 16ULL << 20;
    if (size < WORTH_A_LOOK) {
        return;
    }
    const HostBytes host = host_bytes();
    if (size > host.available || all > host.total) {
        warn_once(format(
            "device %d: %zu MB of device memory are allocated, %llu MB by this process, but this machine has only "
            "%llu MB left of %llu MB; ASCEND_MOCK_HBM_MB makes device memory smaller",
            device, size >> 20, static_cast<unsigned long long>(all >> 20),
            static_cast<unsigned long long>(host.available >> 20), static_cast<unsigned long long>(host.total >> 20)));
    }
}

void allocate(void **address, size_t size, aclrtMemMallocPolicy policy) {
    require(address, "devPtr");
    if (size == 0) {
        fail(ACL_ERROR_INVALID_PARAM, "size is 0");
    }
    const int place = static_cast<int>(policy) & ~MEMORY_KINDS;
    if (place < ACL_MEM_MALLOC_HUGE_FIRST || place > ACL_MEM_MALLOC_HUGE1G_ONLY_P2P) {
        fail(ACL_ERROR_INVALID_PARAM, "no allocation policy has number %d", static_cast<int>(policy));
    }
    Arena &memory = arena(require_device());
    void *made = size > memory.view().bytes ? nullptr : memory.allocate(padded(size));
    if (made == nullptr) {
        size_t free = 0;
        size_t total = 0;
        memory.memory_info(&free, &total);
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "device memory is exhausted: %zu bytes asked for, %zu of %zu free", size,
             free, total);
    }
    warn_of_host(require_device(), size, allocated_bytes += padded(size));
    count(Counter::DeviceAllocations);
    *address = made;
}

} // namespace
} // namespace mock

using namespace mock;

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    return guarded("aclrtMalloc", [&] { allocate(devPtr, size, policy); });
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    return guarded("aclrtMallocAlign32", [&] { allocate(devPtr, size, policy); });
}

// Works without a current device too: clients free what they hold after they reset the device.
aclError aclrtFree(void *devPtr) {
    return guarded("aclrtFree", [&] {
        require(static_cast<char *>(devPtr), "devPtr");
        Arena *owner = arena_of(devPtr);
        Region region;
        const bool known = find_memory(devPtr, &region);
        if (!known || !owner->release(devPtr)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not the start of a live allocation", devPtr);
        }
        allocated_bytes -= region.bytes;
    });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
    return guarded("aclrtGetMemInfo", [&] {
        require(free, "free");
        require(total, "total");
        const int device = require_device();
        switch (attr) {
        case ACL_DDR_MEM:
        case ACL_DDR_MEM_HUGE:
        case ACL_DDR_MEM_NORMAL:
        case ACL_DDR_MEM_P2P_HUGE:
        case ACL_DDR_MEM_P2P_NORMAL:
            *free = 0;
            *total = 0;
            return;
        default:
            if (attr < ACL_DDR_MEM || attr > LAST_KIND) {
                fail(ACL_ERROR_RT_INVALID_MEMORY_TYPE, "no kind of memory has number %d", static_cast<int>(attr));
            }
            arena(device).memory_info(free, total); // pages of every size come from the same memory
        }
    });
}
