//! AdaSum gradient reduction for Huawei Ascend NPUs.
//!
//! A training on many servers combines the gradients of its ranks in every step. The mean treats parallel gradients and
//! orthogonal ones alike; AdaSum ([arXiv 2006.02924](https://arxiv.org/abs/2006.02924)) gives their mean where they are
//! parallel and their sum where they are orthogonal, tensor by tensor. This crate does that over HCCL, with kernels of its
//! own, and over a mock of ACL and HCCL where there is no NPU. Nothing here has run on an NPU yet; run `adasum-run qualify` first.
//!
//! # A training
//!
//! Each rank is a process. It joins the world ([`reduce::World`]) in the place that the environment gives it
//! ([`topo::Launch`]), and makes one reducer for the list of its tensors. From then on a step enqueues work on a stream and
//! returns. This is a whole program, `examples/gradient.rs`:
//!
//! ```no_run
#![doc = include_str!("../examples/gradient.rs")]
//! ```
//!
//! With adasum as a dependency in `Cargo.toml` and `adasum-run` installed from the repository (`cargo install --path .`) it runs anywhere:
//!
//! ```text
//! $ cargo build && adasum-run launch -n 2 -- target/debug/PROGRAM
//! [r0] [1.0, 1.0, 0.0, 0.0]
//! [r1] [1.0, 1.0, 0.0, 0.0]
//! ```
//!
//! torchrun sets variables that place a rank, too. So does msrun, but without `DEVICE_ID` and `LOCAL_RANK`, of which a rank needs one
//! ([`topo::Launch::from_env`]). Under mpirun or srun each process is `adasum-run launch --rank env --rank-table T -- PROGRAM`.
//!
//! Options may come from the environment (`docs/environment.md`): [`Settings`](reduce::Settings) hold them until there is a world.
//!
//! ```no_run
//! # use adasum::reduce::{GradientReducer, Settings, TensorSpec, World};
//! # fn make(tensors: &[TensorSpec]) -> adasum::Result<()> {
//! let mut settings = Settings::default();
//! settings.load_environment()?;
//! let world = World::from_environment(&settings)?;
//! let mut reducer = GradientReducer::new(&world, tensors, &settings.options(&world)?)?;
//! # drop(reducer);
//! # Ok(())
//! # }
//! ```
//!
//! Where to look next:
//!
//! - [`reduce`]: the reducers. [`GradientReducer`](reduce::GradientReducer) for gradients,
//!   [`DeltaWeightReducer`](reduce::DeltaWeightReducer) for what the optimizer did to the weights,
//!   [`MeanReducer`](reduce::MeanReducer) for mean and sum; their [`Options`](reduce::Options), statistics, and what goes
//!   with them (norm clip, overflow vote, accumulation).
//! - [`topo`]: rank tables and the environment.
//! - [`plan`]: what each rank sends, receives and computes, to look at and to check without running it; MindSpore's rules.
//! - [`ascend`] and [`kernel`]: handles over ACL and HCCL, and launches of the kernels, for programs that do more.
//! - [`error`]: the one error type. After a failure in the middle of a reduction its world is poisoned: every later call
//!   fails with the first reason.
//!
//! From C, C++ and Python the library is called through `include/adasum.h`.
//!
//! # Features
//!
//! - `mock` (default): the mock of ACL and HCCL and the CPU twin of the kernels. Needs a C++ compiler; without it only CANN
//!   is loaded.
//! - `cli` (default): the program `adasum-run`. Programs that only use the library leave it out, with what it depends on:
//!   `adasum = { version = "...", default-features = false, features = ["mock"] }`.
//!
//! `docs/architecture.md` in the repository draws how the modules lie and how a gradient goes through them.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "wraps the vendor C interface")]
pub mod ascend;
pub mod cache;
#[cfg(feature = "cli")]
pub mod cli;
pub mod error;
#[allow(unsafe_code, reason = "the C interface")]
#[doc(hidden)]
pub mod ffi;
#[allow(unsafe_code, reason = "wraps the vendor C interface")]
pub mod kernel;
pub mod plan;
pub mod reduce;
mod soc;
#[allow(unsafe_code, reason = "wraps the vendor C interface")]
#[doc(hidden)]
pub mod sys;
pub mod topo;
pub mod transfer;
pub mod variables;

pub use error::{Error, ErrorKind, Result};
