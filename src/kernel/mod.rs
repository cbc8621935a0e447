//! Typed launches of the device kernels.
//!
//! | kernel | turns | into |
//! |---|---|---|
//! | [`gram`](Kernels::gram) | r vectors | a record of their Gram matrix for each unit |
//! | [`fold`](Kernels::fold) | the records of units | a record for each segment |
//! | [`coefficients`](Kernels::coefficients) | the records of all ranks | the AdaSum weights of each tensor |
//! | [`weighted_sum`](Kernels::weighted_sum) | r vectors and weights | their sum |
//! | [`pack`](Kernels::pack), [`unpack`](Kernels::unpack) | tensors anywhere | one fused buffer, and back |
//! | [`subtract`](Kernels::subtract) | two vectors | their difference |
//! | [`finite_check`](Kernels::finite_check) | a vector | a flag for each tensor with a NaN or an infinity |
//! | [`guard`](Kernels::guard), [`spoil`](Kernels::spoil) | a [`Receipt`] that blocks have signed | NaNs in results, and a failure of the stream, if one has not |
//!
//! A launch is enqueued on a [`Queue`], which a `&Stream` is, and runs in its order; nothing here waits for the device.
//! Tables in device memory are described in [`layout`]; the kernels themselves are in `csrc/kernels`. This module must
//! not know why anything is reduced.
//!
//! Launches check types, lengths and starts of memory. They do not read tables in device memory: addresses in them must be
//! of memory of the device, segments must lie within the vectors and name tensors that have coefficients or flags, and
//! references must name records that there are.

mod addresses;
mod arch;
mod binary;
mod build;
mod elements;
mod elf;
#[cfg(test)]
mod elf_sample;
pub mod layout;
mod receipt;
mod segments;
mod sums;
mod toolkit;
#[cfg(feature = "mock")]
mod twin;

pub use arch::Chip;
pub use binary::locate;
pub use build::{Build, usual_chips};
pub use elements::{FiniteCheck, Move, Subtract, Tensors};
pub use receipt::{Culprit, Guard, OnMissing, Queue, Reason, Receipt};
pub use segments::SegmentTable;
pub use sums::{Coefficients, Fold, Gram, Rule, Vectors, WeightedSum};

use std::path::{Path, PathBuf};

use crate::ascend::{Argument, DataType, Device, Function, Module, Span};
use crate::error::{Context, Error, Result};
use crate::sys;

/// The kernels of one device, ready to launch.
pub struct Kernels {
    gram: Function,
    fold: Function,
    coefficients: Function,
    weighted_sum: Function,
    pack: Function,
    unpack: Function,
    subtract: Function,
    finite_check: Function,
    guard: Function,
    /// A receipt that nobody signs.
    unsigned: Receipt,
    blocks: u32,
    chip: Chip,
    path: PathBuf,
}

/// Blocks of a launch over the mock, which runs them one after the other: each costs time, and more show nothing more.
const MOCK_BLOCKS: u32 = 2;

impl Kernels {
    /// Loads the kernels for `device`.
    ///
    /// On the mock these are the CPU twin, which is part of this crate, on at most 2 blocks; on a chip the binary that
    /// [`locate`] finds, on all vector cores.
    /// `ADASUM_KERNELS`, an absolute path, names another kernel binary.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::error::ErrorKind::Unsupported) if there is no binary for the chip, or no
    /// kernels, or if its arithmetic saturates though it need not; otherwise what loading the binary or finding a kernel in it says.
    pub fn load(device: &Device) -> Result<Self> {
        let chip = Chip::named(&device.soc_name()?)?;
        chip.check_arithmetic(device.saturates()?)?;
        let kind = sys::backend()?.kind;
        let path = binary::find(kind, &chip)?;
        let kernels = Kernels::load_file(device, &path)
            .context(|| format!("kernel binary {}", path.display()))?;
        Ok(match kind {
            sys::Kind::Cann => kernels,
            sys::Kind::Mock => {
                let blocks = kernels.blocks.min(MOCK_BLOCKS);
                kernels.with_blocks(blocks)
            }
        })
    }

    /// Loads the kernel binary at an absolute path.
    ///
    /// # Errors
    /// What loading the binary or finding a kernel in it says.
    pub fn load_file(device: &Device, path: &Path) -> Result<Self> {
        let module = Module::load(device, path)?;
        Ok(Kernels {
            gram: module.function("gram")?,
            fold: module.function("fold")?,
            coefficients: module.function("coefficients")?,
            weighted_sum: module.function("weighted_sum")?,
            pack: module.function("pack")?,
            unpack: module.function("unpack")?,
            subtract: module.function("subtract")?,
            finite_check: module.function("finite_check")?,
            guard: module.function("guard")?,
            unsigned: Receipt::wrong(device)?,
            blocks: device.vector_cores()?.max(1),
            chip: Chip::named(&device.soc_name()?)?,
            path: path.to_owned(),
        })
    }

    /// The chip that the kernels run on.
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// The file that they were loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same kernels on at most `blocks` blocks (at least one). Results do not depend on it.
    #[must_use]
    pub fn with_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks.max(1);
        self
    }

    /// The code of an element type that this chip computes with.
    fn dtype(&self, dtype: DataType, kernel: &str) -> Result<u64> {
        self.chip.check(dtype, kernel)?;
        layout::dtype_code(dtype, kernel)
    }

    /// Checks that `spans` start where this chip can copy from and to.
    fn check_starts(&self, kernel: &str, name: &str, spans: &[Span]) -> Result<()> {
        let bytes = self.chip.start_alignment();
        let off = |span: &&Span| !span.is_empty() && !span.address().is_multiple_of(bytes);
        match (0..).zip(spans).find(|(_, span)| off(span)) {
            Some((index, span)) => Err(Error::invalid(format!(
                "{kernel}: {name} {index} starts {} bytes off a multiple of {bytes}, which {} cannot copy",
                span.address() % bytes,
                self.chip.name()
            ))),
            None => Ok(()),
        }
    }

    /// Launches `function` with `items` spread over the blocks, which sign a receipt if there is one. Nothing is launched for
    /// no items.
    fn launch<const N: usize>(
        &self,
        queue: Queue<'_>,
        function: &Function,
        items: u64,
        arguments: [Argument<'_>; N],
    ) -> Result<()> {
        let blocks = u32::try_from(items).unwrap_or(u32::MAX);
        let blocks = blocks.min(self.blocks).min(queue.most);
        if blocks == 0 {
            return Ok(());
        }
        let receipt = queue.sign(blocks);
        let arguments: Vec<Argument<'_>> = arguments.into_iter().chain([receipt]).collect();
        queue.stream.launch(function, blocks, &arguments)
    }
}

/// Checks that `span` holds `count` entries of `bytes`.
fn check_room(kernel: &str, name: &str, span: &Span, count: u64, bytes: usize) -> Result<()> {
    let needed = u128::from(count) * bytes as u128;
    if (span.len() as u128) < needed {
        return Err(Error::invalid(format!(
            "{kernel}: {name} has {} bytes, {count} entries of {bytes} need {needed}",
            span.len()
        )));
    }
    Ok(())
}
