// What the HCCL half of the mock needs from its ACL half. Both libraries are built together from one source tree;
// nobody else may use these functions. None of them throws.

#ifndef ASCEND_MOCK_RUNTIME_H
#define ASCEND_MOCK_RUNTIME_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "acl/acl.h"

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

// The part of device memory that an address lies in.
struct Region {
    int device = -1;
    uint64_t offset = 0; // of the address, in the device's arena
    uint64_t bytes = 0;  // from the address to the end of its allocation
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

// Device of the calling thread's current context; -1 without one.
ASCEND_MOCK_SHARED int current_device();
// Number of devices of this machine (ASCEND_MOCK_DEVICES).
ASCEND_MOCK_SHARED uint32_t device_count();
ASCEND_MOCK_SHARED Family family();
// Version of CANN that is played, as major * 100 + minor (803 for 8.3).
ASCEND_MOCK_SHARED int cann_version();
// Makes `text` what aclGetRecentErrMsg returns on this thread.
ASCEND_MOCK_SHARED void set_recent_message(const std::string &text);
// One line on standard error, once per text in this process.
ASCEND_MOCK_SHARED void warn_once(const std::string &text);

// False if no live allocation of any device of this process holds the address.
ASCEND_MOCK_SHARED bool find_memory(const void *address, Region *region);
// The device's arena, made at the first use. Fails with a text if there is no address space for it.
ASCEND_MOCK_SHARED bool arena_view(int device, ArenaView *view, std::string *error);
// Zeroed memory in the part of the arena that is not device memory, for what ranks tell each other.
ASCEND_MOCK_SHARED bool control_allocate(int device, uint64_t bytes, uint64_t *offset);
ASCEND_MOCK_SHARED void control_free(int device, uint64_t offset);

// Device that the stream belongs to; -1 if it is none.
ASCEND_MOCK_SHARED int stream_device(aclrtStream stream);
// Queues work. `name` appears in messages about the stream. Returns 107017 for what is not a stream.
ASCEND_MOCK_SHARED aclError enqueue(aclrtStream stream, std::string name, Work work);

} // namespace mock

#endif
