//! The mock's libraries and the headers of ACL and HCCL, which the crate carries and unpacks where they are needed.

use std::path::PathBuf;

use crate::cache;
use crate::error::Result;

#[cfg(feature = "mock")]
macro_rules! libraries {
    ($($name:literal)*) => {
        [$(($name, include_bytes!(concat!(env!("OUT_DIR"), "/", $name)))),*]
    };
}

/// The two libraries of the mock, and five that are empty: programs for the vendor's want to load them.
#[cfg(feature = "mock")]
static LIBRARIES: [(&str, &[u8]); 7] = libraries!(
    "libascendcl.so" "libhccl.so" "libacl_op_compiler.so" "libacl_tdt_channel.so" "libge_runner.so" "libgraph.so"
    "libopapi.so"
);

/// All of `csrc/cann`, by the names that programs include.
static HEADERS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// The folder with the mock's libraries, which as `LD_LIBRARY_PATH` alone serves any program for ACL and HCCL.
///
/// # Errors
/// If no folder can be written; `Unsupported` if the crate was built without feature `mock`.
#[cfg(feature = "mock")]
pub fn libraries() -> Result<PathBuf> {
    cache::unpack(&LIBRARIES)
}

/// The error in place of the folder.
#[cfg(not(feature = "mock"))]
pub fn libraries() -> Result<PathBuf> {
    Err(crate::error::Error::unsupported(
        "this build has no mock of ACL and HCCL: it was made without feature mock",
    ))
}

/// The folder to include `acl/acl.h` and `hccl/hccl.h` from.
///
/// # Errors
/// If no folder can be written.
pub fn headers() -> Result<PathBuf> {
    cache::unpack(HEADERS)
}
