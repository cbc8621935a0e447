//! Communicators: the ranks of a job or a part of them, and what they send each other.

use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::buffer::Span;
use super::check::{self, check};
use super::config::{CommConfig, RawConfig};
use super::device::Device;
use super::handle::Handle;
use super::queued::Queued;
use super::stream::{Remains, Stream, keep};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::sys::Backend;
use crate::sys::acl::aclrtStream;
use crate::sys::hccl::{
    COMM_NAME_MAX_LENGTH, HCCL_ROOT_INFO_BYTES, HcclComm, HcclResult, HcclRootInfo,
};

/// Size of a [`RootInfo`].
pub const ROOT_INFO_BYTES: usize = HCCL_ROOT_INFO_BYTES as usize;

/// What one rank hands to all others so that they find each other. The process that made it must live and join.
#[derive(Clone, PartialEq, Eq)]
pub struct RootInfo(Box<[u8; ROOT_INFO_BYTES]>);

impl RootInfo {
    /// A new one, served by this process. Wraps `HcclGetRootInfo`.
    ///
    /// # Errors
    /// If no network interface serves it.
    pub fn new(device: &Device) -> Result<RootInfo> {
        let backend = device.ready()?;
        let mut bytes = Box::new([0; ROOT_INFO_BYTES]);
        let info = bytes.as_mut_ptr().cast::<HcclRootInfo>();
        // SAFETY: the structure is bytes throughout, and so many are there to be written.
        unsafe { check!(backend.hccl.HcclGetRootInfo(info)) }?;
        Ok(RootInfo(bytes))
    }

    /// The one that another rank gave away as bytes.
    ///
    /// # Errors
    /// If they are not [`ROOT_INFO_BYTES`].
    pub fn from_bytes(bytes: &[u8]) -> Result<RootInfo> {
        match <[u8; ROOT_INFO_BYTES]>::try_from(bytes) {
            Ok(bytes) => Ok(RootInfo(Box::new(bytes))),
            Err(_) => Err(Error::invalid(format!(
                "root info has {} bytes instead of {ROOT_INFO_BYTES}",
                bytes.len()
            ))),
        }
    }

    /// To be given to the other ranks.
    pub fn as_bytes(&self) -> &[u8; ROOT_INFO_BYTES] {
        &self.0
    }

    fn as_ptr(&self) -> *const HcclRootInfo {
        self.0.as_ptr().cast()
    }
}

const _: () =
    assert!(size_of::<HcclRootInfo>() == ROOT_INFO_BYTES && align_of::<HcclRootInfo>() == 1);

impl fmt::Debug for RootInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootInfo")
    }
}

/// A group of ranks that exchange data. All of them make the same calls in the same order.
///
/// HCCL wants the calls of all communicators of a device in one order, the same on every rank: that is the caller's duty.
/// Calls enqueue and return, except that the first of a kind or with a peer builds links and waits for the other side.
/// Failures of queued work appear when the stream is synchronised. Wraps `HcclComm`, destroyed when dropped.
#[derive(Debug)]
pub struct Comm {
    inner: Arc<Inner>,
    rank: u32,
    size: u32,
    name: String,
}

/// How a communicator ends. Locked while it does: who comes meanwhile waits until HCCL works on nothing of it any more.
#[derive(Debug, Default)]
struct End {
    /// The handle is no good any more: HCCL was asked, and was not busy.
    gone: bool,
    /// And has said that it is done.
    done: bool,
    held: Vec<Arc<Vec<Remains>>>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    comm: Handle<HcclComm>,
    /// Somebody else's: never split and never destroyed here.
    borrowed: bool,
    /// Set once it is to end: later calls are kept out.
    closed: AtomicBool,
    end: Mutex<End>,
    /// Held while a call uses the communicator: HCCL wants them one at a time.
    turn: Mutex<()>,
    /// Operations that may still be queued: HCCL frees links and buffers under them, too.
    queued: Queued,
    /// Sub-communicators end before what they were split from.
    parent: Option<Arc<Inner>>,
}

/// Creation of communicators.
impl Comm {
    /// The communicator of all ranks of the rank table `table`. Collective. Wraps `HcclCommInitClusterInfoConfig`.
    ///
    /// # Errors
    /// If the table is wrong or a rank does not come within the connection timeout.
    pub fn from_rank_table(
        device: &Device,
        table: &Path,
        rank: u32,
        config: &CommConfig,
    ) -> Result<Comm> {
        let absolute = table
            .canonicalize()
            .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", table.display())))?;
        let path = CString::new(absolute.as_os_str().as_bytes())
            .map_err(|_| Error::invalid(format!("{} has a zero byte", table.display())))?;
        let backend = device.ready()?;
        let mut config = RawConfig::new(&backend, config)?;
        let (path, config) = (path.as_ptr(), config.as_mut_ptr());
        let comm = create(device, None, |comm| {
            // SAFETY: a C string and a configuration that outlive the call, and a place to write one handle to.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclCommInitClusterInfoConfig(path, rank, config, comm)
                )
            }
        })
        .map_err(one_table_world)
        .context(|| format!("{}, rank {rank}", table.display()))?;
        Comm::expected(comm, rank, None)
    }

    /// The communicator of `size` ranks that share `root`. Collective. Wraps `HcclCommInitRootInfoConfig`.
    ///
    /// # Errors
    /// If `rank` is not below `size` or a rank does not come within the connection timeout.
    pub fn from_root_info(
        device: &Device,
        root: &RootInfo,
        size: u32,
        rank: u32,
        config: &CommConfig,
    ) -> Result<Comm> {
        if rank >= size {
            return Err(Error::invalid(format!(
                "rank {rank} is not below the size {size}"
            )));
        }
        let backend = device.ready()?;
        let mut config = RawConfig::new(&backend, config)?;
        let (root, config) = (root.as_ptr(), config.as_mut_ptr());
        let comm = create(device, None, |comm| {
            // SAFETY: structures that outlive the call, and a place to write one handle to.
            unsafe {
                check!(
                    backend
                        .hccl
                        .HcclCommInitRootInfoConfig(size, root, rank, config, comm)
                )
            }
        })
        .context(|| format!("rank {rank} of {size}"))?;
        Comm::expected(comm, rank, Some(size))
    }

    /// The communicator of `members`, ranks of this one in ascending order, of which this rank is `members[index]`.
    /// Only members call; all with the same `id` and configuration. Wraps `HcclCreateSubCommConfig`.
    ///
    /// # Errors
    /// If this one is itself a part, or the members are not as said: HCCL checks neither order nor index.
    pub fn sub(&self, members: &[u32], id: u64, index: u32, config: &CommConfig) -> Result<Comm> {
        self.check_members(members, index)?;
        let backend = self.inner.device.ready()?;
        let mut config = RawConfig::new(&backend, config)?;
        let config = config.as_mut_ptr();
        let mut members = members.to_vec();
        let size = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let members = members.as_mut_ptr();
        let mut parent = self.inner.comm.0;
        let _turn = self.inner.turn();
        self.inner.require_live()?;
        let comm = create(&self.inner.device, Some(Arc::clone(&self.inner)), |comm| {
            // SAFETY: the list has `size` ranks; it, the handle and the configuration outlive the call.
            unsafe {
                check!(backend.hccl.HcclCreateSubCommConfig(
                    &mut parent,
                    size,
                    members,
                    id,
                    index,
                    config,
                    comm
                ))
            }
        })
        .context(|| format!("rank {} of communicator {}", self.rank, self.name))?;
        Comm::expected(comm, index, Some(size))
    }

    /// A communicator that somebody else made and ends: here it is only used, never split and never destroyed. Wraps
    /// `HcclGetRankId` and `HcclGetRankSize`.
    ///
    /// # Errors
    /// If the handle is null or HCCL does not know it.
    ///
    /// # Safety
    /// `comm` is null or a live `HcclComm` of `device`, which outlives the result, and nobody else uses it while calls on
    /// the result or work that they queued are under way.
    pub unsafe fn borrow(device: &Device, comm: *mut c_void) -> Result<Comm> {
        if comm.is_null() {
            return Err(Error::invalid("the communicator to borrow is null"));
        }
        Comm::new(Inner::new(device, HcclComm(comm), true, None))
    }

    fn check_members(&self, members: &[u32], index: u32) -> Result<()> {
        if self.inner.borrowed {
            let message = format!("{} is borrowed: its owner alone may split it", self.name);
            return Err(Error::new(ErrorKind::InvalidState, message));
        }
        if self.inner.parent.is_some() {
            let message = format!(
                "{} is a sub-communicator: HCCL does not split it again",
                self.name
            );
            return Err(Error::unsupported(message));
        }
        let ascending = members.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || members.last().is_none_or(|last| *last >= self.size) {
            return Err(Error::invalid(format!(
                "members {members:?} are not ascending ranks below {}",
                self.size
            )));
        }
        if members.get(index as usize) != Some(&self.rank) {
            return Err(Error::invalid(format!(
                "member {index} of {members:?} is not this rank, {}",
                self.rank
            )));
        }
        Ok(())
    }

    /// A communicator that HCCL must know under the rank, and as of the size, that it was made with.
    fn expected(inner: Inner, rank: u32, size: Option<u32>) -> Result<Comm> {
        let comm = Comm::new(inner)?;
        let size = size.unwrap_or(comm.size);
        if (comm.rank, comm.size) != (rank, size) {
            return Err(Error::new(
                ErrorKind::Hccl,
                format!(
                    "HCCL says that this is rank {} of {} in communicator {}, not {rank} of {size}",
                    comm.rank, comm.size, comm.name
                ),
            ));
        }
        Ok(comm)
    }

    /// Asks HCCL for rank, size and name.
    fn new(inner: Inner) -> Result<Comm> {
        let backend = inner.device.ready()?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a live communicator and a live local to write one number to.
        unsafe { check!(backend.hccl.HcclGetRankId(inner.comm.0, &mut rank)) }?;
        // SAFETY: as above.
        unsafe { check!(backend.hccl.HcclGetRankSize(inner.comm.0, &mut size)) }?;
        drop(backend);
        let name = comm_name(&inner)?;
        Ok(Comm {
            inner: Arc::new(inner),
            rank,
            size,
            name,
        })
    }

    /// Ends the communicator. Dropping it does the same, but can only log a failure. Wraps `HcclCommDestroy`.
    ///
    /// # Errors
    /// If sub-communicators of it live, or work of it may be on a stream that was neither synchronised nor aborted since.
    pub fn destroy(self) -> Result<()> {
        let name = self.name;
        let Some(inner) = Arc::into_inner(self.inner) else {
            let message = format!("communicator {name} has live sub-communicators");
            return Err(Error::new(ErrorKind::InvalidState, message));
        };
        inner.destroy().context(|| format!("communicator {name}"))
    }

    /// Ends the communicator also while a call of another thread builds links, which then fails: the only way out of a call
    /// that waits for a peer. Later calls fail. Waits while another thread ends it (on A3 up to 50 s after a failure of the device: hcomm,
    /// hccl_communicator.cc:750). Wraps `HcclCommDestroy`.
    ///
    /// # Errors
    /// If work of it may be on a stream that was neither synchronised nor aborted since, or another thread is in any other
    /// call of it (`HCCL_E_AGAIN`); it can be tried again, and is when the object is dropped.
    pub fn abort(&self) -> Result<()> {
        // Whoever is not stuck in a call is kept out of one.
        let _turn = self.inner.turn.try_lock();
        self.inner
            .destroy()
            .context(|| format!("communicator {}", self.name))
    }

    /// Keeps what operations used that were dropped from their streams, until the communicator has ended: they may go on until then. If HCCL
    /// never says that it has, it is never freed.
    pub fn hold(&self, used: &Arc<Vec<Remains>>) {
        let mut end = self.inner.end();
        if !end.done {
            end.held.push(Arc::clone(used));
        }
    }

    /// Takes note that all operations have ended, as an event behind them says.
    pub fn settled(&self) {
        self.inner.queued.end();
    }
}

fn create(
    device: &Device,
    parent: Option<Arc<Inner>>,
    call: impl FnOnce(&mut HcclComm) -> Result<()>,
) -> Result<Inner> {
    let mut comm = HcclComm(null_mut());
    call(&mut comm)?;
    Ok(Inner::new(device, comm, false, parent))
}

/// What a refused rank table may mean beside a fault of the table.
fn one_table_world(error: Error) -> Error {
    let code = error.vendor_code().map(|vendor| vendor.code);
    if code != i32::try_from(HcclResult::HCCL_E_UNAVAIL.0).ok() {
        return error;
    }
    error.context(
        "the table does not fit this process, or another library has made a world from a table on this device \
         already, of which HCCL allows one (then adopt its communicator)",
    )
}

fn comm_name(inner: &Inner) -> Result<String> {
    let backend = inner.device.ready()?;
    let mut name: [c_char; COMM_NAME_MAX_LENGTH as usize] = [0; COMM_NAME_MAX_LENGTH as usize];
    let buffer = name.as_mut_ptr();
    // SAFETY: a live communicator; the vendor asks for this many bytes.
    unsafe { check!(backend.hccl.HcclGetCommName(inner.comm.0, buffer)) }?;
    if let Some(last) = name.last_mut() {
        *last = 0;
    }
    Ok(check::text(name.as_ptr()))
}

impl Inner {
    fn new(device: &Device, comm: HcclComm, borrowed: bool, parent: Option<Arc<Inner>>) -> Self {
        Inner {
            device: device.clone(),
            comm: Handle(comm),
            borrowed,
            closed: AtomicBool::default(),
            end: Mutex::default(),
            turn: Mutex::default(),
            queued: Queued::default(),
            parent,
        }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data that a panic could leave half changed.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> MutexGuard<'_, End> {
        // Each change is one step.
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without its turn: an end must not wait for peers.
    fn destroy(&self) -> Result<()> {
        let mut end = self.end();
        if self.borrowed || end.gone {
            return Ok(());
        }
        let before = self.closed.swap(true, Ordering::AcqRel);
        if !self.queued.has_ended() {
            self.closed.store(before, Ordering::Release);
            return Err(Error::new(
                ErrorKind::InvalidState,
                "operations of it may still be on a stream, and would lose their links and buffers",
            ));
        }
        let backend = self.device.ready()?;
        // SAFETY: created by this object; the marks above make this happen once, and keep later calls out.
        let ended = unsafe { check!(backend.hccl.HcclCommDestroy(self.comm.0)) };
        end.gone = !ended.as_ref().is_err_and(check::is_busy);
        end.done = ended.is_ok();
        if end.done {
            let held = std::mem::take(&mut end.held);
            drop(end);
            drop(held);
        }
        ended
    }

    /// An error once the communicator has ended.
    fn require_live(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "the communicator has ended",
            ));
        }
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.destroy() {
            log::warn!("communicator on {:?}: {error}", self.device);
        }
        std::mem::take(&mut self.end().held).leak();
    }
}

/// What a communicator is, and how calls are made.
impl Comm {
    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The name, the same on all ranks.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device whose memory it moves.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// What HCCL knows to have failed in the background. Success does not mean that no peer hangs. Wraps
    /// `HcclGetCommAsyncError`.
    ///
    /// # Errors
    /// The failure that the communicator has told, or that of the call.
    pub fn async_error(&self) -> Result<()> {
        let backend = self.inner.device.ready()?;
        self.inner.require_live()?;
        let mut found = HcclResult::HCCL_SUCCESS;
        // SAFETY: a live communicator and a live local to write one code to.
        unsafe {
            check!(
                backend
                    .hccl
                    .HcclGetCommAsyncError(self.inner.comm.0, &mut found)
            )
        }
        .and_then(|()| check::hccl(&backend, "HcclGetCommAsyncError", found))
        .context(|| self.describe("background error"))
    }

    /// Enqueues an operation on `spans`, unless the first of them is empty.
    pub(super) fn issue(
        &self,
        spans: &[&Span],
        stream: &Stream,
        call: impl FnOnce(&Backend, HcclComm, aclrtStream) -> Result<()>,
    ) -> Result<()> {
        // Empty on this side means empty on all: nobody waits for it.
        if spans.first().is_none_or(|span| span.is_empty()) {
            return Ok(());
        }
        self.issue_always(spans, stream, call)
    }

    pub(super) fn issue_always(
        &self,
        spans: &[&Span],
        stream: &Stream,
        call: impl FnOnce(&Backend, HcclComm, aclrtStream) -> Result<()>,
    ) -> Result<()> {
        let device = &self.inner.device;
        device.require_same(stream.device(), "the stream")?;
        stream.require_spans(spans.iter().copied())?;
        let _turn = self.inner.turn();
        self.inner.require_live()?;
        let used = spans.iter().filter_map(|span| keep(span));
        let called = stream.enqueue(used, |backend, stream| {
            call(backend, self.inner.comm.0, stream)
        });
        // Also after a failure: part of it may be queued.
        self.inner.queued.note(stream);
        called
    }

    pub(super) fn describe(&self, operation: &str) -> String {
        format!(
            "communicator {}, rank {} of {}: {operation}",
            self.name, self.rank, self.size
        )
    }
}
