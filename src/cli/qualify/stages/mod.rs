//! What each stage looks at. Every check says what it expects; no check takes the library's word for a result.

pub(super) mod arithmetic;
pub(super) mod communicators;
pub(super) mod device;
pub(super) mod kernels;
pub(super) mod libraries;
pub(super) mod memory;
pub(super) mod reductions;
pub(super) mod rejoin;
pub(super) mod streams;
