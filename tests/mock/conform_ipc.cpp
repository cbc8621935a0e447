// The ACL runtime as programs see it: device memory that processes share by keys.
//
// "driver" is verylucky01/driver at e29d066; its file svm_shmem is src/sdk_driver/svm/v2/master/pmaster/svm_shmem_*.c, devmm_svm
// is src/ascend_hal/svm/v2/devmm/devmm_svm.c. Most refusals of the kernel driver are EINVAL, which the user's half passes on as
// DRV_ERROR_PARA_ERROR (src/ascend_hal/dmc/logdrv/drv_log_user_kernel_api.c:52). The runtime has no number for that
// (src/runtime/core/src/common/errcode_manage.cc:556-600), so it becomes 507899; EFAULT becomes 107017, EPERM 207006.

#include <memory>

#include "conform_sharing.h"

using namespace harness;

namespace {

constexpr size_t KEY = 65;
constexpr uint64_t ANYONE = ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
constexpr uint64_t ACCESS = ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS;

struct Key {
    char text[KEY] = {};
    operator char *() { return text; }
};

Key share(void *memory, size_t bytes, uint64_t flags = ANYONE) {
    Key key;
    OK(aclrtIpcMemGetExportKey(memory, bytes, key, KEY, flags));
    return key;
}

void send(const std::string &name, Key &key) { say(name, std::string(key, KEY)); }

Key receive(const std::string &name) {
    Key key;
    const std::string bytes = hear(name);
    CHECK(bytes.size() == KEY);
    std::memcpy(key, bytes.data(), KEY);
    return key;
}

uint32_t *import(Key &key, uint64_t flags = ACCESS) {
    void *memory = nullptr;
    OK(aclrtIpcMemImportByKey(&memory, key, flags));
    return static_cast<uint32_t *>(memory);
}

// --- export

// Missing pointers, size 0, another flag and another length are refused before a device is asked for. Source: runtime,
// src/acl/aclrt_impl/memory.cpp:1775 (pointers), src/runtime/api/impl/api_error.cc:3747 (size, flags; the length is documented to
// be 65, and driver, devmm_svm:2119, takes no less), api_impl_standard_soc.cc:638 (context).
const Behaviour export_arguments("ipc-export-arguments", [](const Rank &me) {
    Key key;
    RETURNS(107002, aclrtIpcMemGetExportKey(key, 64, key, KEY, ANYONE));
    const World world(me, false);
    const Words data(2 * MB / 4);
    RETURNS(100000, aclrtIpcMemGetExportKey(nullptr, 64, key, KEY, ANYONE));
    RETURNS(100000, aclrtIpcMemGetExportKey(data.at(), 64, nullptr, KEY, ANYONE));
    RETURNS(107000, aclrtIpcMemGetExportKey(data.at(), 0, key, KEY, ANYONE));
    RETURNS(107000, aclrtIpcMemGetExportKey(data.at(), 64, key, KEY, 2));
    for (const size_t length : {0, 64, 66}) {
        RETURNS(107000, aclrtIpcMemGetExportKey(data.at(), 64, key, length, ANYONE));
    }
});

// Only memory of aclrtMalloc, from its first byte on, as far as it goes. Source: driver, svm_shmem_interprocess.c:170
// (para_check), and what runtime, pkg_inc/driver/ascend_hal_base.h:2226 asks of halShmemCreateHandle: no offset, no reserved
// addresses.
const Behaviour export_memory("ipc-export-memory", [](const Rank &me) {
    const World world(me, false);
    const Words data(4 * MB / 4);
    Key key;
    std::vector<char> host(4096);
    RETURNS(507899, aclrtIpcMemGetExportKey(host.data(), 64, key, KEY, ANYONE));
    RETURNS(507899, aclrtIpcMemGetExportKey(data.at(2 * MB / 4), 64, key, KEY, ANYONE));
    RETURNS(507899, aclrtIpcMemGetExportKey(data.at(), 4 * MB + 64, key, KEY, ANYONE));
    void *reserved = nullptr;
    OK(aclrtReserveMemAddress(&reserved, 2 * MB, 0, nullptr, 0));
    RETURNS(507899, aclrtIpcMemGetExportKey(reserved, 64, key, KEY, ANYONE));
    OK(aclrtReleaseMemAddress(reserved));
});

// The memory begins a page: of 4 KiB, or of 2 MiB for allocations of that size. Smaller ones may be cut out of a page. Source:
// runtime, docs/zh/FAQ, the page on the alignment of shared memory; driver, svm_shmem_interprocess.c:177.
const Behaviour export_alignment("ipc-export-alignment", [](const Rank &me) {
    const World world(me, false);
    Key key;
    for (int i = 0; i < 4; i++) {
        void *tiny = nullptr;
        void *small = nullptr;
        void *large = nullptr;
        OK(aclrtMalloc(&tiny, 1024, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtMalloc(&small, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtMalloc(&large, 2 * MB, ACL_MEM_MALLOC_HUGE_FIRST));
        FAILS(507899, "does not begin a page", aclrtIpcMemGetExportKey(tiny, 1024, key, KEY, ANYONE));
        OK(aclrtIpcMemGetExportKey(small, 4096, key, KEY, ANYONE));
        CHECK(reinterpret_cast<uintptr_t>(small) % 4096 == 0);
        OK(aclrtIpcMemGetExportKey(large, 2 * MB, key, KEY, ANYONE));
        CHECK(reinterpret_cast<uintptr_t>(large) % (2 * MB) == 0);
    }
});

// A key is a string of at most 64 characters; the same memory has a new one each time, and each is closed. Source: driver,
// svm_shmem_interprocess.c:291 (a number that grows), svm_shmem_node.c:476 (filled up with zeros).
const Behaviour keys("ipc-keys", [](const Rank &me) {
    const World world(me, false);
    const Words data(2 * MB / 4);
    Key first = share(data.at(), 2 * MB);
    Key second = share(data.at(), 64);
    CHECK(std::strlen(first) > 0 && std::strlen(first) < KEY);
    CHECK(std::strcmp(first, second) != 0);
    OK(aclrtIpcMemClose(first));
    OK(aclrtIpcMemClose(second));
    RETURNS(507899, aclrtIpcMemClose(first));
});

// What is no key: an empty string and one that does not end are 107000, one that nobody has shared memory by is 507899. Source:
// driver, devmm_svm:2199 (destroy), :2296 (open), svm_shmem_interprocess.c:389 (the query fails).
const Behaviour no_keys("ipc-no-keys", [](const Rank &me) {
    Key key;
    void *memory = nullptr;
    RETURNS(107002, aclrtIpcMemClose(key));
    RETURNS(107002, aclrtIpcMemImportByKey(&memory, key, ACCESS));
    const World world(me, false);
    RETURNS(100000, aclrtIpcMemClose(nullptr));
    RETURNS(100000, aclrtIpcMemImportByKey(nullptr, key, ACCESS));
    RETURNS(100000, aclrtIpcMemImportByKey(&memory, nullptr, ACCESS));
    RETURNS(107000, aclrtIpcMemImportByKey(&memory, "a key", 2));
    char endless[KEY];
    std::memset(endless, '0', KEY);
    for (const char *wrong : {"", const_cast<const char *>(endless)}) {
        RETURNS(107000, aclrtIpcMemClose(wrong));
        RETURNS(107000, aclrtIpcMemImportByKey(&memory, wrong, ACCESS));
    }
    endless[KEY - 1] = '\0';
    for (const char *wrong : {"a key", const_cast<const char *>(endless)}) {
        RETURNS(507899, aclrtIpcMemClose(wrong));
        RETURNS(507899, aclrtIpcMemImportByKey(&memory, wrong, 0));
    }
    Words data(2 * MB / 4);
    Key live = share(data.at(), 64);
    live[63] = live[63] == '0' ? '1' : '0';
    FAILS(507899, "has closed it", aclrtIpcMemImportByKey(&memory, live, ACCESS));
    CHECK(memory == nullptr);
});

// --- import

// The process itself may import its key: at an address of its own. A second import gives the same address, and is closed, too;
// only then is the export closed. Source: driver, svm_shmem_node.c:779 (any process gets an entry), devmm_svm:2308 (counted);
// runtime, api_impl_standard_soc.cc:757 (a close ends an import of that name before the export).
const Behaviour own_process("ipc-own-process", [](const Rank &me) {
    const World world(me, false);
    const Words data(2 * MB / 4, [](size_t i) { return static_cast<uint32_t>(i); });
    Key key = share(data.at(), 4096);
    const uint32_t *memory = import(key);
    CHECK(memory != data.at());
    CHECK(import(key, 0) == memory);
    uint32_t host[2];
    OK(aclrtMemcpy(host, 8, memory + 5, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host[0] == 5 && host[1] == 6);
    OK(aclrtIpcMemClose(key));
    OK(aclrtMemcpy(host, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    OK(aclrtIpcMemClose(key));
    RETURNS(107000, aclrtMemcpy(host, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(import(key) != nullptr);
    OK(aclrtIpcMemClose(key));
    OK(aclrtIpcMemClose(key));
    RETURNS(507899, aclrtIpcMemClose(key));
});

// A key is mapped once per process: another device of the same one is refused. Source: driver, svm_shmem_node.c:809 (the entry of
// the process has an address).
const Behaviour second_device("ipc-second-device-of-a-process", [](const Rank &me) {
    const World world(me, false);
    const Words data(2 * MB / 4);
    Key key = share(data.at(), 4096);
    import(key);
    OK(aclrtSetDevice(1));
    void *memory = nullptr;
    RETURNS(507899, aclrtIpcMemImportByKey(&memory, key, ACCESS));
    OK(aclrtSetDevice(0));
    OK(aclrtIpcMemClose(key));
    OK(aclrtIpcMemClose(key));
});

// What is imported can be neither shared nor freed, and HCCL, which shares buffers itself, does not take it. Source: driver,
// svm_shmem_interprocess.c:222.
const Behaviour imported_again("ipc-imported-memory-is-not-shared-again", [](const Rank &me) {
    const World world(me);
    const Words data(2 * MB / 4);
    Key key = share(data.at(), 4096);
    uint32_t *memory = import(key);
    Key other;
    RETURNS(507899, aclrtIpcMemGetExportKey(memory, 4096, other, KEY, ANYONE));
    RETURNS(107000, aclrtFree(memory));
    RETURNS(HCCL_E_PARA,
            HcclAllReduce(memory, data.at(), 16, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, world.comm, world.stream));
    OK(aclrtIpcMemClose(key));
    OK(aclrtIpcMemClose(key));
});

// Another process of the same device uses the memory as its own, up to the length that was shared.
const Behaviour same_device("ipc-same-device", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    if (me.rank == 0) {
        const Words data(2 * MB / 4, [](size_t i) { return static_cast<uint32_t>(i); });
        Key key = share(data.at(), 4096);
        send("key", key);
        hear("done");
        CHECK(data.get()[1] == 77 && data.get()[2] == 2);
        OK(aclrtIpcMemClose(key));
        return;
    }
    Key key = receive("key");
    uint32_t *memory = import(key, 0);
    std::vector<uint32_t> host(1024);
    OK(aclrtMemcpy(host.data(), 4096, memory, 4096, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host[0] == 0 && host[1023] == 1023);
    RETURNS(107000, aclrtMemcpy(host.data(), 4096, memory + 1, 4096, ACL_MEMCPY_DEVICE_TO_HOST));
    host[1] = 77;
    OK(aclrtMemcpy(memory + 1, 4, &host[1], 4, ACL_MEMCPY_DEFAULT));
    OK(aclrtIpcMemClose(key));
    RETURNS(107000, aclrtMemcpy(host.data(), 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    RETURNS(507899, aclrtIpcMemClose(key));
    say("done");
}, {{"HARNESS_PER_SERVER", "1"}});

// From another device it is copied on streams and from device to device only; kernels read and write it. Source: runtime,
// docs/zh/api_ref/11-07_IPC_memory_sharing.md, "aclrtIpcMemGetExportKey". What the other copies return is not documented.
const Behaviour across_devices("ipc-across-devices", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    if (me.rank == 0) {
        const Words data(2 * MB / 4, [](size_t i) { return static_cast<uint32_t>(i); });
        Key key = share(data.at(), 4096);
        send("key", key);
        hear("done");
        CHECK(data.get()[0] == 8 && data.get()[1023] == 1031 && data.get()[1024] == 1024);
        OK(aclrtIpcMemClose(key));
        return;
    }
    Key key = receive("key");
    uint32_t *memory = import(key);
    int32_t access = 0;
    OK(aclrtDevicePeerAccessStatus(1, 0, &access));
    CHECK(access == 1);
    OK(aclrtDevicePeerAccessStatus(0, 1, &access));
    CHECK(access == 1);
    std::vector<uint32_t> host(1024);
    Words own(1024, [](size_t) { return 7U; });
    const auto refused = [&](void *to, const void *from, aclrtMemcpyKind kind) {
        RETURNS(207000, aclrtMemcpy(to, 64, from, 64, kind));
        if (kind != ACL_MEMCPY_DEVICE_TO_DEVICE) {
            RETURNS(207000, aclrtMemcpyAsync(to, 64, from, 64, kind, world.stream));
        }
    };
    refused(host.data(), memory, ACL_MEMCPY_DEVICE_TO_HOST);
    refused(memory, host.data(), ACL_MEMCPY_HOST_TO_DEVICE);
    refused(own.at(), memory, ACL_MEMCPY_DEFAULT);
    refused(own.at(), memory, ACL_MEMCPY_DEVICE_TO_DEVICE);
    RETURNS(207000, aclrtMemcpy2d(host.data(), 64, memory, 64, 64, 2, ACL_MEMCPY_DEVICE_TO_HOST));
    RETURNS(107000, aclrtMemcpyAsync(own.at(), 4096, memory + 1, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    copy(world, own.at(), memory, 4096);
    own.expect([](size_t i) { return static_cast<uint32_t>(i); }, "copied");
    own.set([](size_t i) { return static_cast<uint32_t>(i + 5); });
    copy(world, memory, own.at(), 4096);
    launch(kernel("add_step"), {reinterpret_cast<uintptr_t>(memory), 1024, 3}, world.stream);
    world.synchronize();
    launch(kernel("touch"), {reinterpret_cast<uintptr_t>(memory), 4097}, world.stream);
    RETURNS(507015, aclrtSynchronizeStream(world.stream));
    OK(aclrtIpcMemClose(key));
    say("done");
});

// Without the flag only processes that the owner has named may import, and the owner itself may not. With it nobody is named.
// Source: driver, svm_shmem_node.c:1036 (the owner and 0 do not count), :1075 (EPERM), :780 (no entry); runtime, api_error.cc:3809
// (no numbers).
const Behaviour named("ipc-named-processes", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    int32_t pid = 0;
    OK(aclrtDeviceGetBareTgid(&pid));
    void *memory = nullptr;
    if (me.rank == 0) {
        const Words data(2 * MB / 4);
        Key key = share(data.at(), 4096, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT);
        RETURNS(100000, aclrtIpcMemSetImportPid(key, nullptr, 1));
        RETURNS(100000, aclrtIpcMemSetImportPid(nullptr, &pid, 1));
        RETURNS(107000, aclrtIpcMemSetImportPid(key, &pid, 0));
        RETURNS(507899, aclrtIpcMemSetImportPid(key, &pid, 1));
        RETURNS(507899, aclrtIpcMemImportByKey(&memory, key, ACCESS));
        send("key", key);
        int32_t pids[2] = {pid, std::atoi(hear("pid").c_str())};
        OK(aclrtIpcMemSetImportPid(key, pids, 2));
        say("named");
        Key open = share(data.at(), 64);
        RETURNS(207006, aclrtIpcMemSetImportPid(open, pids, 2));
        hear("done");
        OK(aclrtIpcMemClose(open));
        OK(aclrtIpcMemClose(key));
        return;
    }
    Key key = receive("key");
    RETURNS(507899, aclrtIpcMemImportByKey(&memory, key, ACCESS));
    RETURNS(507899, aclrtIpcMemSetImportPid(key, &pid, 1));
    say("pid", std::to_string(pid));
    hear("named");
    import(key);
    OK(aclrtIpcMemClose(key));
    say("done");
});

// --- the end

// The owner closes last. If it does not, importers lose the memory and nobody imports it any more; a second close is 107017 as
// long as they have it. Source: driver, svm_shmem_node.c:529 (destroy takes the pages of those that have it), :396 (EFAULT), :748.
const Behaviour order("ipc-owner-closes-first", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    if (me.rank == 0) {
        const Words data(2 * MB / 4);
        Key key = share(data.at(), 4096);
        send("key", key);
        hear("imported");
        OK(aclrtIpcMemClose(key));
        RETURNS(107017, aclrtIpcMemClose(key));
        // Its record is used again.
        Key next = share(data.at(), 64);
        say("closed");
        hear("done");
        RETURNS(507899, aclrtIpcMemClose(key));
        OK(aclrtIpcMemClose(next));
        return;
    }
    Key key = receive("key");
    const Words own(16);
    uint32_t *memory = import(key);
    copy(world, own.at(), memory, 64);
    say("imported");
    hear("closed");
    FAILS(107000, "has closed or freed it",
          aclrtMemcpyAsync(own.at(), 64, memory, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    launch(kernel("touch"), {reinterpret_cast<uintptr_t>(memory), 64}, world.stream);
    RETURNS(507015, aclrtSynchronizeStream(world.stream));
    void *again = nullptr;
    RETURNS(507899, aclrtIpcMemImportByKey(&again, key, ACCESS));
    OK(aclrtIpcMemClose(key));
    say("done");
});

// Memory that is freed is lost for importers, too; its key is closed all the same. Source: driver,
// src/sdk_driver/svm/v2/master/comm/devmm_proc_info.c:1771, svm_shmem_node.c:748 (is_open_page_freed).
const Behaviour freed("ipc-freed-memory", Ranks::Processes, 2, [](const Rank &me) {
    const World world(me, false);
    if (me.rank == 0) {
        Key key;
        {
            const Words data(2 * MB / 4);
            key = share(data.at(), 4096);
            send("key", key);
            hear("imported");
        }
        say("freed");
        hear("done");
        OK(aclrtIpcMemClose(key));
        return;
    }
    Key key = receive("key");
    uint32_t *memory = import(key);
    say("imported");
    hear("freed");
    const Words own(16);
    RETURNS(107000, aclrtMemcpyAsync(own.at(), 64, memory, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
    void *again = nullptr;
    FAILS(507899, "has freed it", aclrtIpcMemImportByKey(&again, key, ACCESS));
    OK(aclrtIpcMemClose(key));
    say("done");
});

// A process that has ended shares nothing any more. Of what was imported before the content stays here; the vendor's driver
// takes it away (driver, svm_shmem_node.c:1299).
const Behaviour ended("ipc-owner-ends", Ranks::Processes, 2, [](const Rank &me) {
    auto world = std::make_unique<World>(me, false);
    if (me.rank == 0) {
        static const auto *data = new Words(2 * MB / 4, [](size_t i) { return static_cast<uint32_t>(i); });
        Key first = share(data->at(), 4096);
        Key second = share(data->at(), 4096);
        send("first", first);
        send("second", second);
        hear("imported");
        say("pid", std::to_string(getpid()));
        return;
    }
    Key first = receive("first");
    Key second = receive("second");
    uint32_t *memory = import(first);
    say("imported");
    const auto owner = static_cast<pid_t>(std::atoi(hear("pid").c_str()));
    for (int i = 0; i < 3000 && kill(owner, 0) == 0; i++) {
        pause_ms(10);
    }
    const Words own(16);
    copy(*world, own.at(), memory + 100, 64);
    own.expect([](size_t i) { return static_cast<uint32_t>(100 + i); }, "left behind");
    void *other = nullptr;
    FAILS(507899, "has ended", aclrtIpcMemImportByKey(&other, second, ACCESS));
    FAILS(507899, "has ended", aclrtIpcMemImportByKey(&other, first, ACCESS));
    OK(aclrtIpcMemClose(first));
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
