//! Runs plans on device buffers.
//!
//! A [`World`] is this rank's live membership: its device, streams and communicators. A
//! [`GradientReducer`] is made once for a list of tensors and then reduces their gradients step by step.
//! All ranks of a world create the same reducers in the same order and call them in the same order.

mod agreement;
mod bucket;
mod gradient;
mod tables;
mod world;

pub use crate::plan::{DType, TensorSpec};
pub use gradient::{GradientReducer, Options, Reduction};
pub use world::World;
