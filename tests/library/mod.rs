//! Reducers, worlds and plans through the Rust interface.

pub(crate) mod backend;
mod checked_calls;
mod costs;
pub(crate) mod execution;
mod failures;
mod features;
pub(crate) mod golden;
mod golden_bits;
mod matrix;
mod mean;
mod plan;
mod plan_choices;
mod properties;
mod reduction;
mod statistics;
mod subsets;
mod training;
