//! Ranks that know only where to meet: each tells rank 0 something, and all get rank 0's answer.

mod address;
mod file;
mod messages;

use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::JobSecret;
use crate::error::{Error, ErrorKind, Result};

/// The most bytes of what a rank tells or rank 0 answers: strangers must not fill the memory.
const MOST: usize = 1 << 16;

/// Where the ranks of a job meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// Rank 0 listens there.
    Address {
        /// A name or an address of rank 0's host.
        host: String,
        /// TCP port.
        port: u16,
        /// What all ranks have to know; without one, whoever reaches the port can join.
        secret: Option<JobSecret>,
    },
    /// A file in a folder that all ranks see; ranks write beside it, under its name and their number. Only processes of this
    /// user can join.
    File(PathBuf),
}

/// A rank at a meeting.
#[derive(Debug, Clone, Copy)]
pub struct Participant {
    /// Its rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// How long it waits for the others.
    pub limit: Duration,
}

impl Meeting {
    /// Tells rank 0 `own` and returns its answer, which rank 0 makes from what all ranks told, in the order of ranks.
    ///
    /// Collective: all ranks of the job call it.
    ///
    /// # Errors
    /// `Timeout` if ranks do not come; where rank 0 is there, the message names the absent ones on all that are, and the last
    /// that was refused. `Mismatch` if this rank has another size or secret than rank 0, or is there already.
    /// `InvalidArgument` if the rank, the port, the file or the bytes are wrong (at most 65536 are told or answered). An error
    /// of `answer` is that of all ranks.
    pub fn meet(
        &self,
        participant: Participant,
        own: &[u8],
        answer: impl FnOnce(&[Vec<u8>]) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let Participant { rank, size, .. } = participant;
        if rank >= size {
            return Err(Error::invalid(format!(
                "rank {rank} of {size} ranks: there is no such rank"
            )));
        }
        check_length("what a rank tells", own)?;
        let answer = |all: &[Vec<u8>]| {
            let answer = answer(all)?;
            check_length("the answer", &answer)?;
            Ok(answer)
        };
        match self {
            Meeting::Address { port: 0, .. } => Err(Error::invalid("ranks cannot meet at port 0")),
            Meeting::Address { host, port, secret } => {
                let meeting = address::TcpMeeting {
                    host,
                    port: *port,
                    secret: secret.as_ref(),
                };
                match participant.rank {
                    0 => meeting.lead(participant, own, answer),
                    _ => meeting.follow(participant, own),
                }
            }
            Meeting::File(path) => {
                let meeting = file::FileMeeting { path };
                match participant.rank {
                    0 => meeting.lead(participant, own, answer),
                    _ => meeting.follow(participant, own),
                }
            }
        }
    }
}

/// A port at which the ranks of a job on this machine can meet. It and the one behind it are free, and lie below those that
/// Linux gives to others by itself, so they stay free until somebody asks for them by number. `None` if there is none.
pub fn free_port() -> Option<u16> {
    const FIRST: u16 = 20_000;
    const PAIRS: u16 = 5_000;
    // Jobs that look at the same time begin at different places: the standard library seeds this at random.
    let start = std::hash::RandomState::new().build_hasher().finish() % u64::from(PAIRS);
    let start = u16::try_from(start).unwrap_or(0);
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok();
    let mut ports = (0..PAIRS).map(|tried| FIRST + (start + tried) % PAIRS * 2);
    ports.find(|&port| is_free(port) && is_free(port + 1))
}

fn check_length(what: &str, bytes: &[u8]) -> Result<()> {
    if bytes.len() <= MOST {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what} has {} bytes, at most {MOST} go over a meeting",
        bytes.len()
    )))
}

/// The limit of a wait.
#[derive(Clone, Copy)]
struct Deadline {
    start: Instant,
    limit: Duration,
}

impl Deadline {
    fn new(limit: Duration) -> Self {
        Deadline {
            start: Instant::now(),
            limit,
        }
    }

    fn left(self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }

    fn is_over(self) -> bool {
        self.left().is_zero()
    }

    /// The error of a wait for a connection that is over.
    fn error(self) -> std::io::Error {
        let seconds = self.limit.as_secs_f64();
        let text = format!("not all bytes came within {seconds:.3} s");
        std::io::Error::new(std::io::ErrorKind::TimedOut, text)
    }
}

/// Sleeps until it is worth while to look again, at a file or at all connections.
fn pause(deadline: Deadline) {
    std::thread::sleep(deadline.left().min(Duration::from_millis(10)));
}

/// The error of rank 0 at `place` when ranks did not come.
fn absence(told: &[Option<Vec<u8>>], place: &str, limit: Duration) -> Error {
    let missing = (0_u32..).zip(told).filter(|(_, told)| told.is_none());
    let missing: Vec<u32> = missing.map(|(rank, _)| rank).collect();
    let word = if missing.len() == 1 { "rank" } else { "ranks" };
    Error::new(
        ErrorKind::Timeout,
        format!(
            "{word} {} of {} did not come to {place} within {:.3} s",
            ranges(&missing),
            told.len(),
            limit.as_secs_f64()
        ),
    )
}

/// The error when `rank` has another number of ranks than rank 0.
fn size_mismatch(rank: &str, told: u32, size: u32) -> Error {
    Error::new(
        ErrorKind::Mismatch,
        format!("rank {rank} has a job of {told} ranks, rank 0 one of {size}"),
    )
}

/// "1, 3-5" of ascending numbers.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let shown = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// An answer or an error as bytes, the first of which says which it is.
fn encode(answer: &Result<Vec<u8>>) -> Vec<u8> {
    match answer {
        Ok(bytes) => [&[0], bytes.as_slice()].concat(),
        Err(error) => {
            let kind = KINDS.iter().position(|kind| *kind == error.kind());
            let code = kind
                .and_then(|kind| u8::try_from(kind + 1).ok())
                .unwrap_or(1);
            [&[code], error.to_string().as_bytes()].concat()
        }
    }
}

/// The answer or the error that [`encode`] wrote.
fn decode(bytes: &[u8]) -> Result<Vec<u8>> {
    match bytes {
        [0, answer @ ..] => Ok(answer.to_vec()),
        [code, message @ ..] => {
            let kind = KINDS.get(usize::from(*code) - 1).unwrap_or(&KINDS[0]);
            let message = String::from_utf8_lossy(message);
            Err(Error::new(*kind, format!("rank 0: {message}")))
        }
        [] => Err(Error::new(ErrorKind::Mismatch, "rank 0: an empty answer")),
    }
}

/// Kinds of errors that keep their kind on the way to other ranks; others become the first.
const KINDS: [ErrorKind; 10] = [
    ErrorKind::Io,
    ErrorKind::InvalidArgument,
    ErrorKind::InvalidState,
    ErrorKind::Unsupported,
    ErrorKind::OutOfMemory,
    ErrorKind::Acl,
    ErrorKind::Hccl,
    ErrorKind::Mismatch,
    ErrorKind::Timeout,
    ErrorKind::Poisoned,
];

#[cfg(test)]
mod tests;
