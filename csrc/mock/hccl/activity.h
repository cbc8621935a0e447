// What a device's communicators do now. A rank that waits in vain for a peer tells it: where the peer has turned to another
// communicator first, nothing else says why both wait.

#ifndef ASCEND_MOCK_HCCL_ACTIVITY_H
#define ASCEND_MOCK_HCCL_ACTIVITY_H

#include <atomic>
#include <string>

#include "operation.h"

namespace mock {

// In the control area of the device's arena, where peers on this machine read it; those elsewhere ask. What is read while
// it changes may be mixed up: it is for messages only.
struct Board {
    static constexpr uint32_t ENTRIES = 16; // at once; more are not told
    static constexpr uint32_t WORDS = 8;
    struct Entry {
        std::atomic<uint32_t> used;
        std::atomic<uint32_t> op;
        std::atomic<uint32_t> building; // 1: a host call builds links
        std::atomic<uint64_t> serial;
        std::atomic<uint64_t> comm[WORDS]; // the start of its name
    };
    Entry entries[ENTRIES];
    Entry failed; // the operation that failed last
};

// The board of a device of this process, made at the first call; nullptr where there is no room.
Board *board_of(int device, char *arena, uint64_t *offset);

// An operation of `comm` is on the board as long as this lives.
class Activity {
public:
    Activity(Board *board, const std::string &comm, Op op, bool building, uint64_t serial);
    ~Activity();
    void failed() const; // stays on the board as the last that did
    Activity(const Activity &) = delete;
    Activity &operator=(const Activity &) = delete;

private:
    Board *const board_;
    Board::Entry *entry_ = nullptr;
};

// ", is in HcclAllReduce, operation 3 of communicator B" or the like for each but those of `comm`; empty without.
std::string elsewhere(const Board *board, const std::string &comm);

} // namespace mock

#endif
