//! The boost mode: its configuration, and the partition of the parameters over a server.

use std::ops::Range;

use serde_json::{Map, Value};

use super::checks::Context;
use super::{DEVICES_PER_SERVER, Exception, ExceptionClass};
use crate::error::{Error, Result};
use crate::plan::buckets;

/// The boost level of a model. An unknown name is `O0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Level {
    /// Nothing.
    #[default]
    O0,
    /// Less batch normalisation and frozen gradients.
    O1,
    /// Those and AdaSum.
    O2,
}

impl Level {
    /// The level of a name.
    pub fn named(name: &str) -> Self {
        match name {
            "O1" => Level::O1,
            "O2" => Level::O2,
            _ => Level::O0,
        }
    }
}

/// The algorithms of boost, each with a sentence for those that are not part of this library, in the order in which
/// they take precedence at run time.
const ALGORITHMS: [(&str, Option<&str>); 6] = [
    (
        "dim_reduce",
        Some("second-order updates in a reduced space"),
    ),
    (
        "grad_freeze",
        Some("freezing of gradients, whose step never calls AdaSum"),
    ),
    (
        "grad_accumulation",
        Some("accumulation by boost; the reducers of this library accumulate themselves"),
    ),
    ("adasum", None),
    (
        "less_bn",
        Some("removal of batch normalisation from the network"),
    ),
    (
        "loss_scale_group",
        Some("loss scales by groups, whose step ignores AdaSum"),
    ),
];

/// A boost configuration as it was resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boost {
    /// Whether AdaSum is on.
    pub adasum: bool,
    /// Ranks of a server.
    pub device_number: u32,
    /// Where a list of gradients is split into fused all-reduces.
    pub gradient_split_groups: Vec<u32>,
}

/// A boost configuration: the dictionary `boost_config_dict`, or a JSON file of it.
#[derive(Debug, Clone, Default)]
pub struct BoostConfig {
    dictionary: Map<String, Value>,
}

impl BoostConfig {
    /// Reads the text of a JSON file.
    ///
    /// # Errors
    /// If it is not a JSON object.
    pub fn parse(text: &str) -> Result<Self> {
        match serde_json::from_str(text) {
            Ok(Value::Object(dictionary)) => Ok(BoostConfig { dictionary }),
            Ok(_) => Err(Error::invalid("boost configuration: not a JSON object")),
            Err(error) => Err(Error::invalid(format!("boost configuration: {error}"))),
        }
    }

    /// Settles which algorithms are on.
    ///
    /// `boost.mode` is `auto` (the level's), `manual` (the level's, but for what the dictionary says), `enable_all` or
    /// `disable_all`. With level O0 everything is off, whatever the dictionary says.
    ///
    /// # Errors
    /// For an unknown mode MindSpore's `ValueError`; for values of a wrong type; and if an algorithm other than AdaSum
    /// is on: where MindSpore would train without AdaSum in silence, this says so.
    pub fn resolve(&self, level: Level) -> Result<Boost> {
        let boost = self.section("boost")?;
        let mode = match boost.and_then(|boost| boost.get("mode")) {
            None => "auto",
            Some(Value::String(mode)) => mode,
            Some(other) => return Err(unknown_mode(other).into_error()),
        };
        let mut on = Vec::new();
        for (name, refusal) in ALGORITHMS {
            let of_level = match level {
                Level::O0 => false,
                Level::O1 => matches!(name, "less_bn" | "grad_freeze"),
                Level::O2 => matches!(name, "less_bn" | "grad_freeze" | "adasum"),
            };
            let given = boost.and_then(|boost| boost.get(name));
            let enabled = match mode {
                "auto" => of_level,
                "manual" => match given {
                    None => of_level,
                    Some(Value::Bool(given)) => *given,
                    Some(other) => {
                        return Err(Error::invalid(format!(
                            "boost configuration: boost.{name} is {other}, not true or false"
                        )));
                    }
                },
                "enable_all" => true,
                "disable_all" => false,
                other => return Err(unknown_mode(&Value::from(other)).into_error()),
            };
            if enabled && level != Level::O0 {
                on.push((name, refusal));
            }
        }
        if let Some((name, Some(what))) = on.iter().find(|(_, refusal)| refusal.is_some()) {
            return Err(Error::unsupported(format!(
                "boost configuration: {name} is on ({what}), which is not part of this library; for AdaSum set \
                 boost.mode to \"manual\" and every switch but adasum to false"
            )));
        }
        let common = self.section("common")?;
        Ok(Boost {
            adasum: on.iter().any(|(name, _)| *name == "adasum"),
            device_number: match common.and_then(|common| common.get("device_number")) {
                None => DEVICES_PER_SERVER,
                Some(value) => positive(value).ok_or_else(|| {
                    Error::invalid(format!(
                        "boost configuration: common.device_number is {value}, not a positive number"
                    ))
                })?,
            },
            gradient_split_groups: match common
                .and_then(|common| common.get("gradient_split_groups"))
            {
                None => vec![50, 100],
                Some(value) => split_groups(value)?,
            },
        })
    }

    fn section(&self, name: &str) -> Result<Option<&Map<String, Value>>> {
        match self.dictionary.get(name) {
            None => Ok(None),
            Some(Value::Object(section)) => Ok(Some(section)),
            Some(other) => Err(Error::invalid(format!(
                "boost configuration: {name} is {other}, not an object"
            ))),
        }
    }
}

fn unknown_mode(mode: &Value) -> Exception {
    let mode = mode
        .as_str()
        .map_or_else(|| mode.to_string(), str::to_owned);
    Exception::new(
        ExceptionClass::Value,
        format!(
            "The boost mode must be in ['auto', 'manual', 'enable_all', 'disable_all'], but got {mode}"
        ),
    )
}

fn positive(value: &Value) -> Option<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.filter(|&number| number > 0)
}

fn split_groups(value: &Value) -> Result<Vec<u32>> {
    let numbers = value.as_array().map(|items| items.iter().map(positive));
    let numbers: Option<Vec<u32>> = numbers.and_then(Iterator::collect);
    numbers.ok_or_else(|| {
        Error::invalid(format!(
            "boost configuration: common.gradient_split_groups is {value}, not a list of positive numbers"
        ))
    })
}

/// Servers over which boost's AdaSum goes.
///
/// # Errors
/// Where MindSpore would use the plain optimizer in silence: in another mode than data or hybrid parallel, or if the
/// ranks are not a power of two of whole servers, at least two.
pub fn boost_servers(boost: &Boost, context: &Context) -> Result<u32> {
    let devices = context.device_num;
    let servers = devices / boost.device_number.max(1);
    if !context.mode.is_data_parallel() {
        return Err(Error::invalid(format!(
            "boost's AdaSum is for data and hybrid parallel mode, not {:?}",
            context.mode
        )));
    }
    let whole = devices.is_multiple_of(boost.device_number.max(1));
    if !whole || servers < 2 || !servers.is_power_of_two() {
        return Err(Error::invalid(format!(
            "boost's AdaSum: {devices} devices are not a power of two of servers of {}, at least two",
            boost.device_number
        )));
    }
    Ok(servers)
}

/// Which tensors each rank of a server reduces between servers: consecutive runs, balanced by `bytes`.
///
/// One run for each of `device_number` ranks, the last ones empty if tensors are few. (MindSpore gives each rank
/// equally many tensors, and the slowest rank several times the mean of their bytes.)
pub fn boost_partition(bytes: &[u64], device_number: u32) -> Vec<Range<usize>> {
    let parts = device_number as usize;
    let total = bytes.iter().fold(0_u64, |sum, &b| sum.saturating_add(b));
    let (mut low, mut high) = (0, total);
    while low < high {
        let middle = low + (high - low) / 2;
        if buckets(bytes, middle).len() <= parts {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let mut runs = buckets(bytes, low);
    runs.resize(parts, bytes.len()..bytes.len());
    runs
}

#[cfg(test)]
mod tests {
    use super::super::checks::ParallelMode;
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    /// The dictionary of the tutorial.
    const TUTORIAL: &str = r#"{"boost": {"mode": "manual", "less_bn": false, "grad_freeze": false, "adasum": true,
        "grad_accumulation": false, "dim_reduce": false}}"#;

    fn resolved(text: &str, level: Level) -> Result<Boost> {
        BoostConfig::parse(text)?.resolve(level)
    }

    #[test]
    fn the_tutorials_dictionary_turns_adasum_on() {
        let boost = resolved(TUTORIAL, Level::O2).unwrap();
        let expected = Boost {
            adasum: true,
            device_number: 8,
            gradient_split_groups: vec![50, 100],
        };
        assert_eq!(boost, expected);
        // Level O0 ignores the dictionary, an unknown level is O0.
        assert!(!resolved(TUTORIAL, Level::named("O7")).unwrap().adasum);
        assert!(resolved(TUTORIAL, Level::named("O1")).unwrap().adasum);
        assert!(!resolved("{}", Level::O0).unwrap().adasum);
        let off = r#"{"boost": {"mode": "disable_all", "adasum": true}}"#;
        assert!(!resolved(off, Level::O2).unwrap().adasum);
        let common = r#"{"boost": {"mode": "disable_all"},
            "common": {"device_number": 4, "gradient_split_groups": [20]}}"#;
        let boost = resolved(common, Level::O1).unwrap();
        assert_eq!(boost.device_number, 4);
        assert_eq!(boost.gradient_split_groups, [20]);
    }

    #[test]
    fn other_algorithms_are_refused_by_name_in_their_precedence() {
        let says = |text: &str, level, what: &str| {
            let error = resolved(text, level).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(what), "{error}");
        };
        // Plain O2 freezes gradients, and then AdaSum is never called.
        says("{}", Level::O2, "grad_freeze is on");
        says("{}", Level::O1, "grad_freeze is on");
        let all = r#"{"boost": {"mode": "enable_all"}}"#;
        says(all, Level::O1, "dim_reduce is on");
        for name in ["less_bn", "grad_accumulation", "loss_scale_group"] {
            let text = TUTORIAL.replace(&format!("\"{name}\": false"), "\"x\": 0");
            let text = text.replace("\"manual\",", &format!("\"manual\", \"{name}\": true,"));
            says(&text, Level::O2, &format!("{name} is on"));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let says = |text: &str, what: &str| {
            let error = resolved(text, Level::O2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(what), "{error}");
        };
        let mode = "The boost mode must be in ['auto', 'manual', 'enable_all', 'disable_all'], but got some";
        let error = resolved(r#"{"boost": {"mode": "some"}}"#, Level::O2).unwrap_err();
        assert_eq!(error.to_string(), mode);
        says("[]", "not a JSON object");
        says("{", "boost configuration");
        says(r#"{"boost": 3}"#, "boost is 3");
        says(
            r#"{"boost": {"mode": "manual", "adasum": 1}}"#,
            "boost.adasum is 1",
        );
        let off =
            |common: &str| format!(r#"{{"boost": {{"mode": "disable_all"}}, "common": {common}}}"#);
        says(&off(r#"{"device_number": 0}"#), "common.device_number is 0");
        says(
            &off(r#"{"gradient_split_groups": [1, -1]}"#),
            "common.gradient_split_groups",
        );
    }

    #[test]
    fn servers_that_boost_cannot_use_are_errors() {
        let boost = resolved(TUTORIAL, Level::O2).unwrap();
        let context = |mode, device_num| Context {
            mode,
            enable_parallel_optimizer: false,
            pipeline_stages: 1,
            device_num,
        };
        let servers =
            |devices| boost_servers(&boost, &context(ParallelMode::DataParallel, devices));
        assert_eq!(servers(16), Ok(2));
        assert_eq!(servers(64), Ok(8));
        for devices in [8, 20, 24] {
            let error = servers(devices).unwrap_err().to_string();
            assert!(error.contains(&format!("{devices} devices")), "{error}");
        }
        let auto = boost_servers(&boost, &context(ParallelMode::AutoParallel, 16));
        assert!(auto.unwrap_err().to_string().contains("AutoParallel"));
    }

    #[test]
    fn few_tensors_leave_the_last_ranks_without() {
        assert_eq!(boost_partition(&[5, 5], 4), [0..1, 1..2, 2..2, 2..2]);
        assert_eq!(boost_partition(&[], 2), [0..0, 0..0]);
        assert_eq!(
            boost_partition(&[1, 1, 1, 9, 1, 1, 1, 1], 3),
            [0..3, 3..4, 4..8]
        );
    }

    proptest! {
        /// One run for each rank, all tensors in order, and the largest near the mean.
        #[test]
        fn the_partition_is_balanced(bytes in prop::collection::vec(0u64..1000, 0..200), ranks in 1u32..9) {
            let runs = boost_partition(&bytes, ranks);
            prop_assert_eq!(runs.len(), ranks as usize);
            let joined: Vec<usize> = runs.iter().cloned().flatten().collect();
            prop_assert_eq!(joined, (0..bytes.len()).collect::<Vec<_>>());
            let total: u64 = bytes.iter().sum();
            let largest = runs.iter().map(|run| bytes[run.clone()].iter().sum::<u64>()).max();
            prop_assert!(largest <= Some(total / u64::from(ranks) + 1000));
        }
    }
}
