// Which process is which rank of a job whose world comes from a rank table.

#ifndef ASCEND_MOCK_HCCL_CLAIM_H
#define ASCEND_MOCK_HCCL_CLAIM_H

#include <cstdint>
#include <string>

#include <sys/types.h>

namespace mock {

// Holds (job, rank) as long as it lives, so that no second process of this user can be the same rank on this machine. Other
// users can neither take nor keep it.
class Claim {
public:
    Claim(const std::string &job, uint32_t rank); // fails if it is held already
    ~Claim();
    Claim(const Claim &) = delete;
    Claim &operator=(const Claim &) = delete;

private:
    off_t place_;
};

} // namespace mock

#endif
