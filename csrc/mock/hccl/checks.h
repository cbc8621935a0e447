// What the exported operations check before anything is queued. All of them throw Fault.

#ifndef ASCEND_MOCK_HCCL_CHECKS_H
#define ASCEND_MOCK_HCCL_CHECKS_H

#include <memory>
#include <vector>

#include "comm.h"

namespace mock {

// A live communicator that is not suspended.
std::shared_ptr<Comm> find_ready(HcclComm handle);

// Nothing to do is said before anything else is looked at.
bool nothing_to_do(uint64_t count, const char *function);
void check_count(uint64_t count);
void check_rank(const Comm &comm, uint32_t rank, const char *name);
// The thread works on the communicator's device, and so does the stream.
void check_place(const Comm &comm, aclrtStream stream);
// Offset in the arena of a buffer, which has to lie in one allocation of this device.
uint64_t check_buffer(const Comm &comm, const void *buffer, uint64_t bytes, uint32_t dtype, const char *name);

// All ranks but this one.
std::vector<uint32_t> all_but(const Comm &comm);
// One item of a batch or group, checked.
Transfer checked_item(const Comm &comm, const HcclSendRecvItem &item, uint32_t index);
// One half of a transfer between two ranks, its buffer checked.
Transfer make_transfer(const Comm &comm, bool send, void *buffer, uint64_t count, uint32_t dtype, uint32_t peer);

} // namespace mock

#endif
