// How long threads that wait keep their cores.

#include <thread>

#include <unistd.h>

#include "runtime.h"

namespace mock {
namespace {

std::atomic<uint32_t> most_ranks{1};

// Those of the main thread: a stream's thread may be bound to one of them.
uint32_t cores() {
    cpu_set_t allowed;
    if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0) {
        return static_cast<uint32_t>(CPU_COUNT(&allowed));
    }
    return std::thread::hardware_concurrency();
}

} // namespace

std::chrono::microseconds patience() {
    static const uint32_t here = cores();
    return std::chrono::microseconds(most_ranks.load(std::memory_order_relaxed) <= here ? 100 : 0);
}

void share_cores(uint32_t ranks) {
    uint32_t most = most_ranks.load();
    while (ranks > most && !most_ranks.compare_exchange_weak(most, ranks)) {
    }
}

} // namespace mock
