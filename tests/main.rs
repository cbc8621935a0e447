//! All integration tests in one program.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests convert small known numbers and end where something fails"
)]

mod interface;
mod kernels;
mod library;
mod mock;
mod pages;
mod program;
mod support;
mod tables;
