//! Files of NumPy's `savez`: a ZIP archive with one `.npy` member for each array.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::cli::lab::reduce::npy;
use crate::cli::lab::reduce::tensor::{Tensor, check_memory};
use crate::error::{Context, Error, ErrorKind, Result};

const SUFFIX: &str = ".npy";
/// Bytes from which a member needs the long headers of ZIP64.
const LARGE: usize = 0xFFF0_0000;

/// All arrays of a file, in the order of its directory.
///
/// # Errors
/// What is wrong with the archive or with which array; the caller adds the file.
pub(crate) fn read(path: &Path) -> Result<Vec<Tensor>> {
    let file = File::open(path).map_err(|error| Error::invalid(error.to_string()))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(archive_error)?;
    // Two members of one name, members that share their bytes, headers that contradict each other.
    archive
        .validate_header_consistency()
        .map_err(archive_error)?;
    let mut bytes = 0_u64;
    for index in 0..archive.len() {
        let size = archive.by_index_raw(index).map_err(archive_error)?.size();
        bytes = bytes.saturating_add(size);
    }
    check_memory(bytes)?;
    let mut tensors = Vec::new();
    let mut names = HashSet::new();
    for index in 0..archive.len() {
        let member = archive.by_index(index).map_err(archive_error)?;
        let full = member.name().map_err(archive_error)?.into_owned();
        let name = full.strip_suffix(SUFFIX).unwrap_or(&full);
        if !names.insert(name.to_owned()) {
            return Err(Error::invalid(format!("it holds two arrays {name:?}")));
        }
        let size = member.size();
        tensors.push(npy::read(name, member, size).context(|| format!("array {name:?}"))?);
    }
    Ok(tensors)
}

/// Writes all tensors, uncompressed. The same tensors give the same bytes.
///
/// # Errors
/// If a tensor is bf16 or has a name that the archive cannot hold, or writing fails.
pub(crate) fn write(file: &mut File, tensors: &[Tensor]) -> Result<()> {
    let failed = |error: String| Error::new(ErrorKind::Io, error);
    let mut file = Quiet { file, error: None };
    let mut archive = ZipWriter::new(&mut file);
    for tensor in tensors {
        let name = &tensor.name;
        let header = npy::header(tensor).context(|| format!("tensor {name:?}"))?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            // No clock in the file.
            .last_modified_time(DateTime::default())
            .unix_permissions(0o644)
            .large_file(header.len() + tensor.data.len() >= LARGE);
        archive
            .start_file(format!("{name}{SUFFIX}"), options)
            .map_err(|error| failed(format!("tensor {name:?}: {error}")))?;
        archive
            .write_all(&header)
            .and_then(|()| archive.write_all(&tensor.data))
            .map_err(|error| failed(error.to_string()))?;
    }
    let finished = archive.finish();
    finished.map_err(|error| failed(error.to_string()))?;
    file.error
        .map_or(Ok(()), |error| Err(failed(error.to_string())))
}

/// A file that keeps its first error and takes all that follows: a `ZipWriter` prints the errors that it meets when it is
/// dropped.
struct Quiet<'a> {
    file: &'a mut File,
    error: Option<io::Error>,
}

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.error.is_none() {
            match self.file.write(bytes) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    self.error = Some(error);
                }
                other => return other,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Quiet<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "what map_err gives is consumed"
)]
fn archive_error(error: zip::result::ZipError) -> Error {
    Error::invalid(format!("not a readable .npz archive: {error}"))
}
