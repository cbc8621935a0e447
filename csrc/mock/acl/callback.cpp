// Host work in stream order. A host function runs on the stream's worker; a callback on the thread that subscribed to
// the stream, while it is in aclrtProcessReport.

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include <pthread.h>

#include "stream.h"

namespace mock {
namespace {

// One callback on its way from a stream to the thread that runs it.
struct Callback {
    aclrtCallback function;
    void *data;
    int stream; // its number, which no other ever has
    enum class State { Waiting, Running, Done, Dropped } state = State::Waiting;
};

struct Reports {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<int, uint64_t> threads; // by the numbers of streams
    std::map<uint64_t, std::deque<std::shared_ptr<Callback>>> queues;

    bool serves(uint64_t thread) const {
        for (const auto &entry : threads) {
            if (entry.second == thread) {
                return true;
            }
        }
        return false;
    }
};

Reports &reports() {
    static Reports &object = *new Reports;
    return object;
}

// Hands the callback over; with `block` it holds the stream until it has run.
Outcome hand_over(const std::shared_ptr<Callback> &callback, bool block, const Cancelled &cancelled) {
    host_learns();
    Reports &all = reports();
    std::unique_lock<std::mutex> lock(all.mutex);
    const auto found = all.threads.find(callback->stream);
    if (found == all.threads.end()) {
        return {ACL_ERROR_RT_STREAM_NO_CB_REG, "a callback: the thread of its stream was unsubscribed before it ran"};
    }
    all.queues[found->second].push_back(callback);
    all.changed.notify_all();
    while (block && callback->state != Callback::State::Done) {
        if (callback->state == Callback::State::Dropped) {
            return {ACL_ERROR_RT_STREAM_NO_CB_REG,
                    "a callback: the thread of its stream was unsubscribed before it ran"};
        }
        if (cancelled && callback->state == Callback::State::Waiting) {
            callback->state = Callback::State::Dropped;
            return {ACL_ERROR_RT_STREAM_ABORT, "a callback was aborted"};
        }
        all.changed.wait_for(lock, std::chrono::milliseconds(100));
    }
    return {};
}

std::shared_ptr<Callback> next_callback(Reports &all, uint64_t thread) {
    auto &queue = all.queues[thread];
    while (!queue.empty()) {
        std::shared_ptr<Callback> callback = queue.front();
        queue.pop_front();
        if (callback->state == Callback::State::Waiting) {
            callback->state = Callback::State::Running;
            return callback;
        }
    }
    return nullptr;
}

void process_report(int32_t timeout) {
    if (timeout < -1) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "timeout is %d ms: it must be -1 or more", timeout);
    }
    Reports &all = reports();
    const auto thread = static_cast<uint64_t>(pthread_self());
    const auto limit = Clock::now() + std::chrono::milliseconds(timeout);
    std::unique_lock<std::mutex> lock(all.mutex);
    std::shared_ptr<Callback> callback;
    while ((callback = next_callback(all, thread)) == nullptr) {
        if (!all.serves(thread)) {
            fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread is not subscribed to any stream");
        }
        if (timeout < 0) {
            all.changed.wait(lock);
        } else if (Clock::now() < limit) {
            all.changed.wait_until(lock, limit);
        } else {
            fail(ACL_ERROR_RT_REPORT_TIMEOUT, "no callback came in %d ms", timeout);
        }
    }
    lock.unlock();
    callback->function(callback->data);
    lock.lock();
    callback->state = Callback::State::Done;
    all.changed.notify_all();
}

void check_block_type(aclrtCallbackBlockType type) {
    if (type != ACL_CALLBACK_NO_BLOCK && type != ACL_CALLBACK_BLOCK) {
        fail(ACL_ERROR_INVALID_PARAM, "no block type has number %d", static_cast<int>(type));
    }
}

} // namespace
} // namespace mock

using namespace mock;

// One thread may serve many streams, a stream has one thread.
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
    return guarded("aclrtSubscribeReport", [&] {
        const std::shared_ptr<Stream> found = usable_stream(stream);
        Reports &all = reports();
        std::lock_guard<std::mutex> lock(all.mutex);
        if (!all.threads.emplace(found->number(), threadId).second) {
            fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, "a thread is subscribed to the stream already");
        }
        all.changed.notify_all();
    });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
    return guarded("aclrtUnSubscribeReport", [&] {
        const std::shared_ptr<Stream> found = find_stream(stream);
        Reports &all = reports();
        std::lock_guard<std::mutex> lock(all.mutex);
        const auto entry = all.threads.find(found->number());
        if (entry == all.threads.end() || entry->second != threadId) {
            fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "the thread is not subscribed to the stream");
        }
        all.threads.erase(entry);
        for (const std::shared_ptr<Callback> &callback : all.queues[threadId]) {
            if (callback->stream == found->number() && callback->state == Callback::State::Waiting) {
                callback->state = Callback::State::Dropped;
            }
        }
        all.changed.notify_all();
    });
}

aclError aclrtProcessReport(int32_t timeout) {
    return guarded("aclrtProcessReport", [&] { process_report(timeout); });
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
    return guarded("aclrtLaunchCallback", [&] {
        require(reinterpret_cast<void *>(fn), "fn");
        check_block_type(blockType);
        const std::shared_ptr<Stream> found = usable_stream(stream);
        {
            std::lock_guard<std::mutex> lock(reports().mutex);
            if (reports().threads.count(found->number()) == 0) {
                fail(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread is subscribed to the stream: aclrtSubscribeReport names "
                                                    "the one that runs its callbacks");
            }
        }
        const bool block = blockType == ACL_CALLBACK_BLOCK;
        auto callback = std::make_shared<Callback>(Callback{fn, userData, found->number()});
        found->push({"a callback",
                     [callback, block](const Cancelled &cancelled) { return hand_over(callback, block, cancelled); }});
    });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) {
    return guarded("aclrtLaunchHostFunc", [&] {
        require(reinterpret_cast<void *>(fn), "fn");
        usable_stream(stream)->push({"a host function", [fn, args](const Cancelled &) {
            host_learns();
            fn(args);
            return Outcome{};
        }});
    });
}
