//! Lines over an axis, as SVG and as CSV.

use serde::Serialize;

use crate::cli::report::axis::Axis;
use crate::cli::report::svg::{Anchor, COLOURS, Picture};

/// Small enough that letters are still read on a telephone, where the page is as wide as a picture.
const WIDTH: f64 = 480.0;
const PLOT: f64 = 250.0;
const LEFT: f64 = 70.0;
/// Right end of the plot.
const END: f64 = WIDTH - 14.0;
const TOP: f64 = 40.0;
/// From the plot to the legend: numbers, then the axis' name.
const BELOW: f64 = 62.0;
const LETTERS: f64 = 14.0;
const ROW: f64 = 22.0;
/// Points of a line that are drawn; more are averaged in groups.
const POINTS: usize = 60;
/// Points of a line where many lines would hide each other.
const FEW_POINTS: usize = 24;
/// Lines from which fewer points are drawn.
const MANY: usize = 4;
/// Letters of a name in the legend.
const NAME: usize = 26;

/// A picture of some lines.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Chart {
    /// Its files are called so.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    /// Whether x doubles at equal distances.
    pub(crate) doubling: bool,
    /// Whether y is drawn on a scale of powers; its values are positive.
    pub(crate) logarithmic: bool,
    /// A value of y that lines are held against, and what it means.
    #[serde(skip)]
    pub(crate) mark: Option<(f64, &'static str)>,
    pub(crate) series: Vec<Series>,
    /// Lines that are in the files but not drawn.
    #[serde(skip)]
    pub(crate) undrawn: Vec<Series>,
}

/// A line.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// x and y, both finite, x ascending.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Chart {
    /// A column for x, then one for each line; a row for each x that any line has.
    pub(crate) fn csv(&self) -> String {
        let lines: Vec<&Series> = match self.undrawn.is_empty() {
            true => self.series.iter().collect(),
            false => self.undrawn.iter().collect(),
        };
        let mut xs: Vec<f64> = lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.0)
            .collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let mut text = field(&self.x);
        for line in &lines {
            text = text + "," + &field(&line.name);
        }
        let mut next = vec![0; lines.len()];
        for x in xs {
            text += &format!("\n{x}");
            for (line, next) in lines.iter().zip(&mut next) {
                text.push(',');
                if let Some(point) = line.points.get(*next).filter(|point| point.0 == x) {
                    text += &point.1.to_string();
                    *next += 1;
                }
            }
        }
        text + "\n"
    }

    /// The picture.
    pub(crate) fn draw(&self) -> Picture {
        let rows = self.legend();
        let height = TOP + PLOT + BELOW + ROW * rows.len() as f64 + 8.0;
        let mut picture = Picture::new(WIDTH, height, &self.title);
        let at = (LEFT - 50.0, 24.0);
        picture.text(at, 16.0, Anchor::Start, "ink", &self.title);
        let group = self.group();
        let lines = self.series.iter().map(|line| thinned(&line.points, group));
        let lines: Vec<Vec<(f64, f64)>> = lines.collect();
        let points = || lines.iter().flatten();
        let xs = points().map(|point| point.0);
        let frame = Frame {
            x: match self.doubling {
                true => Axis::doubling(xs),
                false => Axis::linear(xs, false),
            },
            y: {
                let values = points().map(|point| point.1);
                let values = values.chain(self.mark.map(|(value, _)| value));
                match self.logarithmic {
                    true => Axis::logarithmic(values),
                    false => Axis::linear(values, true),
                }
            },
        };
        frame.draw(&mut picture);
        let name = match group {
            1 => self.x.clone(),
            _ => format!("{} (each point is the mean of {group})", self.x),
        };
        let below = ((LEFT + END) / 2.0, TOP + PLOT + 43.0);
        picture.text(below, LETTERS, Anchor::Middle, "ink", &name);
        let y = match self.logarithmic {
            true => format!("{} (log scale)", self.y),
            false => self.y.clone(),
        };
        picture.upright((16.0, TOP + PLOT / 2.0), LETTERS, "ink", &y);
        if let Some((value, meaning)) = self.mark {
            let drawn = points().map(|point| frame.at(*point));
            frame.mark(&mut picture, value, meaning, drawn);
        }
        for (index, line) in lines.iter().enumerate() {
            let colour = index % COLOURS;
            let drawn: Vec<(f64, f64)> = line.iter().map(|point| frame.at(*point)).collect();
            picture.line(&drawn, &format!("line c{colour}"));
            if drawn.len() <= FEW_POINTS {
                let class = format!("f{colour}");
                drawn.iter().for_each(|&at| picture.dot(at, 3.0, &class));
            }
        }
        for (index, (line, series)) in lines.iter().zip(&self.series).enumerate() {
            let radius = ((END - LEFT) / (2.0 * line.len() as f64)).clamp(4.0, 9.0);
            for &(x, y) in line {
                let text = format!("{}, {} {}: {}", series.name, self.x, figure(x), figure(y));
                let class = format!("c{}", index % COLOURS);
                picture.told(frame.at((x, y)), radius, &class, &text);
            }
        }
        for (row, entries) in rows.iter().enumerate() {
            let middle = TOP + PLOT + BELOW + ROW * row as f64 + 6.0;
            for (x, index, name) in entries {
                let class = format!("line c{}", index % COLOURS);
                picture.line(&[(*x, middle), (x + 18.0, middle)], &class);
                let at = (x + 24.0, middle + 5.0);
                picture.text(at, LETTERS, Anchor::Start, "ink", name);
            }
        }
        picture
    }

    /// How many points of a line are drawn as one.
    fn group(&self) -> usize {
        let most = if self.series.len() < MANY {
            POINTS
        } else {
            FEW_POINTS
        };
        let longest = self.series.iter().map(|line| line.points.len()).max();
        longest.unwrap_or(0).div_ceil(most).max(1)
    }

    /// Rows of the legend: place, number and name of each line.
    fn legend(&self) -> Vec<Vec<(f64, usize, String)>> {
        let mut rows: Vec<Vec<(f64, usize, String)>> = vec![Vec::new()];
        let start = LEFT - 50.0;
        let mut x = start;
        for (index, line) in self.series.iter().enumerate() {
            let mut name: String = line.name.chars().take(NAME).collect();
            if line.name.chars().nth(NAME).is_some() {
                name.push('\u{2026}');
            }
            // A wide letter is a bit more than 0.6 of its height.
            let width = 24.0 + 0.64 * LETTERS * name.chars().count() as f64 + 16.0;
            if x + width > WIDTH && x > start {
                rows.push(Vec::new());
                x = start;
            }
            if let Some(row) = rows.last_mut() {
                row.push((x, index, name));
            }
            x += width;
        }
        rows
    }
}

/// The two axes and where values lie between them.
struct Frame {
    x: Axis,
    y: Axis,
}

impl Frame {
    /// The place of a value in the picture.
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = LEFT + (END - LEFT) * self.x.part(x);
        (across, TOP + PLOT * (1.0 - self.y.part(y)))
    }

    /// A line at a value of y and its meaning, at the end where it is farther from what is drawn.
    fn mark(
        &self,
        picture: &mut Picture,
        value: f64,
        meaning: &str,
        drawn: impl Iterator<Item = (f64, f64)>,
    ) {
        let (_, height) = self.at((0.0, value));
        picture.line(&[(LEFT, height), (END, height)], "mark");
        // Below the line where there is no room above it.
        let below = height - TOP < LETTERS;
        let height = if below {
            height + LETTERS
        } else {
            height - 6.0
        };
        let mut room = [PLOT; 2];
        for (x, y) in drawn {
            let end = usize::from(x > (LEFT + END) / 2.0);
            room[end] = room[end].min((y - height).abs());
        }
        let (x, anchor) = match room[0] > room[1] {
            true => (LEFT + 6.0, Anchor::Start),
            false => (END - 4.0, Anchor::End),
        };
        picture.text((x, height), LETTERS, anchor, "soft", meaning);
    }

    /// Axes, their numbers, and lines at those of y.
    fn draw(&self, picture: &mut Picture) {
        let bottom = TOP + PLOT;
        for (value, label) in self.y.ticks() {
            let y = bottom - PLOT * self.y.part(value);
            picture.line(&[(LEFT, y), (END, y)], "grid");
            let at = (LEFT - 8.0, y + 5.0);
            picture.text(at, LETTERS, Anchor::End, "soft", &label);
        }
        for (value, label) in self.x.ticks() {
            let x = LEFT + (END - LEFT) * self.x.part(value);
            picture.line(&[(x, bottom), (x, bottom + 5.0)], "axis");
            let at = (x, bottom + 21.0);
            picture.text(at, LETTERS, Anchor::Middle, "soft", &label);
        }
        picture.line(&[(LEFT, TOP), (LEFT, bottom), (END, bottom)], "axis");
    }
}

/// Means of `group` consecutive points each.
fn thinned(points: &[(f64, f64)], group: usize) -> Vec<(f64, f64)> {
    let mean = |group: &[(f64, f64)]| {
        let count = group.len() as f64;
        let sum = group
            .iter()
            .fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / count, sum.1 / count)
    };
    points.chunks(group).map(mean).collect()
}

/// A number with four digits, or as many as it has.
fn figure(value: f64) -> String {
    const DIGITS: f64 = 4.0;
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e7).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let whole = magnitude.max(f64::MIN_POSITIVE).log10().floor() + 1.0;
    // At most 8.
    let decimals = (0..8)
        .take_while(|&at| f64::from(at) < DIGITS - whole)
        .count();
    let text = format!("{value:.decimals$}");
    match text.contains('.') && magnitude != 0.0 {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => format!("{value:.0}"),
    }
}

/// A field of CSV, in quotes where it needs them.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(series: &[(&str, &[(f64, f64)])]) -> Chart {
        let series = series.iter().map(|(name, points)| Series {
            name: (*name).to_owned(),
            points: points.to_vec(),
        });
        Chart {
            name: "loss".into(),
            title: "Loss".into(),
            x: "epoch".into(),
            y: "loss".into(),
            series: series.collect(),
            ..Chart::default()
        }
    }

    #[test]
    fn rows_of_csv_join_the_lines_by_x() {
        let chart = chart(&[
            ("a,b", &[(1.0, 2.5), (2.0, 0.5)]),
            ("mean", &[(2.0, 1.0), (3.0, 4.0)]),
        ]);
        assert_eq!(chart.csv(), "epoch,\"a,b\",mean\n1,2.5,\n2,0.5,1\n3,,4\n");
    }

    #[test]
    fn a_long_line_is_thinned_to_means() {
        let points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i), 3.0)).collect();
        let chart = chart(&[("a", &points)]);
        let drawn = thinned(&points, chart.group());
        assert!(drawn.len() <= POINTS);
        assert_eq!(drawn[0], (8.0, 3.0));
        assert!(chart.draw().file().contains("each point is the mean of 17"));
    }

    #[test]
    fn each_point_tells_its_values_and_a_mark_is_in_the_picture() {
        let mut chart = chart(&[("a<b", &[(3.0, 0.123_456), (4.0, 0.5)])]);
        let plain = chart.draw().file();
        assert!(
            plain.contains("<title>a&lt;b, epoch 3: 0.1235</title>"),
            "{plain}"
        );
        assert_eq!(plain.matches("class=\"point c0\"").count(), 2);
        assert!(!plain.contains("class=\"mark\""));
        chart.mark = Some((1.0, "as the mean"));
        let marked = chart.draw().file();
        assert!(marked.contains("class=\"mark\"") && marked.contains(">as the mean</text>"));
        // The axis has come to hold it.
        assert!(
            marked.contains(">1.0</text>") && !plain.contains(">1.0</text>"),
            "{marked}"
        );
    }

    #[test]
    fn losses_have_a_scale_of_powers() {
        let mut chart = chart(&[("a", &[(1.0, 2.0), (2.0, 0.002)])]);
        chart.logarithmic = true;
        let text = chart.draw().file();
        assert!(
            text.contains(">loss (log scale)</text>") && text.contains(">0.01</text>"),
            "{text}"
        );
    }

    #[test]
    fn figures_have_four_digits() {
        let figures = [
            (0.0, "0"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            (1234.56, "1235"),
            (0.012_345_6, "0.01235"),
            (3e-5, "3.000e-5"),
            (1e7, "1.000e7"),
            (100.0, "100"),
        ];
        for (value, text) in figures {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn nothing_leaves_the_picture() {
        let names = [
            "layer1.weight",
            "layer1.bias",
            "a name that is longer than a legend can show it",
        ];
        let lines: Vec<(&str, &[(f64, f64)])> = names
            .iter()
            .map(|name| (*name, &[(0.0, 1.0)][..]))
            .collect();
        let chart = chart(&lines);
        for row in chart.legend() {
            for (x, _, name) in row {
                assert!(
                    x + 24.0 + 0.64 * LETTERS * name.chars().count() as f64 <= WIDTH,
                    "{name}"
                );
            }
        }
        // One point, and none, are drawn as well.
        assert!(chart.draw().file().contains("<circle"));
        let mut empty = chart;
        empty.series.clear();
        assert!(!empty.draw().file().contains("NaN"));
    }
}
