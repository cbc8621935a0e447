//! Ratios to another program. A machine changes by a factor of two between minutes, so the two are measured in turn, round by
//! round, and the ratio of each round counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cli::io::{json, notice};
use crate::cli::lab::bench::job;
use crate::cli::lab::bench::measured::Measured;
use crate::cli::lab::bench::request::{Reduced, Request};
use crate::cli::lab::bench::spread::{Spread, median};
use crate::cli::launch::job::End;
use crate::error::{Error, Result, quote};

/// What is compared with, and how often.
pub(crate) struct Against<'a> {
    /// A command of the shell.
    pub(crate) command: &'a str,
    pub(crate) rounds: u32,
}

/// One size of all rounds.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Ours, with the median of the rounds.
    pub(crate) ours: Measured,
    /// The other's median of the rounds.
    pub(crate) other_s: f64,
    /// Our time over the other's, of each round.
    pub(crate) ratios: Vec<f64>,
}

/// What the other program must say of a size.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Other {
    bytes: u64,
    median_s: f64,
}

/// The line of JSON of a comparison.
#[derive(Serialize)]
struct Line<'a> {
    compare: &'a str,
    ranks: u32,
    dtype: &'a str,
    bytes: u64,
    layers: u32,
    rounds: usize,
    /// Our time over the other's: median, quartiles and extremes of the rounds; below 1 is faster.
    #[serde(flatten)]
    ratio: Spread,
    /// Of each round.
    ratios: &'a [f64],
}

/// Measures the two in turn. Each line of either goes to `show`.
///
/// # Errors
/// If one of them cannot be started, the other program fails, or its sizes are not ours.
pub(crate) fn run(
    what: &Reduced,
    against: &Against<'_>,
    show: &mut job::Show<'_>,
) -> Result<(End, Vec<Pair>)> {
    let mut rounds = Vec::new();
    for round in 0..against.rounds {
        notice(&format!("round {} of {}", round + 1, against.rounds));
        let mut ours: Vec<Measured> = Vec::new();
        let mut others = BTreeMap::new();
        // Whoever is first changes from round to round. A command that cannot be run shows at once.
        for others_turn in [round % 2 == 0, round % 2 != 0] {
            let end = match others_turn {
                true => job::command(against.command, &mut |line| {
                    show(line)?;
                    // It may print other objects.
                    if let Ok(other) = serde_json::from_slice::<Other>(line) {
                        others
                            .entry(other.bytes)
                            .or_insert_with(Vec::new)
                            .push(other.median_s);
                    }
                    Ok(())
                })?,
                false => job::run(&Request::Reduction(what.clone()), None, &mut |line| {
                    show(line)?;
                    ours.push(serde_json::from_slice(line)?);
                    Ok(())
                })?,
            };
            if end != End::Success {
                return Ok((end, Vec::new()));
            }
        }
        let other = |ours: Measured| Ok((other_time(against.command, &others, &ours)?, ours));
        rounds.push(ours.into_iter().map(other).collect::<Result<Vec<_>>>()?);
    }
    Ok((End::Success, pairs(&rounds)))
}

/// The other's time for the size of `ours`.
fn other_time(command: &str, others: &BTreeMap<u64, Vec<f64>>, ours: &Measured) -> Result<f64> {
    let times = others.get(&ours.bytes).map_or(&[][..], Vec::as_slice);
    match times {
        [time] if *time > 0.0 => Ok(*time),
        [time] => Err(refused(
            command,
            &format!("median_s is {time} for {} bytes", ours.bytes),
        )),
        [] => Err(refused(
            command,
            &format!(
                "no line of it is a JSON object with bytes {} and median_s",
                ours.bytes
            ),
        )),
        _ => Err(refused(
            command,
            &format!("{} of its lines have bytes {}", times.len(), ours.bytes),
        )),
    }
}

fn refused(command: &str, why: &str) -> Error {
    Error::invalid(format!("--compare {}: {why}", quote(command)))
}

/// The sizes of all `rounds`, each of which has the same.
fn pairs(rounds: &[Vec<(f64, Measured)>]) -> Vec<Pair> {
    let sizes = rounds.first().map_or(0, Vec::len);
    let pair = |size: usize| {
        let times = || rounds.iter().map(|round| &round[size]);
        let wrong = times().map(|(_, ours)| ours.wrong).sum();
        let ours = Measured {
            wrong,
            ..rounds[0][size].1.clone()
        };
        Pair {
            ours: ours.at_median(median(times().map(|(_, ours)| ours.median_s))),
            other_s: median(times().map(|(other, _)| *other)),
            ratios: times().map(|(other, ours)| ours.median_s / other).collect(),
        }
    };
    (0..sizes).map(pair).collect()
}

impl Pair {
    pub(crate) fn line(&self, command: &str) -> Result<String> {
        json(&Line {
            compare: command,
            ranks: self.ours.ranks,
            dtype: &self.ours.dtype,
            bytes: self.ours.bytes,
            layers: self.ours.layers,
            rounds: self.ratios.len(),
            ratio: Spread::of(&self.ratios),
            ratios: &self.ratios,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_each_round_counts() {
        // The machine is half as fast in the last rounds; the ratio of the medians would be 1.25, that of the minima 1.
        let rounds = [(0.4, 0.4), (0.4, 0.6), (0.8, 0.9), (0.8, 1.0), (0.8, 1.2)];
        let rounds: Vec<Vec<(f64, Measured)>> = (rounds.iter())
            .map(|&(other, ours)| {
                vec![
                    (other, Measured::sample(ours)),
                    (2.0 * other, Measured::sample(ours)),
                ]
            })
            .collect();
        let [first, second] = &pairs(&rounds)[..] else {
            panic!("two sizes");
        };
        for (pair, factor) in [(first, 1.0), (second, 0.5)] {
            let expected = [1.0, 1.5, 1.125, 1.25, 1.5].map(|ratio| factor * ratio);
            for (ratio, expected) in pair.ratios.iter().zip(expected) {
                assert!((ratio - expected).abs() < 1e-12, "{pair:?}");
            }
        }
        assert_eq!((first.ours.median_s, first.other_s), (0.9, 0.8));
        assert!((first.ours.bus_gb_per_s - 1.5e-3 / 0.9).abs() < 1e-12);
        let line: serde_json::Value = serde_json::from_str(&first.line("sum").unwrap()).unwrap();
        assert_eq!(line["compare"], "sum");
        assert_eq!(line["rounds"], 5);
        for (key, value) in [
            ("ratio", 1.25),
            ("ratio_q1", 1.125),
            ("ratio_q3", 1.5),
            ("ratio_min", 1.0),
            ("ratio_max", 1.5),
        ] {
            assert!(
                (line[key].as_f64().unwrap() - value).abs() < 1e-12,
                "{line}"
            );
        }
    }

    #[test]
    fn wrong_elements_of_all_rounds_count() {
        let of = |wrong| Measured {
            wrong,
            ..Measured::sample(1.0)
        };
        let rounds = |wrong: [Option<u64>; 2]| wrong.map(|wrong| vec![(1.0, of(wrong))]).to_vec();
        assert_eq!(pairs(&rounds([Some(0), Some(3)]))[0].ours.wrong, Some(3));
        assert_eq!(pairs(&rounds([None, None]))[0].ours.wrong, None);
    }

    #[test]
    fn the_other_program_must_have_the_size_once() {
        let ours = Measured::sample(1.0);
        let others = |times: &[f64]| BTreeMap::from([(ours.bytes, times.to_vec())]);
        assert_eq!(other_time("x", &others(&[2.0]), &ours).unwrap(), 2.0);
        for (times, why) in [
            (&[][..], "no line of it is a JSON object with bytes 1000000"),
            (&[1.0, 2.0], "2 of its lines have bytes 1000000"),
            (&[0.0], "median_s is 0"),
        ] {
            let refused = other_time("sum -n", &others(times), &ours)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(why), "{refused}");
            assert!(refused.contains("--compare \"sum -n\""), "{refused}");
        }
    }
}
