// The ACL runtime as programs see it: physical memory that processes of a supernode share by handles.
//
// "runtime" is hicann/runtime at 681ef76, "driver" verylucky01/driver at e29d066; its file svm_master_mem_share is
// src/sdk_driver/svm/v2/master/comm/svm_master_mem_share.c, devmm_svm is src/ascend_hal/svm/v2/devmm/devmm_svm.c. What the kernel
// driver refuses reaches the user by src/ascend_hal/dmc/logdrv/drv_log_user_kernel_api.c:52 and runtime,
// src/runtime/core/src/common/errcode_manage.cc:560: EINVAL becomes 507899, EFAULT 107017, EPERM 207006, EACCES 507000.

#include "conform_sharing.h"

using namespace harness;

namespace {

constexpr uint64_t NAMED = ACL_RT_VMM_EXPORT_FLAG_DEFAULT;
constexpr uint64_t ANYONE = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
constexpr aclrtMemSharedHandleType FABRIC = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;

using Shared = aclrtMemFabricHandle;

const Environment A3 = {{"ASCEND_MOCK_SOC", "Ascend910_9391"}};

aclrtDrvMemHandle physical(size_t bytes, uint32_t device) {
    aclrtPhysicalMemProp prop{};
    prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    prop.memAttr = ACL_HBM_MEM_HUGE;
    prop.location.id = device;
    prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    aclrtDrvMemHandle handle = nullptr;
    OK(aclrtMallocPhysical(&handle, bytes, &prop, 0));
    return handle;
}

aclrtDrvMemHandle physical(size_t bytes, const Rank &me) {
    return physical(bytes, static_cast<uint32_t>(device_of(me)));
}

uint32_t *map(aclrtDrvMemHandle handle, size_t bytes) {
    void *address = nullptr;
    OK(aclrtReserveMemAddress(&address, bytes, 0, nullptr, 0));
    OK(aclrtMapMem(address, bytes, 0, handle, 0));
    return static_cast<uint32_t *>(address);
}

void unmap(uint32_t *address) {
    OK(aclrtUnmapMem(address));
    OK(aclrtReleaseMemAddress(address));
}

Shared share(aclrtDrvMemHandle handle, uint64_t flags = ANYONE) {
    Shared shared{};
    OK(aclrtMemExportToShareableHandleV2(handle, flags, FABRIC, &shared));
    return shared;
}

aclrtDrvMemHandle import(Shared shared) {
    aclrtDrvMemHandle handle = nullptr;
    OK(aclrtMemImportFromShareableHandleV2(&shared, FABRIC, 0, &handle));
    return handle;
}

void send(const std::string &name, const Shared &shared) {
    say(name, std::string(reinterpret_cast<const char *>(&shared), sizeof(shared)));
}

Shared receive(const std::string &name) {
    const std::string bytes = hear(name);
    Shared shared{};
    CHECK(bytes.size() == sizeof(shared));
    std::memcpy(&shared, bytes.data(), sizeof(shared));
    return shared;
}

void fill(uint32_t *memory, size_t words, uint32_t first) {
    std::vector<uint32_t> host(words);
    for (size_t i = 0; i < words; i++) {
        host[i] = first + static_cast<uint32_t>(i);
    }
    OK(aclrtMemcpy(memory, words * 4, host.data(), words * 4, ACL_MEMCPY_HOST_TO_DEVICE));
}

uint32_t word(const uint32_t *memory) {
    uint32_t value = 0;
    OK(aclrtMemcpy(&value, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
}

// A handle has 128 bytes. Source: runtime, include/external/acl/acl_rt.h:365.
static_assert(sizeof(Shared) == 128, "aclrtMemFabricHandle");

// Which supernode a device is in: A3 tells, other chips have none. Source: runtime, include/external/acl/acl_rt.h:686,
// api_impl.cc:10018; hicann/shmem at 643bfb7, src/host/mem/heap/hybm_device_mem_segment.h:26 (2^32 - 1 is none).
const Behaviour supernode("fabric-supernode", [](const Rank &me) {
    const World world(me, false);
    int64_t pod = -1;
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_SUPER_POD_ID, &pod));
    CHECK(pod >= 0 && pod < UINT32_MAX);
    int64_t same = -1;
    OK(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_SUPER_POD_ID, &same));
    CHECK(same == pod);
}, A3);

// Only A3 shares across servers. Source: runtime, docs/zh/api_ref/25-02_Enumerations.md:2141; api_impl.cc:7391 (the driver has no
// server's number to give).
const Behaviour other_chips("fabric-other-chips", [](const Rank &me) {
    const World world(me, false);
    int64_t pod = -1;
    RETURNS(207000, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_SUPER_POD_ID, &pod));
    const aclrtDrvMemHandle handle = physical(2 * MB, me);
    Shared shared{};
    RETURNS(207000, aclrtMemExportToShareableHandleV2(handle, ANYONE, FABRIC, &shared));
    OK(aclrtFreePhysical(handle));
});

// Missing pointers, other flags and other kinds. Source: runtime, src/acl/aclrt_impl/memory.cpp:1229-1310 (pointers, the reserved
// flags of the import), src/runtime/api/impl/api_error.cc:6418 (kind, flags of the export).
const Behaviour arguments("fabric-arguments", [](const Rank &me) {
    const World world(me, false);
    const aclrtDrvMemHandle handle = physical(2 * MB, me);
    aclrtDrvMemHandle other = nullptr;
    Shared shared{};
    int32_t pid = 1;
    RETURNS(100000, aclrtMemExportToShareableHandleV2(nullptr, ANYONE, FABRIC, &shared));
    RETURNS(100000, aclrtMemExportToShareableHandleV2(handle, ANYONE, FABRIC, nullptr));
    RETURNS(107000, aclrtMemExportToShareableHandleV2(handle, 2, FABRIC, &shared));
    RETURNS(107000,
            aclrtMemExportToShareableHandleV2(handle, ANYONE, static_cast<aclrtMemSharedHandleType>(3), &shared));
    RETURNS(100000, aclrtMemImportFromShareableHandleV2(nullptr, FABRIC, 0, &other));
    RETURNS(100000, aclrtMemImportFromShareableHandleV2(&shared, FABRIC, 0, nullptr));
    RETURNS(100000, aclrtMemImportFromShareableHandleV2(&shared, FABRIC, 1, &other));
    RETURNS(107000, aclrtMemImportFromShareableHandleV2(&shared, static_cast<aclrtMemSharedHandleType>(3), 0, &other));
    RETURNS(100000, aclrtMemSetPidToShareableHandleV2(nullptr, FABRIC, &pid, 1));
    RETURNS(100000, aclrtMemSetPidToShareableHandleV2(&shared, FABRIC, nullptr, 1));
    RETURNS(100000, aclrtMemSetPidToShareableHandleV2(&shared, FABRIC, &pid, 0));
    OK(aclrtFreePhysical(handle));
}, A3);

// Memory has one handle, and an import is not shared again: EINVAL. Bytes that are no handle are 107000, one that nobody shares by
// is 107017. The process that shares it does not import it (EACCES): the driver refuses that for the same device, the document for
// any. Source: driver, svm_master_mem_share:1469 (blk->type), devmm_svm:6457 (the kind in the handle), svm_master_mem_share:1153
// and :1160; runtime, docs/zh/api_ref/11-04_virtual_memory_management.md, "aclrtMemImportFromShareableHandleV2".
const Behaviour refusals("fabric-refusals", [](const Rank &me) {
    const World world(me, false);
    const aclrtDrvMemHandle handle = physical(2 * MB, me);
    Shared shared = share(handle);
    Shared again{};
    RETURNS(507899, aclrtMemExportToShareableHandleV2(handle, ANYONE, FABRIC, &again));
    aclrtDrvMemHandle other = nullptr;
    RETURNS(107000, aclrtMemImportFromShareableHandleV2(&again, FABRIC, 0, &other));
    RETURNS(507000, aclrtMemImportFromShareableHandleV2(&shared, FABRIC, 0, &other));
    OK(aclrtSetDevice(1 - device_of(me)));
    RETURNS(507000, aclrtMemImportFromShareableHandleV2(&shared, FABRIC, 0, &other));
    OK(aclrtSetDevice(device_of(me)));
    OK(aclrtFreePhysical(handle));
    RETURNS(107017, aclrtMemImportFromShareableHandleV2(&shared, FABRIC, 0, &other));
}, A3);

// Another process maps it at addresses of its own, and copies and kernels reach it there, both ways. It is exported before or after it is
// mapped, and keeps its content. Between devices of a server the importer enables access. Source: the vendor's example, runtime,
// example/1_basic_features/memory/12_cross_server_physical_memory_sharing_withoutpid; docs/zh/api_ref/
// 11-04_virtual_memory_management.md, "aclrtMemExportToShareableHandleV2", on access.
const Behaviour shared_memory("fabric-memory-of-another-process", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    if (me.rank == 0) {
        const aclrtDrvMemHandle early = physical(2 * MB, me);
        const aclrtDrvMemHandle late = physical(4 * MB, me);
        uint32_t *second = map(late, 4 * MB);
        fill(second, MB, 500);
        send("early", share(early));
        send("late", share(late));
        uint32_t *first = map(early, 2 * MB);
        CHECK(word(second + 3) == 503);
        fill(first, 16, 70);
        say("filled");
        hear("written");
        CHECK(word(first + 1) == 574 && word(second + 3) == 503);
        fill(first, 16, 90);
        say("filled-again");
        hear("done");
        unmap(first);
        unmap(second);
        OK(aclrtFreePhysical(early));
        OK(aclrtFreePhysical(late));
        return;
    }
    OK(aclrtDeviceEnablePeerAccess(1 - device_of(me), 0));
    const aclrtDrvMemHandle early = import(receive("early"));
    const aclrtDrvMemHandle late = import(receive("late"));
    uint32_t *first = map(early, 2 * MB);
    uint32_t *second = map(late, 4 * MB);
    hear("filled");
    const Words own(16);
    copy(world, own.at(), first, 64);
    own.expect([](size_t i) { return static_cast<uint32_t>(70 + i); }, "mapped after it was shared");
    copy(world, own.at(), second + MB - 16, 64);
    own.expect([](size_t i) { return static_cast<uint32_t>(500 + MB - 16 + i); }, "mapped before");
    copy(world, first, second + 70, 64);
    launch(kernel("add_step"), {reinterpret_cast<uintptr_t>(first), 16, 3}, world.stream);
    world.synchronize();
    say("written");
    hear("filled-again");
    copy(world, own.at(), first, 64);
    own.expect([](size_t i) { return static_cast<uint32_t>(90 + i); }, "written by its owner");
    RETURNS(107000, aclrtMemcpyAsync(own.at(), 64, second + MB - 8, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    RETURNS(207000, aclrtMemcpy(own.at(), 64, second, 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
    unmap(first);
    RETURNS(107000, aclrtMemcpyAsync(own.at(), 64, first, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    launch(kernel("touch"), {reinterpret_cast<uintptr_t>(first), 64}, world.stream);
    RETURNS(507015, aclrtSynchronizeStream(world.stream));
    unmap(second);
    OK(aclrtFreePhysical(early));
    OK(aclrtFreePhysical(late));
    say("done");
}, A3);

// A second import of the same handle is the same one, and is freed, too. Source: driver, devmm_svm:6518 (the record of imports).
const Behaviour twice("fabric-second-import", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    if (me.rank == 0) {
        const aclrtDrvMemHandle handle = physical(2 * MB, me);
        send("handle", share(handle));
        hear("done");
        OK(aclrtFreePhysical(handle));
        return;
    }
    const Shared shared = receive("handle");
    const aclrtDrvMemHandle handle = import(shared);
    CHECK(import(shared) == handle);
    uint32_t *memory = map(handle, 2 * MB);
    OK(aclrtFreePhysical(handle));
    RETURNS(107000, aclrtMapMem(memory, 2 * MB, 0, handle, 0));
    unmap(memory);
    OK(aclrtFreePhysical(handle));
    RETURNS(107017, aclrtFreePhysical(handle));
    say("done");
}, A3);

// The memory lives until all that have it have freed it, whoever is the last: its bytes come back then. Nobody imports it any
// more once its owner has freed it. Source: runtime, docs/zh/api_ref/11-04_virtual_memory_management.md,
// "aclrtMemExportToShareableHandle", 3; driver, svm_master_mem_share:1166 (the count of those that have it).
const Behaviour last("fabric-last-one-frees", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    if (me.rank == 0) {
        size_t before = 0;
        size_t now = 0;
        size_t total = 0;
        OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
        const aclrtDrvMemHandle handle = physical(2 * MB, me);
        uint32_t *memory = map(handle, 2 * MB);
        fill(memory, 16, 70);
        send("handle", share(handle));
        hear("imported");
        unmap(memory);
        OK(aclrtFreePhysical(handle));
        OK(aclrtGetMemInfo(ACL_HBM_MEM, &now, &total));
        CHECK(before - now == 2 * MB);
        RETURNS(107017, aclrtFreePhysical(handle));
        say("freed");
        hear("done");
        OK(aclrtGetMemInfo(ACL_HBM_MEM, &now, &total));
        CHECK(before == now);
        return;
    }
    Shared shared = receive("handle");
    const aclrtDrvMemHandle handle = import(shared);
    say("imported");
    hear("freed");
    uint32_t *memory = map(handle, 2 * MB);
    const Words own(16);
    copy(world, own.at(), memory, 64);
    own.expect([](size_t i) { return static_cast<uint32_t>(70 + i); }, "freed by its owner");
    unmap(memory);
    OK(aclrtFreePhysical(handle));
    say("done");
}, A3);

// Without the flag only processes that the owner has named may import; with it nobody is named. Source: driver,
// svm_master_mem_share:152 (EPERM), :182 (EACCES), :1692 (EFAULT) and :1699 (EACCES).
const Behaviour named("fabric-named-processes", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    int32_t pid = 0;
    OK(aclrtDeviceGetBareTgid(&pid));
    if (me.rank == 0) {
        const aclrtDrvMemHandle handle = physical(2 * MB, me);
        const aclrtDrvMemHandle open = physical(2 * MB, me);
        Shared shared = share(handle, NAMED);
        Shared other = share(open);
        send("handle", shared);
        int32_t pids[2] = {0, std::atoi(hear("pid").c_str())};
        RETURNS(507899, aclrtMemSetPidToShareableHandleV2(&shared, FABRIC, pids, 1));
        OK(aclrtMemSetPidToShareableHandleV2(&shared, FABRIC, pids, 2));
        RETURNS(207006, aclrtMemSetPidToShareableHandleV2(&other, FABRIC, pids, 2));
        say("named");
        hear("done");
        OK(aclrtFreePhysical(open));
        OK(aclrtFreePhysical(handle));
        RETURNS(107017, aclrtMemSetPidToShareableHandleV2(&shared, FABRIC, pids, 2));
        return;
    }
    Shared shared = receive("handle");
    aclrtDrvMemHandle handle = nullptr;
    RETURNS(507000, aclrtMemImportFromShareableHandleV2(&shared, FABRIC, 0, &handle));
    say("pid", std::to_string(pid));
    hear("named");
    OK(aclrtFreePhysical(import(shared)));
    say("done");
}, A3);

// HCCL takes memory that its owner shares as any other, and no imported memory, as it shares buffers itself.
const Behaviour collectives("fabric-hccl", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me);
    const aclrtDrvMemHandle handle = physical(2 * MB, me);
    uint32_t *memory = map(handle, 2 * MB);
    send("handle-" + std::to_string(me.rank), share(handle));
    const aclrtDrvMemHandle other = import(receive("handle-" + std::to_string(1 - me.rank)));
    uint32_t *theirs = map(other, 2 * MB);
    fill(memory, 1024, 10);
    OK(HcclAllReduce(memory, memory, 1024, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, world.comm, world.stream));
    world.synchronize();
    CHECK(word(memory + 5) == 30);
    RETURNS(HCCL_E_PARA,
            HcclAllReduce(theirs, memory, 16, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, world.comm, world.stream));
    say("done-" + std::to_string(me.rank));
    hear("done-" + std::to_string(1 - me.rank));
    unmap(theirs);
    OK(aclrtFreePhysical(other));
    unmap(memory);
    OK(aclrtFreePhysical(handle));
}, A3);

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
