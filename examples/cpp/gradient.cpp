// AdaSum of one gradient of each rank: adasum-run launch -n 2 -- build/gradient

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include <acl/acl.h>

#include <adasum.hpp>

constexpr std::chrono::seconds kLimit(60);

static void check_acl(aclError code, const char *call) {
    if (code != ACL_SUCCESS) {
        throw std::runtime_error(std::string(call) + " failed with code " + std::to_string(code));
    }
}

// One reduction. Reducers end before their world does.
static void reduce(const adasum::World &world) {
    adasum::GradientReducer reducer(world, {{"dense.weight", 4, ADASUM_F32}});
    aclrtStream stream = nullptr;
    check_acl(aclrtCreateStream(&stream), "aclrtCreateStream");
    void *gradient = nullptr;
    std::array<float, 4> values{};
    constexpr std::size_t bytes = sizeof values;
    check_acl(aclrtMalloc(&gradient, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    // In a training the backward pass leaves gradients on the device. These stand at right angles, so AdaSum adds them.
    values[world.rank() % values.size()] = 1;
    check_acl(aclrtMemcpy(gradient, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    // Queued on the stream, where the kernels of an optimizer can follow: the host does not wait.
    reducer.reduce({gradient}, stream);

    // Only who looks at the result waits.
    reducer.synchronize(stream, kLimit);
    check_acl(aclrtMemcpy(values.data(), bytes, gradient, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    std::printf("%g %g %g %g\n", values[0], values[1], values[2], values[3]);

    check_acl(aclrtFree(gradient), "aclrtFree");
    reducer.forget_stream(stream);
    check_acl(aclrtDestroyStream(stream), "aclrtDestroyStream");
}

static void run() {
    // Each rank counts as a server. Otherwise servers are machines, whose own ranks are averaged first.
    adasum::World world = adasum::World::from_environment(adasum::Options().set("devices_per_server", 1));
    check_acl(aclrtSetDevice(world.device()), "aclrtSetDevice");
    reduce(world);
    world.finish(kLimit);
}

int main() {
    try {
        run();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
