//! Reducers: one handle for all kinds, and what all kinds can do.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::arguments::{invalid, not_null, required, slice, slice_mut, spans, timeout};
use super::catch::{catch, destroy};
use super::status::{CallError, adasum_status};
use super::streams::Streams;
use super::world::adasum_world;
use crate::ascend::{Span, Stream};
use crate::plan::TensorSpec;
use crate::reduce::{
    DeltaWeightReducer, GradientReducer, MeanReducer, Overflow, OverflowVote, Settings,
    SparseReducer, SparseSpec, World,
};

/// Reduces what it was created for: the gradients of a fixed list of tensors (adasum_reducer_create), the change of weights
/// (adasum_reducer_create_delta), the mean over a group (adasum_reducer_create_mean), or rows (adasum_reducer_create_sparse).
/// One thread at a time: a call while another is inside is ADASUM_INVALID_STATE; only adasum_reducer_abort may come then.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_reducer {
    inner: Mutex<Inner>,
    /// Beside the lock, so that adasum_reducer_abort frees a thread that waits in a call.
    world: World,
}

/// What a handle holds.
pub(super) struct Inner {
    pub(super) reducer: AnyReducer,
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
    ) -> Result<Vec<Span>, CallError> {
        // SAFETY: as promised by the caller.
        let addresses = unsafe { slice(addresses, count, name) }?;
        // SAFETY: as promised by the caller.
        unsafe { spans(&self.streams.device, self.specs.iter(), addresses, name) }
    }

    /// The tensors with the indices `tensors`, at as many addresses that messages call `name`.
    ///
    /// # Safety
    /// As for [`Inner::tensors`].
    pub(super) unsafe fn subset(
        &self,
        tensors: &[usize],
        addresses: *const *mut c_void,
        name: &str,
    ) -> Result<Vec<Span>, CallError> {
        // SAFETY: as promised by the caller.
        let addresses = unsafe { slice(addresses, tensors.len(), name) }?;
        let count = self.specs.len();
        let spec = |&tensor: &usize| {
            let missing = || invalid(format!("tensors: {tensor} is no index of {count} tensors"));
            self.specs.get(tensor).ok_or_else(missing)
        };
        let specs: Vec<_> = tensors.iter().map(spec).collect::<Result<_, _>>()?;
        // SAFETY: as promised by the caller.
        unsafe { spans(&self.streams.device, specs.into_iter(), addresses, name) }
    }

    /// The reducer, and the caller's stream to enqueue its work on.
    ///
    /// # Safety
    /// As for [`Streams::get`].
    pub(super) unsafe fn on(
        &mut self,
        stream: *mut c_void,
    ) -> Result<(&mut AnyReducer, &Stream), CallError> {
        // SAFETY: as promised by the caller.
        let stream = unsafe { self.streams.get(stream) }?;
        Ok((&mut self.reducer, stream))
    }
}

/// A reducer of any kind.
pub(super) enum AnyReducer {
    Gradient(GradientReducer),
    Delta(DeltaWeightReducer),
    Mean(MeanReducer),
    /// With what its calls are checked against.
    Sparse(SparseReducer, SparseSpec),
}

impl AnyReducer {
    /// The gradient reducer, for calls that only those have.
    pub(super) fn gradient(&mut self) -> Result<&mut GradientReducer, CallError> {
        match self {
            AnyReducer::Gradient(reducer) => Ok(reducer),
            other => Err(other.wrong()),
        }
    }

    /// The delta-weight reducer, for calls that only those have.
    pub(super) fn delta(&mut self) -> Result<&mut DeltaWeightReducer, CallError> {
        match self {
            AnyReducer::Delta(reducer) => Ok(reducer),
            other => Err(other.wrong()),
        }
    }

    /// The error for a call that this kind does not have.
    pub(super) fn wrong(&self) -> CallError {
        let creator = match self {
            AnyReducer::Gradient(_) => "adasum_reducer_create",
            AnyReducer::Delta(_) => "adasum_reducer_create_delta",
            AnyReducer::Mean(_) => "adasum_reducer_create_mean",
            AnyReducer::Sparse(..) => "adasum_reducer_create_sparse",
        };
        CallError::new(
            adasum_status::ADASUM_INVALID_STATE,
            format!("a reducer of {creator} has no such call"),
        )
    }
}

/// A reducer that this thread is in. A panic meanwhile gives up the world, because peers may be waiting.
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
    pub(super) unsafe fn enter<'a>(reducer: *mut adasum_reducer) -> Result<Entered<'a>, CallError> {
        // SAFETY: as promised by the caller.
        let reducer = unsafe { required(reducer, "reducer") }?;
        let world = &reducer.world;
        match reducer.inner.try_lock() {
            Ok(inner) => Ok(Entered { inner, world }),
            Err(TryLockError::WouldBlock) => Err(CallError::new(
                adasum_status::ADASUM_INVALID_STATE,
                "another thread is using this reducer",
            )),
            Err(TryLockError::Poisoned(_)) => Err(CallError::new(
                adasum_status::ADASUM_POISONED,
                "an internal error in an earlier call made this reducer unusable",
            )),
        }
    }
}

/// Creates a reducer of `specs` with `make`, which is given the world, and gives its handle away.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
pub(super) unsafe fn create(
    world: *const adasum_world,
    settings: &Settings,
    specs: Vec<TensorSpec>,
    out: *mut *mut adasum_reducer,
    make: impl FnOnce(&World, &[TensorSpec]) -> Result<AnyReducer, CallError>,
) -> Result<(), CallError> {
    // SAFETY: as promised by the caller.
    let handle = unsafe { required(world, "world") }?;
    let out = not_null(out, "out")?;
    let world = handle.get()?;
    let share = handle.share();
    let reducer = make(&world, &specs)?;
    let votes = matches!(reducer, AnyReducer::Gradient(_) | AnyReducer::Delta(_))
        && settings.overflow == Overflow::Vote;
    let vote = votes.then(|| OverflowVote::new(&world, &specs, settings.options.create_timeout));
    let inner = Inner {
        reducer,
        streams: Streams::new(world.device()),
        specs,
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
    catch("adasum_reducer_synchronize", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let world = inner.world;
        // SAFETY: as promised by the caller.
        let (reducer, stream) = unsafe { inner.on(stream) }?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        match reducer {
            AnyReducer::Gradient(reducer) => reducer.synchronize(stream, limit)?,
            AnyReducer::Delta(reducer) => reducer.synchronize(stream, limit)?,
            AnyReducer::Mean(reducer) => reducer.synchronize(stream, limit)?,
            AnyReducer::Sparse(..) => world.synchronize(stream, limit)?,
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
    catch("adasum_reducer_forget_stream", || {
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
    catch("adasum_reducer_nonfinite", || {
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
        let flags = match &inner.reducer {
            AnyReducer::Gradient(reducer) => reducer.nonfinite()?,
            AnyReducer::Delta(reducer) => reducer.nonfinite()?,
            AnyReducer::Mean(reducer) => reducer.nonfinite()?,
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
    catch("adasum_reducer_abort", || {
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
            // SAFETY: made by `create` and given back once, as promised.
            drop(unsafe { Box::from_raw(reducer) });
        }
    });
}
