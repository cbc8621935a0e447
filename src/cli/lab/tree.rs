//! AdaSum's tree, for calculations that check the library: written down apart from that of `plan`.

/// The order in which vectors are merged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Leaf(usize),
    Pair(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// For each prime factor of `leaves`, the smallest first, as many neighbours are merged pair by pair; an odd one waits.
    pub(crate) fn of(leaves: usize) -> Tree {
        let mut level: Vec<Tree> = (0..leaves).map(Tree::Leaf).collect();
        while level.len() > 1 {
            let prime = (2..=level.len()).find(|factor| level.len().is_multiple_of(*factor));
            let mut rest = level.into_iter().peekable();
            level = Vec::new();
            while rest.peek().is_some() {
                level.extend(paired(rest.by_ref().take(prime.unwrap_or(2)).collect()));
            }
        }
        level.pop().unwrap_or(Tree::Leaf(0))
    }

    /// The value of the whole, from those of leaves and pairs.
    pub(crate) fn fold<T>(
        &self,
        leaf: &impl Fn(usize) -> T,
        pair: &mut impl FnMut(T, T) -> T,
    ) -> T {
        match self {
            Tree::Leaf(index) => leaf(*index),
            Tree::Pair(a, b) => {
                let (a, b) = (a.fold(leaf, pair), b.fold(leaf, pair));
                pair(a, b)
            }
        }
    }
}

fn paired(mut block: Vec<Tree>) -> Option<Tree> {
    while block.len() > 1 {
        let mut rest = block.into_iter();
        block = Vec::new();
        while let Some(a) = rest.next() {
            block.push(match rest.next() {
                Some(b) => Tree::Pair(Box::new(a), Box::new(b)),
                None => a,
            });
        }
    }
    block.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_paired_prime_by_prime() {
        let of = |leaves: usize| {
            let leaf = |leaf: usize| leaf.to_string();
            Tree::of(leaves).fold(&leaf, &mut |a, b| format!("({a}{b})"))
        };
        assert_eq!(of(1), "0");
        assert_eq!(of(5), "(((01)(23))4)");
        assert_eq!(of(6), "(((01)(23))(45))");
        assert_eq!(of(9), "((((01)2)((34)5))((67)8))");
    }
}
