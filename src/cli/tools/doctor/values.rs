//! What variables may hold, those of HCCL above all.

use std::ops::RangeInclusive;

use Setting::{Address, Any, AnyCase, Interface, Number, Ports, Word};

use crate::soc::Generation;

/// What a variable may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting {
    Number(RangeInclusive<u64>),
    Word(&'static [&'static str]),
    /// A word, in small letters or capitals.
    AnyCase(&'static [&'static str]),
    Address,
    Interface,
    Ports,
    /// A value that is not checked.
    Any,
}

impl Setting {
    /// The rule that `value` breaks.
    pub(crate) fn allows(&self, value: &str) -> Result<(), String> {
        let right = match self {
            Number(range) => value.parse().is_ok_and(|number| range.contains(&number)),
            Word(words) => words.contains(&value),
            AnyCase(words) => words.iter().any(|word| word.eq_ignore_ascii_case(value)),
            Address => value.parse::<std::net::IpAddr>().is_ok(),
            Ports => value == "auto" || port_ranges(value).is_ok(),
            Interface => !value.trim_start_matches(['^', '=']).is_empty(),
            Any => true,
        };
        if right {
            return Ok(());
        }
        Err(match self {
            Number(range) => format!("must be a number from {} to {}", range.start(), range.end()),
            Word(words) | AnyCase(words) => format!("must be one of {}", words.join(", ")),
            Address => "must be an IP address".to_owned(),
            Ports => "must be auto, or ports as 60000-60015,60050".to_owned(),
            Interface | Any => "must name an interface".to_owned(),
        })
    }
}

/// What the variable `name` may hold; `None` if it is none that HCCL reads, nor one of ours with a rule of this kind.
pub(crate) fn known(name: &str, generation: Generation, is_mock: bool) -> Option<Setting> {
    Some(match name {
        // The mock lets tests be impatient.
        "HCCL_CONNECT_TIMEOUT" if is_mock => Number(1..=7200),
        "HCCL_CONNECT_TIMEOUT" => Number(120..=7200),
        "HCCL_EXEC_TIMEOUT" if matches!(generation, Generation::A910 | Generation::P310) => {
            Number(1..=17340)
        }
        "HCCL_EXEC_TIMEOUT" => Number(0..=2_147_483_647),
        "ADASUM_MASTER_PORT" => Number(1..=65535),
        "HCCL_BUFFSIZE" => Number(1..=u64::from(u32::MAX)),
        "HCCL_IF_BASE_PORT" => Number(1024..=65520),
        "HCCL_DETERMINISTIC" => AnyCase(&["false", "true", "strict"]),
        "HCCL_OP_EXPANSION_MODE" => Word(expansion_modes(generation)),
        "HCCL_WHITELIST_DISABLE" | "HCCL_ENTRY_LOG_ENABLE" | "HCCL_DIAGNOSE_ENABLE" => {
            Word(&["0", "1"])
        }
        "HCCL_SOCKET_FAMILY" => Word(&["AF_INET", "AF_INET6"]),
        "HCCL_IF_IP" => Address,
        "HCCL_SOCKET_IFNAME" => Interface,
        "HCCL_HOST_SOCKET_PORT_RANGE" | "HCCL_NPU_SOCKET_PORT_RANGE" => Ports,
        "HCCL_WHITELIST_FILE"
        | "HCCL_ALGO"
        | "HCCL_DFS_CONFIG"
        | "HCCL_OP_RETRY_ENABLE"
        | "HCCL_OP_RETRY_PARAMS"
        | "HCCL_RDMA_TC"
        | "HCCL_RDMA_SL"
        | "HCCL_RDMA_TIMEOUT"
        | "HCCL_RDMA_RETRY_CNT"
        | "HCCL_INTRA_PCIE_ENABLE"
        | "HCCL_INTRA_ROCE_ENABLE"
        | "HCCL_LOGIC_SUPERPOD_ID" => Any,
        _ => return None,
    })
}

fn expansion_modes(generation: Generation) -> &'static [&'static str] {
    match generation {
        // What HCCL takes without an error (hcomm, externalinput.cc:1689); its guide names fewer.
        Generation::A2 | Generation::A3 => {
            &["HOST", "HOST_TS", "AI_CPU", "AIV", "AICPU_CacheDisable"]
        }
        Generation::A950 => &["AICPU_TS", "AIV", "CCU_MS", "CCU_SCHED"],
        _ => &[
            "HOST",
            "HOST_TS",
            "AI_CPU",
            "AIV",
            "AICPU_CacheDisable",
            "AICPU_TS",
            "CCU_MS",
            "CCU_SCHED",
        ],
    }
}

/// `60000-60015,60050`: ascending ranges of ports.
pub(crate) fn port_ranges(text: &str) -> Result<Vec<RangeInclusive<u16>>, ()> {
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    text.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first).ok_or(())?, number(last).ok_or(())?);
            if first <= last {
                Ok(first..=last)
            } else {
                Err(())
            }
        })
        .collect()
}

/// Whether `pattern` of `HCCL_SOCKET_IFNAME` means the interface `name`: names begin with one of the list, or with `=` are
/// one of it; with `^` before that, they are none of it.
pub(crate) fn interfaces_match(pattern: &str, name: &str) -> bool {
    let (negated, rest) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (exact, list) = match rest.strip_prefix('=') {
        Some(list) => (true, list),
        None => (false, rest),
    };
    let hit = list.split(',').map(str::trim).any(|part| {
        if exact {
            name == part
        } else {
            name.starts_with(part)
        }
    });
    hit != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_meant_by_beginning_or_name() {
        for (pattern, name, meant) in [
            ("eth", "eth0", true),
            ("ib,eth", "eth0", true),
            ("=eth", "eth0", false),
            ("=ib0,eth0", "eth0", true),
            ("^eth", "eth0", false),
            ("^eth", "ib0", true),
            ("^=eth", "eth0", true),
        ] {
            assert_eq!(interfaces_match(pattern, name), meant, "{pattern} {name}");
        }
    }

    #[test]
    fn ports_are_ascending_ranges() {
        assert_eq!(port_ranges("5-7,9"), Ok(vec![5..=7, 9..=9]));
        for bad in ["", "7-5", "0-3", "1-70000", "a", "1,,2"] {
            assert!(port_ranges(bad).is_err(), "{bad}");
        }
    }
}
