//! The table of a sweep, in the form of nccl-tests: what is no row starts with `#`.

use crate::cli::lab::bench::compare::{Against, Pair};
use crate::cli::lab::bench::measured::Measured;
use crate::cli::lab::bench::request::Reduced;
use crate::cli::lab::bench::spread::Spread;
use crate::cli::text::count;
use crate::error::quote;

/// Name, unit and width of each column.
const COLUMNS: [(&str, &str, usize); 7] = [
    ("size", "(B)", 12),
    ("tensors", "", 9),
    ("type", "", 7),
    ("time", "(us)", 11),
    ("algbw", "(GB/s)", 9),
    ("busbw", "(GB/s)", 9),
    ("wrong", "", 9),
];
/// Those that a comparison adds.
const COMPARED: [(&str, &str, usize); 4] = [
    ("other", "(us)", 11),
    ("ratio", "", 8),
    ("q1", "", 8),
    ("q3", "", 8),
];

/// What is measured, and the names of the columns.
pub(crate) fn head(what: &Reduced, against: Option<&Against<'_>>) -> String {
    let name = match what.mean {
        true => "mean",
        false => "AdaSum",
    };
    let mut columns = COLUMNS.to_vec();
    columns.extend(COMPARED.iter().filter(|_| against.is_some()));
    let line = |of: fn(&(&'static str, &'static str, usize)) -> &'static str| -> String {
        let cells = columns.iter().map(|column| cell(of(column), column.2));
        let line: String = cells.collect();
        // The first column has room for the sign.
        format!("#{}", line.strip_prefix(' ').unwrap_or(&line).trim_end())
    };
    let other = against.map_or(String::new(), |against| {
        let rounds = count(against.rounds, "round");
        format!(
            "# other: {}\n# ratio: time over the other's, median and quartiles of {rounds}\n",
            quote(against.command)
        )
    });
    format!(
        "# {name}, {}, {} a server, {}\n{other}{}\n{}\n",
        count(what.ranks, "rank"),
        what.locals,
        count(what.reps, "repetition"),
        line(|column| column.0),
        line(|column| column.1)
    )
}

/// One size.
pub(crate) fn row(line: &Measured, pair: Option<&Pair>) -> String {
    let mut cells = vec![
        line.bytes.to_string(),
        line.layers.to_string(),
        line.dtype.clone(),
        microseconds(line.median_s),
        format!("{:.3}", line.algorithm_gb_per_s),
        format!("{:.3}", line.bus_gb_per_s),
        line.wrong
            .map_or("N/A".to_owned(), |wrong| wrong.to_string()),
    ];
    if let Some(pair) = pair {
        let ratio = Spread::of(&pair.ratios);
        cells.push(microseconds(pair.other_s));
        cells.extend([ratio.median, ratio.q1, ratio.q3].map(|ratio| format!("{ratio:.3}")));
    }
    let widths = COLUMNS.iter().chain(&COMPARED).map(|column| column.2);
    let row: String = (cells.iter().zip(widths))
        .map(|(text, width)| cell(text, width))
        .collect();
    row + "\n"
}

/// What nccl-tests says of all sizes together.
pub(crate) fn foot(lines: &[Measured]) -> String {
    let rates = lines.iter().map(|line| line.bus_gb_per_s);
    let average = rates.sum::<f64>() / lines.len() as f64;
    let wrong: Option<u64> = lines.iter().map(|line| line.wrong).sum();
    let wrong = wrong.map_or("N/A".to_owned(), |wrong| wrong.to_string());
    format!("# wrong elements: {wrong}\n# average busbw: {average:.3} GB/s\n")
}

fn cell(text: &str, width: usize) -> String {
    // A number that needs all of its column still has a blank before it.
    format!(" {text:>width$}", width = width - 1)
}

fn microseconds(seconds: f64) -> String {
    match seconds * 1e6 {
        time if time < 100.0 => format!("{time:.2}"),
        time if time < 10_000.0 => format!("{time:.1}"),
        time => format!("{time:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::lab::element_type::ElementType;

    fn reduced() -> Reduced {
        Reduced {
            mean: false,
            ranks: 4,
            locals: 1,
            sizes: Vec::new(),
            dtype: ElementType::F32,
            reps: 20,
            radix: None,
            exchange: None,
            bucket_bytes: None,
            pipeline_depth: None,
            check: true,
            phases: false,
        }
    }

    #[test]
    fn columns_stand_below_their_names() {
        let expected = "\
# AdaSum, 4 ranks, 1 a server, 20 repetitions
#       size  tensors   type       time    algbw    busbw    wrong
#        (B)                       (us)   (GB/s)   (GB/s)
     1000000      161    f32      500.0    2.000    3.000        0
";
        let mut line = Measured::sample(0.0005);
        assert_eq!(head(&reduced(), None) + &row(&line, None), expected);
        line.wrong = None;
        assert!(row(&line, None).ends_with("  N/A\n"));
    }

    #[test]
    fn a_comparison_adds_columns() {
        let expected = "\
# AdaSum, 4 ranks, 1 a server, 20 repetitions
# other: \"sum --json\"
# ratio: time over the other's, median and quartiles of 5 rounds
#       size  tensors   type       time    algbw    busbw    wrong      other   ratio      q1      q3
#        (B)                       (us)   (GB/s)   (GB/s)                (us)
     1000000      161    f32      500.0    2.000    3.000        0     1000.0   0.500   0.450   0.600
";
        let pair = Pair {
            ours: Measured::sample(0.0005),
            other_s: 0.001,
            ratios: vec![0.4, 0.45, 0.5, 0.6, 9.0],
        };
        let against = Against {
            command: "sum --json",
            rounds: 5,
        };
        let table = head(&reduced(), Some(&against)) + &row(&pair.ours, Some(&pair));
        assert_eq!(table, expected);
    }

    #[test]
    fn the_end_counts_what_is_wrong() {
        let mut lines = [Measured::sample(0.0005), Measured::sample(0.001)];
        lines[1].wrong = Some(7);
        let expected = "# wrong elements: 7\n# average busbw: 2.250 GB/s\n";
        assert_eq!(foot(&lines), expected);
        lines[0].wrong = None;
        assert!(foot(&lines).starts_with("# wrong elements: N/A\n"));
    }

    #[test]
    fn times_have_the_digits_that_count() {
        let shown = [0.000_012_346, 0.001_234_56, 0.123_456_7].map(microseconds);
        assert_eq!(shown, ["12.35", "1234.6", "123457"]);
    }
}
