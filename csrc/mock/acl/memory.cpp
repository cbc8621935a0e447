// Device memory: allocation with the vendor's padding.

#include "arena.h"
#include "counters.h"
#include "device.h"
#include "host_memory.h"
#include "ipc.h"

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

void allocate(void **address, size_t size, aclrtMemMallocPolicy policy) {
    require(address, "devPtr");
    if (size == 0) {
        fail(ACL_ERROR_INVALID_PARAM, "size is 0");
    }
    const int place = static_cast<int>(policy) & ~MEMORY_KINDS;
    if (place < ACL_MEM_MALLOC_HUGE_FIRST || place > ACL_MEM_MALLOC_HUGE1G_ONLY_P2P) {
        fail(ACL_ERROR_INVALID_PARAM, "no allocation policy has number %d", static_cast<int>(policy));
    }
    const int device = require_device();
    Arena &memory = arena(device);
    size_t free = 0;
    size_t total = 0;
    memory.memory_info(&free, &total);
    if (size <= free) {
        require_host_memory(device, size);
    }
    void *made = size > free ? nullptr : memory.allocate(padded(size));
    if (made == nullptr) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "device memory is exhausted: %zu bytes asked for, %zu of %zu free", size,
             free, total);
    }
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
        if (owner != nullptr) {
            owner->refuse_if_held(devPtr);
            end_sharing(devPtr);
        }
        if (owner == nullptr || !owner->release(devPtr)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not the start of a live allocation", devPtr);
        }
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
