// Kernels: a binary is a shared object for the host whose functions take 64-bit arguments; a launch calls one of them
// once per block, in order, on the stream's worker thread.

#include <cstring>
#include <memory>
#include <vector>

#include <dlfcn.h>

#include "device.h"
#include "registry.h"
#include "stream.h"

namespace mock {
namespace {

constexpr size_t MAX_ARGUMENTS = 16;
constexpr size_t MAX_PLACEHOLDER_BYTES = 64 * 1024;
constexpr uint32_t MAX_BLOCKS = 65535;

// Tells a kernel binary that wants to know how many bytes from an address on are in one allocation.
int find_bytes(uint64_t address, uint64_t *left) {
    Region region{};
    if (!find_memory(reinterpret_cast<const void *>(address), &region)) {
        return 0;
    }
    *left = region.bytes;
    return 1;
}

class Binary {
public:
    explicit Binary(const char *path) : path_(path), library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (library_ == nullptr) {
            fail(ACL_ERROR_INVALID_FILE, "cannot load the kernel binary: %s", dlerror());
        }
        set_block_ = reinterpret_cast<void (*)(uint64_t, uint64_t)>(dlsym(library_, "ascend_mock_set_block"));
        if (set_block_ == nullptr) {
            dlclose(library_);
            fail(ACL_ERROR_INVALID_FILE, "%s is a shared object, but no kernel binary for the mock: it does not export "
                                         "ascend_mock_set_block", path);
        }
        using Finder = int (*)(uint64_t, uint64_t *);
        const auto set_finder = reinterpret_cast<void (*)(Finder)>(dlsym(library_, "ascend_mock_set_finder"));
        if (set_finder != nullptr) {
            set_finder(find_bytes);
        }
    }
    ~Binary() { dlclose(library_); }
    Binary(const Binary &) = delete;
    Binary &operator=(const Binary &) = delete;

    void *symbol(const char *name) const {
        void *address = dlsym(library_, name);
        if (address == nullptr) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%s has no kernel %s", path_.c_str(), name);
        }
        return address;
    }
    void set_block(uint64_t index, uint64_t count) const { set_block_(index, count); }

    std::mutex mutex;
    std::vector<void *> functions; // handles that were made for it

private:
    const std::string path_;
    void *const library_;
    void (*set_block_)(uint64_t, uint64_t) = nullptr;
};

class Function {
public:
    Function(std::shared_ptr<Binary> binary, const char *name)
        : binary_(std::move(binary)), name_(name), address_(binary_->symbol(name)) {}

    const std::string &name() const { return name_; }

    // Arguments that a function does not take are harmless in the calling conventions of Linux, so that one call with
    // all that are possible serves every kernel.
    void run(uint64_t blocks, const uint64_t *values, size_t count) const {
        using U = uint64_t;
        uint64_t a[MAX_ARGUMENTS] = {};
        std::memcpy(a, values, count * sizeof(uint64_t));
        const auto kernel = reinterpret_cast<void (*)(U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U)>(address_);
        for (uint64_t block = 0; block < blocks; block++) {
            binary_->set_block(block, blocks);
            kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                   a[15]);
        }
    }

private:
    const std::shared_ptr<Binary> binary_;
    const std::string name_;
    void *const address_;
};

struct Placeholder {
    size_t argument;
    std::vector<uint64_t> bytes; // as words: aligned for any small struct
};

// The one argument list of a thread.
struct Arguments {
    std::shared_ptr<Function> function;
    std::vector<uint64_t> values;
    std::vector<Placeholder> placeholders;
    bool finalized = false;
};

Arguments &arguments() {
    thread_local Arguments list;
    return list;
}

Registry<Binary> &binaries() {
    static Registry<Binary> &object = *new Registry<Binary>;
    return object;
}

Registry<Function> &functions() {
    static Registry<Function> &object = *new Registry<Function>;
    return object;
}

Arguments &find_arguments(aclrtArgsHandle handle) {
    Arguments &list = arguments();
    if (handle != &list || list.function == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not this thread's argument list: from aclrtKernelArgsInit to "
                                          "the launch everything happens on one thread");
    }
    return list;
}

Arguments &open_arguments(aclrtArgsHandle handle) {
    Arguments &list = find_arguments(handle);
    if (list.finalized) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the argument list is final");
    }
    return list;
}

// A parameter's handle is its place in the list, counted from 1.
aclrtParamHandle append(Arguments &list, uint64_t value) {
    if (list.values.size() == MAX_ARGUMENTS) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: more than %zu arguments", list.function->name().c_str(),
             MAX_ARGUMENTS);
    }
    list.values.push_back(value);
    return reinterpret_cast<aclrtParamHandle>(list.values.size());
}

std::shared_ptr<Function> find_function(aclrtFuncHandle handle) {
    require(static_cast<char *>(handle), "funcHandle");
    std::shared_ptr<Function> function = functions().find(handle);
    if (function == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a kernel of a loaded binary");
    }
    return function;
}

void check_config(const aclrtLaunchKernelCfg *config) {
    if (config == nullptr) {
        return;
    }
    if (config->numAttrs > 0 && config->attrs == nullptr) {
        fail(ACL_ERROR_INVALID_PARAM, "attrs is NULL, numAttrs is %zu", config->numAttrs);
    }
    for (size_t i = 0; i < config->numAttrs; i++) {
        const int id = config->attrs[i].id;
        if (id < ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE || id > ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "no launch attribute has number %d", id);
        }
    }
}

// What a launch needs when it runs: the vendor copies arguments and small structs with the launch, so do we.
struct Launch {
    std::shared_ptr<Function> function;
    std::vector<uint64_t> values;
    std::vector<Placeholder> placeholders;
    uint64_t blocks;
};

std::shared_ptr<Launch> make_launch(const Arguments &list, uint32_t blocks) {
    auto launch = std::make_shared<Launch>(Launch{list.function, list.values, list.placeholders, blocks});
    for (const Placeholder &placeholder : launch->placeholders) {
        launch->values[placeholder.argument] = reinterpret_cast<uint64_t>(placeholder.bytes.data());
    }
    return launch;
}

} // namespace
} // namespace mock

using namespace mock;

aclError aclrtBinaryLoadFromFile(const char *binPath, aclrtBinaryLoadOptions *, aclrtBinHandle *binHandle) {
    return guarded("aclrtBinaryLoadFromFile", [&] {
        require(binPath, "binPath");
        require(binHandle, "binHandle");
        require_device();
        if (binPath[0] != '/') {
            fail(ACL_ERROR_RT_PARAM_INVALID, "binPath [%s] is not absolute", binPath);
        }
        *binHandle = binaries().add(std::make_shared<Binary>(binPath));
    });
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName, aclrtFuncHandle *funcHandle) {
    return guarded("aclrtBinaryGetFunction", [&] {
        require(static_cast<char *>(binHandle), "binHandle");
        require(kernelName, "kernelName");
        require(funcHandle, "funcHandle");
        require_device();
        const std::shared_ptr<Binary> binary = binaries().find(binHandle);
        if (binary == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a loaded binary");
        }
        *funcHandle = functions().add(std::make_shared<Function>(binary, kernelName));
        std::lock_guard<std::mutex> lock(binary->mutex);
        binary->functions.push_back(*funcHandle);
    });
}

// Launches that are queued keep the code; the handles end here.
aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle) {
    return guarded("aclrtBinaryUnLoad", [&] {
        require(static_cast<char *>(binHandle), "binHandle");
        const std::shared_ptr<Binary> binary = binaries().remove(binHandle);
        if (binary == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a loaded binary");
        }
        std::lock_guard<std::mutex> lock(binary->mutex);
        for (void *function : binary->functions) {
            functions().remove(function);
        }
    });
}

aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle) {
    return guarded("aclrtKernelArgsInit", [&] {
        require(argsHandle, "argsHandle");
        Arguments &list = arguments();
        list.function = find_function(funcHandle);
        list.values.clear();
        list.placeholders.clear();
        list.finalized = false;
        *argsHandle = &list;
    });
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param, size_t paramSize,
                               aclrtParamHandle *paramHandle) {
    return guarded("aclrtKernelArgsAppend", [&] {
        require(static_cast<char *>(param), "param");
        require(paramHandle, "paramHandle");
        Arguments &list = open_arguments(argsHandle);
        if (paramSize != sizeof(uint64_t)) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "kernel %s: an argument of %zu bytes; kernels of the mock take 8-byte "
                                                   "arguments only", list.function->name().c_str(), paramSize);
        }
        uint64_t value = 0;
        std::memcpy(&value, param, sizeof(value));
        *paramHandle = append(list, value);
    });
}

aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle, aclrtParamHandle *paramHandle) {
    return guarded("aclrtKernelArgsAppendPlaceHolder", [&] {
        require(paramHandle, "paramHandle");
        Arguments &list = open_arguments(argsHandle);
        *paramHandle = append(list, 0);
        list.placeholders.push_back({list.values.size() - 1, {}});
    });
}

aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle, size_t dataSize,
                                             void **bufferAddr) {
    return guarded("aclrtKernelArgsGetPlaceHolderBuffer", [&] {
        require(bufferAddr, "bufferAddr");
        Arguments &list = open_arguments(argsHandle);
        if (dataSize == 0 || dataSize > MAX_PLACEHOLDER_BYTES) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "dataSize is %zu: it must be from 1 to %zu", dataSize,
                 MAX_PLACEHOLDER_BYTES);
        }
        for (Placeholder &placeholder : list.placeholders) {
            if (reinterpret_cast<aclrtParamHandle>(placeholder.argument + 1) == paramHandle) {
                placeholder.bytes.assign((dataSize + 7) / 8, 0);
                *bufferAddr = placeholder.bytes.data();
                return;
            }
        }
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the parameter is no placeholder of this list");
    });
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle) {
    return guarded("aclrtKernelArgsFinalize", [&] {
        Arguments &list = find_arguments(argsHandle);
        for (const Placeholder &placeholder : list.placeholders) {
            if (placeholder.bytes.empty()) {
                fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: placeholder %zu has no buffer",
                     list.function->name().c_str(), placeholder.argument);
            }
        }
        list.finalized = true;
    });
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle, void *) {
    return guarded("aclrtLaunchKernelWithConfig", [&] {
        const std::shared_ptr<Function> function = find_function(funcHandle);
        const Arguments &list = find_arguments(argsHandle);
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        check_config(cfg);
        if (list.function != function) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "the argument list is that of kernel %s, not of %s",
                 list.function->name().c_str(), function->name().c_str());
        }
        if (!list.finalized) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: aclrtKernelArgsFinalize is missing", function->name().c_str());
        }
        if (numBlocks == 0 || numBlocks > MAX_BLOCKS) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: %u blocks; from 1 to %u are possible",
                 function->name().c_str(), numBlocks, MAX_BLOCKS);
        }
        const std::shared_ptr<Launch> launch = make_launch(list, numBlocks);
        queue->push({"kernel " + function->name(),
                     [launch](const Cancelled &) {
                         launch->function->run(launch->blocks, launch->values.data(), launch->values.size());
                         return Outcome{};
                     },
                     false});
    });
}
