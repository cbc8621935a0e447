//! What is reduced where, as `plan` and `simulate` are told it: tensors, buckets, choices.

use std::io::Write;

use crate::error::{Error, ErrorKind, Result};
use crate::plan::{DType, Form, Layout, Placement, buckets};

use super::bench::{ElementType, sizes};

/// ResNet-50's 25,557,032 parameters in fp32.
pub(super) const RESNET_50: u64 = 102_228_128;
/// As the reducers' option of that name has it.
const BUCKET_BYTES: u64 = 25 << 20;

/// The tensors of a reduction and how they share buffers.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TensorArgs {
    /// Bytes of all tensors together
    #[arg(long, value_name = "B", default_value_t = RESNET_50, value_parser = clap::value_parser!(u64).range(2..=1 << 45))]
    pub(super) bytes: u64,
    /// Number of tensors; their sizes follow a log-normal law, as in `bench`
    #[arg(long, value_name = "T", default_value_t = 161, value_parser = clap::value_parser!(u32).range(1..=sizes::MOST))]
    pub(super) tensors: u32,
    /// Elements of each tensor, instead of --bytes and --tensors
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', conflicts_with_all = ["bytes", "tensors"])]
    pub(super) counts: Vec<u64>,
    /// Type of the elements
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(super) dtype: ElementType,
    /// Most bytes of tensors that share a buffer
    #[arg(long, value_name = "B", default_value_t = BUCKET_BYTES)]
    pub(super) bucket_bytes: u64,
}

/// The tensors of one buffer.
pub(super) struct Bucket {
    /// Their indices in the list of all.
    pub(super) members: std::ops::Range<usize>,
    pub(super) layout: Layout,
}

impl TensorArgs {
    /// Type of the elements.
    pub(super) fn dtype(&self) -> DType {
        self.dtype.into()
    }

    /// Elements of each tensor.
    ///
    /// # Errors
    /// If there are fewer elements than tensors.
    pub(super) fn elements(&self) -> Result<Vec<u64>> {
        if !self.counts.is_empty() {
            return Ok(self.counts.clone());
        }
        let elements = self.bytes / self.dtype().size();
        if elements < u64::from(self.tensors) {
            return Err(Error::invalid(format!(
                "--bytes {}: {elements} elements are too few for {} tensors",
                self.bytes, self.tensors
            )));
        }
        Ok(sizes::split(elements, self.tensors))
    }

    /// One buffer for all tensors, as the cost model looks at them to choose a radix.
    ///
    /// # Errors
    /// If they are too many.
    pub(super) fn whole(&self) -> Result<Layout> {
        Layout::new(self.dtype(), &self.elements()?)
    }

    /// The buffers as a reducer makes them.
    ///
    /// # Errors
    /// If they are too large.
    pub(super) fn buckets(&self) -> Result<Vec<Bucket>> {
        bucketed(self.dtype(), &self.elements()?, self.bucket_bytes)
    }
}

/// The buffers of tensors with so many elements.
///
/// # Errors
/// If they are too large.
pub(super) fn bucketed(dtype: DType, counts: &[u64], bound: u64) -> Result<Vec<Bucket>> {
    let bytes = |count: &u64| count.saturating_mul(dtype.size());
    let sizes: Vec<u64> = counts.iter().map(bytes).collect();
    let made = buckets(&sizes, bound).into_iter().map(|members| {
        Ok(Bucket {
            layout: Layout::new(dtype, &counts[members.clone()])?,
            members,
        })
    });
    made.collect()
}

/// `--radix`: a number or `auto`, which is `None`.
pub(super) fn radix(text: &str) -> std::result::Result<Option<u32>, String> {
    match text {
        "auto" => Ok(None),
        _ => match text.parse() {
            Ok(radix) if (2..=8).contains(&radix) => Ok(Some(radix)),
            _ => Err("must be auto or a number from 2 to 8".to_owned()),
        },
    }
}

/// `--placement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum PlacementArg {
    /// Each rank of a server owns one part of its mean
    Hierarchical,
    /// Every rank merges the whole mean, as MindSpore's cells do
    Columns,
}

impl From<PlacementArg> for Placement {
    fn from(placement: PlacementArg) -> Self {
        match placement {
            PlacementArg::Hierarchical => Placement::Hierarchical,
            PlacementArg::Columns => Placement::Columns,
        }
    }
}

/// `--exchange`: `auto`, which is `None`, or a form.
pub(super) fn exchange(text: &str) -> std::result::Result<Option<Form>, String> {
    match (text, Form::named(text)) {
        ("auto", _) => Ok(None),
        (_, Some(form)) => Ok(Some(form)),
        _ => {
            let known = Form::ALL.map(Form::name).join(", ");
            Err(format!("must be auto or one of {known}"))
        }
    }
}

/// Bytes for a person, in powers of ten.
pub(super) fn readable_bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=999_999 => format!("{:.1} kB", value / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.1} GB", value / 1e9),
    }
}

/// Text on standard output; a reader that has seen enough is no fault.
pub(super) fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::new(
            ErrorKind::Io,
            format!("standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Writes a file that the user has named.
pub(super) fn save(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
        .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_radix_is_a_number_or_auto() {
        assert_eq!(radix("auto"), Ok(None));
        assert_eq!(radix("8"), Ok(Some(8)));
        for wrong in ["1", "9", "", "two"] {
            assert!(radix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_are_shortened() {
        assert_eq!(readable_bytes(9_999), "9999 B");
        assert_eq!(readable_bytes(RESNET_50), "102.2 MB");
    }

    #[test]
    fn buckets_hold_all_tensors_in_their_order() {
        let made = bucketed(DType::F32, &[10, 20, 30, 1000], 200).unwrap();
        let members: Vec<_> = made.iter().map(|bucket| bucket.members.clone()).collect();
        assert_eq!(members, [0..2, 2..3, 3..4]);
        assert_eq!(made[2].layout.elements(), 1000);
    }
}
