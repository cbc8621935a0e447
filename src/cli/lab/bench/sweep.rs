//! The sizes of a benchmark.

use crate::cli::lab::bench::request::Size;
use crate::cli::lab::element_type::ElementType;
use crate::cli::lab::sizes;
use crate::error::{Error, Result};

/// Tensors where nobody says how many: those of ResNet-50.
const TENSORS: u32 = 161;

/// Bytes from `first` to at most `last`, each `factor` (at least 2) times those before.
///
/// # Errors
/// If `last` is less than `first`.
pub(crate) fn sweep(first: u64, last: u64, factor: u64) -> Result<Vec<u64>> {
    if first > last {
        return Err(Error::invalid(format!(
            "-e {last} is less than -b {first}: a sweep goes from -b to -e"
        )));
    }
    let next = |&bytes: &u64| bytes.checked_mul(factor).filter(|&next| next <= last);
    Ok(std::iter::successors(Some(first), next).collect())
}

/// `bytes` as whole elements of so many tensors; where nobody says how many, at most one for each element.
///
/// # Errors
/// If there are fewer elements than tensors.
pub(crate) fn size(bytes: u64, dtype: ElementType, tensors: Option<u32>) -> Result<Size> {
    let most = u32::try_from(bytes / dtype.size()).unwrap_or(u32::MAX);
    let tensors = tensors.unwrap_or(TENSORS.min(most.max(1)));
    let elements = sizes::elements(bytes, dtype.size(), tensors)?;
    Ok(Size {
        bytes: elements * dtype.size(),
        tensors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_ends_at_or_below_its_end() {
        assert_eq!(
            sweep(1024, 1 << 16, 4).unwrap(),
            [1 << 10, 1 << 12, 1 << 14, 1 << 16]
        );
        assert_eq!(sweep(1000, 8999, 3).unwrap(), [1000, 3000]);
        assert_eq!(sweep(7, 7, 2).unwrap(), [7]);
        assert_eq!(sweep(1 << 63, u64::MAX, 2).unwrap(), [1 << 63]);
        let refused = sweep(8, 4, 2).unwrap_err().to_string();
        assert!(refused.contains("-e 4 is less than -b 8"), "{refused}");
    }

    #[test]
    fn no_tensor_is_empty() {
        let of = |bytes, tensors| size(bytes, ElementType::F32, tensors);
        let [small, odd, large, chosen] = [(64, None), (71, None), (1 << 20, None), (64, Some(3))]
            .map(|(bytes, tensors)| of(bytes, tensors).unwrap());
        assert_eq!((small.bytes, small.tensors), (64, 16));
        assert_eq!((odd.bytes, odd.tensors), (68, 17));
        assert_eq!((large.bytes, large.tensors), (1 << 20, TENSORS));
        assert_eq!((chosen.bytes, chosen.tensors), (64, 3));
        assert!(of(64, Some(17)).is_err());
        assert!(of(3, None).is_err());
    }
}
