//! What MindSpore's AdaSum systems ask of their surroundings: the profile `mindspore`.
//!
//! | module | holds |
//! |---|---|
//! | `checks` | the conditions of the wrap cells and of the boost mode, `create_group`'s and the mean reducer's |
//! | `names` | names of groups, tags of messages |
//! | `boost` | boost's configuration, and which tensors each rank of a server reduces |
//! | `sharded` | the rules for parameters that are sharded in (semi-)automatic parallel mode |
//!
//! Messages of errors and warnings are MindSpore's, word for word, so that what users search for is found. The
//! arithmetic is not here: it differs from the paper's, and training never uses it.

mod boost;
mod checks;
mod names;
mod sharded;

pub use boost::{Boost, BoostConfig, Level, boost_partition, boost_servers};
pub use checks::{
    Context, Created, Groups, ParallelMode, degree, parallel_check, servers, wrap_cell_servers,
};
pub use names::{
    TagHash, boost_group_name, broadcast_group_name, group_name, group_ranks, server_group_name,
    tag,
};
pub use sharded::{Mirror, Sharded, ShardedStep, replicas, sharded};

use crate::error::{Error, ErrorKind};

/// Ranks of a server in MindSpore's cells, whatever the machine.
pub const DEVICES_PER_SERVER: u32 = 8;

/// The class of a Python exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExceptionClass {
    /// `RuntimeError`.
    Runtime,
    /// `TypeError`.
    Type,
    /// `ValueError`.
    Value,
}

impl ExceptionClass {
    /// Its name in Python.
    pub fn name(self) -> &'static str {
        match self {
            ExceptionClass::Runtime => "RuntimeError",
            ExceptionClass::Type => "TypeError",
            ExceptionClass::Value => "ValueError",
        }
    }
}

/// An error of MindSpore's: class and message, word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// What Python raises.
    pub class: ExceptionClass,
    /// MindSpore's message.
    pub message: String,
}

impl Exception {
    /// The same message as an error of this crate.
    pub fn into_error(self) -> Error {
        let kind = match self.class {
            ExceptionClass::Runtime => ErrorKind::InvalidState,
            ExceptionClass::Type | ExceptionClass::Value => ErrorKind::InvalidArgument,
        };
        Error::new(kind, self.message)
    }

    fn new(class: ExceptionClass, message: impl Into<String>) -> Self {
        Exception {
            class,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Exception {}
