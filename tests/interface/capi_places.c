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

/* Ranks read each other's buffers: gradients in the reducer's own are not copied, on one rank, the other one or both. */
static void in_buffers(adasum_world *world, uint32_t rank, aclrtStream stream) {
    const adasum_tensor tensors[TENSORS] = {{"a", ODD, ADASUM_F32, 0}, {"b", EVEN, ADASUM_F32, 0}};
    const size_t lengths[TENSORS] = {ODD, EVEN};
    static float all[RANKS][MOST];
    float *values = all[rank];
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    void *memory[TENSORS], *places[TENSORS];
    uint64_t taken[4];
    size_t i, t, which;
    OK(adasum_options_set(options, "exchange", "shared"));
    OK(adasum_options_set(options, "gradient_buffers", "1"));
    OK(adasum_reducer_create(world, tensors, TENSORS, options, &reducer));
    adasum_options_destroy(options);
    OK(adasum_reducer_gradient_buffers(reducer, places, TENSORS));
    for (t = 0; t < TENSORS; t++) {
        memory[t] = put(values, sizeof(float) * lengths[t]);
    }
    for (which = 0; which < 4; which++) {
        /* Bit r: whether rank r has its gradients there. */
        void *const *mine = which >> rank & 1 ? places : memory;
        uint64_t before;
        for (t = 0; t < TENSORS; t++) {
            const size_t bytes = sizeof(float) * lengths[t];
            for (i = 0; i < lengths[t]; i++) {
                values[i] = i % 2 == rank ? (float)(i + t + 1) : 0.0f;
            }
            CHECK(aclrtMemcpy(mine[t], bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
        }
        before = launches(world, rank, stream);
        OK(adasum_reducer_reduce(reducer, mine, TENSORS, stream));
        OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
        taken[which] = launches(world, rank, stream) - before;
        for (t = 0; t < TENSORS; t++) {
            get(values, mine[t], sizeof(float) * lengths[t]);
            for (i = 0; i < lengths[t]; i++) {
                CHECK(values[i] == (float)(i + t + 1));
            }
        }
    }
    CHECK(taken[3] < taken[2] && taken[2] == taken[1] && taken[1] < taken[0]);
    OK(adasum_world_forget_stream(world, stream));
    OK(adasum_reducer_forget_stream(reducer, stream));
    adasum_reducer_destroy(reducer);
    for (t = 0; t < TENSORS; t++) {
        CHECK(aclrtFree(memory[t]) == ACL_SUCCESS);
    }
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
    in_buffers(world, rank, stream);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    leave(world);
    return NULL;
}

int main(void) {
    run_ranks(RANKS, rank_main);
    return verdict();
}
