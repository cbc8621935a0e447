// The ACL runtime as programs see it: contexts, what belongs to them, and how they fail.

#include <atomic>

#include "conform.h"

using namespace harness;

namespace {

// A created context becomes the current one; a destroyed one is refused with 107002.
const Behaviour context_life("context-create-and-destroy", [](const Rank &) {
    aclrtContext first = nullptr;
    aclrtContext second = nullptr;
    aclrtContext current = nullptr;
    OK(aclrtCreateContext(&first, 0));
    OK(aclrtCreateContext(&second, 1));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == second);
    OK(aclrtSetCurrentContext(first));
    int32_t device = -1;
    OK(aclrtGetDevice(&device));
    CHECK(device == 0);
    OK(aclrtDestroyContext(first));
    RETURNS(107002, aclrtGetDevice(&device));
    RETURNS(107002, aclrtSetCurrentContext(first));
    RETURNS(107001, aclrtCreateContext(&first, 1000));
});

// aclrtSetDevice makes the primary context current and drops the thread's own; aclrtSetCurrentContext brings it back.
// Source: runtime, src/runtime/api/impl/api_impl.cc:3437 (SetDevice), :4175 (ContextSetCurrent).
const Behaviour set_device("set-device-drops-the-own-context", [](const Rank &) {
    aclrtContext own = nullptr;
    aclrtContext current = nullptr;
    aclrtContext primary = nullptr;
    OK(aclrtCreateContext(&own, 0));
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    CHECK(primary != own);
    OK(aclrtSetCurrentContext(own));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == own);
    on_thread([&] { // threads share the primary context of a device
        OK(aclrtSetDevice(0));
        OK(aclrtGetCurrentContext(&current));
        CHECK(current == primary);
        OK(aclrtResetDevice(0));
    });
    OK(aclrtDestroyContext(own));
    RETURNS(107002, aclrtGetCurrentContext(&current));
    OK(aclrtResetDevice(0));
});

// The primary context cannot be destroyed by hand. Source: runtime, src/runtime/api/impl/api_impl.cc:4140.
const Behaviour primary_stays("primary-context-is-not-destroyed", [](const Rank &) {
    aclrtContext primary = nullptr;
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    RETURNS(107002, aclrtDestroyContext(primary));
    OK(aclrtResetDevice(0));
});

// A device that nobody has set cannot be reset: 507007. Source: runtime, src/runtime/api/impl/api_error.cc:3444,
// core/src/common/errcode_manage.cc:221.
const Behaviour reset_unset("reset-of-an-unset-device", [](const Rank &) {
    RETURNS(507007, aclrtResetDevice(0));
    OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    RETURNS(507007, aclrtResetDevice(0));
    RETURNS(507007, aclrtResetDeviceForce(0));
});

// The last reset of a device leaves the thread without a context, also where aclrtSetDevice gave it that of another device
// since; a context that the thread chose itself stays. Other threads and resets that are not the last take nothing. Source:
// runtime, src/runtime/core/src/runtime.cc:2867 (ExecutePrimaryTearDown).
const Behaviour last_reset("last-reset-clears-the-thread-s-context", [](const Rank &) {
    aclrtContext second = nullptr;
    aclrtContext current = nullptr;
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(1));
    OK(aclrtGetCurrentContext(&second));
    OK(aclrtResetDevice(0)); // not the last
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == second);
    OK(aclrtResetDevice(0));
    RETURNS(107002, aclrtGetCurrentContext(&current));
    OK(aclrtSetDevice(0));
    OK(aclrtSetCurrentContext(second));
    OK(aclrtResetDevice(0));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == second);
    on_thread([&] {
        OK(aclrtSetDevice(0));
        OK(aclrtResetDevice(0));
        RETURNS(107002, aclrtGetCurrentContext(&current));
    });
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == second);
    OK(aclrtResetDevice(1));
});

// A context takes its streams along, after their tasks; memory stays. Source: runtime, src/runtime/core/src/context/context.cc:686
// (TearDown), docs/zh/api_ref/04_device_management.md, aclrtResetDevice; aclrtFree needs no context: api_impl.cc:2371.
std::atomic<int> ran{0};
void count_run(void *) { ran++; }
const Behaviour streams_end("streams-end-with-their-context", [](const Rank &) {
    aclrtContext own = nullptr;
    for (const bool created : {true, false}) {
        void *memory = nullptr;
        aclrtStream stream = nullptr;
        ran = 0;
        if (created) {
            OK(aclrtCreateContext(&own, 0));
        } else {
            OK(aclrtSetDevice(0));
        }
        OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtCreateStream(&stream));
        sleep_in_stream(stream, 50);
        OK(aclrtLaunchHostFunc(stream, count_run, nullptr));
        OK(created ? aclrtDestroyContext(own) : aclrtResetDevice(0));
        CHECK(ran == 1);
        OK(aclrtFree(memory));
        RETURNS(107017, aclrtDestroyStream(stream));
        RETURNS(107002, aclrtCreateStream(&stream));
    }
});

// What works on a stream needs the stream's context: 107003 with another one of the same device, 107002 without any.
// Source: runtime, src/runtime/core/inc/common/error_message_manage.hpp:337, used by api_impl.cc:1398 (launches), :1573 (destroy),
// :1609 (wait), :2029 (failure mode), :2152 (record), :2882 and :3227 (copies), :7607 (abort), :9149 (host functions).
const Behaviour foreign_stream("stream-of-another-context", [](const Rank &me) {
    World world(me, false);
    aclrtContext primary = nullptr;
    aclrtContext own = nullptr;
    aclrtEvent event = nullptr;
    const Vector<uint32_t> data(16);
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtCreateContext(&own, 0));
    const auto refused = [&](int code) {
        RETURNS(code, aclrtRecordEvent(event, world.stream));
        RETURNS(code, aclrtStreamWaitEvent(world.stream, event));
        RETURNS(code, aclrtMemcpyAsync(data.at(8), 32, data.at(), 32, ACL_MEMCPY_DEVICE_TO_DEVICE, world.stream));
        RETURNS(code, aclrtMemsetAsync(data.at(), 64, 0, 64, world.stream));
        RETURNS(code, aclrtLaunchHostFunc(world.stream, count_run, nullptr));
        RETURNS(code, aclrtStreamAbort(world.stream));
        RETURNS(code, aclrtDestroyStream(world.stream));
        RETURNS(code, aclrtDestroyStreamForce(world.stream));
    };
    refused(107003);
    RETURNS(107003, aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
    OK(aclrtSetDevice(1)); // another device
    refused(107003);
    OK(aclrtResetDevice(1)); // none
    refused(107002);
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyContext(own));
});

// Those who wait or ask do not need it: a synchronisation changes to the stream's context and back, a query does not look.
// Some context there must be. Source: runtime, src/runtime/api/impl/api_impl.cc:1718 and :1765.
const Behaviour foreign_wait("any-context-may-wait-for-a-stream", [](const Rank &me) {
    const World world(me, false);
    aclrtContext own = nullptr;
    aclrtContext current = nullptr;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    sleep_in_stream(world.stream, 100);
    on_thread([&] {
        RETURNS(107002, aclrtSynchronizeStream(world.stream));
        RETURNS(107002, aclrtStreamQuery(world.stream, &status));
        OK(aclrtCreateContext(&own, 1));
        OK(aclrtStreamQuery(world.stream, &status));
        CHECK(status == ACL_STREAM_STATUS_NOT_READY);
        OK(aclrtSynchronizeStream(world.stream));
        OK(aclrtGetCurrentContext(&current));
        CHECK(current == own);
        OK(aclrtDestroyContext(own));
    });
});

// Waits for events are not looked at, though a document says that contexts are isolated: a stream may wait for an event of
// another context, and the host without any. Source: runtime, src/runtime/api/impl/api_impl.cc:1591 (only the stream's context is
// compared), :2249 (EventSynchronize); docs/zh/quick_start/Runtime_programming_model.md.
const Behaviour foreign_event("event-of-another-context", [](const Rank &me) {
    const World world(me, false);
    aclrtContext primary = nullptr;
    aclrtContext own = nullptr;
    aclrtStream other = nullptr;
    aclrtEvent event = nullptr;
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    sleep_in_stream(world.stream, 200);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtCreateContext(&own, 0));
    OK(aclrtCreateStream(&other));
    OK(aclrtStreamWaitEvent(other, event));
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(other, 20));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtRecordEvent(event, other));
    on_thread([&] { OK(aclrtSynchronizeEvent(event)); });
    OK(aclrtDestroyContext(own));
    OK(aclrtSetCurrentContext(primary));
    OK(aclrtDestroyEvent(event));
});

// aclrtSynchronizeDevice means the streams of the thread's context. Source: runtime, src/runtime/api/impl/api_impl.cc:3975.
const Behaviour device_sync("synchronize-device-is-of-the-context", [](const Rank &me) {
    const World world(me, false);
    aclrtContext primary = nullptr;
    aclrtContext own = nullptr;
    OK(aclrtGetCurrentContext(&primary));
    sleep_in_stream(world.stream, 400);
    OK(aclrtCreateContext(&own, 0));
    OK(aclrtSynchronizeDeviceWithTimeout(50));
    OK(aclrtSetCurrentContext(primary));
    RETURNS(507046, aclrtSynchronizeDeviceWithTimeout(20));
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyContext(own));
});

// --- failures

// A wait that fails its stream (107019) stands for a failed task.
class Failing {
public:
    Failing() {
        OK(aclrtCreateStream(&busy_));
        OK(aclrtCreateEventExWithFlag(&event_, ACL_EVENT_SYNC));
    }
    void on(aclrtStream stream) const {
        sleep_in_stream(busy_, 300);
        OK(aclrtRecordEvent(event_, busy_));
        OK(aclrtStreamWaitEventWithTimeout(stream, event_, 50));
    }
    ~Failing() {
        aclrtDestroyStream(busy_);
        aclrtDestroyEvent(event_);
    }
    Failing(const Failing &) = delete;
    Failing &operator=(const Failing &) = delete;

private:
    aclrtStream busy_ = nullptr;
    aclrtEvent event_ = nullptr;
};

// By default a stream goes on after a failed task, and the first synchronisation tells the error and forgets it. A query, an event
// and what waits for it know nothing. Source: runtime, src/runtime/core/src/stream/stream.cc:1790 (GetError), :2119 (Query),
// core/src/event/event.cc:931 (WaitTask has no GetError).
const Behaviour told_once("failure-is-told-once", [](const Rank &me) {
    const World world(me, false);
    const Failing failing;
    aclrtEvent event = nullptr;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    ran = 0;
    failing.on(world.stream);
    OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtSynchronizeEvent(event));
    CHECK(ran == 1);
    for (int i = 0; i < 1000 && status != ACL_STREAM_STATUS_COMPLETE; i++) {
        OK(aclrtStreamQuery(world.stream, &status));
        pause_ms(1);
    }
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    RETURNS(107019, aclrtSynchronizeStream(world.stream));
    OK(aclrtSynchronizeStream(world.stream));
    OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
    OK(aclrtSynchronizeStream(world.stream));
    CHECK(ran == 2);
    failing.on(world.stream);
    RETURNS(107019, aclrtSynchronizeDevice()); // that counts, too
    OK(aclrtSynchronizeStream(world.stream));
    OK(aclrtDestroyEvent(event));
});

// ACL_STOP_ON_FAILURE is a mode of the whole context: the first failed task of any of its streams drops what this stream has
// queued, and from then on every stream of the context is refused everything. Source: runtime,
// src/runtime/core/src/stream/stream.cc:4302 (SetFailMode), :4335 (EnterFailureAbort), :1772, core/src/context/context.cc:2889
// (CheckStatus), :2924 (CheckTaskSend).
const Behaviour stop_context("stop-on-failure-stops-the-context", [](const Rank &me) {
    const World world(me, false);
    const Failing failing;
    const Vector<uint32_t> data(16);
    aclrtStream stopping = nullptr;
    aclrtStream other = nullptr;
    aclrtEvent event = nullptr;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    OK(aclrtCreateStream(&stopping));
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtSetStreamFailureMode(stopping, ACL_STOP_ON_FAILURE));
    ran = 0;
    failing.on(other); // not the stream that the mode was set for
    OK(aclrtLaunchHostFunc(other, count_run, nullptr));
    OK(aclrtRecordEvent(event, other));
    RETURNS(107019, aclrtSynchronizeStream(other));
    for (const aclrtStream stream : {world.stream, stopping, other}) {
        for (int again = 0; again < 2; again++) {
            RETURNS(107019, aclrtSynchronizeStream(stream));
            RETURNS(107019, aclrtStreamQuery(stream, &status));
            RETURNS(107019, aclrtLaunchHostFunc(stream, count_run, nullptr));
        }
        RETURNS(107019, aclrtRecordEvent(event, stream));
        RETURNS(107019, aclrtMemsetAsync(data.at(), 64, 0, 64, stream));
    }
    RETURNS(107019, aclrtSynchronizeDevice());
    RETURNS(107019, aclrtSynchronizeEvent(event));
    RETURNS(107019, aclrtQueryEventStatus(event, &recorded));
    CHECK(ran == 0);
    OK(aclrtMemset(data.at(), 64, 1, 64)); // goes to the driver: runtime, src/runtime/api/impl/api_impl.cc:2745
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(stopping));
    OK(aclrtDestroyStream(other));
});

// A stream that waits for a stream that stopped hangs, but who synchronises with it learns of the failure.
// Source: runtime, src/runtime/core/src/stream/stream.cc:1976 (CheckContextStatus while it waits).
const Behaviour stop_waiter("stop-is-seen-while-waiting", [](const Rank &me) {
    const World world(me, false);
    const Failing failing;
    aclrtStream other = nullptr;
    aclrtEvent event = nullptr;
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
    failing.on(world.stream);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    RETURNS(107019, aclrtSynchronizeStream(other));
    OK(aclrtDestroyStream(other)); // by force, as the context has failed
    OK(aclrtDestroyEvent(event));
});

// An abort of the stream does not clear the failure of its context, only aclrtDeviceTaskAbort does; the mode stays.
// Source: runtime, src/runtime/core/src/stream/stream.cc:4597 (abort), core/src/context/context_manage.cc:340 (device).
const Behaviour stop_recovery("stop-is-ended-by-device-task-abort", [](const Rank &me) {
    const World world(me, false);
    for (int round = 0; round < 2; round++) {
        const Failing failing;
        if (round == 0) {
            OK(aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
        }
        failing.on(world.stream);
        RETURNS(107019, aclrtSynchronizeStream(world.stream));
        OK(aclrtStreamAbort(world.stream));
        RETURNS(107019, aclrtSynchronizeStream(world.stream));
        OK(aclrtDeviceTaskAbort(0, 0));
        OK(aclrtSynchronizeStream(world.stream));
        OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
        world.synchronize();
    }
});

// Operations that HCCL runs on the AI CPUs put the whole context into stop mode, as the streams that HCCL makes for them there have that
// mode: on A3, unless HCCL_OP_EXPANSION_MODE is HOST; on A2 if it is AI_CPU; on both in groups. Source: hcomm, src/legacy/ascend910:
// platform/common/externalinput.cc:1689, framework/communicator/impl/hccl_communicator_host.cc:4173, 7529, 7547 and 9868; runtime,
// src/runtime/api/api_c_stream.cc:450, src/runtime/core/src/stream/stream.cc:4303.
void fails_behind_an_operation(const Rank &me, bool group, bool stops) {
    const World world(me);
    const Failing failing;
    const Vector<float> out(8);
    const Vector<float> in(8);
    aclrtStream other = nullptr;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtCreateStream(&other));
    const uint32_t peer = 1 - me.rank;
    if (group) {
        OK(HcclGroupStart());
        OK(HcclSend(out.at(), 8, HCCL_DATA_TYPE_FP32, peer, world.comm, world.stream));
        OK(HcclRecv(in.at(), 8, HCCL_DATA_TYPE_FP32, peer, world.comm, world.stream));
        OK(HcclGroupEnd());
    } else {
        OK(HcclAllReduce(out.at(), in.at(), 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, world.stream));
    }
    world.synchronize();
    failing.on(other);
    RETURNS(107019, aclrtSynchronizeStream(other));
    const aclError expected = stops ? 107019 : 0;
    for (const aclrtStream stream : {world.stream, other}) {
        RETURNS(expected, aclrtStreamQuery(stream, &status));
        RETURNS(expected, aclrtMemsetAsync(in.at(), 32, 0, 32, stream));
        RETURNS(expected, aclrtSynchronizeStream(stream));
    }
    OK(aclrtDeviceTaskAbort(static_cast<int32_t>(me.rank), 0));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtDestroyStream(other));
}

void goes_on_behind_a_collective(const Rank &me) { fails_behind_an_operation(me, false, false); }
void stops_behind_a_collective(const Rank &me) { fails_behind_an_operation(me, false, true); }
void stops_behind_a_group(const Rank &me) { fails_behind_an_operation(me, true, true); }

const Behaviour a2_goes_on("collectives-leave-the-context-of-A2", Ranks::Threads, 2, goes_on_behind_a_collective);
const Behaviour a2_stops("collectives-on-AI-CPUs-stop-the-context-of-A2", Ranks::Threads, 2, stops_behind_a_collective,
                         {{"HCCL_OP_EXPANSION_MODE", "AI_CPU"}});
const Behaviour a2_group("groups-stop-the-context-of-A2", Ranks::Threads, 2, stops_behind_a_group,
                         {{"ASCEND_MOCK_CANN", "9.0.0"}});
const Behaviour a3_stops("collectives-stop-the-context-of-A3", Ranks::Threads, 2, stops_behind_a_collective,
                         {{"ASCEND_MOCK_SOC", "Ascend910_9391"}});
const Behaviour a3_goes_on("collectives-on-the-host-leave-the-context-of-A3", Ranks::Threads, 2,
                           goes_on_behind_a_collective,
                           {{"ASCEND_MOCK_SOC", "Ascend910_9391"}, {"HCCL_OP_EXPANSION_MODE", "HOST"}});
const Behaviour a3_group("groups-stop-the-context-of-A3-anyway", Ranks::Threads, 2, stops_behind_a_group,
                         {{"ASCEND_MOCK_SOC", "Ascend910_9391"},
                          {"ASCEND_MOCK_CANN", "9.0.0"},
                          {"HCCL_OP_EXPANSION_MODE", "HOST"}});

// Source: hcomm, externalinput.cc:1735.
const Behaviour wrong_mode("wrong-expansion-mode", Ranks::Threads, 1, [](const Rank &me) {
    const World world(me, false);
    HcclRootInfo info;
    RETURNS(HCCL_E_PARA, HcclGetRootInfo(&info));
}, {{"HCCL_OP_EXPANSION_MODE", "GPU"}});

// Another context of the device goes on. Source: runtime, docs/zh/quick_start/Runtime_programming_model.md (failures are those of a
// context), src/runtime/core/inc/context/context.hpp:418.
const Behaviour stop_other("stop-leaves-other-contexts-alone", [](const Rank &me) {
    const World world(me, false);
    const Failing failing;
    aclrtContext primary = nullptr;
    aclrtContext own = nullptr;
    aclrtStream stream = nullptr;
    OK(aclrtGetCurrentContext(&primary));
    OK(aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
    failing.on(world.stream);
    RETURNS(107019, aclrtSynchronizeStream(world.stream));
    OK(aclrtCreateContext(&own, 0));
    OK(aclrtCreateStream(&stream));
    ran = 0;
    OK(aclrtLaunchHostFunc(stream, count_run, nullptr));
    OK(aclrtSynchronizeStream(stream));
    CHECK(ran == 1);
    OK(aclrtDestroyContext(own));
    OK(aclrtSetCurrentContext(primary));
});

// The mode is set once: the same again is a success, back to continue is not supported, of the value the lowest bit counts.
// Source: runtime, src/runtime/api/impl/api_impl.cc:2004-2031.
const Behaviour mode_once("failure-mode-is-set-once", [](const Rank &me) {
    const World world(me, false);
    const Failing failing;
    OK(aclrtSetStreamFailureMode(world.stream, ACL_CONTINUE_ON_FAILURE));
    OK(aclrtSetStreamFailureMode(world.stream, 2));
    OK(aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
    OK(aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
    RETURNS(207000, aclrtSetStreamFailureMode(world.stream, ACL_CONTINUE_ON_FAILURE));
    OK(aclrtSetStreamFailureMode(nullptr, ACL_STOP_ON_FAILURE));
    failing.on(world.stream);
    RETURNS(107019, aclrtSynchronizeStream(world.stream));
    RETURNS(207000, aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
});

// The default stream of the 910A takes no mode. Source: runtime, docs/zh/api_ref/06_stream_management.md, aclrtSetStreamFailureMode.
const Behaviour mode_910a("failure-mode-910A-default-stream", [](const Rank &me) {
    const World world(me, false);
    RETURNS(207000, aclrtSetStreamFailureMode(nullptr, ACL_STOP_ON_FAILURE));
    OK(aclrtSetStreamFailureMode(world.stream, ACL_STOP_ON_FAILURE));
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
