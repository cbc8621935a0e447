/* What the programs about the C interface share: checks, ranks as threads, device memory. */
#ifndef CAPI_H
#define CAPI_H

#define _POSIX_C_SOURCE 200809L /* barriers of threads */

#include "adasum.h"

#include <acl/acl.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void fail(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s; last error: %s\n", file, line, what, adasum_last_error());
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fail(__FILE__, __LINE__, #condition " is false");                                                          \
        }                                                                                                              \
    } while (0)

#define OK(call) CHECK((call) == ADASUM_OK)

/* The call fails with `status`, and its sentence holds `words`. */
#define REFUSED(status, words, call)                                                                                   \
    do {                                                                                                               \
        CHECK((call) == (status));                                                                                     \
        if (strstr(adasum_last_error(), (words)) == NULL) {                                                            \
            fail(__FILE__, __LINE__, "not in the sentence: " words);                                                   \
        }                                                                                                              \
    } while (0)

enum { LIMIT = 60000 };

static uint8_t root_info[ADASUM_ROOT_INFO_BYTES];

static inline adasum_status set_number(adasum_options *options, const char *name, long long value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", value);
    return adasum_options_set(options, name, text);
}

/* Options for ranks that are threads of one host: each is a server of its own unless `devices` says otherwise. */
static inline adasum_options *options_with(uint32_t devices) {
    adasum_options *options = NULL;
    OK(adasum_options_create(&options));
    if (devices > 0) {
        OK(set_number(options, "devices_per_server", devices));
    }
    return options;
}

static inline adasum_world *join(uint32_t rank, uint32_t size, uint32_t devices) {
    adasum_options *options = options_with(devices);
    adasum_world *world = NULL;
    OK(adasum_world_from_root_info((int32_t)rank, root_info, sizeof root_info, size, rank, options, &world));
    adasum_options_destroy(options);
    CHECK(aclrtSetDevice((int32_t)rank) == ACL_SUCCESS);
    return world;
}

static inline aclrtStream new_stream(void) {
    aclrtStream stream = NULL;
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
    return stream;
}

static inline void *put(const void *values, size_t bytes) {
    void *memory = NULL;
    CHECK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(memory, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    return memory;
}

static inline void get(void *values, const void *memory, size_t bytes) {
    CHECK(aclrtMemcpy(values, bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
}

static inline void let_go(adasum_reducer *reducer, aclrtStream stream) {
    OK(adasum_reducer_forget_stream(reducer, stream));
    adasum_reducer_destroy(reducer);
}

static inline void leave(adasum_world *world) {
    OK(adasum_world_finish(world, LIMIT));
    adasum_world_destroy(world);
}

/* Runs `rank_main` for each of `ranks` ranks, which share new root info; its argument is the rank. */
static inline void run_ranks(size_t ranks, void *(*rank_main)(void *)) {
    pthread_t threads[8];
    size_t rank;
    OK(adasum_root_info_create(0, root_info, sizeof root_info));
    for (rank = 0; rank < ranks; rank++) {
        CHECK(pthread_create(&threads[rank], NULL, rank_main, (void *)rank) == 0);
    }
    for (rank = 0; rank < ranks; rank++) {
        CHECK(pthread_join(threads[rank], NULL) == 0);
    }
}

static pthread_barrier_t together;

/* Before [run_ranks], if ranks are to wait for each other or to call [again]. */
static inline void begin_together(unsigned ranks) { CHECK(pthread_barrier_init(&together, NULL, ranks) == 0); }

/* New root info for all ranks, once all have left the world before it. */
static inline void again(uint32_t rank) {
    pthread_barrier_wait(&together);
    if (rank == 0) {
        OK(adasum_root_info_create(0, root_info, sizeof root_info));
    }
    pthread_barrier_wait(&together);
}

static inline int verdict(void) {
    printf("%d failures\n", failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
