// ASCEND_MOCK_DEVIATE: every name turns its rule against the program, and only that.

#include "conform.h"

using namespace harness;

namespace {

Environment deviation(const char *name) { return {{"ASCEND_MOCK_DEVIATE", name}}; }

const Behaviour unknown("unknown-name", [](const Rank &) {
    FAILS(100000, "no deviation is named [nonsense]", aclInit(nullptr));
}, deviation("memset,nonsense"));

// Which of the four transfers gives a wrong last byte.
std::string wrong_bytes(const World &world) {
    const Vector<uint8_t> a(64);
    const Vector<uint8_t> b(64);
    uint8_t host[64] = {};
    std::string wrong;
    const auto look = [&](const Vector<uint8_t> &device, int expected, const char *name) {
        const uint8_t *bytes = device.at(); // the mock's device memory is the host's
        wrong += bytes[62] == expected && bytes[63] == expected ? "" : name;
    };
    OK(aclrtMemset(a.at(), 64, 3, 64));
    look(a, 3, "memset ");
    std::memset(a.at(), 4, 64);
    OK(aclrtMemcpyAsync(b.at(), 64, a.at(), 64, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    world.synchronize();
    look(b, 4, "d2d ");
    OK(aclrtMemcpy(b.at(), 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
    look(b, 0, "h2d ");
    OK(aclrtMemcpy(host, 64, a.at(), 64, ACL_MEMCPY_DEVICE_TO_HOST));
    wrong += host[63] == 4 ? "" : "d2h ";
    return wrong;
}

const Behaviour none("nothing-deviates", [](const Rank &me) {
    const World world(me, false);
    CHECK(wrong_bytes(world).empty());
});
const Behaviour h2d("copy_h2d", [](const Rank &me) {
    const World world(me, false);
    CHECK(wrong_bytes(world) == "h2d ");
}, deviation("copy_h2d"));
const Behaviour d2h("copy_d2h", [](const Rank &me) {
    const World world(me, false);
    CHECK(wrong_bytes(world) == "d2h ");
}, deviation("copy_d2h"));
const Behaviour d2d("copy_d2d,memset", [](const Rank &me) {
    const World world(me, false);
    CHECK(wrong_bytes(world) == "memset d2d ");
}, deviation("copy_d2d,memset"));

const Behaviour early("event_early", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    sleep_in_stream(world.stream, 2000);
    OK(aclrtRecordEvent(event, world.stream));
    const double begin = now();
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    OK(aclrtQueryEventStatus(event, &status));
    OK(aclrtSynchronizeEvent(event));
    CHECK(status == ACL_EVENT_RECORDED_STATUS_COMPLETE && now() - begin < 1.5);
}, deviation("event_early"));

const Behaviour ignored("wait_ignored", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtStreamWaitEvent(world.stream, event)); // for a record that never comes
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, 20000));
}, deviation("wait_ignored"));

const Behaviour sync_early("sync_early", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 2000);
    const double begin = now();
    OK(aclrtSynchronizeStream(world.stream));
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, 100));
    CHECK(now() - begin < 1.5);
}, deviation("sync_early"));

const Behaviour limit("limit_ignored", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 300);
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, 10));
}, deviation("limit_ignored"));

const Behaviour processor("soc_unknown,cores_zero", [](const Rank &me) {
    const World world(me, false);
    int64_t cores = -1;
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores));
    CHECK(cores == 0 && std::string(aclrtGetSocName()) == "AscendUnknown");
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores));
    CHECK(cores == 0);
}, deviation("soc_unknown,cores_zero"));

// The code of the first of three steps that fails, and which it is.
std::pair<int, int> launched(const World &world) {
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle function = nullptr;
    aclrtArgsHandle arguments = nullptr;
    int code = aclrtBinaryLoadFromFile(std::getenv("HARNESS_KERNEL"), nullptr, &binary);
    if (code != 0) {
        return {1, code};
    }
    code = aclrtBinaryGetFunction(binary, "add_step", &function);
    if (code != 0) {
        return {2, code};
    }
    OK(aclrtKernelArgsInit(function, &arguments));
    const Vector<uint64_t> data(8);
    aclrtParamHandle parameter = nullptr;
    for (uint64_t value : {reinterpret_cast<uint64_t>(data.at()), uint64_t{8}, uint64_t{1}}) {
        OK(aclrtKernelArgsAppend(arguments, &value, sizeof(value), &parameter));
    }
    OK(aclrtKernelArgsFinalize(arguments));
    code = aclrtLaunchKernelWithConfig(function, 1, world.stream, nullptr, arguments, nullptr);
    world.synchronize();
    return {code == 0 ? 0 : 3, code};
}
const Behaviour binary("binary_refused", [](const Rank &me) {
    const World world(me, false);
    CHECK(launched(world).first == 1);
}, deviation("binary_refused"));
const Behaviour function("function_missing", [](const Rank &me) {
    const World world(me, false);
    CHECK(launched(world).first == 2);
}, deviation("function_missing"));
const Behaviour launch("launch_refused", [](const Rank &me) {
    const World world(me, false);
    CHECK(launched(world).first == 3);
}, deviation("launch_refused"));

const Behaviour root("root_info_refused", [](const Rank &me) {
    const World world(me, false);
    HcclRootInfo info;
    FAILS(HCCL_E_INTERNAL, "ASCEND_MOCK_DEVIATE", HcclGetRootInfo(&info));
}, deviation("root_info_refused"));
const Behaviour refused("world_refused", [](const Rank &me) {
    const World world(me, false);
    HcclRootInfo info;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    HcclComm comm = nullptr;
    OK(HcclGetRootInfo(&info));
    FAILS(HCCL_E_INTERNAL, "ASCEND_MOCK_DEVIATE", HcclCommInitRootInfoConfig(1, &info, 0, &config, &comm));
}, deviation("world_refused"));
const Behaviour part("sub_refused,rank_wrong", [](const Rank &me) {
    World world(me);
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    HcclComm comm = nullptr;
    uint32_t rank = 0;
    FAILS(HCCL_E_INTERNAL, "ASCEND_MOCK_DEVIATE", HcclCreateSubCommConfig(&world.comm, 1, &rank, 1, 0, &config, &comm));
    OK(HcclGetRankId(world.comm, &rank));
    CHECK(rank == 1);
}, deviation("sub_refused,rank_wrong"));

const Behaviour no_abort("no_abort", [](const Rank &me) {
    const World world(me, false);
    RETURNS(207000, aclrtStreamAbort(world.stream));
}, deviation("no_abort"));
const Behaviour deaf("abort_deaf", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 300);
    OK(aclrtStreamAbort(world.stream));
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    OK(aclrtStreamQuery(world.stream, &status));
    CHECK(status == ACL_STREAM_STATUS_NOT_READY);
}, deviation("abort_deaf"));

// A world that has lost an operation has failed.
const Behaviour rejoin("no_rejoin", Ranks::Threads, 2, [](const Rank &me) {
    World world(me);
    const Vector<float> data(8);
    HcclRootInfo info;
    HcclComm comm = nullptr;
    OK(HcclAllReduce(data.at(), data.at(), 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    world.synchronize();
    if (me.rank == 1) {
        read_file(folder() + "/done"); // the other rank's operation finds no peer until then
        return;
    }
    OK(HcclAllReduce(data.at(), data.at(), 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    OK(aclrtStreamAbort(world.stream));
    OK(HcclGetRootInfo(&info));
    const int code = HcclCommInitRootInfo(1, &info, 0, &comm);
    const std::string why = recent();
    write_file(folder() + "/done", "done");
    CHECK(code == HCCL_E_INTERNAL);
    expect_text(__FILE__, __LINE__, why, "after one that has failed");
}, deviation("no_rejoin"));

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
