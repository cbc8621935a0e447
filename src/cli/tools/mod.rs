//! Commands about a machine and a job: what there is, what is wrong, what would be done.

pub(crate) mod build_kernels;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod plan;
pub(crate) mod qualify;
pub(crate) mod table;
