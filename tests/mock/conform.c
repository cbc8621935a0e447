/* The core of the runtime from plain C (C99), with acl/acl.h alone: one named behaviour per case, as conform_*.cpp. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

static int failures = 0;
static const char *current = "";

static void check(int good, const char *what, int line) {
    if (!good) {
        const char *message = aclGetRecentErrMsg();
        printf("%s: line %d: not true: %s (%s)\n", current, line, what, message != NULL ? message : "");
        failures++;
    }
}

#define CHECK(condition) check((condition), #condition, __LINE__)
#define OK(call) CHECK((call) == ACL_SUCCESS)

static aclrtStream stream = NULL;

/* A program has no device before it sets one. */
static void no_device(void) {
    int32_t device = -1;
    void *memory = NULL;
    CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_CONTEXT_NULL);
}

/* A repeated aclInit is 100002 and does no harm. */
static void init_repeat(void) {
    OK(aclInit(NULL));
    CHECK(aclInit(NULL) == ACL_ERROR_REPEAT_INITIALIZE);
}

/* Devices from 0 to their number. */
static void devices(void) {
    uint32_t count = 0;
    OK(aclrtGetDeviceCount(&count));
    CHECK(count >= 1);
    CHECK(aclrtSetDevice((int32_t)count) == ACL_ERROR_RT_INVALID_DEVICEID);
    OK(aclrtSetDevice(0));
}

/* Set and reset are counted. */
static void counted(void) {
    int32_t device = -1;
    OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    OK(aclrtGetDevice(&device));
    CHECK(device == 0);
}

/* The processor has a name, and cores. */
static void processor(void) {
    int64_t cores = 0;
    CHECK(aclrtGetSocName() != NULL && strncmp(aclrtGetSocName(), "Ascend", 6) == 0);
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores));
    CHECK(cores > 0);
}

/* Packages have versions, in one text and in parts. */
static void versions(void) {
    aclCANNPackageVersion version;
    int32_t major = 0, minor = 0, patch = 0;
    OK(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version));
    CHECK(version.version[0] != '\0' && version.majorVersion[0] != '\0');
    OK(aclrtGetVersion(&major, &minor, &patch));
    CHECK(major == 1 && minor >= 13);
}

/* The recent message names the call and is handed over once. */
static void message(void) {
    const char *text;
    CHECK(aclrtSetDevice(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
    text = aclGetRecentErrMsg();
    CHECK(text != NULL && strstr(text, "aclrtSetDevice") != NULL);
    CHECK(aclGetRecentErrMsg() == NULL);
}

/* Device memory is aligned to 64 bytes and freed once. */
static void allocation(void) {
    void *memory = NULL;
    OK(aclrtMalloc(&memory, 100, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK((uintptr_t)memory % 64 == 0);
    OK(aclrtFree(memory));
    CHECK(aclrtFree(memory) == ACL_ERROR_RT_PARAM_INVALID);
}

/* What goes to the device comes back. */
static void copies(void) {
    int out[4] = {1, 2, 3, 4}, in[4] = {0, 0, 0, 0};
    void *memory = NULL;
    OK(aclrtMalloc(&memory, sizeof(out), ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(memory, sizeof(out), out, sizeof(out), ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(in, sizeof(in), memory, sizeof(in), ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(memcmp(in, out, sizeof(in)) == 0);
    OK(aclrtFree(memory));
}

/* A copy larger than its destination is 107000. */
static void bounds(void) {
    int host[4];
    void *memory = NULL;
    OK(aclrtMalloc(&memory, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(host, 8, memory, 16, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFree(memory));
}

/* The sides of a copy are what its kind says. */
static void sides(void) {
    int host[4] = {0, 0, 0, 0};
    CHECK(aclrtMemcpy(host, 16, host, 16, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_ERROR_RT_PARAM_INVALID);
}

/* Free memory follows allocations. */
static void information(void) {
    size_t before = 0, after = 0, total = 0;
    void *memory = NULL;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
    OK(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
    CHECK(before - after >= 1 << 20 && total >= before);
    OK(aclrtFree(memory));
}

/* Tasks of a stream run in order. */
static void order(void) {
    unsigned char host[8];
    void *memory = NULL;
    memset(host, 0, sizeof(host));
    OK(aclrtMalloc(&memory, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemsetAsync(memory, sizeof(host), 1, sizeof(host), stream));
    OK(aclrtMemsetAsync(memory, sizeof(host), 2, 4, stream));
    OK(aclrtMemcpyAsync(host, sizeof(host), memory, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(host[0] == 2 && host[7] == 1);
    OK(aclrtFree(memory));
}

/* A stream that has nothing to do is complete; a limit of time of 0 is refused. */
static void idle(void) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtStreamQuery(stream, &status));
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, 0) == ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtSynchronizeStreamWithTimeout(stream, 1000));
}

/* A handle that is not a stream is refused. */
static void handles(void) {
    int none = 0;
    CHECK(aclrtSynchronizeStream(&none) == ACL_ERROR_RT_INVALID_HANDLE);
}

/* An event that was never recorded is complete. */
static void event_new(void) {
    aclrtEvent event = NULL;
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtQueryEventStatus(event, &status));
    CHECK(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtDestroyEvent(event));
}

/* Recorded, waited for and synchronised; the Ex kind has no reset. */
static void event_use(void) {
    aclrtEvent event = NULL;
    aclrtStream other = NULL;
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtSynchronizeEvent(event));
    CHECK(aclrtResetEvent(event, stream) == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(other));
}

static void set_flag(void *flag) { *(int *)flag = 1; }

/* A host function runs in its turn; a callback needs a subscribed thread. */
static void host_work(void) {
    int flag = 0;
    OK(aclrtLaunchHostFunc(stream, set_flag, &flag));
    OK(aclrtSynchronizeStream(stream));
    CHECK(flag == 1);
    CHECK(aclrtLaunchCallback(set_flag, &flag, ACL_CALLBACK_BLOCK, stream) == ACL_ERROR_RT_STREAM_NO_CB_REG);
}

/* Contexts become current when they are created. */
static void contexts(void) {
    aclrtContext before = NULL, made = NULL, now = NULL;
    OK(aclrtGetCurrentContext(&before));
    OK(aclrtCreateContext(&made, 0));
    OK(aclrtGetCurrentContext(&now));
    CHECK(now == made);
    OK(aclrtSetCurrentContext(before));
    OK(aclrtDestroyContext(made));
}

/* Settings are kept: system parameters and compile options. */
static void settings(void) {
    int64_t value = -1;
    char text[16];
    OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK(value == 1);
    OK(aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable"));
    OK(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, sizeof(text)));
    CHECK(strcmp(text, "disable") == 0);
}

/* Reserved addresses are memory where physical memory is mapped. */
static void virtual_memory(void) {
    const size_t bytes = (size_t)2 << 20;
    aclrtPhysicalMemProp prop;
    aclrtDrvMemHandle handle = NULL;
    void *address = NULL;
    memset(&prop, 0, sizeof(prop));
    prop.memAttr = ACL_HBM_MEM_HUGE;
    prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    OK(aclrtReserveMemAddress(&address, 2 * bytes, 0, NULL, 1));
    OK(aclrtMallocPhysical(&handle, bytes, &prop, 0));
    OK(aclrtMapMem(address, bytes, 0, handle, 0));
    OK(aclrtMemset(address, bytes, 1, bytes));
    OK(aclrtUnmapMem(address));
    CHECK(aclrtMemset(address, bytes, 1, bytes) == ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(address));
}

/* aclFinalize ends it for the process; a second one is 100037. */
static void finalize(void) {
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    CHECK(aclFinalize() == ACL_ERROR_REPEAT_FINALIZE);
}

static void make_stream(void) { OK(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH)); }

struct behaviour {
    const char *name;
    void (*run)(void);
};

/* In this order, in one process. */
static const struct behaviour BEHAVIOURS[] = {
    {"no-device", no_device}, {"init-repeat", init_repeat},
    {"devices", devices},     {"counted", counted},
    {"processor", processor}, {"versions", versions},
    {"message", message},     {"allocation", allocation},
    {"copies", copies},       {"bounds", bounds},
    {"sides", sides},         {"information", information},
    {"stream", make_stream},  {"order", order},
    {"idle", idle},           {"handles", handles},
    {"event-new", event_new}, {"event-use", event_use},
    {"host-work", host_work}, {"contexts", contexts},
    {"settings", settings},   {"virtual", virtual_memory},
    {"finalize", finalize},
};

int main(void) {
    const size_t count = sizeof(BEHAVIOURS) / sizeof(BEHAVIOURS[0]);
    size_t i;
    for (i = 0; i < count; i++) {
        const int before = failures;
        current = BEHAVIOURS[i].name;
        BEHAVIOURS[i].run();
        printf("%-28s %s\n", current, failures == before ? "ok" : "FAILED");
    }
    printf("%zu behaviours\n", count);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
