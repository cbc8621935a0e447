//! Order between streams, limits of time, aborts.
//!
//! Long work is copies of large memory: it needs no kernel, and how long it takes is measured first.

use std::time::{Duration, Instant};

use crate::ascend::{Buffer, Device, Event, Span, Stream};
use crate::cli::tools::qualify::findings::{Findings, Seen, require, wrong};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::error::{ErrorKind, Result};
use crate::kernel::Chip;

/// Bytes of a copy that is part of long work.
const LARGE: usize = 64 << 20;
/// How long such work takes, about: far longer than a call, however busy the host is.
const LONG: Duration = Duration::from_millis(1500);
const PATIENCE: Duration = Duration::from_secs(60);
/// A limit of time that ends long before such work does.
const SHORT: Duration = Duration::from_millis(50);
/// The most copies that are queued at a time.
const MOST: u32 = 1000;

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    let device = own.device()?;
    let long = LongWork::new(&device)?;
    findings.check("long work", || {
        let seconds = long.each.as_secs_f64() * f64::from(long.copies);
        Ok(Seen::figure(seconds, "s").and(format!("{} copies of 64 MB", long.copies)))
    });
    findings.check("a synchronisation waits for the end", || {
        let stream = Stream::new(&device)?;
        let pair = Pair::new(&device)?;
        long.queue(&stream)?;
        pair.copy(&stream)?;
        stream.synchronize()?;
        pair.require_copied()
    });
    findings.check(
        "an event is complete only when what is before it is",
        || {
            let (stream, event) = (Stream::new(&device)?, Event::new(&device)?);
            long.queue(&stream)?;
            stream.record(&event)?;
            let early = event.is_complete()?;
            stream.synchronize_timeout(PATIENCE)?;
            require(!early, || "it was complete under queued work".to_owned())?;
            require(event.is_complete()?, || "it never completed".to_owned())?;
            Ok(Seen::default())
        },
    );
    findings.check("a stream waits for an event of another", || {
        let [first, second] = [Stream::new(&device)?, Stream::new(&device)?];
        let (event, pair) = (Event::new(&device)?, Pair::new(&device)?);
        long.queue(&first)?;
        pair.copy(&first)?;
        first.record(&event)?;
        second.wait(&event)?;
        let behind = Buffer::zeroed(&device, PATTERN.len())?.span();
        second.copy(&behind, &pair.to)?;
        second.synchronize_timeout(PATIENCE)?;
        let copied = require_pattern(&behind);
        first.synchronize_timeout(PATIENCE)?;
        copied
    });
    findings.check("a limit of time ends a wait", || {
        let stream = Stream::new(&device)?;
        long.queue(&stream)?;
        let begin = Instant::now();
        let waited = stream.synchronize_timeout(SHORT);
        let seconds = begin.elapsed().as_secs_f64();
        stream.synchronize_timeout(PATIENCE)?;
        match waited {
            Ok(()) => Err(wrong(format!(
                "a limit of 50 ms did not end a wait of {seconds:.2} s for long work"
            ))),
            Err(error) if error.kind() == ErrorKind::Timeout => {
                Ok(Seen::figure(1e3 * seconds, "ms").and("for a limit of 50 ms"))
            }
            Err(error) => Err(error),
        }
    });
    abort(&device, &long, findings)
}

/// Ends queued work from outside.
fn abort(device: &Device, long: &LongWork, findings: &mut Findings) -> Result<()> {
    const NAME: &str = "an abort ends queued work, and the stream goes on";
    const ASCEND_910A: u32 = 1001;
    if Chip::named(&device.soc_name()?)?.arch() == ASCEND_910A {
        findings.skip(NAME, "Ascend 910A knows no abort");
        return Ok(());
    }
    findings.check(NAME, || {
        let (stream, pair) = (Stream::new(device)?, Pair::new(device)?);
        for _ in 0..4 {
            long.queue(&stream)?;
        }
        pair.copy(&stream)?;
        let begin = Instant::now();
        require(stream.abort()?.is_some(), || {
            "aclrtStreamAbort is absent or not supported".to_owned()
        })?;
        // The first synchronisation may report the abort.
        let _ = stream.synchronize_timeout(PATIENCE);
        let seconds = begin.elapsed().as_secs_f64();
        let dropped = pair.require_copied().is_err();
        require(dropped, || {
            format!("after {seconds:.2} s all of the work had been done")
        })?;
        pair.copy(&stream)?;
        stream.synchronize_timeout(PATIENCE)?;
        pair.require_copied()?;
        Ok(Seen::figure(1e3 * seconds, "ms"))
    });
    Ok(())
}

/// Work that takes about [`LONG`].
struct LongWork {
    from: Span,
    to: Span,
    each: Duration,
    copies: u32,
}

impl LongWork {
    fn new(device: &Device) -> Result<LongWork> {
        const SAMPLE: u32 = 4;
        let from = Buffer::from_slice(device, &vec![1_u8; LARGE])?.span();
        let to = Buffer::from_slice(device, &vec![2_u8; LARGE])?.span();
        let stream = Stream::new(device)?;
        let mut each = Duration::MAX;
        for _ in 0..3 {
            let begin = Instant::now();
            for _ in 0..SAMPLE {
                stream.copy(&to, &from)?;
            }
            stream.synchronize_timeout(PATIENCE)?;
            each = each.min(begin.elapsed() / SAMPLE);
        }
        let copies = LONG.as_secs_f64() / each.as_secs_f64().max(1e-6);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and MOST"
        )]
        let copies = copies.ceil().clamp(1.0, f64::from(MOST)) as u32;
        Ok(LongWork {
            from,
            to,
            each,
            copies,
        })
    }

    fn queue(&self, stream: &Stream) -> Result<()> {
        (0..self.copies).try_for_each(|_| stream.copy(&self.to, &self.from))
    }
}

const PATTERN: [u8; 64] = [0x3c; 64];

/// Memory to copy a pattern within.
struct Pair {
    from: Span,
    to: Span,
}

impl Pair {
    fn new(device: &Device) -> Result<Pair> {
        Ok(Pair {
            from: Buffer::from_slice(device, &PATTERN)?.span(),
            to: Buffer::zeroed(device, PATTERN.len())?.span(),
        })
    }

    fn copy(&self, stream: &Stream) -> Result<()> {
        stream.copy(&self.to, &self.from)
    }

    fn require_copied(&self) -> Result<Seen> {
        require_pattern(&self.to)
    }
}

fn require_pattern(span: &Span) -> Result<Seen> {
    let mut bytes = [0_u8; PATTERN.len()];
    span.read(&mut bytes)?;
    require(bytes == PATTERN, || {
        "what was to be copied before is not there".to_owned()
    })?;
    Ok(Seen::default())
}
