//! Enqueues the stages of one bucket: what stands between two of them, and guards where what failed must not pass.

use crate::ascend::Event;
use crate::error::{Context, Result};
use crate::kernel::{Guard, OnMissing};
use crate::reduce::engine::bucket::{Bucket, Pass};
use crate::reduce::engine::stage::{Places, Stage, StageContext, Task};
use crate::reduce::world::streams::{CallStreams, StreamRole};

/// How far a bucket has been issued in one reduction.
pub(in crate::reduce) struct BucketProgress<'a> {
    bucket: &'a Bucket,
    stages: &'a [Stage],
    context: StageContext<'a>,
    /// Stream and end of the stage before.
    last: Option<(StreamRole, &'a Event)>,
    /// Where leftovers of the stage before would stand.
    places: Option<&'a Places>,
    /// So many of the first stages are followed by a guard.
    guarded: usize,
    /// The end of the bucket that had the buffers before, where it is on another stream.
    free: Option<&'a Event>,
}

impl<'a> BucketProgress<'a> {
    /// Nothing has been issued yet. `before` is the bucket that has the buffers before it in this pass.
    pub(in crate::reduce) fn new(
        bucket: &'a Bucket,
        before: Option<&'a Bucket>,
        pass: Pass,
        context: StageContext<'a>,
        streams: &CallStreams<'_>,
    ) -> Self {
        let stages = bucket.stages(pass);
        // On one stream the caller sees by itself that the last stages failed; others only get what is sent.
        let sends = |stage: &Stage| matches!(stage.task, Task::Exchange(_) | Task::Read(_));
        let guarded = match streams.are_same(StreamRole::Kernels, StreamRole::Payload) {
            true => stages.iter().rposition(sends).unwrap_or(0),
            false => stages.len(),
        };
        let last = before.and_then(|before| before.stages(pass).last());
        // Otherwise its last stage is on the stream of the first one here.
        let elsewhere = last.filter(|stage| stage.task.role() == StreamRole::Payload);
        BucketProgress {
            stages,
            guarded,
            bucket,
            context,
            last: None,
            places: None,
            free: elsewhere.map(|stage| &stage.watched.done),
        }
    }

    /// Enqueues stage `index`, at `position` in the order of the step, behind the stage before it.
    pub(super) fn issue(
        &mut self,
        index: usize,
        position: usize,
        streams: &CallStreams<'_>,
    ) -> Result<()> {
        let stage = &self.stages[index];
        if let Some(free) = self.free.take() {
            streams.get(stage.task.role()).wait(free)?;
        }
        let copy = matches!(stage.task, Task::CopyIn(_) | Task::CopyOut(_));
        if !matches!(stage.task, Task::Nothing) && (self.context.copies || !copy) {
            self.enter(stage.task.role(), streams)
                .and_then(|()| self.run(stage, (index, position), streams))
                .context(|| stage.watched.operation.clone())?;
        }
        if index + 1 == self.stages.len() && self.guarded > index {
            return self.enter(StreamRole::Payload, streams);
        }
        Ok(())
    }

    fn run(
        &mut self,
        stage: &'a Stage,
        (index, position): (usize, usize),
        streams: &CallStreams<'_>,
    ) -> Result<()> {
        let role = stage.task.role();
        self.context.receipt = (index < self.guarded).then_some(&self.bucket.receipt);
        let context = &self.context;
        let own = match streams.are_same(role, StreamRole::Payload) {
            true => StreamRole::Payload,
            false => role,
        };
        let work = || stage.task.issue(context, streams);
        let stream = streams.get(role);
        context
            .world
            .issue(&stage.watched, position, own, stream, work)?;
        self.places = stage.task.places().or(self.places);
        self.last = Some((role, &stage.watched.done));
        Ok(())
    }

    /// Enqueues what must come between the stage before and one of `role`.
    pub(super) fn enter(&mut self, role: StreamRole, streams: &CallStreams<'_>) -> Result<()> {
        let Some((from, done)) = self.last else {
            return Ok(());
        };
        if !streams.are_same(from, role) {
            streams.get(role).wait(done)?;
        }
        if role == StreamRole::Payload && from != StreamRole::Payload {
            // Whoever gave the world up has dropped work of its streams, perhaps in the middle of a stage.
            self.context.world.check()?;
            self.guard(streams)?;
            self.last = None;
        }
        Ok(())
    }

    /// Enqueues on the caller's stream that leftovers are spoilt unless all kernels have signed, and that it fails then, if what
    /// failed is not on it.
    fn guard(&self, streams: &CallStreams<'_>) -> Result<()> {
        let Some(places) = self.places else {
            return Ok(());
        };
        let on_missing = match streams.are_same(StreamRole::Kernels, StreamRole::Payload) {
            true => OnMissing::Continue,
            false => OnMissing::Fail,
        };
        self.context.world.kernels().guard(
            streams.payload,
            &Guard {
                receipt: &self.bucket.receipt,
                places: &self.context.addresses.tensors(&places.entries)?,
                dtype: places.dtype,
                reason: self.context.world.reason(),
                on_missing,
            },
        )
    }
}
