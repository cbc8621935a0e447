//! The mock of ACL and HCCL, and the interface that it has in common with CANN.

#[cfg(feature = "bindgen")]
mod bindings;
pub(crate) mod c_programs;
#[cfg(feature = "bindgen")]
mod vendor;
