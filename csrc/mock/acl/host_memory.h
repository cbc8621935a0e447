// Host memory that devices may reach at any time: made by aclrtMallocHost, or registered.

#ifndef ASCEND_MOCK_ACL_HOST_MEMORY_H
#define ASCEND_MOCK_ACL_HOST_MEMORY_H

#include "failure.h"

namespace mock {

// Whether the address lies in such memory. All other memory of the host is pageable.
bool is_pinned(const void *address);
// Fails with the code of exhausted device memory if the host has no memory for `size` bytes more.
void require_host_memory(int device, uint64_t size);

} // namespace mock

#endif
