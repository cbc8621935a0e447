// The ACL runtime as programs see it: copies between host and device, and what memory is.

#include <sys/resource.h>

#include "conform.h"

using namespace harness;

namespace {

constexpr size_t MB = 1 << 20;

// What the process writes to standard error while `work` runs.
std::string errors_of(const std::function<void()> &work) {
    const std::string path = folder() + "/errors";
    std::fflush(stderr);
    const int before = dup(2);
    CHECK(std::freopen(path.c_str(), "w", stderr) != nullptr);
    work();
    std::fflush(stderr);
    dup2(before, 2);
    close(before);
    return read_file(path);
}

// An asynchronous copy from or to pageable memory of the host waits for the stream and is done when the call returns.
// Source: runtime, src/runtime/api/impl/api_error.cc:2255 (MemcpyAsync), :2787 (JudgeIsInvolvePageableMemory).
const Behaviour pageable("copy-async-of-pageable-memory-is-synchronous", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64, [](size_t) { return 7U; });
    std::vector<uint32_t> host(64);
    sleep_in_stream(world.stream, 200);
    OK(aclrtMemsetAsync(a.at(), 256, 1, 128, world.stream));
    OK(aclrtMemcpyAsync(host.data(), 256, a.at(), 256, ACL_MEMCPY_DEVICE_TO_HOST, world.stream));
    CHECK(host[0] == 0x01010101 && host[63] == 7);
    std::fill(host.begin(), host.end(), 5U);
    sleep_in_stream(world.stream, 100);
    OK(aclrtMemcpyAsync(a.at(), 256, host.data(), 256, ACL_MEMCPY_HOST_TO_DEVICE, world.stream));
    std::fill(host.begin(), host.end(), 6U);
    a.expect([](size_t) { return 5U; }, "the copy");
});

// The stream's error is that of the copy, which does not happen then. Source: runtime, api_error.cc:2259.
const Behaviour pageable_error("copy-async-of-pageable-memory-tells-the-streams-error", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    uint32_t host[64] = {};
    const Vector<uint32_t> a(64, [](size_t) { return 7U; });
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtStreamWaitEventWithTimeout(world.stream, event, 50));
    RETURNS(107019, aclrtMemcpyAsync(host, 256, a.at(), 256, ACL_MEMCPY_DEVICE_TO_HOST, world.stream));
    CHECK(host[0] == 0);
    OK(aclrtMemcpyAsync(host, 256, a.at(), 256, ACL_MEMCPY_DEVICE_TO_HOST, world.stream));
    CHECK(host[0] == 7);
});

// Memory of the host, pinned too, is set in the call, whatever the stream holds.
// Source: runtime, src/runtime/core/src/launch/memory_common.cc:102.
const Behaviour set_host("memset-async-of-host-memory-is-at-once", [](const Rank &me) {
    const World world(me, false);
    void *host = nullptr;
    OK(aclrtMallocHost(&host, 64));
    std::memset(host, 0, 64);
    sleep_in_stream(world.stream, 300);
    OK(aclrtMemsetAsync(host, 64, 1, 32, world.stream));
    const auto *bytes = static_cast<const char *>(host);
    CHECK(bytes[0] == 1 && bytes[31] == 1 && bytes[32] == 0);
    world.synchronize();
    OK(aclrtFreeHost(host));
});

// Pinned memory is copied in stream order. Source: runtime, api_error.cc:2272.
const Behaviour registered("copy-async-of-pinned-memory-is-later", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64, [](size_t) { return 7U; });
    std::vector<uint32_t> own(64);
    void *device = nullptr;
    void *made = nullptr;
    OK(aclrtMallocHost(&made, 256));
    std::memset(made, 0, 256);
    OK(aclrtHostRegister(own.data(), 256, ACL_HOST_REGISTER_MAPPED, &device));
    for (uint32_t *host : {own.data(), static_cast<uint32_t *>(made)}) {
        sleep_in_stream(world.stream, 200);
        OK(aclrtMemcpyAsync(host, 256, a.at(), 256, ACL_MEMCPY_DEVICE_TO_HOST, world.stream));
        CHECK(host[0] == 0);
        world.synchronize();
        CHECK(host[0] == 7);
    }
    OK(aclrtHostUnregister(own.data()));
    OK(aclrtFreeHost(made));
});

// Registered memory: no type but those known (207000), and its end needs its start (507911). Source: runtime,
// api_error.cc:1992 (HostRegister), :2032, core/src/common/errcode_manage.cc:555.
const Behaviour register_rules("host-register-rules", [](const Rank &me) {
    const World world(me, false);
    std::vector<char> host(100);
    void *device = nullptr;
    RETURNS(207000, aclrtHostRegister(host.data(), 100, static_cast<aclrtHostRegisterType>(2), &device));
    RETURNS(100000, aclrtHostRegister(host.data(), 0, ACL_HOST_REGISTER_MAPPED, &device));
    RETURNS(507911, aclrtHostUnregister(host.data()));
    OK(aclrtHostRegister(host.data(), 100, ACL_HOST_REGISTER_READONLY, &device));
    RETURNS(507911, aclrtHostUnregister(host.data() + 1));
    OK(aclrtHostUnregister(host.data()));
});

// Asynchronous copies within the host are refused. Source: runtime, api_error.cc:2246.
const Behaviour within_host("copy-async-within-the-host", [](const Rank &me) {
    const World world(me, false);
    uint32_t a[64] = {1};
    uint32_t b[64] = {};
    RETURNS(207000, aclrtMemcpyAsync(b, 256, a, 256, ACL_MEMCPY_HOST_TO_HOST, world.stream));
    RETURNS(207000, aclrtMemcpyAsync(b, 256, a, 256, ACL_MEMCPY_DEFAULT, world.stream));
    world.synchronize();
    CHECK(b[0] == 0);
});

// Every kind of memory can be asked for, and no other: 107016. Source: runtime, api_error.cc:3185, include/external/acl/acl_rt.h:227.
const Behaviour kinds("memory-info-of-every-kind", [](const Rank &me) {
    const World world(me, false);
    for (int kind = 0; kind <= 17; kind++) {
        size_t free = 1;
        size_t total = 1;
        OK(aclrtGetMemInfo(static_cast<aclrtMemAttr>(kind), &free, &total));
        const bool high_bandwidth = kind == ACL_HBM_MEM || kind == ACL_HBM_MEM_HUGE || kind == ACL_HBM_MEM_NORMAL;
        CHECK(!high_bandwidth || (free == 64 * MB && total == 64 * MB));
    }
    size_t free = 1;
    RETURNS(107016, aclrtGetMemInfo(static_cast<aclrtMemAttr>(18), &free, &free));
}, {{"ASCEND_MOCK_HBM_MB", "64"}});

// Rows with gaps: synchronous ones between host and device only, all of them no wider than their pitch. Source: runtime,
// src/acl/aclrt_impl/memory.cpp:211 (CheckMemcpy2dParam), api_error.cc:3014 (MemCopy2DSync), :3058.
const Behaviour rows("copy-of-rows", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint8_t> a(64, [](size_t i) { return static_cast<uint8_t>(i); });
    const Vector<uint8_t> b(64, [](size_t) { return static_cast<uint8_t>(0); });
    uint8_t host[32] = {};
    OK(aclrtMemcpy2d(host, 8, a.at(), 16, 4, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host[3] == 3 && host[4] == 0 && host[8] == 16 && host[27] == 51 && host[28] == 0);
    OK(aclrtMemcpy2dAsync(b.at(), 16, a.at(), 16, 4, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    world.synchronize();
    CHECK(b.get()[51] == 51 && b.get()[52] == 0);
    RETURNS(207000, aclrtMemcpy2d(b.at(), 16, a.at(), 16, 4, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
    RETURNS(100000, aclrtMemcpy2d(host, 8, a.at(), 16, 9, 2, ACL_MEMCPY_DEVICE_TO_HOST));
    RETURNS(107000, aclrtMemcpy2d(host, 8, a.at(), 32, 8, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    OK(aclrtMemcpy2d(nullptr, 8, nullptr, 32, 0, 4, ACL_MEMCPY_DEVICE_TO_HOST));
});

// Between devices access is to be enabled first: one warning. Source: runtime, docs/zh/api_ref/10_memory_management.md, aclrtMemcpy.
const Behaviour peers("copy-between-devices-without-access", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64);
    OK(aclrtSetDevice(1));
    const Vector<uint32_t> b(64);
    const auto copy = [&] { OK(aclrtMemcpy(b.at(), 256, a.at(), 256, ACL_MEMCPY_DEVICE_TO_DEVICE)); };
    unsetenv("ASCEND_MOCK_QUIET");
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    CHECK(errors_of(copy).empty());
    OK(aclrtDeviceDisablePeerAccess(0));
    const std::string told = errors_of([&] {
        copy();
        copy();
    });
    expect_text(__FILE__, __LINE__, told, "from device 0 to device 1 without aclrtDeviceEnablePeerAccess");
    CHECK(told.find("aclrtDeviceEnablePeerAccess") == told.rfind("aclrtDeviceEnablePeerAccess"));
});

// Unaligned copies within a device are as good as others. Source: runtime, api_error.cc:2176 (no such rule).
const Behaviour unaligned("copy-async-unaligned-without-a-word", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64);
    unsetenv("ASCEND_MOCK_QUIET");
    const std::string told = errors_of([&] {
        OK(aclrtMemcpyAsync(a.at(1), 8, a.at(33), 8, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
        world.synchronize();
    });
    CHECK(told.empty());
});

// The mock's own: a limit of file sizes below device memory is a sentence, not SIGXFSZ.
const Behaviour file_limit("malloc-with-a-limit-of-file-sizes", [](const Rank &me) {
    const rlimit limit{64 * MB, 64 * MB};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    const World world(me, false);
    void *memory = nullptr;
    FAILS(207001, "RLIMIT_FSIZE", aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
