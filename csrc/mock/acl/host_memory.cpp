#include "host_memory.h"

#include <fstream>
#include <map>
#include <mutex>

#include "arena.h"
#include "counters.h"
#include "device.h"

namespace mock {
namespace {

constexpr size_t HOST_ALIGNMENT = 64;
constexpr aclError NOT_REGISTERED = 507911;

struct Range {
    uint64_t bytes;
    bool registered; // by the program, which owns it
};

struct Pinned {
    std::mutex mutex;
    std::map<uintptr_t, Range> ranges; // by the first address
};

Pinned &pinned() {
    static Pinned &object = *new Pinned;
    return object;
}

uintptr_t number(const void *address) { return reinterpret_cast<uintptr_t>(address); }

// Needs the lock.
bool holds(uintptr_t address) {
    const auto &ranges = pinned().ranges;
    auto next = ranges.upper_bound(address);
    if (next == ranges.begin()) {
        return false;
    }
    --next;
    return address - next->first < next->second.bytes;
}

void keep(void *address, uint64_t bytes, bool registered) {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    pinned().ranges[number(address)] = {bytes, registered};
}

// False if no such range starts there.
bool forget(void *address, bool registered) {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    const auto found = pinned().ranges.find(number(address));
    if (found == pinned().ranges.end() || found->second.registered != registered) {
        return false;
    }
    pinned().ranges.erase(found);
    return true;
}

} // namespace

bool is_pinned(const void *address) {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    return holds(number(address));
}

HostBytes host_bytes() {
    constexpr uint64_t KIB = 1024;
    HostBytes host;
    std::ifstream memory("/proc/meminfo");
    std::string word;
    uint64_t number = 0;
    while (memory >> word >> number) {
        if (word == "MemTotal:") {
            host.total = number * KIB;
        } else if (word == "MemAvailable:") {
            host.available = number * KIB;
            break;
        }
        memory >> word; // kB
    }
    uint64_t most = 0;
    uint64_t used = 0;
    if (std::ifstream("/sys/fs/cgroup/memory.max") >> most && std::ifstream("/sys/fs/cgroup/memory.current") >> used) {
        host.available = std::min(host.available, most > used ? most - used : 0);
        host.total = std::min(host.total, most);
    }
    return host;
}

} // namespace mock

using namespace mock;

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
        keep(*hostPtr, size, false);
        count(Counter::HostAllocations);
    });
}

aclError aclrtFreeHost(void *hostPtr) {
    return guarded("aclrtFreeHost", [&] {
        require(static_cast<char *>(hostPtr), "hostPtr");
        if (!forget(hostPtr, false)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not what aclrtMallocHost returned, or was freed already", hostPtr);
        }
        std::free(hostPtr);
    });
}

// Devices reach all memory of the host here: the address is the same for them.
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr) {
    return guarded("aclrtHostRegister", [&] {
        constexpr int ALL = ACL_HOST_REGISTER_IOMEMORY | ACL_HOST_REGISTER_READONLY;
        require(static_cast<char *>(ptr), "ptr");
        require(devPtr, "devPtr");
        if (size == 0) {
            fail(ACL_ERROR_INVALID_PARAM, "size is 0");
        }
        if ((static_cast<int>(type) & ~ALL) != 0) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "type 0x%x: within 0x%x are possible", static_cast<int>(type), ALL);
        }
        require_device();
        if (arena_of(ptr) != nullptr || is_pinned(ptr)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%p is device memory, or registered already", ptr);
        }
        keep(ptr, size, true);
        *devPtr = ptr;
    });
}

aclError aclrtHostUnregister(void *ptr) {
    return guarded("aclrtHostUnregister", [&] {
        require(static_cast<char *>(ptr), "ptr");
        if (!forget(ptr, true)) {
            fail(NOT_REGISTERED, "%p is not the start of registered memory", ptr);
        }
    });
}
