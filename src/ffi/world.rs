//! Worlds: how a process joins the others.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arguments::{invalid, not_null, required, slice, slice_mut, text, timeout};
use super::guard::{destroy, guard};
use super::status::{Fault, adasum_status};
use crate::ascend::{Device, ROOT_INFO_BYTES, RootInfo, Stream};
use crate::reduce::World;
use crate::topo::{Cluster, RankTable};

/// This process's membership of a job: its device, its communicators, its rank. May be used from any thread.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_world {
    /// Empty once it was finished.
    world: Mutex<Option<World>>,
    /// Each reducer holds one, so that it can be told whether there are any.
    reducers: Arc<()>,
}

impl adasum_world {
    /// A share of the world, unless it was finished.
    pub(super) fn get(&self) -> Result<World, Fault> {
        self.lock().clone().ok_or_else(finished)
    }

    /// To be held by a reducer.
    pub(super) fn share(&self) -> Arc<()> {
        Arc::clone(&self.reducers)
    }

    fn lock(&self) -> MutexGuard<'_, Option<World>> {
        // It is only ever replaced as a whole.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn finished() -> Fault {
    Fault::new(
        adasum_status::ADASUM_INVALID_STATE,
        "the world was finished",
    )
}

/// Size of the root info that one rank hands to the others.
pub const ADASUM_ROOT_INFO_BYTES: usize = 4108;

const _: () = assert!(ADASUM_ROOT_INFO_BYTES == ROOT_INFO_BYTES);

/// Joins the world of the rank table in the file `path` as rank `rank`; opens the device that the table gives that rank.
///
/// Collective: every rank of the table must call it. Waits for the others (HCCL_CONNECT_TIMEOUT).
///
/// # Safety
/// `path` is a C string; `out` points to a pointer that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_from_rank_table(
    path: *const c_char,
    rank: u32,
    out: *mut *mut adasum_world,
) -> adasum_status {
    guard("adasum_world_from_rank_table", || {
        // SAFETY: as promised by the caller.
        let path = unsafe { text(path, "path") }?;
        let out = not_null(out, "out")?;
        let cluster = Cluster::new(RankTable::read(path)?, rank)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(World::from_cluster(&cluster)?, out) };
        Ok(())
    })
}

/// Joins the world that the environment describes: RANK_TABLE_FILE (or MINDSPORE_HCCL_CONFIG_PATH) and RANK_ID.
///
/// Collective: every rank of the table must call it. Waits for the others (HCCL_CONNECT_TIMEOUT).
/// Errors: ADASUM_INVALID_ARGUMENT names the variable that is missing or wrong.
///
/// # Safety
/// `out` points to a pointer that may be written to; no other thread changes the environment meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_from_environment(
    out: *mut *mut adasum_world,
) -> adasum_status {
    guard("adasum_world_from_environment", || {
        let out = not_null(out, "out")?;
        let cluster = Cluster::from_env()?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(World::from_cluster(&cluster)?, out) };
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
    guard("adasum_root_info_create", || {
        check_root_info(len)?;
        // SAFETY: as promised by the caller.
        let bytes = unsafe { slice_mut(out_bytes, len, "out_bytes") }?;
        let root = RootInfo::new(&Device::open(device)?)?;
        bytes.copy_from_slice(root.as_bytes());
        Ok(())
    })
}

/// Joins the world of `size` ranks that share root info, as `rank`, on device `device`, with `devices_per_server` ranks on
/// each server (ranks of a server are consecutive).
///
/// Collective: all ranks call it with the same root info, size and devices_per_server. Waits for the others
/// (HCCL_CONNECT_TIMEOUT).
///
/// # Safety
/// `root_info` points to `len` bytes; `out` points to a pointer that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_from_root_info(
    device: i32,
    root_info: *const u8,
    len: usize,
    size: u32,
    rank: u32,
    devices_per_server: u32,
    out: *mut *mut adasum_world,
) -> adasum_status {
    guard("adasum_world_from_root_info", || {
        check_root_info(len)?;
        // SAFETY: as promised by the caller.
        let bytes = unsafe { slice(root_info, len, "root_info") }?;
        let out = not_null(out, "out")?;
        let root = RootInfo::from_bytes(bytes)?;
        let device = Device::open(device)?;
        let world = World::from_root_info(device, &root, size, rank, devices_per_server)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(world, out) };
        Ok(())
    })
}

fn check_root_info(len: usize) -> Result<(), Fault> {
    if len == ADASUM_ROOT_INFO_BYTES {
        return Ok(());
    }
    Err(invalid(format!(
        "len is {len}, root info has {ADASUM_ROOT_INFO_BYTES} bytes"
    )))
}

/// Gives a new handle away.
///
/// # Safety
/// `out` may be written to.
unsafe fn give(world: World, out: *mut *mut adasum_world) {
    let handle = adasum_world {
        world: Mutex::new(Some(world)),
        reducers: Arc::new(()),
    };
    let handle = Box::into_raw(Box::new(handle));
    // SAFETY: as promised by the caller.
    unsafe { out.write(handle) };
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

/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
unsafe fn ask<T>(
    function: &'static str,
    world: *const adasum_world,
    out: *mut T,
    question: impl FnOnce(&World) -> T,
) -> adasum_status {
    guard(function, || {
        // SAFETY: as promised by the caller.
        let world = unsafe { required(world, "world") }?;
        let out = not_null(out, "out")?;
        let answer = question(&world.get()?);
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(answer) };
        Ok(())
    })
}

/// Holds back `stream` until every rank has come to its barrier; the host goes on.
///
/// Collective and stream-ordered.
///
/// # Safety
/// `world` is NULL or live; `stream` is NULL or a live
/// aclrtStream of the world's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_barrier(
    world: *const adasum_world,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_world_barrier", || {
        // SAFETY: as promised by the caller.
        let world = unsafe { required(world, "world") }?.get()?;
        let stream = not_null(stream, "stream")?;
        // SAFETY: not null, and live as promised by the caller.
        let stream = unsafe { Stream::borrow(world.device(), stream) };
        Ok(world.barrier(&stream)?)
    })
}

/// Leaves the world in good order: waits for the work that went through it, at most `timeout_ms`, and ends its
/// communicators. All ranks should call it, after their reducers were destroyed. The handle still has to be destroyed; any
/// other use of it is ADASUM_INVALID_STATE from now on.
///
/// Errors: ADASUM_INVALID_STATE if reducers are left (nothing happened then); ADASUM_TIMEOUT.
///
/// # Safety
/// `world` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_finish(
    world: *mut adasum_world,
    timeout_ms: u64,
) -> adasum_status {
    guard("adasum_world_finish", || {
        // SAFETY: as promised by the caller.
        let handle = unsafe { required(world, "world") }?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        let mut place = handle.lock();
        let reducers = Arc::strong_count(&handle.reducers) - 1;
        if reducers > 0 {
            return Err(Fault::new(
                adasum_status::ADASUM_INVALID_STATE,
                format!("{reducers} reducers still use the world: destroy them first"),
            ));
        }
        let world = place.take().ok_or_else(finished)?;
        Ok(world.finish(limit)?)
    })
}

/// Ends the handle. Without adasum_world_finish the communicators end with the last reducer of this world and other ranks
/// may see this as a failure. NULL does nothing.
///
/// # Safety
/// `world` is NULL or came from this library, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_world_destroy(world: *mut adasum_world) {
    destroy("adasum_world_destroy", || {
        if !world.is_null() {
            // SAFETY: made by `give` and given back once, as promised.
            drop(unsafe { Box::from_raw(world) });
        }
    });
}
