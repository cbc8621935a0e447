// Device memory of other processes that this one has imported by their keys.

#ifndef ASCEND_MOCK_ACL_IPC_H
#define ASCEND_MOCK_ACL_IPC_H

#include "failure.h"

namespace mock {

// Whether an import of this process holds the address.
bool is_imported(const void *address);
// The same, with the place in the owner's memory. False, too, if the owner has closed or freed it.
bool find_imported(const void *address, Region *region);
// Whether it is on another device than the one that it was imported for.
bool is_across_devices(const void *address);
// The owner frees the allocation that starts there: whoever has imported it loses it.
void end_sharing(void *address);

} // namespace mock

#endif
