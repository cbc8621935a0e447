/* A rank that its launcher tells by environment variables where it belongs: joins, reduces, says who it is. */
#include "capi.h"

/* The warning of rank 0 at a port that whoever reaches it can join. */
static void count_warning(int32_t level, const char *message, void *count) {
    if (level == 2 && strstr(message, "must be on a trusted network") != NULL) {
        ++*(unsigned *)count;
    }
}

int main(void) {
    const adasum_tensor tensor = {"w", 1, ADASUM_F32, 0};
    adasum_options *options = NULL;
    adasum_world *world = NULL;
    adasum_reducer *reducer = NULL;
    uint32_t rank = 0, size = 0, servers = 0;
    float value = 1.0f;
    aclrtStream stream;
    void *memory;
    int32_t device;
    unsigned warnings = 0;

    OK(adasum_set_log_callback(count_warning, &warnings, 2));
    OK(adasum_options_create(&options));
    if (adasum_options_load_environment(options) != ADASUM_OK ||
        adasum_world_from_environment(options, &world) != ADASUM_OK) {
        printf("refused: %s\n", adasum_last_error());
        adasum_options_destroy(options);
        return 3;
    }
    OK(adasum_world_rank(world, &rank));
    OK(adasum_world_size(world, &size));
    OK(adasum_world_servers(world, &servers));
    OK(adasum_world_device(world, &device));
    CHECK(aclrtSetDevice(device) == ACL_SUCCESS);
    stream = new_stream();
    memory = put(&value, sizeof value);
    OK(adasum_options_set(options, "reduction", "sum"));
    OK(adasum_reducer_create(world, &tensor, 1, options, &reducer));
    adasum_options_destroy(options);
    OK(adasum_reducer_reduce(reducer, &memory, 1, stream));
    OK(adasum_reducer_synchronize(reducer, stream, LIMIT));
    get(&value, memory, sizeof value);
    let_go(reducer, stream);
    leave(world);
    OK(adasum_set_log_callback(NULL, NULL, 1));
    printf("rank %u of %u, %u servers, device %d, sum %g, %u warnings\n", rank, size, servers, (int)device,
           (double)value, warnings);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
