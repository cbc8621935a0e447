/* The C interface in the wrong order, from several threads, and after failures. */
#define _DEFAULT_SOURCE
#include "capi.h"

#include <unistd.h>

enum { RANKS = 2, COUNT = 256 };

static const adasum_tensor TENSOR = {"w", COUNT, ADASUM_F32, 0};

static void *ones(void) {
    float values[COUNT];
    int i;
    for (i = 0; i < COUNT; i++) {
        values[i] = 1.0f;
    }
    return put(values, sizeof values);
}

static void is_ones(const void *memory) {
    float values[COUNT];
    int i;
    get(values, memory, sizeof values);
    for (i = 0; i < COUNT; i++) {
        CHECK(values[i] == 1.0f);
    }
}

/* What a finished world and a reducer of another kind answer. */
static void *wrong_order(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = join(rank, RANKS, 1);
    adasum_reducer *gradient = NULL, *mean = NULL, *none = NULL;
    aclrtStream stream = new_stream();
    void *memory = ones();
    uint32_t number = 7;
    size_t count = 7;
    OK(adasum_reducer_create(world, &TENSOR, 1, NULL, &gradient));
    OK(adasum_reducer_create_mean(world, &TENSOR, 1, NULL, &mean));
    REFUSED(ADASUM_INVALID_STATE, "a reducer of adasum_reducer_create has no such call",
            adasum_reducer_delta_begin(gradient, NULL, &memory, 1, stream));
    REFUSED(ADASUM_INVALID_STATE, "has no such call", adasum_reducer_delta_end(gradient, &memory, 1, stream));
    REFUSED(ADASUM_INVALID_STATE, "has no such call", adasum_reducer_delta_reset(mean));
    REFUSED(ADASUM_INVALID_STATE, "a reducer of adasum_reducer_create_mean has no such call",
            adasum_reducer_owned_count(mean, &count));
    REFUSED(ADASUM_INVALID_STATE, "has no such call", adasum_reducer_reduce_flat(mean, memory, 4 * COUNT, stream));
    REFUSED(ADASUM_INVALID_STATE, "has no such call", adasum_reducer_plan(mean, NULL, 0, &count));
    REFUSED(ADASUM_INVALID_STATE, "has no such call",
            adasum_reducer_gather(mean, NULL, NULL, 0, stream, NULL, NULL, NULL));
    REFUSED(ADASUM_INVALID_STATE, "reducers or others still use the world, 2 in all",
            adasum_world_finish(world, LIMIT));
    /* Two reducers on one world, in one order. */
    OK(adasum_reducer_reduce(gradient, &memory, 1, stream));
    OK(adasum_reducer_reduce(mean, &memory, 1, stream));
    OK(adasum_reducer_synchronize(mean, stream, LIMIT));
    is_ones(memory);
    let_go(gradient, stream);
    REFUSED(ADASUM_INVALID_STATE, "reducers or others still use the world, 1 in all",
            adasum_world_finish(world, LIMIT));
    let_go(mean, stream);
    OK(adasum_world_finish(world, LIMIT));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_rank(world, &number));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_barrier(world, stream));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_abort(world));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_stop_on_failure(world));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_reducer_create(world, &TENSOR, 1, NULL, &none));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_finish(world, LIMIT));
    adasum_world_destroy(world);
    CHECK(none == NULL && number == 7 && count == 7);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    return NULL;
}

/* The world's handle, options and stream go before the reducer, which works on. */
static void *destroyed_in_any_order(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = join(rank, RANKS, 1);
    adasum_options *options = options_with(0);
    adasum_reducer *first = NULL, *second = NULL;
    aclrtStream stream = new_stream();
    void *memory = ones();
    OK(adasum_reducer_create(world, &TENSOR, 1, options, &first));
    OK(adasum_reducer_create(world, &TENSOR, 1, options, &second));
    adasum_world_destroy(world);
    adasum_options_destroy(options);
    OK(adasum_reducer_reduce(second, &memory, 1, stream));
    OK(adasum_reducer_reduce(first, &memory, 1, stream));
    OK(adasum_reducer_synchronize(first, stream, LIMIT));
    is_ones(memory);
    OK(adasum_reducer_forget_stream(first, stream));
    OK(adasum_reducer_forget_stream(second, stream));
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
    adasum_reducer_destroy(first);
    adasum_reducer_destroy(second);
    return NULL;
}

static uint8_t other_root_info[ADASUM_ROOT_INFO_BYTES];

/* Two worlds of the same ranks at once. */
static void *two_worlds(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = join(rank, RANKS, 1), *other = NULL;
    adasum_options *options = options_with(2);
    adasum_reducer *here = NULL, *there = NULL;
    aclrtStream stream = new_stream();
    void *memory = ones();
    uint32_t servers = 0;
    OK(adasum_options_set(options, "allow_plain_mean", "1"));
    OK(adasum_world_from_root_info((int32_t)rank, other_root_info, sizeof other_root_info, RANKS, rank, options,
                                   &other));
    CHECK(adasum_world_servers(other, &servers) == ADASUM_OK && servers == 1);
    OK(adasum_reducer_create(world, &TENSOR, 1, NULL, &here));
    OK(adasum_reducer_create(other, &TENSOR, 1, options, &there));
    adasum_options_destroy(options);
    OK(adasum_reducer_reduce(here, &memory, 1, stream));
    OK(adasum_reducer_reduce(there, &memory, 1, stream));
    OK(adasum_reducer_synchronize(there, stream, LIMIT));
    OK(adasum_reducer_synchronize(here, stream, LIMIT));
    is_ones(memory);
    let_go(there, stream);
    leave(other);
    OK(adasum_reducer_reduce(here, &memory, 1, stream));
    OK(adasum_reducer_synchronize(here, stream, LIMIT));
    let_go(here, stream);
    leave(world);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    return NULL;
}

struct job {
    adasum_reducer *reducer;
    adasum_options *options;
    const adasum_world *world;
    aclrtStream stream;
    adasum_status status;
};

/* Reduces for nobody: the other rank never comes. */
static void *waits(void *argument) {
    struct job *job = argument;
    job->status = adasum_reducer_synchronize(job->reducer, job->stream, LIMIT);
    CHECK(job->status != ADASUM_OK && strlen(adasum_last_error()) > 0);
    return NULL;
}

static pthread_barrier_t both;

/* A thread waits in a call; another is told so, and frees it. */
static void *aborted(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = join(rank, RANKS, 1);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    void *memory = ones();
    uint8_t flag;
    int32_t code = 7;
    OK(adasum_reducer_create(world, &TENSOR, 1, NULL, &reducer));
    if (rank == 0) {
        struct job job = {reducer, NULL, NULL, stream, ADASUM_OK};
        pthread_t thread;
        OK(adasum_reducer_reduce(reducer, &memory, 1, stream));
        CHECK(pthread_create(&thread, NULL, waits, &job) == 0);
        while (adasum_reducer_reduce(reducer, NULL, 0, NULL) != ADASUM_INVALID_STATE) {
            usleep(100);
        }
        CHECK(strstr(adasum_last_error(), "another thread is using this reducer") != NULL);
        REFUSED(ADASUM_INVALID_STATE, "another thread", adasum_reducer_nonfinite(reducer, &flag, 1));
        OK(adasum_reducer_abort(reducer));
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(job.status == ADASUM_POISONED || job.status == ADASUM_HCCL || job.status == ADASUM_ACL);
    } else {
        OK(adasum_world_abort(world));
        OK(adasum_world_abort(world));
    }
    /* Use after failure. */
    REFUSED(ADASUM_POISONED, "an earlier reduction failed", adasum_reducer_reduce(reducer, &memory, 1, stream));
    REFUSED(ADASUM_POISONED, "the world was aborted", adasum_reducer_synchronize(reducer, stream, LIMIT));
    {
        adasum_reducer *none = NULL;
        CHECK(adasum_reducer_create(world, &TENSOR, 1, NULL, &none) == ADASUM_POISONED && none == NULL);
    }
    CHECK(adasum_world_last_vendor_code(world, &code) == ADASUM_OK && code == 0);
    /* The other rank's memory must stay until nobody reads it. */
    pthread_barrier_wait(&both);
    adasum_reducer_destroy(reducer);
    adasum_world_destroy(world);
    CHECK(aclrtDestroyStreamForce(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
    return NULL;
}

/* Many threads ask and set at once. */
static void *asks(void *argument) {
    struct job *job = argument;
    uint32_t number = 0;
    int i;
    for (i = 0; i < 200; i++) {
        OK(set_number(job->options, "radix", 2 + (uint32_t)i % 7));
        CHECK(adasum_world_size(job->world, &number) == ADASUM_OK && number == 1);
        REFUSED(ADASUM_INVALID_ARGUMENT, "radix is \"99\"", adasum_options_set(job->options, "radix", "99"));
        CHECK(adasum_last_vendor_code() == 0);
    }
    return NULL;
}

/* One reducer, several threads: each call either works or is told that another thread is inside. */
static void *reduces(void *argument) {
    struct job *job = argument;
    aclrtStream stream;
    void *memory;
    int done = 0;
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
    stream = new_stream();
    memory = ones();
    while (done < 20) {
        const adasum_status status = adasum_reducer_reduce(job->reducer, &memory, 1, stream);
        if (status == ADASUM_OK) {
            done++;
        } else {
            CHECK(status == ADASUM_INVALID_STATE && strstr(adasum_last_error(), "another thread") != NULL);
            usleep(50);
        }
    }
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    is_ones(memory);
    while (adasum_reducer_forget_stream(job->reducer, stream) != ADASUM_OK) {
        usleep(50);
    }
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    return NULL;
}

static void many_threads(void) {
    pthread_t threads[4];
    struct job job = {NULL, options_with(1), NULL, NULL, ADASUM_OK};
    adasum_world *world;
    size_t i;
    OK(adasum_root_info_create(0, root_info, sizeof root_info));
    world = join(0, 1, 1);
    job.world = world;
    OK(adasum_reducer_create(world, &TENSOR, 1, NULL, &job.reducer));
    for (i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, i % 2 == 0 ? asks : reduces, &job) == 0);
    }
    for (i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    adasum_options_destroy(job.options);
    adasum_reducer_destroy(job.reducer);
    leave(world);
}

/* With "orderly" nothing is aborted, with "aborted" all the rest is left out: what the queued work of an aborted world may
 * still use is never freed, and whoever looks for leaks must know. */
int main(int count, char **words) {
    const char *part = count > 1 ? words[1] : "";
    if (strcmp(part, "aborted") != 0) {
        run_ranks(RANKS, wrong_order);
        run_ranks(RANKS, destroyed_in_any_order);
        OK(adasum_root_info_create(0, other_root_info, sizeof other_root_info));
        run_ranks(RANKS, two_worlds);
        many_threads();
    }
    if (strcmp(part, "orderly") != 0) {
        CHECK(pthread_barrier_init(&both, NULL, RANKS) == 0);
        run_ranks(RANKS, aborted);
    }
    return verdict();
}
