//! Element types on command lines.

use serde::{Deserialize, Serialize};

use crate::ascend::DataType;
use crate::plan::DType;

/// `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ElementType {
    F32,
    F16,
    Bf16,
}

impl ElementType {
    pub(crate) const ALL: [ElementType; 3] =
        [ElementType::F32, ElementType::F16, ElementType::Bf16];

    /// Bytes of an element.
    pub(crate) fn size(self) -> u64 {
        DType::from(self).size()
    }

    pub(crate) fn name(self) -> &'static str {
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
