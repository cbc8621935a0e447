// Contexts: the primary one of each device and those that a program makes. Streams and failures belong to a context.

#ifndef ASCEND_MOCK_ACL_CONTEXT_H
#define ASCEND_MOCK_ACL_CONTEXT_H

#include <atomic>
#include <mutex>
#include <vector>

#include "failure.h"

namespace mock {

// A few bytes that stay for ever, so that a thread may keep the address of a destroyed one.
class Context {
public:
    explicit Context(int device = -1) : device_(device) {}

    int device() const { return device_; }
    bool alive() const { return alive_; }
    void set_device(int device) { device_ = device; } // while it is made
    // It begins anew, without a failure.
    void begin();
    void end() { alive_ = false; }

    // aclrtSetStreamFailureMode, and HCCL on AI CPUs: from now on the first failed task of any of its streams fails the context.
    void stop_on_failure() { stops_ = true; }
    bool stops() const { return stops_; }
    // Keeps the first failure.
    void fail(const Outcome &outcome);
    // Ends it: recovery of the device.
    void recover();
    // Throws the failure, if there is one.
    void check() const;
    bool failed() const { return failed_; }

private:
    int device_;
    std::atomic<bool> alive_{false};
    std::atomic<bool> stops_{false};
    std::atomic<bool> failed_{false};
    mutable std::mutex mutex_;
    Outcome failure_;
};

// Live contexts of a device.
std::vector<Context *> contexts_of(int device);
// The calling thread's context, if it has one that lives.
Context *current_context();
// The same, or a failure with 107002.
Context &require_context();

} // namespace mock

#endif
