// The secret that the ranks of a job share, and nobody else.

#ifndef ASCEND_MOCK_HCCL_SECRET_H
#define ASCEND_MOCK_HCCL_SECRET_H

#include <string>

namespace mock {

// ADASUM_JOB_SECRET, or the content of the file ADASUM_JOB_SECRET_FILE; empty if neither is set. Fails with EI0001 as the library
// does: both are set, fewer than 16 bytes, a file of another user or one that others may use.
std::string job_secret();

} // namespace mock

#endif
