//! Reducers: one handle for all kinds, and what all kinds can do.

use std::ffi::c_void;

use super::arguments::{required, slice_mut, timeout};
use super::catch::catch;
use super::handle::{Entered, Handle, destroy};
use super::status::{CallError, adasum_status};
use super::world::adasum_world;
use crate::plan::TensorSpec;
use crate::reduce::{
    DeltaWeightReducer, GradientReducer, MeanReducer, Overflow, OverflowVote, Settings,
    SparseReducer, SparseSpec, World,
};

/// Reduces what it was created for: the gradients of a fixed list of tensors (adasum_reducer_create), the change of weights
/// (adasum_reducer_create_delta), the mean over a group (adasum_reducer_create_mean), or rows (adasum_reducer_create_sparse).
/// One thread at a time: a call while another is inside is ADASUM_INVALID_STATE; only adasum_reducer_abort may come then.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_reducer(Handle<AnyReducer>);

/// A reducer of any kind.
pub(super) enum AnyReducer {
    Gradient(GradientReducer, Option<OverflowVote>),
    Delta(DeltaWeightReducer, Option<OverflowVote>),
    Mean(MeanReducer),
    /// With what its calls are checked against.
    Sparse(SparseReducer, SparseSpec),
}

impl AnyReducer {
    /// The gradient reducer, for calls that only those have.
    pub(super) fn gradient(&mut self) -> Result<&mut GradientReducer, CallError> {
        match self {
            AnyReducer::Gradient(reducer, _) => Ok(reducer),
            other => Err(other.wrong()),
        }
    }

    /// The delta-weight reducer, for calls that only those have.
    pub(super) fn delta(&mut self) -> Result<&mut DeltaWeightReducer, CallError> {
        match self {
            AnyReducer::Delta(reducer, _) => Ok(reducer),
            other => Err(other.wrong()),
        }
    }

    /// The overflow vote, for reducers that were created with one.
    pub(super) fn vote(&mut self) -> Result<&mut OverflowVote, CallError> {
        match self {
            AnyReducer::Gradient(_, Some(vote)) | AnyReducer::Delta(_, Some(vote)) => Ok(vote),
            _ => Err(CallError::new(
                adasum_status::ADASUM_INVALID_STATE,
                "the reducer was not created with overflow = vote",
            )),
        }
    }

    /// The error for a call that this kind does not have.
    pub(super) fn wrong(&self) -> CallError {
        let creator = match self {
            AnyReducer::Gradient(..) => "adasum_reducer_create",
            AnyReducer::Delta(..) => "adasum_reducer_create_delta",
            AnyReducer::Mean(_) => "adasum_reducer_create_mean",
            AnyReducer::Sparse(..) => "adasum_reducer_create_sparse",
        };
        CallError::new(
            adasum_status::ADASUM_INVALID_STATE,
            format!("a reducer of {creator} has no such call"),
        )
    }
}

impl adasum_reducer {
    /// The handle at `reducer`, for this thread alone.
    ///
    /// # Safety
    /// `reducer` is NULL or live.
    pub(super) unsafe fn enter<'a>(
        reducer: *mut adasum_reducer,
    ) -> Result<Entered<'a, AnyReducer>, CallError> {
        // SAFETY: as promised by the caller.
        unsafe { required(reducer, "reducer") }?.0.enter("reducer")
    }
}

/// Creates a reducer of `specs` with `make`, which is given the world, and gives its handle away.
///
/// # Safety
/// `world` is NULL or live; `out` is NULL or may be written to.
pub(super) unsafe fn create(
    world: *const adasum_world,
    specs: Vec<TensorSpec>,
    out: *mut *mut adasum_reducer,
    make: impl FnOnce(&World, &[TensorSpec]) -> Result<AnyReducer, CallError>,
) -> Result<(), CallError> {
    // SAFETY: as promised by the caller.
    unsafe { Handle::create(world, specs, out, adasum_reducer, make) }
}

/// The overflow vote of a reducer that was created with overflow = vote. Collective.
pub(super) fn vote(
    world: &World,
    specs: &[TensorSpec],
    settings: &Settings,
) -> Result<Option<OverflowVote>, CallError> {
    let votes = settings.options.overflow == Overflow::Vote;
    let vote = votes.then(|| OverflowVote::new(world, specs, settings.options.create_timeout));
    Ok(vote.transpose()?)
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
            AnyReducer::Gradient(reducer, _) => reducer.synchronize(stream, limit)?,
            AnyReducer::Delta(reducer, _) => reducer.synchronize(stream, limit)?,
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
        inner.forget(stream)
    })
}

/// Whether each tensor (in a delta reducer: its delta) was non-finite on any rank in the last reduction: 1 or 0, in the
/// order of creation; the same on all ranks. Waits for the reduction, at most the stall timeout. Gradient, delta and mean reducers.
///
/// AdaSum finds what its vectors bring, also what an earlier round made of them. An element that its last round takes out of the range
/// of a 16-bit type is not found: adasum_reducer_overflow on the results does.
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
        inner.count_is(count)?;
        // SAFETY: as promised by the caller.
        let out = unsafe { slice_mut(out_flags, count, "out_flags") }?;
        let flags = match &inner.object {
            AnyReducer::Gradient(reducer, _) => reducer.nonfinite()?,
            AnyReducer::Delta(reducer, _) => reducer.nonfinite()?,
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
        unsafe { required(reducer, "reducer") }?.0.world.abort();
        Ok(())
    })
}

/// Ends a reducer of any kind and frees its buffers; its work must be done (synchronise the stream first). Local. It may
/// outlive the handle of its world. NULL does nothing.
///
/// With exchange = shared other ranks may still read and write its fused buffers: they stay until all ranks have made another
/// reducer with it in the same world, or adasum_world_finish. After a failure they are never freed.
///
/// # Safety
/// `reducer` is NULL or came from adasum_reducer_create or one of its kind, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_destroy(reducer: *mut adasum_reducer) {
    // SAFETY: as promised by the caller.
    unsafe { destroy("adasum_reducer_destroy", reducer) };
}
