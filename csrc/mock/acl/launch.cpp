// Launches of kernels: the argument list of a thread, arguments in device memory, arguments in host memory.

#include <algorithm>
#include <cstring>
#include <vector>

#include "counters.h"
#include "deviate.h"
#include "device.h"
#include "kernel.h"
#include "stream.h"

namespace mock {
namespace {

constexpr size_t MAX_PLACEHOLDER_BYTES = 64 * 1024;
constexpr uint32_t MAX_BLOCKS = 65535;

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
    std::vector<uint64_t> values{};
    std::vector<Placeholder> placeholders{};
    uint64_t blocks = 0;
    const void *device_arguments = nullptr; // where the arguments lie that are read when the kernel runs
    std::vector<uint64_t> storage{};        // what came with host arguments
    Injection injection{};

    Outcome run(const Cancelled &cancelled) {
        if (device_arguments != nullptr) {
            std::memcpy(values.data(), device_arguments, values.size() * sizeof(uint64_t));
        }
        const auto start = Clock::now();
        Outcome outcome = strike(injection, "kernel " + function->name(), cancelled);
        if (outcome.code == ACL_SUCCESS) {
            try {
                function->run(blocks, values.data(), values.size());
            } catch (const std::exception &error) { // it stopped itself, or left device memory
                return {ACL_ERROR_RT_AICORE_EXCEPTION, "kernel " + function->name() + ": " + error.what()};
            }
            if (injection.kind == Injection::Kind::Corrupt) {
                corrupt_result();
            }
            slow_down(injection, start, cancelled);
        }
        return outcome;
    }

private:
    // By convention the result of a kernel is what its last argument that is device memory points to.
    void corrupt_result() const {
        for (size_t i = values.size(); i-- > 0;) {
            Region region;
            auto *address = reinterpret_cast<char *>(values[i]);
            if (find_memory(address, &region)) {
                corrupt(address, region.bytes);
                return;
            }
        }
    }
};

void check_blocks(const Function &function, uint32_t blocks) {
    if (blocks == 0 || blocks > MAX_BLOCKS) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: %u blocks; from 1 to %u are possible", function.name().c_str(),
             blocks, MAX_BLOCKS);
    }
}

size_t check_argument_bytes(const Function &function, size_t bytes) {
    if (bytes % sizeof(uint64_t) != 0 || bytes > MAX_ARGUMENTS * sizeof(uint64_t)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: argsSize is %zu; up to %zu arguments of 8 bytes are possible",
             function.name().c_str(), bytes, MAX_ARGUMENTS);
    }
    return bytes / sizeof(uint64_t);
}

Injection kernel_injection(int device) {
    Injection injection;
    std::string error;
    if (!next_injection(device, "kernel", &injection, &error)) {
        fail(ACL_ERROR_INVALID_PARAM, "%s", error.c_str());
    }
    return injection;
}

void queue_launch(Stream &stream, const std::shared_ptr<Launch> &launch) {
    launch->injection = kernel_injection(stream.device());
    const std::string name = "kernel " + launch->function->name();
    Work work = [launch](const Cancelled &cancelled) { return launch->run(cancelled); };
    if (launch->injection) { // it may take its time
        stream.push({name, std::move(work)});
    } else {
        stream.push_brief(name, std::move(work));
    }
    count(Counter::KernelLaunches);
}

// The arguments lie in device memory and are read when the kernel runs.
void launch_with_device_arguments(aclrtFuncHandle handle, uint32_t blocks, const void *data, size_t bytes,
                                  const aclrtLaunchKernelCfg *config, aclrtStream stream) {
    auto launch = std::make_shared<Launch>();
    launch->function = find_function(handle);
    launch->blocks = blocks;
    const std::shared_ptr<Stream> queue = usable_stream(stream);
    check_blocks(*launch->function, blocks);
    check_config(config, blocks);
    const size_t count = check_argument_bytes(*launch->function, bytes);
    Region region;
    if (count > 0 && (!find_memory(data, &region) || region.bytes < bytes)) {
        fail(ACL_ERROR_RT_PARAM_INVALID,
             "kernel %s: argsData %p is not device memory of %zu bytes; arguments in host "
             "memory need aclrtLaunchKernelWithHostArgs",
             launch->function->name().c_str(), data, bytes);
    }
    launch->values.resize(count);
    launch->device_arguments = count > 0 ? data : nullptr;
    queue_launch(*queue, launch);
}

// Host arguments travel with the launch: addresses of small structs among them are set to where their copy lies.
std::shared_ptr<Launch> make_host_launch(std::shared_ptr<Function> function, uint32_t blocks, const void *data,
                                         size_t bytes, const aclrtPlaceHolderInfo *holders, size_t count) {
    auto launch = std::make_shared<Launch>();
    launch->storage.resize((bytes + 7) / 8);
    std::memcpy(launch->storage.data(), data, bytes);
    size_t arguments = bytes / sizeof(uint64_t); // those before the first struct
    auto *base = reinterpret_cast<char *>(launch->storage.data());
    for (size_t i = 0; i < count; i++) {
        const aclrtPlaceHolderInfo &holder = holders[i];
        if (holder.addrOffset % 8 != 0 || holder.addrOffset + 8ULL > bytes || holder.dataOffset >= bytes) {
            fail(ACL_ERROR_RT_PARAM_INVALID,
                 "kernel %s: placeholder %zu (address at %u, data at %u) is not within the "
                 "%zu bytes of arguments",
                 function->name().c_str(), i, holder.addrOffset, holder.dataOffset, bytes);
        }
        const auto address = reinterpret_cast<uint64_t>(base + holder.dataOffset);
        std::memcpy(base + holder.addrOffset, &address, sizeof(address));
        arguments = std::min<size_t>(arguments, holder.dataOffset / sizeof(uint64_t));
    }
    if (arguments > MAX_ARGUMENTS) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "kernel %s: more than %zu arguments", function->name().c_str(), MAX_ARGUMENTS);
    }
    launch->values.assign(launch->storage.begin(), launch->storage.begin() + static_cast<long>(arguments));
    launch->function = std::move(function);
    launch->blocks = blocks;
    return launch;
}

std::shared_ptr<Launch> make_launch(const Arguments &list, uint32_t blocks) {
    auto launch = std::make_shared<Launch>();
    launch->function = list.function;
    launch->values = list.values;
    launch->placeholders = list.placeholders;
    launch->blocks = blocks;
    for (const Placeholder &placeholder : launch->placeholders) {
        launch->values[placeholder.argument] = reinterpret_cast<uint64_t>(placeholder.bytes.data());
    }
    return launch;
}

} // namespace
} // namespace mock

using namespace mock;

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
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 "kernel %s: an argument of %zu bytes; kernels of the mock take 8-byte "
                 "arguments only",
                 list.function->name().c_str(), paramSize);
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
    return guarded("aclrtLaunchKernel",
                   [&] { launch_with_device_arguments(funcHandle, numBlocks, argsData, argsSize, nullptr, stream); });
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData, size_t argsSize,
                             aclrtLaunchKernelCfg *cfg, aclrtStream stream) {
    return guarded("aclrtLaunchKernelV2",
                   [&] { launch_with_device_arguments(funcHandle, numBlocks, argsData, argsSize, cfg, stream); });
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
        queue_launch(*queue,
                     make_host_launch(function, numBlocks, hostArgs, argsSize, placeHolderArray, placeHolderNum));
    });
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle, void *reserve) {
    return guarded("aclrtLaunchKernelWithConfig", [&] {
        if (reserve != nullptr) {
            fail(ACL_ERROR_INVALID_PARAM, "reserve must be NULL");
        }
        const std::shared_ptr<Function> function = find_function(funcHandle);
        const Arguments &list = find_arguments(argsHandle);
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        refuse_if(Deviation::LaunchRefused, ACL_ERROR_RT_INTERNAL_ERROR, "the launch");
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
