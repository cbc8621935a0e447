// Settings of the process that other parts of the runtime follow.

#ifndef ASCEND_MOCK_ACL_SYSTEM_H
#define ASCEND_MOCK_ACL_SYSTEM_H

#include <atomic>
#include <chrono>

#include "failure.h"

namespace mock {

// How long a stream may wait for an event (aclrtSetOpWaitTimeout); 0: for ever.
std::chrono::seconds operation_wait_limit();

} // namespace mock

#endif
