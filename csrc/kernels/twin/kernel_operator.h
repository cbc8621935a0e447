// CPU twin of the part of Ascend C that the kernels use: the same names and shapes, no wider, in plain C++17.
//
// A kernel built with it is an ordinary function. The mock calls it once a block, after ascend_mock_set_block.
// A broken rule of the interface ends the process with the rule's name.
#ifndef ADASUM_TWIN_KERNEL_OPERATOR_H
#define ADASUM_TWIN_KERNEL_OPERATOR_H

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#define __aicore__
#define __gm__
#define __global__ __attribute__((visibility("default")))
#define GM_ADDR __gm__ uint8_t *

#include "instructions.h"
#include "queues.h"
#include "unified_buffer.h"

enum KernelMetaType { KERNEL_TYPE_AIV_ONLY };
#define KERNEL_TASK_TYPE_DEFAULT(type) static_cast<void>(type)

namespace AscendC {

inline int64_t GetBlockIdx() { return twin::block_index; }
inline int64_t GetBlockNum() { return twin::block_count; }

// Ends the kernel and with it the work of its stream. Nothing of the kernel may be open any more.
[[noreturn]] inline void Trap() { throw std::runtime_error("the kernel stopped itself"); }

}  // namespace AscendC

// Tells the calling thread which block of how many it runs next.
extern "C" __attribute__((visibility("default"), used)) inline void ascend_mock_set_block(uint64_t index,
                                                                                          uint64_t count) {
  AscendC::twin::block_index = static_cast<int64_t>(index);
  AscendC::twin::block_count = static_cast<int64_t>(count);
}

#endif
