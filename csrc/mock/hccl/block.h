// What the members of a communicator tell each other, in memory that they share.
//
// Every member has one block, in the control area of its device's arena: a header that it writes itself, a slot per peer
// that this peer writes, and two stages for small data of its own. The header has two bells, one for the operations on
// the stream, one for the building of links in host calls. Whoever waits says how many events it needs, and sleeps until
// the one that completes them.

#ifndef ASCEND_MOCK_HCCL_BLOCK_H
#define ASCEND_MOCK_HCCL_BLOCK_H

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <type_traits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counters.h"
#include "operation.h"

namespace mock {

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free,
              "ranks share these between processes");

struct alignas(64) Bell {
    std::atomic<uint32_t> events; // how often it was rung
    std::atomic<uint32_t> wanted; // count of events that the sleeper needs
    std::atomic<uint32_t> wake;   // what the sleeper sleeps on
};

// What a rank says about its current operation. Plain memory: the counter beside it orders reads after writes.
struct Post {
    Signature signature;
    uint64_t serial;
    uint64_t offset; // in the arena of who posts: where its data lies
};
static_assert(std::is_trivially_copyable<Post>::value, "it lies in shared memory");

// A rank may post twice before its peer has looked at the first: an operation without acknowledgements ends for the
// faster rank when the slower one has posted too, but not yet read.
constexpr uint32_t POSTS = 2;

enum class Attachment : uint32_t { None, Attached, Detached };

// Written by one peer.
struct alignas(64) Slot {
    std::atomic<uint32_t> posted;       // number of posts so far
    std::atomic<uint32_t> acknowledged; // number of this member's phases that the peer has finished with
    std::atomic<uint64_t> kinds;        // bit per kind of link that the peer has built with this member
    std::atomic<Attachment> attachment; // whether the peer still uses this block
    Post posts[POSTS];
};

enum class State : uint32_t { Alive, Failed, Left };

// Written by the member itself.
struct Header {
    Bell operations;
    Bell links;
    std::atomic<State> state;
    std::atomic<uint32_t> building;  // Op whose links a host call builds now
    std::atomic<uint32_t> executing; // Op that runs now
    std::atomic<uint64_t> serial;    // of that operation
    uint32_t fault_code;             // why it failed; valid from the state Failed on
    char fault_text[1024];
};

// Small data that a member gives waits here, where no later work of its stream overwrites it: so it need not wait until its
// peers have it. Two, as for posts: a rank that is an operation ahead uses the other one.
constexpr uint64_t STAGE_BYTES = 16 * 1024;
constexpr uint32_t STAGES = 2;

struct Block {
    Header header;
    Slot slots[1]; // one per member, then the stages

    static uint64_t stage(uint32_t members, uint32_t index) {
        return sizeof(Header) + members * sizeof(Slot) + index % STAGES * STAGE_BYTES;
    }
    static uint64_t bytes(uint32_t members) { return stage(members, 0) + STAGES * STAGE_BYTES; }
};

inline void futex_wake_all(std::atomic<uint32_t> &word) {
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Returns false when the time is over.
inline bool futex_wait(std::atomic<uint32_t> &word, uint32_t value, std::chrono::milliseconds limit) {
    const auto count = limit.count();
    struct timespec time {};
    time.tv_sec = static_cast<time_t>(count / 1000);
    time.tv_nsec = static_cast<long>(count % 1000) * 1000000;
    return syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT, value, &time, nullptr, 0) == 0 ||
           errno != ETIMEDOUT;
}

// One event: wakes the sleeper if it is the one that it lacks.
inline void ring(Bell &bell) {
    const uint32_t events = bell.events.fetch_add(1) + 1;
    if (bell.wanted.load() == events) {
        bell.wake.fetch_add(1);
        count(Counter::Wakes);
        futex_wake_all(bell.wake);
    }
}

// Wakes the sleeper whatever it waits for.
inline void alarm(Bell &bell) {
    bell.wake.fetch_add(1);
    futex_wake_all(bell.wake);
}

// Returns as soon as `missing()` is 0: the number of events that must at least still come. `check(late)` is called after
// each sleep that did not bring them, with late = true when nothing had come for a while; it throws to give up.
//
// No event is lost: either the one that rings sees the number that is wanted, or the waiter, which looks at the count
// again after it has said what it wants, sees the event. Both sides do so in the one order of sequential consistency.
template <class Missing, class Check>
void wait_for(Bell &bell, Missing missing, Check check) {
    constexpr std::chrono::milliseconds SLICE(100);
    for (;;) {
        const uint32_t wake = bell.wake.load();
        const uint32_t events = bell.events.load();
        const uint32_t count = missing();
        if (count == 0) {
            return;
        }
        bell.wanted.store(events + count);
        if (static_cast<int32_t>(bell.events.load() - (events + count)) >= 0) {
            continue;
        }
        const bool woken = futex_wait(bell.wake, wake, SLICE);
        if (missing() != 0) {
            check(!woken);
        }
    }
}

} // namespace mock

#endif
