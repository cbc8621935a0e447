//! Runs plans on device buffers.
//!
//! A [`World`] is this rank's live membership: its device, streams and communicators. A
//! [`GradientReducer`] is made once for a list of tensors and then reduces their gradients step by step.
//! All ranks of a world create the same reducers in the same order and call them in the same order.
//!
//! Tensors are put into buckets. Each has a list of stages, made from its plan (`maker`), and each stage runs on one of
//! three streams (`lanes`). The stages of all buckets are issued as a wavefront ([`wavefront`](crate::plan::wavefront)).

mod accumulate;
mod agreement;
mod book;
mod bucket;
mod checksum;
mod clip;
mod delta;
mod describe;
mod device_memory;
mod flat;
mod fusion;
mod given;
mod gradient;
mod hosts;
mod journal;
mod lanes;
mod maker;
mod mean;
mod memory;
mod observed;
mod options;
mod overflow;
mod phases;
mod prepared;
mod profile;
mod receipts;
mod report;
mod scalars;
mod scattered;
mod settings;
mod some;
mod sparse;
mod stage;
mod statistics;
mod tables;
mod watch;
mod world;

pub use crate::plan::{DType, Form, Machine, Placement, TensorSpec};
pub use accumulate::GradientAccumulator;
pub use clip::NormClip;
pub use delta::{DeltaForm, DeltaWeightReducer};
pub use device_memory::DeviceMemory;
pub use fusion::Fusion;
pub use gradient::GradientReducer;
pub use journal::{Figure, Journal, Record, STATISTICS_VARIABLE, TensorRecord};
pub use mean::{MeanOptions, MeanReducer, MeanTensor};
pub use options::{InServer, Options, Reduction, ScalarExchange, Wire};
pub use overflow::OverflowVote;
pub use phases::Phases;
pub use report::{FailedCall, Failure, Progress, REPORT_MARK, REPORT_VARIABLE, Report, Waiting};
pub use scattered::Owned;
pub use settings::{BOOST_FILE, Overflow, Profile, Settings, VARIABLES, Variable};
pub use sparse::{IndexType, Rows, SparseReducer, SparseRows, SparseSpec};
pub use statistics::TensorStatistics;
pub use world::World;
