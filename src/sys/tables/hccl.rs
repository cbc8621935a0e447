// Generated from csrc/cann by the test `bindings`; do not edit.
use super::acl::*;

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclComm(pub *mut ::core::ffi::c_void);
impl HcclResult {
    pub const HCCL_SUCCESS: HcclResult = HcclResult(0);
    pub const HCCL_E_PARA: HcclResult = HcclResult(1);
    pub const HCCL_E_PTR: HcclResult = HcclResult(2);
    pub const HCCL_E_MEMORY: HcclResult = HcclResult(3);
    pub const HCCL_E_INTERNAL: HcclResult = HcclResult(4);
    pub const HCCL_E_NOT_SUPPORT: HcclResult = HcclResult(5);
    pub const HCCL_E_NOT_FOUND: HcclResult = HcclResult(6);
    pub const HCCL_E_UNAVAIL: HcclResult = HcclResult(7);
    pub const HCCL_E_SYSCALL: HcclResult = HcclResult(8);
    pub const HCCL_E_TIMEOUT: HcclResult = HcclResult(9);
    pub const HCCL_E_OPEN_FILE_FAILURE: HcclResult = HcclResult(10);
    pub const HCCL_E_TCP_CONNECT: HcclResult = HcclResult(11);
    pub const HCCL_E_ROCE_CONNECT: HcclResult = HcclResult(12);
    pub const HCCL_E_TCP_TRANSFER: HcclResult = HcclResult(13);
    pub const HCCL_E_ROCE_TRANSFER: HcclResult = HcclResult(14);
    pub const HCCL_E_RUNTIME: HcclResult = HcclResult(15);
    pub const HCCL_E_DRV: HcclResult = HcclResult(16);
    pub const HCCL_E_PROFILING: HcclResult = HcclResult(17);
    pub const HCCL_E_CCE: HcclResult = HcclResult(18);
    pub const HCCL_E_NETWORK: HcclResult = HcclResult(19);
    pub const HCCL_E_AGAIN: HcclResult = HcclResult(20);
    pub const HCCL_E_REMOTE: HcclResult = HcclResult(21);
    pub const HCCL_E_SUSPENDING: HcclResult = HcclResult(22);
    pub const HCCL_E_OPRETRY_FAIL: HcclResult = HcclResult(23);
    pub const HCCL_E_OOM: HcclResult = HcclResult(24);
    pub const HCCL_E_IN_STATUS: HcclResult = HcclResult(1041);
    pub const HCCL_E_RESERVED: HcclResult = HcclResult(1042);
}
#[repr(transparent)]
#[must_use]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclResult(pub ::core::ffi::c_uint);
impl HcclReduceOp {
    pub const HCCL_REDUCE_SUM: HcclReduceOp = HcclReduceOp(0);
    pub const HCCL_REDUCE_PROD: HcclReduceOp = HcclReduceOp(1);
    pub const HCCL_REDUCE_MAX: HcclReduceOp = HcclReduceOp(2);
    pub const HCCL_REDUCE_MIN: HcclReduceOp = HcclReduceOp(3);
    pub const HCCL_REDUCE_RESERVED: HcclReduceOp = HcclReduceOp(255);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclReduceOp(pub ::core::ffi::c_uint);
impl HcclDataType {
    pub const HCCL_DATA_TYPE_INT8: HcclDataType = HcclDataType(0);
    pub const HCCL_DATA_TYPE_INT16: HcclDataType = HcclDataType(1);
    pub const HCCL_DATA_TYPE_INT32: HcclDataType = HcclDataType(2);
    pub const HCCL_DATA_TYPE_FP16: HcclDataType = HcclDataType(3);
    pub const HCCL_DATA_TYPE_FP32: HcclDataType = HcclDataType(4);
    pub const HCCL_DATA_TYPE_INT64: HcclDataType = HcclDataType(5);
    pub const HCCL_DATA_TYPE_UINT64: HcclDataType = HcclDataType(6);
    pub const HCCL_DATA_TYPE_UINT8: HcclDataType = HcclDataType(7);
    pub const HCCL_DATA_TYPE_UINT16: HcclDataType = HcclDataType(8);
    pub const HCCL_DATA_TYPE_UINT32: HcclDataType = HcclDataType(9);
    pub const HCCL_DATA_TYPE_FP64: HcclDataType = HcclDataType(10);
    pub const HCCL_DATA_TYPE_BFP16: HcclDataType = HcclDataType(11);
    pub const HCCL_DATA_TYPE_INT128: HcclDataType = HcclDataType(12);
    pub const HCCL_DATA_TYPE_HIF8: HcclDataType = HcclDataType(14);
    pub const HCCL_DATA_TYPE_FP8E4M3: HcclDataType = HcclDataType(15);
    pub const HCCL_DATA_TYPE_FP8E5M2: HcclDataType = HcclDataType(16);
    pub const HCCL_DATA_TYPE_FP8E8M0: HcclDataType = HcclDataType(17);
    pub const HCCL_DATA_TYPE_RESERVED: HcclDataType = HcclDataType(255);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclDataType(pub ::core::ffi::c_uint);
impl HcclSendRecvType {
    pub const HCCL_SEND: HcclSendRecvType = HcclSendRecvType(0);
    pub const HCCL_RECV: HcclSendRecvType = HcclSendRecvType(1);
    pub const HCCL_SEND_RECV_RESERVED: HcclSendRecvType = HcclSendRecvType(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclSendRecvType(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclSendRecvItemDef {
    pub sendRecvType: HcclSendRecvType,
    pub buf: *mut ::core::ffi::c_void,
    pub count: u64,
    pub dataType: HcclDataType,
    pub remoteRank: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of HcclSendRecvItemDef",
    ][::core::mem::size_of::<HcclSendRecvItemDef>() - 32usize];
    [
        "Alignment of HcclSendRecvItemDef",
    ][::core::mem::align_of::<HcclSendRecvItemDef>() - 8usize];
    [
        "Offset of field: HcclSendRecvItemDef::sendRecvType",
    ][::core::mem::offset_of!(HcclSendRecvItemDef, sendRecvType) - 0usize];
    [
        "Offset of field: HcclSendRecvItemDef::buf",
    ][::core::mem::offset_of!(HcclSendRecvItemDef, buf) - 8usize];
    [
        "Offset of field: HcclSendRecvItemDef::count",
    ][::core::mem::offset_of!(HcclSendRecvItemDef, count) - 16usize];
    [
        "Offset of field: HcclSendRecvItemDef::dataType",
    ][::core::mem::offset_of!(HcclSendRecvItemDef, dataType) - 24usize];
    [
        "Offset of field: HcclSendRecvItemDef::remoteRank",
    ][::core::mem::offset_of!(HcclSendRecvItemDef, remoteRank) - 28usize];
};
pub type HcclSendRecvItem = HcclSendRecvItemDef;
impl HcclConfig {
    pub const HCCL_DETERMINISTIC: HcclConfig = HcclConfig(0);
    pub const HCCL_ACCELERATOR: HcclConfig = HcclConfig(1);
    pub const HCCL_CONFIG_RESERVED: HcclConfig = HcclConfig(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclConfig(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Copy, Clone)]
pub union HcclConfigValue {
    pub value: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of HcclConfigValue"][::core::mem::size_of::<HcclConfigValue>() - 4usize];
    [
        "Alignment of HcclConfigValue",
    ][::core::mem::align_of::<HcclConfigValue>() - 4usize];
    [
        "Offset of field: HcclConfigValue::value",
    ][::core::mem::offset_of!(HcclConfigValue, value) - 0usize];
};
pub const HCCL_ROOT_INFO_BYTES: u32 = 4108;
pub const COMM_NAME_MAX_LENGTH: u32 = 128;
pub const UDI_MAX_LENGTH: u32 = 128;
pub const BUFFER_NAME_MAX_LENGTH: u32 = 128;
pub const HCCL_COMM_ALGO_MAX_LENGTH: u32 = 1600;
pub const HCCL_COMM_RETRY_ENABLE_MAX_LENGTH: u32 = 50;
pub const HCCL_COMM_RETRY_PARAMS_MAX_LENGTH: u32 = 128;
pub const HCCL_COMM_CONFIG_INFO_BYTES: u32 = 24;
pub const HCCL_COMM_CONFIG_MAGIC_WORD: u32 = 4042322160;
pub const HCCL_COMM_CONFIG_VERSION: u32 = 10;
pub const HCCL_COMM_DEFAULT_BUFFSIZE: u32 = 200;
pub const HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET: u32 = 4294967295;
pub const HCCL_COMM_DEFAULT_DETERMINISTIC: u32 = 0;
pub const HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET: u32 = 4294967295;
pub const HCCL_COMM_DEFAULT_OP_EXPANSION_MODE: u32 = 0;
pub const HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET: u32 = 4294967295;
pub const HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET: u32 = 4294967295;
pub const HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET: i32 = -1;
pub const HCCL_COMM_QOS_CONFIG_NOT_SET: u32 = 4294967295;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclRootInfoDef {
    pub internal: [::core::ffi::c_char; 4108usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of HcclRootInfoDef"][::core::mem::size_of::<HcclRootInfoDef>() - 4108usize];
    [
        "Alignment of HcclRootInfoDef",
    ][::core::mem::align_of::<HcclRootInfoDef>() - 1usize];
    [
        "Offset of field: HcclRootInfoDef::internal",
    ][::core::mem::offset_of!(HcclRootInfoDef, internal) - 0usize];
};
pub type HcclRootInfo = HcclRootInfoDef;
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclCommConfigDef {
    pub reserved: [::core::ffi::c_char; 24usize],
    pub hcclBufferSize: u32,
    pub hcclDeterministic: u32,
    pub hcclCommName: [::core::ffi::c_char; 128usize],
    pub hcclUdi: [::core::ffi::c_char; 128usize],
    pub hcclOpExpansionMode: u32,
    pub hcclRdmaTrafficClass: u32,
    pub hcclRdmaServiceLevel: u32,
    pub hcclWorldRankID: u32,
    pub hcclJobID: u64,
    pub aclGraphZeroCopyEnable: u8,
    pub hcclExecTimeOut: i32,
    pub hcclAlgo: [::core::ffi::c_char; 1600usize],
    pub hcclRetryEnable: [::core::ffi::c_char; 50usize],
    pub hcclRetryParams: [::core::ffi::c_char; 128usize],
    pub hcclBufferName: [::core::ffi::c_char; 128usize],
    pub hcclQos: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of HcclCommConfigDef",
    ][::core::mem::size_of::<HcclCommConfigDef>() - 2232usize];
    [
        "Alignment of HcclCommConfigDef",
    ][::core::mem::align_of::<HcclCommConfigDef>() - 8usize];
    [
        "Offset of field: HcclCommConfigDef::reserved",
    ][::core::mem::offset_of!(HcclCommConfigDef, reserved) - 0usize];
    [
        "Offset of field: HcclCommConfigDef::hcclBufferSize",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclBufferSize) - 24usize];
    [
        "Offset of field: HcclCommConfigDef::hcclDeterministic",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclDeterministic) - 28usize];
    [
        "Offset of field: HcclCommConfigDef::hcclCommName",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclCommName) - 32usize];
    [
        "Offset of field: HcclCommConfigDef::hcclUdi",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclUdi) - 160usize];
    [
        "Offset of field: HcclCommConfigDef::hcclOpExpansionMode",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclOpExpansionMode) - 288usize];
    [
        "Offset of field: HcclCommConfigDef::hcclRdmaTrafficClass",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclRdmaTrafficClass) - 292usize];
    [
        "Offset of field: HcclCommConfigDef::hcclRdmaServiceLevel",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclRdmaServiceLevel) - 296usize];
    [
        "Offset of field: HcclCommConfigDef::hcclWorldRankID",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclWorldRankID) - 300usize];
    [
        "Offset of field: HcclCommConfigDef::hcclJobID",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclJobID) - 304usize];
    [
        "Offset of field: HcclCommConfigDef::aclGraphZeroCopyEnable",
    ][::core::mem::offset_of!(HcclCommConfigDef, aclGraphZeroCopyEnable) - 312usize];
    [
        "Offset of field: HcclCommConfigDef::hcclExecTimeOut",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclExecTimeOut) - 316usize];
    [
        "Offset of field: HcclCommConfigDef::hcclAlgo",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclAlgo) - 320usize];
    [
        "Offset of field: HcclCommConfigDef::hcclRetryEnable",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclRetryEnable) - 1920usize];
    [
        "Offset of field: HcclCommConfigDef::hcclRetryParams",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclRetryParams) - 1970usize];
    [
        "Offset of field: HcclCommConfigDef::hcclBufferName",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclBufferName) - 2098usize];
    [
        "Offset of field: HcclCommConfigDef::hcclQos",
    ][::core::mem::offset_of!(HcclCommConfigDef, hcclQos) - 2228usize];
};
pub type HcclCommConfig = HcclCommConfigDef;
impl HcclCommConfigCapability {
    pub const HCCL_COMM_CONFIG_BUFFER_SIZE: HcclCommConfigCapability = HcclCommConfigCapability(
        0,
    );
    pub const HCCL_COMM_CONFIG_DETERMINISTIC: HcclCommConfigCapability = HcclCommConfigCapability(
        1,
    );
    pub const HCCL_COMM_CONFIG_COMM_NAME: HcclCommConfigCapability = HcclCommConfigCapability(
        2,
    );
    pub const HCCL_COMM_CONFIG_OP_EXPANSION_MODE: HcclCommConfigCapability = HcclCommConfigCapability(
        3,
    );
    pub const HCCL_COMM_CONFIG_SUPPORT_INIT_BY_ENV: HcclCommConfigCapability = HcclCommConfigCapability(
        4,
    );
    pub const HCCL_COMM_CONFIG_WORLD_RANKID: HcclCommConfigCapability = HcclCommConfigCapability(
        5,
    );
    pub const HCCL_COMM_CONFIG_JOBID: HcclCommConfigCapability = HcclCommConfigCapability(
        6,
    );
    pub const HCCL_COMM_CONFIG_ACLGRAPH_ZEROCOPY_ENABLE: HcclCommConfigCapability = HcclCommConfigCapability(
        7,
    );
    pub const HCCL_COMM_CONFIG_EXEC_TIMEOUT: HcclCommConfigCapability = HcclCommConfigCapability(
        8,
    );
    pub const HCCL_COMM_CONFIG_ALGO: HcclCommConfigCapability = HcclCommConfigCapability(
        9,
    );
    pub const HCCL_COMM_CONFIG_RETRY: HcclCommConfigCapability = HcclCommConfigCapability(
        10,
    );
    pub const HCCL_COMM_CONFIG_BUFFER_NAME: HcclCommConfigCapability = HcclCommConfigCapability(
        11,
    );
    pub const HCCL_COMM_CONFIG_RESERVED: HcclCommConfigCapability = HcclCommConfigCapability(
        12,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct HcclCommConfigCapability(pub ::core::ffi::c_uint);
pub struct Hccl {
    __library: ::libloading::Library,
    pub HcclGetRootInfo: Result<
        unsafe extern "C" fn(rootInfo: *mut HcclRootInfo) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommInitRootInfo: Result<
        unsafe extern "C" fn(
            nRanks: u32,
            rootInfo: *const HcclRootInfo,
            rank: u32,
            comm: *mut HcclComm,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommInitRootInfoConfig: Result<
        unsafe extern "C" fn(
            nRanks: u32,
            rootInfo: *const HcclRootInfo,
            rank: u32,
            config: *const HcclCommConfig,
            comm: *mut HcclComm,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommInitClusterInfo: Result<
        unsafe extern "C" fn(
            clusterInfo: *const ::core::ffi::c_char,
            rank: u32,
            comm: *mut HcclComm,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommInitClusterInfoConfig: Result<
        unsafe extern "C" fn(
            clusterInfo: *const ::core::ffi::c_char,
            rank: u32,
            config: *mut HcclCommConfig,
            comm: *mut HcclComm,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCreateSubCommConfig: Result<
        unsafe extern "C" fn(
            comm: *mut HcclComm,
            rankNum: u32,
            rankIds: *mut u32,
            subCommId: u64,
            subCommRankId: u32,
            config: *mut HcclCommConfig,
            subComm: *mut HcclComm,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommInitAll: Result<
        unsafe extern "C" fn(
            ndev: u32,
            devices: *mut i32,
            comms: *mut HcclComm,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommDestroy: Result<
        unsafe extern "C" fn(comm: HcclComm) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommSuspend: Result<
        unsafe extern "C" fn(comm: HcclComm) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommResume: Result<
        unsafe extern "C" fn(comm: HcclComm) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclSetConfig: Result<
        unsafe extern "C" fn(
            config: HcclConfig,
            configValue: HcclConfigValue,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclGetConfig: Result<
        unsafe extern "C" fn(
            config: HcclConfig,
            configValue: *mut HcclConfigValue,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclGetCommConfigCapability: Result<
        unsafe extern "C" fn() -> u32,
        ::libloading::Error,
    >,
    pub HcclGetCommName: Result<
        unsafe extern "C" fn(
            comm: HcclComm,
            commName: *mut ::core::ffi::c_char,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclGetRankSize: Result<
        unsafe extern "C" fn(comm: HcclComm, rankSize: *mut u32) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclGetRankId: Result<
        unsafe extern "C" fn(comm: HcclComm, rank: *mut u32) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclBarrier: Result<
        unsafe extern "C" fn(comm: HcclComm, stream: aclrtStream) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclGetErrorString: Result<
        unsafe extern "C" fn(code: HcclResult) -> *const ::core::ffi::c_char,
        ::libloading::Error,
    >,
    pub HcclGetCommAsyncError: Result<
        unsafe extern "C" fn(comm: HcclComm, asyncError: *mut HcclResult) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclSend: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            count: u64,
            dataType: HcclDataType,
            destRank: u32,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclRecv: Result<
        unsafe extern "C" fn(
            recvBuf: *mut ::core::ffi::c_void,
            count: u64,
            dataType: HcclDataType,
            srcRank: u32,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclBatchSendRecv: Result<
        unsafe extern "C" fn(
            sendRecvInfo: *mut HcclSendRecvItem,
            itemNum: u32,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclGroupStart: Result<
        unsafe extern "C" fn() -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclGroupEnd: Result<unsafe extern "C" fn() -> HcclResult, ::libloading::Error>,
    pub HcclGroupStatusGet: Result<
        unsafe extern "C" fn(inGroup: *mut bool) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclAllReduce: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            recvBuf: *mut ::core::ffi::c_void,
            count: u64,
            dataType: HcclDataType,
            op: HcclReduceOp,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclAllGather: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            recvBuf: *mut ::core::ffi::c_void,
            sendCount: u64,
            dataType: HcclDataType,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclReduceScatter: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            recvBuf: *mut ::core::ffi::c_void,
            recvCount: u64,
            dataType: HcclDataType,
            op: HcclReduceOp,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclBroadcast: Result<
        unsafe extern "C" fn(
            buf: *mut ::core::ffi::c_void,
            count: u64,
            dataType: HcclDataType,
            root: u32,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclReduce: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            recvBuf: *mut ::core::ffi::c_void,
            count: u64,
            dataType: HcclDataType,
            op: HcclReduceOp,
            root: u32,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclScatter: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            recvBuf: *mut ::core::ffi::c_void,
            recvCount: u64,
            dataType: HcclDataType,
            root: u32,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclAlltoAll: Result<
        unsafe extern "C" fn(
            sendBuf: *const ::core::ffi::c_void,
            sendCount: u64,
            sendType: HcclDataType,
            recvBuf: *const ::core::ffi::c_void,
            recvCount: u64,
            recvType: HcclDataType,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclAlltoAllV: Result<
        unsafe extern "C" fn(
            sendBuf: *const ::core::ffi::c_void,
            sendCounts: *const ::core::ffi::c_void,
            sdispls: *const ::core::ffi::c_void,
            sendType: HcclDataType,
            recvBuf: *const ::core::ffi::c_void,
            recvCounts: *const ::core::ffi::c_void,
            rdispls: *const ::core::ffi::c_void,
            recvType: HcclDataType,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclAlltoAllVC: Result<
        unsafe extern "C" fn(
            sendBuf: *const ::core::ffi::c_void,
            sendCountMatrix: *const ::core::ffi::c_void,
            sendType: HcclDataType,
            recvBuf: *const ::core::ffi::c_void,
            recvType: HcclDataType,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclAllGatherV: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            sendCount: u64,
            recvBuf: *mut ::core::ffi::c_void,
            recvCounts: *const ::core::ffi::c_void,
            recvDispls: *const ::core::ffi::c_void,
            dataType: HcclDataType,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclReduceScatterV: Result<
        unsafe extern "C" fn(
            sendBuf: *mut ::core::ffi::c_void,
            sendCounts: *const ::core::ffi::c_void,
            sendDispls: *const ::core::ffi::c_void,
            recvBuf: *mut ::core::ffi::c_void,
            recvCount: u64,
            dataType: HcclDataType,
            op: HcclReduceOp,
            comm: HcclComm,
            stream: aclrtStream,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommSetMemoryRange: Result<
        unsafe extern "C" fn(
            comm: HcclComm,
            baseVirPtr: *mut ::core::ffi::c_void,
            size: usize,
            alignment: usize,
            flags: u64,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommUnsetMemoryRange: Result<
        unsafe extern "C" fn(
            comm: HcclComm,
            baseVirPtr: *mut ::core::ffi::c_void,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommActivateCommMemory: Result<
        unsafe extern "C" fn(
            comm: HcclComm,
            virPtr: *mut ::core::ffi::c_void,
            size: usize,
            offset: usize,
            handle: aclrtDrvMemHandle,
            flags: u64,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommDeactivateCommMemory: Result<
        unsafe extern "C" fn(
            comm: HcclComm,
            virPtr: *mut ::core::ffi::c_void,
        ) -> HcclResult,
        ::libloading::Error,
    >,
    pub HcclCommWorkingDevNicSet: Result<
        unsafe extern "C" fn(
            comm: HcclComm,
            ranks: *mut u32,
            useBackup: *mut bool,
            nRanks: u32,
        ) -> HcclResult,
        ::libloading::Error,
    >,
}
impl Hccl {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = unsafe { ::libloading::Library::new(path) }?;
        unsafe { Self::from_library(library) }
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let HcclGetRootInfo = unsafe { __library.get(b"HcclGetRootInfo\0") }
            .map(|sym| *sym);
        let HcclCommInitRootInfo = unsafe { __library.get(b"HcclCommInitRootInfo\0") }
            .map(|sym| *sym);
        let HcclCommInitRootInfoConfig = unsafe {
            __library.get(b"HcclCommInitRootInfoConfig\0")
        }
            .map(|sym| *sym);
        let HcclCommInitClusterInfo = unsafe {
            __library.get(b"HcclCommInitClusterInfo\0")
        }
            .map(|sym| *sym);
        let HcclCommInitClusterInfoConfig = unsafe {
            __library.get(b"HcclCommInitClusterInfoConfig\0")
        }
            .map(|sym| *sym);
        let HcclCreateSubCommConfig = unsafe {
            __library.get(b"HcclCreateSubCommConfig\0")
        }
            .map(|sym| *sym);
        let HcclCommInitAll = unsafe { __library.get(b"HcclCommInitAll\0") }
            .map(|sym| *sym);
        let HcclCommDestroy = unsafe { __library.get(b"HcclCommDestroy\0") }
            .map(|sym| *sym);
        let HcclCommSuspend = unsafe { __library.get(b"HcclCommSuspend\0") }
            .map(|sym| *sym);
        let HcclCommResume = unsafe { __library.get(b"HcclCommResume\0") }
            .map(|sym| *sym);
        let HcclSetConfig = unsafe { __library.get(b"HcclSetConfig\0") }.map(|sym| *sym);
        let HcclGetConfig = unsafe { __library.get(b"HcclGetConfig\0") }.map(|sym| *sym);
        let HcclGetCommConfigCapability = unsafe {
            __library.get(b"HcclGetCommConfigCapability\0")
        }
            .map(|sym| *sym);
        let HcclGetCommName = unsafe { __library.get(b"HcclGetCommName\0") }
            .map(|sym| *sym);
        let HcclGetRankSize = unsafe { __library.get(b"HcclGetRankSize\0") }
            .map(|sym| *sym);
        let HcclGetRankId = unsafe { __library.get(b"HcclGetRankId\0") }.map(|sym| *sym);
        let HcclBarrier = unsafe { __library.get(b"HcclBarrier\0") }.map(|sym| *sym);
        let HcclGetErrorString = unsafe { __library.get(b"HcclGetErrorString\0") }
            .map(|sym| *sym);
        let HcclGetCommAsyncError = unsafe { __library.get(b"HcclGetCommAsyncError\0") }
            .map(|sym| *sym);
        let HcclSend = unsafe { __library.get(b"HcclSend\0") }.map(|sym| *sym);
        let HcclRecv = unsafe { __library.get(b"HcclRecv\0") }.map(|sym| *sym);
        let HcclBatchSendRecv = unsafe { __library.get(b"HcclBatchSendRecv\0") }
            .map(|sym| *sym);
        let HcclGroupStart = unsafe { __library.get(b"HcclGroupStart\0") }
            .map(|sym| *sym);
        let HcclGroupEnd = unsafe { __library.get(b"HcclGroupEnd\0") }.map(|sym| *sym);
        let HcclGroupStatusGet = unsafe { __library.get(b"HcclGroupStatusGet\0") }
            .map(|sym| *sym);
        let HcclAllReduce = unsafe { __library.get(b"HcclAllReduce\0") }.map(|sym| *sym);
        let HcclAllGather = unsafe { __library.get(b"HcclAllGather\0") }.map(|sym| *sym);
        let HcclReduceScatter = unsafe { __library.get(b"HcclReduceScatter\0") }
            .map(|sym| *sym);
        let HcclBroadcast = unsafe { __library.get(b"HcclBroadcast\0") }.map(|sym| *sym);
        let HcclReduce = unsafe { __library.get(b"HcclReduce\0") }.map(|sym| *sym);
        let HcclScatter = unsafe { __library.get(b"HcclScatter\0") }.map(|sym| *sym);
        let HcclAlltoAll = unsafe { __library.get(b"HcclAlltoAll\0") }.map(|sym| *sym);
        let HcclAlltoAllV = unsafe { __library.get(b"HcclAlltoAllV\0") }.map(|sym| *sym);
        let HcclAlltoAllVC = unsafe { __library.get(b"HcclAlltoAllVC\0") }
            .map(|sym| *sym);
        let HcclAllGatherV = unsafe { __library.get(b"HcclAllGatherV\0") }
            .map(|sym| *sym);
        let HcclReduceScatterV = unsafe { __library.get(b"HcclReduceScatterV\0") }
            .map(|sym| *sym);
        let HcclCommSetMemoryRange = unsafe {
            __library.get(b"HcclCommSetMemoryRange\0")
        }
            .map(|sym| *sym);
        let HcclCommUnsetMemoryRange = unsafe {
            __library.get(b"HcclCommUnsetMemoryRange\0")
        }
            .map(|sym| *sym);
        let HcclCommActivateCommMemory = unsafe {
            __library.get(b"HcclCommActivateCommMemory\0")
        }
            .map(|sym| *sym);
        let HcclCommDeactivateCommMemory = unsafe {
            __library.get(b"HcclCommDeactivateCommMemory\0")
        }
            .map(|sym| *sym);
        let HcclCommWorkingDevNicSet = unsafe {
            __library.get(b"HcclCommWorkingDevNicSet\0")
        }
            .map(|sym| *sym);
        Ok(Hccl {
            __library,
            HcclGetRootInfo,
            HcclCommInitRootInfo,
            HcclCommInitRootInfoConfig,
            HcclCommInitClusterInfo,
            HcclCommInitClusterInfoConfig,
            HcclCreateSubCommConfig,
            HcclCommInitAll,
            HcclCommDestroy,
            HcclCommSuspend,
            HcclCommResume,
            HcclSetConfig,
            HcclGetConfig,
            HcclGetCommConfigCapability,
            HcclGetCommName,
            HcclGetRankSize,
            HcclGetRankId,
            HcclBarrier,
            HcclGetErrorString,
            HcclGetCommAsyncError,
            HcclSend,
            HcclRecv,
            HcclBatchSendRecv,
            HcclGroupStart,
            HcclGroupEnd,
            HcclGroupStatusGet,
            HcclAllReduce,
            HcclAllGather,
            HcclReduceScatter,
            HcclBroadcast,
            HcclReduce,
            HcclScatter,
            HcclAlltoAll,
            HcclAlltoAllV,
            HcclAlltoAllVC,
            HcclAllGatherV,
            HcclReduceScatterV,
            HcclCommSetMemoryRange,
            HcclCommUnsetMemoryRange,
            HcclCommActivateCommMemory,
            HcclCommDeactivateCommMemory,
            HcclCommWorkingDevNicSet,
        })
    }
    #[must_use]
    pub unsafe fn HcclGetRootInfo(&self, rootInfo: *mut HcclRootInfo) -> HcclResult {
        unsafe {
            (self
                .HcclGetRootInfo
                .as_ref()
                .expect("Expected function, got error."))(rootInfo)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommInitRootInfo(
        &self,
        nRanks: u32,
        rootInfo: *const HcclRootInfo,
        rank: u32,
        comm: *mut HcclComm,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommInitRootInfo
                .as_ref()
                .expect("Expected function, got error."))(nRanks, rootInfo, rank, comm)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommInitRootInfoConfig(
        &self,
        nRanks: u32,
        rootInfo: *const HcclRootInfo,
        rank: u32,
        config: *const HcclCommConfig,
        comm: *mut HcclComm,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommInitRootInfoConfig
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(nRanks, rootInfo, rank, config, comm)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommInitClusterInfo(
        &self,
        clusterInfo: *const ::core::ffi::c_char,
        rank: u32,
        comm: *mut HcclComm,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommInitClusterInfo
                .as_ref()
                .expect("Expected function, got error."))(clusterInfo, rank, comm)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommInitClusterInfoConfig(
        &self,
        clusterInfo: *const ::core::ffi::c_char,
        rank: u32,
        config: *mut HcclCommConfig,
        comm: *mut HcclComm,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommInitClusterInfoConfig
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(clusterInfo, rank, config, comm)
        }
    }
    #[must_use]
    pub unsafe fn HcclCreateSubCommConfig(
        &self,
        comm: *mut HcclComm,
        rankNum: u32,
        rankIds: *mut u32,
        subCommId: u64,
        subCommRankId: u32,
        config: *mut HcclCommConfig,
        subComm: *mut HcclComm,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCreateSubCommConfig
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(comm, rankNum, rankIds, subCommId, subCommRankId, config, subComm)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommInitAll(
        &self,
        ndev: u32,
        devices: *mut i32,
        comms: *mut HcclComm,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommInitAll
                .as_ref()
                .expect("Expected function, got error."))(ndev, devices, comms)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommDestroy(&self, comm: HcclComm) -> HcclResult {
        unsafe {
            (self.HcclCommDestroy.as_ref().expect("Expected function, got error."))(comm)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommSuspend(&self, comm: HcclComm) -> HcclResult {
        unsafe {
            (self.HcclCommSuspend.as_ref().expect("Expected function, got error."))(comm)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommResume(&self, comm: HcclComm) -> HcclResult {
        unsafe {
            (self.HcclCommResume.as_ref().expect("Expected function, got error."))(comm)
        }
    }
    #[must_use]
    pub unsafe fn HcclSetConfig(
        &self,
        config: HcclConfig,
        configValue: HcclConfigValue,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclSetConfig
                .as_ref()
                .expect("Expected function, got error."))(config, configValue)
        }
    }
    #[must_use]
    pub unsafe fn HcclGetConfig(
        &self,
        config: HcclConfig,
        configValue: *mut HcclConfigValue,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclGetConfig
                .as_ref()
                .expect("Expected function, got error."))(config, configValue)
        }
    }
    pub unsafe fn HcclGetCommConfigCapability(&self) -> u32 {
        unsafe {
            (self
                .HcclGetCommConfigCapability
                .as_ref()
                .expect("Expected function, got error."))()
        }
    }
    #[must_use]
    pub unsafe fn HcclGetCommName(
        &self,
        comm: HcclComm,
        commName: *mut ::core::ffi::c_char,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclGetCommName
                .as_ref()
                .expect("Expected function, got error."))(comm, commName)
        }
    }
    #[must_use]
    pub unsafe fn HcclGetRankSize(
        &self,
        comm: HcclComm,
        rankSize: *mut u32,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclGetRankSize
                .as_ref()
                .expect("Expected function, got error."))(comm, rankSize)
        }
    }
    #[must_use]
    pub unsafe fn HcclGetRankId(&self, comm: HcclComm, rank: *mut u32) -> HcclResult {
        unsafe {
            (self
                .HcclGetRankId
                .as_ref()
                .expect("Expected function, got error."))(comm, rank)
        }
    }
    #[must_use]
    pub unsafe fn HcclBarrier(&self, comm: HcclComm, stream: aclrtStream) -> HcclResult {
        unsafe {
            (self
                .HcclBarrier
                .as_ref()
                .expect("Expected function, got error."))(comm, stream)
        }
    }
    pub unsafe fn HcclGetErrorString(
        &self,
        code: HcclResult,
    ) -> *const ::core::ffi::c_char {
        unsafe {
            (self
                .HcclGetErrorString
                .as_ref()
                .expect("Expected function, got error."))(code)
        }
    }
    #[must_use]
    pub unsafe fn HcclGetCommAsyncError(
        &self,
        comm: HcclComm,
        asyncError: *mut HcclResult,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclGetCommAsyncError
                .as_ref()
                .expect("Expected function, got error."))(comm, asyncError)
        }
    }
    #[must_use]
    pub unsafe fn HcclSend(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        count: u64,
        dataType: HcclDataType,
        destRank: u32,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclSend
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendBuf, count, dataType, destRank, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclRecv(
        &self,
        recvBuf: *mut ::core::ffi::c_void,
        count: u64,
        dataType: HcclDataType,
        srcRank: u32,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclRecv
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(recvBuf, count, dataType, srcRank, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclBatchSendRecv(
        &self,
        sendRecvInfo: *mut HcclSendRecvItem,
        itemNum: u32,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclBatchSendRecv
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendRecvInfo, itemNum, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclGroupStart(&self) -> HcclResult {
        unsafe {
            (self.HcclGroupStart.as_ref().expect("Expected function, got error."))()
        }
    }
    #[must_use]
    pub unsafe fn HcclGroupEnd(&self) -> HcclResult {
        unsafe { (self.HcclGroupEnd.as_ref().expect("Expected function, got error."))() }
    }
    #[must_use]
    pub unsafe fn HcclGroupStatusGet(&self, inGroup: *mut bool) -> HcclResult {
        unsafe {
            (self
                .HcclGroupStatusGet
                .as_ref()
                .expect("Expected function, got error."))(inGroup)
        }
    }
    #[must_use]
    pub unsafe fn HcclAllReduce(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        recvBuf: *mut ::core::ffi::c_void,
        count: u64,
        dataType: HcclDataType,
        op: HcclReduceOp,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclAllReduce
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendBuf, recvBuf, count, dataType, op, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclAllGather(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        recvBuf: *mut ::core::ffi::c_void,
        sendCount: u64,
        dataType: HcclDataType,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclAllGather
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendBuf, recvBuf, sendCount, dataType, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclReduceScatter(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        recvBuf: *mut ::core::ffi::c_void,
        recvCount: u64,
        dataType: HcclDataType,
        op: HcclReduceOp,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclReduceScatter
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendBuf, recvBuf, recvCount, dataType, op, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclBroadcast(
        &self,
        buf: *mut ::core::ffi::c_void,
        count: u64,
        dataType: HcclDataType,
        root: u32,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclBroadcast
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(buf, count, dataType, root, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclReduce(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        recvBuf: *mut ::core::ffi::c_void,
        count: u64,
        dataType: HcclDataType,
        op: HcclReduceOp,
        root: u32,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclReduce
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendBuf, recvBuf, count, dataType, op, root, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclScatter(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        recvBuf: *mut ::core::ffi::c_void,
        recvCount: u64,
        dataType: HcclDataType,
        root: u32,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclScatter
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendBuf, recvBuf, recvCount, dataType, root, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclAlltoAll(
        &self,
        sendBuf: *const ::core::ffi::c_void,
        sendCount: u64,
        sendType: HcclDataType,
        recvBuf: *const ::core::ffi::c_void,
        recvCount: u64,
        recvType: HcclDataType,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclAlltoAll
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(
                sendBuf,
                sendCount,
                sendType,
                recvBuf,
                recvCount,
                recvType,
                comm,
                stream,
            )
        }
    }
    #[must_use]
    pub unsafe fn HcclAlltoAllV(
        &self,
        sendBuf: *const ::core::ffi::c_void,
        sendCounts: *const ::core::ffi::c_void,
        sdispls: *const ::core::ffi::c_void,
        sendType: HcclDataType,
        recvBuf: *const ::core::ffi::c_void,
        recvCounts: *const ::core::ffi::c_void,
        rdispls: *const ::core::ffi::c_void,
        recvType: HcclDataType,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclAlltoAllV
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(
                sendBuf,
                sendCounts,
                sdispls,
                sendType,
                recvBuf,
                recvCounts,
                rdispls,
                recvType,
                comm,
                stream,
            )
        }
    }
    #[must_use]
    pub unsafe fn HcclAlltoAllVC(
        &self,
        sendBuf: *const ::core::ffi::c_void,
        sendCountMatrix: *const ::core::ffi::c_void,
        sendType: HcclDataType,
        recvBuf: *const ::core::ffi::c_void,
        recvType: HcclDataType,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclAlltoAllVC
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sendBuf, sendCountMatrix, sendType, recvBuf, recvType, comm, stream)
        }
    }
    #[must_use]
    pub unsafe fn HcclAllGatherV(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        sendCount: u64,
        recvBuf: *mut ::core::ffi::c_void,
        recvCounts: *const ::core::ffi::c_void,
        recvDispls: *const ::core::ffi::c_void,
        dataType: HcclDataType,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclAllGatherV
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(
                sendBuf,
                sendCount,
                recvBuf,
                recvCounts,
                recvDispls,
                dataType,
                comm,
                stream,
            )
        }
    }
    #[must_use]
    pub unsafe fn HcclReduceScatterV(
        &self,
        sendBuf: *mut ::core::ffi::c_void,
        sendCounts: *const ::core::ffi::c_void,
        sendDispls: *const ::core::ffi::c_void,
        recvBuf: *mut ::core::ffi::c_void,
        recvCount: u64,
        dataType: HcclDataType,
        op: HcclReduceOp,
        comm: HcclComm,
        stream: aclrtStream,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclReduceScatterV
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(
                sendBuf,
                sendCounts,
                sendDispls,
                recvBuf,
                recvCount,
                dataType,
                op,
                comm,
                stream,
            )
        }
    }
    #[must_use]
    pub unsafe fn HcclCommSetMemoryRange(
        &self,
        comm: HcclComm,
        baseVirPtr: *mut ::core::ffi::c_void,
        size: usize,
        alignment: usize,
        flags: u64,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommSetMemoryRange
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(comm, baseVirPtr, size, alignment, flags)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommUnsetMemoryRange(
        &self,
        comm: HcclComm,
        baseVirPtr: *mut ::core::ffi::c_void,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommUnsetMemoryRange
                .as_ref()
                .expect("Expected function, got error."))(comm, baseVirPtr)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommActivateCommMemory(
        &self,
        comm: HcclComm,
        virPtr: *mut ::core::ffi::c_void,
        size: usize,
        offset: usize,
        handle: aclrtDrvMemHandle,
        flags: u64,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommActivateCommMemory
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(comm, virPtr, size, offset, handle, flags)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommDeactivateCommMemory(
        &self,
        comm: HcclComm,
        virPtr: *mut ::core::ffi::c_void,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommDeactivateCommMemory
                .as_ref()
                .expect("Expected function, got error."))(comm, virPtr)
        }
    }
    #[must_use]
    pub unsafe fn HcclCommWorkingDevNicSet(
        &self,
        comm: HcclComm,
        ranks: *mut u32,
        useBackup: *mut bool,
        nRanks: u32,
    ) -> HcclResult {
        unsafe {
            (self
                .HcclCommWorkingDevNicSet
                .as_ref()
                .expect("Expected function, got error."))(comm, ranks, useBackup, nRanks)
        }
    }
}
