/* Every reducer through the C interface over the mock, ranks as threads, with results that can be worked out by hand. */
#include "capi.h"

enum { RANKS = 2, COUNT = 1000 };

/* Rank 0 has (a, 0, ..), rank 1 has (0, b, ..): orthogonal, so AdaSum is the sum. */
static void fill(float *values, uint32_t rank) {
    uint32_t i;
    for (i = 0; i < COUNT; i++) {
        values[i] = i % 2 == rank ? (float)(i + 1) : 0.0f;
    }
}

static void expect_sum(const float *values, float factor) {
    int i;
    for (i = 0; i < COUNT; i++) {
        CHECK(values[i] == factor * (float)(i + 1));
    }
}

static void every_option(adasum_options *options) {
    OK(adasum_options_set(options, "profile", "paper"));
    OK(adasum_options_set(options, "mindspore_context", "semi_auto_parallel,0,1,2"));
    OK(adasum_options_set(options, "in_server", "mean"));
    OK(adasum_options_set(options, "radix", "auto"));
    OK(adasum_options_set(options, "placement", "hierarchical"));
    OK(adasum_options_set(options, "exchange", "pairwise"));
    OK(adasum_options_set(options, "scalars", "owned"));
    OK(adasum_options_set(options, "machine", "A3"));
    OK(adasum_options_set(options, "machine", "auto"));
    OK(adasum_options_set(options, "wire", "f32"));
    OK(adasum_options_set(options, "scale", "0.5"));
    OK(adasum_options_set(options, "result_scale", "2.0"));
    OK(adasum_options_set(options, "zero_tol", "1e-12"));
    OK(adasum_options_set(options, "overflow", "vote"));
    OK(adasum_options_set(options, "bucket_bytes", "4096"));
    OK(adasum_options_set(options, "pipeline_depth", "2"));
    OK(adasum_options_set(options, "subset_plans", "2"));
    OK(adasum_options_set(options, "padded", "1"));
    OK(adasum_options_set(options, "scattered", "0"));
    OK(adasum_options_set(options, "barrier", "1"));
    OK(adasum_options_set(options, "checksum", "1"));
    OK(adasum_options_set(options, "allow_plain_mean", "1"));
    OK(set_number(options, "create_timeout_ms", LIMIT));
    OK(set_number(options, "stall_timeout_ms", LIMIT));
    OK(adasum_options_set(options, "delta_form", "local"));
    OK(adasum_options_set(options, "degree", "3"));
    OK(adasum_options_set(options, "fusion", "none"));
    OK(adasum_options_set(options, "fusion", "0"));
    OK(adasum_options_set(options, "group", "0"));
    OK(adasum_options_set(options, "group", "all"));
}

/* `scale` is what the reducer multiplied gradients by before it combined them. */
static void figures_and_plan(adasum_reducer *reducer, double scale) {
    double figures[3 * ADASUM_STATISTICS], norms[3 * RANKS];
    char text[4096];
    char start[10];
    size_t length = 0, all = 0;
    OK(adasum_reducer_statistics(reducer, figures, 3 * ADASUM_STATISTICS, norms, 3 * RANKS));
    CHECK(fabs(figures[ADASUM_STATISTIC_COSINE]) < 1e-6 && fabs(figures[ADASUM_STATISTIC_GAIN] - 2.0) < 1e-5);
    CHECK(figures[ADASUM_STATISTIC_KAPPA] >= 1.0 && figures[ADASUM_STATISTIC_NONFINITE] == 0.0);
    /* Equal vectors of norm sqrt(14.25). */
    CHECK(fabs(figures[2 * ADASUM_STATISTICS + ADASUM_STATISTIC_COSINE] - 1.0) < 1e-6);
    CHECK(fabs(figures[2 * ADASUM_STATISTICS + ADASUM_STATISTIC_NORM] - scale * sqrt(14.25)) < 1e-5);
    CHECK(fabs(norms[2 * RANKS] - norms[2 * RANKS + 1]) < 1e-6);
    OK(adasum_reducer_statistics(reducer, figures, 3 * ADASUM_STATISTICS, NULL, 0));

    OK(adasum_reducer_plan(reducer, NULL, 0, &all));
    OK(adasum_reducer_plan(reducer, text, sizeof text, &length));
    CHECK(length == all && length < sizeof text && strlen(text) == length);
    CHECK(strstr(text, "2 servers of 1") != NULL && strstr(text, "\"orthogonal\"") != NULL);
    CHECK(strstr(text, "bytes with ranks [") != NULL);
    OK(adasum_reducer_plan(reducer, start, sizeof start, &length));
    CHECK(length == all && strlen(start) == 9 && strncmp(start, text, 9) == 0);
}

static void gradients(adasum_world *world, uint32_t rank, const char *reduction, int all_options) {
    const float equal[4] = {1.0f, -2.0f, 3.0f, 0.5f};
    const adasum_tensor tensors[3] = {
        {"orthogonal", COUNT, ADASUM_F32, 0}, {"empty", 0, ADASUM_F16, 0}, {"equal", 4, ADASUM_F32, 0}};
    const float factor = strcmp(reduction, "mean") == 0 ? 0.5f : 1.0f;
    const float of_equal = strcmp(reduction, "sum") == 0 ? 2.0f : 1.0f;
    void *memory[3] = {NULL, NULL, NULL};
    float values[COUNT];
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    uint8_t flags[3] = {7, 7, 7};
    int32_t overflowed = 7;
    int i;

    if (all_options) {
        every_option(options);
    }
    OK(adasum_options_set(options, "reduction", reduction));
    OK(adasum_reducer_create(world, tensors, 3, options, &reducer));
    adasum_options_destroy(options);
    fill(values, rank);
    memory[0] = put(values, sizeof values);
    memory[2] = put(equal, sizeof equal);
    if (all_options) {
        OK(adasum_reducer_overflow(reducer, memory, 3, stream, LIMIT, &overflowed));
        CHECK(overflowed == 0);
    } else {
        REFUSED(ADASUM_INVALID_STATE, "overflow = vote",
                adasum_reducer_overflow(reducer, memory, 3, stream, LIMIT, &overflowed));
    }
    REFUSED(ADASUM_INVALID_ARGUMENT, "on", adasum_reducer_observe(reducer, 2));
    OK(adasum_reducer_observe(reducer, 1));
    OK(adasum_reducer_reduce(reducer, memory, 3, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(values, memory[0], sizeof values);
    expect_sum(values, factor);
    get(values, memory[2], sizeof equal);
    for (i = 0; i < 4; i++) {
        CHECK(values[i] == of_equal * equal[i]);
    }
    OK(adasum_reducer_nonfinite(reducer, flags, 3));
    CHECK(flags[0] == 0 && flags[1] == 0 && flags[2] == 0);
    if (strcmp(reduction, "adasum") == 0) {
        figures_and_plan(reducer, all_options ? 0.5 : 1.0);
    } else {
        double figures[3 * ADASUM_STATISTICS];
        REFUSED(ADASUM_UNSUPPORTED, "AdaSum",
                adasum_reducer_statistics(reducer, figures, 3 * ADASUM_STATISTICS, NULL, 0));
    }
    let_go(reducer, stream);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(memory[0]) == ACL_SUCCESS && aclrtFree(memory[2]) == ACL_SUCCESS);
}

/* Buckets as DDP makes them: some tensors at their own addresses, some in one buffer, all in one buffer. */
static void subsets(adasum_world *world, uint32_t rank) {
    const adasum_tensor tensors[3] = {
        {"a", COUNT, ADASUM_F32, 0}, {"b", COUNT, ADASUM_F32, 0}, {"c", COUNT, ADASUM_F32, 0}};
    const size_t backwards[2] = {2, 0}, middle[1] = {1}, twice[2] = {1, 1};
    float values[3 * COUNT];
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    char *buffer;
    void *ends[2];
    int i;
    for (i = 0; i < 3; i++) {
        fill(values + i * COUNT, rank);
    }
    buffer = put(values, sizeof values);
    ends[0] = buffer + 2 * COUNT * sizeof(float);
    ends[1] = buffer;
    OK(adasum_reducer_create(world, tensors, 3, NULL, &reducer));
    OK(adasum_reducer_prepare_some(reducer, middle, 1));
    OK(adasum_reducer_reduce_some(reducer, backwards, ends, 2, stream));
    OK(adasum_reducer_reduce_some_flat(reducer, middle, 1, buffer + COUNT * sizeof(float), COUNT * sizeof(float),
                                       stream));
    REFUSED(ADASUM_INVALID_ARGUMENT, "comes twice", adasum_reducer_prepare_some(reducer, twice, 2));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(values, buffer, sizeof values);
    for (i = 0; i < 3; i++) {
        expect_sum(values + i * COUNT, 1.0f);
    }
    /* Equal on both ranks now: AdaSum is their mean, and nothing changes. */
    OK(adasum_reducer_reduce_flat(reducer, buffer, sizeof values, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(values, buffer, sizeof values);
    expect_sum(values + COUNT, 1.0f);
    let_go(reducer, stream);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(buffer) == ACL_SUCCESS);
}

/* A NaN on one rank: all decide alike, before and after. */
static void nan_on_one(adasum_world *world, uint32_t rank) {
    const adasum_tensor tensors[2] = {{"bad", 3, ADASUM_F32, 0}, {"good", 3, ADASUM_F32, 0}};
    const float good[3] = {1.0f, 2.0f, 3.0f};
    float bad[3] = {1.0f, 2.0f, 3.0f};
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    void *memory[2];
    uint8_t flags[2] = {7, 7};
    int32_t overflowed = 7;
    if (rank == 1) {
        bad[1] = (float)NAN;
    }
    memory[0] = put(bad, sizeof bad);
    memory[1] = put(good, sizeof good);
    OK(adasum_options_set(options, "overflow", "vote"));
    OK(adasum_reducer_create(world, tensors, 2, options, &reducer));
    adasum_options_destroy(options);
    OK(adasum_reducer_overflow(reducer, memory, 2, stream, LIMIT, &overflowed));
    CHECK(overflowed == 1);
    OK(adasum_reducer_reduce(reducer, memory, 2, stream));
    OK(adasum_reducer_nonfinite(reducer, flags, 2));
    CHECK(flags[0] == 1 && flags[1] == 0);
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    let_go(reducer, stream);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(memory[0]) == ACL_SUCCESS && aclrtFree(memory[1]) == ACL_SUCCESS);
}

/* Old weights 10, "optimizers" that step by orthogonal vectors: the new weights are old - their sum. */
static void deltas(adasum_world *world, uint32_t rank) {
    const adasum_tensor tensor = {"w", COUNT, ADASUM_F32, 0};
    float values[COUNT], steps[COUNT];
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    uint8_t flag = 7;
    void *memory;
    const char *const forms[2] = {"server_mean", "local"};
    int form, i;
    for (form = 0; form < 2; form++) {
        for (i = 0; i < COUNT; i++) {
            values[i] = 10.0f;
        }
        memory = put(values, sizeof values);
        OK(adasum_options_set(options, "delta_form", forms[form]));
        OK(adasum_reducer_create_delta(world, &tensor, 1, options, &reducer));
        REFUSED(ADASUM_INVALID_STATE, "end without begin", adasum_reducer_delta_end(reducer, &memory, 1, stream));
        OK(adasum_reducer_delta_begin(reducer, NULL, &memory, 1, stream));
        REFUSED(ADASUM_INVALID_STATE, "begin while a step is open",
                adasum_reducer_delta_begin(reducer, NULL, &memory, 1, stream));
        OK(adasum_reducer_delta_reset(reducer));
        OK(adasum_reducer_delta_begin(reducer, NULL, &memory, 1, stream));
        CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
        fill(steps, rank);
        for (i = 0; i < COUNT; i++) {
            values[i] = 10.0f - steps[i];
        }
        CHECK(aclrtMemcpy(memory, sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
        OK(adasum_reducer_delta_end(reducer, &memory, 1, stream));
        OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
        get(values, memory, sizeof values);
        for (i = 0; i < COUNT; i++) {
            CHECK(values[i] == 10.0f - (float)(i + 1));
        }
        CHECK(adasum_reducer_nonfinite(reducer, &flag, 1) == ADASUM_OK && flag == 0);
        let_go(reducer, stream);
        CHECK(aclrtFree(memory) == ACL_SUCCESS);
    }
    OK(adasum_options_set(options, "in_server", "sum"));
    REFUSED(ADASUM_INVALID_ARGUMENT, "in_server", adasum_reducer_create_delta(world, &tensor, 1, options, &reducer));
    adasum_options_destroy(options);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
}

static void means(adasum_world *world, uint32_t rank) {
    const adasum_tensor tensors[2] = {{"dense", 2, ADASUM_F32, 0}, {"own", 2, ADASUM_F32, ADASUM_TENSOR_LAYERWISE}};
    const float mine[2] = {(float)rank + 1.0f, 8.0f};
    float values[2];
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    void *memory[2];
    memory[0] = put(mine, sizeof mine);
    memory[1] = put(mine, sizeof mine);
    OK(adasum_options_set(options, "degree", "4"));
    OK(adasum_reducer_create_mean(world, tensors, 2, options, &reducer));
    OK(adasum_reducer_reduce(reducer, memory, 2, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(values, memory[0], sizeof values);
    CHECK(values[0] == 0.75f && values[1] == 4.0f);
    get(values, memory[1], sizeof values);
    CHECK(values[0] == mine[0] && values[1] == 8.0f);
    let_go(reducer, stream);
    reducer = NULL;

    /* A group of this rank alone. */
    OK(adasum_options_set(options, "reduction", "sum"));
    OK(set_number(options, "group", rank));
    OK(adasum_reducer_create_mean(world, tensors, 1, options, &reducer));
    OK(adasum_reducer_reduce(reducer, memory, 1, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(values, memory[0], sizeof values);
    CHECK(values[0] == 0.75f);
    let_go(reducer, stream);
    reducer = NULL;
    {
        const uint32_t other = 1 - rank;
        OK(set_number(options, "group", other));
        REFUSED(ADASUM_INVALID_ARGUMENT, "is not in", adasum_reducer_create_mean(world, tensors, 1, options, &reducer));
        OK(adasum_options_set(options, "group", "all"));
        OK(adasum_options_set(options, "degree", "-1"));
        REFUSED(ADASUM_INVALID_ARGUMENT, "should large than 0",
                adasum_reducer_create_mean(world, tensors, 1, options, &reducer));
    }
    adasum_options_destroy(options);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(memory[0]) == ACL_SUCCESS && aclrtFree(memory[1]) == ACL_SUCCESS);
}

/* Rank 0 brings one row, rank 1 two. */
static void rows(adasum_world *world, uint32_t rank) {
    const int32_t numbers[2] = {5, 6 + (int32_t)rank};
    const float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    const uint64_t own = rank + 1;
    int32_t found[3] = {0, 0, 0};
    float elements[6];
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    void *indices = put(numbers, sizeof numbers), *memory = put(values, sizeof values);
    void *all_indices = NULL, *all_values = NULL;
    uint64_t count = 0;
    uint8_t flag = 7;
    OK(adasum_reducer_create_sparse(world, "rows", 2, ADASUM_F32, ADASUM_INDEX_I32, 2, 0, NULL, &reducer));
    OK(adasum_reducer_gather(reducer, indices, memory, own, stream, &count, &all_indices, &all_values));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    CHECK(count == 3 && all_indices != NULL && all_values != NULL);
    if (count == 3) {
        get(found, all_indices, sizeof found);
        get(elements, all_values, sizeof elements);
        CHECK(found[0] == 5 && found[1] == 5 && found[2] == 7);
        CHECK(elements[0] == 0.5f && elements[1] == 1.0f && elements[2] == 0.5f && elements[5] == 2.0f);
    }
    REFUSED(ADASUM_INVALID_ARGUMENT, "3 rows",
            adasum_reducer_gather(reducer, indices, memory, 3, stream, &count, &all_indices, &all_values));
    REFUSED(ADASUM_INVALID_ARGUMENT, "0 tensors", adasum_reducer_nonfinite(reducer, &flag, 1));
    REFUSED(ADASUM_INVALID_STATE, "adasum_reducer_create_sparse has no such call",
            adasum_reducer_nonfinite(reducer, NULL, 0));
    let_go(reducer, stream);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(indices) == ACL_SUCCESS && aclrtFree(memory) == ACL_SUCCESS);
}

/* Each rank keeps its parts; together they are the result, and collect brings them to all. */
static void scattered(adasum_world *world, uint32_t rank) {
    enum { MANY = 50000 };
    const adasum_tensor tensor = {"w", MANY, ADASUM_F32, 0};
    size_t count = 0, tensors[4];
    uint64_t starts[4], lengths[4], total = 0, i, j;
    static float results[RANKS][MANY];
    float *values = results[rank];
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    aclrtStream stream = new_stream();
    void *memory;
    for (i = 0; i < MANY; i++) {
        values[i] = i % 2 == rank ? (float)(i + 1) : 0.0f;
    }
    memory = put(values, sizeof results[rank]);
    OK(adasum_options_set(options, "scattered", "1"));
    OK(adasum_reducer_create(world, &tensor, 1, options, &reducer));
    adasum_options_destroy(options);
    OK(adasum_reducer_reduce(reducer, &memory, 1, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    OK(adasum_reducer_owned_count(reducer, &count));
    CHECK(count >= 1 && count <= 4);
    OK(adasum_reducer_owned(reducer, tensors, starts, lengths, count));
    get(values, memory, sizeof results[rank]);
    for (i = 0; i < count; i++) {
        total += lengths[i];
        CHECK(tensors[i] == 0 && starts[i] + lengths[i] <= MANY);
        for (j = starts[i]; j < starts[i] + lengths[i]; j++) {
            CHECK(values[j] == (float)(j + 1));
        }
    }
    CHECK(total > 0 && total < MANY);
    OK(adasum_reducer_collect(reducer, &memory, 1, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(values, memory, sizeof results[rank]);
    for (i = 0; i < MANY; i++) {
        CHECK(values[i] == (float)(i + 1));
    }
    let_go(reducer, stream);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
}

static void *rank_main(void *argument) {
    const uint32_t rank = (uint32_t)(size_t)argument;
    adasum_world *world = join(rank, RANKS, 1);
    aclrtStream stream = new_stream();
    uint32_t number = 7;
    int32_t device = 7;
    CHECK(adasum_world_rank(world, &number) == ADASUM_OK && number == rank);
    CHECK(adasum_world_size(world, &number) == ADASUM_OK && number == RANKS);
    CHECK(adasum_world_servers(world, &number) == ADASUM_OK && number == RANKS);
    CHECK(adasum_world_devices_per_server(world, &number) == ADASUM_OK && number == 1);
    CHECK(adasum_world_device(world, &device) == ADASUM_OK && device == (int32_t)rank);
    CHECK(adasum_world_last_vendor_code(world, &device) == ADASUM_OK && device == 0);
    gradients(world, rank, "adasum", 0);
    gradients(world, rank, "adasum", 1);
    gradients(world, rank, "mean", 1);
    gradients(world, rank, "sum", 0);
    subsets(world, rank);
    nan_on_one(world, rank);
    deltas(world, rank);
    means(world, rank);
    rows(world, rank);
    scattered(world, rank);
    OK(adasum_world_barrier(world, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    OK(adasum_world_forget_stream(world, stream));
    OK(adasum_world_forget_stream(world, stream));
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    leave(world);
    return NULL;
}

static int records;

static void count_record(int32_t level, const char *message, void *user_data) {
    __atomic_add_fetch((int *)user_data, level >= 1 && level <= 5 && message != NULL, __ATOMIC_RELAXED);
}

int main(void) {
    const char *backend = NULL;
    OK(adasum_set_log_callback(count_record, &records, 5));
    CHECK(adasum_backend(&backend) == ADASUM_OK && backend != NULL && strcmp(backend, "mock") == 0);
    run_ranks(RANKS, rank_main);
    OK(adasum_set_log_callback(NULL, NULL, 1));
    return verdict();
}
