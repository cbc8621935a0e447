//! The mock of ACL and HCCL, and the interface that it has in common with CANN.

mod bindings;
pub(crate) mod c_programs;
mod generate;
mod vendor;
