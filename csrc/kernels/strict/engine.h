// The strict twin's core: what happens in which order, and what must not happen at all.
//
// The scalar unit runs the kernel's own code at once. Instructions of the other three pipes (vector, copies in, copies
// out) are only queued; the core runs them as late, or in as odd an order, as flags and barriers allow. So a missing
// synchronisation gives wrong data. It is also found directly, in any order: every instruction knows which earlier
// ones are certainly done when it starts (clocks, passed on by flags and barriers), and each access to memory is held
// against those before it.
#ifndef ADASUM_STRICT_ENGINE_H
#define ADASUM_STRICT_ENGINE_H

#include <cstdint>
#include <functional>
#include <vector>

#include "../twin/names.h"

namespace AscendC {
namespace twin {

// What the twin refuses, by the kind of mistake. A report names the number and the word.
enum class Duty : uint8_t {
    CAPACITY = 1,      // too much of the unified buffer, too many buffers
    ALIGNMENT = 2,     // operands and copies off 32-byte blocks
    BOUNDS = 3,        // accesses outside of a tensor or of device memory
    QUEUES = 4,        // the protocol of queues
    PIPES = 5,         // accesses of different pipes, or of copies, that nothing orders
    BARRIERS = 6,      // dependent vector instructions without a barrier between them
    UNINITIALISED = 7, // use of what nothing has written
    LIMITS = 8,        // overlap of operands, repeats, masks, lengths
    TYPES = 9,         // types and roundings that a chip does not have (at compile time where possible)
    BLOCKS = 10,       // blocks that depend on each other
    FLAGS = 11,        // flags that do not pair or are set too early, event ids, waits without end
    // 12, address spaces, is the business of a compiler that knows them.
    RECEIPTS = 13, // copies out that add: what a block does last, and nothing but that
};

// Where the kernel asked for something.
struct Site {
    const char *file;
    int line;

    static Site here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { return Site{file, line}; }
};

// Reports `file:line: duty N (word): rule` and ends the process.
[[noreturn]] __attribute__((format(printf, 3, 4))) void violated(Duty duty, Site at, const char *rule, ...);

#define ADASUM_STRICT_CHECK(condition, duty, at, ...)                                                                  \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            ::AscendC::twin::violated(::AscendC::twin::Duty::duty, at, __VA_ARGS__);                                   \
        }                                                                                                              \
    } while (false)

// 192 KiB of an Atlas A2 core, less what the vendor's runtime keeps: the smallest of the chips.
constexpr uint32_t UB_BYTES = 192 * 1024 - 8 * 1024 - 256;
constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t MAX_BUFFERS = 64;

enum Pipe : uint8_t { SCALAR, VECTOR, COPY_IN, COPY_OUT };
constexpr uint32_t PIPES = 4;

// A use of the unified buffer, or of device memory.
struct Access {
    uint32_t begin;
    uint32_t bytes;
    bool write;
};
struct DeviceAccess {
    uint64_t begin;
    uint64_t bytes;
    bool write;
    bool adds = false; // to what is there, each number at once: other blocks may do the same
};

// What an instruction does when its pipe comes to it.
using Work = std::function<void()>;

// One kernel on one block, from the first to the last moment of its TPipe.
void open(Site at);
void close(Site at);
void check_closed(Site at);
uint32_t reserve(uint32_t bytes, Site at);

// From one to the other, the copy out adds to what is there.
void start_adding(Site at);
void stop_adding(Site at);
bool is_adding(Site at);

// Queues an instruction of a pipe other than the scalar unit.
void issue(Pipe pipe, Site at, const std::vector<Access> &local, const std::vector<DeviceAccess> &device, Work work);
// The same for an instruction of the vector unit, which takes so many repeats.
void issue_vector(Site at, const std::vector<Access> &local, uint64_t repeats, Work work);
// Queues work that is no instruction: it uses nothing.
void issue_silently(Pipe pipe, Work work);
// Accesses of the scalar unit. It sees its own stores at once; the other pipes see them when it sets a flag.
void scalar_load(Site at, uint32_t begin, uint32_t bytes, void *to);
void scalar_store(Site at, uint32_t begin, uint32_t bytes, const void *from);

void set_flag(HardEvent event, int32_t id, Site at);
void wait_flag(HardEvent event, int32_t id, Site at);
void barrier(Pipe pipe, Site at);
void barrier_of_all(Site at);
int32_t fetch_event(HardEvent event, Site at);
int32_t take_event(HardEvent event, Site at);
void give_event_back(HardEvent event, int32_t id, Site at);

// The bytes of the unified buffer, and whether something has written them. For work only.
uint8_t *bytes_at(uint32_t begin);
bool initialised(uint32_t begin, uint32_t bytes);
void mark(uint32_t begin, uint32_t bytes, bool initialised);
// Signalling NaNs that count as never written.
void poison(uint32_t begin, uint32_t bytes);

extern thread_local int64_t block_index;
extern thread_local int64_t block_count;

} // namespace twin
} // namespace AscendC

#endif
