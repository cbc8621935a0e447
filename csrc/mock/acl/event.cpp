// Events: a record stands in a stream's queue; a wait is for the latest record at the time of the call.

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>

#include "counters.h"
#include "deviate.h"
#include "device.h"
#include "event_record.h"
#include "registry.h"
#include "stream.h"
#include "system.h"

namespace mock {
namespace {

// aclrtCreateEvent, aclrtCreateEventWithFlag, aclrtCreateEventExWithFlag.
enum class Kind { Plain, Flagged, Extended };

class Event {
public:
    Event(Kind kind, uint32_t flags, const Context &context) : kind_(kind), flags_(flags), context_(context) {}

    std::shared_ptr<EventRecord> latest() const {
        std::lock_guard<std::mutex> lock(mutex_);
        return latest_;
    }
    // A new record, which is the latest once it is queued.
    std::shared_ptr<EventRecord> new_record() {
        std::lock_guard<std::mutex> lock(mutex_);
        std::shared_ptr<EventRecord> record = std::exchange(next_, nullptr);
        return record != nullptr ? record : std::make_shared<EventRecord>();
    }
    void set_latest(std::shared_ptr<EventRecord> record) {
        std::lock_guard<std::mutex> lock(mutex_);
        latest_ = std::move(record);
    }
    // The record to come, for which streams wait if there is none yet: with ACL_EVENT_SYNC of the older kind only.
    std::shared_ptr<EventRecord> next() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (next_ == nullptr) {
            next_ = std::make_shared<EventRecord>();
        }
        return next_;
    }
    Kind kind() const { return kind_; }
    bool extended() const { return kind_ == Kind::Extended; }
    bool has(uint32_t flag) const { return kind_ == Kind::Plain || (flags_ & flag) != 0; }
    const Context &context() const { return context_; }

    std::atomic<int> waits{0}; // queued waits that have not ended

private:
    const Kind kind_;
    const uint32_t flags_;
    const Context &context_;
    mutable std::mutex mutex_;
    std::shared_ptr<EventRecord> latest_;
    std::shared_ptr<EventRecord> next_;
};

Registry<Event> &events() {
    static Registry<Event> &object = *new Registry<Event>;
    return object;
}

std::shared_ptr<Event> find_event(aclrtEvent handle) {
    require(static_cast<char *>(handle), "event");
    std::shared_ptr<Event> event = events().find(handle);
    if (event == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a live event");
    }
    return event;
}

void create_event(aclrtEvent *handle, Kind kind, uint32_t flags) {
    constexpr uint32_t TOGETHER = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;
    require(handle, "event");
    const bool alone = kind == Kind::Extended ? flags == ACL_EVENT_IPC
                                              : flags == ACL_EVENT_DEVICE_USE_ONLY || flags == ACL_EVENT_EXTERNAL;
    if (kind != Kind::Plain && !alone && (flags == 0 || (flags & ~TOGETHER) != 0)) {
        fail(ACL_ERROR_RT_PARAM_INVALID,
             "flags 0x%x: at least one of 0x%x is due, and no other; or one that stands alone", flags, TOGETHER);
    }
    *handle = events().add(std::make_shared<Event>(kind, flags, require_context()));
}

void refuse_extended(const Event &event) {
    if (event.extended()) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "events of aclrtCreateEventExWithFlag do not have this call");
    }
}

// `limit` counts from the moment that the wait is the stream's turn; 0 is none.
Outcome wait_for_record(EventRecord &record, const Cancelled &cancelled, std::chrono::milliseconds limit) {
    const auto start = Clock::now();
    comes_soon([&] { return record.done(); });
    auto slice = std::chrono::milliseconds(100);
    if (limit.count() > 0 && limit < slice) {
        slice = limit;
    }
    while (!record.await_done(slice)) {
        if (cancelled) {
            return {ACL_ERROR_RT_STREAM_ABORT, "a wait for an event was aborted"};
        }
        if (limit.count() > 0 && Clock::now() - start >= limit) {
            return {ACL_ERROR_RT_WAIT_TIMEOUT, format("a wait for an event: it did not complete in %lld ms",
                                                      static_cast<long long>(limit.count()))};
        }
    }
    return {};
}

// Counts a queued wait until its task has run or was dropped.
class WaitCount {
public:
    explicit WaitCount(std::shared_ptr<Event> event) : event_(std::move(event)) { event_->waits++; }
    ~WaitCount() { event_->waits--; }
    WaitCount(const WaitCount &) = delete;
    WaitCount &operator=(const WaitCount &) = delete;

private:
    std::shared_ptr<Event> event_;
};

// Events of a device: a record takes one, until it and the waits for it have ended.
class DeviceEvents {
public:
    static constexpr size_t MOST = 65536;

    // Waits while there is none. The vendor's library waits for ever.
    std::shared_ptr<void> take(const Context &context) {
        constexpr std::chrono::seconds PATIENCE(5);
        const auto limit = Clock::now() + PATIENCE;
        std::unique_lock<std::mutex> lock(mutex_);
        while (taken_ >= MOST) {
            context.check();
            if (Clock::now() >= limit) {
                fail(ACL_ERROR_RT_NO_EVENT_RESOURCE,
                     "device %d: %zu records of events have not ended, which is the most, and none did in %lld s",
                     context.device(), MOST, static_cast<long long>(PATIENCE.count()));
            }
            given_.wait_for(lock, std::chrono::milliseconds(50));
        }
        taken_++;
        return std::shared_ptr<void>(this, [](void *events) { static_cast<DeviceEvents *>(events)->give(); });
    }

private:
    void give() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (taken_-- == MOST) {
            given_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable given_;
    size_t taken_ = 0;
};

// None for what is limited otherwise: records without ACL_EVENT_SYNC, older processors.
std::shared_ptr<void> take_device_event(const Event &event, const Context &context) {
    static std::mutex &mutex = *new std::mutex;
    static auto &devices = *new std::map<int, DeviceEvents>;
    if (!event.has(ACL_EVENT_SYNC) || family() == Family::Ascend910A || family() == Family::Ascend310P) {
        return nullptr;
    }
    std::unique_lock<std::mutex> lock(mutex);
    DeviceEvents &events = devices[context.device()];
    lock.unlock();
    return events.take(context);
}

void queue_wait(aclrtStream stream, aclrtEvent event, std::chrono::milliseconds limit) {
    const std::shared_ptr<Event> found = find_event(event);
    const std::shared_ptr<Stream> queue = usable_stream(stream);
    if (!found->has(ACL_EVENT_SYNC)) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the event was created without ACL_EVENT_SYNC");
    }
    if (deviates(Deviation::WaitIgnored)) {
        return;
    }
    std::shared_ptr<EventRecord> record = found->latest();
    if (record == nullptr && found->kind() == Kind::Plain) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "the event of aclrtCreateEvent was not recorded yet");
    }
    if (record == nullptr && found->extended()) {
        return;
    }
    if (family() == Family::Ascend910A && found->context().device() != queue->device()) {
        warn_once("a stream of another device waits for an event: this processor does not wait");
        return;
    }
    if (record != nullptr) {
        order_wait(queue->number(), record->before);
        if (record->ended()) {
            return;
        }
    } else {
        record = found->next();
    }
    auto count = std::make_shared<WaitCount>(found);
    auto resource = record->resource.lock();
    Task wait{"a wait for an event", [record, count, limit, resource](const Cancelled &cancelled) {
        return wait_for_record(*record, cancelled, limit);
    }};
    wait.attempt = [record](const Cancelled &, Outcome *) { return comes_soon([&] { return record->done(); }); };
    queue->push(std::move(wait));
}

void enqueue_record(aclrtEvent event, aclrtStream stream) {
    const std::shared_ptr<Event> found = find_event(event);
    const std::shared_ptr<Stream> queue = usable_stream(stream);
    queue->context().check();
    auto resource = take_device_event(*found, queue->context());
    const std::shared_ptr<EventRecord> record = found->new_record();
    record->resource = resource;
    auto complete = [record, resource = std::move(resource)](const Cancelled &) {
        record->complete();
        return Outcome{};
    };
    const uint64_t position =
        queue->push_brief("an event record", std::move(complete), [record](aclError why) { record->lose(why); });
    record->before = order_through(queue->number(), position);
    record->context = &queue->context();
    record->stream = queue;
    record->position = position;
    found->set_latest(record);
}

void host_sees(const EventRecord &record) {
    order_seen(record.before);
    if (const std::shared_ptr<Stream> stream = record.stream.lock()) {
        stream->host_sees(record.position);
    }
}

// Whether the host may take the event for complete; throws the failure of a context that stopped.
bool seen_complete(const Event &event) {
    event.context().check();
    const std::shared_ptr<EventRecord> record = event.latest();
    if (record == nullptr) {
        return event.extended();
    }
    if (deviates(Deviation::EventEarly)) {
        return true;
    }
    if (!record->ended()) {
        record->context->check();
        return false;
    }
    host_sees(*record);
    return true;
}

// -1 waits for ever.
void synchronize_event(const Event &event, int32_t timeout_ms) {
    constexpr std::chrono::milliseconds SLICE(50); // to see whether the context has failed
    event.context().check();
    const std::shared_ptr<EventRecord> record = event.latest();
    if (record == nullptr || record->ended() || deviates(Deviation::EventEarly)) {
        if (record != nullptr) {
            host_sees(*record);
        }
        return;
    }
    const auto limit = Clock::now() + std::chrono::milliseconds(timeout_ms);
    comes_soon_to_host([&] { return record->ended(); });
    for (;;) {
        auto slice = SLICE;
        if (timeout_ms >= 0) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now());
            slice = std::max(std::min(slice, left), std::chrono::milliseconds(0));
        }
        const bool ended = record->await_end(slice);
        record->context->check();
        if (ended) {
            break;
        }
        if (timeout_ms >= 0 && Clock::now() >= limit) {
            fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event did not complete in %d ms", timeout_ms);
        }
    }
    host_sees(*record);
    if (record->loss() != ACL_SUCCESS) {
        fail(record->loss(), "the stream of the event's record was aborted");
    }
}

// A record's time is known once a synchronisation or query told the host that it, or what its stream did later, has ended.
Clock::time_point time_of(const Event &event, const char *name) {
    const std::shared_ptr<EventRecord> record = event.latest();
    if (record == nullptr) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s was not recorded", name);
    }
    if (!event.has(ACL_EVENT_TIME_LINE)) {
        fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "%s was created without ACL_EVENT_TIME_LINE", name);
    }
    const std::shared_ptr<Stream> stream = record->stream.lock(); // gone: it ended after its tasks
    if (!record->done() || (stream != nullptr && stream->seen() < record->position)) {
        fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "%s is not complete, or nobody has waited for it or queried it",
             name);
    }
    return record->when();
}

} // namespace
} // namespace mock

using namespace mock;

aclError aclrtCreateEvent(aclrtEvent *event) {
    return guarded("aclrtCreateEvent", [&] { create_event(event, Kind::Plain, 0); });
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) {
    return guarded("aclrtCreateEventWithFlag", [&] { create_event(event, Kind::Flagged, flag); });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) {
    return guarded("aclrtCreateEventExWithFlag", [&] { create_event(event, Kind::Extended, flag); });
}

// Records and waits that are queued keep what they need; only the handle ends here.
aclError aclrtDestroyEvent(aclrtEvent event) {
    return guarded("aclrtDestroyEvent", [&] {
        find_event(event);
        events().remove(event);
    });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    return guarded("aclrtRecordEvent", [&] { enqueue_record(event, stream); });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    return guarded("aclrtResetEvent", [&] {
        const std::shared_ptr<Event> found = find_event(event);
        refuse_extended(*found);
        usable_stream(stream)->context().check();
        found->set_latest(nullptr);
    });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    return guarded("aclrtStreamWaitEvent", [&] { queue_wait(stream, event, operation_wait_limit()); });
}

// A timeout of 0 is none.
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
    return guarded("aclrtStreamWaitEventWithTimeout", [&] {
        if (timeout < 0) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "timeout is %d ms: it must be 0 or more", timeout);
        }
        queue_wait(stream, event, std::chrono::milliseconds(timeout));
    });
}

// An event that was never recorded is complete here, but not for aclrtQueryEventStatus.
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status) {
    return guarded("aclrtQueryEvent", [&] {
        require(status, "status");
        const std::shared_ptr<Event> found = find_event(event);
        refuse_extended(*found);
        const bool done = seen_complete(*found) || found->latest() == nullptr;
        *status = done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    return guarded("aclrtQueryEventStatus", [&] {
        require(status, "status");
        const bool done = seen_complete(*find_event(event));
        *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
    return guarded("aclrtQueryEventWaitStatus", [&] {
        require(status, "status");
        const std::shared_ptr<Event> found = find_event(event);
        refuse_extended(*found);
        if (const Context *context = current_context()) {
            context->check();
        }
        *status = found->waits == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    });
}

// Needs no context of the thread, as the queries.
aclError aclrtSynchronizeEvent(aclrtEvent event) {
    return guarded("aclrtSynchronizeEvent", [&] {
        count(Counter::HostSynchronizations);
        synchronize_event(*find_event(event), -1);
    });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    return guarded("aclrtSynchronizeEventWithTimeout", [&] {
        check_timeout(timeout);
        count(Counter::HostSynchronizations);
        synchronize_event(*find_event(event), timeout);
    });
}

// In microseconds of a clock of its own.
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) {
    return guarded("aclrtEventGetTimestamp", [&] {
        require(timestamp, "timestamp");
        const std::shared_ptr<Event> found = find_event(event);
        if (found->kind() != Kind::Plain && (found->has(ACL_EVENT_EXTERNAL) || found->has(ACL_EVENT_IPC))) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "external events have no time");
        }
        const auto since =
            std::chrono::duration_cast<std::chrono::microseconds>(time_of(*found, "the event").time_since_epoch());
        *timestamp = static_cast<uint64_t>(since.count());
    });
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    return guarded("aclrtEventElapsedTime", [&] {
        require(ms, "ms");
        const std::shared_ptr<Event> start = find_event(startEvent);
        const std::shared_ptr<Event> end = find_event(endEvent);
        const Clock::time_point begun = time_of(*start, "the start event");
        *ms = std::chrono::duration<float, std::milli>(time_of(*end, "the end event") - begun).count();
    });
}
