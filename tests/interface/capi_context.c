/* A caller with a context of its own: every call leaves that context current, and streams of other contexts are refused. */
#include "capi.h"

enum { RANKS = 2, COUNT = 5000 };

/* The call does what it should, and the thread's context is the caller's again. */
#define KEEPS(context, check)                                                                                          \
    do {                                                                                                               \
        aclrtContext now = NULL;                                                                                       \
        check;                                                                                                         \
        CHECK(aclrtGetCurrentContext(&now) == ACL_SUCCESS);                                                            \
        CHECK(now == (context));                                                                                       \
    } while (0)

static void *rank_main(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    const adasum_tensor tensor = {"a", COUNT, ADASUM_F32, 0};
    static float values[RANKS][COUNT];
    adasum_options *options = options_with(1);
    adasum_world *world = NULL;
    adasum_reducer *reducer = NULL;
    aclrtContext primary = NULL, own = NULL;
    aclrtStream stream = NULL, stream_of_own = NULL;
    void *place = NULL;
    size_t i;
    for (i = 0; i < COUNT; i++) {
        values[rank][i] = 3.0F;
    }
    CHECK(aclrtSetDevice((int32_t)rank) == ACL_SUCCESS);
    CHECK(aclrtGetCurrentContext(&primary) == ACL_SUCCESS);
    stream = new_stream();
    place = put(values[rank], sizeof values[rank]);
    CHECK(aclrtCreateContext(&own, (int32_t)rank) == ACL_SUCCESS);
    stream_of_own = new_stream();
    KEEPS(own,
          OK(adasum_world_from_root_info((int32_t)rank, root_info, sizeof root_info, RANKS, rank, options, &world)));
    KEEPS(own, OK(adasum_reducer_create(world, &tensor, 1, options, &reducer)));
    KEEPS(own, REFUSED(ADASUM_ACL, "107003", adasum_reducer_reduce(reducer, &place, 1, stream_of_own)));
    adasum_reducer_destroy(reducer);
    KEEPS(own, adasum_world_abort(world));
    KEEPS(own, CHECK(adasum_world_finish(world, LIMIT) == ADASUM_OK));
    adasum_world_destroy(world);
    CHECK(aclrtDestroyStream(stream_of_own) == ACL_SUCCESS);

    /* A new world, and streams of the context that the library works in. */
    again(rank);
    KEEPS(own,
          OK(adasum_world_from_root_info((int32_t)rank, root_info, sizeof root_info, RANKS, rank, options, &world)));
    KEEPS(own, OK(adasum_reducer_create(world, &tensor, 1, options, &reducer)));
    KEEPS(own, OK(adasum_reducer_reduce(reducer, &place, 1, stream)));
    KEEPS(own, OK(adasum_reducer_synchronize(reducer, stream, LIMIT)));
    KEEPS(own, OK(adasum_reducer_forget_stream(reducer, stream)));
    KEEPS(own, adasum_reducer_destroy(reducer));
    KEEPS(own, OK(adasum_world_finish(world, LIMIT)));
    KEEPS(own, adasum_world_destroy(world));
    adasum_options_destroy(options);
    CHECK(aclrtSetCurrentContext(primary) == ACL_SUCCESS);
    get(values[rank], place, sizeof values[rank]);
    for (i = 0; i < COUNT; i++) {
        CHECK(values[rank][i] == 3.0F);
    }
    CHECK(aclrtDestroyContext(own) == ACL_SUCCESS);
    return NULL;
}

int main(void) {
    begin_together(RANKS);
    run_ranks(RANKS, rank_main);
    return verdict();
}
