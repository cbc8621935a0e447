//! AdaSum gradient reduction for Huawei Ascend NPUs.
//!
//! Data flows one way through the crate:
//!
//! ```text
//! rank table / environment --topo--> Cluster --plan--> Plan --reduce--> GradientReducer --(device buffers, stream)--> done
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`error`] | the one error type |
//! | [`cache`] | the folder that embedded files are unpacked into |
//! | `sys` | the ACL and HCCL function tables and how they are loaded |
//! | [`ascend`] | RAII handles over `sys`, one to one |
//! | [`kernel`] | typed launches of the device kernels |
//! | [`topo`] | who is where: rank tables and the environment |
//! | [`plan`] | what each rank does in a reduction, as pure data |
//! | [`reduce`] | runs a plan on device buffers |
//! | `ffi` | the C interface, `include/adasum.h` |
//! | `cli` | the program `adasum-run` |
//!
//! A module imports only from those above it; `tests/it/layers.rs` holds the exact table.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "wraps the vendor C interface")]
pub mod ascend;
pub mod cache;
#[cfg(feature = "cli")]
pub mod cli;
pub mod error;
#[allow(unsafe_code, reason = "the C interface")]
#[doc(hidden)]
pub mod ffi;
#[allow(unsafe_code, reason = "wraps the vendor C interface")]
pub mod kernel;
pub mod plan;
pub mod reduce;
#[allow(unsafe_code, reason = "wraps the vendor C interface")]
#[doc(hidden)]
pub mod sys;
pub mod topo;

pub use error::{Error, ErrorKind, Result};
