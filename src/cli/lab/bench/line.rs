//! Shows lines about kernels and messages: as they are, or for a person.

use std::io::Write;

use serde_json::Value;

/// What a person wants to see, in this order.
const SHOWN: [&str; 19] = [
    "kernel",
    "transport",
    "ranks",
    "dtype",
    "to",
    "radix",
    "form",
    "from",
    "bytes",
    "reps",
    "ns_per_element",
    "copy_fraction",
    "times_scalar_f64_dot",
    "min_s",
    "median_s",
    "max_s",
    "gb_per_s",
    "memcpy_gb_per_s",
    "ratio",
];

/// Writes `line` on standard output.
///
/// # Errors
/// If standard output does not take it.
pub(crate) fn show(line: &[u8], json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        out.write_all(line)?;
        return writeln!(out);
    }
    writeln!(out, "{}", text(&serde_json::from_slice(line)?))
}

/// Keys and values on a line, numbers with four digits.
fn text(line: &Value) -> String {
    let shown = SHOWN.iter().filter_map(|key| Some((*key, line.get(key)?)));
    let fields: Vec<String> = shown
        .map(|(key, value)| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => {
                format!("{key} {}", short(number.as_f64().unwrap_or(f64::NAN)))
            }
            _ => format!("{key} {value}"),
        })
        .collect();
    fields.join("  ")
}

fn short(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.01 {
        format!("{value:.3e}")
    } else {
        format!("{value:.4}")
    }
}
