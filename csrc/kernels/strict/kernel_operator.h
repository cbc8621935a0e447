// The strict CPU twin: the same interface as the fast one, but it refuses what the hardware would refuse.
//
// It is for tests: see engine.h for what it looks for. Tables of types are those of __NPU_ARCH__ (2201 if not given).
#ifndef ADASUM_STRICT_KERNEL_OPERATOR_H
#define ADASUM_STRICT_KERNEL_OPERATOR_H

#include <cstdint>
#include <stdexcept>

#define __aicore__
// A check by a compiler with address spaces gives its own.
#ifndef __gm__
#define __gm__
#endif
#define __global__ __attribute__((visibility("default")))
#define GM_ADDR __gm__ uint8_t *

#include "copies.h"
#include "engine.h"
#include "queues.h"
#include "tensors.h"
#include "vectors.h"

enum KernelMetaType { KERNEL_TYPE_AIV_ONLY };
#define KERNEL_TASK_TYPE_DEFAULT(type) static_cast<void>(type)

namespace AscendC {

inline int64_t GetBlockIdx() { return twin::block_index; }
inline int64_t GetBlockNum() { return twin::block_count; }

// Ends the kernel and with it the work of its stream. Nothing of the kernel may be open any more.
[[noreturn]] inline void Trap() { throw std::runtime_error("the kernel stopped itself"); }

}  // namespace AscendC

#endif
