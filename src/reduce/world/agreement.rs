//! What all ranks tell each other: whether they want the same, and have what the next step needs.

use std::time::Duration;

use crate::ascend::{Buffer, Comm, DataType, Span, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::{Description, Fingerprint, TensorSpec, first_difference};
use crate::reduce::world::World;

/// Bytes of an entry that are shown: enough for a long name. Of a longer one the middle is left out.
const ENTRY: usize = 256;
const GAP: &str = " ... ";

impl World {
    /// Compares `tensors` and `choices`, a text of each, over all ranks: digests first, and where they differ the first entry
    /// that does, which the error on every rank names.
    ///
    /// Collective: what a rank does next depends only on what all ranks gathered, so all take the same way. Waits for all
    /// ranks, at most `timeout` for each of a few small exchanges.
    pub(crate) fn agree(
        &self,
        tensors: &[TensorSpec],
        choices: &[String],
        timeout: Duration,
    ) -> Result<()> {
        let mine = Description::new(self.shape(), tensors, choices);
        let gather = |message: &[u8]| -> Result<Vec<Vec<u8>>> {
            let bytes = self.gather(message, timeout)?;
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
        let entries = entries.iter().map(Vec::as_slice);
        let entries = (0..).map(|rank| self.rank_in_root(rank)).zip(entries);
        Err(Error::new(ErrorKind::Mismatch, difference(entries)))
    }

    /// What each rank has made for the next step of all of them, if every rank has: a rank that could not would leave the
    /// others waiting in that step. The error of those that could says which rank could not do `what`, and the world stays usable.
    ///
    /// Collective. Waits for all ranks, at most `timeout`.
    pub(crate) fn all_have<T>(&self, own: Result<T>, what: &str, timeout: Duration) -> Result<T> {
        let all = self.gather(&[u8::from(own.is_ok())], timeout);
        let own = own?;
        match (0..).zip(all?).find(|&(_, made)| made != 1) {
            None => Ok(own),
            Some((rank, _)) => {
                let rank = self.rank_in_root(rank);
                Err(Error::new(
                    ErrorKind::Mismatch,
                    format!("rank {rank} could not {what}; its own message says why"),
                ))
            }
        }
    }

    /// The `bytes` of all ranks, one after the other. All give equally many.
    ///
    /// Collective. Waits for all ranks, at most `timeout`.
    pub(crate) fn gather(&self, bytes: &[u8], timeout: Duration) -> Result<Vec<u8>> {
        through(self.comm(), bytes, |mine, all, stream| {
            let watched = self.watched("gathering from all ranks", all.len() as u64)?;
            self.enqueue_watched(&watched, timeout, stream, |stream| {
                self.comm().all_gather(mine, all, DataType::U8, stream)
            })?;
            self.synchronize(stream, timeout)
                .context(|| format!("rank {}: waiting for all ranks", self.own_in_root()))
        })
    }
}

/// As [`World::gather`], for the ranks of a communicator that is no world yet.
pub(super) fn gather_by(comm: &Comm, bytes: &[u8], timeout: Duration) -> Result<Vec<u8>> {
    through(comm, bytes, |mine, all, stream| {
        comm.all_gather(mine, all, DataType::U8, stream)?;
        stream.synchronize_timeout(timeout)
    })
}

/// What `gather` brings from `bytes` in device memory to the memory of all that the ranks of `comm` have.
fn through(
    comm: &Comm,
    bytes: &[u8],
    gather: impl FnOnce(&Span, &Span, &Stream) -> Result<()>,
) -> Result<Vec<u8>> {
    let device = comm.device();
    let mine = Buffer::from_slice(device, bytes)?.span();
    let all = Buffer::new(device, bytes.len() * comm.size() as usize)?.span();
    gather(&mine, &all, &Stream::new(device)?)?;
    let mut gathered = vec![0_u8; all.len()];
    all.read(&mut gathered)?;
    Ok(gathered)
}

/// Which rank has what: what the first one has, then each other text in the order of the ranks.
fn difference<'a>(entries: impl Iterator<Item = (u32, &'a [u8])>) -> String {
    let text = |entry: &[u8]| {
        let len = entry.iter().position(|&b| b == 0).unwrap_or(entry.len());
        String::from_utf8_lossy(&entry[..len]).into_owned()
    };
    let mut kinds: Vec<(&[u8], Vec<u32>)> = Vec::new();
    for (rank, entry) in entries {
        match kinds.iter_mut().find(|(kind, _)| *kind == entry) {
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

/// The text without its middle if it is long, as names end in what tells them apart; filled up with zeros.
fn padded(text: &str) -> [u8; ENTRY] {
    let half = (ENTRY - GAP.len()) / 2;
    let is_boundary = |&at: &usize| text.is_char_boundary(at);
    let shown = match text.len() {
        ..=ENTRY => text.to_owned(),
        len => {
            let head = (0..=half).rev().find(is_boundary).unwrap_or_default();
            let tail = (len - half..=len).find(is_boundary).unwrap_or(len);
            [&text[..head], GAP, &text[tail..]].concat()
        }
    };
    let mut bytes = [0; ENTRY];
    bytes[..shown.len()].copy_from_slice(shown.as_bytes());
    bytes
}
