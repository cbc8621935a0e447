//! The timeline of a job in the Trace Event Format, which chrome://tracing and Perfetto open: made of what each rank has written
//! of itself (`reduce::TraceLine`), on one clock.
//!
//! A rank is a process there. Its steps, its buckets, the calls of its host and each of its streams are threads. All times are
//! measured: a bucket lasts from the begin of its first stage to the end of its last, and a rank waits in an exchange until its
//! host has enqueued it and the last of its peers is ready for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cache::TemporaryFolder;
use crate::cli::io::{self, failed, notice};
use crate::cli::text::count;
use crate::error::{Context, Result};
use crate::reduce::{Phase, StageId, TRACE_VARIABLE, TraceLine, TraceSpan, Track};

/// Times are multiples of so many nanoseconds: parts of a microsecond that readers' `double` holds exactly.
const GRAIN: u64 = 125;

/// The threads of a rank have numbers from so many times its own on: a number says to readers which thread it is.
const THREADS: u64 = 1000;

/// A timeline to be written, and where ranks write until then.
pub(crate) struct Trace {
    path: PathBuf,
    folder: TemporaryFolder,
}

impl Trace {
    /// Looks whether the file `path` can be written, and makes a folder for the ranks.
    ///
    /// # Errors
    /// If it cannot. The text names `--trace`.
    pub(crate) fn prepare(path: &Path) -> Result<Trace> {
        io::check_place(path).context(|| "--trace")?;
        Ok(Trace {
            path: path.to_owned(),
            folder: TemporaryFolder::new("adasum-trace")?,
        })
    }

    /// The variable that has the ranks of an attempt write.
    ///
    /// # Errors
    /// If the folder of the attempt cannot be made.
    pub(crate) fn variable(&self, attempt: u32) -> Result<(&'static str, OsString)> {
        let folder = self.folder.path().join(attempt.to_string());
        std::fs::create_dir(&folder).map_err(|error| failed(folder.display(), error))?;
        Ok((TRACE_VARIABLE, folder.into()))
    }

    /// Writes the timeline of all that the ranks have written, and tells the user.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(crate) fn write(&self) -> Result<()> {
        let worlds = read(self.folder.path())?;
        let events = events(&worlds);
        io::replace(&self.path, |file| {
            let mut file = BufWriter::new(file);
            let mut between = "[\n";
            for event in &events {
                let written = write!(file, "{between}{event}");
                written.map_err(|error| failed("cannot write", error))?;
                between = ",\n";
            }
            let end = if events.is_empty() { "[]\n" } else { "\n]\n" };
            let written = write!(file, "{end}").and_then(|()| file.flush());
            written.map_err(|error| failed("cannot write", error))
        })
        .context(|| "--trace")?;
        let path = self.path.display();
        match worlds.is_empty() {
            true => notice(&format!("{path}: no rank has recorded anything")),
            false => notice(&format!("trace: {path}")),
        }
        let left_out: BTreeSet<u64> = worlds.iter().flat_map(|w| w.left_out.clone()).collect();
        if !left_out.is_empty() {
            let steps = count(left_out.len() as u64, "step");
            notice(&format!(
                "{path}: {steps} left out, where the host was too far ahead of the device"
            ));
        }
        Ok(())
    }
}

/// What a rank wrote of a world.
struct World {
    rank: u32,
    /// Attempt of the job, and number of the world in its process: ranks meet in those that are alike.
    session: (u32, u64),
    spans: Vec<TraceSpan>,
    left_out: Vec<u64>,
}

/// The files in the folders of all attempts. The last line of a rank that was killed may be a part of one.
fn read(folder: &Path) -> Result<Vec<World>> {
    let mut worlds = Vec::new();
    let mut wrong = 0;
    for (attempt, folder) in entries(folder)? {
        let Ok(attempt) = attempt.parse() else {
            continue;
        };
        for (_, path) in entries(&folder)? {
            let text = std::fs::read(&path).map_err(|error| failed(path.display(), error))?;
            let lines = text.split(|byte| *byte == b'\n');
            let mut world: Option<World> = None;
            for line in lines.filter(|line| !line.is_empty()) {
                match (serde_json::from_slice(line), &mut world) {
                    (Ok(TraceLine::World { rank, number, .. }), _) => {
                        world = Some(World {
                            rank,
                            session: (attempt, number),
                            spans: Vec::new(),
                            left_out: Vec::new(),
                        });
                    }
                    (Ok(TraceLine::Span(span)), Some(world)) => world.spans.push(span),
                    (Ok(TraceLine::LeftOut { step }), Some(world)) => world.left_out.push(step),
                    _ => wrong += 1,
                }
            }
            worlds.extend(world.map(World::whole));
        }
    }
    if wrong > 0 {
        log::warn!("{}: {wrong} lines are no spans", folder.display());
    }
    Ok(worlds)
}

/// The names and paths in a folder, in the order of the names.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder.display(), error))?;
    let entries = entries.flatten().map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.path())
    });
    let mut entries: Vec<(String, PathBuf)> = entries.collect();
    entries.sort();
    Ok(entries)
}

impl World {
    /// Without what is written as begun and has ended later.
    fn whole(mut self) -> World {
        let key = |span: &TraceSpan| (span.track, span.step, span.start_ns, span.name.clone());
        let ended: BTreeSet<_> = self
            .spans
            .iter()
            .filter(|span| span.ns.is_some())
            .map(key)
            .collect();
        self.spans
            .retain(|span| span.ns.is_some() || !ended.contains(&key(span)));
        self
    }
}

/// A bar of the picture.
struct Bar {
    name: String,
    category: String,
    start: u64,
    /// `None` if it has not ended.
    end: Option<u64>,
    arguments: Value,
    /// What it waits for, one after the other.
    waits: Vec<Wait>,
}

/// A part of a bar.
struct Wait {
    name: String,
    start: u64,
    end: u64,
    arguments: Value,
}

/// The threads of a rank, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Steps,
    Host,
    Payload,
    Kernels,
    Scalars,
    Buckets,
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Row::Steps => "steps (device)",
            Row::Host => "calls (host)",
            Row::Payload => "caller's stream (device)",
            Row::Kernels => "stream of kernels (device)",
            Row::Scalars => "stream of scalars (device)",
            Row::Buckets => "buckets (device)",
        }
    }
}

impl From<Track> for Row {
    fn from(track: Track) -> Row {
        match track {
            Track::Step => Row::Steps,
            Track::Host => Row::Host,
            Track::Payload => Row::Payload,
            Track::Kernels => Row::Kernels,
            Track::Scalars => Row::Scalars,
        }
    }
}

/// When each rank was ready for a stage, and by what that may be wrong.
type Begins<'a> = HashMap<((u32, u64), &'a StageId), BTreeMap<u32, (u64, u64)>>;

/// The events of the Trace Event Format.
fn events(worlds: &[World]) -> Vec<Value> {
    let spans = || {
        let all = worlds.iter();
        all.flat_map(|world| world.spans.iter().map(move |span| (world, span)))
    };
    let Some(zero) = spans().map(|(_, span)| span.start_ns).min() else {
        return Vec::new();
    };
    let mut begins: Begins<'_> = HashMap::new();
    for (world, span) in spans() {
        if let Some(id) = &span.id {
            let ranks = begins.entry((world.session, id)).or_default();
            ranks.insert(world.rank, (ready(span), span.error_ns));
        }
    }
    let mut rows: BTreeMap<(u32, Row), Vec<Bar>> = BTreeMap::new();
    for world in worlds {
        for span in &world.spans {
            let row = rows.entry((world.rank, span.track.into())).or_default();
            row.push(bar(world, span, &begins));
        }
        let row = rows.entry((world.rank, Row::Buckets)).or_default();
        row.extend(buckets(world));
    }
    let mut events = Vec::new();
    let mut timed = Vec::new();
    let mut threads: BTreeMap<u32, u64> = BTreeMap::new();
    for ((rank, row), bars) in rows {
        for (index, lane) in lanes(bars).into_iter().enumerate() {
            let count = threads.entry(rank).or_default();
            *count += 1;
            let thread = u64::from(rank) * THREADS + *count;
            if *count == 1 {
                let at_zero = zero as f64 * 1e-9;
                let name = json!({"name": format!("rank {rank}"), "unix_seconds_at_0": at_zero});
                events.push(about("process_name", rank, thread, &name));
                let order = json!({"sort_index": rank});
                events.push(about("process_sort_index", rank, thread, &order));
            }
            let name = match index {
                0 => row.name().to_owned(),
                more => format!("{}, row {}", row.name(), more + 1),
            };
            events.push(about("thread_name", rank, thread, &json!({"name": name})));
            let order = json!({"sort_index": *count});
            events.push(about("thread_sort_index", rank, thread, &order));
            for bar in lane {
                drawn(&bar, zero, (rank, thread), &mut timed);
            }
        }
    }
    // What is in another bar stands behind it.
    timed.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(end.unwrap_or(u64::MAX))));
    events.extend(timed.into_iter().map(|(_, _, event)| event));
    events
}

/// The bar of a span.
fn bar(world: &World, span: &TraceSpan, begins: &Begins<'_>) -> Bar {
    let device = span.track != Track::Host;
    let phase = span.phase.map(Phase::name);
    let clock = if device { "device" } else { "host" };
    let mut arguments = json!({"step": span.step, "clock": clock});
    if device {
        arguments["clock_error_us"] = json!(span.error_ns as f64 / 1e3);
    }
    if let Some(bucket) = span.bucket {
        arguments["bucket"] = json!(bucket);
    }
    if let Some(phase) = phase {
        arguments["phase"] = json!(phase);
    }
    if !span.peers.is_empty() {
        arguments["peers"] = json!(span.peers);
        arguments["bytes"] = json!(span.bytes);
    }
    if let (None, Some(id)) = (span.ns, &span.id) {
        arguments["peers_not_seen"] = json!(unseen(world, span, id, begins));
    }
    Bar {
        name: match span.track {
            Track::Step => format!("step {}: {}", span.step, span.name),
            _ => span.name.clone(),
        },
        category: [clock]
            .into_iter()
            .chain(phase)
            .collect::<Vec<_>>()
            .join(","),
        start: span.start_ns,
        end: span.ns.map(|ns| span.start_ns + ns),
        arguments,
        waits: waits(world, span, begins),
    }
}

/// The peers of whom nobody has seen the begin: of what they began in the last moment nothing may be written.
fn unseen(world: &World, span: &TraceSpan, id: &StageId, begins: &Begins<'_>) -> Vec<u32> {
    let seen = begins.get(&(world.session, id));
    let unseen = |peer: &&u32| seen.is_none_or(|ranks| !ranks.contains_key(peer));
    span.peers.iter().filter(unseen).copied().collect()
}

/// When the stream had come to a stage and the host had enqueued it.
fn ready(span: &TraceSpan) -> u64 {
    span.start_ns.max(span.enqueued_ns)
}

/// What `span` waits for at its begin: for the host, and then for the last of its peers, where their times are known.
fn waits(world: &World, span: &TraceSpan, begins: &Begins<'_>) -> Vec<Wait> {
    let mut waits = Vec::new();
    let Some(id) = &span.id else {
        return waits;
    };
    let ended = span.ns.map_or(u64::MAX, |ns| span.start_ns + ns);
    let ready = ready(span).min(ended);
    if ready - span.start_ns > span.error_ns {
        waits.push(Wait {
            name: "wait for the host".to_owned(),
            start: span.start_ns,
            end: ready,
            arguments: json!({"step": span.step}),
        });
    }
    let others = begins.get(&(world.session, id));
    let late = |&rank: &u32| {
        let (other, error) = *others?.get(&rank)?;
        let late = other.checked_sub(ready)?;
        (late > span.error_ns + error).then_some((late, rank))
    };
    let mut late: Vec<(u64, u32)> = span.peers.iter().filter_map(late).collect();
    late.sort_unstable();
    if let Some((longest, last)) = late.last()
        && ready < ended
    {
        let each = late.iter();
        let each = each.map(|(late, rank)| (rank.to_string(), json!(*late as f64 / 1e3)));
        let each: serde_json::Map<String, Value> = each.collect();
        waits.push(Wait {
            name: format!("wait for rank {last}"),
            start: ready,
            end: (ready + longest).min(ended),
            arguments: json!({"step": span.step, "rank": last, "late_us": each}),
        });
    }
    waits
}

/// The buckets of all steps, each from its first stage to its last.
fn buckets(world: &World) -> Vec<Bar> {
    let mut ends: BTreeMap<(u64, usize), (u64, Option<u64>)> = BTreeMap::new();
    for span in &world.spans {
        let Some(bucket) = span.bucket else {
            continue;
        };
        let end = span.ns.map(|ns| span.start_ns + ns);
        let hull = ends
            .entry((span.step, bucket))
            .or_insert((span.start_ns, Some(0)));
        hull.0 = hull.0.min(span.start_ns);
        hull.1 = hull.1.zip(end).map(|(a, b)| a.max(b));
    }
    let bar = |((step, bucket), (start, end))| Bar {
        name: format!("bucket {bucket}"),
        category: "device,bucket".to_owned(),
        start,
        end,
        arguments: json!({"step": step, "bucket": bucket, "clock": "device"}),
        waits: Vec::new(),
    };
    ends.into_iter().map(bar).collect()
}

/// Bars in rows in which none overlaps another.
fn lanes(mut bars: Vec<Bar>) -> Vec<Vec<Bar>> {
    bars.sort_by_key(|bar| bar.start);
    let mut lanes: Vec<(u64, Vec<Bar>)> = Vec::new();
    for bar in bars {
        let end = bar.end.map_or(u64::MAX, grain);
        match lanes.iter_mut().find(|(free, _)| *free <= grain(bar.start)) {
            Some((free, lane)) => {
                *free = end;
                lane.push(bar);
            }
            None => lanes.push((end, vec![bar])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// The nearest time that is shown.
fn grain(time: u64) -> u64 {
    (time + GRAIN / 2) / GRAIN * GRAIN
}

/// An event that says what a process or a thread is.
fn about(what: &str, rank: u32, thread: u64, arguments: &Value) -> Value {
    json!({"name": what, "ph": "M", "ts": 0, "pid": rank, "tid": thread, "args": arguments})
}

/// Begin, end and event of a bar and of its part.
fn drawn(
    bar: &Bar,
    zero: u64,
    (rank, thread): (u32, u64),
    events: &mut Vec<(u64, Option<u64>, Value)>,
) {
    let microseconds = |ns: u64| ns as f64 / 1e3;
    let mut event = |name: &str, category: &str, times: (u64, Option<u64>), arguments: &Value| {
        let (start, end) = (grain(times.0), times.1.map(grain));
        let mut event = json!({
            "name": name,
            "cat": category,
            "ph": if end.is_some() { "X" } else { "B" },
            "ts": microseconds(start - grain(zero)),
            "pid": rank,
            "tid": thread,
            "args": arguments,
        });
        if let Some(end) = end {
            event["dur"] = json!(microseconds(end - start));
        } else {
            event["args"]["unfinished"] = json!(true);
        }
        events.push((start, end, event));
    };
    event(
        &bar.name,
        &bar.category,
        (bar.start, bar.end),
        &bar.arguments,
    );
    for wait in &bar.waits {
        let times = (wait.start, Some(wait.end));
        event(&wait.name, "device,wait", times, &wait.arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage in microseconds, of bucket 0 in call 1.
    fn stage(position: usize, start: u64, us: Option<u64>, peers: &[u32]) -> TraceSpan {
        TraceSpan {
            track: Track::Payload,
            name: format!("stage {position}"),
            start_ns: 1_000_000 + start * 1000,
            ns: us.map(|us| us * 1000),
            enqueued_ns: 0,
            error_ns: 500,
            step: 7,
            bucket: Some(0),
            phase: Some(Phase::Exchange),
            peers: peers.to_vec(),
            bytes: 8,
            id: Some(StageId {
                world: "w".to_owned(),
                call: 1,
                position,
            }),
        }
    }

    fn world(rank: u32, spans: Vec<TraceSpan>) -> World {
        World {
            rank,
            session: (0, 0),
            spans,
            left_out: Vec::new(),
        }
    }

    /// Rank, name, begin and end of what is not a bucket.
    fn bars(worlds: &[World]) -> Vec<(u64, String, f64, Option<f64>)> {
        let events = events(worlds);
        let timed = events
            .iter()
            .filter(|event| event["ph"] != "M" && event["cat"] != "device,bucket");
        let bar = |event: &Value| {
            let start = event["ts"].as_f64().unwrap();
            let rank = event["pid"].as_u64().unwrap();
            let name = event["name"].as_str().unwrap().to_owned();
            (
                rank,
                name,
                start,
                event["dur"].as_f64().map(|length| start + length),
            )
        };
        timed.map(bar).collect()
    }

    #[test]
    fn a_rank_waits_for_the_last_of_its_peers_and_not_for_what_clocks_may_be_wrong_by() {
        let worlds = [
            world(0, vec![stage(0, 0, Some(100), &[1, 2])]),
            world(1, vec![stage(0, 40, Some(60), &[0, 2])]),
            world(2, vec![stage(0, 41, Some(59), &[0, 1])]),
        ];
        let found = bars(&worlds);
        let name = |name: &str| name.to_owned();
        assert_eq!(
            found,
            [
                (0, name("stage 0"), 0.0, Some(100.0)),
                (0, name("wait for rank 2"), 0.0, Some(41.0)),
                (1, name("stage 0"), 40.0, Some(100.0)),
                (2, name("stage 0"), 41.0, Some(100.0)),
            ]
        );
        // Another attempt is another meeting.
        let mut others = worlds;
        others[2].session = (1, 0);
        assert!(bars(&others).contains(&(0, name("wait for rank 1"), 0.0, Some(40.0))));
    }

    #[test]
    fn a_stage_waits_for_its_own_host_first() {
        let mut late = stage(0, 0, Some(50), &[1]);
        late.enqueued_ns = late.start_ns + 30_000;
        let worlds = [
            world(0, vec![late]),
            world(1, vec![stage(0, 5, Some(45), &[0])]),
        ];
        let found = bars(&worlds);
        let wait = |rank, who: &str, from, to| (rank, format!("wait for {who}"), from, Some(to));
        assert!(found.contains(&wait(0, "the host", 0.0, 30.0)), "{found:?}");
        assert!(found.contains(&wait(1, "rank 0", 5.0, 30.0)), "{found:?}");
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn what_has_ended_is_no_longer_only_begun_and_a_broken_line_is_left_out() {
        let folder = TemporaryFolder::new("adasum-trace-test").unwrap();
        let attempt = folder.path().join("0");
        std::fs::create_dir(&attempt).unwrap();
        let head = TraceLine::World {
            rank: 3,
            size: 4,
            number: 0,
        };
        let spans = [
            stage(0, 0, None, &[]),
            stage(0, 0, Some(9), &[]),
            stage(1, 20, None, &[2]),
        ];
        let lines = [head].into_iter().chain(spans.map(TraceLine::Span));
        let mut text: String = lines
            .map(|line| serde_json::to_string(&line).unwrap() + "\n")
            .collect();
        text += "{\"trace\":\"span\",\"tra";
        std::fs::write(attempt.join("trace_3.1.0.jsonl"), text).unwrap();
        let worlds = read(folder.path()).unwrap();
        let ends = [("stage 0", 0.0, Some(9.0)), ("stage 1", 20.0, None)];
        assert_eq!(
            bars(&worlds),
            ends.map(|(name, from, to)| (3, name.to_owned(), from, to))
        );
        let events = events(&worlds);
        let open = events
            .iter()
            .find(|event| event["name"] == "stage 1")
            .unwrap();
        assert_eq!(
            (&open["ph"], &open["args"]["unfinished"]),
            (&json!("B"), &json!(true))
        );
        assert_eq!(open["args"]["peers_not_seen"], json!([2]));
        // Its bucket has not ended either.
        let bucket = events
            .iter()
            .find(|event| event["name"] == "bucket 0")
            .unwrap();
        assert_eq!(bucket["ph"], "B");
    }
}
