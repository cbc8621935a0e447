// Which communicators a device may have, and how they come to be: worlds from rank tables and root info, parts of worlds.

#include <csignal>

#include <sys/time.h>

#include "conform.h"
#include "hccl/hccl_comm.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;

std::string name_of(HcclComm comm) {
    char name[128];
    OK(HcclGetCommName(comm, name));
    return name;
}

// --- root info

// The default name is made of the root's address and the same everywhere.
const Behaviour root_info("root-info-default-name", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    const HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    OK(HcclCommInitRootInfo(2, &info, me.rank, &comm));
    const std::string name = name_of(comm);
    CHECK(name.find('%') != std::string::npos && name.find("_60000_0_") != std::string::npos);
    write_file(folder() + "/name" + std::to_string(me.rank), name);
    CHECK(read_file(folder() + "/name" + std::to_string(1 - me.rank)) == name);
    OK(HcclBarrier(comm, world.stream));
    world.synchronize();
    OK(HcclCommDestroy(comm));
});
// A configuration gives it another one.
const Behaviour root_info_config("root-info-config-name", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me, false);
    const HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "group_name_0");
    OK(HcclCommInitRootInfoConfig(2, &info, me.rank, &config, &comm));
    CHECK(name_of(comm) == "group_name_0");
    OK(HcclBarrier(comm, world.stream));
    world.synchronize();
    OK(HcclCommDestroy(comm));
});
// Signals that the program handles do not end the wait for the others.
const Behaviour root_info_signals("root-info-and-signals", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    const HcclRootInfo info = shared_root_info(me);
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
    const itimerval every{{0, 5000}, {0, 5000}};
    const itimerval none{};
    CHECK(setitimer(ITIMER_REAL, &every, nullptr) == 0);
    if (me.rank == 1) {
        pause_ms(300);
    }
    HcclComm comm = nullptr;
    OK(HcclCommInitRootInfo(2, &info, me.rank, &comm));
    CHECK(setitimer(ITIMER_REAL, &none, nullptr) == 0);
    OK(HcclCommDestroy(comm));
});
// Numbers come before pointers. A configuration that is NULL is a wrong one, and not a NULL pointer as elsewhere.
// Source: hcomm, src/legacy/ascend910/framework/op_base/src/op_base.cc:2148-2214.
const Behaviour root_info_rank("root-info-rank-and-size", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclRootInfo info;
    HcclComm comm = nullptr;
    OK(HcclGetRootInfo(&info));
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfo(2, &info, 2, &comm));
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfo(0, &info, 0, &comm));
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfo(1, nullptr, 1, nullptr));
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfoConfig(1, &info, 0, nullptr, &comm));
    RETURNS(HCCL_E_PTR, HcclCommInitRootInfo(1, nullptr, 0, &comm));
    RETURNS(HCCL_E_PTR, HcclCommInitRootInfo(1, &info, 0, nullptr));
    OK(HcclCommInitRootInfo(1, &info, 0, &comm));
    OK(HcclCommDestroy(comm));
});

// Every rank has a device of its own on its server; all ranks learn of two that share one.
// Source: hcomm src/legacy/ascend910/framework/common/src/topo/topoinfo_exchange_agent.cc:922.
const Behaviour root_info_device("root-info-device-twice", Ranks::Processes, 3, [](const Rank &me) {
    OK(aclrtSetDevice(me.rank == 2 ? 2 : 0));
    HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, "EI0015: ranks 0 and 1 have the same physical device, 0",
          HcclCommInitRootInfo(3, &info, me.rank, &comm));
});

// --- worlds of one device

HcclComm world_of_root_info(const char *name) {
    HcclRootInfo info;
    HcclComm comm = nullptr;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "%s", name);
    OK(HcclGetRootInfo(&info));
    OK(HcclCommInitRootInfoConfig(1, &info, 0, &config, &comm));
    return comm;
}
HcclResult world_of_table(const char *name, HcclComm *comm) {
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "%s", name);
    return HcclCommInitClusterInfoConfig(table_path().c_str(), 0, &config, comm);
}

// One world from a rank table at a time, whatever its name; worlds from root info beside it.
// Source: hcomm src/legacy/ascend910/framework/op_base/src/op_base.cc:430, :656, :3707.
const Behaviour one_table_world("one-table-world-per-device", [](const Rank &me) {
    const World world(me);
    HcclComm second = nullptr;
    FAILS(HCCL_E_UNAVAIL, "one at a time", HcclCommInitClusterInfo(table_path().c_str(), 0, &second));
    RETURNS(HCCL_E_UNAVAIL, world_of_table("other", &second));
    const HcclComm a = world_of_root_info("a");
    const HcclComm b = world_of_root_info("b");
    RETURNS(HCCL_E_UNAVAIL, world_of_table("other", &second));
    OK(HcclCommDestroy(a));
    OK(HcclCommDestroy(b));
});
const Behaviour next_table_world("table-world-after-another", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    OK(world_of_table("first", &comm));
    OK(HcclCommDestroy(comm));
    OK(world_of_table("second", &comm));
    OK(HcclCommDestroy(comm));
});
// On the 950 only the name counts.
// Source: hcomm src/legacy/ascend950/framework/entrance/op_base/op_base_v2.cc:136.
const Environment ON_950 = {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}};
const Behaviour table_worlds_950("table-worlds-950", [](const Rank &me) {
    const World world(me);
    HcclComm second = nullptr;
    RETURNS(HCCL_E_PARA, HcclCommInitClusterInfo(table_path().c_str(), 0, &second));
}, ON_950);

// The 950 keeps the world that was made last: once that is gone it splits none of the others.
// Source: hcomm src/legacy/ascend950/framework/entrance/op_base/op_base_v2.cc:264, :730, :961-968.
const Behaviour last_world_950("split-needs-the-last-world-950", [](const Rank &me) {
    const World world(me, false);
    HcclComm first = world_of_root_info("first");
    const HcclComm last = world_of_root_info("last");
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    uint32_t ranks[] = {0};
    HcclComm part = nullptr;
    OK(HcclCreateSubCommConfig(&first, 1, ranks, 1, 0, &config, &part));
    OK(HcclCommDestroy(part));
    OK(HcclCommDestroy(last));
    HcclCommConfigInit(&config);
    RETURNS(HCCL_E_PTR, HcclCreateSubCommConfig(&first, 1, ranks, 2, 0, &config, &part));
    const HcclComm again = world_of_root_info("again");
    HcclCommConfigInit(&config);
    OK(HcclCreateSubCommConfig(&first, 1, ranks, 3, 0, &config, &part));
    OK(HcclCommDestroy(part));
    OK(HcclCommDestroy(first)); // not the last: the others can be split on
    HcclComm parent = again;
    HcclCommConfigInit(&config);
    OK(HcclCreateSubCommConfig(&parent, 1, ranks, 4, 0, &config, &part));
    // A part is no world, and has a name of its own.
    HcclComm deeper = nullptr;
    HcclCommConfigInit(&config);
    RETURNS(HCCL_E_INTERNAL, HcclCreateSubCommConfig(&part, 1, ranks, 5, 0, &config, &deeper));
    HcclCommConfigInit(&config);
    std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "again");
    RETURNS(HCCL_E_INTERNAL, HcclCreateSubCommConfig(&parent, 1, ranks, 6, 0, &config, &deeper));
    OK(HcclCommDestroy(part));
    OK(HcclCommDestroy(again));
}, ON_950);

// --- sub-communicators

HcclResult sub(const World &world, std::vector<uint32_t> ranks, uint64_t id, uint32_t index, HcclComm *comm,
               const char *name = "") {
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "%s", name);
    HcclComm parent = world.comm;
    return HcclCreateSubCommConfig(&parent, static_cast<uint32_t>(ranks.size()), ranks.data(), id, index, &config,
                                   comm);
}

// The name is that of the configuration, or parent_sub_id; members count by their place in the list.
const Behaviour sub_name("sub-name-and-order", Ranks::Threads, 3, [](const Rank &me) {
    const World world(me);
    if (me.rank == 1) {
        return;
    }
    HcclComm comm = nullptr;
    OK(sub(world, {2, 0}, 0x123456789abcdefULL, me.rank == 2 ? 0 : 1, &comm));
    CHECK(name_of(comm) == "hccl_world_group_sub_" + std::to_string(0x123456789abcdefULL));
    const Vector<float> data(4, [&](size_t) { return static_cast<float>(me.rank); });
    OK(HcclBroadcast(data.at(), 4, FP32, 0, comm, world.stream)); // from world rank 2
    world.synchronize();
    data.expect([](size_t) { return 2.0F; }, "broadcast");
    OK(HcclCommDestroy(comm));
});

// A non-member passes no list and id 0xFFFFFFFF: success, the handle untouched, other arguments not looked at.
const Behaviour sub_non_member("sub-non-member", [](const Rank &me) {
    const World world(me);
    HcclComm parent = world.comm;
    HcclComm comm = reinterpret_cast<HcclComm>(7);
    OK(HcclCreateSubCommConfig(&parent, 0, nullptr, 0xFFFFFFFF, 0, nullptr, &comm));
    CHECK(comm == reinterpret_cast<HcclComm>(7));
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    uint32_t ranks[] = {0};
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 1, nullptr, 3, 0, &config, &comm));
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 1, ranks, 0xFFFFFFFF, 0, &config, &comm));
});

// Lists are not empty, hold ranks of the parent once each, and the index is below their length.
const Behaviour sub_lists("sub-lists", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    HcclComm comm = nullptr;
    RETURNS(HCCL_E_PARA, sub(world, {0, 0}, 1, 0, &comm));
    RETURNS(HCCL_E_PARA, sub(world, {0, 2}, 1, 0, &comm));
    RETURNS(HCCL_E_PARA, sub(world, {0, 1}, 1, 2, &comm));
    HcclComm parent = world.comm;
    uint32_t ranks[] = {0, 1};
    RETURNS(HCCL_E_PTR, HcclCreateSubCommConfig(&parent, 2, ranks, 1, me.rank, nullptr, &comm));
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 0, ranks, 1, 0, &config, &comm));
    RETURNS(HCCL_E_PTR, HcclCreateSubCommConfig(nullptr, 2, ranks, 1, me.rank, &config, &comm));
});

// A single member is not refused.
const Behaviour sub_single("sub-of-one", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    HcclComm comm = nullptr;
    OK(sub(world, {me.rank}, 1, 0, &comm));
    const Vector<float> data(4, [](size_t) { return 3.0F; });
    OK(HcclAllReduce(data.at(), data.at(), 4, FP32, HCCL_REDUCE_SUM, comm, world.stream));
    world.synchronize();
    data.expect([](size_t) { return 3.0F; }, "alone");
    OK(HcclCommDestroy(comm));
});

// Groups without a common member may use one id and name side by side, as rows of a grid do.
const Behaviour sub_rows("sub-disjoint-groups-of-one-id", Ranks::Threads, 4, [](const Rank &me) {
    const World world(me);
    const uint32_t first = me.rank / 2 * 2;
    HcclComm comm = nullptr;
    OK(sub(world, {first, first + 1}, 7, me.rank % 2, &comm));
    const Vector<float> data(4, [&](size_t) { return static_cast<float>(me.rank); });
    OK(HcclAllReduce(data.at(), data.at(), 4, FP32, HCCL_REDUCE_SUM, comm, world.stream));
    world.synchronize();
    data.expect([&](size_t) { return static_cast<float>(2 * first + 1); }, "row");
    OK(HcclCommDestroy(comm));
});

// A split of a split is not supported.
const Behaviour sub_deeper("sub-of-sub-refused", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    HcclComm comm = nullptr;
    OK(sub(world, {0, 1}, 1, me.rank, &comm));
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    uint32_t ranks[] = {0, 1};
    HcclComm deeper = nullptr;
    RETURNS(HCCL_E_NOT_SUPPORT, HcclCreateSubCommConfig(&comm, 2, ranks, 2, me.rank, &config, &deeper));
    OK(HcclCommDestroy(comm));
});

// A name is taken once per device of a process: here each thread has a device of its own.
const Behaviour sub_duplicate("sub-name-once-per-device", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    HcclComm comm = nullptr;
    HcclComm twin = nullptr;
    OK(sub(world, {0, 1}, 1, me.rank, &comm, "same"));
    FAILS(HCCL_E_PARA, "The comm name[same] already exists in Group2Comm map",
          sub(world, {0, 1}, 2, me.rank, &twin, "same"));
    OK(HcclCommDestroy(comm));
    OK(sub(world, {0, 1}, 2, me.rank, &twin, "same"));
    OK(HcclCommDestroy(twin));
});

// Communicators by name, and their state (on the A2 and the 950). Source: hcomm, include/hccl/hccl_comm.h:132 and :280,
// src/legacy/ascend910/framework/op_base/src/op_base.cc:1496, src/legacy/ascend910/framework/communicator/hccl_comm_host.cc:552.
void by_name(bool with_state) {
    const World world({0, 1, false});
    char name[COMM_NAME_MAX_LENGTH] = {};
    HcclComm found = nullptr;
    HcclCommStatus status = HCCL_COMM_STATUS_INVALID;
    OK(HcclGetCommName(world.comm, name));
    OK(HcclCommGetHandleWithName(name, &found));
    CHECK(found == world.comm);
    RETURNS(HCCL_E_PARA, HcclCommGetHandleWithName("another", &found));
    RETURNS(HCCL_E_PTR, HcclCommGetHandleWithName(nullptr, &found));
    RETURNS(HCCL_E_PTR, HcclCommGetStatus(name, nullptr));
    RETURNS(with_state ? HCCL_SUCCESS : HCCL_E_NOT_SUPPORT, HcclCommGetStatus(name, &status));
    if (with_state) {
        CHECK(status == HCCL_COMM_STATUS_READY);
        OK(HcclCommSuspend(world.comm));
        OK(HcclCommGetStatus(name, &status));
        CHECK(status == HCCL_COMM_STATUS_SUSPENDING);
    }
}
const Behaviour named("communicator-by-name", [](const Rank &) { by_name(true); });
const Behaviour named_a3("communicator-by-name-A3", [](const Rank &) { by_name(false); },
                         {{"ASCEND_MOCK_SOC", "Ascend910_9391"}});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
