// Ranks that read each other's memory. A barrier is all that stands between who writes and who reads; HARNESS_DROP leaves one
// out, so that a sanitizer can show that it would find that.

#include <atomic>

#include "harness.h"

using namespace harness;

namespace {

constexpr uint64_t COUNT = 4096;

// Where the ranks, threads of this process, have their vectors.
std::atomic<uint64_t> places[16];

bool dropped(const char *barrier) {
    const char *drop = std::getenv("HARNESS_DROP");
    return drop != nullptr && std::string(drop) == barrier;
}

void peers(const Rank &me) {
    const World world(me);
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle add = nullptr;
    aclrtFuncHandle sum = nullptr;
    OK(aclrtBinaryLoadFromFile(std::getenv("HARNESS_KERNEL"), nullptr, &binary));
    OK(aclrtBinaryGetFunction(binary, "add_step", &add));
    OK(aclrtBinaryGetFunction(binary, "sum_vectors", &sum));
    const auto launch = [&](aclrtFuncHandle kernel, std::vector<uint64_t> arguments) {
        OK(aclrtLaunchKernelWithHostArgs(kernel, 2, world.stream, nullptr, arguments.data(),
                                         arguments.size() * sizeof(uint64_t), nullptr, 0));
    };
    const auto address = [](const auto &vector) { return reinterpret_cast<uint64_t>(vector.at()); };
    Vector<float> one(1, [](size_t) { return 1.0F; });
    Vector<float> came(1);
    // As the library does: a sum to which each rank adds 1.
    const auto barrier = [&](const char *name) {
        if (!dropped(name)) {
            OK(HcclAllReduce(one.at(), came.at(), 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
        }
    };

    Vector<uint32_t> own(COUNT, [&](size_t) { return me.rank; });
    Vector<uint32_t> total(COUNT);
    places[me.rank] = address(own);
    barrier("to meet");
    world.synchronize();
    const Vector<uint64_t> table(me.size, [](size_t rank) { return places[rank].load(); });

    const char *wanted = std::getenv("HARNESS_ROUNDS");
    const uint32_t rounds = wanted != nullptr ? static_cast<uint32_t>(std::atoi(wanted)) : 200;
    for (uint32_t round = 1; round <= rounds; round++) {
        launch(add, {address(own), COUNT, 1});
        barrier("before reads");
        launch(sum, {address(total), address(table), me.size, COUNT});
        barrier("behind reads");
    }
    world.synchronize();
    came.expect([&](size_t) { return static_cast<float>(me.size); }, "barrier");
    total.expect([&](size_t) { return me.size * (me.size - 1) / 2 + me.size * rounds; }, "sum");
    OK(aclrtBinaryUnLoad(binary));
}

} // namespace

int main(int argc, char **argv) {
    return run(argc, argv, {{"peers-t2", Ranks::Threads, 2, peers}, {"peers-t5", Ranks::Threads, 5, peers}});
}
