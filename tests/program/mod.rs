//! The program `adasum-run`: a file for each subcommand, and what becomes of its processes.

mod bench;
#[cfg(feature = "cli")]
mod build_kernels;
#[cfg(feature = "cli")]
mod config;
mod demo;
mod demo_log;
#[cfg(feature = "cli")]
mod doctor;
mod faults;
mod hosts;
mod launch;
mod leaks;
#[cfg(feature = "cli")]
mod plan;
#[cfg(feature = "cli")]
mod qualify;
#[cfg(feature = "cli")]
mod reduce;
#[cfg(feature = "cli")]
mod simulate;
#[cfg(feature = "cli")]
mod table;
mod trace;
#[cfg(feature = "cli")]
mod words;
