//! This rank's live membership of a world: device, stream, communicators.
//!
//! Here is how a world is joined and left. `part` splits it, `order` enqueues its work, `end` waits for that, ends and frees
//! what failed. `watch` looks for stalls, `trace` writes when what ran.

mod agreement;
mod end;
mod hosts;
mod join;
mod order;
mod part;
mod profile;
pub(super) mod report;
pub(super) mod shared;
mod step_ends;
pub(super) mod streams;
pub(super) mod trace;
pub(super) mod watch;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::order::Order;
use self::shared::SharedBuffers;
use crate::ascend::{
    Comm, CommConfig, DataType, Device, Event, Queued, ReduceOp, RootInfo, Span, Stream,
};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::kernel::{Kernels, Reason};
use crate::plan::{Group, Shape};
use crate::reduce::options::Options;
use crate::reduce::options::settings::Settings;
use crate::reduce::world::hosts::HOST_BYTES;
use crate::reduce::world::trace::Trace;
use crate::reduce::world::watch::{Watch, WatchedStage};
use crate::topo::Cluster;
#[cfg(doc)]
use crate::topo::Meeting;

/// Limit on operations that come with no other: that of a reduction, if nothing else is said.
const PATIENCE: Duration = Options::STALL_TIMEOUT;

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
    groups: Mutex<HashMap<(Group, Purpose), Arc<Comm>>>,
    comm: Arc<Comm>,
    parts: Mutex<Parts>,
    shared: Mutex<SharedBuffers>,
    /// Calls that enqueued something on all of its ranks; they are the same there.
    calls: AtomicU64,
    /// Of [`World::barrier`] and [`World::all_reduce_sum`], from their first calls on: a stream keeps the event of a stage.
    barrier: OnceLock<Arc<WatchedStage>>,
    sum: OnceLock<Arc<WatchedStage>>,
    origin: Option<Origin>,
    work: Arc<Work>,
}

/// What a communicator of some of a world's ranks is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Records and weights of tensors, on the stream of scalars.
    Scalars,
    /// Parts of vectors, on the stream of payload.
    Vectors,
    /// Waits before ranks read each other's buffers, on the stream of payload.
    Barriers,
}

/// The parts that were made of a world.
#[derive(Default)]
struct Parts {
    /// How often a part with these members was made.
    made: HashMap<Vec<u32>, u64>,
    /// Parts that may still be in use.
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
    /// Where guards write why they fail.
    reason: Reason,
    /// For kernels and for scalar collectives.
    kernel_stream: Stream,
    scalar_stream: Stream,
    order: Mutex<Order>,
    /// What was enqueued, on whichever streams.
    queued: Queued,
    /// Streams that threads wait for, whatever they hold: a failure ends those waits.
    waited: Queued,
    watch: Arc<Watch>,
    trace: Option<Trace>,
}

impl Work {
    /// What rank `rank` of `size` needs of its own device. Made before it joins the others: one that cannot go on must not leave
    /// them in a world without it.
    fn new(device: &Device, rank: u32, size: u32) -> Result<Self> {
        let order = Order {
            last: Event::new(device)?,
            start: Event::new(device)?,
            broken: false,
        };
        Ok(Work {
            kernels: Kernels::load(device)?,
            reason: Reason::new(device)?,
            kernel_stream: Stream::new(device)?,
            scalar_stream: Stream::new(device)?,
            order: Mutex::new(order),
            queued: Queued::default(),
            waited: Queued::default(),
            watch: Watch::new(device, rank)?,
            trace: Trace::from_env(device, rank, size)?,
        })
    }
}

impl Inner {
    /// The ranks that `comm` connects, without a watchdog.
    fn new(comm: Comm, shape: Shape, work: Arc<Work>, origin: Option<Origin>) -> Self {
        Inner {
            device: comm.device().clone(),
            shape,
            rank: comm.rank(),
            watchdog: Mutex::default(),
            groups: Mutex::default(),
            comm: Arc::new(comm),
            parts: Mutex::default(),
            shared: Mutex::default(),
            calls: AtomicU64::default(),
            barrier: OnceLock::new(),
            sum: OnceLock::new(),
            origin,
            work,
        }
    }
}

impl World {
    /// Joins the world of a rank table as the cluster's own rank.
    ///
    /// Collective: every rank of the table must call it. Opens the device that the table gives this rank. Servers and
    /// the ranks of each are those of the table.
    ///
    /// HCCL makes the world from the table itself, but on Ascend 950 and for tables of version 2.0: there ranks meet by root
    /// info, where [`Meeting::from_env`] says.
    ///
    /// # Errors
    /// If servers have different numbers of devices (the message shows how many each has), or the world cannot be made.
    pub fn from_cluster(cluster: &Cluster) -> Result<Self> {
        World::of_cluster(cluster, &Settings::default())
    }

    /// As [`World::from_cluster`], but with `locals` ranks a server, whatever the table says: 1 makes each rank a server
    /// of its own, so that AdaSum combines all of them.
    ///
    /// # Errors
    /// If the ranks are not a whole number of such servers.
    pub fn from_cluster_with(cluster: &Cluster, locals: u32) -> Result<Self> {
        let settings = Settings {
            devices_per_server: Some(locals),
            ..Settings::default()
        };
        World::of_cluster(cluster, &settings)
    }

    /// With the ranks a server of `settings`, else of the table; its creation timeout counts where ranks meet by root info.
    pub(crate) fn of_cluster(cluster: &Cluster, settings: &Settings) -> Result<Self> {
        let locals = settings.devices_per_server;
        let locals = locals.map_or_else(|| cluster.locals(), Ok)?;
        let (rank, size) = (cluster.rank(), cluster.size());
        report::joining(rank, size, || {
            let shape = servers_of(size, locals)?;
            let device = Device::open(World::device_of(cluster)?)?;
            if join::needs_root_info(cluster.table(), &device)? {
                return join::by_root_info(device.id(), shape, rank, settings);
            }
            let work = Work::new(&device, rank, size)?;
            let (table, config) = (cluster.table_path(), CommConfig::default());
            let comm = Comm::from_rank_table(&device, table, rank, &config)
                .context(|| format!("rank {rank} of {size}"))?;
            World::new(comm, shape, work)
        })
    }

    /// The number by which this process opens the device of its rank: what ACL says of the number in the rank table. Where ACL
    /// cannot say (before CANN 8.5) `DEVICE_ID` counts, then the number in the table.
    ///
    /// # Errors
    /// If this process does not see the device, or `DEVICE_ID` says another one.
    pub fn device_of(cluster: &Cluster) -> Result<i32> {
        let (rank, said) = (cluster.rank(), cluster.local_device());
        let physical = cluster.device_id(rank)?;
        let id = Device::id_of_physical(physical).context(|| {
            let table = cluster.table_path().display();
            format!("{table} gives rank {rank} device {physical} of its server")
        })?;
        match (id, said) {
            (None, said) => Ok(said.unwrap_or(physical)),
            (Some(id), Some(said)) if said != id && said != physical => {
                let own = match id == physical {
                    true => String::new(),
                    false => format!(", which is device {id} of this process"),
                };
                Err(Error::invalid(format!(
                    "DEVICE_ID is {said}, but {} says {physical} for rank {rank}{own}",
                    cluster.table_path().display()
                )))
            }
            (Some(id), _) => Ok(id),
        }
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
        report::joining(rank, size, || {
            let work = Work::new(&device, rank, size)?;
            World::new(comm_at(&device, root, size, rank)?, shape, work)
        })
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
        servers_of(size, 1)?;
        report::joining(rank, size, || {
            let work = Work::new(&device, rank, size)?;
            let comm = comm_at(&device, root, size, rank)?;
            let all = agreement::gather_by(&comm, &hosts::encode(host), timeout)
                .context(|| format!("rank {rank}: waiting for the hosts of all ranks"))?;
            let (hosts, _) = all.as_chunks::<HOST_BYTES>();
            World::new(comm, hosts::shape(hosts)?, work)
        })
    }

    /// The world that `comm` connects, which does its work with `work`.
    fn new(comm: Comm, shape: Shape, work: Work) -> Result<Self> {
        let watch = Arc::clone(&work.watch);
        let inner = Arc::new(Inner::new(comm, shape, Arc::new(work), None));
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
        report::Report::Joined { rank: inner.rank }.send();
        Ok(World { inner })
    }

    /// The number of this rank.
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
    /// Collective and stream-ordered. Ranks that do not come for half an hour fail the world. The first barrier of a world builds
    /// links: it waits on the host for the other ranks, at most `HCCL_CONNECT_TIMEOUT` (120 s), and fails the world if they do not
    /// come.
    pub fn barrier(&self, stream: &Stream) -> Result<()> {
        let watched = self.kept_stage(&self.inner.barrier, "barrier")?;
        self.enqueue_watched(watched, PATIENCE, stream, |stream| {
            self.inner.comm.barrier(stream)
        })
    }

    /// Sums `values` (f32) over all ranks in place; for figures like a loss, not for AdaSum.
    ///
    /// Collective and stream-ordered. Makes no claim of determinism: HCCL chooses the order of the sum. Ranks that do not come for
    /// half an hour fail the world; at the first sum as at the first [`World::barrier`].
    pub fn all_reduce_sum(&self, values: &Span, stream: &Stream) -> Result<()> {
        let watched = self.kept_stage(&self.inner.sum, "sum over all ranks")?;
        self.enqueue_watched(watched, PATIENCE, stream, |stream| {
            let comm = &self.inner.comm;
            comm.all_reduce(values, values, DataType::F32, ReduceOp::Sum, stream)
        })
    }

    fn kept_stage<'a>(
        &self,
        place: &'a OnceLock<Arc<WatchedStage>>,
        name: &str,
    ) -> Result<&'a Arc<WatchedStage>> {
        if let Some(made) = place.get() {
            return Ok(made);
        }
        let made = self.watched(name, 0)?;
        Ok(place.get_or_init(|| made))
    }

    /// Leaves the world, after what was enqueued is done or `timeout` is over; a world that has failed is left at once.
    /// Every reducer and clone must be gone; all ranks should call it. Afterwards the process can join a new world. Where ranks
    /// share memory ([`Form::Shared`](crate::plan::Form::Shared)) it waits for all of them.
    ///
    /// # Errors
    /// If a reducer or clone is left, work does not end, or a communicator cannot be destroyed. If other ranks do not come to leave
    /// shared memory, the world is left all the same, and what this rank has shared stays in use until the process ends.
    pub fn finish(self, timeout: Duration) -> Result<()> {
        let in_use = |world: &Arc<Inner>| {
            let others = Arc::strong_count(world) - 1;
            let message = format!("{others} reducers or clones still use the world");
            Error::new(ErrorKind::InvalidState, message)
        };
        let mut left = Ok(());
        match self.check() {
            // Their buffers are still shared, and watched.
            Ok(()) if Arc::strong_count(&self.inner) > 1 => return Err(in_use(&self.inner)),
            Ok(()) => {
                let start = Instant::now();
                self.settle(timeout)?;
                left = self.leave_shared(timeout.saturating_sub(start.elapsed()));
            }
            Err(_) => self.inner.release(),
        }
        self.inner.stop_watchdog();
        let inner = Arc::try_unwrap(self.inner).map_err(|shared| in_use(&shared))?;
        let ended = inner.end();
        left.and(ended)
    }

    pub(crate) fn shape(&self) -> Shape {
        self.inner.shape
    }

    /// The communicator of all ranks.
    pub(crate) fn comm(&self) -> &Arc<Comm> {
        &self.inner.comm
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.inner.work.kernels
    }

    pub(super) fn reason(&self) -> &Reason {
        &self.inner.work.reason
    }
}

/// The communicator that one rank made `root` for.
fn comm_at(device: &Device, root: &RootInfo, size: u32, rank: u32) -> Result<Comm> {
    Comm::from_root_info(device, root, size, rank, &CommConfig::default())
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

/// A panic while a lock was held leaves nothing half-done here: each guarded value is changed in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
