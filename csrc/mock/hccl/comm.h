// A communicator as one of its members sees it.

#ifndef ASCEND_MOCK_HCCL_COMM_H
#define ASCEND_MOCK_HCCL_COMM_H

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "activity.h"
#include "block.h"
#include "claim.h"
#include "network.h"
#include "operation.h"
#include "peers.h"
#include "settings.h"
#include "wire.h"

namespace mock {

struct Member {
    uint32_t world_rank = 0;
    int physical_device = 0;
    uint32_t server = 0; // its place in the rank table
};

// Where a communicator comes from; `Older` is a world of the older layer (hcom).
enum class Origin { Table, RootInfo, Older, Parent };

// What the way of creation (rank table, root info, parent) has to supply.
struct CommPlan {
    std::string id;   // the same on all members, and different for every other communicator
    std::string name; // as HcclGetCommName tells it
    uint32_t rank = 0;
    int device = 0; // this process's number of it
    std::vector<Member> members;
    Settings settings;
    Origin origin = Origin::RootInfo;
    std::unique_ptr<Claim> claim;     // for a world made from a rank table
    std::shared_ptr<Network> network; // empty if every peer is reached by shared memory
};

struct LocalMember;

// The way to one peer: its memory, and the slots by which the two tell each other where they are; or a connection.
struct Link {
    std::atomic<bool> connected{false}; // set last: the rest is valid from then on
    std::shared_ptr<PeerArena> process; // empty for a rank of this process
    char *base = nullptr;               // the peer's arena
    uint64_t arena_bytes = 0;
    const Board *board = nullptr; // what the peer's device does
    std::shared_ptr<Wire> wire;   // instead of all these for a peer that is reached by TCP
    Header *header = nullptr;     // the peer's, or what it said of it
    Slot *there = nullptr;        // ours in the peer's block
    Slot *here = nullptr;         // the peer's in ours
    std::string problem;          // why it is not connected, as far as that is known
    uint64_t kinds = 0;           // built; host calls only, as the next
    bool offered = false;         // the peer was told where our block lies

    // Counters of the running operation's side; one operation runs at a time.
    uint32_t posted = 0;
    uint32_t taken = 0;
    uint32_t acknowledgements_sent = 0;
    uint32_t acknowledgements_seen = 0;
    uint32_t fetches = 0; // asked for over the wire

    bool alive() const { return wire != nullptr ? wire->open() : process == nullptr || process->alive(); }
    // What the peer's device does for other communicators than this one, for messages.
    std::string elsewhere(const std::string &comm) const;
    // Say to the peer what was posted, that a phase was finished with, which links are wanted.
    void post(const Post &post);
    void acknowledge();
    void offer(uint64_t kind, Op building);
};

class Comm : public std::enable_shared_from_this<Comm> {
public:
    explicit Comm(CommPlan plan);
    ~Comm();
    Comm(const Comm &) = delete;
    Comm &operator=(const Comm &) = delete;

    uint32_t rank() const { return plan_.rank; }
    uint32_t size() const { return static_cast<uint32_t>(plan_.members.size()); }
    int device() const { return plan_.device; }
    const CommPlan &plan() const { return plan_; }
    Block &block() const { return *block_; }
    uint64_t block_offset() const { return block_offset_; }
    // The offset in the arena of the stage that is free; all members must run an operation that takes one.
    uint64_t take_stage() { return block_offset_ + Block::stage(size(), stages_taken_++); }
    Board *board() const { return board_; }
    uint64_t board_offset() const { return board_offset_; }
    char *arena() const { return arena_.base; }
    const ArenaView &arena_view() const { return arena_; }
    Link &link(uint32_t peer) { return links_[peer]; }
    bool closing() const { return closing_; }
    std::atomic<bool> suspended{false}; // takes no operations
    // "communicator X, rank 3 of 16" and "rank 5 (world rank 13)", for messages.
    const std::string &self() const { return self_; }
    std::string peer_name(uint32_t peer) const;
    static constexpr size_t MOST_NAMED = 16; // a message tells of so many peers
    std::string peer_names(const std::vector<uint32_t> &peers) const;

    // Queues the operation on the stream, after its links were built in this call.
    void submit(Operation operation, const std::vector<uint32_t> &peers, aclrtStream stream);
    // Notes the first failure; all later calls fail with it, and peers that wait for this rank learn of it.
    void fail(HcclResult code, const std::string &text);
    // Whether any communicator of this process has failed.
    static bool any_failed();
    // Throws that failure, if there is one.
    void check_failed();
    HcclResult asynchronous_error();
    // Counts the sub-communicators of one name, so that a second one is not mistaken for the first.
    uint32_t next_generation(const std::string &name);
    // Ends it at once, whatever is queued: the vendor's library does not know. Refused only while a host call of another
    // thread is in it and does not wait for links.
    void destroy();

    // Attach the peer's block; for the thread that builds links. The second form is for a rank that is a thread of this
    // process: false if there is none.
    void attach(uint32_t peer, char *base, uint64_t arena_bytes, uint64_t block_offset, const Board *board,
                std::shared_ptr<PeerArena> process);
    bool attach_local(uint32_t peer);
    void attach_wire(uint32_t peer, Descriptor socket);
    bool by_tcp(uint32_t peer) const;
    // What the peer has begun with this rank, which has nothing queued: it waits for this rank's next operation.
    bool awaited(uint32_t peer, Post *post);
    // Throws if the peer cannot answer any more (it failed, left, or its process ended) and its answer is still missing.
    void check_peer(uint32_t peer, bool late, const std::function<bool()> &still_missing);
    Descriptor &listener() { return listener_; }
    std::string listener_name(uint32_t rank) const { return plan_.id + "-" + std::to_string(rank); }
    std::string members_digest() const;

private:
    class Pending;
    class InUse;
    bool execute(Pending &pending, const Cancelled &cancelled, bool may_sleep, Outcome *outcome);
    bool all_mapped() const;
    Outcome failed_outcome();
    void alarm_everybody();
    void leave(const Operation &operation);
    void check_order(const Operation &operation, aclrtStream stream);
    void check_context();
    void take_buffers();
    std::string pending_names() const;
    LocalMember take_block();
    void retire();
    uint64_t buffer_bytes() const { return (2ULL * plan_.settings.buffer_mb) << 20; }

    CommPlan plan_;
    const std::string self_;
    ArenaView arena_;
    uint64_t block_offset_ = 0;
    Block *block_ = nullptr;
    uint64_t board_offset_ = 0;
    Board *board_ = nullptr;
    std::unique_ptr<Link[]> links_;
    Descriptor listener_;

    std::mutex host_; // one host call at a time builds links; guards the next
    bool buffers_taken_ = false;
    std::mutex running_; // one operation at a time runs; guards the next
    uint32_t stages_taken_ = 0;
    std::mutex submitting_; // guards the next three
    uint64_t serial_ = 0;
    Place last_; // of the operation that was submitted last
    Signature last_signature_;
    std::mutex state_; // guards the fields below
    HcclResult code_ = HCCL_SUCCESS;
    std::string text_;
    std::map<std::string, uint32_t> generations_;
    std::map<uint64_t, Signature> pending_; // operations queued or running, by number
    std::vector<uint64_t> held_;            // memory of operations that go on
    bool destroyed_ = false;
    bool under_work_ = false; // it was destroyed while operations needed it
    std::atomic<bool> retired_{false};
    std::atomic<int> in_use_{0}; // host calls that queue something
    std::atomic<bool> closing_{false};
    // Of its own streams, from the first operation with another rank on; guarded by host_.
    const void *context_ = nullptr;
};

// Live communicators by handle.
HcclComm publish(std::shared_ptr<Comm> comm);
std::shared_ptr<Comm> find_comm(HcclComm handle);
void unpublish(HcclComm handle);
// That of the thread's device with this name.
HcclComm find_named(const char *name);

// Builds what the operation needs of links to these peers; blocks like the vendor's first call does.
void build_links(Comm &comm, Op op, const std::vector<uint32_t> &peers);

} // namespace mock

#endif
