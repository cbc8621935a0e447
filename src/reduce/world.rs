//! This rank's live membership of a world: device, stream, communicators.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sha1::{Digest, Sha1};

use super::agreement;
use crate::ascend::{
    Buffer, Comm, CommConfig, DataType, Device, Event, ReduceOp, RootInfo, Span, Stream,
};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::kernel::Kernels;
use crate::plan::{Description, Group, Shape};
use crate::topo::Cluster;

use super::hosts::{self, HOST_BYTES};
use super::lanes::Lanes;
use super::watch::{Mark, Watch};

/// Limit on operations that come with no other.
const PATIENCE: Duration = Duration::from_secs(300);

/// The live membership of one rank.
///
/// Clones share it. What is enqueued through a world runs on the stream that the caller gives and on streams of its
/// own, which that one waits for; a failure shows where the caller waits. Calls on different streams are chained by an
/// event: all ranks issue the operations of their communicators in one order. The caller keeps its own collectives on
/// this device out of that order. The first failure poisons the world: every later call fails with it.
#[derive(Clone)]
pub struct World {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    shape: Shape,
    rank: u32,
    /// Of a world that is nobody's part.
    watchdog: Mutex<Option<JoinHandle<()>>>,
    // Sub-communicators go before the communicator that they were made from.
    groups: Mutex<HashMap<Group, Arc<Comm>>>,
    comm: Comm,
    parts: Mutex<Parts>,
    origin: Option<Origin>,
    work: Arc<Work>,
}

/// The parts that were made of a world.
#[derive(Default)]
struct Parts {
    /// How often there were parts with these members.
    made: HashMap<Vec<u32>, u64>,
    /// Those that may be left.
    live: Vec<Weak<Inner>>,
}

/// Where a part comes from.
struct Origin {
    /// The world that is nobody's part: its communicator is the one that can be split.
    root: World,
    /// The members as ranks of the root, in ascending order.
    ranks: Vec<u32>,
}

/// What a world and its parts do their work with.
struct Work {
    kernels: Kernels,
    /// For kernels and for scalar collectives.
    kernel_stream: Stream,
    scalar_stream: Stream,
    order: Mutex<Order>,
    watch: Arc<Watch>,
}

/// Chains what is enqueued on different streams. Its lock is held while a call enqueues.
struct Order {
    /// Recorded behind the last work that was enqueued.
    last: Event,
    /// Recorded before work that several streams share.
    start: Event,
}

impl World {
    /// Joins the world of a rank table as the cluster's own rank.
    ///
    /// Collective: every rank of the table must call it. Opens the device that the table gives this rank. Servers and
    /// the ranks of each are those of the table.
    ///
    /// # Errors
    /// If servers have different numbers of devices (the message shows how many each has), or the world cannot be made.
    pub fn from_cluster(cluster: &Cluster) -> Result<Self> {
        World::from_cluster_with(cluster, cluster.locals()?)
    }

    /// As [`World::from_cluster`], but with `locals` ranks a server, whatever the table says: 1 makes each rank a server
    /// of its own, so that AdaSum combines all of them.
    ///
    /// # Errors
    /// If the ranks are not a whole number of such servers.
    pub fn from_cluster_with(cluster: &Cluster, locals: u32) -> Result<Self> {
        let shape = servers_of(cluster.size(), locals)?;
        let rank = cluster.rank();
        let device = Device::open(cluster.device_id(rank)?)?;
        let comm =
            Comm::from_rank_table(&device, cluster.table_path(), rank, &CommConfig::default())
                .context(|| format!("rank {rank} of {}", shape.size()))?;
        World::new(device, comm, shape)
    }

    /// Joins the world that one rank made `root` for, as `rank` of `size` with `locals` ranks a server.
    ///
    /// Collective: all ranks must call it with the same `root`, `size` and `locals`.
    pub fn from_root_info(
        device: Device,
        root: &RootInfo,
        size: u32,
        rank: u32,
        locals: u32,
    ) -> Result<Self> {
        let shape = servers_of(size, locals)?;
        let comm = Comm::from_root_info(&device, root, size, rank, &CommConfig::default())
            .context(|| format!("rank {rank} of {size}"))?;
        World::new(device, comm, shape)
    }

    /// As [`World::from_root_info`], with the servers from a key of each rank's host: equal for the ranks of a server,
    /// different between servers. Waits for all ranks, at most `timeout`.
    ///
    /// # Errors
    /// On all ranks, showing who is where, if the ranks of a server are not consecutive or servers have different numbers
    /// of ranks.
    pub fn from_root_info_by_host(
        device: Device,
        root: &RootInfo,
        size: u32,
        rank: u32,
        host: &str,
        timeout: Duration,
    ) -> Result<Self> {
        let comm = Comm::from_root_info(&device, root, size, rank, &CommConfig::default())
            .context(|| format!("rank {rank} of {size}"))?;
        let own = Buffer::from_slice(&device, &hosts::encode(host))?.span();
        let all = Buffer::new(&device, HOST_BYTES * size as usize)?.span();
        let stream = Stream::new(&device)?;
        comm.all_gather(&own, &all, DataType::U8, &stream)?;
        stream
            .synchronize_timeout(timeout)
            .context(|| format!("rank {rank}: waiting for the hosts of all ranks"))?;
        let mut bytes = vec![0_u8; all.len()];
        all.read(&mut bytes)?;
        let (hosts, _) = bytes.as_chunks::<HOST_BYTES>();
        World::new(device, comm, hosts::shape(hosts)?)
    }

    fn new(device: Device, comm: Comm, shape: Shape) -> Result<Self> {
        let internal = || {
            let stream = Stream::new(&device)?;
            stream.stop_on_failure()?;
            Ok(stream)
        };
        let order = Order {
            last: Event::new(&device)?,
            start: Event::new(&device)?,
        };
        let watch = Watch::new(&device, comm.rank())?;
        let work = Work {
            kernels: Kernels::load(&device)?,
            kernel_stream: internal()?,
            scalar_stream: internal()?,
            order: Mutex::new(order),
            watch: Arc::clone(&watch),
        };
        let inner = Arc::new(Inner {
            rank: comm.rank(),
            watchdog: Mutex::new(None),
            groups: Mutex::default(),
            parts: Mutex::default(),
            origin: None,
            work: Arc::new(work),
            device,
            shape,
            comm,
        });
        let weak = Arc::downgrade(&inner);
        let thread = std::thread::Builder::new()
            .name("adasum-watchdog".to_owned())
            .spawn(move || {
                if watch.run()
                    && let Some(inner) = weak.upgrade()
                {
                    inner.release();
                }
            })
            .map_err(|error| Error::new(ErrorKind::Io, format!("no watchdog thread: {error}")))?;
        *lock(&inner.watchdog) = Some(thread);
        Ok(World { inner })
    }

    /// The world of `ranks`, some of this world's ranks in ascending order, with `locals` of them a server.
    ///
    /// Collective among `ranks` only: each of them calls it with the same arguments, and all ranks make the
    /// parts that they share in the same order. The members are renumbered from 0 in their order; `locals`
    /// consecutive ones count as a server, whatever this world's servers are. A part shares device, streams and order
    /// of work with this world: what is enqueued through either waits for what either was given before, and a failure
    /// of one poisons both. Uses: the ranks of one server, of one pipeline stage, of one shard of a model.
    ///
    /// # Errors
    /// `InvalidArgument` if `ranks` are not ascending ranks of this world with this one among them, or no
    /// whole number of servers.
    pub fn part(&self, ranks: &[u32], locals: u32) -> Result<World> {
        self.check_part(ranks, locals)?;
        let size = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        let members: Vec<u32> = ranks.iter().map(|&rank| self.rank_in_root(rank)).collect();
        let root = self.root();
        let number = {
            let mut parts = lock(&root.inner.parts);
            let count = parts.made.entry(members.clone()).or_default();
            *count += 1;
            *count
        };
        let comm = root.sub(&format!("part {number}"), &members, &CommConfig::default())?;
        let inner = Arc::new(Inner {
            rank: comm.rank(),
            watchdog: Mutex::new(None),
            groups: Mutex::default(),
            parts: Mutex::default(),
            origin: Some(Origin {
                root: root.clone(),
                ranks: members,
            }),
            work: Arc::clone(&self.inner.work),
            device: self.device().clone(),
            shape: Shape::new(size / locals, locals)?,
            comm,
        });
        let mut parts = lock(&root.inner.parts);
        parts.live.retain(|part| part.strong_count() > 0);
        parts.live.push(Arc::downgrade(&inner));
        drop(parts);
        Ok(World { inner })
    }

    fn check_part(&self, ranks: &[u32], locals: u32) -> Result<()> {
        if !ranks.windows(2).all(|pair| pair[0] < pair[1])
            || ranks.last().is_none_or(|&last| last >= self.size())
        {
            return Err(Error::invalid(format!(
                "ranks {ranks:?} of a part are not ascending ranks below {}",
                self.size()
            )));
        }
        if !ranks.contains(&self.rank()) {
            return Err(Error::invalid(format!(
                "rank {} is not in the part of ranks {ranks:?}",
                self.rank()
            )));
        }
        if locals == 0 || !ranks.len().is_multiple_of(locals as usize) {
            return Err(Error::invalid(format!(
                "the {} ranks {ranks:?} are not a whole number of servers of {locals}",
                ranks.len()
            )));
        }
        Ok(())
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.inner.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.inner.shape.size()
    }

    /// Number of servers, S.
    pub fn servers(&self) -> u32 {
        self.inner.shape.servers
    }

    /// Ranks of each server, D.
    pub fn locals(&self) -> u32 {
        self.inner.shape.locals
    }

    /// The device of this rank.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Holds back `stream` until every rank has come to its barrier; the host goes on.
    ///
    /// Collective and stream-ordered.
    pub fn barrier(&self, stream: &Stream) -> Result<()> {
        let mark = self.mark("barrier", 0)?;
        self.enqueue_watched(&mark, PATIENCE, stream, |stream| {
            self.inner.comm.barrier(stream)
        })
    }

    /// Sums `values` (f32) over all ranks in place; for figures like a loss, not for AdaSum.
    ///
    /// Collective and stream-ordered. Makes no claim of determinism: HCCL chooses the order of the sum.
    pub fn all_reduce_sum(&self, values: &Span, stream: &Stream) -> Result<()> {
        let mark = self.mark("sum over all ranks", 2 * values.len() as u64)?;
        self.enqueue_watched(&mark, PATIENCE, stream, |stream| {
            let comm = &self.inner.comm;
            comm.all_reduce(values, values, DataType::F32, ReduceOp::Sum, stream)
        })
    }

    /// Leaves the world, after what was enqueued is done or `timeout` is over; a world that has failed is left at once.
    /// Every reducer and clone must be gone; all ranks should call it. Afterwards the process can join a new world.
    ///
    /// # Errors
    /// If a reducer or clone is left, work does not end, or a communicator cannot be destroyed.
    pub fn finish(self, timeout: Duration) -> Result<()> {
        match self.check() {
            Ok(()) => self.settle(timeout)?,
            Err(_) => self.inner.release(),
        }
        self.inner.stop_watchdog();
        let inner = Arc::try_unwrap(self.inner).map_err(|shared| {
            Error::new(
                ErrorKind::InvalidState,
                format!(
                    "{} reducers or clones still use the world",
                    Arc::strong_count(&shared) - 1
                ),
            )
        })?;
        inner.end()
    }

    /// Compares `mine` over all ranks. Where they differ, the error on every rank names the first entry that does.
    ///
    /// Collective. Waits for all ranks, at most `timeout` for each of a few small exchanges.
    pub(crate) fn agree(&self, mine: Description, timeout: Duration) -> Result<()> {
        agreement::reach(self, &mine, timeout)
    }

    /// The `bytes` of all ranks, one after the other. All give equally many.
    ///
    /// Collective. Waits for all ranks, at most `timeout`.
    pub(crate) fn gather(&self, bytes: &[u8], timeout: Duration) -> Result<Vec<u8>> {
        let device = self.device();
        let mine = Buffer::from_slice(device, bytes)?.span();
        let all = Buffer::new(device, bytes.len() * self.size() as usize)?.span();
        let stream = Stream::new(device)?;
        let mark = self.mark("gathering from all ranks", all.len() as u64)?;
        self.enqueue_watched(&mark, timeout, &stream, |stream| {
            self.comm().all_gather(&mine, &all, DataType::U8, stream)
        })?;
        self.synchronize(&stream, timeout)
            .context(|| format!("rank {}: waiting for all ranks", self.rank()))?;
        let mut gathered = vec![0_u8; all.len()];
        all.read(&mut gathered)?;
        Ok(gathered)
    }

    /// Waits until what was enqueued through this world is done, at most `timeout`.
    ///
    /// A failure on the stream that it was given shows there, not here.
    pub(crate) fn drain(&self, timeout: Duration) -> Result<()> {
        self.check()?;
        let stream = Stream::new(self.device())?;
        stream.wait(&lock(&self.inner.work.order).last)?;
        self.synchronize(&stream, timeout)
    }

    /// Waits until nothing that was enqueued runs any more, at most `timeout`; whether it failed does not matter.
    fn settle(&self, timeout: Duration) -> Result<()> {
        let stream = Stream::new(self.device())?;
        stream.wait(&lock(&self.inner.work.order).last)?;
        for stream in [
            &stream,
            &self.inner.work.kernel_stream,
            &self.inner.work.scalar_stream,
        ] {
            match stream.synchronize_timeout(timeout) {
                Err(error) if error.kind() == ErrorKind::Timeout => return Err(error),
                Err(error) => log::warn!("rank {}: {error}", self.rank()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Waits until what `stream` holds is done, at most `timeout`. The first failure of that work or of the world's own
    /// streams, or a timeout, poisons the world and frees what it holds, as far as the library allows.
    pub(crate) fn synchronize(&self, stream: &Stream, timeout: Duration) -> Result<()> {
        self.check()?;
        let inner = &self.inner;
        let start = Instant::now();
        let streams = [stream, &inner.work.kernel_stream, &inner.work.scalar_stream];
        let result = streams.into_iter().try_for_each(|stream| {
            inner
                .wait_for(stream, start, timeout)
                .context(|| format!("rank {}: waiting for its work to end", inner.rank))
        });
        let Err(error) = result else {
            return Ok(());
        };
        let error = inner.cause(&error).unwrap_or(error);
        inner
            .work
            .watch
            .poison(&error, error.kind() == ErrorKind::Timeout);
        inner.release();
        if !matches!(stream.query(), Ok(true) | Err(_)) {
            // What it holds waits for ranks that never come; a stream that has failed keeps saying so.
            if let Err(error) = stream.abort() {
                log::warn!("rank {}: {error}", inner.rank);
            }
            inner.end_comms();
        }
        // What the watchdog found says more than that work was dropped.
        Err(inner.work.watch.failure().unwrap_or(error))
    }

    /// The first failure, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        self.inner.work.watch.check()
    }

    /// The health of the world.
    pub(super) fn watch(&self) -> &Watch {
        &self.inner.work.watch
    }

    pub(crate) fn shape(&self) -> Shape {
        self.inner.shape
    }

    pub(crate) fn comm(&self) -> &Comm {
        &self.inner.comm
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.inner.work.kernels
    }

    /// The communicator of a group that this rank is in, made at the first request.
    ///
    /// All members must ask for their groups in the same order.
    pub(crate) fn group(&self, group: Group) -> Result<Arc<Comm>> {
        let mut groups = lock(&self.inner.groups);
        if let Some(comm) = groups.get(&group) {
            return Ok(Arc::clone(comm));
        }
        let members: Vec<u32> = group.ranks().map(|rank| self.rank_in_root(rank)).collect();
        let config = CommConfig {
            // Only scalar records pass through; the vendor's default would take 400 MB of device memory.
            buffer_mb: Some(1),
            ..CommConfig::default()
        };
        let purpose = format!("{} scalars", self.inner.comm.name());
        let comm = self.root().sub(&purpose, &members, &config)?;
        let comm = Arc::new(comm);
        groups.insert(group, Arc::clone(&comm));
        Ok(comm)
    }

    /// The world whose communicator can be split: HCCL splits no sub-communicator again.
    fn root(&self) -> &World {
        match &self.inner.origin {
            Some(origin) => &origin.root,
            None => self,
        }
    }

    /// What a rank of this world is in the root.
    fn rank_in_root(&self, rank: u32) -> u32 {
        let Some(origin) = &self.inner.origin else {
            return rank;
        };
        // Callers pass ranks of this world only.
        let known = origin.ranks.get(rank as usize);
        known.copied().unwrap_or(u32::MAX)
    }

    /// The communicator of `members`, ranks of this root with this one among them.
    fn sub(&self, purpose: &str, members: &[u32], config: &CommConfig) -> Result<Comm> {
        let rank = self.rank();
        let index = members.iter().position(|&member| member == rank);
        let index = index
            .and_then(|index| u32::try_from(index).ok())
            .ok_or_else(|| {
                Error::invalid(format!(
                    "rank {rank} is not in the group of ranks {members:?}"
                ))
            })?;
        let digest = group_digest(self.inner.comm.name(), purpose, members);
        let config = CommConfig {
            name: Some(format!("adasum_{}", hex(&digest))),
            ..config.clone()
        };
        let id = digest
            .iter()
            .take(8)
            .fold(0, |id, &byte| id << 8 | u64::from(byte));
        let comm = self.inner.comm.sub(members, id, index, &config);
        comm.context(|| format!("rank {rank}: group of ranks {members:?}"))
    }

    /// An operation of all ranks, for those who watch.
    pub(super) fn mark(&self, operation: &str, bytes: u64) -> Result<Arc<Mark>> {
        let others = (0..self.size()).filter(|&rank| rank != self.rank());
        Ok(Arc::new(Mark {
            operation: operation.to_owned(),
            peers: others.collect(),
            bytes,
            done: Event::new(self.device())?,
        }))
    }

    /// Lets `work` enqueue one operation on `stream`, behind all that went through this world before. A failure, or no
    /// end within `timeout`, poisons the world.
    pub(super) fn enqueue_watched(
        &self,
        mark: &Arc<Mark>,
        timeout: Duration,
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<()> {
        let watch = &self.inner.work.watch;
        self.in_order(stream, |_| {
            watch.begin(&[Arc::clone(mark)].into(), timeout);
            {
                let _call = watch.call(mark, 0);
                work(stream)?;
            }
            stream.record(&mark.done)?;
            watch.end(stream)
        })
    }

    /// Lets `work` enqueue what waits for no other rank on `stream`, behind all that went through this world before. A
    /// failure poisons the world.
    pub(super) fn enqueue(
        &self,
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<()> {
        self.in_order(stream, |_| work(stream))
    }

    /// Lets `work` enqueue on the streams of the world and on `stream`, which must wait for all of it in the end. A
    /// failure poisons the world.
    pub(crate) fn enqueue_lanes(
        &self,
        stream: &Stream,
        work: impl FnOnce(&Lanes<'_>) -> Result<()>,
    ) -> Result<()> {
        let lanes = Lanes {
            payload: stream,
            kernels: &self.inner.work.kernel_stream,
            scalars: &self.inner.work.scalar_stream,
        };
        self.in_order(stream, |order| {
            // Nobody else waits for these, and they would keep every buffer that a caller ever gave.
            lanes.kernels.release_if_done();
            lanes.scalars.release_if_done();
            stream.record(&order.start)?;
            lanes.kernels.wait(&order.start)?;
            lanes.scalars.wait(&order.start)?;
            work(&lanes)
        })
    }

    fn in_order(&self, stream: &Stream, work: impl FnOnce(&Order) -> Result<()>) -> Result<()> {
        let order = lock(&self.inner.work.order);
        self.check()?;
        stream
            .wait(&order.last)
            .and_then(|()| work(&order))
            .and_then(|()| stream.record(&order.last))
            .map_err(|error| {
                self.fail(&error);
                // Where the watchdog has ended a call that waited, it knows why.
                self.inner.work.watch.failure().unwrap_or(error)
            })
    }

    /// Makes every later call fail with `error` and frees what the world holds.
    pub(super) fn fail(&self, error: &Error) {
        self.inner.work.watch.poison(error, false);
        self.inner.release();
    }
}

impl Inner {
    /// Waits for a stream, in pieces: the watchdog may find earlier that nothing will come.
    fn wait_for(&self, stream: &Stream, start: Instant, timeout: Duration) -> Result<()> {
        const PIECE: Duration = Duration::from_millis(20);
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            match stream.synchronize_timeout(left.min(PIECE)) {
                Err(error) if error.kind() == ErrorKind::Timeout => {}
                other => return other,
            }
            if let Some(found) = self.work.watch.failure() {
                return Err(found);
            }
            if left.is_zero() {
                return Err(self.work.watch.stall(start.elapsed()));
            }
        }
    }

    /// A failure of the world's own streams: where the caller's stream was stopped for it, this says why.
    fn cause(&self, error: &Error) -> Option<Error> {
        // A failed stream drops what it holds, which takes a moment; a stall has lasted long enough.
        let patience = match error.kind() {
            ErrorKind::Timeout => Duration::ZERO,
            _ => Duration::from_millis(500),
        };
        let streams = [
            ("kernels", &self.work.kernel_stream),
            ("exchange of scalars", &self.work.scalar_stream),
        ];
        streams.into_iter().find_map(|(name, stream)| {
            let failed = stream.synchronize_timeout(patience).err()?;
            let failed = failed.context(format!("rank {}: {name}", self.rank));
            (failed.kind() != ErrorKind::Timeout).then_some(failed)
        })
    }

    /// Gives up what a failed world holds: work on its own streams, and communicators that no queued work uses. Also
    /// frees threads that wait in a call of HCCL.
    fn release(&self) {
        if let Some(origin) = &self.origin {
            return origin.root.inner.release();
        }
        for stream in [&self.work.kernel_stream, &self.work.scalar_stream] {
            if let Err(error) = stream.abort() {
                log::warn!("rank {}: {error}", self.rank);
            }
        }
        self.end_comms();
    }

    fn end_comms(&self) {
        if let Some(origin) = &self.origin {
            return origin.root.inner.end_comms();
        }
        let parts: Vec<Arc<Inner>> = lock(&self.parts)
            .live
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for part in parts {
            part.end_own_comms();
        }
        self.end_own_comms();
    }

    fn end_own_comms(&self) {
        let groups: Vec<Arc<Comm>> = lock(&self.groups).values().cloned().collect();
        let groups = groups.iter().map(|comm| comm.abort());
        for ended in groups.chain([self.comm.abort()]) {
            if let Err(error) = ended {
                log::info!("rank {}: not yet: {error}", self.rank);
            }
        }
    }

    fn stop_watchdog(&self) {
        if self.origin.is_some() {
            return;
        }
        self.work.watch.stop();
        let thread = lock(&self.watchdog).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there is a bug there; the world ends all the same.
            let _ = thread.join();
        }
    }

    /// Destroys the communicators, those of groups first.
    fn end(mut self) -> Result<()> {
        let groups = std::mem::take(
            self.groups
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for comm in groups.into_values() {
            comm.abort()?;
        }
        self.comm.abort()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop_watchdog();
    }
}

/// The shape of `size` ranks with `locals` a server.
fn servers_of(size: u32, locals: u32) -> Result<Shape> {
    if locals == 0 || !size.is_multiple_of(locals) {
        return Err(Error::invalid(format!(
            "{size} ranks are not a whole number of servers of {locals}"
        )));
    }
    Shape::new(size / locals, locals)
}

fn group_digest(world: &str, purpose: &str, members: &[u32]) -> [u8; 20] {
    let mut hash = Sha1::new();
    hash.update(world.as_bytes());
    hash.update(b" ");
    hash.update(purpose.as_bytes());
    for member in members {
        hash.update(member.to_le_bytes());
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A panic while a lock was held leaves nothing half-done here: each guarded value is changed in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
