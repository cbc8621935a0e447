//! The C interface, `include/adasum.h`.
//!
//! Opaque handles, scalars and one frozen struct cross it. Every export runs in `catch`: a panic becomes a status, and the sentence of a
//! failure is kept for its thread. Nulls and lengths are checked. This module translates; it must not know how anything is
//! reduced.
//!
//! What a C reader needs is in the comments of the exports, because they become the header.

mod accumulate;
mod arguments;
mod catch;
mod clip;
mod delta;
mod gradient;
mod handle;
mod journal;
mod library;
mod log;
mod mean;
mod options;
mod reducer;
mod statistics;
mod status;
mod streams;
#[cfg(test)]
mod tests;
mod world;

#[cfg(not(panic = "unwind"))]
compile_error!("the C interface turns panics into statuses: build with panic = \"unwind\"");

pub use accumulate::*;
pub use arguments::{
    ADASUM_BF16, ADASUM_F16, ADASUM_F32, ADASUM_TENSOR_FUSION, ADASUM_TENSOR_FUSION_SHIFT,
    ADASUM_TENSOR_LAYERWISE, adasum_tensor,
};
pub use clip::*;
pub use delta::*;
pub use gradient::*;
pub use journal::*;
pub use library::*;
pub use log::*;
pub use mean::*;
pub use options::*;
pub use reducer::*;
pub use statistics::*;
pub use status::*;
pub use world::*;
