/* NULL for every pointer of every function, and values that are none. A test counts the functions. */
#include "capi.h"

/* The call says that it was given NULL for `argument`. */
#define IS_NULL(function, argument, call) REFUSED(ADASUM_NULL_ARGUMENT, function ": " argument " is NULL", call)

static void library(void) {
    IS_NULL("adasum_backend", "out_name", adasum_backend(NULL));
    CHECK(strcmp(adasum_status_string(ADASUM_TIMEOUT), "timeout") == 0);
    CHECK(strcmp(adasum_status_string(-1), "unknown status") == 0);
    CHECK(strcmp(adasum_status_string(INT32_MAX), "unknown status") == 0);
    REFUSED(ADASUM_INVALID_ARGUMENT, "level is 0", adasum_set_log_callback(NULL, NULL, 0));
    adasum_options_destroy(NULL);
    adasum_world_destroy(NULL);
    adasum_reducer_destroy(NULL);
    adasum_norm_clip_destroy(NULL);
    adasum_gradient_accumulator_destroy(NULL);
    adasum_journal_destroy(NULL);
}

static void options_of_null(void) {
    adasum_options *none = NULL;
    IS_NULL("adasum_options_create", "out", adasum_options_create(NULL));
    IS_NULL("adasum_options_load_environment", "options", adasum_options_load_environment(none));
    IS_NULL("adasum_options_load_boost", "options", adasum_options_load_boost(none, "", ""));
    IS_NULL("adasum_options_set", "options", adasum_options_set(none, "radix", "2"));
}

static void wrong_options(adasum_options *options) {
    IS_NULL("adasum_options_load_boost", "path", adasum_options_load_boost(options, NULL, "O2"));
    IS_NULL("adasum_options_load_boost", "level", adasum_options_load_boost(options, "boost.json", NULL));
    REFUSED(ADASUM_IO, "nowhere.json", adasum_options_load_boost(options, "nowhere.json", "O2"));
    REFUSED(ADASUM_IO, "/dev/zero: not a regular file", adasum_options_load_boost(options, "/dev/zero", "O2"));
    IS_NULL("adasum_options_set", "name", adasum_options_set(options, NULL, "2"));
    IS_NULL("adasum_options_set", "value", adasum_options_set(options, "radix", NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "\"colour\" is no option; there are profile, reduction,",
            adasum_options_set(options, "colour", "red"));
    REFUSED(ADASUM_INVALID_ARGUMENT, "radix is \"9\", must be auto or 2 to 8",
            adasum_options_set(options, "radix", "9"));
    REFUSED(ADASUM_INVALID_ARGUMENT, "scale is \"inf\", must be a finite number",
            adasum_options_set(options, "scale", "inf"));
    REFUSED(ADASUM_INVALID_ARGUMENT, "group is \"\", must be all or ascending ranks",
            adasum_options_set(options, "group", ""));
    REFUSED(ADASUM_INVALID_ARGUMENT, "value", adasum_options_set(options, "radix", "\xff"));
}

static void worlds(void) {
    adasum_world *world = NULL;
    adasum_world *none = NULL;
    uint32_t number = 7;
    int32_t device = 7;
    IS_NULL("adasum_world_from_rank_table", "path", adasum_world_from_rank_table(NULL, 0, NULL, &world));
    IS_NULL("adasum_world_from_rank_table", "out", adasum_world_from_rank_table("t.json", 0, NULL, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "nowhere.json", adasum_world_from_rank_table("nowhere.json", 0, NULL, &world));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not UTF-8", adasum_world_from_rank_table("\xff", 0, NULL, &world));
    IS_NULL("adasum_world_from_environment", "out", adasum_world_from_environment(NULL, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "neither a rank table", adasum_world_from_environment(NULL, &world));
    IS_NULL("adasum_root_info_create", "out_bytes", adasum_root_info_create(0, NULL, ADASUM_ROOT_INFO_BYTES));
    REFUSED(ADASUM_INVALID_ARGUMENT, "len is 5", adasum_root_info_create(0, root_info, 5));
    IS_NULL("adasum_world_from_root_info", "root_info",
            adasum_world_from_root_info(0, NULL, ADASUM_ROOT_INFO_BYTES, 1, 0, NULL, &world));
    IS_NULL("adasum_world_from_root_info", "out",
            adasum_world_from_root_info(0, root_info, ADASUM_ROOT_INFO_BYTES, 1, 0, NULL, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "len is 7", adasum_world_from_root_info(0, root_info, 7, 1, 0, NULL, &world));
    IS_NULL("adasum_world_from_comm", "comm", adasum_world_from_comm(NULL, NULL, &world));
    IS_NULL("adasum_world_from_comm", "out", adasum_world_from_comm(root_info, NULL, NULL));
    IS_NULL("adasum_world_rank", "world", adasum_world_rank(none, &number));
    IS_NULL("adasum_world_size", "world", adasum_world_size(none, &number));
    IS_NULL("adasum_world_servers", "world", adasum_world_servers(none, &number));
    IS_NULL("adasum_world_devices_per_server", "world", adasum_world_devices_per_server(none, &number));
    IS_NULL("adasum_world_device", "world", adasum_world_device(none, &device));
    IS_NULL("adasum_world_part", "world", adasum_world_part(none, NULL, 0, 1, &world));
    IS_NULL("adasum_world_barrier", "world", adasum_world_barrier(none, NULL));
    IS_NULL("adasum_world_all_reduce_sum", "world", adasum_world_all_reduce_sum(none, NULL, 0, NULL));
    IS_NULL("adasum_world_forget_stream", "world", adasum_world_forget_stream(none, root_info));
    IS_NULL("adasum_world_abort", "world", adasum_world_abort(none));
    IS_NULL("adasum_world_stop_on_failure", "world", adasum_world_stop_on_failure(none));
    IS_NULL("adasum_world_last_vendor_code", "world", adasum_world_last_vendor_code(none, &device));
    IS_NULL("adasum_world_finish", "world", adasum_world_finish(none, 1));
    CHECK(world == NULL && number == 7 && device == 7);
}

static void reducers_of_null(adasum_reducer *none) {
    adasum_reducer *reducer = NULL;
    uint8_t flag = 7;
    int32_t number = 7;
    size_t count = 7;
    void *place = NULL;
    IS_NULL("adasum_reducer_create", "world", adasum_reducer_create(NULL, NULL, 0, NULL, &reducer));
    IS_NULL("adasum_reducer_create_delta", "world", adasum_reducer_create_delta(NULL, NULL, 0, NULL, &reducer));
    IS_NULL("adasum_reducer_create_mean", "world", adasum_reducer_create_mean(NULL, NULL, 0, NULL, &reducer));
    IS_NULL("adasum_reducer_create_sparse", "world",
            adasum_reducer_create_sparse(NULL, "s", 1, ADASUM_F32, ADASUM_INDEX_I32, 1, 1, NULL, &reducer));
    IS_NULL("adasum_reducer_synchronize", "reducer", adasum_reducer_synchronize(none, NULL, 1));
    IS_NULL("adasum_reducer_forget_stream", "reducer", adasum_reducer_forget_stream(none, NULL));
    IS_NULL("adasum_reducer_gradient_buffers", "reducer", adasum_reducer_gradient_buffers(none, &place, 1));
    IS_NULL("adasum_reducer_nonfinite", "reducer", adasum_reducer_nonfinite(none, &flag, 1));
    IS_NULL("adasum_reducer_abort", "reducer", adasum_reducer_abort(none));
    IS_NULL("adasum_reducer_reduce", "reducer", adasum_reducer_reduce(none, NULL, 0, NULL));
    IS_NULL("adasum_reducer_reduce_flat", "reducer", adasum_reducer_reduce_flat(none, NULL, 0, NULL));
    IS_NULL("adasum_reducer_reduce_some", "reducer", adasum_reducer_reduce_some(none, NULL, NULL, 0, NULL));
    IS_NULL("adasum_reducer_reduce_some_flat", "reducer",
            adasum_reducer_reduce_some_flat(none, NULL, 0, NULL, 0, NULL));
    IS_NULL("adasum_reducer_prepare_some", "reducer", adasum_reducer_prepare_some(none, NULL, 0));
    IS_NULL("adasum_reducer_overflow", "reducer", adasum_reducer_overflow(none, NULL, 0, NULL, 1, &number));
    IS_NULL("adasum_reducer_owned_count", "reducer", adasum_reducer_owned_count(none, &count));
    IS_NULL("adasum_reducer_owned", "reducer", adasum_reducer_owned(none, NULL, NULL, NULL, 0));
    IS_NULL("adasum_reducer_collect", "reducer", adasum_reducer_collect(none, NULL, 0, NULL));
    IS_NULL("adasum_reducer_observe", "reducer", adasum_reducer_observe(none, 1));
    IS_NULL("adasum_reducer_statistics", "reducer", adasum_reducer_statistics(none, NULL, 0, NULL, 0));
    IS_NULL("adasum_reducer_plan", "reducer", adasum_reducer_plan(none, NULL, 0, &count));
    IS_NULL("adasum_reducer_delta_begin", "reducer", adasum_reducer_delta_begin(none, NULL, NULL, 0, NULL));
    IS_NULL("adasum_reducer_delta_end", "reducer", adasum_reducer_delta_end(none, NULL, 0, NULL));
    IS_NULL("adasum_reducer_delta_reset", "reducer", adasum_reducer_delta_reset(none));
    IS_NULL("adasum_reducer_gather", "reducer", adasum_reducer_gather(none, NULL, NULL, 0, NULL, NULL, NULL, NULL));
    CHECK(reducer == NULL && flag == 7 && number == 7 && count == 7);
}

static void helpers_of_null(adasum_norm_clip *clip, adasum_gradient_accumulator *accumulator) {
    adasum_norm_clip *new_clip = NULL;
    adasum_gradient_accumulator *new_accumulator = NULL;
    float norm = 7.0f;
    uint32_t steps = 7;
    IS_NULL("adasum_norm_clip_create", "world", adasum_norm_clip_create(NULL, NULL, 0, 1.0f, &new_clip));
    IS_NULL("adasum_norm_clip_create_of_parts", "world",
            adasum_norm_clip_create_of_parts(NULL, NULL, 0, NULL, NULL, NULL, 0, 1.0f, LIMIT, &new_clip));
    IS_NULL("adasum_norm_clip_clip", "clip", adasum_norm_clip_clip(clip, NULL, 0, NULL));
    IS_NULL("adasum_norm_clip_last_norm", "clip", adasum_norm_clip_last_norm(clip, &norm));
    IS_NULL("adasum_norm_clip_forget_stream", "clip", adasum_norm_clip_forget_stream(clip, NULL));
    IS_NULL("adasum_gradient_accumulator_create", "world",
            adasum_gradient_accumulator_create(NULL, NULL, 0, &new_accumulator));
    IS_NULL("adasum_gradient_accumulator_add", "accumulator",
            adasum_gradient_accumulator_add(accumulator, NULL, 0, NULL));
    IS_NULL("adasum_gradient_accumulator_steps", "accumulator", adasum_gradient_accumulator_steps(accumulator, &steps));
    IS_NULL("adasum_gradient_accumulator_take", "accumulator",
            adasum_gradient_accumulator_take(accumulator, NULL, 0, 1.0f, NULL));
    IS_NULL("adasum_gradient_accumulator_forget_stream", "accumulator",
            adasum_gradient_accumulator_forget_stream(accumulator, NULL));
    CHECK(new_clip == NULL && new_accumulator == NULL && norm == 7.0f && steps == 7);
}

static void journals(void) {
    const char *const names[1] = {"loss"};
    const char *const missing[1] = {NULL};
    const double figures[ADASUM_STATISTICS] = {0.0};
    adasum_journal *journal = NULL;
    IS_NULL("adasum_journal_open", "folder", adasum_journal_open(NULL, 3, &journal));
    IS_NULL("adasum_journal_open", "out", adasum_journal_open(".", 3, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "folder: ", adasum_journal_open("\xff", 3, &journal));
    REFUSED(ADASUM_INVALID_ARGUMENT, "folder of the journal", adasum_journal_open("", 3, &journal));
    IS_NULL("adasum_journal_from_env", "out", adasum_journal_from_env(3, NULL));
    IS_NULL("adasum_journal_record", "journal", adasum_journal_record(NULL, "", 1, 0.0, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(journal == NULL);
    OK(adasum_journal_open(".", 3, &journal));
    IS_NULL("adasum_journal_record", "run", adasum_journal_record(journal, NULL, 1, 0.0, NULL, NULL, 0, NULL, NULL, 0));
    IS_NULL("adasum_journal_record", "names",
            adasum_journal_record(journal, "", 1, 0.0, NULL, figures, 1, NULL, NULL, 0));
    IS_NULL("adasum_journal_record", "names[0]",
            adasum_journal_record(journal, "", 1, 0.0, missing, figures, 1, NULL, NULL, 0));
    IS_NULL("adasum_journal_record", "values",
            adasum_journal_record(journal, "", 1, 0.0, names, NULL, 1, NULL, NULL, 0));
    IS_NULL("adasum_journal_record", "tensor_names",
            adasum_journal_record(journal, "", 1, 0.0, NULL, NULL, 0, NULL, figures, 1));
    IS_NULL("adasum_journal_record", "tensor_names[0]",
            adasum_journal_record(journal, "", 1, 0.0, NULL, NULL, 0, missing, figures, 1));
    IS_NULL("adasum_journal_record", "figures",
            adasum_journal_record(journal, "", 1, 0.0, NULL, NULL, 0, names, NULL, 1));
    adasum_journal_destroy(journal);
    /* Nothing of that was written. */
    {
        FILE *file = fopen("rank_3.jsonl", "r");
        CHECK(file != NULL && fgetc(file) == EOF && fclose(file) == 0);
        CHECK(remove("rank_3.jsonl") == 0);
    }
}

static void creations(const adasum_world *world) {
    adasum_reducer *reducer = NULL;
    adasum_tensor nameless = {NULL, 1, ADASUM_F32, 0};
    adasum_tensor unreadable = {"\xff", 1, ADASUM_F32, 0};
    adasum_tensor flagged = {"w", 1, ADASUM_F32, 4};
    adasum_tensor layerwise = {"w", 1, ADASUM_F32, ADASUM_TENSOR_LAYERWISE};
    adasum_tensor typed = {"w", 1, 3, 0};
    adasum_tensor huge = {"w", UINT64_MAX, ADASUM_F32, 0};
    adasum_tensor right = {"w", 1, ADASUM_F32, 0};
    IS_NULL("adasum_reducer_create", "tensors", adasum_reducer_create(world, NULL, 1, NULL, &reducer));
    IS_NULL("adasum_reducer_create", "tensors[0].name", adasum_reducer_create(world, &nameless, 1, NULL, &reducer));
    IS_NULL("adasum_reducer_create", "out", adasum_reducer_create(world, &right, 1, NULL, NULL));
    IS_NULL("adasum_reducer_create_delta", "tensors", adasum_reducer_create_delta(world, NULL, 1, NULL, &reducer));
    IS_NULL("adasum_reducer_create_delta", "out", adasum_reducer_create_delta(world, &right, 1, NULL, NULL));
    IS_NULL("adasum_reducer_create_mean", "tensors", adasum_reducer_create_mean(world, NULL, 1, NULL, &reducer));
    IS_NULL("adasum_reducer_create_mean", "out", adasum_reducer_create_mean(world, &right, 1, NULL, NULL));
    IS_NULL("adasum_reducer_create_sparse", "name",
            adasum_reducer_create_sparse(world, NULL, 1, ADASUM_F32, ADASUM_INDEX_I32, 1, 1, NULL, &reducer));
    IS_NULL("adasum_reducer_create_sparse", "out",
            adasum_reducer_create_sparse(world, "s", 1, ADASUM_F32, ADASUM_INDEX_I32, 1, 1, NULL, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not UTF-8", adasum_reducer_create(world, &unreadable, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].flags (w) is 0x4",
            adasum_reducer_create(world, &flagged, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].flags (w) is 0x1",
            adasum_reducer_create(world, &layerwise, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].dtype (w) is 3",
            adasum_reducer_create(world, &typed, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "", adasum_reducer_create(world, &huge, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "more than memory can hold",
            adasum_reducer_create(world, &right, SIZE_MAX, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "index is 2",
            adasum_reducer_create_sparse(world, "s", 1, ADASUM_F32, 2, 1, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "dtype is 9",
            adasum_reducer_create_sparse(world, "s", 1, 9, ADASUM_INDEX_I32, 1, 1, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "exact is 2",
            adasum_reducer_create_sparse(world, "s", 1, ADASUM_F32, ADASUM_INDEX_I32, 1, 2, NULL, &reducer));
    REFUSED(ADASUM_INVALID_ARGUMENT, "",
            adasum_reducer_create_sparse(world, "s", UINT64_MAX, ADASUM_F32, ADASUM_INDEX_I32, UINT64_MAX, 1, NULL,
                                         &reducer));
    CHECK(reducer == NULL);
}

static void calls(adasum_world *world, aclrtStream stream) {
    const float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    const adasum_tensor tensor = {"w", 4, ADASUM_F32, 0};
    const size_t first = 0, second = 1;
    void *memory = put(values, sizeof values);
    void *const given[1] = {memory};
    void *const missing[1] = {NULL};
    void *const crooked[1] = {(char *)memory + 1};
    adasum_options *options = options_with(0);
    adasum_reducer *gradient = NULL, *delta = NULL, *sparse = NULL;
    uint64_t rows = 7, start = 7, length = 7;
    double figures[ADASUM_STATISTICS];
    size_t count = 7;
    int32_t number = 7;
    char text[8] = "1234567";
    void *place = NULL;

    OK(adasum_options_set(options, "overflow", "vote"));
    OK(adasum_reducer_create(world, &tensor, 1, options, &gradient));
    OK(adasum_reducer_create_delta(world, &tensor, 1, options, &delta));
    OK(adasum_reducer_create_sparse(world, "rows", 2, ADASUM_F32, ADASUM_INDEX_I32, 2, 1, options, &sparse));
    adasum_options_destroy(options);

    IS_NULL("adasum_reducer_reduce", "inout_gradients", adasum_reducer_reduce(gradient, NULL, 1, stream));
    IS_NULL("adasum_reducer_reduce", "inout_gradients[0] (w)", adasum_reducer_reduce(gradient, missing, 1, stream));
    IS_NULL("adasum_reducer_reduce", "stream", adasum_reducer_reduce(gradient, given, 1, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "0 inout_gradients were given for 1 tensors",
            adasum_reducer_reduce(gradient, NULL, 0, stream));
    REFUSED(ADASUM_INVALID_ARGUMENT, "more than memory can hold",
            adasum_reducer_reduce(gradient, given, SIZE_MAX, stream));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not a multiple of 4 bytes", adasum_reducer_reduce(gradient, crooked, 1, stream));
    IS_NULL("adasum_reducer_reduce_flat", "inout_buffer", adasum_reducer_reduce_flat(gradient, NULL, 16, stream));
    IS_NULL("adasum_reducer_reduce_flat", "stream", adasum_reducer_reduce_flat(gradient, memory, 16, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "have 16", adasum_reducer_reduce_flat(gradient, memory, 15, stream));
    REFUSED(ADASUM_INVALID_ARGUMENT, "more than memory can hold",
            adasum_reducer_reduce_flat(gradient, memory, UINT64_MAX, stream));
    IS_NULL("adasum_reducer_reduce_some", "tensors", adasum_reducer_reduce_some(gradient, NULL, given, 1, stream));
    IS_NULL("adasum_reducer_reduce_some", "inout_gradients",
            adasum_reducer_reduce_some(gradient, &first, NULL, 1, stream));
    IS_NULL("adasum_reducer_reduce_some", "stream", adasum_reducer_reduce_some(gradient, &first, given, 1, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "1 is no index of 1 tensors",
            adasum_reducer_reduce_some(gradient, &second, given, 1, stream));
    IS_NULL("adasum_reducer_reduce_some_flat", "tensors",
            adasum_reducer_reduce_some_flat(gradient, NULL, 1, memory, 16, stream));
    IS_NULL("adasum_reducer_reduce_some_flat", "inout_buffer",
            adasum_reducer_reduce_some_flat(gradient, &first, 1, NULL, 16, stream));
    IS_NULL("adasum_reducer_reduce_some_flat", "stream",
            adasum_reducer_reduce_some_flat(gradient, &first, 1, memory, 16, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensor 1",
            adasum_reducer_reduce_some_flat(gradient, &second, 1, memory, 16, stream));
    IS_NULL("adasum_reducer_prepare_some", "tensors", adasum_reducer_prepare_some(gradient, NULL, 1));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensor 1", adasum_reducer_prepare_some(gradient, &second, 1));
    IS_NULL("adasum_reducer_overflow", "gradients", adasum_reducer_overflow(gradient, NULL, 1, stream, LIMIT, &number));
    IS_NULL("adasum_reducer_overflow", "stream", adasum_reducer_overflow(gradient, given, 1, NULL, LIMIT, &number));
    IS_NULL("adasum_reducer_overflow", "out_overflowed",
            adasum_reducer_overflow(gradient, given, 1, stream, LIMIT, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "timeout_ms is 0",
            adasum_reducer_overflow(gradient, given, 1, stream, 0, &number));
    IS_NULL("adasum_reducer_owned_count", "out", adasum_reducer_owned_count(gradient, NULL));
    IS_NULL("adasum_reducer_owned", "out_tensors", adasum_reducer_owned(gradient, NULL, &start, &length, 1));
    IS_NULL("adasum_reducer_owned", "out_starts", adasum_reducer_owned(gradient, &count, NULL, &length, 1));
    IS_NULL("adasum_reducer_owned", "out_lengths", adasum_reducer_owned(gradient, &count, &start, NULL, 1));
    REFUSED(ADASUM_INVALID_ARGUMENT, "count is 0", adasum_reducer_owned(gradient, NULL, NULL, NULL, 0));
    IS_NULL("adasum_reducer_collect", "inout_tensors", adasum_reducer_collect(gradient, NULL, 1, stream));
    IS_NULL("adasum_reducer_collect", "stream", adasum_reducer_collect(gradient, given, 1, NULL));
    REFUSED(ADASUM_INVALID_STATE, "not scattered", adasum_reducer_collect(gradient, given, 1, stream));
    IS_NULL("adasum_reducer_statistics", "out_figures",
            adasum_reducer_statistics(gradient, NULL, ADASUM_STATISTICS, NULL, 0));
    REFUSED(ADASUM_INVALID_ARGUMENT, "figures is 1", adasum_reducer_statistics(gradient, figures, 1, NULL, 0));
    REFUSED(ADASUM_INVALID_ARGUMENT, "norms is 2",
            adasum_reducer_statistics(gradient, figures, ADASUM_STATISTICS, figures, 2));
    IS_NULL("adasum_reducer_plan", "out_text", adasum_reducer_plan(gradient, NULL, 1, &count));
    IS_NULL("adasum_reducer_plan", "out_length", adasum_reducer_plan(gradient, text, sizeof text, NULL));
    IS_NULL("adasum_reducer_gradient_buffers", "out_gradients", adasum_reducer_gradient_buffers(gradient, NULL, 1));
    REFUSED(ADASUM_INVALID_ARGUMENT, "count is 2", adasum_reducer_gradient_buffers(gradient, &place, 2));
    REFUSED(ADASUM_INVALID_STATE, "gradient_buffers is not set", adasum_reducer_gradient_buffers(gradient, &place, 1));
    IS_NULL("adasum_reducer_nonfinite", "out_flags", adasum_reducer_nonfinite(gradient, NULL, 1));
    REFUSED(ADASUM_INVALID_ARGUMENT, "count is 2", adasum_reducer_nonfinite(gradient, root_info, 2));
    IS_NULL("adasum_reducer_synchronize", "stream", adasum_reducer_synchronize(gradient, NULL, LIMIT));
    REFUSED(ADASUM_INVALID_ARGUMENT, "timeout_ms is 0", adasum_reducer_synchronize(gradient, stream, 0));
    IS_NULL("adasum_reducer_forget_stream", "stream", adasum_reducer_forget_stream(gradient, NULL));

    IS_NULL("adasum_reducer_delta_begin", "weights", adasum_reducer_delta_begin(delta, given, NULL, 1, stream));
    IS_NULL("adasum_reducer_delta_begin", "stream", adasum_reducer_delta_begin(delta, given, given, 1, NULL));
    IS_NULL("adasum_reducer_delta_begin", "inout_gradients[0] (w)",
            adasum_reducer_delta_begin(delta, missing, given, 1, stream));
    IS_NULL("adasum_reducer_delta_end", "inout_weights", adasum_reducer_delta_end(delta, NULL, 1, stream));
    IS_NULL("adasum_reducer_delta_end", "stream", adasum_reducer_delta_end(delta, given, 1, NULL));

    IS_NULL("adasum_reducer_gather", "indices",
            adasum_reducer_gather(sparse, NULL, memory, 2, stream, &rows, &place, &place));
    IS_NULL("adasum_reducer_gather", "values",
            adasum_reducer_gather(sparse, memory, NULL, 2, stream, &rows, &place, &place));
    IS_NULL("adasum_reducer_gather", "stream",
            adasum_reducer_gather(sparse, memory, memory, 2, NULL, &rows, &place, &place));
    IS_NULL("adasum_reducer_gather", "out_rows",
            adasum_reducer_gather(sparse, memory, memory, 2, stream, NULL, &place, &place));
    IS_NULL("adasum_reducer_gather", "out_indices",
            adasum_reducer_gather(sparse, memory, memory, 2, stream, &rows, NULL, &place));
    IS_NULL("adasum_reducer_gather", "out_values",
            adasum_reducer_gather(sparse, memory, memory, 2, stream, &rows, &place, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "rows",
            adasum_reducer_gather(sparse, memory, memory, UINT64_MAX, stream, &rows, &place, &place));
    REFUSED(ADASUM_INVALID_ARGUMENT,
            "values: ", adasum_reducer_gather(sparse, memory, (char *)memory + 2, 2, stream, &rows, &place, &place));
    CHECK(rows == 7 && start == 7 && length == 7 && count == 7 && number == 7 && place == NULL);
    CHECK(strcmp(text, "1234567") == 0);

    /* Nothing of that was enqueued or kept: all are as good as new. */
    OK(adasum_reducer_reduce(gradient, given, 1, stream));
    OK(adasum_reducer_delta_begin(delta, NULL, given, 1, stream));
    OK(adasum_reducer_delta_end(delta, given, 1, stream));
    OK(adasum_reducer_synchronize(delta, stream, LIMIT));
    let_go(gradient, stream);
    let_go(delta, stream);
    let_go(sparse, stream);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
}

static void helpers(adasum_world *world, aclrtStream stream) {
    const float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    const adasum_tensor tensor = {"w", 4, ADASUM_F32, 0};
    const adasum_tensor layerwise = {"w", 4, ADASUM_F32, ADASUM_TENSOR_LAYERWISE};
    const size_t index = 0;
    const uint64_t start = 0, length = 4;
    const uint32_t rank = 0;
    void *memory = put(values, sizeof values);
    void *const given[1] = {memory};
    void *const missing[1] = {NULL};
    void *const crooked[1] = {(char *)memory + 1};
    adasum_world *part = NULL;
    adasum_norm_clip *clip = NULL;
    adasum_gradient_accumulator *accumulator = NULL;
    IS_NULL("adasum_world_part", "ranks", adasum_world_part(world, NULL, 1, 1, &part));
    IS_NULL("adasum_world_part", "out", adasum_world_part(world, &rank, 1, 1, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "more than memory can hold", adasum_world_part(world, &rank, SIZE_MAX, 1, &part));
    IS_NULL("adasum_world_all_reduce_sum", "inout_values", adasum_world_all_reduce_sum(world, NULL, 4, stream));
    IS_NULL("adasum_world_all_reduce_sum", "stream", adasum_world_all_reduce_sum(world, memory, 4, NULL));
    IS_NULL("adasum_norm_clip_create", "tensors", adasum_norm_clip_create(world, NULL, 1, 1.0f, &clip));
    IS_NULL("adasum_norm_clip_create", "out", adasum_norm_clip_create(world, &tensor, 1, 1.0f, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].flags (w) is 0x1",
            adasum_norm_clip_create(world, &layerwise, 1, 1.0f, &clip));
    IS_NULL("adasum_norm_clip_create_of_parts", "tensors",
            adasum_norm_clip_create_of_parts(world, NULL, 1, &index, &start, &length, 1, 1.0f, LIMIT, &clip));
    IS_NULL("adasum_norm_clip_create_of_parts", "part_tensors",
            adasum_norm_clip_create_of_parts(world, &tensor, 1, NULL, &start, &length, 1, 1.0f, LIMIT, &clip));
    IS_NULL("adasum_norm_clip_create_of_parts", "part_starts",
            adasum_norm_clip_create_of_parts(world, &tensor, 1, &index, NULL, &length, 1, 1.0f, LIMIT, &clip));
    IS_NULL("adasum_norm_clip_create_of_parts", "part_lengths",
            adasum_norm_clip_create_of_parts(world, &tensor, 1, &index, &start, NULL, 1, 1.0f, LIMIT, &clip));
    IS_NULL("adasum_norm_clip_create_of_parts", "out",
            adasum_norm_clip_create_of_parts(world, &tensor, 1, &index, &start, &length, 1, 1.0f, LIMIT, NULL));
    IS_NULL("adasum_gradient_accumulator_create", "tensors",
            adasum_gradient_accumulator_create(world, NULL, 1, &accumulator));
    IS_NULL("adasum_gradient_accumulator_create", "out", adasum_gradient_accumulator_create(world, &tensor, 1, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "tensors[0].flags (w) is 0x1",
            adasum_gradient_accumulator_create(world, &layerwise, 1, &accumulator));
    CHECK(part == NULL && clip == NULL && accumulator == NULL);

    OK(adasum_norm_clip_create(world, &tensor, 1, 100.0f, &clip));
    OK(adasum_gradient_accumulator_create(world, &tensor, 1, &accumulator));
    IS_NULL("adasum_norm_clip_clip", "inout_tensors", adasum_norm_clip_clip(clip, NULL, 1, stream));
    IS_NULL("adasum_norm_clip_clip", "inout_tensors[0] (w)", adasum_norm_clip_clip(clip, missing, 1, stream));
    IS_NULL("adasum_norm_clip_clip", "stream", adasum_norm_clip_clip(clip, given, 1, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not a multiple of 4 bytes", adasum_norm_clip_clip(clip, crooked, 1, stream));
    IS_NULL("adasum_norm_clip_last_norm", "out", adasum_norm_clip_last_norm(clip, NULL));
    IS_NULL("adasum_norm_clip_forget_stream", "stream", adasum_norm_clip_forget_stream(clip, NULL));
    IS_NULL("adasum_gradient_accumulator_add", "gradients",
            adasum_gradient_accumulator_add(accumulator, NULL, 1, stream));
    IS_NULL("adasum_gradient_accumulator_add", "gradients[0] (w)",
            adasum_gradient_accumulator_add(accumulator, missing, 1, stream));
    IS_NULL("adasum_gradient_accumulator_add", "stream", adasum_gradient_accumulator_add(accumulator, given, 1, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "not a multiple of 4 bytes",
            adasum_gradient_accumulator_add(accumulator, crooked, 1, stream));
    IS_NULL("adasum_gradient_accumulator_steps", "out", adasum_gradient_accumulator_steps(accumulator, NULL));
    /* Nothing of that was enqueued or kept: all are as good as new. */
    OK(adasum_gradient_accumulator_add(accumulator, given, 1, stream));
    IS_NULL("adasum_gradient_accumulator_take", "out_gradients",
            adasum_gradient_accumulator_take(accumulator, NULL, 1, 1.0f, stream));
    IS_NULL("adasum_gradient_accumulator_take", "stream",
            adasum_gradient_accumulator_take(accumulator, given, 1, 1.0f, NULL));
    IS_NULL("adasum_gradient_accumulator_forget_stream", "stream",
            adasum_gradient_accumulator_forget_stream(accumulator, NULL));
    OK(adasum_gradient_accumulator_take(accumulator, given, 1, 1.0f, stream));
    OK(adasum_norm_clip_clip(clip, given, 1, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    {
        float now[4];
        get(now, memory, sizeof now);
        CHECK(memcmp(now, values, sizeof now) == 0);
    }
    OK(adasum_norm_clip_forget_stream(clip, stream));
    adasum_norm_clip_destroy(clip);
    OK(adasum_gradient_accumulator_forget_stream(accumulator, stream));
    adasum_gradient_accumulator_destroy(accumulator);
    CHECK(aclrtFree(memory) == ACL_SUCCESS);
}

static void live_world(void) {
    uint32_t rank = 7;
    adasum_world *world;
    aclrtStream stream;
    OK(adasum_root_info_create(0, root_info, sizeof root_info));
    world = join(0, 1, 0);
    stream = new_stream();
    IS_NULL("adasum_world_rank", "out", adasum_world_rank(world, NULL));
    IS_NULL("adasum_world_size", "out", adasum_world_size(world, NULL));
    IS_NULL("adasum_world_servers", "out", adasum_world_servers(world, NULL));
    IS_NULL("adasum_world_devices_per_server", "out", adasum_world_devices_per_server(world, NULL));
    IS_NULL("adasum_world_device", "out", adasum_world_device(world, NULL));
    IS_NULL("adasum_world_last_vendor_code", "out", adasum_world_last_vendor_code(world, NULL));
    IS_NULL("adasum_world_barrier", "stream", adasum_world_barrier(world, NULL));
    IS_NULL("adasum_world_forget_stream", "stream", adasum_world_forget_stream(world, NULL));
    REFUSED(ADASUM_INVALID_ARGUMENT, "timeout_ms is 0", adasum_world_finish(world, 0));
    creations(world);
    calls(world, stream);
    helpers(world, stream);
    CHECK(adasum_world_rank(world, &rank) == ADASUM_OK && rank == 0);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    leave(world);
}

int main(void) {
    adasum_options *options = NULL;
    CHECK(adasum_abi_version() == ADASUM_ABI_VERSION);
    CHECK(strlen(adasum_version()) >= 5);
    CHECK(strcmp(adasum_last_error(), "") == 0 && adasum_last_vendor_code() == 0);
    library();
    options_of_null();
    OK(adasum_options_create(&options));
    wrong_options(options);
    adasum_options_destroy(options);
    worlds();
    reducers_of_null(NULL);
    helpers_of_null(NULL, NULL);
    journals();
    live_world();
    return verdict();
}
