//! What trainers put around a reducer: accumulation, clipping, the overflow vote, the journal.

pub(super) mod accumulate;
pub(super) mod clip;
pub(super) mod journal;
pub(super) mod overflow;
