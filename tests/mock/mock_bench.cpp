// How fast the mock is: latencies of small operations, bandwidth of large ones beside that of memcpy.

#include <algorithm>

#include "harness.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;

// Median time of `work`, in microseconds, over seven runs of `rounds` calls each; the first rank prints it.
void measure(const Rank &me, const World &world, const char *what, int rounds, const std::function<void()> &work) {
    std::vector<double> times;
    for (int run = 0; run < 8; run++) {
        OK(HcclBarrier(world.comm, world.stream));
        world.synchronize();
        const double begin = now();
        for (int i = 0; i < rounds; i++) {
            work();
        }
        world.synchronize();
        if (run > 0) {
            times.push_back((now() - begin) / rounds * 1e6);
        }
    }
    std::sort(times.begin(), times.end());
    if (me.rank == 0) {
        std::printf("  %-44s %10.1f us\n", what, times[times.size() / 2]);
    }
}

void small(const Rank &me) {
    const World world(me);
    const Vector<float> data(256);
    const Vector<float> all(256 * me.size);
    const auto barrier = [&] { OK(HcclBarrier(world.comm, world.stream)); };
    const auto gather = [&] { OK(HcclAllGather(data.at(), all.at(), 256, FP32, world.comm, world.stream)); };
    const auto reduce = [&] {
        OK(HcclAllReduce(data.at(), all.at(), 256, FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    };
    const auto waited = [&](const std::function<void()> &work) {
        return [&world, work] {
            work();
            world.synchronize();
        };
    };
    measure(me, world, "barrier, queued", 200, barrier);
    measure(me, world, "barrier, synchronised each time", 200, waited(barrier));
    measure(me, world, "all-gather of 1 KB, queued", 200, gather);
    measure(me, world, "all-reduce of 1 KB, queued", 200, reduce);
    if (me.size == 2) {
        const auto ping = [&] {
            for (uint32_t sender = 0; sender < 2; sender++) {
                if (me.rank == sender) {
                    OK(HcclSend(data.at(), 256, FP32, 1 - me.rank, world.comm, world.stream));
                } else {
                    OK(HcclRecv(all.at(), 256, FP32, 1 - me.rank, world.comm, world.stream));
                }
            }
        };
        measure(me, world, "two sends of 1 KB (there and back), queued", 200, ping);
        measure(me, world, "the same, synchronised each time", 200, waited(ping));
    }
}

void large(const Rank &me) {
    const World world(me);
    const size_t count = 16 << 20;
    const Vector<float> out(count, [](size_t i) { return static_cast<float>(i); });
    const Vector<float> in(count, [](size_t i) { return static_cast<float>(i); });
    const auto rate = [&](const char *what, double bytes, const std::function<void()> &work) {
        double best = 1e9;
        for (int i = 0; i < 6; i++) {
            OK(HcclBarrier(world.comm, world.stream));
            world.synchronize();
            const double begin = now();
            work();
            world.synchronize();
            best = std::min(best, now() - begin);
        }
        if (me.rank == 0) {
            std::printf("  %-44s %10.2f GB/s\n", what, bytes / best / 1e9);
        }
    };
    rate("memcpy of 64 MB on rank 0", 67108864.0, [&] {
        if (me.rank == 0) {
            std::memcpy(in.at(), out.at(), out.bytes());
        }
    });
    rate("memcpy of 64 MB on both at once, each", 67108864.0, [&] { std::memcpy(in.at(), out.at(), out.bytes()); });
    rate("send of 64 MB", 67108864.0, [&] {
        if (me.rank == 0) {
            OK(HcclSend(out.at(), count, FP32, 1, world.comm, world.stream));
        } else if (me.rank == 1) {
            OK(HcclRecv(in.at(), count, FP32, 0, world.comm, world.stream));
        }
    });
    rate("exchange of 64 MB both ways, each", 67108864.0, [&] {
        if (me.rank < 2) {
            HcclSendRecvItem items[] = {{HCCL_SEND, out.at(), count, FP32, 1 - me.rank},
                                        {HCCL_RECV, in.at(), count, FP32, 1 - me.rank}};
            OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
        }
    });
    rate("all-reduce of 64 MB", 67108864.0,
         [&] { OK(HcclAllReduce(out.at(), in.at(), count, FP32, HCCL_REDUCE_SUM, world.comm, world.stream)); });
}

} // namespace

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    return run(argc, argv,
               {
                   {"small-t2", Ranks::Threads, 2, small},
                   {"small-p2", Ranks::Processes, 2, small},
                   {"small-p16", Ranks::Processes, 16, small},
                   {"large-t2", Ranks::Threads, 2, large},
                   {"large-p2", Ranks::Processes, 2, large},
               });
}
