// The C++ header over the mock: ranks as threads, moved handles, exceptions.
#include "adasum.hpp"
#include "adasum.hpp" // twice on purpose

#include <acl/acl.h>
#include <hccl/hccl.h>

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

void *put(const std::vector<float> &values) {
    void *memory = nullptr;
    const std::size_t bytes = values.size() * sizeof(float);
    REQUIRE(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    REQUIRE(aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    return memory;
}

std::vector<float> get(const void *memory, std::size_t count) {
    std::vector<float> values(count);
    const std::size_t bytes = count * sizeof(float);
    REQUIRE(aclrtMemcpy(values.data(), bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    return values;
}

void other_reducers(const adasum::World &world, std::uint32_t rank, aclrtStream stream) {
    const std::vector<adasum::TensorSpec> tensors{{"a", 2, ADASUM_F32}, {"b", 2, ADASUM_F32}};
    const std::vector<float> mine{rank == 0 ? 2.0f : 0.0f, rank == 0 ? 0.0f : 4.0f};
    const std::vector<float> sum{2.0f, 4.0f}, mean{1.0f, 2.0f};
    void *a = put(mine), *b = put(mine);

    adasum::GradientReducer reducer(world, tensors, adasum::Options().set("overflow", "vote"));
    REQUIRE(!reducer.overflow({a, b}, stream, LIMIT));
    reducer.prepare_some({1});
    reducer.reduce_some({1}, {b}, stream);
    reducer.reduce_some_flat({0}, a, 2 * sizeof(float), stream);
    reducer.synchronize(stream, LIMIT);
    REQUIRE(get(a, 2) == sum && get(b, 2) == sum);
    reducer.forget_stream(stream);

    adasum::GradientReducer placed(world, {tensors[0]}, adasum::Options().set("gradient_buffers", "1"));
    const std::vector<void *> places = placed.gradient_buffers();
    REQUIRE(aclrtMemcpy(places.at(0), 8, mine.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    placed.reduce(places, stream);
    placed.synchronize(stream, LIMIT);
    REQUIRE(places.size() == 1 && get(places.at(0), 2) == sum);
    placed.forget_stream(stream);

    // Old weights (2, 4) minus the sum of the steps.
    adasum::DeltaWeightReducer delta(world, {tensors[0]});
    delta.begin({}, {a}, stream);
    REQUIRE(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    const std::vector<float> stepped{sum[0] - mine[0], sum[1] - mine[1]};
    REQUIRE(aclrtMemcpy(a, 8, stepped.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    delta.end({a}, stream);
    delta.reset();
    delta.synchronize(stream, LIMIT);
    REQUIRE(delta.statistics().at(0).norms == (std::vector<double>{2.0, 4.0}));
    REQUIRE((get(a, 2) == std::vector<float>{0.0f, 0.0f}) && !delta.nonfinite().at(0));
    delta.forget_stream(stream);

    void *c = put(mine);
    adasum::MeanReducer means(world, {tensors[0]},
                              adasum::Options().set("fusion", std::vector<std::uint32_t>{0}).set("degree", RANKS));
    means.reduce({c}, stream);
    means.synchronize(stream, LIMIT);
    REQUIRE(get(c, 2) == mean);
    means.forget_stream(stream);

    adasum::SparseReducer sparse(world, "rows", 1, ADASUM_F32, ADASUM_INDEX_I64, 1, true,
                                 adasum::Options().set("reduction", "sum"));
    const adasum::SparseRows rows = sparse.gather(c, b, 1, stream);
    sparse.synchronize(stream, LIMIT);
    REQUIRE(rows.rows == RANKS && get(rows.values, RANKS) == (std::vector<float>{2.0f, 2.0f}));
    sparse.forget_stream(stream);
    for (void *memory : {a, b, c}) {
        REQUIRE(aclrtFree(memory) == ACL_SUCCESS);
    }
}

// What trainers use with the reducers, as a step of theirs has it.
void helpers(const adasum::World &world, std::uint32_t rank, aclrtStream stream) {
    const std::vector<adasum::TensorSpec> tensors{{"a", 2, ADASUM_F32}, {"b", 1, ADASUM_F32}};
    // Orthogonal between ranks in both tensors.
    void *a = put(rank == 0 ? std::vector<float>{3.0f, 0.0f} : std::vector<float>{0.0f, 4.0f});
    void *b = put({rank == 0 ? 12.0f : 0.0f});
    adasum::GradientAccumulator accumulator(world, tensors);
    accumulator.add({a, b}, stream);
    accumulator.add({a, b}, stream);
    REQUIRE(accumulator.steps() == 2);
    accumulator.take({a, b}, 0.5f, stream);
    REQUIRE(accumulator.steps() == 0);

    // Each rank a shard: the norm is that of all, before and after.
    adasum::NormClip shards =
        adasum::NormClip::of_parts(world, tensors, {{0, 0, 2}, {1, 0, 1}}, 100.0f, std::chrono::seconds(60));
    shards.clip({a, b}, stream);
    adasum::GradientReducer reducer(world, tensors);
    reducer.reduce({a, b}, stream);
    adasum::NormClip clip(world, tensors, 6.5f);
    clip.clip({a, b}, stream);
    reducer.synchronize(stream, LIMIT);
    REQUIRE(shards.last_norm() == 13.0f && clip.last_norm() == 13.0f);
    REQUIRE((get(a, 2) == std::vector<float>{1.5f, 2.0f}) && get(b, 1) == std::vector<float>{6.0f});
    const std::vector<adasum::TensorStatistics> statistics = reducer.statistics();
    REQUIRE(statistics.at(1).name == "b" && statistics.at(0).norm == 5.0);

    std::vector<float> ones{1.0f};
    void *number = put(ones);
    world.all_reduce_sum(number, 1, stream);
    REQUIRE(aclrtSynchronizeStream(stream) == ACL_SUCCESS && get(number, 1).at(0) == RANKS);
    world.forget_stream(stream);
    {
        const adasum::World alone = world.part({rank}, 1);
        REQUIRE(alone.size() == 1 && alone.rank() == 0);
        adasum::MeanReducer mean(alone, {{"a", 2, ADASUM_F32, adasum::fusion_flag(0)}, {"b", 1, ADASUM_F32}});
        mean.reduce({a, b}, stream);
        mean.synchronize(stream, LIMIT);
        REQUIRE((get(a, 2) == std::vector<float>{1.5f, 2.0f}) && !mean.nonfinite().at(1));
        mean.forget_stream(stream);
    }
    try {
        adasum::fusion_flag(1U << 24);
        REQUIRE(!"an exception");
    } catch (const adasum::Error &error) {
        REQUIRE(error.status() == ADASUM_INVALID_ARGUMENT);
    }

    REQUIRE(!adasum::Journal::from_env(rank));
    adasum::Journal journal = adasum::Journal::open(".", rank);
    adasum::Record record;
    record.run = "cpp";
    record.step = 1;
    record.values = {{"loss", 0.25}};
    record.tensors = statistics;
    journal.record(record);
    reducer.forget_stream(stream);
    accumulator.forget_stream(stream);
    shards.forget_stream(stream);
    clip.forget_stream(stream);
    for (void *memory : {a, b, number}) {
        REQUIRE(aclrtFree(memory) == ACL_SUCCESS);
    }
}

// A communicator of somebody else's: worlds of its ranks and of a part of them, and it works as before.
void adopt(const HcclRootInfo &root, std::uint32_t rank) {
    try {
        adasum::World::from_comm(const_cast<HcclRootInfo *>(&root));
        REQUIRE(!"an exception");
    } catch (const adasum::Error &error) {
        REQUIRE(error.status() == ADASUM_ACL && error.vendor_code() == 107002);
        REQUIRE(std::string(error.what()).find("no current device") != std::string::npos);
    }
    REQUIRE(aclrtSetDevice(static_cast<std::int32_t>(rank)) == ACL_SUCCESS);
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    HcclComm comm = nullptr, part = nullptr;
    REQUIRE(HcclCommInitRootInfoConfig(RANKS, &root, rank, &config, &comm) == HCCL_SUCCESS);
    std::uint32_t member = rank;
    REQUIRE(HcclCreateSubCommConfig(&comm, 1, &member, 7 + rank, 0, &config, &part) == HCCL_SUCCESS);
    aclrtStream stream = nullptr;
    REQUIRE(aclrtCreateStream(&stream) == ACL_SUCCESS);
    void *memory = put({1.0f, 1.0f});
    const auto is_ones = [&] { return get(memory, 2) == std::vector<float>{1.0f, 1.0f}; };
    {
        // By host: both ranks are on this one.
        adasum::World by_host = adasum::World::from_comm(comm);
        REQUIRE(by_host.rank() == rank && by_host.servers() == 1 && by_host.devices_per_server() == RANKS);
        by_host.finish(LIMIT);
        adasum::World alone = adasum::World::from_comm(part);
        REQUIRE(alone.rank() == 0 && alone.size() == 1);
        alone.finish(LIMIT);
        adasum::World world = adasum::World::from_comm(comm, adasum::Options().set("devices_per_server", 1));
        REQUIRE(world.servers() == RANKS && world.last_vendor_code() == 0);
        {
            adasum::GradientReducer reducer(world, {{"w", 2, ADASUM_F32}});
            reducer.reduce({memory}, stream);
            reducer.synchronize(stream, LIMIT);
            REQUIRE(is_ones());
            reducer.forget_stream(stream);
        }
        if (rank == 0) {
            // Not even an abort of the world touches what it was made from.
            world.abort();
        }
    }
    REQUIRE(HcclAllReduce(memory, memory, 2, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, comm, stream) == HCCL_SUCCESS);
    REQUIRE(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    REQUIRE(is_ones());
    REQUIRE(HcclCommDestroy(part) == HCCL_SUCCESS && HcclCommDestroy(comm) == HCCL_SUCCESS);
    REQUIRE(aclrtFree(memory) == ACL_SUCCESS);
    REQUIRE(aclrtDestroyStream(stream) == ACL_SUCCESS);
}

// Parallel gradients of 1 and 3 times the same vector: their mean, twice the vector.
void run(const adasum::RootInfo &root, std::uint32_t rank) {
    adasum::World first = adasum::World::from_root_info(static_cast<std::int32_t>(rank), root, RANKS, rank,
                                                        adasum::Options().set("devices_per_server", 1));
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
        adasum::GradientReducer reducer(world, {{"w", values.size(), ADASUM_F32}},
                                        adasum::Options().set("radix", 4).set("barrier", true));
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
        const std::vector<adasum::TensorStatistics> statistics = reducer.statistics();
        REQUIRE(statistics.size() == 1 && statistics[0].norms.size() == RANKS && !statistics[0].nonfinite);
        REQUIRE(statistics[0].norms[1] > 2.9 * statistics[0].norms[0]);
        REQUIRE(reducer.plan().find("2 servers of 1") != std::string::npos);
        REQUIRE(!reducer.owned().empty());
        reducer.forget_stream(stream);
    }
    other_reducers(world, rank, stream);
    helpers(world, rank, stream);
    REQUIRE(aclrtMemcpy(values.data(), bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    for (std::size_t i = 0; i < values.size(); ++i) {
        REQUIRE(values[i] == 2.0f * static_cast<float>(i % 17));
    }
    world.barrier(stream);
    REQUIRE(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    world.forget_stream(stream);
    REQUIRE(aclrtDestroyStream(stream) == ACL_SUCCESS);
    REQUIRE(aclrtFree(memory) == ACL_SUCCESS);
    world.finish(LIMIT);
}

template <typename Body>
void on_all_ranks(Body body) {
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < RANKS; ++rank) {
        ranks.emplace_back(body, rank);
    }
    for (std::thread &rank : ranks) {
        rank.join();
    }
}

} // namespace

int main() {
    REQUIRE(adasum::backend() == "mock");
    const adasum::RootInfo root = adasum::make_root_info(0);
    on_all_ranks([&](std::uint32_t rank) { run(root, rank); });

    HcclRootInfo foreign;
    REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS && HcclGetRootInfo(&foreign) == HCCL_SUCCESS);
    on_all_ranks([&](std::uint32_t rank) { adopt(foreign, rank); });
    std::puts("passed");
}
