//! What MindSpore's AdaSum systems ask of their surroundings: the profile `mindspore`, and boost's configuration.
//!
//! | module | holds | reached by |
//! |---|---|---|
//! | `checks` | the conditions of the wrap cells | `Options::mindspore`, `ADASUM_PROFILE` |
//! | `boost` | the configuration of the boost mode and its conditions | `Settings::load_boost`, `ADASUM_BOOST_CONFIG` |
//! | `names` | names of groups, tags of messages | `adasum-run plan` |
//!
//! Messages of errors and warnings are MindSpore's, word for word, so that what users search for is found. The
//! arithmetic is not here: it differs from the paper's, and training never uses it.

mod boost;
mod checks;
mod names;

pub use boost::{Boost, BoostConfig, BoostLevel, check_boost};
pub use checks::{ParallelContext, ParallelMode, wrap_cell_servers};
pub use names::{TagHash, group_name, tag};

/// Ranks of a server in MindSpore's cells, whatever the machine.
pub const DEVICES_PER_SERVER: u32 = 8;
