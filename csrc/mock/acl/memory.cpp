// Device and host memory: allocation with the vendor's padding, copies with their bounds checked.

#include <cstring>

#include "arena.h"
#include "counters.h"
#include "device.h"
#include "stream.h"

namespace mock {
namespace {

constexpr size_t HOST_ALIGNMENT = 64;

// The vendor rounds up to 32 bytes and adds 32 more, which kernels may read past the end; not on the 950.
uint64_t padded(size_t size) {
    const uint64_t rounded = (static_cast<uint64_t>(size) + 31) / 32 * 32;
    return family() == Family::Ascend950 ? rounded : rounded + 32;
}

// A policy may say which kind of memory it wants: of low or of high bandwidth. There is one kind here.
constexpr int MEMORY_KINDS = 0x0100 | 0x1000;

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
    count(Counter::DeviceAllocations);
    *address = made;
}

void check_device_side(const void *address, size_t count, const char *side) {
    Region region;
    if (!find_memory(address, &region)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%s %p is not device memory", side, address);
    }
    if (count > region.bytes) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes from %p on, but its allocation ends after %llu", side, count,
             address, static_cast<unsigned long long>(region.bytes));
    }
}

void check_host_side(const void *address, const char *side) {
    if (arena_of(address) != nullptr) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%s %p is device memory, but the kind of copy says host", side, address);
    }
}

void check_any_side(const void *address, size_t count, const char *side) {
    if (arena_of(address) != nullptr) {
        check_device_side(address, count, side);
    }
}

void check_copy(const void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    require(dst, "dst");
    require(src, "src");
    if (count > destMax) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "count %zu is larger than destMax %zu", count, destMax);
    }
    switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
        check_host_side(dst, "dst");
        check_host_side(src, "src");
        return;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
        check_device_side(dst, count, "dst");
        check_host_side(src, "src");
        return;
    case ACL_MEMCPY_DEVICE_TO_HOST:
        check_host_side(dst, "dst");
        check_device_side(src, count, "src");
        return;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE:
        check_device_side(dst, count, "dst");
        check_device_side(src, count, "src");
        return;
    case ACL_MEMCPY_DEFAULT:
        check_any_side(dst, count, "dst");
        check_any_side(src, count, "src");
        return;
    }
    fail(ACL_ERROR_INVALID_PARAM, "no kind of copy has number %d", static_cast<int>(kind));
}

// The vendor demands it of asynchronous copies within a device; what happens otherwise is not known.
void warn_of_alignment(const void *dst, const void *src) {
    constexpr uintptr_t DEMANDED = 64;
    const bool aligned = (reinterpret_cast<uintptr_t>(dst) | reinterpret_cast<uintptr_t>(src)) % DEMANDED == 0;
    if (!aligned && arena_of(dst) != nullptr && arena_of(dst) == arena_of(src)) {
        warn_once("an asynchronous copy within a device is not aligned to 64 bytes, as the vendor demands");
    }
}

void check_set(const void *address, size_t maxCount, size_t count) {
    require(address, "devPtr");
    if (count > maxCount) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "count %zu is larger than maxCount %zu", count, maxCount);
    }
    check_any_side(address, count, "devPtr");
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
        if (owner == nullptr || !owner->release(devPtr)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not the start of a live allocation", devPtr);
        }
    });
}

aclError aclrtMallocHost(void **hostPtr, size_t size) {
    return guarded("aclrtMallocHost", [&] {
        require(hostPtr, "hostPtr");
        if (size == 0) {
            fail(ACL_ERROR_INVALID_PARAM, "size is 0");
        }
        require_device();
        if (posix_memalign(hostPtr, HOST_ALIGNMENT, size) != 0) {
            fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes", size);
        }
        count(Counter::HostAllocations);
    });
}

aclError aclrtFreeHost(void *hostPtr) {
    return guarded("aclrtFreeHost", [&] {
        require(static_cast<char *>(hostPtr), "hostPtr");
        check_host_side(hostPtr, "hostPtr");
        std::free(hostPtr);
    });
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    return guarded("aclrtMemcpy", [&] {
        require_device();
        check_copy(dst, destMax, src, count, kind);
        mock::count(Counter::HostSynchronizations);
        std::memmove(dst, src, count);
    });
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
    return guarded("aclrtMemcpyAsync", [&] {
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        check_copy(dst, destMax, src, count, kind);
        warn_of_alignment(dst, src);
        queue->push({"a copy",
                     [=](const Cancelled &) {
                         std::memmove(dst, src, count);
                         return Outcome{};
                     },
                     false});
    });
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
    return guarded("aclrtMemset", [&] {
        require_device();
        check_set(devPtr, maxCount, count);
        mock::count(Counter::HostSynchronizations);
        std::memset(devPtr, value, count);
    });
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
    return guarded("aclrtMemsetAsync", [&] {
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        check_set(devPtr, maxCount, count);
        queue->push({"a memset",
                     [=](const Cancelled &) {
                         std::memset(devPtr, value, count);
                         return Outcome{};
                     },
                     false});
    });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
    return guarded("aclrtGetMemInfo", [&] {
        require(free, "free");
        require(total, "total");
        const int device = require_device();
        if (attr == ACL_HBM_MEM) {
            arena(device).memory_info(free, total);
        } else if (attr == ACL_DDR_MEM) {
            *free = 0;
            *total = 0;
        } else {
            fail(ACL_ERROR_INVALID_PARAM, "no kind of memory has number %d", static_cast<int>(attr));
        }
    });
}
