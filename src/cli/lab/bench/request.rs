//! What the ranks of a benchmark are asked to do.

use serde::{Deserialize, Serialize};

use crate::cli::lab::element_type::ElementType;
use crate::plan::Form;

/// One benchmark, as the command line of its ranks carries it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// All kernels, on vectors of `bytes` together.
    Kernels { bytes: u64, reps: u32 },
    /// Messages of up to `bytes`.
    Transport { bytes: u64, reps: u32 },
    /// A gradient reduction, of one or more sizes.
    Reduction(Reduced),
}

/// A gradient reduction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reduced {
    /// The mean over all ranks instead of AdaSum.
    pub(crate) mean: bool,
    pub(crate) ranks: u32,
    /// Ranks of a server.
    pub(crate) locals: u32,
    /// Measured one after the other.
    pub(crate) sizes: Vec<Size>,
    pub(crate) dtype: ElementType,
    pub(crate) reps: u32,
    /// `None` for the fastest by the cost model.
    pub(crate) radix: Option<u32>,
    /// `None` for what suits the chip.
    pub(crate) exchange: Option<Form>,
    /// `None` for the library's own.
    pub(crate) bucket_bytes: Option<u64>,
    pub(crate) pipeline_depth: Option<u32>,
    /// Whether results are compared with those in double precision.
    pub(crate) check: bool,
    /// Whether phases are timed, too.
    pub(crate) phases: bool,
}

/// Gradients of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Size {
    /// Bytes of all tensors together, whole elements.
    pub(crate) bytes: u64,
    pub(crate) tensors: u32,
}

impl Request {
    /// Ranks and ranks of a server.
    pub(crate) fn shape(&self) -> (u32, u32) {
        match self {
            Request::Kernels { .. } => (1, 1),
            Request::Transport { .. } => (2, 1),
            Request::Reduction(reduced) => (reduced.ranks, reduced.locals),
        }
    }
}

impl Reduced {
    /// What is computed, as peers are named.
    pub(crate) fn name(&self) -> &'static str {
        match self.mean {
            true => "adasum-mean",
            false => "adasum",
        }
    }
}
