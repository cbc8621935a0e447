#include "host_memory.h"

#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

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

// The lines of a file that have a name and a number.
std::map<std::string, uint64_t> named_numbers(const std::string &path) {
    std::map<std::string, uint64_t> found;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        uint64_t number = 0;
        if (words >> name >> number) {
            found[name] = number;
        }
    }
    return found;
}

// What a control group and those above it have left. In a container the path may be that of the host, where only the last
// step is found. Pages that only keep contents of files count as free.
uint64_t group_bytes_left(std::string group, bool first_version) {
    const std::string mount = first_version ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const std::string kind = first_version ? "total_" : "";
    uint64_t left = UINT64_MAX;
    for (;;) {
        const std::string folder = mount + group;
        uint64_t most = 0;
        uint64_t used = 0;
        if (std::ifstream(folder + (first_version ? "/memory.limit_in_bytes" : "/memory.max")) >> most &&
            std::ifstream(folder + (first_version ? "/memory.usage_in_bytes" : "/memory.current")) >> used) {
            std::map<std::string, uint64_t> facts = named_numbers(folder + "/memory.stat");
            used -= std::min(used, facts[kind + "active_file"] + facts[kind + "inactive_file"]);
            left = std::min(left, most > used ? most - used : 0);
        }
        if (group.empty()) {
            return left;
        }
        group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
}

// Memory that this machine has left, within the limits of the process's control groups.
uint64_t host_bytes_left() {
    constexpr uint64_t KIB = 1024;
    const std::map<std::string, uint64_t> memory = named_numbers("/proc/meminfo");
    const auto available = memory.find("MemAvailable:");
    uint64_t left = available == memory.end() ? UINT64_MAX : available->second * KIB;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const size_t names = line.find(':') + 1;
        const size_t path = line.find(':', names) + 1;
        const std::string controllers = "," + line.substr(names, path - names - 1) + ",";
        const bool first_version = controllers.find(",memory,") != std::string::npos;
        if (first_version || controllers == ",,") {
            left = std::min(left, group_bytes_left(line.substr(path), first_version));
        }
    }
    return left;
}

} // namespace

bool is_pinned(const void *address) {
    std::lock_guard<std::mutex> lock(pinned().mutex);
    return holds(number(address));
}

// Device memory is the host's as soon as it is touched, and then the kernel ends some process if there is not so much.
void require_host_memory(int device, uint64_t size) {
    constexpr uint64_t WORTH_A_LOOK = 16ULL << 20;
    static std::atomic<uint64_t> unseen{0}; // allocated since the last look
    if ((unseen += size) < WORTH_A_LOOK) {
        return;
    }
    unseen = 0;
    const uint64_t left = host_bytes_left();
    const uint64_t untouched = untouched_bytes();
    if (left < untouched || left - untouched < size) {
        fail(
            ACL_ERROR_RT_MEMORY_ALLOCATION,
            "device %d: %llu MB of device memory asked for and %llu MB allocated, but not yet used, are the host's, which "
            "has %llu MB left",
            device, static_cast<unsigned long long>(size >> 20), static_cast<unsigned long long>(untouched >> 20),
            static_cast<unsigned long long>(left >> 20));
    }
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
        if (is_device_memory(ptr) || is_pinned(ptr)) {
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
