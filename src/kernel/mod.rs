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
//! What the tables in device memory hold is in [`layout`]; the kernels themselves are in `csrc/kernels`. This module must
//! not know why anything is reduced.

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
mod toolkit;
#[cfg(feature = "mock")]
mod twin;

pub use arch::Chip;
pub use binary::locate;
pub use build::{Build, usual_chips};
pub use elements::{FiniteCheck, Move, Subtract, Tensors};
pub use receipt::{Culprit, Guard, Queue, Reason, Receipt, Then};

use std::path::Path;

use self::addresses::Addresses;
use crate::ascend::{Argument, DataType, Device, Function, Module, Span, Stream};
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
}

/// The vectors of a launch: a table of their addresses in device memory, which also keeps them alive.
#[derive(Clone)]
pub struct Vectors(Addresses);

impl Vectors {
    /// A table of `spans`, in the order of the operands; each starts at the first element of its slice.
    ///
    /// # Errors
    /// If there are none or more than [`layout::MAX_RADIX`], or device memory is short.
    pub fn new(device: &Device, spans: &[Span]) -> Result<Self> {
        layout::check_radix(spans.len(), "vectors")?;
        Addresses::new(device, spans).map(Vectors)
    }

    /// `table` as the addresses (`u64`) of the operands, in their order. It is filled later, on the stream of the
    /// launches; each launch keeps `behind` alive.
    ///
    /// # Errors
    /// If there is room for none or more than [`layout::MAX_RADIX`].
    pub fn in_table(table: Span, behind: &[Span]) -> Result<Self> {
        let vectors = Vectors(Addresses::in_table(table, behind));
        layout::check_radix(vectors.radix(), "vectors")?;
        Ok(vectors)
    }

    /// How many there are.
    pub fn radix(&self) -> usize {
        self.0.len()
    }
}

/// Arguments of [`Kernels::gram`].
///
/// Addresses and segments in device memory are not checked: they must describe memory of the device.
#[derive(Clone, Copy)]
pub struct Gram<'a> {
    /// The vectors, at least two; segments lie within all of them.
    pub vectors: &'a Vectors,
    /// Their elements: F32, F16 or Bf16.
    pub dtype: DataType,
    /// [`layout::Segment`]s of the vectors.
    pub segments: &'a Span,
    /// Out: a record for each unit.
    pub partials: &'a Span,
    /// Number of segments.
    pub segment_count: u64,
    /// Number of units of all segments.
    pub unit_count: u64,
}

/// Arguments of [`Kernels::fold`].
#[derive(Clone, Copy)]
pub struct Fold<'a> {
    /// The records that [`Kernels::gram`] wrote.
    pub partials: &'a Span,
    /// The same segments as there.
    pub segments: &'a Span,
    /// Out: a record for each segment.
    pub records: &'a Span,
    /// Number of vectors.
    pub radix: usize,
    /// Number of segments.
    pub segment_count: u64,
}

/// Arguments of [`Kernels::coefficients`].
#[derive(Clone, Copy)]
pub struct Coefficients<'a> {
    /// Records of segments, of all ranks that share the tensors.
    pub records: &'a Span,
    /// A [`layout::Reference`] for each tensor.
    pub refs: &'a Span,
    /// Record numbers (`u64`), those of a tensor one after the other in the order of summation.
    pub indices: &'a Span,
    /// Out: [`layout::COEFFICIENT_WORDS`] words for each tensor.
    pub out: &'a Span,
    /// Number of vectors.
    pub radix: usize,
    /// Number of tensors.
    pub tensor_count: u64,
}

/// What [`Kernels::coefficients_by`] adds to the AdaSum rule.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rule {
    /// In a pair, a vector whose squared norm is at most so many times that of the other counts as zero: the pair is
    /// the other. At least 0 and below 1; 0 leaves the rule as it is, where only exact zeros count.
    pub zero_tol: f32,
    /// The weights are scaled so that the norm of the result is at most this; 0 for no limit. Statistics are those
    /// from before.
    pub norm_limit: f32,
    /// Only the weights and the flags are wanted: statistics are zero.
    pub weights_only: bool,
}

/// Arguments of [`Kernels::weighted_sum`].
///
/// Addresses and segments in device memory are not checked: they must describe memory of the device.
#[derive(Clone, Copy)]
pub struct WeightedSum<'a> {
    /// The vectors; segments lie within all of them.
    pub vectors: &'a Vectors,
    /// Elements of the vectors and of the sum: F32, F16 or Bf16.
    pub dtype: DataType,
    /// [`layout::Segment`]s of the vectors; elements outside of them stay as they are.
    pub segments: &'a Span,
    /// [`layout::COEFFICIENT_WORDS`] words for each tensor that a segment names.
    pub coefficients: &'a Span,
    /// Out: the sum; exactly one of the vectors, or apart from all of them.
    pub out: &'a Span,
    /// Number of segments.
    pub segment_count: u64,
    /// Number of units of all segments.
    pub unit_count: u64,
}

impl Rule {
    /// Both numbers as the kernel takes them.
    fn word(self) -> Result<u64> {
        if !(0.0..1.0).contains(&self.zero_tol) {
            return Err(Error::invalid(format!(
                "zero_tol {} is not at least 0 and below 1",
                self.zero_tol
            )));
        }
        if !(self.norm_limit >= 0.0 && self.norm_limit.is_finite()) {
            return Err(Error::invalid(format!(
                "norm_limit {} is not finite and at least 0",
                self.norm_limit
            )));
        }
        // Of a negative zero the sign would count as a number.
        let bits = |value: f32| u64::from(value.abs().to_bits());
        Ok(bits(self.zero_tol) | u64::from(self.weights_only) << 31 | bits(self.norm_limit) << 32)
    }
}

impl Kernels {
    /// Loads the kernels for `device`.
    ///
    /// On the mock that is the CPU twin which is part of this crate, on a chip the binary that [`locate`] finds.
    /// `ADASUM_KERNELS`, an absolute path, names another kernel binary.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::error::ErrorKind::Unsupported) if there is no binary for the chip, or no
    /// kernels; otherwise what loading the binary or finding a kernel in it says.
    pub fn load(device: &Device) -> Result<Self> {
        let chip = Chip::named(&device.soc_name()?)?;
        let path = binary::find(sys::backend()?.kind, &chip)?;
        Kernels::load_file(device, &path).context(|| format!("kernel binary {}", path.display()))
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
        })
    }

    /// The chip that they run on.
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// The same kernels on at most `blocks` blocks (at least one). Results do not depend on it.
    #[must_use]
    pub fn with_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks.max(1);
        self
    }

    /// Enqueues the Gram matrices of all units: one pass over the vectors.
    pub fn gram<'a>(&self, queue: impl Into<Queue<'a>>, launch: &Gram<'_>) -> Result<()> {
        let radix = launch.vectors.radix();
        check_gram_radix("gram", radix)?;
        let dtype = self.dtype(launch.dtype, "gram")?;
        self.check_places("gram", "vector", launch.vectors.0.spans())?;
        let words = layout::record_words(radix);
        need(
            "gram",
            "segments",
            launch.segments,
            launch.segment_count,
            SEGMENT,
        )?;
        need(
            "gram",
            "partials",
            launch.partials,
            launch.unit_count,
            4 * words,
        )?;
        self.launch(
            queue.into(),
            &self.gram,
            launch.unit_count,
            [
                launch.vectors.0.argument(),
                Argument::Span(launch.segments),
                Argument::Span(launch.partials),
                Argument::Value(radix as u64),
                Argument::Value(dtype),
                Argument::Value(launch.segment_count),
                Argument::Value(launch.unit_count),
            ],
        )
    }

    /// Enqueues the sums of the records of units, one for each segment.
    ///
    /// A segment with a unit whose record [never came](layout::MISSING) gets a record that looks as if it had not come
    /// either, and its block does not sign.
    pub fn fold<'a>(&self, queue: impl Into<Queue<'a>>, launch: &Fold<'_>) -> Result<()> {
        check_gram_radix("fold", launch.radix)?;
        let record = 4 * layout::record_words(launch.radix);
        need(
            "fold",
            "segments",
            launch.segments,
            launch.segment_count,
            SEGMENT,
        )?;
        need(
            "fold",
            "records",
            launch.records,
            launch.segment_count,
            record,
        )?;
        self.launch(
            queue.into(),
            &self.fold,
            launch.segment_count,
            [
                Argument::Span(launch.partials),
                Argument::Span(launch.segments),
                Argument::Span(launch.records),
                Argument::Value(launch.radix as u64),
                Argument::Value(launch.segment_count),
            ],
        )
    }

    /// Enqueues the weights of all tensors.
    ///
    /// A tensor with a record that [never came](layout::MISSING) gets weights of NaN that look as if they had not come
    /// either, and its block does not sign.
    pub fn coefficients<'a>(
        &self,
        queue: impl Into<Queue<'a>>,
        launch: &Coefficients<'_>,
    ) -> Result<()> {
        self.coefficients_by(Rule::default(), queue, launch)
    }

    /// Enqueues the weights of all tensors, by a rule with additions.
    ///
    /// # Errors
    /// If a number of the rule is out of range, and as [`Kernels::coefficients`].
    pub fn coefficients_by<'a>(
        &self,
        rule: Rule,
        queue: impl Into<Queue<'a>>,
        launch: &Coefficients<'_>,
    ) -> Result<()> {
        let rule = rule.word()?;
        check_gram_radix("coefficients", launch.radix)?;
        let entry = 4 * layout::COEFFICIENT_WORDS;
        need(
            "coefficients",
            "refs",
            launch.refs,
            launch.tensor_count,
            REFERENCE,
        )?;
        need(
            "coefficients",
            "out",
            launch.out,
            launch.tensor_count,
            entry,
        )?;
        self.launch(
            queue.into(),
            &self.coefficients,
            launch.tensor_count,
            [
                Argument::Span(launch.records),
                Argument::Span(launch.refs),
                Argument::Span(launch.indices),
                Argument::Span(launch.out),
                Argument::Value(launch.radix as u64),
                Argument::Value(launch.tensor_count),
                Argument::Value(rule),
            ],
        )
    }

    /// Enqueues the weighted sum of the vectors: one pass over memory.
    ///
    /// Of a tensor whose weights [never came](layout::MISSING) it is NaN, and its blocks do not sign.
    pub fn weighted_sum<'a>(
        &self,
        queue: impl Into<Queue<'a>>,
        launch: &WeightedSum<'_>,
    ) -> Result<()> {
        let dtype = self.dtype(launch.dtype, "weighted_sum")?;
        self.check_places("weighted_sum", "vector", launch.vectors.0.spans())?;
        self.check_places("weighted_sum", "out", std::slice::from_ref(launch.out))?;
        need(
            "weighted_sum",
            "segments",
            launch.segments,
            launch.segment_count,
            SEGMENT,
        )?;
        self.launch(
            queue.into(),
            &self.weighted_sum,
            launch.unit_count,
            [
                launch.vectors.0.argument(),
                Argument::Span(launch.segments),
                Argument::Span(launch.coefficients),
                Argument::Span(launch.out),
                Argument::Value(launch.vectors.radix() as u64),
                Argument::Value(dtype),
                Argument::Value(launch.segment_count),
                Argument::Value(launch.unit_count),
            ],
        )
    }

    /// The code of an element type that this chip computes with.
    fn dtype(&self, dtype: DataType, kernel: &str) -> Result<u64> {
        self.chip.check(dtype, kernel)?;
        layout::dtype_code(dtype, kernel)
    }

    /// Checks that `spans` start where this chip can copy from and to.
    fn check_places(&self, kernel: &str, name: &str, spans: &[Span]) -> Result<()> {
        const GRAIN: u64 = 64;
        let off = |span: &Span| !span.is_empty() && !span.address().is_multiple_of(GRAIN);
        match spans.iter().position(off) {
            Some(index) if self.chip.copies_whole_blocks() => Err(Error::invalid(format!(
                "{kernel}: {name} {index} starts {} bytes off a multiple of {GRAIN}, which {} cannot copy",
                spans.get(index).map_or(0, |span| span.address() % GRAIN),
                self.chip.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Enqueues a check that all blocks of the launches since the last guard have signed the receipt.
    ///
    /// If they have, it begins again. If not, the element at each of the places becomes NaN, so that what
    /// failed work left is not taken for a result, and the stream fails: its next synchronisation says so. Arch 1001 cannot
    /// fail; there the NaNs (the whole 32 bytes at each place) are all there is to see.
    ///
    /// Call it for a stream that waits for those launches, before it goes on. The first guard that finds work
    /// missing writes why to the reason. On a stream that carries those launches itself ([`Then::GoOn`]) it does
    /// not fail the stream: what failed there is told by the stream, of several failures the last one only.
    ///
    /// # Errors
    /// If 4096 blocks or more were launched, or the call fails.
    pub fn guard(&self, stream: &Stream, launch: &Guard<'_>) -> Result<()> {
        let Guard {
            receipt,
            places,
            reason,
            ..
        } = launch;
        let due = u64::from(receipt.take()?.to_bits());
        let due = match launch.then {
            Then::Fail => due,
            Then::GoOn => {
                reason.expect_quiet();
                due | layout::GUARD_GOES_ON
            }
        };
        let arguments = [
            Argument::Span(receipt.line()),
            Argument::Value(due),
            places.argument(),
            Argument::Value(places.len() as u64),
            Argument::Value(launch.dtype.size() as u64),
            Argument::Span(reason.line()),
        ];
        stream.launch(&self.guard, 1, &arguments)
    }

    /// Enqueues that the element at each of `places` becomes NaN (on arch 1001 the 32 bytes that begin there).
    ///
    /// # Errors
    /// If the call fails.
    pub fn spoil(&self, stream: &Stream, places: &Tensors, dtype: DataType) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        // A guard that finds its receipt wrong, has nothing new to tell, and goes on.
        let line = self.unsigned.line();
        let arguments = [
            Argument::Span(line),
            Argument::Value(layout::GUARD_GOES_ON),
            places.argument(),
            Argument::Value(places.len() as u64),
            Argument::Value(dtype.size() as u64),
            Argument::Span(line),
        ];
        stream.launch(&self.guard, 1, &arguments)
    }

    /// Spreads `items` over the blocks, which sign a receipt if there is one; nothing to do is nothing to launch.
    fn launch<const N: usize>(
        &self,
        queue: Queue<'_>,
        function: &Function,
        items: u64,
        arguments: [Argument<'_>; N],
    ) -> Result<()> {
        let blocks = u32::try_from(items).unwrap_or(u32::MAX).min(self.blocks);
        if blocks == 0 {
            return Ok(());
        }
        let receipt = queue.sign(blocks);
        let arguments: Vec<Argument<'_>> = arguments.into_iter().chain([receipt]).collect();
        queue.stream.launch(function, blocks, &arguments)
    }
}

const SEGMENT: usize = size_of::<layout::Segment>();
const REFERENCE: usize = size_of::<layout::Reference>();

/// Kernels of the Gram matrix take 2 to 8 vectors.
fn check_gram_radix(kernel: &str, radix: usize) -> Result<()> {
    layout::check_radix(radix, kernel)?;
    if radix < 2 {
        return Err(Error::invalid(format!(
            "{kernel}: one vector has no Gram matrix"
        )));
    }
    Ok(())
}

/// Checks that `span` holds `count` entries of `bytes`.
fn need(kernel: &str, name: &str, span: &Span, count: u64, bytes: usize) -> Result<()> {
    let needed = u128::from(count) * bytes as u128;
    if (span.len() as u128) < needed {
        return Err(Error::invalid(format!(
            "{kernel}: {name} has {} bytes, {count} entries of {bytes} need {needed}",
            span.len()
        )));
    }
    Ok(())
}
