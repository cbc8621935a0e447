//! Physical memory behind reserved addresses, and the handles by which processes of a supernode share it.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::check;
use super::device::Device;
use super::shared::found;
use crate::error::{Error, Result};
use crate::sys::acl::{
    ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, aclrtDrvMemHandle, aclrtMemAllocationType,
    aclrtMemAttr, aclrtMemFabricHandle, aclrtMemHandleType, aclrtMemLocation, aclrtMemLocationType,
    aclrtMemSharedHandleType, aclrtPhysicalMemProp,
};

/// Bytes of a handle that reaches the servers of a supernode.
pub(super) const FABRIC_BYTES: usize = size_of::<aclrtMemFabricHandle>();

const KIND: aclrtMemSharedHandleType = aclrtMemSharedHandleType::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;

/// The vendor's handle of physical memory, as a number: it is never followed here.
#[derive(Debug)]
pub(super) struct Physical(usize);

impl Physical {
    fn new(handle: aclrtDrvMemHandle) -> Self {
        Physical(handle.expose_provenance())
    }

    fn handle(&self) -> aclrtDrvMemHandle {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// `size` bytes of memory in whole pages of 2 MiB, at an address. Wraps `aclrtMallocPhysical`, `aclrtReserveMemAddress` and
/// `aclrtMapMem`.
pub(super) fn allocate(device: &Device, size: usize) -> Result<(*mut c_void, Physical)> {
    let id = u32::try_from(device.id())
        .map_err(|_| Error::invalid(format!("device {} is negative", device.id())))?;
    let backend = device.ready()?;
    let malloc = found!(backend, aclrtMallocPhysical)?;
    let properties = aclrtPhysicalMemProp {
        handleType: aclrtMemHandleType::ACL_MEM_HANDLE_TYPE_NONE,
        allocationType: aclrtMemAllocationType::ACL_MEM_ALLOCATION_TYPE_PINNED,
        memAttr: aclrtMemAttr::ACL_HBM_MEM_HUGE,
        location: aclrtMemLocation {
            id,
            type_: aclrtMemLocationType::ACL_MEM_LOCATION_TYPE_DEVICE,
        },
        reserve: 0,
    };
    let mut handle: aclrtDrvMemHandle = null_mut();
    // SAFETY: writes one handle to a live local; the properties are live.
    let code = unsafe { malloc(&mut handle, size, &properties, 0) };
    check::acl(&backend, "aclrtMallocPhysical", code)?;
    drop(backend);
    map(device, Physical::new(handle), size)
}

/// A handle by which every process of the supernode may import the memory. Wraps `aclrtMemExportToShareableHandleV2`.
pub(super) fn export(device: &Device, memory: &Physical) -> Result<[u8; FABRIC_BYTES]> {
    let backend = device.ready()?;
    let export = found!(backend, aclrtMemExportToShareableHandleV2)?;
    let flags = u64::from(ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
    let mut shared = aclrtMemFabricHandle {
        data: [0; FABRIC_BYTES],
    };
    let to: *mut aclrtMemFabricHandle = &mut shared;
    // SAFETY: the memory's handle is live, and one of this kind is written to a live local.
    let code = unsafe { export(memory.handle(), flags, KIND, to.cast()) };
    check::acl(&backend, "aclrtMemExportToShareableHandleV2", code)?;
    Ok(shared.data)
}

/// Memory of `size` bytes that a process of the supernode has exported, at an address. Wraps
/// `aclrtMemImportFromShareableHandleV2`, `aclrtReserveMemAddress` and `aclrtMapMem`.
pub(super) fn import(
    device: &Device,
    shared: &[u8; FABRIC_BYTES],
    size: usize,
) -> Result<(*mut c_void, Physical)> {
    let backend = device.ready()?;
    let import = found!(backend, aclrtMemImportFromShareableHandleV2)?;
    let mut shared = aclrtMemFabricHandle { data: *shared };
    let from: *mut aclrtMemFabricHandle = &mut shared;
    let mut handle: aclrtDrvMemHandle = null_mut();
    // SAFETY: reads a handle of this kind and writes one to a live local.
    let code = unsafe { import(from.cast(), KIND, 0, &mut handle) };
    check::acl(&backend, "aclrtMemImportFromShareableHandleV2", code)?;
    drop(backend);
    map(device, Physical::new(handle), size)
}

/// Puts memory behind addresses of its own, or frees it.
fn map(device: &Device, memory: Physical, size: usize) -> Result<(*mut c_void, Physical)> {
    let mapped = reserve(device, size).and_then(|address| {
        attach(device, &memory, address, size)
            .inspect_err(|_| warn("addresses", release(device, address)))
            .map(|()| address)
    });
    match mapped {
        Ok(address) => Ok((address, memory)),
        Err(error) => {
            warn("physical memory", free_physical(device, &memory));
            Err(error)
        }
    }
}

/// Ends the mapping, gives the addresses back and frees this process's hold of the memory: all three, whatever fails. Wraps
/// `aclrtUnmapMem`, `aclrtReleaseMemAddress` and `aclrtFreePhysical`.
pub(super) fn free(device: &Device, memory: &Physical, address: *mut c_void) -> Result<()> {
    let unmapped = unmap(device, address);
    let released = release(device, address);
    let freed = free_physical(device, memory);
    unmapped.and(released).and(freed)
}

fn reserve(device: &Device, size: usize) -> Result<*mut c_void> {
    let backend = device.ready()?;
    let reserve = found!(backend, aclrtReserveMemAddress)?;
    let mut address: *mut c_void = null_mut();
    // SAFETY: writes one pointer to a live local; no place is asked for.
    let code = unsafe { reserve(&mut address, size, 0, null_mut(), 0) };
    check::acl(&backend, "aclrtReserveMemAddress", code)?;
    Ok(address)
}

fn attach(device: &Device, memory: &Physical, address: *mut c_void, size: usize) -> Result<()> {
    let backend = device.ready()?;
    let map = found!(backend, aclrtMapMem)?;
    // SAFETY: `size` bytes were reserved there, and the memory has as many.
    let code = unsafe { map(address, size, 0, memory.handle(), 0) };
    check::acl(&backend, "aclrtMapMem", code)
}

fn unmap(device: &Device, address: *mut c_void) -> Result<()> {
    let backend = device.ready()?;
    let unmap = found!(backend, aclrtUnmapMem)?;
    // SAFETY: memory is mapped there; streams keep it while queued work uses it.
    let code = unsafe { unmap(address) };
    check::acl(&backend, "aclrtUnmapMem", code)
}

fn release(device: &Device, address: *mut c_void) -> Result<()> {
    let backend = device.ready()?;
    let release = found!(backend, aclrtReleaseMemAddress)?;
    // SAFETY: the addresses were reserved, and nothing is mapped there.
    let code = unsafe { release(address) };
    check::acl(&backend, "aclrtReleaseMemAddress", code)
}

fn free_physical(device: &Device, memory: &Physical) -> Result<()> {
    let backend = device.ready()?;
    let free = found!(backend, aclrtFreePhysical)?;
    // SAFETY: the handle is live, and this is its end.
    let code = unsafe { free(memory.handle()) };
    check::acl(&backend, "aclrtFreePhysical", code)
}

/// For what is undone after an error, which is what is told.
fn warn(what: &str, done: Result<()>) {
    if let Err(error) = done {
        log::warn!("{what} could not be given back: {error}");
    }
}
