// The ACL runtime as programs see it: device and host memory, copies, virtual memory.

#include "conform.h"

using namespace harness;

namespace {

constexpr size_t MB = 1 << 20;

size_t free_bytes() {
    size_t free = 0;
    size_t total = 0;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    return free;
}

// --- allocation

// Device memory is aligned to 64 bytes at least.
const Behaviour alignment("malloc-alignment", [](const Rank &me) {
    const World world(me, false);
    for (const size_t size : {1U, 63U, 65U, 4097U}) {
        void *memory = nullptr;
        OK(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_NORMAL_ONLY));
        CHECK(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
        OK(aclrtFree(memory));
    }
});

// The size is rounded up to 32 bytes, and 32 more may be read (by kernels); what lies behind is refused.
void padding_is(size_t extra) {
    void *memory = nullptr;
    std::vector<char> host(200);
    OK(aclrtMalloc(&memory, 33, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(host.data(), 200, memory, 64 + extra, ACL_MEMCPY_DEVICE_TO_HOST));
    RETURNS(107000, aclrtMemcpy(host.data(), 200, memory, 65 + extra, ACL_MEMCPY_DEVICE_TO_HOST));
    OK(aclrtFree(memory));
}
const Behaviour padding_b("malloc-padding", [](const Rank &me) {
    const World world(me, false);
    padding_is(32);
});
// Not on the 950.
const Behaviour padding_950("malloc-padding-950", [](const Rank &me) {
    const World world(me, false);
    padding_is(0);
}, {{"ASCEND_MOCK_SOC", "Ascend950PR_9599"}});

// Size 0, an unknown policy and a missing pointer are refused; without a device it is 107002.
const Behaviour malloc_arguments("malloc-arguments", [](const Rank &me) {
    void *memory = nullptr;
    RETURNS(107002, aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    const World world(me, false);
    RETURNS(100000, aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST));
    RETURNS(100000, aclrtMalloc(nullptr, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    RETURNS(100000, aclrtMalloc(&memory, 64, static_cast<aclrtMemMallocPolicy>(8)));
    RETURNS(100000, aclrtMalloc(&memory, 64, static_cast<aclrtMemMallocPolicy>(0x2000)));
    // Memory of high bandwidth, as MindSpore asks for it.
    OK(aclrtMalloc(&memory, 64, static_cast<aclrtMemMallocPolicy>(0x1000)));
    OK(aclrtFree(memory));
    OK(aclrtMallocAlign32(&memory, 64, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P));
    OK(aclrtFree(memory));
});

// Exhausted memory is 207001, and what is there can still be used.
const Behaviour exhausted("malloc-exhausted", [](const Rank &me) {
    const World world(me, false);
    void *memory = nullptr;
    void *more = nullptr;
    OK(aclrtMalloc(&memory, 60 * MB, ACL_MEM_MALLOC_HUGE_FIRST));
    RETURNS(207001, aclrtMalloc(&more, 8 * MB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(memory, 60 * MB, 1, 100));
    OK(aclrtFree(memory));
    OK(aclrtMalloc(&more, 8 * MB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(more));
}, {{"ASCEND_MOCK_HBM_MB", "64"}});

// Memory info follows; DDR of the device is none.
const Behaviour memory_info("memory-info", [](const Rank &me) {
    const World world(me, false);
    const size_t before = free_bytes();
    CHECK(before == 64 * MB);
    void *memory = nullptr;
    OK(aclrtMalloc(&memory, 10 * MB, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(before - free_bytes() >= 10 * MB);
    OK(aclrtFree(memory));
    CHECK(free_bytes() == before);
    size_t free = 1;
    size_t total = 1;
    OK(aclrtGetMemInfo(ACL_DDR_MEM, &free, &total));
    CHECK(free == 0 && total == 0);
}, {{"ASCEND_MOCK_HBM_MB", "64"}});

// Only the start of a live allocation can be freed, once.
const Behaviour free_twice("free-checks", [](const Rank &me) {
    const World world(me, false);
    void *memory = nullptr;
    char host = 0;
    OK(aclrtMalloc(&memory, 1024, ACL_MEM_MALLOC_HUGE_FIRST));
    RETURNS(107000, aclrtFree(static_cast<char *>(memory) + 64));
    RETURNS(107000, aclrtFree(&host));
    OK(aclrtFree(memory));
    RETURNS(107000, aclrtFree(memory));
    RETURNS(100000, aclrtFree(nullptr));
});

// Host memory for copies.
const Behaviour pinned("malloc-host", [](const Rank &me) {
    const World world(me, false);
    void *memory = nullptr;
    OK(aclrtMallocHost(&memory, 1000));
    CHECK(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
    std::memset(memory, 1, 1000);
    OK(aclrtFreeHost(memory));
    RETURNS(100000, aclrtMallocHost(&memory, 0));
});

// --- copies

// All kinds of copy between host and device, interior addresses included.
const Behaviour copy_kinds("copy-kinds", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64, [](size_t i) { return static_cast<uint32_t>(i); });
    const Vector<uint32_t> b(64, [](size_t) { return 0U; });
    uint32_t host[64] = {};
    uint32_t other[64] = {};
    OK(aclrtMemcpy(b.at(8), 32, a.at(16), 32, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(b.at(16), 32, a.at(24), 32, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(host, 256, b.at(), 256, ACL_MEMCPY_DEFAULT));
    CHECK(host[7] == 0 && host[8] == 16 && host[23] == 31 && host[24] == 0);
    OK(aclrtMemcpy(other, 256, host, 256, ACL_MEMCPY_HOST_TO_HOST));
    CHECK(other[8] == 16);
    OK(aclrtMemcpy(a.at(), 256, other, 256, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE));
    CHECK(a.get()[23] == 31);
    RETURNS(100000, aclrtMemcpy(host, 256, other, 256, static_cast<aclrtMemcpyKind>(8)));
});

// Between two devices of a process.
const Behaviour copy_devices("copy-between-devices", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64, [](size_t i) { return static_cast<uint32_t>(i); });
    OK(aclrtSetDevice(1));
    const Vector<uint32_t> b(64);
    OK(aclrtMemcpy(b.at(), 256, a.at(), 256, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE));
    b.expect([](size_t i) { return static_cast<uint32_t>(i); }, "copy");
    OK(aclrtSetDevice(0));
});

// count > destMax: 107000.
const Behaviour copy_bound("copy-larger-than-destination", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64);
    uint32_t host[64];
    RETURNS(107000, aclrtMemcpy(host, 100, a.at(), 101, ACL_MEMCPY_DEVICE_TO_HOST));
    RETURNS(107000, aclrtMemcpyAsync(host, 100, a.at(), 101, ACL_MEMCPY_DEVICE_TO_HOST, world.stream));
    RETURNS(107000, aclrtMemset(a.at(), 8, 0, 9));
});

// The sides must be what the kind says, and lie in one allocation.
const Behaviour copy_sides("copy-sides-are-checked", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64);
    uint32_t host[64] = {};
    RETURNS(107000, aclrtMemcpy(host, 256, host, 256, ACL_MEMCPY_HOST_TO_DEVICE));
    RETURNS(107000, aclrtMemcpy(a.at(), 256, a.at(), 256, ACL_MEMCPY_HOST_TO_DEVICE));
    RETURNS(107000, aclrtMemcpy(a.at(32), 512, host, 256, ACL_MEMCPY_HOST_TO_DEVICE));
    RETURNS(100000, aclrtMemcpy(nullptr, 256, host, 256, ACL_MEMCPY_HOST_TO_DEVICE));
});

// aclrtMemcpyAsync and aclrtMemsetAsync return at once and run in stream order.
const Behaviour copy_async("copy-async-in-order", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> a(64, [](size_t) { return 7U; });
    void *pinned = nullptr;
    OK(aclrtMallocHost(&pinned, 256));
    auto *host = static_cast<uint32_t *>(pinned);
    std::memset(host, 0, 256);
    sleep_in_stream(world.stream, 200);
    OK(aclrtMemsetAsync(a.at(), 256, 1, 128, world.stream));
    OK(aclrtMemcpyAsync(host, 256, a.at(), 256, ACL_MEMCPY_DEVICE_TO_HOST, world.stream));
    CHECK(host[0] == 0 && host[63] == 0);
    world.synchronize();
    CHECK(host[0] == 0x01010101 && host[63] == 7);
    OK(aclrtFreeHost(host));
});

// --- reducing copies

template <class Type>
Type reduced(const World &world, aclDataType type, aclrtReduceKind kind, Type a, Type b) {
    const Vector<Type> dst(4, [&](size_t) { return a; });
    const Vector<Type> src(4, [&](size_t) { return b; });
    OK(aclrtReduceAsync(dst.at(), src.at(), 4 * sizeof(Type), kind, type, world.stream, nullptr));
    world.synchronize();
    return dst.get()[3];
}

// aclrtReduceAsync: dst = dst op src; the count is in bytes.
const Behaviour reduce_copy("reduce-async-kinds-and-types", [](const Rank &me) {
    const World world(me, false);
    CHECK(reduced<float>(world, ACL_FLOAT, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, 1.5F, 2.0F) == 3.5F);
    CHECK(reduced<int8_t>(world, ACL_INT8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, 100, 100) == -56);
    CHECK(reduced<int16_t>(world, ACL_INT16, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, -5, 4) == 4);
    CHECK(reduced<int32_t>(world, ACL_INT32, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN, -5, 4) == -5);
    const uint16_t half = reduced<uint16_t>(world, ACL_FLOAT16, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, 0x3c00, 0x4000);
    CHECK(half == 0x4200); // 1 + 2
    const uint16_t brain = reduced<uint16_t>(world, ACL_BF16, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, 0x3f80, 0x4000);
    CHECK(brain == 0x4000);
});

// What the processor cannot reduce: 207000; a count that is no whole element: 107000.
const Behaviour reduce_refused("reduce-async-refused", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint64_t> a(4);
    const Vector<uint64_t> b(4);
    RETURNS(207000,
            aclrtReduceAsync(a.at(), b.at(), 32, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT64, world.stream, nullptr));
    RETURNS(107000,
            aclrtReduceAsync(a.at(), b.at(), 7, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, world.stream, nullptr));
    RETURNS(100000,
            aclrtReduceAsync(a.at(), b.at(), 8, static_cast<aclrtReduceKind>(9), ACL_FLOAT, world.stream, nullptr));
});
// The 910A reduces fp32 only.
const Behaviour reduce_910a("reduce-async-910A", [](const Rank &me) {
    const World world(me, false);
    CHECK(reduced<float>(world, ACL_FLOAT, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, 1, 2) == 3);
    const Vector<uint16_t> a(4);
    RETURNS(207000,
            aclrtReduceAsync(a.at(), a.at(), 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT16, world.stream, nullptr));
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});

// Half precision on the host: rounded to nearest even, infinity and NaN kept.
const Behaviour half("half-precision-conversion", [](const Rank &) {
    CHECK(aclFloatToFloat16(1.0F) == 0x3c00 && aclFloat16ToFloat(0x3c00) == 1.0F);
    CHECK(aclFloatToFloat16(65520.0F) == 0x7c00 && aclFloatToFloat16(65519.0F) == 0x7bff);
    CHECK(aclFloatToFloat16(1.0F + 0x1p-11F) == 0x3c00 && aclFloatToFloat16(1.0F + 0x1.8p-10F) == 0x3c02);
    CHECK(aclFloat16ToFloat(1) == 0x1p-24F && aclFloatToFloat16(0x1p-24F) == 1);
    const float nan = aclFloat16ToFloat(0x7e00);
    CHECK(nan != nan);
    CHECK(aclDataTypeSize(ACL_BF16) == 2 && aclDataTypeSize(ACL_DOUBLE) == 8 && aclDataTypeSize(ACL_DT_UNDEFINED) == 0);
});

// --- virtual memory

aclrtPhysicalMemProp properties(uint32_t device) {
    aclrtPhysicalMemProp prop{};
    prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    prop.memAttr = ACL_HBM_MEM_HUGE;
    prop.location.id = device;
    prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    return prop;
}

aclrtDrvMemHandle physical(size_t bytes, uint32_t device = 0) {
    const aclrtPhysicalMemProp prop = properties(device);
    aclrtDrvMemHandle handle = nullptr;
    OK(aclrtMallocPhysical(&handle, bytes, &prop, 0));
    return handle;
}

char *reserve(size_t bytes) {
    void *address = nullptr;
    OK(aclrtReserveMemAddress(&address, bytes, 0, nullptr, 1));
    return static_cast<char *>(address);
}

// Sizes are multiples of the granularity, 2 MB.
const Behaviour granularity("virtual-granularity", [](const Rank &me) {
    const World world(me, false);
    aclrtPhysicalMemProp prop = properties(0);
    size_t value = 0;
    OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &value));
    CHECK(value == 2 * MB);
    OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &value));
    CHECK(value == 2 * MB);
    RETURNS(107000, aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &value));
    aclrtDrvMemHandle handle = nullptr;
    RETURNS(107000, aclrtMallocPhysical(&handle, MB, &prop, 0));
});

// A reservation takes no memory and may be larger than the device's; alignment is reserved.
const Behaviour reservation("virtual-reservation-is-free", [](const Rank &me) {
    const World world(me, false);
    const size_t before = free_bytes();
    char *address = reserve(100 * MB);
    CHECK(reinterpret_cast<uintptr_t>(address) % (2 * MB) == 0 && free_bytes() == before);
    OK(aclrtReleaseMemAddress(address));
    RETURNS(107000, aclrtReleaseMemAddress(address));
    void *other = nullptr;
    RETURNS(107000, aclrtReserveMemAddress(&other, 0, 0, nullptr, 1));
    RETURNS(107000, aclrtReserveMemAddress(&other, 2 * MB, 4096, nullptr, 1));
}, {{"ASCEND_MOCK_HBM_MB", "64"}});

// Physical memory counts as used, mapped or not, until it is freed.
const Behaviour accounted("virtual-physical-memory-counts", [](const Rank &me) {
    const World world(me, false);
    const size_t before = free_bytes();
    const aclrtDrvMemHandle handle = physical(8 * MB);
    CHECK(before - free_bytes() == 8 * MB);
    const aclrtPhysicalMemProp prop = properties(0);
    aclrtDrvMemHandle large = nullptr;
    RETURNS(207001, aclrtMallocPhysical(&large, 100 * MB, &prop, 0));
    OK(aclrtFreePhysical(handle));
    CHECK(free_bytes() == before);
    RETURNS(107017, aclrtFreePhysical(handle));
}, {{"ASCEND_MOCK_HBM_MB", "64"}});

// Reserved addresses are memory only where something is mapped.
const Behaviour mapped("virtual-map-makes-memory", [](const Rank &me) {
    const World world(me, false);
    char *address = reserve(8 * MB);
    RETURNS(107000, aclrtMemset(address, 16, 1, 16));
    const aclrtDrvMemHandle handle = physical(2 * MB);
    OK(aclrtMapMem(address + 4 * MB, 2 * MB, 0, handle, 0));
    OK(aclrtMemset(address + 4 * MB, 2 * MB, 1, 2 * MB));
    RETURNS(107000, aclrtMemset(address + 4 * MB, 2 * MB + 1, 1, 2 * MB + 1));
    RETURNS(107000, aclrtMemset(address, 16, 1, 16));
    OK(aclrtUnmapMem(address + 4 * MB));
    RETURNS(107000, aclrtMemset(address + 4 * MB, 16, 1, 16));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(address));
});

// Mappings side by side are one range, as allocators that grow segments need it.
const Behaviour adjacent("virtual-adjacent-mappings-are-one-range", [](const Rank &me) {
    const World world(me, false);
    char *address = reserve(8 * MB);
    const aclrtDrvMemHandle first = physical(2 * MB);
    const aclrtDrvMemHandle second = physical(4 * MB);
    OK(aclrtMapMem(address, 2 * MB, 0, first, 0));
    OK(aclrtMapMem(address + 2 * MB, 4 * MB, 0, second, 0));
    std::vector<char> host(6 * MB, 5);
    OK(aclrtMemcpy(address, 6 * MB, host.data(), 6 * MB, ACL_MEMCPY_HOST_TO_DEVICE));
    std::vector<char> back(6 * MB);
    OK(aclrtMemcpy(back.data(), 6 * MB, address, 6 * MB, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(back == host);
    OK(aclrtUnmapMem(address));
    OK(aclrtUnmapMem(address + 2 * MB));
    OK(aclrtFreePhysical(first));
    OK(aclrtFreePhysical(second));
    OK(aclrtReleaseMemAddress(address));
});

// The content belongs to the physical memory: mapped elsewhere it is there.
const Behaviour remapped("virtual-content-moves-with-the-memory", [](const Rank &me) {
    const World world(me, false);
    char *address = reserve(8 * MB);
    const aclrtDrvMemHandle handle = physical(2 * MB);
    OK(aclrtMapMem(address, 2 * MB, 0, handle, 0));
    OK(aclrtMemset(address, 2 * MB, 42, 2 * MB));
    OK(aclrtUnmapMem(address));
    OK(aclrtMapMem(address + 6 * MB, 2 * MB, 0, handle, 0));
    char host = 0;
    OK(aclrtMemcpy(&host, 1, address + 8 * MB - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host == 42);
    OK(aclrtUnmapMem(address + 6 * MB));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(address));
});

// Offset and flags must be 0, the size that of the physical memory, the place free and aligned.
const Behaviour map_rules("virtual-map-rules", [](const Rank &me) {
    const World world(me, false);
    char *address = reserve(8 * MB);
    const aclrtDrvMemHandle handle = physical(4 * MB);
    const aclrtDrvMemHandle other = physical(4 * MB);
    RETURNS(107000, aclrtMapMem(address, 2 * MB, 0, handle, 0));
    RETURNS(107000, aclrtMapMem(address, 4 * MB, 2 * MB, handle, 0));
    RETURNS(107000, aclrtMapMem(address, 4 * MB, 0, handle, 1));
    RETURNS(107008, aclrtMapMem(address + 4096, 4 * MB, 0, handle, 0));
    RETURNS(107000, aclrtMapMem(address + 6 * MB, 4 * MB, 0, handle, 0));
    OK(aclrtMapMem(address, 4 * MB, 0, handle, 0));
    RETURNS(107000, aclrtMapMem(address + 2 * MB, 4 * MB, 0, other, 0));
    RETURNS(107000, aclrtMapMem(address + 4 * MB, 4 * MB, 0, handle, 0));
    RETURNS(107000, aclrtReleaseMemAddress(address));
    RETURNS(107000, aclrtUnmapMem(address + 2 * MB));
    OK(aclrtUnmapMem(address));
    OK(aclrtReleaseMemAddress(address));
    OK(aclrtFreePhysical(handle));
    OK(aclrtFreePhysical(other));
});

// Kernels, copies and collectives of other ranks work on mapped memory as on any other.
const Behaviour collective("virtual-memory-in-collectives", Ranks::Threads, 2, [](const Rank &me) {
    const World world(me);
    char *address = reserve(8 * MB);
    const aclrtDrvMemHandle first = physical(2 * MB, static_cast<uint32_t>(device_of(me)));
    const aclrtDrvMemHandle second = physical(2 * MB, static_cast<uint32_t>(device_of(me)));
    OK(aclrtMapMem(address, 2 * MB, 0, first, 0));
    OK(aclrtMapMem(address + 2 * MB, 2 * MB, 0, second, 0));
    const size_t count = MB; // floats: 4 MB over both mappings
    std::vector<float> host(count, static_cast<float>(me.rank + 1));
    OK(aclrtMemcpy(address, 4 * MB, host.data(), 4 * MB, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(HcclAllReduce(address, address, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    world.synchronize();
    OK(aclrtMemcpy(host.data(), 4 * MB, address, 4 * MB, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host.front() == 3 && host.back() == 3);
});
const Behaviour collective_p("virtual-memory-between-processes", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me);
    char *address = reserve(4 * MB);
    OK(aclrtMapMem(address, 2 * MB, 0, physical(2 * MB, static_cast<uint32_t>(device_of(me))), 0));
    OK(aclrtMemset(address, 64, static_cast<int>(me.rank), 64));
    char host[128] = {};
    const Vector<char> all(128);
    OK(HcclAllGather(address, all.at(), 64, HCCL_DATA_TYPE_INT8, world.comm, world.stream));
    world.synchronize();
    OK(aclrtMemcpy(host, 128, all.at(), 128, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host[0] == 0 && host[127] == 1);
});

// ThreadSanitizer leaves no room for so many addresses.
#ifndef __SANITIZE_THREAD__
// The mock's own: more device memory than the machine has is refused when it is allocated, not when the kernel kills.
const Behaviour too_much("malloc-more-than-the-host-has", [](const Rank &me) {
    const World world(me, false);
    void *memory = nullptr;
    FAILS(207001, "15728640 MB of device memory asked for and 0 MB allocated",
          aclrtMalloc(&memory, 15ULL << 40, ACL_MEM_MALLOC_HUGE_FIRST));
    FAILS(207001, "MB left", aclrtMalloc(&memory, 15ULL << 40, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&memory, 64 * MB, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(memory));
}, {{"ASCEND_MOCK_HBM_MB", "16777216"}});

// Parts that are not used yet count, and those that were freed do not.
const Behaviour too_much_in_all("malloc-more-than-the-host-has-in-parts", [](const Rank &me) {
    const World world(me, false);
    const auto total = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<void *> parts;
    aclError code = ACL_SUCCESS;
    while (parts.size() <= 1000) {
        void *memory = nullptr;
        code = aclrtMalloc(&memory, total / 1000, ACL_MEM_MALLOC_HUGE_FIRST);
        if (code != ACL_SUCCESS) {
            break;
        }
        parts.push_back(memory);
    }
    CHECK(code == 207001 && parts.size() < 1000);
    const aclrtPhysicalMemProp prop = properties(0);
    aclrtDrvMemHandle handle = nullptr;
    FAILS(207001, "MB left", aclrtMallocPhysical(&handle, total / (4 * MB) * (2 * MB), &prop, 0));
    for (void *part : parts) {
        OK(aclrtFree(part));
    }
    void *memory = nullptr;
    OK(aclrtMalloc(&memory, total / 1000, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(memory));
}, {{"ASCEND_MOCK_HBM_MB", "16777216"}});
#endif

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
