// HcclGroupStart and HcclGroupEnd as programs see them: what a thread calls between the two is launched at the end.

#include "conform.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;
const Environment V9 = {{"ASCEND_MOCK_CANN", "9.0.0"}};
const Environment V9_950 = {{"ASCEND_MOCK_CANN", "9.0.0"}, {"ASCEND_MOCK_SOC", "Ascend950PR_9599"}};

Vector<float> numbers(size_t count, float first) {
    return Vector<float>(count, [&](size_t i) { return first + static_cast<float>(i); });
}

// --- sends and receives

// Sends and receives of a group run together, crossed ones included.
// Source: hcomm src/legacy/ascend910/framework/group/hccl_group.cc:57, :199 (one batch of all of them).
const Behaviour crossed("group-crossed-sends", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const uint32_t peer = 1 - me.rank;
    const Vector<float> out = numbers(8, me.rank * 10.0F);
    const Vector<float> in(8);
    bool open = true;
    OK(HcclGroupStatusGet(&open));
    CHECK(!open);
    OK(HcclGroupStart());
    OK(HcclGroupStatusGet(&open));
    CHECK(open);
    OK(HcclSend(out.at(), 8, FP32, peer, world.comm, world.stream));
    OK(HcclRecv(in.at(), 8, FP32, peer, world.comm, world.stream));
    OK(HcclGroupEnd());
    world.synchronize();
    in.expect([&](size_t i) { return static_cast<float>(peer * 10 + i); }, "group");
    RETURNS(HCCL_E_PTR, HcclGroupStatusGet(nullptr));
}, V9);

// Several sends to one peer go in their order; groups nest, and the last end launches.
// Source: hcomm src/coll_communicator_mgr/api_c_adpt/coll_comm_res_c_adpt.cc:884 (depth), hccl_group.cc:71 (order of the items).
void several(const Rank &me) {
    const World world(me);
    const Vector<float> out = numbers(30, me.rank * 100.0F);
    const Vector<float> in(90);
    OK(HcclGroupStart());
    OK(HcclGroupStart());
    for (uint32_t peer = 0; peer < me.size; peer++) {
        for (uint32_t part = 0; peer != me.rank && part < 3; part++) {
            OK(HcclSend(out.at(part * 10), 10, FP32, peer, world.comm, world.stream));
            OK(HcclRecv(in.at(peer * 30 + part * 10), 10, FP32, peer, world.comm, world.stream));
        }
    }
    OK(HcclGroupEnd());
    bool open = false;
    OK(HcclGroupStatusGet(&open));
    CHECK(open);
    OK(HcclGroupEnd());
    world.synchronize();
    const std::vector<float> got = in.get();
    for (uint32_t peer = 0; peer < me.size; peer++) {
        for (size_t i = 0; peer != me.rank && i < 30; i++) {
            CHECK(got[peer * 30 + i] == static_cast<float>(peer * 100 + i));
        }
    }
}
const Behaviour many("group-several-per-peer", Ranks::Threads, 3, several, V9);
const Behaviour many_p("group-several-between-processes", Ranks::Processes, 3, several, V9);
const Behaviour many_950("group-several-per-peer-950", Ranks::Threads, 3, several, V9_950);

// All of one communicator go to the stream of the first, whatever the others say.
// Source: hcomm src/legacy/ascend910/framework/group/hccl_group.cc:75.
const Behaviour first_stream("group-uses-the-first-stream", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    aclrtStream second = nullptr;
    OK(aclrtCreateStream(&second));
    const uint32_t peer = 1 - me.rank;
    const Vector<float> out = numbers(8, 1);
    const Vector<float> in(8);
    sleep_in_stream(second, 2000);
    OK(HcclGroupStart());
    OK(HcclSend(out.at(), 8, FP32, peer, world.comm, world.stream));
    OK(HcclRecv(in.at(), 8, FP32, peer, world.comm, second));
    OK(HcclGroupEnd());
    const double begin = now();
    world.synchronize();
    in.expect([&](size_t i) { return static_cast<float>(1 + i); }, "received on the first stream");
    CHECK(now() - begin < 1.5);
    OK(aclrtSynchronizeStream(second));
    OK(aclrtDestroyStream(second));
}, V9);

// A count of 0 is left out. Source: hcomm src/legacy/ascend910/framework/op_base/src/op_base.cc:3257 ff.
const Behaviour nothing("group-count-0", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const uint32_t peer = 1 - me.rank;
    const Vector<float> data = numbers(8, 1);
    OK(HcclGroupStart());
    OK(HcclSend(nullptr, 0, FP32, peer, world.comm, world.stream));
    OK(HcclRecv(nullptr, 0, FP32, 77, nullptr, nullptr));
    OK(HcclGroupEnd());
    OK(HcclGroupStart());
    OK(HcclGroupEnd());
    world.synchronize();
}, V9);

// A rank may send to itself in a group if it receives the same: so many, of this size and type, in this order.
// Source: hcomm src/legacy/ascend910/algorithm/impl/coll_executor/coll_send_receive/coll_batch_send_recv_executor.cc:104; not on the 950: hccl src/ops/send/send_op.cc:144.
const Behaviour self("group-send-to-self", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> out = numbers(8, 5);
    const Vector<float> in(8);
    OK(HcclGroupStart());
    OK(HcclSend(out.at(), 4, FP32, me.rank, world.comm, world.stream));
    OK(HcclSend(out.at(4), 4, FP32, me.rank, world.comm, world.stream));
    OK(HcclRecv(in.at(), 4, FP32, me.rank, world.comm, world.stream));
    OK(HcclRecv(in.at(4), 4, FP32, me.rank, world.comm, world.stream));
    OK(HcclGroupEnd());
    world.synchronize();
    in.expect([](size_t i) { return static_cast<float>(5 + i); }, "own part");
}, V9);
const Behaviour self_950("group-send-to-self-950", Ranks::Threads, 1, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(HcclGroupStart());
    RETURNS(HCCL_E_NOT_SUPPORT, HcclSend(data.at(), 4, FP32, me.rank, world.comm, world.stream));
    OK(HcclGroupEnd());
}, V9_950);

// --- errors

// An end without a start. Source: hcomm src/coll_communicator_mgr/api_c_adpt/coll_comm_res_c_adpt.cc:884.
const Behaviour no_start("group-end-without-start", [](const Rank &) {
    RETURNS(HCCL_E_NOT_SUPPORT, HcclGroupEnd());
    OK(HcclGroupStart());
    OK(HcclGroupEnd());
    RETURNS(HCCL_E_NOT_SUPPORT, HcclGroupEnd());
}, V9);

// Pointers and the count are checked by the call itself. Source: hcomm src/legacy/ascend910/framework/op_base/src/op_base.cc:3257.
const Behaviour at_once("group-checks-of-the-call", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const uint32_t peer = 1 - me.rank;
    const Vector<float> data(8);
    OK(HcclGroupStart());
    RETURNS(HCCL_E_PTR, HcclSend(nullptr, 8, FP32, peer, world.comm, world.stream));
    RETURNS(HCCL_E_PTR, HcclRecv(data.at(), 8, FP32, peer, nullptr, world.stream));
    RETURNS(HCCL_E_PTR, HcclRecv(data.at(), 8, FP32, peer, world.comm, nullptr));
    FAILS(HCCL_E_PARA, "count", HcclSend(data.at(), 0x800000000ULL, FP32, peer, world.comm, world.stream));
    OK(HcclGroupEnd());
    world.synchronize();
}, V9);

// What the end refuses it does not tell: it returns success and nothing is sent.
// Source: hcomm src/legacy/ascend910/framework/group/hccl_group.cc:282 (the results of its parts are dropped).
const Behaviour swallowed("group-end-hides-errors", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> out(8, [](size_t) { return 3.0F; });
    const Vector<float> in(8, [](size_t) { return -1.0F; });
    const auto refused = [&](uint32_t peer, HcclDataType type) {
        OK(HcclGroupStart());
        OK(HcclSend(out.at(), 8, type, peer, world.comm, world.stream));
        OK(HcclRecv(in.at(), 8, FP32, peer, world.comm, world.stream));
        OK(HcclGroupEnd());
        world.synchronize();
    };
    refused(2, FP32);                              // no such rank
    refused(1 - me.rank, HCCL_DATA_TYPE_RESERVED); // no such type
    OK(HcclGroupStart());
    OK(HcclSend(out.at(), 8, FP32, me.rank, world.comm, world.stream)); // and nobody receives it
    OK(HcclGroupEnd());
    world.synchronize();
    in.expect([](size_t) { return -1.0F; }, "nothing came");
}, V9);
// On the 950 the call itself refuses it. Source: hccl src/ops/send/send_op.cc:130-150.
const Behaviour checked_950("group-checks-of-the-call-950", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(HcclGroupStart());
    RETURNS(HCCL_E_PARA, HcclSend(data.at(), 8, FP32, 2, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclRecv(data.at(), 8, HCCL_DATA_TYPE_RESERVED, 1 - me.rank, world.comm, world.stream));
    OK(HcclGroupEnd());
    world.synchronize();
}, V9_950);

// The 910A has no groups, nor have versions before 9.0, whose library lacks the functions.
const Behaviour none_910a("group-910A", [](const Rank &) { RETURNS(HCCL_E_NOT_SUPPORT, HcclGroupStart()); },
                          {{"ASCEND_MOCK_CANN", "9.0.0"}, {"ASCEND_MOCK_SOC", "Ascend910A"}});
const Behaviour none_85("group-before-9.0", [](const Rank &) {
    FAILS(HCCL_E_NOT_SUPPORT, "9.0", HcclGroupStart());
    RETURNS(HCCL_E_NOT_SUPPORT, HcclGroupEnd());
}, {{"ASCEND_MOCK_CANN", "8.5.0"}});

// --- other calls

// Collectives of a group run when it ends, the largest first, and then the host waits for them.
// Source: hcomm src/legacy/ascend910/framework/group/hccl_group.cc:162, :179, :294.
const Behaviour collectives("group-of-collectives", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(16, [](size_t) { return 1.0F; });
    OK(HcclGroupStart());
    // Not the order of the calls: the second is larger and comes first. The ranks call in different order, which is fine.
    const auto small = [&] {
        OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    };
    const auto large = [&] { OK(HcclBroadcast(data.at(), 16, FP32, 0, world.comm, world.stream)); };
    if (me.rank == 0) {
        small();
        large();
    } else {
        large();
        small();
    }
    data.expect([](size_t) { return 1.0F; }, "before the end");
    OK(HcclGroupEnd());
    data.expect([](size_t i) { return i < 8 ? 2.0F : 1.0F; }, "after the end");
}, V9);

// Not on the 950 (interface reference of HcclGroupStart). A reduction to a root would lose its count in the vendor's library
// (hcomm src/legacy/ascend910/framework/op_base/src/op_base.cc:4430), and a batch has no place in a group.
const Behaviour no_collectives("group-takes-no-such-call", Ranks::Threads, 1, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    HcclSendRecvItem item = {HCCL_SEND, data.at(), 8, FP32, 0};
    OK(HcclGroupStart());
    RETURNS(HCCL_E_NOT_SUPPORT, HcclBatchSendRecv(&item, 1, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, 0, world.comm, world.stream));
    OK(HcclGroupEnd());
}, V9);
const Behaviour no_collectives_950("group-takes-no-collectives-950", Ranks::Threads, 1, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(HcclGroupStart());
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    OK(HcclGroupEnd());
}, V9_950);

// Communicators of a group are made at its end, side by side: one thread can make those of several devices.
// Source: hcomm src/legacy/ascend910/framework/group/hccl_group.cc:94, :124.
const Behaviour makes("group-makes-communicators", [](const Rank &) {
    HcclComm comms[2] = {};
    HcclRootInfo root;
    OK(aclrtSetDevice(0));
    OK(HcclGetRootInfo(&root));
    OK(HcclGroupStart());
    for (uint32_t rank = 0; rank < 2; rank++) {
        OK(aclrtSetDevice(static_cast<int32_t>(rank)));
        OK(HcclCommInitRootInfo(2, &root, rank, &comms[rank]));
        CHECK(comms[rank] == nullptr);
    }
    OK(HcclGroupEnd());
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t id = 7;
        OK(HcclGetRankId(comms[rank], &id));
        CHECK(id == rank);
    }
    OK(HcclGroupStart());
    for (uint32_t rank = 0; rank < 2; rank++) {
        OK(aclrtSetDevice(static_cast<int32_t>(rank)));
        OK(HcclCommDestroy(comms[rank]));
    }
    OK(HcclGroupEnd());
    uint32_t id = 7;
    CHECK(HcclGetRankId(comms[0], &id) != HCCL_SUCCESS);
}, V9);

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
