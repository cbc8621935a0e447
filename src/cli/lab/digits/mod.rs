//! Handwritten digits and a small network that learns them, on the host: for the demo and for the examples.
//!
//! A program with a framework has all of this from the framework. Not part of the library's interface.

pub mod gradients;
pub mod images;
pub mod network;
mod random;
