// Streams: a queue of tasks with one worker thread each, started at the first task.

#ifndef ASCEND_MOCK_ACL_STREAM_H
#define ASCEND_MOCK_ACL_STREAM_H

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "failure.h"

namespace mock {

struct Task {
    std::string name;
    Work work;
    bool always = false; // runs even after an earlier task of the stream has failed
};

class Stream : public std::enable_shared_from_this<Stream> {
public:
    Stream(int device, int number, uint32_t priority = 0, uint32_t flags = 0)
        : device_(device), number_(number), priority_(priority), flags_(flags) {}

    int device() const { return device_; }
    int number() const { return number_; }
    uint32_t priority() const { return priority_; }
    uint32_t flags() const { return flags_; }
    // Whether tasks run after another one has failed (aclrtSetStreamFailureMode).
    void set_goes_on(bool goes_on) { goes_on_ = goes_on; }
    // Returns the task's position in the queue, from 1.
    uint64_t push(Task task);
    // Waits until what is queued now has ended. -1 waits for ever, 0 only looks. Throws the stream's error.
    void synchronize(int timeout_ms);
    // Number of tasks that have ended.
    uint64_t completed();
    // Whether everything queued has ended.
    bool idle();
    // Drops what is queued, ends what waits, and makes the stream usable again. Who synchronises gets the code.
    void abort(aclError code = ACL_ERROR_RT_STREAM_ABORT);
    // No more tasks from now on.
    void close();
    // After close: waits for what is queued, and for the end of the worker.
    void finish();

private:
    static constexpr uint64_t NOBODY = ~0ULL;
    struct Position { // how far synchronize has to wait
        uint64_t submitted;
        uint64_t aborts;
    };
    void start_worker();
    void work();
    void await_task(std::unique_lock<std::mutex> &lock);
    void await_end(std::unique_lock<std::mutex> &lock, uint64_t position, int timeout_ms);
    Outcome run(Task &task);
    void throw_error() const;
    void refuse_own_worker() const;

    const int device_;
    const int number_;
    const uint32_t priority_;
    const uint32_t flags_;
    std::atomic<bool> goes_on_{false};
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    std::deque<Task> queue_;
    uint64_t submitted_ = 0;
    uint64_t completed_ = 0;
    uint64_t awaited_ = NOBODY; // the lowest number of ended tasks that somebody waits for
    int aborting_ = 0;          // threads that wait for the end of the task that runs
    bool asleep_ = false;       // the worker
    uint64_t runs_ended_ = 0; // as completed_, without the tasks that an abort dropped
    uint64_t aborts_ = 0;
    aclError abort_code_ = ACL_ERROR_RT_STREAM_ABORT;
    std::thread worker_;
    std::string running_;
    Outcome error_; // the first failure; stays
    Cancelled cancelled_{false};
    bool busy_ = false;
    bool closed_ = false;
};

// The stream behind a handle; NULL is the default stream of the current device. Fails with 107017.
std::shared_ptr<Stream> find_stream(aclrtStream handle);
// The same, for a call that works on the stream: the thread needs a device, and it must be the stream's.
std::shared_ptr<Stream> usable_stream(aclrtStream handle);

// For a task that runs work of the host, which may tell the host's threads that all before it has ended.
void host_learns();

} // namespace mock

#endif
