//! Where work was queued, for what must not end before that work has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::stream::{self, Progress, Remains, Stream};
use crate::error::Result;

/// The streams that were given work of one thing (a communicator, a world), with the place of the last of it in each.
///
/// No stream is kept alive by it.
#[derive(Debug, Default)]
pub struct Queued(Mutex<Vec<Last>>);

/// The last work on one stream.
#[derive(Debug)]
struct Last {
    stream: Weak<stream::Inner>,
    progress: Arc<Progress>,
    position: u64,
}

/// The last work on each of some streams, as it was noted once.
#[derive(Debug)]
pub struct Noted(Vec<(Weak<stream::Inner>, u64)>);

impl Noted {
    /// Lets the streams go of what it used: it has ended, as an event behind it says. Whoever waits for a stream by other means than
    /// its object has not told that.
    pub fn let_go(&self) {
        for (stream, position) in &self.0 {
            if let Some(stream) = Stream::upgrade(stream) {
                stream.let_go(*position);
            }
        }
    }
}

impl Last {
    /// Of a stream whose object is gone, only what that object had seen is known.
    fn has_ended(&self) -> bool {
        self.progress.has_ended(self.position)
            || Stream::upgrade(&self.stream).is_some_and(|stream| {
                matches!(stream.query(), Ok(true)) && self.progress.has_ended(self.position)
            })
    }
}

impl Queued {
    /// Takes note that `stream` is being given work, until [`Queued::note`] says that all of it is there.
    pub fn begin(&self, stream: &Stream) {
        self.put(stream, u64::MAX);
    }

    /// Takes note that `stream` was given work.
    pub fn note(&self, stream: &Stream) {
        self.put(stream, stream.progress().enqueued());
    }

    fn put(&self, stream: &Stream, position: u64) {
        let progress = stream.progress();
        let mut all = self.all();
        all.retain(|last| !last.progress.has_ended(last.position));
        match all
            .iter_mut()
            .find(|last| Arc::ptr_eq(&last.progress, progress))
        {
            Some(last) => last.position = position,
            None => all.push(Last {
                stream: stream.downgrade(),
                progress: Arc::clone(progress),
                position,
            }),
        }
    }

    /// Whether all of that work is known to have ended.
    pub fn has_ended(&self) -> bool {
        let mut all = self.all();
        all.retain(|last| !last.has_ended());
        all.is_empty()
    }

    /// Takes note that all of it has ended, as an event behind it says.
    pub fn end(&self) {
        self.noted().let_go();
        self.all().clear();
    }

    /// What was noted so far.
    pub fn noted(&self) -> Noted {
        let all = self.all();
        let all = all.iter().map(|last| (last.stream.clone(), last.position));
        Noted(all.collect())
    }

    /// Aborts the streams that still hold some of it, with all that others have put on them: what each of them gives.
    pub fn abort(&self) -> Vec<Result<Option<Remains>>> {
        let mut all = self.all();
        all.retain(|last| !last.has_ended());
        let streams = all.iter().filter_map(|last| Stream::upgrade(&last.stream));
        streams.map(|stream| stream.abort()).collect()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Last>> {
        // A panic cannot leave the list half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
