// The strict CPU twin: the same interface as the fast one, but it refuses what the hardware would refuse.
//
// It is for tests: see engine.h for what it looks for. Tables of types are those of __NPU_ARCH__ (2201 if not given).
#ifndef ADASUM_STRICT_KERNEL_OPERATOR_H
#define ADASUM_STRICT_KERNEL_OPERATOR_H

#include <cstdint>
#include <stdexcept>

#include "../twin/names.h"
#include "copies.h"
#include "engine.h"
#include "queues.h"
#include "tensors.h"
#include "vectors.h"

namespace AscendC {

inline int64_t GetBlockIdx() { return twin::block_index; }
inline int64_t GetBlockNum() { return twin::block_count; }

// Ends the kernel and with it the work of its stream. Nothing of the kernel may be open any more.
[[noreturn]] inline void Trap(twin::Site at = twin::Site::here()) {
    if (twin::IS_1001) {
        twin::violated(twin::Duty::TYPES, at, "this chip has no Trap: the kernel would go on");
    }
    twin::check_closed(at);
    throw std::runtime_error("the kernel stopped itself");
}

} // namespace AscendC

#endif
