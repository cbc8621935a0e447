//! All integration tests in one program.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests convert small known numbers"
)]

mod demo;
mod golden;
mod kernels;
mod launch;
mod layers;
mod oracle;
mod plan;
mod processes;
mod rank_table;
mod reduction;
mod support;
