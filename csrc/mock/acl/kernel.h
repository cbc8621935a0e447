// A kernel: a function of a loaded binary.

#ifndef ASCEND_MOCK_ACL_KERNEL_H
#define ASCEND_MOCK_ACL_KERNEL_H

#include <memory>
#include <string>

#include "failure.h"

namespace mock {

constexpr size_t MAX_ARGUMENTS = 16;

class Binary;

class Function {
public:
    Function(std::shared_ptr<Binary> binary, const char *name);

    const std::string &name() const { return name_; }
    // Calls it once per block with these 64-bit arguments.
    void run(uint64_t blocks, const uint64_t *values, size_t count) const;

private:
    const std::shared_ptr<Binary> binary_;
    const std::string name_;
    void *const address_;
};

// The kernel behind a handle, or a failure.
std::shared_ptr<Function> find_function(aclrtFuncHandle handle);

} // namespace mock

#endif
