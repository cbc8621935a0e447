// Events: a record is a mark in a stream's queue; waits bind the latest mark at the time of the call.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include <sched.h>

#include "counters.h"
#include "device.h"
#include "order.h"
#include "registry.h"
#include "stream.h"
#include "system.h"

namespace mock {
namespace {

// One record of an event. It outlives the event as long as a task of a stream refers to it.
class Mark {
public:
    void complete() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!done_) {
            when_ = Clock::now();
            done_ = true;
            changed_.notify_all();
        }
    }
    bool done() const {
        std::lock_guard<std::mutex> lock(mutex_);
        return done_;
    }
    Clock::time_point when() const {
        std::lock_guard<std::mutex> lock(mutex_);
        return when_;
    }
    bool wait(std::chrono::milliseconds limit) {
        std::unique_lock<std::mutex> lock(mutex_);
        return changed_.wait_for(lock, limit, [this] { return done_; });
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return done_; });
    }
    Before before; // what whoever waits for it comes after; set before others see the mark

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    Clock::time_point when_;
};

enum class Kind { Plain, Flagged, Extended };

class Event {
public:
    Event(Kind kind, uint32_t flags) : kind_(kind), flags_(flags) {}

    std::shared_ptr<Mark> latest() const {
        std::lock_guard<std::mutex> lock(mutex_);
        return latest_;
    }
    void set_latest(std::shared_ptr<Mark> mark) {
        std::lock_guard<std::mutex> lock(mutex_);
        latest_ = std::move(mark);
    }
    bool waitable() const { return kind_ != Kind::Flagged || (flags_ & ACL_EVENT_SYNC) != 0; }
    bool extended() const { return kind_ == Kind::Extended; }

    std::atomic<int> waits{0}; // queued waits that have not ended

private:
    const Kind kind_;
    const uint32_t flags_;
    mutable std::mutex mutex_;
    std::shared_ptr<Mark> latest_;
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
    constexpr uint32_t ALL = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                             ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;
    require(handle, "event");
    if (kind != Kind::Plain && (flags == 0 || (flags & ~ALL) != 0)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "flags 0x%x: at least one of 0x%x is due, and no other", flags, ALL);
    }
    require_device();
    *handle = events().add(std::make_shared<Event>(kind, flags));
}

void refuse_extended(const Event &event) {
    if (event.extended()) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "events of aclrtCreateEventExWithFlag do not have this call");
    }
}

// `limit` counts from the moment that the wait is the stream's turn; 0 is none.
Outcome wait_for_mark(Mark &mark, const Cancelled &cancelled, std::chrono::milliseconds limit) {
    constexpr int YIELDS = 16; // often it is about to complete, and to be woken takes longer
    const auto start = Clock::now();
    for (int i = 0; i < YIELDS && !mark.done(); i++) {
        sched_yield();
    }
    auto slice = std::chrono::milliseconds(100);
    if (limit.count() > 0 && limit < slice) {
        slice = limit;
    }
    while (!mark.wait(slice)) {
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

void queue_wait(aclrtStream stream, aclrtEvent event, std::chrono::milliseconds limit) {
    const std::shared_ptr<Event> found = find_event(event);
    const std::shared_ptr<Stream> queue = usable_stream(stream);
    if (!found->waitable()) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the event was created without ACL_EVENT_SYNC");
    }
    std::shared_ptr<Mark> mark = found->latest();
    if (mark == nullptr) {
        return;
    }
    order_wait(queue->number(), mark->before);
    if (mark->done()) {
        return;
    }
    auto count = std::make_shared<WaitCount>(found);
    queue->push({"a wait for an event",
                 [mark, count, limit](const Cancelled &cancelled) { return wait_for_mark(*mark, cancelled, limit); },
                 false});
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

// Marks and waits that are queued keep what they need; only the handle ends here.
aclError aclrtDestroyEvent(aclrtEvent event) {
    return guarded("aclrtDestroyEvent", [&] {
        find_event(event);
        events().remove(event);
    });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    return guarded("aclrtRecordEvent", [&] {
        const std::shared_ptr<Event> found = find_event(event);
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        auto mark = std::make_shared<Mark>();
        const uint64_t position =
            queue->push({"an event record",
                         [mark](const Cancelled &) {
                             mark->complete();
                             return Outcome{};
                         },
                         true});
        mark->before = order_through(queue->number(), position);
        found->set_latest(std::move(mark));
    });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    return guarded("aclrtResetEvent", [&] {
        const std::shared_ptr<Event> found = find_event(event);
        refuse_extended(*found);
        usable_stream(stream);
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

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status) {
    return guarded("aclrtQueryEvent", [&] {
        require(status, "status");
        const std::shared_ptr<Event> found = find_event(event);
        refuse_extended(*found);
        const std::shared_ptr<Mark> mark = found->latest();
        const bool done = mark == nullptr || mark->done();
        if (mark != nullptr && done) {
            order_seen(mark->before);
        }
        *status = done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    return guarded("aclrtQueryEventStatus", [&] {
        require(status, "status");
        const std::shared_ptr<Mark> mark = find_event(event)->latest();
        const bool done = mark == nullptr || mark->done();
        if (mark != nullptr && done) {
            order_seen(mark->before);
        }
        *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
    return guarded("aclrtQueryEventWaitStatus", [&] {
        require(status, "status");
        const std::shared_ptr<Event> found = find_event(event);
        refuse_extended(*found);
        *status = found->waits == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
    return guarded("aclrtSynchronizeEvent", [&] {
        count(Counter::HostSynchronizations);
        const std::shared_ptr<Mark> mark = find_event(event)->latest();
        if (mark != nullptr) {
            mark->wait();
            order_seen(mark->before);
        }
    });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    return guarded("aclrtSynchronizeEventWithTimeout", [&] {
        const std::shared_ptr<Mark> mark = find_event(event)->latest();
        if (timeout < -1) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "timeout is %d ms: it must be -1 or more", timeout);
        }
        if (timeout != 0) {
            count(Counter::HostSynchronizations);
        }
        if (mark == nullptr) {
            return;
        }
        if (timeout == -1) {
            mark->wait();
        } else if (!mark->wait(std::chrono::milliseconds(timeout))) {
            fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event did not complete in %d ms", timeout);
        }
        order_seen(mark->before);
    });
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    return guarded("aclrtEventElapsedTime", [&] {
        require(ms, "ms");
        const std::shared_ptr<Mark> start = find_event(startEvent)->latest();
        const std::shared_ptr<Mark> end = find_event(endEvent)->latest();
        if (start == nullptr || end == nullptr || !start->done() || !end->done()) {
            fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "both events must be recorded and complete");
        }
        if (end->when() < start->when()) {
            fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "the end was recorded before the start");
        }
        *ms = std::chrono::duration<float, std::milli>(end->when() - start->when()).count();
    });
}
