// What the mock does when something is wrong: limits of time, ranks that differ, ranks that die, arguments, rank tables.

#include <atomic>

#include "harness.h"

using namespace harness;

namespace {

constexpr int TIMEOUT = ACL_ERROR_RT_FFTS_PLUS_TIMEOUT;
constexpr int EXCEPTION = ACL_ERROR_RT_FFTS_PLUS_EXCEPTION;
constexpr int REMOTE = ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;

HcclResult send(const World &world, const Vector<float> &data, uint32_t peer, uint64_t count = 8) {
    return HcclSend(data.at(), count, FP32, peer, world.comm, world.stream);
}

HcclResult receive(const World &world, const Vector<float> &data, uint32_t peer, uint64_t count = 8) {
    return HcclRecv(data.at(), count, FP32, peer, world.comm, world.stream);
}

HcclResult all_reduce(const World &world, const Vector<float> &data, uint64_t count = 8) {
    return HcclAllReduce(data.at(), data.at(), count, FP32, HCCL_REDUCE_SUM, world.comm, world.stream);
}

// Both ranks send first: a deadlock, which ends with the limit of time on both and says who waits for whom.
void mutual_send(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    const uint32_t peer = 1 - me.rank;
    if (me.rank == 0) {
        OK(send(world, data, peer));
        OK(receive(world, data, peer));
    } else {
        OK(receive(world, data, peer));
        OK(send(world, data, peer));
    }
    world.synchronize();
    OK(send(world, data, peer));
    const double begin = now();
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(world.stream, 100));
    const int code = aclrtSynchronizeStream(world.stream);
    const std::string message = recent();
    CHECK(code == TIMEOUT || code == REMOTE); // of this rank's limit, or of the other's
    CHECK(now() - begin > 0.8 && now() - begin < 20);
    for (const char *needle : {"HcclSend", "32 bytes, fp32", "hccl_world_group"}) {
        expect_text(__FILE__, __LINE__, message, needle);
    }
    expect_text(__FILE__, __LINE__, message, text("rank %u", peer));
    // A communicator that has failed says so at once, with the same code; the stream has told its error.
    const HcclResult later = receive(world, data, peer);
    CHECK(later == (code == TIMEOUT ? HCCL_E_TIMEOUT : HCCL_E_REMOTE));
    OK(aclrtSynchronizeStream(world.stream));
}

// The same at the first operation: it ends in the host call, where links are built.
void first_mutual_send(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    const double begin = now();
    const HcclResult code = send(world, data, 1 - me.rank);
    CHECK(code == HCCL_E_TIMEOUT || code == HCCL_E_REMOTE); // of this rank's limit, or of the other's
    expect_text(__FILE__, __LINE__, recent(), "builds links for HcclSend");
    CHECK(now() - begin > 0.8 && now() - begin < 20);
}

// Different first operations: the limit of time is in the host calls, and each rank learns what the other builds links for.
void first_operations_differ(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    const HcclResult code =
        me.rank == 0 ? all_reduce(world, data) : HcclBroadcast(data.at(), 8, FP32, 0, world.comm, world.stream);
    CHECK(code == HCCL_E_TIMEOUT || code == HCCL_E_REMOTE); // of this rank's limit, or of the other's
    const std::string message = recent();
    expect_text(__FILE__, __LINE__, message, "HcclAllReduce");
    expect_text(__FILE__, __LINE__, message, "HcclBroadcast");
}

void missing_rank(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    if (me.rank == 3) {
        pause_ms(2000);
        return;
    }
    FAILS(HCCL_E_TIMEOUT, "call of this communicator", all_reduce(world, data));
    FAILS(HCCL_E_TIMEOUT, "EI0006", all_reduce(world, data));
}

// Ranks that run different operations, or the same on different amounts, all learn of both.
void different_operations(const Rank &me) {
    const World world(me);
    const Vector<float> data(16);
    const Vector<float> gathered(16 * me.size);
    OK(all_reduce(world, data));
    OK(HcclAllGather(data.at(), gathered.at(), 16, FP32, world.comm, world.stream));
    world.synchronize();
    if (me.rank == 1) {
        OK(HcclAllGather(data.at(), gathered.at(), 16, FP32, world.comm, world.stream));
    } else {
        OK(all_reduce(world, data));
    }
    const int code = aclrtSynchronizeStream(world.stream);
    const std::string message = recent();
    CHECK(code == EXCEPTION);
    expect_text(__FILE__, __LINE__, message, "EI0005");
    expect_text(__FILE__, __LINE__, message, "HcclAllReduce (32 bytes, fp32, sum)");
    expect_text(__FILE__, __LINE__, message, "HcclAllGather (64 bytes, fp32)");
}

void different_sizes(const Rank &me) {
    const World world(me);
    const Vector<float> data(16);
    OK(me.rank == 0 ? send(world, data, 1, 8) : receive(world, data, 0, 8));
    world.synchronize();
    OK(me.rank == 0 ? send(world, data, 1, 8) : receive(world, data, 0, 9));
    FAILS(EXCEPTION, "HcclRecv (36 bytes", aclrtSynchronizeStream(world.stream));
    HcclResult asynchronous = HCCL_E_INTERNAL;
    OK(HcclGetCommAsyncError(world.comm, &asynchronous));
    CHECK(asynchronous == HCCL_SUCCESS);
}

void killed_peer(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(all_reduce(world, data));
    world.synchronize();
    if (me.rank == 2) {
        raise(SIGKILL);
    }
    const double begin = now();
    const HcclResult queued = all_reduce(world, data);
    if (queued == HCCL_SUCCESS) {
        FAILS(REMOTE, "has ended", aclrtSynchronizeStream(world.stream));
    }
    CHECK(now() - begin < 10); // by the end of the process, not by a limit of time
    FAILS(HCCL_E_REMOTE, "rank 2", all_reduce(world, data));
    // Told of peers on the network only. Source: hcomm, src/legacy/ascend910, heartbeat.cc:1995 (CheckErrorCqe).
    HcclResult asynchronous = HCCL_E_INTERNAL;
    OK(HcclGetCommAsyncError(world.comm, &asynchronous));
    CHECK(asynchronous == (std::getenv("HCCL_MOCK_NET") != nullptr ? HCCL_E_REMOTE : HCCL_SUCCESS));
}

// Killed before it ever took part: the others are still building links.
void killed_early(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(HcclBarrier(world.comm, world.stream));
    world.synchronize();
    if (me.rank == 2) {
        raise(SIGKILL);
    }
    FAILS(HCCL_E_REMOTE, "rank 2", all_reduce(world, data));
}

// A process may end at any time without giving anything back.
void exit_while_busy(const Rank &me) {
    // Never destroyed on purpose; static, so that a leak checker sees them as in use.
    static World *world = new World(me);
    static auto *data = new Vector<float>(1 << 20);
    OK(all_reduce(*world, *data, 1 << 20));
    for (int i = 0; i < 100; i++) {
        OK(all_reduce(*world, *data, 1 << 20));
    }
    OK(aclrtLaunchHostFunc(world->stream, [](void *) { pause_ms(3000); }, nullptr));
    std::exit(0);
}

void claimed_twice(const Rank &me) {
    OK(aclrtSetDevice(0));
    const std::string path = table_path();
    if (me.rank == 0) {
        HcclComm comm = nullptr;
        OK(HcclCommInitClusterInfo(path.c_str(), 0, &comm));
        write_file(folder() + "/pid", std::to_string(getpid()));
        read_file(folder() + "/refused");
        OK(HcclCommDestroy(comm));
        write_file(folder() + "/destroyed", "");
    } else {
        const std::string holder = read_file(folder() + "/pid");
        HcclComm comm = nullptr;
        FAILS(HCCL_E_PARA, "process " + holder, HcclCommInitClusterInfo(path.c_str(), 0, &comm));
        write_file(folder() + "/refused", "");
        read_file(folder() + "/destroyed");
        OK(HcclCommInitClusterInfo(path.c_str(), 0, &comm));
        OK(HcclCommDestroy(comm));
    }
}

struct Exchange {
    const char *from;
    const char *to;
    int code;
    const char *message;
};

// The good table of two servers with one text replaced; the code and the message that it gives rank 0.
void bad_tables(const Rank &) {
    OK(aclrtSetDevice(0));
    const std::string good = "{\"status\":\"completed\",\"version\":\"1.0\",\"server_count\":\"2\",\"server_list\":["
                             "{\"server_id\":\"a\",\"device\":[{\"device_id\":\"0\",\"device_ip\":\"10.0.0.1\","
                             "\"rank_id\":\"0\"},{\"device_id\":\"1\",\"device_ip\":\"10.0.0.2\",\"rank_id\":\"1\"}]},"
                             "{\"server_id\":\"b\",\"device\":[{\"device_id\":\"0\",\"device_ip\":\"10.0.0.3\","
                             "\"device_port\":\"16667\",\"rank_id\":\"2\"}]}]}";
    const Exchange exchanges[] = {
        {"\"a\"", "\"c\"", HCCL_SUCCESS, ""},
        {"\"server_count\":\"2\",", "", HCCL_SUCCESS, ""},
        {"{\"status\"", "{status", HCCL_E_INTERNAL, "Invalid ranktable format"},
        {"]}]}", "]}]", HCCL_E_INTERNAL, "Invalid ranktable format"},
        {"]}]}", "]}]}x", HCCL_E_INTERNAL, "Invalid ranktable format"},
        {"completed", "initializing", HCCL_E_TIMEOUT, "initializing"},
        {"\"status\":\"completed\",", "", HCCL_E_NOT_FOUND, "status is missing"},
        {"\"1.0\"", "\"3.7\"", HCCL_E_NOT_SUPPORT, "version[3.7] is not supported"},
        {"\"1.0\"", "1.0", HCCL_E_PARA, "version is not string!"},
        {"\"server_count\":\"2\"", "\"server_count\":\"3\"", HCCL_E_PARA, "EI0014"},
        {"\"server_count\":\"2\"", "\"server_count\":2", HCCL_E_PARA, "is not string!"},
        {"\"server_list\"", "\"servers\"", HCCL_E_NOT_FOUND, "server_list is missing"},
        {"\"server_id\":\"a\"", "\"server_id\":\"b\"", HCCL_E_PARA, "is already exist"},
        {"\"server_id\":\"a\"", "\"server_id\":\"\"", HCCL_E_PARA, "server_list[0].server_id"},
        {"\"server_id\":\"a\",", "", HCCL_E_NOT_FOUND, "server_list[0].server_id is missing"},
        {"\"10.0.0.2\"", "\"10.0.0.1\"", HCCL_E_PARA, "The IP is used repeatedly."},
        {"\"10.0.0.2\"", "\"10.0.0.2.1\"", HCCL_E_PARA, "is not an IP address"},
        {"\"10.0.0.2\"", "\"fe80::1\"", HCCL_E_PARA, "device ip family"},
        {"\"device_ip\":\"10.0.0.3\",", "", HCCL_E_NOT_FOUND, "server_list[1].device[0].device_ip is missing"},
        {"16667", "65536", HCCL_E_PARA, "device_port"},
        {"\"device_id\":\"1\"", "\"device_id\":\"0\"", HCCL_E_PARA, "device id repeat for one server"},
        {"\"device_id\":\"1\"", "\"device_id\":\"1000\"", HCCL_E_PARA, "device_id"},
        {"\"device_id\":\"0\"", "\"device_id\":\"7\"", HCCL_E_UNAVAIL, "devId[7],but local devId[0]"},
        {"\"rank_id\":\"1\"", "\"rank_id\":\"x\"", HCCL_E_PARA, "EI0014"},
        {"\"rank_id\":\"1\"", "\"rank_id\":1", HCCL_E_PARA, "server_list[0].device[1].rank_id is not string!"},
        {"\"rank_id\":\"2\"", "\"rank_id\":\"1\"", HCCL_E_PARA, "less than the communication size 3"},
        {"\"rank_id\":\"0\"", "\"rank_id\":\"3\"", HCCL_E_UNAVAIL, "EI0014"},
        {"\"rank_id\":\"2\"", "\"rank_id\":\"3\"", HCCL_E_PARA, "less than the communication size 3"},
    };
    const std::string path = folder() + "/bad.json";
    for (const Exchange &exchange : exchanges) {
        std::string table = good;
        const size_t place = table.find(exchange.from);
        CHECK(place != std::string::npos);
        table.replace(place, std::strlen(exchange.from), exchange.to);
        write_file(path, table);
        HcclComm comm = nullptr;
        const int code = HcclCommInitClusterInfo(path.c_str(), 0, &comm);
        const std::string message = recent();
        if (code != exchange.code || message.find(exchange.message) == std::string::npos) {
            failed(__FILE__, __LINE__,
                   text("%s -> %s: %d, not %d; message [%s]", exchange.from, exchange.to, code, exchange.code,
                        message.c_str()));
        }
        if (code == 0) {
            OK(HcclCommDestroy(comm));
        }
    }
    write_file(path, "{");
    HcclComm comm = nullptr;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    FAILS(HCCL_E_INTERNAL, "load rankTable error", HcclCommInitClusterInfoConfig(path.c_str(), 0, &config, &comm));
    FAILS(HCCL_E_INTERNAL, "load rankTable error", HcclCommInitClusterInfoConfig("/none", 0, &config, &comm));
    FAILS(HCCL_E_PARA, "is not a valid real path", HcclCommInitClusterInfo("/none", 0, &comm));
    write_file(path, good);
    FAILS(HCCL_E_PARA, "rank 3 is not in the ranktable", HcclCommInitClusterInfo(path.c_str(), 3, &comm));
    RETURNS(HCCL_E_PTR, HcclCommInitClusterInfo(path.c_str(), 0, nullptr));
    write_file(path, std::string(200000, '['));
    FAILS(HCCL_E_INTERNAL, "nested too deeply", HcclCommInitClusterInfo(path.c_str(), 0, &comm));
    std::string many = "[";
    for (int i = 0; i < 2000000; i++) {
        many += "1,";
    }
    write_file(path, many + "1]");
    FAILS(HCCL_E_INTERNAL, "too many values", HcclCommInitClusterInfo(path.c_str(), 0, &comm));
}

void root_info_absent(const Rank &me) {
    const World world(me, false);
    const HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    FAILS(HCCL_E_TIMEOUT, "absent: rank(s) 2, 4", HcclCommInitRootInfo(5, &info, me.rank == 2 ? 3 : me.rank, &comm));
    FAILS(HCCL_E_INTERNAL, "used already", HcclCommInitRootInfo(5, &info, me.rank, &comm));
}

void root_info_differs(const Rank &me) {
    const World world(me, false);
    const HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    if (me.rank == 2) {
        pause_ms(300);
        FAILS(HCCL_E_PARA, "nRanks 4", HcclCommInitRootInfo(4, &info, 1, &comm));
        FAILS(HCCL_E_PARA, text("held by process %d", getpid()), HcclCommInitRootInfo(2, &info, 1, &comm));
        write_file(folder() + "/tried", "");
        return;
    }
    if (me.rank == 0) {
        read_file(folder() + "/tried");
    }
    OK(HcclCommInitRootInfo(2, &info, me.rank, &comm));
    OK(HcclBarrier(comm, world.stream));
    world.synchronize();
    OK(HcclCommDestroy(comm));
    HcclRootInfo nonsense{};
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfo(2, &nonsense, me.rank, &comm));
    RETURNS(HCCL_E_PARA, HcclCommInitRootInfo(2, &info, 2, &comm));
}

void destroy(const Rank &me) {
    const World world(me);
    OK(HcclCommDestroy(nullptr));
    const Vector<float> data(8);
    if (me.rank == 1) {
        read_file(folder() + "/done");
        return;
    }
    // From another thread: ends the call that builds links.
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    uint32_t ranks[] = {0, 1};
    HcclComm sub = nullptr;
    OK(HcclCreateSubCommConfig(const_cast<HcclComm *>(&world.comm), 2, ranks, 1, 0, &config, &sub));
    std::thread other([&] {
        pause_ms(200);
        aclrtSetDevice(device_of(me));
        CHECK(HcclCommDestroy(sub) == HCCL_SUCCESS);
    });
    const double begin = now();
    FAILS(HCCL_E_INTERNAL, "destroyed", HcclBarrier(sub, world.stream));
    CHECK(now() - begin < 20);
    other.join();
    RETURNS(HCCL_E_PARA, HcclBarrier(sub, world.stream));
    write_file(folder() + "/done", "");
}

// An abort of the stream ends what is queued, and the peers learn of it.
void aborted(const Rank &me) {
    const World world(me);
    // More than a rank leaves with the others at once: what it has left would be enough for them.
    constexpr uint64_t COUNT = 16384;
    const Vector<float> data(COUNT);
    OK(all_reduce(world, data, COUNT));
    world.synchronize();
    if (me.rank == 0) {
        OK(all_reduce(world, data, COUNT));
        const double begin = now();
        OK(aclrtStreamAbort(world.stream));
        CHECK(now() - begin < 10);
        OK(aclrtSynchronizeStream(world.stream));
        FAILS(HCCL_E_INTERNAL, "aborted", all_reduce(world, data, COUNT));
    } else {
        pause_ms(300);
        if (all_reduce(world, data, COUNT) == HCCL_SUCCESS) {
            FAILS(REMOTE, "rank 0 failed", aclrtSynchronizeStream(world.stream));
        }
    }
}

// On AI CPUs an operation goes on when its stream is aborted: its memory stays until the communicator ends.
void works_on(const Rank &me, aclError freed) {
    World world(me);
    const Vector<float> links(8);
    OK(all_reduce(world, links));
    world.synchronize();
    if (me.rank == 1) {
        read_file(folder() + "/freed");
        return;
    }
    void *memory = nullptr;
    OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    std::atomic<bool> reached{false};
    OK(aclrtLaunchHostFunc(world.stream, [](void *place) { *static_cast<std::atomic<bool> *>(place) = true; },
                           &reached));
    OK(HcclAllReduce(memory, links.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    for (int i = 0; i < 6000 && !reached; i++) {
        pause_ms(10);
    }
    CHECK(reached);
    pause_ms(2000); // it has begun, and waits for rank 1
    OK(aclrtStreamAbort(world.stream));
    RETURNS(freed, aclrtFree(memory));
    OK(HcclCommDestroy(world.comm));
    world.comm = nullptr;
    RETURNS(freed == 0 ? ACL_ERROR_RT_PARAM_INVALID : 0, aclrtFree(memory));
    write_file(folder() + "/freed", "");
}

void works_on_ai_cpus(const Rank &me) { works_on(me, ACL_ERROR_RT_INTERNAL_ERROR); }
void ends_on_the_host(const Rank &me) { works_on(me, ACL_SUCCESS); }

void left(const Rank &me) {
    World world(me);
    const Vector<float> data(8);
    OK(all_reduce(world, data));
    world.synchronize();
    if (me.rank == 1) {
        OK(HcclCommDestroy(world.comm));
        world.comm = nullptr;
        return;
    }
    const HcclResult queued = all_reduce(world, data);
    if (queued == HCCL_SUCCESS) {
        FAILS(REMOTE, "destroyed the communicator", aclrtSynchronizeStream(world.stream));
    }
}

void arguments(const Rank &me) {
    const World world(me);
    const HcclComm comm = world.comm;
    const aclrtStream stream = world.stream;
    const Vector<float> data(64);
    std::vector<float> host(64);
    OK(HcclSend(nullptr, 0, FP32, 99, nullptr, nullptr));
    OK(HcclAllReduce(nullptr, nullptr, 0, FP32, HCCL_REDUCE_SUM, nullptr, nullptr));
    RETURNS(HCCL_E_PTR, HcclSend(data.at(), 8, FP32, 1, nullptr, stream));
    RETURNS(HCCL_E_PTR, HcclSend(nullptr, 8, FP32, 1, comm, stream));
    RETURNS(HCCL_E_PTR, HcclSend(data.at(), 8, FP32, 1, comm, nullptr));
    RETURNS(HCCL_E_PARA, HcclSend(data.at(), 0x800000000ULL, FP32, 1, comm, stream));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclSend(data.at(), 8, HCCL_DATA_TYPE_RESERVED, 1, comm, stream));
    RETURNS(HCCL_E_PARA, HcclSend(data.at(), 8, FP32, me.size, comm, stream));
    FAILS(HCCL_E_PARA, "is not memory of device", HcclSend(host.data(), 8, FP32, 1 - me.rank, comm, stream));
    FAILS(HCCL_E_PARA, "its allocation ends", HcclSend(data.at(32), 64, FP32, 1 - me.rank, comm, stream));
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclAllReduce(data.at(), data.at(), 8, HCCL_DATA_TYPE_FP64, HCCL_REDUCE_SUM, comm, stream));
    RETURNS(HCCL_E_PARA, HcclBroadcast(data.at(), 8, FP32, 2, comm, stream));
    RETURNS(HCCL_E_PARA, HcclAllReduce(data.at(), data.at(1), 8, FP32, HCCL_REDUCE_SUM, comm, stream));

    const uint32_t peer = 1 - me.rank;
    HcclSendRecvItem two_sends[] = {{HCCL_SEND, data.at(), 8, FP32, peer}, {HCCL_SEND, data.at(8), 8, FP32, peer}};
    FAILS(HCCL_E_PARA, "two items send to", HcclBatchSendRecv(two_sends, 2, comm, stream));
    HcclSendRecvItem alone[] = {{HCCL_SEND, data.at(), 8, FP32, me.rank}};
    FAILS(HCCL_E_PARA, "counterpart", HcclBatchSendRecv(alone, 1, comm, stream));
    HcclSendRecvItem unequal[] = {{HCCL_SEND, data.at(), 8, FP32, me.rank}, {HCCL_RECV, data.at(8), 4, FP32, me.rank}};
    RETURNS(HCCL_E_PARA, HcclBatchSendRecv(unequal, 2, comm, stream));
    RETURNS(HCCL_E_PARA, HcclBatchSendRecv(alone, 0, comm, stream));
    RETURNS(HCCL_E_PARA, HcclBatchSendRecv(alone, 5, comm, stream));
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(nullptr, 1, comm, stream));
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(alone, 1, comm, nullptr));

    HcclComm sub = nullptr;
    HcclComm parent = comm;
    uint32_t ranks[] = {0, 1, 0};
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    OK(HcclCreateSubCommConfig(&parent, 0, nullptr, 0xFFFFFFFF, 0, nullptr, &sub));
    CHECK(sub == nullptr);
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 2, nullptr, 3, 0, &config, &sub));
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 2, ranks, 0xFFFFFFFF, 0, &config, &sub));
    RETURNS(HCCL_E_PTR, HcclCreateSubCommConfig(&parent, 2, ranks, 3, 0, nullptr, &sub));
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 0, ranks, 3, 0, &config, &sub));
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 2, ranks, 3, 2, &config, &sub));
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 3, ranks, 3, 0, &config, &sub));
    config.hcclBufferSize = 0;
    RETURNS(HCCL_E_PARA, HcclCreateSubCommConfig(&parent, 2, ranks, 3, me.rank, &config, &sub));
    HcclCommConfigInit(&config);
    config.reserved[8] = 0;
    FAILS(HCCL_E_PARA, "Invalid magic word", HcclCreateSubCommConfig(&parent, 2, ranks, 3, me.rank, &config, &sub));
    HcclCommConfigInit(&config);
    std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "one");
    OK(HcclCreateSubCommConfig(&parent, 2, ranks, 3, me.rank, &config, &sub));
    HcclComm twin = nullptr;
    FAILS(HCCL_E_PARA, "The comm name[one] already exists",
          HcclCreateSubCommConfig(&parent, 2, ranks, 4, me.rank, &config, &twin));
    HcclComm deeper = nullptr;
    RETURNS(HCCL_E_NOT_SUPPORT, HcclCreateSubCommConfig(&sub, 2, ranks, 5, me.rank, &config, &deeper));
    OK(HcclCommDestroy(sub));
    // Version 1 in 32 bytes: the name that follows in memory is not its own.
    const size_t size = 32;
    const uint32_t version = 1;
    std::memcpy(config.reserved, &size, sizeof(size));
    std::memcpy(config.reserved + 12, &version, sizeof(version));
    OK(HcclCreateSubCommConfig(&parent, 2, ranks, 3, me.rank, &config, &sub));
    char name[128];
    OK(HcclGetCommName(sub, name));
    CHECK(std::string(name) == "hccl_world_group_sub_3");
    OK(HcclCommDestroy(sub));
    CHECK(HcclGetCommConfigCapability() == 5);
    CHECK(std::string(HcclGetErrorString(HCCL_E_TIMEOUT)) == "timeout");
    CHECK(std::string(HcclGetErrorString(static_cast<HcclResult>(99))) == "unknow error");
    CHECK(std::string(HcclGetErrorString(static_cast<HcclResult>(-1))) == "unknow error");
}

} // namespace

int main(int argc, char **argv) {
    const std::pair<std::string, std::string> connect{"HCCL_CONNECT_TIMEOUT", "1"};
    const std::pair<std::string, std::string> execute{"HCCL_EXEC_TIMEOUT", "1"};
    return run(argc, argv,
               {
                   {"mutual-send-t", Ranks::Threads, 2, mutual_send, {execute}},
                   {"mutual-send-p", Ranks::Processes, 2, mutual_send, {execute}},
                   {"first-mutual-send-t", Ranks::Threads, 2, first_mutual_send, {connect}},
                   {"first-mutual-send-p", Ranks::Processes, 2, first_mutual_send, {connect}},
                   {"first-operations-differ-t", Ranks::Threads, 2, first_operations_differ, {connect}},
                   {"first-operations-differ-p", Ranks::Processes, 2, first_operations_differ, {connect}},
                   {"missing-rank-t", Ranks::Threads, 4, missing_rank, {connect}},
                   {"missing-rank-p", Ranks::Processes, 4, missing_rank, {connect}},
                   {"different-operations-t", Ranks::Threads, 3, different_operations, {}},
                   {"different-operations-p", Ranks::Processes, 3, different_operations, {}},
                   {"different-sizes", Ranks::Threads, 2, different_sizes, {}},
                   {"killed-peer", Ranks::Processes, 4, killed_peer, {}, 2},
                   {"killed-early", Ranks::Processes, 4, killed_early, {}, 2},
                   {"exit-while-busy", Ranks::Processes, 2, exit_while_busy, {}},
                   {"claimed-twice", Ranks::Processes, 2, claimed_twice, {}},
                   {"bad-tables", Ranks::Processes, 1, bad_tables, {{"HCCL_MOCK_TABLE_TIMEOUT", "1"}}},
                   {"root-info-absent", Ranks::Processes, 3, root_info_absent, {connect}},
                   {"root-info-differs", Ranks::Threads, 3, root_info_differs, {}},
                   {"destroy", Ranks::Threads, 2, destroy, {}},
                   {"aborted-t", Ranks::Threads, 2, aborted, {}},
                   {"aborted-p", Ranks::Processes, 2, aborted, {}},
                   {"works-on-AI-CPUs", Ranks::Threads, 2, works_on_ai_cpus, {{"ASCEND_MOCK_SOC", "Ascend910_9391"}}},
                   {"ends-on-the-host", Ranks::Threads, 2, ends_on_the_host, {}},
                   {"left-t", Ranks::Threads, 2, left, {}},
                   {"left-p", Ranks::Processes, 2, left, {}},
                   {"arguments", Ranks::Threads, 2, arguments, {}},
               });
}
