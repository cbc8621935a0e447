//! A meeting at a file.
//!
//! Rank 0 writes the file `F` with a session that it has made up; every other rank `k` writes `F.k` with the session that it
//! read, a nonce of its own and what it tells; rank 0 writes `F` again with all those nonces and the answer. A rank takes
//! an answer only if its own nonce is in it, so what an earlier job left behind is never taken for this one's. Each
//! rank removes its own file at the end; `F` stays, because rank 0 cannot know when all have read it.
//!
//! Only the user of the job can read and write these files; files of others, and files that others can write, are
//! refused. That is the proof of who may join: a secret would add nothing.

use std::ffi::OsString;
use std::io::{ErrorKind as Io, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Deadline, MOST, Participant, absence, decode, encode, pause, size_mismatch};
use crate::error::{Error, ErrorKind, Result};
use crate::topo::own_file::{self, OTHERS_WRITE};
use crate::topo::secret::random;

/// A random number that no other process has.
type Nonce = [u8; 16];
const NONCE: usize = 16;
const MAGIC: [u8; 8] = *b"adasum 1";
/// Bytes of a file beside what ranks tell or are told.
const FIXED: usize = MAGIC.len() + 2 * NONCE + 4;

/// How long rank 0 still reads what others write, once it knows that there is no answer.
const GRACE: Duration = Duration::from_secs(3);

pub(super) struct FileMeeting<'a> {
    pub(super) path: &'a Path,
}

/// The content of `F`: the nonces of all other ranks and the encoded answer, both empty while rank 0 waits.
struct RootFile {
    session: Nonce,
    nonces: Vec<Nonce>,
    answer: Vec<u8>,
}

/// The content of `F.k`.
struct RankFile {
    session: Nonce,
    nonce: Nonce,
    size: u32,
    contribution: Vec<u8>,
}

impl FileMeeting<'_> {
    fn rank_path(&self, rank: u32) -> PathBuf {
        let mut name = OsString::from(self.path);
        name.push(format!(".{rank}"));
        name.into()
    }

    pub(super) fn lead(
        &self,
        participant: Participant,
        own: &[u8],
        answer: impl FnOnce(&[Vec<u8>]) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let session = nonce()?;
        // A file that others can write is refused by all ranks, even if it is there from before.
        self.read_root(participant.size)?;
        self.write_root(&session, &[], &[])?;
        let mut contributions: Vec<Option<Vec<u8>>> = vec![None; participant.size as usize];
        contributions[0] = Some(own.to_vec());
        let mut nonces: Vec<Nonce> = vec![[0; NONCE]; participant.size as usize];
        let deadline = Deadline::new(participant.limit);
        let mut disagreement = None;
        let mut grace: Option<Deadline> = None;
        loop {
            for (rank, contribution) in (0..participant.size)
                .zip(&mut contributions)
                .filter(|(_, contribution)| contribution.is_none())
            {
                let read = self.read_rank(rank).unwrap_or_else(|error| {
                    disagreement = Some(error);
                    None
                });
                let Some(file) = read.filter(|file| file.session == session) else {
                    continue;
                };
                if file.size != participant.size {
                    let rank = rank.to_string();
                    disagreement = Some(size_mismatch(&rank, file.size, participant.size));
                }
                nonces[rank as usize] = file.nonce;
                *contribution = Some(file.contribution);
            }
            // Only those are told whose files were read: the others get a little time to come.
            if disagreement.is_some() && grace.is_none() {
                grace = Some(Deadline::new(GRACE));
            }
            if contributions.iter().all(Option::is_some)
                || deadline.is_over()
                || grace.is_some_and(Deadline::is_over)
            {
                break;
            }
            pause(deadline);
        }
        let all: Option<Vec<Vec<u8>>> = contributions.iter().cloned().collect();
        let answer = match (disagreement, all) {
            (Some(error), _) => Err(error),
            (None, Some(all)) => answer(&all),
            (None, None) => Err(absence(
                &contributions,
                &self.path.display().to_string(),
                participant.limit,
            )),
        };
        self.write_root(&session, &nonces, &encode(&answer))?;
        answer
    }

    pub(super) fn follow(&self, participant: Participant, own: &[u8]) -> Result<Vec<u8>> {
        let result = self.wait(participant, own);
        if let Err(error) = std::fs::remove_file(self.rank_path(participant.rank))
            && error.kind() != Io::NotFound
        {
            log::warn!("{}: {error}", self.rank_path(participant.rank).display());
        }
        result
    }

    fn wait(&self, participant: Participant, own: &[u8]) -> Result<Vec<u8>> {
        let nonce = nonce()?;
        let mut seen = None;
        // Rank 0 may have begun to wait later than this rank.
        let deadline = Deadline::new(participant.limit.saturating_mul(2));
        let started = Deadline::new(participant.limit);
        loop {
            if let Some(root) = self.read_root(participant.size)? {
                if root.nonces.get(participant.rank as usize) == Some(&nonce) {
                    return decode(&root.answer);
                }
                if seen != Some(root.session) {
                    self.write_rank(participant, &root.session, &nonce, own)?;
                    seen = Some(root.session);
                }
            }
            if deadline.is_over() || seen.is_none() && started.is_over() {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    format!(
                        "rank 0 wrote no answer to {} within {:.3} s",
                        self.path.display(),
                        deadline.start.elapsed().as_secs_f64()
                    ),
                ));
            }
            pause(deadline);
        }
    }

    fn write_root(&self, session: &Nonce, nonces: &[Nonce], answer: &[u8]) -> Result<()> {
        let count = u32::try_from(nonces.len()).unwrap_or(u32::MAX);
        let parts = [
            &MAGIC[..],
            session,
            &count.to_le_bytes(),
            nonces.as_flattened(),
            answer,
        ];
        replace(self.path, &parts.concat())
    }

    fn read_root(&self, size: u32) -> Result<Option<RootFile>> {
        let most = FIXED + NONCE * size as usize + 1 + MOST;
        let Some(bytes) = read(self.path, most)? else {
            return Ok(None);
        };
        // Other content was there before rank 0 of this job came.
        Ok(RootFile::parse(&bytes))
    }

    fn write_rank(
        &self,
        participant: Participant,
        session: &Nonce,
        nonce: &Nonce,
        own: &[u8],
    ) -> Result<()> {
        let size = participant.size.to_le_bytes();
        let parts = [&MAGIC[..], session, nonce, &size, own];
        replace(&self.rank_path(participant.rank), &parts.concat())
    }

    fn read_rank(&self, rank: u32) -> Result<Option<RankFile>> {
        let Some(bytes) = read(&self.rank_path(rank), FIXED + MOST)? else {
            return Ok(None);
        };
        Ok(RankFile::parse(&bytes))
    }
}

impl RootFile {
    fn parse(bytes: &[u8]) -> Option<RootFile> {
        let mut fields = Fields::after_magic(bytes)?;
        let session = fields.nonce()?;
        let count = fields.number()? as usize;
        let nonces = fields.take(count.checked_mul(NONCE)?)?;
        Some(RootFile {
            session,
            nonces: nonces.as_chunks().0.to_vec(),
            answer: fields.0.to_vec(),
        })
    }
}

impl RankFile {
    fn parse(bytes: &[u8]) -> Option<RankFile> {
        let mut fields = Fields::after_magic(bytes)?;
        Some(RankFile {
            session: fields.nonce()?,
            nonce: fields.nonce()?,
            size: fields.number()?,
            contribution: fields.0.to_vec(),
        })
    }
}

/// Bytes that are taken from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn after_magic(bytes: &'a [u8]) -> Option<Self> {
        bytes.strip_prefix(&MAGIC).map(Fields)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn nonce(&mut self) -> Option<Nonce> {
        self.take(NONCE)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
}

fn nonce() -> Result<Nonce> {
    random().map_err(|error| Error::new(ErrorKind::Io, format!("no random numbers: {error}")))
}

/// Puts `bytes` in the place of the file `path` in one step, so that nobody reads a part of them, and others nothing.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let suffix = u128::from_le_bytes(nonce()?);
    let mut name = OsString::from(path);
    name.push(format!(".new-{suffix:032x}"));
    let new = PathBuf::from(name);
    let written = own_file::create(&new)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&new, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&new);
        own_file::failed(path, &error)
    })
}

/// The content of a file, if it is there.
fn read(path: &Path, most: usize) -> Result<Option<Vec<u8>>> {
    let Some(file) = own_file::open(path, OTHERS_WRITE)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    file.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| own_file::failed(path, &error))?;
    if bytes.len() > most {
        return Err(Error::invalid(format!(
            "{}: it has more than the {most} bytes of a meeting",
            path.display()
        )));
    }
    Ok(Some(bytes))
}
