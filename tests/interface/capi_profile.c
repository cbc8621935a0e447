/* MindSpore's surroundings through the C interface: profile and boost file check the world in their own words. */
#include "capi.h"

static void boost_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void profile(const adasum_world *world) {
    const adasum_tensor tensor = {"w", 1, ADASUM_F32, 0};
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    OK(adasum_options_set(options, "profile", "mindspore"));
    REFUSED(ADASUM_INVALID_STATE, "The device_num must be at least 16 and must be the power of 2 when applying adasum.",
            adasum_reducer_create(world, &tensor, 1, options, &reducer));
    OK(adasum_options_set(options, "mindspore_context", "stand_alone,0,1,16"));
    REFUSED(ADASUM_INVALID_STATE, "Stand alone mode is not supported to apply adasum.",
            adasum_reducer_create_delta(world, &tensor, 1, options, &reducer));
    OK(adasum_options_set(options, "mindspore_context", "semi_auto_parallel,1,1,16"));
    REFUSED(ADASUM_INVALID_STATE, "the optimizer shard is not supported",
            adasum_reducer_create(world, &tensor, 1, options, &reducer));
    OK(adasum_options_set(options, "mindspore_context", "semi_auto_parallel,0,1,16"));
    REFUSED(ADASUM_INVALID_ARGUMENT, "the context has 2 servers of 8 devices, the world 1 of 1",
            adasum_reducer_create(world, &tensor, 1, options, &reducer));
    /* Without the profile nothing of that matters. */
    OK(adasum_options_set(options, "profile", "paper"));
    OK(adasum_reducer_create(world, &tensor, 1, options, &reducer));
    adasum_reducer_destroy(reducer);
    adasum_options_destroy(options);
}

static void boost(const adasum_world *world) {
    const adasum_tensor tensor = {"w", 1, ADASUM_F32, 0};
    const char *path = "capi_profile_boost.json";
    adasum_options *options = options_with(0);
    adasum_reducer *reducer = NULL;
    char text[2048];
    size_t length = 0;
    boost_file(path,
               "{\"boost\": {\"mode\": \"manual\", \"less_bn\": false, \"grad_freeze\": false, \"adasum\": true}}");
    OK(adasum_options_load_boost(options, path, "O2"));
    REFUSED(ADASUM_INVALID_ARGUMENT, "1 devices are not a power of two of servers of 8",
            adasum_reducer_create(world, &tensor, 1, options, &reducer));
    boost_file(path, "{\"boost\": {\"mode\": \"enable_all\"}}");
    REFUSED(ADASUM_UNSUPPORTED, "capi_profile_boost.json: boost configuration: dim_reduce is on",
            adasum_options_load_boost(options, path, "O1"));
    boost_file(path, "[]");
    REFUSED(ADASUM_INVALID_ARGUMENT, "not a JSON object", adasum_options_load_boost(options, path, "O2"));
    /* Off: the mean. */
    boost_file(path, "{\"boost\": {\"mode\": \"disable_all\"}}");
    OK(adasum_options_load_boost(options, path, "O2"));
    OK(adasum_reducer_create(world, &tensor, 1, options, &reducer));
    OK(adasum_reducer_plan(reducer, text, sizeof text, &length));
    CHECK(strstr(text, "reduction Mean") != NULL);
    adasum_reducer_destroy(reducer);
    adasum_options_destroy(options);
    CHECK(remove(path) == 0);
}

int main(void) {
    adasum_world *world;
    OK(adasum_root_info_create(0, root_info, sizeof root_info));
    world = join(0, 1, 0);
    profile(world);
    boost(world);
    leave(world);
    return verdict();
}
