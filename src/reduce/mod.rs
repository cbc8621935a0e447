//! Runs plans on device buffers.
//!
//! A [`World`] is this rank's live membership: its device, streams and communicators. A
//! [`GradientReducer`] is made once for a list of tensors and then reduces their gradients step by step.
//! All ranks of a world create the same reducers in the same order and call them in the same order.
//!
//! Tensors are put into buckets. Each has a list of stages, made from its plan (`maker`), and each stage runs on one of
//! three streams (`lanes`). The stages of all buckets are issued as a wavefront (`pipeline`).

mod agreement;
mod book;
mod bucket;
mod checksum;
mod gradient;
mod hosts;
mod lanes;
mod maker;
mod memory;
mod options;
mod pipeline;
mod profile;
mod report;
mod scalars;
mod stage;
mod statistics;
mod tables;
mod watch;
mod world;

pub use crate::plan::{DType, Machine, Order, Placement, TensorSpec};
pub use gradient::GradientReducer;
pub use options::{Options, Reduction, ScalarExchange, Wire};
pub use report::{Failure, REPORT_MARK, REPORT_VARIABLE, Report, Waiting};
pub use statistics::TensorStatistics;
pub use world::World;
