#include "stream.h"

#include <algorithm>
#include <atomic>
#include <map>

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "counters.h"
#include "device.h"
#include "order.h"
#include "registry.h"

namespace mock {
namespace {

struct Streams {
    Registry<Stream> registry;
    std::mutex mutex;
    std::map<int, std::shared_ptr<Stream>> standard; // the stream that NULL means, per device
    std::atomic<int> count{0};
};

Streams &streams() {
    static Streams &object = *new Streams;
    return object;
}

thread_local Stream *own_stream = nullptr; // set on worker threads
thread_local std::string dropped_because;   // on worker threads, while they drop a task

// The client's signal handlers must not run on threads that it knows nothing of.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked &) = delete;
    SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
    sigset_t before_;
};

// ASCEND_MOCK_CORE: the threads of streams stay on this core, counted among those that the process may use.
void choose_core() {
    const char *wanted = environment("ASCEND_MOCK_CORE");
    long long left = 0;
    cpu_set_t allowed;
    if (wanted == nullptr || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return;
    }
    if (!parse_number(wanted, 0, CPU_COUNT(&allowed) - 1, &left)) {
        warn_once(format("ASCEND_MOCK_CORE [%s] is not a number from 0 to %d; threads run on any core", wanted,
                         CPU_COUNT(&allowed) - 1));
        return;
    }
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && left-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
            return;
        }
    }
}

std::shared_ptr<Stream> default_stream(int device) {
    Streams &all = streams();
    std::lock_guard<std::mutex> lock(all.mutex);
    std::shared_ptr<Stream> &stream = all.standard[device];
    if (stream == nullptr) {
        stream = std::make_shared<Stream>(device, all.count++);
        all.registry.add(stream);
    }
    return stream;
}

void create_stream(aclrtStream *handle, uint32_t priority, uint32_t flags) {
    constexpr uint32_t LOWEST_PRIORITY = 7; // 0 is the highest
    constexpr uint32_t ALL = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE |
                             ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
    require(handle, "stream");
    if (priority > LOWEST_PRIORITY || (flags & ~ALL) != 0) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "priority %u and flag 0x%x: from 0 to %u and within 0x%x are possible",
             priority, flags, LOWEST_PRIORITY, ALL);
    }
    const int device = require_device();
    *handle = streams().registry.add(std::make_shared<Stream>(device, streams().count++, priority, flags));
}

// The stream for its destruction: closed, and nobody finds it any more.
std::shared_ptr<Stream> take_stream(aclrtStream handle) {
    require(static_cast<char *>(handle), "stream");
    find_stream(handle)->close();
    std::shared_ptr<Stream> stream = streams().registry.remove(handle);
    if (stream == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "another thread destroys the stream");
    }
    return stream;
}

// A limit of 0 ms asks and does not wait.
void count_blocking(int timeout_ms) {
    if (timeout_ms != 0) {
        count(Counter::HostSynchronizations);
    }
}

void synchronize_device(int timeout_ms) {
    const int device = require_device();
    count_blocking(timeout_ms);
    const auto limit = Clock::now() + std::chrono::milliseconds(timeout_ms);
    for (const auto &stream : streams().registry.all()) {
        if (stream->device() != device) {
            continue;
        }
        int left = timeout_ms;
        if (timeout_ms > 0) {
            const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
            left = rest > 0 ? static_cast<int>(rest) : 0;
        }
        stream->synchronize(left);
    }
}

void check_timeout(int32_t timeout) {
    if (timeout < -1) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "timeout is %d ms: it must be -1 or more", timeout);
    }
}

} // namespace

uint64_t Stream::push(Task task) {
    uint64_t position = 0;
    bool asleep = false;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (closed_) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "stream %d was destroyed", number_);
        }
        if (!worker_.joinable()) {
            start_worker();
        }
        queue_.push_back(std::move(task));
        position = ++submitted_;
        asleep = asleep_;
        asleep_ = false;
    }
    if (asleep) {
        wake_.notify_one();
    }
    return position;
}

// The next task often follows soon: before it sleeps, the worker lets others run a few times, which costs less than being
// woken.
void Stream::await_task(std::unique_lock<std::mutex> &lock) {
    constexpr int YIELDS = 16;
    for (int i = 0; i < YIELDS && queue_.empty() && !closed_; i++) {
        lock.unlock();
        sched_yield();
        lock.lock();
    }
    while (queue_.empty() && !closed_) {
        asleep_ = true;
        wake_.wait(lock);
    }
    asleep_ = false;
}

void Stream::start_worker() {
    try {
        SignalsBlocked blocked;
        worker_ = std::thread([self = shared_from_this()] { self->work(); });
    } catch (const std::system_error &error) {
        fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, "no thread for stream %d: %s", number_, error.what());
    }
}

void Stream::work() {
    own_stream = this;
    pthread_setname_np(pthread_self(), format("mock-stream-%d", number_ % 1000).c_str());
    choose_core();
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        await_task(lock);
        if (queue_.empty()) {
            return;
        }
        Outcome outcome;
        const bool stopped = error_.code != ACL_SUCCESS && !goes_on_;
        const bool skipped = stopped && !queue_.front().always;
        busy_ = true;
        {
            Task task = std::move(queue_.front());
            queue_.pop_front();
            running_ = task.name;
            dropped_because = skipped ? error_.text : "";
            lock.unlock();
            if (!skipped) {
                outcome = run(task);
            }
        } // what the task holds is released before it counts as ended
        lock.lock();
        if (outcome.code != ACL_SUCCESS && error_.code == ACL_SUCCESS && !cancelled_) {
            error_ = std::move(outcome);
        }
        busy_ = false;
        cancelled_ = false;
        completed_++;
        runs_ended_++;
        if (completed_ >= awaited_ || aborting_ > 0) {
            awaited_ = NOBODY; // whoever waits for more says so again
            done_.notify_all();
        }
    }
}

// Waits until so many tasks have ended. -1 waits for ever.
void Stream::await_end(std::unique_lock<std::mutex> &lock, uint64_t position, int timeout_ms) {
    const auto limit = Clock::now() + std::chrono::milliseconds(timeout_ms);
    while (completed_ < position) {
        awaited_ = std::min(awaited_, position);
        if (timeout_ms < 0) {
            done_.wait(lock);
        } else if (done_.wait_until(lock, limit) == std::cv_status::timeout && completed_ < position) {
            fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                 "stream %d of device %d did not end in %d ms: %llu tasks left, now in %s", number_, device_, timeout_ms,
                 static_cast<unsigned long long>(position - completed_), running_.c_str());
        }
    }
}

Outcome Stream::run(Task &task) {
    try {
        return task.work(cancelled_);
    } catch (const std::exception &error) {
        return {ACL_ERROR_RT_INTERNAL_ERROR, task.name + ": " + error.what()};
    }
}

void Stream::refuse_own_worker() const {
    if (own_stream == this) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "a callback of stream %d cannot wait for that stream", number_);
    }
}

void Stream::throw_error() const {
    if (error_.code != ACL_SUCCESS) {
        throw Failure(error_.code, error_.text);
    }
}

void Stream::synchronize(int timeout_ms) {
    refuse_own_worker();
    std::unique_lock<std::mutex> lock(mutex_);
    const Position position{submitted_, aborts_};
    await_end(lock, position.submitted, timeout_ms);
    order_seen(order_through(number_, position.submitted));
    if (aborts_ != position.aborts) {
        fail(abort_code_, "stream %d was aborted", number_);
    }
    throw_error();
}

uint64_t Stream::completed() {
    std::lock_guard<std::mutex> lock(mutex_);
    return completed_;
}

bool Stream::idle() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (completed_ < submitted_) {
        return false;
    }
    order_seen(order_through(number_, submitted_));
    throw_error();
    return true;
}

void Stream::abort(aclError code) {
    refuse_own_worker();
    std::deque<Task> dropped;
    std::unique_lock<std::mutex> lock(mutex_);
    dropped.swap(queue_);
    aborts_++;
    abort_code_ = code;
    error_ = {};
    cancelled_ = busy_;
    const uint64_t runs = runs_ended_ + (busy_ ? 1 : 0);
    lock.unlock();
    const size_t count = dropped.size();
    // Events must complete even so, or whoever waits for them never ends.
    for (Task &task : dropped) {
        if (task.always) {
            run(task);
        }
    }
    dropped.clear();
    lock.lock();
    aborting_++;
    done_.wait(lock, [&] { return runs_ended_ >= runs; });
    aborting_--;
    completed_ += count;
    order_seen(order_through(number_, completed_));
    done_.notify_all();
}

void Stream::close() {
    refuse_own_worker();
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    wake_.notify_all();
}

void Stream::finish() {
    if (worker_.joinable()) { // nobody starts one any more
        worker_.join();
    }
    order_end(number_);
}

const std::string &drop_reason() { return dropped_because; }

void host_learns() { order_seen(order_through(own_stream->number(), own_stream->completed())); }

std::shared_ptr<Stream> find_stream(aclrtStream handle) {
    if (handle == nullptr) {
        return default_stream(require_device());
    }
    std::shared_ptr<Stream> stream = streams().registry.find(handle);
    if (stream == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a live stream");
    }
    return stream;
}

std::shared_ptr<Stream> usable_stream(aclrtStream handle) {
    const int device = require_device();
    std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream->device() != device) {
        fail(ACL_ERROR_RT_STREAM_CONTEXT, "the stream belongs to device %d, this thread works on device %d",
             stream->device(), device);
    }
    return stream;
}

int stream_device(aclrtStream handle) {
    const std::shared_ptr<Stream> stream = streams().registry.find(handle);
    return stream == nullptr ? -1 : stream->device();
}

aclError enqueue(aclrtStream handle, std::string name, Work work, Place *place) {
    try {
        const std::shared_ptr<Stream> stream = find_stream(handle);
        const uint64_t position = stream->push({std::move(name), std::move(work), false});
        if (place != nullptr) {
            *place = {stream->number(), position};
        }
        return ACL_SUCCESS;
    } catch (const Failure &failure) {
        set_recent_message(failure.what());
        return failure.code();
    } catch (const std::exception &error) {
        set_recent_message(error.what());
        return ACL_ERROR_INTERNAL_ERROR;
    }
}

} // namespace mock

using namespace mock;

aclError aclrtCreateStream(aclrtStream *stream) {
    return guarded("aclrtCreateStream", [&] { create_stream(stream, 0, 0); });
}

// Priority and flags change the speed of a stream only: they are kept and have no effect here.
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    return guarded("aclrtCreateStreamWithConfig", [&] { create_stream(stream, priority, flag); });
}

// Waits for what is queued: memory that tasks use may be freed afterwards. An error of the stream was for those who
// synchronise; destroying a failed stream is no failure.
aclError aclrtDestroyStream(aclrtStream stream) {
    return guarded("aclrtDestroyStream", [&] { take_stream(stream)->finish(); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
    return guarded("aclrtDestroyStreamForce", [&] {
        const std::shared_ptr<Stream> taken = take_stream(stream);
        taken->abort();
        taken->finish();
    });
}

aclError aclrtStreamAbort(aclrtStream stream) {
    return guarded("aclrtStreamAbort", [&] { usable_stream(stream)->abort(); });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
    return guarded("aclrtStreamQuery", [&] {
        require(status, "status");
        *status = find_stream(stream)->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
    return guarded("aclrtSynchronizeStream", [&] {
        count_blocking(-1);
        usable_stream(stream)->synchronize(-1);
    });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    return guarded("aclrtSynchronizeStreamWithTimeout", [&] {
        check_timeout(timeout);
        count_blocking(timeout);
        usable_stream(stream)->synchronize(timeout);
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

// Aborts all streams of the device; whoever waits for one of them learns why.
aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t) {
    return guarded("aclrtDeviceTaskAbort", [&] {
        check_device(deviceId);
        for (const auto &stream : streams().registry.all()) {
            if (stream->device() == deviceId) {
                stream->abort(ACL_ERROR_RT_DEVICE_TASK_ABORT);
            }
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
        *priority = find_stream(stream)->priority();
    });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags) {
    return guarded("aclrtStreamGetFlags", [&] {
        require(flags, "flags");
        *flags = find_stream(stream)->flags();
    });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    return guarded("aclrtSetStreamFailureMode", [&] {
        require(static_cast<char *>(stream), "stream");
        if (mode != ACL_CONTINUE_ON_FAILURE && mode != ACL_STOP_ON_FAILURE) {
            fail(ACL_ERROR_INVALID_PARAM, "no failure mode has number %llu", static_cast<unsigned long long>(mode));
        }
        usable_stream(stream)->set_goes_on(mode == ACL_CONTINUE_ON_FAILURE);
    });
}
