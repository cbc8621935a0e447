//! Named tensors as they stand in files.

use std::fmt;

use half::{bf16, f16};

use crate::cli::text;
use crate::error::{Error, Result};
use crate::plan::{DType, TensorSpec};
use crate::sys::memory;

/// A tensor: little-endian elements in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) data: Vec<u8>,
}

/// The sizes of a tensor's dimensions; none for a scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape(Vec<u64>);

/// Bytes of an element, for indices.
pub(crate) fn element_bytes(dtype: DType) -> usize {
    match dtype {
        DType::F32 => 4,
        DType::F16 | DType::BF16 => 2,
    }
}

/// # Errors
/// If there is less memory than the tensors of a file take while it is read.
pub(crate) fn check_memory(bytes: u64) -> Result<()> {
    match memory::left() {
        Some(left) if left.bytes < bytes => Err(Error::invalid(format!(
            "reading it takes {} of memory, but {} has only {} left",
            text::bytes(bytes),
            left.of,
            text::bytes(left.bytes)
        ))),
        _ => Ok(()),
    }
}

impl Tensor {
    /// Name, count and type for the reducer.
    pub(crate) fn spec(&self) -> TensorSpec {
        let count = self.data.len() / element_bytes(self.dtype);
        TensorSpec::new(self.name.clone(), count as u64, self.dtype)
    }

    /// The elements, exactly.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        let value: fn(&[u8]) -> f64 = match self.dtype {
            DType::F32 => |b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            DType::F16 => |b| f64::from(f16::from_le_bytes([b[0], b[1]])),
            DType::BF16 => |b| f64::from(bf16::from_le_bytes([b[0], b[1]])),
        };
        self.data.chunks_exact(element_bytes(self.dtype)).map(value)
    }
}

impl Shape {
    pub(crate) fn new(sizes: Vec<u64>) -> Shape {
        Shape(sizes)
    }

    pub(crate) fn sizes(&self) -> &[u64] {
        &self.0
    }

    /// Bytes of a tensor of this shape.
    ///
    /// # Errors
    /// If there are more than memory can ever hold.
    pub(crate) fn bytes(&self, dtype: DType) -> Result<u64> {
        // A size of 0 anywhere makes an empty tensor, whatever the others are.
        if self.0.contains(&0) {
            return Ok(0);
        }
        let mut sizes = self.0.iter();
        sizes
            .try_fold(dtype.size(), |bytes, &size| bytes.checked_mul(size))
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| Error::invalid(format!("{self} elements are too many")))
    }

    /// The sizes as a tuple of Python: `()`, `(3,)`, `(3, 4)`.
    pub(crate) fn python(&self) -> String {
        match self.0.as_slice() {
            [one] => format!("({one},)"),
            sizes => {
                let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
                format!("({})", sizes.join(", "))
            }
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.python())
    }
}
