//! Files of the safetensors format.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::cli::lab::reduce::tensor::{Shape, Tensor, check_memory};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::DType;

/// All tensors of a file, by name.
///
/// # Errors
/// What is wrong with the file or with which tensor; the caller adds the file.
pub(crate) fn read(path: &Path) -> Result<Vec<Tensor>> {
    let failed = |error: std::io::Error| Error::invalid(error.to_string());
    let size = std::fs::metadata(path).map_err(failed)?.len();
    // The file, and its tensors one by one.
    check_memory(size.saturating_mul(2))?;
    let bytes = std::fs::read(path).map_err(failed)?;
    check_names(&bytes)?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| Error::invalid(format!("not a readable .safetensors file: {error}")))?;
    let mut tensors = file
        .iter()
        .map(|(name, view)| tensor(name, &view))
        .collect::<Result<Vec<Tensor>>>()?;
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

/// # Errors
/// For two tensors of one name, of which the crate keeps the last. What else is wrong with the header is found later.
fn check_names(file: &[u8]) -> Result<()> {
    let Some((length, rest)) = file.split_first_chunk() else {
        return Ok(());
    };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let header = rest.get(..length).unwrap_or_default();
    let Ok(Names(mut names)) = serde_json::from_slice(header) else {
        return Ok(());
    };
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::invalid(format!(
            "it holds two tensors {:?}",
            pair[0]
        ))),
    }
}

/// The keys of a JSON object, all of them.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Names(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Names {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> std::result::Result<Names, A::Error> {
        while let Some((name, IgnoredAny)) = map.next_entry()? {
            self.0.push(name);
        }
        Ok(self)
    }
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
