// Host memory that devices may reach at any time: made by aclrtMallocHost, or registered.

#ifndef ASCEND_MOCK_ACL_HOST_MEMORY_H
#define ASCEND_MOCK_ACL_HOST_MEMORY_H

#include "failure.h"

namespace mock {

// Whether the address lies in such memory. All other memory of the host is pageable.
bool is_pinned(const void *address);
// Memory of this machine, within the limit of the process's group.
struct HostBytes {
    uint64_t available = UINT64_MAX;
    uint64_t total = UINT64_MAX;
};
HostBytes host_bytes();

} // namespace mock

#endif
