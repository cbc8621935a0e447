//! The files of the ranks: which format, whether they fit together, writing the result.

use std::collections::HashMap;
use std::path::Path;

use crate::cli::io;
use crate::cli::lab::reduce::tensor::Tensor;
use crate::cli::lab::reduce::{npz, safetensors};
use crate::error::{Context, Error, Result};

/// A file format, chosen by the extension of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Npz,
    Safetensors,
}

impl Format {
    /// # Errors
    /// For any other extension.
    pub(crate) fn of(path: &Path) -> Result<Format> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("npz") => Ok(Format::Npz),
            Some("safetensors") => Ok(Format::Safetensors),
            _ => Err(Error::invalid(format!(
                "{}: the name must end in .npz or .safetensors",
                path.display()
            ))),
        }
    }
}

/// The tensors of one rank.
///
/// # Errors
/// Names the file and what is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Vec<Tensor>> {
    let tensors = match Format::of(path)? {
        Format::Npz => npz::read(path),
        Format::Safetensors => safetensors::read(path),
    };
    let tensors = tensors.context(|| path.display())?;
    if tensors.is_empty() {
        return Err(Error::invalid(format!(
            "{}: there is no tensor in it",
            path.display()
        )));
    }
    Ok(tensors)
}

/// `tensors` of `path` in the order of `first`, the tensors of `first_path`.
///
/// # Errors
/// Names both files and the first tensor that one of them lacks or that differs in shape or dtype.
pub(crate) fn in_order(
    tensors: Vec<Tensor>,
    path: &Path,
    first: &[Tensor],
    first_path: &Path,
) -> Result<Vec<Tensor>> {
    let (path, first_path) = (path.display(), first_path.display());
    let count = tensors.len();
    let mut by_name: HashMap<String, Tensor> = tensors
        .into_iter()
        .map(|tensor| (tensor.name.clone(), tensor))
        .collect();
    let mut ordered = Vec::with_capacity(count);
    for wanted in first {
        let name = &wanted.name;
        let found = by_name.remove(name).ok_or_else(|| {
            Error::invalid(format!(
                "{path}: no tensor {name:?}, which {first_path} has"
            ))
        })?;
        if found.shape != wanted.shape {
            return Err(Error::invalid(format!(
                "{path}: tensor {name:?} has shape {}, in {first_path} it has {}",
                found.shape, wanted.shape
            )));
        }
        if found.dtype != wanted.dtype {
            return Err(Error::invalid(format!(
                "{path}: tensor {name:?} has dtype {}, in {first_path} it has {}",
                found.dtype.name(),
                wanted.dtype.name()
            )));
        }
        ordered.push(found);
    }
    match by_name.keys().min() {
        None => Ok(ordered),
        Some(name) => Err(Error::invalid(format!(
            "{path}: tensor {name:?} is not in {first_path}"
        ))),
    }
}

/// Writes `tensors` to `path`, whole or not at all.
///
/// # Errors
/// Names the file.
pub(crate) fn write(path: &Path, tensors: &[Tensor]) -> Result<()> {
    let format = Format::of(path)?;
    io::replace(path, |file| match format {
        Format::Npz => npz::write(file, tensors),
        Format::Safetensors => safetensors::write(file, tensors),
    })
}
