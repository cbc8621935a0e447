//! All integration tests in one program.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests convert small known numbers and end where something fails"
)]

mod backend;
mod bench;
mod beyond;
#[cfg(feature = "bindgen")]
mod bindings;
#[cfg(feature = "cli")]
mod build_kernels;
mod c_programs;
mod capi;
mod choices;
#[cfg(feature = "cli")]
mod config;
mod costs;
mod demo;
#[cfg(feature = "cli")]
mod doctor;
mod documents;
mod engine;
mod failures;
mod families;
mod faults;
mod fuzz;
mod golden;
mod golden_bits;
mod golden_log;
mod header;
mod kernels;
mod launch;
mod layers;
mod leaks;
mod matrix;
mod mean;
mod oracle;
mod plan;
#[cfg(feature = "cli")]
mod plan_command;
mod processes;
mod properties;
#[cfg(feature = "cli")]
mod qualify;
mod rank_table;
mod rank_table_forms;
#[cfg(feature = "cli")]
mod reduce_command;
mod reduction;
#[cfg(feature = "cli")]
mod simulate;
mod statistics;
mod subsets;
mod support;
#[cfg(feature = "cli")]
mod table;
mod table_mutations;
mod training;
mod variables;
#[cfg(feature = "bindgen")]
mod vendor;
