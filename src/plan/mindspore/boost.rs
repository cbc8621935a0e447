//! The boost mode: its configuration, and the worlds that it is for.

use serde_json::{Map, Value};

use super::DEVICES_PER_SERVER;
use super::checks::ParallelContext;
use crate::error::{Error, Result, cut};

/// The boost level of a model. An unknown name is `O0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BoostLevel {
    /// No algorithm.
    #[default]
    O0,
    /// Less batch normalisation and frozen gradients.
    O1,
    /// The algorithms of `O1`, and AdaSum.
    O2,
}

impl BoostLevel {
    /// The level of a name.
    pub fn named(name: &str) -> Self {
        match name {
            "O1" => BoostLevel::O1,
            "O2" => BoostLevel::O2,
            _ => BoostLevel::O0,
        }
    }
}

/// The algorithms of boost, in the order in which they take precedence at run time. Those that are not part of this
/// library have a sentence that says what they are.
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

/// What a boost configuration comes to at a level.
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
    pub fn resolve(&self, level: BoostLevel) -> Result<Boost> {
        let boost = self.section("boost")?;
        let mode = match boost.and_then(|boost| boost.get("mode")) {
            None => "auto",
            Some(Value::String(mode)) => mode,
            Some(other) => return Err(unknown_mode(other)),
        };
        let mut on = Vec::new();
        for (name, refusal) in ALGORITHMS {
            let of_level = match level {
                BoostLevel::O0 => false,
                BoostLevel::O1 => matches!(name, "less_bn" | "grad_freeze"),
                BoostLevel::O2 => matches!(name, "less_bn" | "grad_freeze" | "adasum"),
            };
            let enabled = match mode {
                "auto" => of_level,
                "manual" => match boost.and_then(|boost| boost.get(name)) {
                    None => of_level,
                    Some(Value::Bool(switch)) => *switch,
                    Some(other) => {
                        return Err(Error::invalid(format!(
                            "boost configuration: boost.{name} is {}, not true or false",
                            shown(other)
                        )));
                    }
                },
                "enable_all" => true,
                "disable_all" => false,
                other => return Err(unknown_mode(&Value::from(other))),
            };
            if enabled && level != BoostLevel::O0 {
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
                        "boost configuration: common.device_number is {}, not a positive number",
                        shown(value)
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
                "boost configuration: {name} is {}, not an object",
                shown(other)
            ))),
        }
    }
}

/// MindSpore's `ValueError` for a mode that is none.
fn unknown_mode(mode: &Value) -> Error {
    let mode = shown(mode);
    let mode = mode.trim_matches('"');
    Error::invalid(format!(
        "The boost mode must be in ['auto', 'manual', 'enable_all', 'disable_all'], but got {mode}"
    ))
}

/// A value as JSON, which is one line, cut if it is long.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let (start, more) = cut(&text);
    format!("{start}{more}")
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
            "boost configuration: common.gradient_split_groups is {}, not a list of positive numbers",
            shown(value)
        ))
    })
}

/// Checks that boost's AdaSum is for such a training.
///
/// # Errors
/// Where MindSpore would use the plain optimizer in silence: in another mode than data or hybrid parallel, or if the
/// ranks are not a power of two of whole servers, at least two.
pub fn check_boost(boost: &Boost, context: &ParallelContext) -> Result<()> {
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::checks::ParallelMode;
    use super::*;
    use crate::error::ErrorKind;

    /// The dictionary of the tutorial.
    const TUTORIAL: &str = r#"{"boost": {"mode": "manual", "less_bn": false, "grad_freeze": false, "adasum": true,
        "grad_accumulation": false, "dim_reduce": false}}"#;

    fn resolved(text: &str, level: BoostLevel) -> Result<Boost> {
        BoostConfig::parse(text)?.resolve(level)
    }

    #[test]
    fn the_tutorials_dictionary_turns_adasum_on() {
        let boost = resolved(TUTORIAL, BoostLevel::O2).unwrap();
        let expected = Boost {
            adasum: true,
            device_number: 8,
            gradient_split_groups: vec![50, 100],
        };
        assert_eq!(boost, expected);
        // Level O0 ignores the dictionary, an unknown level is O0.
        assert!(!resolved(TUTORIAL, BoostLevel::named("O7")).unwrap().adasum);
        assert!(resolved(TUTORIAL, BoostLevel::named("O1")).unwrap().adasum);
        assert!(!resolved("{}", BoostLevel::O0).unwrap().adasum);
        let off = r#"{"boost": {"mode": "disable_all", "adasum": true}}"#;
        assert!(!resolved(off, BoostLevel::O2).unwrap().adasum);
        let common = r#"{"boost": {"mode": "disable_all"},
            "common": {"device_number": 4, "gradient_split_groups": [20]}}"#;
        let boost = resolved(common, BoostLevel::O1).unwrap();
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
        says("{}", BoostLevel::O2, "grad_freeze is on");
        says("{}", BoostLevel::O1, "grad_freeze is on");
        let all = r#"{"boost": {"mode": "enable_all"}}"#;
        says(all, BoostLevel::O1, "dim_reduce is on");
        for name in ["less_bn", "grad_accumulation", "loss_scale_group"] {
            let text = TUTORIAL.replace(&format!("\"{name}\": false"), "\"x\": 0");
            let text = text.replace("\"manual\",", &format!("\"manual\", \"{name}\": true,"));
            says(&text, BoostLevel::O2, &format!("{name} is on"));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let says = |text: &str, what: &str| {
            let error = resolved(text, BoostLevel::O2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(what), "{error}");
        };
        let mode = "The boost mode must be in ['auto', 'manual', 'enable_all', 'disable_all'], but got some";
        let error = resolved(r#"{"boost": {"mode": "some"}}"#, BoostLevel::O2).unwrap_err();
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
        let boost = resolved(TUTORIAL, BoostLevel::O2).unwrap();
        let context = |mode, device_num| ParallelContext {
            mode,
            enable_parallel_optimizer: false,
            pipeline_stages: 1,
            device_num,
        };
        let check = |devices| check_boost(&boost, &context(ParallelMode::DataParallel, devices));
        check(16).unwrap();
        check(64).unwrap();
        for devices in [8, 20, 24] {
            let error = check(devices).unwrap_err().to_string();
            assert!(error.contains(&format!("{devices} devices")), "{error}");
        }
        let auto = check_boost(&boost, &context(ParallelMode::AutoParallel, 16));
        assert!(auto.unwrap_err().to_string().contains("AutoParallel"));
    }
}
