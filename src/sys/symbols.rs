//! Which functions must be there, and the first CANN release that has each.
//!
//! These are the functions that this crate calls as methods of a table, which panic where the function is missing.
//! Others may be missing: newer releases drop old functions, and older ones lack new ones. A caller of such a one
//! takes the field of the table, a `Result`.

use super::acl::Acl;
use super::hccl::Hccl;

/// The oldest CANN that is supported.
pub(super) const OLDEST_CANN: &str = "8.1.RC1";

/// A function that a library lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) name: &'static str,
    /// First CANN release with it.
    pub(super) since: &'static str,
}

macro_rules! missing {
    ($table:ident; $($since:literal: $($name:ident)*;)*) => {{
        let entries = [$($((stringify!($name), $since, $table.$name.is_ok()),)*)*];
        entries
            .into_iter()
            .filter(|(_, _, present)| !present)
            .map(|(name, since, _)| Missing { name, since })
            .collect()
    }};
}

/// Functions of ACL that this crate calls and `table` lacks.
pub(super) fn missing_in_acl(table: &Acl) -> Vec<Missing> {
    missing!(table;
        "6.3 or earlier": aclInit aclGetRecentErrMsg aclrtGetSocName aclGetDeviceCapability aclrtSetDevice aclrtGetDevice
            aclrtResetDevice aclrtGetDeviceCount aclrtSynchronizeDevice aclrtSetCurrentContext
            aclrtGetCurrentContext aclrtCreateStream aclrtDestroyStream aclrtStreamQuery aclrtSynchronizeStream
            aclrtCreateEvent aclrtDestroyEvent aclrtRecordEvent aclrtStreamWaitEvent aclrtQueryEventStatus
            aclrtSynchronizeEvent aclrtMalloc aclrtFree aclrtMallocHost aclrtFreeHost aclrtMemcpy
            aclrtMemcpyAsync aclrtMemset aclrtMemsetAsync;
        "7.0.0": aclrtDestroyStreamForce aclrtSynchronizeStreamWithTimeout;
        "8.0.RC1": aclrtCreateEventExWithFlag;
        "8.1.RC1": aclrtBinaryLoadFromFile aclrtBinaryGetFunction aclrtBinaryUnLoad aclrtKernelArgsInit
            aclrtKernelArgsAppend aclrtKernelArgsFinalize aclrtLaunchKernelWithConfig;
    )
}

/// Calls `$next!` with the functions of HCCL that this crate calls.
macro_rules! with_required_hccl {
    ($next:ident! $($arguments:tt)*) => {
        $next!($($arguments)*;
            "6.3 or earlier": HcclGetRootInfo HcclCommDestroy HcclSend HcclRecv HcclAllReduce HcclAllGather
                HcclReduceScatter HcclBroadcast HcclAlltoAllV;
            "7.0.0": HcclGetCommName HcclGetCommAsyncError;
            "8.0.RC1": HcclBatchSendRecv;
            "8.0.RC2": HcclCommInitRootInfoConfig;
            "8.0.RC3": HcclCommInitClusterInfoConfig HcclCreateSubCommConfig HcclGetCommConfigCapability;
            "8.1.RC1": HcclGetRankId HcclGetRankSize HcclBarrier HcclGetErrorString;
        )
    };
}

/// Functions of HCCL that this crate calls and `table` lacks.
pub(super) fn missing_in_hccl(table: &Hccl) -> Vec<Missing> {
    with_required_hccl!(missing! table)
}

macro_rules! take {
    ($to:ident $from:ident; $($since:literal: $($name:ident)*;)*) => {
        $($(if $to.$name.is_err() {
            $to.$name = $from.$name;
        })*)*
    };
}

/// Completes `table` with what `other`, a library that HCCL is split over, has. `other` must stay loaded.
pub(super) fn complete_hccl(table: &mut Hccl, other: Hccl) {
    with_required_hccl!(take! table other);
}

/// A function that newer releases have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: &'static str,
    /// First CANN release with it, as far as that is known.
    pub since: &'static str,
    /// Whether the loaded library has it.
    pub present: bool,
}

macro_rules! symbols {
    ($table:expr; $($since:literal: $($name:ident)*;)*) => {
        [$($(Symbol { name: stringify!($name), since: $since, present: $table.$name.is_ok() },)*)*]
    };
}

/// Functions that need not be there; without some of them a failure is told later or in fewer words.
pub(super) fn optional(acl: &Acl, hccl: &Hccl) -> Vec<Symbol> {
    let mut all = Vec::new();
    all.extend(symbols!(acl;
        "8.1.RC1 or earlier": aclrtGetVersion aclrtGetMemInfo aclrtStreamAbort aclrtSetStreamFailureMode
            aclsysGetCANNVersion aclrtDeviceTaskAbort aclrtDeviceCanAccessPeer aclrtDeviceEnablePeerAccess
            aclrtReserveMemAddress aclrtReleaseMemAddress aclrtMallocPhysical aclrtFreePhysical aclrtMapMem aclrtUnmapMem;
        "8.2.RC1": aclrtGetDevicesTopo;
        "8.3.RC1": aclrtIpcMemGetExportKey aclrtIpcMemImportByKey aclrtIpcMemClose;
        "8.5.0": aclFinalizeReference aclrtGetDeviceInfo aclrtStreamWaitEventWithTimeout aclrtLaunchHostFunc
            aclrtReduceAsync aclrtBinaryLoadFromData aclrtLaunchKernelV2 aclrtLaunchKernelWithHostArgs
            aclrtMemExportToShareableHandleV2 aclrtMemImportFromShareableHandleV2 aclrtGetLogicDevIdByPhyDevId;
    ));
    all.extend(symbols!(hccl;
        "8.0.RC3": HcclCommResume;
        "8.1.RC1": HcclCommSuspend HcclGetConfig HcclAllGatherV HcclReduceScatterV;
        "9.0.0": HcclGroupStart HcclGroupEnd HcclGroupStatusGet;
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// A library that has none of the functions, so that all required ones are missing.
    fn other_library() -> libloading::Library {
        libloading::os::unix::Library::this().into()
    }

    fn required() -> BTreeSet<&'static str> {
        // SAFETY: looking symbols up runs no code of the library.
        let acl = unsafe { Acl::from_library(other_library()) }.unwrap();
        // SAFETY: as above.
        let hccl = unsafe { Hccl::from_library(other_library()) }.unwrap();
        let missing = missing_in_acl(&acl)
            .into_iter()
            .chain(missing_in_hccl(&hccl));
        missing.map(|missing| missing.name).collect()
    }

    /// What the sources of `folder` call as methods of a table.
    fn called(folder: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src")
            .join(folder);
        let mut names = BTreeSet::new();
        for entry in folder.read_dir().unwrap() {
            let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let compact: String = source.split_whitespace().collect();
            for table in [".acl.", ".hccl."] {
                for (_, rest) in compact
                    .match_indices(table)
                    .map(|(at, _)| compact.split_at(at + table.len()))
                {
                    let end = rest
                        .find(|character: char| !character.is_alphanumeric())
                        .unwrap();
                    if rest[end..].starts_with('(') {
                        names.insert(rest[..end].to_owned());
                    }
                }
            }
        }
        names
    }

    #[test]
    fn what_is_called_is_what_is_required() {
        let mut called = called("ascend");
        called.extend(self::called("kernel"));
        let called: BTreeSet<&str> = called.iter().map(String::as_str).collect();
        assert_eq!(required(), called);
    }
}
