/* The C interface over the mock: two ranks as threads, wrong calls, and results that can be worked out by hand. */
#include "adasum.h"

#include <acl/acl.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                                                \
    do {                                                                                                                \
        if (!(condition)) {                                                                                             \
            fprintf(stderr, "%s:%d: %s is false; last error: %s\n", __FILE__, __LINE__, #condition, adasum_last_error()); \
            failures++;                                                                                                 \
        }                                                                                                               \
    } while (0)

/* The call fails with `status`, and its sentence holds `words`. */
#define REFUSED(status, words, call)                                                                                    \
    do {                                                                                                                \
        CHECK((call) == (status));                                                                                      \
        if (strstr(adasum_last_error(), (words)) == NULL) {                                                             \
            fprintf(stderr, "%s:%d: \"%s\" is not in \"%s\"\n", __FILE__, __LINE__, (words), adasum_last_error());      \
            failures++;                                                                                                 \
        }                                                                                                               \
    } while (0)

enum { RANKS = 2, COUNT = 1000 };

static uint8_t root_info[ADASUM_ROOT_INFO_BYTES];

static void nulls(void) {
    uint32_t number = 7;
    int32_t device = 7;
    const char *name = NULL;
    adasum_options *options = NULL;
    adasum_world *world = NULL;
    adasum_reducer *reducer = NULL;
    uint8_t flag = 7;
    REFUSED(ADASUM_NULL_ARGUMENT, "adasum_backend: out_name is NULL", adasum_backend(NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "out is NULL", adasum_options_create(NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_reduction(NULL, 0));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_radix(NULL, 2));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_allow_plain_mean(NULL, 1));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_create_timeout(NULL, 1));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_wire(NULL, 0));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_scale(NULL, 1.0f));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_bucket_bytes(NULL, 1));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_pipeline_depth(NULL, 1));
    REFUSED(ADASUM_NULL_ARGUMENT, "options is NULL", adasum_options_set_barrier(NULL, 1));
    REFUSED(ADASUM_NULL_ARGUMENT, "reducer is NULL", adasum_reducer_synchronize(NULL, NULL, 1));
    REFUSED(ADASUM_NULL_ARGUMENT, "path is NULL", adasum_world_from_rank_table(NULL, 0, &world));
    REFUSED(ADASUM_NULL_ARGUMENT, "out is NULL", adasum_world_from_rank_table("t.json", 0, NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "out is NULL", adasum_world_from_environment(NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "out_bytes is NULL", adasum_root_info_create(0, NULL, ADASUM_ROOT_INFO_BYTES));
    REFUSED(ADASUM_NULL_ARGUMENT, "root_info is NULL",
            adasum_world_from_root_info(0, NULL, ADASUM_ROOT_INFO_BYTES, 1, 0, 1, &world));
    REFUSED(ADASUM_NULL_ARGUMENT, "out is NULL",
            adasum_world_from_root_info(0, root_info, ADASUM_ROOT_INFO_BYTES, 1, 0, 1, NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "adasum_world_rank: world is NULL", adasum_world_rank(NULL, &number));
    REFUSED(ADASUM_NULL_ARGUMENT, "world is NULL", adasum_world_size(NULL, &number));
    REFUSED(ADASUM_NULL_ARGUMENT, "world is NULL", adasum_world_servers(NULL, &number));
    REFUSED(ADASUM_NULL_ARGUMENT, "world is NULL", adasum_world_devices_per_server(NULL, &number));
    REFUSED(ADASUM_NULL_ARGUMENT, "world is NULL", adasum_world_device(NULL, &device));
    REFUSED(ADASUM_NULL_ARGUMENT, "world is NULL", adasum_world_barrier(NULL, NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "world is NULL", adasum_world_finish(NULL, 1));
    REFUSED(ADASUM_NULL_ARGUMENT, "world is NULL", adasum_reducer_create(NULL, NULL, 0, NULL, &reducer));
    REFUSED(ADASUM_NULL_ARGUMENT, "reducer is NULL", adasum_reducer_reduce(NULL, NULL, 0, NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "reducer is NULL", adasum_reducer_forget_stream(NULL, NULL));
    REFUSED(ADASUM_NULL_ARGUMENT, "reducer is NULL", adasum_reducer_nonfinite(NULL, &flag, 1));
    CHECK(number == 7 && device == 7 && flag == 7 && name == NULL && options == NULL && world == NULL && reducer == NULL);
    adasum_options_destroy(NULL);
    adasum_world_destroy(NULL);
    adasum_reducer_destroy(NULL);
}

static void wrong_values(void) {
    adasum_options *options = NULL;
    adasum_world *world = NULL;
    CHECK(adasum_options_create(&options) == ADASUM_OK);
    REFUSED(ADASUM_INVALID_ARGUMENT, "reduction is 3", adasum_options_set_reduction(options, 3));
    REFUSED(ADASUM_INVALID_ARGUMENT, "radix is 9, must be 2 to 8", adasum_options_set_radix(options, 9));
    REFUSED(ADASUM_INVALID_ARGUMENT, "allow is 2", adasum_options_set_allow_plain_mean(options, 2));
    REFUSED(ADASUM_INVALID_ARGUMENT, "milliseconds is 0", adasum_options_set_create_timeout(options, 0));
    REFUSED(ADASUM_INVALID_ARGUMENT, "wire is -1", adasum_options_set_wire(options, -1));
    REFUSED(ADASUM_INVALID_ARGUMENT, "scale is inf", adasum_options_set_scale(options, (float)INFINITY));
    REFUSED(ADASUM_INVALID_ARGUMENT, "bytes is 0", adasum_options_set_bucket_bytes(options, 0));
    REFUSED(ADASUM_INVALID_ARGUMENT, "depth is 65", adasum_options_set_pipeline_depth(options, 65));
    REFUSED(ADASUM_INVALID_ARGUMENT, "barrier is 7", adasum_options_set_barrier(options, 7));
    adasum_options_destroy(options);
    REFUSED(ADASUM_INVALID_ARGUMENT, "nowhere.json", adasum_world_from_rank_table("nowhere.json", 0, &world));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not UTF-8", adasum_world_from_rank_table("\xff", 0, &world));
    REFUSED(ADASUM_INVALID_ARGUMENT, "len is 5", adasum_root_info_create(0, root_info, 5));
    REFUSED(ADASUM_INVALID_ARGUMENT, "level is 0", adasum_set_log_callback(NULL, NULL, 0));
    CHECK(world == NULL);
    CHECK(strcmp(adasum_status_string(ADASUM_TIMEOUT), "timeout") == 0);
    CHECK(strcmp(adasum_status_string(-1), "unknown status") == 0);
}

/* Rank 0 has (a, 0, ..), rank 1 has (0, b, ..): orthogonal, so AdaSum is the sum. The second tensor is equal on both: its mean. */
static void fill(float *values, int rank) {
    int i;
    for (i = 0; i < COUNT; i++) {
        values[i] = i % 2 == rank ? (float)(i + 1) : 0.0f;
    }
}

static void reduce_by(adasum_world *world, uint32_t rank, int32_t reduction) {
    const float equal[4] = {1.0f, -2.0f, 3.0f, 0.5f};
    adasum_tensor tensors[3] = {
        {"orthogonal", COUNT, ADASUM_F32, 0}, {"empty", 0, ADASUM_F16, 0}, {"equal", 4, ADASUM_F32, 0}};
    void *gradients[3] = {NULL, NULL, NULL};
    float values[COUNT];
    adasum_options *options = NULL;
    adasum_reducer *reducer = NULL;
    aclrtStream stream = NULL;
    uint8_t flags[3] = {7, 7, 7};
    int i;

    CHECK(adasum_options_create(&options) == ADASUM_OK);
    CHECK(adasum_options_set_reduction(options, reduction) == ADASUM_OK);
    CHECK(adasum_options_set_wire(options, ADASUM_WIRE_F32) == ADASUM_OK);
    CHECK(adasum_options_set_scale(options, 1.0f) == ADASUM_OK);
    CHECK(adasum_options_set_bucket_bytes(options, 4096) == ADASUM_OK);
    CHECK(adasum_options_set_pipeline_depth(options, 2) == ADASUM_OK);
    CHECK(adasum_options_set_barrier(options, 1) == ADASUM_OK);
    CHECK(adasum_reducer_create(world, tensors, 3, options, &reducer) == ADASUM_OK);
    adasum_options_destroy(options);

    CHECK(aclrtSetDevice((int32_t)rank) == ACL_SUCCESS);
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&gradients[0], sizeof values, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&gradients[2], sizeof equal, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    fill(values, (int)rank);
    CHECK(aclrtMemcpy(gradients[0], sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(gradients[2], sizeof equal, equal, sizeof equal, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);

    /* Refused before anything is enqueued, so the reducer stays usable. */
    REFUSED(ADASUM_INVALID_ARGUMENT, "2 inout_gradients were given for 3 tensors",
            adasum_reducer_reduce(reducer, gradients, 2, stream));
    {
        void *missing[3] = {NULL, NULL, NULL};
        REFUSED(ADASUM_NULL_ARGUMENT, "inout_gradients[0] (orthogonal) is NULL",
                adasum_reducer_reduce(reducer, missing, 3, stream));
    }
    REFUSED(ADASUM_NULL_ARGUMENT, "stream is NULL", adasum_reducer_reduce(reducer, gradients, 3, NULL));
    CHECK(adasum_reducer_reduce(reducer, gradients, 3, stream) == ADASUM_OK);
    REFUSED(ADASUM_INVALID_ARGUMENT, "timeout_ms is 0", adasum_reducer_synchronize(reducer, stream, 0));
    REFUSED(ADASUM_NULL_ARGUMENT, "stream is NULL", adasum_reducer_synchronize(reducer, NULL, 60000));
    CHECK(adasum_reducer_synchronize(reducer, stream, 60000) == ADASUM_OK);

    CHECK(aclrtMemcpy(values, sizeof values, gradients[0], sizeof values, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    for (i = 0; i < COUNT; i++) {
        const float whole = (float)(i + 1);
        CHECK(values[i] == (reduction == ADASUM_REDUCTION_MEAN ? whole / 2 : whole));
    }
    CHECK(aclrtMemcpy(values, sizeof equal, gradients[2], sizeof equal, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    for (i = 0; i < 4; i++) {
        CHECK(values[i] == equal[i]);
    }
    if (reduction == ADASUM_REDUCTION_ADASUM) {
        REFUSED(ADASUM_INVALID_ARGUMENT, "the reducer has 3 tensors", adasum_reducer_nonfinite(reducer, flags, 2));
        CHECK(adasum_reducer_nonfinite(reducer, flags, 3) == ADASUM_OK);
        CHECK(flags[0] == 0 && flags[1] == 0 && flags[2] == 0);
    }
    REFUSED(ADASUM_INVALID_STATE, "1 reducers still use the world", adasum_world_finish(world, 60000));
    CHECK(adasum_reducer_forget_stream(reducer, stream) == ADASUM_OK);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    adasum_reducer_destroy(reducer);
    CHECK(aclrtFree(gradients[0]) == ACL_SUCCESS);
    CHECK(aclrtFree(gradients[2]) == ACL_SUCCESS);
}

static void wrong_tensors(adasum_world *world) {
    adasum_reducer *reducer = NULL;
    adasum_tensor nameless = {NULL, 1, ADASUM_F32, 0};
    adasum_tensor flagged = {"w", 1, ADASUM_F32, 4};
    adasum_tensor typed = {"w", 1, 3, 0};
    adasum_tensor huge = {"w", UINT64_MAX, ADASUM_F32, 0};
    REFUSED(ADASUM_NULL_ARGUMENT, "tensors is NULL", adasum_reducer_create(world, NULL, 1, NULL, &reducer));
    REFUSED(ADASUM_NULL_ARGUMENT, "tensors[0].name is NULL", adasum_reducer_create(world, &nameless, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].flags (w)", adasum_reducer_create(world, &flagged, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].dtype (w) is 3", adasum_reducer_create(world, &typed, 1, NULL, &reducer));
    REFUSED(ADASUM_NULL_ARGUMENT, "out is NULL", adasum_reducer_create(world, &typed, 0, NULL, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "", adasum_reducer_create(world, &huge, 1, NULL, &reducer));
    CHECK(reducer == NULL);
}

static void *rank_main(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = NULL;
    uint32_t number = 7;
    int32_t device = 7;
    aclrtStream stream = NULL;
    CHECK(adasum_world_from_root_info((int32_t)rank, root_info, sizeof root_info, RANKS, rank, 1, &world) == ADASUM_OK);
    if (world == NULL) {
        return NULL;
    }
    CHECK(adasum_world_rank(world, &number) == ADASUM_OK && number == rank);
    CHECK(adasum_world_size(world, &number) == ADASUM_OK && number == RANKS);
    CHECK(adasum_world_servers(world, &number) == ADASUM_OK && number == RANKS);
    CHECK(adasum_world_devices_per_server(world, &number) == ADASUM_OK && number == 1);
    CHECK(adasum_world_device(world, &device) == ADASUM_OK && device == (int32_t)rank);
    REFUSED(ADASUM_NULL_ARGUMENT, "out is NULL", adasum_world_rank(world, NULL));
    wrong_tensors(world);
    reduce_by(world, rank, ADASUM_REDUCTION_ADASUM);
    reduce_by(world, rank, ADASUM_REDUCTION_MEAN);
    REFUSED(ADASUM_NULL_ARGUMENT, "stream is NULL", adasum_world_barrier(world, NULL));
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
    CHECK(adasum_world_barrier(world, stream) == ADASUM_OK);
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    REFUSED(ADASUM_INVALID_ARGUMENT, "timeout_ms is 0", adasum_world_finish(world, 0));
    CHECK(adasum_world_finish(world, 60000) == ADASUM_OK);
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_rank(world, &number));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_finish(world, 60000));
    adasum_world_destroy(world);
    return NULL;
}

static int records;

static void count_record(int32_t level, const char *message, void *user_data) {
    __atomic_add_fetch((int *)user_data, level >= 1 && level <= 5 && message != NULL, __ATOMIC_RELAXED);
}

int main(void) {
    pthread_t threads[RANKS];
    const char *backend = NULL;
    size_t rank;
    CHECK(adasum_abi_version() == ADASUM_ABI_VERSION);
    CHECK(strlen(adasum_version()) >= 5);
    CHECK(strcmp(adasum_last_error(), "") == 0);
    CHECK(adasum_set_log_callback(count_record, &records, 5) == ADASUM_OK);
    nulls();
    wrong_values();
    CHECK(adasum_backend(&backend) == ADASUM_OK && backend != NULL && strcmp(backend, "mock") == 0);
    CHECK(adasum_root_info_create(0, root_info, sizeof root_info) == ADASUM_OK);
    for (rank = 0; rank < RANKS; rank++) {
        CHECK(pthread_create(&threads[rank], NULL, rank_main, (void *)rank) == 0);
    }
    for (rank = 0; rank < RANKS; rank++) {
        CHECK(pthread_join(threads[rank], NULL) == 0);
    }
    CHECK(adasum_set_log_callback(NULL, NULL, 1) == ADASUM_OK);
    printf("%d failures\n", failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
