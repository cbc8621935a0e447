//! Worlds: how a process joins the others.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arguments::{
    aligned, invalid, not_null, required, slice, slice_mut, span, text, timeout,
};
use super::catch::catch;
use super::handle::{destroy, give};
use super::options::adasum_options;
use super::status::{CallError, adasum_status};
use super::streams::Streams;
use crate::ascend::{Comm, Device, ROOT_INFO_BYTES, RootInfo, Stream};
use crate::reduce::World;
use crate::topo::{Cluster, RankTable, host_key};

/// This process's membership of a job: its device, its communicators, its rank. May be used from any thread.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_world {
    /// Empty once the world was finished.
    membership: Mutex<Option<(World, Arc<Share>)>>,
    /// The caller's streams that hold work of the world itself.
    streams: Mutex<Option<Streams>>,
}

/// Held by all that uses a world, so that its users can be counted. That of a part holds the share of the world that it is a
/// part of.
pub(super) struct Share {
    _whole: Option<Arc<Share>>,
}

impl adasum_world {
    fn new(world: World, whole: Option<Arc<Share>>) -> Self {
        adasum_world {
            streams: Mutex::new(Some(Streams::new(world.device()))),
            membership: Mutex::new(Some((world, Arc::new(Share { _whole: whole })))),
        }
    }

    /// The world, unless it was finished, and the share that a user of it holds, a call as well; longer than the world.
    pub(super) fn shared(&self) -> Result<(World, Arc<Share>), CallError> {
        self.lock().clone().ok_or_else(finished)
    }

    /// Enqueues work of the world itself on the caller's stream.
    ///
    /// # Safety
    /// As for [`Streams::get`].
    unsafe fn enqueue(
        &self,
        stream: *mut c_void,
        work: impl FnOnce(&World, &Stream) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let used = self.shared()?;
        let mut streams = self.streams();
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.as_mut().ok_or_else(finished)?.get(stream) }?;
        work(&used.0, stream)
    }

    fn streams(&self) -> MutexGuard<'_, Option<Streams>> {
        // A panic leaves no half change: each change is one call of a map.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<(World, Arc<Share>)>> {
        // A panic leaves no half change: it is replaced as a whole.
        self.membership
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn finished() -> CallError {
    CallError::new(
        adasum_status::ADASUM_INVALID_STATE,
        "the world was finished",
    )
}

/// Size of the root info that one rank hands to the others.
pub const ADASUM_ROOT_INFO_BYTES: usize = 4108;

const _: () = assert!(ADASUM_ROOT_INFO_BYTES == ROOT_INFO_BYTES);

/// Joins the world of the rank table in the file `path` as rank `rank`; opens the device that the table gives that rank.
/// `options` may say devices_per_server; NULL for the defaults.
///
/// With a table of version 2.0, and on Ascend 950, the ranks meet as those without a table do: MASTER_ADDR and MASTER_PORT, or
/// ADASUM_ROOTINFO_FILE, must be set (see adasum_world_from_environment); adasum-run launch sets the first two.
///
/// Collective: every rank of the table must call it. Waits for the others (HCCL_CONNECT_TIMEOUT).
///
/// # Safety
/// `path` is a C string; `options` is NULL or live; `out` points to a pointer that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_from_rank_table(
    path: *const c_char,
    rank: u32,
    options: *const adasum_options,
    out: *mut *mut adasum_world,
) -> adasum_status {
    catch("adasum_world_from_rank_table", || {
        // SAFETY: as promised by the caller.
        let path = unsafe { text(path, "path") }?;
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        let out = not_null(out, "out")?;
        let cluster = Cluster::new(RankTable::read(path)?, rank)?;
        let world = World::of_cluster(&cluster, &settings)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(adasum_world::new(world, None), out) };
        Ok(())
    })
}

/// Joins the world that the environment describes.
///
/// With a rank table: RANK_TABLE_FILE (or MINDSPORE_HCCL_CONFIG_PATH) and RANK_ID; with one of version 2.0, and on Ascend 950, also
/// where ranks meet, as without one. Without: RANK, WORLD_SIZE, LOCAL_RANK
/// (the device, unless DEVICE_ID says another) and LOCAL_WORLD_SIZE, as torchrun sets them; without RANK and WORLD_SIZE:
/// RANK_ID (or MS_NODE_ID), RANK_SIZE (or MS_WORKER_NUM), DEVICE_ID (by msrun) and LOCAL_WORLD_SIZE (if it is set),
/// as in MindSpore under msrun. Those ranks meet at the file ADASUM_ROOTINFO_FILE, in a folder that all see, or else at rank 0, which listens at
/// ADASUM_MASTER_ADDR and ADASUM_MASTER_PORT; where these are not set, at MASTER_ADDR and the port behind MASTER_PORT, or at
/// MS_SCHED_HOST and the port behind MS_SCHED_PORT. The secret in ADASUM_JOB_SECRET or ADASUM_JOB_SECRET_FILE proves there who
/// belongs to the job. Servers are those of devices_per_server in `options` (NULL: the defaults), else of the table, else of
/// LOCAL_WORLD_SIZE, else of the hosts.
///
/// Collective: every rank of the job must call it. Waits for the others: with a table HCCL_CONNECT_TIMEOUT, without at most
/// twice the creation timeout of `options` for the meeting (rank 0 may come late), and then HCCL_CONNECT_TIMEOUT.
/// Errors: ADASUM_INVALID_ARGUMENT names the variable that is missing or wrong; ADASUM_TIMEOUT names the ranks that did
/// not come to the meeting; ADASUM_MISMATCH: this rank has another secret or number of ranks than rank 0, or is there already.
///
/// # Safety
/// `options` is NULL or live; `out` points to a pointer that may be written to; no other thread changes the environment
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_from_environment(
    options: *const adasum_options,
    out: *mut *mut adasum_world,
) -> adasum_status {
    catch("adasum_world_from_environment", || {
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        let out = not_null(out, "out")?;
        let world = World::from_environment(&settings)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(adasum_world::new(world, None), out) };
        Ok(())
    })
}

/// Makes root info on device `device`: one rank does, hands the ADASUM_ROOT_INFO_BYTES bytes to all others by whatever
/// means, and all ranks (itself too) call adasum_world_from_root_info. The process that made it must live until all
/// have joined.
///
/// # Safety
/// `out_bytes` points to `len` bytes that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_root_info_create(
    device: i32,
    out_bytes: *mut u8,
    len: usize,
) -> adasum_status {
    catch("adasum_root_info_create", || {
        check_root_info(len)?;
        // SAFETY: as promised by the caller.
        let bytes = unsafe { slice_mut(out_bytes, len, "out_bytes") }?;
        let root = RootInfo::new(&Device::open(device)?)?;
        bytes.copy_from_slice(root.as_bytes());
        Ok(())
    })
}

/// Joins the world of `size` ranks that share root info, as `rank`, on device `device`. Servers are those of
/// devices_per_server in `options` (NULL: the defaults), else of the hosts of the ranks; the ranks of a server are
/// consecutive.
///
/// Collective: all ranks call it with the same root info, size and options. Waits for the others (HCCL_CONNECT_TIMEOUT).
///
/// # Safety
/// `root_info` points to `len` bytes; `options` is NULL or live; `out` points to a pointer that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_from_root_info(
    device: i32,
    root_info: *const u8,
    len: usize,
    size: u32,
    rank: u32,
    options: *const adasum_options,
    out: *mut *mut adasum_world,
) -> adasum_status {
    catch("adasum_world_from_root_info", || {
        check_root_info(len)?;
        // SAFETY: as promised by the caller.
        let bytes = unsafe { slice(root_info, len, "root_info") }?;
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        let out = not_null(out, "out")?;
        let root = RootInfo::from_bytes(bytes)?;
        let device = Device::open(device)?;
        let world = match settings.devices_per_server {
            Some(locals) => World::from_root_info(device, &root, size, rank, locals)?,
            None => {
                let limit = settings.options.create_timeout;
                World::from_root_info_by_host(device, &root, size, rank, &host_key(), limit)?
            }
        };
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(adasum_world::new(world, None), out) };
        Ok(())
    })
}

/// Joins a new world of the ranks of `comm`, an HcclComm that another library has made, like that of torch_npu's world group
/// or a new_group, or a sub-communicator. `comm` is borrowed for this call: an all-gather and a broadcast of a few KB
/// go over it to make the world's own communicators. It is never split, aborted or destroyed, and not used after the
/// call. The device is the one that is current on the calling thread. Servers are those of devices_per_server in
/// `options` (NULL: the defaults), else of the hosts of the ranks.
///
/// Collective: all ranks of `comm` call it, with no other work on `comm` under way. Waits for the others, at most the
/// creation timeout of `options`, and then HCCL_CONNECT_TIMEOUT.
///
/// # Safety
/// `comm` is NULL or a live HcclComm of the current device; `options` is NULL or live; `out` points to a pointer that may be
/// written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_from_comm(
    comm: *mut c_void,
    options: *const adasum_options,
    out: *mut *mut adasum_world,
) -> adasum_status {
    catch("adasum_world_from_comm", || {
        let comm = not_null(comm, "comm")?;
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        let out = not_null(out, "out")?;
        let device = Device::current()?;
        // SAFETY: live and ours alone for this call, as promised by the caller.
        let comm = unsafe { Comm::borrow(&device, comm) }?;
        let world = World::from_comm(&comm, &settings)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(adasum_world::new(world, None), out) };
        Ok(())
    })
}

fn check_root_info(len: usize) -> Result<(), CallError> {
    if len == ADASUM_ROOT_INFO_BYTES {
        return Ok(());
    }
    Err(invalid(format!(
        "len is {len}, root info has {ADASUM_ROOT_INFO_BYTES} bytes"
    )))
}

/// Joins the world of `ranks`, `count` of the ranks of `world` in ascending order, with `devices_per_server` consecutive ones a
/// server: the ranks of one server, of one pipeline stage, of one shard of a model. They are numbered from 0 in the new
/// world. It shares device, streams and order of work with `world`: what is enqueued through either waits for what either
/// was given before, and a failure of one poisons both. adasum_world_abort of a part gives up the whole.
///
/// Collective among `ranks` only, which call it with the same arguments and make the parts that they share in the same order.
/// Waits for them (HCCL_CONNECT_TIMEOUT).
/// Ownership: a part counts as a user of `world`: adasum_world_finish refuses while the part is neither finished nor
/// destroyed. The handle of `world` may be destroyed first.
/// Errors: ADASUM_INVALID_ARGUMENT if `ranks` are not ascending ranks of `world` with this one among them, or no whole number
/// of servers.
///
/// # Safety
/// `world` is NULL or live; `ranks` points to `count` numbers; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_part(
    world: *const adasum_world,
    ranks: *const u32,
    count: usize,
    devices_per_server: u32,
    out: *mut *mut adasum_world,
) -> adasum_status {
    catch("adasum_world_part", || {
        // SAFETY: as promised by the caller.
        let handle = unsafe { required(world, "world") }?;
        // SAFETY: as promised by the caller.
        let ranks = unsafe { slice(ranks, count, "ranks") }?;
        let out = not_null(out, "out")?;
        let (whole, share) = handle.shared()?;
        let part = whole.part(ranks, devices_per_server)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(adasum_world::new(part, Some(share)), out) };
        Ok(())
    })
}

/// This process's rank.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_rank(
    world: *const adasum_world,
    out: *mut u32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe { ask("adasum_world_rank", world, out, World::rank) }
}

/// Number of ranks.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_size(
    world: *const adasum_world,
    out: *mut u32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe { ask("adasum_world_size", world, out, World::size) }
}

/// Number of servers.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_servers(
    world: *const adasum_world,
    out: *mut u32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe { ask("adasum_world_servers", world, out, World::servers) }
}

/// Ranks of each server.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_devices_per_server(
    world: *const adasum_world,
    out: *mut u32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe { ask("adasum_world_devices_per_server", world, out, World::locals) }
}

/// Number of the device that this world uses.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_device(
    world: *const adasum_world,
    out: *mut i32,
) -> adasum_status {
    // SAFETY: as promised by the caller.
    unsafe {
        ask("adasum_world_device", world, out, |world| {
            world.device().id()
        })
    }
}

/// Writes the answer of a world to `out`, for the export `function`.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
unsafe fn ask<T>(
    function: &'static str,
    world: *const adasum_world,
    out: *mut T,
    question: impl FnOnce(&World) -> T,
) -> adasum_status {
    catch(function, || {
        // SAFETY: as promised by the caller.
        let world = unsafe { required(world, "world") }?;
        let out = not_null(out, "out")?;
        let answer = question(&world.shared()?.0);
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(answer) };
        Ok(())
    })
}

/// Holds back `stream` until every rank has come to its barrier; the host goes on.
///
/// Collective and stream-ordered. Ranks that do not come for half an hour fail the world. The first barrier of a world builds links:
/// it waits on the host for the other ranks, at most HCCL_CONNECT_TIMEOUT (120 s), and fails the world if they do not come.
///
/// # Safety
/// `world` is NULL or live; `stream` is NULL or a live aclrtStream of the world's device that outlives the world, or
/// adasum_world_forget_stream is called before it is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_barrier(
    world: *const adasum_world,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_world_barrier", || {
        // SAFETY: as promised by the caller.
        let world = unsafe { required(world, "world") }?;
        // SAFETY: as promised by the caller.
        unsafe { world.enqueue(stream, |world, stream| Ok(world.barrier(stream)?)) }
    })
}

/// Sums `count` fp32 numbers in device memory over all ranks, in place: for figures like a loss. HCCL chooses the order of the
/// sum, so it is not AdaSum and not bit for bit the same in every run.
///
/// Collective and stream-ordered. Ownership: as adasum_reducer_reduce.
///
/// # Safety
/// `inout_values` is device memory of `count` numbers; the rest as for adasum_world_barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_all_reduce_sum(
    world: *const adasum_world,
    inout_values: *mut c_void,
    count: u64,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_world_all_reduce_sum", || {
        // SAFETY: as promised by the caller.
        let world = unsafe { required(world, "world") }?;
        let (bytes, name) = (count.saturating_mul(4), "inout_values");
        let sum = |world: &World, stream: &Stream| {
            // SAFETY: as promised by the caller.
            let values = unsafe { span(world.device(), inout_values, bytes, name) }?;
            Ok(world.all_reduce_sum(&aligned(values, 4, name)?, stream)?)
        };
        // SAFETY: as promised by the caller.
        unsafe { world.enqueue(stream, sum) }
    })
}

/// Lets go of `stream`, which has no work of this world left in it, so that its owner may destroy it. Unknown streams are
/// fine. Local. Reducers have a call of their own for theirs.
///
/// # Safety
/// `world` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_forget_stream(
    world: *const adasum_world,
    stream: *mut c_void,
) -> adasum_status {
    catch("adasum_world_forget_stream", || {
        // SAFETY: as promised by the caller.
        let handle = unsafe { required(world, "world") }?;
        let stream = not_null(stream, "stream")?;
        if let Some(streams) = handle.streams().as_mut() {
            streams.forget(stream);
        }
        Ok(())
    })
}

/// Gives the world up, as when this rank cannot go on: every later call of its reducers is ADASUM_POISONED, calls of other
/// threads that wait in them return, and streams that hold work of it are aborted where the library can do that: those of
/// the caller with all that is on them, as they would wait for ever. Other ranks wait for this one until their timeouts.
/// Local; waits for no other rank. A failure that the library finds does the same.
///
/// Threads: made to be called while other threads are in calls of the world's reducers.
///
/// # Safety
/// `world` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_abort(world: *const adasum_world) -> adasum_status {
    catch("adasum_world_abort", || {
        // SAFETY: as promised by the caller.
        let used = unsafe { required(world, "world") }?.shared()?;
        used.0.abort();
        Ok(())
    })
}

/// Lets the first task that fails stop all streams of this world's context, those of the caller and of every library, for
/// good (aclrtSetStreamFailureMode). Without it, streams go on behind a failed task, results that the failure touched are
/// NaN, and the failure shows at the next wait for the caller's stream. A process that asked for this cannot join a new
/// world on the device after a failure of a task. On A3 HCCL asks for it with its first operation, unless
/// HCCL_OP_EXPANSION_MODE is HOST. Local.
///
/// Errors: ADASUM_UNSUPPORTED if the library has no choice.
///
/// # Safety
/// `world` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_stop_on_failure(world: *const adasum_world) -> adasum_status {
    catch("adasum_world_stop_on_failure", || {
        // SAFETY: as promised by the caller.
        let used = unsafe { required(world, "world") }?.shared()?;
        Ok(used.0.stop_on_failure()?)
    })
}

/// The aclError or HcclResult of the failure that made the world unusable; 0 if there was none, or if it was no call of
/// the vendor's that failed. Unlike adasum_last_vendor_code the same for all threads.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_last_vendor_code(
    world: *const adasum_world,
    out: *mut i32,
) -> adasum_status {
    let code = |world: &World| {
        let failure = world.failure();
        failure
            .and_then(|error| error.vendor_code())
            .map_or(0, |vendor| vendor.code)
    };
    // SAFETY: as promised by the caller.
    unsafe { ask("adasum_world_last_vendor_code", world, out, code) }
}

/// Leaves the world in good order: waits for the work that went through it, at most `timeout_ms`, and ends its
/// communicators. All ranks should call it, after what was made of the world was destroyed: reducers, norm clips,
/// accumulators and parts. The handle still has to be destroyed; any other use of it is ADASUM_INVALID_STATE from now on.
/// Frees the buffers that reducers with exchange = shared have left, for which it waits for all ranks.
///
/// Errors: ADASUM_INVALID_STATE if some of that is left (nothing happened then); ADASUM_TIMEOUT, also if ranks do not come to free
/// shared buffers: those of this rank then stay in use until the process ends.
///
/// # Safety
/// `world` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_finish(
    world: *mut adasum_world,
    timeout_ms: u64,
) -> adasum_status {
    catch("adasum_world_finish", || {
        // SAFETY: as promised by the caller.
        let handle = unsafe { required(world, "world") }?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        let mut place = handle.lock();
        let (_, share) = place.as_ref().ok_or_else(finished)?;
        let users = Arc::strong_count(share) - 1;
        if users > 0 {
            return Err(CallError::new(
                adasum_status::ADASUM_INVALID_STATE,
                format!(
                    "reducers or others still use the world, {users} in all: destroy them first"
                ),
            ));
        }
        let (world, share) = place.take().ok_or_else(finished)?;
        // Other calls are told so while it waits.
        drop(place);
        let finished = world.finish(limit);
        // Of a part: now the whole may be finished.
        drop(share);
        // The streams hold the device open, and have no work any more.
        handle.streams().take();
        Ok(finished?)
    })
}

/// Ends the handle. Without adasum_world_finish the communicators end with the last that uses this world (reducers, parts and
/// others), and other ranks may see this as a failure. NULL does nothing.
///
/// # Safety
/// `world` is NULL or came from this library, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_destroy(world: *mut adasum_world) {
    // SAFETY: as promised by the caller.
    unsafe { destroy("adasum_world_destroy", world) };
}
