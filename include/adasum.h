/* AdaSum gradient reduction for Huawei Ascend NPUs. Made from src/ffi by a test: do not edit.
 *
 * Conventions. Every function that can fail returns an adasum_status and writes its outputs only on success;
 * adasum_last_error has the sentence. Pointers must not be NULL unless their function says so; (NULL, 0) is an empty
 * array. Whatever a function named _create or _from_ gives is ended by the _destroy of its type, which takes NULL.
 * Handles may go from thread to thread; what several threads may do at once is said with each type. "Collective"
 * means that all ranks of the world must call, in the same order. "Stream-ordered" means that the call enqueues on the
 * stream and returns.
 *
 * Versions. Before 1.0 a minor version may break this interface; within one, functions and statuses are only added.
 * A program checks adasum_abi_version() == ADASUM_ABI_VERSION. */

#ifndef ADASUM_H
#define ADASUM_H

#include <stddef.h>
#include <stdint.h>

/**
 * Version of this interface. A program compiled with another number must not use the library.
 */
#define ADASUM_ABI_VERSION 1

/**
 * IEEE 754 single precision (the number that aclDataType gives it).
 */
#define ADASUM_F32 0

/**
 * IEEE 754 half precision (the number that aclDataType gives it).
 */
#define ADASUM_F16 1

/**
 * bfloat16 (the number that aclDataType gives it).
 */
#define ADASUM_BF16 27

/**
 * AdaSum between servers, the mean in each server. The default.
 */
#define ADASUM_REDUCTION_ADASUM 0

/**
 * The mean over all ranks.
 */
#define ADASUM_REDUCTION_MEAN 1

/**
 * The sum over all ranks.
 */
#define ADASUM_REDUCTION_SUM 2

/**
 * Element type between ranks: that of the tensor. The default.
 */
#define ADASUM_WIRE_NATIVE 0

/**
 * Element type between ranks: fp32, rounded to the tensor's type once at the end.
 */
#define ADASUM_WIRE_F32 1

/**
 * Size of the root info that one rank hands to the others.
 */
#define ADASUM_ROOT_INFO_BYTES 4108

/**
 * What a call came to. New values may be added at the end; a retired number is never used again.
 */
enum adasum_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    ADASUM_OK = 0,
    /**
     * An argument, option, environment variable or file is wrong.
     */
    ADASUM_INVALID_ARGUMENT = 1,
    /**
     * A pointer that must not be NULL is.
     */
    ADASUM_NULL_ARGUMENT = 2,
    /**
     * The call is right, but not now: order of calls, another thread inside, a finished world.
     */
    ADASUM_INVALID_STATE = 3,
    /**
     * Well formed, but not built here.
     */
    ADASUM_UNSUPPORTED = 4,
    /**
     * No memory on the host or the device.
     */
    ADASUM_OUT_OF_MEMORY = 5,
    /**
     * A call of ACL failed; see adasum_last_vendor_code.
     */
    ADASUM_ACL = 6,
    /**
     * A call of HCCL failed; see adasum_last_vendor_code.
     */
    ADASUM_HCCL = 7,
    /**
     * Ranks disagree on what they run.
     */
    ADASUM_MISMATCH = 8,
    /**
     * A wait reached its limit.
     */
    ADASUM_TIMEOUT = 9,
    /**
     * An earlier failure made this object unusable.
     */
    ADASUM_POISONED = 10,
    /**
     * A defect of this library: please report it.
     */
    ADASUM_PANIC = 11,
    /**
     * A file or process operation of the host failed.
     */
    ADASUM_IO = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum adasum_status adasum_status;
#else
typedef int32_t adasum_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Choices of a reducer; made by adasum_options_create with the defaults, the same on all ranks.
 */
typedef struct adasum_options adasum_options;

/**
 * Reduces the gradients of a fixed list of tensors. One thread at a time: a call while another is inside is
 * ADASUM_INVALID_STATE.
 */
typedef struct adasum_reducer adasum_reducer;

/**
 * This process's membership of a job: its device, its communicators, its rank. May be used from any thread.
 */
typedef struct adasum_world adasum_world;

/**
 * Takes a log record: level (1 error, 2 warning, 3 info, 4 debug, 5 trace), text without line break, and what was given
 * with the callback. May be called from any thread, several at once; must not call this library, throw, or jump out.
 */
typedef void (*adasum_log_callback)(int32_t level, const char *message, void *user_data);

/**
 * A tensor to reduce. Frozen: its layout never changes.
 */
typedef struct adasum_tensor {
    /**
     * Name for messages and statistics, UTF-8; copied.
     */
    const char *name;
    /**
     * Number of elements; 0 is allowed.
     */
    uint64_t count;
    /**
     * ADASUM_F32, ADASUM_F16 or ADASUM_BF16.
     */
    int32_t dtype;
    /**
     * 0; the other values are kept for later versions.
     */
    uint32_t flags;
} adasum_tensor;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The sentence of the last call that failed on this thread: function, argument or rank, and what is wrong. Never NULL;
 * empty if none has failed. Valid until the next call of this library on this thread.
 */
const char *adasum_last_error(void);

/**
 * The aclError or HcclResult of the last call that failed on this thread; 0 if it was no call of the vendor's that failed.
 */
int32_t adasum_last_vendor_code(void);

/**
 * A few words for any status, also for a number that is none. Never NULL; lives as long as the program.
 */
const char *adasum_status_string(int32_t status);

/**
 * The ADASUM_ABI_VERSION that the library was built with.
 */
uint32_t adasum_abi_version(void);

/**
 * Version of the library, as "0.1.0". Never NULL; lives as long as the program.
 */
const char *adasum_version(void);

/**
 * Loads ACL and HCCL, if that has not happened, and gives the name of what was found: "cann" or "mock". The text lives as
 * long as the program. ADASUM_BACKEND=cann|mock|auto decides before the first call that needs a device.
 *
 * Errors: ADASUM_INVALID_STATE and others if nothing can be loaded; adasum_last_error says what was tried.
 *
 * # Safety
 * `out_name` points to a pointer that may be written to.
 */
adasum_status adasum_backend(const char **out_name);

/**
 * Sends log records up to `level` (1 error .. 5 trace) to `callback`; NULL ends that. Records of this process's other
 * Rust parts that use the same logger come, too.
 *
 * Threads: may be called at any time; when it returns, the former callback is not called any more.
 * Errors: ADASUM_INVALID_ARGUMENT for a level that is none; ADASUM_INVALID_STATE if the process has another logger.
 *
 * # Safety
 * `callback` and `user_data` stay valid until another callback is set, and may be used from any thread.
 */
adasum_status adasum_set_log_callback(adasum_log_callback callback, void *user_data, int32_t level);

/**
 * Gives options with the defaults; end them with adasum_options_destroy.
 *
 * # Safety
 * `out` points to a pointer that may be written to.
 */
adasum_status adasum_options_create(struct adasum_options **out);

/**
 * Ends options. Reducers that were made with them keep what they need. NULL does nothing.
 *
 * # Safety
 * `options` is NULL or came from adasum_options_create, was not destroyed, and no other call uses it.
 */
void adasum_options_destroy(struct adasum_options *options);

/**
 * How servers are combined: ADASUM_REDUCTION_ADASUM, ADASUM_REDUCTION_MEAN or ADASUM_REDUCTION_SUM.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_reduction(struct adasum_options *options, int32_t reduction);

/**
 * The most subtrees of servers that a round merges, 2 to 8. Default 2.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_radix(struct adasum_options *options, uint32_t radix);

/**
 * Whether a single server of several ranks, where AdaSum has nothing to combine, may give a plain mean: 1 or 0 (default),
 * which refuses such a world.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_allow_plain_mean(struct adasum_options *options,
                                                  int32_t allow);

/**
 * Limit of the collective warm-up at creation, in milliseconds. Default 300,000.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_create_timeout(struct adasum_options *options, uint64_t milliseconds);

/**
 * Element type of what ranks send each other: ADASUM_WIRE_NATIVE or ADASUM_WIRE_F32.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_wire(struct adasum_options *options, int32_t wire);

/**
 * What this rank's gradients are multiplied by, in fp32, before anything else; the one option that may differ between
 * ranks. Default 1.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_scale(struct adasum_options *options, float scale);

/**
 * Bytes of tensors that share a fused buffer, at least 1; a larger tensor has one of its own. Results differ between
 * values by at most a rounding.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_bucket_bytes(struct adasum_options *options, uint64_t bytes);

/**
 * Fused buffers that are under way at a time, 1 to 64. Device memory grows with it, results do not depend on it.
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_pipeline_depth(struct adasum_options *options, uint32_t depth);

/**
 * Whether each reduction ends with a barrier of all ranks: 1 or 0 (default).
 *
 * # Safety
 * `options` is NULL or live.
 */
adasum_status adasum_options_set_barrier(struct adasum_options *options, int32_t barrier);

/**
 * Joins the world of the rank table in the file `path` as rank `rank`; opens the device that the table gives that rank.
 *
 * Collective: every rank of the table must call it. Waits for the others (HCCL_CONNECT_TIMEOUT).
 *
 * # Safety
 * `path` is a C string; `out` points to a pointer that may be written to.
 */
adasum_status adasum_world_from_rank_table(const char *path, uint32_t rank, struct adasum_world **out);

/**
 * Joins the world that the environment describes: RANK_TABLE_FILE (or MINDSPORE_HCCL_CONFIG_PATH) and RANK_ID.
 *
 * Collective: every rank of the table must call it. Waits for the others (HCCL_CONNECT_TIMEOUT).
 * Errors: ADASUM_INVALID_ARGUMENT names the variable that is missing or wrong.
 *
 * # Safety
 * `out` points to a pointer that may be written to; no other thread changes the environment meanwhile.
 */
adasum_status adasum_world_from_environment(struct adasum_world **out);

/**
 * Makes root info on device `device`: one rank does, hands the ADASUM_ROOT_INFO_BYTES bytes to all others by whatever
 * means, and all ranks (itself too) call adasum_world_from_root_info. The process that made it must live until all
 * have joined.
 *
 * # Safety
 * `out_bytes` points to `len` bytes that may be written to.
 */
adasum_status adasum_root_info_create(int32_t device, uint8_t *out_bytes, size_t len);

/**
 * Joins the world of `size` ranks that share root info, as `rank`, on device `device`, with `devices_per_server` ranks on
 * each server (ranks of a server are consecutive).
 *
 * Collective: all ranks call it with the same root info, size and devices_per_server. Waits for the others
 * (HCCL_CONNECT_TIMEOUT).
 *
 * # Safety
 * `root_info` points to `len` bytes; `out` points to a pointer that may be written to.
 */
adasum_status adasum_world_from_root_info(int32_t device,
                                          const uint8_t *root_info,
                                          size_t len,
                                          uint32_t size,
                                          uint32_t rank,
                                          uint32_t devices_per_server,
                                          struct adasum_world **out);

/**
 * This process's rank.
 *
 * # Safety
 * `world` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_world_rank(const struct adasum_world *world, uint32_t *out);

/**
 * Number of ranks.
 *
 * # Safety
 * `world` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_world_size(const struct adasum_world *world, uint32_t *out);

/**
 * Number of servers.
 *
 * # Safety
 * `world` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_world_servers(const struct adasum_world *world, uint32_t *out);

/**
 * Ranks of each server.
 *
 * # Safety
 * `world` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_world_devices_per_server(const struct adasum_world *world, uint32_t *out);

/**
 * Number of the device that this world uses.
 *
 * # Safety
 * `world` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_world_device(const struct adasum_world *world, int32_t *out);

/**
 * Holds back `stream` until every rank has come to its barrier; the host goes on.
 *
 * Collective and stream-ordered.
 *
 * # Safety
 * `world` is NULL or live; `stream` is NULL or a live
 * aclrtStream of the world's device.
 */
adasum_status adasum_world_barrier(const struct adasum_world *world, void *stream);

/**
 * Leaves the world in good order: waits for the work that went through it, at most `timeout_ms`, and ends its
 * communicators. All ranks should call it, after their reducers were destroyed. The handle still has to be destroyed; any
 * other use of it is ADASUM_INVALID_STATE from now on.
 *
 * Errors: ADASUM_INVALID_STATE if reducers are left (nothing happened then); ADASUM_TIMEOUT.
 *
 * # Safety
 * `world` is NULL or live.
 */
adasum_status adasum_world_finish(struct adasum_world *world,
                                  uint64_t timeout_ms);

/**
 * Ends the handle. Without adasum_world_finish the communicators end with the last reducer of this world and other ranks
 * may see this as a failure. NULL does nothing.
 *
 * # Safety
 * `world` is NULL or came from this library, was not destroyed, and no other call uses it.
 */
void adasum_world_destroy(struct adasum_world *world);

/**
 * Plans the reduction of `count` tensors, allocates its buffers and warms up every link.
 *
 * Collective: all ranks call it with the same tensors and options (NULL: the defaults) and in the same order if they make
 * several. Waits for the others, at most the creation timeout. The reducer holds a share of the world. End it with
 * adasum_reducer_destroy.
 *
 * Errors: ADASUM_MISMATCH on all ranks if they do not agree.
 *
 * # Safety
 * `world` and `options` are live or NULL; `tensors` points to `count` tensors with valid names; `out` may be written to.
 */
adasum_status adasum_reducer_create(const struct adasum_world *world,
                                    const struct adasum_tensor *tensors,
                                    size_t count,
                                    const struct adasum_options *options,
                                    struct adasum_reducer **out);

/**
 * Replaces every tensor by its reduction over all ranks. `inout_gradients` has the device address of each tensor, in the
 * order of creation.
 *
 * Collective and stream-ordered: enqueues behind what `stream` holds and returns; what `stream` is given next sees the results. Results are good once a synchronisation of the stream has succeeded.
 *
 * Ownership: the memory belongs to the caller, must be memory of the world's device, and must not be freed or used on other
 * streams before the work is done.
 * Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the
 * world.
 *
 * # Safety
 * `reducer` is NULL or live; `inout_gradients` points to `count` addresses as described; `stream` is live and outlives the
 * reducer, or adasum_reducer_forget_stream is called before it is destroyed.
 */
adasum_status adasum_reducer_reduce(struct adasum_reducer *reducer,
                                    void *const *inout_gradients,
                                    size_t count,
                                    void *stream);

/**
 * Waits until what `stream` holds is done, at most `timeout_ms`, and looks at the reducer's own streams as well: the call to
 * make before results are used.
 *
 * Errors: the first failure of that work, or ADASUM_TIMEOUT. Either poisons the world of the reducer.
 *
 * # Safety
 * `reducer` is NULL or live; `stream` is NULL or live.
 */
adasum_status adasum_reducer_synchronize(struct adasum_reducer *reducer,
                                         void *stream,
                                         uint64_t timeout_ms);

/**
 * Lets go of `stream`, which has no work of this reducer left in it, so that its owner may destroy it. Unknown streams
 * are fine.
 *
 * # Safety
 * `reducer` is NULL or live.
 */
adasum_status adasum_reducer_forget_stream(struct adasum_reducer *reducer, void *stream);

/**
 * Whether each tensor was non-finite on any rank in the last reduction (1 or 0, in the order of creation); the same on all
 * ranks. Waits for the reduction.
 *
 * # Safety
 * `reducer` is NULL or live; `out_flags` points to `count` bytes that may be written to.
 */
adasum_status adasum_reducer_nonfinite(struct adasum_reducer *reducer,
                                       uint8_t *out_flags,
                                       size_t count);

/**
 * Ends a reducer and frees its buffers; its work must be done (synchronise the stream first). NULL does nothing.
 *
 * # Safety
 * `reducer` is NULL or came from adasum_reducer_create, was not destroyed, and no other call uses it.
 */
void adasum_reducer_destroy(struct adasum_reducer *reducer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADASUM_H */
