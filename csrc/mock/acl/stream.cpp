#include "stream.h"

#include <algorithm>
#include <atomic>

#include <pthread.h>
#include <sched.h>

#include "counters.h"
#include "device.h"
#include "order.h"

namespace mock {
namespace {

constexpr std::chrono::milliseconds LOOK(50); // who waits looks so often whether another stream has failed the context

thread_local Stream *own_stream = nullptr; // set on worker threads
thread_local std::string dropped_because;  // while the thread drops a task

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

} // namespace

// The queue of a stream is a ring in the device's memory, of which one place stays free. A call for which there is no place
// waits until a task ends, or for the end of the stream or context.
void Stream::await_room(std::unique_lock<std::mutex> &lock) {
    const uint64_t most = queue_places() - 1;
    const uint64_t aborts = aborts_;
    while (submitted_ - completed_ >= most && aborts_ == aborts && !closed_) {
        refuse_own_worker();
        awaited_ = std::min(awaited_, submitted_ - most + 1);
        done_.wait_for(lock, LOOK);
        context_.check();
    }
    if (aborts_ != aborts) {
        fail(ACL_ERROR_RT_STREAM_ABORT, "stream %d was aborted while a call waited for a place among its %llu tasks",
             number_, static_cast<unsigned long long>(most));
    }
}

uint64_t Stream::push(Task task) {
    context_.check();
    uint64_t position = 0;
    bool asleep = false;
    {
        std::unique_lock<std::mutex> lock(mutex_);
        await_room(lock);
        if (closed_) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "stream %d was destroyed", number_);
        }
        if (!worker_.joinable()) {
            start_worker();
        }
        if (submitted_ == completed_) {
            begun_ = Clock::now();
        }
        queue_.push_back(std::move(task));
        position = ++submitted_;
        asleep = asleep_ && !host_runs_ && !host_expected_;
        asleep_ = asleep_ && !asleep;
    }
    if (asleep) {
        count(Counter::Wakes);
        wake_.notify_one();
    }
    return position;
}

// Where a host is expected to run the tasks, the worker is not woken, but looks now and then whether the host has come.
void Stream::await_task(std::unique_lock<std::mutex> &lock) {
    const auto due = [&] { return !busy_ && !host_runs_ && (!queue_.empty() || closed_); };
    if (!due()) {
        lock.unlock();
        comes_soon([&] { return closed_ || (submitted_ != completed_ && !busy_ && !host_runs_); });
        lock.lock();
    }
    while (!due()) {
        if (host_expected_ && !closed_) {
            poll(lock);
        } else {
            asleep_ = true;
            wake_.wait(lock);
        }
    }
    asleep_ = false;
}

// Until a task is left that was there at the look before, or nothing has come for many looks.
void Stream::poll(std::unique_lock<std::mutex> &lock) {
    constexpr int MOST_IDLE = 20;
    uint64_t before = submitted_;
    for (int idle = 0; host_expected_ && !closed_; before = submitted_) {
        asleep_ = true;
        wake_.wait_for(lock, SOON);
        idle = submitted_ == before && !host_runs_ ? idle + 1 : 0;
        host_expected_ = host_expected_ && (host_runs_ || completed_ >= before) && idle < MOST_IDLE;
    }
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
        run_first(lock, true);
    }
}

// Runs the first task, or drops it if the stream has stopped. False if it would have to sleep and may not: it is the first
// one again then, and goes on where it was.
bool Stream::run_first(std::unique_lock<std::mutex> &lock, bool may_sleep) {
    Outcome outcome;
    bool done = true;
    const bool skipped = mode_ == Mode::Stopped;
    if (!may_sleep && !queue_.front().brief && !queue_.front().attempt) {
        return false;
    }
    busy_ = true;
    {
        Task task = std::move(queue_.front());
        queue_.pop_front();
        running_ = task.name;
        dropped_because = skipped ? error_.text : "";
        lock.unlock();
        if (!skipped) {
            done = run(task, may_sleep, cancelled_, &outcome);
        } else if (task.dropped) {
            task.dropped(error_.code);
        }
        if (!done) {
            lock.lock();
            if (!cancelled_) {
                queue_.push_front(std::move(task));
                busy_ = false;
                return false;
            }
            lock.unlock();
            run(task, true, cancelled_, &outcome); // who aborts it waits for its end
        }
    } // what the task holds is released before it counts as ended
    lock.lock();
    ended(std::move(outcome));
    return true;
}

bool Stream::run(Task &task, bool may_sleep, const Cancelled &cancelled, Outcome *outcome) {
    try {
        if (!may_sleep && !task.brief) {
            return task.attempt(cancelled, outcome);
        }
        *outcome = task.work(cancelled);
    } catch (const std::exception &error) {
        *outcome = {ACL_ERROR_RT_INTERNAL_ERROR, task.name + ": " + error.what()};
    }
    return true;
}

void Stream::ended(Outcome outcome) {
    if (outcome.code != ACL_SUCCESS && !cancelled_) {
        keep_error(std::move(outcome));
    }
    busy_ = false;
    cancelled_ = false;
    completed_++;
    runs_ended_++;
    if (completed_ >= awaited_ || aborting_ > 0) {
        awaited_ = NOBODY; // whoever waits for more says so again
        count(Counter::Wakes);
        done_.notify_all();
    }
}

// By default a stream goes on after a failure, and the next synchronisation tells it. If the context is to stop, the
// failure is that of the context, for good, and this stream drops what is queued.
void Stream::keep_error(Outcome outcome) {
    if (context_.stops()) {
        context_.fail(outcome);
        mode_ = Mode::Stopped;
        error_ = std::move(outcome);
        return;
    }
    constexpr size_t MOST_TEXT = 4096;
    const bool known = error_.text.find(outcome.text) != std::string::npos;
    error_.code = outcome.code;
    if (!known && error_.text.size() < MOST_TEXT) {
        error_.text += (error_.text.empty() ? "" : "; then ") + outcome.text;
    }
}

// While ranks have a core each, what is queued runs on the thread of the host that waits for it, until a task has to sleep.
void Stream::run_as_host(std::unique_lock<std::mutex> &lock, const Position &position, Clock::time_point limit) {
    const auto ended = [&] { return completed_ >= position.submitted; };
    if (host_runs_ || ended() || patience().count() == 0) {
        return;
    }
    const bool at_once = Clock::now() - begun_ < SOON;
    bool ran = false;
    host_runs_ = true;
    while (!ended() && aborts_ == position.aborts && !context_.failed() && Clock::now() < limit) {
        if (busy_) { // the worker runs one
            lock.unlock();
            const bool free = comes_soon([&] { return !busy_; });
            lock.lock();
            if (!free) {
                break;
            }
        } else if (queue_.empty() || !run_first(lock, false)) { // empty: somebody aborts it
            break;
        } else {
            ran = true;
        }
    }
    host_runs_ = false;
    const bool expected = at_once && ran && ended() && queue_.empty();
    const bool newly = expected && !host_expected_;
    host_expected_ = expected;
    if (asleep_ && (newly || !queue_.empty() || closed_)) {
        asleep_ = false;
        count(Counter::Wakes);
        wake_.notify_one();
    }
}

// Waits until so many tasks have ended, or the context has failed.
void Stream::await_end(std::unique_lock<std::mutex> &lock, const Position &position, Clock::time_point limit,
                       int timeout_ms) {
    while (completed_ < position.submitted && aborts_ == position.aborts) {
        context_.check();
        awaited_ = std::min(awaited_, position.submitted);
        done_.wait_until(lock, std::min(limit, Clock::now() + LOOK));
        if (Clock::now() >= limit && completed_ < position.submitted) {
            count(Counter::ExpiredWaits);
            fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                 "stream %d of device %d did not end in %d ms: %llu tasks left, now in %s", number_, device(),
                 timeout_ms, static_cast<unsigned long long>(position.submitted - completed_),
                 busy_ || queue_.empty() ? running_.c_str() : queue_.front().name.c_str());
        }
    }
}

void Stream::refuse_own_worker() const {
    if (own_stream == this) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "a callback of stream %d cannot wait for that stream", number_);
    }
}

// -1 waits for ever.
void Stream::synchronize(int timeout_ms) {
    refuse_own_worker();
    context_.check();
    const auto limit = timeout_ms < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(timeout_ms);
    std::unique_lock<std::mutex> lock(mutex_);
    const Position position{submitted_, aborts_};
    run_as_host(lock, position, limit);
    lock.unlock();
    comes_soon_to_host([&] { return completed_ >= position.submitted; });
    lock.lock();
    await_end(lock, position, limit, timeout_ms);
    if (aborts_ != position.aborts) {
        fail(abort_code_, "stream %d was aborted", number_);
    }
    host_sees(position.submitted);
    order_seen(order_through(number_, position.submitted));
    context_.check();
    if (error_.code != ACL_SUCCESS) {
        const Outcome error = std::exchange(error_, {});
        throw Failure(error.code, error.text);
    }
}

uint64_t Stream::completed() {
    std::lock_guard<std::mutex> lock(mutex_);
    return completed_;
}

bool Stream::idle() {
    context_.check();
    std::lock_guard<std::mutex> lock(mutex_);
    if (completed_ < submitted_) {
        return false;
    }
    host_sees(submitted_);
    order_seen(order_through(number_, submitted_));
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
    mode_ = stop_wanted_ ? Mode::Stop : Mode::Continue;
    cancelled_ = busy_.load();
    const uint64_t runs = runs_ended_ + (busy_ ? 1 : 0);
    lock.unlock();
    const size_t count = dropped.size();
    for (Task &task : dropped) {
        if (task.dropped) {
            task.dropped(code);
        }
    }
    dropped.clear();
    lock.lock();
    done_.notify_all();
    aborting_++;
    done_.wait(lock, [&] { return runs_ended_ >= runs; });
    aborting_--;
    completed_ += count;
    host_sees(completed_);
    order_seen(order_through(number_, completed_));
    done_.notify_all();
}

void Stream::host_sees(uint64_t ended) {
    uint64_t seen = seen_;
    while (seen < ended && !seen_.compare_exchange_weak(seen, ended)) {
    }
}

// One change is possible, from continue to stop, and it is the whole context that stops from then on.
void Stream::set_failure_mode(bool stop) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (mode_ == (stop ? Mode::Stop : Mode::Continue)) {
        return;
    }
    if (mode_ == Mode::Stop || (mode_ == Mode::Stopped && stop_wanted_)) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "stream %d stops on failure%s, which cannot be changed any more",
             number_, mode_ == Mode::Stopped ? " and has stopped" : "");
    }
    if (&context_ != &require_context()) {
        fail(ACL_ERROR_RT_STREAM_CONTEXT, "stream %d belongs to another context than this thread's", number_);
    }
    mode_ = stop ? Mode::Stop : Mode::Continue;
    stop_wanted_ = stop_wanted_ || stop;
    context_.stop_on_failure();
}

void Stream::close() {
    refuse_own_worker();
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    wake_.notify_all();
}

// A task that never ends, such as a wait for a record that was aborted, holds this up for ever: said once.
void Stream::finish() {
    constexpr std::chrono::seconds PATIENCE(30);
    {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto ended = [&] {
            awaited_ = std::min<uint64_t>(awaited_, submitted_); // said again whenever others were told
            return completed_ >= submitted_;
        };
        if (!done_.wait_for(lock, PATIENCE, ended)) {
            warn_once(
                format("stream %d of device %d is to be destroyed and still waits, after %lld s, for the end of %s",
                       number_, device(), static_cast<long long>(PATIENCE.count()), running_.c_str()));
        }
    }
    if (worker_.joinable()) { // nobody starts one any more
        worker_.join();
    }
    order_end(number_);
}

const std::string &drop_reason() { return dropped_because; }

void host_learns() { order_seen(order_through(own_stream->number(), own_stream->completed())); }

} // namespace mock
