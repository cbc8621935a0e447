//! Whether all ranks want the same, and if not, what differs first.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Description, Fingerprint, first_difference};
use crate::reduce::world::World;

/// Bytes of an entry that are shown: enough for a long name.
const ENTRY: usize = 256;

/// Compares `mine` over all ranks: digests first, and where they differ the first entry that does.
///
/// Collective: what a rank does next depends only on what all ranks gathered, so all take the same way.
pub(super) fn reach(world: &World, mine: &Description, timeout: Duration) -> Result<()> {
    let gather = |message: &[u8]| -> Result<Vec<Vec<u8>>> {
        let bytes = world.gather(message, timeout)?;
        Ok(bytes
            .chunks_exact(message.len())
            .map(<[u8]>::to_vec)
            .collect())
    };
    let mut message = [0_u8; size_of::<Fingerprint>() + 8];
    let (digest, entries) = message.split_at_mut(size_of::<Fingerprint>());
    digest.copy_from_slice(&mine.fingerprint());
    entries.copy_from_slice(&(mine.entries() as u64).to_le_bytes());
    let all = gather(&message)?;
    if alike(&all) {
        return Ok(());
    }
    let longest = all
        .iter()
        .filter_map(|message| message.last_chunk().copied().map(u64::from_le_bytes))
        .max()
        .and_then(|entries| usize::try_from(entries).ok())
        .unwrap_or(usize::MAX);
    let index = first_difference(longest, |count| {
        Ok::<_, Error>(alike(&gather(&mine.beginning(count))?))
    })?;
    let entries = gather(&padded(mine.entry(index)))?;
    Err(Error::new(ErrorKind::Mismatch, difference(&entries)))
}

/// Who has what, by what rank 0 has and each other text in the order of the ranks.
fn difference(entries: &[Vec<u8>]) -> String {
    let text = |entry: &[u8]| {
        let len = entry.iter().position(|&b| b == 0).unwrap_or(entry.len());
        String::from_utf8_lossy(&entry[..len]).into_owned()
    };
    let mut kinds: Vec<(&[u8], Vec<usize>)> = Vec::new();
    for (rank, entry) in entries.iter().enumerate() {
        match kinds.iter_mut().find(|(kind, _)| kind == entry) {
            Some((_, ranks)) => ranks.push(rank),
            None => kinds.push((entry, vec![rank])),
        }
    }
    let sides: Vec<String> = kinds
        .iter()
        .map(|(entry, ranks)| format!("ranks {ranks:?} have {}", text(entry)))
        .collect();
    format!(
        "ranks have different tensors or options; the first difference: {}",
        sides.join("; ")
    )
}

fn alike(messages: &[Vec<u8>]) -> bool {
    messages.iter().all(|message| *message == messages[0])
}

/// The text cut and filled up with zeros.
fn padded(text: &str) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    let len = text.len().min(ENTRY);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}
