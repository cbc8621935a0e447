// The exported calls about streams, and those that wait for all streams of a context or end all of a device.

#include "arena.h"
#include "counters.h"
#include "deviate.h"
#include "device.h"
#include "stream.h"
#include "system.h"

namespace mock {
namespace {

aclrtStream create_stream(uint32_t priority, uint32_t flags) {
    constexpr uint32_t LOWEST_PRIORITY = 7; // 0 is the highest
    constexpr uint32_t ALL = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE |
                             ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
    if (priority > LOWEST_PRIORITY || (flags & ~ALL) != 0) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "priority %u and flag 0x%x: from 0 to %u and within 0x%x are possible",
             priority, flags, LOWEST_PRIORITY, ALL);
    }
    return make_stream(priority, flags);
}

// All streams of the thread's context. While the context goes on after failures, all are waited for, and the first error
// is told.
void synchronize_device(int timeout_ms) {
    const Context &context = require_context();
    count(Counter::HostSynchronizations);
    const auto limit = Clock::now() + std::chrono::milliseconds(timeout_ms);
    context.check();
    std::unique_ptr<Failure> first;
    for (const auto &stream : streams_of(context)) {
        int left = timeout_ms;
        if (timeout_ms > 0) {
            const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
            left = rest > 0 ? static_cast<int>(rest) : 0;
        }
        try {
            stream->synchronize(left);
        } catch (const Failure &failure) {
            if (context.stops() || failure.code() == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) {
                throw;
            }
            if (first == nullptr) {
                first = std::make_unique<Failure>(failure);
            }
        }
    }
    if (first != nullptr) {
        throw Failure(*first);
    }
}

constexpr int DEAF_MS = 10000; // the end of a wait whose limit ASCEND_MOCK_DEVIATE ignores

bool can_abort() { return family() != Family::Ascend910A && family() != Family::Ascend310P; }

} // namespace

void check_timeout(int32_t timeout) {
    if (timeout < -1 || timeout == 0) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "timeout is %d ms: it must be -1 or more than 0; a query does not wait",
             timeout);
    }
}

} // namespace mock

using namespace mock;

aclError aclrtCreateStream(aclrtStream *stream) {
    return guarded("aclrtCreateStream", [&] {
        require(stream, "stream");
        *stream = create_stream(0, 0);
    });
}

// Priority and flags change the speed of a stream only: they are kept and have no effect here.
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    return guarded("aclrtCreateStreamWithConfig", [&] {
        require(stream, "stream");
        *stream = create_stream(priority, flag);
    });
}

// Waits for what is queued: memory that tasks use may be freed afterwards. An error of the stream was for those who
// synchronise; destroying a failed stream is no failure. In a context that has failed nothing is waited for.
aclError aclrtDestroyStream(aclrtStream stream) {
    return guarded("aclrtDestroyStream", [&] {
        require(static_cast<char *>(stream), "stream");
        const std::shared_ptr<Stream> taken = take_stream(stream);
        if (taken->context().failed()) {
            taken->abort();
        }
        taken->finish();
    });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
    return guarded("aclrtDestroyStreamForce", [&] {
        require(static_cast<char *>(stream), "stream");
        const std::shared_ptr<Stream> taken = take_stream(stream);
        taken->abort();
        taken->finish();
    });
}

aclError aclrtStreamAbort(aclrtStream stream) {
    return guarded("aclrtStreamAbort", [&] {
        const std::shared_ptr<Stream> found = usable_stream(stream);
        if (!can_abort()) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "streams of this processor cannot be aborted");
        }
        refuse_if(Deviation::NoAbort, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the abort");
        if (!deviates(Deviation::AbortDeaf)) {
            found->abort();
        }
    });
}

// Tells whether everything has ended, not how. The stream may belong to any context.
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
    return guarded("aclrtStreamQuery", [&] {
        require(status, "status");
        require_context();
        *status = find_stream(stream)->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    });
}

// The stream may belong to any context.
aclError aclrtSynchronizeStream(aclrtStream stream) {
    return guarded("aclrtSynchronizeStream", [&] {
        require_context();
        count(Counter::HostSynchronizations);
        const std::shared_ptr<Stream> found = find_stream(stream);
        if (!deviates(Deviation::SyncEarly)) {
            found->synchronize(-1);
        }
    });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    return guarded("aclrtSynchronizeStreamWithTimeout", [&] {
        check_timeout(timeout);
        require_context();
        count(Counter::HostSynchronizations);
        const std::shared_ptr<Stream> found = find_stream(stream);
        if (!deviates(Deviation::SyncEarly)) {
            found->synchronize(timeout > 0 && deviates(Deviation::LimitIgnored) ? DEAF_MS : timeout);
        }
    });
}

aclError aclrtSynchronizeDevice(void) {
    return guarded("aclrtSynchronizeDevice", [] { synchronize_device(-1); });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    return guarded("aclrtSynchronizeDeviceWithTimeout", [&] {
        check_timeout(timeout);
        synchronize_device(timeout);
    });
}

// Aborts all streams of all contexts of the device; whoever waits for one of them learns why. It is the way out of a
// failure in a context that stops.
aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
    return guarded("aclrtDeviceTaskAbort", [&] {
        constexpr uint32_t LONGEST = 36 * 60 * 1000;
        if (!can_abort()) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "tasks of this processor cannot be aborted");
        }
        if (timeout > LONGEST) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "timeout is %u ms: %u is the longest", timeout, LONGEST);
        }
        check_device(deviceId);
        const std::vector<Context *> contexts = contexts_of(deviceId);
        if (contexts.empty()) {
            fail(ACL_ERROR_RT_CONTEXT_NULL, "device %d has no context", deviceId);
        }
        for (const auto &stream : streams_of(deviceId)) {
            stream->abort(ACL_ERROR_RT_DEVICE_TASK_ABORT);
        }
        let_go_of_memory_of(deviceId); // the operations of HCCL have ended, too
        for (Context *context : contexts) {
            context->recover();
        }
    });
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) {
    return guarded("aclrtCtxGetCurrentDefaultStream", [&] {
        require(stream, "stream");
        *stream = find_stream(nullptr).get();
    });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId) {
    return guarded("aclrtStreamGetId", [&] {
        require(streamId, "streamId");
        *streamId = find_stream(stream)->number();
    });
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority) {
    return guarded("aclrtStreamGetPriority", [&] {
        require(priority, "priority");
        require_context();
        *priority = find_stream(stream)->priority();
    });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags) {
    return guarded("aclrtStreamGetFlags", [&] {
        require(flags, "flags");
        require_context();
        *flags = find_stream(stream)->flags();
    });
}

// Of `mode` the lowest bit counts.
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    return guarded("aclrtSetStreamFailureMode", [&] {
        if (stream == nullptr && !can_abort()) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the default stream of this processor has no failure mode");
        }
        require_context();
        find_stream(stream)->set_failure_mode((mode & ACL_STOP_ON_FAILURE) != 0);
    });
}
