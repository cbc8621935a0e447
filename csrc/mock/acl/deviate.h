// ASCEND_MOCK_DEVIATE: rules that are turned against programs on purpose, so that a self-test can be seen to fail.

#ifndef ASCEND_MOCK_ACL_DEVIATE_H
#define ASCEND_MOCK_ACL_DEVIATE_H

#include <cstdint>

#include "runtime.h"

namespace mock {

// Flips a bit of the last byte that a call wrote, if it is to deviate.
inline void flip_last(Deviation deviation, void *address, uint64_t bytes) {
    if (bytes > 0 && deviates(deviation)) {
        static_cast<unsigned char *>(address)[bytes - 1] ^= 1;
    }
}

// Throws if the variable names a deviation that there is not.
void check_deviations();
// Throws with the code if the call is to be refused.
void refuse_if(Deviation deviation, aclError code, const char *what);

} // namespace mock

#endif
