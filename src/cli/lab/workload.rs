//! The tensors, buckets and choices of `plan` and `simulate`, from their command lines.

use crate::cli::lab::element_type::ElementType;
use crate::cli::lab::sizes;
use crate::cli::text;
use crate::error::Result;
use crate::plan::{DType, Form, Layout, Placement, buckets};

/// ResNet-50's 25,557,032 parameters in fp32.
pub(crate) const RESNET_50: u64 = 102_228_128;
/// Default of the reducers' option of that name.
const BUCKET_BYTES: u64 = 25 << 20;

/// The tensors of a reduction and how they share buffers.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TensorArgs {
    /// Bytes of all tensors together
    #[arg(long, value_name = "B", default_value_t = RESNET_50, value_parser = text::size(2..=1 << 45))]
    pub(crate) bytes: u64,
    /// Number of tensors; their sizes follow a log-normal law, as in `bench`
    #[arg(long, value_name = "T", default_value_t = 161, value_parser = clap::value_parser!(u32).range(1..=sizes::MOST))]
    pub(crate) tensors: u32,
    /// Elements of each tensor, instead of --bytes and --tensors
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', conflicts_with_all = ["bytes", "tensors"])]
    pub(crate) counts: Vec<u64>,
    /// Type of the elements
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: ElementType,
    /// Most bytes of tensors that share a buffer
    #[arg(long, value_name = "B", default_value_t = BUCKET_BYTES, value_parser = text::size(1..=u64::MAX))]
    pub(crate) bucket_bytes: u64,
}

/// The tensors of one buffer.
pub(crate) struct Bucket {
    /// Their indices in the list of all.
    pub(crate) members: std::ops::Range<usize>,
    pub(crate) layout: Layout,
}

impl TensorArgs {
    /// Type of the elements.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype.into()
    }

    /// Elements of each tensor.
    ///
    /// # Errors
    /// If there are fewer elements than tensors.
    pub(crate) fn elements(&self) -> Result<Vec<u64>> {
        if !self.counts.is_empty() {
            return Ok(self.counts.clone());
        }
        let elements = sizes::elements(self.bytes, self.dtype.size(), self.tensors)?;
        Ok(sizes::split(elements, self.tensors))
    }

    /// One buffer for all tensors, as the cost model looks at them to choose a radix.
    ///
    /// # Errors
    /// If they are too many.
    pub(crate) fn whole(&self) -> Result<Layout> {
        Layout::new(self.dtype(), &self.elements()?)
    }

    /// The buffers as a reducer makes them.
    ///
    /// # Errors
    /// If they are too large.
    pub(crate) fn buckets(&self) -> Result<Vec<Bucket>> {
        bucketed(self.dtype(), &self.elements()?, self.bucket_bytes)
    }
}

/// The buffers of tensors with so many elements.
///
/// # Errors
/// If they are too large.
pub(crate) fn bucketed(dtype: DType, counts: &[u64], bound: u64) -> Result<Vec<Bucket>> {
    let made = buckets(dtype, counts, bound).into_iter().map(|members| {
        Ok(Bucket {
            layout: Layout::new(dtype, &counts[members.clone()])?,
            members,
        })
    });
    made.collect()
}

/// `--radix`: a number or `auto`, which is `None`.
pub(crate) fn radix(text: &str) -> std::result::Result<Option<u32>, String> {
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
pub(crate) enum PlacementArg {
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
pub(crate) fn exchange(text: &str) -> std::result::Result<Option<Form>, String> {
    match (text, Form::named(text)) {
        ("auto", _) => Ok(None),
        (_, Some(form)) => Ok(Some(form)),
        _ => {
            let known = Form::ALL.map(Form::name).join(", ");
            Err(format!("must be auto or one of {known}"))
        }
    }
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
    fn buckets_hold_all_tensors_in_their_order() {
        let made = bucketed(DType::F32, &[10, 20, 30, 1000], 200).unwrap();
        let members: Vec<_> = made.iter().map(|bucket| bucket.members.clone()).collect();
        assert_eq!(members, [0..2, 2..3, 3..4]);
        assert_eq!(made[2].layout.elements(), 1000);
    }
}
