//! Device memory that processes of a machine share: keys of exported memory, and what is mapped by them.

use std::ffi::{c_char, c_void};
use std::fmt;

use super::check;
use super::device::Device;
use crate::error::{Error, Result};
use crate::sys::Backend;
use crate::sys::acl::{
    ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
    ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS,
};

/// Bytes of the vendor's key: at most 64 characters, and a 0 behind them.
const NAME_BYTES: usize = 65;
/// Bytes of the length that travels with it.
const LENGTH_BYTES: usize = size_of::<u64>();

/// What another process of the machine needs to map a [`Buffer::shareable`](super::Buffer::shareable): the vendor's key of
/// 65 bytes and the length of the memory, which the vendor's library does not tell.
///
/// Whoever has it can read and write the memory, so it goes to the ranks of the job only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MemoryKey([u8; MemoryKey::BYTES]);

impl MemoryKey {
    /// Bytes of a key.
    pub const BYTES: usize = NAME_BYTES + LENGTH_BYTES;

    fn new(name: [u8; NAME_BYTES], len: usize) -> MemoryKey {
        let mut bytes = [0; MemoryKey::BYTES];
        let (first, last) = bytes.split_at_mut(NAME_BYTES);
        first.copy_from_slice(&name);
        last.copy_from_slice(&(len as u64).to_le_bytes());
        MemoryKey(bytes)
    }

    /// The key as it is sent to other ranks.
    pub fn as_bytes(&self) -> &[u8; MemoryKey::BYTES] {
        &self.0
    }

    /// A key that another rank has sent.
    ///
    /// # Errors
    /// If it is none: of another length, or not a string.
    pub fn from_bytes(bytes: &[u8]) -> Result<MemoryKey> {
        let whole: [u8; MemoryKey::BYTES] = bytes.try_into().map_err(|_| {
            Error::invalid(format!(
                "a key of device memory has {} bytes, not {}",
                MemoryKey::BYTES,
                bytes.len()
            ))
        })?;
        let key = MemoryKey(whole);
        let name = key.0.split_at(NAME_BYTES).0;
        // The library reads up to the 0.
        if name.first() == Some(&0) || name.last() != Some(&0) {
            return Err(Error::invalid("these bytes are no key of device memory"));
        }
        Ok(key)
    }

    /// Bytes of the memory.
    pub fn len(&self) -> usize {
        let mut length = [0; LENGTH_BYTES];
        length.copy_from_slice(self.0.split_at(NAME_BYTES).1);
        usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX)
    }

    /// Whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn name(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// Without the key itself, which is a secret of the job.
impl fmt::Debug for MemoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryKey({} bytes)", self.len())
    }
}

/// Makes memory of `device`, of which `len` bytes are of use, importable by whoever has the key. Wraps
/// `aclrtIpcMemGetExportKey`.
pub(super) fn export(
    device: &Device,
    address: *mut c_void,
    size: usize,
    len: usize,
) -> Result<MemoryKey> {
    let backend = device.ready()?;
    let get = found(
        &backend.acl.aclrtIpcMemGetExportKey,
        "aclrtIpcMemGetExportKey",
    )?;
    let flags = u64::from(ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
    let mut name = [0u8; NAME_BYTES];
    // SAFETY: the memory is live, and a key of `NAME_BYTES` bytes is written to a live local.
    let code = unsafe { get(address, size, name.as_mut_ptr().cast(), NAME_BYTES, flags) };
    check::acl(&backend, "aclrtIpcMemGetExportKey", code)?;
    Ok(MemoryKey::new(name, len))
}

/// Where another process's memory lies for `device`. Wraps `aclrtIpcMemImportByKey`.
pub(super) fn import(device: &Device, key: &MemoryKey) -> Result<*mut c_void> {
    let backend = device.ready()?;
    let import = found(
        &backend.acl.aclrtIpcMemImportByKey,
        "aclrtIpcMemImportByKey",
    )?;
    let flags = u64::from(ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS);
    let mut address: *mut c_void = std::ptr::null_mut();
    // SAFETY: writes one pointer to a live local; the key ends with a 0.
    let code = unsafe { import(&mut address, key.name(), flags) };
    check::acl(&backend, "aclrtIpcMemImportByKey", code)?;
    Ok(address)
}

/// Ends an import of this process or, if it has none, its export. Wraps `aclrtIpcMemClose`.
pub(super) fn close(backend: &Backend, key: &MemoryKey) -> Result<()> {
    let close = found(&backend.acl.aclrtIpcMemClose, "aclrtIpcMemClose")?;
    // SAFETY: the key ends with a 0; streams keep the memory while queued work uses it.
    let code = unsafe { close(key.name()) };
    check::acl(backend, "aclrtIpcMemClose", code)
}

/// Lets `device` reach memory of device `peer`, which this process has. Wraps `aclrtDeviceEnablePeerAccess`.
pub(super) fn enable_access(device: &Device, peer: &Device) -> Result<()> {
    if device.id() == peer.id() {
        return Ok(());
    }
    let backend = device.ready()?;
    let enable = &backend.acl.aclrtDeviceEnablePeerAccess;
    let enable = found(enable, "aclrtDeviceEnablePeerAccess")?;
    // SAFETY: takes numbers by value.
    let code = unsafe { enable(peer.id(), 0) };
    check::acl(&backend, "aclrtDeviceEnablePeerAccess", code)
}

/// A function that older libraries lack.
fn found<'a, F, E>(function: &'a std::result::Result<F, E>, name: &str) -> Result<&'a F> {
    function.as_ref().map_err(|_| {
        Error::unsupported(format!(
            "the ACL library has no {name}, which memory that processes share needs (CANN 8.3.RC1)"
        ))
    })
}
