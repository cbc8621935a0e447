// Settings of the process that other parts of the runtime follow.

#ifndef ASCEND_MOCK_ACL_SYSTEM_H
#define ASCEND_MOCK_ACL_SYSTEM_H

#include <atomic>
#include <chrono>

#include "failure.h"

namespace mock {

// How long a stream may wait for an event (aclrtSetOpWaitTimeout); 0: for ever.
std::chrono::seconds operation_wait_limit();
// A limit of time for a call that waits: -1 (none) or more than 0 ms, else 107000.
void check_timeout(int32_t timeout);

} // namespace mock

#endif
