//! The conditions of the wrap cells, in MindSpore's order and words.

use super::DEVICES_PER_SERVER;
use crate::error::{Error, ErrorKind, Result};

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

/// MindSpore's automatic-parallel context, as far as AdaSum looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelContext {
    /// Parallel mode.
    pub mode: ParallelMode,
    /// Whether the optimizer's state is sharded.
    pub enable_parallel_optimizer: bool,
    /// Stages of a pipeline; 1 without.
    pub pipeline_stages: u32,
    /// Devices of all stages.
    pub device_num: u32,
}

/// Checks what the wrap cells check, and returns the number of servers of 8 in a stage.
///
/// There is one warning between the checks. `warn` gets it as soon as it is due, also where an error follows.
///
/// # Errors
/// The four errors of the wrap cells, `RuntimeError` in MindSpore, in their order.
pub fn wrap_cell_servers(context: &ParallelContext, mut warn: impl FnMut(&str)) -> Result<u32> {
    let error = |message: &str| Err(Error::new(ErrorKind::InvalidState, message));
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
    let devices = context.device_num;
    if devices < 16 || !devices.is_power_of_two() {
        return error(
            "The device_num must be at least 16 and must be the power of 2 when applying adasum.",
        );
    }
    Ok(devices / DEVICES_PER_SERVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: ParallelContext = ParallelContext {
        mode: ParallelMode::SemiAutoParallel,
        enable_parallel_optimizer: false,
        pipeline_stages: 1,
        device_num: 16,
    };

    fn checked(context: ParallelContext) -> (Vec<String>, Result<u32>) {
        let mut warnings = Vec::new();
        let result = wrap_cell_servers(&context, |warning| warnings.push(warning.to_owned()));
        (warnings, result)
    }

    #[test]
    fn the_checks_come_in_order_with_their_words() {
        let all_wrong = ParallelContext {
            mode: ParallelMode::StandAlone,
            enable_parallel_optimizer: true,
            pipeline_stages: 2,
            device_num: 6,
        };
        let message = |context| checked(context).1.unwrap_err().to_string();
        assert_eq!(
            message(all_wrong),
            "Stand alone mode is not supported to apply adasum."
        );
        let next = ParallelContext {
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
        let next = ParallelContext {
            enable_parallel_optimizer: false,
            ..next
        };
        assert_eq!(
            message(next),
            "Currently, the pipeline parallel is not supported with applying adasum."
        );
        let next = ParallelContext {
            pipeline_stages: 1,
            ..next
        };
        let wrong =
            "The device_num must be at least 16 and must be the power of 2 when applying adasum.";
        for device_num in [6, 8, 17, 24, 33] {
            assert_eq!(message(ParallelContext { device_num, ..next }), wrong);
        }
        let error = checked(next).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
    }

    #[test]
    fn servers_have_eight_devices() {
        assert_eq!(checked(GOOD), (vec![], Ok(2)));
        let hybrid = ParallelContext {
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
}
