//! A meeting at a TCP port that rank 0 listens at.

use std::io::{ErrorKind as Io, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::{Deadline, MOST, Participant, absence, decode, encode, pause};
use crate::error::{Error, ErrorKind, Result};

/// First bytes of both directions: whoever else speaks at this port does not say this.
const MAGIC: [u8; 8] = *b"adasum 1";
/// The limit for a connection to say who it is. Ranks say it at once.
const HELLO_LIMIT: Duration = Duration::from_secs(2);

pub(super) struct TcpMeeting<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
}

/// The connection of a rank that waits for the answer.
struct Connection {
    stream: TcpStream,
    from: SocketAddr,
}

/// The first message of a rank.
struct Hello {
    rank: u32,
    size: u32,
    contribution: Vec<u8>,
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
        let listener = self.listen()?;
        let mut contributions: Vec<Option<Vec<u8>>> = vec![None; participant.size as usize];
        let mut connections: Vec<Option<Connection>> =
            (0..participant.size).map(|_| None).collect();
        contributions[0] = Some(own.to_vec());
        let deadline = Deadline::new(participant.limit);
        while contributions.iter().any(Option::is_none) && !deadline.is_over() {
            match listener.accept() {
                Ok((stream, from)) => receive(
                    stream,
                    from,
                    participant.size,
                    &mut contributions,
                    &mut connections,
                ),
                Err(error) if error.kind() == Io::WouldBlock => pause(deadline),
                Err(error) => log::warn!("{}: {error}", self.name()),
            }
        }
        let all: Option<Vec<Vec<u8>>> = contributions.iter().cloned().collect();
        let answer = match all {
            Some(all) => answer(&all),
            None => Err(absence(&contributions, &self.name(), participant.limit)),
        };
        let bytes = encode(&answer);
        for connection in connections.iter_mut().flatten() {
            if let Err(error) = reply(&mut connection.stream, &bytes) {
                log::warn!("{}: answer to {}: {error}", self.name(), connection.from);
            }
        }
        answer
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
            Error::new(
                ErrorKind::Io,
                format!(
                    "rank 0 cannot listen at port {}: {error}; ADASUM_MASTER_PORT sets another",
                    self.port
                ),
            )
        })
    }

    pub(super) fn follow(&self, participant: Participant, own: &[u8]) -> Result<Vec<u8>> {
        let mut stream = self.connect(participant.limit)?;
        let failed = |error: std::io::Error| {
            let kind = match error.kind() {
                Io::WouldBlock | Io::TimedOut => ErrorKind::Timeout,
                _ => ErrorKind::Io,
            };
            Error::new(
                kind,
                format!("rank 0 at {} did not answer: {error}", self.name()),
            )
        };
        // Rank 0 listened already, so it gives up before this does.
        let limit = participant.limit.saturating_add(HELLO_LIMIT);
        stream.set_read_timeout(Some(limit)).map_err(failed)?;
        stream
            .set_write_timeout(Some(HELLO_LIMIT))
            .map_err(failed)?;
        let length = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let mut hello = MAGIC.to_vec();
        for number in [participant.rank, participant.size, length] {
            hello.extend(number.to_le_bytes());
        }
        hello.extend(own);
        stream.write_all(&hello).map_err(failed)?;
        let bytes = read_reply(&mut stream).map_err(failed)?;
        decode(&bytes)
    }

    /// Tries until rank 0 listens.
    fn connect(&self, limit: Duration) -> Result<TcpStream> {
        let deadline = Deadline::new(limit);
        loop {
            let error = match self.try_addresses(deadline) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if deadline.is_over() {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    format!(
                        "rank 0 was not reached at {} within {:.3} s: {error}",
                        self.name(),
                        limit.as_secs_f64()
                    ),
                ));
            }
            pause(deadline);
        }
    }

    fn try_addresses(&self, deadline: Deadline) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::new(Io::NotFound, "the host has no address");
        for address in (self.host, self.port).to_socket_addrs()? {
            let limit = deadline.left().clamp(Duration::from_millis(1), HELLO_LIMIT);
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Reads the hello of a connection and keeps it, or refuses the rank.
fn receive(
    mut stream: TcpStream,
    from: SocketAddr,
    size: u32,
    contributions: &mut [Option<Vec<u8>>],
    connections: &mut [Option<Connection>],
) {
    let hello = match read_hello(&mut stream) {
        Ok(hello) => hello,
        Err(error) => {
            log::debug!("{from} is not a rank: {error}");
            return;
        }
    };
    let index = hello.rank as usize;
    let refusal = if hello.size != size {
        Some(format!(
            "rank {} has a job of {} ranks, rank 0 one of {size}",
            hello.rank, hello.size
        ))
    } else if index == 0 || index >= contributions.len() {
        Some(format!(
            "rank {} came as a guest to a job of {size} ranks",
            hello.rank
        ))
    } else {
        connections[index]
            .as_ref()
            .filter(|connection| is_there(&connection.stream))
            .map(|connection| {
                format!(
                    "rank {} is there already, from {}",
                    hello.rank, connection.from
                )
            })
    };
    match refusal {
        Some(message) => {
            log::warn!("{from}: {message}");
            let refused = Err(Error::new(ErrorKind::Mismatch, message));
            if let Err(error) = reply(&mut stream, &encode(&refused)) {
                log::debug!("{from}: {error}");
            }
        }
        None => {
            contributions[index] = Some(hello.contribution);
            connections[index] = Some(Connection { stream, from });
        }
    }
}

fn read_hello(stream: &mut TcpStream) -> std::io::Result<Hello> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(HELLO_LIMIT))?;
    stream.set_write_timeout(Some(HELLO_LIMIT))?;
    expect_magic(stream)?;
    let (rank, size) = (number(stream)?, number(stream)?);
    let contribution = payload(stream)?;
    Ok(Hello {
        rank,
        size,
        contribution,
    })
}

/// Whether the other side still has its end open.
fn is_there(stream: &TcpStream) -> bool {
    let looked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut [0]));
    let back = stream.set_nonblocking(false);
    back.is_ok() && matches!(looked, Err(error) if error.kind() == Io::WouldBlock)
}

fn reply(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| Io::InvalidData)?;
    let mut message = MAGIC.to_vec();
    message.extend(length.to_le_bytes());
    message.extend(bytes);
    stream.write_all(&message)
}

fn read_reply(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    expect_magic(stream)?;
    payload(stream)
}

fn expect_magic(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(std::io::Error::new(
            Io::InvalidData,
            "something else speaks there",
        ));
    }
    Ok(())
}

fn payload(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let length = number(stream)? as usize;
    if length > MOST {
        return Err(std::io::Error::new(Io::InvalidData, "too many bytes"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number(stream: &mut TcpStream) -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
