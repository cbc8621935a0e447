// unpack: spreads a fused buffer over the tensors that it holds. How is in move.h.
//
// `from` and `to` are the types of what is read and of what is written, `factor` the bits of an fp32 number.
#include "adasum_ascendc.h"
#include "move.h"

ADASUM_VECTOR_KERNEL(unpack);

extern "C" __global__ __aicore__ void unpack(GM_ADDR addresses, GM_ADDR segments, GM_ADDR fused, uint64_t factor,
                                             uint64_t from, uint64_t to, uint64_t tensor_count, uint64_t segment_count,
                                             uint64_t unit_count, GM_ADDR receipt) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    float value = adasum::float_of(static_cast<uint32_t>(factor));
    adasum::MoveArguments arguments{addresses, segments, fused, value, tensor_count, segment_count, unit_count};
    adasum::move_all<false>(arguments, from, to, receipt);
    adasum::leave();
}
