//! Types of elements and reductions of HCCL.

use super::buffer::Span;
use crate::error::{Error, Result};
use crate::sys::hccl::{HcclDataType, HcclReduceOp};

/// Type of the elements that a communicator moves or reduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
#[non_exhaustive]
pub enum DataType {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl DataType {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DataType::I8 | DataType::U8 => 1,
            DataType::I16 | DataType::U16 | DataType::F16 | DataType::Bf16 => 2,
            DataType::I32 | DataType::U32 | DataType::F32 => 4,
            DataType::I64 | DataType::U64 | DataType::F64 => 8,
        }
    }

    pub(super) fn raw(self) -> HcclDataType {
        use HcclDataType as Raw;
        match self {
            DataType::I8 => Raw::HCCL_DATA_TYPE_INT8,
            DataType::I16 => Raw::HCCL_DATA_TYPE_INT16,
            DataType::I32 => Raw::HCCL_DATA_TYPE_INT32,
            DataType::I64 => Raw::HCCL_DATA_TYPE_INT64,
            DataType::U8 => Raw::HCCL_DATA_TYPE_UINT8,
            DataType::U16 => Raw::HCCL_DATA_TYPE_UINT16,
            DataType::U32 => Raw::HCCL_DATA_TYPE_UINT32,
            DataType::U64 => Raw::HCCL_DATA_TYPE_UINT64,
            DataType::F16 => Raw::HCCL_DATA_TYPE_FP16,
            DataType::Bf16 => Raw::HCCL_DATA_TYPE_BFP16,
            DataType::F32 => Raw::HCCL_DATA_TYPE_FP32,
            DataType::F64 => Raw::HCCL_DATA_TYPE_FP64,
        }
    }

    /// Number of elements in `span`.
    pub(super) fn count(self, span: &Span) -> Result<u64> {
        if !span.len().is_multiple_of(self.size()) {
            return Err(Error::invalid(format!(
                "a span of {} bytes holds no whole number of {self:?} elements",
                span.len()
            )));
        }
        Ok((span.len() / self.size()) as u64)
    }
}

/// Arithmetic of HCCL's own reductions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum ReduceOp {
    Sum,
    Product,
    Max,
    Min,
}

impl ReduceOp {
    pub(super) fn raw(self) -> HcclReduceOp {
        match self {
            ReduceOp::Sum => HcclReduceOp::HCCL_REDUCE_SUM,
            ReduceOp::Product => HcclReduceOp::HCCL_REDUCE_PROD,
            ReduceOp::Max => HcclReduceOp::HCCL_REDUCE_MAX,
            ReduceOp::Min => HcclReduceOp::HCCL_REDUCE_MIN,
        }
    }
}
