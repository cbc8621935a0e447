/* A gradient in the host's memory, and one that is longer than its allocation: an NPU raises an exception, and so does the mock. */
#include "capi.h"

enum { RANKS = 2, COUNT = 8203 };

static int too_long; /* else: in the host's memory */

static void *rank_main(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    /* Two, so that they are copied to one buffer: by our kernels, not by HCCL, which looks itself. */
    const adasum_tensor tensors[] = {{"a", COUNT, ADASUM_F32, 0}, {"b", COUNT, ADASUM_F32, 0}};
    static float values[RANKS][COUNT];
    adasum_options *options = options_with(0);
    adasum_world *world = join(rank, RANKS, 1);
    aclrtStream stream = new_stream();
    adasum_reducer *reducer = NULL;
    void *places[] = {NULL, values[rank]};
    adasum_status status;
    places[0] = put(values[rank], sizeof values[rank]);
    if (rank == 1 || too_long) {
        places[1] = put(values[rank], rank == 1 ? sizeof values[rank] : sizeof values[rank] / 2);
    }
    OK(adasum_reducer_create(world, tensors, 2, options, &reducer));
    adasum_options_destroy(options);
    OK(adasum_reducer_reduce(reducer, places, 2, stream));
    status = adasum_reducer_synchronize(reducer, stream, 20000);
    if (rank == 0) {
        CHECK(status != ADASUM_OK);
        if (strstr(adasum_last_error(), "507015") == NULL) {
            fail(__FILE__, __LINE__, "507015 is not in the sentence");
        }
    }
    return NULL; /* the world has failed, and the process ends */
}

int main(int argc, char **argv) {
    too_long = argc > 1 && strcmp(argv[1], "long") == 0;
    run_ranks(RANKS, rank_main);
    _Exit(failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}
