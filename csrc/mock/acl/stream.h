// Streams: a queue of tasks with one worker thread each, started at the first task.

#ifndef ASCEND_MOCK_ACL_STREAM_H
#define ASCEND_MOCK_ACL_STREAM_H

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
    Stream(int device, int number) : device_(device), number_(number) {}

    int device() const { return device_; }
    void push(Task task);
    // Waits until what is queued now has ended. -1 waits for ever, 0 only looks. Throws the stream's error.
    void synchronize(int timeout_ms);
    // Whether everything queued has ended.
    bool idle();
    // Drops what is queued, ends what waits, and makes the stream usable again.
    void abort();
    // No more tasks from now on.
    void close();
    // After close: waits for what is queued, and for the end of the worker.
    void finish();

private:
    struct Position { // how far synchronize has to wait
        uint64_t submitted;
        uint64_t aborts;
    };
    void start_worker();
    void work();
    Outcome run(Task &task);
    void throw_error() const;
    void refuse_own_worker() const;

    const int device_;
    const int number_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    std::deque<Task> queue_;
    uint64_t submitted_ = 0;
    uint64_t completed_ = 0;
    uint64_t runs_ended_ = 0; // as completed_, without the tasks that an abort dropped
    uint64_t aborts_ = 0;
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

} // namespace mock

#endif
