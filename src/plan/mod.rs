//! What every rank does in a reduction, as pure data.
//!
//! A [`Layout`] places the tensors in one fused buffer. A [`Planner`] then says, for each rank, which ranges
//! it sends to and receives from whom in each step, what it owns afterwards and with whom it sums scalars.
//! [`check`] takes the plans of all ranks and proves that they fit together.
//!
//! Nothing here touches a device, a file or another rank: the same inputs give the same plan everywhere.

mod buckets;
mod check;
mod cost;
mod fingerprint;
mod layout;
mod machine;
pub mod mindspore;
mod operations;
mod planner;
mod range;
mod record;
mod shape;
mod steps;
mod tree;
mod wavefront;

pub use buckets::buckets;
pub use check::check;
pub use cost::{Cost, Links, Request, StepCost, StepSeconds, Traffic, choose, seconds};
pub use fingerprint::{Description, Fingerprint, first_difference};
pub use layout::{DType, Layout, Segment, TensorSpec, UNIT};
pub use machine::{Link, Machine, Reach};
pub use operations::{gram_operations, sum_operations};
pub use planner::{Choices, Planner};
pub use range::Range;
pub(crate) use record::COEFFICIENT_WEIGHT;
pub use record::{
    coefficient_words, entries, entry_index, record_exponents, record_flags, record_words,
};
pub use shape::{Group, Shape};
pub use steps::{
    Combine, Exchange, Form, Forms, OwnedScalars, Placement, Plan, RecordPart, Round, Scalars,
    Step, StepKind, VectorPart,
};
pub use tree::{MAX_RADIX, RoundOrder};
pub use wavefront::wavefront;
