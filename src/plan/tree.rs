//! The tree along which servers are merged, cut into rounds.
//!
//! AdaSum is not associative, so the tree is part of the result. For n servers: the prime factors of n in
//! ascending order are the stages; a stage of p merges p adjacent subtrees by pairing neighbours again and
//! again, an odd one is carried to the next pairing. For powers of two this is the order of the paper's
//! implementation, adjacent servers first.
//!
//! ```text
//! n = 4: ((01)(23))    n = 5: (((01)(23))4)    n = 6: (((01)(23))(45))    n = 9: ((((01)2)((34)5))((67)8))
//! ```
//!
//! A round takes consecutive stages as long as their product is at most the radix, from the last one back or from the first
//! one on ([`RoundOrder`]). A stage with a prime above the radix takes several rounds: each does the pairings of as many
//! adjacent subtrees as fit, so the subtrees of its later rounds differ in size. Whatever radix and order, the tree is the same.

use crate::error::{Error, Result};

/// The most subtrees that a round may merge.
pub const MAX_RADIX: u32 = 8;

/// Where the round goes that takes what is left over, and is smaller than the others. 16 servers of radix 8 merge by 2 and 8, or by
/// 8 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RoundOrder {
    /// It is the first one: few ranks share its scalars, and the latency of all rounds is the least.
    #[default]
    SmallFirst,
    /// It is the last one: each round leaves a rank the less of a vector the more it merges, so kernels read and write the least.
    LargeFirst,
}

impl RoundOrder {
    const ALL: [RoundOrder; 2] = [RoundOrder::SmallFirst, RoundOrder::LargeFirst];

    /// The radix with each order that makes other rounds of `servers`, the default first.
    pub(super) fn of(servers: u32, radix: u32) -> impl Iterator<Item = (u32, Self)> {
        let usual = products(servers, radix, RoundOrder::default());
        let orders = RoundOrder::ALL.into_iter().filter(move |&order| {
            order == RoundOrder::default() || products(servers, radix, order) != usual
        });
        orders.map(move |order| (radix, order))
    }
}

/// The subtrees before each round and after the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    levels: Vec<Level>,
}

/// The subtrees between two rounds: adjacent runs of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    /// First server of each subtree, and the number of servers at the end.
    borders: Vec<u32>,
    /// Which slice of its subtree's vector each server owns.
    slots: Vec<u32>,
    /// The other way round: for each subtree from its first server on, the owners of its slices.
    owners: Vec<u32>,
}

/// A run of adjacent servers that are one subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subtree {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Subtree {
    pub(super) fn servers(self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}

impl Tree {
    /// The tree of `servers`, at least one, in rounds of at most `radix`, 2 to 8.
    pub(super) fn new(servers: u32, radix: u32, order: RoundOrder) -> Result<Self> {
        if !(2..=MAX_RADIX).contains(&radix) {
            return Err(Error::invalid(format!(
                "radix {radix}: a round merges 2 to {MAX_RADIX} subtrees"
            )));
        }
        let mut levels = vec![Level {
            borders: (0..=servers).collect(),
            slots: vec![0; servers as usize],
            owners: (0..servers).collect(),
        }];
        for product in products(servers, radix, order) {
            // The pairings of one stage with a prime above the radix: blocks of subtrees, `step` of them at a time.
            let step = match product <= radix {
                true => product,
                false => 1 << radix.ilog2(),
            };
            let mut block = product;
            while block > 1 {
                let next = levels[levels.len() - 1].merged(block, step);
                levels.push(next);
                block = block.div_ceil(step);
            }
        }
        Ok(Tree { levels })
    }

    pub(super) fn rounds(&self) -> usize {
        self.levels.len() - 1
    }

    /// Number of subtrees after `rounds` rounds.
    pub(super) fn subtrees(&self, rounds: usize) -> usize {
        self.levels[rounds].borders.len() - 1
    }

    /// Number of `server`'s subtree after `rounds` rounds, in their order.
    pub(super) fn index(&self, rounds: usize, server: u32) -> usize {
        let borders = &self.levels[rounds].borders;
        borders.partition_point(|&first| first <= server) - 1
    }

    /// The subtree of `server` after `rounds` rounds.
    pub(super) fn subtree(&self, rounds: usize, server: u32) -> Subtree {
        let borders = &self.levels[rounds].borders;
        let index = self.index(rounds, server);
        Subtree {
            first: borders[index],
            count: borders[index + 1] - borders[index],
        }
    }

    /// The subtrees that make up `merged` before the round that makes it.
    pub(super) fn parts(&self, round: usize, merged: Subtree) -> impl Iterator<Item = Subtree> {
        let borders = &self.levels[round].borders;
        let from = borders.partition_point(|&first| first < merged.first);
        let to = borders.partition_point(|&first| first < merged.first + merged.count);
        borders[from..=to].windows(2).map(|pair| Subtree {
            first: pair[0],
            count: pair[1] - pair[0],
        })
    }

    /// Which slice of its subtree's vector `server` owns after `rounds` rounds.
    pub(super) fn slot(&self, rounds: usize, server: u32) -> u32 {
        self.levels[rounds].slots[server as usize]
    }

    /// The server that owns slice `slot` of `subtree` after `rounds` rounds.
    pub(super) fn server_at(&self, rounds: usize, subtree: Subtree, slot: u32) -> u32 {
        self.levels[rounds].owners[(subtree.first + slot) as usize]
    }
}

impl Level {
    /// Blocks of `block` subtrees each, in which `step` adjacent ones become one.
    fn merged(&self, block: u32, step: u32) -> Level {
        let subtrees = self.borders.len() - 1;
        let mut borders = vec![0];
        for start in (0..subtrees).step_by(block as usize) {
            for first in (0..block).step_by(step as usize) {
                let last = (first + step).min(block);
                borders.push(self.borders[start + last as usize]);
            }
        }
        let mut slots = vec![0; self.slots.len()];
        let mut owners = vec![0; self.slots.len()];
        for pair in borders.windows(2) {
            let servers = self.in_order(pair[0], pair[1]);
            for (slot, server) in (0..).zip(servers) {
                slots[server as usize] = slot;
                owners[(pair[0] + slot) as usize] = server;
            }
        }
        Level {
            borders,
            slots,
            owners,
        }
    }

    /// The servers `first..end`, one subtree from now on, in the order of their new slices: that of the slices
    /// that they own now, so that most of what a server owns is part of what it owned before.
    fn in_order(&self, first: u32, end: u32) -> Vec<u32> {
        let mut owners: Vec<(u32, u32, u32)> = Vec::new();
        let from = self.borders.partition_point(|&border| border < first);
        for pair in self.borders[from..].windows(2) {
            if pair[0] >= end {
                break;
            }
            let count = pair[1] - pair[0];
            owners.extend((pair[0]..pair[1]).map(|s| (self.slots[s as usize], count, s)));
        }
        // Slice a of m starts before slice b of n if a / m < b / n; at the same place the lower server is first.
        owners.sort_unstable_by(|(a, m, s), (b, n, t)| {
            let left = u64::from(*a) * u64::from(*n);
            let right = u64::from(*b) * u64::from(*m);
            left.cmp(&right).then(s.cmp(t))
        });
        owners.into_iter().map(|(_, _, server)| server).collect()
    }
}

/// The stages of `servers` in the order in which they run, those multiplied that one round takes.
fn products(servers: u32, radix: u32, order: RoundOrder) -> Vec<u32> {
    let small_first = order == RoundOrder::SmallFirst;
    let mut primes = prime_factors(servers);
    if small_first {
        primes.reverse();
    }
    let mut products: Vec<u32> = Vec::new();
    for prime in primes {
        match products.last_mut() {
            Some(product) if product.saturating_mul(prime) <= radix => *product *= prime,
            _ => products.push(prime),
        }
    }
    if small_first {
        products.reverse();
    }
    products
}

/// Ascending, with repetition; none of 1.
fn prime_factors(mut n: u32) -> Vec<u32> {
    let mut factors = Vec::new();
    let mut candidate = 2;
    while n > 1 {
        if candidate > n / candidate {
            candidate = n;
        }
        while n.is_multiple_of(candidate) {
            factors.push(candidate);
            n /= candidate;
        }
        candidate += 1;
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs neighbours, carries an odd one: the tree of up to eight subtrees in one round.
    fn paired(mut items: Vec<String>) -> String {
        while items.len() > 1 {
            items = items
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => format!("({a}{b})"),
                    _ => pair[0].clone(),
                })
                .collect();
        }
        items.remove(0)
    }

    /// The tree as brackets, whatever the rounds are.
    fn brackets(servers: u32, radix: u32, order: RoundOrder) -> String {
        let tree = Tree::new(servers, radix, order).unwrap();
        let mut texts: Vec<String> = (0..servers).map(|s| s.to_string()).collect();
        for round in 0..tree.rounds() {
            let mut next = vec![String::new(); servers as usize];
            let mut server = 0;
            while server < servers {
                let merged = tree.subtree(round + 1, server);
                let parts = tree.parts(round, merged);
                let parts = parts.map(|p| texts[p.first as usize].clone()).collect();
                next[server as usize] = paired(parts);
                server += merged.count;
            }
            texts = next;
        }
        texts.remove(0)
    }

    #[test]
    fn the_tree_is_the_documented_one_for_every_radix_and_order() {
        for (radix, order) in (2..=8).flat_map(|radix| RoundOrder::ALL.map(|order| (radix, order)))
        {
            let brackets = |servers| brackets(servers, radix, order);
            assert_eq!(brackets(1), "0");
            assert_eq!(brackets(4), "((01)(23))");
            assert_eq!(brackets(5), "(((01)(23))4)");
            assert_eq!(brackets(6), "(((01)(23))(45))");
            assert_eq!(brackets(7), "(((01)(23))((45)6))");
            assert_eq!(brackets(8), "(((01)(23))((45)(67)))");
            assert_eq!(brackets(9), "((((01)2)((34)5))((67)8))");
            assert_eq!(brackets(12), "((((01)(23))((45)(67)))((89)(1011)))");
            for servers in 10..100 {
                let paired = super::tests::brackets(servers, 2, RoundOrder::SmallFirst);
                assert_eq!(brackets(servers), paired, "{servers}, {radix}, {order:?}");
            }
        }
    }

    #[test]
    fn rounds_take_stages_while_they_fit() {
        let ordered = |servers, radix, order| -> Vec<usize> {
            let tree = Tree::new(servers, radix, order).unwrap();
            (0..tree.rounds())
                .map(|round| tree.parts(round, tree.subtree(round + 1, 0)).count())
                .collect()
        };
        let radices = |servers, radix| ordered(servers, radix, RoundOrder::SmallFirst);
        assert_eq!(radices(16, 2), [2, 2, 2, 2]);
        assert_eq!(radices(16, 4), [4, 4]);
        assert_eq!(radices(16, 8), [2, 8]);
        assert_eq!(radices(12, 8), [2, 6]);
        assert_eq!(radices(12, 2), [2, 2, 2, 2]);
        assert_eq!(radices(18, 6), [6, 3]);
        assert_eq!(radices(97, 8), [8, 8, 2]);
        let large_first = |servers, radix| ordered(servers, radix, RoundOrder::LargeFirst);
        assert_eq!(large_first(16, 8), [8, 2]);
        assert_eq!(large_first(1024, 8), [8, 8, 8, 2]);
        assert_eq!(large_first(18, 6), [6, 3]);
        assert_eq!(RoundOrder::of(16, 8).count(), 2);
        assert_eq!(RoundOrder::of(16, 4).count(), 1);
    }

    #[test]
    fn slots_are_a_permutation_and_equal_subtrees_nest() {
        for servers in [1, 2, 5, 8, 12, 27, 97, 100] {
            for (radix, order) in [2, 4, 8]
                .map(|radix| RoundOrder::ALL.map(|order| (radix, order)))
                .into_iter()
                .flatten()
            {
                let tree = Tree::new(servers, radix, order).unwrap();
                for rounds in 0..=tree.rounds() {
                    let mut server = 0;
                    while server < servers {
                        let subtree = tree.subtree(rounds, server);
                        let mut slots: Vec<u32> =
                            subtree.servers().map(|s| tree.slot(rounds, s)).collect();
                        for (server, &slot) in subtree.servers().zip(&slots) {
                            assert_eq!(tree.server_at(rounds, subtree, slot), server);
                        }
                        slots.sort_unstable();
                        assert!(slots.into_iter().eq(0..subtree.count));
                        server += subtree.count;
                    }
                }
            }
        }
        let tree = Tree::new(16, 4, RoundOrder::SmallFirst).unwrap();
        for server in 0..16 {
            assert_eq!(tree.slot(2, server) / 4, tree.slot(1, server));
        }
    }

    #[test]
    fn factors_are_prime_and_ascending() {
        assert_eq!(prime_factors(1), [0_u32; 0]);
        assert_eq!(prime_factors(12), [2, 2, 3]);
        assert_eq!(prime_factors(97), [97]);
        assert_eq!(prime_factors(49), [7, 7]);
        assert_eq!(prime_factors(1 << 20), [2; 20]);
    }

    #[test]
    fn a_radix_out_of_range_is_refused() {
        for radix in [0, 1, 9] {
            assert!(
                Tree::new(4, radix, RoundOrder::SmallFirst)
                    .unwrap_err()
                    .to_string()
                    .contains("radix")
            );
        }
    }
}
