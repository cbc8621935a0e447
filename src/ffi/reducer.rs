//! Reducers: one handle for all kinds, and what all kinds can do.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::arguments::{invalid, not_null, required, slice, slice_mut, spans, timeout};
use super::guard::{destroy, guard};
use super::mean::SparseKind;
use super::status::{Fault, adasum_status};
use super::streams::Streams;
use super::world::adasum_world;
use crate::ascend::Span;
use crate::plan::TensorSpec;
use crate::reduce::{
    DeltaWeightReducer, GradientReducer, MeanReducer, Overflow, OverflowVote, Settings, World,
};

/// Reduces what it was created for: the gradients of a fixed list of tensors (adasum_reducer_create), the change of weights
/// (adasum_reducer_create_delta), the mean over a group (adasum_reducer_create_mean), or rows (adasum_reducer_create_sparse).
/// One thread at a time: a call while another is inside is ADASUM_INVALID_STATE; only adasum_reducer_abort may come then.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_reducer {
    inner: Mutex<Inner>,
    /// Beside the lock, so that a thread that waits in a call can be freed.
    world: World,
}

pub(super) struct Inner {
    pub(super) kind: Kind,
    pub(super) streams: Streams,
    pub(super) specs: Vec<TensorSpec>,
    pub(super) vote: Option<OverflowVote>,
    /// Tells the world's handle that there is a reducer.
    _share: Arc<()>,
}

impl Inner {
    /// All tensors of the reducer, at the `count` addresses that messages call `name`.
    ///
    /// # Safety
    /// `addresses` points to `count` addresses, each of device memory of the whole tensor until the queued work is done.
    pub(super) unsafe fn tensors(
        &self,
        addresses: *const *mut c_void,
        count: usize,
        name: &str,
    ) -> Result<Vec<Span>, Fault> {
        // SAFETY: as promised by the caller.
        let addresses = unsafe { slice(addresses, count, name) }?;
        // SAFETY: as promised by the caller.
        unsafe { spans(&self.streams.device, self.specs.iter(), addresses, name) }
    }
}

/// What a reducer was created for.
pub(super) enum Kind {
    Gradient(GradientReducer),
    Delta(DeltaWeightReducer),
    Mean(MeanReducer),
    Sparse(SparseKind),
}

impl Kind {
    /// The error for a call that this kind does not have.
    pub(super) fn wrong(&self) -> Fault {
        let made = match self {
            Kind::Gradient(_) => "adasum_reducer_create",
            Kind::Delta(_) => "adasum_reducer_create_delta",
            Kind::Mean(_) => "adasum_reducer_create_mean",
            Kind::Sparse(_) => "adasum_reducer_create_sparse",
        };
        Fault::new(
            adasum_status::ADASUM_INVALID_STATE,
            format!("a reducer of {made} has no such call"),
        )
    }
}

/// A reducer that this thread is in. A panic in there gives up the world, because peers may be waiting.
pub(super) struct Entered<'a> {
    inner: MutexGuard<'a, Inner>,
    world: &'a World,
}

impl Entered<'_> {
    pub(super) fn world(&self) -> &World {
        self.world
    }
}

impl Deref for Entered<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.world.abort();
        }
    }
}

impl adasum_reducer {
    /// The handle at `reducer`, for this thread alone.
    ///
    /// # Safety
    /// `reducer` is NULL or live.
    pub(super) unsafe fn enter<'a>(reducer: *mut adasum_reducer) -> Result<Entered<'a>, Fault> {
        // SAFETY: as promised by the caller.
        let reducer = unsafe { required(reducer, "reducer") }?;
        let world = &reducer.world;
        match reducer.inner.try_lock() {
            Ok(inner) => Ok(Entered { inner, world }),
            Err(TryLockError::WouldBlock) => Err(Fault::new(
                adasum_status::ADASUM_INVALID_STATE,
                "another thread is using this reducer",
            )),
            Err(TryLockError::Poisoned(_)) => Err(Fault::new(
                adasum_status::ADASUM_POISONED,
                "an internal error in an earlier call made this reducer unusable",
            )),
        }
    }
}

/// What a reducer is created from, in `make`, which is given the world.
pub(super) struct Creation<'a> {
    pub(super) world: *const adasum_world,
    pub(super) settings: &'a Settings,
    pub(super) specs: Vec<TensorSpec>,
    pub(super) out: *mut *mut adasum_reducer,
}

impl Creation<'_> {
    /// Creates the reducer and gives it away.
    ///
    /// # Safety
    /// `world` is NULL or live; `out` is NULL or may be written to.
    pub(super) unsafe fn run(
        self,
        make: impl FnOnce(&World, &[TensorSpec]) -> Result<Kind, Fault>,
    ) -> Result<(), Fault> {
        // SAFETY: as promised by the caller.
        let handle = unsafe { required(self.world, "world") }?;
        let out = not_null(self.out, "out")?;
        let world = handle.get()?;
        let share = handle.share();
        let kind = make(&world, &self.specs)?;
        let votes = matches!(kind, Kind::Gradient(_) | Kind::Delta(_))
            && self.settings.overflow == Overflow::Vote;
        let vote = votes
            .then(|| OverflowVote::new(&world, &self.specs, self.settings.options.create_timeout));
        let inner = Inner {
            kind,
            streams: Streams::new(world.device()),
            specs: self.specs,
            vote: vote.transpose()?,
            _share: share,
        };
        let reducer = Box::new(adasum_reducer {
            inner: Mutex::new(inner),
            world,
        });
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(Box::into_raw(reducer)) };
        Ok(())
    }
}

/// Waits until what `stream` holds is done, at most `timeout_ms`, and looks at the world's own streams as well: the call to
/// make before results are used on the host. Any kind of reducer.
///
/// Local, but with the option checksum collective.
/// Errors: the first failure of that work, or ADASUM_TIMEOUT. Either poisons the world of the reducer.
///
/// # Safety
/// `reducer` is NULL or live; `stream` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_synchronize(
    reducer: *mut adasum_reducer,
    stream: *mut c_void,
    timeout_ms: u64,
) -> adasum_status {
    guard("adasum_reducer_synchronize", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let world = inner.world;
        let Inner { kind, streams, .. } = &mut *inner;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        match kind {
            Kind::Gradient(reducer) => reducer.synchronize(stream, limit)?,
            Kind::Delta(reducer) => reducer.synchronize(stream, limit)?,
            Kind::Mean(reducer) => reducer.synchronize(stream, limit)?,
            Kind::Sparse(_) => world.synchronize(stream, limit)?,
        }
        Ok(())
    })
}

/// Lets go of `stream`, which has no work of this reducer left in it, so that its owner may destroy it. Unknown streams
/// are fine. Local. Any kind of reducer.
///
/// # Safety
/// `reducer` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_forget_stream(
    reducer: *mut adasum_reducer,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_forget_stream", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let stream = not_null(stream, "stream")?;
        inner.streams.forget(stream);
        Ok(())
    })
}

/// Whether each tensor (in a delta reducer: its delta) was non-finite on any rank in the last reduction: 1 or 0, in the
/// order of creation; the same on all ranks. Waits for the reduction. Gradient, delta and mean reducers.
///
/// Local after AdaSum of several servers; else (means, sums, a single server) collective: all ranks call it after the same
/// reductions.
///
/// # Safety
/// `reducer` is NULL or live; `out_flags` points to `count` bytes that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_nonfinite(
    reducer: *mut adasum_reducer,
    out_flags: *mut u8,
    count: usize,
) -> adasum_status {
    guard("adasum_reducer_nonfinite", || {
        // SAFETY: as promised by the caller.
        let inner = unsafe { adasum_reducer::enter(reducer) }?;
        if count != inner.specs.len() {
            return Err(invalid(format!(
                "count is {count}, the reducer has {} tensors",
                inner.specs.len()
            )));
        }
        // SAFETY: as promised by the caller.
        let out = unsafe { slice_mut(out_flags, count, "out_flags") }?;
        let flags = match &inner.kind {
            Kind::Gradient(reducer) => reducer.nonfinite()?,
            Kind::Delta(reducer) => reducer.nonfinite()?,
            Kind::Mean(reducer) => reducer.nonfinite()?,
            other => return Err(other.wrong()),
        };
        for (place, flag) in out.iter_mut().zip(flags) {
            *place = u8::from(flag);
        }
        Ok(())
    })
}

/// Gives up the world of the reducer, as adasum_world_abort. Any kind of reducer; local, waits for no other rank.
///
/// Threads: made to be called while another thread is in a call of the reducer.
///
/// # Safety
/// `reducer` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_abort(reducer: *const adasum_reducer) -> adasum_status {
    guard("adasum_reducer_abort", || {
        // SAFETY: as promised by the caller.
        unsafe { required(reducer, "reducer") }?.world.abort();
        Ok(())
    })
}

/// Ends a reducer of any kind and frees its buffers; its work must be done (synchronise the stream first). Local. It may
/// outlive the handle of its world. NULL does nothing.
///
/// # Safety
/// `reducer` is NULL or came from adasum_reducer_create or one of its kind, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_destroy(reducer: *mut adasum_reducer) {
    destroy("adasum_reducer_destroy", || {
        if !reducer.is_null() {
            // SAFETY: made by `Creation::run` and given back once, as promised.
            drop(unsafe { Box::from_raw(reducer) });
        }
    });
}
