/* AdaSum gradient reduction for Huawei Ascend NPUs. Made from src/ffi by a test: do not edit.
 * Nothing here has run on an NPU yet; run `adasum-run qualify` first.
 *
 * Conventions. Every function that can fail returns an adasum_status and writes its outputs only on success;
 * adasum_last_error has the sentence. Pointers must not be NULL unless their function says so; (NULL, 0) is an empty
 * array. Whatever a function gives through an `out` that points to a handle is ended by the _destroy of its type, which
 * takes NULL.
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
#define ADASUM_ABI_VERSION 2

/**
 * The tensor is another one on each rank (MindSpore's layerwise_parallel): a mean reducer leaves its gradient as it is.
 */
#define ADASUM_TENSOR_LAYERWISE 1

/**
 * The tensor has a fusion id of its own (MindSpore's comm_fusion), of 24 bits, which the flags hold from bit
 * ADASUM_TENSOR_FUSION_SHIFT on: `ADASUM_TENSOR_FUSION | id << ADASUM_TENSOR_FUSION_SHIFT`. Where the tensors of a mean
 * reducer have different ones, tensors with equal ids travel together and 0 travels alone (1 for a tensor without);
 * else the option fusion decides.
 */
#define ADASUM_TENSOR_FUSION 2

/**
 * First bit of a fusion id in flags.
 */
#define ADASUM_TENSOR_FUSION_SHIFT 8

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
 * Size of the root info that one rank hands to the others.
 */
#define ADASUM_ROOT_INFO_BYTES 4108

/**
 * Numbers that adasum_reducer_statistics gives for each tensor.
 */
#define ADASUM_STATISTICS 5

/**
 * Position of |result|.
 */
#define ADASUM_STATISTIC_NORM 0

/**
 * Position of the mean cosine of all pairs of servers' vectors; NaN if there is no pair.
 */
#define ADASUM_STATISTIC_COSINE 1

/**
 * Position of |result| / |mean of the servers' vectors|.
 */
#define ADASUM_STATISTIC_GAIN 2

/**
 * Position of kappa, how much cancelled: at least 1.
 */
#define ADASUM_STATISTIC_KAPPA 3

/**
 * Position of 1 for a tensor that was non-finite on any rank (the other numbers are NaN then), else 0.
 */
#define ADASUM_STATISTIC_NONFINITE 4

/**
 * Row numbers of 32 bits.
 */
#define ADASUM_INDEX_I32 0

/**
 * Row numbers of 64 bits.
 */
#define ADASUM_INDEX_I64 1

/**
 * The outcome of a call. New values may be added at the end; a retired number is never used again.
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
 * Sums gradients over micro-steps in fp32, before one reduction: AdaSum of sums is not the sum of AdaSums, and one reduction a
 * step is what larger batches ask for. One thread at a time: a call while another is inside is ADASUM_INVALID_STATE.
 */
typedef struct adasum_gradient_accumulator adasum_gradient_accumulator;

/**
 * One rank's file of what a training records over time, a line of JSON for each record, for whoever draws it, such as
 * `adasum-run launch --report`. May be used from any thread, by several at once.
 */
typedef struct adasum_journal adasum_journal;

/**
 * Scales tensors so that the Euclidean norm of all of them together is at most a limit; for between reduction and optimizer.
 * Everything stays on the device. Tensors within the limit keep their values; a NaN or an infinity makes all tensors NaN, on
 * all ranks that share the norm. One thread at a time: a call while another is inside is ADASUM_INVALID_STATE.
 */
typedef struct adasum_norm_clip adasum_norm_clip;

/**
 * Choices of worlds and reducers; made by adasum_options_create with the defaults. They must be the same on all ranks,
 * except for scale, padded, create_timeout_ms and stall_timeout_ms. May be used from any thread, by several at once.
 */
typedef struct adasum_options adasum_options;

/**
 * Reduces what it was created for: the gradients of a fixed list of tensors (adasum_reducer_create), the change of weights
 * (adasum_reducer_create_delta), the mean over a group (adasum_reducer_create_mean), or rows (adasum_reducer_create_sparse).
 * One thread at a time: a call while another is inside is ADASUM_INVALID_STATE; only adasum_reducer_abort may come then.
 */
typedef struct adasum_reducer adasum_reducer;

/**
 * This process's membership of a job: its device, its communicators, its rank. May be used from any thread.
 */
typedef struct adasum_world adasum_world;

/**
 * Takes a log record: level (1 error, 2 warning, 3 info, 4 debug, 5 trace), text without line break, and the `user_data`
 * of the callback. May be called from any thread, several at once; must not call this library, throw, or jump out.
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
     * 0, or for mean reducers ADASUM_TENSOR_LAYERWISE, ADASUM_TENSOR_FUSION or both; the other bits are kept for later versions
     * and are 0.
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
 * Version of the library, as "0.2.0". Never NULL; lives as long as the program.
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
 * Gives options with the defaults, whatever the environment says; end them with adasum_options_destroy.
 *
 * # Safety
 * `out` points to a pointer that may be written to.
 */
adasum_status adasum_options_create(struct adasum_options **out);

/**
 * Ends options. Worlds and reducers that were made with them keep what they need. NULL does nothing.
 *
 * # Safety
 * `options` is NULL or came from adasum_options_create, was not destroyed, and no other call uses it.
 */
void adasum_options_destroy(struct adasum_options *options);

/**
 * Sets the option `name` to what `value` says. Numbers are written with a point and without spaces, lists with commas.
 * Those with a star can be set by the environment: see adasum_options_load_environment.
 *
 *   profile*: paper or mindspore; default paper
 *       options that go together; mindspore checks the world as MindSpore's cells do, with their words, and overrides
 *       radix, placement, exchange and barrier
 *   reduction*: adasum, mean or sum; default adasum
 *       how servers are combined: AdaSum of the servers' means, or the mean or sum over all ranks
 *   in_server*: mean, sum, reduced or shards; default mean
 *       how the ranks of a server are combined before that; reduced: they hold the same gradients, bit for bit;
 *       shards: different parts of the same tensors, all of one size. Delta reducers take only mean
 *   devices_per_server*: auto or a whole number above 0; default auto
 *       ranks of a server, in worlds made with these options; auto: what the rank table or the hosts say; 1 makes
 *       each rank a server
 *   radix*: auto or 2 to 8; default 2
 *       the most subtrees that a round merges; auto: the fastest by the cost model. Part of the result's last bits
 *   placement*: hierarchical or columns; default hierarchical
 *       where vectors lie while servers are merged: one chunk on each rank of a server, or, as MindSpore does, the
 *       whole on each
 *   exchange*: auto, alltoall, batch, group, pairwise or shared; default auto
 *       how exchanges are made: HcclAlltoAllV in servers, HcclBatchSendRecv, a group of sends and receives (CANN 9.0;
 *       A2, A3, 950), one after the other, or shared: ranks of one machine or A3 supernode read each other's memory
 *       (A2, A3, 950; not over PCIe). Results do not depend on it
 *   scalars*: auto, gathered or owned; default auto
 *       how the scalars of a round are summed: by every rank, or by an owner of each tensor. Results do not depend on
 *       it
 *   machine*: auto, 910A, 910B, A3 or mock; default auto
 *       what the cost model assumes; auto: by the name of the chip
 *   wire*: native or f32; default native
 *       element type between ranks: that of the tensor, but fp32 for fewer than 64 elements, or always fp32, rounded
 *       once at the end
 *   scale: a finite number; default 1
 *       what this rank's gradients are multiplied by, in fp32, before anything else. May differ between ranks
 *   result_scale: a finite number; default 1
 *       what results are multiplied by, in fp32, on their way back to the tensors
 *   zero_tol*: a number of at least 0 and below 1; default 0
 *       relative squared norm up to which a vector counts as zero
 *   overflow*: report or vote; default report
 *       what becomes of NaN and infinity; vote: the ranks can also vote before they reduce, and all skip the step
 *   bucket_bytes*: a whole number above 0; default 26214400
 *       bytes of tensors that share a fused buffer; a larger tensor has one of its own
 *   pipeline_depth*: 1 to 64; default 4
 *       fused buffers under way at a time: device memory grows with it, results do not depend on it
 *   subset_plans: a whole number above 0; default 256
 *       plans of subsets that are kept; one more takes the place of the one that was used longest ago
 *   padded: 0 or 1; default 0
 *       whether what lies between a tensor's end and the next multiple of 64 bytes from its start may be overwritten,
 *       so that such tensors are reduced in place. May differ between ranks
 *   gradient_buffers: 0 or 1; default 0
 *       whether the reducer keeps a buffer for each bucket, in which callers may put gradients, so that they are
 *       reduced in place; with exchange shared there is no other way
 *   scattered: 0 or 1; default 0
 *       whether each result stays on the rank that computed it, for sharded optimizers
 *   barrier*: 0 or 1; default 0
 *       whether a reduction ends with a barrier of all ranks
 *   checksum*: 0 or 1; default 0
 *       whether synchronising compares messages and results between ranks; the host then waits for each message
 *   allow_plain_mean*: 0 or 1; default 0
 *       whether a single server of several ranks may give a plain mean
 *   create_timeout_ms*: whole milliseconds above 0; default 300000
 *       limit of joining a world and of the warm-up of a reducer. May differ between ranks
 *   stall_timeout_ms*: whole milliseconds above 0; default 1800000
 *       time without movement after which a reduction has failed, and the error says what this rank waits for. May
 *       differ between ranks
 *   delta_form: server_mean or local; default server_mean
 *       what the optimizer steps on in a delta reducer: the mean of its server's gradients, or the rank's own as in
 *       Horovod
 *   degree: auto or a whole number; default auto
 *       what a mean reducer divides sums by; auto: the number of ranks. Numbers below 1 are refused by the reducer,
 *       with MindSpore's words
 *   fusion: all, none or ascending positions as 3,7; default all
 *       which gradients of a mean reducer travel together: positions cut their list behind them. Results do not
 *       depend on it
 *   group: all or ascending ranks as 0,4; default all
 *       the ranks that a mean or sparse reducer goes over, the caller's among them; only they create and use it
 *   mindspore_context: auto, or mode, enable_parallel_optimizer, pipeline_stages and device_num as data_parallel,0,1,16; default auto
 *       what the checks of the profile mindspore and of boost see; auto: what follows from the world
 *
 * Errors: ADASUM_INVALID_ARGUMENT names the option and what it may be, or the options there are; nothing is changed then.
 *
 * # Safety
 * `options` is NULL or live; `name` and `value` are NULL or C strings.
 */
adasum_status adasum_options_set(struct adasum_options *options,
                                 const char *name,
                                 const char *value);

/**
 * Takes over what the environment says: the variable ADASUM_NAME sets the option `name`, for those that
 * adasum_options_set marks with a star. ADASUM_BOOST_CONFIG names a file as for adasum_options_load_boost at level O2, which is
 * read last. What is set later wins. A variable that is not set or empty changes nothing.
 *
 * Errors: ADASUM_INVALID_ARGUMENT names the variable and what it may be; the options are as before then.
 *
 * # Safety
 * `options` is NULL or live; no other thread changes the environment meanwhile.
 */
adasum_status adasum_options_load_environment(struct adasum_options *options);

/**
 * Takes over a boost configuration: the JSON file `path` with MindSpore's boost_config_dict, at `level` ("O0", "O1" or
 * "O2"; another name counts as "O0", as there). AdaSum on or off becomes the reduction (off: the mean),
 * common.device_number the ranks of a server, common.gradient_split_groups the fusion of mean reducers. What is
 * set later wins. Reducers then check the world as boost does.
 *
 * Errors: ADASUM_IO if the file cannot be read, ADASUM_INVALID_ARGUMENT for what is wrong in it, ADASUM_UNSUPPORTED if
 * another algorithm of boost is on; the options are as before then.
 *
 * # Safety
 * `options` is NULL or live; `path` and `level` are NULL or C strings.
 */
adasum_status adasum_options_load_boost(struct adasum_options *options, const char *path, const char *level);

/**
 * Joins the world of the rank table in the file `path` as rank `rank`; opens the device that the table gives that rank.
 * `options` may say devices_per_server; NULL for the defaults.
 *
 * With a table of version 2.0, and on Ascend 950, the ranks meet as those without a table do: MASTER_ADDR and MASTER_PORT, or
 * ADASUM_ROOTINFO_FILE, must be set (see adasum_world_from_environment); adasum-run launch sets the first two.
 *
 * Collective: every rank of the table must call it. Waits for the others (HCCL_CONNECT_TIMEOUT).
 *
 * # Safety
 * `path` is a C string; `options` is NULL or live; `out` points to a pointer that may be written to.
 */
adasum_status adasum_world_from_rank_table(const char *path,
                                           uint32_t rank,
                                           const struct adasum_options *options,
                                           struct adasum_world **out);

/**
 * Joins the world that the environment describes.
 *
 * With a rank table: RANK_TABLE_FILE (or MINDSPORE_HCCL_CONFIG_PATH) and RANK_ID; with one of version 2.0, and on Ascend 950, also
 * where ranks meet, as without one. Without: RANK, WORLD_SIZE, LOCAL_RANK
 * (the device, unless DEVICE_ID says another) and LOCAL_WORLD_SIZE, as torchrun sets them; without RANK and WORLD_SIZE:
 * RANK_ID (or MS_NODE_ID), RANK_SIZE (or MS_WORKER_NUM), DEVICE_ID (by msrun) and LOCAL_WORLD_SIZE (if it is set),
 * as in MindSpore under msrun. Those ranks meet at the file ADASUM_ROOTINFO_FILE, in a folder that all see, or else at rank 0, which listens at
 * ADASUM_MASTER_ADDR and ADASUM_MASTER_PORT; where these are not set, at MASTER_ADDR and the port behind MASTER_PORT, or at
 * MS_SCHED_HOST and the port behind MS_SCHED_PORT. The secret in ADASUM_JOB_SECRET or ADASUM_JOB_SECRET_FILE proves there who
 * belongs to the job. Servers are those of devices_per_server in `options` (NULL: the defaults), else of the table, else of
 * LOCAL_WORLD_SIZE, else of the hosts.
 *
 * Collective: every rank of the job must call it. Waits for the others: with a table HCCL_CONNECT_TIMEOUT, without at most
 * twice the creation timeout of `options` for the meeting (rank 0 may come late), and then HCCL_CONNECT_TIMEOUT.
 * Errors: ADASUM_INVALID_ARGUMENT names the variable that is missing or wrong; ADASUM_TIMEOUT names the ranks that did
 * not come to the meeting; ADASUM_MISMATCH: this rank has another secret or number of ranks than rank 0, or is there already.
 *
 * # Safety
 * `options` is NULL or live; `out` points to a pointer that may be written to; no other thread changes the environment
 * meanwhile.
 */
adasum_status adasum_world_from_environment(const struct adasum_options *options,
                                            struct adasum_world **out);

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
 * Joins the world of `size` ranks that share root info, as `rank`, on device `device`. Servers are those of
 * devices_per_server in `options` (NULL: the defaults), else of the hosts of the ranks; the ranks of a server are
 * consecutive.
 *
 * Collective: all ranks call it with the same root info, size and options. Waits for the others (HCCL_CONNECT_TIMEOUT).
 *
 * # Safety
 * `root_info` points to `len` bytes; `options` is NULL or live; `out` points to a pointer that may be written to.
 */
adasum_status adasum_world_from_root_info(int32_t device,
                                          const uint8_t *root_info,
                                          size_t len,
                                          uint32_t size,
                                          uint32_t rank,
                                          const struct adasum_options *options,
                                          struct adasum_world **out);

/**
 * Joins a new world of the ranks of `comm`, an HcclComm that another library has made, like that of torch_npu's world group
 * or a new_group, or a sub-communicator. `comm` is borrowed for this call: an all-gather and a broadcast of a few KB
 * go over it to make the world's own communicators. It is never split, aborted or destroyed, and not used after the
 * call. The device is the one that is current on the calling thread. Servers are those of devices_per_server in
 * `options` (NULL: the defaults), else of the hosts of the ranks.
 *
 * Collective: all ranks of `comm` call it, with no other work on `comm` under way. Waits for the others, at most the
 * creation timeout of `options`, and then HCCL_CONNECT_TIMEOUT.
 *
 * # Safety
 * `comm` is NULL or a live HcclComm of the current device; `options` is NULL or live; `out` points to a pointer that may be
 * written to.
 */
adasum_status adasum_world_from_comm(void *comm,
                                     const struct adasum_options *options,
                                     struct adasum_world **out);

/**
 * Joins the world of `ranks`, `count` of the ranks of `world` in ascending order, with `devices_per_server` consecutive ones a
 * server: the ranks of one server, of one pipeline stage, of one shard of a model. They are numbered from 0 in the new
 * world. It shares device, streams and order of work with `world`: what is enqueued through either waits for what either
 * was given before, and a failure of one poisons both. adasum_world_abort of a part gives up the whole.
 *
 * Collective among `ranks` only, which call it with the same arguments and make the parts that they share in the same order.
 * Waits for them (HCCL_CONNECT_TIMEOUT).
 * Ownership: a part counts as a user of `world`: adasum_world_finish refuses while the part is neither finished nor
 * destroyed. The handle of `world` may be destroyed first.
 * Errors: ADASUM_INVALID_ARGUMENT if `ranks` are not ascending ranks of `world` with this one among them, or no whole number
 * of servers.
 *
 * # Safety
 * `world` is NULL or live; `ranks` points to `count` numbers; `out` may be written to.
 */
adasum_status adasum_world_part(const struct adasum_world *world,
                                const uint32_t *ranks,
                                size_t count,
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
 * Collective and stream-ordered. Ranks that do not come for half an hour fail the world. The first barrier of a world builds links:
 * it waits on the host for the other ranks, at most HCCL_CONNECT_TIMEOUT (120 s), and fails the world if they do not come.
 *
 * # Safety
 * `world` is NULL or live; `stream` is NULL or a live aclrtStream of the world's device that outlives the world, or
 * adasum_world_forget_stream is called before it is destroyed.
 */
adasum_status adasum_world_barrier(const struct adasum_world *world,
                                   void *stream);

/**
 * Sums `count` fp32 numbers in device memory over all ranks, in place: for figures like a loss. HCCL chooses the order of the
 * sum, so it is not AdaSum and not bit for bit the same in every run.
 *
 * Collective and stream-ordered. Ownership: as adasum_reducer_reduce.
 *
 * # Safety
 * `inout_values` is device memory of `count` numbers; the rest as for adasum_world_barrier.
 */
adasum_status adasum_world_all_reduce_sum(const struct adasum_world *world,
                                          void *inout_values,
                                          uint64_t count,
                                          void *stream);

/**
 * Lets go of `stream`, which has no work of this world left in it, so that its owner may destroy it. Unknown streams are
 * fine. Local. Reducers have a call of their own for theirs.
 *
 * # Safety
 * `world` is NULL or live.
 */
adasum_status adasum_world_forget_stream(const struct adasum_world *world,
                                         void *stream);

/**
 * Gives the world up, as when this rank cannot go on: every later call of its reducers is ADASUM_POISONED, calls of other
 * threads that wait in them return, and streams that hold work of it are aborted where the library can do that: those of
 * the caller with all that is on them, as they would wait for ever. Other ranks wait for this one until their timeouts.
 * Local; waits for no other rank. A failure that the library finds does the same.
 *
 * Threads: made to be called while other threads are in calls of the world's reducers.
 *
 * # Safety
 * `world` is NULL or live.
 */
adasum_status adasum_world_abort(const struct adasum_world *world);

/**
 * Lets the first task that fails stop all streams of this world's context, those of the caller and of every library, for
 * good (aclrtSetStreamFailureMode). Without it, streams go on behind a failed task, results that the failure touched are
 * NaN, and the failure shows at the next wait for the caller's stream. A process that asked for this cannot join a new
 * world on the device after a failure of a task. On A3 HCCL asks for it with its first operation, unless
 * HCCL_OP_EXPANSION_MODE is HOST. Local.
 *
 * Errors: ADASUM_UNSUPPORTED if the library has no choice.
 *
 * # Safety
 * `world` is NULL or live.
 */
adasum_status adasum_world_stop_on_failure(const struct adasum_world *world);

/**
 * The aclError or HcclResult of the failure that made the world unusable; 0 if there was none, or if it was no call of
 * the vendor's that failed. Unlike adasum_last_vendor_code the same for all threads.
 *
 * # Safety
 * `world` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_world_last_vendor_code(const struct adasum_world *world, int32_t *out);

/**
 * Leaves the world in good order: waits for the work that went through it, at most `timeout_ms`, and ends its
 * communicators. All ranks should call it, after what was made of the world was destroyed: reducers, norm clips,
 * accumulators and parts. The handle still has to be destroyed; any other use of it is ADASUM_INVALID_STATE from now on.
 * Frees the buffers that reducers with exchange = shared have left, for which it waits for all ranks.
 *
 * Errors: ADASUM_INVALID_STATE if some of that is left (nothing happened then); ADASUM_TIMEOUT, also if ranks do not come to free
 * shared buffers: those of this rank then stay in use until the process ends.
 *
 * # Safety
 * `world` is NULL or live.
 */
adasum_status adasum_world_finish(struct adasum_world *world,
                                  uint64_t timeout_ms);

/**
 * Ends the handle. Without adasum_world_finish the communicators end with the last that uses this world (reducers, parts and
 * others), and other ranks may see this as a failure. NULL does nothing.
 *
 * # Safety
 * `world` is NULL or came from this library, was not destroyed, and no other call uses it.
 */
void adasum_world_destroy(struct adasum_world *world);

/**
 * Waits until what `stream` holds is done, at most `timeout_ms`, and looks at the world's own streams as well: the call to
 * make before results are used on the host. Any kind of reducer.
 *
 * Local, but with the option checksum collective.
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
 * are fine. Local. Any kind of reducer.
 *
 * # Safety
 * `reducer` is NULL or live.
 */
adasum_status adasum_reducer_forget_stream(struct adasum_reducer *reducer, void *stream);

/**
 * Whether each tensor (in a delta reducer: its delta) was non-finite on any rank in the last reduction: 1 or 0, in the
 * order of creation; the same on all ranks. Waits for the reduction, at most the stall timeout. Gradient, delta and mean reducers.
 *
 * AdaSum finds what its vectors bring, also what an earlier round made of them. An element that its last round takes out of the range
 * of a 16-bit type is not found: adasum_reducer_overflow on the results does.
 *
 * Local after AdaSum of several servers; else (means, sums, a single server) collective: all ranks call it after the same
 * reductions.
 *
 * # Safety
 * `reducer` is NULL or live; `out_flags` points to `count` bytes that may be written to.
 */
adasum_status adasum_reducer_nonfinite(struct adasum_reducer *reducer,
                                       uint8_t *out_flags,
                                       size_t count);

/**
 * Gives up the world of the reducer, as adasum_world_abort. Any kind of reducer; local, waits for no other rank.
 *
 * Threads: made to be called while another thread is in a call of the reducer.
 *
 * # Safety
 * `reducer` is NULL or live.
 */
adasum_status adasum_reducer_abort(const struct adasum_reducer *reducer);

/**
 * Ends a reducer of any kind and frees its buffers; its work must be done (synchronise the stream first). Local. It may
 * outlive the handle of its world. NULL does nothing.
 *
 * With exchange = shared other ranks may still read and write its fused buffers: they stay until all ranks have made another
 * reducer with it in the same world, or adasum_world_finish. After a failure they are never freed.
 *
 * # Safety
 * `reducer` is NULL or came from adasum_reducer_create or one of its kind, was not destroyed, and no other call uses it.
 */
void adasum_reducer_destroy(struct adasum_reducer *reducer);

/**
 * Plans the reduction of the gradients of `count` tensors, allocates its buffers and warms up every link.
 *
 * Collective: all ranks call it with the same tensors and options (NULL: the defaults) and in the same order if they make
 * several. Waits for the others, at most the creation timeout. The reducer holds a share of the world. End it with
 * adasum_reducer_destroy.
 *
 * Errors: ADASUM_MISMATCH on all ranks if they do not agree, and on the others if one has no memory for it.
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
 * order of creation; it may be another one in each call, and NULL for a tensor without elements. Gradient and mean
 * reducers.
 *
 * Collective (of a mean reducer: in its group) and stream-ordered: enqueues behind what `stream` holds and returns, and
 * waits only where the stream's queue is full; what `stream` is given next sees the results. On the host they are good
 * once adasum_reducer_synchronize has succeeded.
 *
 * Ownership: the memory belongs to the caller, must be memory of the world's device, aligned to its elements, and must
 * not be freed or used on other streams before the work is done; with the option checksum not freed or changed before
 * adasum_reducer_synchronize has returned, which reads results.
 * Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the world.
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
 * As adasum_reducer_reduce, for all tensors one right behind the other, in the order of creation and without gaps, in the
 * `bytes` bytes from `inout_buffer` on. Gradient reducers.
 *
 * # Safety
 * As for adasum_reducer_reduce, the buffer instead of the addresses.
 */
adasum_status adasum_reducer_reduce_flat(struct adasum_reducer *reducer,
                                         void *inout_buffer,
                                         uint64_t bytes,
                                         void *stream);

/**
 * As adasum_reducer_reduce, for `count` of the tensors: `tensors` has their indices in the list of creation, in any order,
 * each at most once, and `inout_gradients` the address of each. For frameworks that hand over gradients in buckets. Gradient
 * reducers.
 *
 * Collective: all ranks call it with the same indices in the same order. The first call for a subset plans it and waits
 * for all ranks (adasum_reducer_prepare_some does so in advance); later ones are stream-ordered. Ranks that then take two subsets of equal
 * sizes in different orders mix them up; only the option checksum tells.
 *
 * # Safety
 * As for adasum_reducer_reduce; `tensors` points to `count` numbers.
 */
adasum_status adasum_reducer_reduce_some(struct adasum_reducer *reducer,
                                         const size_t *tensors,
                                         void *const *inout_gradients,
                                         size_t count,
                                         void *stream);

/**
 * As adasum_reducer_reduce_some, for gradients that lie one right behind the other, in the order of `tensors` and without
 * gaps, in the `bytes` bytes from `inout_buffer` on, as in the buckets of PyTorch's DDP. Gradient reducers.
 *
 * # Safety
 * As for adasum_reducer_reduce_some, the buffer instead of the addresses.
 */
adasum_status adasum_reducer_reduce_some_flat(struct adasum_reducer *reducer,
                                              const size_t *tensors,
                                              size_t count,
                                              void *inout_buffer,
                                              uint64_t bytes,
                                              void *stream);

/**
 * Plans the reduction of the tensors at these indices, so that the first adasum_reducer_reduce_some of them does not wait.
 * Does nothing for a subset that is planned already. Gradient reducers.
 *
 * Collective: all ranks call it with the same indices. Waits for them, at most the creation timeout.
 * Errors: ADASUM_MISMATCH on all ranks if they do not agree.
 *
 * # Safety
 * `reducer` is NULL or live; `tensors` points to `count` numbers.
 */
adasum_status adasum_reducer_prepare_some(struct adasum_reducer *reducer,
                                          const size_t *tensors,
                                          size_t count);

/**
 * Lets all ranks decide whether any of them has a NaN or an infinity in `gradients`, which are not changed: 1 or 0 in
 * `out_overflowed`, the same on all ranks. For loss scaling: skip reduction and optimizer if so. Gradient and delta
 * reducers that were created with overflow = vote.
 *
 * Collective. Waits for the vote, and so for what `stream` holds, at most `timeout_ms`.
 *
 * # Safety
 * As for adasum_reducer_reduce; `out_overflowed` may be written to.
 */
adasum_status adasum_reducer_overflow(struct adasum_reducer *reducer,
                                      void *const *gradients,
                                      size_t count,
                                      void *stream,
                                      uint64_t timeout_ms,
                                      int32_t *out_overflowed);

/**
 * Device addresses of places for gradients, in the order of creation, in the reducer's own buffers (option
 * gradient_buffers): gradients that lie there are reduced where they are. They are the reducer's, and stay the same until it
 * is destroyed; what lies between tensors may be overwritten, and all of it by a reduction of other memory. NULL for a tensor
 * that is sent as another type (option wire). Gradient reducers. Local.
 *
 * Errors: ADASUM_INVALID_STATE without the option gradient_buffers, or with scale or result_scale other than 1.
 *
 * # Safety
 * `reducer` is NULL or live; `out_gradients` points to `count` addresses that may be written to.
 */
adasum_status adasum_reducer_gradient_buffers(struct adasum_reducer *reducer,
                                              void **out_gradients,
                                              size_t count);

/**
 * How many parts of tensors this rank owns after a scattered reduction. Gradient reducers. Local.
 *
 * # Safety
 * `reducer` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_reducer_owned_count(struct adasum_reducer *reducer, size_t *out);

/**
 * The parts of tensors that this rank owns, adasum_reducer_owned_count of them: index of the tensor, first element, number of
 * elements. With the option scattered these are the results of a reduction on this rank, and what its sharded optimizer
 * steps; the parts of all ranks tile all tensors. Gradient reducers. Local.
 *
 * # Safety
 * `reducer` is NULL or live; the others point to `count` numbers that may be written to.
 */
adasum_status adasum_reducer_owned(struct adasum_reducer *reducer,
                                   size_t *out_tensors,
                                   uint64_t *out_starts,
                                   uint64_t *out_lengths,
                                   size_t count);

/**
 * Brings the owned parts of tensors to all ranks: of weights, say, that a sharded optimizer has stepped. Sizes and types are
 * those of the gradients. Gradient reducers with the option scattered.
 *
 * Collective and stream-ordered. Ownership and errors as adasum_reducer_reduce.
 *
 * # Safety
 * As for adasum_reducer_reduce.
 */
adasum_status adasum_reducer_collect(struct adasum_reducer *reducer,
                                     void *const *inout_tensors,
                                     size_t count,
                                     void *stream);

/**
 * Whether the next reductions keep a copy of their gradients, 1 or 0 (at first), so that adasum_reducer_statistics has
 * cosine and gain also of reductions of several rounds. Gradient and delta reducers.
 *
 * Local, but all ranks choose the same. A reduction that is observed takes one more copy; device memory for that, as much
 * as the tensors have, is allocated by the first and freed when this is turned off.
 *
 * # Safety
 * `reducer` is NULL or live.
 */
adasum_status adasum_reducer_observe(struct adasum_reducer *reducer,
                                     int32_t on);

/**
 * Figures of the last reduction, the same on all ranks: ADASUM_STATISTICS numbers for each tensor, in the order of creation,
 * and in `out_norms`, which may be NULL, the norm of each server's vector, servers within tensors. `figures` and
 * `norms` are the lengths of the arrays: tensors times ADASUM_STATISTICS, and tensors times servers. Gradient reducers, and
 * delta reducers: the figures of the deltas of the last step.
 *
 * With several rounds (more servers than the radix) cosine and gain are NaN, unless adasum_reducer_observe was on.
 *
 * Collective: all ranks call it, after the same reductions. Waits for them; allocates, so it is not for every step.
 * Errors: ADASUM_UNSUPPORTED where nothing was combined by AdaSum.
 *
 * # Safety
 * `reducer` is NULL or live; `out_figures` points to `figures` numbers and `out_norms`, if not NULL, to `norms` numbers that
 * may be written to.
 */
adasum_status adasum_reducer_statistics(struct adasum_reducer *reducer,
                                        double *out_figures,
                                        size_t figures,
                                        double *out_norms,
                                        size_t norms);

/**
 * What this rank does in a reduction, as text for people: one line a step, in the order in which they are issued. Puts as
 * much of it as fits and a zero into the `capacity` bytes from `out_text` on, which may be (NULL, 0), and the length of
 * all of it, without the zero, into `out_length`. Gradient reducers. Local.
 *
 * # Safety
 * `reducer` is NULL or live; `out_text` points to `capacity` bytes that may be written to; `out_length` may be written to.
 */
adasum_status adasum_reducer_plan(struct adasum_reducer *reducer,
                                  char *out_text,
                                  size_t capacity,
                                  size_t *out_length);

/**
 * Plans the reduction of what an optimizer does to the weights `tensors`; their gradients have the same sizes and types. A
 * step is adasum_reducer_delta_begin, the caller's optimizer, adasum_reducer_delta_end. The option delta_form says
 * what the optimizer steps on.
 *
 * Collective: all ranks call it with the same tensors and options (NULL: the defaults). Waits for the others, at most the
 * creation timeout. End it with adasum_reducer_destroy.
 * Errors: ADASUM_MISMATCH on all ranks if they do not agree; ADASUM_INVALID_ARGUMENT if in_server is not mean, or with
 * scattered: new weights need the deltas of all elements on every rank.
 *
 * # Safety
 * `world` and `options` are live or NULL; `tensors` points to `count` tensors with valid names; `out` may be written to.
 */
adasum_status adasum_reducer_create_delta(const struct adasum_world *world,
                                          const struct adasum_tensor *tensors,
                                          size_t count,
                                          const struct adasum_options *options,
                                          struct adasum_reducer **out);

/**
 * Starts a step: saves `weights` and, with delta_form = server_mean and several ranks a server, replaces `inout_gradients` by
 * their mean over the server. Otherwise `inout_gradients` may be NULL and is left alone. Both have `count` device
 * addresses in the order of creation. Delta reducers.
 *
 * Collective and stream-ordered: the optimizer, enqueued next on `stream`, sees the means and may change the weights.
 * Ownership: as adasum_reducer_reduce.
 * Errors: ADASUM_INVALID_STATE if a step is open already. Wrong arguments are refused before anything is enqueued; any
 * other failure makes the reducer unusable.
 *
 * # Safety
 * As for adasum_reducer_reduce, for both arrays; `inout_gradients` may be NULL.
 */
adasum_status adasum_reducer_delta_begin(struct adasum_reducer *reducer,
                                         void *const *inout_gradients,
                                         void *const *weights,
                                         size_t count,
                                         void *stream);

/**
 * Ends a step: replaces `inout_weights`, which the optimizer has changed, by old - AdaSum of (old - new) over the servers.
 * Weights that were equal on all ranks are equal again. Delta reducers.
 *
 * Collective and stream-ordered, behind the optimizer's work on `stream`. Ownership: as adasum_reducer_reduce.
 * Errors: ADASUM_INVALID_STATE if no step is open. Wrong arguments are refused before anything is enqueued; any other
 * failure makes the reducer unusable, and weights may be those of the optimizer or of the step.
 *
 * # Safety
 * As for adasum_reducer_reduce.
 */
adasum_status adasum_reducer_delta_end(struct adasum_reducer *reducer,
                                       void *const *inout_weights,
                                       size_t count,
                                       void *stream);

/**
 * Gives up an open step, as after weights were loaded from a checkpoint. Between steps it does nothing. Delta reducers.
 *
 * Local, but all ranks must do the same.
 *
 * # Safety
 * `reducer` is NULL or live.
 */
adasum_status adasum_reducer_delta_reset(struct adasum_reducer *reducer);

/**
 * Plans the mean (with reduction = sum: the sum) of the gradients of `count` tensors over the ranks of the option group:
 * MindSpore's DistributedGradReducer. fp32 between ranks, multiplied by 1 / degree, rounded once. Tensors with
 * ADASUM_TENSOR_LAYERWISE are left as they are. Reduce with adasum_reducer_reduce. Of the options reduction, degree, fusion,
 * group, create_timeout_ms and stall_timeout_ms count.
 *
 * Collective among the ranks of the group, which call it with the same tensors and options (NULL: the defaults); others must
 * not call. Waits for them, at most the creation timeout. End it with adasum_reducer_destroy.
 * Errors: ADASUM_MISMATCH on all ranks of the group if they do not agree; ADASUM_INVALID_ARGUMENT for a group that this
 * rank is not in and a degree below 1.
 *
 * # Safety
 * `world` and `options` are live or NULL; `tensors` points to `count` tensors with valid names; `out` may be written to.
 */
adasum_status adasum_reducer_create_mean(const struct adasum_world *world,
                                         const struct adasum_tensor *tensors,
                                         size_t count,
                                         const struct adasum_options *options,
                                         struct adasum_reducer **out);

/**
 * Prepares the gathering of a sparse gradient over the ranks of the option group: rows of `width` elements of type `dtype`
 * with numbers of type `index` (ADASUM_INDEX_I32 or ADASUM_INDEX_I64). With `exact` 1 every rank brings `rows` rows in
 * every call; with 0 any number up to that. Values are multiplied by 1 / degree unless reduction is sum.
 *
 * Collective among the ranks of the group, as adasum_reducer_create_mean. Device memory: room for the rows of all ranks.
 *
 * # Safety
 * `world` and `options` are live or NULL; `name` is a C string; `out` may be written to.
 */
adasum_status adasum_reducer_create_sparse(const struct adasum_world *world,
                                           const char *name,
                                           uint64_t width,
                                           int32_t dtype,
                                           int32_t index,
                                           uint64_t rows,
                                           int32_t exact,
                                           const struct adasum_options *options,
                                           struct adasum_reducer **out);

/**
 * Gathers the rows of all ranks of the group, in the order of the ranks: `rows` numbers from `indices` on, and as many rows
 * of elements from `values` on (either may be NULL for no rows). The results lie in memory of the reducer until its
 * next call: `out_rows` rows, their numbers at `out_indices`, their elements at `out_values`. A number that several
 * ranks have occurs several times. Sparse reducers.
 *
 * Collective among the group. With `exact` stream-ordered: what `stream` is given next sees the rows. Without, it waits once
 * until all ranks have told how many rows they bring.
 * Ownership: what is given must not be freed or changed before the work is done.
 * Errors: wrong arguments are refused before anything is enqueued.
 *
 * # Safety
 * `reducer` is NULL or live; `indices` and `values` are device memory as described; `stream` as for adasum_reducer_reduce; the
 * rest may be written to.
 */
adasum_status adasum_reducer_gather(struct adasum_reducer *reducer,
                                    void *indices,
                                    void *values,
                                    uint64_t rows,
                                    void *stream,
                                    uint64_t *out_rows,
                                    void **out_indices,
                                    void **out_values);

/**
 * Prepares the clipping of `count` tensors to `max_norm`. Each rank takes the norm of its own: results of a reduction are the
 * same on all ranks, and so is what comes out, bit for bit. End it with adasum_norm_clip_destroy.
 *
 * Local. Device memory: a copy of all tensors.
 * Errors: ADASUM_INVALID_ARGUMENT if `max_norm` is not finite and above 0.
 *
 * # Safety
 * `world` is NULL or live; `tensors` points to `count` tensors with valid names; `out` may be written to.
 */
adasum_status adasum_norm_clip_create(const struct adasum_world *world,
                                      const struct adasum_tensor *tensors,
                                      size_t count,
                                      float max_norm,
                                      struct adasum_norm_clip **out);

/**
 * As adasum_norm_clip_create, for `parts` parts of the tensors on each rank, so that the norm of all parts of all ranks of
 * `world` is at most `max_norm`: index of the tensor, first element, number of elements, as adasum_reducer_owned gives them
 * after a scattered reduction. For tensors that are sharded over ranks they are whole tensors, and `world` is the part
 * (adasum_world_part) of those ranks; what several ranks have counts once for each.
 *
 * Collective: all ranks of `world` call it, each with its own parts, and so is adasum_norm_clip_clip. Waits for them, at most
 * `timeout_ms`, which also bounds how long a rank waits for the norm later. Device memory: a copy of the parts.
 * Errors: also ADASUM_INVALID_ARGUMENT for a part that is not in its tensor.
 *
 * # Safety
 * As for adasum_norm_clip_create; the arrays of parts point to `parts` numbers.
 */
adasum_status adasum_norm_clip_create_of_parts(const struct adasum_world *world,
                                               const struct adasum_tensor *tensors,
                                               size_t count,
                                               const size_t *part_tensors,
                                               const uint64_t *part_starts,
                                               const uint64_t *part_lengths,
                                               size_t parts,
                                               float max_norm,
                                               uint64_t timeout_ms,
                                               struct adasum_norm_clip **out);

/**
 * Clips the tensors in place. `inout_tensors` has the device address of each whole tensor, in the order of creation.
 *
 * Stream-ordered. Local, but of parts collective. Ownership: as adasum_reducer_reduce.
 * Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the world.
 *
 * # Safety
 * `clip` is NULL or live; `inout_tensors` points to `count` addresses as for adasum_reducer_reduce; `stream` is live and
 * outlives the clip, or adasum_norm_clip_forget_stream is called before it is destroyed.
 */
adasum_status adasum_norm_clip_clip(struct adasum_norm_clip *clip,
                                    void *const *inout_tensors,
                                    size_t count,
                                    void *stream);

/**
 * The norm of all tensors together before they were last clipped; NaN if there was a NaN or an infinity, 0 before the first
 * time. Local: the caller synchronises the stream of adasum_norm_clip_clip before.
 *
 * # Safety
 * `clip` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_norm_clip_last_norm(struct adasum_norm_clip *clip,
                                         float *out);

/**
 * Lets go of `stream`, as adasum_reducer_forget_stream.
 *
 * # Safety
 * `clip` is NULL or live.
 */
adasum_status adasum_norm_clip_forget_stream(struct adasum_norm_clip *clip, void *stream);

/**
 * Ends a norm clip; its work must be done (synchronise the stream first). Local. It may outlive the handle of its world. NULL
 * does nothing.
 *
 * # Safety
 * `clip` is NULL or came from adasum_norm_clip_create or adasum_norm_clip_create_of_parts, was not destroyed, and no other call
 * uses it.
 */
void adasum_norm_clip_destroy(struct adasum_norm_clip *clip);

/**
 * Gives an empty sum of the gradients of `count` tensors. End it with adasum_gradient_accumulator_destroy.
 *
 * Local. Device memory: two fp32 copies of all tensors.
 *
 * # Safety
 * `world` is NULL or live; `tensors` points to `count` tensors with valid names; `out` may be written to.
 */
adasum_status adasum_gradient_accumulator_create(const struct adasum_world *world,
                                                 const struct adasum_tensor *tensors,
                                                 size_t count,
                                                 struct adasum_gradient_accumulator **out);

/**
 * Adds `gradients` to the sum: the device address of each whole tensor, in the order of creation. For after each backward pass.
 *
 * Local and stream-ordered. Ownership: as adasum_reducer_reduce.
 * Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the world.
 *
 * # Safety
 * `accumulator` is NULL or live; `gradients` points to `count` addresses as for adasum_reducer_reduce; `stream` is live and
 * outlives the accumulator, or adasum_gradient_accumulator_forget_stream is called before it is destroyed.
 */
adasum_status adasum_gradient_accumulator_add(struct adasum_gradient_accumulator *accumulator,
                                              void *const *gradients,
                                              size_t count,
                                              void *stream);

/**
 * How many gradients the sum has. Local.
 *
 * # Safety
 * `accumulator` is NULL or live; `out` is NULL or may be written to.
 */
adasum_status adasum_gradient_accumulator_steps(struct adasum_gradient_accumulator *accumulator, uint32_t *out);

/**
 * Replaces the tensors at `out_gradients` by `factor` times the sum, rounded once to their types, and empties the sum; a factor
 * of 1 / steps gives the mean. For before the reducer.
 *
 * Local and stream-ordered. Ownership: as adasum_reducer_reduce.
 * Errors: ADASUM_INVALID_STATE if nothing was added. Wrong arguments, such as a factor that is not finite, are refused before
 * anything is enqueued. A later failure of this call poisons the world.
 *
 * # Safety
 * As for adasum_gradient_accumulator_add.
 */
adasum_status adasum_gradient_accumulator_take(struct adasum_gradient_accumulator *accumulator,
                                               void *const *out_gradients,
                                               size_t count,
                                               float factor,
                                               void *stream);

/**
 * Lets go of `stream`, as adasum_reducer_forget_stream.
 *
 * # Safety
 * `accumulator` is NULL or live.
 */
adasum_status adasum_gradient_accumulator_forget_stream(struct adasum_gradient_accumulator *accumulator, void *stream);

/**
 * Ends an accumulator; its work must be done (synchronise the stream first). Local. It may outlive the handle of its world.
 * NULL does nothing.
 *
 * # Safety
 * `accumulator` is NULL or came from adasum_gradient_accumulator_create, was not destroyed, and no other call uses it.
 */
void adasum_gradient_accumulator_destroy(struct adasum_gradient_accumulator *accumulator);

/**
 * Opens the journal of `rank`: the file rank_R.jsonl in the folder `folder`, which must exist; what it holds already is kept. End
 * it with adasum_journal_destroy. Local.
 *
 * Errors: ADASUM_INVALID_ARGUMENT if `folder` is ""; ADASUM_IO if the file cannot be opened.
 *
 * # Safety
 * `folder` is NULL or a C string; `out` may be written to.
 */
adasum_status adasum_journal_open(const char *folder,
                                  uint32_t rank,
                                  struct adasum_journal **out);

/**
 * As adasum_journal_open, in the folder that ADASUM_STATISTICS_DIR names, which a launcher that makes a report sets for its
 * ranks; `out` becomes NULL if the variable is not set or empty, because nobody wants a journal then.
 *
 * # Safety
 * `out` may be written to; no other thread changes the environment meanwhile.
 */
adasum_status adasum_journal_from_env(uint32_t rank,
                                      struct adasum_journal **out);

/**
 * Appends a record, which is in the file when this returns, with the time of the call. Local.
 *
 * `run` says which of several trainings in one job it is about, and may be ""; `step` counts from 1, and a later record of the
 * same step completes or replaces an earlier one; `epoch` is how many epochs have passed, parts of one counted, and not finite
 * if nobody knows. `count` figures have their names, such as loss and accuracy, in `names` and their numbers in `values`;
 * where several ranks record one, the mean over them is drawn. What the reduction did to `tensors` tensors stands in
 * `figures`, ADASUM_STATISTICS numbers for each as adasum_reducer_statistics gives them, with their names in
 * `tensor_names`; it is the same on all ranks, so one of them is enough.
 *
 * Errors: ADASUM_IO if it cannot be written.
 *
 * # Safety
 * `journal` is NULL or live; `run` and all names are NULL or C strings; the arrays are as long as said.
 */
adasum_status adasum_journal_record(const struct adasum_journal *journal,
                                    const char *run,
                                    uint64_t step,
                                    double epoch,
                                    const char *const *names,
                                    const double *values,
                                    size_t count,
                                    const char *const *tensor_names,
                                    const double *figures,
                                    size_t tensors);

/**
 * Ends a journal and closes its file. NULL does nothing.
 *
 * # Safety
 * `journal` is NULL or came from adasum_journal_open or adasum_journal_from_env, was not destroyed, and no other call uses it.
 */
void adasum_journal_destroy(struct adasum_journal *journal);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADASUM_H */
