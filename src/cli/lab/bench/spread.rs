//! How far measurements of the same thing lie apart.

use serde::Serialize;

/// Median, quartiles and extremes of ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    #[serde(rename = "ratio")]
    pub(crate) median: f64,
    #[serde(rename = "ratio_q1")]
    pub(crate) q1: f64,
    #[serde(rename = "ratio_q3")]
    pub(crate) q3: f64,
    #[serde(rename = "ratio_min")]
    pub(crate) min: f64,
    #[serde(rename = "ratio_max")]
    pub(crate) max: f64,
}

impl Spread {
    /// Of `values`, at least one.
    pub(crate) fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Spread {
            median: quantile(&sorted, 2),
            q1: quantile(&sorted, 1),
            q3: quantile(&sorted, 3),
            min: quantile(&sorted, 0),
            max: quantile(&sorted, 4),
        }
    }
}

/// The median of at least one value; of two in the middle their mean.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    Spread::of(&values.collect::<Vec<_>>()).median
}

/// What `quarters` / 4 of the sorted values lie below, on a straight line between two neighbours (numpy.percentile's default).
fn quantile(sorted: &[f64], quarters: usize) -> f64 {
    let place = quarters * sorted.len().saturating_sub(1);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    let (below, part) = (place / 4, (place % 4) as f64 / 4.0);
    match part {
        0.0 => at(below),
        _ => at(below) + part * (at(below + 1) - at(below)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of numpy.percentile(values, [50, 25, 75, 0, 100]).
    #[test]
    fn quartiles_are_those_of_numpy() {
        for (values, [median, q1, q3, min, max]) in [
            (&[3.0][..], [3.0, 3.0, 3.0, 3.0, 3.0]),
            (&[2.0, 1.0], [1.5, 1.25, 1.75, 1.0, 2.0]),
            (&[4.0, 1.0, 3.0, 2.0], [2.5, 1.75, 3.25, 1.0, 4.0]),
            (&[0.5, 9.0, 0.4, 0.6, 0.45], [0.5, 0.45, 0.6, 0.4, 9.0]),
            (
                &[7.0, 15.0, 36.0, 39.0, 40.0, 41.0],
                [37.5, 20.25, 39.75, 7.0, 41.0],
            ),
        ] {
            let expected = Spread {
                median,
                q1,
                q3,
                min,
                max,
            };
            assert_eq!(Spread::of(values), expected, "{values:?}");
        }
    }
}
