// Device memory that this process shares by keys.

#ifndef ASCEND_MOCK_ACL_IPC_H
#define ASCEND_MOCK_ACL_IPC_H

namespace mock {

// The owner frees the allocation that starts there: whoever has imported it loses it.
void end_sharing(void *address);

} // namespace mock

#endif
