// The C++ header over the mock: ranks as threads, moved handles, exceptions.
#include "adasum.hpp"
#include "adasum.hpp" // twice on purpose

#include <acl/acl.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

void require(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "%s is false\n", what);
        std::exit(EXIT_FAILURE);
    }
}
#define REQUIRE(condition) require((condition), #condition)

constexpr std::uint32_t RANKS = 2;
constexpr std::chrono::milliseconds LIMIT(60000);

// Parallel gradients of 1 and 3 times the same vector: their mean, twice the vector.
void run(const adasum::RootInfo &root, std::uint32_t rank) {
    adasum::World first = adasum::World::from_root_info(static_cast<std::int32_t>(rank), root, RANKS, rank, 1);
    adasum::World world = std::move(first);
    REQUIRE(world.rank() == rank && world.size() == RANKS && world.servers() == RANKS);
    REQUIRE(world.devices_per_server() == 1 && world.device() == static_cast<std::int32_t>(rank));

    REQUIRE(aclrtSetDevice(world.device()) == ACL_SUCCESS);
    aclrtStream stream = nullptr;
    REQUIRE(aclrtCreateStream(&stream) == ACL_SUCCESS);
    std::vector<float> values(5000);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = (rank == 0 ? 1.0f : 3.0f) * static_cast<float>(i % 17);
    }
    const std::size_t bytes = values.size() * sizeof(float);
    void *memory = nullptr;
    REQUIRE(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    REQUIRE(aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    {
        adasum::Reducer reducer(world, {{"w", values.size(), ADASUM_F32}}, adasum::Options().radix(4).barrier(true));
        reducer.reduce({memory}, stream);
        reducer.synchronize(stream, LIMIT);
        REQUIRE(!reducer.nonfinite().at(0));
        try {
            reducer.reduce({}, stream);
            REQUIRE(!"an exception");
        } catch (const adasum::Error &error) {
            REQUIRE(error.status() == ADASUM_INVALID_ARGUMENT && error.vendor_code() == 0);
            REQUIRE(std::string(error.what()).find("for 1 tensors") != std::string::npos);
        }
        reducer.forget_stream(stream);
    }
    REQUIRE(aclrtMemcpy(values.data(), bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    for (std::size_t i = 0; i < values.size(); ++i) {
        REQUIRE(values[i] == 2.0f * static_cast<float>(i % 17));
    }
    world.barrier(stream);
    REQUIRE(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    REQUIRE(aclrtDestroyStream(stream) == ACL_SUCCESS);
    REQUIRE(aclrtFree(memory) == ACL_SUCCESS);
    world.finish(LIMIT);
}

} // namespace

int main() {
    REQUIRE(adasum::backend() == "mock");
    const adasum::RootInfo root = adasum::make_root_info(0);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < RANKS; ++rank) {
        ranks.emplace_back(run, root, rank);
    }
    for (std::thread &rank : ranks) {
        rank.join();
    }
    std::puts("passed");
}
