// Communicators of HCCL as programs see them: creation, configuration, sub-communicators, life and end.

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

// HcclSetConfig sets determinism of the process: 0 and 1, 2 (strict) on A2 and A3.
HcclResult set_determinism(int32_t value) {
    HcclConfigValue wanted;
    wanted.value = value;
    return HcclSetConfig(HCCL_DETERMINISTIC, wanted);
}
int32_t determinism() {
    HcclConfigValue value;
    value.value = -7;
    OK(HcclGetConfig(HCCL_DETERMINISTIC, &value));
    return value.value;
}
const Behaviour set_config("set-config", [](const Rank &) {
    CHECK(determinism() == 0);
    OK(set_determinism(1));
    CHECK(determinism() == 1);
    OK(set_determinism(2));
    CHECK(determinism() == 2);
    RETURNS(HCCL_E_PARA, set_determinism(3));
    RETURNS(HCCL_E_PTR, HcclGetConfig(HCCL_DETERMINISTIC, nullptr));
});
// The environment overrules it.
const Behaviour set_config_env("set-config-environment-wins", [](const Rank &) {
    CHECK(determinism() == 1);
    OK(set_determinism(0));
    CHECK(determinism() == 1);
}, {{"HCCL_DETERMINISTIC", "true"}});
const Behaviour set_config_a("set-config-910A-not-strict", [](const Rank &) {
    RETURNS(HCCL_E_PARA, set_determinism(2));
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});

// --- configuration

struct Header {
    size_t size;
    uint32_t magic;
    uint32_t version;
    uint64_t reserved;
};

// A client's structure of a version and size; what lies behind the size is rubbish.
HcclResult create_with(uint32_t version, size_t size, const std::function<void(HcclCommConfig *)> &change,
                       HcclComm *comm) {
    std::vector<char> memory(sizeof(HcclCommConfig) + 64, 0x55);
    auto *config = reinterpret_cast<HcclCommConfig *>(memory.data());
    HcclCommConfigInit(config);
    const Header header = {size, HCCL_COMM_CONFIG_MAGIC_WORD, version, 0};
    std::memcpy(config->reserved, &header, sizeof(header));
    change(config);
    std::memset(memory.data() + size, 0x55, memory.size() - size);
    return HcclCommInitClusterInfoConfig(table_path().c_str(), 0, config, comm);
}

std::string name_of(HcclComm comm) {
    char name[128];
    OK(HcclGetCommName(comm, name));
    return name;
}

// One case per layout that vendor headers have had.
struct Layout {
    Layout(const char *name, uint32_t version, size_t size, bool named)
        : behaviour(name, [=](const Rank &) {
              OK(aclrtSetDevice(0));
              HcclComm comm = nullptr;
              OK(create_with(version, size, [](HcclCommConfig *config) {
                  config->hcclBufferSize = 20;
                  std::snprintf(config->hcclCommName, sizeof(config->hcclCommName), "mine");
              }, &comm));
              CHECK(name_of(comm) == (named ? "mine" : "hccl_world_group"));
              OK(HcclCommDestroy(comm));
          }) {}
    Behaviour behaviour;
};
const Layout version_1("config-version-1-32-bytes", 1, 32, false);
const Layout version_2("config-version-2-160-bytes", 2, 160, true);
const Layout version_5("config-version-5-300-bytes", 5, 300, true);
const Layout version_6("config-version-6-312-bytes", 6, 312, true);
const Layout version_10("config-version-10-2232-bytes", 10, 2232, true); // torch_npu 2.7.1
const Layout version_10_large("config-version-10-2240-bytes", 10, 2240, true);
const Layout version_11("config-version-11-newer", 11, 2256, true);

// Fields are honoured by version, not by size: a version 1 in a large structure has no name.
const Layout by_version("config-fields-by-version", 1, 2232, false);

void config_refused(int code, const char *message, const std::function<void(HcclCommConfig *)> &change) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(code, message, create_with(10, sizeof(HcclCommConfig), change, &comm));
}
// A structure without the magic word was not initialised.
const Behaviour magic("config-magic", [](const Rank &) {
    config_refused(HCCL_E_PARA, "Invalid magic word", [](HcclCommConfig *config) { config->reserved[8] = 1; });
});
const Behaviour buffer_0("config-buffer-size-0", [](const Rank &) {
    config_refused(HCCL_E_PARA, "hcclBufferSize", [](HcclCommConfig *config) { config->hcclBufferSize = 0; });
});
const Behaviour deterministic_3("config-deterministic-3", [](const Rank &) {
    config_refused(HCCL_E_PARA, "hcclDeterministic", [](HcclCommConfig *config) { config->hcclDeterministic = 3; });
});
const Behaviour config_null("config-null", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    RETURNS(HCCL_E_PTR, HcclCommInitClusterInfoConfig(table_path().c_str(), 0, nullptr, &comm));
});
// A bad expansion mode only warns.
const Behaviour expansion("config-expansion-mode-warns", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    OK(create_with(5, 300, [](HcclCommConfig *config) { config->hcclOpExpansionMode = 99; }, &comm));
    OK(HcclCommDestroy(comm));
});
// A wrong variable of the environment is named: EI0001.
const Behaviour bad_variable("environment-is-checked", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, "EI0001", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
    FAILS(HCCL_E_PARA, "HCCL_BUFFSIZE", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
}, {{"HCCL_BUFFSIZE", "0"}});

const Behaviour bad_determinism("environment-determinism", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, "HCCL_DETERMINISTIC [perhaps]", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
}, {{"HCCL_DETERMINISTIC", "perhaps"}});

// --- creation

// A communicator needs a device.
const Behaviour no_device("creation-needs-a-device", [](const Rank &) {
    HcclComm comm = nullptr;
    HcclRootInfo info;
    FAILS(HCCL_E_RUNTIME, "no device", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
    FAILS(HCCL_E_RUNTIME, "no device", HcclGetRootInfo(&info));
    RETURNS(HCCL_E_PTR, HcclGetRootInfo(nullptr));
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

// Root info travels as bytes; the default name is made of the root's address and the same everywhere.
HcclRootInfo shared(const Rank &me) {
    HcclRootInfo info;
    if (me.rank == 0) {
        OK(HcclGetRootInfo(&info));
        write_file(folder() + "/root", std::string(info.internal, sizeof(info.internal)));
    } else {
        std::memcpy(info.internal, read_file(folder() + "/root").data(), sizeof(info.internal));
    }
    return info;
}
const Behaviour root_info("root-info-default-name", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    const HcclRootInfo info = shared(me);
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
    const HcclRootInfo info = shared(me);
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
const Behaviour root_info_rank("root-info-rank-and-size", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclRootInfo info;
    HcclComm comm = nullptr;
    OK(HcclGetRootInfo(&info));
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfo(2, &info, 2, &comm));
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfo(0, &info, 0, &comm));
    RETURNS(HCCL_E_PTR, HcclCommInitRootInfo(1, nullptr, 0, &comm));
    RETURNS(HCCL_E_PTR, HcclCommInitRootInfo(1, &info, 0, nullptr));
    OK(HcclCommInitRootInfo(1, &info, 0, &comm));
    OK(HcclCommDestroy(comm));
});

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

// A communicator with operations in a stream is busy: E_AGAIN.
const Behaviour busy("destroy-busy", [](const Rank &me) {
    const World world(me);
    sleep_in_stream(world.stream, 200);
    OK(HcclBarrier(world.comm, world.stream));
    RETURNS(HCCL_E_AGAIN, HcclCommDestroy(world.comm));
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

// Memory ranges: alignment and flags are 0, ranges do not overlap, activated memory lies inside.
const Behaviour ranges("memory-ranges", [](const Rank &me) {
    const World world(me);
    void *address = nullptr;
    const size_t mb = 1 << 20;
    OK(aclrtReserveMemAddress(&address, 8 * mb, 0, nullptr, 1));
    char *base = static_cast<char *>(address);
    const aclrtPhysicalMemProp prop = {ACL_MEM_HANDLE_TYPE_NONE, ACL_MEM_ALLOCATION_TYPE_PINNED, ACL_HBM_MEM_HUGE,
                                       {0, ACL_MEM_LOCATION_TYPE_DEVICE}, 0};
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

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
