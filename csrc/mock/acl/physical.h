// The physical memory behind handles.

#ifndef ASCEND_MOCK_ACL_PHYSICAL_H
#define ASCEND_MOCK_ACL_PHYSICAL_H

#include "arena.h"
#include "registry.h"

namespace mock {

Registry<Physical> &physical();
// Fails with 107017 if the handle is none.
std::shared_ptr<Physical> find_physical(aclrtDrvMemHandle handle);

} // namespace mock

#endif
