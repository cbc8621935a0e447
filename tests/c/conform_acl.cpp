// The ACL runtime as programs see it: process, devices, contexts, streams, events, callbacks.

#include <atomic>

#include <pthread.h>

#include "conform.h"

using namespace harness;

namespace {

// --- process

// "aclInit": a repeated call returns 100002 and does no harm.
const Behaviour init_repeat("init-repeat", [](const Rank &) {
    OK(aclInit(nullptr));
    RETURNS(100002, aclInit(nullptr));
    OK(aclFinalize());
});

// aclInit sets no device: the current context is per thread, and without one calls return 107002.
const Behaviour init_no_device("init-gives-no-device", [](const Rank &) {
    OK(aclInit(nullptr));
    int32_t device = 0;
    RETURNS(107002, aclrtGetDevice(&device));
    aclrtContext context = nullptr;
    RETURNS(107002, aclrtGetCurrentContext(&context));
});

// aclFinalize ends it for the process whatever the number of aclInits; a second one returns 100037.
const Behaviour finalize_zeroes("finalize-zeroes-the-count", [](const Rank &) {
    OK(aclInit(nullptr));
    RETURNS(100002, aclInit(nullptr));
    OK(aclFinalize());
    RETURNS(100037, aclFinalize());
    OK(aclInit(nullptr));
});

// aclFinalizeReference takes one aclInit back and tells how many are left.
const Behaviour finalize_reference("finalize-reference-counts", [](const Rank &) {
    uint64_t left = 9;
    OK(aclInit(nullptr));
    RETURNS(100002, aclInit(nullptr));
    OK(aclFinalizeReference(&left));
    CHECK(left == 1);
    RETURNS(100002, aclInit(nullptr));
    OK(aclFinalizeReference(&left));
    OK(aclFinalizeReference(&left));
    CHECK(left == 0);
    RETURNS(100037, aclFinalizeReference(nullptr));
});

// aclFinalize without aclInit: 100001.
const Behaviour finalize_first("finalize-uninitialized", [](const Rank &) { RETURNS(100001, aclFinalize()); });

// MindSpore calls a part of the runtime before aclInit.
const Behaviour before_init("works-before-init", [](const Rank &) {
    CHECK(std::string(aclrtGetSocName()) == "Ascend910B1");
    OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
    OK(aclrtSetDevice(0));
    aclrtStream stream = nullptr;
    OK(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    size_t free = 0;
    size_t total = 0;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    OK(aclInit(nullptr));
});

// The recent message belongs to the thread and is handed over once; without one the answer is NULL.
const Behaviour recent_message("recent-message-per-thread", [](const Rank &) {
    RETURNS(107001, aclrtSetDevice(-1));
    std::thread([] { CHECK(aclGetRecentErrMsg() == nullptr); }).join();
    CHECK(recent().find("aclrtSetDevice") != std::string::npos);
    CHECK(aclGetRecentErrMsg() == nullptr);
});

// aclrtPeekAtLastError keeps the thread's last error, aclrtGetLastError takes it.
const Behaviour last_error("last-error-peek-and-get", [](const Rank &) {
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 0);
    RETURNS(107001, aclrtSetDevice(99));
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 107001);
    std::thread([] { CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 0); }).join();
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 107001);
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 0);
});

// Interface 1.13 belongs to CANN 8.1, 1.16 to 8.5, 1.17 to 9.x.
void interface_is(int32_t wanted) {
    int32_t major = 0;
    int32_t minor = 0;
    int32_t patch = 0;
    OK(aclrtGetVersion(&major, &minor, &patch));
    CHECK(major == 1 && minor == wanted && patch == 0);
}
const Behaviour version_81("interface-of-8.1", [](const Rank &) { interface_is(13); }, {{"ASCEND_MOCK_CANN", "8.1.RC1"}});
const Behaviour version_85("interface-of-8.5", [](const Rank &) { interface_is(16); }, {{"ASCEND_MOCK_CANN", "8.5.0"}});
const Behaviour version_90("interface-of-9.0", [](const Rank &) { interface_is(17); }, {{"ASCEND_MOCK_CANN", "9.0.0"}});

// aclsysGetCANNVersion knows packages 0 to 7 and gives the version as a text and in parts.
const Behaviour cann_version("cann-version-of-packages", [](const Rank &) {
    for (int name = ACL_PKG_NAME_CANN; name <= ACL_PKG_NAME_DRIVER; name++) {
        aclCANNPackageVersion version;
        OK(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(name), &version));
        CHECK(std::string(version.version) == "8.5.0" && std::string(version.majorVersion) == "8");
    }
    aclCANNPackageVersion version;
    RETURNS(100000, aclsysGetCANNVersion(static_cast<aclCANNPackageName>(8), &version));
    char text[128];
    char package[] = "runtime";
    OK(aclsysGetVersionStr(package, text));
    CHECK(std::string(text) == "8.5.0");
}, {{"ASCEND_MOCK_CANN", "8.5.0"}});

// The names that clients accept, with cores, buffers and architecture of the processor.
void soc_is(int64_t ai, int64_t vector, int64_t arch) {
    int64_t value = 0;
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &value));
    CHECK(value == ai);
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value));
    CHECK(value == vector);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, &value));
    CHECK(value == arch);
}
const Behaviour soc_a("soc-910A", [](const Rank &) { soc_is(32, 0, 1001); }, {{"ASCEND_MOCK_SOC", "Ascend910A"}});
const Behaviour soc_b3("soc-910B3", [](const Rank &) { soc_is(20, 40, 2201); }, {{"ASCEND_MOCK_SOC", "Ascend910B3"}});
const Behaviour soc_93("soc-910_9391", [](const Rank &) { soc_is(24, 48, 2201); },
                       {{"ASCEND_MOCK_SOC", "Ascend910_9391"}});
const Behaviour soc_95("soc-950", [](const Rank &) { soc_is(32, 64, 3510); },
                       {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});
const Behaviour capability_bad("capability-unknown", [](const Rank &) {
    int64_t value = 0;
    RETURNS(100000, aclGetDeviceCapability(0, static_cast<aclDeviceInfo>(77), &value));
    RETURNS(100000, aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, nullptr));
    RETURNS(107001, aclGetDeviceCapability(8, ACL_DEVICE_INFO_L2_SIZE, &value));
}, {{"ASCEND_MOCK_DEVICES", "8"}});

// Abilities of the installation: bf16 and INF/NaN mode are not those of the 910A.
const Behaviour attribute_b("cann-attributes-910B", [](const Rank &) {
    const aclCannAttr *list = nullptr;
    size_t count = 0;
    OK(aclGetCannAttributeList(&list, &count));
    CHECK(count == 3);
    for (size_t i = 0; i < count; i++) {
        int32_t value = 0;
        OK(aclGetCannAttribute(list[i], &value));
        CHECK(value == 1);
    }
    int32_t value = 0;
    RETURNS(100000, aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value));
});
const Behaviour attribute_a("cann-attributes-910A", [](const Rank &) {
    int32_t value = 1;
    OK(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value));
    CHECK(value == 0);
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});

// Programs run on the host; a capability of the runtime that clients ask first.
const Behaviour run_mode("run-mode-host", [](const Rank &) {
    aclrtRunMode mode = ACL_DEVICE;
    OK(aclrtGetRunMode(&mode));
    CHECK(mode == ACL_HOST);
});

// --- settings

// A system parameter of the process is 0 until it is set.
const Behaviour sys_param("system-parameter-process", [](const Rank &) {
    int64_t value = 7;
    OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK(value == 0);
    OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK(value == 1);
    RETURNS(100000, aclrtSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 2));
    RETURNS(100000, aclrtGetSysParamOpt(static_cast<aclSysParamOpt>(9), &value));
});

// That of a context is not set (107021) until it is, and needs a context (107002).
const Behaviour ctx_param("system-parameter-context", [](const Rank &) {
    int64_t value = 7;
    RETURNS(107002, aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    OK(aclrtSetDevice(0));
    RETURNS(107021, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    OK(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    OK(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK(value == 1);
    OK(aclrtSetDevice(1));
    RETURNS(107021, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
});

// Compile options are texts; the size that is told has room for the end of the text.
const Behaviour compile_option("compile-options", [](const Rank &) {
    char text[256] = "x";
    CHECK(aclGetCompileoptSize(ACL_OP_JIT_COMPILE) == 256);
    OK(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, sizeof(text)));
    CHECK(text[0] == '\0');
    OK(aclSetCompileopt(ACL_OP_JIT_COMPILE, "enable"));
    CHECK(aclGetCompileoptSize(ACL_OP_JIT_COMPILE) == 7);
    RETURNS(100000, aclGetCompileopt(ACL_OP_JIT_COMPILE, text, 6));
    OK(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, 7));
    CHECK(std::string(text) == "enable");
    RETURNS(100000, aclSetCompileopt(static_cast<aclCompileOpt>(99), "x"));
    CHECK(aclGetCompileoptSize(static_cast<aclCompileOpt>(99)) == 0);
});

// The overflow mode is 0 or 1 and can be read back.
const Behaviour sat_mode("overflow-mode", [](const Rank &) {
    aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
    OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
    OK(aclrtGetDeviceSatMode(&mode));
    CHECK(mode == ACL_RT_OVERFLOW_MODE_SATURATION);
    RETURNS(100000, aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF));
});

// aclAppLog prints where ASCEND_SLOG_PRINT_TO_STDOUT and the level say so.
std::string logged(aclLogLevel level) {
    char pattern[] = "/tmp/adasum-log-XXXXXX";
    const int file = mkstemp(pattern);
    const int before = dup(1);
    std::fflush(stdout);
    dup2(file, 1);
    aclAppLog(level, "function", "file.cpp", 12, "value %d of %s", 3, "four");
    std::fflush(stdout);
    dup2(before, 1);
    close(before);
    close(file);
    std::ifstream read(pattern);
    const std::string content((std::istreambuf_iterator<char>(read)), {});
    unlink(pattern);
    return content;
}
const Behaviour app_log("app-log-follows-variables", [](const Rank &) {
    CHECK(logged(ACL_WARNING).empty());
    const std::string line = logged(ACL_ERROR);
    CHECK(line.find("[ERROR]") == 0 && line.find("[file.cpp:12]") != std::string::npos);
    CHECK(line.find("function: value 3 of four") != std::string::npos);
}, {{"ASCEND_SLOG_PRINT_TO_STDOUT", "1"}});
const Behaviour app_log_quiet("app-log-quiet-by-default", [](const Rank &) { CHECK(logged(ACL_ERROR).empty()); });

// Profiling calls are accepted; an unknown configuration is not.
const Behaviour profiling("profiling-accepted", [](const Rank &) {
    OK(aclprofInit("/tmp", 4));
    uint32_t devices[] = {0};
    aclprofConfig *config = aclprofCreateConfig(devices, 1, ACL_AICORE_PIPE_UTILIZATION, nullptr, ACL_PROF_ACL_API);
    CHECK(config != nullptr);
    OK(aclprofStart(config));
    OK(aclprofStop(config));
    OK(aclprofDestroyConfig(config));
    RETURNS(100000, aclprofStart(config));
    uint32_t absent[] = {1000};
    CHECK(aclprofCreateConfig(absent, 1, ACL_AICORE_NONE, nullptr, 0) == nullptr);
    OK(aclprofFinalize());
});

// --- devices and contexts

// ASCEND_MOCK_DEVICES is what aclrtGetDeviceCount tells; others are 107001.
const Behaviour device_count("device-count-and-range", [](const Rank &) {
    uint32_t count = 0;
    OK(aclrtGetDeviceCount(&count));
    CHECK(count == 3);
    OK(aclrtSetDevice(2));
    RETURNS(107001, aclrtSetDevice(3));
    RETURNS(107001, aclrtResetDevice(3));
}, {{"ASCEND_MOCK_DEVICES", "3"}});

// Set and reset are counted: the context ends with the last reset.
const Behaviour device_counted("set-reset-are-counted", [](const Rank &) {
    int32_t active = -1;
    int32_t device = -1;
    OK(aclrtGetPrimaryCtxState(1, nullptr, &active));
    CHECK(active == 0);
    OK(aclrtSetDevice(1));
    OK(aclrtSetDevice(1));
    OK(aclrtResetDevice(1));
    OK(aclrtGetDevice(&device));
    CHECK(device == 1);
    uint32_t flags = 5;
    OK(aclrtGetPrimaryCtxState(1, &flags, &active));
    CHECK(active == 1 && flags == 0);
    OK(aclrtResetDevice(1));
    RETURNS(107002, aclrtGetDevice(&device));
    OK(aclrtGetPrimaryCtxState(1, nullptr, &active));
    CHECK(active == 0);
});

// aclrtResetDeviceForce ends the context whatever the count.
const Behaviour device_force("reset-force-ignores-the-count", [](const Rank &) {
    int32_t device = -1;
    OK(aclrtSetDevice(1));
    OK(aclrtSetDevice(1));
    OK(aclrtResetDeviceForce(1));
    RETURNS(107002, aclrtGetDevice(&device));
    OK(aclrtSetDevice(1));
    OK(aclrtResetDevice(1));
    RETURNS(107002, aclrtGetDevice(&device));
});

// The current device belongs to the thread.
const Behaviour device_thread("device-per-thread", [](const Rank &) {
    OK(aclrtSetDevice(1));
    std::thread([] {
        int32_t device = -1;
        RETURNS(107002, aclrtGetDevice(&device));
        OK(aclrtSetDevice(2));
        OK(aclrtGetDevice(&device));
        CHECK(device == 2);
    }).join();
    int32_t device = -1;
    OK(aclrtGetDevice(&device));
    CHECK(device == 1);
});

// What lives may be given back after the last reset (MindSpore does).
const Behaviour reset_not_end("reset-is-not-the-end", [](const Rank &) {
    OK(aclrtSetDevice(0));
    void *memory = nullptr;
    aclrtStream stream = nullptr;
    OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtCreateStream(&stream));
    OK(aclrtResetDevice(0));
    OK(aclrtFree(memory));
    OK(aclrtDestroyStream(stream));
});

// Access between devices is enabled per direction; flags are reserved.
const Behaviour peer_access("peer-access", [](const Rank &) {
    int32_t can = -1;
    int32_t status = -1;
    OK(aclrtDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    RETURNS(107001, aclrtDeviceCanAccessPeer(&can, 0, 1000));
    RETURNS(107002, aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtSetDevice(0));
    RETURNS(107000, aclrtDeviceEnablePeerAccess(1, 1));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtDevicePeerAccessStatus(0, 1, &status));
    CHECK(status == 1);
    OK(aclrtDevicePeerAccessStatus(1, 0, &status));
    CHECK(status == 0);
    OK(aclrtDeviceDisablePeerAccess(1));
    RETURNS(107000, aclrtDeviceDisablePeerAccess(1));
});

// The process id as other processes of the machine see it.
const Behaviour bare_tgid("bare-tgid", [](const Rank &) {
    int32_t pid = 0;
    OK(aclrtDeviceGetBareTgid(&pid));
    CHECK(pid == getpid());
});

// A created context becomes the current one; a destroyed one is refused with 107002.
const Behaviour context_life("context-create-and-destroy", [](const Rank &) {
    aclrtContext first = nullptr;
    aclrtContext second = nullptr;
    aclrtContext current = nullptr;
    OK(aclrtCreateContext(&first, 0));
    OK(aclrtCreateContext(&second, 1));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == second);
    OK(aclrtSetCurrentContext(first));
    int32_t device = -1;
    OK(aclrtGetDevice(&device));
    CHECK(device == 0);
    OK(aclrtDestroyContext(first));
    RETURNS(107002, aclrtGetDevice(&device));
    RETURNS(107002, aclrtSetCurrentContext(first));
    RETURNS(107001, aclrtCreateContext(&first, 1000));
});

// --- streams

// Priorities go from 0 (highest) to 7, flags are those of the interface; both can be read back.
const Behaviour stream_config("stream-priority-and-flags", [](const Rank &me) {
    const World world(me, false);
    aclrtStream stream = nullptr;
    uint32_t value = 99;
    OK(aclrtCreateStreamWithConfig(&stream, 7, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    OK(aclrtStreamGetPriority(stream, &value));
    CHECK(value == 7);
    OK(aclrtStreamGetFlags(stream, &value));
    CHECK(value == 3);
    OK(aclrtDestroyStream(stream));
    RETURNS(107000, aclrtCreateStreamWithConfig(&stream, 8, 0));
    RETURNS(107000, aclrtCreateStreamWithConfig(&stream, 0, 0x80000000U));
});

// Every stream has an id of its own.
const Behaviour stream_id("stream-id", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    int32_t a = -1;
    int32_t b = -1;
    OK(aclrtStreamGetId(world.stream, &a));
    OK(aclrtStreamGetId(other, &b));
    CHECK(a >= 0 && b >= 0 && a != b);
    OK(aclrtDestroyStream(other));
    RETURNS(107017, aclrtStreamGetId(other, &b));
});

// NULL is the default stream of the current context, which has a handle too.
const Behaviour stream_default("default-stream", [](const Rank &me) {
    const World world(me, false);
    aclrtStream stream = nullptr;
    OK(aclrtCtxGetCurrentDefaultStream(&stream));
    CHECK(stream != nullptr);
    sleep_in_stream(nullptr, 200);
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(stream, 10));
    OK(aclrtSynchronizeStream(stream));
});

// -1 waits for ever, 0 looks, expiry is 507046 (and leaves the stream as it is).
const Behaviour stream_timeout("stream-synchronize-timeout", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 300);
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(world.stream, 0));
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(world.stream, 20));
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, -1));
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, 0));
    RETURNS(107000, aclrtSynchronizeStreamWithTimeout(world.stream, -2));
});

// The same for all streams of the device.
const Behaviour device_timeout("device-synchronize-timeout", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 300);
    RETURNS(507046, aclrtSynchronizeDeviceWithTimeout(20));
    OK(aclrtSynchronizeDevice());
    OK(aclrtSynchronizeDeviceWithTimeout(0));
});

// aclrtStreamQuery: COMPLETE 0, NOT_READY 1.
const Behaviour stream_query("stream-query", [](const Rank &me) {
    const World world(me, false);
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    sleep_in_stream(world.stream, 200);
    OK(aclrtStreamQuery(world.stream, &status));
    CHECK(static_cast<int>(status) == 1);
    world.synchronize();
    OK(aclrtStreamQuery(world.stream, &status));
    CHECK(static_cast<int>(status) == 0);
});

// Tasks of a stream run in order, those of two streams beside each other.
const Behaviour stream_order("stream-order-and-overlap", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    const double begin = now();
    sleep_in_stream(world.stream, 300);
    sleep_in_stream(other, 300);
    CHECK(now() - begin < 0.25); // enqueueing does not wait
    OK(aclrtSynchronizeDevice());
    CHECK(now() - begin > 0.29);
    OK(aclrtDestroyStream(other));
});

// aclrtStreamAbort drops what is queued; who synchronises gets 107023, and the stream can be used again.
std::atomic<int> ran{0};
void count_run(void *) { ran++; }
const Behaviour stream_abort("stream-abort", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 400);
    OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
    std::atomic<int> code{0};
    std::thread waiter([&] {
        aclrtSetDevice(0);
        code = aclrtSynchronizeStream(world.stream);
    });
    pause_ms(150);
    OK(aclrtStreamAbort(world.stream));
    waiter.join();
    CHECK(code == 107023 && ran == 0);
    OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
    world.synchronize();
    CHECK(ran == 1);
});

// aclrtDeviceTaskAbort does so for all streams of the device; the code is 107022.
const Behaviour device_abort("device-task-abort", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 400);
    OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
    std::atomic<int> code{0};
    std::thread waiter([&] {
        aclrtSetDevice(0);
        code = aclrtSynchronizeStream(world.stream);
    });
    pause_ms(150);
    OK(aclrtDeviceTaskAbort(0, 1000));
    waiter.join();
    CHECK(code == 107022 && ran == 0);
    RETURNS(107001, aclrtDeviceTaskAbort(-1, 0));
});

// aclrtDestroyStream waits for the stream, aclrtDestroyStreamForce drops what is queued.
const Behaviour stream_destroy("stream-destroy-and-force", [](const Rank &me) {
    const World world(me, false);
    for (const bool force : {false, true}) {
        ran = 0;
        aclrtStream stream = nullptr;
        OK(aclrtCreateStream(&stream));
        sleep_in_stream(stream, 100);
        OK(aclrtLaunchHostFunc(stream, count_run, nullptr));
        OK(force ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream));
        CHECK(ran == (force ? 0 : 1));
        RETURNS(107017, aclrtSynchronizeStream(stream));
    }
});

// A stream of another device than the thread's: 107003.
const Behaviour stream_other("stream-of-another-device", [](const Rank &me) {
    const World world(me, false);
    OK(aclrtSetDevice(1));
    RETURNS(107003, aclrtSynchronizeStream(world.stream));
    OK(aclrtSetDevice(0));
    OK(aclrtSynchronizeStream(world.stream));
});

// A wait that fails its stream (107019 below) stands for a failed task.
void fail_stream(aclrtStream stream, aclrtStream other, aclrtEvent event) {
    sleep_in_stream(other, 400);
    OK(aclrtRecordEvent(event, other));
    OK(aclrtStreamWaitEventWithTimeout(stream, event, 50));
}

// After a failed task a stream that stops drops the following ones, one that continues runs them.
const Behaviour failure_mode("stream-failure-mode", [](const Rank &me) {
    const World world(me, false);
    for (const uint64_t mode : {ACL_STOP_ON_FAILURE, ACL_CONTINUE_ON_FAILURE}) {
        ran = 0;
        aclrtStream stream = nullptr;
        aclrtEvent event = nullptr;
        OK(aclrtCreateStream(&stream));
        OK(aclrtSetStreamFailureMode(stream, mode));
        OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
        fail_stream(stream, world.stream, event);
        OK(aclrtLaunchHostFunc(stream, count_run, nullptr));
        RETURNS(107019, aclrtSynchronizeStream(stream));
        CHECK(ran == (mode == ACL_CONTINUE_ON_FAILURE ? 1 : 0));
        OK(aclrtDestroyStream(stream));
        OK(aclrtDestroyEvent(event));
    }
    RETURNS(100000, aclrtSetStreamFailureMode(world.stream, 2));
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
