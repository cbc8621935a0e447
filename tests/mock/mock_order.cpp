// The order of operations: what orders two streams of one communicator, and what ranks see that do not run the same.

#include <atomic>

#include "harness.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;
constexpr int EXCEPTION = ACL_ERROR_RT_FFTS_PLUS_EXCEPTION;
constexpr int REMOTE = ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
constexpr int TIMEOUT = ACL_ERROR_RT_FFTS_PLUS_TIMEOUT;

// A rank with a second and a third stream, an event and a communicator whose links exist.
struct Streams {
    explicit Streams(const Rank &me) : world(me), first(world.stream), data(8) {
        OK(aclrtCreateStream(&second));
        OK(aclrtCreateStream(&third));
        OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
        OK(reduce(first));
        OK(aclrtSynchronizeDevice());
    }
    ~Streams() {
        aclrtDestroyEvent(event);
        for (aclrtStream stream : {second, third}) {
            if (stream != nullptr) {
                aclrtDestroyStream(stream);
            }
        }
    }
    HcclResult reduce(aclrtStream stream) const {
        return HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, stream);
    }

    World world;
    aclrtStream first;
    aclrtStream second = nullptr;
    aclrtStream third = nullptr;
    aclrtEvent event = nullptr;
    Vector<float> data;
};

// A case: an operation on the first stream, something, an operation on the second. The vendor leaves the order of a
// communicator's operations to the caller and gives wrong data where there is none; here that is an error.
Case unordered(const char *name, void (*between)(Streams &)) {
    return {name, Ranks::Threads, 2, [between](const Rank &me) {
        Streams streams(me);
        const HcclResult before = streams.reduce(streams.first);
        CHECK(before == HCCL_SUCCESS || before == HCCL_E_PARA); // the other rank may have failed already
        if (before == HCCL_SUCCESS) {
            between(streams);
            FAILS(HCCL_E_PARA, "nothing orders the two", streams.reduce(streams.second));
        }
        RETURNS(HCCL_E_PARA, streams.reduce(streams.first)); // it has failed for good
    }};
}

Case ordered(const char *name, void (*between)(Streams &)) {
    return {name, Ranks::Threads, 2, [between](const Rank &me) {
        Streams streams(me);
        for (int i = 0; i < 3; i++) {
            OK(streams.reduce(streams.first));
            between(streams);
            OK(streams.reduce(streams.second));
            OK(aclrtSynchronizeDevice());
        }
    }};
}

void nothing(Streams &) {}

// That it has finished by luck is no order.
void only_time(Streams &) { pause_ms(200); }

// A record covers what was queued before it (cann.md: a snapshot of the queued tasks), not what comes later.
void early_record(Streams &s) {
    OK(aclrtSynchronizeDevice());
    OK(aclrtRecordEvent(s.event, s.first));
    OK(s.reduce(s.first));
    OK(aclrtStreamWaitEvent(s.second, s.event));
}

// A wait binds the latest record at the time of the call; a later one has no effect on it.
void late_record(Streams &s) {
    OK(aclrtStreamWaitEvent(s.second, s.event));
    OK(aclrtRecordEvent(s.event, s.first));
}

void wrong_stream_waits(Streams &s) {
    OK(aclrtRecordEvent(s.event, s.first));
    OK(aclrtStreamWaitEvent(s.third, s.event));
}

void other_stream_synchronised(Streams &s) { OK(aclrtSynchronizeStream(s.second)); }

// The first stream waits for a callback of the third, which goes on when the poll is over. (A callback of the first itself
// would tell the host that the operation before it has ended.)
void poll_that_fails(Streams &s) {
    std::atomic<bool> asked{false};
    const auto wait = [](void *flag) {
        while (!static_cast<std::atomic<bool> *>(flag)->load()) {
            pause_ms(1);
        }
    };
    OK(aclrtLaunchHostFunc(s.third, wait, &asked));
    OK(aclrtRecordEvent(s.event, s.third));
    OK(aclrtStreamWaitEvent(s.first, s.event));
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    const aclError polled = aclrtStreamQuery(s.first, &status);
    asked = true;
    OK(aclrtSynchronizeStream(s.third));
    OK(polled);
    CHECK(status == ACL_STREAM_STATUS_NOT_READY);
}

void event_wait(Streams &s) {
    OK(aclrtRecordEvent(s.event, s.first));
    OK(aclrtStreamWaitEvent(s.second, s.event));
}

void chain_of_events(Streams &s) {
    OK(aclrtRecordEvent(s.event, s.first));
    OK(aclrtStreamWaitEvent(s.third, s.event));
    OK(aclrtRecordEvent(s.event, s.third));
    OK(aclrtStreamWaitEvent(s.second, s.event));
}

void completed_event(Streams &s) {
    OK(aclrtRecordEvent(s.event, s.first));
    pause_ms(20); // complete when it is waited for: the order is the same
    OK(aclrtStreamWaitEvent(s.second, s.event));
}

void stream_synchronised(Streams &s) { OK(aclrtSynchronizeStream(s.first)); }

void stream_synchronised_in_time(Streams &s) { OK(aclrtSynchronizeStreamWithTimeout(s.first, 10000)); }

void event_synchronised(Streams &s) {
    OK(aclrtRecordEvent(s.event, s.first));
    OK(aclrtSynchronizeEvent(s.event));
}

void device_synchronised(Streams &) { OK(aclrtSynchronizeDevice()); }

void stream_polled(Streams &s) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    while (status == ACL_STREAM_STATUS_NOT_READY) {
        OK(aclrtStreamQuery(s.first, &status));
    }
}

void event_polled(Streams &s) {
    OK(aclrtRecordEvent(s.event, s.first));
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    while (status == ACL_EVENT_RECORDED_STATUS_NOT_READY) {
        OK(aclrtQueryEventStatus(s.event, &status));
    }
}

void seen_by_callback(Streams &s) {
    std::atomic<bool> called{false};
    OK(aclrtLaunchHostFunc(s.first, [](void *flag) { *static_cast<std::atomic<bool> *>(flag) = true; }, &called));
    while (!called) {
        std::this_thread::yield();
    }
}

void waiting_stream_synchronised(Streams &s) {
    OK(aclrtRecordEvent(s.event, s.first));
    OK(aclrtStreamWaitEvent(s.third, s.event));
    OK(aclrtSynchronizeStream(s.third));
}

// The destruction of a stream drains it.
void destroyed_stream(const Rank &me) {
    Streams streams(me);
    OK(streams.reduce(streams.third));
    OK(aclrtDestroyStream(streams.third));
    streams.third = nullptr;
    OK(streams.reduce(streams.second));
    OK(aclrtSynchronizeDevice());
}

// Different communicators on different streams may overlap.
void two_communicators(const Rank &me) {
    Streams streams(me);
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    uint32_t ranks[] = {0, 1};
    HcclComm sub = nullptr;
    OK(HcclCreateSubCommConfig(&streams.world.comm, 2, ranks, 1, me.rank, &config, &sub));
    const Vector<float> other(8);
    for (int i = 0; i < 10; i++) {
        OK(streams.reduce(streams.first));
        OK(HcclAllReduce(other.at(), other.at(), 8, FP32, HCCL_REDUCE_SUM, sub, streams.second));
    }
    OK(aclrtSynchronizeDevice());
    OK(HcclCommDestroy(sub));
}

// All operations of all communicators of a device have one order, the same on every rank. Where two ranks turn to two
// communicators in different orders, the vendor's hang; here both learn what the other one does instead.
struct Crossed {
    explicit Crossed(const Rank &me) : streams(me), other(8 * me.size) {
        HcclCommConfig config;
        HcclCommConfigInit(&config);
        std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "the_other");
        uint32_t ranks[] = {0, 1};
        OK(HcclCreateSubCommConfig(&streams.world.comm, 2, ranks, 1, me.rank, &config, &sub));
    }
    ~Crossed() { HcclCommDestroy(sub); }
    // Nobody destroys what the other one still waits for.
    static void leave(const Rank &me) {
        write_file(folder() + "/left" + std::to_string(me.rank), "");
        read_file(folder() + "/left" + std::to_string(1 - me.rank));
    }
    HcclResult gather() const { return HcclAllGather(streams.data.at(), other.at(), 8, FP32, sub, streams.first); }
    Streams streams;
    Vector<float> other;
    HcclComm sub = nullptr;
};

void crossed_communicators(const Rank &me) {
    Crossed crossed(me);
    // Or the second operations meet after all.
    OK(aclrtSetStreamFailureMode(crossed.streams.first, ACL_STOP_ON_FAILURE));
    OK(crossed.gather());
    OK(aclrtSynchronizeStream(crossed.streams.first));
    for (int i = 0; i < 2; i++) { // on one stream, in different orders
        OK(static_cast<int>(me.rank) == i ? crossed.streams.reduce(crossed.streams.first) : crossed.gather());
    }
    const double begin = now();
    const int code = aclrtSynchronizeStream(crossed.streams.first);
    const std::string message = recent();
    CHECK(code == TIMEOUT || code == REMOTE); // the second rank may learn of the first one's failure instead
    CHECK(now() - begin < 10);
    expect_text(__FILE__, __LINE__, message, "HcclAllReduce");
    expect_text(__FILE__, __LINE__, message, "communicator hccl_world_group");
    expect_text(__FILE__, __LINE__, message, "HcclAllGather");
    expect_text(__FILE__, __LINE__, message, "communicator the_other");
    crossed.leave(me);
}

// The same where the first operation of a kind builds links in the host call.
void crossed_first_operations(const Rank &me) {
    Crossed crossed(me);
    OK(HcclBarrier(crossed.sub, crossed.streams.first)); // the two know each other there
    OK(aclrtSynchronizeStream(crossed.streams.first));
    if (me.rank == 0) {
        FAILS(HCCL_E_TIMEOUT, "links for HcclAllGather of communicator the_other",
              HcclBroadcast(crossed.streams.data.at(), 8, FP32, 0, crossed.streams.world.comm, crossed.streams.first));
    } else {
        FAILS(HCCL_E_TIMEOUT, "links for HcclBroadcast of communicator hccl_world_group", crossed.gather());
    }
    crossed.leave(me);
}

// One rank alone uses two streams without an order: the other ranks learn the reason.
void one_rank_unordered(const Rank &me) {
    Streams streams(me);
    if (me.rank == 1) {
        OK(streams.reduce(streams.first));
        FAILS(HCCL_E_PARA, "nothing orders the two", streams.reduce(streams.second));
        return;
    }
    OK(streams.reduce(streams.first));
    if (streams.reduce(streams.first) == HCCL_SUCCESS) {
        FAILS(EXCEPTION, "rank 1 failed", aclrtSynchronizeStream(streams.first));
    }
    FAILS(HCCL_E_PARA, "nothing orders the two", streams.reduce(streams.first));
}

void expect_both(const char *first, const char *second, const Streams &streams) {
    const int code = aclrtSynchronizeStream(streams.first);
    const std::string message = recent();
    CHECK(code == EXCEPTION);
    expect_text(__FILE__, __LINE__, message, first);
    expect_text(__FILE__, __LINE__, message, second);
}

// Rank 2 runs another operation than the others: all learn of both within the limit of time (the vendor's hang).
void other_operation(const Rank &me) {
    const Streams streams(me);
    const Vector<float> all(8 * me.size);
    OK(HcclAllGather(streams.data.at(), all.at(), 8, FP32, streams.world.comm, streams.first));
    OK(aclrtSynchronizeStream(streams.first));
    if (me.rank == 2) {
        OK(HcclAllGather(streams.data.at(), all.at(), 8, FP32, streams.world.comm, streams.first));
    } else {
        OK(streams.reduce(streams.first));
    }
    expect_both("HcclAllGather (32 bytes, fp32)", "HcclAllReduce (32 bytes, fp32, sum)", streams);
}

void other_size(const Rank &me) {
    const Streams streams(me);
    OK(HcclAllReduce(streams.data.at(), streams.data.at(), me.rank == 2 ? 7 : 8, FP32, HCCL_REDUCE_SUM,
                     streams.world.comm, streams.first));
    expect_both("HcclAllReduce (32 bytes", "HcclAllReduce (28 bytes", streams);
}

// Everybody sends to everybody, but rank 2 expects another size from rank 0.
void batch_sizes(const Rank &me) {
    const Streams streams(me);
    const Vector<float> in(8 * me.size);
    for (int round = 0; round < 2; round++) {
        std::vector<HcclSendRecvItem> items;
        for (uint32_t peer = 0; peer < me.size; peer++) {
            const uint64_t count = round == 1 && me.rank == 2 && peer == 0 ? 5 : 8;
            items.push_back({HCCL_SEND, streams.data.at(), 8, FP32, peer});
            items.push_back({HCCL_RECV, in.at(8 * peer), count, FP32, peer});
        }
        OK(HcclBatchSendRecv(items.data(), static_cast<uint32_t>(items.size()), streams.world.comm, streams.first));
        if (round == 0) {
            OK(aclrtSynchronizeStream(streams.first));
        }
    }
    const int code = aclrtSynchronizeStream(streams.first);
    const std::string message = recent();
    if (me.rank == 0 || me.rank == 2) { // a batch ends for a rank when its own transfers have
        CHECK(code == EXCEPTION);
        expect_text(__FILE__, __LINE__, message, "HcclBatchSendRecv (20 bytes, fp32)");
        expect_text(__FILE__, __LINE__, message, "HcclBatchSendRecv (32 bytes, fp32)");
    } else {
        CHECK(code == 0 || code == EXCEPTION);
    }
}

// A batch on one rank, a collective on the other.
void batch_and_collective(const Rank &me) {
    const Streams streams(me);
    const Vector<float> in(8);
    HcclSendRecvItem items[] = {{HCCL_SEND, streams.data.at(), 8, FP32, 1 - me.rank},
                                {HCCL_RECV, in.at(), 8, FP32, 1 - me.rank}};
    OK(HcclBatchSendRecv(items, 2, streams.world.comm, streams.first));
    OK(aclrtSynchronizeStream(streams.first));
    if (me.rank == 0) {
        OK(HcclBatchSendRecv(items, 2, streams.world.comm, streams.first));
    } else {
        OK(streams.reduce(streams.first));
    }
    expect_both("HcclBatchSendRecv (32 bytes, fp32)", "HcclAllReduce (32 bytes, fp32, sum)", streams);
}

// Pairs of a batch match within one call only: two sends without receives hang, and both ranks say with whom.
void batch_without_receives(const Rank &me) {
    const Streams streams(me);
    const Vector<float> in(8);
    HcclSendRecvItem items[] = {{HCCL_SEND, streams.data.at(), 8, FP32, 1 - me.rank},
                                {HCCL_RECV, in.at(), 8, FP32, 1 - me.rank}};
    OK(HcclBatchSendRecv(items, 2, streams.world.comm, streams.first));
    OK(aclrtSynchronizeStream(streams.first));
    OK(HcclBatchSendRecv(items, 1, streams.world.comm, streams.first));
    const int code = aclrtSynchronizeStream(streams.first);
    const std::string message = recent();
    CHECK(code == TIMEOUT || code == REMOTE); // of this rank's limit, or of the other's
    expect_text(__FILE__, __LINE__, message, "HcclBatchSendRecv (32 bytes, fp32)");
    // The other one, by either's word.
    expect_text(__FILE__, __LINE__, message, "is in its operation 2, HcclBatchSendRecv");
    expect_text(__FILE__, __LINE__, message, text("rank %u", 1 - me.rank));
}

// Buffers are device memory of the communicator's device, inside one allocation; interior pointers are fine.
void buffers(const Rank &me) {
    const World world(me);
    const Vector<float> data(64);
    const auto broadcast = [&](float *address, uint64_t count) {
        return HcclBroadcast(address, count, FP32, 0, world.comm, world.stream);
    };
    OK(broadcast(data.at(), 64));
    OK(broadcast(data.at(33), 31));
    world.synchronize();
    FAILS(HCCL_E_PARA, "its allocation ends", broadcast(data.at(33), 64));
    FAILS(HCCL_E_PARA, "is not aligned",
          broadcast(reinterpret_cast<float *>(reinterpret_cast<char *>(data.at()) + 2), 4));
    float host[8];
    FAILS(HCCL_E_PARA, "is not memory of device", broadcast(host, 8));
    void *freed = nullptr;
    OK(aclrtMalloc(&freed, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(freed));
    FAILS(HCCL_E_PARA, "is not memory of device", broadcast(static_cast<float *>(freed), 8));
    const int own = device_of(me);
    OK(aclrtSetDevice(own + 2));
    {
        const Vector<float> foreign(8);
        OK(aclrtSetDevice(own));
        FAILS(HCCL_E_PARA, text("is not memory of device %d", own), broadcast(foreign.at(), 8));
    }
    OK(aclrtResetDevice(own + 2));
    OK(aclrtSetDevice(own));
    OK(aclrtResetDevice(own));
}

} // namespace

int main(int argc, char **argv) {
    const std::vector<std::pair<std::string, std::string>> SECOND = {{"HCCL_EXEC_TIMEOUT", "1"},
                                                                     {"HCCL_CONNECT_TIMEOUT", "1"}};
    std::vector<std::pair<std::string, std::string>> TCP_SECOND = SECOND;
    TCP_SECOND.push_back({"HCCL_MOCK_NET", "tcp"});
    return run(argc, argv,
               {
                   unordered("unordered-nothing", nothing),
                   unordered("unordered-only-time", only_time),
                   unordered("unordered-early-record", early_record),
                   unordered("unordered-late-record", late_record),
                   unordered("unordered-wrong-wait", wrong_stream_waits),
                   unordered("unordered-other-synced", other_stream_synchronised),
                   unordered("unordered-failed-poll", poll_that_fails),
                   ordered("ordered-event-wait", event_wait),
                   ordered("ordered-chain-of-events", chain_of_events),
                   ordered("ordered-completed-event", completed_event),
                   ordered("ordered-stream-synced", stream_synchronised),
                   ordered("ordered-stream-synced-time", stream_synchronised_in_time),
                   ordered("ordered-event-synced", event_synchronised),
                   ordered("ordered-device-synced", device_synchronised),
                   ordered("ordered-stream-polled", stream_polled),
                   ordered("ordered-event-polled", event_polled),
                   ordered("ordered-seen-by-callback", seen_by_callback),
                   ordered("ordered-waiting-synced", waiting_stream_synchronised),
                   {"ordered-destroyed-stream", Ranks::Threads, 2, destroyed_stream},
                   {"two-communicators", Ranks::Threads, 2, two_communicators},
                   {"crossed-communicators-t", Ranks::Threads, 2, crossed_communicators, SECOND},
                   {"crossed-communicators-p", Ranks::Processes, 2, crossed_communicators, SECOND},
                   {"crossed-communicators-tcp", Ranks::Processes, 2, crossed_communicators, TCP_SECOND},
                   {"crossed-first-t", Ranks::Threads, 2, crossed_first_operations, SECOND},
                   {"crossed-first-p", Ranks::Processes, 2, crossed_first_operations, SECOND},
                   {"crossed-first-tcp", Ranks::Processes, 2, crossed_first_operations, TCP_SECOND},
                   {"one-rank-unordered-t", Ranks::Threads, 3, one_rank_unordered},
                   {"one-rank-unordered-p", Ranks::Processes, 3, one_rank_unordered},
                   {"other-operation-t", Ranks::Threads, 4, other_operation},
                   {"other-operation-p", Ranks::Processes, 4, other_operation},
                   {"other-size-t", Ranks::Threads, 4, other_size},
                   {"other-size-p", Ranks::Processes, 4, other_size},
                   {"batch-sizes-t", Ranks::Threads, 4, batch_sizes},
                   {"batch-sizes-p", Ranks::Processes, 4, batch_sizes},
                   {"batch-and-collective-t", Ranks::Threads, 2, batch_and_collective},
                   {"batch-and-collective-p", Ranks::Processes, 2, batch_and_collective},
                   {"batch-without-receives", Ranks::Threads, 2, batch_without_receives, {{"HCCL_EXEC_TIMEOUT", "1"}}},
                   {"buffers", Ranks::Threads, 2, buffers},
               });
}
