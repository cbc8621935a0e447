// The arithmetic of reductions.

#ifndef ASCEND_MOCK_HCCL_REDUCE_H
#define ASCEND_MOCK_HCCL_REDUCE_H

#include <cstdint>
#include <vector>

namespace mock {

// target[i] = sources[0][i] op sources[1][i] op ..., always in this order, so that the result is the same on every rank
// and in every run. fp16 and bf16 are computed in fp32 and rounded once. The target may be one of the sources.
void reduce(uint32_t dtype, uint32_t op, char *target, const std::vector<const char *> &sources, uint64_t count);

} // namespace mock

#endif
