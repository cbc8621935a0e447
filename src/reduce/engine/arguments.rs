//! The tensors that callers give to a call: are they what the reducer was made for.

use crate::ascend::Span;
use crate::error::{Context, Error, Result};
use crate::kernel::Chip;
use crate::plan::TensorSpec;
use crate::reduce::world::World;

/// Checks that there is a whole tensor for each of `specs`, where the chip of `world` can copy it; `what` says in messages
/// what the spans are.
pub(in crate::reduce) fn check_tensors<'a>(
    world: &World,
    specs: impl ExactSizeIterator<Item = &'a TensorSpec>,
    spans: &[Span],
    what: &str,
) -> Result<()> {
    if spans.len() != specs.len() {
        return Err(Error::invalid(format!(
            "{} {what}s were given for {} tensors",
            spans.len(),
            specs.len()
        )));
    }
    let chip = world.kernels().chip();
    for (spec, span) in specs.zip(spans) {
        let bytes = bytes_of(spec);
        let same = world.device().require_same(span.device(), what);
        same.context(|| format!("tensor \"{}\"", spec.name))?;
        if span.len() as u64 != bytes {
            return Err(Error::invalid(format!(
                "tensor \"{}\": the {what} has {} bytes, {} elements of {} are {bytes}",
                spec.name,
                span.len(),
                spec.count,
                spec.dtype.name()
            )));
        }
        if bytes > 0 {
            check_address(chip, spec, span.address(), what)?;
        }
    }
    Ok(())
}

fn check_address(chip: &Chip, spec: &TensorSpec, address: u64, what: &str) -> Result<()> {
    // Both are powers of two. Divisions would take longer than all else that is looked at in a tensor.
    let is_off = |bytes: u64| address & (bytes - 1) != 0;
    let size = spec.dtype.size();
    if is_off(size) {
        return Err(Error::invalid(format!(
            "tensor \"{}\": the address {address:#x} of the {what} is not a multiple of {size} bytes, the size of an \
             element",
            spec.name
        )));
    }
    let alignment = chip.start_alignment();
    if is_off(alignment) {
        return Err(Error::invalid(format!(
            "tensor \"{}\": the address {address:#x} of the {what} is not a multiple of {alignment} bytes, as {} needs it",
            spec.name,
            chip.name()
        )));
    }
    Ok(())
}

/// The tensors of `specs` that lie in `buffer`, one right behind the other.
///
/// # Errors
/// If the buffer has another length.
pub(in crate::reduce) fn cut<'a>(
    specs: impl Iterator<Item = &'a TensorSpec> + Clone,
    buffer: &Span,
) -> Result<Vec<Span>> {
    let needed = flat_bytes(specs.clone());
    if buffer.len() as u64 != needed {
        return Err(Error::invalid(format!(
            "the buffer has {} bytes, the tensors one after the other have {needed}",
            buffer.len()
        )));
    }
    let mut end = 0;
    let parts = specs.map(|spec| {
        let start = end;
        // Within the buffer, whose length is a usize.
        end += usize::try_from(bytes_of(spec)).unwrap_or(usize::MAX);
        buffer.slice(start..end)
    });
    parts.collect()
}

/// Bytes of tensors one right behind the other.
pub(in crate::reduce) fn flat_bytes<'a>(specs: impl Iterator<Item = &'a TensorSpec>) -> u64 {
    specs.map(bytes_of).fold(0, u64::saturating_add)
}

fn bytes_of(spec: &TensorSpec) -> u64 {
    spec.count.saturating_mul(spec.dtype.size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DType;

    #[test]
    fn a_chip_that_copies_whole_blocks_needs_tensors_at_their_start() {
        let spec = TensorSpec::new("layer.bias", 3, DType::F16);
        let check = |soc: &str, address| {
            let chip = Chip::named(soc).unwrap();
            check_address(&chip, &spec, address, "gradient").map_err(|error| error.to_string())
        };
        assert_eq!(check("Ascend910A", 0x1040), Ok(()));
        let refused = check("Ascend910A", 0x1020).unwrap_err();
        for part in ["\"layer.bias\"", "0x1020", "gradient", "64", "Ascend910A"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!(check("Ascend910B3", 0x1022), Ok(()));
        let refused = check("Ascend910B3", 0x1021).unwrap_err();
        assert!(refused.contains("multiple of 2 bytes"), "{refused}");
    }
}
