//! What rank 0 and another rank say to each other at a port, and the proofs in it.
//!
//! | from | message | bytes |
//! |---|---|---|
//! | rank 0 | challenge | magic, 1 if it has a secret (else 0), its random number |
//! | rank | hello | magic, 1 if it has a secret, its random number, rank, size, length, what it tells, proof |
//! | rank 0 | receipt | one byte: the hello was read |
//! | rank 0 | answer | length, answer or refusal, proof |
//!
//! Numbers are of 4 bytes, the lowest first. A proof is HMAC-SHA-256 under the job's secret over a word for the message,
//! both random numbers and all of the message: it holds for this connection only. Nothing is encrypted.

use std::io::{Error as IoError, ErrorKind as Io};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::MOST;
use crate::topo::secret::{JobSecret, PROOF, proof};

/// First bytes of both sides: whoever else speaks at this port does not say this.
const MAGIC: [u8; 8] = *b"adasum 2";

/// A random number of one connection.
pub(super) type Nonce = [u8; 32];

/// Bytes of a challenge.
pub(super) const CHALLENGE: usize = MAGIC.len() + 1 + size_of::<Nonce>();
/// Bytes of a hello before what the rank tells.
const HEAD: usize = CHALLENGE + 12;
/// Says that a hello was read.
pub(super) const RECEIPT: [u8; 1] = [1];

/// What rank 0 says first.
pub(super) struct Challenge {
    pub(super) secured: bool,
    pub(super) nonce: Nonce,
}

/// What a rank says first.
pub(super) struct Hello {
    pub(super) secured: bool,
    pub(super) nonce: Nonce,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) contribution: Vec<u8>,
}

/// A connection as proofs of answers know it.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    pub(super) challenge: Nonce,
    pub(super) hello: Nonce,
    pub(super) rank: u32,
}

impl Challenge {
    pub(super) fn encode(&self) -> Vec<u8> {
        [&MAGIC[..], &[u8::from(self.secured)], &self.nonce].concat()
    }

    /// `None` if something else speaks there.
    pub(super) fn parse(bytes: &[u8; CHALLENGE]) -> Option<Challenge> {
        let (&secured, nonce) = bytes.strip_prefix(&MAGIC)?.split_first()?;
        Some(Challenge {
            secured: secured != 0,
            nonce: nonce.try_into().ok()?,
        })
    }
}

impl Hello {
    /// All of the message but its proof.
    fn body(&self) -> Vec<u8> {
        let length = u32::try_from(self.contribution.len()).unwrap_or(u32::MAX);
        let start = Challenge {
            secured: self.secured,
            nonce: self.nonce,
        };
        let numbers = [self.rank, self.size, length].map(u32::to_le_bytes);
        [&start.encode(), numbers.as_flattened(), &self.contribution].concat()
    }

    fn proof(&self, secret: Option<&JobSecret>, challenge: &Nonce) -> Hmac<Sha256> {
        proof(secret, &[b"hello", challenge, &self.body()])
    }

    /// The message with its proof, in reply to `challenge`.
    pub(super) fn encode(&self, secret: Option<&JobSecret>, challenge: &Nonce) -> Vec<u8> {
        let proof = self.proof(secret, challenge).finalize().into_bytes();
        [&self.body()[..], &proof].concat()
    }

    /// The hello that `bytes` are, and whether its proof is right; `None` while bytes are missing.
    ///
    /// # Errors
    /// `InvalidData` if they are none.
    pub(super) fn parse(
        bytes: &[u8],
        secret: Option<&JobSecret>,
        challenge: &Nonce,
    ) -> std::io::Result<Option<(Hello, bool)>> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(IoError::new(Io::InvalidData, "it says something else"));
        }
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let (start, numbers) = head.split_at(CHALLENGE);
        let number = |index: usize| {
            let bytes = numbers.as_chunks().0[index];
            u32::from_le_bytes(bytes)
        };
        let length = number(2) as usize;
        if length > MOST {
            return Err(IoError::new(Io::InvalidData, "it tells too many bytes"));
        }
        let Some((contribution, sent)) = rest.split_at_checked(length) else {
            return Ok(None);
        };
        let Some((sent, _)) = sent.split_first_chunk::<PROOF>() else {
            return Ok(None);
        };
        let start = start.try_into().ok().and_then(Challenge::parse);
        let start = start.ok_or(Io::InvalidData)?;
        let hello = Hello {
            secured: start.secured,
            nonce: start.nonce,
            rank: number(0),
            size: number(1),
            contribution: contribution.to_vec(),
        };
        let proven = hello.proof(secret, challenge).verify_slice(sent).is_ok();
        Ok(Some((hello, proven)))
    }
}

impl Exchange {
    fn proof(&self, secret: Option<&JobSecret>, answer: &[u8]) -> Hmac<Sha256> {
        let rank = self.rank.to_le_bytes();
        proof(
            secret,
            &[b"answer", &self.challenge, &self.hello, &rank, answer],
        )
    }

    /// The message that carries `answer`.
    pub(super) fn encode(&self, secret: Option<&JobSecret>, answer: &[u8]) -> Vec<u8> {
        let length = u32::try_from(answer.len()).unwrap_or(u32::MAX);
        let proof = self.proof(secret, answer).finalize().into_bytes();
        [&length.to_le_bytes()[..], answer, &proof].concat()
    }

    /// Whether `sent` proves that rank 0 gave this answer to this rank on this connection.
    pub(super) fn proves(
        &self,
        secret: Option<&JobSecret>,
        answer: &[u8],
        sent: &[u8; PROOF],
    ) -> bool {
        self.proof(secret, answer).verify_slice(sent).is_ok()
    }
}
