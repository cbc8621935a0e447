// What conformance cases of memory that processes share have in common.

#ifndef ADASUM_TESTS_CONFORM_SHARING_H
#define ADASUM_TESTS_CONFORM_SHARING_H

#include "conform.h"

namespace harness {

constexpr size_t MB = 1 << 20;

using Words = Vector<uint32_t>;

// Ranks tell each other things in files, each once.
inline void say(const std::string &name, const std::string &content = "") {
    write_file(folder() + "/" + name, content);
}

inline std::string hear(const std::string &name) { return read_file(folder() + "/" + name); }

// Copies in stream order, as memory of another device allows.
inline void copy(const World &world, void *to, const void *from, size_t bytes) {
    OK(aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    world.synchronize();
}

inline aclrtFuncHandle kernel(const char *name) {
    const char *path = std::getenv("HARNESS_KERNEL");
    CHECK(path != nullptr);
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle function = nullptr;
    OK(aclrtBinaryLoadFromFile(path, nullptr, &binary));
    OK(aclrtBinaryGetFunction(binary, name, &function));
    return function;
}

inline void launch(aclrtFuncHandle function, std::vector<uint64_t> arguments, aclrtStream stream) {
    OK(aclrtLaunchKernelWithHostArgs(function, 2, stream, nullptr, arguments.data(), arguments.size() * 8, nullptr, 0));
}

} // namespace harness

#endif
