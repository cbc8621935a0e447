// What both halves of the mock count in a process, for tests: `adasum_mock_counter` tells it.

#ifndef ASCEND_MOCK_COUNTERS_H
#define ASCEND_MOCK_COUNTERS_H

#include "runtime.h"

extern "C" ASCEND_MOCK_SHARED uint64_t adasum_mock_counter(const char *name);

namespace mock {

enum class Counter {
    TransferredBytes,
    Messages,
    CopiedBytes,
    NetworkBytes,
    RefusedCalls,
    CollectiveCalls,
    KernelLaunches,
    DeviceAllocations,
    HostAllocations,
    HostSynchronizations,
    ExpiredWaits,
    DestroyedUnderWork,
    Wakes,
    Count
};

ASCEND_MOCK_SHARED void count(Counter counter, uint64_t more = 1);

} // namespace mock

#endif
