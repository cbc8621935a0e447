//! Files of the safetensors format.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::cli::lab::reduce::tensor::{Shape, Tensor};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::DType;

/// All tensors of a file, by name.
///
/// # Errors
/// What is wrong with the file or with which tensor; the caller adds the file.
pub(crate) fn read(path: &Path) -> Result<Vec<Tensor>> {
    let bytes = std::fs::read(path).map_err(|error| Error::invalid(error.to_string()))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| Error::invalid(format!("not a readable .safetensors file: {error}")))?;
    let mut tensors = file
        .iter()
        .map(|(name, view)| tensor(name, &view))
        .collect::<Result<Vec<Tensor>>>()?;
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

fn tensor(name: &str, view: &TensorView<'_>) -> Result<Tensor> {
    let dtype = match view.dtype() {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        other => {
            return Err(Error::unsupported(format!(
                "tensor {name:?}: dtype {other}; tensors of F32, F16 and BF16 are reduced"
            )));
        }
    };
    Ok(Tensor {
        name: name.to_owned(),
        shape: Shape::new(view.shape().iter().map(|&size| size as u64).collect()),
        dtype,
        data: view.data().to_vec(),
    })
}

/// Writes all tensors. The same tensors give the same bytes.
///
/// # Errors
/// If the format cannot hold a tensor, or writing fails.
pub(crate) fn write(file: &mut File, tensors: &[Tensor]) -> Result<()> {
    let failed = |error: String| Error::new(ErrorKind::Io, error);
    let mut views = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let dtype = match tensor.dtype {
            DType::F32 => Dtype::F32,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
        };
        let sizes = tensor.shape.sizes().iter();
        let sizes = sizes.map(|&size| usize::try_from(size).unwrap_or(usize::MAX));
        let view = TensorView::new(dtype, sizes.collect(), &tensor.data);
        let view = view.map_err(|error| failed(format!("tensor {:?}: {error}", tensor.name)))?;
        views.push((tensor.name.as_str(), view));
    }
    let bytes = safetensors::serialize(views, None).map_err(|error| failed(error.to_string()))?;
    file.write_all(&bytes)
        .map_err(|error| failed(error.to_string()))
}
