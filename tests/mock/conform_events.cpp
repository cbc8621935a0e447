// The ACL runtime as programs see it: events, callbacks, host functions.

#include <atomic>

#include <pthread.h>

#include "conform.h"

using namespace harness;

namespace {

aclrtEvent make_event(uint32_t flags = ACL_EVENT_SYNC) {
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventExWithFlag(&event, flags));
    return event;
}

int recorded(aclrtEvent event) {
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    OK(aclrtQueryEventStatus(event, &status));
    return status;
}

// --- events

// aclrtQueryEventStatus: NOT_READY 0, COMPLETE 1; an event that was never recorded is complete.
const Behaviour never_recorded("event-never-recorded-is-complete", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    CHECK(recorded(event) == 1);
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtStreamWaitEvent(world.stream, event));
    world.synchronize();
    OK(aclrtDestroyEvent(event));
});

// The recorded status counts the other way round than that of aclrtQueryEvent (COMPLETE 0).
const Behaviour inverse("event-status-enums-are-inverse", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    OK(aclrtCreateEvent(&event));
    sleep_in_stream(world.stream, 200);
    OK(aclrtRecordEvent(event, world.stream));
    aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
    OK(aclrtQueryEvent(event, &status));
    CHECK(static_cast<int>(status) == 1 && recorded(event) == 0);
    world.synchronize();
    OK(aclrtQueryEvent(event, &status));
    CHECK(static_cast<int>(status) == 0 && recorded(event) == 1);
    OK(aclrtDestroyEvent(event));
});

// Events of the Ex kind have no ResetEvent, QueryEvent and QueryEventWaitStatus: 207000.
const Behaviour extended("event-ex-lacks-reset-and-query", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
    aclrtEventWaitStatus waits = ACL_EVENT_WAIT_STATUS_RESERVED;
    RETURNS(207000, aclrtResetEvent(event, world.stream));
    RETURNS(207000, aclrtQueryEvent(event, &status));
    RETURNS(207000, aclrtQueryEventWaitStatus(event, &waits));
    OK(aclrtDestroyEvent(event));
});

// They can be recorded again without a reset; the status is that of the latest record.
const Behaviour rerecord("event-is-recorded-again", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    OK(aclrtRecordEvent(event, world.stream));
    world.synchronize();
    CHECK(recorded(event) == 1);
    sleep_in_stream(world.stream, 200);
    OK(aclrtRecordEvent(event, world.stream));
    CHECK(recorded(event) == 0);
    OK(aclrtSynchronizeEvent(event));
    CHECK(recorded(event) == 1);
    OK(aclrtDestroyEvent(event));
});

// A wait binds the record that is the latest when it is called, not a later one.
std::atomic<int> step{0};
const Behaviour binds_latest("event-wait-binds-the-latest-record", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    sleep_in_stream(world.stream, 100);
    OK(aclrtLaunchHostFunc(world.stream, [](void *) { step = 1; }, nullptr));
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtLaunchHostFunc(other, [](void *) { step = step == 1 ? 2 : -1; }, nullptr));
    sleep_in_stream(world.stream, 1500);
    OK(aclrtRecordEvent(event, world.stream));
    const double begin = now();
    OK(aclrtSynchronizeStream(other));
    CHECK(step == 2 && now() - begin < 1.2);
    world.synchronize();
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyEvent(event));
});

// A record takes in what was queued before it.
const Behaviour snapshot("event-record-is-a-snapshot", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    OK(aclrtRecordEvent(event, world.stream));
    sleep_in_stream(world.stream, 2000);
    const double begin = now();
    OK(aclrtSynchronizeEvent(event));
    CHECK(now() - begin < 1.5);
    world.synchronize();
    OK(aclrtDestroyEvent(event));
});

// aclrtDestroyEvent is asynchronous: waits that are queued keep the event.
const Behaviour destroyed("event-destroyed-while-waited-for", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    sleep_in_stream(world.stream, 100);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtDestroyEvent(event));
    RETURNS(107017, aclrtRecordEvent(event, world.stream));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtDestroyStream(other));
});

// Recorded by one host thread, waited for by another (torch_npu's task queue).
const Behaviour threads("event-between-threads", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    sleep_in_stream(world.stream, 100);
    OK(aclrtRecordEvent(event, world.stream));
    on_thread([&] {
        OK(aclrtSetDevice(0));
        aclrtStream other = nullptr;
        OK(aclrtCreateStream(&other));
        OK(aclrtStreamWaitEvent(other, event));
        OK(aclrtSynchronizeStream(other));
        CHECK(recorded(event) == 1);
        OK(aclrtDestroyStream(other));
    });
    OK(aclrtDestroyEvent(event));
});

// aclrtSynchronizeEventWithTimeout: expiry is 507047, -1 waits for ever, 0 is refused. Source: runtime,
// src/runtime/api/impl/api_error.cc:1769.
const Behaviour sync_timeout("event-synchronize-timeout", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent event = make_event();
    sleep_in_stream(world.stream, 200);
    OK(aclrtRecordEvent(event, world.stream));
    RETURNS(507047, aclrtSynchronizeEventWithTimeout(event, 10));
    OK(aclrtSynchronizeEventWithTimeout(event, -1));
    RETURNS(107000, aclrtSynchronizeEventWithTimeout(event, 0));
    RETURNS(107000, aclrtSynchronizeEventWithTimeout(event, -2));
    OK(aclrtDestroyEvent(event));
});

// Elapsed time needs two records (507000), that the host was told of their end (107006) and ACL_EVENT_TIME_LINE; it is negative
// the other way round. The end is told by a synchronisation or a query of the event, not by the time that has passed. Source:
// runtime, src/runtime/core/src/event/event.cc:1247 and :880 (QueryEventTask), core/src/common/errcode_manage.cc:197; the flag:
// docs, aclrtEventElapsedTime.
const Behaviour elapsed("event-elapsed-time", [](const Rank &me) {
    const World world(me, false);
    const aclrtEvent start = make_event(ACL_EVENT_TIME_LINE);
    const aclrtEvent end = make_event(ACL_EVENT_TIME_LINE);
    const aclrtEvent timeless = make_event(ACL_EVENT_SYNC);
    float ms = -1;
    RETURNS(507000, aclrtEventElapsedTime(&ms, start, end));
    OK(aclrtRecordEvent(start, world.stream));
    sleep_in_stream(world.stream, 100);
    OK(aclrtRecordEvent(end, world.stream));
    RETURNS(107006, aclrtEventElapsedTime(&ms, start, end));
    world.synchronize();
    OK(aclrtEventElapsedTime(&ms, start, end));
    CHECK(ms >= 100 && ms < 5000);
    OK(aclrtEventElapsedTime(&ms, end, start));
    CHECK(ms <= -100);

    OK(aclrtRecordEvent(end, world.stream));
    OK(aclrtRecordEvent(timeless, world.stream));
    pause_ms(100);
    RETURNS(107006, aclrtEventElapsedTime(&ms, start, end));
    while (recorded(end) == 0) {
        std::this_thread::yield();
    }
    OK(aclrtEventElapsedTime(&ms, start, end));
    world.synchronize();
    RETURNS(107006, aclrtEventElapsedTime(&ms, start, timeless));
    OK(aclrtDestroyEvent(start));
    OK(aclrtDestroyEvent(end));
    OK(aclrtDestroyEvent(timeless));
});

// An event of the older kinds that was never recorded is not ready; a stream waits for the record to come if the event has
// ACL_EVENT_SYNC, else the wait is refused. Source: runtime, src/runtime/core/src/event/event.cc:1189 and :586.
const Behaviour old_unrecorded("event-of-old-kind-never-recorded", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent plain = nullptr;
    aclrtEvent flagged = nullptr;
    aclrtStream other = nullptr;
    OK(aclrtCreateEvent(&plain));
    OK(aclrtCreateEventWithFlag(&flagged, ACL_EVENT_SYNC));
    OK(aclrtCreateStream(&other));
    CHECK(recorded(plain) == 0 && recorded(flagged) == 0);
    OK(aclrtSynchronizeEvent(plain));
    RETURNS(107000, aclrtStreamWaitEvent(other, plain));
    OK(aclrtStreamWaitEvent(other, flagged));
    RETURNS(507046, aclrtSynchronizeStreamWithTimeout(other, 100));
    OK(aclrtRecordEvent(flagged, world.stream));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyEvent(plain));
    OK(aclrtDestroyEvent(flagged));
});

// An event without ACL_EVENT_SYNC cannot be waited for by a stream, whatever its kind. Source: runtime,
// src/runtime/core/inc/event/event.hpp:133, api/impl/api_error.cc:1418.
const Behaviour no_sync("event-without-sync-flag", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_TIME_LINE));
    RETURNS(207000, aclrtStreamWaitEvent(world.stream, event));
    OK(aclrtDestroyEvent(event));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_TIME_LINE));
    RETURNS(207000, aclrtStreamWaitEvent(world.stream, event));
    OK(aclrtDestroyEvent(event));
});

// Flags must be known ones, and at least one; some stand alone, and not for both calls.
// Source: runtime, src/runtime/api/impl/api_error.cc:1628 (EventCreate), :1653 (EventCreateEx).
const Behaviour flags("event-flags", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    RETURNS(107000, aclrtCreateEventExWithFlag(&event, 0));
    RETURNS(107000, aclrtCreateEventExWithFlag(&event, 0x100));
    RETURNS(107000, aclrtCreateEventExWithFlag(&event, ACL_EVENT_EXTERNAL));
    RETURNS(107000, aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_IPC));
    RETURNS(107000, aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL));
    RETURNS(107000, aclrtCreateEventWithFlag(&event, ACL_EVENT_IPC));
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL));
    OK(aclrtDestroyEvent(event));
    RETURNS(100000, aclrtCreateEventExWithFlag(nullptr, ACL_EVENT_SYNC));
});

// aclrtQueryEventWaitStatus of a plain event: COMPLETE 0 once no wait is queued any more.
const Behaviour wait_status("event-wait-status", [](const Rank &me) {
    const World world(me, false);
    aclrtEvent event = nullptr;
    aclrtStream other = nullptr;
    aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
    OK(aclrtCreateEvent(&event));
    OK(aclrtCreateStream(&other));
    sleep_in_stream(world.stream, 200);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtQueryEventWaitStatus(event, &status));
    CHECK(static_cast<int>(status) == 1);
    OK(aclrtSynchronizeStream(other));
    OK(aclrtQueryEventWaitStatus(event, &status));
    CHECK(static_cast<int>(status) == 0);
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyEvent(event));
});

// aclrtSetOpWaitTimeout makes a wait for an event that does not come fail: 107019 at the next synchronisation.
const Behaviour op_wait("op-wait-timeout", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    OK(aclrtSetOpWaitTimeout(1));
    const aclrtEvent event = make_event();
    sleep_in_stream(world.stream, 2500);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEvent(other, event));
    const double begin = now();
    RETURNS(107019, aclrtSynchronizeStream(other));
    CHECK(now() - begin > 0.9 && now() - begin < 2.4);
    OK(aclrtSetOpWaitTimeout(0));
    OK(aclrtSetOpExecuteTimeOut(10));
    world.synchronize();
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyEvent(event));
});

// aclrtStreamWaitEventWithTimeout sets the limit of one wait, in milliseconds; 0 is none.
const Behaviour wait_limit("event-wait-with-timeout", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    const aclrtEvent event = make_event();
    sleep_in_stream(world.stream, 400);
    OK(aclrtRecordEvent(event, world.stream));
    RETURNS(107000, aclrtStreamWaitEventWithTimeout(other, event, -1));
    OK(aclrtStreamWaitEventWithTimeout(other, event, 0));
    OK(aclrtSynchronizeStream(other));
    sleep_in_stream(world.stream, 400);
    OK(aclrtRecordEvent(event, world.stream));
    OK(aclrtStreamWaitEventWithTimeout(other, event, 50));
    RETURNS(107019, aclrtSynchronizeStream(other));
    world.synchronize();
    OK(aclrtDestroyStream(other));
    OK(aclrtDestroyEvent(event));
});

// --- host functions and callbacks

// A host function runs in stream order, on a thread of the runtime.
std::atomic<pthread_t> runner{0};
const Behaviour host_function("host-function-in-order", [](const Rank &me) {
    const World world(me, false);
    const Vector<uint32_t> data(4, [](size_t) { return 1U; });
    OK(aclrtMemsetAsync(data.at(), 16, 0xff, 16, world.stream));
    OK(aclrtLaunchHostFunc(world.stream, [](void *at) {
        runner = pthread_self();
        step = *static_cast<uint32_t *>(at) == 0xffffffff ? 1 : -1;
    }, data.at()));
    world.synchronize();
    CHECK(step == 1 && !pthread_equal(runner, pthread_self()));
    RETURNS(100000, aclrtLaunchHostFunc(world.stream, nullptr, nullptr));
});

// A host function that would wait for its own stream is told so instead of waiting for ever.
aclrtStream own = nullptr;
const Behaviour host_own("host-function-cannot-wait-for-its-stream", [](const Rank &me) {
    const World world(me, false);
    own = world.stream;
    OK(aclrtLaunchHostFunc(own, [](void *) {
        aclrtSetDevice(0);
        step = aclrtSynchronizeStream(own);
        aclrtResetDevice(0);
    }, nullptr));
    world.synchronize();
    CHECK(step == 107000);
});

// A callback needs a thread that is subscribed to the stream: 107015.
const Behaviour no_subscription("callback-needs-a-subscription", [](const Rank &me) {
    const World world(me, false);
    RETURNS(107015, aclrtLaunchCallback([](void *) {}, nullptr, ACL_CALLBACK_BLOCK, world.stream));
});

// It runs on that thread, while it is in aclrtProcessReport.
const Behaviour callback_thread("callback-runs-on-the-subscribed-thread", [](const Rank &me) {
    const World world(me, false);
    std::atomic<bool> stop{false};
    std::thread reporter([&] {
        while (!stop) {
            const int code = aclrtProcessReport(20);
            CHECK(code == 0 || code == 507012 || code == 107012);
        }
    });
    const auto id = static_cast<uint64_t>(reporter.native_handle());
    OK(aclrtSubscribeReport(id, world.stream));
    OK(aclrtLaunchCallback([](void *) { runner = pthread_self(); }, nullptr, ACL_CALLBACK_BLOCK, world.stream));
    world.synchronize();
    CHECK(pthread_equal(runner, reporter.native_handle()));
    OK(aclrtUnSubscribeReport(id, world.stream));
    stop = true;
    reporter.join();
});

// A thread without a subscription: 107012; nothing to do within the time: 507012.
const Behaviour report_timeout("process-report-codes", [](const Rank &me) {
    const World world(me, false);
    RETURNS(107012, aclrtProcessReport(10));
    const auto id = static_cast<uint64_t>(pthread_self());
    OK(aclrtSubscribeReport(id, world.stream));
    const double begin = now();
    RETURNS(507012, aclrtProcessReport(100));
    CHECK(now() - begin > 0.09);
    OK(aclrtUnSubscribeReport(id, world.stream));
});

// A stream has one thread at a time (107011); ending what is not there is 107012.
const Behaviour one_thread("stream-has-one-subscriber", [](const Rank &me) {
    const World world(me, false);
    const auto id = static_cast<uint64_t>(pthread_self());
    OK(aclrtSubscribeReport(id, world.stream));
    RETURNS(107011, aclrtSubscribeReport(id + 1, world.stream));
    RETURNS(107012, aclrtUnSubscribeReport(id + 1, world.stream));
    OK(aclrtUnSubscribeReport(id, world.stream));
    // A subscription ends with its stream, whatever handle the next stream has.
    for (int i = 0; i < 100; i++) {
        aclrtStream stream = nullptr;
        OK(aclrtCreateStream(&stream));
        OK(aclrtSubscribeReport(id, stream));
        OK(aclrtDestroyStream(stream));
    }
});

// ACL_CALLBACK_BLOCK holds back what follows until the callback has run, ACL_CALLBACK_NO_BLOCK does not.
const Behaviour blocking("callback-block-and-no-block", [](const Rank &me) {
    const World world(me, false);
    const auto id = static_cast<uint64_t>(pthread_self());
    OK(aclrtSubscribeReport(id, world.stream));
    for (const auto type : {ACL_CALLBACK_NO_BLOCK, ACL_CALLBACK_BLOCK}) {
        step = 0;
        OK(aclrtLaunchCallback([](void *) { step += 10; }, nullptr, type, world.stream));
        OK(aclrtLaunchHostFunc(world.stream, [](void *) { step += 1; }, nullptr));
        const int code = aclrtSynchronizeStreamWithTimeout(world.stream, 300);
        CHECK(code == (type == ACL_CALLBACK_BLOCK ? 507046 : 0));
        CHECK(step == (type == ACL_CALLBACK_BLOCK ? 0 : 1));
        OK(aclrtProcessReport(1000));
        world.synchronize();
        CHECK(step == 11);
    }
    OK(aclrtUnSubscribeReport(id, world.stream));
});

// One thread may serve several streams.
const Behaviour several_streams("one-thread-serves-streams", [](const Rank &me) {
    const World world(me, false);
    aclrtStream other = nullptr;
    OK(aclrtCreateStream(&other));
    const auto id = static_cast<uint64_t>(pthread_self());
    OK(aclrtSubscribeReport(id, world.stream));
    OK(aclrtSubscribeReport(id, other));
    step = 0;
    OK(aclrtLaunchCallback([](void *) { step++; }, nullptr, ACL_CALLBACK_BLOCK, world.stream));
    OK(aclrtLaunchCallback([](void *) { step++; }, nullptr, ACL_CALLBACK_BLOCK, other));
    OK(aclrtProcessReport(2000));
    OK(aclrtProcessReport(2000));
    OK(aclrtSynchronizeDevice());
    CHECK(step == 2);
    OK(aclrtUnSubscribeReport(id, other));
    OK(aclrtUnSubscribeReport(id, world.stream));
    OK(aclrtDestroyStream(other));
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
