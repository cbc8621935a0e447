// Settings of the process and of contexts, what an installation can do, the log, profiling.

#include "system.h"

#include <array>
#include <map>
#include <mutex>

#include <sys/syscall.h>

#include "context.h"
#include "device.h"
#include "registry.h"

struct aclprofConfig {};

namespace mock {
namespace {

constexpr int OPTIONS = 3; // of aclSysParamOpt
constexpr int COMPILE_OPTIONS = ACL_OP_DEBUG_OPTION + 1;
constexpr size_t UNSET_COMPILE_OPTION = 256; // bytes that the vendor asks for an option that nobody set
constexpr size_t VERSION_BYTES = 128;

struct System {
    std::mutex mutex;
    std::array<int64_t, OPTIONS> options{};
    std::map<std::pair<aclrtContext, int>, int64_t> context_options;
    std::array<std::string, COMPILE_OPTIONS> compile_options;
    aclrtFloatOverflowMode overflow = ACL_RT_OVERFLOW_MODE_INFNAN;
    Registry<aclprofConfig> profiles;
};

System &state() {
    static System &object = *new System;
    return object;
}

std::atomic<uint32_t> wait_seconds{0};

bool has_bf16() { return family() != Family::Ascend910A && family() != Family::Ascend310P; }

int check_option(aclSysParamOpt option) {
    if (option < ACL_OPT_DETERMINISTIC || option > ACL_OPT_STRONG_CONSISTENCY) {
        fail(ACL_ERROR_INVALID_PARAM, "no system parameter has number %d", static_cast<int>(option));
    }
    return static_cast<int>(option);
}

void check_value(int64_t value) {
    if (value != 0 && value != 1) {
        fail(ACL_ERROR_INVALID_PARAM, "a system parameter is 0 or 1, not %lld", static_cast<long long>(value));
    }
}

size_t check_compile_option(aclCompileOpt option) {
    if (option < ACL_PRECISION_MODE || option > ACL_OP_DEBUG_OPTION) {
        fail(ACL_ERROR_INVALID_PARAM, "no compile option has number %d", static_cast<int>(option));
    }
    return static_cast<size_t>(option);
}

void require_profile(const aclprofConfig *config) {
    require(config, "profilerConfig");
    if (state().profiles.find(config) == nullptr) {
        fail(ACL_ERROR_INVALID_PARAM, "profilerConfig is not what aclprofCreateConfig returned");
    }
}

} // namespace

std::chrono::seconds operation_wait_limit() { return std::chrono::seconds(wait_seconds.load()); }

} // namespace mock

using namespace mock;

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    return guarded("aclrtSetSysParamOpt", [&] {
        const int option = check_option(opt);
        check_value(value);
        std::lock_guard<std::mutex> lock(state().mutex);
        state().options[static_cast<size_t>(option)] = value;
    });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
    return guarded("aclrtGetSysParamOpt", [&] {
        require(value, "value");
        const int option = check_option(opt);
        std::lock_guard<std::mutex> lock(state().mutex);
        *value = state().options[static_cast<size_t>(option)];
    });
}

// A context has no value of its own before it was set one.
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    return guarded("aclrtCtxSetSysParamOpt", [&] {
        const int option = check_option(opt);
        check_value(value);
        const aclrtContext context = &require_context();
        std::lock_guard<std::mutex> lock(state().mutex);
        state().context_options[{context, option}] = value;
    });
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
    return guarded("aclrtCtxGetSysParamOpt", [&] {
        require(value, "value");
        const int option = check_option(opt);
        const aclrtContext context = &require_context();
        std::lock_guard<std::mutex> lock(state().mutex);
        const auto found = state().context_options.find({context, option});
        if (found == state().context_options.end()) {
            fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "system parameter %d is not set in this context", option);
        }
        *value = found->second;
    });
}

aclError aclSetCompileopt(aclCompileOpt opt, const char *value) {
    return guarded("aclSetCompileopt", [&] {
        require(value, "value");
        const size_t option = check_compile_option(opt);
        std::lock_guard<std::mutex> lock(state().mutex);
        state().compile_options[option] = value;
    });
}

// `length` includes the end of the text.
aclError aclGetCompileopt(aclCompileOpt opt, char *value, size_t length) {
    return guarded("aclGetCompileopt", [&] {
        require(value, "value");
        const size_t option = check_compile_option(opt);
        std::lock_guard<std::mutex> lock(state().mutex);
        const std::string &text = state().compile_options[option];
        if (length <= text.size()) {
            fail(ACL_ERROR_INVALID_PARAM, "length is %zu: the value needs %zu", length, text.size() + 1);
        }
        copy_text(value, length, text);
    });
}

size_t aclGetCompileoptSize(aclCompileOpt opt) {
    if (opt < ACL_PRECISION_MODE || opt > ACL_OP_DEBUG_OPTION) {
        return 0;
    }
    std::lock_guard<std::mutex> lock(state().mutex);
    const std::string &text = state().compile_options[static_cast<size_t>(opt)];
    return text.empty() ? UNSET_COMPILE_OPTION : text.size() + 1;
}

// Needs no device: clients call it before they set one.
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    return guarded("aclrtSetDeviceSatMode", [&] {
        if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
            fail(ACL_ERROR_INVALID_PARAM, "no overflow mode has number %d", static_cast<int>(mode));
        }
        std::lock_guard<std::mutex> lock(state().mutex);
        state().overflow = mode;
    });
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode) {
    return guarded("aclrtGetDeviceSatMode", [&] {
        require(mode, "mode");
        std::lock_guard<std::mutex> lock(state().mutex);
        *mode = state().overflow;
    });
}

// Seconds; 0 waits for ever, which is how it starts.
aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
    wait_seconds = timeout;
    return ACL_SUCCESS;
}

// Without effect: kernels here are not interrupted.
aclError aclrtSetOpExecuteTimeOut(uint32_t) { return ACL_SUCCESS; }

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value) {
    return guarded("aclGetCannAttribute", [&] {
        require(value, "value");
        switch (cannAttr) {
        case ACL_CANN_ATTR_INF_NAN:
        case ACL_CANN_ATTR_BF16: *value = has_bf16() ? 1 : 0; return;
        case ACL_CANN_ATTR_JIT_COMPILE: *value = 1; return;
        default: fail(ACL_ERROR_INVALID_PARAM, "no attribute has number %d", static_cast<int>(cannAttr));
        }
    });
}

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num) {
    static const aclCannAttr ALL[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16, ACL_CANN_ATTR_JIT_COMPILE};
    return guarded("aclGetCannAttributeList", [&] {
        require(cannAttrList, "cannAttrList");
        require(num, "num");
        *cannAttrList = ALL;
        *num = sizeof(ALL) / sizeof(ALL[0]);
    });
}

// `versionStr` has 128 bytes. Every package has the version of the whole.
aclError aclsysGetVersionStr(char *pkgName, char *versionStr) {
    return guarded("aclsysGetVersionStr", [&] {
        require(pkgName, "pkgName");
        require(versionStr, "versionStr");
        aclCANNPackageVersion version;
        const aclError code = aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version);
        if (code != ACL_SUCCESS) {
            fail(code, "ASCEND_MOCK_CANN is not a version");
        }
        copy_text(versionStr, VERSION_BYTES, version.version);
    });
}

aclError aclrtGetRunMode(aclrtRunMode *runMode) {
    return guarded("aclrtGetRunMode", [&] {
        require(runMode, "runMode");
        *runMode = ACL_HOST;
    });
}

// As the vendor's variables say: on standard output if wanted, errors only unless more is.
void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...) {
    static const char *const NAMES[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    const char *wanted = environment("ASCEND_SLOG_PRINT_TO_STDOUT");
    long long least = ACL_ERROR;
    const char *level = environment("ASCEND_GLOBAL_LOG_LEVEL");
    if (level != nullptr && !parse_number(level, 0, 4, &least)) {
        least = ACL_ERROR;
    }
    if (wanted == nullptr || std::strcmp(wanted, "1") != 0 || fmt == nullptr || logLevel < ACL_DEBUG ||
        logLevel > ACL_ERROR || logLevel < least) {
        return;
    }
    va_list list;
    va_start(list, fmt);
    const std::string text = format_list(fmt, list);
    va_end(list);
    std::printf("[%s] APP(%d): [%s:%u]%ld %s: %s\n", NAMES[logLevel], static_cast<int>(getpid()),
                file == nullptr ? "" : file, line, static_cast<long>(syscall(SYS_gettid)), func == nullptr ? "" : func,
                text.c_str());
    std::fflush(stdout);
}

// Not kept: nothing here raises an exception of a device.
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback) { return ACL_SUCCESS; }

// Profiling is accepted and records nothing.
aclError aclprofInit(const char *profilerResultPath, size_t) {
    return guarded("aclprofInit", [&] { require(profilerResultPath, "profilerResultPath"); });
}

aclError aclprofFinalize(void) { return ACL_SUCCESS; }

aclprofConfig *aclprofCreateConfig(uint32_t *deviceIdList, uint32_t deviceNums, aclprofAicoreMetrics,
                                   const aclprofAicoreEvents *, uint64_t) {
    aclprofConfig *made = nullptr;
    guarded("aclprofCreateConfig", [&] {
        if (deviceNums > 0) {
            require(deviceIdList, "deviceIdList");
        }
        for (uint32_t i = 0; i < deviceNums; i++) {
            check_device(deviceIdList[i]);
        }
        made = static_cast<aclprofConfig *>(state().profiles.add(std::make_shared<aclprofConfig>()));
    });
    return made;
}

aclError aclprofDestroyConfig(const aclprofConfig *profilerConfig) {
    return guarded("aclprofDestroyConfig", [&] {
        require_profile(profilerConfig);
        state().profiles.remove(profilerConfig);
    });
}

aclError aclprofStart(const aclprofConfig *profilerConfig) {
    return guarded("aclprofStart", [&] { require_profile(profilerConfig); });
}

aclError aclprofStop(const aclprofConfig *profilerConfig) {
    return guarded("aclprofStop", [&] { require_profile(profilerConfig); });
}
