// The ACL runtime as programs see it: process, settings, devices. "driver" is hicann/driver at ef377e9.

#include <fstream>

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
    on_thread([] { CHECK(aclGetRecentErrMsg() == nullptr); });
    CHECK(recent().find("aclrtSetDevice") != std::string::npos);
    CHECK(aclGetRecentErrMsg() == nullptr);
});

// aclrtPeekAtLastError keeps the thread's last error, aclrtGetLastError takes it.
const Behaviour last_error("last-error-peek-and-get", [](const Rank &) {
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 0);
    RETURNS(107001, aclrtSetDevice(99));
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 107001);
    on_thread([] { CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 0); });
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
const Behaviour version_81("interface-of-8.1", [](const Rank &) { interface_is(13); },
                           {{"ASCEND_MOCK_CANN", "8.1.RC1"}});
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
    on_thread([] {
        int32_t device = -1;
        RETURNS(107002, aclrtGetDevice(&device));
        OK(aclrtSetDevice(2));
        OK(aclrtGetDevice(&device));
        CHECK(device == 2);
    });
    int32_t device = -1;
    OK(aclrtGetDevice(&device));
    CHECK(device == 1);
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

// What joins two devices; needs none that is set. NULL is 100000 (runtime, src/acl/aclrt_impl/device.cpp:506), a device that is not
// there 107000 (driver, src/ascend_hal/dms/drv_devmng/ascend910/devdrv_manager_topology.c:105; runtime,
// src/runtime/core/src/common/errcode_manage.cc:86 and 565). HCCS joins a device and itself (driver,
// src/sdk_driver/dms/devmng/dc/status/dms_dev_topology.c:205).
const Behaviour devices_topo("what-joins-devices", [](const Rank &) {
    uint64_t value = 0;
    RETURNS(100000, aclrtGetDevicesTopo(0, 1, nullptr));
    RETURNS(107000, aclrtGetDevicesTopo(0, 8, &value));
    RETURNS(107000, aclrtGetDevicesTopo(UINT32_MAX, 0, &value));
    CHECK(value == 0);
    for (uint32_t device = 0; device < 8; device++) {
        OK(aclrtGetDevicesTopo(3, device, &value));
        CHECK(value == ACL_RT_DEVS_TOPOLOGY_HCCS);
    }
}, {{"ASCEND_MOCK_DEVICES", "8"}});

// The driver tells every way over PCIe as PIX. Source: driver, dms_dev_topology.c:387.
const Behaviour devices_topo_pcie("what-joins-devices-over-PCIe", [](const Rank &) {
    uint64_t value = 0;
    OK(aclrtGetDevicesTopo(2, 3, &value));
    CHECK(value == ACL_RT_DEVS_TOPOLOGY_HCCS);
    OK(aclrtGetDevicesTopo(2, 1, &value));
    CHECK(value == ACL_RT_DEVS_TOPOLOGY_PIX);
}, {{"ASCEND_MOCK_MESH", "2"}});

// PCIe joins the two meshes of four of a 910A server. Source: hcomm, test/ut/stub/llt_hccl_stub.cc:810.
const Behaviour devices_topo_910a("what-joins-910A", [](const Rank &) {
    uint64_t value = 0;
    OK(aclrtGetDevicesTopo(0, 3, &value));
    CHECK(value == ACL_RT_DEVS_TOPOLOGY_HCCS);
    OK(aclrtGetDevicesTopo(3, 4, &value));
    CHECK(value == ACL_RT_DEVS_TOPOLOGY_PIX);
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});

// On A3 SIO joins the two dies of a chip, and a switch of HCCS all others. Source: driver, dms_dev_topology.c:99 and 128; which two
// are a chip's: hcomm, test/ut/stub/llt_hccl_stub.cc:800; a die and itself: runtime, src/runtime/api/impl/api_impl.cc:5685.
const Behaviour devices_topo_a3("what-joins-A3", [](const Rank &) {
    uint64_t value = 0;
    OK(aclrtGetDevicesTopo(2, 3, &value));
    CHECK(value == ACL_RT_DEVS_TOPOLOGY_SIO);
    OK(aclrtGetDevicesTopo(3, 4, &value));
    CHECK(value == ACL_RT_DEVS_TOPOLOGY_HCCS_SW);
    OK(aclrtGetDevicesTopo(3, 3, &value));
    CHECK(value == ACL_RT_DEVS_TOPOLOGY_HCCS);
}, {{"ASCEND_MOCK_SOC", "Ascend910_9391"}});

// On 950 UB joins them, number 7 of the driver, of which the runtime makes a bit that its header does not have. A device and itself
// are refused, with a code of the driver that the runtime does not know. Source: driver, dms_dev_topology.c:262; runtime,
// src/runtime/api/api_c_device.cc:475, src/runtime/core/src/common/errcode_manage.cc:82 and 599.
const Behaviour devices_topo_950("what-joins-950", [](const Rank &) {
    uint64_t value = 0;
    OK(aclrtGetDevicesTopo(0, 7, &value));
    CHECK(value == 0x80);
    RETURNS(507899, aclrtGetDevicesTopo(7, 7, &value));
}, {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

void sees(uint32_t expected) {
    uint32_t count = 0;
    OK(aclrtGetDeviceCount(&count));
    CHECK(count == expected);
    OK(aclrtSetDevice(static_cast<int32_t>(expected) - 1));
    RETURNS(107001, aclrtSetDevice(static_cast<int32_t>(expected)));
}

void is_device(int32_t physical, int32_t expected) {
    int32_t device = -1;
    OK(aclrtGetLogicDevIdByPhyDevId(physical, &device));
    CHECK(device == expected);
}

// The function says "logical" and gives the number of aclrtSetDevice. Without a container and without ASCEND_RT_VISIBLE_DEVICES the
// numbers are the same. NULL is 100000, a number that the driver does not know 107000. Source: runtime,
// docs/zh/api_ref/04_device_management.md, src/acl/aclrt_impl/device.cpp:537, src/runtime/api/api_c_device.cc:285; driver,
// src/ascend_hal/pbl/uda/uda_user_kernel_api.c:575.
const Behaviour physical_numbers("physical-device-numbers", [](const Rank &) {
    int32_t device = -1;
    RETURNS(100000, aclrtGetLogicDevIdByPhyDevId(0, nullptr));
    RETURNS(107000, aclrtGetLogicDevIdByPhyDevId(-1, &device));
    RETURNS(107000, aclrtGetLogicDevIdByPhyDevId(8, &device));
    CHECK(device == -1);
    is_device(5, 5);
    sees(8);
}, {{"ASCEND_MOCK_DEVICES", "8"}});

// A container counts its devices from 0.
const Behaviour container_numbers("device-numbers-in-a-container", [](const Rank &) {
    int32_t device = -1;
    RETURNS(107000, aclrtGetLogicDevIdByPhyDevId(0, &device));
    is_device(6, 0);
    is_device(7, 1);
    sees(2);
}, {{"ASCEND_MOCK_DEVICES", "2"}, {"ASCEND_MOCK_FIRST_DEVICE", "6"}});

// A process counts the devices that ASCEND_RT_VISIBLE_DEVICES leaves from 0; it has no number for others: 107001. Source: runtime,
// src/runtime/core/src/runtime.cc:4801, 4825 and 4950, src/runtime/api/impl/api_error.cc:4839.
const Behaviour visible_numbers("visible-devices", [](const Rank &) {
    int32_t device = -1;
    RETURNS(107001, aclrtGetLogicDevIdByPhyDevId(2, &device));
    is_device(1, 0);
    is_device(3, 1);
    uint64_t value = 0;
    OK(aclrtGetDevicesTopo(0, 1, &value));
    RETURNS(107001, aclrtGetDevicesTopo(0, 2, &value));
    sees(2);
}, {{"ASCEND_MOCK_DEVICES", "8"}, {"ASCEND_RT_VISIBLE_DEVICES", "1,3"}});

// The variable is read up to the first that is no device. Source: runtime, docs/zh/env_vars/ASCEND_RT_VISIBLE_DEVICES.md.
const Behaviour visible_until("visible-devices-until-the-first-wrong-one", [](const Rank &) {
    is_device(7, 0);
    sees(1);
}, {{"ASCEND_MOCK_DEVICES", "2"}, {"ASCEND_MOCK_FIRST_DEVICE", "6"}, {"ASCEND_RT_VISIBLE_DEVICES", "1, 0"}});

// Nor is it read behind as many as there are. Source: runtime, src/runtime/core/src/runtime.cc:5051.
const Behaviour visible_all("visible-devices-and-more", [](const Rank &) {
    is_device(1, 1);
    sees(2);
}, {{"ASCEND_MOCK_DEVICES", "2"}, {"ASCEND_RT_VISIBLE_DEVICES", "0,1,1"}});

// There is no device where it leaves none, has one twice or does not ascend. Source: runtime, src/runtime/core/src/runtime.cc:5022 to
// 5060, src/runtime/api/impl/api_impl.cc:3411.
void sees_none(const Rank &) {
    uint32_t count = 77;
    RETURNS(207004, aclrtGetDeviceCount(&count));
    RETURNS(107001, aclrtSetDevice(0));
    CHECK(count == 77);
}

const Behaviour visible_none("visible-devices-that-are-none", sees_none, {{"ASCEND_RT_VISIBLE_DEVICES", ""}});
const Behaviour visible_high("visible-devices-that-do-not-exist", sees_none,
                             {{"ASCEND_MOCK_DEVICES", "8"}, {"ASCEND_RT_VISIBLE_DEVICES", "8"}});
const Behaviour visible_twice("visible-devices-with-one-twice", sees_none, {{"ASCEND_RT_VISIBLE_DEVICES", "1,2,2"}});
const Behaviour visible_falling("visible-devices-that-do-not-ascend", sees_none,
                                {{"ASCEND_RT_VISIBLE_DEVICES", "2,1"}});

// The process id as other processes of the machine see it.
const Behaviour bare_tgid("bare-tgid", [](const Rank &) {
    int32_t pid = 0;
    OK(aclrtDeviceGetBareTgid(&pid));
    CHECK(pid == getpid());
});

// Streams have priorities from 7 to 0, and a device that works is normal. Source: runtime, src/runtime/api/impl/api_impl.cc:3828,
// src/acl/aclrt_impl/device.cpp:270.
const Behaviour plain_queries("priorities-and-state-of-a-device", [](const Rank &me) {
    const World world(me, false);
    int32_t least = -1;
    int32_t greatest = -1;
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
    OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 7 && greatest == 0);
    OK(aclrtDeviceGetStreamPriorityRange(nullptr, nullptr));
    OK(aclrtQueryDeviceStatus(0, &status));
    CHECK(status == ACL_RT_DEVICE_STATUS_NORMAL);
    RETURNS(107001, aclrtQueryDeviceStatus(1000, &status));
});

// The time of an event in microseconds: 507000 without a record, 107006 before its end. Source: runtime,
// src/runtime/core/src/event/event.cc:1294, core/src/common/errcode_manage.cc:197.
const Behaviour timestamp("event-timestamp", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    uint64_t first = 0;
    uint64_t second = 0;
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_TIME_LINE));
    RETURNS(507000, aclrtEventGetTimestamp(event, &first));
    OK(aclrtRecordEvent(event, world.stream));
    world.synchronize();
    OK(aclrtEventGetTimestamp(event, &first));
    sleep_in_stream(world.stream, 100);
    OK(aclrtRecordEvent(event, world.stream));
    RETURNS(107006, aclrtEventGetTimestamp(event, &second));
    world.synchronize();
    OK(aclrtEventGetTimestamp(event, &second));
    CHECK(second - first >= 90000 && second - first < 10000000);
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
