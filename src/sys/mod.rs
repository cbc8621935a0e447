//! The function tables of ACL and HCCL and how they are loaded; the few system calls that std lacks.
//!
//! The tables are generated from `csrc/cann` (`tests/mock/generate.rs`) and filled from the vendor's libraries or from the
//! mock's. Nothing above `ascend` and `kernel` may use them. This module must not know what the functions are called for.

mod choose;
pub mod embedded;
pub mod load;
pub mod memory;
mod origin;
pub mod process;
mod symbols;

pub use load::{Backend, Kind, Symbol, backend};
pub use tables::{acl, hccl};

#[allow(
    clippy::allow_attributes_without_reason,
    clippy::double_must_use,
    clippy::expect_used,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::type_complexity,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    reason = "generated: names are the vendor's, a table entry is checked when it is loaded"
)]
#[rustfmt::skip]
mod tables {
    /// Types, constants and the table [`Acl`](acl::Acl) of the ACL runtime (`libascendcl.so`).
    pub mod acl;
    /// Types, constants and the table [`Hccl`](hccl::Hccl) of HCCL (`libhccl.so`).
    pub mod hccl;
}
