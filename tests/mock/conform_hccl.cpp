// Communicators of HCCL as programs see them: what they tell of themselves, their life and their end.

#include "conform.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;

// --- texts and numbers

// HcclGetErrorString knows 0 to 21; anything else is "unknow error", spelt so.
const Behaviour error_strings("error-strings", [](const Rank &) {
    CHECK(std::string(HcclGetErrorString(HCCL_SUCCESS)) == "no error");
    CHECK(std::string(HcclGetErrorString(HCCL_E_PARA)) == "parameter error");
    CHECK(std::string(HcclGetErrorString(HCCL_E_TCP_CONNECT)) == "tcp connect fail");
    CHECK(std::string(HcclGetErrorString(HCCL_E_REMOTE)) == "error cqe");
    CHECK(std::string(HcclGetErrorString(HCCL_E_SUSPENDING)) == "unknow error");
    CHECK(std::string(HcclGetErrorString(static_cast<HcclResult>(-3))) == "unknow error");
});

// What the library can configure grows with CANN: one more than the last capability.
const Behaviour capability_83("capability-8.3", [](const Rank &) {
    CHECK(HcclGetCommConfigCapability() > HCCL_COMM_CONFIG_SUPPORT_INIT_BY_ENV);
});
const Behaviour capability_90("capability-9.0", [](const Rank &) {
    CHECK(HcclGetCommConfigCapability() == HCCL_COMM_CONFIG_BUFFER_NAME + 1);
}, {{"ASCEND_MOCK_CANN", "9.0.0"}});

// --- creation

std::string name_of(HcclComm comm) {
    char name[128];
    OK(HcclGetCommName(comm, name));
    return name;
}

// A communicator needs a device, before anything else. Source: hcomm, src/legacy/ascend910/framework/op_base/src/op_base.cc:773, :1383, :2010.
const Behaviour no_device("creation-needs-a-device", [](const Rank &) {
    HcclComm comm = nullptr;
    HcclRootInfo info;
    FAILS(HCCL_E_RUNTIME, "no device", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
    FAILS(HCCL_E_RUNTIME, "no device", HcclGetRootInfo(&info));
    FAILS(HCCL_E_RUNTIME, "no device", HcclGetRootInfo(nullptr));
    FAILS(HCCL_E_RUNTIME, "no device", HcclCommInitRootInfo(0, nullptr, 0, nullptr));
    FAILS(HCCL_E_RUNTIME, "no device", HcclCommInitClusterInfo(nullptr, 0, nullptr));
    OK(aclrtSetDevice(0));
    RETURNS(HCCL_E_PTR, HcclGetRootInfo(nullptr));
    RETURNS(HCCL_E_PTR, HcclCommInitClusterInfo(nullptr, 0, &comm));
});

// Rank, size and name; the world of a rank table is hccl_world_group.
const Behaviour identity("rank-size-and-name", Ranks::Threads, 3, [](const Rank &me) {
    const World world(me);
    uint32_t value = 99;
    OK(HcclGetRankId(world.comm, &value));
    CHECK(value == me.rank);
    OK(HcclGetRankSize(world.comm, &value));
    CHECK(value == 3);
    CHECK(name_of(world.comm) == "hccl_world_group");
    RETURNS(HCCL_E_PTR, HcclGetRankId(nullptr, &value));
    RETURNS(HCCL_E_PTR, HcclGetRankSize(world.comm, nullptr));
});

// --- life and end

// Destroying nothing is a success; what was destroyed is refused.
const Behaviour destroy("destroy", [](const Rank &me) {
    World world(me);
    OK(HcclCommDestroy(nullptr));
    const HcclComm comm = world.comm;
    OK(HcclCommDestroy(comm));
    world.comm = nullptr;
    RETURNS(HCCL_E_PARA, HcclBarrier(comm, world.stream));
    RETURNS(HCCL_E_PARA, HcclCommDestroy(comm));
});

// A communicator is busy (E_AGAIN) only while a host call of another thread is in it. Source: hcomm,
// src/legacy/ascend910/framework/op_base/src/op_base.cc:3684, common state_guard.h.
const Behaviour busy("destroy-busy", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    OK(HcclBarrier(world.comm, world.stream)); // builds links
    world.synchronize();
    if (me.rank == 0) {
        std::thread destroyer([&] {
            pause_ms(300);
            OK(aclrtSetDevice(0));
            RETURNS(HCCL_E_AGAIN, HcclCommDestroy(world.comm));
            OK(aclrtResetDevice(0));
        });
        OK(HcclBarrier(world.comm, world.stream)); // held for a second by HCCL_MOCK_FAULT
        destroyer.join();
    } else {
        OK(HcclBarrier(world.comm, world.stream));
    }
    world.synchronize();
}, {{"HCCL_MOCK_FAULT", "0:HcclBarrier:1:hold=1"}});

// Of operations that are queued or running it knows nothing: it ends at once, and they fail as accesses to memory that is gone.
// Source: hcomm, src/legacy/ascend910/framework/op_base/src/op_base.cc:3684 (only the state of host calls is looked at),
// hccl_communicator_host.cc:219-381 (no stream is waited for); the code: runtime, docs/zh/api_ref/25-01_aclError.md, 507057.
const Behaviour under_work("destroy-under-queued-work", Ranks::Threads, 2, [](const Rank &me) {
    World world(me);
    const Vector<float> data(8, [](size_t) { return 1.0F; });
    OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    world.synchronize();
    if (me.rank == 0) {
        sleep_in_stream(world.stream, 2000);
        OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
        OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
        const double begin = now();
        OK(HcclCommDestroy(world.comm));
        CHECK(now() - begin < 1.5);
        world.comm = nullptr;
        CHECK(adasum_mock_counter("destroyed_under_work") == 1);
        FAILS(507057, "HcclAllReduce (32 bytes, fp32, sum), HcclAllReduce", aclrtSynchronizeStream(world.stream));
        OK(aclrtSynchronizeStream(world.stream)); // told once
    } else if (HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream) ==
               HCCL_SUCCESS) {
        RETURNS(507057, aclrtSynchronizeStream(world.stream)); // in truth: garbage, or a wait until a limit is over
    }
});

// An operation that waits for its peer ends with it, too. A communicator of one rank copies on its stream and needs nothing.
const Behaviour under_running("destroy-under-running-work", Ranks::Threads, 2, [](const Rank &me) {
    World world(me);
    const Vector<float> data(8, [](size_t) { return 1.0F; });
    OK(HcclBarrier(world.comm, world.stream));
    world.synchronize();
    if (me.rank == 0) {
        OK(HcclBarrier(world.comm, world.stream));
        pause_ms(100);
        OK(HcclCommDestroy(world.comm));
        world.comm = nullptr;
        RETURNS(507057, aclrtSynchronizeStream(world.stream));
        write_file(folder() + "/over", "");
        return;
    }
    read_file(folder() + "/over");
});
const Behaviour under_alone("destroy-of-one-rank-under-work", [](const Rank &me) {
    World world(me);
    const Vector<float> data(8, [](size_t) { return 1.0F; });
    const Vector<float> result(8);
    sleep_in_stream(world.stream, 100);
    OK(HcclAllReduce(data.at(), result.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    OK(HcclCommDestroy(world.comm));
    world.comm = nullptr;
    CHECK(adasum_mock_counter("destroyed_under_work") == 0);
    world.synchronize();
    result.expect([](size_t) { return 1.0F; }, "all-reduce of one rank");
});

// It is looked for among the communicators of the thread's device, so a thread needs one (HCCL_E_RUNTIME), and that one
// (HCCL_E_PARA). Source: hcomm, src/legacy/ascend910/framework/op_base/src/op_base.cc:3649 and :3714.
const Behaviour destroy_device("destroy-needs-its-device", [](const Rank &me) {
    const World world(me);
    on_thread([&] {
        RETURNS(HCCL_E_RUNTIME, HcclCommDestroy(world.comm));
        OK(aclrtSetDevice(1));
        RETURNS(HCCL_E_PARA, HcclCommDestroy(world.comm));
        OK(aclrtResetDevice(1));
    });
});

// A stream of another context than the thread's is refused by the runtime: HCCL_E_RUNTIME. A communicator's own streams belong
// to the context of its first operation with another rank. Source: runtime, src/runtime/core/inc/common/error_message_manage.hpp:337;
// hcomm, src/legacy/ascend910/platform/resource/stream/stream.cc:257 and :311.
const Behaviour comm_context("operations-need-the-context", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    aclrtContext primary = nullptr;
    aclrtContext own = nullptr;
    aclrtStream stream = nullptr;
    OK(aclrtGetCurrentContext(&primary));
    OK(HcclBarrier(world.comm, world.stream));
    OK(aclrtCreateContext(&own, device_of(me)));
    OK(aclrtCreateStream(&stream));
    RETURNS(HCCL_E_RUNTIME, HcclBarrier(world.comm, world.stream));
    RETURNS(HCCL_E_RUNTIME, HcclBarrier(world.comm, stream));
    OK(aclrtDestroyContext(own));
    OK(aclrtSetCurrentContext(primary));
    OK(HcclBarrier(world.comm, world.stream));
    world.synchronize();
});

// A suspended communicator takes nothing (22) until it is resumed.
const Behaviour suspend("suspend-and-resume", [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(HcclCommSuspend(world.comm));
    RETURNS(22, HcclBarrier(world.comm, world.stream));
    RETURNS(22, HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    OK(HcclCommResume(world.comm));
    OK(HcclBarrier(world.comm, world.stream));
    world.synchronize();
    RETURNS(HCCL_E_PTR, HcclCommSuspend(nullptr));
    RETURNS(HCCL_E_PTR, HcclCommResume(nullptr));
});

// HcclGetCommAsyncError is 0 for a communicator that works.
const Behaviour async_error("async-error-none", [](const Rank &me) {
    const World world(me);
    HcclResult error = HCCL_E_INTERNAL;
    OK(HcclGetCommAsyncError(world.comm, &error));
    CHECK(error == HCCL_SUCCESS);
    RETURNS(HCCL_E_PTR, HcclGetCommAsyncError(world.comm, nullptr));
});

// Of the 950 it never tells anything, and writes nothing.
// Source: hcomm, src/legacy/ascend950/framework/entrance/op_base/op_base_v2.cc:2989.
const Behaviour async_error_950("async-error-950", [](const Rank &me) {
    const World world(me);
    HcclResult error = HCCL_E_INTERNAL;
    OK(HcclGetCommAsyncError(world.comm, &error));
    CHECK(error == HCCL_E_INTERNAL);
}, {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

// Memory ranges: alignment and flags are 0, ranges do not overlap, activated memory lies inside.
const Behaviour ranges("memory-ranges", [](const Rank &me) {
    const World world(me);
    void *address = nullptr;
    const size_t mb = 1 << 20;
    OK(aclrtReserveMemAddress(&address, 8 * mb, 0, nullptr, 1));
    char *base = static_cast<char *>(address);
    const aclrtPhysicalMemProp prop = {ACL_MEM_HANDLE_TYPE_NONE,
                                       ACL_MEM_ALLOCATION_TYPE_PINNED,
                                       ACL_HBM_MEM_HUGE,
                                       {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                       0};
    aclrtDrvMemHandle handle = nullptr;
    OK(aclrtMallocPhysical(&handle, 2 * mb, &prop, 0));
    RETURNS(HCCL_E_PTR, HcclCommSetMemoryRange(world.comm, nullptr, 8 * mb, 0, 0));
    RETURNS(HCCL_E_PARA, HcclCommSetMemoryRange(world.comm, base, 8 * mb, 64, 0));
    OK(HcclCommSetMemoryRange(world.comm, base, 8 * mb, 0, 0));
    RETURNS(HCCL_E_PARA, HcclCommSetMemoryRange(world.comm, base + mb, mb, 0, 0));
    RETURNS(HCCL_E_PARA, HcclCommActivateCommMemory(world.comm, base + 8 * mb, 2 * mb, 0, handle, 0));
    RETURNS(HCCL_E_PTR, HcclCommActivateCommMemory(world.comm, base, 2 * mb, 0, nullptr, 0));
    OK(HcclCommActivateCommMemory(world.comm, base, 2 * mb, 0, handle, 0));
    RETURNS(HCCL_E_PARA, HcclCommUnsetMemoryRange(world.comm, base));
    OK(HcclCommDeactivateCommMemory(world.comm, base));
    RETURNS(HCCL_E_PARA, HcclCommDeactivateCommMemory(world.comm, base));
    OK(HcclCommUnsetMemoryRange(world.comm, base));
    RETURNS(HCCL_E_PARA, HcclCommUnsetMemoryRange(world.comm, base));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(address));
});
// Only the A2 and A3 have them.
const Behaviour ranges_950("memory-ranges-950", [](const Rank &me) {
    const World world(me);
    char place = 0;
    RETURNS(HCCL_E_NOT_SUPPORT, HcclCommSetMemoryRange(world.comm, &place, 1, 0, 0));
}, {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

// The change to a backup network card is for the A3.
HcclResult set_card(const World &world, uint32_t rank, uint32_t count) {
    bool backup[] = {true};
    return HcclCommWorkingDevNicSet(world.comm, &rank, backup, count);
}
const Behaviour card("backup-card-A2-has-none", [](const Rank &me) {
    const World world(me);
    RETURNS(HCCL_E_NOT_SUPPORT, set_card(world, 0, 1));
    RETURNS(HCCL_E_PARA, set_card(world, 1, 1));
    RETURNS(HCCL_E_PARA, set_card(world, 0, 0));
});
const Behaviour card_a3("backup-card-A3", [](const Rank &me) {
    const World world(me);
    OK(set_card(world, 0, 1));
}, {{"ASCEND_MOCK_SOC", "Ascend910_9391"}});

// The mock's own: a first broadcast against another rank's all-reduce is a difference that both learn of, long before any limit.
// In truth both wait; hcomm checks it with HCCL_DFS_CONFIG only (op_base.cc:4841, CommCheckOpInconsistentError).
const Behaviour differ("first-of-a-kind-against-another-operation", Ranks::Threads, 2, [](const Rank &me) {
    World world(me);
    const Vector<float> data(8, [](size_t) { return 1.0F; });
    OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    world.synchronize();
    const double begin = now();
    if (me.rank == 0) {
        OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
        FAILS(507049, "HcclBroadcast", aclrtSynchronizeStream(world.stream));
    } else {
        FAILS(HCCL_E_PARA, "is in operation 1, HcclAllReduce",
              HcclBroadcast(data.at(), 8, FP32, 0, world.comm, world.stream));
    }
    CHECK(now() - begin < 20);
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
