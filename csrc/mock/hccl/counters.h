// What the mock counts, for tests: `adasum_mock_counter` tells it.

#ifndef ASCEND_MOCK_HCCL_COUNTERS_H
#define ASCEND_MOCK_HCCL_COUNTERS_H

#include <atomic>
#include <cstdint>

namespace mock {

enum class Counter { TransferredBytes, CopiedBytes, NetworkBytes, RefusedCalls, Count };

inline std::atomic<uint64_t> counters[static_cast<int>(Counter::Count)];

inline void count(Counter counter, uint64_t more) {
    counters[static_cast<int>(counter)].fetch_add(more, std::memory_order_relaxed);
}

} // namespace mock

#endif
