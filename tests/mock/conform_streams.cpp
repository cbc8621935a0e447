// The ACL runtime as programs see it: streams, limits of time, abort.

#include <atomic>

#include "conform.h"

using namespace harness;

namespace {

// Priorities go from 0 (highest) to 7, flags are those of the interface; both can be read back.
const Behaviour stream_config("stream-priority-and-flags", [](const Rank &me) {
    const World world(me, false);
    aclrtStream stream = nullptr;
    uint32_t value = 99;
    OK(aclrtCreateStreamWithConfig(&stream, 7, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    OK(aclrtStreamGetPriority(stream, &value));
    CHECK(value == 7);
    OK(aclrtStreamGetFlags(stream, &value));
    CHECK(value == 3);
    OK(aclrtDestroyStream(stream));
    RETURNS(107000, aclrtCreateStreamWithConfig(&stream, 8, 0));
    RETURNS(107000, aclrtCreateStreamWithConfig(&stream, 0, 0x80000000U));
});

// Every stream has an id of its own.
const Behaviour stream_id("stream-id", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    int32_t a = -1;
    int32_t b = -1;
    OK(aclrtStreamGetId(world.stream, &a));
    OK(aclrtStreamGetId(other, &b));
    CHECK(a >= 0 && b >= 0 && a != b);
    OK(aclrtDestroyStream(other));
    RETURNS(107017, aclrtStreamGetId(other, &b));
});

// NULL is the default stream of the current context, which has a handle too.
const Behaviour stream_default("default-stream", [](const Rank &me) {
    const World world(me, false);
    aclrtStream stream = nullptr;
    OK(aclrtCtxGetCurrentDefaultStream(&stream));
    CHECK(stream != nullptr);
    sleep_in_stream(nullptr, 200);
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(stream, 10));
    OK(aclrtSynchronizeStream(stream));
});

// A limit of time is -1 (for ever) or more than 0 ms; expiry is 507046 and leaves the stream as it is. 0 is refused: the query
// is for those who do not wait. Source: runtime, src/runtime/api/impl/api_error.cc:1440 (the comment in acl_rt.h errs).
const Behaviour stream_timeout("stream-synchronize-timeout", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 300);
    RETURNS(107000, aclrtSynchronizeStreamWithTimeout(world.stream, 0));
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(world.stream, 20));
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, -1));
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, 1000));
    RETURNS(107000, aclrtSynchronizeStreamWithTimeout(world.stream, 0));
    RETURNS(107000, aclrtSynchronizeStreamWithTimeout(world.stream, -2));
});

// The same for all streams of the context. Source: runtime, src/runtime/api/impl/api_error.cc:3477.
const Behaviour device_timeout("device-synchronize-timeout", [](const Rank &me) {
    const World world(me, false);
    sleep_in_stream(world.stream, 300);
    RETURNS(107000, aclrtSynchronizeDeviceWithTimeout(0));
    RETURNS(507046, aclrtSynchronizeDeviceWithTimeout(20));
    OK(aclrtSynchronizeDevice());
    OK(aclrtSynchronizeDeviceWithTimeout(1000));
});

// Calls that look and do not wait leave the counter of the mock alone.
const Behaviour counted("synchronisations-are-counted", [](const Rank &me) {
    const World world(me, false);
    const uint64_t before = adasum_mock_counter("host_synchronizations");
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtStreamQuery(world.stream, &status));
    RETURNS(107000, aclrtSynchronizeStreamWithTimeout(world.stream, 0));
    CHECK(adasum_mock_counter("host_synchronizations") == before);
    world.synchronize();
    OK(aclrtSynchronizeStreamWithTimeout(world.stream, 5));
    CHECK(adasum_mock_counter("host_synchronizations") == before + 2);
});

// aclrtStreamQuery: COMPLETE 0, NOT_READY 1.
const Behaviour stream_query("stream-query", [](const Rank &me) {
    const World world(me, false);
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    sleep_in_stream(world.stream, 200);
    OK(aclrtStreamQuery(world.stream, &status));
    CHECK(static_cast<int>(status) == 1);
    world.synchronize();
    OK(aclrtStreamQuery(world.stream, &status));
    CHECK(static_cast<int>(status) == 0);
});

// Tasks of a stream run in order, those of two streams beside each other.
const Behaviour stream_order("stream-order-and-overlap", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    const double begin = now();
    sleep_in_stream(world.stream, 2000);
    sleep_in_stream(other, 2000);
    CHECK(now() - begin < 1.5); // enqueueing does not wait
    OK(aclrtSynchronizeDevice());
    CHECK(now() - begin > 1.99);
    OK(aclrtDestroyStream(other));
});

std::atomic<int> ran{0};
void count_run(void *) { ran++; }
// What a thread is told that waits for a busy stream with a counting function behind, when `abort` comes.
template <typename Abort>
int waiter_during(const World &world, const Abort &abort) {
    sleep_in_stream(world.stream, 400);
    OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
    std::atomic<int> code{0};
    std::thread waiter([&] {
        aclrtSetDevice(0);
        code = aclrtSynchronizeStream(world.stream);
    });
    pause_ms(150);
    abort();
    waiter.join();
    return code;
}

// aclrtStreamAbort drops what is queued; who synchronises meanwhile gets 107023, and the stream can be used again.
// Source: runtime, src/runtime/core/src/context/context.cc:2781 and stream.cc:1973.
const Behaviour stream_abort("stream-abort", [](const Rank &me) {
    const World world(me, false);
    CHECK(waiter_during(world, [&] { OK(aclrtStreamAbort(world.stream)); }) == 107023 && ran == 0);
    OK(aclrtLaunchHostFunc(world.stream, count_run, nullptr));
    world.synchronize();
    CHECK(ran == 1);
});

// A queue has 2048 places, of which one stays free. A call for which there is none waits until a task ends, and is refused
// with 107023 if the stream is aborted meanwhile. Source: runtime, src/runtime/config/910_B_93/dev_info_reg.cc:257
// (rtsqDepth), core/src/stream/stream.cc:3467 (IsStreamFull), core/src/engine/stars/stars_engine.cc:294 (AddTaskToStream).
const Behaviour full_queue("full-queue-makes-calls-wait", [](const Rank &me) {
    constexpr int MOST = 2047;
    constexpr int WAITS = -1;
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    const auto launch = [&] { return aclrtLaunchHostFunc(world.stream, count_run, nullptr); };
    for (const bool aborted : {false, true}) {
        aclrtEvent gate = nullptr; // the stream waits for its record, which is still to come
        OK(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC));
        OK(aclrtStreamWaitEvent(world.stream, gate));
        ran = 0;
        for (int i = 1; i < MOST; i++) {
            OK(launch());
        }
        std::atomic<int> code{WAITS};
        std::thread caller([&] {
            aclrtSetDevice(0);
            code = launch();
        });
        pause_ms(300);
        CHECK(code == WAITS && ran == 0);
        if (aborted) {
            OK(aclrtStreamAbort(world.stream));
        } else {
            OK(aclrtRecordEvent(gate, other));
        }
        caller.join();
        world.synchronize();
        CHECK(aborted ? code == 107023 && ran == 0 : code == 0 && ran == MOST);
        OK(aclrtDestroyEvent(gate));
    }
    OK(aclrtDestroyStream(other));
});

// The 910A cannot abort. Source: runtime, docs/zh/api_ref/06_stream_management.md, aclrtStreamAbort, and
// src/runtime/api/impl/api_error.cc:3496 with config/cloud/dev_info_reg.cc for the device.
const Behaviour no_abort("910A-cannot-abort", [](const Rank &me) {
    const World world(me, false);
    RETURNS(207000, aclrtStreamAbort(world.stream));
    RETURNS(207000, aclrtDeviceTaskAbort(0, 0));
}, {{"ASCEND_MOCK_SOC", "Ascend910A"}});

aclrtEvent make_event() {
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    return event;
}

// A stream that waits for a record of an aborted stream waits on, until it is aborted itself or its own limit is over.
// Source: runtime, docs/zh/api_ref/06_stream_management.md, aclrtStreamAbort ("may hang; call this for them too").
const Behaviour abort_waiters("abort-leaves-waiters-hanging", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    aclrtStream limited = nullptr;
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateStream(&limited));
    const aclrtEvent event = make_event();
    sleep_in_stream(world.stream, 300);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtStreamWaitEventWithTimeout(limited, event, 1000));
    OK(aclrtStreamAbort(world.stream));
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(other, 500));
    RETURNS(107019, aclrtSynchronizeStream(limited));
    OK(aclrtStreamAbort(other));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyStream(limited));
    OK(aclrtDestroyEvent(event));
});

// For the host and for waits that are queued later an aborted record is complete: the abort takes it for executed. The event
// can be recorded again. Source: runtime, src/runtime/core/src/stream/stream.cc:4619 (tasks are recycled as done) and
// event.cc:586 (WaitSendCheck).
const Behaviour abort_events("abort-completes-records-for-the-host", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    const aclrtEvent event = make_event();
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    sleep_in_stream(world.stream, 300);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamAbort(world.stream));
    OK(aclrtQueryEventStatus(event, &status));
    CHECK(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtSynchronizeStream(other));
    sleep_in_stream(world.stream, 200);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(other, 20));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyEvent(event));
});

// A host that waits for the event meanwhile gets 107023. Source: runtime, src/runtime/core/src/event/event.cc:931 (WaitTask waits
// for the stream) and stream.cc:1973.
const Behaviour abort_event_wait("abort-ends-waits-for-events", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    sleep_in_stream(world.stream, 400);
    OK(aclrtRecordEvent(event, world.stream));
    std::atomic<int> code{0};
    std::thread waiter([&] { code = aclrtSynchronizeEvent(event); });
    pause_ms(150);
    OK(aclrtStreamAbort(world.stream));
    waiter.join();
    CHECK(code == 107023);
    OK(aclrtDestroyEvent(event));
});

// aclrtDeviceTaskAbort does so for all streams of the device; the code is 107022, the limit of time at most 36 minutes.
// Source: runtime, src/runtime/api/impl/api_error.cc:3499, core/src/context/context_manage.cc:353.
const Behaviour device_abort("device-task-abort", [](const Rank &me) {
    const World world(me, false);
    CHECK(waiter_during(world, [] { OK(aclrtDeviceTaskAbort(0, 1000)); }) == 107022 && ran == 0);
    RETURNS(107001, aclrtDeviceTaskAbort(-1, 0));
    RETURNS(107000, aclrtDeviceTaskAbort(0, 36 * 60 * 1000 + 1));
    RETURNS(107002, aclrtDeviceTaskAbort(5, 0)); // no context there
});

// aclrtDestroyStream waits for the stream, aclrtDestroyStreamForce drops what is queued.
const Behaviour stream_destroy("stream-destroy-and-force", [](const Rank &me) {
    const World world(me, false);
    for (const bool force : {false, true}) {
        ran = 0;
        aclrtStream stream = nullptr;
        OK(aclrtCreateStream(&stream));
        sleep_in_stream(stream, 100);
        OK(aclrtLaunchHostFunc(stream, count_run, nullptr));
        OK(force ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream));
        CHECK(ran == (force ? 0 : 1));
        RETURNS(107017, aclrtSynchronizeStream(stream));
    }
});

// A device has 1984 streams (2048 on the 910A), the default stream of each context among them: 207008. Source: runtime,
// docs/zh/api_ref/06_stream_management.md:84, core/src/common/errcode_manage.cc:94.
void most_streams(size_t most) {
    std::vector<aclrtStream> streams(most - 1);
    aclrtStream more = nullptr;
    OK(aclrtSetDevice(0));
    for (aclrtStream &stream : streams) {
        OK(aclrtCreateStream(&stream));
    }
    FAILS(207008, "that is the most", aclrtCreateStream(&more));
    OK(aclrtDestroyStream(streams.back()));
    OK(aclrtCreateStream(&more));
    OK(aclrtSetDevice(1)); // another device has its own
    OK(aclrtCreateStream(&more));
}
const Behaviour limit("stream-limit", [](const Rank &) { most_streams(1984); });
const Behaviour limit_910a("stream-limit-910A", [](const Rank &) { most_streams(2048); },
                           {{"ASCEND_MOCK_SOC", "Ascend910A"}});

// A record takes one of a device's 65536 events until it has ended, and the call waits while there is none (here for 5 s,
// then 207007). Source: runtime, src/runtime/core/src/event/event.cc:401 (AllocEventIdResource),
// docs/zh/api_ref/07_event_management.md (aclrtCreateEventExWithFlag), core/src/common/errcode_manage.cc:93.
const Behaviour event_limit("event-limit-at-record", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    aclrtEvent gate = nullptr;
    aclrtStream opener = nullptr;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtCreateEventWithFlag(&gate, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
    OK(aclrtCreateStream(&opener));
    std::vector<aclrtStream> streams;
    for (int i = 0; i < 65536; i++) {
        if (i % 1024 == 0) {
            streams.push_back(nullptr);
            OK(aclrtCreateStream(&streams.back()));
            OK(aclrtStreamWaitEvent(streams.back(), gate));
        }
        OK(aclrtRecordEvent(event, streams.back()));
    }
    FAILS(207007, "which is the most", aclrtRecordEvent(event, opener));
    const double begin = now();
    std::thread other([&] {
        OK(aclrtSetDevice(device_of(me)));
        pause_ms(300);
        for (const aclrtStream stream : streams) {
            OK(aclrtStreamAbort(stream));
        }
        OK(aclrtResetDevice(device_of(me)));
    });
    const int code = aclrtRecordEvent(event, opener);
    const double waited = now() - begin;
    other.join();
    CHECK(code == 0 && waited > 0.2 && waited < 4);
    OK(aclrtSynchronizeStream(opener));
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
