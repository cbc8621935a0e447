/* Ranks give a reduction up while its records are gathered and a thread waits for it: once the world is left, no device memory of it is
 * in use. The caller makes the gather of rank 1 stall by HCCL_MOCK_FAULT. */
#include "capi.h"
#include <time.h>

enum { RANKS = 2, COUNT = 50000 };

static size_t memory_in_use(void) {
    size_t free_bytes = 0, total = 0;
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total) == ACL_SUCCESS);
    return total - free_bytes;
}

struct waiting {
    adasum_reducer *reducer;
    aclrtStream stream;
};

static void *wait_for_it(void *argument) {
    const struct waiting *waiting = argument;
    CHECK(adasum_reducer_synchronize(waiting->reducer, waiting->stream, LIMIT) != ADASUM_OK);
    return NULL;
}

static void *rank_main(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    const adasum_tensor tensor = {"a", COUNT, ADASUM_F32, 0};
    const struct timespec while_it_begins = {0, 500000000};
    static float values[RANKS][COUNT];
    adasum_options *options = options_with(1);
    adasum_reducer *reducer = NULL;
    adasum_world *world = NULL;
    struct waiting waiting;
    pthread_t waiter;
    aclrtStream stream = NULL;
    void *place = NULL;
    size_t before = 0;
    CHECK(aclrtSetDevice((int32_t)rank) == ACL_SUCCESS);
    place = put(values[rank], sizeof values[rank]);
    stream = new_stream();
    before = memory_in_use();

    world = join(rank, RANKS, 1);
    OK(adasum_reducer_create(world, &tensor, 1, options, &reducer));
    OK(adasum_reducer_reduce(reducer, &place, 1, stream));
    waiting.reducer = reducer;
    waiting.stream = stream;
    CHECK(pthread_create(&waiter, NULL, wait_for_it, &waiting) == 0);
    nanosleep(&while_it_begins, NULL);
    pthread_barrier_wait(&together);
    adasum_world_abort(world);
    CHECK(pthread_join(waiter, NULL) == 0);
    adasum_reducer_destroy(reducer);
    OK(adasum_world_finish(world, LIMIT));
    adasum_world_destroy(world);
    adasum_options_destroy(options);
    if (memory_in_use() != before) {
        fprintf(stderr, "rank %u: %zu bytes in use, %zu before\n", rank, memory_in_use(), before);
        fail(__FILE__, __LINE__, "memory of the world is left");
    }
    return NULL;
}

int main(void) {
    begin_together(RANKS);
    run_ranks(RANKS, rank_main);
    return verdict();
}
