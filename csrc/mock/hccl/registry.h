// The communicators of this process, and which of them a device may have.

#ifndef ASCEND_MOCK_HCCL_REGISTRY_H
#define ASCEND_MOCK_HCCL_REGISTRY_H

#include <list>
#include <set>

#include "comm.h"

namespace mock {

// A member that is a thread of this process.
struct LocalMember {
    char *base;
    uint64_t arena_bytes;
    uint64_t block_offset;
    const Board *board;
};

// The block of a destroyed communicator, whose peers may still look at it.
struct RetiredBlock {
    struct Watcher {
        Slot *slot;
        bool expected; // the peer was given the block's place
        std::shared_ptr<PeerArena> process;
    };
    int device;
    uint64_t offset;
    std::vector<Watcher> watchers;
};

class Registry {
public:
    static Registry &instance();

    // Fails if the device has a communicator of that name, or if this process has that member. `make` is run if neither
    // holds, and tells what the member offers to the threads of this process.
    void add(const CommPlan &plan, const std::function<LocalMember()> &make);
    void remove(const CommPlan &plan);
    // Runs `use` while the member cannot give its block back; false if there is none.
    bool with_member(const std::string &id, uint32_t rank, const std::function<void(const LocalMember &)> &use);
    // Keeps the block until nobody looks at it any more.
    void retire(RetiredBlock block);

    // One world from a rank table per device, whatever its name. Fails if there is one; not on the 950.
    void check_table_world(int device);
    // The 950 splits nothing on a device once the world that was made last there is gone.
    bool last_world_lives(int device);

private:
    void free_retired();

    std::mutex mutex_;
    std::map<std::pair<std::string, uint32_t>, LocalMember> members_;
    std::set<std::pair<int, std::string>> names_; // per device
    std::map<int, std::string> table_worlds_;     // id, per device
    std::map<int, std::string> last_worlds_;      // id, per device
    std::list<RetiredBlock> retired_;
};

} // namespace mock

#endif
