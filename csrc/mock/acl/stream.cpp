#include "stream.h"

#include <atomic>
#include <map>

#include <pthread.h>
#include <signal.h>

#include "device.h"
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

thread_local const Stream *own_stream = nullptr; // set on worker threads

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

void create_stream(aclrtStream *handle) {
    require(handle, "stream");
    const int device = require_device();
    *handle = streams().registry.add(std::make_shared<Stream>(device, streams().count++));
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

void synchronize_device(int timeout_ms) {
    const int device = require_device();
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

void Stream::push(Task task) {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (closed_) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "stream %d was destroyed", number_);
        }
        if (!worker_.joinable()) {
            start_worker();
        }
        queue_.push_back(std::move(task));
        submitted_++;
    }
    wake_.notify_one();
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
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return !queue_.empty() || closed_; });
        if (queue_.empty()) {
            return;
        }
        Outcome outcome;
        const bool skipped = error_.code != ACL_SUCCESS && !queue_.front().always;
        busy_ = true;
        {
            Task task = std::move(queue_.front());
            queue_.pop_front();
            running_ = task.name;
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
        done_.notify_all();
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
    const auto ended = [&] { return completed_ >= position.submitted; };
    if (timeout_ms < 0) {
        done_.wait(lock, ended);
    } else if (!done_.wait_for(lock, std::chrono::milliseconds(timeout_ms), ended)) {
        fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream %d of device %d did not end in %d ms: %llu tasks left, now in %s",
             number_, device_, timeout_ms, static_cast<unsigned long long>(position.submitted - completed_),
             running_.c_str());
    }
    if (aborts_ != position.aborts) {
        fail(ACL_ERROR_RT_STREAM_ABORT, "stream %d was aborted", number_);
    }
    throw_error();
}

bool Stream::idle() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (completed_ < submitted_) {
        return false;
    }
    throw_error();
    return true;
}

void Stream::abort() {
    refuse_own_worker();
    std::deque<Task> dropped;
    std::unique_lock<std::mutex> lock(mutex_);
    dropped.swap(queue_);
    aborts_++;
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
    done_.wait(lock, [&] { return runs_ended_ >= runs; });
    completed_ += count;
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
}

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

aclError enqueue(aclrtStream handle, std::string name, Work work) {
    try {
        find_stream(handle)->push({std::move(name), std::move(work), false});
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
    return guarded("aclrtCreateStream", [&] { create_stream(stream); });
}

// Priority and flags change the speed of a stream only, so they have no effect here.
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t, uint32_t) {
    return guarded("aclrtCreateStreamWithConfig", [&] { create_stream(stream); });
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
    return guarded("aclrtSynchronizeStream", [&] { usable_stream(stream)->synchronize(-1); });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    return guarded("aclrtSynchronizeStreamWithTimeout", [&] {
        check_timeout(timeout);
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

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
    return guarded("aclrtLaunchCallback", [&] {
        require(reinterpret_cast<void *>(fn), "fn");
        if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK) {
            fail(ACL_ERROR_INVALID_PARAM, "no block type has number %d", static_cast<int>(blockType));
        }
        usable_stream(stream)->push({"a callback",
                                     [fn, userData](const Cancelled &) {
                                         fn(userData);
                                         return Outcome{};
                                     },
                                     false});
    });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) {
    return guarded("aclrtLaunchHostFunc", [&] {
        require(reinterpret_cast<void *>(fn), "fn");
        usable_stream(stream)->push({"a host function",
                                     [fn, args](const Cancelled &) {
                                         fn(args);
                                         return Outcome{};
                                     },
                                     false});
    });
}
