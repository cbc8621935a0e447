//! Conditions, in MindSpore's order and words.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{DEVICES_PER_SERVER, Exception, ExceptionClass};

/// How MindSpore spreads a training over devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParallelMode {
    /// One device.
    StandAlone,
    /// The same network on all devices.
    DataParallel,
    /// Data parallel, with parts placed by hand.
    HybridParallel,
    /// Sharded by strategies that the user gives.
    SemiAutoParallel,
    /// Sharded by strategies that are searched.
    AutoParallel,
}

impl ParallelMode {
    /// The mode of MindSpore's name for it, like `data_parallel`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "stand_alone" => ParallelMode::StandAlone,
            "data_parallel" => ParallelMode::DataParallel,
            "hybrid_parallel" => ParallelMode::HybridParallel,
            "semi_auto_parallel" => ParallelMode::SemiAutoParallel,
            "auto_parallel" => ParallelMode::AutoParallel,
            _ => return None,
        })
    }

    /// Whether gradients are reduced in the server before AdaSum.
    pub fn is_data_parallel(self) -> bool {
        matches!(
            self,
            ParallelMode::DataParallel | ParallelMode::HybridParallel
        )
    }
}

/// What MindSpore's automatic-parallel context says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Parallel mode.
    pub mode: ParallelMode,
    /// Whether the optimizer's state is sharded.
    pub enable_parallel_optimizer: bool,
    /// Stages of a pipeline; 1 without.
    pub pipeline_stages: u32,
    /// Devices of all stages.
    pub device_num: u32,
}

/// The checks of the wrap cells, in their order: four errors and, between them, one warning.
///
/// The warning is given as soon as it is due, also where an error follows.
pub fn parallel_check(context: &Context, mut warn: impl FnMut(&str)) -> Result<(), Exception> {
    let error = |message: &str| Err(Exception::new(ExceptionClass::Runtime, message));
    if context.mode == ParallelMode::StandAlone {
        return error("Stand alone mode is not supported to apply adasum.");
    }
    if context.mode.is_data_parallel() {
        warn(
            "For data parallel mode or hybrid parallel mode, it is recommended to using mindspore.boost to \
             enable adasum.",
        );
    }
    if context.enable_parallel_optimizer {
        return error("Currently, the optimizer shard is not supported with applying adasum.");
    }
    if context.pipeline_stages > 1 {
        return error("Currently, the pipeline parallel is not supported with applying adasum.");
    }
    let devices = context.device_num / context.pipeline_stages.max(1);
    if devices < 16 || !devices.is_power_of_two() {
        return error(
            "The device_num must be at least 16 and must be the power of 2 when applying adasum.",
        );
    }
    Ok(())
}

/// Servers of 8 among the devices of a stage, after [`parallel_check`].
pub fn wrap_cell_servers(context: &Context, warn: impl FnMut(&str)) -> Result<u32, Exception> {
    parallel_check(context, warn)?;
    Ok(servers(context))
}

/// Servers of 8 among the devices of a stage.
pub fn servers(context: &Context) -> u32 {
    context.device_num / context.pipeline_stages.max(1) / DEVICES_PER_SERVER
}

/// What came of a request for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is new.
    New,
    /// A group of this name and these ranks was there; nothing was done.
    Already,
}

/// The groups that were created, by name.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    known: BTreeMap<String, Value>,
}

impl Groups {
    /// `create_group(group, rank_ids)` with its checks, in its order; arguments as Python's `json` would pass them.
    pub fn create(&mut self, group: &Value, rank_ids: &Value) -> Result<Created, Exception> {
        let kind = |message| Exception::new(ExceptionClass::Type, message);
        let value = |message| Exception::new(ExceptionClass::Value, message);
        let Value::String(name) = group else {
            return Err(kind(format!(
                "For 'create_group', the argument 'group' must be type of string, but got 'group' type : {}.",
                class_of(group)
            )));
        };
        if let Some(known) = self.known.get(name) {
            if known == rank_ids {
                return Ok(Created::Already);
            }
            return Err(value(format!(
                "The group {name} has been created, the rank_list is {}, but current rank_list for the group is {}",
                python(known),
                python(rank_ids)
            )));
        }
        let Value::Array(ranks) = rank_ids else {
            return Err(kind(format!(
                "For 'create_group', the argument 'rank_ids' must be type of list, but got 'rank_ids' type : {}.",
                class_of(rank_ids)
            )));
        };
        if ranks.is_empty() {
            return Err(value(format!(
                "For 'create_group', the argument 'rank_ids' size should be greater than 1, but got 'rank_ids' \
                 size : {}.",
                ranks.len()
            )));
        }
        let repeated = (1..ranks.len()).any(|i| ranks[..i].contains(&ranks[i]));
        if repeated {
            return Err(value(format!(
                "List rank_ids in Group {name} has duplicate data!"
            )));
        }
        self.known.insert(name.clone(), rank_ids.clone());
        Ok(Created::New)
    }
}

/// The divisor of the mean reducer: `degree`, or the size of the group if that is null. `true` passes as 1.
pub fn degree(degree: &Value, group_size: u32) -> Result<u32, Exception> {
    let given = match degree {
        Value::Null => Some(u64::from(group_size)),
        Value::Bool(flag) => Some(u64::from(*flag)),
        other => other.as_u64(),
    };
    given
        .and_then(|given| u32::try_from(given).ok())
        .filter(|&given| given > 0)
        .ok_or_else(|| {
            Exception::new(
                ExceptionClass::Value,
                format!(
                    "For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer should large than 0 \
                     and be int, degree: {}.",
                    plain(degree)
                ),
            )
        })
}

/// What Python's `type` prints.
fn class_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<class 'NoneType'>",
        Value::Bool(_) => "<class 'bool'>",
        Value::Number(number) if number.is_f64() => "<class 'float'>",
        Value::Number(_) => "<class 'int'>",
        Value::String(_) => "<class 'str'>",
        Value::Array(_) => "<class 'list'>",
        Value::Object(_) => "<class 'dict'>",
    }
}

/// What Python's `str` prints.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => python(other),
    }
}

/// What Python's `repr` prints.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(name, value)| format!("'{name}': {}", python(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GOOD: Context = Context {
        mode: ParallelMode::SemiAutoParallel,
        enable_parallel_optimizer: false,
        pipeline_stages: 1,
        device_num: 16,
    };

    fn checked(context: Context) -> (Vec<String>, Result<u32, Exception>) {
        let mut warnings = Vec::new();
        let result = wrap_cell_servers(&context, |warning| warnings.push(warning.to_owned()));
        (warnings, result)
    }

    #[test]
    fn the_checks_come_in_order_with_their_words() {
        let all_wrong = Context {
            mode: ParallelMode::StandAlone,
            enable_parallel_optimizer: true,
            pipeline_stages: 2,
            device_num: 6,
        };
        let message = |context| checked(context).1.unwrap_err().message;
        assert_eq!(
            message(all_wrong),
            "Stand alone mode is not supported to apply adasum."
        );
        let next = Context {
            mode: ParallelMode::DataParallel,
            ..all_wrong
        };
        assert_eq!(
            message(next),
            "Currently, the optimizer shard is not supported with applying adasum."
        );
        // The warning comes although an error follows.
        assert_eq!(
            checked(next).0,
            [
                "For data parallel mode or hybrid parallel mode, it is recommended to using mindspore.boost to enable \
                 adasum."
            ]
        );
        let next = Context {
            enable_parallel_optimizer: false,
            ..next
        };
        assert_eq!(
            message(next),
            "Currently, the pipeline parallel is not supported with applying adasum."
        );
        let next = Context {
            pipeline_stages: 1,
            ..next
        };
        let wrong =
            "The device_num must be at least 16 and must be the power of 2 when applying adasum.";
        for device_num in [6, 8, 17, 24, 33] {
            assert_eq!(message(Context { device_num, ..next }), wrong);
        }
        assert_eq!(checked(next).1.unwrap_err().class.name(), "RuntimeError");
    }

    #[test]
    fn servers_have_eight_devices() {
        assert_eq!(checked(GOOD), (vec![], Ok(2)));
        let hybrid = Context {
            mode: ParallelMode::HybridParallel,
            device_num: 64,
            ..GOOD
        };
        let (warnings, servers) = checked(hybrid);
        assert_eq!((warnings.len(), servers), (1, Ok(8)));
        assert_eq!(
            ParallelMode::named("auto_parallel"),
            Some(ParallelMode::AutoParallel)
        );
        assert_eq!(ParallelMode::named("parallel"), None);
    }

    #[test]
    fn groups_are_checked_in_order_with_their_words() {
        let mut groups = Groups::default();
        let mut fails = |group: Value, ranks: Value| {
            let error = groups.create(&group, &ranks).unwrap_err();
            (error.class.name(), error.message)
        };
        let bad_name = "For 'create_group', the argument 'group' must be type of string, but got 'group' type : \
                        <class 'int'>.";
        assert_eq!(
            fails(json!(3), json!(4)),
            ("TypeError", bad_name.to_owned())
        );
        let bad_ranks = "For 'create_group', the argument 'rank_ids' must be type of list, but got 'rank_ids' type : \
                         <class 'NoneType'>.";
        assert_eq!(
            fails(json!("0-8"), Value::Null),
            ("TypeError", bad_ranks.to_owned())
        );
        let none = "For 'create_group', the argument 'rank_ids' size should be greater than 1, but got 'rank_ids' \
                    size : 0.";
        assert_eq!(
            fails(json!("0-8"), json!([])),
            ("ValueError", none.to_owned())
        );
        let twice = "List rank_ids in Group 0-8 has duplicate data!";
        assert_eq!(
            fails(json!("0-8"), json!([0, 8, 0])),
            ("ValueError", twice.to_owned())
        );
        let mut create = |ranks: Value| groups.create(&json!("0-8"), &ranks);
        assert_eq!(create(json!([0, 8])), Ok(Created::New));
        assert_eq!(create(json!([0, 8])), Ok(Created::Already));
        // A known name comes before all checks of the ranks.
        let other = "The group 0-8 has been created, the rank_list is [0, 8], but current rank_list for the group \
                     is None";
        assert_eq!(create(Value::Null).unwrap_err().message, other);
    }

    #[test]
    fn the_degree_is_a_positive_int() {
        assert_eq!(degree(&Value::Null, 16), Ok(16));
        assert_eq!(degree(&json!(3), 16), Ok(3));
        assert_eq!(degree(&json!(true), 16), Ok(1));
        let wrong = [
            (json!(0), "0"),
            (json!(-2), "-2"),
            (json!(2.5), "2.5"),
            (json!("8"), "8"),
            (json!(false), "False"),
        ];
        for (value, printed) in wrong {
            let error = degree(&value, 16).unwrap_err();
            assert_eq!(error.class, ExceptionClass::Value);
            let expected = format!(
                "For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer should large than 0 and be \
                 int, degree: {printed}."
            );
            assert_eq!(error.message, expected);
        }
    }
}
