// One record of an event in a stream's queue. It outlives the event as long as a task of a stream refers to it.

#ifndef ASCEND_MOCK_ACL_EVENT_RECORD_H
#define ASCEND_MOCK_ACL_EVENT_RECORD_H

#include <condition_variable>
#include <memory>
#include <mutex>

#include "context.h"
#include "counters.h"
#include "order.h"

namespace mock {

class Stream;

class EventRecord {
public:
    // The record has run.
    void complete() { end(State::Done, ACL_SUCCESS); }
    // It never will: its stream was aborted, or stopped. For the host that is as good as done; a stream that waits for it
    // waits on.
    void lose(aclError why) { end(State::Lost, why); }

    bool done() const { return state() == State::Done; }
    bool ended() const { return state() != State::Pending; } // as the host sees it
    aclError loss() const {
        std::lock_guard<std::mutex> lock(mutex_);
        return loss_;
    }
    Clock::time_point when() const {
        std::lock_guard<std::mutex> lock(mutex_);
        return when_;
    }
    // A stream's wait; false if the time is over.
    bool await_done(std::chrono::milliseconds limit) {
        return await(limit, [this] { return state_ == State::Done; });
    }
    // The host's.
    bool await_end(std::chrono::milliseconds limit) {
        return await(limit, [this] { return state_ != State::Pending; });
    }

    // Set before others see the record:
    Before before;                    // what a wait for it comes after
    const Context *context = nullptr; // of its stream
    std::weak_ptr<Stream> stream;
    uint64_t position = 0;        // in the stream's queue
    std::weak_ptr<void> resource; // the device's event that it takes until the record and waits for it have ended

private:
    enum class State { Pending, Done, Lost };
    State state() const {
        std::lock_guard<std::mutex> lock(mutex_);
        return state_;
    }
    void end(State state, aclError loss) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (state_ == State::Pending) {
            when_ = Clock::now();
            loss_ = loss;
            state_ = state;
            if (sleepers_ > 0) {
                count(Counter::Wakes);
                changed_.notify_all();
            }
        }
    }
    template <class Condition>
    bool await(std::chrono::milliseconds limit, Condition condition) {
        std::unique_lock<std::mutex> lock(mutex_);
        sleepers_++;
        const bool come = changed_.wait_for(lock, limit, condition);
        sleepers_--;
        return come;
    }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    int sleepers_ = 0;
    State state_ = State::Pending;
    aclError loss_ = ACL_SUCCESS;
    Clock::time_point when_;
};

} // namespace mock

#endif
