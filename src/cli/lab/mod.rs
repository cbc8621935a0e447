//! Commands that try reductions: training, files, measurements, models. `digits` also serves the examples.

pub(crate) mod bench;
pub(crate) mod demo;
#[doc(hidden)]
pub mod digits;
pub(crate) mod element_type;
pub(crate) mod reduce;
pub(crate) mod reference;
pub(crate) mod simulate;
mod sizes;
mod tree;
pub(crate) mod workload;
