//! Makes the plan of a list of tensors into stages, once, and enqueues them on streams, step by step.
//!
//! A [`program`] has buckets, and each [`bucket`] a list of stages that [`build`] makes from its plan; a [`stage`] is what
//! one stream gets at a time.

pub(super) mod address_table;
pub(super) mod allocator;
pub(super) mod arguments;
pub(super) mod bucket;
mod build;
pub(super) mod checksum;
pub(super) mod choices;
pub(super) mod clock;
pub(super) mod device_tables;
mod issue;
pub(super) mod message_log;
mod pieces;
mod place;
pub(super) mod program;
mod rendezvous;
mod schedule;
pub(super) mod slots;
pub(super) mod stage;
pub(super) mod tensor_copies;
