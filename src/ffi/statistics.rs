//! What can be asked about the reductions of a reducer: figures of tensors, and the plan as text.

use std::ffi::c_char;

use super::arguments::{flag, invalid, not_null, slice_mut};
use super::catch::catch;
use super::reducer::{AnyReducer, adasum_reducer};
use super::status::adasum_status;
use crate::reduce::TensorStatistics;

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
/// cosine and gain also of reductions of several rounds. Gradient and delta reducers.
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
    catch("adasum_reducer_observe", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let on = flag(on, "on")?;
        match &mut inner.object {
            AnyReducer::Gradient(reducer, _) => reducer.observe(on),
            AnyReducer::Delta(reducer, _) => reducer.observe(on),
            other => return Err(other.wrong()),
        }
        Ok(())
    })
}

/// Figures of the last reduction, the same on all ranks: ADASUM_STATISTICS numbers for each tensor, in the order of creation,
/// and in `out_norms`, which may be NULL, the norm of each server's vector, servers within tensors. `figures` and
/// `norms` are the lengths of the arrays: tensors times ADASUM_STATISTICS, and tensors times servers. Gradient reducers, and
/// delta reducers: the figures of the deltas of the last step.
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
    catch("adasum_reducer_statistics", || {
        // SAFETY: as promised by the caller.
        let inner = unsafe { adasum_reducer::enter(reducer) }?;
        let tensors = inner.specs.len();
        let servers = inner.world.servers() as usize;
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
        let statistics = match &inner.object {
            AnyReducer::Gradient(reducer, _) => reducer.statistics()?,
            AnyReducer::Delta(reducer, _) => reducer.statistics()?,
            other => return Err(other.wrong()),
        };
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

/// The numbers of a tensor, each at its position.
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
    catch("adasum_reducer_plan", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        // SAFETY: as promised by the caller.
        let place = unsafe { slice_mut(out_text.cast::<u8>(), capacity, "out_text") }?;
        let out_length = not_null(out_length, "out_length")?;
        let text = inner.object.gradient()?.plan_text();
        put_text(&text, place);
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out_length.write(text.len()) };
        Ok(())
    })
}

/// Writes as much of `text` as fits, cut between characters, and a zero.
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
