// HcclGroupStart and HcclGroupEnd: sends and receives of a thread that become batches.

#ifndef ASCEND_MOCK_HCCL_GROUP_H
#define ASCEND_MOCK_HCCL_GROUP_H

#include <memory>

#include "comm.h"

namespace mock {

// Whether the calling thread has a group open.
bool in_group();
// Keeps a checked send or receive until the group ends.
void add_to_group(const std::shared_ptr<Comm> &comm, aclrtStream stream, const Transfer &transfer);

} // namespace mock

#endif
