//! Numbers as a person reads and writes them.

use std::ops::RangeInclusive;

/// "no rank", "rank 3" or "ranks 0-2, 5, 7-15".
pub(crate) fn ranks(ranks: impl Iterator<Item = u32>) -> String {
    numbers("rank", ranks)
}

/// [`ranks`] with another word.
pub(crate) fn numbers(what: &str, numbers: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut count = 0;
    for number in numbers {
        count += 1;
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let show = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let list = runs.iter().map(show).collect::<Vec<_>>().join(", ");
    match count {
        0 => format!("no {what}"),
        1 => format!("{what} {list}"),
        _ => format!("{what}s {list}"),
    }
}

/// Ranks with equal texts together, in the order of the first of each.
pub(crate) fn grouped(told: impl Iterator<Item = (u32, String)>) -> Vec<(Vec<u32>, String)> {
    let mut groups: Vec<(Vec<u32>, String)> = Vec::new();
    for (rank, text) in told {
        match groups.iter_mut().find(|(_, known)| *known == text) {
            Some((ranks, _)) => ranks.push(rank),
            None => groups.push((vec![rank], text)),
        }
    }
    groups
}

/// "1 server" or "3 servers".
pub(crate) fn count(number: impl Into<u64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// The parser of an option's bytes, all of `range`: 4096, 1e9, 100MB (powers of 1000), 4MiB or 4M (powers of 1024).
pub(crate) fn size(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let bytes = parsed(text).filter(|bytes| range.contains(bytes));
        bytes.ok_or_else(|| {
            format!(
                "must be {} to {} bytes, as 4096, 1e9, 100MB or 4MiB",
                range.start(),
                range.end()
            )
        })
    }
}

fn parsed(text: &str) -> Option<u64> {
    let unit = text
        .find(|letter: char| letter.is_ascii_alphabetic() && !matches!(letter, 'e' | 'E'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" | "K" | "k" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    // Whole bytes only: 1.5K is some, 1.0001K is not.
    let bytes = number.parse::<f64>().ok()? * factor as f64;
    format!("{bytes:.0}")
        .parse()
        .ok()
        .filter(|&whole: &u64| whole as f64 == bytes)
}

/// "9999 B" or "102.2 MB": bytes in powers of ten.
pub(crate) fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=999_999 => format!("{:.1} kB", value / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.1} GB", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_ranks_are_shortened() {
        assert_eq!(ranks([].into_iter()), "no rank");
        assert_eq!(ranks([3].into_iter()), "rank 3");
        assert_eq!(ranks([0, 1, 2, 5, 7, 8].into_iter()), "ranks 0-2, 5, 7-8");
    }

    #[test]
    fn equal_texts_are_one() {
        let told = [(0, "a"), (1, "b"), (3, "a"), (2, "a")];
        assert_eq!(
            grouped(told.into_iter().map(|(rank, text)| (rank, text.to_owned()))),
            [(vec![0, 3, 2], "a".to_owned()), (vec![1], "b".to_owned())]
        );
    }

    #[test]
    fn one_of_something_is_no_plural() {
        let counted = [0_u32, 1, 2].map(|number| count(number, "rank"));
        assert_eq!(counted, ["0 ranks", "1 rank", "2 ranks"]);
    }

    #[test]
    fn sizes_have_units() {
        let read = size(1..=1 << 50);
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("1e9", 1_000_000_000),
            ("2.5e3", 2500),
            ("100MB", 100_000_000),
            ("1.5kB", 1500),
            ("4MiB", 4 << 20),
            ("1K", 1024),
            ("1G", 1 << 30),
            ("0.5M", 1 << 19),
            ("7B", 7),
        ] {
            assert_eq!(read(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "0",
            "MB",
            "-1",
            "1.5",
            "1.0001K",
            "1 MB",
            "1mb",
            "1e99",
            "nan",
            "inf",
            "18446744073709551616",
            "99999999T",
        ] {
            let refused = read(text).unwrap_err();
            assert!(
                refused.starts_with("must be 1 to 1125899906842624 bytes"),
                "{text}: {refused}"
            );
        }
    }

    #[test]
    fn bytes_are_shortened() {
        assert_eq!(bytes(9_999), "9999 B");
        assert_eq!(bytes(102_228_128), "102.2 MB");
    }
}
