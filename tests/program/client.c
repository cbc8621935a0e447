// A C program for ACL, as somebody else would write it: nothing of adasum is used. It fills device memory on one
// stream, copies it on another, ordered by an event, and reads it back. "AscendCL": stream, event, memory.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

enum { BYTES = 1 << 20, BEGINNING = 100 };

static void must(aclError code, const char *what) {
    if (code != ACL_SUCCESS) {
        fprintf(stderr, "%s: %d %s\n", what, code, aclGetRecentErrMsg());
        exit(1);
    }
}
#define MUST(call) must(call, #call)

static void check(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "wrong: %s\n", what);
        exit(1);
    }
}
#define CHECK(condition) check(condition, #condition)

// What goes wrong is told by a code, and by a sentence to the thread that made the call.
static void mistakes(void *device) {
    int32_t none = -1;
    CHECK(aclInit(NULL) == ACL_ERROR_REPEAT_INITIALIZE);
    CHECK(aclrtSetDevice(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(aclGetRecentErrMsg() != NULL);
    CHECK(aclrtMemcpy(device, 4, &none, 8, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS);
}

int main(void) {
    unsigned char *host = malloc(BYTES);
    void *first = NULL, *second = NULL;
    aclrtStream writer = NULL, reader = NULL;
    aclrtEvent written = NULL;
    int32_t device = -1;
    size_t i, wrong = 0;

    MUST(aclInit(NULL));
    // "aclrtGetDevice": without aclrtSetDevice a thread has no device.
    CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
    MUST(aclrtSetDevice(0));
    MUST(aclrtGetDevice(&device));
    CHECK(device == 0);

    MUST(aclrtMalloc(&first, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtMalloc(&second, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY));
    MUST(aclrtCreateStream(&writer));
    MUST(aclrtCreateStream(&reader));
    MUST(aclrtCreateEventExWithFlag(&written, ACL_EVENT_SYNC));

    MUST(aclrtMemsetAsync(first, BYTES, 7, BYTES, writer));
    MUST(aclrtMemsetAsync(first, BYTES, 9, BEGINNING, writer));
    MUST(aclrtRecordEvent(written, writer));
    MUST(aclrtStreamWaitEvent(reader, written));
    MUST(aclrtMemcpyAsync(second, BYTES, first, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, reader));
    MUST(aclrtSynchronizeStream(reader));
    MUST(aclrtMemcpy(host, BYTES, second, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (i = 0; i < BYTES; i++) {
        wrong += host[i] != (i < BEGINNING ? 9 : 7);
    }
    CHECK(wrong == 0);
    mistakes(first);

    MUST(aclrtDestroyEvent(written));
    MUST(aclrtDestroyStream(reader));
    MUST(aclrtDestroyStream(writer));
    MUST(aclrtFree(second));
    MUST(aclrtFree(first));
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    free(host);
    printf("%s: %d bytes right\n", "client.c", BYTES);
    return 0;
}
