//! Rank tables as the library reads them.

mod damaged;
mod other_versions;
mod reading;
