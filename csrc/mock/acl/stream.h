// Streams: a queue of tasks with one worker thread each, started at the first task. A host that waits for a stream runs its
// tasks meanwhile, as long as none of them has to sleep: then nobody has to be woken.

#ifndef ASCEND_MOCK_ACL_STREAM_H
#define ASCEND_MOCK_ACL_STREAM_H

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "context.h"

namespace mock {

struct Task {
    std::string name;
    Work work;
    std::function<void(aclError)> dropped = {}; // called instead of the work, with the reason, if it never runs
    Attempt attempt = {};                       // what a host that waits for the stream may run of it
    bool brief = false;                         // it waits for nobody: the host may run it whole
};

class Stream : public std::enable_shared_from_this<Stream> {
public:
    Stream(Context &context, int number, uint32_t priority = 0, uint32_t flags = 0)
        : context_(context), number_(number), priority_(priority), flags_(flags) {}

    Context &context() const { return context_; }
    int device() const { return context_.device(); }
    int number() const { return number_; }
    uint32_t priority() const { return priority_; }
    uint32_t flags() const { return flags_; }
    // Returns the task's position in the queue, from 1. Waits for room where the queue is full. Fails if the context has failed.
    uint64_t push(Task task);
    // The same for work that waits for nobody.
    uint64_t push_brief(std::string name, Work work, std::function<void(aclError)> dropped = {}) {
        return push({std::move(name), std::move(work), std::move(dropped), {}, true});
    }
    // Waits until what is queued now has ended. -1 waits for ever. Throws the error of its tasks, once.
    void synchronize(int timeout_ms);
    // Number of tasks that have ended.
    uint64_t completed();
    // Whether everything queued has ended, well or not.
    bool idle();
    // Number of tasks of whose end a synchronisation or a query has told the host.
    uint64_t seen() const { return seen_; }
    void host_sees(uint64_t ended);
    // Drops what is queued, ends what waits, and makes the stream usable again. Who synchronises gets the code.
    void abort(aclError code = ACL_ERROR_RT_STREAM_ABORT);
    // aclrtSetStreamFailureMode. Fails where the mode cannot be changed any more.
    void set_failure_mode(bool stop);
    // No more tasks from now on.
    void close();
    // After close: waits for what is queued, and for the end of the worker.
    void finish();

private:
    static constexpr uint64_t NOBODY = ~0ULL;
    static constexpr std::chrono::microseconds SOON{500}; // from a first task to the host that waits for it
    struct Position {                                     // how far synchronize has to wait
        uint64_t submitted;
        uint64_t aborts;
    };
    enum class Mode { Continue, Stop, Stopped };
    void start_worker();
    void work();
    void await_room(std::unique_lock<std::mutex> &lock);
    void await_task(std::unique_lock<std::mutex> &lock);
    void poll(std::unique_lock<std::mutex> &lock);
    void run_as_host(std::unique_lock<std::mutex> &lock, const Position &position, Clock::time_point limit);
    void await_end(std::unique_lock<std::mutex> &lock, const Position &position, Clock::time_point limit,
                   int timeout_ms);
    bool run_first(std::unique_lock<std::mutex> &lock, bool may_sleep);
    static bool run(Task &task, bool may_sleep, const Cancelled &cancelled, Outcome *outcome);
    void ended(Outcome outcome);
    void keep_error(Outcome outcome);
    void refuse_own_worker() const;

    Context &context_;
    const int number_;
    const uint32_t priority_;
    const uint32_t flags_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    std::deque<Task> queue_;
    std::atomic<uint64_t> submitted_{0}; // changes under the mutex, as the next two
    std::atomic<uint64_t> completed_{0};
    std::atomic<bool> closed_{false};
    std::atomic<uint64_t> seen_{0};
    uint64_t awaited_ = NOBODY; // the lowest number of ended tasks that somebody waits for
    int aborting_ = 0;          // threads that wait for the end of the task that runs
    bool asleep_ = false;       // the worker
    uint64_t runs_ended_ = 0;   // as completed_, without the tasks that an abort dropped
    uint64_t aborts_ = 0;
    aclError abort_code_ = ACL_ERROR_RT_STREAM_ABORT;
    std::thread worker_;
    std::string running_;
    Mode mode_ = Mode::Continue;
    bool stop_wanted_ = false; // as it was set; mode_ becomes that again after an abort
    Outcome error_;            // of the tasks since the last synchronisation: code of the last, sentences of all
    Cancelled cancelled_{false};
    std::atomic<bool> busy_{false};      // a task runs; changes under the mutex, as the next
    std::atomic<bool> host_runs_{false}; // a host runs tasks, and the worker leaves them to it
    bool host_expected_ = false;         // to come soon and run what is queued next, as the last one that waited did
    Clock::time_point begun_;            // when the first of the tasks that have not ended was queued
};

// The stream behind a handle; NULL is the default stream of the current context. Fails with 107017.
std::shared_ptr<Stream> find_stream(aclrtStream handle);
// The same, for a call that works on the stream: it must belong to the thread's context (107003).
std::shared_ptr<Stream> usable_stream(aclrtStream handle);
// A new one in the thread's context.
aclrtStream make_stream(uint32_t priority, uint32_t flags);
// The stream for its destruction: closed, and nobody finds it any more.
std::shared_ptr<Stream> take_stream(aclrtStream handle);
// Live streams of a device.
std::vector<std::shared_ptr<Stream>> streams_of(int device);
std::vector<std::shared_ptr<Stream>> streams_of(const Context &context);
// Ends all streams of a context that has ended, after their tasks.
void end_streams(const Context &context);

// For a task that runs work of the host, which may tell the host's threads that all before it has ended.
void host_learns();

} // namespace mock

#endif
