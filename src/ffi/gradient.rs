//! The gradient reducer: whole lists, subsets, flat buffers, and what can be asked about a reduction.

use std::ffi::{c_char, c_void};

use super::arguments::{
    adasum_tensor, flag, flat, invalid, not_null, slice, slice_mut, spans, tensors, timeout,
};
use super::guard::guard;
use super::options::adasum_options;
use super::reducer::{Creation, Entered, Inner, Kind, adasum_reducer};
use super::status::{Fault, adasum_status};
use super::world::adasum_world;
use crate::reduce::{GradientReducer, TensorStatistics};

/// Plans the reduction of the gradients of `count` tensors, allocates its buffers and warms up every link.
///
/// Collective: all ranks call it with the same tensors and options (NULL: the defaults) and in the same order if they make
/// several. Waits for the others, at most the creation timeout. The reducer holds a share of the world. End it with
/// adasum_reducer_destroy.
///
/// Errors: ADASUM_MISMATCH on all ranks if they do not agree.
///
/// # Safety
/// `world` and `options` are live or NULL; `tensors` points to `count` tensors with valid names; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_create(
    world: *const adasum_world,
    tensors: *const adasum_tensor,
    count: usize,
    options: *const adasum_options,
    out: *mut *mut adasum_reducer,
) -> adasum_status {
    guard("adasum_reducer_create", || {
        // SAFETY: as promised by the caller.
        let settings = &unsafe { adasum_options::get(options) };
        // SAFETY: as promised by the caller.
        let specs = unsafe { self::tensors(tensors, count) }?.specs()?;
        let creation = Creation {
            world,
            settings,
            specs,
            out,
        };
        // SAFETY: as promised by the caller.
        unsafe {
            creation.run(|world, specs| {
                let options = settings.options(world)?;
                Ok(Kind::Gradient(GradientReducer::new(
                    world, specs, &options,
                )?))
            })
        }
    })
}

/// Replaces every tensor by its reduction over all ranks. `inout_gradients` has the device address of each tensor, in the
/// order of creation; it may be another one in each call, and NULL for a tensor without elements. Gradient and mean
/// reducers.
///
/// Collective (of a mean reducer: in its group) and stream-ordered: enqueues behind what `stream` holds and returns; what
/// `stream` is given next sees the results. On the host they are good once adasum_reducer_synchronize has succeeded.
///
/// Ownership: the memory belongs to the caller, must be memory of the world's device, aligned to its elements, and must
/// not be freed or used on other streams before the work is done.
/// Errors: wrong arguments are refused before anything is enqueued. A later failure of this call poisons the world.
///
/// # Safety
/// `reducer` is NULL or live; `inout_gradients` points to `count` addresses as described; `stream` is live and outlives the
/// reducer, or adasum_reducer_forget_stream is called before it is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce(
    reducer: *mut adasum_reducer,
    inout_gradients: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_reduce", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe { inner.tensors(inout_gradients, count, "inout_gradients") }?;
        let Inner { kind, streams, .. } = &mut *inner;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        match kind {
            Kind::Gradient(reducer) => reducer.reduce(&gradients, stream)?,
            Kind::Mean(reducer) => reducer.reduce(&gradients, stream)?,
            other => return Err(other.wrong()),
        }
        Ok(())
    })
}

/// As adasum_reducer_reduce, for all tensors one right behind the other, in the order of creation and without gaps, in the
/// `bytes` bytes from `inout_buffer` on. Gradient reducers.
///
/// # Safety
/// As for adasum_reducer_reduce, the buffer instead of the addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce_flat(
    reducer: *mut adasum_reducer,
    inout_buffer: *mut c_void,
    bytes: u64,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_reduce_flat", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let Inner { kind, streams, .. } = &mut *inner;
        // SAFETY: as promised by the caller.
        let buffer = unsafe { flat(&streams.device, inout_buffer, bytes, "inout_buffer") }?;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        match kind {
            Kind::Gradient(reducer) => Ok(reducer.reduce_flat(&buffer, stream)?),
            other => Err(other.wrong()),
        }
    })
}

/// As adasum_reducer_reduce, for `count` of the tensors: `tensors` has their indices in the list of creation, in any order,
/// each at most once, and `inout_gradients` the address of each. For frameworks that hand over gradients in buckets. Gradient
/// reducers.
///
/// Collective: all ranks call it with the same indices in the same order. The first call for a subset plans it and waits
/// for all ranks (adasum_reducer_prepare_some does so in advance); later ones are stream-ordered.
///
/// # Safety
/// As for adasum_reducer_reduce; `tensors` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce_some(
    reducer: *mut adasum_reducer,
    tensors: *const usize,
    inout_gradients: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_reduce_some", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let Inner {
            kind,
            streams,
            specs,
            ..
        } = &mut *inner;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice(tensors, count, "tensors") }?;
        // SAFETY: as promised by the caller.
        let addresses = unsafe { slice(inout_gradients, count, "inout_gradients") }?;
        let some = tensors.iter().map(|&tensor| {
            let missing = || {
                invalid(format!(
                    "tensors: {tensor} is no index of {} tensors",
                    specs.len()
                ))
            };
            specs.get(tensor).ok_or_else(missing)
        });
        let some = some.collect::<Result<Vec<_>, _>>()?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe {
            spans(
                &streams.device,
                some.into_iter(),
                addresses,
                "inout_gradients",
            )
        }?;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        match kind {
            Kind::Gradient(reducer) => Ok(reducer.reduce_some(tensors, &gradients, stream)?),
            other => Err(other.wrong()),
        }
    })
}

/// As adasum_reducer_reduce_some, for gradients that lie one right behind the other, in the order of `tensors` and without
/// gaps, in the `bytes` bytes from `inout_buffer` on, as in the buckets of PyTorch's DDP. Gradient reducers.
///
/// # Safety
/// As for adasum_reducer_reduce_some, the buffer instead of the addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_reduce_some_flat(
    reducer: *mut adasum_reducer,
    tensors: *const usize,
    count: usize,
    inout_buffer: *mut c_void,
    bytes: u64,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_reduce_some_flat", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let Inner { kind, streams, .. } = &mut *inner;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice(tensors, count, "tensors") }?;
        // SAFETY: as promised by the caller.
        let buffer = unsafe { flat(&streams.device, inout_buffer, bytes, "inout_buffer") }?;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        match kind {
            Kind::Gradient(reducer) => Ok(reducer.reduce_some_flat(tensors, &buffer, stream)?),
            other => Err(other.wrong()),
        }
    })
}

/// Plans the reduction of the tensors at these indices, so that the first adasum_reducer_reduce_some of them does not wait.
/// Does nothing for a subset that is planned already. Gradient reducers.
///
/// Collective: all ranks call it with the same indices. Waits for them, at most the creation timeout.
/// Errors: ADASUM_MISMATCH on all ranks if they do not agree.
///
/// # Safety
/// `reducer` is NULL or live; `tensors` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_prepare_some(
    reducer: *mut adasum_reducer,
    tensors: *const usize,
    count: usize,
) -> adasum_status {
    guard("adasum_reducer_prepare_some", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice(tensors, count, "tensors") }?;
        Ok(gradient(&mut inner)?.prepare_some(tensors)?)
    })
}

/// Lets all ranks decide whether any of them has a NaN or an infinity in `gradients`, which are not changed: 1 or 0 in
/// `out_overflowed`, the same on all ranks. For loss scaling: skip reduction and optimizer if so. Gradient and delta
/// reducers that were created with overflow = vote.
///
/// Collective. Waits for the vote, and so for what `stream` holds, at most `timeout_ms`.
///
/// # Safety
/// As for adasum_reducer_reduce; `out_overflowed` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_overflow(
    reducer: *mut adasum_reducer,
    gradients: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
    timeout_ms: u64,
    out_overflowed: *mut i32,
) -> adasum_status {
    guard("adasum_reducer_overflow", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let gradients = unsafe { inner.tensors(gradients, count, "gradients") }?;
        let Inner { streams, vote, .. } = &mut *inner;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        let limit = timeout(timeout_ms, "timeout_ms")?;
        let out = not_null(out_overflowed, "out_overflowed")?;
        let Some(vote) = vote else {
            return Err(Fault::new(
                adasum_status::ADASUM_INVALID_STATE,
                "the reducer was not created with overflow = vote",
            ));
        };
        vote.cast(&gradients, stream)?;
        let overflowed = vote.overflowed(limit)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(i32::from(overflowed)) };
        Ok(())
    })
}

/// How many parts of tensors this rank owns after a scattered reduction. Gradient reducers. Local.
///
/// # Safety
/// `reducer` is NULL or live; `out` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_owned_count(
    reducer: *mut adasum_reducer,
    out: *mut usize,
) -> adasum_status {
    guard("adasum_reducer_owned_count", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let out = not_null(out, "out")?;
        let count = gradient(&mut inner)?.owned().len();
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(count) };
        Ok(())
    })
}

/// The parts of tensors that this rank owns, adasum_reducer_owned_count of them: index of the tensor, first element, number of
/// elements. With the option scattered these are the results of a reduction on this rank, and what its sharded optimizer
/// steps; the parts of all ranks tile all tensors. Gradient reducers. Local.
///
/// # Safety
/// `reducer` is NULL or live; the others point to `count` numbers that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_owned(
    reducer: *mut adasum_reducer,
    out_tensors: *mut usize,
    out_starts: *mut u64,
    out_lengths: *mut u64,
    count: usize,
) -> adasum_status {
    guard("adasum_reducer_owned", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let owned = gradient(&mut inner)?.owned();
        if count != owned.len() {
            return Err(invalid(format!(
                "count is {count}, this rank owns {} parts",
                owned.len()
            )));
        }
        // SAFETY: as promised by the caller.
        let tensors = unsafe { slice_mut(out_tensors, count, "out_tensors") }?;
        // SAFETY: as promised by the caller.
        let starts = unsafe { slice_mut(out_starts, count, "out_starts") }?;
        // SAFETY: as promised by the caller.
        let lengths = unsafe { slice_mut(out_lengths, count, "out_lengths") }?;
        for (index, part) in owned.iter().enumerate() {
            (tensors[index], starts[index], lengths[index]) = (part.tensor, part.start, part.len);
        }
        Ok(())
    })
}

/// Brings the owned parts of tensors to all ranks: of weights, say, that a sharded optimizer has stepped. Sizes and types are
/// those of the gradients. Gradient reducers with the option scattered.
///
/// Collective and stream-ordered. Ownership and errors as adasum_reducer_reduce.
///
/// # Safety
/// As for adasum_reducer_reduce.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_collect(
    reducer: *mut adasum_reducer,
    inout_tensors: *const *mut c_void,
    count: usize,
    stream: *mut c_void,
) -> adasum_status {
    guard("adasum_reducer_collect", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let tensors = unsafe { inner.tensors(inout_tensors, count, "inout_tensors") }?;
        let Inner { kind, streams, .. } = &mut *inner;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        match kind {
            Kind::Gradient(reducer) => Ok(reducer.collect(&tensors, stream)?),
            other => Err(other.wrong()),
        }
    })
}

/// Numbers that adasum_reducer_statistics gives for each tensor.
pub const ADASUM_STATISTICS: usize = 5;
/// Position of |result|.
pub const ADASUM_STATISTIC_NORM: usize = 0;
/// Position of the mean cosine of all pairs of servers' vectors; NaN if there is no pair.
pub const ADASUM_STATISTIC_COSINE: usize = 1;
/// Position of |result| / |mean of the servers' vectors|.
pub const ADASUM_STATISTIC_GAIN: usize = 2;
/// Position of kappa, how much cancelled: at least 1.
pub const ADASUM_STATISTIC_KAPPA: usize = 3;
/// Position of 1 for a tensor that was non-finite on any rank (the other numbers are NaN then), else 0.
pub const ADASUM_STATISTIC_NONFINITE: usize = 4;

/// Whether the next reductions keep a copy of their gradients, 1 or 0 (at first), so that adasum_reducer_statistics has
/// cosine and gain also of reductions of several rounds. Gradient reducers.
///
/// Local, but all ranks choose the same. A reduction that is observed takes one more copy; device memory for that, as much
/// as the tensors have, is allocated by the first and freed when this is turned off.
///
/// # Safety
/// `reducer` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_observe(
    reducer: *mut adasum_reducer,
    on: i32,
) -> adasum_status {
    guard("adasum_reducer_observe", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let on = flag(on, "on")?;
        gradient(&mut inner)?.observe(on);
        Ok(())
    })
}

/// Figures of the last reduction, the same on all ranks: ADASUM_STATISTICS numbers for each tensor, in the order of creation,
/// and in `out_norms`, which may be NULL, the norm of each server's vector, servers within tensors. `figures` and
/// `norms` are the lengths of the arrays: tensors times ADASUM_STATISTICS, and tensors times servers. Gradient reducers.
///
/// With several rounds (more servers than the radix) cosine and gain are NaN, unless adasum_reducer_observe was on.
///
/// Collective: all ranks call it, after the same reductions. Waits for them; allocates, so it is not for every step.
/// Errors: ADASUM_UNSUPPORTED where nothing was combined by AdaSum.
///
/// # Safety
/// `reducer` is NULL or live; `out_figures` points to `figures` numbers and `out_norms`, if not NULL, to `norms` numbers that
/// may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_statistics(
    reducer: *mut adasum_reducer,
    out_figures: *mut f64,
    figures: usize,
    out_norms: *mut f64,
    norms: usize,
) -> adasum_status {
    guard("adasum_reducer_statistics", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let tensors = inner.specs.len();
        let servers = inner.world().servers() as usize;
        let reducer = gradient(&mut inner)?;
        let norms = if out_norms.is_null() { 0 } else { norms };
        let wanted = tensors * servers;
        if figures != tensors * ADASUM_STATISTICS || (!out_norms.is_null() && norms != wanted) {
            return Err(invalid(format!(
                "figures is {figures} and norms is {norms}, {tensors} tensors and {servers} servers have {} and {wanted}",
                tensors * ADASUM_STATISTICS
            )));
        }
        // SAFETY: as promised by the caller.
        let figures = unsafe { slice_mut(out_figures, figures, "out_figures") }?;
        // SAFETY: as promised by the caller.
        let norms = unsafe { slice_mut(out_norms, norms, "out_norms") }?;
        let statistics = reducer.statistics()?;
        for (place, tensor) in figures.chunks_exact_mut(ADASUM_STATISTICS).zip(&statistics) {
            place.copy_from_slice(&numbers(tensor));
        }
        let of_servers = statistics.iter().flat_map(|tensor| &tensor.norms);
        for (place, norm) in norms.iter_mut().zip(of_servers) {
            *place = *norm;
        }
        Ok(())
    })
}

fn numbers(tensor: &TensorStatistics) -> [f64; ADASUM_STATISTICS] {
    let mut numbers = [0.0; ADASUM_STATISTICS];
    numbers[ADASUM_STATISTIC_NORM] = tensor.norm;
    numbers[ADASUM_STATISTIC_COSINE] = tensor.cosine;
    numbers[ADASUM_STATISTIC_GAIN] = tensor.gain;
    numbers[ADASUM_STATISTIC_KAPPA] = tensor.kappa;
    numbers[ADASUM_STATISTIC_NONFINITE] = f64::from(u8::from(tensor.nonfinite));
    numbers
}

/// What this rank does in a reduction, as text for people: one line a step, in the order in which they are issued. Puts as
/// much of it as fits and a zero into the `capacity` bytes from `out_text` on, which may be (NULL, 0), and the length of
/// all of it, without the zero, into `out_length`. Gradient reducers. Local.
///
/// # Safety
/// `reducer` is NULL or live; `out_text` points to `capacity` bytes that may be written to; `out_length` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_plan(
    reducer: *mut adasum_reducer,
    out_text: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> adasum_status {
    guard("adasum_reducer_plan", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let place = unsafe { slice_mut(out_text.cast::<u8>(), capacity, "out_text") }?;
        let out_length = not_null(out_length, "out_length")?;
        let text = gradient(&mut inner)?.plan_text();
        put_text(&text, place);
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out_length.write(text.len()) };
        Ok(())
    })
}

/// As much of `text` as fits, cut between characters, and a zero.
fn put_text(text: &str, place: &mut [u8]) {
    let Some(most) = place.len().checked_sub(1) else {
        return;
    };
    let mut fits = most.min(text.len());
    while !text.is_char_boundary(fits) {
        fits -= 1;
    }
    place[..fits].copy_from_slice(&text.as_bytes()[..fits]);
    place[fits] = 0;
}

fn gradient<'a>(inner: &'a mut Entered<'_>) -> Result<&'a mut GradientReducer, Fault> {
    match &mut inner.kind {
        Kind::Gradient(reducer) => Ok(reducer),
        other => Err(other.wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_ends_with_a_zero() {
        let put = |capacity: usize| {
            let mut place = vec![7; capacity];
            put_text("a\u{e9}b", &mut place);
            place
        };
        assert!(put(0).is_empty());
        assert_eq!(put(1), [0]);
        assert_eq!(put(3), [b'a', 0, 7]);
        assert_eq!(put(4), [b'a', 0xc3, 0xa9, 0]);
        assert_eq!(put(6), [b'a', 0xc3, 0xa9, b'b', 0, 7]);
    }
}
