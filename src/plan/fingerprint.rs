//! A short digest of everything that all ranks must agree on before they reduce together.

use sha1::{Digest, Sha1};

use super::{Shape, TensorSpec};

/// SHA-1.
pub type Fingerprint = [u8; 20];

/// What a rank wants to reduce and how, entry by entry: the shape, each option, each tensor.
///
/// Ranks that differ would wait for messages that never come. The digests of all beginnings of the list let
/// them find the first entry in which they differ by comparing a few digests, however long the list is.
#[derive(Debug, Clone)]
pub struct Description {
    entries: Vec<String>,
    /// Digest of the first `i` entries.
    digests: Vec<Fingerprint>,
}

impl Description {
    /// Describes a reduction; `options` has a text of each choice, like `radix 2`.
    pub fn new(shape: Shape, tensors: &[TensorSpec], options: &[String]) -> Self {
        let world = format!("{} servers of {} ranks", shape.servers, shape.locals);
        let options = options.iter().map(|choice| format!("option {choice}"));
        let tensors = tensors.iter().enumerate().map(|(index, tensor)| {
            let (name, count, dtype) = (&tensor.name, tensor.count, tensor.dtype.name());
            format!("tensor {index} \"{name}\" with {count} elements of {dtype}")
        });
        let entries: Vec<String> = std::iter::once(world)
            .chain(options)
            .chain(tensors)
            .collect();
        let mut digests = vec![Fingerprint::default()];
        for entry in &entries {
            let mut hash = Sha1::new();
            hash.update(digests[digests.len() - 1]);
            hash.update(entry.as_bytes());
            digests.push(hash.finalize().into());
        }
        Description { entries, digests }
    }

    /// Digest of all entries.
    pub fn fingerprint(&self) -> Fingerprint {
        self.digests[self.digests.len() - 1]
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Digest of the first `count` entries; beyond the end, one that no list of that length has.
    pub fn beginning(&self, count: usize) -> Fingerprint {
        self.digests.get(count).copied().unwrap_or_default()
    }

    /// Entry `index`, or that there is none.
    pub fn entry(&self, index: usize) -> &str {
        self.entries.get(index).map_or("no more tensors", |e| e)
    }
}

/// Finds the first entry in which lists differ, given only whether their beginnings of a length are alike.
///
/// `entries` is the length of the longest list, and the lists differ somewhere.
pub fn first_difference<E>(
    entries: usize,
    mut alike: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    let (mut same, mut different) = (0, entries);
    while different - same > 1 {
        let middle = same + (different - same) / 2;
        if alike(middle)? {
            same = middle;
        } else {
            different = middle;
        }
    }
    Ok(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DType;
    use proptest::prelude::*;

    fn described(servers: u32, tensors: &[(&str, u64, DType)], option: &str) -> Description {
        let specs: Vec<TensorSpec> = tensors
            .iter()
            .map(|&(name, count, dtype)| TensorSpec::new(name, count, dtype))
            .collect();
        let shape = Shape::new(servers, 8).unwrap();
        Description::new(shape, &specs, &[format!("radix {option}")])
    }

    fn difference(a: &Description, b: &Description) -> usize {
        let entries = a.entries().max(b.entries());
        let alike = |count| Ok::<_, ()>(a.beginning(count) == b.beginning(count));
        first_difference(entries, alike).unwrap()
    }

    #[test]
    fn everything_that_matters_changes_it_and_is_found() {
        let two = [("a", 1, DType::F32), ("b", 2, DType::F32)];
        let base = described(2, &two, "2");
        assert_eq!(
            base.fingerprint(),
            described(2, &two, "2").fingerprint(),
            "the same gives the same"
        );
        let others = [
            (0, described(4, &two, "2")),
            (1, described(2, &two, "4")),
            (2, described(2, &[("b", 1, DType::F32), two[1]], "2")),
            (2, described(2, &[("a", 2, DType::F32), two[1]], "2")),
            (2, described(2, &[("a", 1, DType::F16), two[1]], "2")),
            (3, described(2, &two[..1], "2")),
            (
                4,
                described(2, &[two[0], two[1], ("c", 0, DType::F32)], "2"),
            ),
        ];
        for (first, other) in &others {
            assert_ne!(base.fingerprint(), other.fingerprint());
            assert_eq!(difference(&base, other), *first);
            assert_eq!(difference(other, &base), *first);
        }
        assert_eq!(base.entry(3), "tensor 1 \"b\" with 2 elements of f32");
        assert_eq!(others[5].1.entry(3), "no more tensors");
    }

    proptest! {
        #[test]
        fn the_first_of_several_differences_is_found(
            len in 1usize..200, at in prop::collection::btree_set(0usize..200, 1..5),
        ) {
            let specs = |changed: bool| -> Vec<TensorSpec> {
                (0..len)
                    .map(|i| TensorSpec::new("t", u64::from(changed && at.contains(&i)), DType::F32))
                    .collect()
            };
            let shape = Shape::new(2, 8).unwrap();
            let describe = |changed| Description::new(shape, &specs(changed), &["radix 2".to_owned()]);
            prop_assume!(at.first().is_some_and(|&first| first < len));
            let found = difference(&describe(false), &describe(true));
            prop_assert_eq!(Some(&(found - 2)), at.first());
        }
    }
}
