// CPU twin of the part of Ascend C that the kernels use: the same names and shapes, no wider, in plain C++17.
//
// A kernel built with it is an ordinary function. The mock calls it once a block, after ascend_mock_set_block.
// A broken rule of the interface ends the process with the rule's name.
#ifndef ADASUM_TWIN_KERNEL_OPERATOR_H
#define ADASUM_TWIN_KERNEL_OPERATOR_H

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "instructions.h"
#include "names.h"
#include "queues.h"
#include "unified_buffer.h"

namespace AscendC {

inline int64_t GetBlockIdx() { return twin::block_index; }
inline int64_t GetBlockNum() { return twin::block_count; }

// Ends the kernel and with it the work of its stream. Nothing of the kernel may be open any more.
[[noreturn]] inline void Trap() { throw std::runtime_error("the kernel stopped itself"); }

} // namespace AscendC

// Tells the calling thread which block of how many it runs next.
extern "C" __attribute__((visibility("default"), used)) inline void ascend_mock_set_block(uint64_t index,
                                                                                          uint64_t count) {
    AscendC::twin::block_index = static_cast<int64_t>(index);
    AscendC::twin::block_count = static_cast<int64_t>(count);
    if (index == 0) {
        AscendC::twin::forget_device_memory();
    }
}

extern "C" __attribute__((visibility("default"), used)) inline void ascend_mock_set_finder(AscendC::twin::Finder find) {
    AscendC::twin::finder = find;
}

// What the calling thread's last kernel did outside device memory, told once; null if nothing.
extern "C" __attribute__((visibility("default"), used)) inline const char *ascend_mock_take_fault() {
    AscendC::twin::DeviceMemory &memory = AscendC::twin::device_memory;
    const bool faulted = memory.faulted;
    memory.faulted = false;
    return faulted ? memory.fault : nullptr;
}

#endif
