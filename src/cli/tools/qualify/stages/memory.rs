//! Copies to, from and within a device.

use std::time::{Duration, Instant};

use crate::ascend::{Buffer, Device, HostBuffer, Span, Stream};
use crate::cli::tools::qualify::findings::{Findings, Seen, require};
use crate::cli::tools::qualify::stage_rank::StageRank;
use crate::error::Result;

/// Bytes of copies: about the grains of 32, 64 and 512 bytes, and more than a device copies in one piece.
const SIZES: [usize; 7] = [1, 31, 64, 1001, 4096, 65_540, (8 << 20) + 3];
/// Untouched bytes before and behind what is copied.
const MARGIN: usize = 512;
/// Bytes that are copied again and again for the bandwidth.
const LARGE: usize = 64 << 20;
const TIMES: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(60);
/// Byte of the margins.
const UNTOUCHED: u8 = 0xa5;

pub(crate) fn run(own: &StageRank, findings: &mut Findings) -> Result<()> {
    let device = own.device()?;
    let stream = Stream::new(&device)?;
    let mut all = |name: &str, copy: &dyn Fn(&Area, &[u8]) -> Result<()>| {
        findings.check(name, || {
            for size in SIZES {
                Area::new(&device, size)?.holds(copy)?;
            }
            let sizes = SIZES.len();
            Ok(Seen::note(format!(
                "{sizes} sizes up to {} bytes",
                SIZES[sizes - 1]
            )))
        });
    };
    // Copies to the device and back check each other; the margins show bytes that went elsewhere.
    all("to the device and back", &|area, bytes| {
        area.span.write(bytes)
    });
    all("from pinned memory, on a stream", &|area, bytes| {
        let mut host = HostBuffer::new(&device, bytes.len())?;
        host.write(bytes)?;
        stream.upload(&area.span, &host)?;
        done(&stream)
    });
    all("within the device", &|area, bytes| {
        let from = Buffer::from_slice(&device, bytes)?.span();
        stream.copy(&area.span, &from)?;
        done(&stream)
    });
    findings.check("filled with a byte", || {
        for size in SIZES {
            let area = Area::new(&device, size)?;
            let byte = 0x5c;
            stream.fill(&area.span, byte)?;
            done(&stream)?;
            area.expect(&vec![byte; size])?;
        }
        Ok(Seen::default())
    });
    findings.check("bandwidth of a copy within the device", || {
        let [from, to] = [1_u8, 2].map(|byte| Buffer::from_slice(&device, &vec![byte; LARGE]));
        let (from, to) = (from?.span(), to?.span());
        stream.copy(&to, &from)?;
        done(&stream)?;
        let begin = Instant::now();
        for _ in 0..TIMES {
            stream.copy(&to, &from)?;
        }
        done(&stream)?;
        let moved = 2.0 * LARGE as f64 * f64::from(TIMES);
        let rate = moved / begin.elapsed().as_secs_f64();
        Ok(Seen::figure(rate * 1e-9, "GB/s").and("bytes read and written"))
    });
    Ok(())
}

/// Waits until the stream is empty, by queries: a later stage checks synchronisations.
fn done(stream: &Stream) -> Result<()> {
    let begin = Instant::now();
    while !stream.query()? {
        require(begin.elapsed() < PATIENCE, || {
            "the stream has not come to its end".to_owned()
        })?;
        std::thread::sleep(Duration::from_micros(50));
    }
    // A call that waits reports what failed.
    stream.synchronize_timeout(PATIENCE)
}

/// Device memory that is written to, between margins that nobody may touch.
struct Area {
    whole: Span,
    span: Span,
}

impl Area {
    fn new(device: &Device, size: usize) -> Result<Area> {
        let whole = Buffer::from_slice(device, &vec![UNTOUCHED; size + 2 * MARGIN])?.span();
        let span = whole.slice(MARGIN..MARGIN + size)?;
        Ok(Area { whole, span })
    }

    /// Whether `copy` brings a pattern here, all of it and nothing beside it.
    fn holds(&self, copy: &dyn Fn(&Area, &[u8]) -> Result<()>) -> Result<()> {
        let pattern: Vec<u8> = (0..self.span.len()).map(pattern).collect();
        copy(self, &pattern)?;
        self.expect(&pattern)
    }

    fn expect(&self, pattern: &[u8]) -> Result<()> {
        let mut bytes = vec![0_u8; self.whole.len()];
        self.whole.read(&mut bytes)?;
        let margin = [UNTOUCHED; MARGIN];
        let expected = [&margin, pattern, &margin].concat();
        let differs = bytes.iter().zip(&expected).position(|(is, be)| is != be);
        require(differs.is_none(), || {
            let at = differs.unwrap_or_default();
            let (is, be) = (bytes[at], expected[at]);
            let size = pattern.len();
            match at.checked_sub(MARGIN).filter(|&at| at < size) {
                Some(at) => format!("of {size} bytes, byte {at} is {is:#04x}, not {be:#04x}"),
                None => format!("beside {size} bytes a byte has become {is:#04x}"),
            }
        })
    }
}

/// Bytes with a period that no grain of memory has.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is a byte")]
fn pattern(index: usize) -> u8 {
    (index * 7 % 251) as u8
}
