//! A short digest of everything that all ranks must agree on before they reduce together.

use sha1::{Digest, Sha1};

use super::{Shape, TensorSpec};

/// SHA-1 of the shape, the tensors (names, sizes, types, order) and `options`, a text of all choices.
///
/// Ranks whose digests differ would wait for messages that never come.
pub fn fingerprint(shape: Shape, tensors: &[TensorSpec], options: &str) -> [u8; 20] {
    let mut hash = Sha1::new();
    hash.update(shape.servers.to_le_bytes());
    hash.update(shape.locals.to_le_bytes());
    // Lengths go before texts, so that no two lists run together to the same bytes.
    let mut text = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    text(options);
    for tensor in tensors {
        text(&tensor.name);
        text(tensor.dtype.name());
        text(&tensor.count.to_string());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DType;

    #[test]
    fn everything_that_matters_changes_it() {
        let shape = Shape::new(2, 8).unwrap();
        let tensor = |name: &str, count| TensorSpec::new(name, count, DType::F32);
        let base = fingerprint(shape, &[tensor("a", 1), tensor("b", 2)], "x");
        let others = [
            fingerprint(
                Shape::new(4, 4).unwrap(),
                &[tensor("a", 1), tensor("b", 2)],
                "x",
            ),
            fingerprint(shape, &[tensor("b", 1), tensor("a", 2)], "x"),
            fingerprint(shape, &[tensor("a", 2), tensor("b", 1)], "x"),
            fingerprint(shape, &[tensor("a", 1)], "x"),
            fingerprint(shape, &[tensor("a", 1), tensor("b", 2)], "y"),
            fingerprint(
                shape,
                &[TensorSpec::new("a", 1, DType::F16), tensor("b", 2)],
                "x",
            ),
        ];
        assert!(others.iter().all(|other| *other != base));
        assert_eq!(
            base,
            fingerprint(shape, &[tensor("a", 1), tensor("b", 2)], "x")
        );
    }
}
