// Every operation of the mock with its data checked, for ranks as threads and as processes.

#include <atomic>
#include <cmath>

#include "harness.h"

using namespace harness;

namespace {

// Elements per rank; many ranks take fewer, or the test's own buffers would fill the machine.
std::vector<uint64_t> counts(const Rank &me) { return {1, 7, 1000, me.size > 16 ? 5003ULL : 100003ULL}; }

// Values that add exactly in fp32, different for every rank and element.
float value(uint32_t rank, size_t i) { return static_cast<float>((rank + 1) * (i % 977 + 1)); }

float total(uint32_t size, size_t i) { return static_cast<float>(size * (size + 1) / 2 * (i % 977 + 1)); }

void all_reduce(const Rank &me, const World &world) {
    for (const uint64_t count : counts(me)) {
        Vector<float> send(count, [&](size_t i) { return value(me.rank, i); });
        Vector<float> recv(count, [](size_t) { return -1.0F; });
        OK(HcclAllReduce(send.at(), recv.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
        OK(HcclAllReduce(send.at(), send.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
        world.synchronize();
        recv.expect([&](size_t i) { return total(me.size, i); }, "all-reduce");
        send.expect([&](size_t i) { return total(me.size, i); }, "all-reduce in place");
        send.set([&](size_t i) { return value(me.rank, i); });
        OK(HcclAllReduce(send.at(), send.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, world.comm, world.stream));
        world.synchronize();
        send.expect([&](size_t i) { return value(me.size - 1, i); }, "all-reduce max");
    }
}

void all_gather(const Rank &me, const World &world) {
    for (const uint64_t count : counts(me)) {
        Vector<float> send(count, [&](size_t i) { return value(me.rank, i); });
        Vector<float> recv(count * me.size, [](size_t) { return -1.0F; });
        const auto expected = [&](size_t i) { return value(static_cast<uint32_t>(i / count), i % count); };
        OK(HcclAllGather(send.at(), recv.at(), count, HCCL_DATA_TYPE_FP32, world.comm, world.stream));
        world.synchronize();
        recv.expect(expected, "all-gather");
        recv.set([&](size_t i) { return i / count == me.rank ? value(me.rank, i % count) : -1.0F; });
        OK(HcclAllGather(recv.at(me.rank * count), recv.at(), count, HCCL_DATA_TYPE_FP32, world.comm, world.stream));
        world.synchronize();
        recv.expect(expected, "all-gather in place");
    }
}

void reduce_scatter(const Rank &me, const World &world) {
    for (const uint64_t count : counts(me)) {
        Vector<float> send(count * me.size, [&](size_t i) { return value(me.rank, i); });
        Vector<float> recv(count);
        const auto expected = [&](size_t i) { return total(me.size, me.rank * count + i); };
        OK(HcclReduceScatter(send.at(), recv.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm,
                             world.stream));
        world.synchronize();
        recv.expect(expected, "reduce-scatter");
        // In place at both addresses that clients use: the own share, and the start of the buffer.
        for (const size_t place : {static_cast<size_t>(me.rank * count), static_cast<size_t>(0)}) {
            send.set([&](size_t i) { return value(me.rank, i); });
            OK(HcclReduceScatter(send.at(), send.at(place), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm,
                                 world.stream));
            world.synchronize();
            const std::vector<float> host = send.get();
            for (size_t i = 0; i < count; i++) {
                CHECK(host[place + i] == expected(i));
            }
        }
    }
}

void rooted(const Rank &me, const World &world) {
    for (const uint64_t count : counts(me)) {
        for (const uint32_t root : {0U, me.size - 1}) {
            Vector<float> data(count, [&](size_t i) { return value(me.rank, i); });
            OK(HcclBroadcast(data.at(), count, HCCL_DATA_TYPE_FP32, root, world.comm, world.stream));
            world.synchronize();
            data.expect([&](size_t i) { return value(root, i); }, "broadcast");
            data.set([&](size_t i) { return value(me.rank, i); });
            Vector<float> sum(count, [](size_t) { return -1.0F; });
            OK(HcclReduce(data.at(), sum.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, root, world.comm,
                          world.stream));
            world.synchronize();
            sum.expect([&](size_t i) { return me.rank == root ? total(me.size, i) : -1.0F; }, "reduce");
        }
    }
}

// Small whole numbers are exact in every type, so one check serves all of them.
template <class Type>
void typed(const Rank &me, const World &world, HcclDataType dtype, Type (*make)(int)) {
    Vector<Type> data(1500, [&](size_t i) { return make(static_cast<int>(me.rank + i % 3)); });
    OK(HcclAllReduce(data.at(), data.at(), 1500, dtype, HCCL_REDUCE_SUM, world.comm, world.stream));
    world.synchronize();
    const int base = static_cast<int>(me.size * (me.size - 1) / 2);
    data.expect([&](size_t i) { return make(base + static_cast<int>(me.size * (i % 3))); }, "typed all-reduce");
}

uint16_t brain(int number) {
    const auto value = static_cast<float>(number);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return static_cast<uint16_t>(bits >> 16);
}

uint16_t half(int number) { // whole numbers from 0 to 2048
    if (number == 0) {
        return 0;
    }
    const int exponent = static_cast<int>(std::floor(std::log2(number)));
    const int fraction = exponent <= 10 ? (number << (10 - exponent)) & 0x3ff : (number >> (exponent - 10)) & 0x3ff;
    return static_cast<uint16_t>(((exponent + 15) << 10) | fraction);
}

void types(const Rank &me, const World &world) {
    typed<int8_t>(me, world, HCCL_DATA_TYPE_INT8, [](int v) { return static_cast<int8_t>(v); });
    typed<int16_t>(me, world, HCCL_DATA_TYPE_INT16, [](int v) { return static_cast<int16_t>(v); });
    typed<int32_t>(me, world, HCCL_DATA_TYPE_INT32, [](int v) { return v; });
    typed<int64_t>(me, world, HCCL_DATA_TYPE_INT64, [](int v) { return static_cast<int64_t>(v); });
    if (me.size <= 16) {
        typed<uint16_t>(me, world, HCCL_DATA_TYPE_FP16, half);
        typed<uint16_t>(me, world, HCCL_DATA_TYPE_BFP16, brain);
    }
}

void collectives(const Rank &me) {
    const World world(me);
    for (int i = 0; i < 3; i++) {
        OK(HcclBarrier(world.comm, world.stream));
    }
    all_reduce(me, world);
    all_gather(me, world);
    reduce_scatter(me, world);
    rooted(me, world);
    types(me, world);
}

// A ring in which nobody deadlocks, then batches with every peer at once and with oneself.
void transfers(const Rank &me) {
    const World world(me);
    const uint32_t next = (me.rank + 1) % me.size;
    const uint32_t before = (me.rank + me.size - 1) % me.size;
    for (const uint64_t count : counts(me)) {
        Vector<float> out(count, [&](size_t i) { return value(me.rank, i); });
        Vector<float> in(count);
        for (int step = 0; step < 2; step++) {
            if ((me.rank % 2 == 0) == (step == 0)) {
                OK(HcclSend(out.at(), count, HCCL_DATA_TYPE_FP32, next, world.comm, world.stream));
            } else {
                OK(HcclRecv(in.at(), count, HCCL_DATA_TYPE_FP32, before, world.comm, world.stream));
            }
        }
        world.synchronize();
        in.expect([&](size_t i) { return value(before, i); }, "ring");

        Vector<float> all(count * me.size);
        std::vector<HcclSendRecvItem> items;
        for (uint32_t peer = 0; peer < me.size; peer++) {
            items.push_back({HCCL_SEND, out.at(), count, HCCL_DATA_TYPE_FP32, peer});
            items.push_back({HCCL_RECV, all.at(peer * count), count, HCCL_DATA_TYPE_FP32, peer});
        }
        OK(HcclBatchSendRecv(items.data(), static_cast<uint32_t>(items.size()), world.comm, world.stream));
        world.synchronize();
        all.expect([&](size_t i) { return value(static_cast<uint32_t>(i / count), i % count); }, "batch");
    }
}

void expect_sum(const World &world, HcclComm comm, float mine, float expected) {
    Vector<float> data(33, [&](size_t) { return mine; });
    OK(HcclAllReduce(data.at(), data.at(), 33, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, world.stream));
    world.synchronize();
    data.expect([&](size_t) { return expected; }, "sum of a sub-communicator");
}

// Halves and a reordered whole; a name may be used again after its communicator is gone.
void sub_communicators(const Rank &me) {
    const World world(me);
    const uint32_t half_size = me.size / 2;
    for (int round = 0; round < 3; round++) {
        HcclCommConfig config;
        HcclCommConfigInit(&config);
        config.hcclBufferSize = 1;
        const bool upper = me.rank >= half_size;
        std::vector<uint32_t> ranks;
        float sum = 0;
        for (uint32_t i = 0; i < half_size; i++) {
            ranks.push_back(i + (upper ? half_size : 0));
            sum += static_cast<float>(ranks.back());
        }
        HcclComm half = nullptr;
        std::snprintf(config.hcclCommName, sizeof(config.hcclCommName), "half_%d", upper ? 1 : 0);
        OK(HcclCreateSubCommConfig(const_cast<HcclComm *>(&world.comm), half_size, ranks.data(), upper ? 1 : 0,
                                   me.rank % half_size, &config, &half));
        uint32_t size = 0;
        uint32_t rank = 0;
        char name[128];
        OK(HcclGetRankSize(half, &size));
        OK(HcclGetRankId(half, &rank));
        OK(HcclGetCommName(half, name));
        CHECK(size == half_size && rank == me.rank % half_size && name == text("half_%d", upper ? 1 : 0));
        expect_sum(world, half, static_cast<float>(me.rank), sum);

        ranks.clear();
        for (uint32_t i = 0; i < me.size; i++) {
            ranks.push_back(me.size - 1 - i);
        }
        config.hcclCommName[0] = '\0';
        HcclComm whole = nullptr;
        OK(HcclCreateSubCommConfig(const_cast<HcclComm *>(&world.comm), me.size, ranks.data(), 7, me.size - 1 - me.rank,
                                   &config, &whole));
        OK(HcclGetCommName(whole, name));
        CHECK(std::string(name) == "hccl_world_group_sub_7");
        expect_sum(world, whole, 1, static_cast<float>(me.size));
        expect_sum(world, half, static_cast<float>(me.rank), sum);
        OK(HcclCommDestroy(whole));
        OK(HcclCommDestroy(half));
    }
    OK(HcclBarrier(world.comm, world.stream));
    world.synchronize();
}

void root_info(const Rank &me) {
    const World world(me, false);
    for (int round = 0; round < 3; round++) {
        const HcclRootInfo info = shared_root_info(me, round);
        HcclComm comm = nullptr;
        OK(HcclCommInitRootInfo(me.size, &info, me.rank, &comm));
        expect_sum(world, comm, static_cast<float>(me.rank), static_cast<float>(me.size * (me.size - 1) / 2));
        OK(HcclCommDestroy(comm));
    }
}

// The same pseudo-random program on every rank: operations on two streams joined by events, results checked as it goes.
void random_program(const Rank &me) {
    const World world(me);
    aclrtStream second = nullptr;
    aclrtEvent event = nullptr;
    OK(aclrtCreateStream(&second));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < me.size; rank++) {
        ranks.push_back(rank);
    }
    HcclComm sub = nullptr;
    OK(HcclCreateSubCommConfig(const_cast<HcclComm *>(&world.comm), me.size, ranks.data(), 1, me.rank, &config, &sub));
    uint64_t state = 88172645463325252ULL;
    const auto draw = [&](uint64_t below) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state % below;
    };
    const char *wanted = std::getenv("HARNESS_ROUNDS");
    const int rounds = wanted != nullptr ? std::atoi(wanted) : 200;
    aclrtStream streams[2] = {world.stream, second};
    for (int round = 0; round < rounds; round++) {
        const uint64_t count = 1 + draw(draw(4) == 0 ? 20000 : 300);
        Vector<float> data(count, [&](size_t i) { return value(me.rank, i); });
        Vector<float> copy(count * me.size);
        Vector<float> apart(count);
        aclrtStream stream = streams[draw(2)];
        const uint64_t kind = draw(9);
        const uint32_t next = (me.rank + 1) % me.size;
        const uint32_t before = (me.rank + me.size - 1) % me.size;
        if (kind == 5) {
            HcclSendRecvItem items[] = {
                {HCCL_SEND, data.at(), count, HCCL_DATA_TYPE_FP32, next},
                {HCCL_RECV, copy.at(), count, HCCL_DATA_TYPE_FP32, before},
            };
            OK(HcclBatchSendRecv(items, 2, world.comm, stream));
        } else if (kind == 6) {
            OK(HcclAllReduce(data.at(), data.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, sub, stream));
        } else if (kind == 7) {
            // Two communicators at once on two streams.
            OK(HcclAllReduce(apart.at(), apart.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, sub, streams[0]));
            OK(HcclAllGather(data.at(), copy.at(), count, HCCL_DATA_TYPE_FP32, world.comm, streams[1]));
            OK(aclrtSynchronizeDevice());
        } else if (kind == 8) {
            std::atomic<int> called{0};
            OK(HcclReduceScatter(copy.at(), data.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, world.comm,
                                 stream));
            OK(aclrtLaunchHostFunc(stream, [](void *flag) { ++*static_cast<std::atomic<int> *>(flag); }, &called));
            OK(aclrtSynchronizeStream(stream));
            CHECK(called == 1);
        } else if (kind == 0) {
            OK(HcclBarrier(world.comm, stream));
        } else if (kind == 1) {
            OK(HcclAllGather(data.at(), copy.at(), count, HCCL_DATA_TYPE_FP32, world.comm, stream));
        } else if (kind == 2) {
            OK(HcclBroadcast(data.at(), count, HCCL_DATA_TYPE_FP32, static_cast<uint32_t>(draw(me.size)), world.comm,
                             stream));
        } else {
            OK(HcclAllReduce(data.at(), data.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, stream));
        }
        OK(aclrtRecordEvent(event, stream));
        aclrtStream other = streams[draw(2)];
        OK(aclrtStreamWaitEvent(other, event));
        OK(aclrtMemcpyAsync(copy.at(), copy.bytes(), data.at(), data.bytes(), ACL_MEMCPY_DEVICE_TO_DEVICE, other));
        if (draw(2) == 0) {
            OK(aclrtSynchronizeStream(other));
        } else {
            OK(aclrtRecordEvent(event, other));
            OK(aclrtSynchronizeEvent(event));
        }
        if (kind == 3 || kind == 4 || kind == 6) {
            const std::vector<float> host = copy.get();
            for (size_t i = 0; i < count; i++) {
                CHECK(host[i] == total(me.size, i));
            }
        }
        OK(aclrtStreamWaitEvent(streams[0], event));
        OK(aclrtStreamWaitEvent(streams[1], event));
    }
    OK(aclrtSynchronizeDevice());
    OK(HcclCommDestroy(sub));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(second));
    if (me.rank == 0) {
        std::printf("  %d rounds\n", rounds);
    }
}

} // namespace

int main(int argc, char **argv) {
    return run(argc, argv,
               {
                   {"collectives-t1", Ranks::Threads, 1, collectives},
                   {"collectives-t2", Ranks::Threads, 2, collectives},
                   {"collectives-t4", Ranks::Threads, 4, collectives},
                   {"collectives-t5", Ranks::Threads, 5, collectives},
                   {"collectives-t16", Ranks::Threads, 16, collectives},
                   {"collectives-t64", Ranks::Threads, 64, collectives},
                   {"collectives-p2", Ranks::Processes, 2, collectives},
                   {"collectives-p16", Ranks::Processes, 16, collectives},
                   {"transfers-t2", Ranks::Threads, 2, transfers},
                   {"transfers-t16", Ranks::Threads, 16, transfers},
                   {"transfers-p4", Ranks::Processes, 4, transfers},
                   {"transfers-p16", Ranks::Processes, 16, transfers},
                   {"sub-t4", Ranks::Threads, 4, sub_communicators},
                   {"sub-t64", Ranks::Threads, 64, sub_communicators},
                   {"sub-p16", Ranks::Processes, 16, sub_communicators},
                   {"root-info-t4", Ranks::Threads, 4, root_info},
                   {"root-info-t64", Ranks::Threads, 64, root_info},
                   {"root-info-p8", Ranks::Processes, 8, root_info},
                   {"random-t3", Ranks::Threads, 3, random_program},
                   {"random-p4", Ranks::Processes, 4, random_program},
               });
}
