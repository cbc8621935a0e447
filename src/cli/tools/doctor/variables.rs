//! The variables that HCCL and this crate read: what they hold, and what contradicts what.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use crate::cli::tools::doctor::report::Check;
use crate::cli::tools::doctor::values::{interfaces_match, known};
use crate::cli::tools::doctor::whitelist;
use crate::plan::mindspore::BoostLevel;
use crate::reduce::{self, Settings};
use crate::soc::Generation;
use crate::topo::JobSecret;
use crate::variables::{VARIABLES, is_own};

/// Variables of other programs that say which rank this is, beside those that HCCL knows.
const PLACES: [&str; 6] = [
    "RANK_TABLE_FILE",
    "MINDSPORE_HCCL_CONFIG_PATH",
    "RANK_ID",
    "RANK_SIZE",
    "DEVICE_ID",
    "ASCEND_DEVICE_ID",
];
/// Variables of a cluster that is found by a chief instead of a rank table.
const CHIEF: [&str; 5] = [
    "CM_CHIEF_IP",
    "CM_CHIEF_PORT",
    "CM_CHIEF_DEVICE",
    "CM_WORKER_SIZE",
    "CM_WORKER_IP",
];
/// Seconds for connections and for execution where nothing is set.
const CONNECT: u64 = 120;
const EXEC: u64 = 1836;

/// The check of this process's environment. `backend` and `soc` narrow the rules where they are known.
pub(crate) fn check(backend: Option<&str>, soc: Option<&str>) -> Check {
    let all = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    let interfaces = std::fs::read_dir("/sys/class/net").ok().map(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    });
    Environment {
        variables: all.collect(),
        generation: soc.map(Generation::of_soc).unwrap_or_default(),
        is_mock: backend == Some("mock"),
        interfaces,
    }
    .check()
}

/// Whether a variable of the project has this name.
fn is_listed(name: &str) -> bool {
    let options = reduce::OPTIONS.iter().filter_map(|option| option.variable);
    let others = VARIABLES.iter().map(|variable| variable.name);
    options
        .chain(others)
        .chain([reduce::BOOST_FILE])
        .any(|known| known == name)
}

/// What the check depends on.
#[derive(Debug, Default)]
struct Environment {
    variables: Vec<(String, String)>,
    generation: Generation,
    is_mock: bool,
    /// Names of this machine's network interfaces, if they are known.
    interfaces: Option<Vec<String>>,
}

impl Environment {
    fn check(&self) -> Check {
        let mut check = Check::new("variables");
        let of_hccl = |name: &str| name.starts_with("HCCL_") || is_own(name);
        let mut set: Vec<&(String, String)> = self
            .variables
            .iter()
            .filter(|(name, value)| {
                let place = PLACES.contains(&name.as_str()) || CHIEF.contains(&name.as_str());
                !value.is_empty() && (of_hccl(name) || place)
            })
            .collect();
        set.sort();
        // What this prints goes into reports.
        let shown = |name: &str, value: &str| match name {
            JobSecret::VARIABLE => "(not shown)".to_owned(),
            _ => value.to_owned(),
        };
        check.say(match set.len() {
            0 => "none is set, so all have their defaults".to_owned(),
            1 => "1 is set".to_owned(),
            count => format!("{count} are set"),
        });
        for (name, value) in &set {
            check.say(format!("{name}={}", shown(name, value).escape_debug()));
        }
        for (name, value) in &set {
            self.check_value(name, value, &mut check);
        }
        self.options(&mut check);
        self.secret(&mut check);
        self.timeouts(&mut check);
        self.network(&mut check);
        self.whitelist(&mut check);
        self.arithmetic(&mut check);
        self.places(&mut check);
        let pairs = set
            .iter()
            .map(|(name, value)| (name.clone(), json!(shown(name, value))));
        check.data = json!({"set": pairs.collect::<serde_json::Map<_, _>>()});
        check
    }

    /// The value of a variable, if it is set to something.
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    fn check_value(&self, name: &str, value: &str, check: &mut Check) {
        if is_own(name) && !is_listed(name) {
            check.warn(format!("{name} is not known here: is it spelt right?"));
            return;
        }
        if name.starts_with("HCCL_MOCK_") {
            if !self.is_mock {
                check.warn(format!("{name} means something to the mock only"));
            } else if name == "HCCL_MOCK_FAULT" {
                check.warn("HCCL_MOCK_FAULT makes operations fail on purpose");
            }
            return;
        }
        match known(name, self.generation, self.is_mock) {
            Some(setting) => {
                if let Err(rule) = setting.allows(value) {
                    check.fail(format!("{name}={}: {rule}", value.escape_debug()));
                }
            }
            None if name.starts_with("HCCL_") => {
                check.warn(format!("{name} is not known here: is it spelt right?"));
            }
            None => (),
        }
    }

    /// Options of reductions, by those who read them.
    fn options(&self, check: &mut Check) {
        let variables = reduce::OPTIONS
            .iter()
            .filter_map(|option| Some((option, option.variable?)));
        for (option, variable) in variables {
            let Some(value) = self.get(variable) else {
                continue;
            };
            if Settings::default().set(option.name, value).is_err() {
                let rule = option.values;
                check.fail(format!(
                    "{variable}={}: must be {rule}",
                    value.escape_debug()
                ));
            }
        }
        if let Some(path) = self.get(reduce::BOOST_FILE)
            && let Err(error) = Settings::default().load_boost(Path::new(path), BoostLevel::O2)
        {
            check.fail(format!("{}: {error}", reduce::BOOST_FILE));
        }
    }

    fn secret(&self, check: &mut Check) {
        if let Err(error) = JobSecret::read(|name| self.get(name).map(OsString::from)) {
            check.fail(error.to_string());
        }
    }

    fn timeouts(&self, check: &mut Check) {
        let connect = self.number("HCCL_CONNECT_TIMEOUT").unwrap_or(CONNECT);
        let exec = self.number("HCCL_EXEC_TIMEOUT").unwrap_or(EXEC);
        if exec != 0 && connect >= exec {
            check.warn(format!(
                "HCCL_CONNECT_TIMEOUT ({connect} s) should be below HCCL_EXEC_TIMEOUT ({exec} s): else ranks that wait \
                 for a late one give up first"
            ));
        }
        if exec == 0 {
            check.warn("HCCL_EXEC_TIMEOUT=0: a rank whose peer is gone waits for ever");
        }
        let rounds = matches!(self.generation, Generation::A910 | Generation::P310);
        if rounds && !exec.is_multiple_of(68) {
            let taken = (exec / 68).max(1) * 68;
            check.warn(format!(
                "HCCL_EXEC_TIMEOUT is rounded down to a multiple of 68 on this chip: {taken} s"
            ));
        }
        if self.get("HCCL_CONNECT_TIMEOUT").is_none() {
            check.say(format!(
                "ranks whose first operations are more than {CONNECT} s apart fail: for large jobs \
                 HCCL_CONNECT_TIMEOUT=1200 is usual"
            ));
        }
    }

    fn network(&self, check: &mut Check) {
        let own = self.get("HCCL_IF_IP");
        let interface = self.get("HCCL_SOCKET_IFNAME");
        if let (Some(_), Some(name)) = (own, interface) {
            check.warn(format!(
                "HCCL_IF_IP is set, so HCCL_SOCKET_IFNAME={name} is not looked at"
            ));
        }
        if let (Some(pattern), Some(names)) = (interface, &self.interfaces)
            && !names.iter().any(|name| interfaces_match(pattern, name))
        {
            check.fail(format!(
                "HCCL_SOCKET_IFNAME={pattern} means no interface of this machine, which has {}",
                names.join(", ")
            ));
        }
        let address = own.and_then(|text| text.parse::<std::net::IpAddr>().ok());
        let other = match self.get("HCCL_SOCKET_FAMILY") {
            Some("AF_INET") => address.filter(std::net::IpAddr::is_ipv6),
            Some("AF_INET6") => address.filter(std::net::IpAddr::is_ipv4),
            _ => None,
        };
        if let Some(address) = other {
            let family = self.get("HCCL_SOCKET_FAMILY").unwrap_or_default();
            check.fail(format!(
                "HCCL_IF_IP={address} is not of HCCL_SOCKET_FAMILY={family}"
            ));
        }
    }

    fn whitelist(&self, check: &mut Check) {
        let checked = self.get("HCCL_WHITELIST_DISABLE") == Some("0");
        match (checked, self.get("HCCL_WHITELIST_FILE")) {
            (true, None) => check.fail(
                "HCCL_WHITELIST_DISABLE=0 needs HCCL_WHITELIST_FILE, the list of addresses that may connect",
            ),
            (false, Some(file)) => check.warn(format!(
                "HCCL_WHITELIST_FILE={file} is not looked at unless HCCL_WHITELIST_DISABLE=0"
            )),
            (true, Some(file)) => {
                if let Err(reason) = whitelist::check(Path::new(file)) {
                    check.fail(format!("HCCL_WHITELIST_FILE={file}: {reason}"));
                }
            }
            (false, None) => (),
        }
    }

    fn arithmetic(&self, check: &mut Check) {
        let mode = self.get("HCCL_OP_EXPANSION_MODE");
        let deterministic = self
            .get("HCCL_DETERMINISTIC")
            .filter(|value| !value.eq_ignore_ascii_case("false"));
        let Some(value) = deterministic else {
            return;
        };
        if mode == Some("AIV") {
            check.warn(format!(
                "HCCL_DETERMINISTIC={value} overrides HCCL_OP_EXPANSION_MODE=AIV"
            ));
        }
        if self.generation == Generation::A910 {
            check.warn(format!("HCCL_DETERMINISTIC={value} does nothing on a 910A"));
        }
        check
            .say("HCCL_DETERMINISTIC is not needed for AdaSum, which sums in a fixed order itself");
    }

    fn places(&self, check: &mut Check) {
        let table = self.get("RANK_TABLE_FILE");
        let alias = self.get("MINDSPORE_HCCL_CONFIG_PATH");
        if let (Some(table), Some(alias)) = (table, alias)
            && table != alias
        {
            check.fail(format!(
                "RANK_TABLE_FILE is {table}, but MINDSPORE_HCCL_CONFIG_PATH is {alias}: set one of them"
            ));
        }
        let chief = CHIEF.iter().find(|name| self.get(name).is_some());
        if table.or(alias).is_some() {
            if let Some(chief) = chief {
                check.fail(format!(
                    "{chief} and a rank table exclude each other: unset one of them"
                ));
            }
            if self.get("ASCEND_DEVICE_ID").is_some() {
                check.warn("ASCEND_DEVICE_ID is not looked at: the rank table says the device");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tools::doctor::report::Verdict;

    fn examine(variables: &[(&str, &str)], change: impl FnOnce(&mut Environment)) -> Check {
        let mut environment = Environment {
            interfaces: Some(vec!["lo".to_owned(), "eth0".to_owned()]),
            ..Environment::default()
        };
        for (name, value) in variables {
            environment
                .variables
                .push(((*name).to_owned(), (*value).to_owned()));
        }
        change(&mut environment);
        environment.check()
    }

    #[track_caller]
    fn expect(variables: &[(&str, &str)], verdict: Verdict, part: &str) {
        expect_on(variables, |_| (), verdict, part);
    }

    #[track_caller]
    fn expect_on(
        variables: &[(&str, &str)],
        change: impl FnOnce(&mut Environment),
        verdict: Verdict,
        part: &str,
    ) {
        let check = examine(variables, change);
        assert_eq!(check.verdict, verdict, "{:?}", check.lines);
        assert!(
            check.lines.iter().any(|line| line.contains(part)),
            "{part:?} is not in {:?}",
            check.lines
        );
    }

    #[test]
    fn an_empty_environment_is_fine() {
        expect(&[], Verdict::Ok, "none is set");
        expect(&[("HCCL_BUFFSIZE", "")], Verdict::Ok, "none is set");
        expect(
            &[("HCCL_BUFFSIZE", "120")],
            Verdict::Ok,
            "HCCL_BUFFSIZE=120",
        );
    }

    #[test]
    fn options_and_secrets_are_read_as_ranks_read_them() {
        for (name, value, part) in [
            (
                "ADASUM_RADIX",
                "9",
                "ADASUM_RADIX=9: must be auto or 2 to 8",
            ),
            ("ADASUM_BARRIER", "yes", "must be 0 or 1"),
            (
                "ADASUM_BOOST_CONFIG",
                "/none",
                "ADASUM_BOOST_CONFIG: /none: ",
            ),
            ("ADASUM_MASTER_PORT", "0", "a number from 1 to 65535"),
            ("ADASUM_JOB_SECRET", "short", "the secret has 5 bytes"),
            ("ADASUM_JOB_SECRET_FILE", "/none", "/none: no such file"),
        ] {
            expect(&[(name, value)], Verdict::Failed, part);
        }
        expect(&[("ADASUM_RADIX", "auto")], Verdict::Ok, "1 is set");
        expect(&[("HCCL_DETERMINISTIC", "TRUE")], Verdict::Ok, "1 is set");
    }

    #[test]
    fn a_secret_is_not_shown() {
        let check = examine(&[("ADASUM_JOB_SECRET", "sixteen or more.")], |_| ());
        let all = format!("{:?} {}", check.lines, check.data);
        assert!(all.contains("ADASUM_JOB_SECRET=(not shown)"), "{all}");
        assert!(!all.contains("sixteen or more"), "{all}");
    }

    #[test]
    fn wrong_values_fail_with_their_rule() {
        for (name, value, part) in [
            ("HCCL_CONNECT_TIMEOUT", "119", "from 120 to 7200"),
            ("HCCL_CONNECT_TIMEOUT", "ten", "from 120 to 7200"),
            ("HCCL_EXEC_TIMEOUT", "-1", "from 0 to 2147483647"),
            ("HCCL_BUFFSIZE", "0", "from 1 to"),
            ("HCCL_IF_BASE_PORT", "1000", "from 1024 to 65520"),
            ("HCCL_DETERMINISTIC", "yes", "one of false, true, strict"),
            ("HCCL_OP_EXPANSION_MODE", "GPU", "one of "),
            ("HCCL_WHITELIST_DISABLE", "2", "one of 0, 1"),
            ("HCCL_IF_IP", "here", "an IP address"),
            ("HCCL_SOCKET_FAMILY", "inet", "one of AF_INET, AF_INET6"),
            ("HCCL_NPU_SOCKET_PORT_RANGE", "5-4", "auto, or ports"),
            ("HCCL_HOST_SOCKET_PORT_RANGE", "1-2,x", "auto, or ports"),
            (
                "HCCL_SOCKET_IFNAME",
                "ib",
                "means no interface of this machine, which has lo, eth0",
            ),
        ] {
            expect(&[(name, value)], Verdict::Failed, part);
        }
        expect(
            &[("HCCL_BUFSIZE", "1")],
            Verdict::Warning,
            "HCCL_BUFSIZE is not known here",
        );
    }

    #[test]
    fn contradictions_are_named() {
        let timeouts = [("HCCL_CONNECT_TIMEOUT", "2000")];
        expect(
            &timeouts,
            Verdict::Warning,
            "should be below HCCL_EXEC_TIMEOUT (1836 s)",
        );
        expect(
            &[("HCCL_EXEC_TIMEOUT", "0")],
            Verdict::Warning,
            "waits for ever",
        );
        let network = [("HCCL_IF_IP", "10.0.0.1"), ("HCCL_SOCKET_IFNAME", "eth")];
        expect(
            &network,
            Verdict::Warning,
            "HCCL_SOCKET_IFNAME=eth is not looked at",
        );
        let family = [
            ("HCCL_IF_IP", "10.0.0.1"),
            ("HCCL_SOCKET_FAMILY", "AF_INET6"),
        ];
        expect(
            &family,
            Verdict::Failed,
            "is not of HCCL_SOCKET_FAMILY=AF_INET6",
        );
        expect(
            &[("HCCL_WHITELIST_DISABLE", "0")],
            Verdict::Failed,
            "needs HCCL_WHITELIST_FILE",
        );
        expect(
            &[("HCCL_WHITELIST_FILE", "/w")],
            Verdict::Warning,
            "is not looked at unless",
        );
        let missing = [
            ("HCCL_WHITELIST_DISABLE", "0"),
            ("HCCL_WHITELIST_FILE", "/nowhere/w"),
        ];
        expect(&missing, Verdict::Failed, "No such file");
        let aiv = [
            ("HCCL_DETERMINISTIC", "true"),
            ("HCCL_OP_EXPANSION_MODE", "AIV"),
        ];
        expect(
            &aiv,
            Verdict::Warning,
            "overrides HCCL_OP_EXPANSION_MODE=AIV",
        );
        let tables = [
            ("RANK_TABLE_FILE", "a"),
            ("MINDSPORE_HCCL_CONFIG_PATH", "b"),
        ];
        expect(&tables, Verdict::Failed, "set one of them");
        let chief = [("RANK_TABLE_FILE", "a"), ("CM_CHIEF_IP", "10.0.0.1")];
        expect(&chief, Verdict::Failed, "exclude each other");
        let device = [("RANK_TABLE_FILE", "a"), ("ASCEND_DEVICE_ID", "1")];
        expect(
            &device,
            Verdict::Warning,
            "ASCEND_DEVICE_ID is not looked at",
        );
    }

    #[test]
    fn chips_and_the_mock_have_rules_of_their_own() {
        let on =
            |soc: &'static str| move |e: &mut Environment| e.generation = Generation::of_soc(soc);
        let mode = |value: &'static str| [("HCCL_OP_EXPANSION_MODE", value)];
        expect_on(&mode("AI_CPU"), on("Ascend910B1"), Verdict::Ok, "AI_CPU");
        // Without it an operation sets stop mode there.
        expect_on(&mode("HOST"), on("Ascend910_9392"), Verdict::Ok, "HOST");
        expect_on(
            &mode("CCU_MS"),
            on("Ascend910B1"),
            Verdict::Failed,
            "one of HOST, HOST_TS, AI_CPU, AIV, AICPU_CacheDisable",
        );
        let exec = [("HCCL_EXEC_TIMEOUT", "1000")];
        expect_on(
            &exec,
            on("Ascend910A"),
            Verdict::Warning,
            "a multiple of 68 on this chip: 952 s",
        );
        let strict = [("HCCL_DETERMINISTIC", "true")];
        expect_on(
            &strict,
            on("Ascend910A"),
            Verdict::Warning,
            "does nothing on a 910A",
        );
        let short = [("HCCL_CONNECT_TIMEOUT", "10")];
        expect_on(
            &short,
            |e| e.is_mock = true,
            Verdict::Ok,
            "HCCL_CONNECT_TIMEOUT=10",
        );
        let fault = [("HCCL_MOCK_FAULT", "0:*:0:die")];
        expect_on(&fault, |e| e.is_mock = true, Verdict::Warning, "on purpose");
        expect(&fault, Verdict::Warning, "means something to the mock only");
        for name in ["ADASUM_BACKND", "HCCL_MOCK_NETS", "ASCEND_MOCK_HBM"] {
            expect(&[(name, "1")], Verdict::Warning, "spelt right?");
        }
    }
}
