// Kernels: a binary is a shared object for the host whose functions take 64-bit arguments; a launch calls one of them
// once per block, in order, on the stream's worker thread.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>

#include "device.h"
#include "registry.h"
#include "stream.h"

namespace mock {
namespace {

constexpr size_t MAX_ARGUMENTS = 16;
constexpr size_t MAX_PLACEHOLDER_BYTES = 64 * 1024;
constexpr uint32_t MAX_BLOCKS = 65535;

// The bytes of a binary as a file that has no name.
Descriptor file_of(const void *data, size_t bytes) {
    Descriptor file(memfd_create("ascend-mock-kernels", MFD_CLOEXEC));
    const auto *next = static_cast<const char *>(data);
    while (file && bytes > 0) {
        const ssize_t written = write(file.get(), next, bytes);
        if (written < 0) {
            fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s", system_error("write").c_str());
        }
        next += written;
        bytes -= static_cast<size_t>(written);
    }
    if (!file) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s", system_error("memfd_create").c_str());
    }
    return file;
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

void check_config(const aclrtLaunchKernelCfg *config, uint32_t blocks) {
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
        // A batch runs all blocks at once, so that they can wait for each other: each needs a core of its own.
        const int64_t cores = soc().vector_cores > 0 ? soc().vector_cores : soc().ai_cores;
        const bool batch = id == ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE && config->attrs[i].value.schemMode == 1;
        if (batch && blocks > cores) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "a batch of %u blocks on %lld cores", blocks,
                 static_cast<long long>(cores));
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

void check_blocks(const Function &function, uint32_t blocks) {
    if (blocks == 0 || blocks > MAX_BLOCKS) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: %u blocks; from 1 to %u are possible", function.name().c_str(),
             blocks, MAX_BLOCKS);
    }
}

void queue_launch(Stream &stream, const std::shared_ptr<Launch> &launch) {
    stream.push({"kernel " + launch->function->name(),
                 [launch](const Cancelled &) {
                     launch->function->run(launch->blocks, launch->values.data(), launch->values.size());
                     return Outcome{};
                 },
                 false});
}

size_t check_argument_bytes(const Function &function, size_t bytes) {
    if (bytes % sizeof(uint64_t) != 0 || bytes > MAX_ARGUMENTS * sizeof(uint64_t)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: argsSize is %zu; up to %zu arguments of 8 bytes are possible",
             function.name().c_str(), bytes, MAX_ARGUMENTS);
    }
    return bytes / sizeof(uint64_t);
}

// The arguments lie in device memory and are read when the kernel runs.
void launch_with_device_arguments(aclrtFuncHandle handle, uint32_t blocks, const void *data, size_t bytes,
                                  const aclrtLaunchKernelCfg *config, aclrtStream stream) {
    const std::shared_ptr<Function> function = find_function(handle);
    const std::shared_ptr<Stream> queue = usable_stream(stream);
    check_blocks(*function, blocks);
    check_config(config, blocks);
    const size_t count = check_argument_bytes(*function, bytes);
    Region region;
    if (count > 0 && (!find_memory(data, &region) || region.bytes < bytes)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: argsData %p is not device memory of %zu bytes; arguments in host "
                                         "memory need aclrtLaunchKernelWithHostArgs", function->name().c_str(), data,
             bytes);
    }
    queue->push({"kernel " + function->name(),
                 [function, blocks, data, count](const Cancelled &) {
                     uint64_t values[MAX_ARGUMENTS] = {};
                     if (count > 0) {
                         std::memcpy(values, data, count * sizeof(uint64_t));
                     }
                     function->run(blocks, values, count);
                     return Outcome{};
                 },
                 false});
}

// Host arguments travel with the launch: addresses of small structs among them are set to where their copy lies.
struct HostLaunch {
    std::shared_ptr<Function> function;
    std::vector<uint64_t> bytes;
    size_t arguments;
    uint64_t blocks;
};

std::shared_ptr<HostLaunch> make_host_launch(std::shared_ptr<Function> function, uint32_t blocks, const void *data,
                                             size_t bytes, const aclrtPlaceHolderInfo *holders, size_t count) {
    auto launch = std::make_shared<HostLaunch>();
    launch->bytes.resize((bytes + 7) / 8);
    std::memcpy(launch->bytes.data(), data, bytes);
    size_t arguments = bytes / sizeof(uint64_t); // those before the first struct
    auto *base = reinterpret_cast<char *>(launch->bytes.data());
    for (size_t i = 0; i < count; i++) {
        const aclrtPlaceHolderInfo &holder = holders[i];
        if (holder.addrOffset % 8 != 0 || holder.addrOffset + 8ULL > bytes || holder.dataOffset >= bytes) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: placeholder %zu (address at %u, data at %u) is not within the "
                                             "%zu bytes of arguments", function->name().c_str(), i, holder.addrOffset,
                 holder.dataOffset, bytes);
        }
        const auto address = reinterpret_cast<uint64_t>(base + holder.dataOffset);
        std::memcpy(base + holder.addrOffset, &address, sizeof(address));
        arguments = std::min<size_t>(arguments, holder.dataOffset / sizeof(uint64_t));
    }
    if (arguments > MAX_ARGUMENTS) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: more than %zu arguments", function->name().c_str(), MAX_ARGUMENTS);
    }
    launch->function = std::move(function);
    launch->arguments = arguments;
    launch->blocks = blocks;
    return launch;
}

// The bytes of a binary that is not loaded yet.
Registry<std::string> &images() {
    static Registry<std::string> &object = *new Registry<std::string>;
    return object;
}

void *load_from_memory(const void *data, size_t bytes) {
    require_device();
    const Descriptor file = file_of(data, bytes);
    return binaries().add(std::make_shared<Binary>(format("/proc/self/fd/%d", file.get()).c_str()));
}

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

aclError aclrtBinaryLoadFromData(const void *data, size_t length, const aclrtBinaryLoadOptions *options,
                                 aclrtBinHandle *binHandle) {
    return guarded("aclrtBinaryLoadFromData", [&] {
        require(static_cast<const char *>(data), "data");
        require(binHandle, "binHandle");
        if (length == 0 || (options != nullptr && options->numOpt > 0 && options->options == nullptr)) {
            fail(ACL_ERROR_INVALID_PARAM, "length is 0 or options is NULL");
        }
        *binHandle = load_from_memory(data, length);
    });
}

// NULL on failure.
aclrtBinary aclrtCreateBinary(const void *data, size_t dataLen) {
    aclrtBinary made = nullptr;
    guarded("aclrtCreateBinary", [&] {
        require(static_cast<const char *>(data), "data");
        if (dataLen == 0) {
            fail(ACL_ERROR_INVALID_PARAM, "dataLen is 0");
        }
        made = images().add(std::make_shared<std::string>(static_cast<const char *>(data), dataLen));
    });
    return made;
}

aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle *binHandle) {
    return guarded("aclrtBinaryLoad", [&] {
        require(static_cast<char *>(binary), "binary");
        require(binHandle, "binHandle");
        const std::shared_ptr<std::string> image = images().find(binary);
        if (image == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not what aclrtCreateBinary returned");
        }
        *binHandle = load_from_memory(image->data(), image->size());
    });
}

aclError aclrtDestroyBinary(aclrtBinary binary) {
    return guarded("aclrtDestroyBinary", [&] {
        require(static_cast<char *>(binary), "binary");
        if (images().remove(binary) == nullptr) {
            fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not what aclrtCreateBinary returned");
        }
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

// Possible after the list was made final too, which it then has to be made again.
aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle, void *param,
                                   size_t paramSize) {
    return guarded("aclrtKernelArgsParaUpdate", [&] {
        require(static_cast<char *>(param), "param");
        Arguments &list = find_arguments(argsHandle);
        const auto place = reinterpret_cast<size_t>(paramHandle);
        bool known = place >= 1 && place <= list.values.size();
        for (const Placeholder &placeholder : list.placeholders) {
            known = known && placeholder.argument + 1 != place;
        }
        if (!known || paramSize != sizeof(uint64_t)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: the parameter is no argument of %zu bytes of this list",
                 list.function->name().c_str(), paramSize);
        }
        std::memcpy(&list.values[place - 1], param, sizeof(uint64_t));
        list.finalized = false;
    });
}

aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData, size_t argsSize,
                           aclrtStream stream) {
    return guarded("aclrtLaunchKernel", [&] {
        launch_with_device_arguments(funcHandle, numBlocks, argsData, argsSize, nullptr, stream);
    });
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData, size_t argsSize,
                             aclrtLaunchKernelCfg *cfg, aclrtStream stream) {
    return guarded("aclrtLaunchKernelV2", [&] {
        launch_with_device_arguments(funcHandle, numBlocks, argsData, argsSize, cfg, stream);
    });
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg *cfg, void *hostArgs, size_t argsSize,
                                       aclrtPlaceHolderInfo *placeHolderArray, size_t placeHolderNum) {
    return guarded("aclrtLaunchKernelWithHostArgs", [&] {
        const std::shared_ptr<Function> function = find_function(funcHandle);
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        check_blocks(*function, numBlocks);
        check_config(cfg, numBlocks);
        require(static_cast<char *>(hostArgs), "hostArgs");
        if (placeHolderNum > 0) {
            require(placeHolderArray, "placeHolderArray");
        }
        if (argsSize > MAX_PLACEHOLDER_BYTES) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "argsSize is %zu: %zu is the limit", argsSize, MAX_PLACEHOLDER_BYTES);
        }
        const std::shared_ptr<HostLaunch> launch =
            make_host_launch(function, numBlocks, hostArgs, argsSize, placeHolderArray, placeHolderNum);
        queue->push({"kernel " + function->name(),
                     [launch](const Cancelled &) {
                         launch->function->run(launch->blocks, launch->bytes.data(), launch->arguments);
                         return Outcome{};
                     },
                     false});
    });
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle, void *) {
    return guarded("aclrtLaunchKernelWithConfig", [&] {
        const std::shared_ptr<Function> function = find_function(funcHandle);
        const Arguments &list = find_arguments(argsHandle);
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        check_blocks(*function, numBlocks);
        check_config(cfg, numBlocks);
        if (list.function != function) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "the argument list is that of kernel %s, not of %s",
                 list.function->name().c_str(), function->name().c_str());
        }
        if (!list.finalized) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: aclrtKernelArgsFinalize is missing", function->name().c_str());
        }
        queue_launch(*queue, make_launch(list, numBlocks));
    });
}
