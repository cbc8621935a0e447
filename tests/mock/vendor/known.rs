//! Where the headers of a wheel are expected to differ from ours, and why.

use std::path::Path;

/// A wheel of torch-npu and the release of CANN that its headers were taken from.
pub(super) struct Wheel {
    pub(super) version: &'static str,
    /// By `ACL_MINOR_VERSION`, `HCCL_COMM_CONFIG_VERSION` and the size of `HcclCommConfig`.
    pub(super) cann: &'static str,
}

const OLD: &str = "2.6.0.post5";
const MIDDLE: &str = "2.7.1.post11";
const NEW: &str = "2.14.0";

pub(super) const WHEELS: [Wheel; 3] = [
    Wheel {
        version: OLD,
        cann: "8.3",
    },
    Wheel {
        version: MIDDLE,
        cann: "9.0",
    },
    Wheel {
        version: NEW,
        cann: "9.1",
    },
];

/// What a wheel has under a name of ours, where it is not the same.
pub(super) enum Outcome<'a> {
    Absent,
    Differs(&'a str),
}

/// Names that a wheel does not have, with the reason.
struct Lacks {
    wheel: &'static str,
    reason: &'static str,
    names: &'static [&'static str],
}

const EXPERIMENTAL: &str = "HcclGroupStatusGet";

/// What the comments in `csrc/cann` do not say already.
const ABSENT: [Lacks; 8] = [
    Lacks {
        wheel: OLD,
        reason: "neither there nor in the headers of 8.1.RC1, but in those of 9.0",
        names: &["aclrtDeviceGetStreamPriorityRange"],
    },
    Lacks {
        wheel: OLD,
        reason: "that wheel's acl_rt.h is an excerpt and leaves it out",
        names: &[
            "ACL_OPT_STRONG_CONSISTENCY",
            "ACL_STREAM_DEVICE_USE_ONLY",
            "aclrtBinaryGetFunction",
            "aclrtBinaryLoad",
            "aclrtBinaryLoadFromFile",
            "aclrtBinaryUnLoad",
            "aclrtCreateBinary",
            "aclrtCtxGetCurrentDefaultStream",
            "aclrtDestroyBinary",
            "aclrtDeviceGetBareTgid",
            "aclrtDevicePeerAccessStatus",
            "aclrtEventGetTimestamp",
            "aclrtGetDeviceSatMode",
            "aclrtGetDevicesTopo",
            "aclrtGetPrimaryCtxState",
            "aclrtHostRegister",
            "aclrtHostUnregister",
            "aclrtIpcMemClose",
            "aclrtIpcMemGetExportKey",
            "aclrtIpcMemImportByKey",
            "aclrtIpcMemSetImportPid",
            "aclrtKernelArgsAppend",
            "aclrtKernelArgsAppendPlaceHolder",
            "aclrtKernelArgsFinalize",
            "aclrtKernelArgsGetPlaceHolderBuffer",
            "aclrtKernelArgsInit",
            "aclrtKernelArgsParaUpdate",
            "aclrtLaunchKernel",
            "aclrtLaunchKernelWithConfig",
            "aclrtMemGetAllocationGranularity",
            "aclrtQueryDeviceStatus",
            "aclrtResetDeviceForce",
            "aclrtStreamGetFlags",
            "aclrtStreamGetId",
            "aclrtStreamGetPriority",
            "aclrtSynchronizeDeviceWithTimeout",
            "aclrtSynchronizeEventWithTimeout",
        ],
    },
    Lacks {
        wheel: OLD,
        reason: "since 8.5.0",
        names: &[
            "ACL_DEV_ATTR_CUBE_CORE_NUM",
            "ACL_DEV_ATTR_L2_CACHE_SIZE",
            "ACL_DEV_ATTR_NPU_ARCH",
            "ACL_DEV_ATTR_SUPER_POD_ID",
            "ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE",
            "ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE",
            "ACL_EVENT_DEVICE_USE_ONLY",
            "ACL_EVENT_IPC",
            "ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT",
            "ACL_MEM_SHARE_HANDLE_TYPE_FABRIC",
            "ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE",
            "ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US",
            "aclrtLaunchKernelAttrValue::dynUBufSize",
            "aclrtLaunchKernelAttrValue::timeoutUs",
            "aclrtLaunchKernelWithHostArgs",
            "aclrtMemFabricHandle",
            "aclrtMemFabricHandle::data",
            "aclrtPlaceHolderInfo",
            "aclrtPlaceHolderInfo::addrOffset",
            "aclrtPlaceHolderInfo::dataOffset",
            "aclrtTimeoutUs",
            "aclrtTimeoutUs::timeoutHigh",
            "aclrtTimeoutUs::timeoutLow",
        ],
    },
    Lacks {
        wheel: OLD,
        reason: "version 7 to 10 of HcclCommConfig, since 9.0.0",
        names: &[
            "BUFFER_NAME_MAX_LENGTH",
            "HCCL_COMM_ALGO_MAX_LENGTH",
            "HCCL_COMM_CONFIG_ALGO",
            "HCCL_COMM_CONFIG_BUFFER_NAME",
            "HCCL_COMM_CONFIG_EXEC_TIMEOUT",
            "HCCL_COMM_CONFIG_RETRY",
            "HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET",
            "HCCL_COMM_QOS_CONFIG_NOT_SET",
            "HCCL_COMM_RETRY_ENABLE_MAX_LENGTH",
            "HCCL_COMM_RETRY_PARAMS_MAX_LENGTH",
            "HcclCommConfigDef::aclGraphZeroCopyEnable",
            "HcclCommConfigDef::hcclAlgo",
            "HcclCommConfigDef::hcclBufferName",
            "HcclCommConfigDef::hcclExecTimeOut",
            "HcclCommConfigDef::hcclQos",
            "HcclCommConfigDef::hcclRetryEnable",
            "HcclCommConfigDef::hcclRetryParams",
        ],
    },
    Lacks {
        wheel: OLD,
        reason: "since 9.0.0",
        names: &["HcclGroupEnd", "HcclGroupStart", EXPERIMENTAL],
    },
    Lacks {
        wheel: MIDDLE,
        reason: "experimental, not in that wheel's hccl.h",
        names: &[EXPERIMENTAL],
    },
    Lacks {
        wheel: NEW,
        reason: "experimental, not in that wheel's hccl.h",
        names: &[EXPERIMENTAL],
    },
    Lacks {
        wheel: NEW,
        reason: "that wheel's hccl_types.h does not have it yet",
        names: &["HCCL_E_IN_STATUS"],
    },
];

const LAST: &str = "one more than the last of that release; nothing may be compared with it";
const PLAYED: &str = "ours declares 8.5.0";

/// Different by wheel, name and what the wheel has.
const DIFFERENT: [(&str, &str, &str, &str); 10] = [
    (OLD, "ACL_MINOR_VERSION", "15", PLAYED),
    (MIDDLE, "ACL_MINOR_VERSION", "17", PLAYED),
    (NEW, "ACL_MINOR_VERSION", "17", PLAYED),
    (OLD, "HCCL_E_RESERVED", "HcclResult(24)", LAST),
    (MIDDLE, "HCCL_E_RESERVED", "HcclResult(25)", LAST),
    (NEW, "HCCL_E_RESERVED", "HcclResult(25)", LAST),
    (
        OLD,
        "HCCL_COMM_CONFIG_RESERVED",
        "HcclCommConfigCapability(7)",
        LAST,
    ),
    (
        OLD,
        "HCCL_COMM_CONFIG_VERSION",
        "6",
        "a library honours the fields of the version it is given",
    ),
    (
        OLD,
        "HcclCommConfigDef",
        "312 B aligned to 8",
        "version 6; its fields are where ours are",
    ),
    (
        NEW,
        "HcclCommConfigDef",
        "2240 B aligned to 8",
        "still version 10, with one field more at the end; adasum never sends that version",
    ),
];

/// Why `wheel` may have this outcome for `name`; none if it may not.
pub(super) fn reason(wheel: &Wheel, name: &str, outcome: &Outcome) -> Option<String> {
    let listed = match outcome {
        Outcome::Absent => ABSENT
            .iter()
            .find(|lacks| lacks.wheel == wheel.version && lacks.names.contains(&name))
            .map(|lacks| lacks.reason),
        Outcome::Differs(theirs) => DIFFERENT
            .iter()
            .find(|(version, listed, value, _)| {
                *version == wheel.version && *listed == name && value == theirs
            })
            .map(|(_, _, _, reason)| *reason),
    };
    let by_release = || {
        let since = since(name).filter(|since| release(since) > release(wheel.cann))?;
        matches!(outcome, Outcome::Absent).then(|| format!("since {since}"))
    };
    listed.map(str::to_owned).or_else(by_release)
}

/// The comment behind a declaration in `csrc/cann`: the first release with it, where that is not the oldest.
fn since(name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("csrc/cann");
    ["acl", "hccl"].iter().find_map(|folder| {
        let headers = root.join(folder).read_dir().unwrap();
        headers.into_iter().find_map(|header| {
            let text = std::fs::read_to_string(header.unwrap().path()).unwrap();
            release_behind(&text, name)
        })
    })
}

fn release_behind(text: &str, name: &str) -> Option<String> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(name).find_map(|(at, _)| {
        let (before, rest) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with(is_name) || rest.starts_with(is_name) {
            return None;
        }
        // A function may take several lines, everything else takes one.
        let end = if rest.starts_with('(') {
            rest.find(';')?
        } else {
            0
        };
        let comment = rest[end..].lines().next()?.split_once("// ")?.1;
        let word = comment.split([' ', ',']).next()?;
        word.starts_with(|first: char| first.is_ascii_digit())
            .then(|| word.to_owned())
    })
}

/// `8.3` of `8.3.RC1`.
fn release(version: &str) -> Vec<u32> {
    version
        .split('.')
        .take(2)
        .filter_map(|part| part.parse().ok())
        .collect()
}

#[test]
fn releases_are_read_from_comments() {
    let text = "int aclOne(int a,\n    int b); // 8.5.0\nint aclOneMore(int); // 9.0\n E_A = 1, // 9.1.0, with\n";
    assert_eq!(release_behind(text, "aclOne").as_deref(), Some("8.5.0"));
    assert_eq!(release_behind(text, "E_A").as_deref(), Some("9.1.0"));
    assert_eq!(release_behind(text, "E_B"), None);
    assert!(release("8.3.RC1") < release("8.10.0"));
}
