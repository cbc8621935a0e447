// What the HCCL half of the mock needs from its ACL half. Both libraries are built together from one source tree;
// nobody else may use these functions. None of them throws.

#ifndef ASCEND_MOCK_RUNTIME_H
#define ASCEND_MOCK_RUNTIME_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sched.h>

#include "acl/acl.h"
#include "common.h"

#define ASCEND_MOCK_SHARED __attribute__((visibility("default")))
#define ASCEND_MOCK_VERSION "1"

extern "C" ASCEND_MOCK_SHARED const char *adasum_mock_version(void);

namespace mock {

// How a task ended: a code of the runtime and, if it is not 0, a sentence.
struct Outcome {
    aclError code = ACL_SUCCESS;
    std::string text;
};

// Set when a stream is aborted or destroyed by force: a task that waits looks at it at least every tenth of a second.
using Cancelled = std::atomic<bool>;
using Work = std::function<Outcome(const Cancelled &)>;
// The same without sleep: false if somebody who is needed does not come soon. It is called again, or a `Work` ends it.
using Attempt = std::function<bool(const Cancelled &, Outcome *)>;

// The part of device memory that an address lies in.
struct Region {
    int device = -1;
    uint64_t offset = 0;   // of the address, in the device's arena
    uint64_t bytes = 0;    // from the address to the end of its allocation
    bool imported = false; // another process's; then the arena is that one's, and device its number on the server
};

// Device memory of this process as others map it.
struct ArenaView {
    int file = -1; // memory file; stays open as long as the process
    char *base = nullptr;
    uint64_t bytes = 0;
    unsigned char identity[16] = {};
};

// Numbers of the simulated processor that HCCL's rules depend on.
enum class Family { Ascend910A, Ascend910B, Ascend910C, Ascend950, Ascend310P };

// What ASCEND_MOCK_DEVIATE can turn against a program.
enum class Deviation {
    CopyH2D,
    CopyD2H,
    CopyD2D,
    Memset,
    EventEarly,
    WaitIgnored,
    SyncEarly,
    LimitIgnored,
    SocUnknown,
    CoresZero,
    BinaryRefused,
    FunctionMissing,
    LaunchRefused,
    RootInfoRefused,
    WorldRefused,
    SubRefused,
    RankWrong,
    NoAbort,
    AbortDeaf,
    NoRejoin,
    Count
};
ASCEND_MOCK_SHARED bool deviates(Deviation deviation);

// Device of the calling thread's current context; -1 without one.
ASCEND_MOCK_SHARED int current_device();
// The calling thread's context, as a handle; nullptr without one.
ASCEND_MOCK_SHARED const void *current_context_handle();
// Number of devices that this process sees (ASCEND_MOCK_DEVICES, ASCEND_RT_VISIBLE_DEVICES).
ASCEND_MOCK_SHARED uint32_t device_count();
// The number that a device of this process has on its server, as rank tables have it.
ASCEND_MOCK_SHARED int physical_device(int device);
// The highest such number, seen by this process or not.
ASCEND_MOCK_SHARED int last_physical_device();
ASCEND_MOCK_SHARED Family family();
// Version of CANN that is played, as major * 100 + minor (803 for 8.3).
ASCEND_MOCK_SHARED int cann_version();
// Makes `text` what aclGetRecentErrMsg returns on this thread.
ASCEND_MOCK_SHARED void set_recent_message(const std::string &text);
// One line on standard error, once per text in this process.
ASCEND_MOCK_SHARED void warn_once(const std::string &text);

// How long a thread keeps its core while it waits for what may come soon: about as long as being woken takes. No time at
// all once a communicator has had more ranks than this process has cores, as all of them may be on this machine.
ASCEND_MOCK_SHARED std::chrono::microseconds patience();
// Tells of the ranks of a communicator.
ASCEND_MOCK_SHARED void share_cores(uint32_t ranks);

// Whether it comes before this thread had better sleep. Others run meanwhile: where ranks share cores, to let them run a
// few times is often all that is needed, and costs less than being woken. Where others keep the cores for long it is not:
// who sleeps is let in sooner than who stands back, and may have a time limit.
template <class Come>
bool comes_soon(Come come) {
    constexpr int YIELDS = 16;
    constexpr std::chrono::milliseconds MOST(5);
    const auto start = Clock::now();
    for (int i = 0;; i++) {
        if (come()) {
            return true;
        }
        const auto waited = Clock::now() - start;
        if (waited >= patience() && (i >= YIELDS || waited >= MOST)) {
            return false;
        }
        sched_yield();
    }
}

// The same for a host, which could only wait: where ranks share cores it sleeps at once, as others need its core.
template <class Come>
bool comes_soon_to_host(Come come) {
    return patience().count() > 0 ? comes_soon(come) : come();
}

// False if no live allocation of any device of this process holds the address, nor memory that it has imported.
ASCEND_MOCK_SHARED bool find_memory(const void *address, Region *region);
// Keeps the allocation that holds `address` from being freed: something that no stream of this process knows works on it, as `why`
// says, until it is let go of by the number that this gives, or all tasks of the device are aborted.
ASCEND_MOCK_SHARED uint64_t hold_memory(const void *address, const std::string &why);
ASCEND_MOCK_SHARED void let_go_of_memory(int device, uint64_t number);
// The device's arena, made at the first use. Fails with a text if there is no address space for it.
ASCEND_MOCK_SHARED bool arena_view(int device, ArenaView *view, std::string *error);
// Zeroed memory in the part of the arena that is not device memory, for what ranks tell each other.
ASCEND_MOCK_SHARED bool control_allocate(int device, uint64_t bytes, uint64_t *offset);
ASCEND_MOCK_SHARED void control_free(int device, uint64_t offset);
// Device memory that a library takes for itself: accounted for, not allocated. False if there is not so much.
ASCEND_MOCK_SHARED bool take_memory(int device, uint64_t bytes);
ASCEND_MOCK_SHARED void give_memory(int device, uint64_t bytes);

// Whether it is a live stream of the calling thread's context.
ASCEND_MOCK_SHARED bool stream_is_usable(aclrtStream stream);
// From now on the first failed task of any stream of the calling thread's context fails the context, for good.
ASCEND_MOCK_SHARED void stop_context_on_failure();
// Queues work, with what a host that waits for it may do of it. `name` appears in messages about the stream. Returns 107017
// for what is not a stream. `place`, if given, gets the task's place.
struct Place {
    int stream = -1;       // number of the stream; -1: nothing was queued yet
    uint64_t position = 0; // of the task in its queue, from 1
};
ASCEND_MOCK_SHARED aclError enqueue(aclrtStream stream, std::string name, Work work, Attempt attempt,
                                    Place *place = nullptr);
// Why the task that this thread drops just now never ran, as far as that is known.
ASCEND_MOCK_SHARED const std::string &drop_reason();
// Whether the program has ordered what it queues now on the stream after that task: the same stream, a wait for an event,
// a synchronisation of the host with stream, event or device, or the end of the drained stream.
ASCEND_MOCK_SHARED bool ordered_after(aclrtStream stream, const Place &earlier);

// A fault that HCCL_MOCK_FAULT asks for at one call of one rank.
struct Injection {
    enum class Kind { None, Die, Stall, Error, Corrupt, Slow, Hold };
    Kind kind = Kind::None;
    int code = 0;      // Error: below 100000 a HcclResult of the call, else what the stream's synchronisation returns
    double factor = 1; // Slow; seconds for Hold
    explicit operator bool() const { return kind != Kind::None; }
};

// The world rank that works on a device. A world made from root info does not overrule what is known.
ASCEND_MOCK_SHARED void set_world_rank(int device, uint32_t rank, bool overrule);
// Counts a call ("kernel" or the name of a function) of the rank on the device and tells its fault. False, with a text,
// if HCCL_MOCK_FAULT cannot be understood.
ASCEND_MOCK_SHARED bool next_injection(int device, const char *op, Injection *injection, std::string *error);
// The functions that HCCL_MOCK_FAULT names.
ASCEND_MOCK_SHARED std::vector<std::string> injected_functions();
// What a fault does before the work: ends the process, blocks until cancelled or `closed`, or fails.
ASCEND_MOCK_SHARED Outcome strike(const Injection &injection, const std::string &what, const Cancelled &cancelled,
                                  const std::atomic<bool> *closed = nullptr);
// What it does in the host call.
ASCEND_MOCK_SHARED void hold(const Injection &injection);
// What it does after the work that began at `start`.
ASCEND_MOCK_SHARED void slow_down(const Injection &injection, Clock::time_point start, const Cancelled &cancelled);
// The top byte of a fp32 element: a value that nobody can overlook.
inline void corrupt(char *data, uint64_t bytes) {
    if (bytes > 0) {
        data[bytes < 4 ? bytes - 1 : 3] ^= 0x40;
    }
}

} // namespace mock

#endif
