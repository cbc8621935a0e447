//! Keys of device memory that processes share, and how far they reach.

use std::ffi::c_void;
use std::fmt;

use super::check;
use super::device::Device;
use super::physical::{self, FABRIC_BYTES, Physical};
use crate::error::{Error, Result};
use crate::sys::Backend;
use crate::sys::acl::{
    ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
    ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS,
};

/// Who can map memory that is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// The processes of this machine, by a key (`aclrtIpcMemGetExportKey`; CANN 8.3.RC1).
    Machine,
    /// Those of all servers of this A3 supernode, by a handle (`aclrtMemExportToShareableHandleV2`, of the kind FABRIC; CANN
    /// 8.5.0).
    Supernode,
}

/// Bytes of the vendor's key of a machine's memory: at most 64 characters, and a 0 behind them.
const NAME_BYTES: usize = 65;
/// Room for either.
const HANDLE_BYTES: usize = FABRIC_BYTES;
const LENGTH_BYTES: usize = size_of::<u64>();

/// What another process needs to map a [`Buffer::shareable`](super::Buffer::shareable): the vendor's key or handle and the
/// length of the memory, which the vendor's library does not tell.
///
/// Whoever has it can read and write the memory, so it goes to the ranks of the job only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MemoryKey {
    sharing: Sharing,
    handle: [u8; HANDLE_BYTES],
    len: u64,
}

impl MemoryKey {
    /// Bytes of a key.
    pub const BYTES: usize = 1 + HANDLE_BYTES + LENGTH_BYTES;

    pub(super) fn new(sharing: Sharing, handle: [u8; HANDLE_BYTES], len: usize) -> MemoryKey {
        let len = len as u64;
        MemoryKey {
            sharing,
            handle,
            len,
        }
    }

    /// The key as it is sent to other ranks.
    pub fn to_bytes(&self) -> [u8; MemoryKey::BYTES] {
        let mut bytes = [0; MemoryKey::BYTES];
        bytes[0] = match self.sharing {
            Sharing::Machine => 1,
            Sharing::Supernode => 2,
        };
        bytes[1..=HANDLE_BYTES].copy_from_slice(&self.handle);
        bytes[1 + HANDLE_BYTES..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    /// A key that another rank has sent.
    ///
    /// # Errors
    /// If it is none: of another length or kind, or not a string where a string must be.
    pub fn from_bytes(bytes: &[u8]) -> Result<MemoryKey> {
        let whole: &[u8; MemoryKey::BYTES] = bytes.try_into().map_err(|_| {
            Error::invalid(format!(
                "a key of device memory has {} bytes, not {}",
                MemoryKey::BYTES,
                bytes.len()
            ))
        })?;
        let (kind, rest) = whole.split_first_chunk::<1>().unwrap_or((&[0], &[]));
        let (handle, len) = rest.split_at(HANDLE_BYTES);
        let (name, behind) = handle.split_at(NAME_BYTES);
        let sharing = match kind {
            // The library reads up to the 0.
            [1] if name[0] != 0 && name[NAME_BYTES - 1] == 0 && behind.iter().all(|&b| b == 0) => {
                Sharing::Machine
            }
            [2] => Sharing::Supernode,
            _ => return Err(Error::invalid("these bytes are no key of device memory")),
        };
        let mut key = MemoryKey::new(sharing, [0; HANDLE_BYTES], 0);
        key.handle.copy_from_slice(handle);
        key.len = len.first_chunk().copied().map_or(0, u64::from_le_bytes);
        Ok(key)
    }

    /// Who can use it.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Bytes of the memory.
    pub fn len(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }

    /// Whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Without the key itself, which is a secret of the job.
impl fmt::Debug for MemoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryKey({:?}, {} bytes)", self.sharing, self.len())
    }
}

/// Makes memory of `aclrtMalloc` importable by whoever on this machine has the key. Wraps `aclrtIpcMemGetExportKey`.
pub(super) fn export(
    device: &Device,
    address: *mut c_void,
    size: usize,
    len: usize,
) -> Result<MemoryKey> {
    let backend = device.ready()?;
    let get = found!(backend, aclrtIpcMemGetExportKey)?;
    let flags = u64::from(ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
    let mut name = [0u8; HANDLE_BYTES];
    // SAFETY: the memory is live, and a key of `NAME_BYTES` bytes is written to a live local, which has room for it.
    let code = unsafe { get(address, size, name.as_mut_ptr().cast(), NAME_BYTES, flags) };
    check::acl(&backend, "aclrtIpcMemGetExportKey", code)?;
    Ok(MemoryKey::new(Sharing::Machine, name, len))
}

/// Memory of another process as this one has it.
#[derive(Debug)]
pub(super) struct Import {
    key: MemoryKey,
    /// Only of a supernode's.
    physical: Option<Physical>,
}

/// Where another process's memory of `size` bytes lies for `device`. Wraps `aclrtIpcMemImportByKey` for a machine's memory.
pub(super) fn import(
    device: &Device,
    key: &MemoryKey,
    size: usize,
) -> Result<(*mut c_void, Import)> {
    let key = key.clone();
    if key.sharing == Sharing::Supernode {
        let (address, physical) = physical::import(device, &key.handle, size)?;
        let physical = Some(physical);
        return Ok((address, Import { key, physical }));
    }
    let backend = device.ready()?;
    let import = found!(backend, aclrtIpcMemImportByKey)?;
    let flags = u64::from(ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS);
    let mut address: *mut c_void = std::ptr::null_mut();
    // SAFETY: writes one pointer to a live local; the key ends with a 0.
    let code = unsafe { import(&mut address, key.handle.as_ptr().cast(), flags) };
    check::acl(&backend, "aclrtIpcMemImportByKey", code)?;
    let physical = None;
    Ok((address, Import { key, physical }))
}

/// Ends an import. Wraps `aclrtIpcMemClose` for a machine's memory.
pub(super) fn end_import(device: &Device, import: &Import, address: *mut c_void) -> Result<()> {
    match &import.physical {
        Some(physical) => physical::free(device, physical, address),
        None => close(device, &import.key),
    }
}

/// Ends an import of this process or, if it has none, its export. Wraps `aclrtIpcMemClose`.
pub(super) fn close(device: &Device, key: &MemoryKey) -> Result<()> {
    let backend = device.ready()?;
    let close = found!(backend, aclrtIpcMemClose)?;
    // SAFETY: the key ends with a 0; streams keep the memory while queued work uses it.
    let code = unsafe { close(key.handle.as_ptr().cast()) };
    check::acl(&backend, "aclrtIpcMemClose", code)
}

/// A function that older libraries lack.
macro_rules! found {
    ($backend:expr, $name:ident) => {
        super::shared::or_missing(&$backend, &$backend.acl.$name, stringify!($name))
    };
}
pub(super) use found;

pub(super) fn or_missing<'a, F, E>(
    backend: &Backend,
    function: &'a std::result::Result<F, E>,
    name: &str,
) -> Result<&'a F> {
    function.as_ref().map_err(|_| {
        let symbols = backend.optional_symbols();
        let since = symbols.iter().find(|symbol| symbol.name == name);
        Error::unsupported(format!(
            "the ACL library has no {name}, which memory that processes share needs (first in CANN {})",
            since.map_or("of an unknown version", |symbol| symbol.since)
        ))
    })
}
