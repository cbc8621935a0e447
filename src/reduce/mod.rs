//! Runs plans on device buffers.
//!
//! A [`World`] is this rank's live membership: its device, streams and communicators. A
//! [`GradientReducer`] is made once for a list of tensors and then reduces their gradients step by step.
//! All ranks of a world create the same reducers in the same order and call them in the same order.
//!
//! Tensors are put into buckets. Each has a list of stages, made from its plan (`engine::build`), and each stage runs on one of
//! three streams (`world::streams`). The stages of all buckets are issued as a wavefront ([`wavefront`](crate::plan::wavefront)).

mod delta;
mod engine;
mod gradient;
mod helpers;
mod mean;
mod options;
mod sparse;
mod world;

pub use crate::plan::{DType, Form, Machine, Placement, TensorSpec};
pub use delta::DeltaWeightReducer;
pub use engine::allocator::DeviceMemory;
pub use gradient::GradientReducer;
pub use gradient::scattered::OwnedPart;
pub use gradient::statistics::TensorStatistics;
pub use gradient::timed::Phases;
pub use helpers::accumulate::GradientAccumulator;
pub use helpers::clip::NormClip;
pub use helpers::journal::{Figure, Journal, Record, TensorRecord};
pub use helpers::overflow::OverflowVote;
pub use mean::{MeanReducer, MeanTensor};
pub use options::fusion::Fusion;
pub use options::settings::{Profile, Settings};
pub use options::table::{BOOST_FILE, OPTIONS, OptionInfo};
pub use options::{
    DeltaForm, InServer, MeanOptions, Options, Overflow, Reduction, ScalarExchange, Wire,
};
pub use sparse::{IndexType, Rows, SparseReducer, SparseRows, SparseSpec};
pub use world::World;
pub use world::report::{
    FailedCall, Failure, Progress, REPORT_MARK, REPORT_VARIABLE, Report, Waiting,
};
pub use world::trace::{
    COLLECTION, REDUCTION, STATISTICS_VARIABLE, StageId, TRACE_VARIABLE, TraceLine, TraceSpan,
    Track,
};
pub use world::watch::Phase;
