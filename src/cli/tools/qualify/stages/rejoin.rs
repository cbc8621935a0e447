//! A reduction that waits in vain for one rank, and a new world of the same processes.

use std::time::{Duration, Instant};

use crate::ascend::{DataType, Span, Stream};
use crate::cli::lab::reference::{upload, vector};
use crate::cli::tools::qualify::findings::{Findings, Seen, wrong};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::cli::tools::qualify::stages::reductions::{Case, PATIENCE};
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::{GradientReducer, Options, World};

/// Time without progress after which the ranks that wait give up.
const STALL: Duration = Duration::from_secs(4);
/// How long the absent rank keeps the others waiting.
const ABSENT: Duration = Duration::from_secs(10);
/// How long a rank may take to notice.
const NOTICE: Duration = Duration::from_secs(40);

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    let world = own.world(1, "first")?;
    let is_absent = own.rank == own.size - 1;
    let what = match is_absent {
        true => "this rank keeps the others waiting",
        false => "the wait for another rank ends with an error",
    };
    drop(findings.attempt(what, || stall(&world, is_absent)));
    findings.check("the failed world is left", || {
        let begin = Instant::now();
        world.abort();
        world.finish(PATIENCE)?;
        Ok(Seen::figure(begin.elapsed().as_secs_f64(), "s"))
    });
    let joined = || Ok((own.world(1, "second")?, Seen::default()));
    let world = findings.attempt("a new world", joined)?;
    findings.check("reductions in it", || Case::plain().reduce(&world));
    world.finish(PATIENCE)
}

/// Memory and stream of the wait, dropped before the world is left.
type Stalled = (Vec<Span>, Stream);

fn stall(world: &World, is_absent: bool) -> Result<(Stalled, Seen)> {
    let case = Case::plain();
    let options = Options {
        stall_timeout: STALL,
        ..case.options()
    };
    let device = world.device();
    let specs = case.specs();
    let mut reducer = GradientReducer::new(world, &specs, &options)?;
    let stream = Stream::new(device)?;
    let span = |spec: &crate::reduce::TensorSpec| -> Result<Span> {
        let count = usize::try_from(spec.count).unwrap_or(usize::MAX);
        upload(device, DataType::F32, &vector(DataType::F32, 1, count))
    };
    let spans: Vec<Span> = specs.iter().map(span).collect::<Result<_>>()?;
    let begin = Instant::now();
    if is_absent {
        std::thread::sleep(ABSENT);
        let seconds = begin.elapsed().as_secs_f64();
        return Ok(((spans, stream), Seen::figure(seconds, "s")));
    }
    let waited = reducer
        .reduce(&spans, &stream)
        .and_then(|()| reducer.synchronize(&stream, NOTICE));
    let seconds = begin.elapsed().as_secs_f64();
    let error: Error = match waited {
        Ok(()) => return Err(wrong("a reduction without one of the ranks succeeded")),
        Err(error) => error,
    };
    if error.kind() == ErrorKind::Timeout && begin.elapsed() >= NOTICE {
        return Err(wrong(format!(
            "only the test's own limit ended it: {error}"
        )));
    }
    let seen = Seen::figure(seconds, "s").and(error.to_string());
    Ok(((spans, stream), seen))
}
