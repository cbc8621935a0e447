//! Worlds, sub-communicators, and every operation that reductions use.

use std::time::{Duration, Instant};

use crate::ascend::{
    Buffer, Comm, CommConfig, DataType, Device, GROUPS_RUN, ReduceOp, Span, Stream, Transfer,
    groups_run,
};
use crate::cli::lab::reference::{download, upload};
use crate::cli::tools::qualify::findings::{Findings, Seen, require};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::error::{Context, Result};

const TYPE: DataType = DataType::F32;
/// Elements of each rank: few, odd, and many.
const COUNTS: [usize; 3] = [1, 4099, 1 << 20];
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    let device = own.device()?;
    let comm = findings.attempt("the communicator of all ranks", || {
        let comm = own.communicator(&device, "world")?;
        let (rank, size) = (comm.rank(), comm.size());
        require((rank, size) == (own.rank, own.size), || {
            format!(
                "it has rank {rank} of {size}, not {} of {}",
                own.rank, own.size
            )
        })?;
        Ok((comm, Seen::figure(f64::from(size), "ranks")))
    })?;
    let stream = Stream::new(&device)?;
    Group::new(&comm, &device, &stream).operations("all ranks", findings)?;
    parts(&comm, &device, findings)?;
    together(&comm, &device, findings)?;
    findings.check("no communicator has an asynchronous error", || {
        comm.async_error()?;
        Ok(Seen::default())
    });
    findings.check("the communicator is destroyed", || {
        stream.synchronize_timeout(PATIENCE)?;
        comm.destroy()?;
        Ok(Seen::default())
    });
    Ok(())
}

/// Sub-communicators of even and of odd ranks.
fn parts(comm: &Comm, device: &Device, findings: &mut Findings) -> Result<()> {
    let members: Vec<u32> = (0..comm.size())
        .filter(|rank| rank % 2 == comm.rank() % 2)
        .collect();
    let part = findings.attempt("sub-communicators of even and odd ranks", || {
        let id = 100 + u64::from(comm.rank() % 2);
        let part = comm.sub(&members, id, comm.rank() / 2, &small())?;
        let size = part.size();
        Ok((part, Seen::figure(f64::from(size), "ranks")))
    })?;
    let stream = Stream::new(device)?;
    Group::new(&part, device, &stream).operations("even and odd ranks", findings)?;
    stream.synchronize_timeout(PATIENCE)?;
    part.destroy()
}

/// Two communicators of the same ranks at work at the same time: payloads and scalars of a reduction do that.
fn together(comm: &Comm, device: &Device, findings: &mut Findings) -> Result<()> {
    let all: Vec<u32> = (0..comm.size()).collect();
    let other = comm.sub(&all, 102, comm.rank(), &small())?;
    let streams = [Stream::new(device)?, Stream::new(device)?];
    findings.check("two communicators at work at once", || {
        let groups = [comm, &other].map(|comm| Group::new(comm, device, &streams[0]));
        let count = COUNTS[2];
        let gathered = [0, 1].map(|_| groups[0].room(count, comm.size()));
        let gathered = gathered.into_iter().collect::<Result<Vec<Span>>>()?;
        let own = groups[0].input(count)?;
        for round in 0..4 {
            // In turn first, so that neither always waits for the other.
            for index in [round % 2, 1 - round % 2] {
                let comm = groups[index].comm;
                comm.all_gather(&own, &gathered[index], TYPE, &streams[index])?;
            }
        }
        for (stream, gathered) in streams.iter().zip(&gathered) {
            stream.synchronize_timeout(PATIENCE)?;
            groups[0].expect(gathered, |at| element(at / count, at % count))?;
        }
        Ok(Seen::default())
    });
    other.destroy()
}

fn small() -> CommConfig {
    CommConfig {
        buffer_mb: Some(1),
        ..CommConfig::default()
    }
}

/// Element `index` of the input of `rank`: sums of a hundred ranks are exact in fp32.
fn element(rank: usize, index: usize) -> f64 {
    ((rank * 31 + index) % 1021) as f64
}

/// A communicator and where its operations run.
struct Group<'a> {
    comm: &'a Comm,
    device: &'a Device,
    stream: &'a Stream,
    rank: usize,
    size: usize,
}

impl<'a> Group<'a> {
    fn new(comm: &'a Comm, device: &'a Device, stream: &'a Stream) -> Group<'a> {
        Group {
            comm,
            device,
            stream,
            rank: comm.rank() as usize,
            size: comm.size() as usize,
        }
    }

    /// Every operation with every number of elements. Stops at one that fails: others would wait for this rank.
    fn operations(&self, of: &str, findings: &mut Findings) -> Result<()> {
        type Operation<'a> = (&'static str, fn(&Group<'a>, usize) -> Result<()>);
        let mut operations: Vec<Operation<'a>> = vec![
            ("barrier", |group, _| group.comm.barrier(group.stream)),
            ("broadcast", Group::broadcast),
            ("all-gather", Group::all_gather),
            ("all-reduce", Group::all_reduce),
            ("reduce-scatter", Group::reduce_scatter),
            ("send and receive", Group::send_and_receive),
            ("batch with one peer", Group::pair),
            ("batch with all peers", Group::batch),
            ("all-to-all of unequal parts", Group::all_to_all),
        ];
        let group = "group of sends and receives";
        if groups_run(self.device)? {
            operations.push((group, Group::group));
        } else {
            findings.skip(format!("{group} of {of}"), GROUPS_RUN);
        }
        for (name, operation) in operations {
            let done = findings.attempt(format!("{name} of {of}"), || {
                Ok(((), self.timed(operation)?))
            });
            done.context(|| format!("after a failed {name}"))?;
        }
        Ok(())
    }

    /// The time of the operation with most elements, once links are there.
    fn timed(&self, operation: fn(&Group<'a>, usize) -> Result<()>) -> Result<Seen> {
        let mut seconds = 0.0;
        for count in COUNTS.into_iter().chain([COUNTS[2]]) {
            let begin = Instant::now();
            operation(self, count)?;
            self.stream.synchronize_timeout(PATIENCE)?;
            seconds = begin.elapsed().as_secs_f64();
        }
        Ok(Seen::figure(1e3 * seconds, "ms")
            .and("with 4 MB of each rank, and the look at the result"))
    }

    /// The elements that this rank contributes.
    fn input(&self, count: usize) -> Result<Span> {
        let values: Vec<f64> = (0..count).map(|index| element(self.rank, index)).collect();
        upload(self.device, TYPE, &values)
    }

    fn room(&self, count: usize, ranks: u32) -> Result<Span> {
        let bytes = count * ranks as usize * TYPE.size();
        Ok(Buffer::zeroed(self.device, bytes)?.span())
    }

    /// Waits, and compares every element.
    fn expect(&self, span: &Span, expected: impl Fn(usize) -> f64) -> Result<()> {
        self.stream.synchronize_timeout(PATIENCE)?;
        let values = download(TYPE, span)?;
        let differs = (0..values.len()).find(|&at| values[at].to_bits() != expected(at).to_bits());
        require(differs.is_none(), || {
            let at = differs.unwrap_or_default();
            let (is, be) = (values[at], expected(at));
            format!(
                "of {} elements, element {at} is {is}, not {be}",
                values.len()
            )
        })
    }

    fn broadcast(&self, count: usize) -> Result<()> {
        let root = self.comm.size() - 1;
        let span = self.input(count)?;
        self.comm.broadcast(&span, TYPE, root, self.stream)?;
        self.expect(&span, |at| element(root as usize, at))
    }

    fn all_gather(&self, count: usize) -> Result<()> {
        let all = self.room(count, self.comm.size())?;
        self.comm
            .all_gather(&self.input(count)?, &all, TYPE, self.stream)?;
        self.expect(&all, |at| element(at / count, at % count))
    }

    fn all_reduce(&self, count: usize) -> Result<()> {
        let (input, sum) = (self.input(count)?, self.room(count, 1)?);
        self.comm
            .all_reduce(&input, &sum, TYPE, ReduceOp::Sum, self.stream)?;
        self.expect(&sum, |at| self.sum(at))
    }

    fn reduce_scatter(&self, count: usize) -> Result<()> {
        let input = self.input(count * self.size)?;
        let part = self.room(count, 1)?;
        self.comm
            .reduce_scatter(&input, &part, TYPE, ReduceOp::Sum, self.stream)?;
        self.expect(&part, |at| self.sum(self.rank * count + at))
    }

    fn sum(&self, at: usize) -> f64 {
        (0..self.size).map(|rank| element(rank, at)).sum()
    }

    /// To the next rank and from the one before it; a send and its receive meet, so every other rank sends first.
    fn send_and_receive(&self, count: usize) -> Result<()> {
        let (input, got) = (self.input(count)?, self.room(count, 1)?);
        // Pairs of neighbours, whose last is alone where the number is odd.
        let peer = self.rank ^ 1;
        if peer >= self.size {
            return Ok(());
        }
        #[expect(clippy::cast_possible_truncation, reason = "ranks are u32")]
        let to = peer as u32;
        if self.rank < peer {
            self.comm.send(&input, TYPE, to, self.stream)?;
            self.comm.recv(&got, TYPE, to, self.stream)?;
        } else {
            self.comm.recv(&got, TYPE, to, self.stream)?;
            self.comm.send(&input, TYPE, to, self.stream)?;
        }
        self.expect(&got, |at| element(peer, at))
    }

    fn pair(&self, count: usize) -> Result<()> {
        let peers: Vec<u32> = (0..self.comm.size())
            .filter(|&peer| peer as usize == self.rank ^ 1)
            .collect();
        self.exchange(&peers, count, |transfers| {
            self.comm.batch(transfers, TYPE, self.stream)
        })
    }

    fn batch(&self, count: usize) -> Result<()> {
        self.exchange(&self.peers(), count, |transfers| {
            self.comm.batch(transfers, TYPE, self.stream)
        })
    }

    fn group(&self, count: usize) -> Result<()> {
        self.exchange(&self.peers(), count, |transfers| {
            self.comm.group(transfers, TYPE, self.stream)
        })
    }

    fn peers(&self) -> Vec<u32> {
        let own = self.comm.rank();
        (0..self.comm.size()).filter(|&peer| peer != own).collect()
    }

    /// Two ranks exchange the fewer elements, the further apart they are, and some exchange none.
    fn all_to_all(&self, count: usize) -> Result<()> {
        let part = |peer: u32| match (peer as usize + self.rank) % 3 {
            0 => 0,
            _ => count / (peer as usize).abs_diff(self.rank),
        };
        let (input, got) = (self.input(count)?, self.room(count, self.comm.size())?);
        let mut transfers = Vec::new();
        for peer in self.peers() {
            let place = |start: usize| start..start + part(peer) * TYPE.size();
            let theirs = place(peer as usize * count * TYPE.size());
            transfers.push(Transfer::send(peer, input.slice(place(0))?));
            transfers.push(Transfer::receive(peer, got.slice(theirs)?));
        }
        self.comm.all_to_all(&transfers, TYPE, self.stream)?;
        for peer in self.peers() {
            let start = peer as usize * count * TYPE.size();
            let from_peer = got.slice(start..start + part(peer) * TYPE.size())?;
            self.expect(&from_peer, |at| element(peer as usize, at))?;
        }
        Ok(())
    }

    fn exchange(
        &self,
        peers: &[u32],
        count: usize,
        issue: impl Fn(&[Transfer<Span>]) -> Result<()>,
    ) -> Result<()> {
        if peers.is_empty() {
            return Ok(());
        }
        let input = self.input(count)?;
        let mut transfers = Vec::new();
        let mut all = Vec::new();
        for &peer in peers {
            let got = self.room(count, 1)?;
            transfers.push(Transfer::send(peer, input.clone()));
            transfers.push(Transfer::receive(peer, got.clone()));
            all.push((peer as usize, got));
        }
        issue(&transfers)?;
        for (peer, got) in all {
            self.expect(&got, |at| element(peer, at))?;
        }
        Ok(())
    }
}
