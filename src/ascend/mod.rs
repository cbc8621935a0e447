//! Safe handles over ACL and HCCL, one type per vendor object: creation, use, destruction, and nothing else.
//!
//! A handle keeps what it stands on alive (a buffer its device, a stream the memory its queued work touches), so work
//! can be queued without lifetimes. All handles may be used from any thread: each call is made in the context of its
//! device, and the thread has its own again afterwards. This module must not know of reductions, plans or ranks beyond
//! what HCCL itself counts.

mod buffer;
mod check;
mod comm;
mod config;
mod data_type;
mod device;
mod event;
mod exchange;
mod handle;
mod host;
mod link_type;
mod module;
mod physical;
mod queued;
mod shared;
mod stream;
mod survey;

use std::ffi::CStr;
use std::path::Path;

pub use buffer::{Buffer, Pod, Span};
pub use comm::{Comm, ROOT_INFO_BYTES, RootInfo};
pub use config::CommConfig;
pub use device::Device;
pub use event::Event;
pub use exchange::{GROUPS_RUN, groups_run};
pub use host::HostBuffer;
pub use link_type::LinkType;
pub use module::{Argument, Function, Module};
pub use queued::Queued;
pub use shared::{MemoryKey, Sharing};
pub use stream::{Remains, Stream};
pub use survey::{Survey, survey};

pub use crate::sys::Symbol;
pub use crate::transfer::Transfer;
pub use data_type::{DataType, ReduceOp};

use crate::error::Result;
use crate::sys;

/// Which libraries are in use.
#[derive(Debug, Clone, Copy)]
pub struct BackendInfo {
    /// `cann` or `mock`.
    pub name: &'static str,
    /// File of ACL.
    pub acl: &'static Path,
    /// File of HCCL.
    pub hccl: &'static Path,
}

/// Loads the libraries, if that has not happened yet, and says which they are.
///
/// # Errors
/// If they cannot be loaded.
pub fn backend() -> Result<BackendInfo> {
    let backend = sys::backend()?;
    Ok(BackendInfo {
        name: backend.kind.name(),
        acl: &backend.acl_path,
        hccl: &backend.hccl_path,
    })
}

/// What the mock has counted under `name` since the start of this process, for all its ranks together: the names are in the
/// mock's own page (`csrc/mock/README.md`, "Counters"). 0 for another name, `None` on CANN.
///
/// # Errors
/// If the libraries cannot be loaded.
pub fn mock_counter(name: &CStr) -> Result<Option<u64>> {
    Ok(sys::backend()?.mock_counter(name))
}

#[cfg(test)]
mod tests;
