//! The C interface: its header, what the library exports, and programs that use it.

mod capi;
mod corpus;
mod fuzz;
mod header;
mod python;
