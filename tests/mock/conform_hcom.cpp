// The older layer of HCCL (hcom.h): one world from a rank table, groups by name.

#include "conform.h"
#include "hccl/hcom.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;

std::string rank_text(const Rank &me) { return std::to_string(me.rank); }

// A device, a stream and the world of this layer.
struct Layer {
    explicit Layer(const Rank &me) : world(me, false) {
        OK(HcomInitByFile(table_path().c_str(), rank_text(me).c_str()));
    }
    ~Layer() { HcomDestroy(); }
    World world;
};

void expect_sum(const World &world, const char *group, float mine, float wanted) {
    HcclComm comm = nullptr;
    OK(HcomGetCommHandleByGroup(group, &comm));
    const Vector<float> data(8, [&](size_t) { return mine; });
    OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, comm, world.stream));
    world.synchronize();
    data.expect([&](size_t) { return wanted; }, "sum of a group");
}

// The world is a group of the name hccl_world_group, whose communicator serves all operations.
const Behaviour world_group("hcom-world", Ranks::Processes, 4, [](const Rank &me) {
    const Layer layer(me);
    uint32_t value = 99;
    OK(HcomGetRankSize(HCCL_WORLD_GROUP, &value));
    CHECK(value == 4);
    OK(HcomGetRankId("hccl_world_group", &value));
    CHECK(value == me.rank);
    expect_sum(layer.world, HCCL_WORLD_GROUP, static_cast<float>(me.rank), 6);
});

// Local ranks count within the caller's server; here a server has two ranks.
const Behaviour local("hcom-local-ranks", Ranks::Processes, 4, [](const Rank &me) {
    const Layer layer(me);
    uint32_t value = 99;
    OK(HcomGetLocalRankSize(HCCL_WORLD_GROUP, &value));
    CHECK(value == 2);
    OK(HcomGetLocalRankId(HCCL_WORLD_GROUP, &value));
    CHECK(value == me.rank % 2);
});

// A group's ranks count by the list: world rank 3 is rank 0 of it.
const Behaviour groups("hcom-group", Ranks::Threads, 4, [](const Rank &me) {
    const Layer layer(me);
    uint32_t ranks[] = {3, 1};
    uint32_t value = 99;
    if (me.rank % 2 == 0) { // who is not in the list is told so
        RETURNS(HCCL_E_NOT_FOUND, HcomCreateGroup("odd", 2, ranks));
        return;
    }
    OK(HcomCreateGroup("odd", 2, ranks));
    OK(HcomGetRankId("odd", &value));
    CHECK(value == (me.rank == 3 ? 0 : 1));
    OK(HcomGetWorldRankFromGroupRank("odd", 0, &value));
    CHECK(value == 3);
    OK(HcomGetGroupRankFromWorldRank(1, "odd", &value));
    CHECK(value == 1);
    RETURNS(HCCL_E_PARA, HcomGetWorldRankFromGroupRank("odd", 2, &value));
    RETURNS(HCCL_E_PARA, HcomGetGroupRankFromWorldRank(0, "odd", &value));
    expect_sum(layer.world, "odd", static_cast<float>(me.rank), 4);
    OK(HcomDestroyGroup("odd"));
    RETURNS(HCCL_E_PARA, HcomDestroyGroup("odd"));
    OK(HcomCreateGroup("odd", 2, ranks)); // its name is free again
    expect_sum(layer.world, "odd", 1, 2);
});

// The world group can be neither made nor destroyed; names have 1 to 127 characters and are new; rankNum is not 0.
const Behaviour names("hcom-group-names", [](const Rank &me) {
    const Layer layer(me);
    uint32_t ranks[] = {0};
    RETURNS(HCCL_E_PARA, HcomCreateGroup("hccl_world_group", 1, ranks));
    RETURNS(HCCL_E_PARA, HcomDestroyGroup("hccl_world_group"));
    RETURNS(HCCL_E_PARA, HcomCreateGroup("", 1, ranks));
    RETURNS(HCCL_E_PARA, HcomCreateGroup(std::string(128, 'a').c_str(), 1, ranks));
    RETURNS(HCCL_E_PARA, HcomCreateGroup("none", 0, ranks));
    RETURNS(HCCL_E_PTR, HcomCreateGroup(nullptr, 1, ranks));
    RETURNS(HCCL_E_PTR, HcomCreateGroup("none", 1, nullptr));
    OK(HcomCreateGroup(std::string(127, 'a').c_str(), 1, ranks));
    FAILS(HCCL_E_PARA, "already", HcomCreateGroup(std::string(127, 'a').c_str(), 1, ranks));
});

// Groups that are made before the world wait for it.
const Behaviour queued("hcom-groups-before-the-world", Ranks::Threads, 3, [](const Rank &me) {
    World world(me, false);
    uint32_t ends[] = {0, 2};
    uint32_t value = 99;
    OK(HcomCreateGroup("ends", 2, ends));
    RETURNS(HCCL_E_PARA, HcomCreateGroup("ends", 2, ends));
    CHECK(HcomGetRankSize("ends", &value) != HCCL_SUCCESS);
    OK(HcomInitByFile(table_path().c_str(), rank_text(me).c_str()));
    if (me.rank != 1) {
        OK(HcomGetRankId("ends", &value));
        CHECK(value == me.rank / 2);
        expect_sum(world, "ends", 2, 4);
    } else {
        CHECK(HcomGetRankId("ends", &value) != HCCL_SUCCESS);
    }
    OK(HcomDestroy());
});

// The second way of initialisation takes the table itself; there is one world at a time.
const Behaviour by_text("hcom-init-by-table", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me, false);
    const std::string table = read_file(table_path());
    RETURNS(HCCL_E_PTR, HcomInitByRankTable(nullptr, me.rank));
    RETURNS(HCCL_E_INTERNAL, HcomInitByRankTable("{", me.rank));
    OK(HcomInitByRankTable(table.c_str(), me.rank));
    expect_sum(world, HCCL_WORLD_GROUP, 1, 2);
    CHECK(HcomInitByRankTable(table.c_str(), me.rank) != HCCL_SUCCESS);
    OK(HcomDestroy());
    uint32_t value = 0;
    CHECK(HcomGetRankSize(HCCL_WORLD_GROUP, &value) != HCCL_SUCCESS);
});
const Behaviour identify("hcom-identify-is-a-rank", [](const Rank &) {
    OK(aclrtSetDevice(0));
    RETURNS(HCCL_E_PARA, HcomInitByFile(table_path().c_str(), "first"));
    RETURNS(HCCL_E_PTR, HcomInitByFile(table_path().c_str(), nullptr));
    RETURNS(HCCL_E_PTR, HcomInitByFile(nullptr, "0"));
});

// Off the A2 and A3 a group has 1, 2, 4 or 8 ranks of each server, and the same of all.
const Behaviour three_a2("hcom-three-of-a-server", Ranks::Threads, 3, [](const Rank &me) {
    const Layer layer(me);
    uint32_t ranks[] = {0, 1, 2};
    OK(HcomCreateGroup("three", 3, ranks));
});
const Behaviour three_950("hcom-three-of-a-server-950", Ranks::Threads, 3, [](const Rank &me) {
    const Layer layer(me);
    uint32_t ranks[] = {0, 1, 2};
    FAILS(HCCL_E_PARA, "1, 2, 4 or 8", HcomCreateGroup("three", 3, ranks));
    if (me.rank < 2) {
        OK(HcomCreateGroup("two", 2, ranks));
        expect_sum(layer.world, "two", 1, 2);
    }
}, {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

} // namespace

int main(int argc, char **argv) {
    setenv("HARNESS_PER_SERVER", "2", 0);
    return conform(argc, argv);
}
