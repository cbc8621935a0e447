//! Setters of the choices: each checks its value at once.

use std::ffi::c_char;

use super::arguments::{choice, flag, invalid, slice, text, timeout};
use super::options::{adasum_options, set};
use super::status::{Fault, adasum_status};
use crate::plan::MAX_RADIX;
use crate::plan::mindspore::{Context, ParallelMode};
use crate::reduce::{
    DeltaForm, Form, Fusion, InServer, Machine, Options, Overflow, Placement, Profile, Reduction,
    ScalarExchange, Settings, Wire,
};

/// The paper's algorithm in the fastest arrangement. The default.
pub const ADASUM_PROFILE_PAPER: i32 = 0;
/// As MindSpore's cells: servers of 8, columns, pairwise exchange, a barrier at the end.
pub const ADASUM_PROFILE_MINDSPORE: i32 = 1;

/// Options that go together: ADASUM_PROFILE_PAPER or ADASUM_PROFILE_MINDSPORE. The second checks the world as MindSpore's
/// cells do, with their words, and overrides radix, placement, exchange and barrier when a reducer is created.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_profile(
    options: *mut adasum_options,
    profile: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.profile = choice(
            profile,
            "profile",
            &[
                ("ADASUM_PROFILE_PAPER", ADASUM_PROFILE_PAPER, Profile::Paper),
                (
                    "ADASUM_PROFILE_MINDSPORE",
                    ADASUM_PROFILE_MINDSPORE,
                    Profile::MindSpore,
                ),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_profile", options, change) }
}

/// What MindSpore's checks are to see: `mode` is "stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel" or
/// "auto_parallel"; `device_num` counts the devices of all stages. Without this call they see what follows from the world.
/// Used with ADASUM_PROFILE_MINDSPORE and after adasum_options_load_boost.
///
/// # Safety
/// `options` is NULL or live; `mode` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_mindspore_context(
    options: *mut adasum_options,
    mode: *const c_char,
    enable_parallel_optimizer: i32,
    pipeline_stages: u32,
    device_num: u32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        // SAFETY: as promised by the caller.
        let mode = unsafe { text(mode, "mode") }?;
        let mode = ParallelMode::named(mode)
            .ok_or_else(|| invalid(format!("mode {mode:?} is no parallel mode of MindSpore")))?;
        if pipeline_stages == 0 {
            return Err(invalid(
                "pipeline_stages is 0, must be at least 1".to_owned(),
            ));
        }
        let enable_parallel_optimizer =
            flag(enable_parallel_optimizer, "enable_parallel_optimizer")?;
        settings.context = Some(Context {
            mode,
            enable_parallel_optimizer,
            pipeline_stages,
            device_num,
        });
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_mindspore_context", options, change) }
}

/// AdaSum between servers, the mean in each server. The default.
pub const ADASUM_REDUCTION_ADASUM: i32 = 0;
/// The mean over all ranks.
pub const ADASUM_REDUCTION_MEAN: i32 = 1;
/// The sum over all ranks.
pub const ADASUM_REDUCTION_SUM: i32 = 2;

/// How servers are combined: ADASUM_REDUCTION_ADASUM, ADASUM_REDUCTION_MEAN or ADASUM_REDUCTION_SUM.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_reduction(
    options: *mut adasum_options,
    reduction: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.reduction = choice(
            reduction,
            "reduction",
            &[
                (
                    "ADASUM_REDUCTION_ADASUM",
                    ADASUM_REDUCTION_ADASUM,
                    Reduction::Adasum,
                ),
                (
                    "ADASUM_REDUCTION_MEAN",
                    ADASUM_REDUCTION_MEAN,
                    Reduction::Mean,
                ),
                ("ADASUM_REDUCTION_SUM", ADASUM_REDUCTION_SUM, Reduction::Sum),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_reduction", options, change) }
}

/// Their mean; their sum with ADASUM_REDUCTION_SUM. The default.
pub const ADASUM_IN_SERVER_MEAN: i32 = 0;
/// Their sum, which makes the result of AdaSum as many times as large as a server has ranks.
pub const ADASUM_IN_SERVER_SUM: i32 = 1;
/// Nothing: all ranks of a server hold the same gradients already, bit for bit.
pub const ADASUM_IN_SERVER_REDUCED: i32 = 2;
/// Nothing: they hold different parts of the same tensors, all of one size, as in tensor-parallel models.
pub const ADASUM_IN_SERVER_SHARDS: i32 = 3;

/// How the ranks of a server are combined before servers are: ADASUM_IN_SERVER_MEAN, _SUM, _REDUCED or _SHARDS.
/// Delta reducers decide this themselves: it must be ADASUM_IN_SERVER_MEAN for them.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_in_server(
    options: *mut adasum_options,
    in_server: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.in_server = choice(
            in_server,
            "in_server",
            &[
                (
                    "ADASUM_IN_SERVER_MEAN",
                    ADASUM_IN_SERVER_MEAN,
                    InServer::Mean,
                ),
                ("ADASUM_IN_SERVER_SUM", ADASUM_IN_SERVER_SUM, InServer::Sum),
                (
                    "ADASUM_IN_SERVER_REDUCED",
                    ADASUM_IN_SERVER_REDUCED,
                    InServer::Reduced,
                ),
                (
                    "ADASUM_IN_SERVER_SHARDS",
                    ADASUM_IN_SERVER_SHARDS,
                    InServer::Shards,
                ),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_in_server", options, change) }
}

/// Ranks of a server, for worlds made with these options; all ranks must be a whole number of such servers. 0, the
/// default: what the rank table or the hosts of the ranks say. 1 makes each rank a server of its own.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_devices_per_server(
    options: *mut adasum_options,
    devices: u32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.devices_per_server = Some(devices).filter(|&devices| devices > 0);
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_devices_per_server", options, change) }
}

/// As radix: the fastest one by the cost model.
pub const ADASUM_RADIX_AUTO: u32 = 0;

/// The most subtrees of servers that a round merges, 2 to 8, or ADASUM_RADIX_AUTO. Default 2. Part of the result's last
/// bits.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_radix(
    options: *mut adasum_options,
    radix: u32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        if radix != ADASUM_RADIX_AUTO && !(2..=MAX_RADIX).contains(&radix) {
            return Err(invalid(format!(
                "radix is {radix}, must be 2 to {MAX_RADIX} or ADASUM_RADIX_AUTO (0)"
            )));
        }
        settings.options.radix = radix;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_radix", options, change) }
}

const _: () = assert!(ADASUM_RADIX_AUTO == Options::AUTO_RADIX);

/// Each rank of a server owns one chunk of its mean: the least traffic between servers. The default.
pub const ADASUM_PLACEMENT_HIERARCHICAL: i32 = 0;
/// Each rank has its server's whole mean and merges it with the ranks of its number: MindSpore's arrangement.
pub const ADASUM_PLACEMENT_COLUMNS: i32 = 1;

/// Where vectors lie while servers are merged: ADASUM_PLACEMENT_HIERARCHICAL or ADASUM_PLACEMENT_COLUMNS.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_placement(
    options: *mut adasum_options,
    placement: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.placement = choice(
            placement,
            "placement",
            &[
                (
                    "ADASUM_PLACEMENT_HIERARCHICAL",
                    ADASUM_PLACEMENT_HIERARCHICAL,
                    Placement::Hierarchical,
                ),
                (
                    "ADASUM_PLACEMENT_COLUMNS",
                    ADASUM_PLACEMENT_COLUMNS,
                    Placement::Columns,
                ),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_placement", options, change) }
}

/// The library decides. The default.
pub const ADASUM_EXCHANGE_AUTO: i32 = 0;
/// One batch a step (HcclBatchSendRecv): sends one after another, receives beside them.
pub const ADASUM_EXCHANGE_BATCH: i32 = 1;
/// One after the other (HcclSend, HcclRecv).
pub const ADASUM_EXCHANGE_PAIRWISE: i32 = 2;
/// In a server one all-to-all a step (HcclAlltoAllV), over all links at once; between servers as ADASUM_EXCHANGE_AUTO.
pub const ADASUM_EXCHANGE_ALLTOALL: i32 = 3;
/// All sends and receives of a step at once, in a group (HcclGroupStart, HcclGroupEnd): CANN 9.0, on A2, A3 and 950.
pub const ADASUM_EXCHANGE_GROUP: i32 = 4;

/// How exchanges are given to HCCL: ADASUM_EXCHANGE_AUTO, _ALLTOALL, _BATCH, _GROUP or _PAIRWISE. Results do not depend on it.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_exchange(
    options: *mut adasum_options,
    exchange: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.exchange = choice(
            exchange,
            "exchange",
            &[
                ("ADASUM_EXCHANGE_AUTO", ADASUM_EXCHANGE_AUTO, None),
                (
                    "ADASUM_EXCHANGE_BATCH",
                    ADASUM_EXCHANGE_BATCH,
                    Some(Form::Batch),
                ),
                (
                    "ADASUM_EXCHANGE_PAIRWISE",
                    ADASUM_EXCHANGE_PAIRWISE,
                    Some(Form::Pairwise),
                ),
                (
                    "ADASUM_EXCHANGE_ALLTOALL",
                    ADASUM_EXCHANGE_ALLTOALL,
                    Some(Form::AllToAll),
                ),
                (
                    "ADASUM_EXCHANGE_GROUP",
                    ADASUM_EXCHANGE_GROUP,
                    Some(Form::Group),
                ),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_exchange", options, change) }
}

/// The faster way by the cost model. The default.
pub const ADASUM_SCALARS_AUTO: i32 = 0;
/// Every rank gathers all of them.
pub const ADASUM_SCALARS_GATHERED: i32 = 1;
/// Each tensor has an owner who sums and hands out its coefficients.
pub const ADASUM_SCALARS_OWNED: i32 = 2;

/// How the scalars of a round are summed: ADASUM_SCALARS_AUTO, ADASUM_SCALARS_GATHERED or ADASUM_SCALARS_OWNED. Results do not
/// depend on it.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_scalars(
    options: *mut adasum_options,
    scalars: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.scalars = choice(
            scalars,
            "scalars",
            &[
                (
                    "ADASUM_SCALARS_AUTO",
                    ADASUM_SCALARS_AUTO,
                    ScalarExchange::Auto,
                ),
                (
                    "ADASUM_SCALARS_GATHERED",
                    ADASUM_SCALARS_GATHERED,
                    ScalarExchange::Gathered,
                ),
                (
                    "ADASUM_SCALARS_OWNED",
                    ADASUM_SCALARS_OWNED,
                    ScalarExchange::Owned,
                ),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_scalars", options, change) }
}

/// What the cost model assumes of the machine: "910A", "910B", "A3" or "mock". NULL, the default: by the name of the chip.
///
/// # Safety
/// `options` is NULL or live; `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_machine(
    options: *mut adasum_options,
    name: *const c_char,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.machine =
            if name.is_null() {
                None
            } else {
                // SAFETY: as promised by the caller.
                let name = unsafe { text(name, "name") }?;
                let found = Machine::named(name);
                Some(found.ok_or_else(|| {
                    invalid(format!("name {name:?} is none of {:?}", Machine::NAMES))
                })?)
            };
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_machine", options, change) }
}

/// That of the tensor. The default.
pub const ADASUM_WIRE_NATIVE: i32 = 0;
/// fp32, rounded to the tensor's type once at the end.
pub const ADASUM_WIRE_F32: i32 = 1;

/// Element type of what ranks send each other: ADASUM_WIRE_NATIVE or ADASUM_WIRE_F32.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_wire(
    options: *mut adasum_options,
    wire: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.wire = choice(
            wire,
            "wire",
            &[
                ("ADASUM_WIRE_NATIVE", ADASUM_WIRE_NATIVE, Wire::Native),
                ("ADASUM_WIRE_F32", ADASUM_WIRE_F32, Wire::F32),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_wire", options, change) }
}

/// What this rank's gradients are multiplied by, in fp32, before anything else. May differ between ranks. Default 1.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_scale(
    options: *mut adasum_options,
    scale: f32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.scale = finite(scale, "scale")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_scale", options, change) }
}

/// What results are multiplied by, in fp32, on their way back to the tensors. Default 1.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_result_scale(
    options: *mut adasum_options,
    scale: f32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.result_scale = finite(scale, "scale")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_result_scale", options, change) }
}

/// AdaSum of two vectors is one of them if the squared norm of the other is at most so many times its own. At least 0 and
/// below 1; 0, the default, lets only exact zeros count as zero.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_zero_tol(
    options: *mut adasum_options,
    tolerance: f32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        if !(0.0..1.0).contains(&tolerance) {
            return Err(invalid(format!(
                "tolerance is {tolerance}, must be at least 0 and below 1"
            )));
        }
        settings.options.zero_tol = tolerance;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_zero_tol", options, change) }
}

/// Tensors that have one are non-finite on all ranks afterwards; adasum_reducer_nonfinite tells. The default.
pub const ADASUM_OVERFLOW_REPORT: i32 = 0;
/// Beside that, adasum_reducer_overflow lets the ranks decide together before they reduce.
pub const ADASUM_OVERFLOW_VOTE: i32 = 1;

/// What becomes of NaN and infinity: ADASUM_OVERFLOW_REPORT or ADASUM_OVERFLOW_VOTE.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_overflow(
    options: *mut adasum_options,
    overflow: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.overflow = choice(
            overflow,
            "overflow",
            &[
                (
                    "ADASUM_OVERFLOW_REPORT",
                    ADASUM_OVERFLOW_REPORT,
                    Overflow::Report,
                ),
                ("ADASUM_OVERFLOW_VOTE", ADASUM_OVERFLOW_VOTE, Overflow::Vote),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_overflow", options, change) }
}

/// Bytes of tensors that share a fused buffer, at least 1; a larger tensor has one of its own. Default 26,214,400. Results
/// differ between values by at most a rounding.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_bucket_bytes(
    options: *mut adasum_options,
    bytes: u64,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        if bytes == 0 {
            return Err(invalid("bytes is 0, must be at least 1".to_owned()));
        }
        settings.options.bucket_bytes = bytes;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_bucket_bytes", options, change) }
}

/// Fused buffers that are under way at a time, 1 to 64. Default 4. Device memory grows with it, results do not depend on it.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_pipeline_depth(
    options: *mut adasum_options,
    depth: u32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        if !(1..=64).contains(&depth) {
            return Err(invalid(format!("depth is {depth}, must be 1 to 64")));
        }
        settings.options.pipeline_depth = depth as usize;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_pipeline_depth", options, change) }
}

/// Plans of subsets of tensors (adasum_reducer_reduce_some) that a reducer keeps, at least 1. Default 256. One more takes the
/// place of the one that was used longest ago.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_subset_plans(
    options: *mut adasum_options,
    plans: u32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        if plans == 0 {
            return Err(invalid("plans is 0, must be at least 1".to_owned()));
        }
        settings.options.subset_plans = plans as usize;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_subset_plans", options, change) }
}

/// Whether gaps between tensors may be overwritten: 1 or 0 (default). With 1, tensors of a bucket are reduced where they are,
/// without a copy, if each starts at the first multiple of 64 bytes, counted from the start of the one before it, behind that
/// one's end. What lies between them is overwritten, and tensors that lie so must be in one allocation of device memory. May
/// differ between ranks. With 0 only tensors of adasum_reducer_reduce_flat are reduced in place, where all sizes but the last
/// one's are multiples of 64 bytes.
///
/// # Safety
/// `options` is NULL or live; with 1 tensors of later calls are as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_padded(
    options: *mut adasum_options,
    value: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.padded = flag(value, "value")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_padded", options, change) }
}

/// Whether each rank gets only the parts of results that it owns, for sharded optimizers (adasum_reducer_owned and
/// adasum_reducer_collect): 1 or 0 (default). Saves half of the traffic.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_scattered(
    options: *mut adasum_options,
    value: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.scattered = flag(value, "value")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_scattered", options, change) }
}

/// Whether each reduction ends with a barrier of all ranks: 1 or 0 (default).
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_barrier(
    options: *mut adasum_options,
    value: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.barrier = flag(value, "value")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_barrier", options, change) }
}

/// Whether adasum_reducer_synchronize compares checksums of all messages, between those who sent and those who received
/// them, and of the last results, between all ranks: 1 or 0 (default). It is collective then, and reductions wait for each
/// message and read it to the host.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_checksum(
    options: *mut adasum_options,
    value: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.checksum = flag(value, "value")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_checksum", options, change) }
}

/// Whether a single server of several ranks, where AdaSum has nothing to combine, may give a plain mean: 1 or 0 (default),
/// which refuses such a world.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_allow_plain_mean(
    options: *mut adasum_options,
    value: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.allow_plain_mean = flag(value, "value")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_allow_plain_mean", options, change) }
}

/// Limit of joining a world without a rank table, of the collective warm-up of a reducer, and of waits for collective
/// figures. Default 300,000. May differ between ranks.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_create_timeout(
    options: *mut adasum_options,
    milliseconds: u64,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.create_timeout = timeout(milliseconds, "milliseconds")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_create_timeout", options, change) }
}

/// A reduction in which nothing moves for so long has failed; the error says what this rank waits for. Default 1,800,000. May
/// differ between ranks.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_stall_timeout(
    options: *mut adasum_options,
    milliseconds: u64,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.options.stall_timeout = timeout(milliseconds, "milliseconds")?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_stall_timeout", options, change) }
}

/// The mean of the gradients of the server. The default.
pub const ADASUM_DELTA_SERVER_MEAN: i32 = 0;
/// The rank's own gradients, as in Horovod.
pub const ADASUM_DELTA_LOCAL: i32 = 1;

/// What the optimizer steps on in a delta reducer: ADASUM_DELTA_SERVER_MEAN or ADASUM_DELTA_LOCAL.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_delta_form(
    options: *mut adasum_options,
    form: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.delta_form = choice(
            form,
            "form",
            &[
                (
                    "ADASUM_DELTA_SERVER_MEAN",
                    ADASUM_DELTA_SERVER_MEAN,
                    DeltaForm::ServerMean,
                ),
                ("ADASUM_DELTA_LOCAL", ADASUM_DELTA_LOCAL, DeltaForm::Local),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_delta_form", options, change) }
}

/// What a mean reducer divides sums by, at least 1; 0, the default, for the number of ranks. Negative values are kept and
/// refused by the reducer, with MindSpore's words.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_degree(
    options: *mut adasum_options,
    degree: i64,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.degree = Some(degree).filter(|&degree| degree != 0);
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_degree", options, change) }
}

/// All gradients of a mean reducer travel together. The default.
pub const ADASUM_FUSION_ALL: i32 = 0;
/// Each one travels alone.
pub const ADASUM_FUSION_NONE: i32 = 1;

/// Which gradients of a mean reducer travel together: ADASUM_FUSION_ALL or ADASUM_FUSION_NONE. Results do not depend on it.
///
/// # Safety
/// `options` is NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_fusion(
    options: *mut adasum_options,
    fusion: i32,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        settings.fusion = choice(
            fusion,
            "fusion",
            &[
                ("ADASUM_FUSION_ALL", ADASUM_FUSION_ALL, Fusion::All),
                ("ADASUM_FUSION_NONE", ADASUM_FUSION_NONE, Fusion::None),
            ],
        )?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_fusion", options, change) }
}

/// Cuts the list of a mean reducer's gradients behind `count` positions, in ascending order; copied.
///
/// # Safety
/// `options` is NULL or live; `positions` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_fusion_split(
    options: *mut adasum_options,
    positions: *const usize,
    count: usize,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        // SAFETY: as promised by the caller.
        let positions = unsafe { slice(positions, count, "positions") }?;
        settings.fusion = Fusion::Split(positions.to_vec());
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_fusion_split", options, change) }
}

/// The ranks that a mean or sparse reducer goes over, ascending, the caller's among them; copied. (NULL, 0), the default: all
/// ranks. Only ranks of the group may create and use such a reducer.
///
/// # Safety
/// `options` is NULL or live; `ranks` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set_group(
    options: *mut adasum_options,
    ranks: *const u32,
    count: usize,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        // SAFETY: as promised by the caller.
        let ranks = unsafe { slice(ranks, count, "ranks") }?;
        settings.group = Some(ranks.to_vec()).filter(|ranks| !ranks.is_empty());
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set_group", options, change) }
}

fn finite(value: f32, name: &str) -> Result<f32, Fault> {
    if !value.is_finite() {
        return Err(invalid(format!("{name} is {value}, not a finite number")));
    }
    Ok(value)
}
