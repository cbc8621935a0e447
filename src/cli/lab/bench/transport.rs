//! Messages between two ranks beside memcpy of the same bytes.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::ascend::{Buffer, Comm, CommConfig, DataType, Device, Span, Stream, Transfer};
use crate::cli::io::send;
use crate::cli::lab::bench::timing::{HostCopy, Times};
use crate::error::Result;
use crate::reduce::World;
use crate::topo::Cluster;

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Sizes below the largest.
const SIZES: [u64; 4] = [1 << 10, 64 << 10, 1 << 20, 16 << 20];

/// One size of one kind of message.
#[derive(Serialize)]
struct Line {
    transport: &'static str,
    ranks: u32,
    /// Bytes of a message.
    bytes: u64,
    reps: usize,
    min_s: f64,
    median_s: f64,
    max_s: f64,
    /// Bytes of a message over the shortest time; an exchange has one each way in that time.
    gb_per_s: f64,
    /// Rate of memcpy for the same bytes: for a message on one rank alone, for an exchange on both ranks at once.
    memcpy_gb_per_s: f64,
    ratio: f64,
}

/// Times messages of several sizes up to `bytes`.
///
/// # Errors
/// Whatever fails on this rank.
pub(crate) fn run(bytes: u64, reps: u32) -> Result<()> {
    let cluster = Cluster::from_env()?;
    let rank = cluster.rank();
    let device = Device::open(World::device_of(&cluster)?)?;
    let config = CommConfig::default();
    let comm = Comm::from_rank_table(&device, cluster.table_path(), rank, &config)?;
    let stream = Stream::new(&device)?;
    for size in SIZES
        .into_iter()
        .filter(|&size| size < bytes)
        .chain([bytes])
    {
        let mut pair = Pair::new(&comm, &stream, size)?;
        pair.measure(reps)?;
    }
    Ok(())
}

/// This rank, its buffers and its peer.
struct Pair<'a> {
    comm: &'a Comm,
    stream: &'a Stream,
    sent: Span,
    received: Span,
    copy: HostCopy,
    bytes: u64,
}

impl<'a> Pair<'a> {
    fn new(comm: &'a Comm, stream: &'a Stream, bytes: u64) -> Result<Self> {
        let copy = HostCopy::new(usize::try_from(bytes).unwrap_or(usize::MAX));
        let buffer = || Ok(Buffer::from_slice(comm.device(), copy.from())?.span());
        Ok(Pair {
            comm,
            stream,
            sent: buffer()?,
            received: buffer()?,
            copy,
            bytes,
        })
    }

    fn measure(&mut self, reps: u32) -> Result<()> {
        let mut times: [Vec<f64>; 4] = Default::default();
        for round in 0..=reps {
            let measured = [
                self.timed(|pair| pair.copy_on(pair.comm.rank() == 0))?,
                self.timed(Pair::send)?,
                self.timed(|pair| pair.copy_on(true))?,
                self.timed(Pair::exchange)?,
            ];
            if round > 0 {
                for (times, time) in times.iter_mut().zip(measured) {
                    times.push(time);
                }
            }
        }
        let slowest: Result<Vec<Times>> = times.into_iter().map(|own| self.slowest(own)).collect();
        let slowest = slowest?;
        if self.comm.rank() != 0 {
            return Ok(());
        }
        send(&self.line("send", &slowest[1], &slowest[0]))?;
        send(&self.line("exchange", &slowest[3], &slowest[2]))
    }

    /// The time of `work` on this rank, begun on both ranks together.
    fn timed(&mut self, work: impl Fn(&mut Self) -> Result<()>) -> Result<f64> {
        self.comm.barrier(self.stream)?;
        self.stream.synchronize_timeout(PATIENCE)?;
        let begin = Instant::now();
        work(self)?;
        Ok(begin.elapsed().as_secs_f64())
    }

    fn copy_on(&mut self, this_rank: bool) -> Result<()> {
        if this_rank {
            self.copy.run();
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        match self.comm.rank() {
            0 => self.comm.send(&self.sent, DataType::U8, 1, self.stream)?,
            _ => self
                .comm
                .recv(&self.received, DataType::U8, 0, self.stream)?,
        }
        self.stream.synchronize_timeout(PATIENCE)
    }

    fn exchange(&mut self) -> Result<()> {
        let peer = 1 - self.comm.rank();
        let send = Transfer::send(peer, self.sent.clone());
        let receive = Transfer::receive(peer, self.received.clone());
        self.comm
            .batch(&[send, receive], DataType::U8, self.stream)?;
        self.stream.synchronize_timeout(PATIENCE)
    }

    /// For each repetition the time of the slower rank.
    fn slowest(&self, own: Vec<f64>) -> Result<Times> {
        let device = self.comm.device();
        let mine = Buffer::from_slice(device, &own)?.span();
        let all = Buffer::new(device, 2 * mine.len())?.span();
        self.comm
            .all_gather(&mine, &all, DataType::F64, self.stream)?;
        self.stream.synchronize_timeout(PATIENCE)?;
        let mut both = vec![0.0; 2 * own.len()];
        all.read(&mut both)?;
        let (first, second) = both.split_at(own.len());
        let slower = first.iter().zip(second).map(|(a, b)| f64::max(*a, *b));
        Ok(Times::new(slower.collect()))
    }

    fn line(&self, transport: &'static str, times: &Times, memcpy: &Times) -> Line {
        let rate = |seconds: f64| self.bytes as f64 / seconds * 1e-9;
        Line {
            transport,
            ranks: 2,
            bytes: self.bytes,
            reps: times.count(),
            min_s: times.min(),
            median_s: times.median(),
            max_s: times.max(),
            gb_per_s: rate(times.min()),
            memcpy_gb_per_s: rate(memcpy.min()),
            ratio: memcpy.min() / times.min(),
        }
    }
}
