// Devices and contexts: the current one belongs to the thread, set and reset are counted per device.

#include "device.h"

#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include <pthread.h>

namespace mock {
namespace {

constexpr int64_t KIB = 1024;
constexpr int64_t MIB = 1024 * KIB;
constexpr uint32_t MAX_DEVICES = 1024;

// Contexts are a few bytes and stay for ever, so that a thread may keep the address of a destroyed one.
struct Context {
    int device = -1;
    std::atomic<bool> alive{false};
};

struct Devices {
    Devices() {
        for (size_t i = 0; i < primary.size(); i++) {
            primary[i].device = static_cast<int>(i);
        }
    }
    std::mutex mutex;
    std::array<Context, MAX_DEVICES> primary;
    std::array<int, MAX_DEVICES> users{}; // set minus reset
    std::vector<Context *> created;
    std::set<std::pair<int, int>> peers; // (device, peer) with access enabled
};

Devices &devices() {
    static Devices &object = *new Devices;
    return object;
}

thread_local Context *current = nullptr;
std::atomic<bool> used{false};
std::atomic<bool> forked{false};

void use_first_device() {
    if (!used.exchange(true)) {
        pthread_atfork(nullptr, nullptr, [] { forked = true; });
    }
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

Context *live_context(const void *handle) {
    auto *context = static_cast<Context *>(const_cast<void *>(handle));
    if (context == nullptr) {
        fail(ACL_ERROR_INVALID_PARAM, "context is NULL");
    }
    Devices &all = devices();
    std::lock_guard<std::mutex> lock(all.mutex);
    bool known = context >= all.primary.data() && context < all.primary.data() + all.primary.size();
    for (const Context *created : all.created) {
        known = known || created == context;
    }
    if (!known || !context->alive) {
        fail(ACL_ERROR_RT_CONTEXT_NULL, "the handle is not a live context");
    }
    return context;
}

} // namespace

const Soc &soc() {
    static const Soc &object = *new Soc(choose_soc());
    return object;
}

Family family() { return soc().family; }

uint32_t device_count() {
    static const auto count = static_cast<uint32_t>(setting("ASCEND_MOCK_DEVICES", 8, 1, MAX_DEVICES));
    return count;
}

uint64_t device_memory_bytes() {
    static const auto bytes = static_cast<uint64_t>(setting("ASCEND_MOCK_HBM_MB", 65536, 16, 1 << 24) * MIB);
    return bytes;
}

void check_not_forked() {
    if (forked) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "this process was forked after its parent had used a device: start it with "
                                          "exec, or fork before the first call of ACL");
    }
}

void check_device(int64_t device) {
    if (device < 0 || device >= static_cast<int64_t>(device_count())) {
        fail(ACL_ERROR_RT_INVALID_DEVICEID, "device %lld does not exist: there are %u devices (ASCEND_MOCK_DEVICES)",
             static_cast<long long>(device), device_count());
    }
}

int current_device() { return current != nullptr && current->alive ? current->device : -1; }

int require_device() {
    check_not_forked();
    const int device = current_device();
    if (device < 0) {
        fail(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no device: call aclrtSetDevice or aclrtSetCurrentContext");
    }
    return device;
}

} // namespace mock

using namespace mock;

aclError aclrtSetDevice(int32_t deviceId) {
    return guarded("aclrtSetDevice", [&] {
        check_not_forked();
        check_device(deviceId);
        use_first_device();
        Devices &all = devices();
        std::lock_guard<std::mutex> lock(all.mutex);
        Context &context = all.primary[static_cast<size_t>(deviceId)];
        context.alive = true;
        all.users[static_cast<size_t>(deviceId)]++;
        current = &context;
    });
}

aclError aclrtResetDevice(int32_t deviceId) {
    return guarded("aclrtResetDevice", [&] {
        check_device(deviceId);
        Devices &all = devices();
        std::lock_guard<std::mutex> lock(all.mutex);
        int &users = all.users[static_cast<size_t>(deviceId)];
        if (users > 0 && --users == 0) {
            all.primary[static_cast<size_t>(deviceId)].alive = false;
        }
    });
}

// Whatever the count says.
aclError aclrtResetDeviceForce(int32_t deviceId) {
    return guarded("aclrtResetDeviceForce", [&] {
        check_device(deviceId);
        Devices &all = devices();
        std::lock_guard<std::mutex> lock(all.mutex);
        all.users[static_cast<size_t>(deviceId)] = 0;
        all.primary[static_cast<size_t>(deviceId)].alive = false;
    });
}

aclError aclrtSetTsDevice(aclrtTsId tsId) {
    return guarded("aclrtSetTsDevice", [&] {
        if (tsId != ACL_TS_ID_AICORE && tsId != ACL_TS_ID_AIVECTOR) {
            fail(ACL_ERROR_INVALID_PARAM, "no scheduler has number %d", static_cast<int>(tsId));
        }
    });
}

// `flags` is reserved and may be NULL.
aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active) {
    return guarded("aclrtGetPrimaryCtxState", [&] {
        require(active, "active");
        check_device(deviceId);
        *active = devices().primary[static_cast<size_t>(deviceId)].alive ? 1 : 0;
        if (flags != nullptr) {
            *flags = 0;
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
        std::lock_guard<std::mutex> lock(devices().mutex);
        devices().peers.insert({device, peerDeviceId});
    });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
    return guarded("aclrtDeviceDisablePeerAccess", [&] {
        const int device = require_device();
        check_device(peerDeviceId);
        std::lock_guard<std::mutex> lock(devices().mutex);
        if (devices().peers.erase({device, peerDeviceId}) == 0) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "device %d has no access to device %d", device, peerDeviceId);
        }
    });
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status) {
    return guarded("aclrtDevicePeerAccessStatus", [&] {
        require(status, "status");
        check_device(deviceId);
        check_device(peerDeviceId);
        std::lock_guard<std::mutex> lock(devices().mutex);
        *status = static_cast<int32_t>(devices().peers.count({deviceId, peerDeviceId}));
    });
}

// The process as the machine knows it, outside of any container's numbering.
aclError aclrtDeviceGetBareTgid(int32_t *pid) {
    return guarded("aclrtDeviceGetBareTgid", [&] {
        require(pid, "pid");
        *pid = static_cast<int32_t>(getpid());
    });
}

aclError aclrtGetDevice(int32_t *deviceId) {
    return guarded("aclrtGetDevice", [&] {
        require(deviceId, "deviceId");
        *deviceId = require_device();
    });
}

aclError aclrtGetDeviceCount(uint32_t *count) {
    return guarded("aclrtGetDeviceCount", [&] {
        require(count, "count");
        *count = device_count();
    });
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) {
    return guarded("aclGetDeviceCapability", [&] {
        require(value, "value");
        check_device(deviceId);
        switch (deviceInfo) {
        case ACL_DEVICE_INFO_AI_CORE_NUM: *value = soc().ai_cores; return;
        case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = soc().vector_cores; return;
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
        case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = soc().ai_cores; return;
        case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = soc().vector_cores; return;
        case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: *value = soc().unified_buffer; return;
        case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = static_cast<int64_t>(device_memory_bytes()); return;
        case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = soc().l2_bytes; return;
        case ACL_DEV_ATTR_NPU_ARCH: *value = soc().arch; return;
        default: fail(ACL_ERROR_INVALID_PARAM, "no attribute has number %d", static_cast<int>(attr));
        }
    });
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    return guarded("aclrtCreateContext", [&] {
        check_not_forked();
        require(context, "context");
        check_device(deviceId);
        use_first_device();
        auto *created = new Context;
        created->device = deviceId;
        created->alive = true;
        std::lock_guard<std::mutex> lock(devices().mutex);
        devices().created.push_back(created);
        current = created;
        *context = created;
    });
}

aclError aclrtDestroyContext(aclrtContext context) {
    return guarded("aclrtDestroyContext", [&] { live_context(context)->alive = false; });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
    return guarded("aclrtSetCurrentContext", [&] {
        check_not_forked();
        current = live_context(context);
    });
}

aclError aclrtGetCurrentContext(aclrtContext *context) {
    return guarded("aclrtGetCurrentContext", [&] {
        require(context, "context");
        require_device();
        *context = current;
    });
}
