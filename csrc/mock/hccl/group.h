// HcclGroupStart and HcclGroupEnd: what a thread calls between the two is kept until the end.

#ifndef ASCEND_MOCK_HCCL_GROUP_H
#define ASCEND_MOCK_HCCL_GROUP_H

#include <functional>

#include "hccl/hccl.h"

namespace mock {

// Whether the calling thread has a group open.
bool in_group();
// Keeps a send or receive until the group ends.
void add_to_group(HcclComm comm, aclrtStream stream, const HcclSendRecvItem &item);
// Keeps a collective, if there is a group; `bytes` and whether they vary from rank to rank decide about the order at the end.
bool defer_collective(HcclComm comm, aclrtStream stream, uint64_t bytes, bool varying, std::function<void()> run);
// Keeps the making or the end of a communicator, if there is a group.
bool defer_job(std::function<void()> run);
// Fails in a group: for calls that have no place there.
void refuse_in_group(const char *function);

} // namespace mock

#endif
