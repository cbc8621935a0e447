// Rank tables: every rule of versions 1.0, 1.2 and of the oldest form, with the code and the text that tell of it.

#include "conform.h"

using namespace harness;

namespace {

// Two servers, three ranks.
const char *const SERVERS =
    R"({"status":"completed","version":"1.0","server_count":"2","server_list":[{"server_id":"a","device":[)"
    R"({"device_id":"0","device_ip":"10.0.0.1","rank_id":"0"},{"device_id":"1","device_ip":"10.0.0.2","rank_id":"1"}]},)"
    R"({"server_id":"b","device":[{"device_id":"0","device_ip":"10.0.0.3","device_port":"16667","rank_id":"2"}]}]})";

// Three servers in two superpods.
const char *const SUPERPODS =
    R"({"status":"completed","version":"1.2","server_count":"3","server_list":[{"server_id":"a","device":[)"
    R"({"device_id":"0","super_device_id":"0","device_ip":"10.0.0.1","backup_device_ip":"10.0.0.9","backup_device_port":"16668","host_port":"60001","rank_id":"0"}]},)"
    R"({"server_id":"b","device":[{"device_id":"0","super_device_id":"1","device_ip":"10.0.0.2","rank_id":"1"}]},)"
    R"({"server_id":"c","device":[{"device_id":"0","super_device_id":"2","device_ip":"10.0.0.3","rank_id":"2"}]}],)"
    R"("super_pod_list":[{"super_pod_id":"p","server_list":[{"server_id":"a"},{"server_id":"b"}]},)"
    R"({"super_pod_id":"q","server_list":[{"server_id":"c"}]}]})";

// Two groups of instances; ranks in the order of the table.
const char *const GROUPS =
    R"({"status":"completed","group_count":"2","group_list":[{"group_name":"g","instance_count":"2","device_count":"3",)"
    R"("instance_list":[{"pod_name":"0","server_id":"a","devices":[{"device_id":"0","device_ip":"10.0.0.1"},{"device_id":"1","device_ip":"10.0.0.2"}]},)"
    R"({"pod_name":"1","server_id":"b","devices":[{"device_id":"0","device_ip":"10.0.0.3"}]}]},)"
    R"({"group_name":"h","instance_count":"1","device_count":"1","instance_list":[{"pod_name":"2","server_id":"c","devices":[{"device_id":"0","device_ip":"10.0.0.4"}]}]}]})";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
    const size_t place = text.find(from);
    if (place == std::string::npos) {
        throw std::runtime_error("the table does not hold " + from);
    }
    return text.replace(place, from.size(), to);
}

int create(const std::string &table, uint32_t rank, HcclComm *comm) {
    const std::string path = folder() + "/rules.json";
    write_file(path, table);
    return HcclCommInitClusterInfo(path.c_str(), rank, comm);
}

// The table makes rank 0 of a world of this size.
void accepted(const std::string &table, uint32_t ranks) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    RETURNS(0, create(table, 0, &comm));
    uint32_t size = 0;
    OK(HcclGetRankSize(comm, &size));
    CHECK(size == ranks);
    OK(HcclCommDestroy(comm));
}

void refused(const std::string &table, int code, const char *message, uint32_t rank = 0) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(code, message, create(table, rank, &comm));
}

// One rule: a part of a good table replaced, the code and a part of the message.
struct Rule {
    Rule(const char *name, const char *table, std::string from, std::string to, int code, const char *message)
        : behaviour(name, [=](const Rank &) { refused(replaced(table, from, to), code, message); },
                    {{"HCCL_MOCK_TABLE_TIMEOUT", "1"}}) {}
    Behaviour behaviour;
};

struct Good {
    Good(const char *name, const char *table, std::string from, std::string to, uint32_t ranks)
        : behaviour(name, [=](const Rank &) { accepted(replaced(table, from, to), ranks); }) {}
    Behaviour behaviour;
};

// --- 1.0
const Good servers_good("table-1.0", SERVERS, "completed", "completed", 3);
// A missing server_count is a warning only.
const Good no_count("table-server-count-optional", SERVERS, R"("server_count":"2",)", "", 3);
// device_ip may be a list of addresses.
const Good ip_list("table-ip-list", SERVERS, "10.0.0.1", "10.0.0.1,10.0.0.11", 3);
// One server needs no addresses (not on the 910A).
const Behaviour one_server("table-one-server-without-ip", [](const Rank &) {
    accepted(R"({"status":"completed","version":"1.0","server_count":"1","server_list":[{"server_id":"a","device":[)"
             R"({"device_id":"0","rank_id":"0"}]}]})",
             1);
});
const Behaviour one_server_910a("table-one-server-without-ip-910A", [](const Rank &) {
    refused(R"({"status":"completed","version":"1.0","server_count":"1","server_list":[{"server_id":"a","device":[)"
            R"({"device_id":"0","rank_id":"0"}]}]})",
            HCCL_E_NOT_FOUND, "device_ip is missing");
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});
const Rule bad_json("table-json-error", SERVERS, "]}]}", "]}]", HCCL_E_INTERNAL, "Invalid ranktable format.");
const Rule no_status("table-status-missing", SERVERS, R"("status":"completed",)", "", HCCL_E_NOT_FOUND, "EI0004");
const Rule no_list("table-server-list-missing", SERVERS, "server_list", "servers", HCCL_E_NOT_FOUND, "EI0004");
const Rule not_string("table-value-is-no-string", SERVERS, R"("rank_id":"1")", R"("rank_id":1)", HCCL_E_PARA,
                      "is not string!");
const Rule version("table-version-unknown", SERVERS, "1.0", "9.9", HCCL_E_NOT_SUPPORT, "version[9.9] is not supported");
const Rule count("table-server-count-differs", SERVERS, R"(count":"2)", R"(count":"1)", HCCL_E_PARA, "EI0014");
const Rule count_zero("table-server-count-0", SERVERS, R"(count":"2)", R"(count":"0)", HCCL_E_PARA, "EI0014");
const Rule server_twice("table-server-id-twice", SERVERS, R"("server_id":"a")", R"("server_id":"b")", HCCL_E_PARA,
                        "is already exist");
const Rule server_long("table-server-id-too-long", SERVERS, R"("server_id":"a")",
                       R"("server_id":")" + std::string(65, 'x') + '"', HCCL_E_PARA, "server_id");
const Rule ip_twice("table-device-ip-twice", SERVERS, "10.0.0.2", "10.0.0.1", HCCL_E_PARA,
                    "The IP is used repeatedly.");
const Rule ip_bad("table-device-ip-invalid", SERVERS, "10.0.0.2", "10.0.0", HCCL_E_PARA, "EI0004");
const Rule ip_mixed("table-device-ip-family", SERVERS, "10.0.0.2", "fe80::2", HCCL_E_PARA, "device ip family");
const Rule ip_missing("table-device-ip-missing", SERVERS, R"("device_ip":"10.0.0.3",)", "", HCCL_E_NOT_FOUND,
                      "device_ip is missing");
const Rule port("table-device-port", SERVERS, "16667", "0", HCCL_E_PARA, "device_port");
const Rule device_twice("table-device-twice", SERVERS, R"("device_id":"1")", R"("device_id":"0")", HCCL_E_PARA,
                        "device id repeat for one server");
const Rule device_other("table-device-is-not-the-current", SERVERS, R"("device_id":"0")", R"("device_id":"3")",
                        HCCL_E_UNAVAIL, "ranktable config devId[3],but local devId[0]");
const Rule rank_text("table-rank-id-not-numeric", SERVERS, R"("rank_id":"1")", R"("rank_id":"one")", HCCL_E_PARA,
                     "EI0014");
const Rule rank_own("table-own-rank-missing", SERVERS, R"("rank_id":"0")", R"("rank_id":"5")", HCCL_E_UNAVAIL,
                    "EI0014");
const Rule rank_gap("table-rank-gap", SERVERS, R"("rank_id":"2")", R"("rank_id":"4")", HCCL_E_PARA,
                    "is less than the communication size 3 and must be unique.");
const Rule rank_twice("table-rank-twice", SERVERS, R"("rank_id":"2")", R"("rank_id":"1")", HCCL_E_PARA, "EI0014");
// The ranks of a server need not follow each other. Source: hcomm, src/legacy/ascend910/framework/common/src/topo/
// topoinfo_ranktableConcise.cc:126 (sorted by rank), src/legacy/ascend910/framework/common/src/config.cc:359 (numbers only).
const Behaviour blocks("table-server-ranks-apart", [](const Rank &) {
    std::string table = replaced(SERVERS, R"("rank_id":"2")", R"("rank_id":"x")");
    table = replaced(table, R"("rank_id":"1")", R"("rank_id":"2")");
    accepted(replaced(table, R"("rank_id":"x")", R"("rank_id":"1")"), 3);
});
const Behaviour rank_large("table-rank-beyond-size", [](const Rank &) { refused(SERVERS, HCCL_E_PARA, "rank 3", 3); });
// A file that cannot be loaded: its own code, but E_INTERNAL from the call with a configuration.
const Behaviour path("table-path", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    const std::string too_long(5000, 'x');
    for (const char *name : {"", "/none/none.json", too_long.c_str()}) {
        FAILS(HCCL_E_PARA, "is not a valid real path", HcclCommInitClusterInfo(name, 0, &comm));
        FAILS(HCCL_E_INTERNAL, "load rankTable error", HcclCommInitClusterInfoConfig(name, 0, &config, &comm));
    }
    RETURNS(HCCL_E_PTR, HcclCommInitClusterInfo(nullptr, 0, &comm));
});
// What the content breaks keeps its code there.
const Behaviour content("table-content-code-with-config", [](const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    const std::string path = folder() + "/rules.json";
    write_file(path, replaced(SERVERS, "1.0", "9.9"));
    FAILS(HCCL_E_NOT_SUPPORT, "version[9.9]", HcclCommInitClusterInfoConfig(path.c_str(), 0, &config, &comm));
});
// A table that is "initializing" is read again every second until it is completed, or the time is over.
const Behaviour initializing("table-initializing-becomes-completed", [](const Rank &) {
    std::thread completes([] {
        pause_ms(1200);
        write_file(folder() + "/rules.json", SERVERS);
    });
    accepted(replaced(SERVERS, "completed", "initializing"), 3);
    completes.join();
}, {{"HCCL_MOCK_TABLE_TIMEOUT", "20"}});
const Behaviour unfinished("table-initializing-times-out", [](const Rank &) {
    const double begin = now();
    refused(replaced(SERVERS, "completed", "initializing"), HCCL_E_TIMEOUT, "initializing");
    CHECK(now() - begin > 0.9 && now() - begin < 10);
}, {{"HCCL_MOCK_TABLE_TIMEOUT", "1"}});
// The 910A: 1, 2, 4, 8 devices per server, equal; 2 and 4 not on both sides of 0-3 and 4-7; ids up to 7.
const Environment A = {{"ASCEND_MOCK_SOC", "Ascend910A"}};
const Behaviour uneven("table-910A-uneven", [](const Rank &) { refused(SERVERS, HCCL_E_PARA, "same number"); }, A);
const Behaviour sides("table-910A-two-sides", [](const Rank &) {
    refused(
        R"({"status":"completed","version":"1.0","server_count":"1","server_list":[{"server_id":"a","device":[)"
        R"({"device_id":"0","device_ip":"10.0.0.1","rank_id":"0"},{"device_id":"4","device_ip":"10.0.0.2","rank_id":"1"}]}]})",
        HCCL_E_PARA, "both sides");
}, A);
const Behaviour largest("table-910A-device-id", [](const Rank &) {
    refused(replaced(SERVERS, R"("device_id":"1")", R"("device_id":"8")"), HCCL_E_PARA, "device_id");
}, A);

// --- 1.2
const Good pods_good("table-1.2", SUPERPODS, "completed", "completed", 3);
// Without superpods it is a table of servers.
const Good no_pods("table-1.2-without-superpods", SUPERPODS, "super_pod_list", "other", 3);
const Good pods_no_count("table-1.2-server-count-optional", SUPERPODS, R"("server_count":"3",)", "", 3);
// Inside one superpod no address is needed.
const Behaviour one_pod("table-1.2-one-superpod-without-ip", [](const Rank &) {
    accepted(R"({"status":"completed","version":"1.2","server_list":[)"
             R"({"server_id":"a","device":[{"device_id":"0","super_device_id":"0","rank_id":"0"}]},)"
             R"({"server_id":"b","device":[{"device_id":"0","super_device_id":"1","rank_id":"1"}]}],)"
             R"("super_pod_list":[{"super_pod_id":"p","server_list":[{"server_id":"a"},{"server_id":"b"}]}]})",
             2);
});
const Rule super_empty("table-1.2-super-device-id-empty", SUPERPODS, R"("super_device_id":"1")",
                       R"("super_device_id":"")", HCCL_E_PARA, "super_device_id[] is invalid");
const Rule super_missing("table-1.2-super-device-id-missing", SUPERPODS, R"("super_device_id":"1",)", "",
                         HCCL_E_NOT_FOUND, "super_device_id is missing");
// Twice in a superpod it is refused. Source: hcomm, topoinfo_ranktableConcise.cc:1028-1044; :849, it is a number.
const Rule super_twice("table-1.2-super-device-id-twice", SUPERPODS, R"("super_device_id":"1")",
                       R"("super_device_id":"0")", HCCL_E_PARA, "is already exist");
const Good super_other("table-1.2-super-device-id-in-two-superpods", SUPERPODS, R"("super_device_id":"2")",
                       R"("super_device_id":"0")", 3);
const Rule super_text("table-1.2-super-device-id-is-no-number", SUPERPODS, R"("super_device_id":"1")",
                      R"("super_device_id":"one")", HCCL_E_PARA, "super_device_id");
const Rule backup_ip("table-1.2-backup-ip", SUPERPODS, "10.0.0.9", "here", HCCL_E_PARA, "backup_device_ip");
const Rule backup_port("table-1.2-backup-port", SUPERPODS, "16668", "65536", HCCL_E_PARA, "backup_device_port");
const Rule host_port("table-1.2-host-port", SUPERPODS, "60001", "0", HCCL_E_PARA, "host_port");
const Rule pod_apart("table-1.2-superpod-apart", SUPERPODS,
                     R"({"server_id":"b"}]},)"
                     R"({"super_pod_id":"q","server_list":[{"server_id":"c"}]})",
                     R"({"server_id":"c"}]},)"
                     R"({"super_pod_id":"q","server_list":[{"server_id":"b"}]})",
                     HCCL_E_PARA, "not one block");
const Rule pod_unknown("table-1.2-superpod-of-unknown-server", SUPERPODS, R"([{"server_id":"c"}])",
                       R"([{"server_id":"z"}])", HCCL_E_PARA, "is not in server_list");
const Rule pod_twice("table-1.2-server-in-two-superpods", SUPERPODS, R"([{"server_id":"c"}])",
                     R"([{"server_id":"c"},{"server_id":"a"}])", HCCL_E_PARA, "in a superpod already");
const Rule pod_none("table-1.2-server-in-no-superpod", SUPERPODS, R"(,{"server_id":"b"}]},)", "]},", HCCL_E_PARA,
                    "is in no superpod");
const Rule pod_id("table-1.2-superpod-id-twice", SUPERPODS, R"("super_pod_id":"q")", R"("super_pod_id":"p")",
                  HCCL_E_PARA, "super_pod_id");

// --- without a version
const Good groups_good("table-oldest", GROUPS, "completed", "completed", 4);
// Pods of one server may be several instances.
const Behaviour pods_of_server("table-oldest-two-pods-of-a-server", [](const Rank &) {
    accepted(replaced(replaced(GROUPS, R"("server_id":"b")", R"("server_id":"a")"),
                      R"([{"device_id":"0","device_ip":"10.0.0.3"}])", R"([{"device_id":"2","device_ip":"10.0.0.3"}])"),
             4);
});
const Rule no_groups("table-oldest-group-list-missing", GROUPS, "group_list", "groups", HCCL_E_NOT_FOUND,
                     "group_list is missing");
const Rule group_count("table-oldest-group-count", GROUPS, R"("group_count":"2")", R"("group_count":"3")", HCCL_E_PARA,
                       "group_count");
const Rule instance_count("table-oldest-instance-count", GROUPS, R"("instance_count":"2")", R"("instance_count":"1")",
                          HCCL_E_PARA, "instance_count");
const Rule total("table-oldest-device-count", GROUPS, R"("device_count":"3")", R"("device_count":"4")", HCCL_E_PARA,
                 "device_count");
const Rule group_ip("table-oldest-ip-twice", GROUPS, "10.0.0.4", "10.0.0.1", HCCL_E_PARA, "The IP is used repeatedly.");
const Rule group_device("table-oldest-device-twice", GROUPS, R"("device_id":"1")", R"("device_id":"0")", HCCL_E_PARA,
                        "device id repeat for one server");
// Ranks count in the order of the table; all of them work together.
const Behaviour ranks("table-oldest-ranks-by-order", Ranks::Threads, 2, [](const Rank &me) {
    if (me.rank == 0) {
        write_file(folder() + "/old.json",
                   R"({"status":"completed","group_list":[{"instance_list":[{"server_id":"a","devices":[)"
                   R"({"device_id":"1"},{"device_id":"0"}]}]}]})");
    }
    read_file(folder() + "/old.json");
    OK(aclrtSetDevice(static_cast<int32_t>(1 - me.rank)));
    aclrtStream stream = nullptr;
    OK(aclrtCreateStream(&stream));
    HcclComm comm = nullptr;
    OK(HcclCommInitClusterInfo((folder() + "/old.json").c_str(), me.rank, &comm));
    OK(HcclBarrier(comm, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(HcclCommDestroy(comm));
    OK(aclrtDestroyStream(stream));
});

// --- 2.0, for the Ascend 950 only, which reads no other. Source: hcomm, src/coll_communicator_mgr/rank_graph/rank_table_info/
// rank_table_info.cc:23 (Check), new_rank_info.cc:40, src/legacy/ascend910/framework/op_base/src/op_base_v2.cc:315.
const char *const RANKS =
    R"({"version":"2.0","rank_count":2,"rank_list":[{"rank_id":1,"local_id":1,"device_id":1,"level_list":[]},)"
    R"({"rank_id":0,"local_id":0,"device_id":0,"level_list":[{"net_layer":0,"net_instance_id":"a","rank_addr_list":[]}]}]})";
const Environment ON_950 = {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}};
const Behaviour list_good("table-2.0", [](const Rank &) { accepted(RANKS, 2); }, ON_950);
const Behaviour list_elsewhere("table-2.0-elsewhere", [](const Rank &) {
    refused(replaced(RANKS, "{", R"({"status":"completed",)"), HCCL_E_NOT_SUPPORT, "version[2.0] is not supported");
});
const Behaviour servers_950("table-1.0-950", [](const Rank &) {
    refused(SERVERS, HCCL_E_PARA, "version[1.0] is invalid, expected value is 2.0");
}, ON_950);
const Behaviour list_rules("table-2.0-rules", [](const Rank &) {
    refused(replaced(RANKS, R"(count":2)", R"(count":3)"), HCCL_E_PARA, "rank_count is 3");
    refused(replaced(RANKS, R"(rank_id":1)", R"(rank_id":0)"), HCCL_E_PARA, "rank_id 0 is there twice");
    refused(replaced(RANKS, R"(rank_id":1)", R"(rank_id":2)"), HCCL_E_PARA, "rank_id");
    refused(replaced(RANKS, R"("level_list":[])", R"("levels":[])"), HCCL_E_PARA, "level_list");
    refused(replaced(RANKS, R"(device_id":1)", R"(device_id":65)"), HCCL_E_PARA, "device_id");
}, ON_950);

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
