// The steps that operations are made of: post, wait for posts, read the peer's memory, acknowledge.

#ifndef ASCEND_MOCK_HCCL_EXECUTION_H
#define ASCEND_MOCK_HCCL_EXECUTION_H

#include <memory>
#include <set>
#include <vector>

#include "activity.h"
#include "comm.h"

namespace mock {

// An operation that runs. Its waits sleep if they may; else they give up what does not come soon and return false, and the
// operation goes on later where it was.
class Execution {
public:
    Execution(Comm &comm, const Operation &operation, const Cancelled &cancelled);
    ~Execution();
    Execution(const Execution &) = delete;
    Execution &operator=(const Execution &) = delete;

    const Operation &operation() const { return operation_; }
    uint32_t rank() const { return comm_.rank(); }
    uint32_t size() const { return comm_.size(); }
    const std::vector<uint32_t> &others() const { return others_; }
    bool may_sleep = true;
    const Activity shown; // to peers that wait in vain

    // How far it is.
    struct Progress {
        bool posted = false;
        uint64_t offset = 0;                    // collectives: where the peers find what this rank gives
        std::vector<uint32_t> receivers;        // transfers: of what this rank sends
        std::vector<const Transfer *> receives; // that are left
        std::vector<uint32_t> under_way;        // peers whose data comes over the wire
    };
    Progress progress;

    // Tells a peer what this rank runs and where its data lies.
    void post(uint32_t peer, const Signature &signature, uint64_t offset);
    // Waits for the peers' posts; with `any` until at least one is there.
    bool await_posts(const std::vector<uint32_t> &peers, bool any = false);
    bool has_post(uint32_t peer) const;
    // The peer's post, which must be what this rank expects; once per post.
    const Post &take(uint32_t peer, const Signature &expected);
    // Brings bytes of the peer's memory to `target`: at once (true) where that memory is mapped, else they are there after
    // `finish`.
    bool fetch(uint32_t peer, uint64_t offset, char *target, uint64_t bytes);
    // Where the peer's bytes can be read: in its memory if that is mapped, else in a copy, which is there after `finish`.
    const char *read(uint32_t peer, uint64_t offset, uint64_t bytes);
    void finish();
    // Copies at most STAGE_BYTES to where peers may read them even after this rank has ended the operation; returns where.
    uint64_t stage(const char *data, uint64_t bytes);
    // Whether the peer's memory is mapped here.
    bool is_mapped(uint32_t peer) const { return comm_.link(peer).wire == nullptr; }
    // Tells a peer that this rank is done with a phase that the peer waits for.
    void acknowledge(uint32_t peer);
    bool await_acknowledgements(const std::vector<uint32_t> &peers);

private:
    template <class Missing>
    bool wait(std::vector<uint32_t> peers, bool any, const char *what, Missing missing);
    void check(const std::vector<uint32_t> &missing, const char *what) const;
    std::chrono::seconds limit() const; // of a wait for peers
    std::string activity(uint32_t peer) const;

    Comm &comm_;
    const Operation &operation_;
    const Cancelled &cancelled_;
    const Clock::time_point start_ = Clock::now();
    const std::vector<uint32_t> others_;          // all ranks but this one
    std::set<uint32_t> fetching_;                 // peers that owe data
    std::vector<std::unique_ptr<char[]>> copies_; // of remote memory that is read
};

// Collectives and point-to-point operations, each for one rank. False if they have to go on later.
bool run_collective(Execution &execution);
bool run_transfers(Execution &execution);
bool run_operation(Execution &execution);
// Whether what each rank gives to the collective is so small that it waits in the stage.
bool is_staged(const Signature &signature);
// Whether all waits of the operation can be left and taken up again, among ranks that map each other's memory.
bool can_be_left(const Signature &signature);

} // namespace mock

#endif
