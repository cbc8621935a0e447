// Devices: the processor that is played, its figures, and which devices reach each other's memory.

#include "device.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <vector>

#include <unistd.h>

#include "deviate.h"

namespace mock {
namespace {

constexpr int64_t KIB = 1024;
constexpr int64_t MIB = 1024 * KIB;

// Pairs of devices (device, peer) with access enabled, by their numbers on the server.
struct Peers {
    std::mutex mutex;
    std::set<std::pair<int, int>> enabled;
};

Peers &peers() {
    static Peers &object = *new Peers;
    return object;
}

struct Model {
    const char *name;
    Soc soc;
};

// Cores, unified buffer and L2 as the vendor's platform files state them.
const Model MODELS[] = {
    {"Ascend910PremiumA", {"", Family::Ascend910A, 32, 0, 262144, 32 * MIB, 1001}},
    {"Ascend910ProA", {"", Family::Ascend910A, 32, 0, 262144, 32 * MIB, 1001}},
    {"Ascend910ProB", {"", Family::Ascend910A, 30, 0, 262144, 32 * MIB, 1001}},
    {"Ascend910A", {"", Family::Ascend910A, 32, 0, 262144, 32 * MIB, 1001}},
    {"Ascend910B1", {"", Family::Ascend910B, 24, 48, 196608, 192 * MIB, 2201}},
    {"Ascend910B2C", {"", Family::Ascend910B, 24, 48, 196608, 192 * MIB, 2201}},
    {"Ascend910B2", {"", Family::Ascend910B, 24, 48, 196608, 192 * MIB, 2201}},
    {"Ascend910B3", {"", Family::Ascend910B, 20, 40, 196608, 192 * MIB, 2201}},
    {"Ascend910B4-1", {"", Family::Ascend910B, 20, 40, 196608, 168 * MIB, 2201}},
    {"Ascend910B4", {"", Family::Ascend910B, 20, 40, 196608, 96 * MIB, 2201}},
    {"Ascend910B", {"", Family::Ascend910A, 30, 0, 262144, 32 * MIB, 1001}},
    {"Ascend910_9391", {"", Family::Ascend910C, 24, 48, 196608, 192 * MIB, 2201}},
    {"Ascend910_9392", {"", Family::Ascend910C, 24, 48, 196608, 192 * MIB, 2201}},
    {"Ascend910_9381", {"", Family::Ascend910C, 24, 48, 196608, 192 * MIB, 2201}},
    {"Ascend910_9382", {"", Family::Ascend910C, 24, 48, 196608, 192 * MIB, 2201}},
    {"Ascend910_9372", {"", Family::Ascend910C, 20, 40, 196608, 192 * MIB, 2201}},
    {"Ascend910_9362", {"", Family::Ascend910C, 20, 40, 196608, 192 * MIB, 2201}},
};

Soc choose_soc() {
    const char *wanted = environment("ASCEND_MOCK_SOC");
    const std::string name = wanted != nullptr ? wanted : "Ascend910B1";
    if (name.rfind("Ascend950", 0) == 0 || name.rfind("Ascend910_95", 0) == 0) {
        return {name, Family::Ascend950, 32, 64, 253952, 128 * MIB, 3510};
    }
    if (name.rfind("Ascend310P", 0) == 0) {
        return {name, Family::Ascend310P, 8, 8, 262144, 16 * MIB, 2002};
    }
    for (const Model &model : MODELS) {
        if (name == model.name) {
            Soc chosen = model.soc;
            chosen.name = name;
            return chosen;
        }
    }
    warn_once("ASCEND_MOCK_SOC [" + name + "] is not known here; it gets the figures of Ascend910B1");
    return {name, Family::Ascend910B, 24, 48, 196608, 192 * MIB, 2201};
}

long long setting(const char *name, long long standard, long long low, long long high) {
    const char *text = environment(name);
    long long value = standard;
    if (text != nullptr && !parse_number(text, low, high, &value)) {
        warn_once(format("%s [%s] is not a number from %lld to %lld; %lld is used", name, text, low, high, standard));
        value = standard;
    }
    return value;
}

constexpr const char *VISIBLE = "ASCEND_RT_VISIBLE_DEVICES";

uint32_t machine_devices() {
    static const auto count = static_cast<uint32_t>(setting("ASCEND_MOCK_DEVICES", 8, 1, MAX_DEVICES));
    return count;
}

// The first device's number on the server: not 0 in a container, which counts its devices from 0.
int first_physical() {
    static const auto first = static_cast<int>(setting("ASCEND_MOCK_FIRST_DEVICE", 0, 0, MAX_DEVICES - 1));
    return first;
}

// The devices that this process sees, in the order of the numbers that it calls them by.
struct Visible {
    std::vector<uint32_t> devices; // as the machine counts them
    std::string problem;           // why there is none
};

// ASCEND_RT_VISIBLE_DEVICES up to the first that is no device. Source: runtime, src/runtime/core/src/runtime.cc:4725 and 4950.
Visible read_visible() {
    Visible visible;
    const char *text = std::getenv(VISIBLE);
    if (text == nullptr) {
        for (uint32_t device = 0; device < machine_devices(); device++) {
            visible.devices.push_back(device);
        }
        return visible;
    }
    const char *at = text;
    while (std::isdigit(static_cast<unsigned char>(*at)) != 0 && visible.devices.size() < machine_devices()) {
        char *end = nullptr;
        const unsigned long long device = std::strtoull(at, &end, 10);
        if (device >= machine_devices()) {
            break;
        }
        if (!visible.devices.empty() && device <= visible.devices.back()) {
            const bool twice = std::count(visible.devices.begin(), visible.devices.end(), device) != 0;
            return {{}, format("EE2002: %s [%s] %s", VISIBLE, text, twice ? "has a device twice" : "does not ascend")};
        }
        visible.devices.push_back(static_cast<uint32_t>(device));
        at = *end == ',' ? end + 1 : end;
    }
    if (visible.devices.empty()) {
        visible.problem = format("EE2002: %s [%s] leaves none of %u devices", VISIBLE, text, machine_devices());
    }
    return visible;
}

const Visible &visible() {
    static const Visible &object = *new Visible(read_visible());
    return object;
}

// One for all processes that can share memory here: those of a machine that number processes alike.
int64_t supernode() {
    std::string place;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> place;
    char numbers[64] = {};
    const ssize_t length = readlink("/proc/self/ns/pid", numbers, sizeof(numbers) - 1);
    place.append(numbers, length > 0 ? static_cast<size_t>(length) : 0);
    return static_cast<int64_t>(hash64(place, 0) >> 33);
}

// Devices that HCCS joins; PCIe joins others. A server of 910A is two such meshes.
uint32_t mesh() {
    static const auto size = static_cast<uint32_t>(
        setting("ASCEND_MOCK_MESH", family() == Family::Ascend910A ? 4 : MAX_DEVICES, 1, MAX_DEVICES));
    return size;
}

// The driver's UB as the runtime shifts it (tests/mock/conform_acl.cpp); the documents do not have it.
constexpr uint64_t TOPOLOGY_UB = 1 << 7;

// What joins two devices, by their numbers on the server.
uint64_t link_type(uint32_t first, uint32_t second) {
    if (first == second) {
        return ACL_RT_DEVS_TOPOLOGY_HCCS;
    }
    if (first / mesh() != second / mesh()) {
        return ACL_RT_DEVS_TOPOLOGY_PIX;
    }
    switch (family()) {
    case Family::Ascend910C: return first / 2 == second / 2 ? ACL_RT_DEVS_TOPOLOGY_SIO : ACL_RT_DEVS_TOPOLOGY_HCCS_SW;
    case Family::Ascend950: return TOPOLOGY_UB;
    default: return ACL_RT_DEVS_TOPOLOGY_HCCS;
    }
}

int64_t told(int64_t cores) { return deviates(Deviation::CoresZero) ? 0 : cores; }

} // namespace

const Soc &soc() {
    static const Soc &object = *new Soc(choose_soc());
    return object;
}

Family family() { return soc().family; }

uint64_t queue_places() {
    switch (family()) {
    case Family::Ascend910A: return 4096;
    case Family::Ascend950: return 2049;
    default: return 2048;
    }
}

uint32_t device_count() { return static_cast<uint32_t>(visible().devices.size()); }

int physical_device(int device) { return first_physical() + static_cast<int>(visible().devices.at(device)); }

int last_physical_device() { return first_physical() + static_cast<int>(machine_devices()) - 1; }

uint64_t device_memory_bytes() {
    static const auto bytes = static_cast<uint64_t>(setting("ASCEND_MOCK_HBM_MB", 65536, 16, 1 << 24) * MIB);
    return bytes;
}

bool peers_have_access(int first, int second) {
    std::lock_guard<std::mutex> lock(peers().mutex);
    return peers().enabled.count({first, second}) != 0 || peers().enabled.count({second, first}) != 0;
}

void enable_peers(int device, int peer) {
    std::lock_guard<std::mutex> lock(peers().mutex);
    peers().enabled.insert({device, peer});
}

void check_physical_device(int device) {
    if (device < first_physical() || device > last_physical_device()) {
        fail(ACL_ERROR_RT_PARAM_INVALID,
             "%d is not one of the devices %d to %d of this machine (ASCEND_MOCK_FIRST_DEVICE)", device,
             first_physical(), last_physical_device());
    }
}

void check_device(int64_t device) {
    if (device < 0 || device >= static_cast<int64_t>(device_count())) {
        fail(ACL_ERROR_RT_INVALID_DEVICEID,
             "device %lld does not exist: there are %u devices (ASCEND_MOCK_DEVICES, %s)",
             static_cast<long long>(device), device_count(), VISIBLE);
    }
}

} // namespace mock

using namespace mock;

aclError aclrtSetTsDevice(aclrtTsId tsId) {
    return guarded("aclrtSetTsDevice", [&] {
        if (tsId != ACL_TS_ID_AICORE && tsId != ACL_TS_ID_AIVECTOR) {
            fail(ACL_ERROR_INVALID_PARAM, "no scheduler has number %d", static_cast<int>(tsId));
        }
    });
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
    return guarded("aclrtDeviceCanAccessPeer", [&] {
        require(canAccessPeer, "canAccessPeer");
        check_device(deviceId);
        check_device(peerDeviceId);
        *canAccessPeer = deviceId != peerDeviceId ? 1 : 0;
    });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
    return guarded("aclrtDeviceEnablePeerAccess", [&] {
        const int device = require_device();
        check_device(peerDeviceId);
        if (flags != 0 || peerDeviceId == device) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "flags must be 0 and the peer another device than %d", device);
        }
        enable_peers(physical_device(device), physical_device(peerDeviceId));
    });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
    return guarded("aclrtDeviceDisablePeerAccess", [&] {
        const int device = require_device();
        check_device(peerDeviceId);
        std::lock_guard<std::mutex> lock(peers().mutex);
        if (peers().enabled.erase({physical_device(device), physical_device(peerDeviceId)}) == 0) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "device %d has no access to device %d", device, peerDeviceId);
        }
    });
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status) {
    return guarded("aclrtDevicePeerAccessStatus", [&] {
        require(status, "status");
        check_device(deviceId);
        check_device(peerDeviceId);
        std::lock_guard<std::mutex> lock(peers().mutex);
        *status =
            static_cast<int32_t>(peers().enabled.count({physical_device(deviceId), physical_device(peerDeviceId)}));
    });
}

aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t *value) {
    return guarded("aclrtGetDevicesTopo", [&] {
        require(value, "value");
        for (const uint32_t device : {deviceId, otherDeviceId}) {
            if (std::getenv(VISIBLE) != nullptr) {
                check_device(device); // by the runtime; else the driver sees the number
            } else if (device >= device_count()) {
                fail(ACL_ERROR_RT_PARAM_INVALID, "device %u does not exist: there are %u devices (ASCEND_MOCK_DEVICES)",
                     device, device_count());
            }
        }
        if (family() == Family::Ascend950 && deviceId == otherDeviceId) {
            fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "both devices are device %u", deviceId);
        }
        *value =
            link_type(physical_device(static_cast<int>(deviceId)), physical_device(static_cast<int>(otherDeviceId)));
    });
}

// A device's word for the process. Here that is its own number, which aclrtIpcMemSetImportPid takes.
aclError aclrtDeviceGetBareTgid(int32_t *pid) {
    return guarded("aclrtDeviceGetBareTgid", [&] {
        require(pid, "pid");
        *pid = static_cast<int32_t>(getpid());
    });
}

aclError aclrtGetDeviceCount(uint32_t *count) {
    return guarded("aclrtGetDeviceCount", [&] {
        require(count, "count");
        if (!visible().problem.empty()) {
            fail(ACL_ERROR_RT_NO_DEVICE, "%s", visible().problem.c_str());
        }
        *count = device_count();
    });
}

// "Logical" is what the function is called, and not what it gives: the number that aclrtSetDevice takes. Source: runtime,
// docs/zh/api_ref/04_device_management.md, src/runtime/api/impl/api_error.cc:3326.
aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId) {
    return guarded("aclrtGetLogicDevIdByPhyDevId", [&] {
        require(logicDevId, "logicDevId");
        check_physical_device(phyDevId);
        const auto &seen = visible().devices;
        const auto found = std::find(seen.begin(), seen.end(), static_cast<uint32_t>(phyDevId - first_physical()));
        if (found == seen.end()) {
            fail(ACL_ERROR_RT_INVALID_DEVICEID, "this process does not see physical device %d (%s)", phyDevId, VISIBLE);
        }
        *logicDevId = static_cast<int32_t>(found - seen.begin());
    });
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) {
    return guarded("aclGetDeviceCapability", [&] {
        require(value, "value");
        check_device(deviceId);
        switch (deviceInfo) {
        case ACL_DEVICE_INFO_AI_CORE_NUM: *value = told(soc().ai_cores); return;
        case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = told(soc().vector_cores); return;
        case ACL_DEVICE_INFO_L2_SIZE: *value = soc().l2_bytes; return;
        default: fail(ACL_ERROR_INVALID_PARAM, "no capability has number %d", static_cast<int>(deviceInfo));
        }
    });
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
    return guarded("aclrtGetDeviceInfo", [&] {
        require(value, "value");
        check_device(deviceId);
        switch (attr) {
        case ACL_DEV_ATTR_AICORE_CORE_NUM:
        case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = told(soc().ai_cores); return;
        case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = told(soc().vector_cores); return;
        case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: *value = soc().unified_buffer; return;
        case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = static_cast<int64_t>(device_memory_bytes()); return;
        case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = soc().l2_bytes; return;
        case ACL_DEV_ATTR_NPU_ARCH: *value = soc().arch; return;
        case ACL_DEV_ATTR_SUPER_POD_ID:
            if (soc().family != Family::Ascend910C) {
                fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s is in no supernode", soc().name.c_str());
            }
            *value = supernode();
            return;
        default: fail(ACL_ERROR_INVALID_PARAM, "no attribute has number %d", static_cast<int>(attr));
        }
    });
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus) {
    return guarded("aclrtQueryDeviceStatus", [&] {
        require(deviceStatus, "deviceStatus");
        check_device(deviceId);
        *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    });
}

// Either may be NULL.
aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority) {
    return guarded("aclrtDeviceGetStreamPriorityRange", [&] {
        require_device();
        if (leastPriority != nullptr) {
            *leastPriority = 7;
        }
        if (greatestPriority != nullptr) {
            *greatestPriority = 0;
        }
    });
}
