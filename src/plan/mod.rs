//! What every rank does in a reduction, as pure data.
//!
//! A [`Layout`] places the tensors in one fused buffer. A [`Planner`] then says, for each rank, which ranges
//! it sends to and receives from whom in each step, what it owns afterwards and with whom it sums scalars.
//! [`check`] takes the plans of all ranks and proves that they fit together.
//!
//! Nothing here touches a device, a file or another rank: the same inputs give the same plan everywhere.

mod buckets;
mod check;
mod fingerprint;
mod layout;
mod range;
mod rounds;
mod tree;

pub use buckets::buckets;
pub use check::check;
pub use fingerprint::fingerprint;
pub use layout::{DType, Layout, Segment, TensorSpec, UNIT};
pub use range::Range;
pub use rounds::{Combine, Exchange, Group, Plan, Planner, Round, Shape, Transfer};
pub use tree::MAX_RADIX;
