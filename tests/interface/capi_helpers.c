/* What trainers use with the reducers: norm clips, accumulators, parts of a world, fusion ids, figures, journals. Results are
 * compared with double precision. */
#define _DEFAULT_SOURCE
#include "capi.h"

#include <unistd.h>

enum { LOCALS = 2, RANKS = 4, FIRST = 3001, SECOND = 77, BOTH = FIRST + SECOND };

extern uint64_t adasum_mock_counter(const char *name); /* exported by the mock */

static const adasum_tensor TENSORS[2] = {{"first", FIRST, ADASUM_F32, 0}, {"second", SECOND, ADASUM_F32, 0}};

/* Numbers between -1 and 1 that differ between seeds. */
static void noise(float *values, size_t count, uint32_t seed) {
    uint32_t state = 2654435761u * (seed + 1);
    size_t i;
    for (i = 0; i < count; i++) {
        state = 1664525u * state + 1013904223u;
        values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
}

static double dot(const float *a, const float *b, size_t count) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < count; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

/* Whether `found` is `truth` but for a few roundings of fp32. */
static int near(double found, double truth, double scale) { return fabs(found - truth) <= 1e-6 * scale; }

/* Both tensors at their places in one piece of memory. */
static void **places_of(char *memory, void **places) {
    places[0] = memory;
    places[1] = memory + FIRST * sizeof(float);
    return places;
}

static void finish_stream(aclrtStream stream, void *memory) {
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
}

static void clips(adasum_world *world) {
    const float limits[2] = {0.5f, 1000.0f};
    float values[BOTH], clipped[BOTH], norm = 7.0f;
    adasum_norm_clip *clip = NULL;
    aclrtStream stream = new_stream();
    void *places[2], *memory;
    double truth;
    size_t i, limit;
    noise(values, BOTH, 5);
    truth = sqrt(dot(values, values, BOTH));
    memory = put(values, sizeof values);
    places_of(memory, places);
    for (limit = 0; limit < 2; limit++) {
        OK(adasum_norm_clip_create(world, TENSORS, 2, limits[limit], &clip));
        OK(adasum_norm_clip_clip(clip, places, 2, stream));
        CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
        CHECK(adasum_norm_clip_last_norm(clip, &norm) == ADASUM_OK && near(norm, truth, truth));
        get(clipped, memory, sizeof clipped);
        for (i = 0; i < BOTH; i++) {
            CHECK(limit == 1 ? clipped[i] == values[i]
                             : near(clipped[i], values[i] * (double)limits[limit] / truth, limits[limit] / truth));
        }
        CHECK(aclrtMemcpy(memory, sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
        OK(adasum_norm_clip_forget_stream(clip, stream));
        if (limit == 0) {
            adasum_norm_clip_destroy(clip);
            clip = NULL;
        }
    }
    /* A NaN in one tensor is one in all. */
    values[FIRST] = (float)NAN;
    CHECK(aclrtMemcpy(memory, sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    OK(adasum_norm_clip_clip(clip, places, 2, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    CHECK(adasum_norm_clip_last_norm(clip, &norm) == ADASUM_OK && isnan(norm));
    get(clipped, memory, sizeof clipped);
    CHECK(isnan(clipped[0]) && isnan(clipped[BOTH - 1]));
    REFUSED(ADASUM_INVALID_ARGUMENT, "1 inout_tensors were given for 2 tensors",
            adasum_norm_clip_clip(clip, places, 1, stream));
    OK(adasum_norm_clip_forget_stream(clip, stream));
    adasum_norm_clip_destroy(clip);
    clip = NULL;
    {
        const float wrong[4] = {0.0f, -1.0f, (float)INFINITY, (float)NAN};
        for (i = 0; i < 4; i++) {
            REFUSED(ADASUM_INVALID_ARGUMENT, "max_norm", adasum_norm_clip_create(world, TENSORS, 2, wrong[i], &clip));
        }
        CHECK(clip == NULL);
    }
    finish_stream(stream, memory);
}

/* Results of a scattered reduction: ranks of a server have equal gradients, servers orthogonal ones. */
static void clips_of_owned_parts(adasum_world *world, uint32_t rank) {
    const uint32_t server = rank / LOCALS;
    const size_t outside = 2;
    const uint64_t nothing = 0;
    const uint64_t start = 1, length = SECOND;
    float values[BOTH], whole[BOTH], norm = 7.0f;
    size_t tensors[8], count = 0, i;
    uint64_t starts[8], lengths[8];
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    adasum_norm_clip *clip = NULL;
    aclrtStream stream = new_stream();
    void *places[2], *memory;
    double truth;
    noise(whole, BOTH, 6);
    truth = sqrt(dot(whole, whole, BOTH));
    for (i = 0; i < BOTH; i++) {
        values[i] = i % 2 == server ? whole[i] : 0.0f;
    }
    memory = put(values, sizeof values);
    places_of(memory, places);
    OK(adasum_options_set(options, "scattered", "1"));
    OK(adasum_reducer_create(world, TENSORS, 2, options, &reducer));
    adasum_options_destroy(options);
    OK(adasum_reducer_owned_count(reducer, &count));
    CHECK(count <= 8);
    OK(adasum_reducer_owned(reducer, tensors, starts, lengths, count));
    REFUSED(ADASUM_INVALID_ARGUMENT, "is not in one of the 2 tensors",
            adasum_norm_clip_create_of_parts(world, TENSORS, 2, &outside, &start, &length, 1, 0.25f, LIMIT, &clip));
    /* Nothing of no tensor. */
    REFUSED(ADASUM_INVALID_ARGUMENT, "is not in one of the 2 tensors",
            adasum_norm_clip_create_of_parts(world, TENSORS, 2, &outside, &nothing, &nothing, 1, 0.25f, LIMIT, &clip));
    REFUSED(ADASUM_INVALID_ARGUMENT, "timeout_ms is 0",
            adasum_norm_clip_create_of_parts(world, TENSORS, 2, tensors, starts, lengths, count, 0.25f, 0, &clip));
    CHECK(clip == NULL);
    OK(adasum_norm_clip_create_of_parts(world, TENSORS, 2, tensors, starts, lengths, count, 0.25f, LIMIT, &clip));
    OK(adasum_reducer_reduce(reducer, places, 2, stream));
    OK(adasum_norm_clip_clip(clip, places, 2, stream));
    OK(adasum_reducer_collect(reducer, places, 2, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    CHECK(adasum_norm_clip_last_norm(clip, &norm) == ADASUM_OK && near(norm, truth, truth));
    get(values, memory, sizeof values);
    for (i = 0; i < BOTH; i++) {
        CHECK(near(values[i], whole[i] * 0.25 / truth, 1.0 / truth));
    }
    OK(adasum_norm_clip_forget_stream(clip, stream));
    adasum_norm_clip_destroy(clip);
    let_go(reducer, stream);
    finish_stream(stream, memory);
}

static double of_bf16(uint16_t bits) {
    const uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

enum { STEPS = 3, SHORT = 500 };

/* fp32 and bf16: the sum is one of fp32, rounded once. */
static void accumulates(adasum_world *world, uint32_t rank) {
    const adasum_tensor tensors[2] = {{"first", FIRST, ADASUM_F32, 0}, {"half", SHORT, ADASUM_BF16, 0}};
    static double sums[RANKS][FIRST + SHORT];
    double *sum = sums[rank];
    float values[FIRST];
    uint16_t halves[SHORT];
    adasum_gradient_accumulator *accumulator = NULL;
    aclrtStream stream = new_stream();
    void *places[2];
    uint32_t steps = 7, step;
    size_t i;
    places[0] = put(values, sizeof values);
    places[1] = put(halves, sizeof halves);
    OK(adasum_gradient_accumulator_create(world, tensors, 2, &accumulator));
    CHECK(adasum_gradient_accumulator_steps(accumulator, &steps) == ADASUM_OK && steps == 0);
    REFUSED(ADASUM_INVALID_STATE, "no gradients were added",
            adasum_gradient_accumulator_take(accumulator, places, 2, 1.0f, stream));
    REFUSED(ADASUM_INVALID_ARGUMENT, "1 gradients were given for 2 tensors",
            adasum_gradient_accumulator_add(accumulator, places, 1, stream));
    memset(sum, 0, sizeof sums[rank]);
    for (step = 0; step < STEPS; step++) {
        noise(values, FIRST, 10 * rank + step);
        for (i = 0; i < FIRST; i++) {
            sum[i] += values[i];
        }
        for (i = 0; i < SHORT; i++) {
            halves[i] = (uint16_t)(0x3f80 + (i + 7 * step + rank) % 128); /* from 1 to 2 */
            sum[FIRST + i] += of_bf16(halves[i]);
        }
        CHECK(aclrtMemcpy(places[0], sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
        CHECK(aclrtMemcpy(places[1], sizeof halves, halves, sizeof halves, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
        OK(adasum_gradient_accumulator_add(accumulator, places, 2, stream));
        CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
        CHECK(adasum_gradient_accumulator_steps(accumulator, &steps) == ADASUM_OK && steps == step + 1);
    }
    REFUSED(ADASUM_INVALID_ARGUMENT, "1 out_gradients were given for 2 tensors",
            adasum_gradient_accumulator_take(accumulator, places, 1, 1.0f, stream));
    REFUSED(ADASUM_INVALID_ARGUMENT, "factor inf is not finite",
            adasum_gradient_accumulator_take(accumulator, places, 2, (float)INFINITY, stream));
    OK(adasum_gradient_accumulator_take(accumulator, places, 2, 0.25f, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    get(values, places[0], sizeof values);
    get(halves, places[1], sizeof halves);
    for (i = 0; i < FIRST; i++) {
        CHECK(near(values[i], sum[i] * 0.25, 1.0));
    }
    for (i = 0; i < SHORT; i++) {
        /* The sum is exact in fp32; half a unit in the last place of bf16 below 2. */
        CHECK(fabs(of_bf16(halves[i]) - sum[FIRST + i] * 0.25) <= 1.0 / 256);
    }
    CHECK(adasum_gradient_accumulator_steps(accumulator, &steps) == ADASUM_OK && steps == 0);
    OK(adasum_gradient_accumulator_forget_stream(accumulator, stream));
    adasum_gradient_accumulator_destroy(accumulator);
    CHECK(aclrtFree(places[1]) == ACL_SUCCESS);
    finish_stream(stream, places[0]);
}

/* AdaSum of two vectors, tensor by tensor. */
static void expect_adasum(const float *found, const float *a, const float *b, size_t count) {
    const double product = dot(a, b, count);
    const double of_a = 1.0 - product / (2.0 * dot(a, a, count)), of_b = 1.0 - product / (2.0 * dot(b, b, count));
    size_t i;
    for (i = 0; i < count; i++) {
        CHECK(near(found[i], of_a * a[i] + of_b * b[i], 2.0));
    }
}

/* The two ranks of a server as a stage of a pipeline, each a server of its own there. */
static void stages(adasum_world *world, uint32_t rank) {
    const uint32_t first = rank / LOCALS * LOCALS;
    const uint32_t ranks[2] = {first, first + 1}, own = rank - first;
    const uint32_t backwards[2] = {first + 1, first}, others[1] = {(rank + 1) % RANKS}, beyond[2] = {rank, RANKS};
    const size_t indices[2] = {0, 1};
    const uint64_t starts[2] = {0, 0}, lengths[2] = {FIRST, SECOND};
    float both[2][BOTH], values[BOTH], norm = 7.0f;
    double truth;
    adasum_world *stage = NULL, *alone = NULL, *none = NULL;
    adasum_reducer *reducer = NULL;
    adasum_norm_clip *clip = NULL;
    aclrtStream stream = new_stream();
    void *places[2], *memory;
    uint32_t number = 7;
    noise(both[0], BOTH, first);
    noise(both[1], BOTH, first + 1);
    memory = put(both[own], sizeof both[own]);
    places_of(memory, places);
    REFUSED(ADASUM_INVALID_ARGUMENT, "not ascending ranks below 4", adasum_world_part(world, backwards, 2, 1, &none));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not ascending ranks below 4", adasum_world_part(world, beyond, 2, 1, &none));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not ascending ranks below 4", adasum_world_part(world, NULL, 0, 1, &none));
    REFUSED(ADASUM_INVALID_ARGUMENT, "is not in the part", adasum_world_part(world, others, 1, 1, &none));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not a whole number of servers of 3",
            adasum_world_part(world, ranks, 2, 3, &none));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not a whole number of servers of 0",
            adasum_world_part(world, ranks, 2, 0, &none));
    CHECK(none == NULL);

    OK(adasum_world_part(world, ranks, 2, 1, &stage));
    CHECK(adasum_world_rank(stage, &number) == ADASUM_OK && number == own);
    CHECK(adasum_world_size(stage, &number) == ADASUM_OK && number == 2);
    CHECK(adasum_world_servers(stage, &number) == ADASUM_OK && number == 2);
    REFUSED(ADASUM_INVALID_STATE, "reducers or others still use the world, 1 in all",
            adasum_world_finish(world, LIMIT));

    /* The shards of both ranks are one vector for the norm. */
    truth = sqrt(dot(both[0], both[0], BOTH) + dot(both[1], both[1], BOTH));
    OK(adasum_norm_clip_create_of_parts(stage, TENSORS, 2, indices, starts, lengths, 2, 1000.0f, LIMIT, &clip));
    OK(adasum_norm_clip_clip(clip, places, 2, stream));
    OK(adasum_reducer_create(stage, TENSORS, 2, NULL, &reducer));
    OK(adasum_reducer_reduce(reducer, places, 2, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    CHECK(adasum_norm_clip_last_norm(clip, &norm) == ADASUM_OK && near(norm, truth, truth));
    get(values, memory, sizeof values);
    expect_adasum(values, both[0], both[1], FIRST);
    expect_adasum(values + FIRST, both[0] + FIRST, both[1] + FIRST, SECOND);
    OK(adasum_norm_clip_forget_stream(clip, stream));
    REFUSED(ADASUM_INVALID_STATE, "reducers or others still use the world, 2 in all",
            adasum_world_finish(stage, LIMIT));
    adasum_norm_clip_destroy(clip);

    /* A part of a part: the one in the middle goes first, and the whole still knows that it is used. */
    OK(adasum_world_part(stage, &own, 1, 1, &alone));
    CHECK(adasum_world_size(alone, &number) == ADASUM_OK && number == 1);
    let_go(reducer, stream);
    adasum_world_destroy(stage);
    REFUSED(ADASUM_INVALID_STATE, "reducers or others still use the world, 1 in all",
            adasum_world_finish(world, LIMIT));
    OK(adasum_world_barrier(alone, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    OK(adasum_world_finish(alone, LIMIT));
    REFUSED(ADASUM_INVALID_STATE, "the world was finished", adasum_world_part(alone, &own, 1, 1, &none));
    adasum_world_destroy(alone);
    finish_stream(stream, memory);
}

static void sums_over_ranks(adasum_world *world, uint32_t rank) {
    const float mine[2] = {(float)rank + 1.0f, 0.5f};
    float values[2];
    aclrtStream stream = new_stream();
    char *memory = put(mine, sizeof mine);
    OK(adasum_world_all_reduce_sum(world, memory, 2, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    get(values, memory, sizeof values);
    CHECK(values[0] == 10.0f && values[1] == 2.0f);
    REFUSED(ADASUM_INVALID_ARGUMENT, "not a multiple of 4", adasum_world_all_reduce_sum(world, memory + 1, 1, stream));
    REFUSED(ADASUM_INVALID_ARGUMENT, "more than memory can hold",
            adasum_world_all_reduce_sum(world, memory, UINT64_MAX, stream));
    OK(adasum_world_forget_stream(world, stream));
    finish_stream(stream, memory);
}

/* The work of all ranks is done, and none goes on before all have read the number. */
static uint64_t collectives(void) {
    uint64_t counted;
    pthread_barrier_wait(&together);
    counted = adasum_mock_counter("collective_calls");
    pthread_barrier_wait(&together);
    return counted;
}

/* Collective calls of all ranks in a mean of three tensors with these flags. */
static uint64_t calls_of_mean(adasum_world *world, uint32_t rank, const char *fusion, const uint32_t *flags) {
    const float mine[3] = {(float)rank, 2.0f, 4.0f * (float)rank};
    float values[3];
    adasum_tensor tensors[3] = {{"a", 1, ADASUM_F32, 0}, {"b", 1, ADASUM_F32, 0}, {"c", 1, ADASUM_F32, 0}};
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    float *memory = put(mine, sizeof mine);
    void *places[3];
    uint64_t before, after;
    size_t i;
    for (i = 0; i < 3; i++) {
        tensors[i].flags = flags[i];
        places[i] = memory + i;
    }
    OK(adasum_options_set(options, "fusion", fusion));
    OK(adasum_reducer_create_mean(world, tensors, 3, options, &reducer));
    adasum_options_destroy(options);
    before = collectives();
    OK(adasum_reducer_reduce(reducer, places, 3, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    after = collectives();
    get(values, memory, sizeof values);
    CHECK(values[0] == 1.5f && values[1] == 2.0f && values[2] == 6.0f);
    let_go(reducer, stream);
    finish_stream(stream, memory);
    return after - before;
}

#define FUSION(id) (ADASUM_TENSOR_FUSION | (uint32_t)(id) << ADASUM_TENSOR_FUSION_SHIFT)

static void fusion_ids(adasum_world *world, uint32_t rank) {
    const uint32_t no_ids[3] = {0, 0, 0};
    const uint32_t equal[3] = {FUSION(9), FUSION(9), FUSION(9)};
    const uint32_t none[3] = {FUSION(0), FUSION(0), FUSION(0xffffff)};
    const uint32_t ends[3] = {FUSION(4), FUSION(5), FUSION(4)};
    const uint32_t one_of_own[3] = {0, 0, FUSION(1)}; /* 1 is also that of tensors without */
    const uint64_t together = calls_of_mean(world, rank, "all", no_ids);
    const uint64_t apart = calls_of_mean(world, rank, "none", no_ids);
    const uint64_t split = calls_of_mean(world, rank, "1", no_ids);
    const adasum_tensor shifted = {"w", 1, ADASUM_F32, 1u << ADASUM_TENSOR_FUSION_SHIFT};
    const adasum_tensor fused = {"w", 1, ADASUM_F32, FUSION(1)};
    adasum_reducer *reducer = NULL;
    CHECK(together < split && split < apart);
    CHECK(calls_of_mean(world, rank, "none", equal) == apart);
    CHECK(calls_of_mean(world, rank, "all", none) == apart);
    CHECK(calls_of_mean(world, rank, "none", ends) == split);
    CHECK(calls_of_mean(world, rank, "none", one_of_own) == together);
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].flags (w) is 0x100, which has bits that are not known",
            adasum_reducer_create_mean(world, &shifted, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "must be 0 for this reducer",
            adasum_reducer_create(world, &fused, 1, NULL, &reducer));
    CHECK(reducer == NULL);
}

/* Figures of what "optimizers" did, which is orthogonal between servers. */
static void figures_of_deltas(adasum_world *world, uint32_t rank) {
    float steps[2][BOTH], weights[BOTH];
    double figures[2 * ADASUM_STATISTICS], norms[4], truth;
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    void *places[2], *memory;
    size_t i;
    for (i = 0; i < BOTH; i++) {
        steps[0][i] = i % 2 == 0 ? 1.0f : 0.0f;
        steps[1][i] = i % 2 == 0 ? 0.0f : 2.0f;
        weights[i] = 8.0f;
    }
    memory = put(weights, sizeof weights);
    places_of(memory, places);
    OK(adasum_reducer_create_delta(world, TENSORS, 2, NULL, &reducer));
    OK(adasum_reducer_observe(reducer, 1));
    /* Equal on all ranks, so their mean changes nothing. */
    OK(adasum_reducer_delta_begin(reducer, places, places, 2, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    for (i = 0; i < BOTH; i++) {
        weights[i] = 8.0f - steps[rank / LOCALS][i];
    }
    CHECK(aclrtMemcpy(memory, sizeof weights, weights, sizeof weights, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    OK(adasum_reducer_delta_end(reducer, places, 2, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    OK(adasum_reducer_statistics(reducer, figures, 2 * ADASUM_STATISTICS, norms, 4));
    for (i = 0; i < 2; i++) {
        const float *one = steps[0] + i * FIRST, *other = steps[1] + i * FIRST;
        const double *own = figures + i * ADASUM_STATISTICS;
        truth = sqrt(dot(one, one, TENSORS[i].count) + dot(other, other, TENSORS[i].count));
        CHECK(near(own[ADASUM_STATISTIC_NORM], truth, truth) && near(own[ADASUM_STATISTIC_COSINE], 0.0, 1.0));
        CHECK(near(own[ADASUM_STATISTIC_GAIN], 2.0, 10.0) && own[ADASUM_STATISTIC_NONFINITE] == 0.0);
        CHECK(near(norms[2 * i], sqrt(dot(one, one, TENSORS[i].count)), truth));
        CHECK(near(norms[2 * i + 1], sqrt(dot(other, other, TENSORS[i].count)), truth));
    }
    let_go(reducer, stream);
    reducer = NULL;
    OK(adasum_reducer_create_mean(world, TENSORS, 2, NULL, &reducer));
    REFUSED(ADASUM_INVALID_STATE, "has no such call", adasum_reducer_observe(reducer, 1));
    REFUSED(ADASUM_INVALID_STATE, "has no such call",
            adasum_reducer_statistics(reducer, figures, 2 * ADASUM_STATISTICS, NULL, 0));
    let_go(reducer, stream);
    finish_stream(stream, memory);
}

static void *rank_main(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = join(rank, RANKS, LOCALS);
    clips(world);
    clips_of_owned_parts(world, rank);
    accumulates(world, rank);
    stages(world, rank);
    sums_over_ranks(world, rank);
    fusion_ids(world, rank);
    figures_of_deltas(world, rank);
    leave(world);
    return NULL;
}

/* Handles of the world and of a part go first; what was made of them works on, and ends in any order. */
static void *destroyed_in_any_order(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    const uint32_t ranks[2] = {0, 1};
    float values[BOTH], found[BOTH];
    adasum_world *world = join(rank, 2, 1), *part = NULL;
    adasum_reducer *reducer = NULL;
    adasum_norm_clip *clip = NULL;
    adasum_gradient_accumulator *accumulator = NULL;
    aclrtStream stream = new_stream();
    void *places[2], *memory;
    noise(values, BOTH, 3);
    memory = put(values, sizeof values);
    places_of(memory, places);
    OK(adasum_norm_clip_create(world, TENSORS, 2, 1000.0f, &clip));
    OK(adasum_world_part(world, ranks, 2, 1, &part));
    OK(adasum_gradient_accumulator_create(part, TENSORS, 2, &accumulator));
    OK(adasum_reducer_create(part, TENSORS, 2, NULL, &reducer));
    adasum_world_destroy(world);
    adasum_world_destroy(part);
    OK(adasum_gradient_accumulator_add(accumulator, places, 2, stream));
    OK(adasum_gradient_accumulator_take(accumulator, places, 2, 1.0f, stream));
    OK(adasum_reducer_reduce(reducer, places, 2, stream));
    OK(adasum_norm_clip_clip(clip, places, 2, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(found, memory, sizeof found);
    CHECK(memcmp(found, values, sizeof found) == 0);
    let_go(reducer, stream);
    OK(adasum_gradient_accumulator_forget_stream(accumulator, stream));
    adasum_gradient_accumulator_destroy(accumulator);
    OK(adasum_norm_clip_forget_stream(clip, stream));
    adasum_norm_clip_destroy(clip);
    finish_stream(stream, memory);
    return NULL;
}

enum { THREADS = 4, TIMES = 20 };

struct job {
    adasum_gradient_accumulator *accumulator;
    adasum_journal *journal;
};

/* One accumulator and one journal, several threads: an addition works or is told that another thread is inside; records all
 * come. */
static void *adds_and_records(void *argument) {
    struct job *job = argument;
    const char *names[1] = {"loss"};
    const double loss = 0.5;
    float values[BOTH];
    aclrtStream stream;
    void *places[2], *memory;
    uint64_t done = 0;
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
    stream = new_stream();
    noise(values, BOTH, 1);
    memory = put(values, sizeof values);
    places_of(memory, places);
    while (done < TIMES) {
        const adasum_status status = adasum_gradient_accumulator_add(job->accumulator, places, 2, stream);
        if (status == ADASUM_OK) {
            done++;
            OK(adasum_journal_record(job->journal, "threads", done, NAN, names, &loss, 1, NULL, NULL, 0));
        } else {
            CHECK(status == ADASUM_INVALID_STATE);
            CHECK(strstr(adasum_last_error(), "another thread is using this accumulator") != NULL);
            usleep(50);
        }
    }
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    while (adasum_gradient_accumulator_forget_stream(job->accumulator, stream) != ADASUM_OK) {
        usleep(50);
    }
    finish_stream(stream, memory);
    return NULL;
}

/* The file in the folder in which this runs. */
static const char FILE_NAME[] = "rank_7.jsonl";

static size_t lines(void) {
    FILE *file = fopen(FILE_NAME, "r");
    size_t count = 0;
    int letter;
    CHECK(file != NULL);
    while (file != NULL && (letter = fgetc(file)) != EOF) {
        count += letter == '\n';
    }
    CHECK(file != NULL && fclose(file) == 0);
    return count;
}

static void many_threads(void) {
    pthread_t threads[THREADS];
    struct job job = {NULL, NULL};
    adasum_world *world;
    uint32_t steps = 0;
    size_t i;
    OK(adasum_root_info_create(0, root_info, sizeof root_info));
    world = join(0, 1, 1);
    OK(adasum_gradient_accumulator_create(world, TENSORS, 2, &job.accumulator));
    OK(adasum_journal_open(".", 7, &job.journal));
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, adds_and_records, &job) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(adasum_gradient_accumulator_steps(job.accumulator, &steps) == ADASUM_OK && steps == THREADS * TIMES);
    CHECK(lines() == THREADS * TIMES);
    adasum_journal_destroy(job.journal);
    adasum_gradient_accumulator_destroy(job.accumulator);
    leave(world);
}

/* The line that the page about reports shows, and what is not finite. A test reads the file with the launcher's reader. */
static void journals(void) {
    const char *names[2] = {"loss", "accuracy"}, *tensors[1] = {"w1"};
    const double values[2] = {2.19, NAN};
    double figures[ADASUM_STATISTICS];
    adasum_journal *journal = NULL;
    figures[ADASUM_STATISTIC_NORM] = 0.5;
    figures[ADASUM_STATISTIC_COSINE] = 0.25;
    figures[ADASUM_STATISTIC_GAIN] = 1.25;
    figures[ADASUM_STATISTIC_KAPPA] = 1.0;
    figures[ADASUM_STATISTIC_NONFINITE] = 0.0;
    REFUSED(ADASUM_IO, "nowhere/rank_7.jsonl", adasum_journal_open("nowhere", 7, &journal));
    CHECK(setenv("ADASUM_STATISTICS_DIR", "", 1) == 0);
    CHECK(adasum_journal_from_env(7, &journal) == ADASUM_OK && journal == NULL);
    CHECK(setenv("ADASUM_STATISTICS_DIR", "nowhere", 1) == 0);
    REFUSED(ADASUM_IO, "nowhere/rank_7.jsonl", adasum_journal_from_env(7, &journal));
    CHECK(journal == NULL);
    CHECK(setenv("ADASUM_STATISTICS_DIR", ".", 1) == 0);
    CHECK(adasum_journal_from_env(7, &journal) == ADASUM_OK && journal != NULL);
    CHECK(unsetenv("ADASUM_STATISTICS_DIR") == 0);
    OK(adasum_journal_record(journal, "adasum", 11, 1.5, names, values, 2, tensors, figures, 1));
    OK(adasum_journal_record(journal, "", 12, NAN, NULL, NULL, 0, NULL, NULL, 0));
    REFUSED(ADASUM_INVALID_ARGUMENT,
            "run: ", adasum_journal_record(journal, "\xff", 1, NAN, NULL, NULL, 0, NULL, NULL, 0));
    REFUSED(ADASUM_INVALID_ARGUMENT, "more than memory can hold",
            adasum_journal_record(journal, "", 1, NAN, NULL, NULL, 0, tensors, figures, SIZE_MAX));
    adasum_journal_destroy(journal);
    CHECK(lines() == THREADS * TIMES + 2);
}

int main(void) {
    remove(FILE_NAME);
    begin_together(RANKS);
    run_ranks(RANKS, rank_main);
    run_ranks(2, destroyed_in_any_order);
    many_threads();
    journals();
    return verdict();
}
