//! Journals.

use std::ffi::c_char;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use super::arguments::{not_null, required, slice, text};
use super::catch::catch;
use super::handle::{destroy, give};
use super::statistics::{
    ADASUM_STATISTIC_COSINE, ADASUM_STATISTIC_GAIN, ADASUM_STATISTIC_KAPPA, ADASUM_STATISTIC_NORM,
    ADASUM_STATISTICS,
};
use super::status::{CallError, adasum_status};
use crate::reduce::{Figure, Journal, Record, TensorRecord};

/// One rank's file of what a training records over time, a line of JSON for each record, for whoever draws it, such as
/// `adasum-run launch --report`. May be used from any thread, by several at once.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_journal(Mutex<Journal>);

impl From<Journal> for adasum_journal {
    fn from(journal: Journal) -> Self {
        adasum_journal(Mutex::new(journal))
    }
}

/// Opens the journal of `rank`: the file rank_R.jsonl in the folder `folder`, which must exist; what it holds already is kept. End
/// it with adasum_journal_destroy. Local.
///
/// Errors: ADASUM_INVALID_ARGUMENT if `folder` is ""; ADASUM_IO if the file cannot be opened.
///
/// # Safety
/// `folder` is NULL or a C string; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_journal_open(
    folder: *const c_char,
    rank: u32,
    out: *mut *mut adasum_journal,
) -> adasum_status {
    catch("adasum_journal_open", || {
        // SAFETY: as promised by the caller.
        let folder = unsafe { text(folder, "folder") }?;
        let out = not_null(out, "out")?;
        let journal = Journal::open(Path::new(folder), rank)?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(adasum_journal::from(journal), out) };
        Ok(())
    })
}

/// As adasum_journal_open, in the folder that ADASUM_STATISTICS_DIR names, which a launcher that makes a report sets for its
/// ranks; `out` becomes NULL if the variable is not set or empty, because nobody wants a journal then.
///
/// # Safety
/// `out` may be written to; no other thread changes the environment meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_journal_from_env(
    rank: u32,
    out: *mut *mut adasum_journal,
) -> adasum_status {
    catch("adasum_journal_from_env", || {
        let out = not_null(out, "out")?;
        match Journal::from_env(rank)? {
            // SAFETY: not null, and the caller lets us write there.
            Some(journal) => unsafe { give(adasum_journal::from(journal), out) },
            // SAFETY: as above.
            None => unsafe { out.write(null_mut()) },
        }
        Ok(())
    })
}

/// Appends a record, which is in the file when this returns, with the time of the call. Local.
///
/// `run` says which of several trainings in one job it is about, and may be ""; `step` counts from 1, and a later record of the
/// same step completes or replaces an earlier one; `epoch` is how many epochs have passed, parts of one counted, and not finite
/// if nobody knows. `count` figures have their names, such as loss and accuracy, in `names` and their numbers in `values`;
/// where several ranks record one, the mean over them is drawn. What the reduction did to `tensors` tensors stands in
/// `figures`, ADASUM_STATISTICS numbers for each as adasum_reducer_statistics gives them, with their names in
/// `tensor_names`; it is the same on all ranks, so one of them is enough.
///
/// Errors: ADASUM_IO if it cannot be written.
///
/// # Safety
/// `journal` is NULL or live; `run` and all names are NULL or C strings; the arrays are as long as said.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "only scalars cross")]
pub unsafe extern "C" fn adasum_journal_record(
    journal: *const adasum_journal,
    run: *const c_char,
    step: u64,
    epoch: f64,
    names: *const *const c_char,
    values: *const f64,
    count: usize,
    tensor_names: *const *const c_char,
    figures: *const f64,
    tensors: usize,
) -> adasum_status {
    catch("adasum_journal_record", || {
        // SAFETY: as promised by the caller.
        let journal = unsafe { required(journal, "journal") }?;
        // SAFETY: as promised by the caller.
        let run = unsafe { text(run, "run") }?;
        // SAFETY: as promised by the caller.
        let names = unsafe { texts(names, count, "names") }?;
        // SAFETY: as promised by the caller.
        let values = unsafe { slice(values, count, "values") }?;
        // SAFETY: as promised by the caller.
        let tensor_names = unsafe { texts(tensor_names, tensors, "tensor_names") }?;
        let numbers = tensors.saturating_mul(ADASUM_STATISTICS);
        // SAFETY: as promised by the caller.
        let figures = unsafe { slice(figures, numbers, "figures") }?;
        let figures = figures.chunks_exact(ADASUM_STATISTICS);
        let record = Record {
            epoch: epoch.is_finite().then_some(epoch),
            tensors: tensor_names.into_iter().zip(figures).map(tensor).collect(),
            ..Record::new(run, step)
        };
        let values = names.into_iter().zip(values);
        let record = values.fold(record, |record, (name, &value)| record.value(name, value));
        // A panic leaves no half change: a record is one write.
        let mut journal = journal.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(journal.record(&record)?)
    })
}

/// The record of a tensor with these figures.
fn tensor((name, figures): (&str, &[f64])) -> TensorRecord {
    TensorRecord {
        name: name.to_owned(),
        norm: Figure(figures[ADASUM_STATISTIC_NORM]),
        cosine: Figure(figures[ADASUM_STATISTIC_COSINE]),
        gain: Figure(figures[ADASUM_STATISTIC_GAIN]),
        kappa: Figure(figures[ADASUM_STATISTIC_KAPPA]),
    }
}

/// The `count` texts from `pointer` on.
///
/// # Safety
/// As for [`slice()`], and each as for [`text`].
unsafe fn texts<'a>(
    pointer: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a str>, CallError> {
    // SAFETY: as promised by the caller.
    let pointers = unsafe { slice(pointer, count, name) }?;
    let each = pointers.iter().enumerate();
    // SAFETY: as promised by the caller.
    each.map(|(index, &one)| unsafe { text(one, &format!("{name}[{index}]")) })
        .collect()
}

/// Ends a journal and closes its file. NULL does nothing.
///
/// # Safety
/// `journal` is NULL or came from adasum_journal_open or adasum_journal_from_env, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_journal_destroy(journal: *mut adasum_journal) {
    // SAFETY: as promised by the caller.
    unsafe { destroy("adasum_journal_destroy", journal) };
}
