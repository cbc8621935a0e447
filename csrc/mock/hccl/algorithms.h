// The texts of a configuration that say how operations are to be run. The mock runs them its own way; it checks the texts.

#ifndef ASCEND_MOCK_HCCL_ALGORITHMS_H
#define ASCEND_MOCK_HCCL_ALGORITHMS_H

#include <string>

namespace mock {

// "level0:NA;level1:ring" for all operations, or "allreduce=level0:NA;level1:ring/others=..." for each.
void check_algorithms(std::string text, const char *name);
// "L1:0, L2:0"
void check_retry_levels(std::string text);
// "MaxCnt:3, HoldTime:5000, IntervalTime:1000"
void check_retry_params(const std::string &text);

} // namespace mock

#endif
