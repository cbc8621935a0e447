//! What each stage looks at. Every check says what it expects; no check takes the library's word for a result.

pub(crate) mod arithmetic;
pub(crate) mod communicators;
pub(crate) mod device;
pub(crate) mod kernels;
pub(crate) mod libraries;
pub(crate) mod memory;
pub(crate) mod reductions;
pub(crate) mod rejoin;
pub(crate) mod streams;
