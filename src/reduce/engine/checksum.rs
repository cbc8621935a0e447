//! Whether all ranks hold the same bits.

use std::time::Duration;

use sha1::{Digest, Sha1};

use crate::ascend::Span;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::TensorSpec;
use crate::reduce::world::World;

/// Bytes of a checksum.
pub(super) const DIGEST: usize = 20;

/// Bytes that are read at a time.
const PIECE: usize = 4 << 20;

/// Compares tensors between all ranks, each under its name.
pub(in crate::reduce) fn compare(
    world: &World,
    results: &[(&TensorSpec, &Span)],
    timeout: Duration,
) -> Result<()> {
    let own: Vec<[u8; DIGEST]> = results
        .iter()
        .map(|(_, span)| digest(span))
        .collect::<Result<_>>()?;
    if own.is_empty() {
        return Ok(());
    }
    let all = world.gather(own.as_flattened(), timeout)?;
    let (all, _) = all.as_chunks::<DIGEST>();
    let ranks: Vec<&[[u8; DIGEST]]> = all.chunks_exact(own.len()).collect();
    match first_difference(&ranks) {
        None => Ok(()),
        Some((tensor, odd)) => {
            let odd: Vec<u32> = odd.iter().map(|&rank| world.rank_in_root(rank)).collect();
            Err(Error::new(
                ErrorKind::Mismatch,
                format!(
                    "tensor \"{}\": the results of ranks {odd:?} differ from those of the others",
                    results[tensor].0.name
                ),
            ))
        }
    }
}

/// The checksum of device memory, read to the host.
pub(in crate::reduce) fn digest(span: &Span) -> Result<[u8; DIGEST]> {
    let mut hash = Sha1::new();
    let mut bytes = vec![0_u8; PIECE.min(span.len())];
    let mut at = 0;
    while at < span.len() {
        let end = span.len().min(at + PIECE);
        let piece = &mut bytes[..end - at];
        span.slice(at..end)?.read(piece)?;
        hash.update(&*piece);
        at = end;
    }
    Ok(hash.finalize().into())
}

/// The first tensor that is not the same everywhere, and the ranks that have it otherwise than most do.
fn first_difference(ranks: &[&[[u8; DIGEST]]]) -> Option<(usize, Vec<u32>)> {
    let tensors = ranks.first().map_or(0, |first| first.len());
    (0..tensors).find_map(|tensor| {
        let count = |digest: &[u8; DIGEST]| ranks.iter().filter(|r| r[tensor] == *digest).count();
        // Of several equally frequent ones that of the lowest rank counts as right.
        let common = ranks.iter().rev().max_by_key(|rank| count(&rank[tensor]))?;
        let odd = (0..).zip(ranks);
        let odd = odd.filter(|(_, rank)| rank[tensor] != common[tensor]);
        let odd: Vec<u32> = odd.map(|(rank, _)| rank).collect();
        (!odd.is_empty()).then_some((tensor, odd))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odd_ranks_of_the_first_tensor_are_named() {
        let (a, b) = ([1; DIGEST], [2; DIGEST]);
        assert_eq!(first_difference(&[&[a, b], &[a, b]]), None);
        assert_eq!(
            first_difference(&[&[a, b], &[a, a], &[a, b]]),
            Some((1, vec![1]))
        );
        assert_eq!(first_difference(&[&[a], &[b]]), Some((0, vec![1])));
    }
}
