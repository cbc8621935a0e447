//! What the ranks of a benchmark are asked to do.

use serde::{Deserialize, Serialize};

use crate::ascend::DataType;
use crate::plan::Form;
use crate::reduce::DType;

/// `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ElementType {
    F32,
    F16,
    Bf16,
}

impl ElementType {
    pub(super) const ALL: [ElementType; 3] =
        [ElementType::F32, ElementType::F16, ElementType::Bf16];

    /// Bytes of an element.
    pub(super) fn size(self) -> u64 {
        DType::from(self).size()
    }

    pub(super) fn name(self) -> &'static str {
        DType::from(self).name()
    }
}

impl From<ElementType> for DType {
    fn from(dtype: ElementType) -> Self {
        match dtype {
            ElementType::F32 => DType::F32,
            ElementType::F16 => DType::F16,
            ElementType::Bf16 => DType::BF16,
        }
    }
}

impl From<ElementType> for DataType {
    fn from(dtype: ElementType) -> Self {
        match dtype {
            ElementType::F32 => DataType::F32,
            ElementType::F16 => DataType::F16,
            ElementType::Bf16 => DataType::Bf16,
        }
    }
}

/// One benchmark, as the command line of its ranks carries it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// All kernels, on vectors of `bytes` together.
    Kernels { bytes: u64, reps: u32 },
    /// Messages of up to `bytes`.
    Transport { bytes: u64, reps: u32 },
    /// A gradient reduction.
    Reduction(Reduced),
}

/// A gradient reduction.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Reduced {
    /// The mean over all ranks instead of AdaSum.
    pub(super) mean: bool,
    pub(super) ranks: u32,
    /// Ranks of a server.
    pub(super) locals: u32,
    /// Bytes of gradients on each rank.
    pub(super) bytes: u64,
    pub(super) dtype: ElementType,
    pub(super) tensors: u32,
    pub(super) reps: u32,
    pub(super) radix: u32,
    /// `None` for what suits the chip.
    pub(super) exchange: Option<Form>,
    /// `None` for the library's own.
    pub(super) bucket_bytes: Option<u64>,
    pub(super) pipeline_depth: Option<u32>,
}

impl Request {
    /// Ranks and ranks of a server.
    pub(super) fn shape(&self) -> (u32, u32) {
        match self {
            Request::Kernels { .. } => (1, 1),
            Request::Transport { .. } => (2, 1),
            Request::Reduction(reduced) => (reduced.ranks, reduced.locals),
        }
    }
}
