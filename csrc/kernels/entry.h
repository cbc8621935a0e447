// What every kernel has at its entry and at its end: its kind, its receipt, its caches.
#ifndef ADASUM_ENTRY_H
#define ADASUM_ENTRY_H

#include "adasum_ascendc.h"
#include "arch.h"
#include "layout.h"

// Says in the binary that a kernel runs on vector cores: one entry of type 1 (kind of kernel) with four bytes, which are 3
// (AIV). Without it the runtime takes a kernel of Atlas A2, A3 and Ascend 950 for one of the cube cores. A build by the
// toolkit's cmake functions writes the same once more. src/kernel/elf.rs reads it.
#if defined(ADASUM_TWIN) || ADASUM_NPU_ARCH == 1001 || defined(__DAV_CUBE__) || defined(__DAV_C220_CUBE__) ||          \
    defined(__DAV_C310_CUBE__)
#define ADASUM_VECTOR_KERNEL(kernel) static_assert(true, #kernel)
#else
#define ADASUM_VECTOR_KERNEL(kernel)                                                                                   \
    static const struct AdasumKernelKind kernel##_kind                                                                 \
        __attribute__((used, section(".ascend.meta." #kernel))) = {1, 4, 3}

struct AdasumKernelKind {
    uint16_t type;
    uint16_t length;
    uint32_t value;
};
#endif

namespace adasum {

// Adds 1 to the fp32 number that `receipt` points to, which has 32 bytes of its own; null is no receipt. A block calls it
// last, and only if all went well: whoever finds fewer signatures than blocks knows that some work was not done. A block
// that ran well without what other ranks were to send (not `complete`) adds MISSED_SIGNATURE. Sums of such numbers are
// exact in any order.
__aicore__ inline void sign(AscendC::TPipe &pipe, GM_ADDR receipt, bool complete = true) {
    if (receipt == nullptr) {
        return;
    }
    AscendC::TBuf<AscendC::TPosition::VECOUT> buffer;
    pipe.InitBuffer(buffer, BLOCK * static_cast<uint32_t>(sizeof(float)));
    AscendC::LocalTensor<float> one = buffer.Get<float>();
    for (uint32_t i = 0; i < BLOCK; ++i) {
        one.SetValue(i, i > 0 ? 0.0f : (complete ? 1.0f : static_cast<float>(MISSED_SIGNATURE)));
    }
    AscendC::GlobalTensor<float> signatures;
    signatures.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(receipt));
    // All that the block wrote is in device memory, and no pipe has a wait left: the flag below may be set again.
    AscendC::PipeBarrier<PIPE_ALL>();
    wait_for<AscendC::HardEvent::S_MTE3>();
    AscendC::SetAtomicAdd<float>();
    AscendC::DataCopy(signatures, one, BLOCK);
    AscendC::SetAtomicNone();
}

// The end of a kernel, when its TPipe is gone, on Ascend 950: drops what the scalar unit's cache holds of device memory. The
// toolkit's cmake functions call our kernels from a wrapper that does this itself. There it must not come earlier: `dci` also
// drops what was written to the stack, and a kernel that the wrapper has called must still return; nor is this a call.
__attribute__((always_inline)) __aicore__ inline void leave() {
#if ADASUM_NPU_ARCH == 3510 && defined(ADASUM_WITHOUT_WRAPPER)
    pipe_barrier(PIPE_ALL);
    dsb(mem_dsb_t::DSB_ALL);
    dci();
#endif
}

} // namespace adasum

#endif
