/* A kernel fails in a reduction: the ranks leave the world and join a new one. After a failure in stop mode they cannot,
 * and are told; HCCL of A3 sets that mode itself. The caller makes a kernel of rank 1 fail by HCCL_MOCK_FAULT. */
#include "capi.h"

enum { RANKS = 2, COUNT = 5000 };

static int stops;
static int asks; /* for stop mode */

static adasum_status reduce_once(adasum_world *world, void *place, aclrtStream stream, adasum_reducer **reducer) {
    const adasum_tensor tensor = {"a", COUNT, ADASUM_F32, 0};
    adasum_options *options = options_with(1);
    adasum_status status;
    *reducer = NULL;
    status = adasum_reducer_create(world, &tensor, 1, options, reducer);
    adasum_options_destroy(options);
    if (*reducer == NULL) {
        return status;
    }
    status = adasum_reducer_reduce(*reducer, &place, 1, stream);
    return status == ADASUM_OK ? adasum_reducer_synchronize(*reducer, stream, LIMIT) : status;
}

static void *rank_main(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    static float values[RANKS][COUNT];
    adasum_world *world = join(rank, RANKS, 1);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    void *place = put(values[rank], sizeof values[rank]);
    adasum_status status;
    size_t i;
    if (asks) {
        OK(adasum_world_stop_on_failure(world));
    }
    status = reduce_once(world, place, stream, &reducer);
    CHECK(rank == 0 || status != ADASUM_OK);
    if (rank == 1 && !stops) {
        int32_t code = 0;
        CHECK(adasum_last_vendor_code() == 507015);
        CHECK(adasum_world_last_vendor_code(world, &code) == ADASUM_OK && code == 507015);
    }
    adasum_reducer_destroy(reducer);
    if (stops) {
        again(rank);
        world = join(rank, RANKS, 1);
        status = reduce_once(world, place, new_stream(), &reducer);
        CHECK(rank == 0 || status != ADASUM_OK);
        if (rank == 1 && strstr(adasum_last_error(), "507015") == NULL) {
            fail(__FILE__, __LINE__, "the sentence does not name the first failure");
        }
        return NULL; /* such a process can only end */
    }
    OK(adasum_world_finish(world, LIMIT));
    adasum_world_destroy(world);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);

    again(rank);
    for (i = 0; i < COUNT; i++) {
        values[rank][i] = 2.0F;
    }
    place = put(values[rank], sizeof values[rank]);
    world = join(rank, RANKS, 1);
    stream = new_stream();
    OK(reduce_once(world, place, stream, &reducer));
    get(values[rank], place, sizeof values[rank]);
    for (i = 0; i < COUNT; i++) {
        CHECK(values[rank][i] == 2.0F);
    }
    let_go(reducer, stream);
    leave(world);
    return NULL;
}

int main(int argc, char **argv) {
    asks = argc > 1 && strcmp(argv[1], "stop") == 0;
    stops = asks || (argc > 1 && strcmp(argv[1], "stopped") == 0);
    begin_together(RANKS);
    run_ranks(RANKS, rank_main);
    if (stops) {
        _Exit(verdict());
    }
    return verdict();
}
