// Collectives of HCCL as programs see them: every operation, data type and reduction, communicators of one process.

#include <atomic>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "conform.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;

// --- exchanges

// HcclScatter: part i of the root's buffer goes to rank i.
const Behaviour scatter("scatter", Ranks::Threads, 4, [](const Rank &me) {
    const World world(me);
    for (uint32_t root = 0; root < me.size; root++) {
        const Vector<float> send(4 * 100, [&](size_t i) { return static_cast<float>(i + root); });
        const Vector<float> recv(100);
        OK(HcclScatter(me.rank == root ? send.at() : nullptr, recv.at(), 100, FP32, root, world.comm, world.stream));
        world.synchronize();
        recv.expect([&](size_t i) { return static_cast<float>(me.rank * 100 + i + root); }, "scatter");
    }
});
const Behaviour scatter_p("scatter-between-processes", Ranks::Processes, 3, [](const Rank &me) {
    const World world(me);
    const Vector<float> send(300, [](size_t i) { return static_cast<float>(i); });
    const Vector<float> recv(100);
    OK(HcclScatter(send.at(), recv.at(), 100, FP32, 1, world.comm, world.stream));
    world.synchronize();
    recv.expect([&](size_t i) { return static_cast<float>(me.rank * 100 + i); }, "scatter");
});

// HcclAlltoAll: part j of rank i becomes part i of rank j.
void all_to_all(const Rank &me) {
    const World world(me);
    const Vector<int32_t> send(me.size * 10, [&](size_t i) { return static_cast<int32_t>(me.rank * 1000 + i); });
    const Vector<int32_t> recv(me.size * 10);
    OK(HcclAlltoAll(send.at(), 10, HCCL_DATA_TYPE_INT32, recv.at(), 10, HCCL_DATA_TYPE_INT32, world.comm,
                    world.stream));
    world.synchronize();
    recv.expect([&](size_t i) { return static_cast<int32_t>(i / 10 * 1000 + me.rank * 10 + i % 10); }, "all to all");
}
const Behaviour alltoall("alltoall", Ranks::Threads, 5, all_to_all);
const Behaviour alltoall_p("alltoall-between-processes", Ranks::Processes, 4, all_to_all);

// Its counts and types are equal, its buffers different.
const Behaviour alltoall_arguments("alltoall-arguments", Ranks::Threads, 1, [](const Rank &me) {
    const World world(me);
    const Vector<float> a(8);
    const Vector<float> b(8);
    const auto call = [&](void *send, uint64_t m, HcclDataType s, void *recv, uint64_t n, HcclDataType r) {
        return HcclAlltoAll(send, m, s, recv, n, r, world.comm, world.stream);
    };
    RETURNS(HCCL_E_PTR, call(nullptr, 8, FP32, b.at(), 8, FP32));
    RETURNS(HCCL_E_PTR, call(a.at(), 8, FP32, nullptr, 8, FP32));
    FAILS(HCCL_E_PARA, "are not equal", call(a.at(), 8, FP32, b.at(), 4, FP32));
    FAILS(HCCL_E_PARA, "are not equal", call(a.at(), 8, FP32, b.at(), 8, HCCL_DATA_TYPE_INT32));
    FAILS(HCCL_E_PARA, "cannot be same", call(a.at(), 8, FP32, a.at(), 8, FP32));
    OK(call(nullptr, 0, FP32, nullptr, 0, FP32));
});

// HcclAlltoAllV: counts and places per rank, zero counts and gaps included. Rank i sends i + j elements to rank j.
const Behaviour alltoallv("alltoallv", Ranks::Threads, 4, [](const Rank &me) {
    const World world(me);
    std::vector<uint64_t> counts(me.size);
    std::vector<uint64_t> places(me.size);
    for (uint32_t peer = 0; peer < me.size; peer++) {
        counts[peer] = me.rank + peer;
        places[peer] = peer * 20;
    }
    const Vector<int64_t> send(80, [&](size_t i) { return static_cast<int64_t>(me.rank * 1000 + i); });
    const Vector<int64_t> recv(80, [](size_t) { return -1; });
    OK(HcclAlltoAllV(send.at(), counts.data(), places.data(), HCCL_DATA_TYPE_INT64, recv.at(), counts.data(),
                     places.data(), HCCL_DATA_TYPE_INT64, world.comm, world.stream));
    world.synchronize();
    recv.expect([&](size_t i) {
        const size_t from = i / 20;
        return i % 20 < me.rank + from ? static_cast<int64_t>(from * 1000 + me.rank * 20 + i % 20) : -1;
    }, "all to all v");
});

// Rank 0's call returns before rank 1 calls; on the 910A only behind that, and behind what its stream held before.
// Source: hcomm, src/legacy/ascend910/framework/communicator/impl/hccl_communicator_host.cc, RegressCalPreOp.
void alltoallv_host(const Rank &me, bool waits) {
    static std::atomic<bool> called{false};
    static std::atomic<bool> returned{false};
    const World world(me);
    const Vector<float> send(2, [&](size_t i) { return static_cast<float>(me.rank * 10 + i); });
    const Vector<float> recv(2);
    const uint64_t counts[] = {1, 1};
    const uint64_t places[] = {0, 1};
    const auto call = [&] {
        OK(HcclAlltoAllV(send.at(), counts, places, FP32, recv.at(), counts, places, FP32, world.comm, world.stream));
    };
    call(); // the first one makes links, for which the host waits everywhere
    world.synchronize();
    if (me.rank == 0) {
        aclrtEvent before = nullptr;
        OK(aclrtCreateEvent(&before));
        OK(aclrtRecordEvent(before, world.stream));
        call();
        returned = true;
        aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
        OK(aclrtQueryEventStatus(before, &status));
        CHECK(!waits || (called && status == ACL_EVENT_RECORDED_STATUS_COMPLETE));
        world.synchronize();
        OK(aclrtDestroyEvent(before));
    } else {
        // Where the other waits this is long enough to see one that does not.
        const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(waits ? 500 : 30'000);
        while (!returned && std::chrono::steady_clock::now() < limit) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        CHECK(returned != waits);
        called = true;
        call();
        world.synchronize();
    }
    recv.expect([&](size_t i) { return static_cast<float>(i * 10 + me.rank); }, "all to all v");
}
const Behaviour alltoallv_ordered("alltoallv-host-goes-on", Ranks::Threads, 2,
                                  [](const Rank &me) { alltoallv_host(me, false); });
const Behaviour alltoallv_counts("alltoallv-910A-host-waits", Ranks::Threads, 2,
                                 [](const Rank &me) { alltoallv_host(me, true); }, {{"ASCEND_MOCK_SOC", "Ascend910A"}});

// Its pointers are needed, its buffers only where something is sent or received, and never one for both.
// Source: hcomm src/legacy/ascend910/framework/op_base/src/op_base.cc:4117, .../common/src/param_check.cc:161.
void alltoallv_checks(const Rank &me) {
    const World world(me);
    const Vector<float> a(8);
    const Vector<float> b(8);
    const uint64_t none[] = {0, 0};
    const uint64_t one[] = {1, 1};
    const uint64_t many[] = {1, 0x800000000ULL};
    const auto call = [&](const void *send, const void *m, const void *p, const void *recv, const void *n,
                          const void *q) {
        return HcclAlltoAllV(send, m, p, FP32, recv, n, q, FP32, world.comm, world.stream);
    };
    RETURNS(HCCL_E_PTR, call(a.at(), nullptr, one, b.at(), one, one));
    RETURNS(HCCL_E_PTR, call(a.at(), one, nullptr, b.at(), one, one));
    RETURNS(HCCL_E_PTR, call(a.at(), one, one, b.at(), nullptr, one));
    RETURNS(HCCL_E_PTR, call(a.at(), one, one, b.at(), one, nullptr));
    RETURNS(HCCL_E_PTR, call(nullptr, one, one, b.at(), one, one));
    RETURNS(HCCL_E_PTR, call(a.at(), one, one, nullptr, one, one));
    RETURNS(HCCL_E_PTR, HcclAlltoAllV(a.at(), one, one, FP32, b.at(), one, one, FP32, nullptr, world.stream));
    RETURNS(HCCL_E_PTR, HcclAlltoAllV(a.at(), one, one, FP32, b.at(), one, one, FP32, world.comm, nullptr));
    FAILS(HCCL_E_PARA, "cannot be same", call(a.at(), one, one, a.at(), one, one));
    FAILS(HCCL_E_PARA, "count", call(a.at(), many, none, b.at(), one, one));
    // Nothing to send and nothing to receive is an operation nevertheless, and needs no buffer.
    OK(call(nullptr, none, none, nullptr, none, none));
    const uint64_t sends[] = {me.rank == 0 ? 0U : 1U, 0};
    const uint64_t recvs[] = {0, me.rank == 0 ? 1U : 0U};
    OK(call(me.rank == 0 ? nullptr : a.at(), sends, none, me.rank == 0 ? b.at() : nullptr, recvs, none));
    world.synchronize();
}
const Behaviour alltoallv_arguments("alltoallv-arguments", Ranks::Threads, 2, alltoallv_checks);
const Behaviour alltoallv_arguments_950("alltoallv-arguments-950", Ranks::Threads, 2, alltoallv_checks,
                                        {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

// The two types may differ: bytes count. The 950 looks at recvType only.
// Source: hcomm src/legacy/ascend910/framework/op_base/src/op_base.cc:4117; hccl src/ops/all_to_all_v/all_to_all_v_op.cc:495.
const Behaviour alltoallv_types("alltoallv-types-may-differ", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<uint32_t> send(8, [&](size_t i) { return static_cast<uint32_t>(me.rank * 100 + i); });
    const Vector<uint32_t> recv(8);
    const uint64_t words[] = {2, 2};
    const uint64_t word_places[] = {0, 2};
    const uint64_t halves[] = {4, 4};
    const uint64_t half_places[] = {0, 4};
    OK(HcclAlltoAllV(send.at(), words, word_places, HCCL_DATA_TYPE_INT32, recv.at(), halves, half_places,
                     HCCL_DATA_TYPE_INT16, world.comm, world.stream));
    world.synchronize();
    const std::vector<uint32_t> got = recv.get();
    CHECK(got[0] == me.rank * 2 && got[1] == me.rank * 2 + 1);
    CHECK(got[2] == 100 + me.rank * 2 && got[3] == 101 + me.rank * 2);
});

// A place that lies outside any memory is refused and not wrapped around.
const Behaviour displacement("alltoallv-displacement-overflow", Ranks::Threads, 1, [](const Rank &me) {
    const World world(me);
    const Vector<float> a(8);
    const Vector<float> b(8);
    const uint64_t count[] = {1};
    const uint64_t zero[] = {0};
    const uint64_t far[] = {1ULL << 62};
    FAILS(HCCL_E_PARA, "displacement",
          HcclAlltoAllV(a.at(), count, far, FP32, b.at(), count, zero, FP32, world.comm, world.stream));
    FAILS(HCCL_E_PARA, "displacement",
          HcclAlltoAllV(a.at(), count, zero, FP32, b.at(), count, far, FP32, world.comm, world.stream));
});

// Counts that are all 0 end HcclAllGatherV and HcclReduceScatterV at once: no peer is needed.
// Source: hccl src/ops/reduce_scatter_v/reduce_scatter_v_op.cc:51, src/ops/all_gather_v/all_gather_v_op.cc:43.
const Behaviour all_zero("counts-all-0", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const uint64_t zero[] = {0, 0};
    if (me.rank == 0) {
        OK(HcclAllGatherV(nullptr, 0, nullptr, zero, zero, FP32, world.comm, world.stream));
        OK(HcclReduceScatterV(nullptr, zero, zero, nullptr, 0, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
        world.synchronize();
    }
});

// Ranks that disagree about a count learn of it, also if one of them sends nothing.
const Behaviour alltoallv_differs("alltoallv-counts-differ", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> send(16);
    const Vector<float> recv(16);
    const uint64_t places[] = {0, 8};
    const uint64_t sends[] = {me.rank == 0 ? 4U : 0U, me.rank == 0 ? 0U : 4U};
    const uint64_t recvs[] = {4, 4};
    OK(HcclAlltoAllV(send.at(), sends, places, FP32, recv.at(), recvs, places, FP32, world.comm, world.stream));
    FAILS(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, "EI0005", aclrtSynchronizeStream(world.stream));
});

// HcclAlltoAllVC: the matrix of all counts, data without gaps.
const Behaviour alltoallvc("alltoallvc", Ranks::Threads, 3, [](const Rank &me) {
    const World world(me);
    const uint64_t matrix[9] = {1, 2, 3, 4, 0, 6, 2, 1, 1}; // row i: what rank i sends
    const Vector<float> send(16, [&](size_t i) { return static_cast<float>(me.rank * 100 + i); });
    const Vector<float> recv(16, [](size_t) { return -1.0F; });
    OK(HcclAlltoAllVC(send.at(), matrix, FP32, recv.at(), FP32, world.comm, world.stream));
    world.synchronize();
    const std::vector<float> got = recv.get();
    size_t place = 0;
    for (uint32_t from = 0; from < 3; from++) {
        uint64_t skip = 0;
        for (uint32_t to = 0; to < me.rank; to++) {
            skip += matrix[from * 3 + to];
        }
        for (uint64_t i = 0; i < matrix[from * 3 + me.rank]; i++) {
            CHECK(got[place++] == static_cast<float>(from * 100 + skip + i));
        }
    }
    CHECK(got[place] == -1.0F);
});

// HcclAllGatherV: rank i gives i elements.
const Behaviour allgatherv("allgatherv", Ranks::Threads, 4, [](const Rank &me) {
    const World world(me);
    const uint64_t counts[] = {0, 1, 2, 3};
    const uint64_t places[] = {0, 10, 20, 30};
    const Vector<uint8_t> send(4, [&](size_t i) { return static_cast<uint8_t>(me.rank * 10 + i); });
    const Vector<uint8_t> recv(40, [](size_t) { return uint8_t{255}; });
    OK(HcclAllGatherV(send.at(), me.rank, recv.at(), counts, places, HCCL_DATA_TYPE_UINT8, world.comm, world.stream));
    world.synchronize();
    recv.expect([&](size_t i) { return i % 10 < i / 10 ? static_cast<uint8_t>(i / 10 * 10 + i % 10) : uint8_t{255}; },
                "all gather v");
    FAILS(HCCL_E_PARA, "recvCounts",
          HcclAllGatherV(send.at(), me.rank + 1, recv.at(), counts, places, HCCL_DATA_TYPE_UINT8, world.comm,
                         world.stream));
    RETURNS(HCCL_E_PTR, HcclAllGatherV(send.at(), me.rank, recv.at(), nullptr, places, HCCL_DATA_TYPE_UINT8, world.comm,
                                       world.stream));
});

// HcclReduceScatterV: rank i gets i + 1 elements, reduced in the order of the ranks.
const Behaviour reducescatterv("reducescatterv", Ranks::Threads, 4, [](const Rank &me) {
    const World world(me);
    const uint64_t counts[] = {1, 2, 3, 4};
    const uint64_t places[] = {0, 1, 3, 6};
    const Vector<float> send(10, [&](size_t i) { return static_cast<float>(i * (me.rank + 1)); });
    const Vector<float> recv(4, [](size_t) { return -1.0F; });
    OK(HcclReduceScatterV(send.at(), counts, places, recv.at(), me.rank + 1, FP32, HCCL_REDUCE_SUM, world.comm,
                          world.stream));
    world.synchronize();
    recv.expect([&](size_t i) { return i <= me.rank ? static_cast<float>((places[me.rank] + i) * 10) : -1.0F; },
                "reduce scatter v");
    FAILS(HCCL_E_PARA, "sendCounts",
          HcclReduceScatterV(send.at(), counts, places, recv.at(), 9, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    FAILS(HCCL_E_PARA, "cannot be same",
          HcclReduceScatterV(send.at(), counts, places, send.at(), me.rank + 1, FP32, HCCL_REDUCE_SUM, world.comm,
                             world.stream));
});

// HcclReduce: the result is the root's alone.
const Behaviour reduce("reduce-to-root", Ranks::Threads, 3, [](const Rank &me) {
    const World world(me);
    const Vector<float> send(8, [&](size_t i) { return static_cast<float>(i + me.rank); });
    const Vector<float> recv(8, [](size_t) { return -1.0F; });
    OK(HcclReduce(send.at(), recv.at(), 8, FP32, HCCL_REDUCE_MAX, 2, world.comm, world.stream));
    world.synchronize();
    recv.expect([&](size_t i) { return me.rank == 2 ? static_cast<float>(i + 2) : -1.0F; }, "reduce");
    // Every rank passes recvBuf. Source: hccl src/ops/reduce/reduce_op.cc:120.
    RETURNS(HCCL_E_PTR, HcclReduce(send.at(), nullptr, 8, FP32, HCCL_REDUCE_MAX, 2, world.comm, world.stream));
    RETURNS(HCCL_E_PARA, HcclReduce(send.at(), recv.at(), 8, FP32, HCCL_REDUCE_MAX, 3, world.comm, world.stream));
});

// Different collectives of this kind on the ranks: both are named.
const Behaviour mixed("exchange-differs-from-collective", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> a(16);
    const Vector<float> b(16);
    const auto exchange = [&] { return HcclAlltoAll(a.at(), 8, FP32, b.at(), 8, FP32, world.comm, world.stream); };
    const auto reduction = [&] {
        return HcclAllReduce(a.at(), b.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream);
    };
    OK(exchange());
    OK(reduction());
    world.synchronize();
    OK(me.rank == 0 ? exchange() : reduction());
    const int code = aclrtSynchronizeStream(world.stream);
    const std::string message = recent();
    CHECK(code == ACL_ERROR_RT_FFTS_PLUS_EXCEPTION);
    expect_text(__FILE__, __LINE__, message, "HcclAlltoAll");
    expect_text(__FILE__, __LINE__, message, "HcclAllReduce");
});

// --- data types and reductions

template <class Type>
bool reduces(const World &world, const Rank &me, HcclDataType type, HcclReduceOp op, const std::vector<Type> &values,
             Type wanted) {
    const Vector<Type> data(20, [&](size_t) { return values[me.rank]; });
    OK(HcclAllReduce(data.at(), data.at(), 20, type, op, world.comm, world.stream));
    world.synchronize();
    for (const Type got : data.get()) {
        if (!(got == wanted)) {
            return false;
        }
    }
    return true;
}

template <class Type>
void four_reductions(const World &world, const Rank &me, HcclDataType type) {
    const std::vector<Type> values = {3, 5, 2};
    CHECK(reduces<Type>(world, me, type, HCCL_REDUCE_SUM, values, 10));
    CHECK(reduces<Type>(world, me, type, HCCL_REDUCE_MAX, values, 5));
    CHECK(reduces<Type>(world, me, type, HCCL_REDUCE_MIN, values, 2));
    if (type != HCCL_DATA_TYPE_INT16) {
        CHECK(reduces<Type>(world, me, type, HCCL_REDUCE_PROD, values, 30));
    }
}

// One case per type: sum, maximum, minimum, product.
template <class Type>
struct Numbers {
    Numbers(const char *name, HcclDataType type, Environment environment = {})
        : behaviour(name, Ranks::Threads, 3, [type](const Rank &me) {
              const World world(me);
              four_reductions<Type>(world, me, type);
          }, std::move(environment)) {}
    Behaviour behaviour;
};
const Environment ON_950 = {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}};
const Numbers<int8_t> int8("reduce-int8", HCCL_DATA_TYPE_INT8);
const Numbers<int16_t> int16("reduce-int16", HCCL_DATA_TYPE_INT16);
const Numbers<int32_t> int32("reduce-int32", HCCL_DATA_TYPE_INT32);
const Numbers<int64_t> int64("reduce-int64", HCCL_DATA_TYPE_INT64);
const Numbers<float> fp32("reduce-fp32", HCCL_DATA_TYPE_FP32);
const Numbers<double> fp64("reduce-fp64-950", HCCL_DATA_TYPE_FP64, ON_950);
const Numbers<uint64_t> uint64("reduce-uint64-950", HCCL_DATA_TYPE_UINT64, ON_950);

// fp16 and bf16 are summed in fp32 and rounded once: 2048 + 1 + 1 is 2050, not 2048.
const Behaviour fp16("reduce-fp16-sums-in-fp32", Ranks::Threads, 3, [](const Rank &me) {
    const World world(me);
    CHECK(reduces<uint16_t>(world, me, HCCL_DATA_TYPE_FP16, HCCL_REDUCE_SUM, {0x6800, 0x3c00, 0x3c00}, 0x6801));
    CHECK(reduces<uint16_t>(world, me, HCCL_DATA_TYPE_FP16, HCCL_REDUCE_PROD, {0x4000, 0x4200, 0x3c00}, 0x4600));
    CHECK(reduces<uint16_t>(world, me, HCCL_DATA_TYPE_FP16, HCCL_REDUCE_MIN, {0xc000, 0x4200, 0x3c00}, 0xc000));
});
const Behaviour bf16("reduce-bf16-sums-in-fp32", Ranks::Threads, 3, [](const Rank &me) {
    const World world(me);
    CHECK(reduces<uint16_t>(world, me, HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_SUM, {0x4380, 0x3f80, 0x3f80}, 0x4381));
    CHECK(reduces<uint16_t>(world, me, HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_MAX, {0x4380, 0x3f80, 0x3f80}, 0x4380));
});

// What a processor cannot reduce is E_NOT_SUPPORT.
void unsupported(const Rank &me, const std::vector<std::pair<HcclDataType, HcclReduceOp>> &list) {
    const World world(me);
    const Vector<uint64_t> data(8);
    for (const auto &entry : list) {
        FAILS(HCCL_E_NOT_SUPPORT, "not supported",
              HcclAllReduce(data.at(), data.at(), 4, entry.first, entry.second, world.comm, world.stream));
        FAILS(HCCL_E_NOT_SUPPORT, "not supported",
              HcclReduceScatter(data.at(), data.at(4), 4, entry.first, entry.second, world.comm, world.stream));
    }
}
const Behaviour refused_b("reduce-refused-910B", [](const Rank &me) {
    unsupported(me, {{HCCL_DATA_TYPE_FP64, HCCL_REDUCE_SUM},
                     {HCCL_DATA_TYPE_UINT8, HCCL_REDUCE_SUM},
                     {HCCL_DATA_TYPE_UINT64, HCCL_REDUCE_MAX},
                     {HCCL_DATA_TYPE_INT16, HCCL_REDUCE_PROD},
                     {HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_PROD}});
});
const Behaviour refused_a("reduce-refused-910A", [](const Rank &me) {
    unsupported(me, {{HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_SUM}, {HCCL_DATA_TYPE_INT16, HCCL_REDUCE_SUM}});
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});
const Behaviour refused_310("reduce-refused-310P", [](const Rank &me) {
    unsupported(me, {{HCCL_DATA_TYPE_INT64, HCCL_REDUCE_SUM}, {HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_SUM}});
}, {{"ASCEND_MOCK_SOC", "Ascend310P3"}});

// A number that is no type or no reduction is not supported.
// Source: hcomm, src/legacy/ascend910/framework/common/src/param_check.cc:281, :306; hccl, src/ops/op_common/op_common.cc:2913, :2977.
const Behaviour numbers("reduce-unknown-numbers", [](const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclAllReduce(data.at(), data.at(), 4, HCCL_DATA_TYPE_RESERVED, HCCL_REDUCE_SUM, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclAllReduce(data.at(), data.at(), 4, FP32, HCCL_REDUCE_RESERVED, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclAllReduce(data.at(), data.at(), 4, FP32, static_cast<HcclReduceOp>(4), world.comm, world.stream));
});

// Data movement takes every type of 1 to 8 bytes; bf16 not on the 910A, 8-bit floats on the 950 only, int128 nowhere.
HcclResult broadcast(const World &world, const Vector<uint64_t> &data, int type) {
    return HcclBroadcast(data.at(), 4, static_cast<HcclDataType>(type), 0, world.comm, world.stream);
}
const Behaviour movable("move-types-910B", [](const Rank &me) {
    const World world(me);
    const Vector<uint64_t> data(8);
    for (int type = HCCL_DATA_TYPE_INT8; type <= HCCL_DATA_TYPE_BFP16; type++) {
        OK(broadcast(world, data, type));
    }
    RETURNS(HCCL_E_NOT_SUPPORT, broadcast(world, data, HCCL_DATA_TYPE_INT128));
    RETURNS(HCCL_E_NOT_SUPPORT, broadcast(world, data, HCCL_DATA_TYPE_FP8E4M3));
    RETURNS(HCCL_E_NOT_SUPPORT, broadcast(world, data, 13));
    world.synchronize();
});
const Behaviour movable_a("move-types-910A", [](const Rank &me) {
    const World world(me);
    const Vector<uint64_t> data(8);
    RETURNS(HCCL_E_NOT_SUPPORT, broadcast(world, data, HCCL_DATA_TYPE_BFP16));
    OK(broadcast(world, data, HCCL_DATA_TYPE_FP64));
    world.synchronize();
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});
const Behaviour movable_950("move-types-950", [](const Rank &me) {
    const World world(me);
    const Vector<uint64_t> data(8);
    for (int type = HCCL_DATA_TYPE_HIF8; type <= HCCL_DATA_TYPE_FP8E8M0; type++) {
        OK(broadcast(world, data, type));
    }
    world.synchronize();
}, ON_950);

// NaN and infinity pass through sums.
const Behaviour nonfinite("reduce-nan-and-infinity", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    const Vector<float> data(3, [&](size_t i) {
        return i == 0 ? 1.0F : me.rank == 0 ? (i == 1 ? NAN : INFINITY) : 2.0F;
    });
    OK(HcclAllReduce(data.at(), data.at(), 3, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    world.synchronize();
    const std::vector<float> got = data.get();
    CHECK(got[0] == 2.0F && std::isnan(got[1]) && std::isinf(got[2]));
});

// --- communicators of one process

// HcclCommInitAll: one process, a communicator per device; the caller's device stays as it is.
const Behaviour init_all("init-all", [](const Rank &) {
    OK(aclrtSetDevice(5));
    int32_t devices[] = {2, 0, 3};
    HcclComm comms[3] = {};
    OK(HcclCommInitAll(3, devices, comms));
    int32_t device = -1;
    OK(aclrtGetDevice(&device));
    CHECK(device == 5);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 3; rank++) {
        threads.emplace_back([&, rank] {
            OK(aclrtSetDevice(devices[rank]));
            uint32_t id = 9;
            OK(HcclGetRankId(comms[rank], &id));
            CHECK(id == rank);
            aclrtStream stream = nullptr;
            OK(aclrtCreateStream(&stream));
            {
                const Vector<float> data(4, [&](size_t) { return static_cast<float>(rank); });
                OK(HcclAllReduce(data.at(), data.at(), 4, FP32, HCCL_REDUCE_SUM, comms[rank], stream));
                OK(aclrtSynchronizeStream(stream));
                data.expect([](size_t) { return 3.0F; }, "init all");
            }
            OK(HcclCommDestroy(comms[rank]));
            OK(aclrtDestroyStream(stream));
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
});

// No devices, one of them twice: E_PARA; missing pointers: E_PTR.
const Behaviour init_all_arguments("init-all-arguments", [](const Rank &) {
    int32_t devices[] = {0, 1, 0};
    HcclComm comms[3] = {};
    RETURNS(HCCL_E_PARA, HcclCommInitAll(0, devices, comms));
    RETURNS(HCCL_E_PTR, HcclCommInitAll(3, nullptr, comms));
    RETURNS(HCCL_E_PTR, HcclCommInitAll(3, devices, nullptr));
    FAILS(HCCL_E_PARA, "Duplicate device id", HcclCommInitAll(3, devices, comms));
    devices[2] = 1000;
    RETURNS(HCCL_E_PARA, HcclCommInitAll(3, devices, comms));
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
