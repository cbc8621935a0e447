//! Numbers as a person reads them.

/// "no rank", "rank 3" or "ranks 0-2, 5, 7-15".
pub(crate) fn ranks(ranks: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut count = 0;
    for rank in ranks {
        count += 1;
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let show = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let list = runs.iter().map(show).collect::<Vec<_>>().join(", ");
    match count {
        0 => "no rank".to_owned(),
        1 => format!("rank {list}"),
        _ => format!("ranks {list}"),
    }
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
    fn bytes_are_shortened() {
        assert_eq!(bytes(9_999), "9999 B");
        assert_eq!(bytes(102_228_128), "102.2 MB");
    }
}
