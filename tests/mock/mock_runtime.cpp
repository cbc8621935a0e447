// The ACL half of the mock: devices, streams, events, memory, kernels.

#include <array>
#include <atomic>

#include <sys/syscall.h>

#include "harness.h"

using namespace harness;

// Between the mock's own libraries.
namespace mock {
std::chrono::microseconds patience();
void share_cores(uint32_t ranks);
} // namespace mock

namespace {

void sleep_in_stream(aclrtStream stream, int ms) {
    OK(aclrtLaunchHostFunc(stream, [](void *time) { pause_ms(static_cast<int>(reinterpret_cast<intptr_t>(time))); },
                           reinterpret_cast<void *>(static_cast<intptr_t>(ms))));
}

void devices(const Rank &) {
    int32_t device = -1;
    aclrtStream stream = nullptr;
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device));
    FAILS(ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice", aclrtCreateStream(&stream));
    CHECK(aclGetRecentErrMsg() == nullptr);
    OK(aclInit(nullptr));
    RETURNS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device));
    uint32_t count = 0;
    OK(aclrtGetDeviceCount(&count));
    CHECK(count == 4);
    RETURNS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(4));
    RETURNS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(-1));
    OK(aclrtSetDevice(2));
    OK(aclrtGetDevice(&device));
    CHECK(device == 2);
    on_thread([] {
        int32_t other = -1;
        RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&other));
    });
    OK(aclrtSetDevice(2));
    OK(aclrtResetDevice(2));
    OK(aclrtGetDevice(&device)); // counted: one is left
    OK(aclrtCreateStream(&stream));
    void *memory = nullptr;
    OK(aclrtMalloc(&memory, 100, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtResetDevice(2));
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device));
    OK(aclrtFree(memory));                                            // what lives may still be given back
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStream(stream)); // the stream went with its context
    aclrtContext first = nullptr;
    aclrtContext second = nullptr;
    aclrtContext current = nullptr;
    OK(aclrtCreateContext(&first, 1));
    OK(aclrtCreateContext(&second, 3));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == second);
    OK(aclrtSetCurrentContext(first));
    OK(aclrtGetDevice(&device));
    CHECK(device == 1);
    OK(aclrtDestroyContext(first));
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device));
    RETURNS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSetCurrentContext(first));
    OK(aclrtSetCurrentContext(second));
    int64_t value = 0;
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value));
    CHECK(value == 48);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE, &value));
    CHECK(value == 196608);
    CHECK(std::string(aclrtGetSocName()) == "Ascend910B1");
    aclCANNPackageVersion version;
    OK(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version));
    CHECK(std::string(version.version) == "8.3.RC1" && std::string(version.releaseVersion) == "RC1");
    OK(aclFinalize());
    RETURNS(ACL_ERROR_REPEAT_FINALIZE, aclFinalize());
}

void memory(const Rank &me) {
    const World world(me, false);
    size_t free_before = 0;
    size_t total = 0;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
    CHECK(free_before == total && total > 0);
    std::vector<char *> blocks;
    for (size_t i = 1; i < 200; i++) {
        void *block = nullptr;
        OK(aclrtMalloc(&block, i * 37, ACL_MEM_MALLOC_NORMAL_ONLY));
        CHECK(reinterpret_cast<uintptr_t>(block) % 512 == 0);
        blocks.push_back(static_cast<char *>(block));
    }
    for (size_t i = 0; i < blocks.size(); i += 2) {
        OK(aclrtFree(blocks[i]));
    }
    FAILS(ACL_ERROR_RT_PARAM_INVALID, "not the start", aclrtFree(blocks[0]));
    FAILS(ACL_ERROR_RT_PARAM_INVALID, "not the start", aclrtFree(blocks[1] + 64));
    for (size_t i = 1; i < blocks.size(); i += 2) {
        OK(aclrtFree(blocks[i]));
    }
    size_t free_after = 0;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    CHECK(free_after == free_before);
    void *huge = nullptr;
    FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, "exhausted", aclrtMalloc(&huge, total + 1, ACL_MEM_MALLOC_HUGE_FIRST));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtMalloc(&huge, 0, ACL_MEM_MALLOC_HUGE_FIRST));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    void *pinned = nullptr;
    OK(aclrtMallocHost(&pinned, 1000));
    OK(aclrtFreeHost(pinned));

    const Vector<uint32_t> a(100, [](size_t i) { return static_cast<uint32_t>(i); });
    const Vector<uint32_t> b(100, [](size_t) { return 0U; });
    uint32_t host[100] = {};
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(host, 4, a.at(), 8, ACL_MEMCPY_DEVICE_TO_HOST));
    FAILS(ACL_ERROR_RT_PARAM_INVALID, "ends after", aclrtMemcpy(a.at(50), 400, host, 400, ACL_MEMCPY_HOST_TO_DEVICE));
    FAILS(ACL_ERROR_RT_PARAM_INVALID, "not device", aclrtMemcpy(host, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    FAILS(ACL_ERROR_RT_PARAM_INVALID, "says host", aclrtMemcpy(b.at(), 8, a.at(), 8, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(b.at(10), 40, a.at(20), 40, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(host, 400, b.at(), 400, ACL_MEMCPY_DEFAULT));
    CHECK(host[9] == 0 && host[10] == 20 && host[19] == 29 && host[20] == 0);
    OK(aclrtMemset(b.at(), 400, 0xff, 8));
    OK(aclrtMemsetAsync(b.at(2), 400, 1, 4, world.stream));
    OK(aclrtMemcpyAsync(host, 400, b.at(), 400, ACL_MEMCPY_DEVICE_TO_HOST, world.stream));
    world.synchronize();
    CHECK(host[0] == 0xffffffff && host[2] == 0x01010101);
}

void streams(const Rank &me) {
    const World world(me, false);
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtStreamQuery(world.stream, &status));
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    sleep_in_stream(world.stream, 400);
    OK(aclrtStreamQuery(world.stream, &status));
    CHECK(status == ACL_STREAM_STATUS_NOT_READY);
    FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "a host function", aclrtSynchronizeStreamWithTimeout(world.stream, 20));
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeDeviceWithTimeout(20));
    OK(aclrtSynchronizeDevice());

    // The default stream works too, and a stream of another device is refused.
    const Vector<uint32_t> data(10, [](size_t) { return 7U; });
    OK(aclrtMemsetAsync(data.at(), 40, 0, 40, nullptr));
    OK(aclrtSynchronizeStream(nullptr));
    data.expect([](size_t) { return 0U; }, "memset on the default stream");
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtSetDevice(1));
    FAILS(ACL_ERROR_RT_STREAM_CONTEXT, "of device 0", aclrtRecordEvent(event, world.stream));
    OK(aclrtSetDevice(0));

    // An abort drops what is queued; the stream can be used again.
    static std::atomic<int> ran{0};
    sleep_in_stream(world.stream, 600);
    for (int i = 0; i < 10; i++) {
        OK(aclrtLaunchHostFunc(world.stream, [](void *) { ran++; }, nullptr));
    }
    std::thread waiter([&] {
        aclrtSetDevice(0);
        CHECK(aclrtSynchronizeStream(world.stream) == ACL_ERROR_RT_STREAM_ABORT);
    });
    pause_ms(300);
    OK(aclrtStreamAbort(world.stream));
    waiter.join();
    CHECK(ran == 0);
    OK(aclrtLaunchHostFunc(world.stream, [](void *) { ran++; }, nullptr));
    world.synchronize();
    CHECK(ran == 1);

    aclrtStream other = nullptr;
    OK(aclrtCreateStreamWithConfig(&other, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    sleep_in_stream(other, 50);
    OK(aclrtLaunchHostFunc(other, [](void *) { ran++; }, nullptr));
    OK(aclrtDestroyStream(other)); // waits
    CHECK(ran == 2);
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(other));
    OK(aclrtCreateStream(&other));
    sleep_in_stream(other, 50);
    OK(aclrtLaunchHostFunc(other, [](void *) { ran++; }, nullptr));
    OK(aclrtDestroyStreamForce(other)); // drops
    CHECK(ran == 2);
}

void events(const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    aclrtEvent event = nullptr;
    aclrtEvent end = nullptr;
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    OK(aclrtCreateEventExWithFlag(&end, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    OK(aclrtQueryEventStatus(event, &status)); // never recorded: complete
    CHECK(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtSynchronizeEvent(event));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event, world.stream));

    // A wait binds the record that is the latest when it is called.
    static std::atomic<int> step{0};
    OK(aclrtRecordEvent(event, world.stream));
    sleep_in_stream(world.stream, 100);
    OK(aclrtLaunchHostFunc(world.stream, [](void *) { step = 1; }, nullptr));
    OK(aclrtRecordEvent(end, world.stream));
    OK(aclrtStreamWaitEvent(other, end));
    OK(aclrtLaunchHostFunc(other, [](void *) { step = step == 1 ? 2 : -1; }, nullptr));
    sleep_in_stream(world.stream, 1000);
    OK(aclrtRecordEvent(end, world.stream));
    OK(aclrtSynchronizeStream(other));
    CHECK(step == 2);
    RETURNS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(end, 10));
    OK(aclrtQueryEventStatus(end, &status));
    CHECK(status == ACL_EVENT_RECORDED_STATUS_NOT_READY);
    float ms = 0;
    RETURNS(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, aclrtEventElapsedTime(&ms, event, end));
    OK(aclrtSynchronizeEvent(end));
    OK(aclrtEventElapsedTime(&ms, event, end));
    CHECK(ms > 1000 && ms < 20000);

    // Destroyed while a stream waits for it.
    sleep_in_stream(world.stream, 50);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtDestroyEvent(event));
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtRecordEvent(event, world.stream));
    OK(aclrtSynchronizeStream(other));

    aclrtEvent plain = nullptr;
    aclrtEventWaitStatus waits = ACL_EVENT_WAIT_STATUS_RESERVED;
    OK(aclrtCreateEvent(&plain));
    sleep_in_stream(world.stream, 50);
    OK(aclrtRecordEvent(plain, world.stream));
    OK(aclrtStreamWaitEvent(other, plain));
    OK(aclrtQueryEventWaitStatus(plain, &waits));
    CHECK(waits == ACL_EVENT_WAIT_STATUS_NOT_READY);
    OK(aclrtSynchronizeStream(other));
    OK(aclrtQueryEventWaitStatus(plain, &waits));
    CHECK(waits == ACL_EVENT_WAIT_STATUS_COMPLETE);
    OK(aclrtResetEvent(plain, world.stream));
    aclrtEvent timeline = nullptr;
    OK(aclrtCreateEventWithFlag(&timeline, ACL_EVENT_TIME_LINE));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtStreamWaitEvent(other, timeline));
    OK(aclrtDestroyEvent(timeline));
    OK(aclrtDestroyEvent(plain));
    OK(aclrtDestroyEvent(end));
    OK(aclrtDestroyStream(other));
}

void kernels(const Rank &me) {
    const World world(me, false);
    const char *path = std::getenv("HARNESS_KERNEL");
    CHECK(path != nullptr);
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle add = nullptr;
    aclrtFuncHandle sum = nullptr;
    aclrtArgsHandle list = nullptr;
    aclrtParamHandle parameter = nullptr;
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtBinaryLoadFromFile("kernel_binary.so", nullptr, &binary));
    RETURNS(ACL_ERROR_INVALID_FILE, aclrtBinaryLoadFromFile("/none.o", nullptr, &binary));
    OK(aclrtBinaryLoadFromFile(path, nullptr, &binary));
    FAILS(ACL_ERROR_RT_PARAM_INVALID, "has no kernel none", aclrtBinaryGetFunction(binary, "none", &add));
    OK(aclrtBinaryGetFunction(binary, "add_step", &add));
    OK(aclrtBinaryGetFunction(binary, "sum_tiling", &sum));

    const Vector<uint32_t> data(1000, [](size_t i) { return static_cast<uint32_t>(i); });
    const auto launch = [&](uint64_t step, uint32_t blocks) {
        uint64_t values[] = {reinterpret_cast<uint64_t>(data.at()), 1000, step};
        OK(aclrtKernelArgsInit(add, &list));
        for (uint64_t &value : values) {
            OK(aclrtKernelArgsAppend(list, &value, sizeof(value), &parameter));
        }
        RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtLaunchKernelWithConfig(add, 1, world.stream, nullptr, list, nullptr));
        OK(aclrtKernelArgsFinalize(list));
        RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtKernelArgsAppend(list, values, 8, &parameter));
        return aclrtLaunchKernelWithConfig(add, blocks, world.stream, nullptr, list, nullptr);
    };
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, launch(1, 0));
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, launch(1, 65536));
    OK(launch(1, 1));
    OK(launch(10, 48));
    OK(launch(100, 2000));
    world.synchronize();
    data.expect([](size_t i) { return static_cast<uint32_t>(i + 111); }, "kernel");

    uint64_t out = reinterpret_cast<uint64_t>(data.at());
    void *tiling = nullptr;
    OK(aclrtKernelArgsInit(sum, &list));
    OK(aclrtKernelArgsAppend(list, &out, sizeof(out), &parameter));
    OK(aclrtKernelArgsAppendPlaceHolder(list, &parameter));
    FAILS(ACL_ERROR_RT_PARAM_INVALID, "placeholder", aclrtKernelArgsFinalize(list));
    OK(aclrtKernelArgsGetPlaceHolderBuffer(list, parameter, 16, &tiling));
    for (uint32_t i = 0; i < 4; i++) {
        static_cast<uint32_t *>(tiling)[i] = i + 1;
    }
    OK(aclrtKernelArgsFinalize(list));
    sleep_in_stream(world.stream, 50);
    OK(aclrtLaunchKernelWithConfig(sum, 1, world.stream, nullptr, list, nullptr));
    OK(aclrtKernelArgsInit(add, &list)); // the launch has its own copy
    OK(aclrtBinaryUnLoad(binary));       // and keeps its code
    RETURNS(ACL_ERROR_RT_INVALID_HANDLE, aclrtKernelArgsInit(add, &list));
    world.synchronize();
    CHECK(data.get()[0] == 10);
}

// A thread keeps its core for what comes soon only as long as there is a core for each rank.
void patience(const Rank &) {
    mock::share_cores(1 << 20);
    CHECK(mock::patience().count() == 0);
}

// A host that waits for its stream runs the tasks itself, and wakes nobody; without a host they run, too.
void helping_hosts(const Rank &me) {
    const World world(me, false);
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle tell = nullptr;
    OK(aclrtBinaryLoadFromFile(std::getenv("HARNESS_KERNEL"), nullptr, &binary));
    OK(aclrtBinaryGetFunction(binary, "tell_thread", &tell));
    constexpr size_t KERNELS = 8;
    const auto own = static_cast<uint64_t>(syscall(SYS_gettid));
    void *words = nullptr;
    OK(aclrtMalloc(&words, KERNELS * sizeof(uint64_t), ACL_MEM_MALLOC_HUGE_FIRST));
    const auto launch = [&] {
        for (size_t i = 0; i < KERNELS; i++) {
            uint64_t argument = reinterpret_cast<uint64_t>(words) + i * sizeof(uint64_t);
            OK(aclrtLaunchKernelWithHostArgs(tell, 1, world.stream, nullptr, &argument, sizeof(argument), nullptr, 0));
        }
    };
    const auto run_by_host = [&] {
        uint64_t threads[KERNELS];
        OK(aclrtMemcpy(threads, sizeof(threads), words, sizeof(threads), ACL_MEMCPY_DEVICE_TO_HOST));
        return std::count(threads, threads + KERNELS, own);
    };
    // Once it has done so soon after its calls, and if the machine lets it come soon again.
    const auto comes_to_run_all = [&] {
        bool alone = false;
        for (int round = 0; round < 10000 && !alone; round++) {
            const uint64_t wakes = adasum_mock_counter("wakes");
            launch();
            world.synchronize();
            alone = run_by_host() == KERNELS && adasum_mock_counter("wakes") == wakes;
        }
        return alone;
    };
    CHECK(comes_to_run_all());
    const auto run_without_host = [&] {
        const double limit = now() + 60;
        aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
        while (status != ACL_STREAM_STATUS_COMPLETE && now() < limit) {
            pause_ms(1);
            OK(aclrtStreamQuery(world.stream, &status));
        }
        return status == ACL_STREAM_STATUS_COMPLETE && run_by_host() == 0;
    };
    launch();
    CHECK(run_without_host());
    // A task that waits for long is left to the stream's thread, and so is what stands behind it.
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtStreamWaitEvent(world.stream, event)); // for its first record
    launch();
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(world.stream, 100));
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    OK(aclrtRecordEvent(event, other));
    CHECK(run_without_host());
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyEvent(event));
    // Another thread destroys the stream meanwhile: both calls end.
    CHECK(comes_to_run_all());
    aclrtFuncHandle take_time = nullptr;
    OK(aclrtBinaryGetFunction(binary, "take_time", &take_time));
    aclrtContext context = nullptr;
    OK(aclrtGetCurrentContext(&context));
    OK(aclrtMemset(words, sizeof(uint64_t), 0, sizeof(uint64_t)));
    uint64_t arguments[] = {reinterpret_cast<uint64_t>(words), 200};
    OK(aclrtLaunchKernelWithHostArgs(take_time, 1, world.stream, nullptr, arguments, sizeof(arguments), nullptr, 0));
    auto destroyed = std::async(std::launch::async, [&] {
        OK(aclrtSetCurrentContext(context));
        while (reinterpret_cast<std::atomic<uint64_t> *>(words)->load() == 0) {
            pause_ms(1);
        }
        OK(aclrtDestroyStream(world.stream));
    });
    const aclError code = aclrtSynchronizeStream(world.stream);
    CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_INVALID_HANDLE); // it may come too late
    destroyed.get();
    OK(aclrtFree(words));
    OK(aclrtBinaryUnLoad(binary));
}

// What a program that promises to make no such call is measured by.
void counters(const Rank &me) {
    const World world(me, false);
    const char *const NAMES[] = {"host_synchronizations", "device_allocations", "host_allocations", "kernel_launches"};
    uint64_t before[4];
    const auto counted = [&](std::array<uint64_t, 4> expected) {
        for (size_t i = 0; i < 4; i++) {
            if (adasum_mock_counter(NAMES[i]) - before[i] != expected[i]) {
                throw std::runtime_error(
                    text("%s grew by %llu, not %llu", NAMES[i],
                         static_cast<unsigned long long>(adasum_mock_counter(NAMES[i]) - before[i]),
                         static_cast<unsigned long long>(expected[i])));
            }
            before[i] = adasum_mock_counter(NAMES[i]);
        }
    };
    for (size_t i = 0; i < 4; i++) {
        before[i] = adasum_mock_counter(NAMES[i]);
    }
    void *device[2];
    void *host = nullptr;
    OK(aclrtMalloc(&device[0], 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocAlign32(&device[1], 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&host, 64));
    counted({0, 2, 1, 0});

    aclrtEvent event = nullptr;
    aclrtStreamStatus status;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtMemcpyAsync(device[0], 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, world.stream));
    OK(aclrtMemsetAsync(device[1], 64, 0, 64, world.stream));
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(world.stream, event));
    OK(aclrtStreamQuery(world.stream, &status));
    counted({0, 0, 0, 0}); // nothing of this waits
    world.synchronize();
    RETURNS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeStreamWithTimeout(world.stream, 0)); // refused
    counted({1, 0, 0, 0});
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, 1000));
    OK(aclrtSynchronizeDevice());
    OK(aclrtSynchronizeDeviceWithTimeout(-1));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtSynchronizeEventWithTimeout(event, 1000));
    counted({5, 0, 0, 0});
    // Longer than any thread keeps its core, if the machine does not keep the host from its wait meanwhile.
    const uint64_t woken = adasum_mock_counter("wakes");
    uint64_t waits = 0;
    while (adasum_mock_counter("wakes") == woken && waits < 100) {
        sleep_in_stream(world.stream, 50);
        world.synchronize();
        waits++;
    }
    CHECK(adasum_mock_counter("wakes") > woken);
    counted({waits, 0, 0, 0});
    OK(aclrtMemcpy(device[1], 64, device[0], 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemset(device[1], 64, 0, 64));
    counted({2, 0, 0, 0});
    OK(aclrtDestroyEvent(event));
    OK(aclrtFree(device[0]));
    OK(aclrtFree(device[1]));
    OK(aclrtFreeHost(host));

    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle add = nullptr;
    OK(aclrtBinaryLoadFromFile(std::getenv("HARNESS_KERNEL"), nullptr, &binary));
    OK(aclrtBinaryGetFunction(binary, "add_step", &add));
    uint64_t arguments[] = {0, 0, 0};
    RETURNS(ACL_ERROR_RT_PARAM_INVALID,
            aclrtLaunchKernelWithHostArgs(add, 0, world.stream, nullptr, arguments, sizeof(arguments), nullptr, 0));
    for (int i = 0; i < 3; i++) {
        OK(aclrtLaunchKernelWithHostArgs(add, 1, world.stream, nullptr, arguments, sizeof(arguments), nullptr, 0));
    }
    world.synchronize();
    counted({1, 0, 0, 3});
    OK(aclrtBinaryUnLoad(binary));
}

// A wait that ran out of time, for less than is left, does not hold up the end of the stream.
void ending(const Rank &me) {
    const World world(me, false);
    aclrtStream stream = nullptr;
    OK(aclrtCreateStream(&stream));
    sleep_in_stream(stream, 300);
    RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 50));
    sleep_in_stream(stream, 300);
    const double begin = now();
    OK(aclrtDestroyStream(stream));
    CHECK(now() - begin < 20);
}

} // namespace

int main(int argc, char **argv) {
    return run(argc, argv,
               {
                   {"devices", Ranks::Threads, 1, devices, {{"ASCEND_MOCK_DEVICES", "4"}}},
                   {"memory", Ranks::Threads, 1, memory, {{"ASCEND_MOCK_HBM_MB", "64"}}},
                   {"streams", Ranks::Threads, 1, streams, {}},
                   {"events", Ranks::Threads, 1, events, {}},
                   {"kernels", Ranks::Threads, 1, kernels, {}},
                   {"counters", Ranks::Threads, 1, counters, {}},
                   {"helping_hosts", Ranks::Threads, 1, helping_hosts, {}},
                   {"patience", Ranks::Processes, 1, patience, {}},
                   {"ending", Ranks::Threads, 1, ending, {}},
               });
}
