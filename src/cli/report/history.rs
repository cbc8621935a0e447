//! What the ranks recorded, as lines to draw.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cli::io::failed;
use crate::cli::report::chart::{Chart, Series};
use crate::cli::report::times::{Pace, Passed, Reductions, share};
use crate::error::Result;
use crate::reduce::{Record, TensorRecord};

/// More tensors than this are not drawn one by one: some of them are, and the mean of all.
const TENSORS: usize = 8;

/// More values than this have no charts.
const VALUES: usize = 24;

/// What the ranks recorded.
pub(crate) struct History {
    pub(crate) charts: Vec<Chart>,
    /// How long the steps of each run took, where it has times.
    pub(crate) paces: Vec<Pace>,
    /// Names of values without a chart, as there are too many.
    pub(crate) left_out: Vec<String>,
}

/// A step of a run, from the records of all ranks.
#[derive(Default)]
struct StepRecord {
    epoch: Option<f64>,
    /// By rank, so that a later record of a rank replaces its earlier one.
    values: BTreeMap<String, BTreeMap<u32, f64>>,
    tensors: Vec<TensorRecord>,
    /// When each rank recorded it last, in seconds of Unix time.
    times: BTreeMap<u32, f64>,
}

/// One training.
#[derive(Default)]
struct Run {
    name: String,
    moments: BTreeMap<u64, StepRecord>,
}

/// All records in `folder`.
///
/// # Errors
/// If a file cannot be read. Lines that are no records are counted in a warning.
pub(crate) fn read(folder: &Path) -> Result<History> {
    let mut runs: Vec<Run> = Vec::new();
    let mut wrong = 0;
    for (rank, path) in files(folder)? {
        let text = std::fs::read(&path).map_err(|error| failed(path.display(), error))?;
        for line in text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
        {
            match serde_json::from_slice(line) {
                Ok(record) => take(&mut runs, rank, record),
                Err(_) => wrong += 1,
            }
        }
    }
    if wrong > 0 {
        log::warn!("{}: {wrong} lines are no records", folder.display());
    }
    let reductions = Reductions::read(folder)?;
    let passed: Vec<_> = runs.iter().map(|run| passed(run, &reductions)).collect();
    let paces = runs.iter().zip(&passed).filter_map(|(run, passed)| {
        let all: Vec<Passed> = passed.values().flatten().copied().collect();
        Pace::of(&run.name, &all)
    });
    let paces = paces.collect();
    let mut names = value_names(&runs);
    let left_out = names.split_off(VALUES.min(names.len()));
    Ok(History {
        charts: charts(&runs, &names, &passed),
        paces,
        left_out,
    })
}

/// The time before each record of a step, since the record before of the same rank.
fn passed(run: &Run, reductions: &Reductions) -> BTreeMap<u64, Vec<Passed>> {
    let mut passed: BTreeMap<u64, Vec<Passed>> = BTreeMap::new();
    let mut last: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
    for (&step, moment) in &run.moments {
        for (&rank, &time) in &moment.times {
            if let Some((before, since)) = last.insert(rank, (step, time)) {
                let time = reductions.passed(rank, step - before, since, time);
                passed.entry(step).or_default().extend(time);
            }
        }
    }
    passed
}

/// The rank of a file of records.
pub(crate) fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let rank = name.strip_prefix("rank_")?.strip_suffix(".jsonl")?;
    rank.parse().ok()
}

/// The files of records, in the order of the ranks.
fn files(folder: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder.display(), error))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<(u32, PathBuf)> = paths
        .filter_map(|path| Some((rank_of(&path)?, path)))
        .collect();
    files.sort();
    Ok(files)
}

fn take(runs: &mut Vec<Run>, rank: u32, record: Record) {
    let place = runs
        .iter()
        .position(|run| run.name == record.run)
        .unwrap_or_else(|| {
            runs.push(Run {
                name: record.run.clone(),
                ..Run::default()
            });
            runs.len() - 1
        });
    let moment = runs[place].moments.entry(record.step).or_default();
    moment.epoch = record
        .epoch
        .filter(|epoch| epoch.is_finite())
        .or(moment.epoch);
    if let Some(time) = record.time.filter(|time| time.is_finite()) {
        moment.times.insert(rank, time);
    }
    for (name, value) in record.values {
        moment.values.entry(name).or_default().insert(rank, value.0);
    }
    if !record.tensors.is_empty() {
        moment.tensors = record.tensors;
    }
}

/// Charts of the values `names`, of times and of tensors.
fn charts(runs: &[Run], names: &[String], passed: &[BTreeMap<u64, Vec<Passed>>]) -> Vec<Chart> {
    let by_epoch = runs
        .iter()
        .flat_map(|run| run.moments.values())
        .all(|moment| moment.epoch.is_some());
    let x = |step: u64, moment: &StepRecord| match moment.epoch {
        Some(epoch) if by_epoch => epoch,
        _ => step as f64,
    };
    let chart = |name: &str, title: String, y: &str, series: Vec<Series>| Chart {
        name: file_name(name),
        title,
        x: if by_epoch { "epoch" } else { "step" }.to_owned(),
        y: y.to_owned(),
        series,
        ..Chart::default()
    };
    let mut charts = Vec::new();
    for name in names {
        let of_run = |run: &Run| Series {
            name: if run.name.is_empty() {
                name.clone()
            } else {
                run.name.clone()
            },
            points: points(run, &x, |moment| {
                mean(moment.values.get(name)?.values().copied())
            }),
        };
        let series: Vec<Series> = runs
            .iter()
            .map(of_run)
            .filter(|line| !line.points.is_empty())
            .collect();
        let ranks = runs
            .iter()
            .flat_map(|run| run.moments.values())
            .filter_map(|moment| moment.values.get(name));
        let averaged = ranks.map(BTreeMap::len).max().unwrap_or(0) > 1;
        let title = match averaged {
            true => format!("{}, mean over ranks", capital(name)),
            false => capital(name),
        };
        let mut made = chart(name, title, name, series);
        made.logarithmic = name.to_lowercase().contains("loss") && spans_a_power(&made.series);
        charts.push(made);
    }
    type Time = fn(&[Passed]) -> Option<f64>;
    let times: [(&str, &str, &str, Time); 2] = [
        ("step_seconds", "Seconds a step", "seconds", |times| {
            mean(times.iter().map(Passed::seconds_a_step))
        }),
        (
            "reduction_share",
            "Share of a step in reductions",
            "% of the time",
            |times| share(times).map(|share| 100.0 * share),
        ),
    ];
    for (name, title, y, time) in times {
        let of_run = |(run, passed): (&Run, &BTreeMap<u64, Vec<Passed>>)| {
            let points = run.moments.iter().filter_map(|(step, moment)| {
                let value = time(passed.get(step)?)?;
                Some((x(*step, moment), value))
            });
            Series {
                name: match run.name.as_str() {
                    "" => y.to_owned(),
                    name => name.to_owned(),
                },
                points: ordered(points.collect()),
            }
        };
        let series = runs.iter().zip(passed).map(of_run);
        let series: Vec<Series> = series.filter(|line| !line.points.is_empty()).collect();
        if !series.is_empty() {
            charts.push(chart(name, title.to_owned(), y, series));
        }
    }
    type Figure = fn(&TensorRecord) -> f64;
    let figures: [(&str, &str, (f64, &'static str), Figure); 2] = [
        (
            "cosine",
            "Cosine of the gradients, per tensor",
            (0.0, "0: orthogonal"),
            |tensor| tensor.cosine.0,
        ),
        (
            "gain",
            "Gain |result| / |mean|, per tensor",
            (1.0, "1: as the mean"),
            |tensor| tensor.gain.0,
        ),
    ];
    for (name, title, mark, figure) in figures {
        let all = tensor_lines(runs, &x, figure);
        if all.is_empty() {
            continue;
        }
        let mut made = chart(name, title.to_owned(), name, thinned(&all));
        made.undrawn = all;
        made.mark = Some(mark);
        charts.push(made);
    }
    distinct(&mut charts);
    charts
}

/// Whether all values are positive, and some ten times others: then a scale of powers shows more.
fn spans_a_power(series: &[Series]) -> bool {
    let values = || {
        series
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.1)
    };
    let (low, high) = values().fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    low > 0.0 && high >= 10.0 * low
}

/// Gives charts whose names are alike files of their own.
fn distinct(charts: &mut [Chart]) {
    let mut known = std::collections::HashSet::new();
    for chart in charts {
        let name = chart.name.clone();
        let mut number = 2;
        while !known.insert(chart.name.clone()) {
            chart.name = format!("{name}_{number}");
            number += 1;
        }
    }
}

/// Loss and accuracy first, then the others by name.
fn value_names(runs: &[Run]) -> Vec<String> {
    let moments = runs.iter().flat_map(|run| run.moments.values());
    let mut names: Vec<String> = moments
        .flat_map(|moment| moment.values.keys().cloned())
        .collect();
    let place = |name: &String| match name.as_str() {
        "loss" => 0,
        "accuracy" => 1,
        _ => 2,
    };
    names.sort_by(|a, b| (place(a), a).cmp(&(place(b), b)));
    names.dedup();
    names
}

/// A line for each tensor of each run.
fn tensor_lines(
    runs: &[Run],
    x: &impl Fn(u64, &StepRecord) -> f64,
    figure: fn(&TensorRecord) -> f64,
) -> Vec<Series> {
    let recorded = |run: &&Run| {
        run.moments
            .values()
            .any(|moment| !moment.tensors.is_empty())
    };
    let several = runs.iter().filter(recorded).count() > 1;
    let mut lines = Vec::new();
    for run in runs {
        let mut names: Vec<&str> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for tensor in run.moments.values().flat_map(|moment| &moment.tensors) {
            if known.insert(tensor.name.as_str()) {
                names.push(&tensor.name);
            }
        }
        for name in names {
            let of = |moment: &StepRecord| {
                moment
                    .tensors
                    .iter()
                    .find(|tensor| tensor.name == name)
                    .map(figure)
            };
            let points = points(run, x, of);
            let name = if several {
                format!("{}: {name}", run.name)
            } else {
                name.to_owned()
            };
            if !points.is_empty() {
                lines.push(Series { name, points });
            }
        }
    }
    lines
}

/// The lines to draw of many: a few, evenly chosen, and the mean of all.
fn thinned(all: &[Series]) -> Vec<Series> {
    if all.len() <= TENSORS {
        return all.to_vec();
    }
    let mut sums: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
    for &(x, y) in all.iter().flat_map(|line| &line.points) {
        // x is not negative, so its bits are in its order.
        let sum = sums.entry(x.to_bits()).or_insert((x, 0.0, 0.0));
        (sum.1, sum.2) = (sum.1 + y, sum.2 + 1.0);
    }
    let mut drawn = vec![Series {
        name: format!("mean of {}", all.len()),
        points: sums
            .values()
            .map(|(x, sum, count)| (*x, sum / count))
            .collect(),
    }];
    let chosen = TENSORS - 1;
    drawn.extend((0..chosen).map(|index| all[index * (all.len() - 1) / (chosen - 1)].clone()));
    drawn
}

/// The points of a line, where there is a number.
fn points(
    run: &Run,
    x: &impl Fn(u64, &StepRecord) -> f64,
    y: impl Fn(&StepRecord) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let moments = run.moments.iter();
    let all = moments.filter_map(|(step, moment)| Some((x(*step, moment), y(moment)?)));
    ordered(all.collect())
}

/// The points that are numbers by their x, one for each.
fn ordered(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.retain(|point| point.1.is_finite());
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = next.1;
        }
        same
    });
    points
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then_some(sum / count)
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A name that stays in the folder.
fn file_name(name: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let name: String = name
        .chars()
        .map(|letter| if safe(letter) { letter } else { '_' })
        .collect();
    if name.is_empty() {
        "_".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::TemporaryFolder;

    fn drawn(records: &[(u32, Record)]) -> Vec<Chart> {
        let mut runs = Vec::new();
        for (rank, record) in records {
            take(&mut runs, *rank, record.clone());
        }
        let none = Reductions::default();
        let passed: Vec<_> = runs.iter().map(|run| passed(run, &none)).collect();
        charts(&runs, &value_names(&runs), &passed)
    }

    #[test]
    fn steps_last_from_record_to_record() {
        let record = |step, time: f64| Record {
            time: Some(time),
            ..Record::new("a", step)
        };
        // The second rank's steps take twice as long, and its clock goes back once.
        let charts = drawn(&[
            (0, record(1, 10.0)),
            (0, record(3, 14.0)),
            (0, record(4, 17.0)),
            (1, record(1, 20.0)),
            (1, record(3, 28.0)),
            (1, record(4, 27.0)),
        ]);
        assert_eq!(charts.len(), 1);
        assert_eq!(charts[0].name, "step_seconds");
        assert_eq!(charts[0].series[0].points, [(3.0, 3.0), (4.0, 3.0)]);
    }

    #[test]
    fn a_loss_that_falls_far_gets_a_scale_of_powers() {
        let losses = |values: &[f64]| -> Vec<(u32, Record)> {
            let records = values.iter().zip(1..);
            records
                .map(|(&value, step)| (0, Record::new("", step).value("train_loss", value)))
                .collect()
        };
        assert!(drawn(&losses(&[2.0, 0.1]))[0].logarithmic);
        assert!(!drawn(&losses(&[2.0, 0.3]))[0].logarithmic);
        assert!(!drawn(&losses(&[2.0, 0.0]))[0].logarithmic);
    }

    #[test]
    fn ranks_are_averaged_and_later_records_replace_earlier_ones() {
        let record = |loss| Record::new("", 1).value("loss", loss);
        let charts = drawn(&[(0, record(9.0)), (0, record(1.0)), (1, record(3.0))]);
        assert_eq!(charts.len(), 1);
        assert_eq!(
            (charts[0].name.as_str(), charts[0].x.as_str()),
            ("loss", "step")
        );
        assert_eq!(charts[0].series[0].points, [(1.0, 2.0)]);
    }

    #[test]
    fn runs_are_lines_over_epochs_and_what_is_no_number_is_left_out() {
        let record = |run: &str, step, loss| {
            Record::new(run, step)
                .epoch(step as f64 / 2.0)
                .value("loss", loss)
        };
        let charts = drawn(&[
            (0, record("adasum", 1, 2.0)),
            (0, record("adasum", 2, f64::NAN)),
            (0, record("mean", 1, 4.0)),
        ]);
        let lines: Vec<_> = charts[0]
            .series
            .iter()
            .map(|line| (line.name.as_str(), line.points.clone()))
            .collect();
        assert_eq!(
            lines,
            [("adasum", vec![(0.5, 2.0)]), ("mean", vec![(0.5, 4.0)])]
        );
        assert_eq!(charts[0].csv(), "epoch,adasum,mean\n0.5,2,4\n");
    }

    #[test]
    fn of_many_tensors_some_are_drawn_and_all_are_in_the_file() {
        let mut record = Record::new("", 1);
        for index in 0..20 {
            let line = format!(r#"{{"name":"t{index}","cosine":{index}}}"#);
            record.tensors.push(serde_json::from_str(&line).unwrap());
        }
        let charts = drawn(&[(0, record)]);
        // No gain was recorded.
        assert_eq!(charts.len(), 1);
        let names: Vec<&str> = charts[0]
            .series
            .iter()
            .map(|line| line.name.as_str())
            .collect();
        assert_eq!(
            names,
            ["mean of 20", "t0", "t3", "t6", "t9", "t12", "t15", "t19"]
        );
        assert_eq!(charts[0].series[0].points, [(1.0, 9.5)]);
        assert_eq!(
            charts[0].csv().lines().next().unwrap().split(',').count(),
            21
        );
    }

    #[test]
    fn of_too_many_values_some_are_named_and_nothing_else_is_lost() {
        let scratch = TemporaryFolder::new("adasum-history-test").unwrap();
        let names = (0..VALUES + 2).map(|index| format!("v{index:02}"));
        let values: Vec<String> = names.map(|name| format!("\"{name}\":1")).collect();
        let record = format!(
            r#"{{"step":1,"values":{{{},"loss":2}},"tensors":[{{"name":"w","cosine":0.5}}]}}"#,
            values.join(",")
        );
        std::fs::write(scratch.path().join("rank_0.jsonl"), record).unwrap();
        let history = read(scratch.path()).unwrap();
        assert_eq!(history.left_out, ["v23", "v24", "v25"]);
        let names: Vec<&str> = history.charts.iter().map(|chart| &*chart.name).collect();
        assert_eq!(
            (names[0], names[VALUES], names.len()),
            ("loss", "cosine", VALUES + 1)
        );
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(file_name("../a b"), "___a_b");
        assert_eq!(file_name(""), "_");
        let charts = drawn(&[(0, Record::new("", 1).value("a b", 1.0).value("a_b", 2.0))]);
        let names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
        assert_eq!(names, ["a_b", "a_b_2"]);
    }
}
