// Operations between two ranks as programs see them: the memory that a communicator takes for them, sends and receives, batches.

#include "conform.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;

// --- memory

size_t free_memory() {
    size_t free = 0;
    size_t total = 0;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    return free;
}
HcclResult barrier_of(HcclComm comm, const World &world) {
    const HcclResult code = HcclBarrier(comm, world.stream);
    world.synchronize();
    return code;
}

// A communicator takes twice its buffer size of device memory, from the first operation that needs it to its end.
const Behaviour buffer_memory("comm-takes-two-buffers", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const size_t mb = 1 << 20;
    const size_t before = free_memory();
    OK(barrier_of(world.comm, world));
    CHECK(before - free_memory() == 2 * 200 * mb);
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    config.hcclBufferSize = 7;
    uint32_t ranks[] = {0, 1};
    HcclComm parent = world.comm;
    HcclComm comm = nullptr;
    OK(HcclCreateSubCommConfig(&parent, 2, ranks, 1, me.rank, &config, &comm));
    CHECK(before - free_memory() == 2 * 200 * mb);
    OK(barrier_of(comm, world));
    OK(barrier_of(comm, world));
    CHECK(before - free_memory() == 2 * 207 * mb);
    OK(HcclCommDestroy(comm));
    CHECK(before - free_memory() == 2 * 200 * mb);
}, {{"HCCL_BUFFSIZE", "200"}});
// Without memory for them the operation fails: 3, from CANN 9.0 on 24. It works once there is some.
void without_memory(const Rank &me, int code) {
    const World world(me);
    void *most = nullptr;
    OK(aclrtMalloc(&most, free_memory() - (10 << 20), ACL_MEM_MALLOC_HUGE_FIRST));
    FAILS(code, "no memory left for its two buffers of 20 MB", HcclBarrier(world.comm, world.stream));
    OK(aclrtFree(most));
    OK(barrier_of(world.comm, world));
}
const Behaviour no_buffers("comm-without-memory", Ranks::Threads, 2, [](const Rank &me) {
    without_memory(me, HCCL_E_MEMORY);
}, {{"HCCL_BUFFSIZE", "20"}, {"ASCEND_MOCK_HBM_MB", "256"}});
const Behaviour no_buffers_90("comm-without-memory-9.0", Ranks::Threads, 2, [](const Rank &me) {
    without_memory(me, HCCL_E_OOM);
}, {{"HCCL_BUFFSIZE", "20"}, {"ASCEND_MOCK_HBM_MB", "256"}, {"ASCEND_MOCK_CANN", "9.0.0"}});

// --- point to point

// Count 0 is a success before anything else is looked at.
const Behaviour count_0("send-count-0-first", [](const Rank &) {
    OK(HcclSend(nullptr, 0, HCCL_DATA_TYPE_RESERVED, 99, nullptr, nullptr));
    OK(HcclRecv(nullptr, 0, HCCL_DATA_TYPE_RESERVED, 99, nullptr, nullptr));
});

// The order of checks: pointers, count, type, self, rank. Source: hcomm, src/legacy/ascend910, framework/op_base/src/op_base.cc:3261
// and algorithm/impl/coll_executor/coll_send_receive/coll_send_executor.cc:118: no link leads to the rank itself.
const Behaviour check_order("send-order-of-checks", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    const uint64_t large = 0x800000000ULL;
    const auto none = HCCL_DATA_TYPE_RESERVED;
    RETURNS(HCCL_E_PTR, HcclSend(nullptr, large, none, 9, world.comm, world.stream));
    RETURNS(HCCL_E_PTR, HcclSend(data.at(), large, none, 9, nullptr, world.stream));
    FAILS(HCCL_E_PARA, "count", HcclSend(data.at(), large, none, 9, world.comm, world.stream));
    FAILS(HCCL_E_NOT_SUPPORT, "dataType", HcclSend(data.at(), 8, none, me.rank, world.comm, world.stream));
    FAILS(HCCL_E_PARA, "to itself", HcclSend(data.at(), 8, FP32, me.rank, world.comm, world.stream));
    FAILS(HCCL_E_PARA, "destRank", HcclSend(data.at(), 8, FP32, 2, world.comm, world.stream));
    FAILS(HCCL_E_PARA, "srcRank", HcclRecv(data.at(), 8, FP32, 2, world.comm, world.stream));
});

// Source: hccl, src/ops/send/send_op.cc:144.
const Behaviour self_950("send-to-itself-950", [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    RETURNS(HCCL_E_NOT_SUPPORT, HcclSend(data.at(), 8, FP32, 0, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclRecv(data.at(), 8, FP32, 0, world.comm, world.stream));
}, {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

// Send and receive are a rendezvous at any size: a send ends when it was received.
const Behaviour rendezvous("send-is-a-rendezvous", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(2, [&](size_t) { return static_cast<float>(me.rank); });
    OK(HcclBarrier(world.comm, world.stream));
    for (int round = 0; round < 2; round++) { // the first builds the link in the host call
        if (me.rank == 0) {
            OK(HcclSend(data.at(), 2, FP32, 1, world.comm, world.stream));
            if (round == 1) {
                RETURNS(507046, aclrtSynchronizeStreamWithTimeout(world.stream, 100));
                write_file(folder() + "/waited", "");
            }
        } else {
            if (round == 1) {
                read_file(folder() + "/waited");
            }
            OK(HcclRecv(data.at(), 2, FP32, 0, world.comm, world.stream));
        }
        world.synchronize();
    }
    data.expect([](size_t) { return 0.0F; }, "receive");
});

// Buffers are memory of the communicator's device, within one allocation, aligned to their elements.
const Behaviour buffers("send-buffer-checks", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(64);
    float host[8] = {};
    const uint32_t peer = 1 - me.rank;
    const auto send = [&](void *buffer, uint64_t count) {
        return HcclSend(buffer, count, FP32, peer, world.comm, world.stream);
    };
    FAILS(HCCL_E_PARA, "is not memory of device", send(host, 8));
    FAILS(HCCL_E_PARA, "its allocation ends", send(data.at(60), 64));
    FAILS(HCCL_E_PARA, "not aligned", send(reinterpret_cast<char *>(data.at()) + 2, 8));
    OK(aclrtSetDevice(static_cast<int32_t>(peer)));
    FAILS(HCCL_E_PARA, "belongs to device", send(data.at(), 8));
    OK(aclrtSetDevice(static_cast<int32_t>(me.rank)));
});

// A batch is full duplex: crossed sends of one call pair up.
HcclSendRecvItem item(bool send, const Vector<float> &data, uint32_t peer, uint64_t count = 8) {
    return {send ? HCCL_SEND : HCCL_RECV, data.at(), count, FP32, peer};
}
const Behaviour batch_duplex("batch-is-full-duplex", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> out(8, [&](size_t) { return static_cast<float>(me.rank); });
    const Vector<float> in(8);
    HcclSendRecvItem items[] = {item(true, out, 1 - me.rank), item(false, in, 1 - me.rank)};
    OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
    world.synchronize();
    in.expect([&](size_t) { return static_cast<float>(1 - me.rank); }, "batch");
});

// With itself a rank needs a send and a receive of equal bytes, which are copied.
const Behaviour batch_self("batch-with-self", [](const Rank &me) {
    const World world(me);
    const Vector<float> out(8, [](size_t i) { return static_cast<float>(i); });
    const Vector<float> in(8);
    HcclSendRecvItem items[] = {item(true, out, 0), item(false, in, 0)};
    OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
    world.synchronize();
    in.expect([](size_t i) { return static_cast<float>(i); }, "self");
    RETURNS(HCCL_E_PARA, HcclBatchSendRecv(items, 1, world.comm, world.stream));
    items[1].count = 4;
    RETURNS(HCCL_E_PARA, HcclBatchSendRecv(items, 2, world.comm, world.stream));
});

// A batch of nothing: E_PARA, but from CANN 9.0 on a success, on the 950 before any other check; there the own pair has one type,
// too. Source: hcomm, src/legacy/ascend910/framework/op_base/src/op_base.cc:5228; hccl, src/ops/batch_send_recv/batch_send_recv_op.cc:40.
const Behaviour batch_nothing_950("batch-of-nothing-950", [](const Rank &) {
    OK(HcclBatchSendRecv(nullptr, 0, nullptr, nullptr));
}, {{"ASCEND_MOCK_CANN", "9.0.0"}, {"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});
const Behaviour batch_new("batch-9.0", [](const Rank &me) {
    const World world(me);
    const Vector<float> a(8);
    const Vector<float> b(8);
    HcclSendRecvItem items[] = {item(true, a, 0), item(false, b, 0)};
    OK(HcclBatchSendRecv(items, 0, world.comm, world.stream));
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(nullptr, 0, world.comm, world.stream));
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(items, 0, nullptr, world.stream));
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(items, 0, world.comm, nullptr));
    OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
    items[1].dataType = HCCL_DATA_TYPE_INT32;
    FAILS(HCCL_E_PARA, "sends itself fp32 and receives int32", HcclBatchSendRecv(items, 2, world.comm, world.stream));
    world.synchronize();
}, {{"ASCEND_MOCK_CANN", "9.0.0"}});
const Behaviour batch_old("batch-own-pair-8.3", [](const Rank &me) {
    const World world(me);
    const Vector<float> a(8);
    const Vector<float> b(8);
    HcclSendRecvItem items[] = {item(true, a, 0), item(false, b, 0)};
    items[1].dataType = HCCL_DATA_TYPE_INT32; // equal bytes do
    OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
    world.synchronize();
});

// At most one send and one receive per peer, at most twice as many items as ranks.
const Behaviour batch_limits("batch-limits", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> a(8);
    const Vector<float> b(8);
    const uint32_t peer = 1 - me.rank;
    HcclSendRecvItem items[5] = {item(true, a, peer), item(true, b, peer), item(false, a, peer), item(false, b, peer),
                                 item(true, a, peer)};
    FAILS(HCCL_E_PARA, "one send and one receive per peer", HcclBatchSendRecv(items, 2, world.comm, world.stream));
    RETURNS(HCCL_E_PARA, HcclBatchSendRecv(items, 5, world.comm, world.stream));
    RETURNS(HCCL_E_PARA, HcclBatchSendRecv(items, 0, world.comm, world.stream));
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(nullptr, 1, world.comm, world.stream));
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(items, 1, world.comm, nullptr));
    items[0].buf = nullptr;
    RETURNS(HCCL_E_PTR, HcclBatchSendRecv(items, 1, world.comm, world.stream));
});
// The 310P has neither batches nor barriers.
const Behaviour on_310p("batch-and-barrier-310P", [](const Rank &me) {
    const World world(me);
    const Vector<float> a(8);
    HcclSendRecvItem items[] = {item(true, a, 0), item(false, a, 0)};
    RETURNS(HCCL_E_NOT_SUPPORT, HcclBatchSendRecv(items, 2, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclBarrier(world.comm, world.stream));
}, {{"ASCEND_MOCK_SOC", "Ascend310P3"}});

// HcclBarrier blocks the streams, not the host.
const Behaviour barrier("barrier-blocks-the-stream", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    OK(HcclBarrier(world.comm, world.stream)); // builds the link
    world.synchronize();
    if (me.rank == 0) {
        const double begin = now();
        OK(HcclBarrier(world.comm, world.stream));
        CHECK(now() - begin < 20); // the other rank comes only after this one
        RETURNS(507046, aclrtSynchronizeStreamWithTimeout(world.stream, 100));
        write_file(folder() + "/seen", "");
    } else {
        read_file(folder() + "/seen");
        OK(HcclBarrier(world.comm, world.stream));
    }
    world.synchronize();
});
// HCCL_EXEC_TIMEOUT is no limit of a barrier on the 910A and A3; on the A2, where HCCL makes a graph of its tasks, and the 950 it is.
// Source: hcomm, src/legacy/ascend910: framework/op_base/src/op_base_host.cc:252, platform/task/dispatcher.cc:296,
// dispatcher_graph.cc:87, framework/device/framework/aicpu_communicator.cc:430; src/legacy/ascend950/framework/entrance/op_base/
// op_base_v2.cc:1391.
void barrier_limit(const Rank &me, bool limited) {
    const World world(me);
    OK(HcclBarrier(world.comm, world.stream));
    world.synchronize();
    if (me.rank == 0) {
        OK(HcclBarrier(world.comm, world.stream));
        RETURNS(limited ? 507048 : 507046, aclrtSynchronizeStreamWithTimeout(world.stream, 2500));
        write_file(folder() + "/seen", "");
    } else {
        read_file(folder() + "/seen");
    }
    if (!limited) {
        if (me.rank == 1) {
            OK(HcclBarrier(world.comm, world.stream));
        }
        world.synchronize();
    }
}
const Environment SECOND = {{"HCCL_EXEC_TIMEOUT", "1"}, {"HCCL_CONNECT_TIMEOUT", "1"}};
Environment second_on(const char *soc) {
    Environment environment = SECOND;
    environment.push_back({"ASCEND_MOCK_SOC", soc});
    return environment;
}
const Behaviour barrier_a2("barrier-has-the-limit-A2", Ranks::Threads, 2,
                           [](const Rank &me) { barrier_limit(me, true); }, SECOND);
const Behaviour barrier_a3("barrier-has-no-limit-A3", Ranks::Threads, 2,
                           [](const Rank &me) { barrier_limit(me, false); }, second_on("Ascend910_9391"));
const Behaviour barrier_910a("barrier-has-no-limit-910A", Ranks::Threads, 2,
                             [](const Rank &me) { barrier_limit(me, false); }, second_on("Ascend910A"));

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
