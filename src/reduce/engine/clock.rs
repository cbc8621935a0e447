//! How long each stage of a program takes on the device.

use crate::ascend::{Device, Event, Stream};
use crate::error::Result;

/// Events at the start and at the end of each stage.
pub(in crate::reduce) struct Clock {
    start: Event,
    ends: Vec<Event>,
}

impl Clock {
    pub(in crate::reduce) fn new(device: &Device, stages: usize) -> Result<Self> {
        let ends: Result<Vec<Event>> = (0..stages).map(|_| Event::timed(device)).collect();
        Ok(Clock {
            start: Event::timed(device)?,
            ends: ends?,
        })
    }

    pub(in crate::reduce) fn start(&self, stream: &Stream) -> Result<()> {
        stream.record(&self.start)
    }

    pub(in crate::reduce) fn end(&self, stage: usize, stream: &Stream) -> Result<()> {
        self.ends
            .get(stage)
            .map_or(Ok(()), |end| stream.record(end))
    }

    /// Seconds that each stage took.
    pub(in crate::reduce) fn seconds(&self) -> Result<Vec<f64>> {
        let starts = std::iter::once(&self.start).chain(&self.ends);
        let stages = starts.zip(&self.ends);
        stages
            .map(|(start, end)| end.seconds_since(start))
            .collect()
    }
}
