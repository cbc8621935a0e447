//! Runs plans on device buffers.
//!
//! A [`World`] is this rank's live membership: its device, streams and communicators. A
//! [`GradientReducer`] is made once for a list of tensors and then reduces their gradients step by step.
//! All ranks of a world create the same reducers in the same order and call them in the same order.

mod accumulate;
mod bucket;
mod clip;
mod delta;
mod flat;
mod fusion;
mod gradient;
mod mean;
mod overflow;
mod sparse;
mod tables;
mod world;

pub use crate::plan::{DType, TensorSpec};
pub use accumulate::GradientAccumulator;
pub use clip::NormClip;
pub use delta::{DeltaForm, DeltaWeightReducer};
pub use fusion::Fusion;
pub use gradient::{GradientReducer, InServer, Options, Reduction};
pub use mean::{MeanOptions, MeanReducer, MeanTensor};
pub use overflow::OverflowVote;
pub use sparse::{IndexType, Rows, SparseReducer, SparseRows, SparseSpec};
pub use world::World;
