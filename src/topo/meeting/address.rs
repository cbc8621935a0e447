//! A meeting at a TCP port that rank 0 listens at.
//!
//! Rank 0 serves all connections in one loop, without waiting for any of them: strangers that are slow, silent or many
//! cost it nothing but a descriptor each, for a while.

use std::collections::VecDeque;
use std::io::{Error as IoError, ErrorKind as Io, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Once;
use std::time::Duration;

use super::messages::{CHALLENGE, Challenge, Exchange, Hello, Nonce, RECEIPT};
use super::{Deadline, MOST, Participant, absence, decode, encode, pause, size_mismatch};
use crate::error::{Error, ErrorKind, Result};
use crate::topo::secret::{JobSecret, PROOF, SECRET, SECRET_FILE, random};

/// The limit for a connection to say who it is. Ranks say it at once, unless their machine has no time for them.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// The limit for one address of rank 0's host, and for a rank to take what rank 0 sends.
const REPLY_LIMIT: Duration = Duration::from_secs(2);
/// The most connections that may be open without having said who they are; when more come, the oldest is closed.
const MOST_PENDING: usize = 256;
/// The most refusals that are logged as warnings: strangers must not fill a disk.
const MOST_WARNINGS: usize = 64;

pub(super) struct TcpMeeting<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) secret: Option<&'a JobSecret>,
}

/// A connection that has not said yet who it is.
struct Pending {
    stream: TcpStream,
    from: SocketAddr,
    deadline: Deadline,
    nonce: Nonce,
    bytes: Vec<u8>,
}

/// The connection of a rank.
struct Connection {
    stream: TcpStream,
    from: SocketAddr,
    exchange: Exchange,
}

/// What rank 0 knows.
struct Leader<'a> {
    meeting: &'a TcpMeeting<'a>,
    size: u32,
    contributions: Vec<Option<Vec<u8>>>,
    connections: Vec<Option<Connection>>,
    pending: VecDeque<Pending>,
    refusals: usize,
    /// What last kept a rank out: a refusal, with the number of all, or no room for its connection.
    last_problem: Option<String>,
}

impl TcpMeeting<'_> {
    fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(super) fn lead(
        &self,
        participant: Participant,
        own: &[u8],
        answer: impl FnOnce(&[Vec<u8>]) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        self.warn_without_secret();
        let listener = self.listen()?;
        let mut leader = Leader {
            meeting: self,
            size: participant.size,
            contributions: vec![None; participant.size as usize],
            connections: (0..participant.size).map(|_| None).collect(),
            pending: VecDeque::new(),
            refusals: 0,
            last_problem: None,
        };
        leader.contributions[0] = Some(own.to_vec());
        let deadline = Deadline::new(participant.limit);
        while leader.contributions.iter().any(Option::is_none) && !deadline.is_over() {
            let (came, spoke) = (leader.accept(&listener), leader.serve());
            if !came && !spoke {
                pause(deadline);
            }
        }
        let all: Option<Vec<Vec<u8>>> = leader.contributions.iter().cloned().collect();
        let answer = match all {
            Some(all) => answer(&all),
            None => Err(leader.absence(participant.limit)),
        };
        let bytes = encode(&answer);
        for connection in leader.connections.iter_mut().flatten() {
            if let Err(error) = connection.reply(self.secret, &bytes) {
                log::warn!("{}: answer to {}: {error}", self.name(), connection.from);
            }
        }
        answer
    }

    fn warn_without_secret(&self) {
        static WARNED: Once = Once::new();
        if self.secret.is_none() {
            WARNED.call_once(|| {
                log::warn!(
                    "port {} must be on a trusted network: without {SECRET} or {SECRET_FILE} whoever reaches it can join \
                     this job",
                    self.port
                );
            });
        }
    }

    fn listen(&self) -> Result<TcpListener> {
        // Every address of this host: which of them the others use is their matter.
        let any: [SocketAddr; 2] = [
            (Ipv6Addr::UNSPECIFIED, self.port).into(),
            (Ipv4Addr::UNSPECIFIED, self.port).into(),
        ];
        let listener = TcpListener::bind(&any[..]);
        let listener =
            listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        listener.map_err(|error| {
            let kind = match error.kind() {
                Io::AddrInUse | Io::PermissionDenied => ErrorKind::InvalidArgument,
                _ => ErrorKind::Io,
            };
            Error::new(
                kind,
                format!(
                    "rank 0 cannot listen at port {}: {error}; ADASUM_MASTER_PORT sets another",
                    self.port
                ),
            )
        })
    }

    pub(super) fn follow(&self, participant: Participant, own: &[u8]) -> Result<Vec<u8>> {
        let deadline = Deadline::new(participant.limit);
        loop {
            let error = match self.greet(participant, own, deadline) {
                Ok((connection, secured)) => {
                    return self.wait_for_answer(connection, secured, participant.limit);
                }
                Err(error) => error,
            };
            if error.kind() == Io::InvalidData {
                return Err(Error::invalid(format!(
                    "it is not rank 0 that listens at {}: {error}; ADASUM_MASTER_PORT sets another port",
                    self.name()
                )));
            }
            // Rank 0 may not listen yet, or have cut this rank off because it was too slow.
            if deadline.is_over() {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    format!(
                        "rank 0 was not reached at {} within {:.3} s: {error}",
                        self.name(),
                        participant.limit.as_secs_f64()
                    ),
                ));
            }
            pause(deadline);
        }
    }

    /// Connects and says who this is, until rank 0 has read it; returns also whether rank 0 has a secret.
    fn greet(
        &self,
        participant: Participant,
        own: &[u8],
        deadline: Deadline,
    ) -> std::io::Result<(Connection, bool)> {
        let (stream, from) = self.connect(deadline)?;
        stream.set_write_timeout(Some(HELLO_LIMIT))?;
        let mut reader = Timed {
            stream: &stream,
            deadline: Deadline::new(HELLO_LIMIT.min(deadline.left())),
        };
        let mut bytes = [0; CHALLENGE];
        reader.read_exact(&mut bytes)?;
        let challenge = Challenge::parse(&bytes)
            .ok_or_else(|| IoError::new(Io::InvalidData, "it says something else"))?;
        let hello = Hello {
            secured: self.secret.is_some(),
            nonce: random()?,
            rank: participant.rank,
            size: participant.size,
            contribution: own.to_vec(),
        };
        (&stream).write_all(&hello.encode(self.secret, &challenge.nonce))?;
        reader.read_exact(&mut [0; RECEIPT.len()])?;
        let exchange = Exchange {
            challenge: challenge.nonce,
            hello: hello.nonce,
            rank: hello.rank,
        };
        let connection = Connection {
            stream,
            from,
            exchange,
        };
        Ok((connection, challenge.secured))
    }

    fn connect(&self, deadline: Deadline) -> std::io::Result<(TcpStream, SocketAddr)> {
        let mut last = IoError::new(Io::NotFound, "the host has no address");
        for address in (self.host, self.port).to_socket_addrs()? {
            let limit = deadline.left().clamp(Duration::from_millis(1), REPLY_LIMIT);
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Waits for the answer of rank 0, which has this rank's hello.
    fn wait_for_answer(
        &self,
        connection: Connection,
        secured: bool,
        limit: Duration,
    ) -> Result<Vec<u8>> {
        // Rank 0 listened already, so it gives up before this does.
        let mut reader = Timed {
            stream: &connection.stream,
            deadline: Deadline::new(limit.saturating_add(HELLO_LIMIT)),
        };
        let (answer, proof) = read_answer(&mut reader).map_err(|error| {
            let kind = match error.kind() {
                Io::TimedOut => ErrorKind::Timeout,
                _ => ErrorKind::Io,
            };
            Error::new(
                kind,
                format!("rank 0 at {} did not answer: {error}", self.name()),
            )
        })?;
        if connection.exchange.proves(self.secret, &answer, &proof) {
            return decode(&answer);
        }
        let what = match (self.secret.is_some(), secured) {
            (false, false) => "sent a damaged answer",
            (false, true) => "has a secret, this rank has none",
            (true, false) => "has no secret, this rank has one",
            (true, true) => "has another secret than this rank",
        };
        Err(Error::new(
            ErrorKind::Mismatch,
            format!(
                "rank 0 at {} ({}) {what}: {SECRET} or {SECRET_FILE} must say the same to all ranks (this is rank {})",
                self.name(),
                connection.from,
                connection.exchange.rank
            ),
        ))
    }
}

/// The answer of rank 0 and its proof.
fn read_answer(reader: &mut impl Read) -> std::io::Result<(Vec<u8>, [u8; PROOF])> {
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    // One byte says what kind of answer it is.
    if length > 1 + MOST {
        return Err(IoError::new(Io::InvalidData, "it has too many bytes"));
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer)?;
    let mut proof = [0; PROOF];
    reader.read_exact(&mut proof)?;
    Ok((answer, proof))
}

impl Leader<'_> {
    /// Takes a connection, if one has come.
    fn accept(&mut self, listener: &TcpListener) -> bool {
        let (stream, from) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == Io::WouldBlock => return false,
            Err(error) => {
                // There may be no descriptor left: strangers must not have them all.
                self.pending.pop_front();
                let message = format!("rank 0 cannot take another connection: {error}");
                log::debug!("{}: {message}", self.meeting.name());
                self.last_problem = Some(message);
                return false;
            }
        };
        // As IPv4 has it, though the socket is one for both.
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        match self.challenge(stream, from) {
            Ok(pending) => self.pending.push_back(pending),
            Err(error) => log::debug!("{from}: {error}"),
        }
        if self.pending.len() > MOST_PENDING {
            self.pending.pop_front();
        }
        true
    }

    fn challenge(&self, mut stream: TcpStream, from: SocketAddr) -> std::io::Result<Pending> {
        stream.set_nonblocking(true)?;
        let challenge = Challenge {
            secured: self.meeting.secret.is_some(),
            nonce: random()?,
        };
        stream.write_all(&challenge.encode())?;
        Ok(Pending {
            stream,
            from,
            deadline: Deadline::new(HELLO_LIMIT),
            nonce: challenge.nonce,
            bytes: Vec::new(),
        })
    }

    /// Reads what pending connections have said; returns whether one is pending no more.
    fn serve(&mut self) -> bool {
        let before = self.pending.len();
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.read(self.meeting.secret) {
                Ok(None) => self.pending.push_back(pending),
                Ok(Some((hello, proven))) => self.receive(pending, hello, proven),
                Err(error) => log::debug!("{} is not a rank: {error}", pending.from),
            }
        }
        self.pending.len() < before
    }

    /// Keeps the connection of a rank that said who it is, or refuses it.
    fn receive(&mut self, pending: Pending, hello: Hello, proven: bool) {
        let mut connection = Connection {
            stream: pending.stream,
            from: pending.from,
            exchange: Exchange {
                challenge: pending.nonce,
                hello: hello.nonce,
                rank: hello.rank,
            },
        };
        if let Err(error) = connection.stream.write_all(&RECEIPT) {
            log::debug!("{}: {error}", connection.from);
            return;
        }
        if let Err(error) = self.check(&hello, connection.from, proven) {
            let level = match self.refusals {
                ..MOST_WARNINGS => log::Level::Warn,
                _ => log::Level::Debug,
            };
            log::log!(level, "{}: {error}", self.meeting.name());
            self.refusals += 1;
            let refusals = self.refusals;
            self.last_problem = Some(format!("{refusals} refused, the last: {error}"));
            if let Err(error) = connection.reply(self.meeting.secret, &encode(&Err(error))) {
                log::debug!("{}: {error}", connection.from);
            }
            return;
        }
        let index = hello.rank as usize;
        self.contributions[index] = Some(hello.contribution);
        self.connections[index] = Some(connection);
    }

    /// Whether a rank belongs to this job, and is not there yet.
    fn check(&self, hello: &Hello, from: SocketAddr, proven: bool) -> Result<()> {
        let (rank, size) = (hello.rank, self.size);
        let mismatch = |what: String| Err(Error::new(ErrorKind::Mismatch, what));
        if !proven {
            let what = match (hello.secured, self.meeting.secret.is_some()) {
                (false, true) => "no secret, rank 0 has one",
                (true, false) => "a secret, rank 0 has none",
                _ => "another secret than rank 0",
            };
            return mismatch(format!(
                "rank {rank} from {from} has {what} ({SECRET}, {SECRET_FILE})"
            ));
        }
        if hello.size != size {
            return Err(size_mismatch(
                &format!("{rank} from {from}"),
                hello.size,
                size,
            ));
        }
        if rank == 0 || rank >= size {
            return Err(Error::invalid(format!(
                "{from} says it is rank {rank}, of {size} ranks that meet at rank 0"
            )));
        }
        match &self.connections[rank as usize] {
            Some(connection) if connection.is_there() => mismatch(format!(
                "rank {rank} is there already, from {}",
                connection.from
            )),
            _ => Ok(()),
        }
    }

    fn absence(&self, limit: Duration) -> Error {
        let error = absence(&self.contributions, &self.meeting.name(), limit);
        match &self.last_problem {
            None => error,
            Some(problem) => Error::new(error.kind(), format!("{error}; {problem}")),
        }
    }
}

impl Pending {
    /// The hello and whether its proof is right, if all of it is there.
    fn read(&mut self, secret: Option<&JobSecret>) -> std::io::Result<Option<(Hello, bool)>> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Err(Io::UnexpectedEof.into()),
            Ok(count) => self.bytes.extend(&chunk[..count]),
            Err(error) if error.kind() == Io::WouldBlock => {}
            Err(error) => return Err(error),
        }
        match Hello::parse(&self.bytes, secret, &self.nonce)? {
            None if self.deadline.is_over() => Err(self.deadline.error()),
            hello => Ok(hello),
        }
    }
}

impl Connection {
    /// Whether the other side still has its end open.
    fn is_there(&self) -> bool {
        let looked = self.stream.peek(&mut [0]);
        matches!(looked, Err(error) if error.kind() == Io::WouldBlock)
    }

    fn reply(&mut self, secret: Option<&JobSecret>, answer: &[u8]) -> std::io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(REPLY_LIMIT))?;
        self.stream.write_all(&self.exchange.encode(secret, answer))
    }
}

/// Reads until a deadline, however slowly bytes come.
struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Deadline,
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.deadline.is_over() {
            return Err(self.deadline.error());
        }
        // No limit of 0, which would mean none.
        let left = self.deadline.left().max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left))?;
        match self.stream.read(bytes) {
            Err(error) if error.kind() == Io::WouldBlock => Err(self.deadline.error()),
            other => other,
        }
    }
}
