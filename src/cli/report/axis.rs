//! An axis: its ends, and where it has numbers.

/// Maps values to the part 0 to 1 of an axis.
pub(crate) struct Axis {
    start: f64,
    end: f64,
    scale: Scale,
    /// Values that have a number.
    marks: Vec<f64>,
}

/// What has equal distances on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Differences,
    /// Powers of two.
    Doublings,
    /// Powers of ten.
    Powers,
}

/// About so many numbers stand at an axis.
const MARKS: f64 = 5.0;
/// More never do.
const MOST_MARKS: u32 = 10;
/// An axis of doublings or of powers has at most so many numbers.
const DOUBLINGS: usize = 7;

impl Axis {
    /// An axis that holds all values, with round numbers; `round` moves its ends to such numbers.
    pub(crate) fn linear(values: impl Iterator<Item = f64>, round: bool) -> Axis {
        let (mut start, mut end) = ends(values);
        // Values that differ by rounding only are one value.
        if end - start <= start.abs().max(end.abs()) * 1e-9 {
            let room = if start == 0.0 { 1.0 } else { start.abs() / 2.0 };
            (start, end) = (start - room, end + room);
        }
        let step = round_step((end - start) / MARKS);
        if round {
            start = (start / step).floor() * step;
            end = (end / step).ceil() * step;
        }
        let first = (start / step - 1e-9).ceil();
        let last = (end / step + 1e-9).floor();
        let marks = (0..MOST_MARKS).map(|at| first + f64::from(at));
        let marks = marks.take_while(|at| *at <= last);
        Axis {
            marks: marks.map(|at| at * step).collect(),
            start,
            end,
            scale: Scale::Differences,
        }
    }

    /// An axis on which powers of two have equal distances; values are positive.
    pub(crate) fn doubling(values: impl Iterator<Item = f64>) -> Axis {
        let (start, end) = ends(values.filter(|value| *value > 0.0));
        let (first, last) = (start.max(1.0).log2().floor(), end.max(1.0).log2().ceil());
        let powers: Vec<f64> = std::iter::successors(Some(first), |at| Some(at + 1.0))
            .take_while(|at| *at <= last)
            .map(f64::exp2)
            .collect();
        let every = powers.len().div_ceil(DOUBLINGS).max(1);
        Axis {
            start: first,
            end: last.max(first + 1.0),
            scale: Scale::Doublings,
            marks: powers.into_iter().step_by(every).collect(),
        }
    }

    /// An axis on which powers of ten have equal distances, from and to 1, 2 or 5 times a power; values are positive.
    pub(crate) fn logarithmic(values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = ends(values.filter(|value| *value > 0.0));
        let low = if low > 0.0 { low } else { high / 10.0 };
        let (first, last) = (low.log10().floor(), high.log10().ceil());
        let powers = std::iter::successors(Some(first), |at| Some(at + 1.0))
            .take_while(|at| *at <= last)
            .map(|power| 10.0_f64.powf(power));
        let round: Vec<f64> = powers
            .flat_map(|power| [1.0, 2.0, 5.0].map(|x| x * power))
            .collect();
        let below = round.iter().rposition(|mark| *mark <= low * (1.0 + 1e-9));
        let above = round.iter().position(|mark| *mark >= high * (1.0 - 1e-9));
        let (below, above) = (below.unwrap_or(0), above.unwrap_or(round.len() - 1));
        let above = above.max(below + 1).min(round.len() - 1);
        let mut marks = round[below..=above].to_vec();
        if marks.len() > DOUBLINGS {
            let powers: Vec<f64> = (below..=above)
                .filter(|at| at % 3 == 0)
                .map(|at| round[at])
                .collect();
            let every = powers.len().div_ceil(DOUBLINGS).max(1);
            marks = powers.into_iter().step_by(every).collect();
        }
        Axis {
            start: round[below].log10(),
            end: round[above].log10(),
            scale: Scale::Powers,
            marks,
        }
    }

    /// Where a value lies, 0 to 1.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let at = match self.scale {
            Scale::Differences => value,
            Scale::Doublings => value.max(1.0).log2(),
            Scale::Powers => value.log10(),
        };
        (at - self.start) / (self.end - self.start)
    }

    /// The values with a number, and the number.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let step = match (self.scale, self.marks.as_slice()) {
            (Scale::Differences, [first, second, ..]) => second - first,
            _ => 1.0,
        };
        // On an axis of powers each number has the decimals that it needs itself.
        let step_of = |mark: f64| match self.scale {
            Scale::Powers => 10.0_f64.powf(mark.log10().floor()).min(1.0),
            Scale::Differences | Scale::Doublings => step,
        };
        self.marks
            .iter()
            .map(|mark| (*mark, number(*mark, step_of(*mark))))
            .collect()
    }
}

/// The least and the greatest value; 0 and 1 without any.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let ends = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if ends.0 <= ends.1 { ends } else { (0.0, 1.0) }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10.0_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A number with as many decimals as the distance of numbers needs.
fn number(value: f64, step: f64) -> String {
    let value = if value.abs() < step * 1e-6 {
        0.0
    } else {
        value
    };
    let magnitude = value.abs();
    if magnitude >= 1e6 || (magnitude > 0.0 && step < 1e-4) {
        return format!("{value:.1e}");
    }
    let decimals = [1.0, 0.1, 0.01, 0.001]
        .iter()
        .position(|unit| step >= unit * (1.0 - 1e-9));
    format!("{value:.*}", decimals.unwrap_or(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn numbers_are_round_and_hold_the_values() {
        let axis = Axis::linear([0.07, 2.19].into_iter(), true);
        assert_eq!(labels(&axis), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
        assert!(axis.part(0.07) > 0.0 && axis.part(2.19) < 1.0);
        let epochs = Axis::linear([1.0, 10.0].into_iter(), false);
        assert_eq!(labels(&epochs), ["2", "4", "6", "8", "10"]);
        assert_eq!((epochs.part(1.0), epochs.part(10.0)), (0.0, 1.0));
    }

    #[test]
    fn odd_values_do_not_break_an_axis() {
        for values in [
            &[][..],
            &[0.0],
            &[5.0, 5.0],
            &[-1e-9, 1e-9],
            &[1e9, 3e9],
            &[f64::NAN, 1.0],
            &[0.1, 0.100_000_000_000_000_02],
        ] {
            let axis = Axis::linear(values.iter().copied(), true);
            let ticks = axis.ticks();
            assert!((1..=12).contains(&ticks.len()), "{values:?}: {ticks:?}");
            assert!(
                ticks
                    .iter()
                    .all(|(at, _)| (-1e-6..=1.0 + 1e-6).contains(&axis.part(*at)))
            );
        }
    }

    #[test]
    fn powers_have_equal_distances() {
        let axis = Axis::logarithmic([0.07, 2.3].into_iter());
        assert_eq!(labels(&axis), ["0.05", "0.1", "0.2", "0.5", "1", "2", "5"]);
        assert!((axis.part(0.5) - 0.5).abs() < 1e-12);
        let wide = Axis::logarithmic([3e-4, 40.0].into_iter());
        assert_eq!(labels(&wide), ["0.001", "0.01", "0.1", "1", "10"]);
        for odd in [&[][..], &[1.0], &[0.0, 5.0], &[f64::NAN, 1e-300, 1e300]] {
            let axis = Axis::logarithmic(odd.iter().copied());
            assert!((1..=12).contains(&axis.ticks().len()), "{odd:?}");
            assert!(
                axis.ticks()
                    .iter()
                    .all(|(at, _)| (-1e-6..=1.0 + 1e-6).contains(&axis.part(*at)))
            );
        }
    }

    #[test]
    fn doublings_have_equal_distances() {
        let axis = Axis::doubling([16.0, 8192.0].into_iter());
        assert_eq!(labels(&axis), ["16", "64", "256", "1024", "4096"]);
        assert!((axis.part(64.0) - 2.0 / 9.0).abs() < 1e-12);
        assert_eq!(labels(&Axis::doubling([16.0].into_iter())).len(), 1);
    }
}
