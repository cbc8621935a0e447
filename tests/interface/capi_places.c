/* Tensors of C callers that lie side by side are reduced where they are: the mock counts no launch of a copy. */
#include "capi.h"

/* Bytes of a tensor: the first ends within 64 bytes, or does not. */
enum { RANKS = 2, TENSORS = 2, ODD = 8203, EVEN = 8192, MOST = 2 * 8256 };

/* Exported by the mock. */
extern uint64_t adasum_mock_counter(const char *name);

static uint64_t counted[RANKS];

/* Both ranks have come here, and neither goes on before the number is read. */
static uint64_t launches(adasum_world *world, uint32_t rank, aclrtStream stream) {
    OK(adasum_world_barrier(world, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    counted[rank] = adasum_mock_counter("kernel_launches");
    OK(adasum_world_barrier(world, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    return counted[rank];
}

/* How tensors are given. */
struct way {
    size_t first; /* elements of the first tensor */
    size_t place; /* element at which the second one starts */
    int32_t padded;
    int flat;        /* as one buffer */
    uint64_t copies; /* launches of copies on each rank */
};

/* Reduces vectors that are orthogonal: rank 0 has the even elements, rank 1 the odd ones. */
static void reduce(adasum_world *world, uint32_t rank, aclrtStream stream, const struct way *way) {
    const adasum_tensor tensors[TENSORS] = {{"a", way->first, ADASUM_F32, 0}, {"b", EVEN, ADASUM_F32, 0}};
    const size_t end = way->place + EVEN;
    static float all[RANKS][MOST];
    float *values = all[rank];
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    char *memory;
    void *places[TENSORS];
    uint64_t before, after;
    size_t i;
    for (i = 0; i < MOST; i++) {
        values[i] = i % 2 == rank || i >= end ? (float)(i + 1) : 0.0f;
    }
    memory = put(values, sizeof all[rank]);
    places[0] = memory;
    places[1] = memory + sizeof(float) * way->place;
    OK(set_number(options, "padded", way->padded));
    OK(adasum_reducer_create(world, tensors, TENSORS, options, &reducer));
    adasum_options_destroy(options);
    before = launches(world, rank, stream);
    if (way->flat) {
        OK(adasum_reducer_reduce_flat(reducer, memory, sizeof(float) * end, stream));
    } else {
        OK(adasum_reducer_reduce(reducer, places, TENSORS, stream));
    }
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    after = launches(world, rank, stream);
    /* Products, their fold, coefficients, the sum, a guard before the return, a mark of what each of two exchanges
     * awaits; copies if there are any, and another guard. */
    CHECK(after - before == RANKS * (7 + way->copies + (way->copies > 0)));
    if (after - before != RANKS * (7 + way->copies + (way->copies > 0))) {
        fprintf(stderr, "second tensor at %zu, padded %d, flat %d: %llu launches\n", way->place, (int)way->padded,
                way->flat, (unsigned long long)(after - before));
    }
    get(values, memory, sizeof all[rank]);
    for (i = 0; i < MOST; i++) {
        /* Of what lies between tensors nothing is promised with padded, and all without. */
        if (i < way->first || i >= way->place) {
            CHECK(values[i] == (float)(i + 1));
        } else if (!way->padded) {
            CHECK(values[i] == (i % 2 == rank ? (float)(i + 1) : 0.0f));
        }
    }
    OK(adasum_world_forget_stream(world, stream));
    OK(adasum_reducer_forget_stream(reducer, stream));
    adasum_reducer_destroy(reducer);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
}

static void *rank_main(void *argument) {
    /* The first multiple of 16 elements behind 8203 is 8208. */
    static const struct way ways[] = {
        {EVEN, EVEN, 1, 0, 0}, {ODD, 8208, 1, 0, 0}, {EVEN, EVEN, 0, 1, 0}, {EVEN, EVEN, 0, 0, 2},
        {ODD, 8208, 0, 0, 2},  {ODD, ODD, 1, 0, 2},  {ODD, 8224, 1, 0, 2},  {ODD, ODD, 0, 1, 2},
    };
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = join(rank, RANKS, 1);
    aclrtStream stream = new_stream();
    size_t i;
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        reduce(world, rank, stream, &ways[i]);
    }
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    leave(world);
    return NULL;
}

int main(void) {
    run_ranks(RANKS, rank_main);
    return verdict();
}
