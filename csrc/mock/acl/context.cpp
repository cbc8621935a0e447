#include "context.h"

#include <algorithm>
#include <array>

#include <pthread.h>

#include "arena.h"
#include "device.h"
#include "stream.h"

namespace mock {
namespace {

struct Contexts {
    Contexts() {
        for (size_t i = 0; i < primary.size(); i++) {
            primary[i].set_device(static_cast<int>(i));
        }
    }
    std::mutex mutex;
    std::array<Context, MAX_DEVICES> primary;
    std::array<int, MAX_DEVICES> users{}; // set minus reset
    std::vector<Context *> created;
};

Contexts &contexts() {
    static Contexts &object = *new Contexts;
    return object;
}

thread_local Context *current = nullptr;
thread_local bool current_by_device = false; // it is the primary context of aclrtSetDevice
std::atomic<bool> used{false};
std::atomic<bool> forked{false};

void make_current(Context *context, bool by_device) {
    current = context;
    current_by_device = by_device;
}

void use_first_device() {
    if (!used.exchange(true)) {
        pthread_atfork(nullptr, nullptr, [] { forked = true; });
    }
}

bool is_primary(const Context *context) {
    const auto &primary = contexts().primary;
    return context >= primary.data() && context < primary.data() + primary.size();
}

Context *live_context(const void *handle) {
    auto *context = static_cast<Context *>(const_cast<void *>(handle));
    if (context == nullptr) {
        fail(ACL_ERROR_INVALID_PARAM, "context is NULL");
    }
    std::lock_guard<std::mutex> lock(contexts().mutex);
    bool known = is_primary(context);
    for (const Context *created : contexts().created) {
        known = known || created == context;
    }
    if (!known || !context->alive()) {
        fail(ACL_ERROR_RT_CONTEXT_NULL, "the handle is not a live context");
    }
    return context;
}

// Ends the primary context, and its streams, when nobody uses the device any more. The calling thread has no context then,
// also where aclrtSetDevice gave it that of another device; one of aclrtSetCurrentContext it keeps. Source: runtime,
// src/runtime/core/src/runtime.cc:2867 (ExecutePrimaryTearDown).
void release_device(int32_t device, bool force) {
    check_device(device);
    Context &context = contexts().primary[static_cast<size_t>(device)];
    {
        std::lock_guard<std::mutex> lock(contexts().mutex);
        int &users = contexts().users[static_cast<size_t>(device)];
        if (users == 0) {
            fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "device %d is not set, or was reset already", device);
        }
        users = force ? 0 : users - 1;
        if (users > 0) {
            return;
        }
        context.end();
    }
    end_streams(context);
    let_go_of_memory_of(device);
    if (current_by_device) {
        current = nullptr;
    }
}

} // namespace

void Context::begin() {
    recover();
    stops_ = false;
    alive_ = true;
}

void Context::fail(const Outcome &outcome) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failed_) {
        failure_ = outcome;
        failed_ = true;
    }
}

void Context::recover() {
    std::lock_guard<std::mutex> lock(mutex_);
    failed_ = false;
    failure_ = {};
}

void Context::check() const {
    if (failed_) {
        std::lock_guard<std::mutex> lock(mutex_);
        throw Failure(failure_.code, failure_.text);
    }
}

void check_not_forked() {
    if (forked) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "this process was forked after its parent had used a device: start it with "
                                          "exec, or fork before the first call of ACL");
    }
}

std::vector<Context *> contexts_of(int device) {
    std::lock_guard<std::mutex> lock(contexts().mutex);
    std::vector<Context *> found{&contexts().primary[static_cast<size_t>(device)]};
    found.insert(found.end(), contexts().created.begin(), contexts().created.end());
    found.erase(
        std::remove_if(found.begin(), found.end(),
                       [&](const Context *context) { return !context->alive() || context->device() != device; }),
        found.end());
    return found;
}

Context *current_context() { return current != nullptr && current->alive() ? current : nullptr; }

Context &require_context() {
    check_not_forked();
    Context *context = current_context();
    if (context == nullptr) {
        fail(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no device: call aclrtSetDevice or aclrtSetCurrentContext");
    }
    return *context;
}

int current_device() {
    const Context *context = current_context();
    return context == nullptr ? -1 : context->device();
}

const void *current_context_handle() { return current_context(); }

int require_device() { return require_context().device(); }

void stop_context_on_failure() { require_context().stop_on_failure(); }

} // namespace mock

using namespace mock;

// The primary context becomes the thread's, in the place of any other.
aclError aclrtSetDevice(int32_t deviceId) {
    return guarded("aclrtSetDevice", [&] {
        check_not_forked();
        check_device(deviceId);
        use_first_device();
        std::lock_guard<std::mutex> lock(contexts().mutex);
        Context &context = contexts().primary[static_cast<size_t>(deviceId)];
        if (contexts().users[static_cast<size_t>(deviceId)]++ == 0) {
            context.begin();
        }
        make_current(&context, true);
    });
}

aclError aclrtResetDevice(int32_t deviceId) {
    return guarded("aclrtResetDevice", [&] { release_device(deviceId, false); });
}

// Whatever the count says.
aclError aclrtResetDeviceForce(int32_t deviceId) {
    return guarded("aclrtResetDeviceForce", [&] { release_device(deviceId, true); });
}

// `flags` is reserved and may be NULL.
aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active) {
    return guarded("aclrtGetPrimaryCtxState", [&] {
        require(active, "active");
        check_device(deviceId);
        *active = contexts().primary[static_cast<size_t>(deviceId)].alive() ? 1 : 0;
        if (flags != nullptr) {
            *flags = 0;
        }
    });
}

aclError aclrtGetDevice(int32_t *deviceId) {
    return guarded("aclrtGetDevice", [&] {
        require(deviceId, "deviceId");
        *deviceId = require_device();
    });
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    return guarded("aclrtCreateContext", [&] {
        check_not_forked();
        require(context, "context");
        check_device(deviceId);
        use_first_device();
        auto *created = new Context(deviceId);
        created->begin();
        std::lock_guard<std::mutex> lock(contexts().mutex);
        contexts().created.push_back(created);
        make_current(created, false);
        *context = created;
    });
}

// With its streams, whose tasks it waits for. A primary context ends with the last reset of its device.
aclError aclrtDestroyContext(aclrtContext context) {
    return guarded("aclrtDestroyContext", [&] {
        Context *ended = live_context(context);
        if (is_primary(ended)) {
            fail(ACL_ERROR_RT_CONTEXT_NULL, "the primary context of device %d cannot be destroyed", ended->device());
        }
        ended->end();
        end_streams(*ended);
    });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
    return guarded("aclrtSetCurrentContext", [&] {
        check_not_forked();
        make_current(live_context(context), false);
    });
}

aclError aclrtGetCurrentContext(aclrtContext *context) {
    return guarded("aclrtGetCurrentContext", [&] {
        require(context, "context");
        *context = &require_context();
    });
}
