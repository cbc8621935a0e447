// The ACL runtime as programs see it: kernel binaries, arguments, launches.

#include <fstream>

#include "conform.h"

using namespace harness;

namespace {

std::string kernel_path() {
    const char *path = std::getenv("HARNESS_KERNEL");
    CHECK(path != nullptr);
    return path;
}

struct Kernels {
    explicit Kernels(aclrtBinHandle handle) : binary(handle) {
        OK(aclrtBinaryGetFunction(binary, "add_step", &add));
        OK(aclrtBinaryGetFunction(binary, "sum_tiling", &sum));
    }
    aclrtBinHandle binary;
    aclrtFuncHandle add = nullptr;
    aclrtFuncHandle sum = nullptr;
};

Kernels load() {
    aclrtBinHandle binary = nullptr;
    OK(aclrtBinaryLoadFromFile(kernel_path().c_str(), nullptr, &binary));
    return Kernels(binary);
}

uint32_t first(const Vector<uint32_t> &data) { return data.get()[0]; }

// aclrtBinaryLoadFromFile takes an absolute path only.
const Behaviour binary_path("binary-path-is-absolute", [](const Rank &me) {
    const World world(me, false);
    aclrtBinHandle binary = nullptr;
    RETURNS(107000, aclrtBinaryLoadFromFile("kernel.o", nullptr, &binary));
    RETURNS(100003, aclrtBinaryLoadFromFile("/none.o", nullptr, &binary));
    aclrtFuncHandle function = nullptr;
    RETURNS(107000, aclrtBinaryGetFunction(load().binary, "none", &function));
});

// A binary may come from memory too, which the program may give back at once.
const Behaviour binary_data("binary-from-memory", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> data(8, [](size_t) { return 1U; });
    aclrtBinHandle binary = nullptr;
    {
        std::ifstream file(kernel_path(), std::ios::binary);
        const std::string image((std::istreambuf_iterator<char>(file)), {});
        RETURNS(100000, aclrtBinaryLoadFromData(image.data(), 0, nullptr, &binary));
        OK(aclrtBinaryLoadFromData(image.data(), image.size(), nullptr, &binary));
        const aclrtBinary kept = aclrtCreateBinary(image.data(), image.size());
        aclrtBinHandle second = nullptr;
        CHECK(kept != nullptr);
        OK(aclrtBinaryLoad(kept, &second));
        OK(aclrtDestroyBinary(kept));
        RETURNS(107017, aclrtBinaryLoad(kept, &second));
        OK(aclrtBinaryUnLoad(second));
    }
    const Kernels kernels(binary);
    // Another binary is another one: in this the kernel has another name.
    std::ifstream file(kernel_path(), std::ios::binary);
    std::string image((std::istreambuf_iterator<char>(file)), {});
    const std::string name = "add_step";
    for (size_t at = image.find(name); at != std::string::npos; at = image.find(name, at)) {
        image[at] = 'o';
    }
    aclrtBinHandle other = nullptr;
    aclrtFuncHandle add = nullptr;
    OK(aclrtBinaryLoadFromData(image.data(), image.size(), nullptr, &other));
    RETURNS(107000, aclrtBinaryGetFunction(other, name.c_str(), &add));
    OK(aclrtBinaryUnLoad(other));
    uint64_t arguments[] = {reinterpret_cast<uint64_t>(data.at()), 8, 4};
    OK(aclrtLaunchKernelWithHostArgs(kernels.add, 2, world.stream, nullptr, arguments, sizeof(arguments), nullptr, 0));
    world.synchronize();
    CHECK(first(data) == 5);
    OK(aclrtBinaryUnLoad(binary));
});

// The list of arguments is one per thread: what another thread started cannot be used.
const Behaviour thread_list("kernel-arguments-per-thread", [](const Rank &me) {
    const World world(me, false);
    const Kernels kernels = load();
    aclrtArgsHandle list = nullptr;
    OK(aclrtKernelArgsInit(kernels.add, &list));
    on_thread([&] { RETURNS(107017, aclrtKernelArgsFinalize(list)); });
});

// After Finalize the list is closed (207000), but a value may be updated, which opens it until the next Finalize.
const Behaviour update("kernel-arguments-update", [](const Rank &me) {
    const World world(me, false);
    const Kernels kernels = load();
    const Vector<uint32_t> data(8, [](size_t) { return 0U; });
    uint64_t values[] = {reinterpret_cast<uint64_t>(data.at()), 8, 5};
    aclrtArgsHandle list = nullptr;
    aclrtParamHandle place = nullptr;
    OK(aclrtKernelArgsInit(kernels.add, &list));
    for (uint64_t &value : values) {
        OK(aclrtKernelArgsAppend(list, &value, sizeof(value), &place));
    }
    OK(aclrtKernelArgsFinalize(list));
    RETURNS(207000, aclrtKernelArgsAppend(list, values, 8, &place));
    OK(aclrtLaunchKernelWithConfig(kernels.add, 1, world.stream, nullptr, list, nullptr));
    // Source: runtime, src/acl/aclrt_impl/kernel.cpp:234.
    RETURNS(100000, aclrtLaunchKernelWithConfig(kernels.add, 1, world.stream, nullptr, list, &list));
    values[2] = 100;
    OK(aclrtKernelArgsParaUpdate(list, place, &values[2], 8));
    RETURNS(107000, aclrtLaunchKernelWithConfig(kernels.add, 1, world.stream, nullptr, list, nullptr));
    OK(aclrtKernelArgsFinalize(list));
    OK(aclrtLaunchKernelWithConfig(kernels.add, 1, world.stream, nullptr, list, nullptr));
    world.synchronize();
    CHECK(first(data) == 105);
});

// aclrtLaunchKernel and V2 take their arguments from device memory, when the kernel runs.
const Behaviour device_arguments("kernel-arguments-in-device-memory", [](const Rank &me) {
    const World world(me, false);
    const Kernels kernels = load();
    const Vector<uint32_t> data(8, [](size_t) { return 0U; });
    uint64_t host[] = {reinterpret_cast<uint64_t>(data.at()), 8, 7};
    RETURNS(107000, aclrtLaunchKernel(kernels.add, 1, host, sizeof(host), world.stream));
    Vector<uint64_t> arguments(3);
    sleep_in_stream(world.stream, 50);
    OK(aclrtLaunchKernel(kernels.add, 1, arguments.at(), sizeof(host), world.stream));
    arguments.set([&](size_t i) { return host[i]; });
    OK(aclrtLaunchKernelV2(kernels.add, 2, arguments.at(), sizeof(host), nullptr, world.stream));
    world.synchronize();
    CHECK(first(data) == 14);
});

// aclrtLaunchKernelWithHostArgs copies them at the call, small structs and their addresses included.
const Behaviour host_arguments("kernel-arguments-in-host-memory", [](const Rank &me) {
    const World world(me, false);
    const Kernels kernels = load();
    const Vector<uint32_t> data(8, [](size_t) { return 0U; });
    struct {
        uint64_t out;
        uint64_t tiling;
        uint32_t values[4];
    } arguments = {reinterpret_cast<uint64_t>(data.at()), 0, {1, 2, 3, 4}};
    aclrtPlaceHolderInfo holder = {8, 16};
    sleep_in_stream(world.stream, 50);
    OK(aclrtLaunchKernelWithHostArgs(kernels.sum, 1, world.stream, nullptr, &arguments, sizeof(arguments), &holder, 1));
    arguments.values[0] = 100;
    holder.dataOffset = 1000;
    RETURNS(107000, aclrtLaunchKernelWithHostArgs(kernels.sum, 1, world.stream, nullptr, &arguments, sizeof(arguments),
                                                  &holder, 1));
    world.synchronize();
    CHECK(first(data) == 10);
});

// The number of blocks is 1 to 65535.
const Behaviour blocks("kernel-block-count", [](const Rank &me) {
    const World world(me, false);
    const Kernels kernels = load();
    const Vector<uint32_t> data(8, [](size_t) { return 0U; });
    uint64_t host[] = {reinterpret_cast<uint64_t>(data.at()), 8, 7};
    for (const uint32_t count : {0U, 65536U}) {
        RETURNS(107000, aclrtLaunchKernelWithHostArgs(kernels.add, count, world.stream, nullptr, host, sizeof(host),
                                                      nullptr, 0));
    }
    OK(aclrtLaunchKernelWithHostArgs(kernels.add, 65535, world.stream, nullptr, host, sizeof(host), nullptr, 0));
    world.synchronize();
    CHECK(first(data) == 7);
});

// A batch (schedule mode 1) runs all blocks at once: not more than there are cores.
const Behaviour batch("kernel-batch-within-cores", [](const Rank &me) {
    const World world(me, false);
    const Kernels kernels = load();
    const Vector<uint32_t> data(8, [](size_t) { return 0U; });
    uint64_t host[] = {reinterpret_cast<uint64_t>(data.at()), 8, 1};
    aclrtLaunchKernelAttr attribute = {ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, {}};
    attribute.value.schemMode = 1;
    aclrtLaunchKernelCfg config = {&attribute, 1};
    OK(aclrtLaunchKernelWithHostArgs(kernels.add, 48, world.stream, &config, host, sizeof(host), nullptr, 0));
    RETURNS(107000,
            aclrtLaunchKernelWithHostArgs(kernels.add, 49, world.stream, &config, host, sizeof(host), nullptr, 0));
    attribute.id = static_cast<aclrtLaunchKernelAttrId>(9);
    RETURNS(107000,
            aclrtLaunchKernelWithHostArgs(kernels.add, 1, world.stream, &config, host, sizeof(host), nullptr, 0));
    world.synchronize();
});

// Functions end with their binary; a launch that is queued keeps its code.
const Behaviour unload("kernel-unload-keeps-queued-launches", [](const Rank &me) {
    const World world(me, false);
    const Kernels kernels = load();
    const Vector<uint32_t> data(8, [](size_t) { return 0U; });
    uint64_t host[] = {reinterpret_cast<uint64_t>(data.at()), 8, 3};
    sleep_in_stream(world.stream, 100);
    OK(aclrtLaunchKernelWithHostArgs(kernels.add, 1, world.stream, nullptr, host, sizeof(host), nullptr, 0));
    OK(aclrtBinaryUnLoad(kernels.binary));
    RETURNS(107017,
            aclrtLaunchKernelWithHostArgs(kernels.add, 1, world.stream, nullptr, host, sizeof(host), nullptr, 0));
    world.synchronize();
    CHECK(first(data) == 3);
});

// A kernel that leaves device memory ends with an exception of its core: 507015. Source: runtime,
// docs/zh/api_ref/25-01_aclError.md (507015), core/src/common/errcode_manage.cc.
const Behaviour leaves_memory("kernel-outside-device-memory", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint8_t> data(64, [](size_t) { return static_cast<uint8_t>(0); });
    std::vector<uint8_t> host(64);
    aclrtFuncHandle touch = nullptr;
    OK(aclrtBinaryGetFunction(load().binary, "touch", &touch));
    const auto launch = [&](const uint8_t *address, uint64_t bytes) {
        uint64_t arguments[] = {reinterpret_cast<uint64_t>(address), bytes};
        OK(aclrtLaunchKernelWithHostArgs(touch, 1, world.stream, nullptr, arguments, sizeof(arguments), nullptr, 0));
    };
    launch(data.at(), 64);
    world.synchronize();
    CHECK(data.get()[63] == 1);
    launch(host.data(), 64);
    FAILS(507015, "kernel touch", aclrtSynchronizeStream(world.stream));
    launch(data.at(32), 1024);
    FAILS(507015, "not device memory", aclrtSynchronizeStream(world.stream));
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
